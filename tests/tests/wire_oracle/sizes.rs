//! The sizes that links are charged with are those of the independent encoder.

use crate::dice::{message, Dice, KINDS};
use crate::encode::frame_len;
use mirrorlab_model::wire::messages::Message;
use proptest::prelude::*;

fn check(message: &Message) {
    let expected = frame_len(message);
    assert_eq!(message.encoded_size() as usize, expected, "{}", message.body.name());
}

#[test]
fn every_stock_kind_has_the_oracles_size() {
    let mut names = Vec::new();
    for kind in 0..KINDS {
        for seed in 0..40 {
            let message = message(kind, &mut Dice::new(seed * 1000 + kind));
            check(&message);
            names.push(message.body.name());
        }
    }
    names.sort_unstable();
    names.dedup();
    // Requests and responses of all APIs but the three mirror ones, which only exist in the proposal.
    assert_eq!(names.len() as u64, KINDS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn random_messages_have_the_oracles_size(kind in 0..KINDS, seed: u64) {
        check(&message(kind, &mut Dice::new(seed)));
    }
}
