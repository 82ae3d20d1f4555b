//! The closed list of excuses: each is brought about once, and none is on the list that no world can lead to.

use super::compacted::a_mirror_was_away;
use super::damage::{rotten, set_back};
use super::fake::{batch, controller, node, voter, Play, P};
use super::mirrors::{copy, mirroring, sight};
use super::{committed, NOTHING};
use crate::checks::excuses::{lines, Excuse};
use crate::checks::ghost::Stop;
use crate::checks::sight::{MirrorSight, PositionSight};
use mirrorlab_model::ids::*;
use mirrorlab_model::metadata::records::Record;
use mirrorlab_model::states::{DesiredState, MirrorState};
use mirrorlab_model::trace::{CutCause, ElectionKind, Origin, Trace};
use mirrorlab_model::wire::messages::ConfigResource;

/// Broker 2 lacks acknowledged records and is elected out of turn; `stops` brokers stopped so before.
fn elected(allowed: bool, stops: i32, how: Stop) -> Play {
    let mut play = committed(2);
    let (resource, value) = (ConfigResource::Topic("t".into()), Some(allowed.to_string().as_str().into()));
    play.record(0, &Record::Config { resource, key: "unclean.leader.election.enable".into(), value });
    play.acked(5, 3);
    for broker in 1..=stops {
        play.core.on_stop(&play.world, node(0, broker), how, None);
    }
    play.shorten(0, 2, 5);
    if how == Stop::Lossy {
        let back = Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: false };
        assert_eq!(play.at(node(0, 2), back), NOTHING);
    } else {
        play.core.ghost.clusters[0].partition(P).members[1].end = Offset(5);
        let (leader, epoch, kind) = (BrokerId(2), LeaderEpoch(2), ElectionKind::Unclean);
        play.at(controller(0), Trace::Elected { partition: P, leader, epoch, kind });
    }
    play.change(0, 2, 2, 0b010, 0);
    assert_eq!(play.lead(0, 2, 2), NOTHING);
    play
}

fn failed(retries: bool) -> Play {
    let mut play = mirroring();
    play.world.mirrors.insert((node(1, 1), P), MirrorSight { retries, ..sight(MirrorState::Failed) });
    play
}

/// A mirror leader's log is cut in what it had copied.
fn cut(cause: CutCause) -> Play {
    let mut play = mirroring();
    copy(&mut play, &batch(0, 1, 5), 0, 5);
    play.cut(1, 1, 0, cause);
    play
}

fn reading(read_committed: bool, given_up: bool) -> Play {
    let mut play = committed(2);
    play.world.positions = Some(vec![PositionSight { partition: P, offset: Offset(5), given_up, read_committed }]);
    (1..=3).for_each(|broker| play.replica(0, broker).stable = read_committed.then_some(Offset(5)));
    play
}

fn without(nodes: &[NodeId]) -> Play {
    let mut play = committed(2);
    play.append(0, 1, Origin::Client, &batch(8, 1, 1));
    play.world.down.extend(nodes.iter().copied());
    play
}

/// A world in which something is excused by this.
fn brought_about(excuse: Excuse) -> Play {
    use Excuse as E;
    match excuse {
        E::UncleanElection => elected(true, 0, Stop::Killed),
        E::LossyCrashes => elected(false, 2, Stop::Lossy),
        E::UncleanStops => elected(false, 2, Stop::Killed),
        E::OrderedCut => cut(CutCause::Alignment),
        E::SourceCut => cut(CutCause::MirrorDivergence),
        E::NoEligibleReplica => {
            let mut play = without(&[node(0, 1), node(0, 2), node(0, 3)]);
            play.change(0, -1, 2, 0b111, 0);
            play
        }
        E::TooFewReplicas => without(&[node(0, 2), node(0, 3)]),
        E::NodeDown => without(&[node(0, 3)]),
        E::NoController => {
            let mut play = without(&[controller(0)]);
            play.world.down.insert(node(0, 3));
            play
        }
        E::CutOff => {
            let mut play = committed(2);
            let second = NodeId(15);
            play.core.roster.clusters[0].controllers.push(second);
            for node in [controller(0), second] {
                play.world.voters.insert(node, voter(Some(controller(0))));
            }
            play.world.cut.insert(second);
            play
        }
        E::SourceDown => {
            let mut play = failed(true);
            play.world.down.extend((1..=3).map(|broker| node(0, broker)));
            play
        }
        E::SourceRefuses => {
            let mut play = failed(true);
            play.world.old.insert(node(0, 1));
            play
        }
        E::OrderWaits => {
            let mut play = mirroring();
            (play.world.wanted, play.world.is_behind) = (Some(DesiredState::Mirroring), true);
            play
        }
        E::FailedForGood => failed(false),
        E::NoResetPolicy => reading(false, true),
        E::OpenTransaction => reading(true, false),
        E::NoSourcePartition => {
            let mut play = failed(true);
            play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
            play
        }
        E::AwayTooLong => a_mirror_was_away(2_000).1,
        E::BitRot => {
            let mut play = rotten(committed(2), 0, 3);
            play.core.on_stop(&play.world, node(0, 3), Stop::Killed, None);
            play.shorten(0, 3, 5);
            play.at(node(0, 3), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: false });
            play
        }
        E::OlderCopy => {
            let mut play = set_back(&[1, 2, 3]);
            play.shorten(0, 2, 5);
            play.at(node(0, 2), Trace::LogRecovered { partition: P, start: Offset(0), end: Offset(5), clean: false });
            play.change(0, 2, 2, 0b010, 0);
            play.lead(0, 2, 2);
            play
        }
    }
}

#[test]
fn each_excuse_can_be_brought_about_and_says_whose_it_is() {
    for excuse in Excuse::ALL {
        let mut play = brought_about(excuse);
        let said = format!(": {} ({}): ", excuse.name(), excuse.whose().name());
        let mut told = play.core.excuses();
        told.extend(play.core.liveness(&play.world).excuses);
        assert!(told.iter().any(|line| line.contains(&said)), "{excuse:?}: {told:?}");
    }
}

#[test]
fn the_list_names_each_excuse_once() {
    let mut names: Vec<_> = Excuse::ALL.iter().map(|excuse| excuse.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Excuse::ALL.len());
    assert!(lines().iter().zip(Excuse::ALL).all(|(line, excuse)| line.starts_with(excuse.name())));
}

/// It has fewer partitions than the first one had: those that it does not have wait like the others.
#[test]
fn another_topic_under_the_sources_name_excuses_every_partition() {
    let mut play = failed(true);
    play.core.ghost.clusters[1].partition(P).born_a_copy = true;
    play.record(0, &Record::RemoveTopic { topic: TopicIx(0) });
    assert!(play.left().contains(&"L11".to_owned()), "a source that is only gone is an operator's business, and told");
    play.record(0, &Record::Topic { topic: TopicIx(1), id: TopicId(77), name: "t".into() });
    assert!(!play.left().contains(&"L11".to_owned()));
}
