//! Amounts of resources (`100m`, `64Mi`, `1e3`): what they mean, and the one form in which Go writes each of them.

mod written;

use std::cmp::Ordering;

use written::Written;
pub(crate) use written::stored;

/// Powers of a thousand, from 10⁻⁹ on; the fourth is the unit itself.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Powers of 1024, from the first on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Amounts are compared in billionths, finer than which Go rounds up, up to what a number can hold.
const UNIT: i128 = 1_000_000_000;
/// The exponent of a billionth.
const FINEST: i32 = -9;
/// The largest exponent a suffix stands for.
const COARSEST: i32 = 18;

/// How an amount was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Decimal,
    Binary,
    Exponent,
}

/// An amount.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantity {
    billionths: i128,
    form: Form,
}

impl Quantity {
    /// Reads an amount. The error is Go's.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        let written = Written::read(text.trim())?;
        let digits = format!("{}{}", written.whole, written.fraction);
        let mantissa: i128 = digits.parse().unwrap_or(i128::MAX);
        let places = i32::try_from(written.fraction.len()).unwrap_or(i32::MAX);
        let (factor, tens) = match written.form {
            Form::Binary => (1024_i128.pow(written.exponent.unsigned_abs()), 0),
            Form::Decimal | Form::Exponent => (1, written.exponent),
        };
        let billionths = shifted(mantissa.saturating_mul(factor), tens.saturating_sub(places).saturating_sub(FINEST));
        Ok(Self { billionths: if written.negative { -billionths } else { billionths }, form: written.form })
    }

    /// Whether Go keeps an amount outside of itself, so that two that are equal are in two places.
    pub(crate) fn is_kept_apart(text: &str) -> bool {
        Written::read(text).is_ok_and(|written| !written.is_short())
    }

    pub(crate) fn is_negative(self) -> bool {
        self.billionths < 0
    }

    pub(crate) fn is_positive(self) -> bool {
        self.billionths > 0
    }

    /// Whether it counts whole things.
    pub(crate) fn is_whole(self) -> bool {
        self.billionths % UNIT == 0
    }

    pub(crate) fn compare(self, other: Self) -> Ordering {
        self.billionths.cmp(&other.billionths)
    }

    /// The form in which Go writes it: the largest suffix that leaves no fraction.
    pub(crate) fn canonical(self) -> String {
        let whole = self.billionths / UNIT;
        if self.form == Form::Binary && self.is_whole() && whole.abs() >= 1024 {
            let (mut amount, mut suffix) = (whole, "");
            for next in BINARY {
                if amount % 1024 != 0 {
                    break;
                }
                (amount, suffix) = (amount / 1024, next);
            }
            return format!("{amount}{suffix}");
        }
        if self.billionths == 0 {
            return "0".to_owned();
        }
        let (mut amount, mut exponent) = (self.billionths, FINEST);
        while amount % 1000 == 0 && exponent < COARSEST {
            (amount, exponent) = (amount / 1000, exponent + 3);
        }
        if self.form == Form::Exponent {
            return if exponent == 0 { amount.to_string() } else { format!("{amount}e{exponent}") };
        }
        let place = usize::try_from((exponent - FINEST) / 3).unwrap_or_default();
        format!("{amount}{}", DECIMAL.get(place).copied().unwrap_or_default())
    }
}

/// A number times a power of ten; what is finer than one is rounded away from zero.
fn shifted(number: i128, tens: i32) -> i128 {
    let factor = 10_i128.checked_pow(tens.unsigned_abs()).unwrap_or(i128::MAX);
    if tens >= 0 { number.saturating_mul(factor) } else { number / factor + i128::from(number % factor != 0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_keeps_what_has_many_digits_apart() {
        for text in ["9223372036854775807", "7Ei", "100Ti", "12345678901234567890m"] {
            assert!(Quantity::is_kept_apart(text), "{text}");
        }
        for text in ["1500m", "10Ti", "1e30", "10E", "1n"] {
            assert!(!Quantity::is_kept_apart(text), "{text}");
        }
    }

    #[test]
    fn every_amount_has_one_form() {
        for (written, stored) in [
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1.5", "1500m"),
            ("1000m", "1"),
            ("64Mi", "64Mi"),
            ("1024Ki", "1Mi"),
            ("0.5Gi", "512Mi"),
            ("512", "512"),
            ("5Ki", "5Ki"),
            ("1000", "1k"),
            ("2000000", "2M"),
            ("1e3", "1e3"),
            ("-5Mi", "-5Mi"),
            ("0", "0"),
            ("0Mi", "0"),
            ("100Ki", "100Ki"),
            ("0.1n", "1n"),
        ] {
            assert_eq!(Quantity::parse(written).unwrap().canonical(), stored, "{written}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused_with_words_of_go() {
        for text in ["lots", "", "1 Gi", "1.2.3"] {
            assert_eq!(Quantity::parse(text).unwrap_err(), written::NO_QUANTITY, "{text}");
        }
        assert_eq!(Quantity::parse("1mm").unwrap_err(), "unable to parse quantity's suffix");
    }

    #[test]
    fn amounts_compare_whatever_their_form() {
        let amount = |text| Quantity::parse(text).unwrap();
        assert_eq!(amount("1Gi").compare(amount("1G")), Ordering::Greater);
        assert_eq!(amount("1").compare(amount("1000m")), Ordering::Equal);
        assert!(
            amount("-1").is_negative() && amount("1500m").compare(amount("2")).is_lt() && !amount("1.5").is_whole()
        );
    }
}
