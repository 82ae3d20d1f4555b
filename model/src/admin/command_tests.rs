use super::*;
use crate::ids::NodeId;

fn call(line: &str) -> Result<Action, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    parse(&words, Some("west")).map(|call| call.action)
}

fn refused(line: &str) -> String {
    call(line).unwrap_err()
}

#[test]
fn cli_02_exactly_one_action_per_call() {
    // The actions of the older tools; every pair of them, and none at all: 29 calls.
    let actions = ["--create", "--start", "--stop", "--delete", "--pause", "--resume", "--list", "--describe"];
    let expected = "Command must include exactly one action: --create, --start, --stop, --pause, --resume, --recover, \
                    --list, --describe, --delete";
    assert_eq!(refused(""), expected);
    let mut calls = 1;
    for (at, first) in actions.iter().enumerate() {
        for second in &actions[at + 1..] {
            assert_eq!(refused(&format!("{first} {second} --mirror m --topics t")), expected);
            calls += 1;
        }
    }
    assert_eq!(calls, 29);
}

#[test]
fn option_rules_have_their_messages() {
    assert_eq!(parse(&["--list"], None).unwrap_err(), "--bootstrap-server must be specified");
    for action in ["--create", "--start", "--stop", "--pause", "--resume", "--delete"] {
        assert_eq!(refused(&format!("{action} --topics t")), "--mirror must be specified", "{action}");
    }
    assert_eq!(refused("--create --mirror m"), "--mirror-config must be specified when creating a mirror");
    for (action, doing) in [("start", "starting"), ("stop", "stopping"), ("pause", "pausing"), ("resume", "resuming")] {
        let expected = format!("--topics must be specified when {doing} mirror topic(s)");
        assert_eq!(refused(&format!("--{action} --mirror m")), expected);
    }
    assert_eq!(refused("--stop --mirror m --topics t --exclude u"), "--exclude is only valid with --start");
    assert_eq!(refused("--list --json"), "--json is only supported for describing mirrors");
    assert_eq!(refused("--list --failed"), "--failed is only supported for describing mirrors");
    assert_eq!(refused("--list --mirrors m"), "--mirrors is not a recognized option");
    assert_eq!(refused("--list --mirror"), "Option --mirror requires an argument");
}

#[test]
fn both_names_of_the_tool_and_both_forms_of_a_value_are_understood() {
    let describe = Action::Describe { mirror: Some("m".into()), json: true, failed: false };
    assert_eq!(call("kafka-mirrors.sh --describe --mirror=m --json"), Ok(describe.clone()));
    assert_eq!(call("kafka-cluster-mirrors --json --mirror m --describe"), Ok(describe));
    assert_eq!(call("--describe"), Ok(Action::Describe { mirror: None, json: false, failed: false }));
    let topics = ["a", "b-.*"].map(Arc::from).to_vec();
    assert_eq!(call("--pause --mirror m --topics a,b-.*"), Ok(Action::Pause("m".into(), topics)));
    let own = parse(&["--list", "--bootstrap-server", "east"], Some("west")).unwrap();
    assert_eq!(&*own.bootstrap, "east");
}

#[test]
fn bad_12_a_bad_pattern_is_refused_before_anything_is_sent() {
    assert_eq!(refused("--start --mirror m --topics ["), "Invalid regular expression: [");
    assert_eq!(refused("--start --mirror m --topics a --exclude (?=x)"), "Invalid regular expression: (?=x)");
    // What would need more room than a pattern may is refused, and so is an item that says nothing; what only looks for trouble is
    // understood, for a match takes a time that grows with the name alone.
    let bomb = "(((a{1,200}){1,200}){1,200}){1,200}";
    assert!(refused(&format!("--stop --mirror m --topics {}", bomb.replace(',', ""))).starts_with("Invalid regular"));
    let long = refused(&format!("--stop --mirror m --topics {}", "a".repeat(10_000)));
    assert!(long.ends_with("… (10000 bytes; the limit is 4096)"), "{long}");
    assert!(call("--stop --mirror m --topics (a+)+b").is_ok());
    assert_eq!(refused("--stop --mirror m --topics a,,b"), "Invalid regular expression: an empty item");
    assert_eq!(refused("--start --mirror m --topics a --exclude b,"), "Invalid regular expression: an empty item");
}

#[test]
fn a_file_of_settings_becomes_the_mirror_s_configs() {
    let create = parse(&["--create", "--mirror", "m", "--mirror-config", "f"], Some("west")).unwrap();
    let text = "# where from\nbootstrap.servers = 3,4\n\nfetch.wait.max.ms=500\n";
    let Ok(Command::CreateClusterMirror { mirror, source, configs }) =
        create.command(|name| (name == "f").then(|| text.to_owned()))
    else {
        panic!("no creation");
    };
    assert_eq!((&*mirror, source), ("m", vec![NodeId(3), NodeId(4)]));
    assert_eq!(configs[1], ("fetch.wait.max.ms".into(), "500".into()));
    assert_eq!(create.command(|_| None).unwrap_err(), "f (No such file or directory)");
    assert_eq!(create.command(|_| Some("oops".into())).unwrap_err(), "not a setting: oops");
}
