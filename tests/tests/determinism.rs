//! One seed, one history: in one process, in two, after a copy in the middle, and from the file that a run leaves.

use mirrorlab_scenarios::cli;
use mirrorlab_scenarios::format::Scenario;
use mirrorlab_scenarios::lab::{Lab, Manner};
use mirrorlab_scenarios::plan::Plan;
use mirrorlab_scenarios::run::{Job, Run};
use mirrorlab_scenarios::same::same_twice;
use mirrorlab_sim::pump::Drive;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// Tells the child process of [`two_processes_live_the_same_history`] what to run.
const CHILD: &str = "MIRRORLAB_DETERMINISM_SEED";

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scenarios/replication/short.toml")
}

fn plan(seed: u64) -> Plan {
    Scenario::load(file()).unwrap().seed(seed).plan().unwrap()
}

/// What a history is compared by: its hash, and how much it covers.
fn history(plan: &Plan) -> (String, u64, u64) {
    let record = cli::one("short.toml", plan).unwrap();
    assert!(record.appends > 100, "only {} appends: this would prove little", record.appends);
    (record.trace_hash, record.events, record.messages)
}

#[test]
fn one_process_lives_the_same_history_twice_whatever_it_does_in_between() {
    let first = history(&plan(3));
    let other = history(&plan(4));
    assert_eq!(history(&plan(3)), first);
    assert_ne!(first, other);
}

#[test]
fn two_runs_side_by_side_agree_after_every_event() {
    let job = Job { path: "short.toml".to_owned(), plan: plan(5) };
    same_twice(&job).unwrap_or_else(|parting| panic!("{parting:#?}"));
}

#[test]
fn other_seeds_live_other_histories() {
    let hashes: BTreeSet<String> = (10..14).map(|seed| history(&plan(seed)).0).collect();
    assert_eq!(hashes.len(), 4);
}

#[test]
fn two_processes_live_the_same_history() {
    let child = || {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["the_child_tells_its_history", "--exact", "--nocapture"])
            .env(CHILD, "6")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        let told = text.lines().find_map(|line| line.split_once("history: ").map(|(_, told)| told.to_owned()));
        told.unwrap_or_else(|| panic!("no history in: {text}{}", String::from_utf8_lossy(&out.stderr)))
    };
    let here = format!("{:?}", history(&plan(6)));
    assert_eq!([child(), child()], [here.clone(), here]);
}

/// Nothing by itself: what [`two_processes_live_the_same_history`] starts in a process of its own.
#[test]
fn the_child_tells_its_history() {
    if let Ok(seed) = std::env::var(CHILD) {
        println!("history: {:?}", history(&plan(seed.parse().unwrap())));
    }
}

#[test]
fn a_plan_that_was_written_and_read_back_lives_the_same_history() {
    let plan = plan(7);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plan.toml");
    std::fs::write(&path, plan.to_toml().unwrap()).unwrap();
    let read = Plan::load(&path).unwrap();
    assert_eq!(read, plan);
    assert_eq!(history(&read), history(&plan));
}

/// Steps a world by hand until `until`, or so many events.
fn step(lab: &mut Lab, most: u64, until: impl Fn(&Lab) -> bool) {
    for _ in 0..most {
        if until(lab) {
            return;
        }
        let _ = lab.world.step();
    }
}

#[test]
fn a_world_copied_in_the_middle_goes_on_as_the_original_does() {
    let plan = plan(8);
    let mut lab = Lab::build(&plan.stage, plan.seed, plan.guards()).unwrap();
    step(&mut lab, 1_000_000, Lab::brokers_in);
    lab.create_topics(&plan.stage);
    step(&mut lab, 1_000_000, Lab::orders_done);
    let base = lab.world.now();
    let end = base + plan.stage.phases.safety.nanos();
    lab.add_clients(&plan.stage, base, end);
    lab.create_mirror(&plan.stage, "east-to-west", Manner::default()).unwrap();
    let events = 20_000;
    step(&mut lab, events, |_| false);
    let mut copies = [lab.clone(), lab.clone()];
    let crashed = copies[0].setup.clusters[0].brokers[1];
    // One copy is treated badly, which must not touch the other: they share the bytes of their disks.
    copies[0].world.power_loss(crashed);
    for _ in 0..events {
        for lab in copies.iter_mut().chain([&mut lab]) {
            let _ = lab.world.step();
        }
    }
    let [crashed, copy] = &copies;
    assert!(lab.world.counts().appends > 100, "only {} appends", lab.world.counts().appends);
    assert_eq!(copy.world.counts(), lab.world.counts());
    assert_eq!(copy.world.trace_hash(), lab.world.trace_hash());
    assert_ne!(crashed.world.trace_hash(), lab.world.trace_hash());
}

#[test]
fn messages_that_go_through_their_bytes_change_no_history() {
    let live = |wire| {
        let mut plan = plan(11);
        plan.stage.wire = wire;
        let mut run = Run::new(Job { path: "short.toml".to_owned(), plan }).unwrap();
        while run.single_step() {}
        let world = &run.lab().world;
        (world.trace_hash(), world.counts(), world.wire_checked())
    };
    let (hash, counts, none) = live(false);
    let (same, same_counts, checked) = live(true);
    assert_eq!((same, same_counts), (hash, counts));
    assert_eq!(none, 0);
    // About half of all messages.
    assert!(checked > counts.messages / 5 && checked < counts.messages, "{checked} of {}", counts.messages);
}

#[test]
fn a_run_stepped_by_hand_lives_the_history_of_one_that_the_pump_drives() {
    let plan = plan(9);
    let mut run = Run::new(Job { path: "short.toml".to_owned(), plan: plan.clone() }).unwrap();
    while run.single_step() {}
    assert_eq!(format!("{:016x}", run.trace_hash()), history(&plan).0);
    assert!(run.next_time().is_some(), "a run ends by its checks, not because nothing is due");
}
