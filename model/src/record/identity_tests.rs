use super::*;
use proptest::prelude::*;

#[test]
fn the_layout_is_fixed() {
    let value = Identity { producer: 0x0102_0304, sequence: 0x1112_1314_1516_1718 }.value(16);
    assert_eq!(value[..14], [0x4d, 0x4c, 1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
}

#[test]
fn other_values_have_no_identity() {
    for value in [&b""[..], b"hello", &[0; 16], &[0x4d, 0x4c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]] {
        assert_eq!(Identity::parse(value), None);
    }
}

proptest! {
    #[test]
    fn identity_and_filler_survive_and_no_flipped_bit_does(
        producer: u32, sequence: u64, len in 0usize..200, bit: prop::sample::Index,
    ) {
        let identity = Identity { producer, sequence };
        let value = identity.value(len);
        prop_assert_eq!(value.len(), len.max(IDENTITY_LEN));
        prop_assert_eq!(Identity::parse(&value), Some(identity));
        prop_assert_eq!(Identity::verify(&value), Some(identity));
        let mut broken = value.to_vec();
        let bit = bit.index(broken.len() * 8);
        broken[bit / 8] ^= 1 << (bit % 8);
        prop_assert_ne!(Identity::verify(&broken), Some(identity));
    }

    #[test]
    fn values_of_different_records_differ_in_their_filler(producer: u32, a: u64, b: u64) {
        prop_assume!(a != b);
        let (a, b) = (Identity { producer, sequence: a }.value(24), Identity { producer, sequence: b }.value(24));
        prop_assert_ne!(&a[16..], &b[16..]);
    }
}
