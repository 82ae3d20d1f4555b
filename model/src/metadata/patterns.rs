//! Lists of name patterns (`topics.include` and its kin): regular expressions that must match the whole name, joined by
//! "or" (spec 6.8). An empty list matches nothing.

use regex_lite::Regex;
use std::fmt;
use std::sync::Arc;

/// The longest pattern, in bytes: names have at most 249, and what is compiled is matched against every name of a source.
pub const PATTERN_MAX: usize = 4096;

/// A list of patterns, compiled once.
#[derive(Clone)]
pub struct Patterns {
    list: Arc<[Arc<str>]>,
    /// `None`: plain names, as most lists have, and they are compared.
    any: Option<Regex>,
}

impl Patterns {
    /// Compiles a comma-separated list.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn parse(text: &str) -> Result<Self, Arc<str>> {
        Self::new(Self::items(text))
    }

    /// The items of a comma-separated list; those between two commas that nothing stands between are items too.
    #[must_use]
    pub fn items(text: &str) -> Vec<Arc<str>> {
        if text.trim().is_empty() {
            return Vec::new();
        }
        text.split(',').map(str::trim).map(Arc::from).collect()
    }

    /// Compiles a list.
    ///
    /// # Errors
    /// The first element that is empty, too long, or not a regular expression.
    pub fn new(list: Vec<Arc<str>>) -> Result<Self, Arc<str>> {
        if list.iter().any(|pattern| pattern.is_empty()) {
            return Err("an empty item".into());
        }
        if let Some(long) = list.iter().find(|pattern| pattern.len() > PATTERN_MAX) {
            let head: String = long.chars().take(40).collect();
            return Err(format!("{head}… ({} bytes; the limit is {PATTERN_MAX})", long.len()).into());
        }
        if list.iter().all(|pattern| is_plain(pattern)) {
            return Ok(Self { list: list.into(), any: None });
        }
        if let Some(bad) = list.iter().find(|p| Regex::new(&format!("^(?:{p})$")).is_err()) {
            return Err(bad.clone());
        }
        let any = Regex::new(&format!("^(?:{})$", list.join("|"))).map_err(|_| list[0].clone())?;
        Ok(Self { list: list.into(), any: Some(any) })
    }

    /// Compiles defaults; an element that is no pattern makes the list empty.
    #[must_use]
    pub fn of(list: &[&str]) -> Self {
        Self::new(list.iter().map(|p| Arc::from(*p)).collect()).unwrap_or(Self { list: [].into(), any: None })
    }

    /// Whether some pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        match &self.any {
            Some(any) => any.is_match(name),
            None => self.list.iter().any(|plain| **plain == *name),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The patterns as given.
    #[must_use]
    pub fn list(&self) -> &[Arc<str>] {
        &self.list
    }
}

/// Whether a pattern matches itself and nothing else.
fn is_plain(pattern: &str) -> bool {
    pattern.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}
impl Eq for Patterns {}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Patterns({self})")
    }
}
impl fmt::Display for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.list.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_whole_names_only_and_an_empty_list_nothing() {
        let patterns = Patterns::parse("orders, pay.*").unwrap();
        assert!(patterns.matches("orders") && patterns.matches("payments"));
        assert!(!patterns.matches("orders2") && !patterns.matches("repay"));
        let plain = Patterns::parse("orders,pay-ments_2").unwrap();
        assert!(plain.matches("orders") && plain.matches("pay-ments_2"));
        assert!(!plain.matches("orders2") && !plain.matches("orders,pay-ments_2"));
        assert!(Patterns::of(&["a.c"]).matches("abc") && Patterns::of(&["a.c", "d"]).matches("d"));
        assert!(!Patterns::of(&[]).matches(""));
        assert_eq!(Patterns::parse("a,(").unwrap_err().as_ref(), "(");
        assert_eq!(patterns.to_string(), "orders,pay.*");
    }

    /// BAD-12
    #[test]
    fn bad_12_items_without_anything_and_items_without_end_are_none() {
        assert!(Patterns::parse(" ").unwrap().is_empty());
        for text in ["a,,b", "a,", ","] {
            assert_eq!(Patterns::parse(text).unwrap_err().as_ref(), "an empty item", "{text}");
        }
        assert!(Patterns::parse(&"a".repeat(PATTERN_MAX)).is_ok());
        let refused = Patterns::parse(&"a".repeat(10_000)).unwrap_err();
        assert_eq!(*refused, format!("{}… (10000 bytes; the limit is 4096)", "a".repeat(40)));
    }
}
