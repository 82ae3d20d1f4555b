//! Lists of name patterns (`topics.include` and its kin): regular expressions that must match the whole name, joined by
//! "or" (spec 6.8). An empty list matches nothing.

use regex_lite::Regex;
use std::fmt;
use std::sync::Arc;

/// A list of patterns, compiled once.
#[derive(Clone)]
pub struct Patterns {
    list: Arc<[Arc<str>]>,
    any: Option<Regex>,
}

impl Patterns {
    /// Compiles a comma-separated list.
    ///
    /// # Errors
    /// The first element that is not a regular expression.
    pub fn parse(text: &str) -> Result<Self, Arc<str>> {
        Self::new(text.split(',').map(str::trim).filter(|s| !s.is_empty()).map(Arc::from).collect())
    }

    /// Compiles a list.
    ///
    /// # Errors
    /// The first element that is not a regular expression.
    pub fn new(list: Vec<Arc<str>>) -> Result<Self, Arc<str>> {
        if list.is_empty() {
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
        self.any.as_ref().is_some_and(|any| any.is_match(name))
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
        assert!(!Patterns::of(&[]).matches(""));
        assert_eq!(Patterns::parse("a,(").unwrap_err().as_ref(), "(");
        assert_eq!(patterns.to_string(), "orders,pay.*");
    }
}
