use super::*;
use crate::record::FailoverPart;
use crate::samples;

fn all() -> [Record; 3] {
    [samples::pass(), samples::violation(), samples::matrix()]
}

#[test]
fn a_page_loads_nothing_and_runs_nothing() {
    for record in all() {
        let page = page(&record).replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        for foreign in ["http:", "https:", "<script", "src=", "url(", "@import", "<link"] {
            assert!(!page.contains(foreign), "{foreign} in the page of {}", record.title);
        }
    }
}

#[test]
fn the_same_record_gives_the_same_page() {
    assert_eq!(page(&samples::matrix()), page(&samples::matrix()));
}

#[test]
fn words_of_a_scenario_cannot_become_markup() {
    let mut record = samples::violation();
    for text in [&mut record.title, &mut record.reason, &mut record.bands[0].label, &mut record.curves[0].name] {
        *text = "\"><b onload=x>".to_owned();
    }
    let page = page(&record);
    assert!(!page.contains("<b onload"), "{page}");
}

#[test]
fn a_page_tells_verdict_and_how_to_run_again() {
    let record = samples::violation();
    let page = page(&record);
    for part in [&record.reason, &record.violations[0].got, &record.repro, &record.trace_hash, &record.guards.off[0]] {
        assert!(page.contains(part.as_str()), "{part}");
    }
}

#[test]
fn a_record_without_anything_still_has_a_page() {
    let empty = Record { curves: vec![], bands: vec![], story: vec![], figures: Default::default(), ..samples::pass() };
    assert!(page(&empty).ends_with("</html>"));
}

#[test]
fn large_matrices_have_charts_for_some_rows_only() {
    let mut record = samples::matrix();
    record.rows = (0..70).map(|n| record.rows[n % 6].clone()).collect();
    let page = page(&record);
    assert_eq!(page.matches("<svg").count(), 1 + 2 * CHARTED_ROWS_MAX);
}

#[test]
fn a_page_tells_what_stops_and_returns_cost() {
    let part = FailoverPart { left_behind: Some(12_345), ..FailoverPart::default() };
    let stop = Failover { mirror: "east-to-west".to_owned(), done: 1, parts: vec![part], ..Failover::default() };
    let start = Failover { kind: FailoverKind::Start, dropped_offsets: 4, parts: vec![], ..stop.clone() };
    let page = page(&Record { failovers: vec![stop, start], ..samples::pass() });
    for part in ["Failovers and returns", "east-to-west", "12,345", "at most 4 records", "the source lives"] {
        assert!(page.contains(part), "{part}");
    }
}
