//! Channels: state, input, expected effects and events.

use super::*;
use crate::client::testing::Around;
use crate::ports::CloseReason;
use crate::wire::messages::{MetadataRequest, MetadataResponse};

const PEER: NodeId = NodeId(7);

fn config() -> ChannelConfig {
    ChannelConfig { max_in_flight: 2, ..ChannelConfig::default() }
}

fn opened(channels: &mut Channels<u8>, around: &mut Around) -> ConnId {
    around.with(|now, cx| channels.ensure(now, PEER, cx));
    let effects = around.effects();
    let [Effect::Connect { conn, to: PEER }] = effects[..] else { panic!("{effects:?}") };
    let opened = Input::Opened { conn, peer: PEER, inbound: false };
    assert_eq!(around.with(|now, cx| channels.on_input(now, opened, cx)), Some(ChannelEvent::Opened(PEER)));
    conn
}

fn send(channels: &mut Channels<u8>, around: &mut Around, token: u8) -> u32 {
    around.with(|now, cx| channels.send(now, PEER, MetadataRequest::default().into(), token, cx)).unwrap();
    match around.effects().pop() {
        Some(Effect::Send { message, .. }) => message.correlation,
        other => panic!("{other:?}"),
    }
}

fn answer(conn: ConnId, correlation: u32) -> Input {
    Input::Message { conn, message: Message { correlation, body: MetadataResponse::default().into() } }
}

#[test]
fn answers_bring_back_their_tokens_in_order_and_the_limit_makes_the_channel_busy() {
    let (mut channels, mut around) = (Channels::new(config()), Around::new());
    let conn = opened(&mut channels, &mut around);
    let first = send(&mut channels, &mut around, 1);
    send(&mut channels, &mut around, 2);
    assert_eq!(channels.status(PEER), ChannelStatus::Busy);
    let event = around.with(|now, cx| channels.on_input(now, answer(conn, first), cx));
    assert!(matches!(event, Some(ChannelEvent::Answer { token: 1, node: PEER, .. })));
    assert_eq!(channels.status(PEER), ChannelStatus::Ready);
}

#[test]
fn an_answer_out_of_order_closes_the_channel_and_fails_what_is_in_flight() {
    let (mut channels, mut around) = (Channels::new(config()), Around::new());
    let conn = opened(&mut channels, &mut around);
    send(&mut channels, &mut around, 1);
    let second = send(&mut channels, &mut around, 2);
    let event = around.with(|now, cx| channels.on_input(now, answer(conn, second), cx));
    assert_eq!(event, Some(ChannelEvent::Lost { node: PEER, failed: vec![1, 2] }));
    assert_eq!(around.effects(), [Effect::Close { conn }]);
    // What still arrives on the old connection is nobody's.
    assert_eq!(around.with(|now, cx| channels.on_input(now, answer(conn, second), cx)), None);
}

#[test]
fn the_oldest_request_that_times_out_closes_the_channel() {
    let (mut channels, mut around) = (Channels::new(config()), Around::new());
    let conn = opened(&mut channels, &mut around);
    send(&mut channels, &mut around, 1);
    around.now = Nanos::from_secs(20);
    send(&mut channels, &mut around, 2);
    assert_eq!(channels.next_deadline(), Some(Nanos::from_secs(30)));
    around.now = Nanos::from_secs(30);
    let lost = around.with(|now, cx| channels.expire(now, cx));
    assert_eq!(lost, [ChannelEvent::Lost { node: PEER, failed: vec![1, 2] }]);
    assert_eq!(around.effects(), [Effect::Close { conn }]);
}

#[test]
fn attempts_back_off_exponentially_up_to_the_limit_and_a_connection_resets_it() {
    let (mut channels, mut around) = (Channels::<u8>::new(config()), Around::new());
    let mut waits = Vec::new();
    for _ in 0..7 {
        around.with(|now, cx| channels.ensure(now, PEER, cx));
        let Some(Effect::Connect { conn, .. }) = around.effects().pop() else { panic!("no attempt") };
        let closed = Input::Closed { conn, why: CloseReason::Refused };
        around.with(|now, cx| channels.on_input(now, closed, cx));
        let ChannelStatus::Down(until) = channels.status(PEER) else { panic!("not down") };
        waits.push(until.since(around.now).as_millis());
        // Before the backoff is over, nothing is tried.
        around.with(|now, cx| channels.ensure(now, PEER, cx));
        assert!(around.effects().is_empty());
        around.now = until;
    }
    for (wait, plain) in waits.iter().zip([50, 100, 200, 400, 800, 1_000, 1_000]) {
        assert!((plain * 8 / 10..=plain * 12 / 10).contains(wait), "{waits:?}");
    }
    let conn = opened(&mut channels, &mut around);
    let closed = Input::Closed { conn, why: CloseReason::Reset };
    around.with(|now, cx| channels.on_input(now, closed, cx));
    let ChannelStatus::Down(until) = channels.status(PEER) else { panic!("not down") };
    assert!(until.since(around.now).as_millis() <= 60);
}

#[test]
fn a_connection_that_is_never_made_is_given_up() {
    let (mut channels, mut around) = (Channels::<u8>::new(config()), Around::new());
    around.with(|now, cx| channels.ensure(now, PEER, cx));
    around.effects();
    around.now = Nanos::from_secs(10);
    let lost = around.with(|now, cx| channels.expire(now, cx));
    assert_eq!(lost, [ChannelEvent::Lost { node: PEER, failed: vec![] }]);
    assert!(matches!(around.effects()[..], [Effect::Close { .. }]));
}

/// While one of two brokers is being connected to, nothing is due before that ends, though the other could be tried at once: an
/// operator's client that was cut off from its source ran two hundred thousand times a second.
#[test]
fn while_a_connection_is_being_made_nothing_is_due_at_once() {
    use crate::client::cluster::{Cluster, ClusterConfig};
    let mut around = Around::new();
    let (wait, now, connects) = around.with(|now, cx| {
        let mut cluster: Cluster<u8> = Cluster::new(ClusterConfig::new(vec![PEER, NodeId(8)], None), cx);
        assert_eq!(cluster.any_ready(now, cx), None);
        let connects = cx.out.effects.iter().filter(|e| matches!(e, Effect::Connect { .. })).count();
        (cluster.channel_wait(now), now, connects)
    });
    assert_eq!((wait, connects), (now.mono + ChannelConfig::default().connect_timeout, 1));
}
