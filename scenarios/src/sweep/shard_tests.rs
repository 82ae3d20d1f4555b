//! Shards cut a sweep into parts that are exact, and schedulers name them.

use super::*;
use std::collections::{BTreeMap, BTreeSet};

#[test]
fn shards_part_the_runs_exactly_and_each_has_every_file() {
    for (of, seeds, files) in [(1, 7, 3), (2, 40, 2), (4, 40, 4), (4, 41, 8), (5, 3, 1), (7, 100, 5), (9, 1, 2)] {
        let mut seen = BTreeSet::new();
        for index in 1..=of {
            let shard = Shard { index, of };
            let turns: Vec<Turn> = Turns::new(shard, (10, 10 + seeds), files).collect();
            assert_eq!(turns.len() as u64, shard.runs(seeds, u64::from(files)), "{shard:?}");
            for turn in &turns {
                assert!(seen.insert((turn.seed, turn.file)), "{turn:?} is run by two shards");
            }
            if seeds >= u64::from(of) {
                let of_shard: BTreeSet<u32> = turns.iter().map(|turn| turn.file).collect();
                assert_eq!(of_shard.len() as u32, files, "{shard:?} leaves files out");
            }
        }
        let all: BTreeSet<_> = (10..10 + seeds).flat_map(|seed| (0..files).map(move |file| (seed, file))).collect();
        assert_eq!(seen, all);
    }
}

#[test]
fn seeds_are_outside_and_one_of_each_batch_is_run_twice() {
    let turns: Vec<Turn> = Turns::new(Shard::WHOLE, (5, 105), 3).collect();
    let order: Vec<(u64, u32)> = turns.iter().map(|turn| (turn.seed, turn.file)).collect();
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(order, sorted);
    for batch in turns.chunks(BATCH) {
        assert_eq!(batch.iter().filter(|turn| turn.twice).count(), 1);
    }
    assert_eq!(Turns::new(Shard::WHOLE, (3, 3), 2).count(), 0);
    assert_eq!(Turns::new(Shard::WHOLE, (u64::MAX - 1, u64::MAX), 1).count(), 1);
}

fn chosen(option: Option<&str>, variables: &[(&str, &str)]) -> Result<(u32, u32), String> {
    let variables: BTreeMap<&str, &str> = variables.iter().copied().collect();
    let env = |name: &str| variables.get(name).map(|value| (*value).to_owned());
    Shard::choose(option, env).map(|(shard, _)| (shard.index, shard.of)).map_err(|bad| bad.to_string())
}

#[test]
fn the_option_is_counted_from_one_and_beats_the_environment() {
    let gitlab = [("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "3")];
    assert_eq!(chosen(Some("4/4"), &gitlab), Ok((4, 4)));
    for bad in ["0/4", "5/4", "1", "a/b", "1/0", "-1/4", "", "1/2/3"] {
        let told = chosen(Some(bad), &[]).unwrap_err();
        assert!(told.contains("counted from 1"), "{bad}: {told}");
    }
}

#[test]
fn schedulers_name_a_shard_when_index_and_count_are_there() {
    assert_eq!(chosen(None, &[]), Ok((1, 1)));
    assert_eq!(chosen(None, &[("CI_NODE_INDEX", "2"), ("CI_NODE_TOTAL", "3")]), Ok((2, 3)));
    assert_eq!(chosen(None, &[("JOB_COMPLETION_INDEX", "0"), ("MIRRORLAB_SHARDS", "3")]), Ok((1, 3)));
    assert_eq!(chosen(None, &[("JOB_COMPLETION_INDEX", "2")]), Ok((1, 1)));
    assert_eq!(chosen(None, &[("CIRCLE_NODE_INDEX", "2"), ("CIRCLE_NODE_TOTAL", "3")]), Ok((3, 3)));
    let slurm = |id: &'static str| {
        let name = |of: &'static str, value: &'static str| (of, value);
        [
            name("SLURM_ARRAY_TASK_ID", id),
            name("SLURM_ARRAY_TASK_COUNT", "3"),
            name("SLURM_ARRAY_TASK_MIN", "5"),
            name("SLURM_ARRAY_TASK_STEP", "2"),
        ]
    };
    assert_eq!(["5", "7", "9"].map(|id| chosen(None, &slurm(id))), [Ok((1, 3)), Ok((2, 3)), Ok((3, 3))]);
    assert!(chosen(None, &slurm("4")).is_err());
    assert!(chosen(None, &[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "3")]).unwrap_err().contains("counted from 1"));
    assert!(chosen(None, &[("CI_NODE_INDEX", "x"), ("CI_NODE_TOTAL", "3")]).is_err());
}
