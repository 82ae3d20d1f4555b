//! `matrix = { "links.wan.latency" = ["1 ms", "50 ms"] }`: one run for each combination of values. A row is the same file with
//! values put in, read again from the start, so that a value from a matrix is checked like one that stands in its place.

use super::diagnostics::Problem;
use super::limits;
use super::table::{kind_of, At, Cx, Table};
use crate::units::clip;
use std::ops::Range;
use toml::de::{DeTable, DeValue};
use toml::Spanned;

/// One key that varies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// The path as it is written.
    pub path: String,
    /// Its values as they are written.
    pub values: Vec<String>,
}

/// A problem with a row, and its place.
pub(crate) type Misplaced = Box<(Range<usize>, Problem)>;

/// An axis with what is needed to put a value in.
pub(crate) struct RawAxis<'i> {
    pub(crate) axis: Axis,
    span: Range<usize>,
    steps: Vec<String>,
    values: Vec<Spanned<DeValue<'i>>>,
}

/// Keys that are the same for all rows.
const FIXED: &[&str] = &["title", "why", "tier", "origin", "matrix", "draw", "plan"];

/// Reads the axes.
pub(crate) fn axes<'i>(cx: &mut Cx<'_>, root: &mut Table<'_, 'i>, tokens: usize) -> Vec<RawAxis<'i>> {
    let Some(t) = root.table(cx, "matrix", "`matrix`".to_owned()) else { return Vec::new() };
    let mut axes = Vec::new();
    for (key, value) in t.entries() {
        if let Some(path) = super::draws::unquoted(&key.value, value) {
            let path = clip(&path, 80);
            let message = format!("`{path}` in the matrix is a path, and stands without quotes");
            cx.error(&key.span, "bad-path", message, format!("write it as one key, `\"{path}\" = [ … ]`"));
            continue;
        }
        let DeValue::Array(items) = value.get_ref() else {
            let message = format!(
                "`{}` in the matrix is a list of values, not {}",
                clip(&key.value, 60),
                kind_of(value.get_ref())
            );
            let help = format!("write it as `\"{}\" = [ … ]`", clip(&key.value, 60));
            cx.error(&value.span(), "wrong-type", message, help);
            continue;
        };
        if items.is_empty() {
            let message = format!("`{}` in the matrix has no values", clip(&key.value, 60));
            cx.error(&value.span(), "empty", message, "write at least one, or remove it".to_owned());
            continue;
        }
        axes.extend(RawAxis::of(cx, &key, items.iter().cloned().collect(), "varied in a matrix"));
    }
    if bounded(cx, &t, &axes, tokens) {
        axes
    } else {
        Vec::new()
    }
}

fn bounded(cx: &mut Cx<'_>, t: &Table<'_, '_>, axes: &[RawAxis<'_>], tokens: usize) -> bool {
    let rows = axes.iter().fold(1_usize, |n, axis| n.saturating_mul(axis.values.len()));
    let (message, help) = if axes.len() > limits::MATRIX_AXES {
        (format!("a matrix of {} keys", axes.len()), format!("the limit is {}", limits::MATRIX_AXES))
    } else if rows > limits::MATRIX_ROWS {
        (format!("a matrix of {rows} rows"), format!("the limit is {}", limits::MATRIX_ROWS))
    } else if rows.saturating_mul(tokens) > limits::MATRIX_TOKENS {
        let message = format!("a matrix of {rows} rows over so large a file");
        (message, "split the file, or use fewer rows".to_owned())
    } else {
        return true;
    };
    cx.error(&t.span, "too-many", format!("{message} is too much"), help);
    false
}

/// Cuts `a.b."c.d"` into its keys. After `config` the whole rest is one key, quoted or not, as config keys have points.
fn path(cx: &mut Cx<'_>, key: &At<String>, done: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = &*key.value;
    while !rest.is_empty() {
        if steps.last().is_some_and(|s| s == "config") {
            steps.push(rest.trim_matches('"').to_owned());
            break;
        }
        let (step, tail) = match rest.strip_prefix('"').and_then(|inner| inner.split_once('"')) {
            Some((step, tail)) => (step, tail.strip_prefix('.').unwrap_or(tail)),
            None => rest.split_once('.').unwrap_or((rest, "")),
        };
        steps.push(step.to_owned());
        rest = tail;
    }
    let good = !steps.is_empty() && steps.len() <= limits::DEPTH && !steps.iter().any(String::is_empty);
    if good && !FIXED.contains(&&*steps[0]) {
        return Some(steps);
    }
    let message = format!("`{}` cannot be {done}", clip(&key.value, 60));
    cx.error(&key.span, "bad-path", message, "name a key by its path, such as \"links.wan.latency\"".to_owned());
    None
}

