//! How numbers, times and lines are written, the same in text and on the page.

/// Widest line of the printed form.
pub(crate) const WIDTH: usize = 120;

/// What stands for a figure that was not measured.
pub(crate) const NONE: &str = "-";

/// A whole number with thousands apart: `1,234,567`.
pub(crate) fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (n, digit) in digits.chars().enumerate() {
        if n > 0 && (digits.len() - n) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A measured number: whole ones in full, others with as many decimals as make sense of them.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return NONE.to_owned();
    }
    if size >= 1e15 {
        return format!("{value:e}");
    }
    let sign = if value < 0.0 { "-" } else { "" };
    if size.fract() == 0.0 || size >= 1000.0 {
        return format!("{sign}{}", count(size.round() as u64));
    }
    let decimals = match size {
        s if s >= 100.0 => 1,
        s if s >= 1.0 => 2,
        s if s >= 0.001 => 3,
        _ => 6,
    };
    format!("{sign}{size:.decimals$}")
}

/// A measured number, or a dash.
pub(crate) fn number_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.to_owned(), number)
}

/// Simulated nanoseconds as seconds with three decimals: `12.345`.
pub(crate) fn seconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000_000, ns / 1_000_000 % 1000)
}

/// One `s`, or none.
pub(crate) fn plural(count: u64) -> &'static str {
    if count == 1 {
        ""
    } else {
        "s"
    }
}

/// The text on one line: control characters could move a terminal's cursor, so they become spaces.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// At most `width` characters, the last one `…` where something was cut.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    out.push('…');
    out
}

/// Breaks `text` at spaces into lines of at most [`WIDTH`], the first after `head`, the others indented as far as `head` is
/// long. A word longer than a line is broken where the line ends.
pub(crate) fn wrap(out: &mut String, head: &str, text: &str) {
    let indent = head.chars().count();
    let room = WIDTH.saturating_sub(indent).max(16);
    let text = clean(text);
    let mut line = String::new();
    let mut started = false;
    let mut flush = |line: &mut String| {
        let lead = if started { " ".repeat(indent) } else { head.to_owned() };
        out.push_str(format!("{lead}{line}").trim_end());
        out.push('\n');
        line.clear();
        started = true;
    };
    for word in text.split_whitespace() {
        let mut word: Vec<char> = word.chars().collect();
        let used = line.chars().count();
        if used > 0 && used + 1 + word.len() > room {
            flush(&mut line);
        }
        while word.len() > room {
            line.extend(word.drain(..room));
            flush(&mut line);
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word);
    }
    flush(&mut line);
}

#[cfg(test)]
#[path = "show_tests.rs"]
mod tests;
