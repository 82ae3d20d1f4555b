//! From a path to a TOML tree, within bounds: size before reading, tokens and depth before parsing, then the parser.

use super::diagnostics::{Diagnostics, Fault, Problem, Problems};
use super::limits;
use crate::nearest::nearest;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;
use toml::de::DeTable;
use toml::Spanned;
use toml_parser::lexer::TokenKind;

/// Reads a file as text.
pub(crate) fn read(path: &Path) -> Result<String, Diagnostics> {
    let name = path.display().to_string();
    let refuse = |fault, code, message: String, help: &str| {
        Diagnostics::one(&name, Problem::new(fault, code, message).help(help))
    };
    let too_large = || {
        let message = format!("the file is larger than {} MiB", limits::FILE_BYTES >> 20);
        refuse(Fault::File, "too-large", message, "no scenario needs that much: is it a scenario file at all?")
    };
    if path.to_str().is_none() {
        let message = "the name of this file is not UTF-8";
        return Err(refuse(Fault::Command, "bad-name", message.to_owned(), "rename it: records name files as texts"));
    }
    let failed = |error: std::io::Error| {
        let message = format!("the file cannot be read: {error}");
        let near = beside(path);
        let help = match error.kind() {
            ErrorKind::NotFound => near.as_deref().unwrap_or("check the path; it is taken from the working directory"),
            ErrorKind::PermissionDenied => {
                "this user may not read it: check the permissions of the file and its folders"
            }
            _ => "check the path and the disk that it is on",
        };
        let fault = if error.kind() == ErrorKind::NotFound { Fault::Command } else { Fault::Machine };
        refuse(fault, "unreadable", message, help)
    };
    let meta = std::fs::metadata(path).map_err(failed)?;
    if meta.is_dir() {
        return Err(refuse(Fault::Command, "unreadable", "this is a folder".to_owned(), "name a scenario file in it"));
    }
    if !meta.is_file() {
        // A pipe or device may never end, or never begin.
        let message = "this is not a regular file".to_owned();
        return Err(refuse(Fault::Command, "unreadable", message, "write the scenario into a file and name that"));
    }
    if meta.len() > limits::FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // The file may grow while it is read.
    File::open(path).map_err(failed)?.take(limits::FILE_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limits::FILE_BYTES {
        return Err(too_large());
    }
    String::from_utf8(bytes).map_err(|error| not_text(&name, &error))
}

/// The file that was meant by a name with a slip, if one beside it is near.
fn beside(path: &Path) -> Option<String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name()?.to_str()?;
    let entries = std::fs::read_dir(folder).ok()?.flatten().filter(|entry| entry.path().is_file());
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|other| other.ends_with(".toml") && !other.starts_with('.'));
    names.sort();
    let near = nearest(name, names.iter().map(String::as_str)).map(|near| path.with_file_name(near));
    near.map(|near| format!("did you mean `{}`?", near.display()))
}

fn not_text(name: &str, error: &std::string::FromUtf8Error) -> Diagnostics {
    let at = error.utf8_error().valid_up_to();
    let before = &error.as_bytes()[..at];
    let line = before.iter().filter(|b| **b == b'\n').count() + 1;
    let start = before.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
    let column = String::from_utf8_lossy(&before[start..]).chars().count() + 1;
    let byte = error.as_bytes().get(at).copied().unwrap_or_default();
    let message = format!("the file is not UTF-8: byte 0x{byte:02x} at line {line}, column {column} (byte {at})");
    Diagnostics::one(name, Problem::new(Fault::File, "not-utf-8", message).help("save the file as UTF-8 text"))
}

/// Refuses text that would cost too much to parse; returns its number of tokens.
pub(crate) fn measure(problems: &mut Problems) -> Option<usize> {
    let text = std::sync::Arc::clone(&problems.source.text);
    if text.len() as u64 > limits::FILE_BYTES {
        let message = format!("the text is larger than {} MiB", limits::FILE_BYTES >> 20);
        problems.error(&(0..0), "too-large", message, "no scenario needs that much".to_owned());
        return None;
    }
    if text.trim().is_empty() {
        let help = "a scenario begins with `title = \"…\"` and a table such as [clusters.east]".to_owned();
        problems.error(&(0..0), "empty", "the file is empty".to_owned(), help);
        return None;
    }
    let (mut tokens, mut depth, mut dots) = (0_usize, 0_usize, 0_usize);
    for token in toml_parser::Source::new(&text).lex() {
        tokens += 1;
        let span = token.span().start()..token.span().end();
        match token.kind() {
            TokenKind::LeftSquareBracket | TokenKind::LeftCurlyBracket => (depth, dots) = (depth + 1, 0),
            TokenKind::RightSquareBracket | TokenKind::RightCurlyBracket => {
                (depth, dots) = (depth.saturating_sub(1), 0)
            }
            TokenKind::Equals | TokenKind::Comma => dots = 0,
            // A bracket that is never closed on a line of its own is a mistake that the parser explains; it must not add up.
            TokenKind::Newline => dots = 0,
            TokenKind::Dot => dots += 1,
            TokenKind::Atom if span.len() > limits::NAME_BYTES + 64 => {
                let message = format!("a word of {} letters is too long", span.len());
                let help = format!("names have at most {} letters; texts stand in quotes", limits::NAME_BYTES);
                problems.error(&span, "too-long", message, help);
                return None;
            }
            _ => {}
        }
        if depth > limits::DEPTH || dots > limits::DEPTH {
            let message = format!("tables and lists are more than {} deep", limits::DEPTH);
            let help =
                "a scenario needs 5 at most: is a bracket missing, or a key with points not in quotes?".to_owned();
            problems.error(&span, "too-deep", message, help);
            return None;
        }
        if tokens > limits::TOKENS {
            let message = format!("the file has more than {} words", limits::TOKENS);
            let help =
                "use `count` for families of topics and clients, and [chaos] or `every` for repeated steps".to_owned();
            problems.error(&span, "too-large", message, help);
            return None;
        }
    }
    Some(tokens)
}

/// Tokens up to which every mistake of the syntax is collected; in a larger text only the first one, since the parser keeps
/// them all in memory.
const RECOVERABLE: usize = 200_000;

/// Parses measured text. Repeated keys are problems, but the rest of the file is still worth reading; after any other
/// problem of the syntax it is not.
pub(crate) fn parse<'i>(text: &'i str, tokens: usize, problems: &mut Problems) -> Option<Spanned<DeTable<'i>>> {
    let (tree, errors) = if tokens <= RECOVERABLE {
        let (tree, errors) = DeTable::parse_recoverable(text);
        (Some(tree), errors)
    } else {
        match DeTable::parse(text) {
            Ok(tree) => (Some(tree), Vec::new()),
            Err(error) => (None, vec![error]),
        }
    };
    let mut usable = true;
    for error in errors {
        if problems.is_full() {
            problems.count_only();
            continue;
        }
        let span = error.span().unwrap_or(0..0);
        let repeated = error.message().starts_with("duplicate key");
        usable &= repeated;
        if repeated {
            let key = text.get(span.clone()).unwrap_or_default();
            let message = format!("`{}` is written twice", crate::units::clip(key, 60));
            problems.error(
                &span,
                "duplicate-key",
                message,
                "remove one of the two, or give it another name".to_owned(),
            );
        } else {
            let help = "this is not TOML; see https://toml.io".to_owned();
            problems.error(&span, "syntax", error.message().to_owned(), help);
        }
    }
    tree.filter(|_| usable)
}
