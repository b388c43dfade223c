//! How the values are written that a JSON Patch tests for.
//!
//! A real server compares texts: what was sent with what Go writes for the object. The same number with a point, or the same
//! letter as an escape, is something else to it, and so are `<`, `>` and `&`, which Go writes as escapes.

use serde_json::Value;

use super::go_numbers::shown_float;

/// Whether every text and number in the value of an operation is written as Go writes it. `at` is the place of the operation
/// in the body.
pub(super) fn is_as_go_writes(body: &[u8], at: usize, value: &Value) -> bool {
    let text = String::from_utf8_lossy(body);
    let sent = sent_values(&text, at);
    let mut written = Vec::new();
    write(value, &mut written);
    // What is there twice was read once: nobody can tell which is which.
    sent.len() != written.len() || sent.iter().zip(&written).all(|(sent, written)| sent == written)
}

/// The texts and numbers of a value, each as Go writes it.
fn write(value: &Value, written: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| write(item, written)),
        Value::Object(members) => members.values().for_each(|member| write(member, written)),
        Value::String(text) => written.push(shown_text(text)),
        Value::Number(number) => written.push(match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => shown_float(float),
            None => number.to_string(),
        }),
        _ => {}
    }
}

fn shown_text(text: &str) -> String {
    let mut shown = Value::from(text).to_string();
    for (sign, escape) in
        [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u{2028}", "\\u2028"), ("\u{2029}", "\\u2029")]
    {
        shown = shown.replace(sign, escape);
    }
    shown
}

/// The texts and numbers in the value of an operation, as they were sent.
fn sent_values(text: &str, wanted: usize) -> Vec<&str> {
    let (mut depth, mut operation, mut in_value) = (0_usize, 0_usize, false);
    let mut found = Vec::new();
    let mut tokens = Tokens(text).peekable();
    while let Some(token) = tokens.next() {
        let is_key = token.starts_with('"') && tokens.peek() == Some(&":");
        match token {
            "{" | "[" => depth += 1,
            "}" | "]" => depth = depth.saturating_sub(1),
            "," if depth == 1 => operation += 1,
            "," | ":" | "true" | "false" | "null" => {}
            // Which member of an operation comes next.
            key if depth == 2 && is_key => in_value = key == "\"value\"",
            _ if is_key => {}
            scalar if in_value && operation == wanted => found.push(scalar),
            _ => {}
        }
    }
    found
}

/// The parts of a JSON text.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        self.0 = self.0.trim_start();
        let mut escaped = false;
        let length = match self.0.chars().next()? {
            '"' => self.0.char_indices().skip(1).find_map(|(at, sign)| {
                let is_end = sign == '"' && !escaped;
                escaped = sign == '\\' && !escaped;
                is_end.then_some(at + 1)
            }),
            '{' | '}' | '[' | ']' | ',' | ':' => Some(1),
            _ => self.0.find(|sign: char| sign.is_whitespace() || ",:[]{}\"".contains(sign)),
        };
        let (token, rest) = self.0.split_at(length.unwrap_or(self.0.len()));
        self.0 = rest;
        Some(token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_as_go(value: &str) -> bool {
        let body =
            format!(r#"[{{"op":"test","path":"/<","value":"<"}},{{"value" : {value},"op":"test","path":"/a&b"}}]"#);
        is_as_go_writes(body.as_bytes(), 1, &serde_json::from_str(value).unwrap())
    }

    #[test]
    fn only_what_is_written_as_go_writes_it_is_the_same() {
        for value in [
            r#""plain é \" \\ \n""#,
            r#""a\u0026b""#,
            "80",
            "-1.5",
            r#"{"a<":[1,"x"],"b":{"value":"y"}}"#,
            "null",
            "true",
            "1e+21",
            r#""\u2028""#,
        ] {
            assert!(is_as_go(value), "{value}");
        }
        for value in [r#""a&b""#, r#""\u0041""#, "80.0", "8e1", r#"{"b":["<"]}"#, "\"\u{2028}\"", "1e21", r#""\/""#] {
            assert!(!is_as_go(value), "{value}");
        }
    }
}