/// Puts one value of each axis in; `row` counts in mixed radix, the last axis fastest. Returns the row's label.
pub(crate) fn apply<'i>(root: &mut DeTable<'i>, axes: &[RawAxis<'i>], row: usize) -> Result<String, Misplaced> {
    let mut picked = Vec::with_capacity(axes.len());
    let mut rest = row;
    for axis in axes.iter().rev() {
        picked.push(rest % axis.values.len());
        rest /= axis.values.len();
    }
    picked.reverse();
    let mut labels = Vec::with_capacity(axes.len());
    for (axis, pick) in axes.iter().zip(picked) {
        labels.push(format!("{}={}", axis.axis.path, axis.axis.values[pick]));
        put(root, axis, &axis.values[pick])?;
    }
    Ok(labels.join(", "))
}

/// Puts one value of one axis in, to check it alone.
pub(crate) fn put<'i>(
    root: &mut DeTable<'i>,
    axis: &RawAxis<'i>,
    value: &Spanned<DeValue<'i>>,
) -> Result<(), Misplaced> {
    put_at(root, axis, &axis.steps, value)
}

/// Puts a value in at a path, which is the axis' own or one that it stands for.
pub(crate) fn put_at<'i>(
    root: &mut DeTable<'i>,
    axis: &RawAxis<'i>,
    path: &[String],
    value: &Spanned<DeValue<'i>>,
) -> Result<(), Misplaced> {
    let Some((last, tables)) = path.split_last() else { return Ok(()) };
    let table = table_at(root, axis, tables)?;
    match table.get_mut(last.as_str()) {
        Some(slot) => *slot = value.clone(),
        None => {
            let key = Spanned::new(axis.span.clone(), std::borrow::Cow::Owned(last.clone()));
            table.insert(key, value.clone());
        }
    }
    Ok(())
}

/// The table at the end of a path; in a list, a step is a number from 0 or the `name` of one of its tables.
pub(crate) fn table_at<'t, 'i>(
    root: &'t mut DeTable<'i>,
    axis: &RawAxis<'i>,
    tables: &[String],
) -> Result<&'t mut DeTable<'i>, Misplaced> {
    let mut table = root;
    let mut steps = tables.iter();
    while let Some(step) = steps.next() {
        if step == "config" && !table.contains_key("config") {
            let key = Spanned::new(axis.span.clone(), std::borrow::Cow::Borrowed("config"));
            table.insert(key, Spanned::new(axis.span.clone(), DeValue::Table(DeTable::new())));
        }
        let inner = table.get_mut(step.as_str()).ok_or_else(|| axis.missing(step))?;
        table = match inner.get_mut() {
            DeValue::Table(inner) => inner,
            DeValue::Array(items) => {
                let which = steps.next().ok_or_else(|| axis.missing(step))?;
                let at = which.parse::<usize>().ok().or_else(|| items.iter().position(|item| is_named(item, which)));
                let item = at.and_then(|n| items.get_mut(n)).ok_or_else(|| axis.missing(which))?;
                match item.get_mut() {
                    DeValue::Table(inner) => inner,
                    _ => return Err(axis.missing(which)),
                }
            }
            _ => return Err(axis.missing(step)),
        };
    }
    Ok(table)
}

/// Whether a table of a list carries this `name`.
pub(crate) fn is_named(item: &Spanned<DeValue<'_>>, name: &str) -> bool {
    item.get_ref().get("name").and_then(|value| value.get_ref().as_str()) == Some(name)
}

impl<'i> RawAxis<'i> {
    /// An axis whose path can be one; `done` says what its key cannot be otherwise.
    pub(crate) fn of(cx: &mut Cx<'_>, key: &At<String>, values: Vec<Spanned<DeValue<'i>>>, done: &str) -> Option<Self> {
        let steps = path(cx, key, done)?;
        let source = std::sync::Arc::clone(&cx.problems.source.text);
        let shown = |v: &Spanned<DeValue<'_>>| source.get(v.span()).unwrap_or("…").trim_matches('"').to_owned();
        let axis = Axis { path: key.value.clone(), values: values.iter().map(shown).collect() };
        Some(RawAxis { axis, span: key.span.clone(), steps, values })
    }

    /// Its values.
    pub(crate) fn values(&self) -> &[Spanned<DeValue<'i>>] {
        &self.values
    }

    /// Its path.
    pub(crate) fn steps(&self) -> &[String] {
        &self.steps
    }

    /// Where it stands.
    pub(crate) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// That there is no such table on its path.
    pub(crate) fn missing(&self, step: &str) -> Misplaced {
        use super::diagnostics::Fault;
        let message =
            format!("`{}` names something that is not there: `{}`", clip(&self.axis.path, 80), clip(step, 60));
        let help =
            "each table on the path must be in the file; only the last key and `config` may be missing".to_owned();
        Box::new((self.span.clone(), Problem::new(Fault::File, "bad-path", message).help(help)))
    }
}
