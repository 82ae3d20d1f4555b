//! Texts in, quantities or reasons out.

use super::*;
use proptest::prelude::*;

#[test]
fn durations_are_exact_and_need_a_unit() {
    assert_eq!(Time::read("40 ms"), Ok(Time::millis(40)));
    assert_eq!(Time::read("1.5s"), Ok(Time::millis(1500)));
    assert_eq!(Time::read("250 µs"), Ok(Time(250_000)));
    assert_eq!(Time::read("1_000 ms"), Ok(Time::secs(1)));
    assert_eq!(Time::read("40"), Err(UnitError::Missing));
    assert_eq!(Time::read("-1 s"), Err(UnitError::Negative));
    assert_eq!(Time::read("0.5 ns"), Err(UnitError::TooFine));
    assert_eq!(Time::read("4000 d"), Err(UnitError::TooLarge("10 years (3652.5 d)")));
    assert_eq!(Time::read("99999999999999999999999999 d"), Err(UnitError::TooLarge("10 years (3652.5 d)")));
    assert_eq!(Time::read("soon"), Err(UnitError::NotANumber));
    assert_eq!(Time::read("1.s"), Err(UnitError::NotANumber));
    assert_eq!(Time::read("NaN s"), Err(UnitError::NotANumber));
    assert_eq!(Time::read("5 sec"), Err(UnitError::Unknown { unit: "sec".into(), nearest: None }));
    assert_eq!(Time::read("5 mins"), Err(UnitError::Unknown { unit: "mins".into(), nearest: Some("min") }));
}

#[test]
fn sizes_bandwidths_and_rates() {
    assert_eq!(Size::read("16 MiB"), Ok(Size(16 << 20)));
    assert_eq!(Bandwidth::read("1 Gbit/s"), Ok(Bandwidth(1_000_000_000)));
    assert_eq!(Bandwidth::read("1 MB/s"), Ok(Bandwidth(8_000_000)));
    assert_eq!(Bandwidth::read("0 Mbit/s"), Err(UnitError::Zero));
    assert_eq!(Rate::read("2000/s"), Ok(Rate { count: 2000, per: Time::secs(1) }));
    assert_eq!(Rate::read("1/10 s"), Ok(Rate { count: 1, per: Time::secs(10) }));
    assert_eq!(Rate::read("2000"), Err(UnitError::Missing));
    assert_eq!(Rate::read("0/s"), Err(UnitError::Zero));
    assert_eq!(SignedTime::read("-3 s"), Ok(SignedTime(-3_000_000_000)));
    assert_eq!(Drift::read("-200 ppm"), Ok(Drift(-200_000)));
}

#[test]
fn chances_are_exact_to_a_billionth() {
    assert_eq!(Chance::read_decimal("0.0001"), Ok(Chance(100_000)));
    assert_eq!(Chance::read_decimal("1e-4"), Ok(Chance(100_000)));
    assert_eq!(Chance::read_decimal("1"), Ok(Chance(1_000_000_000)));
    assert_eq!(Chance::read_decimal("-0.0"), Ok(Chance(0)));
    assert_eq!(Chance::read_decimal("1.5"), Err(UnitError::TooLarge("1")));
    assert_eq!(Chance::read_decimal("1e300"), Err(UnitError::TooLarge("1")));
    assert_eq!(Chance::read_decimal("1e-300"), Err(UnitError::TooFine));
    assert_eq!(Chance::read_decimal("nan"), Err(UnitError::NotANumber));
    assert_eq!(Chance::read_decimal("inf"), Err(UnitError::NotANumber));
    assert_eq!(Chance::read("0.01 %"), Ok(Chance(100_000)));
    assert_eq!(Chance::read("101 %"), Err(UnitError::TooLarge("100 %")));
}

proptest! {
    #[test]
    fn what_is_written_reads_back(ns in 0..=TIME_MAX_NS, bytes in 0u64..(1 << 50), bits in 1u64..1_000_000_000_000_000, ppb in 0u32..=1_000_000_000) {
        prop_assert_eq!(Time::read(&Time(ns).to_string()), Ok(Time(ns)));
        prop_assert_eq!(Size::read(&Size(bytes).to_string()), Ok(Size(bytes)));
        prop_assert_eq!(Bandwidth::read(&Bandwidth(bits).to_string()), Ok(Bandwidth(bits)));
        prop_assert_eq!(Chance::read_decimal(&Chance(ppb).to_string()), Ok(Chance(ppb)));
        prop_assert_eq!(Chance::read_decimal(&format!("{:?}", f64::from(ppb) / 1e9)), Ok(Chance(ppb)));
        let rate = Rate { count: bytes + 1, per: Time(ns + 1) };
        if rate.count <= 1_000_000_000_000 && rate.per.0 <= TIME_MAX_NS {
            prop_assert_eq!(Rate::read(&rate.to_string()), Ok(rate));
        }
    }

    #[test]
    fn no_text_panics(text in "\\PC{0,40}") {
        let _ = (Time::read(&text), SignedTime::read(&text), Drift::read(&text), Size::read(&text));
        let _ = (Bandwidth::read(&text), Rate::read(&text), Chance::read(&text), Chance::read_decimal(&text));
    }

    #[test]
    fn nearly_quantities_do_not_panic(text in "[-+0-9._e /a-zA-Z%µ]{0,30}") {
        let _ = (Time::read(&text), SignedTime::read(&text), Drift::read(&text), Size::read(&text));
        let _ = (Bandwidth::read(&text), Rate::read(&text), Chance::read(&text), Chance::read_decimal(&text));
    }
}
