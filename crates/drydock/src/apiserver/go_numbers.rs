//! Numbers as Go takes them: what is no 64-bit integer is a fraction, and a refusal shows what was sent.

use serde_json::{Number, Value};

/// What comes before a refused number.
const BEFORE: &str = "cannot unmarshal number ";

/// Makes fractions of the whole numbers that are beyond Go's integers.
pub(crate) fn take_as_go(value: &mut Value) {
    match value {
        Value::Number(number) => *number = as_go(number),
        Value::Array(items) => items.iter_mut().for_each(take_as_go),
        Value::Object(members) => members.values_mut().for_each(take_as_go),
        _ => {}
    }
}

fn as_go(number: &Number) -> Number {
    let Some(float) = number.as_f64().filter(|_| number.is_u64() && !number.is_i64()) else { return number.clone() };
    // Go writes its digits, as many as tell it from others.
    let digits = shown_float(float).parse::<u64>().ok().map(Number::from);
    digits.or_else(|| Number::from_f64(float)).unwrap_or_else(|| number.clone())
}

/// A fraction as Go writes it.
pub(crate) fn shown_float(float: f64) -> String {
    let size = float.abs();
    if size != 0.0 && !(1e-6..1e21).contains(&size) {
        let shown = format!("{float:e}");
        return if shown.contains("e-") { shown } else { shown.replace('e', "e+") };
    }
    format!("{float}")
}

/// A JSON text with other numbers in place of those that no fraction is as large as, and of a nothing that is negative, which
/// is a whole number to Go; `None` if it has no such.
pub(crate) fn plain(text: &str) -> Option<String> {
    let (mut whole, mut done) = (String::new(), 0);
    for number in numbers(text).filter(|number| *number == "-0" || is_endless(number)) {
        let at = number.as_ptr() as usize - text.as_ptr() as usize;
        whole.push_str(text.get(done..at)?);
        whole.push_str(&if number == "-0" { "0".to_owned() } else { bound(number).to_string() });
        done = at + number.len();
    }
    (done > 0).then(|| whole + text.get(done..).unwrap_or_default())
}

/// What Go says of the first number that no fraction is as large as, where it reads anything.
pub(crate) fn too_large(body: &[u8], place: &str) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let number = numbers(&text).find(|number| is_endless(number))?;
    Some(format!("json: cannot unmarshal number {number} into {place} of type float64"))
}

/// A refusal of a number that Go has read and written before: custom resources are read into anything first.
pub(crate) fn as_written(why: String) -> String {
    let Some(shown) = why.split_once(BEFORE).and_then(|(_, rest)| rest.split(' ').next()) else { return why };
    match shown.parse::<Number>().ok().filter(Number::is_f64).and_then(|number| number.as_f64()) {
        Some(float) => why.replacen(&format!("{BEFORE}{shown}"), &format!("{BEFORE}{}", shown_float(float)), 1),
        None => why,
    }
}

/// Whether a number stands there in place of one that no fraction is as large as.
pub(crate) fn has_endless(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.as_f64().is_some_and(|float| float.abs() >= f64::MAX),
        Value::Array(items) => items.iter().any(has_endless),
        Value::Object(members) => members.values().any(has_endless),
        _ => false,
    }
}

fn is_endless(number: &str) -> bool {
    let is_number = !number.ends_with(|last: char| last.is_ascii_alphabetic() && !last.eq_ignore_ascii_case(&'e'));
    is_number && number.parse::<f64>().is_ok_and(f64::is_infinite)
}

/// The number that stands for one that is too large.
fn bound(number: &str) -> Number {
    let bound = if number.starts_with('-') { f64::MIN } else { f64::MAX };
    Number::from_f64(bound).unwrap_or_else(|| 0.into())
}

