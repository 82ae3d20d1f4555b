use super::*;
use crate::metadata::delta::MetadataDelta;
use crate::metadata::image::MetadataImage;
use crate::record::BatchView;

/// What a broker keeps of the metadata log: an image of what is committed, and batches that are not yet.
#[derive(Default)]
struct Follower {
    image: MetadataImage,
    held: Vec<bytes::Bytes>,
    epoch: i32,
    high_watermark: i64,
}

impl Follower {
    fn request(&self, wait: u32) -> RaftFetchRequest {
        let last = self.held.last().map(|b| BatchView::parse(b).unwrap());
        RaftFetchRequest {
            replica: 1,
            directory: 0,
            current_epoch: LeaderEpoch(self.epoch),
            fetch_offset: MetadataOffset(last.map_or(self.image.end().0, |b| b.next_offset().0)),
            last_fetched_epoch: last.map_or(self.image.epoch(), |b| b.leader_epoch()),
            high_watermark: MetadataOffset(self.high_watermark),
            max_wait_ms: wait,
            max_bytes: 1 << 20,
        }
    }
    fn take(&mut self, answer: RaftFetchResponse) {
        self.epoch = answer.epoch.0;
        self.high_watermark = answer.high_watermark.0;
        self.held.extend(answer.batches);
        let committed = |b: &bytes::Bytes| BatchView::parse(b).unwrap().next_offset().0 <= answer.high_watermark.0;
        let count = self.held.iter().take_while(|b| committed(b)).count();
        for batch in self.held.drain(..count) {
            self.image.apply_batch(&BatchView::parse(&batch).unwrap(), &mut MetadataDelta::default()).unwrap();
        }
    }
}

fn fetch(rig: &mut Rig, request: RaftFetchRequest) -> RaftFetchResponse {
    let Body::RaftFetchResponse(answer) = rig.ask(request) else { panic!() };
    *answer
}
fn answers(rig: &mut Rig) -> Vec<RaftFetchResponse> {
    let all = std::mem::take(&mut rig.sent);
    all.into_iter().filter_map(|(_, m)| if let Body::RaftFetchResponse(r) = m.body { Some(*r) } else { None }).collect()
}

#[test]
fn an_observer_applies_what_is_committed_and_ends_with_the_controllers_image() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1, 2, 3]);
    rig.topic("t", &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);
    let mut follower = Follower::default();
    let mut first = follower.request(0);
    first.current_epoch = LeaderEpoch::NONE;
    first.last_fetched_epoch = LeaderEpoch::NONE;
    follower.take(fetch(&mut rig, first));
    assert_eq!(&follower.image, rig.controller.committed_image());
    assert_eq!(follower.image.hash(), rig.controller.image().hash());
}

#[test]
fn a_fetch_without_news_waits_for_data_then_for_the_commit() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1]);
    let mut follower = Follower::default();
    let mut request = follower.request(0);
    request.current_epoch = LeaderEpoch::NONE;
    follower.take(fetch(&mut rig, request));
    let other = ConnId(2);
    rig.accept(Input::Opened { conn: other, peer: NodeId(1), inbound: true });
    rig.send(other, follower.request(500));
    assert!(answers(&mut rig).is_empty());
    rig.auto_flush = false;
    rig.send(
        CONN,
        CreateTopicsRequest {
            topics: vec![NewTopic { name: "t".into(), partitions: 1, replication_factor: 1, ..NewTopic::default() }],
        },
    );
    // Appended, not committed: the observer holds it, and applies nothing.
    let news = answers(&mut rig).remove(0);
    assert_eq!(news.batches.len(), 1);
    follower.take(news);
    assert!(follower.image.topic_by_name("t").is_none() && follower.held.len() == 1);
    rig.send(other, follower.request(500));
    assert!(answers(&mut rig).is_empty());
    rig.auto_flush = true;
    rig.settle();
    let news = answers(&mut rig).remove(0);
    assert!(news.batches.is_empty());
    follower.take(news);
    assert!(follower.image.topic_by_name("t").is_some());
}

