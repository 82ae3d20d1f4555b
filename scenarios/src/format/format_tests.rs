//! Texts in, scenarios or diagnostics out. What people read is kept as snapshots.

use super::action::{Action, After, Trigger};
use super::chaos::ChaosKind;
use super::condition::{Compare, Condition, Term};
use super::*;
use crate::units::{Bandwidth, Chance, Time};
use proptest::prelude::*;

/// Two clusters, a link, a topic, a mirror, a producer, a consumer.
const BASE: &str = r#"
title = "t"
[clusters.east]
site = "dc-east"
[clusters.west]
site = "dc-west"
[links.wan]
between = ["dc-east", "dc-west"]
latency = "40 ms"
[topics.orders]
on = "east"
partitions = 8
[mirrors.east-to-west]
on = "west"
source = "east"
topics = ["orders"]
[producers.shop]
on = "east"
topic = "orders"
rate = "100/s"
[consumers.billing]
on = "west"
topic = "orders"
"#;

fn with(tail: &str) -> Result<Scenario, Diagnostics> {
    Scenario::parse("x.toml", &format!("{BASE}{tail}"))
}

fn first(text: &str) -> (String, String) {
    let error = Scenario::parse("x.toml", text).unwrap_err();
    let problem = &error.problems[0];
    (problem.code.to_owned(), format!("{}; {}", problem.message, problem.help.clone().unwrap_or_default()))
}

fn code(tail: &str) -> &'static str {
    with(tail).unwrap_err().problems[0].code
}

#[test]
fn a_seed_draws_values_and_what_is_there() {
    let text = "[draw]\n\"links.wan.latency\" = [\"1 ms\", \"50 ms\"]\n\"phases.safety\" = { from = \"10 s\", to = \"20 s\" }\n\"chaos.*\" = { keep = 0.5 }\n[phases]\n[chaos]\ncrash = {}\npause = {}\n";
    let s = with(text).unwrap();
    let (mut latencies, mut kinds) = (BTreeSet::new(), BTreeSet::new());
    for seed in 0..40 {
        let (label, drawn) = s.rows(seed).unwrap().remove(0);
        assert!(label.is_empty() && drawn.draw.is_empty());
        let safety = drawn.stage.phases.safety;
        assert!(safety >= Time::secs(10) && safety <= Time::secs(20), "{safety}");
        latencies.insert(drawn.stage.links["wan"].both.latency);
        kinds.insert(drawn.chaos.as_ref().unwrap().strikes.keys().copied().collect::<Vec<_>>());
        assert_eq!(drawn, s.rows(seed).unwrap().remove(0).1, "a seed draws the same again");
        assert!(drawn.plan.unwrap().drawn.iter().any(|line| line.starts_with("links.wan.latency = ")));
    }
    assert_eq!((latencies.len(), kinds.len()), (2, 3), "one kind of chaos at least");
    let always = with(&text.replace("[phases]", "\"chaos.crash\" = { keep = 1 }\n[phases]")).unwrap();
    let mut pauses = BTreeSet::new();
    for seed in 0..40 {
        let drawn = always.rows(seed).unwrap().remove(0).1;
        let strikes = &drawn.chaos.as_ref().unwrap().strikes;
        assert!(strikes.contains_key(&ChaosKind::Crash), "a line of its own goes before the `*`");
        pauses.insert(strikes.contains_key(&ChaosKind::Pause));
    }
    assert_eq!(pauses.len(), 2, "what has no line of its own is drawn");
    // Each value is checked where it would stand, and each table by its absence.
    assert_eq!(code("[draw]\n\"links.wan.latency\" = [\"1 ms\", 50]\n"), "missing-unit");
    assert_eq!(code("[draw]\n\"links.wen.latency\" = [\"1 ms\"]\n"), "bad-path");
    assert_eq!(code("[draw]\n\"producers.nobody\" = { keep = 0.5 }\n"), "bad-path");
    assert_eq!(code("[draw]\n\"chaos.*\" = { keep = 0.5 }\n"), "bad-path");
    assert_eq!(code("[draw]\n\"phases.safety\" = { from = \"20 s\", to = \"10 s\" }\n[phases]\n"), "out-of-range");
    assert_eq!(code("[draw]\n\"phases.safety\" = { from = \"20 s\" }\n[phases]\n"), "missing-key");
    assert_eq!(code("[draw]\n\"phases.safety\" = []\n[phases]\n"), "empty");
    assert_eq!(code("[draw]\ntitle = [\"a\"]\n"), "bad-path");
}

