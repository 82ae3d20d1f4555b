use super::*;

#[test]
fn thousands_stand_apart() {
    let got: Vec<String> = [0, 999, 1000, 1_234_567].map(count).to_vec();
    assert_eq!(got, ["0", "999", "1,000", "1,234,567"]);
}

#[test]
fn numbers_keep_what_matters() {
    let got = [0.0, 12.0, -3.0, 0.0415, 1.005, 123.45, 98765.4, 0.000_05, f64::NAN, f64::INFINITY].map(number);
    assert_eq!(got, ["0", "12", "-3", "0.042", "1.00", "123.5", "98,765", "0.000050", "-", "-"]);
}

#[test]
fn seconds_are_cut_not_rounded() {
    assert_eq!([0, 1_999_999, 61_234_567_890].map(seconds), ["0.000", "0.001", "61.234"]);
}

#[test]
fn lines_break_at_spaces_and_no_line_is_too_wide() {
    let mut out = String::new();
    wrap(&mut out, "marks       ", &"word ".repeat(60));
    wrap(&mut out, "hash  ", &"x".repeat(300));
    assert!(out.lines().all(|l| l.chars().count() <= WIDTH && !l.ends_with(' ')), "{out}");
    assert!(out.lines().nth(1).is_some_and(|l| l.starts_with("            word")), "{out}");
}

#[test]
fn control_characters_are_not_printed() {
    let mut out = String::new();
    wrap(&mut out, "", "a\u{1b}[31mb\nc");
    assert_eq!(out, "a [31mb c\n");
}
