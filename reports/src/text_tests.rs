use super::*;
use crate::samples;

fn widest(text: &str) -> usize {
    text.lines()
        .filter(|l| !l.starts_with("again") && !l.starts_with("run folder"))
        .map(|l| l.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn a_passing_run() {
    let text = summary(&samples::pass(), Some(Path::new("runs/wan_cut/7")));
    assert!(widest(&text) <= show::WIDTH, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_violation() {
    let text = summary(&samples::violation(), Some(Path::new("runs/wan_cut/7")));
    assert!(widest(&text) <= show::WIDTH, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_matrix() {
    let text = summary(&samples::matrix(), None);
    assert!(widest(&text) <= show::WIDTH, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_matrix_with_keys_too_wide_for_a_line_numbers_its_rows() {
    let mut record = samples::matrix();
    for row in &mut record.rows {
        row.set.insert("topics.orders.config.min.insync.replicas".to_owned(), "a value that is quite wide ".repeat(3));
    }
    let text = summary(&record, None);
    assert!(widest(&text) <= show::WIDTH, "{text}");
    assert!(text.contains("\nrow 6: clusters.west.config.mirror.num.replica.fetchers 4,"), "{text}");
}

#[test]
fn a_lag_that_nobody_knew_is_not_zero() {
    let mut record = samples::pass();
    record.lag = crate::record::Percentiles::default();
    record.figures.remove(figures::LAG_END);
    let text = summary(&record, None);
    assert!(
        text.contains(
            "lag         unknown at the end; by partition P50 unknown, P99 unknown (0 samples, 648 more unknown)"
        ),
        "{text}"
    );
}