#[test]
fn what_only_a_draw_breaks_is_blamed_on_the_draw() {
    let told = |draw: &str| {
        let error = with(&format!("[draw]\n{draw}\n")).unwrap_err();
        let problem = error.problems[0].clone();
        (problem.code, problem.line().unwrap(), format!("{}; {}", problem.message, problem.help.unwrap_or_default()))
    };
    let line = BASE.lines().count() + 2;
    let named = BASE.lines().position(|line| line.starts_with("topic = \"orders\"")).unwrap() + 1;
    let (code, at, message) = told("\"topics.orders\" = { keep = 0.5 }");
    assert_eq!((code, at), ("bad-draw", line), "{message}");
    assert!(message.starts_with("without `topics.orders`, which this draw may leave out"), "{message}");
    assert!(message.contains("`orders`") && !message.contains(&format!("line {named}:")), "{message}");
    let (code, at, message) = told("\"topics.orders.on\" = [\"east\", \"west\"]");
    assert_eq!((code, at), ("bad-draw", line), "{message}");
    assert!(message.starts_with("with `topics.orders.on = west`, which this draw may choose"), "{message}");
    // A value that is wrong wherever it stands is told at its own place, as before.
    assert_eq!(told("\"links.wan.latency\" = [\"1 ms\", 50]").0, "missing-unit");
}

#[test]
fn paths_that_cannot_be_drawn_are_told_why() {
    let told = |tail: &str| {
        let problem = with(tail).unwrap_err().problems[0].clone();
        assert_eq!(problem.code, "bad-path");
        format!("{}; {}", problem.message, problem.help.unwrap_or_default())
    };
    assert!(told("[draw]\n\"*\" = { keep = 0.5 }\n").contains("within one that is named"));
    assert!(told("[draw]\n\"*.orders\" = { keep = 0.5 }\n").contains("within one that is named"));
    assert!(told("[draw]\nseed = [1, 2]\n").contains("mirrorlab sweep FILE --seeds"));
    let step = "[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-1\"\n";
    for path in ["timeline.*", "timeline.*.at"] {
        let told = told(&format!("{step}[draw]\n\"{path}\" = {{ keep = 0.5 }}\n"));
        assert!(told.contains("`timeline` is a list") && told.contains("timeline.NAME"), "{told}");
    }
}

#[test]
fn all_brokers_and_all_controllers_of_a_cluster() {
    use super::action::Action;
    use super::places::NodeRef;
    let node = |text: &str| {
        let scenario = with(&format!("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"{text}\"\n")).unwrap();
        let Action::Kill { node, .. } = &scenario.stage.timeline[0].action else { panic!("not a kill") };
        node.clone()
    };
    for (text, same) in [("east/*", "east/*"), ("east/broker-*", "east/*"), ("east/controller-*", "east/controller-*")]
    {
        assert_eq!(node(text).to_string(), same);
    }
    assert_eq!(node("east/controller-*"), NodeRef::Controllers("east".to_owned()));
}

#[test]
fn a_step_is_left_out_by_its_name() {
    let steps = "[[timeline]]\nname = \"fall\"\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-1\"\n";
    let s = with(&format!("{steps}[draw]\n\"timeline.fall\" = {{ keep = 0.5 }}\n\"timeline.fall.at\" = {{ from = \"1 s\", to = \"2 s\" }}\n")).unwrap();
    let counts: BTreeSet<usize> = (0..20).map(|seed| s.rows(seed).unwrap()[0].1.stage.timeline.len()).collect();
    assert_eq!(counts, BTreeSet::from([0, 1]));
    assert_eq!(code(&format!("{steps}[draw]\n\"timeline.rise\" = {{ keep = 0.5 }}\n")), "bad-path");
}

#[test]
fn defaults_are_filled_in() {
    let s = Scenario::parse("x.toml", "title = \"t\"\n[clusters.east]\n[topics.a]\n").unwrap();
    let east = &s.stage.clusters["east"];
    assert_eq!((east.brokers, east.default_rf, east.min_isr, east.site.as_str()), (3, 3, 2, "east"));
    assert_eq!((s.stage.topics["a"].rf, s.stage.topics["a"].on.as_str()), (3, "east"));
    assert_eq!(s.stage.phases.safety, Time::secs(60));
}

