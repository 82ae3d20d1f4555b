//! The async face: a test in Rust looks on, acts and waits, and is as repeatable as a scenario file.

use mirrorlab_reports::record::{Record, Verdict};
use mirrorlab_scenarios::api::Experiment;
use mirrorlab_scenarios::conditions::Seen;
use mirrorlab_scenarios::face::{BoxError, Trouble, WorldHandle};
use mirrorlab_scenarios::format::Scenario;
use mirrorlab_sim::node::Condition;
use std::time::Duration;

const TWO: &str = r#"
title = "two clusters, and nothing happens by itself"
why = "a stage for tests in Rust"
[clusters.east]
site = "dc-east"
[clusters.west]
site = "dc-west"
first_producer_id = 1000000
config = { "mirror.metadata.refresh.interval.ms" = "2 s", "mirror.state.topic.num.partitions" = 2 }
[links.wan]
between = ["dc-east", "dc-west"]
latency = "10 ms"
[topics.orders]
on = "east"
partitions = 2
[mirrors.east-to-west]
on = "west"
source = "east"
topics = ["orders", "audit.*"]
later = true
[producers.shop]
on = "east"
topic = "orders"
rate = "50/s"
stop = "10 s"
[phases]
safety = "10 s"
"#;

fn two(seed: u64) -> Experiment {
    Scenario::parse("two.toml", TWO).unwrap().seed(seed)
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Creates topics, mirrors one, loses its leader, waits until nothing is missing.
async fn story(world: WorldHandle) -> Result<(), BoxError> {
    world.admin("east").create_topic("audit", 4, 3).await?;
    world.wait_for("isr(east/audit) == 3", secs(10)).await?;
    let west = world.admin("west");
    west.create_mirror("east-to-west").await?;
    west.start_topics("east-to-west", &["orders", "audit"]).await?;
    world.wait_for("mirror(orders) == MIRRORING and mirror(audit) == MIRRORING", secs(30)).await?;
    world.produce("shop", 200).await?;

    let leader = world.see("leader(west/orders, 0)")?;
    let Some(Some(Seen::Node(Some(leader)))) = leader.first() else { return Err("nobody leads".into()) };
    world.kill(leader).await?;
    assert!(!world.holds(&format!("up({leader})"))?);
    world.sleep(secs(2)).await;
    world.start(leader).await?;

    let cut = world.partition("east", "west").await?;
    world.sleep(Duration::from_millis(1_500)).await;
    cut.end().await;
    // The producer of the stage stops at 10 s; what the mirror knows of the source is a little older.
    world.sleep(secs(12).saturating_sub(world.now())).await;
    world.wait_for("mirror(orders) == MIRRORING and lag(orders) == 0", secs(90)).await?;
    assert_eq!(world.lag("orders")?, Some(0));
    assert_eq!(world.records("west/orders"), world.records("east/orders"));
    assert!(world.records("west/orders") >= Some(200));
    Ok(())
}

fn passed(record: &Record) {
    assert_eq!(record.verdict, Verdict::Pass, "{}\n{:#?}", record.reason, record.violations);
}

#[test]
fn a_test_in_rust_lives_the_same_history_twice() {
    let first = two(7).run_async(story).unwrap();
    passed(&first);
    let again = two(7).run_async(story).unwrap();
    assert_eq!((again.trace_hash, again.events), (first.trace_hash.clone(), first.events));
    let other = two(8).run_async(story).unwrap();
    assert_ne!(other.trace_hash, first.trace_hash);
    assert!(first.story.iter().any(|line| line.text.starts_with("partition east | west")), "{:#?}", first.story);
}

#[test]
fn waiting_is_exact_and_between_events() {
    let record = two(1).run_async(|world| async move {
        let began = world.now();
        world.sleep(Duration::from_nanos(1_234_567)).await;
        assert_eq!(world.now() - began, Duration::from_nanos(1_234_567));
        // Tasks of madsim may share the world.
        let other = world.clone();
        let task = madsim::task::spawn_local(async move {
            other.sleep(secs(1)).await;
            other.kill("east/broker-2").await.map(|()| other.now())
        });
        world.wait_for("acked(shop) >= 10", secs(9)).await?;
        let killed_at = task.await??;
        assert_eq!(killed_at, began + Duration::from_nanos(1_234_567) + secs(1));
        let down = world.look(|world, _| {
            let node = world.node_named("east/broker-2").unwrap();
            world.node(node).condition
        });
        assert_eq!(down, Condition::Down);
        Ok(())
    });
    // Nothing was mirrored, so the run as a whole proves nothing about mirrors; what the body saw counts.
    assert_eq!(record.unwrap().verdict, Verdict::Vacuous);
}

#[test]
fn mistakes_and_refusals_say_what_is_wrong() {
    let record = two(2).run_async(|world| async move {
        let Err(Trouble::Text(told)) = world.kill("east/broker-9").await else { return Err("taken".into()) };
        assert!(told.to_string().contains("broker-1 to broker-3"), "{told}");
        let Err(Trouble::Text(told)) = world.holds("lag(order) == 0") else { return Err("taken".into()) };
        assert!(
            told.to_string().contains("condition:1:6: there is no mirrored topic `order`; did you mean `orders`?"),
            "{told}"
        );
        let Err(Trouble::Text(told)) = world.admin("wets").delete_topic("x").await else { return Err("taken".into()) };
        assert!(told.to_string().contains("did you mean `west`?"), "{told}");
        let late = world.wait_for("isr(east/orders) == 9", Duration::from_millis(300)).await.unwrap_err();
        assert!(late.to_string().contains("it was: isr(east/orders) = 3 3"), "{late}");
        let refused = world.admin("east").create_topic("wide", 1, 7).await.unwrap_err();
        assert!(matches!(refused, Trouble::Refused(..)), "{refused}");
        Err("the body's own error".into())
    });
    assert_eq!(record.unwrap_err().to_string(), "the body's own error");
}

#[test]
fn a_body_that_never_ends_is_told_of() {
    let scenario =
        TWO.replace("safety = \"10 s\"", "safety = \"1 s\"\nconverge = \"5 s\"").replace("stop = \"10 s\"\n", "");
    let forever = Scenario::parse("two.toml", &scenario).unwrap().seed(1).run_async(|_| std::future::pending());
    assert!(forever.unwrap_err().to_string().contains("had not ended"));
}