#[test]
fn one_timer_per_observer_ends_a_wait() {
    let mut rig = Rig::new(config());
    let mut follower = Follower::default();
    let mut request = follower.request(0);
    request.current_epoch = LeaderEpoch::NONE;
    follower.take(fetch(&mut rig, request));
    rig.timers.clear();
    rig.send(CONN, follower.request(500));
    assert_eq!(rig.timers.len(), 1);
    rig.pass(100);
    // News come and the fetch is repeated: the armed timer serves on.
    let other = ConnId(2);
    rig.accept(Input::Opened { conn: other, peer: NodeId(2), inbound: true });
    let message = |correlation, body: Body| Message { correlation, body };
    let registration = BrokerRegistrationRequest {
        broker: BrokerId(5),
        cluster_id: "east".into(),
        incarnation: 1,
        node: NodeId(5),
        previous_epoch: BrokerEpoch(-1),
    };
    rig.accept(Input::Message { conn: other, message: message(900, registration.into()) });
    rig.settle();
    for news in answers(&mut rig) {
        follower.take(news);
    }
    let again = follower.request(500);
    follower.take(fetch(&mut rig, RaftFetchRequest { max_wait_ms: 0, ..again }));
    rig.send(CONN, follower.request(500));
    assert_eq!(rig.timers.len(), 1);
    rig.pass(400);
    assert_eq!((answers(&mut rig).len(), rig.timers.len()), (0, 1));
    rig.pass(100);
    let empty = answers(&mut rig);
    assert_eq!((empty.len(), empty[0].batches.len(), rig.timers.len()), (1, 0, 0));
}

#[test]
fn a_fetcher_on_another_history_is_told() {
    let mut rig = Rig::new(config());
    rig.bring_up(&[1]);
    let end = rig.end();
    let request = |current: i32, offset: i64, last: i32| RaftFetchRequest {
        replica: 1,
        directory: 0,
        current_epoch: LeaderEpoch(current),
        fetch_offset: MetadataOffset(offset),
        last_fetched_epoch: LeaderEpoch(last),
        high_watermark: MetadataOffset(0),
        max_wait_ms: 0,
        max_bytes: 1 << 20,
    };
    assert_eq!(fetch(&mut rig, request(0, 0, -1)).error, ErrorCode::FencedLeaderEpoch);
    assert_eq!(fetch(&mut rig, request(2, 0, -1)).error, ErrorCode::UnknownLeaderEpoch);
    let ahead = fetch(&mut rig, request(1, end + 5, 1));
    assert_eq!(ahead.diverging, Some(EpochEnd { epoch: LeaderEpoch(1), end: crate::ids::Offset(end) }));
    let other = fetch(&mut rig, request(1, end, 0));
    assert!(other.diverging.is_some() && other.batches.is_empty());
    assert_eq!(fetch(&mut rig, request(1, end, 1)).diverging, None);
}

#[test]
fn who_is_too_far_behind_loads_a_snapshot() {
    let mut rig = Rig::new(ControllerConfig { records_between_snapshots: 5, log_segment_bytes: 400, ..config() });
    rig.bring_up(&[1, 2, 3, 4]);
    rig.topic("t", &[&[1, 2, 3]], &[("min.insync.replicas", "2")]);
    rig.bring_up(&[5, 6]);
    assert!(rig.controller.log().unwrap().start().0 > 0);
    let mut follower = Follower::default();
    let mut request = follower.request(0);
    request.current_epoch = LeaderEpoch::NONE;
    let answer = fetch(&mut rig, request);
    let id = answer.snapshot.unwrap();
    assert!(answer.batches.is_empty());
    let mut bytes = Vec::new();
    loop {
        let request = FetchSnapshotRequest { replica: 1, snapshot: id, position: bytes.len() as u64, max_bytes: 100 };
        let Body::FetchSnapshotResponse(piece) = rig.ask(request) else { panic!() };
        assert_eq!(piece.error, ErrorCode::None);
        bytes.extend(piece.bytes.concat());
        if bytes.len() as u64 == piece.size {
            break;
        }
    }
    let (image, epoch) = MetadataImage::load_snapshot(&bytes, id.0 .0).unwrap();
    assert_eq!(epoch, id.1);
    (follower.image, follower.epoch) = (image, answer.epoch.0);
    while follower.image.end() < rig.controller.image().end() {
        let request = follower.request(0);
        let answer = fetch(&mut rig, request);
        assert!(answer.diverging.is_none() && answer.snapshot.is_none());
        follower.take(answer);
    }
    assert_eq!(&follower.image, rig.controller.image());
    let gone =
        FetchSnapshotRequest { replica: 1, snapshot: (MetadataOffset(1), LeaderEpoch(1)), position: 0, max_bytes: 1 };
    let Body::FetchSnapshotResponse(refused) = rig.ask(gone) else { panic!() };
    assert_eq!(refused.error, ErrorCode::SnapshotNotFound);
    let beyond = FetchSnapshotRequest { replica: 1, snapshot: id, position: 1 << 40, max_bytes: 1 };
    let Body::FetchSnapshotResponse(refused) = rig.ask(beyond) else { panic!() };
    assert_eq!(refused.error, ErrorCode::PositionOutOfRange);
}