#[test]
fn quantities_and_directions_are_typed() {
    let s = Scenario::parse(
        "x.toml",
        &BASE.replace(
            "latency = \"40 ms\"",
            "latency = \"40 ms\"\nbandwidth = \"1 Gbit/s\"\nloss = 1e-4\ntoward.dc-west = { latency = \"60 ms\" }",
        ),
    )
    .unwrap();
    let wan = &s.stage.links["wan"];
    assert_eq!(wan.both.bandwidth, Some(Bandwidth(1_000_000_000)));
    assert_eq!(wan.both.loss, Chance(100_000));
    assert_eq!(wan.direction(0).latency, Time::millis(60));
    assert_eq!(wan.direction(1).latency, Time::millis(40));
}

#[test]
fn config_entries_take_units_and_older_names() {
    let s = with("config = 1").unwrap_err();
    assert_eq!(s.problems[0].code, "unknown-key");
    let text = BASE.replace("topics = [\"orders\"]", "topics = [\"orders\"]\nconfig = { \"mirror.topics.exclude\" = [\"__.*\", \"x\"], \"fetch.wait.max.ms\" = \"2 s\" }");
    let s = Scenario::parse("x.toml", &text).unwrap();
    let config = &s.stage.mirrors["east-to-west"].config;
    assert_eq!(config["topics.exclude"], "__.*,x");
    assert_eq!(config["fetch.wait.max.ms"], "2000");
}

#[test]
fn families_and_names_on_two_clusters() {
    let s =
        with("[topics.tenant]\non = \"east\"\ncount = 10\n[topics.orders-west]\nname = \"orders\"\non = \"west\"\n")
            .unwrap();
    assert!(s.stage.topics["tenant"].is_named("tenant-9"));
    assert!(!s.stage.topics["tenant"].is_named("tenant-10"));
    assert!(!s.stage.topics["tenant"].is_named("tenant-01"));
    assert_eq!(s.stage.topics["orders-west"].name, "orders");
}

#[test]
fn a_step_by_condition() {
    let s = with(
        "[[timeline]]\nname = \"cut\"\nwhen = \"mirror(orders) == LOG_TRUNCATION or (lag(orders, 3) < 5 and acked(shop) >= 1_000)\"\n\
         after = \"3 batches\"\ndo = \"power-loss\"\nnode = \"leader(east/orders, 2)\"\nrestart_after = \"5 s\"\n",
    )
    .unwrap();
    let step = &s.stage.timeline[0];
    let Trigger::When { when, after, within } = &step.trigger else { panic!("{step:?}") };
    assert_eq!((after, within), (&Some(After::Batches(3)), &None));
    let text =
        "mirror(east-to-west/orders) == LOG_ALIGNMENT or (lag(east-to-west/orders, 3) < 5 and acked(shop) >= 1000)";
    assert_eq!(when.to_string(), text);
    let Condition::Any(parts) = when else { panic!("{when:?}") };
    assert!(matches!(&parts[0], Condition::Is(Term::Mirror(_), Compare::Equal, _)));
    assert!(matches!(&step.action, Action::PowerLoss { restart_after: Some(t), .. } if *t == Time::secs(5)));
}

#[test]
fn terms_look_into_logs_at_positions_and_for_topics_that_are_not_there() {
    let text = "record_epoch(west/orders, 3, 6) == 11 and position_offset(east-to-west/orders, 3) >= 6 and \
                partitions(west/orders) == 0 and resets(west/orders, 0) == 1 and stable(west/orders) > 2 and \
                stable(west/orders) <= stable(east/orders)";
    let s = with(&format!("[[timeline]]\nwhen = \"{text}\"\ndo = \"heal\"\n")).unwrap();
    let Trigger::When { when, .. } = &s.stage.timeline[0].trigger else { panic!("{s:?}") };
    assert_eq!(when.to_string(), text);
    let s = with("[expect]\nequals = { \"position_epoch(orders, 0)\" = -1, \"aborts(east/orders)\" = 0 }\n").unwrap();
    assert_eq!(s.stage.expect.equals.len(), 2);
    for wrong in ["record_epoch(west/orders, 3)", "record_epoch(west/orders, 8, 1)", "record_epoch(west/orders, 0, -1)"]
    {
        let code = code(&format!("[[timeline]]\nwhen = \"{wrong} == 1\"\ndo = \"heal\"\n"));
        assert!(matches!(code, "bad-condition" | "unknown-partition"), "{wrong}: {code}");
    }
    assert_eq!(code("[[timeline]]\nwhen = \"partitions(west/ordres) == 1\"\ndo = \"heal\"\n"), "unknown-topic");
}

