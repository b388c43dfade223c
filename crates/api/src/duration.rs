//! Go durations: `1m30s`, `1.5h`, `500ms`. Manifests are written in this language and Events answer in it.
//!
//! What an empty, broken or too short interval *means* is here too, so that the rules, the checks and the messages agree.

use std::fmt;
use std::time::Duration;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// The time between two checks when none is given, or when it cannot be read.
pub const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);
/// The shortest time between two checks.
pub const LEAST_INTERVAL: Duration = Duration::from_secs(10);
/// The time limit of a webhook when none is given.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not of the form number, unit, number, unit, …
    #[error("\"{0}\" is not a duration")]
    Invalid(String),
    /// A number without a unit.
    #[error("\"{0}\" has a number without a unit")]
    MissingUnit(String),
    /// A unit Go does not know.
    #[error("\"{0}\" has the unknown unit \"{1}\"")]
    UnknownUnit(String, String),
    /// Below zero; nothing in a Canary may be.
    #[error("\"{0}\" is negative")]
    Negative(String),
    /// More than 292 years.
    #[error("\"{0}\" is too long")]
    TooLong(String),
}

/// Reads a duration as Go's `time.ParseDuration` does; a negative one is an error.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let too_long = || DurationError::TooLong(text.to_owned());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    // A lone zero needs no unit.
    if rest == "0" {
        rest = "";
    }
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let nanos = match unit {
            "" => return Err(DurationError::MissingUnit(text.to_owned())),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => NANOS_PER_SECOND,
            "m" => 60 * NANOS_PER_SECOND,
            "h" => 3_600 * NANOS_PER_SECOND,
            _ => return Err(DurationError::UnknownUnit(text.to_owned(), unit.to_owned())),
        };
        let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| too_long())? };
        let part = whole.checked_mul(nanos).and_then(|part| part.checked_add(scale(fraction, nanos)));
        total = part.and_then(|part| total.checked_add(part)).ok_or_else(too_long)?;
        rest = after;
    }
    match (negative && total > 0, i64::try_from(total)) {
        (true, _) => Err(DurationError::Negative(text.to_owned())),
        (false, Err(_)) => Err(too_long()),
        (false, Ok(_)) => Ok(Duration::from_nanos(total)),
    }
}

/// The leading digits of `text`, and what follows them.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The fraction `0.{digits}` of `unit` nanoseconds. Digits beyond the ninth are below a nanosecond for every unit up to a
/// second and are dropped, as Go drops what does not fit.
fn scale(digits: &str, unit: u64) -> u64 {
    let mut value = u128::from(unit);
    let mut sum: u128 = 0;
    let mut divisor: u128 = 1;
    for digit in digits.bytes().take(18) {
        divisor *= 10;
        sum = sum * 10 + u128::from(digit - b'0');
    }
    value *= sum;
    (value / divisor) as u64
}

/// A duration that prints as Go's `%v` does: `1m0s`, `1.515s`, `500ms`, `0s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Go(pub Duration);

impl fmt::Display for Go {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let second = u128::from(NANOS_PER_SECOND);
        if nanos == 0 {
            return f.write_str("0s");
        }
        if nanos < second {
            let (unit, name, places) = match nanos {
                0..=999 => (1, "ns", 0),
                1_000..=999_999 => (1_000, "µs", 3),
                _ => (1_000_000, "ms", 6),
            };
            return write!(f, "{}{}{name}", nanos / unit, Fraction(nanos % unit, places));
        }
        let seconds = nanos / second;
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        write!(f, "{}{}s", seconds % 60, Fraction(nanos % second, 9))
    }
}

/// `.5` for 500 of three places; nothing for zero.
struct Fraction(u128, usize);

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return Ok(());
        }
        let digits = format!("{:0places$}", self.0, places = self.1);
        write!(f, ".{}", digits.trim_end_matches('0'))
    }
}

/// Formats as Go's `%v` does.
pub fn format(duration: Duration) -> String {
    Go(duration).to_string()
}

/// What an `analysis.interval` means, and what was done to get there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Interval {
    /// As written.
    Given(Duration),
    /// Nothing was written.
    Default,
    /// Shorter than [`LEAST_INTERVAL`], which is used.
    Raised,
    /// Not readable; the default is used.
    Broken(DurationError),
}

impl Interval {
    /// Reads `analysis.interval`.
    pub fn of(text: &str) -> Self {
        if text.is_empty() {
            return Self::Default;
        }
        match parse(text) {
            Ok(interval) if interval < LEAST_INTERVAL => Self::Raised,
            Err(DurationError::Negative(_)) => Self::Raised,
            Ok(interval) => Self::Given(interval),
            Err(error) => Self::Broken(error),
        }
    }

    /// The time between two checks.
    pub fn duration(&self) -> Duration {
        match self {
            Self::Given(interval) => *interval,
            Self::Default | Self::Broken(_) => DEFAULT_INTERVAL,
            Self::Raised => LEAST_INTERVAL,
        }
    }
}

/// The time limit a `webhook.timeout` means: nothing, or a single character, is [`DEFAULT_TIMEOUT`].
pub fn timeout(text: &str) -> Result<Duration, DurationError> {
    if text.len() < 2 { Ok(DEFAULT_TIMEOUT) } else { parse(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_go_reads() {
        for (text, nanos) in [
            ("0", 0_u64),
            ("+0", 0),
            ("-0", 0),
            ("0s", 0),
            ("1m30s", 90_000_000_000),
            ("1h15m30.918s", 4_530_918_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("500ms", 500_000_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("3μs", 3_000),
            ("7ns", 7),
            ("0.3333333333333333333h", 1_200_000_000_000 - 1),
            ("9223372036.854775807s", 9_223_372_036_854_775_807),
        ] {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
    }

    #[test]
    fn refuses_what_go_refuses() {
        for text in [
            "",
            "+",
            "-",
            "s",
            ".",
            ".s",
            "3",
            "10sx",
            "1m30",
            "1 m",
            "1d",
            "one",
            "1m -3s",
            "9999999999999999999h",
            "9223372037s",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("-1s"), Err(DurationError::Negative("-1s".into())));
        assert_eq!(parse("10sx"), Err(DurationError::UnknownUnit("10sx".into(), "sx".into())));
    }

    #[test]
    fn prints_as_go_prints() {
        for (text, printed) in [
            ("60s", "1m0s"),
            ("1515ms", "1.515s"),
            ("500ms", "500ms"),
            ("0s", "0s"),
            ("90m", "1h30m0s"),
            ("1h", "1h0m0s"),
            ("1500us", "1.5ms"),
            ("1100ns", "1.1µs"),
            ("7ns", "7ns"),
            ("2h0.5s", "2h0m0.5s"),
        ] {
            assert_eq!(format(parse(text).unwrap()), printed, "{text}");
        }
    }

    #[test]
    fn intervals_keep_the_meaning_flagger_gives_them() {
        let seconds = |text| Interval::of(text).duration().as_secs();
        assert_eq!([seconds(""), seconds("1m"), seconds("90s"), seconds("1m30s")], [60, 60, 90, 90]);
        assert_eq!([seconds("0s"), seconds("9s"), seconds("10s"), seconds("-5s")], [10, 10, 10, 10]);
        assert_eq!([seconds("10sx"), seconds("10minutes")], [60, 60]);
        assert_eq!(timeout("").unwrap(), timeout("5").unwrap());
        assert!(timeout("5x").is_err());
    }
}
