//! How the program speaks.

use std::io::Write;

/// Prints a line on standard output. Whoever reads it may stop early (`| head`): the exit code says the verdict all the same.
macro_rules! tell {
    ($($line:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($line)*);
    }};
}
pub(crate) use tell;

/// What a panic said, if it said anything in words.
pub(crate) fn last_words(payload: &(dyn std::any::Any + Send)) -> Option<&str> {
    payload.downcast_ref::<String>().map(String::as_str).or_else(|| payload.downcast_ref::<&str>().copied())
}

/// Says something on standard error. Nobody may be there to hear it: that is no failure of the run.
pub(crate) fn complain(what: &dyn std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{what}");
}
