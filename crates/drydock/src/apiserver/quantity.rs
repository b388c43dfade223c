//! Amounts of resources (`100m`, `64Mi`, `1e3`): what they mean, and the one form in which Go writes each of them.

use std::cmp::Ordering;

/// What Go says about a text that is no quantity at all.
const NO_QUANTITY: &str = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Powers of a thousand, from 10⁻⁹ on; the fourth is the unit itself.
const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
/// Powers of 1024, from the first on.
const BINARY: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
/// Amounts are counted in billionths, finer than which Go rounds up.
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
        let (negative, unsigned) = match text.as_bytes().first() {
            Some(b'-') => (true, text.get(1..).unwrap_or_default()),
            Some(b'+') => (false, text.get(1..).unwrap_or_default()),
            _ => (false, text),
        };
        let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
        let (digits, suffix) = unsigned.split_at(end);
        let known = |c: char| "eEinumkKMGTP+-".contains(c) || c.is_ascii_digit();
        if digits.is_empty() || !suffix.chars().all(known) {
            return Err(NO_QUANTITY);
        }
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        if fraction.contains('.') {
            return Err("unable to parse numeric part of quantity");
        }
        let (form, scale) = scale_of(suffix).ok_or("unable to parse quantity's suffix")?;
        let mantissa: i128 = format!("0{whole}{fraction}").parse().unwrap_or(i128::from(i64::MAX));
        let places = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
        let billionths = match scale {
            Scale::Tens(exponent) => shifted(mantissa, exponent.saturating_sub(places).saturating_sub(FINEST)),
            Scale::Factor(factor) => shifted(mantissa.saturating_mul(factor), 0_i32.saturating_sub(places) - FINEST),
        };
        Ok(Self { billionths: if negative { -billionths } else { billionths }, form })
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

enum Scale {
    Tens(i32),
    Factor(i128),
}

fn scale_of(suffix: &str) -> Option<(Form, Scale)> {
    if let Some(place) = DECIMAL.iter().position(|known| *known == suffix) {
        return Some((Form::Decimal, Scale::Tens(i32::try_from(place).ok()? * 3 + FINEST)));
    }
    if let Some(place) = BINARY.iter().position(|known| *known == suffix) {
        return Some((Form::Binary, Scale::Factor(1024_i128.pow(u32::try_from(place).ok()? + 1))));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    Some((Form::Exponent, Scale::Tens(exponent.parse().ok()?)))
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
        assert_eq!(Quantity::parse("lots").unwrap_err(), NO_QUANTITY);
        assert_eq!(Quantity::parse("").unwrap_err(), NO_QUANTITY);
        assert_eq!(Quantity::parse("1 Gi").unwrap_err(), NO_QUANTITY);
        assert_eq!(Quantity::parse("1mm").unwrap_err(), "unable to parse quantity's suffix");
        assert_eq!(Quantity::parse("1.2.3").unwrap_err(), "unable to parse numeric part of quantity");
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
