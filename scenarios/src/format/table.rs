//! Reads TOML tables closed: every key that is asked for is known, every key that is not is refused with the nearest one
//! that was. So the list of valid keys cannot drift from the code that reads them.

use super::diagnostics::{suggest, Problems};
use super::vocabulary::Vocabulary;
use crate::units::{clip, Chance, Quantity};
use std::ops::{Range, RangeInclusive};
use toml::de::{DeArray, DeTable, DeValue};
use toml::Spanned;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Range<usize>,
}

/// What reading needs at hand.
pub(crate) struct Cx<'v> {
    pub(crate) problems: Problems,
    pub(crate) vocabulary: &'v Vocabulary,
}

impl Cx<'_> {
    pub(crate) fn error(&mut self, span: &Range<usize>, code: &'static str, message: String, help: String) {
        self.problems.error(span, code, message, help);
    }

    /// Refuses a name that is not among the valid ones.
    pub(crate) fn unknown<'a>(
        &mut self,
        at: &At<String>,
        code: &'static str,
        what: (&str, &str),
        valid: impl IntoIterator<Item = &'a str>,
    ) {
        if self.problems.is_full() {
            return self.problems.count_only();
        }
        let help = suggest(&at.value, what.1, valid);
        self.error(&at.span, code, format!("there is no {} `{}`", what.0, clip(&at.value, 60)), help);
    }
}