#[test]
fn a_topic_on_two_clusters_must_say_which() {
    assert_eq!(code("[[timeline]]\nwhen = \"leader(orders, 0) == 'east/broker-1'\"\ndo = \"heal\"\n"), "ambiguous");
    assert!(with("[[timeline]]\nwhen = \"leader(east/orders, 0) == 'east/broker-1'\"\ndo = \"heal\"\n").is_ok());
}

#[test]
fn expectations_are_resolved() {
    let s = with(
        "[expect]\nstates = { orders = \"STOPPED\" }\nrecords = { \"west/orders\" = { at_least = 3 } }\nviolation = [\"S2\"]\n\
         equals = { \"epoch(west/orders, 0)\" = 11, \"leader(east/orders, 0)\" = \"east/broker-2\" }\nrpo_records = { p99 = 200 }\n",
    )
    .unwrap();
    assert_eq!(s.stage.expect.states["east-to-west/orders"], "STOPPED");
    assert!(s.stage.expect.records["west/orders"].admits(3));
    assert_eq!(s.stage.expect.equals.len(), 2);
}

#[test]
fn a_matrix_has_a_row_for_each_combination() {
    let s = with("[matrix]\n\"links.wan.latency\" = [\"1 ms\", \"50 ms\"]\n\"clusters.west.config.mirror.num.replica.fetchers\" = [1, 4]\n").unwrap();
    let rows = s.rows(0).unwrap();
    let labels: Vec<_> = rows.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels.len(), 4);
    assert_eq!(labels[3], "links.wan.latency=50 ms, clusters.west.config.mirror.num.replica.fetchers=4");
    assert_eq!(rows[3].1.stage.links["wan"].both.latency, Time::millis(50));
    assert_eq!(rows[3].1.stage.clusters["west"].config["mirror.num.replica.fetchers"], "4");
    assert_eq!(code("[matrix]\n\"links.wan.latency\" = [\"1 ms\", 50]\n"), "missing-unit");
    assert_eq!(code("[matrix]\n\"links.wen.latency\" = [\"1 ms\"]\n"), "bad-path");
    assert_eq!(code("[matrix]\n\"links.wan.latncy\" = [\"1 ms\"]\n"), "unknown-key");
}

