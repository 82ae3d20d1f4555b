//! Reads the text of a condition into a tree of words with their places; names are resolved later.

use super::condition::Compare;
use std::ops::Range;

/// Longest text.
const LONGEST: usize = 4096;
/// Deepest parentheses.
const DEEPEST: usize = 16;

/// A word and where it stands in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// A term: `name(argument, …)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: Word,
    pub(crate) arguments: Vec<Word>,
    pub(crate) span: Range<usize>,
}

/// The tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expr {
    All(Vec<Expr>),
    Any(Vec<Expr>),
    Is(Call, Compare, Word),
    Both(Call, Compare, Call),
    True(Call),
}

/// What is wrong with the text, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

type Parsed<T> = Result<T, SyntaxError>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

/// Reads a condition.
pub(crate) fn parse(text: &str) -> Parsed<Expr> {
    let mut parser = Parser::new(text)?;
    let expr = parser.any(0)?;
    parser.end()?;
    Ok(expr)
}

/// Reads one term, as the keys of `expect.equals` are.
pub(crate) fn parse_term(text: &str) -> Parsed<Call> {
    let mut parser = Parser::new(text)?;
    let call = parser.call()?;
    parser.end()?;
    Ok(call)
}

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Parsed<Self> {
        if text.len() > LONGEST {
            return Err(SyntaxError {
                span: 0..text.len(),
                message: format!("a condition has at most {LONGEST} bytes"),
            });
        }
        Ok(Self { text, at: 0 })
    }

    fn error<T>(&self, message: impl Into<String>) -> Parsed<T> {
        let width = self.rest().chars().next().map_or(0, char::len_utf8);
        Err(SyntaxError { span: self.at..self.at + width, message: message.into() })
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn end(&mut self) -> Parsed<()> {
        self.skip_space();
        if self.rest().is_empty() {
            return Ok(());
        }
        self.error("expected `and`, `or`, or the end of the condition")
    }

    /// Takes a sign if it stands here.
    fn take(&mut self, sign: &str) -> bool {
        self.skip_space();
        let found = self.rest().starts_with(sign);
        if found {
            self.at += sign.len();
        }
        found
    }

    /// Takes a keyword if it stands here as a whole word.
    fn take_word(&mut self, word: &str) -> bool {
        self.skip_space();
        let follows = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        let found = self.rest().strip_prefix(word).is_some_and(follows);
        if found {
            self.at += word.len();
        }
        found
    }

    fn any(&mut self, depth: usize) -> Parsed<Expr> {
        let mut parts = vec![self.all(depth)?];
        while self.take_word("or") {
            parts.push(self.all(depth)?);
        }
        Ok(if parts.len() > 1 { Expr::Any(parts) } else { parts.remove(0) })
    }

    fn all(&mut self, depth: usize) -> Parsed<Expr> {
        let mut parts = vec![self.one(depth)?];
        while self.take_word("and") {
            parts.push(self.one(depth)?);
        }
        Ok(if parts.len() > 1 { Expr::All(parts) } else { parts.remove(0) })
    }

    fn one(&mut self, depth: usize) -> Parsed<Expr> {
        if self.take("(") {
            if depth >= DEEPEST {
                return self.error(format!("more than {DEEPEST} parentheses inside each other"));
            }
            let inner = self.any(depth + 1)?;
            if !self.take(")") {
                return self.error("expected `)`");
            }
            return Ok(inner);
        }
        let call = self.call()?;
        self.skip_space();
        let sign = Compare::SIGNS.iter().find(|(sign, _)| self.rest().starts_with(sign));
        let Some((sign, compare)) = sign else {
            if self.rest().starts_with('=') {
                return self.error("`=` is written `==` in a condition");
            }
            return Ok(Expr::True(call));
        };
        self.at += sign.len();
        self.skip_space();
        let (start, quoted) = (self.at, self.rest().starts_with(['"', '\'']));
        let value = self.value()?;
        if !quoted && self.rest().starts_with('(') {
            self.at = start;
            return Ok(Expr::Both(call, *compare, self.call()?));
        }
        Ok(Expr::Is(call, *compare, value))
    }

    fn call(&mut self) -> Parsed<Call> {
        self.skip_space();
        let start = self.at;
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if name.text.is_empty() {
            return self.error("expected a term such as `mirror(orders)`");
        }
        if !self.take("(") {
            return self.error(format!("expected `(` after `{}`", name.text));
        }
        let mut arguments = Vec::new();
        if !self.take(")") {
            loop {
                arguments.push(self.argument()?);
                if self.take(")") {
                    break;
                }
                if !self.take(",") {
                    return self.error("expected `,` or `)`");
                }
            }
        }
        Ok(Call { name, arguments, span: start..self.at })
    }

    /// A quoted text, or everything up to the next `,` or `)`; a node such as `leader(east/orders, 0)` needs quotes.
    fn argument(&mut self) -> Parsed<Word> {
        self.skip_space();
        if let Some(word) = self.quoted()? {
            return Ok(word);
        }
        let mut word = self.word(|c| !matches!(c, ',' | '(' | ')' | '"' | '\''));
        word.text.truncate(word.text.trim_end().len());
        word.span.end = word.span.start + word.text.len();
        if word.text.is_empty() {
            return self.error("expected an argument");
        }
        Ok(word)
    }

    fn value(&mut self) -> Parsed<Word> {
        self.skip_space();
        if let Some(word) = self.quoted()? {
            return Ok(word);
        }
        let word = self.word(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '.' | '+'));
        if word.text.is_empty() {
            return self.error("expected a number, a state, or a node in quotes");
        }
        Ok(word)
    }

    /// A text in single or double quotes; the span is that of the text inside.
    fn quoted(&mut self) -> Parsed<Option<Word>> {
        let Some(quote) = self.rest().chars().next().filter(|c| matches!(c, '"' | '\'')) else { return Ok(None) };
        let start = self.at + 1;
        let Some(length) = self.text[start..].find(quote) else {
            return self.error("this quote is never closed");
        };
        self.at = start + length + 1;
        Ok(Some(Word { text: self.text[start..start + length].to_owned(), span: start..start + length }))
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> Word {
        let start = self.at;
        let length = self.rest().find(|c| !belongs(c)).unwrap_or(self.rest().len());
        self.at += length;
        Word { text: self.text[start..self.at].to_owned(), span: start..self.at }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn and_binds_tighter_than_or() {
        let Ok(Expr::Any(parts)) = parse("up(a) or up(b) and (up(c) or up(d))") else { panic!("not an `or`") };
        assert!(matches!(&parts[1], Expr::All(inner) if matches!(inner[1], Expr::Any(_))));
    }

    #[test]
    fn a_term_is_compared_with_a_value_or_with_a_term() {
        assert!(
            matches!(parse("read(a) == read(b)"), Ok(Expr::Both(_, Compare::Equal, right)) if right.span == (11..18))
        );
        assert!(matches!(parse("leader(a, 0) == \"leader(b, 0)\""), Ok(Expr::Is(..))));
        let Ok(Expr::All(parts)) = parse("stable(a, 1) <= end(a, 1) and lag(a) == 0") else { panic!("not an `and`") };
        assert!(matches!(&parts[..], [Expr::Both(..), Expr::Is(..)]));
    }

    #[test]
    fn errors_have_places() {
        let error = parse("lag(orders) = 0").unwrap_err();
        assert_eq!((error.span.start, error.message.as_str()), (12, "`=` is written `==` in a condition"));
        assert_eq!(parse("lag(orders").unwrap_err().span, 10..10);
        assert!(parse(&"(".repeat(4000)).unwrap_err().message.starts_with("more than 16"));
        assert!(parse("").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = parse(&text);
        }
        #[test]
        fn near_conditions_do_not_panic(text in "[a-z(),=<>\"' 0-9/éand or]{0,60}") {
            let _ = (parse(&text), parse_term(&text));
        }
    }
}
