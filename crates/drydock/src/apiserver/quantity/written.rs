//! How amounts are written: what their parts are, and the form in which each is stored, however many digits it has.

use super::{BINARY, COARSEST, DECIMAL, FINEST, Form};

/// What Go says about a text that is no quantity at all.
pub(super) const NO_QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const NO_SUFFIX: &str = "unable to parse quantity's suffix";

/// So many digits does Go read the short way, which may leave a text as it was written.
const SHORT: usize = 18;
/// The same of powers of 1024, which bring digits of their own.
const SHORT_BINARY: usize = 14;
/// The most that is counted in powers of 1024.
const MOST_BINARY: &str = "9223372036854775807";
/// Resources of pods are counted in thousandths.
const THOUSANDTH: i64 = -3;

/// The parts of an amount: a number, and what it is multiplied by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    pub(super) negative: bool,
    /// Without zeroes in front; one if there is nothing else.
    pub(super) whole: &'a str,
    pub(super) fraction: &'a str,
    pub(super) form: Form,
    /// The power of ten of a suffix, or how often 1024 is meant.
    pub(super) exponent: i32,
}

impl<'a> Written<'a> {
    /// Reads a text as Go does. The error is Go's.
    pub(super) fn read(text: &'a str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err(NO_QUANTITY);
        }
        let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
        let stripped = unsigned.trim_start_matches('0');
        let (whole, rest) = stripped.split_at(digits(stripped));
        let (fraction, rest) = match rest.strip_prefix('.') {
            Some(rest) => rest.split_at(digits(rest)),
            None => ("", rest),
        };
        let letters = rest.trim_start_matches(|sign: char| "eEinumkKMGTP".contains(sign));
        let number = letters.strip_prefix(['-', '+']).unwrap_or(letters);
        if digits(number) < number.len() {
            return Err(NO_QUANTITY);
        }
        let (form, exponent) = suffix(rest).ok_or(NO_SUFFIX)?;
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Self { negative: text.starts_with('-'), whole, fraction, form, exponent })
    }

    /// Whether Go reads it the short way, into a whole number of 64 bits.
    pub(super) fn is_short(self) -> bool {
        let digits = self.whole.len() + self.fraction.len();
        if self.form == Form::Binary {
            let power = usize::try_from(self.exponent).unwrap_or_default();
            return self.fraction.is_empty() && digits + power * 3 <= SHORT_BINARY;
        }
        digits <= SHORT && self.scale() >= i64::from(FINEST)
    }

    /// The power of ten of the last digit.
    fn scale(self) -> i64 {
        i64::from(self.exponent) - self.fraction.len() as i64
    }

    /// Whether Go leaves the text alone, since it looks as if it had written it itself.
    fn stays(self) -> bool {
        let all = format!("{}{}", self.whole, self.fraction);
        let tidy = if self.form == Form::Binary {
            all.parse::<i64>().is_ok_and(|number| number % 8 != 0)
        } else {
            self.scale() % 3 == 0 && !all.ends_with("000") && !all.starts_with('0')
        };
        tidy && self.is_short()
    }

    fn amount(self) -> Amount {
        let mut amount = Amount {
            digits: format!("{}{}", self.whole, self.fraction).into_bytes(),
            exponent: -(self.fraction.len() as i64),
        };
        if self.form == Form::Binary {
            amount.multiply(1024_u64.pow(self.exponent.unsigned_abs()));
        } else {
            amount.exponent += i64::from(self.exponent);
        }
        amount.tidy();
        amount.round_up(i64::from(FINEST));
        if self.form == Form::Binary && amount.exceeds(MOST_BINARY) {
            amount = Amount { digits: MOST_BINARY.as_bytes().to_vec(), exponent: 0 };
        }
        amount
    }
}

/// The form in which an amount is stored: as it was written if that is a form of its own, or else Go's. What is `coarse`
/// is counted in thousandths.
pub(crate) fn stored(text: &str, coarse: bool) -> Result<String, &'static str> {
    let text = text.trim();
    let written = Written::read(text)?;
    let mut amount = written.amount();
    let exact = !coarse || amount.exponent >= THOUSANDTH;
    if written.stays() && exact {
        return Ok(text.to_owned());
    }
    if !exact {
        amount.round_up(THOUSANDTH);
    }
    Ok(amount.shown(written.negative, written.form))
}

fn digits(text: &str) -> usize {
    text.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(text.len())
}

fn suffix(suffix: &str) -> Option<(Form, i32)> {
    if let Some(place) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((Form::Decimal, i32::try_from(place).ok()? * 3 + FINEST));
    }
    if let Some(place) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Form::Binary, i32::try_from(place).ok()? + 1));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Form::Exponent, exponent.parse().ok()?))
}

/// A number without a sign: digits, times a power of ten.
struct Amount {
    digits: Vec<u8>,
    exponent: i64,
}

