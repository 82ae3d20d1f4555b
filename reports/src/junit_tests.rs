use super::*;
use crate::samples;

#[test]
fn passes_failures_and_errors() {
    let unknown = Record { verdict: Verdict::Unknown, reason: "30 min were over".to_owned(), ..samples::pass() };
    let mut violation = samples::violation();
    violation.seed = 8;
    violation.story.clear();
    let records = [samples::pass(), violation, Record { story: vec![], seed: 9, ..unknown }];
    insta::assert_snapshot!(xml(&records).unwrap_or_default());
}

#[test]
fn rows_of_a_matrix_are_tests() {
    let xml = xml([&samples::matrix()]).unwrap_or_default();
    assert!(xml.contains(r#"tests="6" failures="1" errors="0""#), "{xml}");
    assert!(xml.contains(r#"name="seed 7, fetchers 4, latency 75 ms""#), "{xml}");
}
