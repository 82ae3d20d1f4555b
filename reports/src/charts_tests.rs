use super::*;
use crate::samples;

#[test]
fn samples_are_cut_where_knowledge_ends() {
    let got = runs(&[None, None, Some(1.0), Some(2.0), Some(f64::NAN), Some(3.0)]);
    let want =
        [(0, Run::Unknown(2)), (2, Run::Known(vec![1.0, 2.0])), (4, Run::Unknown(1)), (5, Run::Known(vec![3.0]))];
    assert_eq!(got, want);
}

#[test]
fn a_gap_breaks_the_line_and_is_marked() {
    let record = samples::pass();
    let curve = &record.curves[1];
    let svg = over_time(curve, &record.bands, Reach::of(curve, record.simulated_s)).unwrap_or_default();
    assert_eq!(svg.matches(r##"stroke="#2A78D6""##).count(), 2, "{svg}");
    assert_eq!(svg.matches(r##"fill="#898781""##).count(), 2, "{svg}");
}

#[test]
fn bands_have_their_labels_and_an_instant_is_a_line() {
    let record = samples::pass();
    let curve = &record.curves[0];
    let svg = over_time(curve, &record.bands, Reach::of(curve, record.simulated_s)).unwrap_or_default();
    assert!(record.bands.iter().all(|b| svg.contains(&b.label.replace('<', "&lt;").replace('>', "&gt;"))), "{svg}");
    assert_eq!(
        (svg.matches(r##"fill="#EB6834""##).count(), svg.matches(r##"stroke="#EB6834""##).count()),
        (3, 1),
        "{svg}"
    );
}

#[test]
fn labels_that_overlap_take_other_lines_and_too_many_are_left_out() {
    let band = Band { from_ns: 1, to_ns: 2, label: "power loss".to_owned() };
    let labels = place_labels(&vec![band; 9], 1.0, 10.0, 1000.0);
    assert_eq!(labels.iter().map(|l| l.line).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn odd_curves_draw_or_are_left_out() {
    let curve = |values: Vec<Option<f64>>, interval_ns| Curve { values, interval_ns, ..Curve::default() };
    let draw = |c: &Curve| over_time(c, &[], Reach::of(c, f64::NAN));
    assert_eq!(draw(&curve(vec![], 1)), None);
    assert_eq!(draw(&curve(vec![Some(1.0)], 0)), None);
    assert!(draw(&curve(vec![None; 3], 1)).is_some());
    assert!(draw(&curve(vec![Some(0.0), Some(-1.0), Some(1e300)], u64::MAX)).is_some());
}

#[test]
fn a_bound_near_the_bars_is_drawn_and_one_far_away_is_written() {
    let bar = |bound| Bar { name: "row".to_owned(), value: Some(20.0), bound: Some(bound) };
    let svg = bars(&[bar(69.905), bar(4000.0)]).unwrap_or_default();
    assert!(svg.contains("20 of 69.91\n") && svg.contains("20 of 4,000 →\n"), "{svg}");
    assert_eq!(bars(&[Bar { value: None, ..bar(1.0) }]), None);
}

#[test]
fn every_colour_of_a_picture_has_a_dark_form() {
    let record = samples::pass();
    let mut all: String =
        record.curves.iter().filter_map(|c| over_time(c, &record.bands, Reach::of(c, 60.0))).collect();
    let bar = |bound| Bar { name: "latency 25 ms".to_owned(), value: Some(20.0), bound: Some(bound) };
    all.push_str(&bars(&[bar(40.0), bar(4000.0)]).unwrap_or_default());
    let unknown: Vec<&str> = all
        .split("=\"#")
        .skip(1)
        .map(|s| &s[..6])
        .filter(|c| !ROLES.iter().any(|(light, _)| light[1..] == **c))
        .collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
