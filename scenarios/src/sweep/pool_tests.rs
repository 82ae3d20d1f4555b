//! Workers that die, hang or talk nonsense: scripts stand in for them.

use super::*;
use crate::plan::Overrides;
use std::sync::atomic::AtomicU32;

/// An answer to a task: the seed of the task that was read into `$line`.
const ANSWER: &str = r#"seed=${line#*\"seed\":}; seed=${seed%%,*}
run='{"answer":"run","scenario":"a.toml","verdict":"pass","seed":'$seed'}'"#;

/// A pool whose workers run a script.
fn pool(folder: &std::path::Path, jobs: u32, timeout: Duration, script: &str) -> Pool {
    let program = folder.join("worker.sh");
    let text = format!("#!/bin/sh\nwhile read -r line; do\n{ANSWER}\n{script}\ndone\n");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Pool { program, ..Pool::new(jobs, timeout).unwrap() }
}

fn task(seed: u64) -> Task {
    Task {
        file: "a.toml".into(),
        hash: None,
        seed,
        overrides: Overrides::default(),
        events_max: 1,
        absence: 0,
        shrink: 0,
        folder: None,
    }
}

/// What came of seeds, in order of seed.
fn ended(pool: &Pool, seeds: std::ops::Range<u64>) -> Vec<(u64, Verdict, String)> {
    let mut all = Vec::new();
    pool.each(
        seeds,
        |client, seed, tell: &dyn Fn(Ended)| tell(client.run(&task(seed))),
        |ended| match ended {
            Ended::Run(run) => all.push((run.seed, run.verdict, run.reason)),
            other => panic!("{other:?}"),
        },
        || {},
    );
    all.sort_by_key(|(seed, ..)| *seed);
    all
}

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_worker_that_dies_costs_its_seed_only() {
    let folder = tempfile::tempdir().unwrap();
    let panicked = r#"{"answer":"panicked","text":"out of bounds"}"#;
    let script = format!(
        "case $seed in 3) kill -9 $$;; 5) echo '{panicked}'; exit 101;; 6) exit 0;; 7) echo nonsense;; 8) kill -SEGV $$;; *) echo \"$run\";; esac"
    );
    let all = ended(&pool(folder.path(), 2, PATIENCE, &script), 0..10);
    let verdicts: Vec<Verdict> = all.iter().map(|(_, verdict, _)| *verdict).collect();
    let expected = |seed| match seed {
        5..=8 => Verdict::Panic,
        // That was nothing of its own.
        3 => Verdict::Unknown,
        _ => Verdict::Pass,
    };
    assert_eq!(verdicts, (0..10).map(expected).collect::<Vec<_>>());
    assert!(all[3].2.contains("killed from outside, by signal 9"), "{}", all[3].2);
    assert!(all[8].2.contains("signal: 11"), "{}", all[8].2);
    assert_eq!(all[5].2, "out of bounds");
}

#[test]
fn a_run_without_end_is_given_up_and_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let script = "case $seed in 1) exec sleep 1000;; *) echo \"$run\";; esac";
    let all = ended(&pool(folder.path(), 1, Duration::from_secs(2), script), 0..4);
    let verdicts: Vec<Verdict> = all.iter().map(|(_, verdict, _)| *verdict).collect();
    assert_eq!(verdicts, [Verdict::Pass, Verdict::Unknown, Verdict::Pass, Verdict::Pass]);
    assert_eq!(all[1].2, "no end after 2 s");
}

#[test]
fn a_signal_ends_what_runs_and_nothing_new_begins() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path(), 2, PATIENCE, "exec sleep 1000");
    let (ticks, told) = (AtomicU32::new(0), AtomicU32::new(0));
    pool.each(
        0..1_000_000,
        |client, seed, tell: &dyn Fn(Ended)| tell(client.run(&task(seed))),
        |ended| {
            assert!(matches!(ended, Ended::Stopped), "{ended:?}");
            told.fetch_add(1, Ordering::Relaxed);
        },
        || {
            if ticks.fetch_add(1, Ordering::Relaxed) == 3 {
                pool.signalled.store(true, Ordering::Relaxed);
            }
        },
    );
    assert!(told.into_inner() <= 2);
}

#[test]
fn a_pool_that_is_closed_begins_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let pool = pool(folder.path(), 2, PATIENCE, "echo \"$run\"");
    pool.close();
    assert_eq!(ended(&pool, 0..5), []);
    pool.open();
    assert_eq!(ended(&pool, 0..5).len(), 5);
}

#[test]
fn a_program_that_is_gone_is_told() {
    let pool = Pool { program: "no/such/program".into(), ..Pool::new(1, PATIENCE).unwrap() };
    let mut told = Vec::new();
    pool.each(0..1, |client, seed, tell: &dyn Fn(Ended)| tell(client.run(&task(seed))), |e| told.push(e), || {});
    assert!(matches!(&told[..], [Ended::Refused(text)] if text.contains("no worker can be started")), "{told:?}");
}
