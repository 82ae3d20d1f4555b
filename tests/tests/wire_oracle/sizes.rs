//! The sizes that links are charged with are those of the independent encoder, and of the codec.

use crate::dice::{message, Dice, KINDS, STOCK};
use crate::directories::as_sizes_assume;
use crate::encode::frame;
use mirrorlab_model::ids::TopicId;
use mirrorlab_model::wire::codec::encode_stock;
use mirrorlab_model::wire::messages::{Body, Message};
use proptest::prelude::*;

/// With names of the assumed lengths and topics as the sizes count them.
fn check(kind: u64, mut message: Message) {
    let dir = as_sizes_assume(&mut message);
    let size = message.encoded_size() as usize;
    assert_eq!(size, encode_stock(&message, &dir).len(), "codec: {}", message.body.name());
    if kind < STOCK {
        assert_eq!(size, frame(&message, &dir).len(), "oracle: {}", message.body.name());
    }
}

#[test]
fn every_kind_has_the_size_of_its_bytes() {
    for kind in 0..KINDS {
        for seed in 0..40 {
            check(kind, message(kind, &mut Dice::new(seed * 1000 + kind)));
        }
    }
}

#[test]
fn topics_with_a_mirrors_id_have_the_size_of_their_bytes() {
    for seed in 0..40 {
        let mut d = Dice::new(seed);
        let mut message = message(26, &mut d);
        let Body::CreateTopicsRequest(request) = &mut message.body else { panic!("kinds have moved") };
        for topic in &mut request.topics {
            topic.mirror_id = d.coin().then_some(TopicId(7));
        }
        check(KINDS, message);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn random_messages_have_the_size_of_their_bytes(kind in 0..KINDS, seed: u64) {
        check(kind, message(kind, &mut Dice::new(seed)));
    }
}
