use super::*;
use mirrorlab_model::wire::messages::{Body, MetadataRequest};

const A: NodeId = NodeId(0);
const B: NodeId = NodeId(1);
const C: NodeId = NodeId(2);

fn ask(correlation: u32) -> Message {
    Message { correlation, body: Body::from(MetadataRequest::default()) }
}

/// 1 and 2: A and C run and send to B; 3: B hears A; 4: B runs; 5: B hears C.
fn record() -> Causes {
    let mut causes = Causes::new(0);
    [0, 0, 1, 3, 2].into_iter().for_each(|step| causes.scheduled(step));
    let whats = [What::Run(A), What::Run(C), What::Net, What::Run(B), What::Net];
    for (n, what) in whats.into_iter().enumerate() {
        causes.begins(Nanos(n as u64 * 10), n as u64, what);
    }
    causes.sent(1, A, ConnId(7), &ask(1));
    causes.sent(2, C, ConnId(8), &ask(1));
    causes.delivered(3, B, ConnId(7), &ask(1));
    causes.delivered(5, B, ConnId(8), &ask(1));
    causes
}

#[test]
fn an_event_names_the_one_that_scheduled_it() {
    let causes = record();
    let of = |step| causes.event(step).map(|noted| (noted.at, noted.cause));
    assert_eq!(of(4), Some((Nanos(30), 3)));
    assert_eq!(of(5), Some((Nanos(40), 2)));
    assert_eq!((of(0), of(6)), (None, None));
    assert_eq!(causes.deliveries(3).iter().map(|d| (d.from, d.sent)).collect::<Vec<_>>(), [(Some(A), 1)]);
}

#[test]
fn the_past_holds_what_had_arrived_and_no_more() {
    let causes = record();
    assert_eq!(causes.past(4, 3), [1, 4, 0], "C was not heard of yet");
    assert_eq!(causes.past(5, 3), [1, 5, 2]);
    assert_eq!(causes.past(1, 3), [1, 0, 0]);
}
