use super::*;

fn case(text: &str) -> Table {
    text.parse().unwrap()
}

const WORLD: &str = r#"
[clusters.east]
[clusters.west]
[topics.orders]
on = "east"
[topics.other]
on = "west"
[mirrors.m]
on = "west"
source = "east"
topics = ["orders"]
[producers.shop]
on = "east"
topics = ["orders"]
[consumers.both]
on = "west"
topics = ["orders", "other"]
[[timeline]]
at = "1 s"
do = "kill"
node = "east/broker-1"
[[timeline]]
at = "2 s"
do = "elect"
on = "west"
topic = "other"
"#;

#[test]
fn names_are_words_of_their_own() {
    let value = |text: &str| Value::String(text.to_owned());
    assert!(mentions(&value("mirror(east/orders) == MIRRORING"), "orders"));
    assert!(mentions(&value("east/broker-1"), "east") && mentions(&value("east/broker-1"), "broker-1"));
    assert!(!mentions(&value("east/broker-12"), "broker-1"));
    assert!(!mentions(&value("dc-east"), "east"));
}

#[test]
fn what_goes_takes_with_it_what_speaks_of_it() {
    let left = without(&case(WORLD), "clusters", "east");
    assert!(cast(&left, "mirrors").is_none() && cast(&left, "producers").is_none());
    assert_eq!(steps(&left).len(), 1);
    let left = without(&case(WORLD), "topics", "orders");
    assert!(cast(&left, "mirrors").is_none() && cast(&left, "producers").is_none());
    let topics = cast(&left, "consumers").and_then(|c| c["both"].get("topics")).cloned();
    assert_eq!(topics, Some(Value::Array(vec![Value::String("other".to_owned())])));
    assert_eq!(steps(&left).len(), 2);
    let left = without(&case(WORLD), "topics", "other");
    assert_eq!(steps(&left).len(), 1);
}

#[test]
fn a_leaf_is_found_and_taken_away() {
    let all = case(WORLD);
    let paths = leaves(&all);
    let path = ["mirrors", "m", "source"].map(str::to_owned);
    assert!(paths.contains(&path.to_vec()));
    let left = without_leaf(&all, &path).unwrap();
    assert_eq!(find(&left, &path), None);
    assert_eq!(leaves(&left).len(), paths.len() - 1);
}