/// A refusal of a number with the signs in which a JSON body has it.
pub(crate) fn as_sent(body: &[u8], why: String) -> String {
    let Some(shown) = why.split_once(BEFORE).and_then(|(_, rest)| rest.split(' ').next()) else { return why };
    let is_it = |sent: &&str| {
        let read = if is_endless(sent) { Some(bound(sent)) } else { sent.parse::<Number>().ok() };
        read.is_some_and(|number| as_go(&number).to_string() == shown)
    };
    let text = String::from_utf8_lossy(body);
    match numbers(&text).find(is_it) {
        Some(sent) => why.replacen(&format!("{BEFORE}{shown}"), &format!("{BEFORE}{sent}"), 1),
        None => why,
    }
}

/// Everything in a JSON text that begins as a number does, outside of its strings.
fn numbers(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let at = rest.find(|sign: char| sign == '"' || sign == '-' || sign.is_ascii_digit())?;
            let found = rest.get(at..)?;
            if let Some(string) = found.strip_prefix('"') {
                rest = after_string(string);
                continue;
            }
            let length = found.find(|sign: char| !sign.is_ascii_alphanumeric() && !"+-.".contains(sign));
            let (number, after) = found.split_at(length.unwrap_or(found.len()));
            rest = after;
            return Some(number);
        }
    })
}

/// What follows the end of a string that has begun.
fn after_string(text: &str) -> &str {
    let mut escaped = false;
    let end = text.find(|sign| {
        let is_end = sign == '"' && !escaped;
        escaped = sign == '\\' && !escaped;
        is_end
    });
    end.and_then(|end| text.get(end + 1..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn refused_numbers_are_shown_as_they_were_sent() {
        let body = br#"{"a": "1e30 \" 1e30", "b": [-1.50, 1E30], "c": 99999999999999999999}"#;
        let said = |number: &str| as_sent(body, format!("json: cannot unmarshal number {number} into Go value"));
        assert_eq!(said("1e+30"), "json: cannot unmarshal number 1E30 into Go value");
        assert_eq!(said("-1.5"), "json: cannot unmarshal number -1.50 into Go value");
        assert_eq!(said("1e+20"), "json: cannot unmarshal number 99999999999999999999 into Go value");
        assert_eq!(said("7"), "json: cannot unmarshal number 7 into Go value");
        let large = as_written("cannot unmarshal number 1.8446744073709552e+19 into x".into());
        assert_eq!(large, "cannot unmarshal number 18446744073709552000 into x");
        assert_eq!(as_sent(body, "something else".into()), "something else");
    }

    #[test]
    fn numbers_without_end_are_read_and_told() {
        let body = r#"{"a": "1e400", "b": [1e400, -1E999, 2]}"#;
        let read: Value = serde_json::from_str(&plain(body).unwrap()).unwrap();
        assert_eq!(read, json!({"a": "1e400", "b": [f64::MAX, f64::MIN, 2]}));
        assert!(has_endless(&read) && !has_endless(&json!({"a": [1e300, "1e400"]})));
        assert_eq!(plain("[1, 2.5, \"-0\"]"), None);
        assert_eq!(plain("[-0, -0.0]").as_deref(), Some("[0, -0.0]"));
        assert!(too_large(body.as_bytes(), "Go value").is_some_and(|why| why.contains("number 1e400 into")));
        let why = format!("json: cannot unmarshal number {} into Go value", Number::from_f64(f64::MAX).unwrap());
        assert_eq!(as_sent(body.as_bytes(), why), "json: cannot unmarshal number 1e400 into Go value");
    }

    #[test]
    fn fractions_are_written_as_go_writes_them() {
        let shown = [1.5, 100.0, 1e20, 1e21, 1e-6, 1.5e-7, -0.25].map(shown_float);
        assert_eq!(shown, ["1.5", "100", "100000000000000000000", "1e+21", "0.000001", "1.5e-7", "-0.25"]);
    }

    #[test]
    fn whole_numbers_beyond_go_s_integers_are_fractions() {
        let mut value = json!([u64::MAX, 9_223_372_036_854_775_808_u64, i64::MAX, i64::MIN, 1.5]);
        take_as_go(&mut value);
        let beyond = 9_223_372_036_854_776_000_u64;
        assert_eq!(value, json!([18_446_744_073_709_551_615.0, beyond, i64::MAX, i64::MIN, 1.5]));
    }
}
