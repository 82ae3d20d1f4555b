//! The JSON schema of scenario files, for editors: `mirrorlab schema`.
//!
//! It is derived from the types, which hold what reading has filled in; so keys that a file may leave out are marked here, and
//! keys that only files have (`topic` for one of `topics`) are added. A test compares the result with the keys that the
//! reader knows.

use super::Scenario;
use serde_json::{json, Value};

/// The keys that a file must have, by type of the schema; every other key has a default.
const REQUIRED: &[(&str, &[&str])] = &[
    ("Scenario", &["title", "clusters"]),
    ("Cluster", &[]),
    ("Link", &["between", "latency"]),
    ("DirectionChange", &[]),
    ("Topic", &[]),
    ("Mirror", &["on", "source", "topics"]),
    ("Producer", &[]),
    ("Transactions", &[]),
    ("Consumer", &[]),
    ("Phases", &[]),
    ("Expect", &[]),
    ("Strike", &[]),
    ("Chaos", &[]),
    ("Provenance", &[]),
];

/// The JSON schema of scenario files.
#[must_use]
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    relax(&mut schema, "Scenario");
    for (name, _) in REQUIRED {
        if let Some(inner) = schema.pointer_mut(&format!("/$defs/{name}")) {
            relax(inner, name);
        }
    }
    for name in ["Producer", "Consumer"] {
        if let Some(keys) = schema.pointer_mut(&format!("/$defs/{name}/properties")).and_then(Value::as_object_mut) {
            keys.insert(
                "topic".to_owned(),
                json!({ "type": "string", "description": "Instead of `topics`: the only one." }),
            );
        }
    }
    steps(&mut schema);
    without_null(&mut schema);
    schema
}

/// TOML has no null: a key that may be left out is just not required.
fn without_null(schema: &mut Value) {
    let is_null = |part: &Value| *part == json!("null") || *part == json!({ "type": "null" });
    if let Value::Object(object) = schema {
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|part| !is_null(part));
            if let [only] = &types[..] {
                let only = only.clone();
                object.insert("type".to_owned(), only);
            }
        }
        let rest = match object.get_mut("anyOf") {
            Some(Value::Array(parts)) => {
                parts.retain(|part| !is_null(part));
                match &parts[..] {
                    [Value::Object(only)] => Some(only.clone()),
                    _ => None,
                }
            }
            _ => None,
        };
        if let Some(only) = rest {
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
        object.values_mut().for_each(without_null);
    } else if let Value::Array(items) = schema {
        items.iter_mut().for_each(without_null);
    }
}

/// Leaves only the keys that a file must have as required ones.
fn relax(schema: &mut Value, name: &str) {
    let required = REQUIRED.iter().find(|(of, _)| *of == name).map_or(&[] as &[&str], |(_, keys)| keys);
    if let Some(object) = schema.as_object_mut() {
        if required.is_empty() {
            object.remove("required");
        } else {
            object.insert("required".to_owned(), json!(required));
        }
    }
}

/// Keys of actions that have a default, and the one-word forms of lists.
fn steps(schema: &mut Value) {
    const OPTIONAL: &[&str] = &[
        "on",
        "probability",
        "call",
        "bits",
        "partitions",
        "rf",
        "config",
        "partition",
        "permanent",
        "min",
        "one_way",
        "silent",
        "inside_task",
        "loses",
        "power",
        "within_tolerance",
        "files",
    ];
    const NEEDED: &[(&str, &str)] = &[("disk-slow", "by"), ("add-partitions", "partitions")];
    let Some(step) = schema.pointer_mut("/$defs/Step") else { return };
    let mut variants = Vec::new();
    collect(step, &mut variants);
    for variant in variants {
        let action = variant.pointer("/properties/do/const").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(required) = variant.get_mut("required").and_then(Value::as_array_mut) else { continue };
        required.retain(|key| {
            let key = key.as_str().unwrap_or_default();
            !OPTIONAL.contains(&key) || NEEDED.contains(&(action.as_str(), key))
        });
        if action.ends_with("-mirror") && action != "create-mirror" && action != "delete-mirror" {
            if let Some(keys) = variant.get_mut("properties").and_then(Value::as_object_mut) {
                keys.insert(
                    "topic".to_owned(),
                    json!({ "type": "string", "description": "Instead of `topics`: the only one." }),
                );
            }
        }
    }
}

/// Every object that lists properties, at any depth.
fn collect<'a>(schema: &'a mut Value, found: &mut Vec<&'a mut Value>) {
    if schema.get("required").is_some() && schema.get("properties").is_some() && schema.get("oneOf").is_none() {
        found.push(schema);
        return;
    }
    match schema {
        Value::Object(object) => object.values_mut().for_each(|inner| collect(inner, found)),
        Value::Array(items) => items.iter_mut().for_each(|inner| collect(inner, found)),
        _ => {}
    }
}
