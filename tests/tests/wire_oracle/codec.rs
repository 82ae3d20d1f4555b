//! Every message comes back from its bytes as it was; the stock ones are the independent encoder's bytes; and whatever bytes
//! come, reading them ends in a message or an error.

use crate::dice::{message, Dice, KINDS, STOCK};
use crate::directories::Dealt;
use crate::encode::frame;
use bytes::Bytes;
use mirrorlab_model::ids::TopicId;
use mirrorlab_model::wire::codec::{decode_request, decode_response, encode, encode_stock, DecodeError, Directory};
use mirrorlab_model::wire::messages::{Body, Message};
use mirrorlab_model::wire::size::{api, Api};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Topics of three partitions; the upper half of the indices that messages hold is not known (any more).
const DIR: Dealt = Dealt { known: 500, per_topic: 3, larger: 0 };

fn decode(frame: &Bytes, like: &Body, dir: &dyn Directory) -> Result<Message, DecodeError> {
    if like.is_request() {
        decode_request(frame, dir)
    } else {
        decode_response(frame, api(like), dir)
    }
}

fn round_trip(message: &Message) {
    let name = message.body.name();
    let bytes = encode(message, &DIR);
    let back = decode(&bytes, &message.body, &DIR).unwrap_or_else(|e| panic!("{name}: {e}\n{message:?}"));
    assert_eq!(&back, message, "{name}");
    // Without what is ours, a message may lose something, but only once.
    let bare = encode_stock(message, &DIR);
    let less = decode(&bare, &message.body, &DIR).unwrap_or_else(|e| panic!("{name}, bare: {e}\n{message:?}"));
    let again = decode(&encode_stock(&less, &DIR), &message.body, &DIR);
    assert_eq!(again.as_ref(), Ok(&less), "{name}");
}

fn as_the_oracle_writes(message: &Message) {
    let (ours, theirs) = (encode_stock(message, &DIR), frame(message, &DIR));
    let at = ours.iter().zip(&theirs).position(|(a, b)| a != b);
    assert!(ours == theirs, "{}: {} and {} bytes, differ at {at:?}", message.body.name(), ours.len(), theirs.len());
}

#[test]
fn every_message_is_covered() {
    let mut covered = BTreeSet::new();
    let mut stock = BTreeSet::new();
    for kind in 0..KINDS {
        for seed in 0..30 {
            let message = message(kind, &mut Dice::new(seed * 1000 + kind));
            round_trip(&message);
            covered.insert(message.body.name());
            if kind < STOCK {
                as_the_oracle_writes(&message);
                stock.insert(message.body.name());
            }
        }
    }
    let all: BTreeSet<_> = Body::NAMES.iter().copied().collect();
    assert_eq!(covered, all, "a message without a test of its bytes");
    // What the oracle does not know: all of it is in the proposal only (KIP-1279), like Fetch 19's fields, which the
    // oracle carries as unknown ones, and CreateTopics 8, which golden bytes hold.
    let proposed: BTreeSet<_> = all.difference(&stock).copied().collect();
    assert!(proposed.iter().all(|name| name.contains("Mirror") || name.contains("BumpLeaderEpochs")), "{proposed:?}");
    assert_eq!((stock.len(), proposed.len()), (54, 26));
}

/// A client that reads what a stock server wrote meets no field of ours.
#[test]
fn stock_bytes_hold_nothing_of_ours() {
    for kind in 0..STOCK {
        let message = message(kind, &mut Dice::new(kind));
        // The oracle has decoded the same bytes without an unknown field but those of Fetch 19, or `frame` would have failed.
        as_the_oracle_writes(&message);
    }
}

#[test]
fn what_was_cut_short_is_an_error() {
    for kind in 0..KINDS {
        let message = message(kind, &mut Dice::new(77 + kind));
        let bytes = encode(&message, &DIR);
        let step = (bytes.len() / 300).max(1);
        for len in (0..bytes.len()).step_by(step) {
            let cut = bytes.slice(..len);
            assert!(decode(&cut, &message.body, &DIR).is_err(), "{} cut to {len}", message.body.name());
            // With a length that says so.
            if len >= 4 {
                let mut lies = cut.to_vec();
                lies[..4].copy_from_slice(&(len as u32 - 4).to_be_bytes());
                assert!(decode(&lies.into(), &message.body, &DIR).is_err(), "{} ends at {len}", message.body.name());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_messages_come_back(kind in 0..KINDS, seed: u64) {
        round_trip(&message(kind, &mut Dice::new(seed)));
    }

    #[test]
    fn random_stock_messages_are_the_oracles_bytes(kind in 0..STOCK, seed: u64) {
        as_the_oracle_writes(&message(kind, &mut Dice::new(seed)));
    }

    #[test]
    fn topics_with_a_mirrors_id_come_back(seed: u64) {
        let mut d = Dice::new(seed);
        let mut message = message(26, &mut d);
        if let Body::CreateTopicsRequest(request) = &mut message.body {
            for topic in &mut request.topics {
                topic.mirror_id = d.coin().then(|| d.id());
            }
            request.topics.push(mirrorlab_model::wire::messages::NewTopic {
                mirror_id: Some(TopicId(1)),
                ..Default::default()
            });
        }
        round_trip(&message);
    }

    #[test]
    fn any_bytes_end_in_a_message_or_an_error(
        body in prop::collection::vec(any::<u8>(), 0..200), key in 0i16..110, version in 0i16..20, request: bool,
    ) {
        let mut frame = Vec::new();
        if request {
            frame.extend_from_slice(&key.to_be_bytes());
            frame.extend_from_slice(&version.to_be_bytes());
            frame.extend_from_slice(&[0, 0, 0, 1, 0xff, 0xff, 0]);
        } else {
            frame.extend_from_slice(&[0, 0, 0, 1, 0]);
        }
        frame.extend_from_slice(&body);
        let mut whole = (frame.len() as u32).to_be_bytes().to_vec();
        whole.extend_from_slice(&frame);
        let whole = Bytes::from(whole);
        let _ = decode_request(&whole, &DIR);
        let _ = decode_response(&whole, Api { key, version }, &DIR);
    }

    /// One byte of a real message is another: whatever it says now, it can be read or refused; and what is read can be written.
    #[test]
    fn damaged_messages_end_in_a_message_or_an_error(kind in 0..KINDS, seed: u64, at: usize, with: u8) {
        let message = message(kind, &mut Dice::new(seed));
        let mut bytes = encode(&message, &DIR).to_vec();
        let at = at % bytes.len().min(2000);
        bytes[at] = with;
        if let Ok(read) = decode(&bytes.into(), &message.body, &DIR) {
            let _ = encode(&read, &DIR);
        }
    }
}
