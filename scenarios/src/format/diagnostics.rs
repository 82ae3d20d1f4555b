//! What is wrong with a file, where, whose fault it is, and what to do.
//!
//! A problem carries only the few lines around its place, cut in width, so that a file of one 16 MiB line costs neither
//! memory nor a screen full of it. Up to [`PROBLEMS_SHOWN`] problems of one file are kept, the rest are counted.

use super::echo;
use crate::nearest::nearest;
use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, MietteError, MietteSpanContents, SourceCode,
    SourceSpan, SpanContents,
};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Problems kept per file.
pub const PROBLEMS_SHOWN: usize = 20;

/// Problems counted beyond those kept before reading stops.
const HOPELESS: usize = 200;

/// Bytes of one line that are shown before a place, and after its start.
const WIDTH: usize = 160;

/// Whose fault a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The file says something that cannot be: edit it.
    File,
    /// The machine could not give the file: look there.
    Machine,
    /// The file asks for what this version cannot do yet.
    Version,
    /// The command line names something that does not exist.
    Command,
}

impl Fault {
    /// How it is told.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::File => "the scenario file",
            Self::Machine => "this machine",
            Self::Version => "not yet supported",
            Self::Command => "the command line",
        }
    }
}

/// The text of a file, for places.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) name: Arc<str>,
    pub(crate) text: Arc<str>,
}

/// The lines around a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    file: Arc<str>,
    line: usize,
    column: usize,
    text: String,
    first_line: usize,
    span: Range<usize>,
    /// How many characters of the place's line are left out before the excerpt.
    cut: usize,
}

impl Excerpt {
    fn of(source: &Source, span: &Range<usize>) -> Self {
        let text = &*source.text;
        let start = floor(text, span.start);
        let end = floor(text, span.end).max(start);
        let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = text[..line_start].bytes().filter(|b| *b == b'\n').count() + 1;
        let column = text[line_start..start].chars().count() + 1;
        let line_end = text[start..].find('\n').map_or(text.len(), |at| start + at);
        // The place, with some of its line before it, then the lines beside it.
        let from = if start - line_start > WIDTH { floor(text, start - WIDTH) } else { line_start };
        let to = if line_end - start > WIDTH { floor(text, start + WIDTH) } else { line_end };
        let mut excerpt = String::new();
        let mut first_line = line;
        if from == line_start && line_start > 0 {
            let before_end = line_start - 1;
            let before_start = text[..before_end].rfind('\n').map_or(0, |at| at + 1);
            if before_end - before_start <= WIDTH {
                excerpt.push_str(&text[before_start..line_start]);
                first_line -= 1;
            }
        }
        if from > line_start {
            excerpt.push('…');
        }
        let shift = excerpt.len();
        excerpt.push_str(&text[from..to]);
        let span = shift + (start - from)..shift + (end.min(to) - from);
        if to < line_end {
            excerpt.push('…');
        } else if line_end < text.len() {
            let after_end = text[line_end + 1..].find('\n').map_or(text.len(), |at| line_end + 1 + at);
            if after_end - line_end <= WIDTH {
                excerpt.push_str(&text[line_end..after_end]);
            }
        }
        // The sign for what is left out takes the place of one character.
        let cut = text[line_start..from].chars().count().saturating_sub(1);
        Self { file: Arc::clone(&source.name), line, column, text: excerpt, first_line, span, cut }
    }
}

/// The nearest character border at or below `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

impl SourceCode for Excerpt {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.read_span(span, before, after)?;
        let line = inner.line() + self.first_line - 1;
        let column =
            if line + 1 == self.line && inner.column() > 0 { inner.column() + self.cut } else { inner.column() };
        Ok(Box::new(MietteSpanContents::new_named(
            self.file.to_string(),
            inner.data(),
            *inner.span(),
            line,
            column,
            inner.line_count(),
        )))
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whose fault.
    pub fault: Fault,
    /// What kind, for programs: `unknown-key`, `missing-unit`, …
    pub code: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What to do.
    pub help: Option<String>,
    /// A note at the place itself.
    pub label: Option<String>,
    excerpt: Option<Excerpt>,
    pub(super) offset: usize,
}

