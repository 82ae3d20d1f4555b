//! `[draw]`: keys whose values each seed draws for itself. So one file stands for a swarm of worlds, as a matrix stands for
//! all combinations.
//!
//! ```toml
//! [draw]
//! "links.wan.latency" = ["1 ms", "30 ms", "150 ms"]          # one of these
//! "timeline.failover.at" = { from = "10 s", to = "30 s" }    # a duration between the two
//! "producers.ledger" = { keep = 0.3 }                        # is there in three of ten seeds
//! "chaos.*" = { keep = 0.5 }                                 # each table below is there or not for itself, one at least
//! "chaos.crash" = { keep = 0.9 }                             # its own line goes before the `*`
//! ```
//! The file itself says what holds where nothing is drawn, and is checked with each value put in alone; a seed's draws are put
//! in together and read again from the start, like a row of a matrix. A draw is hash(seed, path): another path more or less
//! leaves all others alone.

use super::diagnostics::{Diagnostics, Fault, Problem};
use super::limits;
use super::matrix::{self, Axis, Misplaced, RawAxis};
use super::table::{kind_of, At, Cx, Table};
use crate::plan::draw::{below, between, pick};
use crate::units::{clip, Chance, Time};
use std::borrow::Cow;
use std::ops::Range;
use toml::de::{DeArray, DeTable, DeValue};
use toml::Spanned;

/// One path and what a seed draws for it.
pub(crate) struct Lot<'i> {
    axis: RawAxis<'i>,
    draws: Draws,
    /// Paths with a line of their own, which its `*` does not stand for.
    except: Vec<Vec<String>>,
}

/// How it is drawn.
enum Draws {
    /// One of the axis' values.
    OneOf,
    /// A duration, both ends included.
    Duration(Time, Time),
    /// The table, or key, is there with this chance.
    Keep(Chance),
}

/// What stands for each table of one kind.
const EACH: &str = "*";

/// Reads the table.
pub(crate) fn lots<'i>(cx: &mut Cx<'_>, root: &mut Table<'_, 'i>) -> Vec<Lot<'i>> {
    let Some(t) = root.table(cx, "draw", "[draw]".to_owned()) else { return Vec::new() };
    let (mut lots, mut all) = (Vec::new(), 0);
    for (key, value) in t.entries() {
        if lots.len() >= limits::DRAWS {
            let help = format!("the limit is {}", limits::DRAWS);
            cx.error(&key.span, "too-many", "so many draws are too many".to_owned(), help);
            break;
        }
        if matches!(key.value.split('.').next(), Some("seed" | EACH)) {
            let message = format!("`{}` cannot be drawn", clip(&key.value, 60));
            let help = if key.value.starts_with(EACH) {
                "`*` stands for the tables within one that is named, such as \"chaos.*\""
            } else {
                "all is drawn from the seed: run the file with other seeds, `mirrorlab sweep FILE --seeds 0..100`"
            };
            cx.error(&key.span, "bad-path", message, help.to_owned());
            continue;
        }
        let Some((draws, values)) = draws_of(cx, &key, value) else { continue };
        all += values.len();
        if all > limits::DRAW_VALUES {
            let help = format!("the limit is {}; a duration is drawn by `{{ from = …, to = … }}`", limits::DRAW_VALUES);
            cx.error(&key.span, "too-many", "so many values to draw from are too many".to_owned(), help);
            break;
        }
        if let Some(axis) = RawAxis::of(cx, &key, values, "drawn") {
            lots.push(Lot { axis, draws, except: Vec::new() });
        }
    }
    let exact: Vec<Vec<String>> =
        lots.iter().filter(|lot| !lot.is_for_each()).map(|lot| lot.axis.steps().to_vec()).collect();
    lots.iter_mut().filter(|lot| lot.is_for_each()).for_each(|lot| lot.except.clone_from(&exact));
    lots
}

type Values<'i> = Vec<Spanned<DeValue<'i>>>;

