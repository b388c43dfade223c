//! Numbers: as the API server lets them through, and as Go prints them.
//!
//! The CRDs say `number`, so `1.5` and 2^40 are stored. Every whole value that fits 64 bits is read and judged later by
//! `validate`; `10.0` is ten, because YAML and JSON tools write it both ways; a fraction is an error at its field.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// An `i64` that also accepts a float without a fraction.
pub(crate) struct Whole(pub(crate) i64);

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl Visitor<'_> for Reader {
            type Value = Whole;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a whole number")
            }

            fn visit_i64<E: Error>(self, value: i64) -> Result<Whole, E> {
                Ok(Whole(value))
            }

            fn visit_u64<E: Error>(self, value: u64) -> Result<Whole, E> {
                i64::try_from(value).map(Whole).map_err(|_| E::custom(format!("{value} is too large")))
            }

            fn visit_f64<E: Error>(self, value: f64) -> Result<Whole, E> {
                // 2^53: beyond it a float no longer names one whole number.
                const EXACT: f64 = 9_007_199_254_740_992.0;
                if value.fract() == 0.0 && value.abs() <= EXACT {
                    Ok(Whole(value as i64))
                } else {
                    Err(E::custom(format!("{value} is not a whole number")))
                }
            }
        }

        deserializer.deserialize_any(Reader)
    }
}

/// `#[serde(deserialize_with)]` for a number with a default.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
    Ok(Whole::deserialize(deserializer)?.0)
}

/// `#[serde(deserialize_with)]` for a number that may be absent.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<Whole>::deserialize(deserializer)?.map(|whole| whole.0))
}

/// `#[serde(deserialize_with)]` for a list of numbers that may be absent.
pub(crate) fn list<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<i64>>, D::Error> {
    let numbers = Option::<Vec<Whole>>::deserialize(deserializer)?;
    Ok(numbers.map(|numbers| numbers.into_iter().map(|whole| whole.0).collect()))
}

/// A number as Go's `%v` prints it: the shortest digits, with an exponent only below 1e-4 and from 1e21 on.
pub fn go_float(value: f64) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf".into() } else { "-Inf".into() };
    }
    let scientific = format!("{value:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..21).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whole_numbers_in_any_spelling() {
        for (value, number) in [(json!(-10), -10), (json!(1_u64 << 40), 1 << 40), (json!(10.0), 10), (json!(0), 0)] {
            assert_eq!(whole(value).unwrap(), number);
        }
    }

    #[test]
    fn floats_print_as_in_go() {
        for (value, text) in [
            (99.0, "99"),
            (0.5, "0.5"),
            (-0.25, "-0.25"),
            (1e21, "1e+21"),
            (1e20, "100000000000000000000"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e300, "1.5e+300"),
            (0.0, "0"),
            (f64::INFINITY, "+Inf"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(go_float(value), text);
        }
    }

    #[test]
    fn fractions_and_giants_are_refused() {
        for value in [json!(1.5), json!(u64::MAX), json!(1e300), json!("10"), json!(true)] {
            assert!(whole(value.clone()).is_err(), "{value}");
        }
    }
}
