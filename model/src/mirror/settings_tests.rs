//! A mirror's settings are changed while it copies.

use super::*;
use crate::mirror::testing::{Rig, SOURCE};
use crate::states::MirrorState;
use crate::wire::messages::Body;

fn last_fetch(rig: &Rig) -> (u32, u32, usize) {
    let Body::FetchRequest(fetch) = &rig.last().1.body else { panic!("{:?}", rig.last()) };
    (fetch.max_wait_ms, fetch.max_bytes, fetch.parts.len())
}

/// CLI-10: the fetcher is connected anew, once, and asks for everything under the new limits; nothing fails.
#[test]
fn cli_10_other_fetch_settings_rebuild_the_fetcher_once() {
    let mut rig = Rig::new();
    rig.fetching(0, "orders", 0);
    let before = rig.connects.len();
    rig.config("fetch.wait.max.ms", "250");
    assert_eq!(rig.connects.len(), before + 1);
    let (conn, to) = *rig.connects.last().unwrap();
    assert_eq!(to, SOURCE);
    rig.opened(conn);
    assert_eq!((last_fetch(&rig).0, last_fetch(&rig).2), (250, 1));
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 0));
    // What says nothing new rebuilds nothing.
    rig.config("fetch.wait.max.ms", "250");
    assert_eq!(rig.connects.len(), before + 1);
}

/// CLI-10: another list of servers is where the next look at the source goes; the fetcher is connected anew, once.
#[test]
fn cli_10_another_bootstrap_list_is_used_at_once() {
    let mut rig = Rig::new();
    rig.fetching(0, "orders", 0);
    let before = rig.connects.len();
    rig.config("bootstrap.servers", "5");
    rig.pass(1);
    let anew = |to: NodeId| rig.connects[before..].iter().filter(|(_, other)| *other == to).count();
    assert_eq!((anew(NodeId(5)), anew(SOURCE)), (1, 1), "{:?}", rig.connects);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 0));
}
