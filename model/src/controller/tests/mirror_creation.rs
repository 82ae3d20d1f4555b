//! Mirrors that cannot be, and mirrors that many want to create at once (BAD-01 to BAD-04, BAD-12): what is refused is named, and
//! leaves no record.

use super::*;
use crate::coordinator::routing::STATE_TOPIC;

const SOURCE: [(&str, &str); 2] = [("bootstrap.servers", "1,2"), ("source.cluster.id", "west")];

fn rig() -> Rig {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    rig
}

fn request(name: &str, configs: &[(&str, &str)]) -> CreateClusterMirrorRequest {
    let configs = configs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    CreateClusterMirrorRequest { mirror: name.into(), configs }
}

fn create(rig: &mut Rig, name: &str, configs: &[(&str, &str)]) -> (ErrorCode, String) {
    let Body::CreateClusterMirrorResponse(answer) = rig.ask(request(name, configs)) else { panic!() };
    (answer.error, answer.message.as_deref().unwrap_or_default().to_owned())
}

/// Nothing was written, and nothing is there.
fn is_untouched(rig: &Rig, end: i64) -> bool {
    let image = rig.controller.image();
    rig.end() == end && image.mirrors().count() == 0 && image.topic_by_name(STATE_TOPIC).is_none()
}

#[test]
fn bad_01_what_is_missing_is_named() {
    let mut rig = rig();
    let end = rig.end();
    let cases: [(&[(&str, &str)], &str); 4] = [
        (&[], "'bootstrap.servers' is missing"),
        (&SOURCE[1..], "'bootstrap.servers' is missing"),
        (&[("bootstrap.servers", ""), SOURCE[1]], "'bootstrap.servers' is missing"),
        (&SOURCE[..1], "'source.cluster.id' is missing"),
    ];
    for (configs, why) in cases {
        assert_eq!(create(&mut rig, "m", configs), (ErrorCode::InvalidRequest, why.to_owned()));
        assert!(is_untouched(&rig, end), "{configs:?}");
    }
}

#[test]
fn bad_02_a_setting_that_nobody_knows_is_refused_by_name() {
    let mut rig = rig();
    let end = rig.end();
    let (error, why) = create(&mut rig, "m", &[SOURCE[0], SOURCE[1], ("invalid.config", "foo")]);
    assert_eq!(error, ErrorCode::InvalidConfig);
    assert!(why.contains("invalid.config"), "{why}");
    assert!(is_untouched(&rig, end));

    assert_eq!(create(&mut rig, "m", &SOURCE).0, ErrorCode::None);
    let end = rig.end();
    let altered = rig.set_config(ConfigResource::ClusterMirror("m".into()), "invalid.config", Some("foo"));
    assert_eq!(altered.error, ErrorCode::InvalidConfig);
    assert!(altered.message.is_some_and(|why| why.contains("invalid.config")));
    assert_eq!(rig.end(), end);
}

#[test]
fn bad_03_names_that_are_none() {
    let mut rig = rig();
    let end = rig.end();
    let long = "m".repeat(250);
    for name in ["", &*long, "a b", "a/b", ".", "..", "a\nb", "mä", "-m"] {
        let (error, why) = create(&mut rig, name, &SOURCE);
        assert_eq!(error, ErrorCode::InvalidRequest, "{name:?}");
        assert_eq!(why, "mirror names follow the rules of topic names, and begin with no dash", "{name:?}");
        assert!(is_untouched(&rig, end), "{name:?}");
    }
    assert_eq!(create(&mut rig, &long[1..], &SOURCE).0, ErrorCode::None, "249 characters");
}

/// Twenty operators at once: nothing that one of them wrote is committed when the others are judged. Who is refused is told so
/// only when what refuses it is committed.
#[test]
fn bad_04_of_twenty_at_once_one_succeeds() {
    let mut rig = rig();
    rig.auto_flush = false;
    rig.sent.clear();
    let asked: Vec<u32> = (0..20)
        .map(|n| {
            let conn = ConnId(100 + n);
            rig.accept(Input::Opened { conn, peer: NodeId(1), inbound: true });
            rig.send(conn, request("other", &SOURCE))
        })
        .collect();
    let answered = |rig: &Rig| -> Vec<ErrorCode> {
        let answer = |(_, m): &(ConnId, Message)| match &m.body {
            Body::CreateClusterMirrorResponse(answer) if asked.contains(&m.correlation) => Some(answer.error),
            _ => None,
        };
        rig.sent.iter().filter_map(answer).collect()
    };
    assert!(!answered(&rig).contains(&ErrorCode::None), "nothing is committed");
    rig.auto_flush = true;
    rig.settle();
    let answers = answered(&rig);
    assert_eq!(answers.len(), 20);
    assert_eq!(answers.iter().filter(|error| error.is_none()).count(), 1);
    assert_eq!(answers.iter().filter(|error| **error == ErrorCode::ClusterMirrorAlreadyExists).count(), 19);
    let image = rig.controller.committed_image();
    assert_eq!(image.mirrors().count(), 1);
    let topic = image.topic_by_name(STATE_TOPIC).and_then(|topic| image.topic(topic)).unwrap();
    assert_eq!(topic.partitions.len(), 50, "once, and with the answer");
}

#[test]
fn bad_12_bad_patterns_are_refused_at_start_and_at_alter() {
    let mut rig = rig();
    assert_eq!(create(&mut rig, "m", &SOURCE).0, ErrorCode::None);
    let end = rig.end();
    let long = "a".repeat(10_000);
    let bomb = "(((a{200}){200}){200}){200}";
    for pattern in ["[", bomb, "(?=x)", &*long, ""] {
        let start = StartMirrorTopicsRequest {
            mirror: "m".into(),
            topics: Vec::new(),
            include: vec!["fine".into(), pattern.into()],
            exclude: Vec::new(),
            state_offset: MetadataOffset(-1),
        };
        let Body::StartMirrorTopicsResponse(answer) = rig.ask(start) else { panic!() };
        assert_eq!(answer.error, ErrorCode::InvalidRequest, "{pattern:.20}");
        let list = format!("fine,{pattern}");
        let altered = rig.set_config(ConfigResource::ClusterMirror("m".into()), "topics.include", Some(&list));
        assert_eq!(altered.error, ErrorCode::InvalidConfig, "{pattern:.20}");
        assert_eq!(rig.end(), end, "{pattern:.20}");
    }
}
