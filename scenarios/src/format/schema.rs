//! The JSON schema of scenario files, for editors: `mirrorlab schema`.
//!
//! It is derived from the types, which hold what reading has filled in; so keys that a file may leave out are marked here, and
//! keys that only files have (`topic` for one of `topics`) are added. A test compares the result with the keys that the
//! reader knows.

use super::chaos::ChaosKind;
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

/// Keys of a type of which a file must have one, if not both.
const ONE_OF: &[(&str, &[&str])] = &[
    ("Producer", &["topic", "topics"]),
    ("Consumer", &["topic", "topics"]),
    ("Transactions", &["records", "duration"]),
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
        insert(&mut schema, &format!("/$defs/{name}/properties"), "topic", the_only_one());
    }
    for (name, keys) in ONE_OF {
        insert(&mut schema, &format!("/$defs/{name}"), "anyOf", one_of(keys));
    }
    counts(&mut schema);
    chaos(&mut schema);
    let seed = json!({ "type": "string", "pattern": "^0x[0-9a-fA-F]{1,16}$" });
    if let Some(known) = schema.pointer_mut("/properties/seed") {
        *known = json!({ "description": known["description"], "anyOf": [{ "type": "integer", "minimum": 0 }, seed] });
    }
    steps(&mut schema);
    configs(&mut schema);
    without_null(&mut schema);
    schema
}

fn insert(schema: &mut Value, at: &str, key: &str, value: Value) {
    if let Some(object) = schema.pointer_mut(at).and_then(Value::as_object_mut) {
        object.insert(key.to_owned(), value);
    }
}

fn the_only_one() -> Value {
    json!({ "type": "string", "description": "Instead of `topics`: the only one." })
}

fn one_of(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({ "required": [key] })).collect()
}

/// Numbers that may be written as a table are closed tables, like all others.
fn counts(schema: &mut Value) {
    for (name, required) in [("Count", &[][..]), ("Reach", &["mark", "at_least"])] {
        let parts = schema.pointer_mut(&format!("/$defs/{name}/anyOf")).and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten().filter(|part| part.get("properties").is_some()) {
            part["required"] = json!(required);
            part["additionalProperties"] = json!(false);
        }
    }
    insert(schema, "/$defs/Bounds", "minProperties", json!(1));
    insert(schema, "/$defs/Bounds2", "minProperties", json!(1));
}

/// Kinds of chaos are keys of their table.
fn chaos(schema: &mut Value) {
    let kinds = schemars::schema_for!(ChaosKind).to_value();
    for kind in kinds["oneOf"].as_array().into_iter().flatten() {
        let Some(key) = kind["const"].as_str() else { continue };
        let strike = json!({ "$ref": "#/$defs/Strike", "description": kind["description"] });
        insert(schema, "/$defs/Chaos/properties", key, strike);
    }
}

/// Config entries are read by what they are: a number or a list need not stand in quotes.
fn configs(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if let Some(values) = object.get_mut("config").and_then(|config| config.get_mut("additionalProperties")) {
                let list = json!({ "type": "array", "items": { "type": "string" } });
                *values = json!({ "anyOf": [{ "type": ["string", "number", "boolean"] }, list] });
            }
            object.values_mut().for_each(configs);
        }
        Value::Array(items) => items.iter_mut().for_each(configs),
        _ => {}
    }
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

/// Keys of steps and actions that have a default, and the one-word forms of lists.
fn steps(schema: &mut Value) {
    const OPTIONAL: &[&str] = &[
        "on",
        "probability",
        "call",
        "bits",
        "partitions",
        "rf",
        "config",
        "remove",
        "partition",
        "min",
        "one_way",
        "silent",
        "inside_task",
        "loses",
        "power",
        "topics",
        "files",
    ];
    const NEEDED: &[(&str, &str)] = &[("disk-slow", "by"), ("add-partitions", "partitions")];
    const ONE_OF: &[(&str, &[&str])] = &[
        ("partition", &["between", "node", "role"]),
        ("reset-connections", &["link", "node"]),
        ("set-config", &["config", "remove"]),
    ];
    let Some(step) = schema.pointer_mut("/$defs/Step").and_then(Value::as_object_mut) else { return };
    // What every step has, has a default; the rest is in its parts, and a key that is in none of them is refused.
    step.remove("required");
    step.insert("unevaluatedProperties".to_owned(), json!(false));
    for action in step.get_mut("oneOf").and_then(Value::as_array_mut).into_iter().flatten() {
        let name = action.pointer("/properties/do/const").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some(required) = action.get_mut("required").and_then(Value::as_array_mut) {
            required.retain(|key| {
                let key = key.as_str().unwrap_or_default();
                !OPTIONAL.contains(&key) || NEEDED.contains(&(name.as_str(), key))
            });
        }
        if let Some((_, keys)) = ONE_OF.iter().find(|(of, _)| *of == name) {
            insert(action, "", "anyOf", one_of(keys));
        }
        if action.pointer("/properties/topics").is_some() {
            insert(action, "/properties", "topic", the_only_one());
        }
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
