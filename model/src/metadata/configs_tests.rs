use super::*;

#[test]
fn defaults_are_the_documented_ones() {
    let topic = TopicConfig::default();
    assert_eq!((topic.min_insync_replicas, topic.retention_ms, topic.segment_bytes), (1, 604_800_000, 1 << 30));
    let broker = BrokerConfig::default();
    assert_eq!((broker.replica_lag_time_max_ms, broker.replica_fetch_wait_max_ms), (30_000, 500));
    assert_eq!((broker.broker_session_timeout_ms, broker.broker_heartbeat_interval_ms), (9_000, 2_000));
    let mirror = MirrorConfig::default();
    assert_eq!((mirror.fetch_wait_max_ms, mirror.fetch_response_max_bytes), (1_000, 10 << 20));
    assert!(mirror.topics_exclude.matches("__mirror_state") && mirror.topics_include.is_empty());
}

#[test]
fn every_default_in_the_tables_parses_back_to_itself() {
    for info in topic_keys() {
        let mut config = TopicConfig::default();
        config.set(info.key, &info.default).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config, TopicConfig::default());
    }
    for info in broker_keys() {
        let mut config = BrokerConfig::default();
        config.set(info.key, &info.default).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config, BrokerConfig::default());
    }
    for info in mirror_keys() {
        let mut config = MirrorConfig::default();
        config.set(info.key, &info.default).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(config, MirrorConfig::default());
    }
}

#[test]
fn a_refusal_names_the_key_and_leaves_the_config_alone() {
    let mut config = TopicConfig::default();
    for (key, value, says) in [
        ("retention.hours", "1", "unknown configuration 'retention.hours'"),
        ("retention.ms", "soon", "'retention.ms' must be a 64-bit number"),
        ("min.insync.replicas", "0", "'min.insync.replicas' must be at least 1"),
        ("remote.storage.enable", "true", "'remote.storage.enable': this setting is not supported here"),
        ("cleanup.policy", "burn", "'cleanup.policy' must be a cleanup policy (delete, compact, or both)"),
    ] {
        assert_eq!(config.set(key, value).unwrap_err().to_string(), says);
    }
    assert_eq!(config, TopicConfig::default());
    let error = MirrorConfig::default().set("bootstrap.servers", "here:9092").unwrap_err();
    assert_eq!(error.to_string(), "'bootstrap.servers' must be a list of node ids");
}

#[test]
fn older_mirror_names_and_topic_defaults_of_brokers_are_known() {
    let mut mirror = MirrorConfig::default();
    mirror.set("mirror.fetch.wait.max.ms", "7").unwrap();
    assert_eq!(mirror.fetch_wait_max_ms, 7);
    assert_eq!(topic_synonym("log.retention.ms"), Some("retention.ms"));
    BrokerConfig::default().set("log.retention.ms", "5").unwrap();
    assert!(BrokerConfig::default().set("log.retention.ms", "x").is_err());
    assert_eq!(parse_nodes("3, 4"), Some(vec![crate::ids::NodeId(3), crate::ids::NodeId(4)]));
}

#[test]
fn secrets_are_marked() {
    let secret: Vec<_> = mirror_keys().into_iter().filter(|k| k.secret).map(|k| k.key).collect();
    assert!(secret.contains(&"sasl.jaas.config") && !secret.contains(&"bootstrap.servers"));
}
