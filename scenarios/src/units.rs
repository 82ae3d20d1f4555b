//! Quantities with explicit units, as scenario files and plans spell them: `"40 ms"`, `"512 B"`, `"1 Gbit/s"`, `"2000/s"`.
//!
//! Parsing is integer arithmetic from end to end, so that a text means the same number on every machine, and printing is
//! exact: what [`std::fmt::Display`] writes parses back to the same value. A bare number is refused: a unit that is not
//! written down is a unit that two readers take differently.

use crate::nearest::nearest;
use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// Nanoseconds in ten years of 365.25 days: the longest duration that a scenario may name.
pub const TIME_MAX_NS: u64 = 315_576_000 * 1_000_000_000;

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnitError {
    /// Nothing, or no digit.
    NotANumber,
    /// A number without a unit.
    Missing,
    /// A unit that does not exist here; the nearest valid one, if one is near.
    Unknown {
        /// What was written.
        unit: String,
        /// What may have been meant.
        nearest: Option<&'static str>,
    },
    /// Below zero where only zero or more makes sense.
    Negative,
    /// Zero where something must be there.
    Zero,
    /// Above the limit, given as text.
    TooLarge(&'static str),
    /// More digits after the point than the finest unit has.
    TooFine,
}

/// One kind of quantity: its units and how a reader should be told.
pub trait Quantity: Sized {
    /// What it is, for messages: "a duration".
    const WHAT: &'static str;
    /// An example, for messages: `"10 s"`.
    const EXAMPLE: &'static str;
    /// Its units, smallest first, for messages.
    const UNITS: &'static [&'static str];
    /// Reads it.
    ///
    /// # Errors
    /// See [`UnitError`].
    fn read(text: &str) -> Result<Self, UnitError>;
}

impl UnitError {
    /// The message and the advice for a text that should have been a `Q`.
    #[must_use]
    pub fn explain<Q: Quantity>(&self, text: &str) -> (String, String) {
        let shown = clip(text, 40);
        let units = Q::UNITS.join(", ");
        let help = format!("write {} with its unit, such as \"{}\" (units: {units})", Q::WHAT, Q::EXAMPLE);
        let message = match self {
            Self::NotANumber => format!("`{shown}` is not {}", Q::WHAT),
            Self::Missing => format!("`{shown}` has no unit"),
            Self::Unknown { unit, nearest } => {
                let message = format!("`{}` is not a unit of {}", clip(unit, 40), Q::WHAT);
                if let Some(nearest) = nearest {
                    return (message, format!("did you mean `{nearest}`? (units: {units})"));
                }
                message
            }
            Self::Negative => format!("`{shown}` is negative; {} cannot be", Q::WHAT),
            Self::Zero => format!("`{shown}` is zero; {} must be above zero here", Q::WHAT),
            Self::TooLarge(limit) => {
                return (format!("`{shown}` is too large for {}", Q::WHAT), format!("the limit is {limit}"));
            }
            Self::TooFine => format!("`{shown}` has more digits than the finest unit, {}, can hold", Q::UNITS[0]),
        };
        (message, help)
    }
}

/// Cuts a text for a message, on a character border.
pub(crate) fn clip(text: &str, max: usize) -> String {
    if text.chars().nth(max).is_none() {
        return text.escape_debug().to_string();
    }
    let head: String = text.chars().take(max).collect();
    format!("{}…", head.escape_debug())
}

/// Splits `"-1.5 ms"` into sign, digits, fraction and unit.
fn split(text: &str) -> Result<(bool, &str, &str, &str), UnitError> {
    let text = text.trim();
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_' || c == '.').len();
    let (number, unit) = rest.split_at(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit() || c == '_');
    if whole.is_empty() || !digits(whole) || !digits(fraction) || !whole.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(UnitError::NotANumber);
    }
    if number.contains('.') && !fraction.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(UnitError::NotANumber);
    }
    Ok((negative, whole, fraction, unit.trim()))
}

/// Reads `whole.fraction` times `scale` exactly.
fn scaled(whole: &str, fraction: &str, scale: u64, limit: u64, name: &'static str) -> Result<u64, UnitError> {
    let mut value: u128 = 0;
    for c in whole.bytes().filter(u8::is_ascii_digit) {
        value = value * 10 + u128::from(c - b'0');
        if value > u128::from(u64::MAX) {
            return Err(UnitError::TooLarge(name));
        }
    }
    value *= u128::from(scale);
    let (mut part, mut tens): (u128, u128) = (0, 1);
    for c in fraction.trim_end_matches(['0', '_']).bytes().filter(u8::is_ascii_digit) {
        if tens >= 1_000_000_000_000_000_000 {
            return Err(UnitError::TooFine);
        }
        (part, tens) = (part * 10 + u128::from(c - b'0'), tens * 10);
    }
    let part = part * u128::from(scale);
    if part % tens != 0 {
        return Err(UnitError::TooFine);
    }
    value += part / tens;
    match u64::try_from(value) {
        Ok(value) if value <= limit => Ok(value),
        _ => Err(UnitError::TooLarge(name)),
    }
}