fn draws_of<'i>(cx: &mut Cx<'_>, key: &At<String>, value: &Spanned<DeValue<'i>>) -> Option<(Draws, Values<'i>)> {
    let name = clip(&key.value, 60);
    match value.get_ref() {
        DeValue::Array(items) if !items.is_empty() => Some((Draws::OneOf, items.iter().cloned().collect())),
        DeValue::Array(_) => {
            let message = format!("`{name}` has nothing to draw from");
            cx.error(&value.span(), "empty", message, "write at least one value, or remove it".to_owned());
            None
        }
        DeValue::Table(map) => {
            if let Some(path) = unquoted(&key.value, value) {
                let path = clip(&path, 80);
                let message = format!("`{path}` in [draw] is a path, and stands without quotes");
                cx.error(&key.span, "bad-path", message, format!("write it as one key, `\"{path}\" = …`"));
                return None;
            }
            let mut t = Table::new(format!("the draw of `{name}`"), value.span(), map);
            let draws = range(cx, &mut t);
            t.finish(cx);
            draws
        }
        other => {
            let message = format!("`{name}` in [draw] is a list of values or a table, not {}", kind_of(other));
            let help = format!(
                "write `\"{name}\" = [ … ]`, `\"{name}\" = {{ from = …, to = … }}` or `\"{name}\" = {{ keep = 0.5 }}`"
            );
            cx.error(&value.span(), "wrong-type", message, help);
            None
        }
    }
}

/// Keys of a table that says how something is drawn.
const HOW: [&str; 3] = ["from", "to", "keep"];

/// The path that was meant by a key with points and without quotes: TOML makes a table of each word of it.
pub(super) fn unquoted(key: &str, value: &Spanned<DeValue<'_>>) -> Option<String> {
    let (mut path, mut value) = (vec![key.to_owned()], value.get_ref());
    while let DeValue::Table(map) = value {
        let mut inside = map.iter();
        let (Some((key, inner)), None) = (inside.next(), inside.next()) else { break };
        if HOW.contains(&&**key.get_ref()) {
            break;
        }
        path.push(key.get_ref().to_string());
        value = inner.get_ref();
    }
    (path.len() > 1).then(|| path.join("."))
}

/// `{ from, to }` or `{ keep }`; the ends of a range are values to check, too.
fn range<'i>(cx: &mut Cx<'_>, t: &mut Table<'_, 'i>) -> Option<(Draws, Values<'i>)> {
    t.exclusive(cx, "keep", "from");
    t.exclusive(cx, "keep", "to");
    if t.has("keep") {
        return Some((Draws::Keep(t.chance(cx, "keep")?), Vec::new()));
    }
    let (Some(from), Some(to)) = (t.raw("from"), t.raw("to")) else {
        t.missing(cx, if t.key_is_written("from") { "to" } else { "from" }, "\"10 s\"");
        return None;
    };
    let ends = vec![from.clone(), to.clone()];
    let (from, to): (Time, Time) = (t.unit(cx, "from")?, t.unit(cx, "to")?);
    if from <= to {
        return Some((Draws::Duration(from, to), ends));
    }
    let span = t.key_span("to");
    let message = format!("`from` is above `to` in {}", t.what);
    cx.error(&span, "out-of-range", message, "exchange the two".to_owned());
    None
}

/// What a seed drew: one line for each key that got a value, one for all that is left out.
#[derive(Default)]
struct Told {
    set: Vec<String>,
    without: Vec<String>,
}

