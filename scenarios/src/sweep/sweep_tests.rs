//! What a sweep makes of two runs of one seed.

use super::*;

fn run(verdict: Verdict, hash: &str) -> Finished {
    Finished {
        trace_hash: hash.into(),
        wall_s: 1.0,
        ..Finished::without_record("a.toml", 7, verdict, String::new(), String::new())
    }
}

#[test]
fn two_processes_with_two_histories_diverged() {
    let same = compared(run(Verdict::Stall, "aa"), &run(Verdict::Stall, "aa"));
    assert_eq!((same.verdict, same.twice, same.wall_s), (Verdict::Stall, true, 2.0));
    for second in [run(Verdict::Stall, "bb"), run(Verdict::Pass, "aa"), run(Verdict::Panic, "")] {
        let both = compared(run(Verdict::Stall, "aa"), &second);
        assert_eq!((both.verdict, &*both.invariant), (Verdict::Diverged, "diverged"));
        assert!(both.reason.contains("aa (stall)"), "{}", both.reason);
    }
}
