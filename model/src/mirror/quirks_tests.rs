//! Quirks in small, each on and off.

use crate::guards::prototype as quirk;
use crate::ids::{LeaderEpoch, MirrorIx, PartitionIx, TopicIx};
use crate::metadata::records::Record;
use crate::mirror::testing::Rig;
use crate::replica::testing::batch_at;
use crate::states::{DesiredState, MirrorState};

/// D-42. Two topics stop, and wait for their bumps, which went in one request. One of them is deleted meanwhile: the bump of the
/// other comes, and it waits on.
#[test]
fn d_42_a_bump_waits_for_a_deleted_topic() {
    for (on, state) in [(false, MirrorState::Stopped), (true, MirrorState::Stopping)] {
        let mut rig = Rig::new();
        rig.guards.set(quirk::BumpWaitsForCompany, on);
        rig.fetching(0, "orders", 0);
        rig.fetched(1, &[batch_at(0, 1, 0, 1)]);
        rig.mirrored_topic_in(1, "gone", 0);
        rig.answer(&[(0, "orders"), (1, "gone")]);
        let stop = |n| Record::MirrorTopicStateChange {
            topic: TopicIx(n),
            mirror: Some(MirrorIx(0)),
            desired: DesiredState::Stopped,
        };
        rig.metadata(&[stop(0), stop(1)]);
        assert_eq!(rig.state(0).0, MirrorState::Stopping, "its bump is awaited");
        // The two bumps, in one request.
        rig.manager.company = vec![[0, 1].map(|n| (PartitionIx(n), LeaderEpoch(0))).to_vec()];
        rig.metadata(&[Record::RemoveTopic { topic: TopicIx(1) }]);
        rig.new_term(0, 1);
        assert_eq!(rig.state(0).0, state, "quirk {on}");
    }
}