impl Problem {
    /// A problem without a place in the text.
    #[must_use]
    pub fn new(fault: Fault, code: &'static str, message: impl Into<String>) -> Self {
        Self { fault, code, message: message.into(), help: None, label: None, excerpt: None, offset: 0 }
    }
    /// With advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
    /// With a note at the place.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }
    /// The line, from 1, if it has a place.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|e| e.line)
    }
    /// The column in characters, from 1, if it has a place.
    #[must_use]
    pub fn column(&self) -> Option<usize> {
        self.excerpt.as_ref().map(|e| e.column)
    }
    pub(crate) fn at(mut self, source: &Source, span: &Range<usize>) -> Self {
        self.offset = span.start;
        self.excerpt = Some(Excerpt::of(source, span));
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
impl std::error::Error for Problem {}

impl Diagnostic for Problem {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("{} ({})", self.code, self.fault.name())))
    }
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help.as_ref().map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt.as_ref().map(|excerpt| excerpt as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let excerpt = self.excerpt.as_ref()?;
        let span = (excerpt.span.start, excerpt.span.len());
        let label = self.label.clone().or_else(|| Some("here".to_owned()));
        Some(Box::new(std::iter::once(LabeledSpan::new_primary_with_span(label, span))))
    }
}

/// Everything that is wrong with one file; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// The file's name as it was given.
    pub file: String,
    /// The first [`PROBLEMS_SHOWN`], in order of place.
    pub problems: Vec<Problem>,
    /// How many more there were.
    pub more: usize,
}

impl Diagnostics {
    /// One problem alone.
    #[must_use]
    pub fn one(file: &str, problem: Problem) -> Self {
        Self { file: file.to_owned(), problems: vec![problem], more: 0 }
    }

    /// The same, as the fault of what stands at another place: as long as that is not there, nothing is wrong with the file.
    #[must_use]
    pub(crate) fn blamed_on(self, source: &str, span: &Range<usize>, what: &str) -> Self {
        let Some(first) = self.problems.first() else { return self };
        let line = first.line().map_or_else(String::new, |line| format!(" (line {line})"));
        let message = format!("{what}, this does not hold{line}: {}", first.message);
        let help = "draw what names it as well, in step with it, or let this value stand".to_owned();
        let source = Source { name: self.file.as_str().into(), text: source.into() };
        Self::one(&self.file, Problem::new(first.fault, "bad-draw", message).help(help).at(&source, span))
    }

    /// Whether the first problem has a place within a part of the file.
    pub(crate) fn is_within(&self, part: &Range<usize>) -> bool {
        self.problems.first().is_some_and(|first| first.excerpt.is_some() && part.contains(&first.offset))
    }

    /// Says which seed drew what was read.
    #[must_use]
    pub(crate) fn drawn_by(mut self, seed: u64, drawn: &[String]) -> Self {
        if let (Some(first), false) = (self.problems.first_mut(), drawn.is_empty()) {
            let draws = format!("seed {seed} draws: {}", crate::units::clip(&drawn.join("; "), 600));
            first.help = Some(first.help.take().map_or_else(|| draws.clone(), |help| format!("{help}; {draws}")));
        }
        self
    }

    /// The whole report as people read it; with terminal colours if `colour`.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(110).with_links(false);
        let mut out = String::new();
        for problem in &self.problems {
            if handler.render_report(&mut out, problem).is_err() {
                out.push_str(&problem.message);
            }
            out.push('\n');
        }
        out.push_str(&self.total());
        out.push('\n');
        out
    }

    fn total(&self) -> String {
        let count = self.problems.len() + self.more;
        let noun = if count == 1 { "problem" } else { "problems" };
        let more =
            if self.more == 0 { String::new() } else { format!(" (the first {} are shown)", self.problems.len()) };
        format!("{}: {count} {noun}{more}", self.file)
    }
}