/// Finds a unit's scale.
fn unit_of(unit: &str, table: &[(&'static str, u64)]) -> Result<u64, UnitError> {
    if unit.is_empty() {
        return Err(UnitError::Missing);
    }
    if let Some((_, scale)) = table.iter().find(|(name, _)| *name == unit) {
        return Ok(*scale);
    }
    let nearest = nearest(unit, table.iter().map(|(name, _)| *name));
    Err(UnitError::Unknown { unit: unit.to_owned(), nearest })
}

/// Reads a quantity that cannot be negative.
fn read_unsigned(text: &str, table: &[(&'static str, u64)], limit: u64, name: &'static str) -> Result<u64, UnitError> {
    let (negative, whole, fraction, unit) = split(text)?;
    let scale = unit_of(unit, table)?;
    if negative {
        return Err(UnitError::Negative);
    }
    scaled(whole, fraction, scale, limit, name)
}

/// Writes `value` in the largest unit that divides it.
fn write_exact(f: &mut fmt::Formatter<'_>, value: u64, table: &[(&'static str, u64)], zero: &str) -> fmt::Result {
    if value == 0 {
        return f.write_str(zero);
    }
    let (name, scale) = table.iter().rev().find(|(_, scale)| value % scale == 0).unwrap_or(&table[0]);
    write!(f, "{} {name}", value / scale)
}

/// What is written as a text has: serde as that text, and its JSON schema.
macro_rules! as_text {
    ($name:ident, $schema:tt) => {
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }
        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!($schema)
            }
        }
    };
}
pub(crate) use as_text;

/// What every quantity has.
macro_rules! textual {
    ($name:ident, $pattern:literal) => {
        as_text!($name, {
            "type": "string",
            "description": format!("{} with its unit, such as {}", <$name as Quantity>::WHAT, <$name as Quantity>::EXAMPLE),
            "pattern": $pattern,
            "examples": [<$name as Quantity>::EXAMPLE],
        });
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({self})", stringify!($name))
            }
        }
    };
}

// ---------------------------------------------------------------------------------------------------------------- time

const TIMES: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
const TIME_NAMES: &[&str] = &["ns", "us", "ms", "s", "min", "h", "d"];

/// A duration, or an instant since the start of the run, in nanoseconds; at most ten years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(pub u64);
textual!(Time, r"^\s*\+?[0-9][0-9_]*(\.[0-9_]+)?\s*(ns|us|µs|ms|s|min|h|d)\s*$");

impl Time {
    /// Whole seconds; saturates.
    #[must_use]
    pub const fn secs(s: u64) -> Self {
        Self(s.saturating_mul(1_000_000_000))
    }
    /// Whole milliseconds; saturates.
    #[must_use]
    pub const fn millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000_000))
    }
    /// As the model's nanoseconds.
    #[must_use]
    pub const fn nanos(self) -> mirrorlab_model::ids::Nanos {
        mirrorlab_model::ids::Nanos(self.0)
    }
    /// `self + other`; saturates.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Quantity for Time {
    const WHAT: &'static str = "a duration";
    const EXAMPLE: &'static str = "10 s";
    const UNITS: &'static [&'static str] = TIME_NAMES;
    fn read(text: &str) -> Result<Self, UnitError> {
        let text = text.replace('µ', "u");
        read_unsigned(&text, TIMES, TIME_MAX_NS, "10 years (3652.5 d)").map(Self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, TIMES, "0 s")
    }
}

/// A duration with a sign, in nanoseconds: by how much a clock jumps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SignedTime(pub i64);
textual!(SignedTime, r"^\s*[-+]?\s*[0-9][0-9_]*(\.[0-9_]+)?\s*(ns|us|µs|ms|s|min|h|d)\s*$");

impl Quantity for SignedTime {
    const WHAT: &'static str = "a duration with a sign";
    const EXAMPLE: &'static str = "-3 s";
    const UNITS: &'static [&'static str] = TIME_NAMES;
    fn read(text: &str) -> Result<Self, UnitError> {
        let text = text.replace('µ', "u");
        let (negative, ..) = split(&text)?;
        let size = Time::read(text.trim_start().trim_start_matches('-'))?.0;
        let size = i64::try_from(size).map_err(|_| UnitError::TooLarge("10 years"))?;
        Ok(Self(if negative { -size } else { size }))
    }
}

impl fmt::Display for SignedTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write_exact(f, self.0.unsigned_abs(), TIMES, "0 s")
    }
}

