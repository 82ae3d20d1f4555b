//! Slips in scenario files: each is told once, with what was meant.

use super::*;

/// One slip, one problem: what only follows from it is not told.
#[test]
fn the_echo_of_a_slip_is_not_told() {
    let base = "title = \"t\"\n[clusters.east]\nsite = \"dc-east\"\n[clusters.west]\nsite = \"dc-west\"\n\
                [links.wan]\nbetween = [\"dc-east\", \"dc-west\"]\nlatency = \"40 ms\"\n\
                [topics.orders]\non = \"east\"\npartitions = 4\n\
                [mirrors.m]\non = \"west\"\nsource = \"east\"\ntopics = [\"orders\"]\n\
                [producers.shop]\non = \"east\"\ntopic = \"orders\"\nrate = \"200/s\"\n\
                [consumers.c]\non = \"west\"\ntopic = \"orders\"\n\
                [[timeline]]\nwhen = \"mirror(orders) == MIRRORING\"\nafter = \"20 batches\"\ndo = \"kill\"\n\
                node = \"leader(west/orders, 0)\"\n";
    Scenario::parse("t.toml", base).unwrap();
    for (right, slip, told) in [
        ("[clusters.east]", "[cluster.east]", "did you mean `clusters`?"),
        ("[topics.orders]", "[topcs.orders]", "did you mean `topics`?"),
        ("[links.wan]", "[link.wan]", "did you mean `links`?"),
        ("[mirrors.m]", "[mirror.m]", "did you mean `mirrors`?"),
        ("[topics.orders]\non = ", "[topics.orders]\nno = ", "unknown key `no` in [topics.orders]; did you mean `on`?"),
        (
            "[topics.orders]\non = \"east\"",
            "[topics.orders]\non = \"eats\"",
            "there is no cluster `eats`; did you mean `east`?",
        ),
        ("source = \"east\"", "source = \"eats\"", "there is no cluster `eats`; did you mean `east`?"),
        ("topics = [", "topic = [", "unknown key `topic` in [mirrors.m]; did you mean `topics`?"),
        (
            "topics = [\"orders\"]",
            "topics = [\"ordes\"]",
            "cluster `east` has no topic `ordes`; did you mean `orders`?",
        ),
        ("between = [\"dc-east\"", "between = [\"dc-eats\"", "did you mean `dc-east`?"),
        ("when = ", "wen = ", "unknown key `wen` in step 1 of the timeline; did you mean `when`?"),
        ("node = ", "nod = ", "unknown key `nod` in step 1 of the timeline; did you mean `node`?"),
        ("latency = ", "latncy = ", "unknown key `latncy` in [links.wan]; did you mean `latency`?"),
        ("title = ", "titel = ", "unknown key `titel` in the file; did you mean `title`?"),
        ("leader(west", "leadr(west", "`leadr(west/orders, 0)` is not a node; write CLUSTER/broker-N"),
        ("partitions = 4", "partitions = \"4\"", "write it as `partitions = 4`"),
    ] {
        let error = Scenario::parse("t.toml", &base.replacen(right, slip, 1)).unwrap_err();
        let all = error.to_string();
        assert!(error.problems.len() == 1 && all.contains(told), "{slip}: {all}");
    }
    // Two slips are two problems.
    let two = base.replace("latency", "latncy").replace("when = ", "wen = ");
    assert_eq!(Scenario::parse("t.toml", &two).unwrap_err().problems.len(), 2);
}

#[test]
fn paths_without_quotes_and_seeds_beyond_toml_are_told_as_such() {
    let file = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\n";
    let told = |text: &str| Scenario::parse("t.toml", text).unwrap_err().to_string();
    for draw in ["topics.t.partitions = [1, 2]", "topics.t.partitions = { keep = 0.5 }"] {
        let told = told(&format!("{file}[draw]\n{draw}\n"));
        assert!(told.contains("`topics.t.partitions` in [draw] is a path, and stands without quotes"), "{told}");
        assert!(
            told.contains("write it as one key, `\"topics.t.partitions\" = …`") && told.contains("1 problem"),
            "{told}"
        );
    }
    let matrix = told(&format!("matrix = {{ topics.t.partitions = [1, 2] }}\n{file}"));
    assert!(matrix.contains("`topics.t.partitions` in the matrix is a path, and stands without quotes"), "{matrix}");
    for seed in ["9223372036854775808", "\"9223372036854775808\""] {
        let told = told(&format!("seed = {seed}\n{file}"));
        assert!(told.contains("write it as a text: `seed = \"0x8000000000000000\"`"), "{told}");
    }
    let large = Scenario::parse("t.toml", &format!("seed = \"0x8000000000000000\"\n{file}")).unwrap();
    assert_eq!(large.seed, Some(1 << 63));
}

/// Each value is read with the file, and not with all other values: their number counts once, not squared.
#[test]
fn many_draws_are_read_in_time_that_grows_as_they_do() {
    let one = "[topics.NAME]\non = \"east\"\n";
    let topics: String = (0..1_000).map(|n| one.replace("NAME", &format!("t{n}"))).collect();
    let file = format!("title = \"t\"\n[clusters.east]\nbrokers = 1\n{topics}");
    let wide = format!("{file}[draw]\n\"topics.*.partitions\" = [1, 2, 3]\n");
    Scenario::parse("t.toml", &wide).unwrap();
    // What only one of many cannot take is found all the same.
    let bad = wide
        .replace("[topics.t777]\n", "[topics.t777]\nrf = 1\n")
        .replace("\"topics.*.partitions\"", "\"topics.*.rf\"");
    let told = Scenario::parse("t.toml", &bad).unwrap_err().to_string();
    assert!(told.contains("`rf = 2`") || told.contains("which this draw may choose"), "{told}");
    let small = "title = \"t\"\n[clusters.east]\nbrokers = 1\n[topics.t]\non = \"east\"\n[draw]\n";
    let values = |n: usize| format!("{small}\"topics.t.partitions\" = [{}]\n", vec!["1"; n].join(", "));
    Scenario::parse("t.toml", &values(8_000)).unwrap();
    let told = Scenario::parse("t.toml", &values(10_001)).unwrap_err().to_string();
    assert!(told.contains("so many values to draw from are too many; the limit is 10000"), "{told}");
}
