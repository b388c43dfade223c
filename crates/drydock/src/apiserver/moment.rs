//! Times as Go reads and writes them: `metav1.Time` in whole seconds, `metav1.MicroTime` with exactly six digits more.
//!
//! What is read is written again in UTC. What cannot be read is refused in the words of Go's `time.Parse`, which say how
//! far it came.

use jiff::civil::DateTime;
use jiff::{SignedDuration, civil};

/// How fine a time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Seconds,
    Microseconds,
}

impl Precision {
    /// How Go writes down the form of such a time.
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Microseconds => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// Why a text is no time.
enum Wrong {
    /// What was left could not be read as this element of the layout.
    Unreadable(String, &'static str),
    OutOfRange(&'static str),
    Extra(String),
}

/// Reads a time and brings it into the form Go writes it in; `None` is the time that Go writes as nothing. The error is
/// Go's.
pub(crate) fn normal(text: &str, precision: Precision) -> Result<Option<String>, String> {
    let moment = parse(text, precision).map_err(|wrong| match wrong {
        Wrong::Unreadable(rest, element) => {
            let layout = precision.layout();
            format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}")
        }
        Wrong::OutOfRange(what) => format!("parsing time {text:?}: {what} out of range"),
        Wrong::Extra(rest) => format!("parsing time {text:?}: extra text: {rest:?}"),
    })?;
    let zero = civil::datetime(1, 1, 1, 0, 0, 0, 0);
    if moment == zero {
        return Ok(None);
    }
    let fraction = match precision {
        Precision::Seconds => String::new(),
        Precision::Microseconds => format!(".{:06}", moment.subsec_nanosecond() / 1000),
    };
    let (date, time) = (moment.date(), moment.time());
    Ok(Some(format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{fraction}Z",
        date.year(),
        date.month(),
        date.day(),
        time.hour(),
        time.minute(),
        time.second()
    )))
}

/// What is left of a text.
struct Rest<'a>(&'a str);

impl Rest<'_> {
    fn unreadable<T>(&self, element: &'static str) -> Result<T, Wrong> {
        Err(Wrong::Unreadable(self.0.to_owned(), element))
    }

    /// A sign of the layout.
    fn sign(&mut self, sign: &'static str) -> Result<(), Wrong> {
        self.0 = match self.0.strip_prefix(sign) {
            Some(rest) => rest,
            None => return self.unreadable(sign),
        };
        Ok(())
    }

    /// A number of so many digits, or of fewer where that is allowed.
    fn number(&mut self, element: &'static str, (least, most): (usize, usize)) -> Result<i16, Wrong> {
        let found = self.0.bytes().take(most).take_while(u8::is_ascii_digit).count();
        if found < least {
            return self.unreadable(element);
        }
        let (digits, rest) = self.0.split_at(found);
        self.0 = rest;
        Ok(digits.parse().unwrap_or_default())
    }

    fn within(
        &mut self,
        element: &'static str,
        least: usize,
        bounds: (i16, i16),
        name: &'static str,
    ) -> Result<i16, Wrong> {
        let number = self.number(element, (least, 2))?;
        if (bounds.0..=bounds.1).contains(&number) { Ok(number) } else { Err(Wrong::OutOfRange(name)) }
    }

    /// Nanoseconds. Go takes a comma for a point, and as many digits as there are where the layout has none.
    fn fraction(&mut self, precision: Precision) -> Result<i32, Wrong> {
        let digits = self.0.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        let wanted = match precision {
            Precision::Seconds => digits,
            Precision::Microseconds => 6,
        };
        if !self.0.starts_with(['.', ',']) || digits == 0 || digits < wanted {
            return if precision == Precision::Seconds { Ok(0) } else { self.unreadable(".000000") };
        }
        let (fraction, rest) = self.0.split_at(1 + wanted);
        self.0 = rest;
        let nanoseconds: String = fraction.chars().skip(1).chain("000000000".chars()).take(9).collect();
        Ok(nanoseconds.parse().unwrap_or_default())
    }

    /// The seconds that a zone is ahead of UTC.
    fn zone(&mut self) -> Result<i64, Wrong> {
        const ELEMENT: &str = "Z07:00";
        if let Some(rest) = self.0.strip_prefix('Z') {
            self.0 = rest;
            return Ok(0);
        }
        let [sign, hour @ .., b':', tens, ones] = self.0.as_bytes().get(..6).unwrap_or_default() else {
            return self.unreadable(ELEMENT);
        };
        let number = |digits: &[u8]| std::str::from_utf8(digits).ok()?.parse::<u8>().ok().map(i64::from);
        let read = hour.iter().chain([tens, ones]).all(u8::is_ascii_digit) && b"+-".contains(sign);
        let (Some(hours), Some(minutes), true) = (number(hour), number(&[*tens, *ones]), read) else {
            return self.unreadable(ELEMENT);
        };
        if hours > 24 {
            return Err(Wrong::OutOfRange("time zone offset hour"));
        }
        if minutes > 60 {
            return Err(Wrong::OutOfRange("time zone offset minute"));
        }
        let ahead = (hours * 60 + minutes) * 60;
        let ahead = if *sign == b'-' { -ahead } else { ahead };
        self.0 = self.0.get(6..).unwrap_or_default();
        Ok(ahead)
    }
}

