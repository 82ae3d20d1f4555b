use super::*;
use proptest::prelude::*;

fn bytes_of(put: impl FnOnce(&mut BytesMut)) -> Vec<u8> {
    let mut out = BytesMut::new();
    put(&mut out);
    out.to_vec()
}

#[test]
fn zigzag_alternates_around_zero() {
    let encoded = |v| bytes_of(|out| put_varint(out, v));
    assert_eq!(encoded(0), [0]);
    assert_eq!(encoded(-1), [1]);
    assert_eq!(encoded(1), [2]);
    assert_eq!(encoded(63), [126]);
    assert_eq!(encoded(64), [0x80, 1]);
    assert_eq!(encoded(i32::MIN), [0xff, 0xff, 0xff, 0xff, 0x0f]);
}

#[test]
fn a_varint_that_does_not_end_is_none_and_leaves_the_slice_alone() {
    for bad in [&[][..], &[0x80], &[0xff; 5], &[0xff; 12]] {
        let mut rest = bad;
        assert_eq!(take_varint(&mut rest), None);
        assert_eq!(rest, bad);
    }
    let mut rest = &[0xffu8; 11][..];
    assert_eq!(take_varlong(&mut rest), None);
}

proptest! {
    #[test]
    fn what_was_written_is_read_and_its_length_is_known(a: i32, b: i64, c: u32) {
        let all = bytes_of(|out| { put_varint(out, a); put_varlong(out, b); put_unsigned(out, c); });
        prop_assert_eq!(all.len(), varint_len(a) + varlong_len(b) + unsigned_len(c));
        let mut rest = &all[..];
        prop_assert_eq!(take_varint(&mut rest), Some(a));
        prop_assert_eq!(take_varlong(&mut rest), Some(b));
        prop_assert_eq!(take_unsigned(&mut rest), Some(c));
        prop_assert!(rest.is_empty());
    }

    #[test]
    fn lengths_agree_at_every_power(shift in 0u32..64) {
        let v = 1i64.checked_shl(shift).unwrap_or(0);
        for v in [v, v.wrapping_sub(1), v.wrapping_neg()] {
            prop_assert_eq!(bytes_of(|out| put_varlong(out, v)).len(), varlong_len(v));
            prop_assert_eq!(bytes_of(|out| put_unsigned(out, v as u32)).len(), unsigned_len(v as u32));
        }
    }
}
