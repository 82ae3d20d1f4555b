//! Who waits for an answer of the source, and for which one.

use crate::mirror::testing::{Rig, SOURCE};
use crate::states::MirrorState;

/// A topic is started and the source is asked about it; another one is started before the answer comes. The answer says
/// nothing of the second: it has not failed, it was not asked for.
#[test]
fn a_topic_that_was_not_in_the_question_waits_for_the_next_answer() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    let (conn, to) = rig.connects[0];
    assert_eq!(to, SOURCE);
    rig.opened(conn);
    rig.mirrored_topic(1, "second");
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into()]);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 0));
    assert_eq!(rig.state(1), (MirrorState::LogAlignment, 0));
    assert_eq!(*rig.answer(&[(0, "first"), (1, "second")]), ["first".into(), "second".into()]);
    assert_eq!(rig.state(1), (MirrorState::Mirroring, 0));
}

#[test]
fn a_topic_that_was_in_the_question_and_not_in_the_answer_fails() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    rig.opened(rig.connects[0].0);
    rig.answer(&[]);
    assert_eq!(rig.state(0), (MirrorState::Failed, 1));
}

/// A partition fails because the source has no leader for it. When it tries again, what is known of the source is old: it is
/// asked first, and only its answer decides. Else the retry fails of old news, and the next one is twice as far away.
#[test]
fn a_retry_asks_a_source_that_knew_no_leader() {
    let mut rig = Rig::new();
    rig.mirrored_topic(0, "first");
    rig.opened(rig.connects[0].0);
    rig.answer(&[]);
    rig.answer(&[]); // the failure asked at once
    for attempt in 1..=2 {
        assert_eq!(rig.state(0), (MirrorState::Failed, attempt));
        rig.pass(20);
        assert_eq!(rig.state(0), (MirrorState::Failed, attempt));
        if attempt == 1 {
            rig.answer(&[]);
            rig.answer(&[]);
        }
    }
    rig.answer(&[(0, "first")]);
    assert_eq!(rig.state(0), (MirrorState::Mirroring, 2));
}