#[test]
fn mistakes_are_told_apart() {
    for (tail, expected) in [
        ("[clusters.x]\nbrokers = 4294967296\n", "out-of-range"),
        ("[clusters.x]\nbrokers = -1\n", "negative"),
        ("[clusters.x]\nbrokers = 2\ndefault_rf = 3\n", "impossible-replication"),
        ("[clusters.x]\nbrokers = 995\n", "too-many"),
        ("[clusters.clients]\n", "bad-name"),
        ("[topics.a]\non = \"east\"\nrf = 4\n", "impossible-replication"),
        ("[topics.a]\non = \"east\"\npartitions = 100000000\n", "out-of-range"),
        ("[topics.a]\non = \"east\"\npartitions = 1000000\n", "too-many"),
        ("[topics.a]\n", "missing-key"),
        ("[topics.a]\non = \"eats\"\n", "unknown-cluster"),
        ("[topics.__consumer_offsets]\non = \"east\"\n", "bad-name"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-nowhere\"]\nlatency = \"1 ms\"\n", "unknown-site"),
        ("[links.l]\nbetween = [\"dc-west\", \"dc-east\"]\nlatency = \"1 ms\"\n", "duplicate"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-east\"]\nlatency = 1\n", "missing-unit"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-east\"]\nlatency = nan\n", "missing-unit"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-east\"]\nlatency = \"1 ms\"\nloss = inf\n", "not-a-quantity"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-east\"]\nlatency = \"1 ms\"\nloss = 1\n", "out-of-range"),
        ("[links.l]\nbetween = [\"dc-east\", \"dc-east\"]\nlatency = \"99999999999999999999 d\"\n", "out-of-range"),
        ("[mirrors.m]\non = \"east\"\nsource = \"east\"\ntopics = []\n", "self-mirror"),
        ("[mirrors.m]\non = \"east\"\nsource = \"west\"\ntopics = [\"ordres\"]\n", "unknown-topic"),
        ("[producers.p]\non = \"east\"\ntopic = \"orders\"\n", "missing-key"),
        ("[producers.p]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\nevery = \"1 s\"\n", "conflict"),
        ("[producers.p]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\nacks = \"1\"\nidempotent = true\n", "conflict"),
        ("[producers.p]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\nacks = 1\n", "wrong-type"),
        ("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/broker-4\"\n", "unknown-node"),
        ("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"broker-1\"\n", "unknown-node"),
        ("[[timeline]]\nat = \"1 s\"\ndo = \"kill\"\nnode = \"east/controler-*\"\n", "unknown-node"),
        ("[clusters.x]\nrelease = \"9.9\"\n", "bad-value"),
        ("[clusters.x]\nrelease = \"2.9\"\n", "bad-value"),
        ("[producers.p]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\ntombstone_every = 3\n", "conflict"),
        ("[[timeline]]\nat = \"1 s\"\ndo = \"powr-loss\"\nnode = \"east/broker-1\"\n", "unknown-action"),
        ("[[timeline]]\ndo = \"heal\"\n", "missing-key"),
        ("[[timeline]]\nat = \"1 s\"\ndo = \"clock-jump\"\nnode = \"east/broker-1\"\nby = \"1 s\"\npermanent = true\n", "conflict"),
        ("[[timeline]]\nwhen = \"mirror(orders) == MIRRORNG\"\ndo = \"heal\"\n", "unknown-state"),
        ("[[timeline]]\nat = \"0 s\"\nevery = \"1 ms\"\ndo = \"heal\"\n", "too-many"),
        ("[producers.p]\non = \"east\"\nrate = \"1/s\"\ntopic = \"orders\"\ntransactions = {}\n", "missing-key"),
        ("[producers.p]\non = \"east\"\nrate = \"1/s\"\ntopic = \"orders\"\ntransactions = { duration = \"0 s\" }\n", "zero"),
        (
            "[producers.p]\non = \"east\"\nrate = \"1/s\"\ntopic = \"orders\"\ncount = 2\ntransactions = { records = 5, id = \"x\" }\n",
            "conflict",
        ),
        (
            "[producers.p]\non = \"east\"\nrate = \"1/s\"\ntopic = \"orders\"\nidempotent = false\ntransactions = { records = 5 }\n",
            "conflict",
        ),
        ("[chaos]\ncrash = { wieght = 1 }\n", "unknown-key"),
        ("[chaos]\nbit_rot = {}\n", "conflict"),
        ("[chaos]\nmode = \"within_tolerance\"\npower_loss_of_all = {}\n", "conflict"),
        ("[chaos]\nmode = \"beyond\"\ncrash = {}\n", "unknown-value"),
        ("[chaos]\nevery = \"0 s\"\ncrash = {}\n", "zero"),
        ("[phases]\nsafety = \"3652 d\"\nconverge = \"1 d\"\n", "out-of-range"),
        ("[expect]\nviolation = [\"S99\"]\n", "unknown-name"),
        ("[expect]\nmust_reach = [\"Nirvana\"]\n", "unknown-name"),
        ("[expect]\nmust_reach = [{ mark = \"Nirvana\", at_least = 2 }]\n", "unknown-name"),
        ("[expect]\nmust_reach = [\"elected\", { mark = \"elected\", at_least = 2 }]\n", "duplicate"),
        ("[expect]\nmust_reach = [{ mark = \"elected\" }]\n", "missing-key"),
        ("[expect]\nmust_reach = [{ mark = \"elected\", at_least = 0 }]\n", "out-of-range"),
        ("[expect]\nmust_reach = [{ mark = \"elected\", atleast = 2 }]\n", "unknown-key"),
        ("[[timeline]]\nwhen = \"mirror(orders) == desired(orders)\"\ndo = \"heal\"\n", "bad-condition"),
        ("[expect]\nmust_reach = [{ mark = \"elected\", at_most = 2 }]\n", "missing-key"),
        ("[expect]\nmust_reach = [{ mark = \"elected\", at_least = 3, at_most = 2 }]\n", "out-of-range"),
        ("[expect]\nmust_reach = [2]\n", "wrong-type"),
        ("[expect]\nmust_reach = \"elected\"\n", "wrong-type"),
        ("[chaos]\nreset = { inside_task = 0.5 }\n", "unknown-key"),
        ("[expect]\nrpo_records = {}\n", "missing-key"),
        ("[expect]\nrpo = { p95 = \"1 s\" }\n", "unknown-key"),
        ("[expect]\nrto = { max = 5 }\n", "missing-unit"),
        ("[expect]\nrpo_records = { p50 = 5, max = 4 }\n", "conflict"),
        ("[plan]\nscenario = 3\n", "wrong-type"),
    ] {
        assert_eq!(code(tail), expected, "{tail}");
    }
    assert_eq!(first("title = \"t\"\nguards_off = [\"FetchOffsetMatchs\"]\n[clusters.a]\n").0, "unknown-name");
    let unmirrored = "title = \"t\"\n[clusters.a]\n[expect]\nrpo = { max = \"1 s\" }\n";
    assert_eq!(first(unmirrored).0, "conflict");
    assert_eq!(first("title = \"t\"\nseed = -1\n[clusters.a]\n").0, "negative");
    assert_eq!(first("title = \"t\"\ntitle = \"t\"\n[clusters.a]\n").0, "duplicate-key");
    assert_eq!(first("title = \"t\n").0, "syntax");
    assert_eq!(first("").0, "empty");
}