/// Puts in what a seed draws, and says what that is.
pub(crate) fn apply<'i>(root: &mut DeTable<'i>, lots: &[Lot<'i>], seed: u64) -> Result<Vec<String>, Misplaced> {
    let mut told = Told::default();
    // Values first: a table that is left out takes no value, and no place in a list moves before its value is in.
    for lot in lots.iter().filter(|lot| !matches!(lot.draws, Draws::Keep(_))) {
        for path in lot.paths(root) {
            let concern = format!("draw.{}", path.join("."));
            let Some(value) = lot.value(seed, &concern) else { continue };
            matrix::put_at(root, &lot.axis, &path, &value)?;
            told.set.push(format!("{} = {}", path.join("."), shown(value.get_ref())));
        }
    }
    for lot in lots {
        let Draws::Keep(chance) = lot.draws else { continue };
        let paths = lot.paths(root);
        let leaves = |path: &&Vec<String>| {
            below(seed, &format!("draw.{}", path.join(".")), 0, 1_000_000_000) >= u64::from(chance.0)
        };
        let out: Vec<&Vec<String>> = paths.iter().filter(leaves).collect();
        // Of several one stays: a chaos without any fault is no chaos.
        let stays = paths.len() > 1 && out.len() == paths.len();
        let stays = stays.then(|| pick(seed, &format!("draw.{}", lot.axis.axis.path), 0, &paths)).flatten();
        for path in out.into_iter().filter(|path| Some(*path) != stays) {
            remove(root, &lot.axis, path)?;
            told.without.push(path.join("."));
        }
    }
    let without = (!told.without.is_empty()).then(|| format!("without {}", told.without.join(", ")));
    Ok(told.set.into_iter().chain(without).collect())
}

/// Tables that one `*` stands for and that are looked at one by one, at most: of more some are drawn together, as a seed may draw
/// them. Otherwise each would be read with all others, each time.
const ALONE_MAX: usize = 32;

/// The file with a single draw put in, one after the other: each value, each end of a range, each table left out. `check` is told
/// whose it is, what it does, and the file. The tree comes without the tables of draws and of the matrix: to copy all values for
/// each of them would take the square of their number.
pub(crate) fn alone<'i, E>(
    tree: &DeTable<'i>,
    lots: &[Lot<'i>],
    mut check: impl FnMut(&Lot<'i>, &str, Result<DeTable<'i>, Misplaced>) -> Result<(), E>,
) -> Result<(), E> {
    for lot in lots {
        let paths = lot.paths(tree);
        if paths.is_empty() {
            check(lot, "", Err(lot.finds_nothing(tree)))?;
        }
        for some in paths.chunks(paths.len().div_ceil(ALONE_MAX).max(1)) {
            let more = if some.len() > 1 { format!(" and {} more of `*`", some.len() - 1) } else { String::new() };
            let name = clip(&some[0].join("."), 80);
            if let Draws::Keep(_) = lot.draws {
                let what = format!("without `{name}`{more}, which this draw may leave out");
                check(lot, &what, changed(tree, some, |map, path| remove(map, &lot.axis, path)))?;
            }
            for value in lot.axis.values() {
                let value_shown = clip(&shown(value.get_ref()), 40);
                let what = format!("with `{name} = {value_shown}`{more}, which this draw may choose");
                check(lot, &what, changed(tree, some, |map, path| matrix::put_at(map, &lot.axis, path, value)))?;
            }
        }
    }
    Ok(())
}

/// A copy of the file with a change at each of some paths.
fn changed<'i>(
    tree: &DeTable<'i>,
    paths: &[Vec<String>],
    change: impl Fn(&mut DeTable<'i>, &[String]) -> Result<(), Misplaced>,
) -> Result<DeTable<'i>, Misplaced> {
    let mut map = tree.clone();
    paths.iter().try_for_each(|path| change(&mut map, path)).map(|()| map)
}

impl<'i> Lot<'i> {
    /// As the scenario tells it.
    pub(crate) fn axis(&self) -> Axis {
        self.axis.axis.clone()
    }

    fn is_for_each(&self) -> bool {
        self.axis.steps().iter().any(|step| step == EACH)
    }

    /// What is wrong with the file once this is drawn. The draw is to blame, wherever it shows: alone the file is right.
    pub(crate) fn blamed(&self, problems: Diagnostics, what: &str, source: &str) -> Diagnostics {
        let mut own = std::iter::once(self.axis.span()).chain(self.axis.values().iter().map(Spanned::span));
        if own.any(|own| problems.is_within(&own)) {
            return problems;
        }
        problems.blamed_on(source, &self.axis.span(), what)
    }