fn parse(text: &str, precision: Precision) -> Result<DateTime, Wrong> {
    let mut rest = Rest(text);
    let year = rest.number("2006", (4, 4))?;
    rest.sign("-")?;
    let month = rest.within("01", 2, (1, 12), "month")?;
    rest.sign("-")?;
    let day = rest.number("02", (2, 2))?;
    rest.sign("T")?;
    let hour = rest.within("15", 1, (0, 23), "hour")?;
    rest.sign(":")?;
    let minute = rest.within("04", 2, (0, 59), "minute")?;
    rest.sign(":")?;
    let second = rest.within("05", 2, (0, 59), "second")?;
    let nanosecond = rest.fraction(precision)?;
    let ahead = rest.zone()?;
    if !rest.0.is_empty() {
        return Err(Wrong::Extra(rest.0.to_owned()));
    }
    let small = |number: i16| i8::try_from(number).unwrap_or_default();
    let time = civil::Time::new(small(hour), small(minute), small(second), nanosecond);
    let date = civil::Date::new(year, small(month), small(day)).map_err(|_| Wrong::OutOfRange("day"))?;
    let time = time.map_err(|_| Wrong::OutOfRange("second"))?;
    let moment = DateTime::from_parts(date, time);
    Ok(moment.checked_sub(SignedDuration::from_secs(ahead)).unwrap_or(moment))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fine(text: &str) -> String {
        normal(text, Precision::Microseconds).unwrap_or_else(Some).unwrap_or_default()
    }

    fn plain(text: &str) -> String {
        normal(text, Precision::Seconds).unwrap_or_else(Some).unwrap_or_default()
    }

    #[test]
    fn times_are_written_in_utc() {
        assert_eq!(fine("2026-01-02T03:04:05.123456Z"), "2026-01-02T03:04:05.123456Z");
        assert_eq!(fine("2026-01-02T03:04:05,123456-05:30"), "2026-01-02T08:34:05.123456Z");
        assert_eq!(plain("2026-01-02T03:04:05.999999999Z"), "2026-01-02T03:04:05Z");
        assert_eq!(plain("2026-01-02T3:04:05+24:00"), "2026-01-01T03:04:05Z");
        assert_eq!(plain("0001-01-01T00:00:00Z"), "");
    }

    #[test]
    fn a_lease_wants_six_digits() {
        for (text, rest, element) in [
            ("2026-01-02T03:04:05Z", "Z", ".000000"),
            ("2026-01-02T03:04:05.123Z", ".123Z", ".000000"),
            ("2026-01-02T03:04:05.123456789Z", "789Z", "Z07:00"),
            ("2026-1-02T03:04:05Z", "1-02T03:04:05Z", "01"),
            ("10000-01-01T00:00:00Z", "0-01-01T00:00:00Z", "-"),
            ("now", "now", "2006"),
        ] {
            let layout = Precision::Microseconds.layout();
            assert_eq!(
                fine(text),
                format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {element:?}")
            );
        }
    }

    #[test]
    fn what_is_out_of_range_is_said() {
        assert_eq!(plain("2026-13-02T03:04:05Z"), "parsing time \"2026-13-02T03:04:05Z\": month out of range");
        assert_eq!(plain("2026-02-30T03:04:05Z"), "parsing time \"2026-02-30T03:04:05Z\": day out of range");
        assert_eq!(plain("2026-01-02T03:04:05Zx"), "parsing time \"2026-01-02T03:04:05Zx\": extra text: \"x\"");
    }
}