/// Steps that order something of mirrors, and transactions: where it is wrong, and what is meant.
#[test]
fn what_is_wrong_with_orders_and_transactions_is_told_with_its_place_and_the_nearest_name() {
    let step = |keys: &str| format!("[[timeline]]\nat = \"1 s\"\n{keys}\n");
    let producer = |keys: &str| format!("[producers.p]\non = \"east\"\ntopic = \"orders\"\nrate = \"1/s\"\n{keys}\n");
    let stop = "do = \"stop-mirror\"\nmirror = \"east-to-west\"\n";
    for (tail, line, column, said) in [
        (
            step("do = \"stop-mirror\"\nmirror = \"east-to-wst\""),
            4,
            10,
            "there is no mirror `east-to-wst`; did you mean `east-to-west`?",
        ),
        (
            step("do = \"stop-mirror\""),
            1,
            1,
            "`mirror` is missing in step 1 of the timeline; add `mirror = \"east-to-west\"`",
        ),
        (
            step(&format!("{stop}topics = [\"ordres\"]")),
            5,
            11,
            "cluster `east` has no topic `ordres`; did you mean `orders`?",
        ),
        (step(&format!("{stop}topics = []")), 5, 1, "leave `topics` out if all are meant"),
        (step(&format!("{stop}topics = \"orders\"")), 5, 10, "is a list of texts, not a text"),
        (
            step(&format!("{stop}expect_error = \"INVALID_CLUSTER_MIRROR_STATE\"")),
            5,
            16,
            "did you mean `INVALID_CLUSTER_MIRROR_STATES`?",
        ),
        (step(&format!("{stop}operator = 9")), 5, 12, "it is from 1 to 8"),
        (step("do = \"kill\"\nnode = \"west/broker-1\"\noperator = 2"), 5, 1, "`kill` is no operator's to do"),
        (step("do = \"recover-mirror\"\nmirror = \"east-to-west\"\nkeep = \"sorce\""), 5, 8, "did you mean `source`?"),
        (
            step("do = \"cli\"\non = \"wst\"\nargs = \"--list\""),
            4,
            6,
            "there is no cluster `wst`; did you mean `west`?",
        ),
        (step("do = \"cli\"\non = \"west\""), 1, 1, "`args` is missing in step 1 of the timeline"),
        (step("do = \"cli\"\non = \"west\"\nargs = 5"), 5, 8, "is a text, not a whole number"),
        (
            step("do = \"cli\"\non = \"west\"\nargs = \"--list\"\nexpected_exit = 0"),
            6,
            1,
            "did you mean `expect_exit`?",
        ),
        (step("do = \"cli\"\non = \"west\"\nargs = \"--list\"\nexpect_exit = 300"), 6, 15, "it is from 0 to 1"),
        (producer("transactions = { records = 5, tiemout = \"5 s\" }"), 5, 31, "did you mean `timeout`?"),
        (producer("transactions = { records = 5, timeout = 30 }"), 5, 41, "has no unit: 30"),
        (producer("transactions = { records = 5, abort = 1.5 }"), 5, 39, "is not a probability: 1.5"),
        (producer("transactions = { records = 5, id = \"\" }"), 5, 36, "the producer's own name is taken then"),
        (producer("acks = \"1\"\ntransactions = { records = 5 }"), 5, 1, "write `acks = \"all\"`"),
        (producer("idempotent = false\ntransactions = { records = 5 }"), 5, 1, "remove `idempotent = false`"),
    ] {
        let diagnostics = with(&tail).unwrap_err().to_string();
        let place = format!("x.toml:{}:{column}: ", BASE.lines().count() + line);
        let told = diagnostics.lines().next().unwrap();
        assert!(told.starts_with(&place) && told.contains(said), "{tail}\nexpected {place}…{said}\n{diagnostics}");
    }
}