impl fmt::Display for Diagnostics {
    /// One line per problem: `file:line:column: message; help`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            write!(f, "{}", self.file)?;
            if let Some(excerpt) = &problem.excerpt {
                write!(f, ":{}:{}", excerpt.line, excerpt.column)?;
            }
            write!(f, ": {}", problem.message)?;
            if let Some(help) = &problem.help {
                write!(f, "; {help}")?;
            }
            writeln!(f)?;
        }
        f.write_str(&self.total())
    }
}
impl std::error::Error for Diagnostics {}

impl Diagnostic for Diagnostics {
    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        Some(Box::new(self.problems.iter().map(|p| p as &dyn Diagnostic)))
    }
}

/// Collects problems while a file is read.
#[derive(Debug)]
pub(crate) struct Problems {
    pub(crate) source: Source,
    found: Vec<Problem>,
    more: usize,
}

impl Problems {
    pub(crate) fn new(name: &str, text: &str) -> Self {
        Self { source: Source { name: name.into(), text: text.into() }, found: Vec::new(), more: 0 }
    }

    /// For another reading of the same text.
    pub(crate) fn sharing(name: &str, text: &Arc<str>) -> Self {
        Self { source: Source { name: name.into(), text: Arc::clone(text) }, found: Vec::new(), more: 0 }
    }

    /// Whether the next one will only be counted, so that nobody need find words for it.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= PROBLEMS_SHOWN
    }

    /// Whether so much is wrong that reading on helps nobody.
    pub(crate) fn is_hopeless(&self) -> bool {
        self.more > HOPELESS
    }

    /// Counts one that will not be shown.
    pub(crate) fn count_only(&mut self) {
        self.more += 1;
    }

    /// Notes one; the place is looked up only for those that will be shown.
    pub(crate) fn add(&mut self, span: &Range<usize>, problem: Problem) {
        if self.found.len() < PROBLEMS_SHOWN {
            let problem = problem.at(&self.source, span);
            self.found.push(problem);
            return;
        }
        self.more += 1;
        // Keys of the whole file are looked at last: what else is wrong may be the echo of one.
        if problem.code == echo::UNKNOWN_KEY {
            if let Some(last) = self.found.iter_mut().rev().find(|found| echo::may_be(found)) {
                *last = problem.at(&self.source, span);
            }
        }
    }

    /// Notes one that is the file's fault.
    pub(crate) fn error(&mut self, span: &Range<usize>, code: &'static str, message: String, help: String) {
        self.add(span, Problem::new(Fault::File, code, message).help(help));
    }

    /// Ends the collection: nothing if nothing was found.
    pub(crate) fn finish(self) -> Result<(), Diagnostics> {
        if self.found.is_empty() {
            return Ok(());
        }
        let mut problems = echo::without(self.found, &self.source.text);
        problems.sort_by_key(|p| p.offset);
        Err(Diagnostics { file: self.source.name.to_string(), problems, more: self.more })
    }
}

/// "did you mean `x`?", or the list of what is valid if nothing is near.
pub(crate) fn suggest<'a>(name: &str, what: &str, valid: impl IntoIterator<Item = &'a str>) -> String {
    const LISTED: usize = 12;
    const COMPARED: usize = 1_000;
    // It is there, and is something else: to name it again would help nobody.
    let valid: Vec<&str> = valid.into_iter().filter(|valid| *valid != name).collect();
    if let Some(nearest) = nearest(name, valid.iter().copied().take(COMPARED)) {
        return format!("did you mean `{nearest}`?");
    }
    if valid.is_empty() {
        return format!("there are no {what} here");
    }
    let shown: Vec<String> = valid.iter().take(LISTED).map(|v| format!("`{v}`")).collect();
    let rest = valid.len().saturating_sub(LISTED);
    let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
    format!("valid {what}: {}{rest}", shown.join(", "))
}