/// How much a clock is off per second, in parts per billion.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Drift(pub i64);
textual!(Drift, r"^\s*[-+]?\s*[0-9][0-9_]*(\.[0-9_]+)?\s*(ppb|ppm)\s*$");

const DRIFTS: &[(&str, u64)] = &[("ppb", 1), ("ppm", 1_000)];

impl Quantity for Drift {
    const WHAT: &'static str = "a clock drift";
    const EXAMPLE: &'static str = "200 ppm";
    const UNITS: &'static [&'static str] = &["ppb", "ppm"];
    fn read(text: &str) -> Result<Self, UnitError> {
        let (negative, whole, fraction, unit) = split(text)?;
        let size = scaled(whole, fraction, unit_of(unit, DRIFTS)?, 500_000_000, "500000 ppm")?;
        let size = i64::try_from(size).map_err(|_| UnitError::TooLarge("500000 ppm"))?;
        Ok(Self(if negative { -size } else { size }))
    }
}

impl fmt::Display for Drift {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write_exact(f, self.0.unsigned_abs(), DRIFTS, "0 ppm")
    }
}

// ------------------------------------------------------------------------------------------------------- bytes and rates

const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("TB", 1_000_000_000_000),
    ("TiB", 1 << 40),
];

/// A number of bytes; at most 1024 TiB.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Size(pub u64);
textual!(Size, r"^\s*\+?[0-9][0-9_]*(\.[0-9_]+)?\s*(B|kB|KiB|MB|MiB|GB|GiB|TB|TiB)\s*$");

impl Quantity for Size {
    const WHAT: &'static str = "a size";
    const EXAMPLE: &'static str = "512 B";
    const UNITS: &'static [&'static str] = &["B", "kB", "KiB", "MB", "MiB", "GB", "GiB", "TB", "TiB"];
    fn read(text: &str) -> Result<Self, UnitError> {
        read_unsigned(text, SIZES, 1 << 50, "1024 TiB").map(Self)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, SIZES, "0 B")
    }
}

const BANDWIDTHS: &[(&str, u64)] = &[
    ("bit/s", 1),
    ("B/s", 8),
    ("kbit/s", 1_000),
    ("kB/s", 8_000),
    ("KiB/s", 8 << 10),
    ("Mbit/s", 1_000_000),
    ("MB/s", 8_000_000),
    ("MiB/s", 8 << 20),
    ("Gbit/s", 1_000_000_000),
    ("GB/s", 8_000_000_000),
    ("GiB/s", 8 << 30),
    ("Tbit/s", 1_000_000_000_000),
];

/// Bits per second; above zero, at most 1000 Tbit/s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(pub u64);
textual!(Bandwidth, r"^\s*\+?[0-9][0-9_]*(\.[0-9_]+)?\s*((k|M|G|T)?bit|(k|Ki|M|Mi|G|Gi)?B)/s\s*$");

impl Quantity for Bandwidth {
    const WHAT: &'static str = "a bandwidth";
    const EXAMPLE: &'static str = "1 Gbit/s";
    const UNITS: &'static [&'static str] =
        &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s", "B/s", "kB/s", "KiB/s", "MB/s", "MiB/s", "GB/s", "GiB/s"];
    fn read(text: &str) -> Result<Self, UnitError> {
        match read_unsigned(text, BANDWIDTHS, 1_000_000_000_000_000, "1000 Tbit/s")? {
            0 => Err(UnitError::Zero),
            bits => Ok(Self(bits)),
        }
    }
}

impl fmt::Display for Bandwidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_exact(f, self.0, BANDWIDTHS, "0 bit/s")
    }
}

/// So many records per so long; both above zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate {
    /// Records.
    pub count: u64,
    /// Per this long.
    pub per: Time,
}
textual!(Rate, r"^\s*[0-9][0-9_]*\s*/\s*([0-9][0-9_]*(\.[0-9_]+)?\s*)?(ns|us|µs|ms|s|min|h|d)\s*$");

impl Rate {
    /// Nanoseconds from one record to the next, rounded down; at least 1.
    #[must_use]
    pub fn interval(self) -> Time {
        Time((self.per.0 / self.count.max(1)).max(1))
    }
}