#[test]
fn diagnostics_read_well() {
    let text = r#"title = "Everything wrong at once"
tier = "fats"
colour = "red"

[clusters.east]
brokers = 4294967296
site = "dc-east"
config = { min.insync.replicas = 2, "num.replica.fetchrs" = 2, "replica.lag.time.max.ms" = "soon" }

[clusters.west]
site = "dc-west"

[links.wan]
between = ["dc-east", "dc-wets"]
latency = 40
bandwith = "1 Gbit/s"
jitter = "-2 ms"

[topics.orders]
on = "east"
rf = 4

[mirrors.loop]
on = "east"
source = "east"
topics = ["orders"]

[producers.shop]
on = "west"
topic = "orders"
rate = "2000"

[[timeline]]
when = "mirror(orders) = MIRRORING"
do = "power_loss"
node = "east/broker-9"
"#;
    let error = Scenario::parse("wrong.toml", text).unwrap_err();
    insta::assert_snapshot!("everything_wrong", error.render(false));
    insta::assert_snapshot!("everything_wrong_in_lines", error.to_string());
}

#[test]
fn conditions_point_at_the_word_that_is_wrong() {
    let tail = "[[timeline]]\nwhen = \"lag(orders) == 0 and mirror(oders) == MIRRORING and lag(orders, 8) == 0 and read(bill) >= 1\"\ndo = \"heal\"\n";
    insta::assert_snapshot!("wrong_condition", with(tail).unwrap_err().render(false));
}

#[test]
fn a_huge_line_is_cut() {
    let text = format!("title = \"t\"\n[clusters.east]\nwhy = \"{}\"\n", "é".repeat(1 << 20));
    let shown = Scenario::parse("x.toml", &text).unwrap_err().render(false);
    assert!(shown.len() < 4_000, "{}", shown.len());
    assert!(shown.contains("unknown key `why`"), "{shown}");
}

#[test]
fn twenty_problems_are_shown_and_the_rest_counted() {
    let keys: String = (0..50_000).map(|n| format!("k{n} = 1\n")).collect();
    let error = Scenario::parse("x.toml", &format!("title = \"t\"\n{keys}[clusters.east]\n")).unwrap_err();
    assert_eq!((error.problems.len(), error.more), (20, 49_980));
    assert!(error.to_string().ends_with("x.toml: 50000 problems (the first 20 are shown)"));
}

#[test]
fn bombs_are_refused_before_they_cost_anything() {
    let deep = |open: &str, close: &str, n: usize| format!("title = {}1{}\n", open.repeat(n), close.repeat(n));
    assert_eq!(first(&deep("[", "]", 1_000_000)).0, "too-deep");
    assert_eq!(first(&deep("{a=", "}", 100_000)).0, "too-deep");
    assert_eq!(first(&format!("{}a = 1", "a.".repeat(1_000_000))).0, "too-deep");
    assert_eq!(first(&format!("[{}a]", "a.".repeat(1_000_000))).0, "too-deep");
    assert_eq!(first(&"a".repeat(15 << 20)).0, "too-long");
    assert_eq!(first(&"a\n".repeat(2 << 20)).0, "too-large");
    assert_eq!(first(&"[".repeat(40)).0, "too-deep");
    assert_eq!(first(&"[[\n".repeat(40)).0, "too-deep");
}

/// The keys of one table in the schema, that of its parts included.
fn schema_keys(schema: &serde_json::Value, at: &str) -> BTreeSet<String> {
    fn collect(schema: &serde_json::Value, of: &serde_json::Value, keys: &mut BTreeSet<String>) {
        if let Some(properties) = of.get("properties").and_then(|p| p.as_object()) {
            keys.extend(properties.keys().cloned());
        }
        if let Some(target) = of.get("$ref").and_then(|r| r.as_str()) {
            collect(schema, schema.pointer(target.trim_start_matches('#')).unwrap(), keys);
        }
        for list in ["oneOf", "anyOf", "allOf"] {
            for part in of.get(list).and_then(|l| l.as_array()).into_iter().flatten() {
                collect(schema, part, keys);
            }
        }
    }
    let mut keys = BTreeSet::new();
    collect(schema, schema.pointer(at).unwrap_or_else(|| panic!("no {at}")), &mut keys);
    keys
}

