//! How the program speaks.

use std::io::{self, ErrorKind, Write};
use std::sync::OnceLock;

/// Prints a line on standard output.
macro_rules! tell {
    ($($line:tt)*) => {
        crate::tell::line(format_args!($($line)*))
    };
}
pub(crate) use tell;

/// Why standard output took no more.
static LOST: OnceLock<io::Error> = OnceLock::new();

/// Prints a line. Whoever reads it may stop early (`| head`): the exit code says the verdict all the same. Whatever else keeps
/// it from being written is no choice of a reader's, and is told at the end.
pub(crate) fn line(line: std::fmt::Arguments<'_>) {
    let mut out = io::stdout().lock();
    note(writeln!(out, "{line}").and_then(|()| out.flush()));
}

/// Notes what came of writing to standard output.
pub(crate) fn note(written: io::Result<()>) {
    if let Err(error) = written {
        if error.kind() != ErrorKind::BrokenPipe {
            let _ = LOST.set(error);
        }
    }
}

/// Why what was to be printed was lost, if it was.
pub(crate) fn lost() -> Option<&'static io::Error> {
    LOST.get()
}

/// What a panic said, if it said anything in words.
pub(crate) fn last_words(payload: &(dyn std::any::Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Says something on standard error. Nobody may be there to hear it: that is no failure of the run.
pub(crate) fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