impl Quantity for Rate {
    const WHAT: &'static str = "a rate";
    const EXAMPLE: &'static str = "2000/s";
    const UNITS: &'static [&'static str] = &["/ms", "/s", "/min", "/h", "/d"];
    fn read(text: &str) -> Result<Self, UnitError> {
        let Some((count, per)) = text.split_once('/') else {
            let (.., unit) = split(text)?;
            return Err(if unit.is_empty() {
                UnitError::Missing
            } else {
                UnitError::Unknown { unit: unit.to_owned(), nearest: None }
            });
        };
        let (negative, whole, fraction, unit) = split(count)?;
        if negative {
            return Err(UnitError::Negative);
        }
        if !unit.is_empty() {
            return Err(UnitError::Unknown { unit: format!("{unit}/{}", per.trim()), nearest: None });
        }
        let count = scaled(whole, fraction, 1, 1_000_000_000_000, "1000000000000/s")?;
        let per = per.trim();
        let per = if per.starts_with(|c: char| c.is_ascii_digit()) {
            Time::read(per)
        } else {
            Time::read(&format!("1 {per}"))
        };
        let per = per.map_err(|error| match error {
            UnitError::NotANumber => UnitError::Unknown { unit: "/".to_owned(), nearest: None },
            other => other,
        })?;
        if count == 0 || per.0 == 0 {
            return Err(UnitError::Zero);
        }
        Ok(Self { count, per })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match TIMES.iter().find(|(_, scale)| *scale == self.per.0) {
            Some((name, _)) => write!(f, "{}/{name}", self.count),
            None => write!(f, "{}/{}", self.count, self.per),
        }
    }
}

// --------------------------------------------------------------------------------------------------------------- chances

/// A probability in parts per billion, 0 to 1,000,000,000. Files write `0.0001` or `"0.01 %"`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Chance(pub u32);

const BILLION: u64 = 1_000_000_000;

impl Chance {
    /// Reads a decimal such as `0.0001` or `1`, also in exponent form (`1e-4`).
    ///
    /// # Errors
    /// [`UnitError`]; outside 0 to 1 is `Negative` or `TooLarge`.
    pub fn read_decimal(text: &str) -> Result<Self, UnitError> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().map_err(|_| UnitError::NotANumber)?),
            None => (text, 0),
        };
        let (negative, whole, fraction, unit) = split(mantissa)?;
        if !unit.is_empty() {
            return Err(UnitError::NotANumber);
        }
        let digits: String = whole.chars().chain(fraction.chars()).filter(char::is_ascii_digit).collect();
        if digits.bytes().all(|c| c == b'0') {
            return Ok(Self(0));
        }
        if negative {
            return Err(UnitError::Negative);
        }
        let places = fraction.bytes().filter(u8::is_ascii_digit).count();
        let point = i64::from(exponent) - i64::try_from(places).map_err(|_| UnitError::TooFine)?;
        let digits = digits.trim_start_matches('0');
        let zeros = digits.len() - digits.trim_end_matches('0').len();
        let shift = point + i64::try_from(zeros).map_err(|_| UnitError::TooFine)? + 9;
        let digits = &digits[..digits.len() - zeros];
        if shift < 0 {
            let whole_part = i64::try_from(digits.len()).unwrap_or(i64::MAX) + shift;
            return Err(if whole_part > 10 { UnitError::TooLarge("1") } else { UnitError::TooFine });
        }
        if digits.len() > 10 || shift > 10 {
            return Err(UnitError::TooLarge("1"));
        }
        let value = digits.parse::<u64>().map_err(|_| UnitError::NotANumber)?;
        let scale = 10u64.pow(u32::try_from(shift).unwrap_or(10));
        match value.checked_mul(scale) {
            Some(value) if value <= BILLION => Ok(Self(u32::try_from(value).unwrap_or(u32::MAX))),
            _ => Err(UnitError::TooLarge("1")),
        }
    }
}

impl Quantity for Chance {
    const WHAT: &'static str = "a probability";
    const EXAMPLE: &'static str = "0.01 %";
    const UNITS: &'static [&'static str] = &["%", "or a plain number from 0 to 1"];
    fn read(text: &str) -> Result<Self, UnitError> {
        let parts = read_unsigned(text, &[("%", BILLION / 100)], BILLION, "100 %")?;
        Ok(Self(u32::try_from(parts).unwrap_or(u32::MAX)))
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, part) = (u64::from(self.0) / BILLION, u64::from(self.0) % BILLION);
        let part = format!("{part:09}");
        match part.trim_end_matches('0') {
            "" => write!(f, "{whole}.0"),
            part => write!(f, "{whole}.{part}"),
        }
    }
}

impl fmt::Debug for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chance({self})")
    }
}

impl Serialize for Chance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // The nearest double of at most ten digits prints and parses back to the same digits.
        serializer.serialize_f64(f64::from(self.0) / 1e9)
    }
}

impl JsonSchema for Chance {
    fn schema_name() -> Cow<'static, str> {
        "Chance".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "a probability: a number from 0 to 1, or a text such as \"0.01 %\"",
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": r"^\s*\+?[0-9][0-9_]*(\.[0-9_]+)?\s*%\s*$" },
            ],
        })
    }
}

#[cfg(test)]
#[path = "units_tests.rs"]
mod tests;