const TABLES: &[(&str, &str)] = &[
    ("clusters", "Cluster"),
    ("links", "Link"),
    ("topics", "Topic"),
    ("mirrors", "Mirror"),
    ("producers", "Producer"),
    ("consumers", "Consumer"),
];

#[test]
fn the_schema_has_every_key_that_a_file_may_have() {
    let schema = schema();
    let file: toml::Table = toml::from_str(include_str!("../plan/everything.toml")).unwrap();
    let root = schema_keys(&schema, "");
    for key in file.keys() {
        assert!(root.contains(key), "the schema lacks {key}");
    }
    for (table, name) in TABLES {
        let keys = schema_keys(&schema, &format!("/$defs/{name}"));
        for inner in file[*table].as_table().unwrap().values() {
            for key in inner.as_table().unwrap().keys() {
                assert!(keys.contains(key), "{name} lacks {key}");
            }
        }
    }
    let keys = schema_keys(&schema, "/$defs/Step");
    for step in file["timeline"].as_array().unwrap() {
        for key in step.as_table().unwrap().keys() {
            assert!(keys.contains(key), "Step lacks {key}");
        }
    }
    for name in Action::NAMES {
        assert!(schema.to_string().contains(&format!("\"const\":\"{name}\"")), "no action {name}");
    }
}

#[test]
fn the_reader_knows_every_key_of_the_schema() {
    let schema = schema();
    let knows = |head: &str, key: &str, place: &str| {
        let text = if head.is_empty() { format!("{key} = 1\n") } else { format!("title = \"t\"\n{head}\n{key} = 1\n") };
        let Err(error) = Scenario::parse("x.toml", &text) else { return };
        for problem in error.problems.iter().filter(|p| p.code == "unknown-key") {
            assert!(!problem.message.contains(&format!("`{key}`")), "{place}: {key} is unknown to the reader");
        }
    };
    for key in schema_keys(&schema, "") {
        knows("", &key, "root");
    }
    for (table, name) in TABLES {
        for key in schema_keys(&schema, &format!("/$defs/{name}")) {
            knows(&format!("[{table}.x]"), &key, name);
        }
    }
    for (table, name) in [("phases", "Phases"), ("expect", "Expect"), ("chaos", "Chaos"), ("plan", "Provenance")] {
        for key in schema_keys(&schema, &format!("/$defs/{name}")) {
            knows(&format!("[{table}]"), &key, name);
        }
    }
}

#[test]
fn the_schema_is_as_reviewed() {
    insta::assert_snapshot!("schema", serde_json::to_string_pretty(&schema()).unwrap());
}

#[test]
fn action_names_agree() {
    let s = with(
        "[[timeline]]\nat = \"1 s\"\ndo = \"reset-connections\"\nlink = \"wan\"\n[[timeline]]\nat = \"1 s\"\ndo = \"bump-epoch\"\non = \"east\"\ntopic = \"orders\"\n",
    )
    .unwrap();
    for step in &s.stage.timeline {
        assert!(Action::NAMES.contains(&step.action.name()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn no_text_panics(text in "\\PC{0,200}") {
        let _ = Scenario::parse("x.toml", &text).map_err(|e| (e.render(false), e.to_string()));
    }

    #[test]
    fn no_toml_like_text_panics(text in "([a-z]{1,8}|[\\[\\]{}=.,\"'#\n ]|[0-9]{1,5}|\"[a-z0-9 ]{0,8}\"|title|clusters|links|timeline|matrix|chaos|expect){0,60}") {
        let _ = Scenario::parse("x.toml", &text).map_err(|e| (e.render(false), e.to_string()));
    }

    #[test]
    fn no_mutated_file_panics(whole in any::<bool>(), edits in proptest::collection::vec((0usize..12_000, 0usize..40, "\\PC{0,6}|\n|\"|\\[|=|-|9{1,25}"), 1..6)) {
        let mut text = if whole { include_str!("../plan/everything.toml") } else { include_str!("../../tour.toml") }.to_owned();
        for (at, cut, put) in edits {
            let floor = |n: usize| (0..=n.min(text.len())).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
            let (start, end) = (floor(at % (text.len() + 1)), floor(at % (text.len() + 1) + cut));
            text.replace_range(start..end, &put);
        }
        let _ = Scenario::parse("x.toml", &text).map_err(|e| (e.render(false), e.to_string()));
    }
}
