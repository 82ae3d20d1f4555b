//! What a loss counts as.

use super::*;
use crate::format::Scenario;

fn losses(excuse: Excuse, records: u64) -> Losses {
    Losses { by: [(excuse.name(), (excuse, 1, records))].into_iter().collect(), rotten: (0, 0) }
}

#[test]
fn what_faults_took_is_a_violation_and_what_was_ordered_is_not() {
    let broken = losses(Excuse::LossyCrashes, 3).violation(Nanos(7)).unwrap();
    assert_eq!((broken.id.as_str(), broken.whose.as_str(), broken.time_ns), ("S6", "system", 7));
    assert!(broken.got.contains("3 of them"), "{}", broken.got);
    assert_eq!(losses(Excuse::LossyCrashes, 0).violation(Nanos(7)), None);
    assert_eq!(losses(Excuse::OrderedCut, 3).violation(Nanos(7)), None);
    let mut figures = BTreeMap::new();
    losses(Excuse::LossyCrashes, 3).figures(&mut figures);
    assert_eq!(figures["lost_lossy_crashes"], 3.0);
}

#[test]
fn one_strike_without_a_limit_makes_a_plan_one_without() {
    let stage = |steps: &str| {
        let text = format!("title = \"t\"\n[clusters.east]\n{steps}");
        Scenario::parse("x.toml", &text).unwrap_or_else(|e| panic!("{}", e.render(false))).stage
    };
    let step = |more: &str| format!("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-1\"\n{more}");
    assert!(!is_within_tolerance(&stage("")));
    assert!(is_within_tolerance(&stage(&step("within_tolerance = true\n"))));
    assert!(!is_within_tolerance(&stage(&format!("{}{}", step("within_tolerance = true\n"), step("")))));
}