    /// Why there is nothing that the `*` of its path stands for.
    fn finds_nothing(&self, root: &DeTable<'i>) -> Misplaced {
        let steps = self.axis.steps();
        let before: Vec<&str> = steps.iter().map(String::as_str).take_while(|step| *step != EACH).collect();
        let list = matches!(&before[..], [list] if root.get(*list).is_some_and(|value| value.get_ref().is_array()));
        if !list {
            return self.axis.missing(EACH);
        }
        let list = clip(before[0], 60);
        let message =
            format!("`{}`: `*` stands for tables with names, and `{list}` is a list", clip(&self.axis.axis.path, 60));
        let help = format!(
            "give a step a `name` and draw it by that, each in a line of its own: `\"{list}.NAME\" = {{ keep = 0.5 }}`, \
             `\"{list}.NAME.at\" = {{ from = …, to = … }}`"
        );
        Box::new((self.axis.span(), Problem::new(Fault::File, "bad-path", message).help(help)))
    }

    /// Its path, or for `a.*` the path of each table in `a`, in the order of the file.
    fn paths(&self, root: &DeTable<'i>) -> Vec<Vec<String>> {
        let steps = self.axis.steps();
        let Some(star) = steps.iter().position(|step| step == EACH) else { return vec![steps.to_vec()] };
        let (before, after) = (&steps[..star], &steps[star + 1..]);
        let mut table = root;
        for step in before {
            match table.get(step.as_str()).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => table = inner,
                _ => return Vec::new(),
            }
        }
        let mut inside: Vec<(Range<usize>, &str)> = table
            .iter()
            .filter(|(_, value)| value.get_ref().is_table())
            .map(|(key, _)| (key.span(), &**key.get_ref()))
            .collect();
        inside.sort_by_key(|(span, _)| span.start);
        let path = |name: &str| before.iter().cloned().chain([name.to_owned()]).chain(after.iter().cloned()).collect();
        inside.into_iter().map(|(_, name)| path(name)).filter(|path| !self.except.contains(path)).collect()
    }

    fn value(&self, seed: u64, concern: &str) -> Option<Spanned<DeValue<'i>>> {
        let values = self.axis.values();
        match self.draws {
            Draws::OneOf => pick(seed, concern, 0, values).cloned(),
            Draws::Duration(from, to) => {
                // To the millisecond, where that is within the range: nobody reads more digits.
                let drawn = between(seed, concern, 0, from, to);
                let round = Time(drawn.0 / 1_000_000 * 1_000_000);
                let drawn = if round < from { drawn } else { round };
                Some(Spanned::new(values.first()?.span(), DeValue::String(Cow::Owned(drawn.to_string()))))
            }
            Draws::Keep(_) => None,
        }
    }
}

/// Takes a table, a key, or a named step of the timeline out; what is not there is no matter.
fn remove<'i>(root: &mut DeTable<'i>, axis: &RawAxis<'i>, path: &[String]) -> Result<(), Misplaced> {
    let Some((last, tables)) = path.split_last() else { return Ok(()) };
    if let [list] = tables {
        if let Some(DeValue::Array(items)) = root.get_mut(list.as_str()).map(Spanned::get_mut) {
            let kept: DeArray<'i> = items.iter().filter(|item| !matrix::is_named(item, last)).cloned().collect();
            if kept.len() == items.len() {
                let message = format!("no step of `{list}` is named `{}`", clip(last, 60));
                let help = "only steps with a `name` can be left out".to_owned();
                return Err(Box::new((axis.span(), Problem::new(Fault::File, "bad-path", message).help(help))));
            }
            *items = kept;
            return Ok(());
        }
    }
    let table = matrix::table_at(root, axis, tables)?;
    match table.remove(last.as_str()) {
        Some(_) => Ok(()),
        None => Err(axis.missing(last)),
    }
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(value) => value.to_string(),
        DeValue::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| shown(item.get_ref())).collect();
            format!("[{}]", items.join(", "))
        }
        DeValue::Table(map) => {
            let pairs: Vec<String> =
                map.iter().map(|(key, value)| format!("{} = {}", key.get_ref(), shown(value.get_ref()))).collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        DeValue::Datetime(date) => date.to_string(),
    }
}