/// What a TOML value is, for messages.
pub(crate) fn kind_of(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a point",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// One table under reading.
pub(crate) struct Table<'t, 'i> {
    /// How messages name it: `[clusters.east]`.
    pub(crate) what: String,
    /// Where it stands.
    pub(crate) span: Range<usize>,
    map: &'t DeTable<'i>,
    known: Vec<&'static str>,
}

impl<'t, 'i> Table<'t, 'i> {
    pub(crate) fn new(what: impl Into<String>, span: Range<usize>, map: &'t DeTable<'i>) -> Self {
        Self { what: what.into(), span, map, known: Vec::new() }
    }

    /// The raw value of a key, which is known from now on.
    pub(crate) fn raw(&mut self, key: &'static str) -> Option<&'t Spanned<DeValue<'i>>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        self.map.get(key)
    }

    /// Makes a key known without reading it.
    pub(crate) fn allow(&mut self, key: &'static str) {
        let _ = self.raw(key);
    }

    /// Whether a key is written; makes it known.
    pub(crate) fn has(&mut self, key: &'static str) -> bool {
        self.raw(key).is_some()
    }

    /// Whether a key is written, known or not.
    pub(crate) fn key_is_written(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    /// The place of a key itself, or of the table if it is not written.
    pub(crate) fn key_span(&self, key: &str) -> Range<usize> {
        self.map.get_key_value(key).map_or_else(|| self.span.clone(), |(key, _)| key.span())
    }

    fn mismatch(&self, cx: &mut Cx<'_>, key: &str, value: &Spanned<DeValue<'_>>, wanted: &str, example: &str) {
        let found = kind_of(value.get_ref());
        let message = format!("`{key}` in {} is {wanted}, not {found}", self.what);
        cx.error(&value.span(), "wrong-type", message, format!("write it as `{key} = {example}`"));
    }

    /// Refuses the table for a key that is not there.
    pub(crate) fn missing(&self, cx: &mut Cx<'_>, key: &str, example: &str) {
        let message = format!("`{key}` is missing in {}", self.what);
        cx.error(&self.span, "missing-key", message, format!("add `{key} = {example}`"));
    }

    /// Refuses a second key that says what the first one does.
    pub(crate) fn exclusive(&mut self, cx: &mut Cx<'_>, first: &'static str, second: &'static str) {
        if self.has(first) && self.has(second) {
            let span = self.key_span(second);
            let message = format!("`{first}` and `{second}` stand together in {}", self.what);
            cx.error(&span, "conflict", message, "keep one of the two".to_owned());
        }
    }

    pub(crate) fn text(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<At<String>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::String(text) => Some(At { value: text.to_string(), span: value.span() }),
            _ => {
                self.mismatch(cx, key, value, "a text", "\"…\"");
                None
            }
        }
    }

    pub(crate) fn boolean(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<bool> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::Boolean(value) => Some(*value),
            _ => {
                self.mismatch(cx, key, value, "true or false", "true");
                None
            }
        }
    }

    /// A whole number within bounds.
    pub(crate) fn count(&mut self, cx: &mut Cx<'_>, key: &'static str, range: RangeInclusive<u64>) -> Option<At<u64>> {
        let value = self.raw(key)?;
        let DeValue::Integer(number) = value.get_ref() else {
            let meant = value.get_ref().as_str().filter(|text| text.parse::<u64>().is_ok_and(|n| range.contains(&n)));
            let example = meant.map_or_else(|| range.start().to_string(), str::to_owned);
            self.mismatch(cx, key, value, "a whole number", &example);
            return None;
        };
        let text = number.as_str();
        let parsed = i128::from_str_radix(text, number.radix()).ok();
        match parsed.and_then(|n| u64::try_from(n).ok()).filter(|n| range.contains(n)) {
            Some(value_) => Some(At { value: value_, span: value.span() }),
            None => {
                let shown = clip(text, 40);
                let negative = text.starts_with('-');
                let message = if negative {
                    format!("`{key}` in {} is negative: {shown}", self.what)
                } else {
                    format!("`{key}` in {} is out of range: {shown}", self.what)
                };
                let code = if negative { "negative" } else { "out-of-range" };
                cx.error(&value.span(), code, message, format!("it is from {} to {}", range.start(), range.end()));
                None
            }
        }
    }

    /// The same as a `u32`; the range must fit.
    pub(crate) fn count32(&mut self, cx: &mut Cx<'_>, key: &'static str, range: RangeInclusive<u32>) -> Option<u32> {
        let wide = u64::from(*range.start())..=u64::from(*range.end());
        self.count(cx, key, wide).and_then(|n| u32::try_from(n.value).ok())
    }

    /// A quantity with its unit.
    pub(crate) fn unit<Q: Quantity>(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<Q> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::String(text) => match Q::read(text) {
                Ok(quantity) => Some(quantity),
                Err(error) => {
                    let (message, help) = error.explain::<Q>(text);
                    let code = unit_code(&error);
                    cx.error(&value.span(), code, format!("`{key}` in {}: {message}", self.what), help);
                    None
                }
            },
            DeValue::Integer(number) => {
                self.unit_missing::<Q>(cx, key, value, number.as_str());
                None
            }
            DeValue::Float(number) => {
                self.unit_missing::<Q>(cx, key, value, number.as_str());
                None
            }
            _ => {
                self.mismatch(cx, key, value, Q::WHAT, &format!("\"{}\"", Q::EXAMPLE));
                None
            }
        }
    }

    fn unit_missing<Q: Quantity>(&self, cx: &mut Cx<'_>, key: &str, value: &Spanned<DeValue<'_>>, number: &str) {
        let number = clip(number, 40);
        let (code, message) = if number.starts_with('-') {
            ("negative", format!("`{key}` in {} is negative and has no unit: {number}", self.what))
        } else {
            ("missing-unit", format!("`{key}` in {} has no unit: {number}", self.what))
        };
        let units = Q::UNITS.join(", ");
        let help =
            format!("write {} in quotes with its unit, such as `{key} = \"{}\"` (units: {units})", Q::WHAT, Q::EXAMPLE);
        cx.error(&value.span(), code, message, help);
    }

    /// A duration above zero.
    pub(crate) fn duration(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<crate::units::Time> {
        let time: crate::units::Time = self.unit(cx, key)?;
        if time.0 > 0 {
            return Some(time);
        }
        let span = self.raw(key).map_or_else(|| self.span.clone(), Spanned::span);
        let message = format!("`{key}` in {} is zero", self.what);
        cx.error(&span, "zero", message, "a duration above zero is needed here".to_owned());
        None
    }

    /// A probability: a number from 0 to 1, or a text in percent.
    pub(crate) fn chance(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<Chance> {
        let value = self.raw(key)?;
        let (text, read) = match value.get_ref() {
            DeValue::Integer(n) if n.radix() == 10 => (n.as_str().to_owned(), Chance::read_decimal(n.as_str())),
            DeValue::Float(n) => (n.as_str().to_owned(), Chance::read_decimal(n.as_str())),
            DeValue::String(text) => (text.to_string(), Chance::read(text)),
            _ => {
                self.mismatch(cx, key, value, "a probability", "0.01");
                return None;
            }
        };
        match read {
            Ok(chance) => Some(chance),
            Err(error) => {
                let message = format!("`{key}` in {} is not a probability: {}", self.what, clip(&text, 40));
                let help =
                    "write a number from 0 to 1, such as 0.0001, or a text such as \"0.01 %\"; the finest step is 1e-9";
                cx.error(&value.span(), unit_code(&error), message, help.to_owned());
                None
            }
        }
    }

    /// One of some words.
    pub(crate) fn one_of<T: Copy>(
        &mut self,
        cx: &mut Cx<'_>,
        key: &'static str,
        named: &[(&'static str, T)],
    ) -> Option<T> {
        let value = self.raw(key)?;
        let DeValue::String(text) = value.get_ref() else {
            let example = format!("\"{}\"", named.first().map_or("", |(name, _)| name));
            self.mismatch(cx, key, value, "one of some words", &example);
            return None;
        };
        if let Some((_, found)) = named.iter().find(|(name, _)| name == text) {
            return Some(*found);
        }
        let message = format!("`{key}` in {} cannot be `{}`", self.what, clip(text, 60));
        cx.error(&value.span(), "unknown-value", message, suggest(text, "values", named.iter().map(|(name, _)| *name)));
        None
    }

    /// A list of texts.
    pub(crate) fn texts(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<Vec<At<String>>> {
        let value = self.raw(key)?;
        let DeValue::Array(items) = value.get_ref() else {
            self.mismatch(cx, key, value, "a list of texts", "[\"…\"]");
            return None;
        };
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref() {
                DeValue::String(text) => texts.push(At { value: text.to_string(), span: item.span() }),
                other => {
                    let message = format!("`{key}` in {} is a list of texts; this is {}", self.what, kind_of(other));
                    cx.error(&item.span(), "wrong-type", message, "put it in quotes".to_owned());
                }
            }
        }
        Some(texts)
    }

    /// A list of names, each valid and written once.
    pub(crate) fn names<'a>(
        &mut self,
        cx: &mut Cx<'_>,
        key: &'static str,
        what: (&str, &str),
        valid: impl Fn() -> Vec<&'a str>,
    ) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for at in self.texts(cx, key).unwrap_or_default() {
            let known = valid();
            if !known.contains(&&*at.value) {
                cx.unknown(&at, "unknown-name", what, known);
            } else if names.contains(&at.value) {
                let message = format!("`{}` stands twice in `{key}`", at.value);
                cx.error(&at.span, "duplicate", message, "remove one of the two".to_owned());
            } else {
                names.push(at.value);
            }
        }
        names
    }

    /// A table inside.
    pub(crate) fn table(&mut self, cx: &mut Cx<'_>, key: &'static str, what: String) -> Option<Table<'t, 'i>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::Table(map) => Some(Table::new(what, value.span(), map)),
            _ => {
                self.mismatch(cx, key, value, "a table", "{ … }");
                None
            }
        }
    }

    /// The named tables inside, in the order of the file: `[clusters.east]`, `[clusters.west]`.
    pub(crate) fn tables(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Vec<(At<String>, Table<'t, 'i>)> {
        let Some(outer) = self.table(cx, key, format!("[{key}]")) else { return Vec::new() };
        let mut found = Vec::new();
        for (name, value) in outer.entries() {
            match value.get_ref() {
                DeValue::Table(map) => {
                    let what = format!("[{key}.{}]", clip(&name.value, 60));
                    found.push((name, Table::new(what, value.span(), map)));
                }
                other => {
                    let message = format!("`{}` in [{key}] is a table, not {}", clip(&name.value, 60), kind_of(other));
                    let help = format!("write `[{key}.NAME]` and its keys below it");
                    cx.error(&value.span(), "wrong-type", message, help);
                }
            }
        }
        found
    }

    /// The entries in the order of the file.
    pub(crate) fn entries(&self) -> Vec<(At<String>, &'t Spanned<DeValue<'i>>)> {
        let mut entries: Vec<_> = self
            .map
            .iter()
            .map(|(key, value)| (At { value: key.get_ref().to_string(), span: key.span() }, value))
            .collect();
        entries.sort_by_key(|(key, _)| key.span.start);
        entries
    }

    /// A list of tables: `[[timeline]]`.
    pub(crate) fn list(&mut self, cx: &mut Cx<'_>, key: &'static str) -> Option<&'t DeArray<'i>> {
        let value = self.raw(key)?;
        match value.get_ref() {
            DeValue::Array(items) => Some(items),
            _ => {
                let message = format!("`{key}` is a list of tables, not {}", kind_of(value.get_ref()));
                cx.error(&value.span(), "wrong-type", message, format!("write `[[{key}]]` for each"));
                None
            }
        }
    }

    /// Refuses every key that was never asked for.
    pub(crate) fn finish(self, cx: &mut Cx<'_>) {
        let mut unknown: Vec<_> = self.map.keys().filter(|key| !self.known.contains(&&**key.get_ref())).collect();
        unknown.sort_by_key(|key| key.span().start);
        for key in unknown {
            let name = key.get_ref();
            if cx.problems.is_full() {
                cx.problems.count_only();
                continue;
            }
            let help = suggest(name, "keys", self.known.iter().copied());
            cx.error(&key.span(), "unknown-key", format!("unknown key `{}` in {}", clip(name, 60), self.what), help);
        }
    }
}

/// The code of a problem with a quantity.
fn unit_code(error: &crate::units::UnitError) -> &'static str {
    use crate::units::UnitError as E;
    match error {
        E::NotANumber => "not-a-quantity",
        E::Missing => "missing-unit",
        E::Unknown { .. } => "unknown-unit",
        E::Negative => "negative",
        E::Zero => "zero",
        E::TooLarge(_) => "out-of-range",
        E::TooFine => "too-fine",
    }
}