impl Amount {
    /// Without zeroes at either end; zero has no digits.
    fn tidy(&mut self) {
        let zeroes = self.digits.iter().take_while(|digit| **digit == b'0').count();
        self.digits.drain(..zeroes);
        while self.digits.last() == Some(&b'0') {
            self.digits.pop();
            self.exponent += 1;
        }
        if self.digits.is_empty() {
            self.exponent = 0;
        }
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0_u128;
        for digit in self.digits.iter_mut().rev() {
            let sum = u128::from(*digit - b'0') * u128::from(factor) + carry;
            (*digit, carry) = (b'0' + u8::try_from(sum % 10).unwrap_or_default(), sum / 10);
        }
        if carry > 0 {
            let mut whole = carry.to_string().into_bytes();
            whole.append(&mut self.digits);
            self.digits = whole;
        }
    }

    /// What is finer than a power of ten is rounded away from zero.
    fn round_up(&mut self, finest: i64) {
        if self.exponent >= finest || self.digits.is_empty() {
            return;
        }
        let cut = usize::try_from(finest - self.exponent).unwrap_or(usize::MAX);
        // The last digit is never zero, so something is always lost.
        self.digits.truncate(self.digits.len().saturating_sub(cut));
        let nines = self.digits.iter().rev().take_while(|digit| **digit == b'9').count();
        let end = self.digits.len() - nines;
        self.digits.truncate(end);
        match self.digits.last_mut() {
            Some(digit) => *digit += 1,
            None => self.digits.push(b'1'),
        }
        self.digits.extend(std::iter::repeat_n(b'0', nines));
        self.exponent = finest;
        self.tidy();
    }

    /// Whether it is more than a whole number.
    fn exceeds(&self, most: &str) -> bool {
        let places = self.digits.len() as i64 + self.exponent;
        let most = most.as_bytes();
        match places.cmp(&(most.len() as i64)) {
            std::cmp::Ordering::Equal => self.digits.as_slice() > most,
            order => order.is_gt(),
        }
    }

    /// The form in which Go writes it: the largest suffix that leaves no fraction.
    fn shown(&self, negative: bool, form: Form) -> String {
        if self.digits.is_empty() {
            return "0".to_owned();
        }
        let sign = if negative { "-" } else { "" };
        let mut digits = String::from_utf8_lossy(&self.digits).into_owned();
        if form == Form::Binary && self.exponent >= 0 && self.exceeds("1023") {
            digits.extend((0..self.exponent).map(|_| '0'));
            let (mut number, mut suffix) = (digits.parse::<u128>().unwrap_or_default(), "");
            for next in BINARY {
                if number % 1024 != 0 {
                    break;
                }
                (number, suffix) = (number / 1024, next);
            }
            return format!("{sign}{number}{suffix}");
        }
        let spare = self.exponent.rem_euclid(3);
        digits.extend((0..spare).map(|_| '0'));
        let exponent = self.exponent - spare;
        if form == Form::Exponent {
            return if exponent == 0 { format!("{sign}{digits}") } else { format!("{sign}{digits}e{exponent}") };
        }
        // There is no word for more than the largest, and Go leaves it out.
        let known = (i64::from(FINEST)..=i64::from(COARSEST)).contains(&exponent);
        let place = usize::try_from((exponent - i64::from(FINEST)) / 3).unwrap_or_default();
        let suffix = DECIMAL.get(place).copied().filter(|_| known).unwrap_or_default();
        format!("{sign}{digits}{suffix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_amount_has_one_form_unless_go_would_have_written_it_so() {
        for (written, kept) in [
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("64Mi", "64Mi"),
            ("1024Ki", "1Mi"),
            ("0.5Gi", "512Mi"),
            ("512", "512"),
            ("1000", "1k"),
            ("-5Mi", "-5Mi"),
            ("0Mi", "0"),
            ("0.1n", "1n"),
            ("+1", "+1"),
            ("5.", "5."),
            ("007", "007"),
            ("1.500", "1.500"),
            ("1E3", "1E3"),
            (" 5Ki ", "5Ki"),
            ("+8Ki", "8Ki"),
            ("9Ei", "9223372036854775807"),
            ("123456789012345678901234567890123456789012345", "123456789012345678901234567890123456789012345"),
            ("0.0000000019", "2n"),
            ("0.9999999999", "1"),
        ] {
            assert_eq!(stored(written, false).unwrap(), kept, "{written}");
        }
    }

    #[test]
    fn resources_are_counted_in_thousandths() {
        for (written, kept) in [("100u", "1m"), ("1.0005", "1001m"), ("1n", "1m"), ("1500u", "2m"), ("+1", "+1")] {
            assert_eq!(stored(written, true).unwrap(), kept, "{written}");
        }
    }

    #[test]
    fn a_hostile_amount_is_one_like_any_other() {
        assert!(stored(&"9".repeat(100_000), true).is_ok());
        assert_eq!(stored("1e2147483646", true).unwrap(), "1e2147483646");
        assert_eq!(stored("1e-2147483646", false).unwrap(), "1e-9");
    }
}
