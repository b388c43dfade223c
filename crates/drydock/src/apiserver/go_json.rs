//! What Go's JSON decoder says about a text that is not JSON.

use serde_json::Value;

use super::go_numbers::{plain, take_as_go};

/// How far a text has been read.
struct Scanner<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    /// How many lists and objects are open.
    depth: usize,
}

/// So deep are texts read. Go goes to 10,000, and nobody has been seen to need it.
pub(crate) const DEPTH: usize = 127;

type Scanned = Result<(), String>;

/// Reads JSON. The error is Go's.
pub(crate) fn parse(body: &[u8]) -> Result<Value, String> {
    // Go takes what is no UTF-8 for signs it does not know.
    let lossy = String::from_utf8_lossy(body);
    let read = if lossy.contains("-0") { Err(()) } else { serde_json::from_str(&lossy).map_err(drop) };
    let read = read.or_else(|()| {
        let whole = without_halves(&lossy);
        serde_json::from_str(&plain(&whole).unwrap_or(whole))
    });
    let mut read = read.map_err(|_| syntax_error(&lossy))?;
    take_as_go(&mut read);
    Ok(read)
}

/// A text in which halves of signs, which JSON can write and Unicode has not, are signs that nobody knows, as they are to Go.
fn without_halves(text: &str) -> String {
    let (mut whole, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        whole.push_str(before);
        let code = |escape: &str| u32::from_str_radix(escape.strip_prefix("\\u")?.get(..4)?, 16).ok();
        let length = match code(escape) {
            Some(0xd800..0xdc00) if matches!(escape.get(6..).and_then(code), Some(0xdc00..0xe000)) => 12,
            Some(0xd800..0xe000) => {
                whole.push('\u{fffd}');
                rest = escape.get(6..).unwrap_or_default();
                continue;
            }
            _ => escape.char_indices().nth(2).map_or(escape.len(), |(at, _)| at),
        };
        whole.push_str(&escape[..length]);
        rest = &escape[length..];
    }
    whole + rest
}

/// What a value is called where another one was expected.
pub(crate) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// A value as Go prints it with `%v`.
pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(" ")),
        Value::Object(members) => {
            let mut pairs: Vec<_> = members.iter().collect();
            pairs.sort_unstable_by_key(|(key, _)| key.as_str());
            let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key}:{}", shown(value))).collect();
            format!("map[{}]", pairs.join(" "))
        }
        other => other.to_string(),
    }
}

/// A value as Go prints it with `%#v`.
pub(crate) fn in_source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<_> = items.iter().map(in_source).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(members) => {
            let mut pairs: Vec<_> = members.iter().collect();
            pairs.sort_unstable_by_key(|(key, _)| key.as_str());
            let pairs: Vec<_> = pairs.into_iter().map(|(key, value)| format!("{key:?}:{}", in_source(value))).collect();
            format!("map[string]interface {{}}{{{}}}", pairs.join(", "))
        }
        other => other.to_string(),
    }
}

fn syntax_error(text: &str) -> String {
    let mut scanner = Scanner { rest: text.chars().peekable(), depth: 0 };
    let read = scanner.value().and_then(|()| match scanner.sign() {
        None => Ok(()),
        Some(sign) => Err(unexpected(sign, "after top-level value")),
    });
    // Whatever else may be wrong, this is what Go would have said first.
    read.err().unwrap_or_else(end)
}

fn end() -> String {
    "unexpected end of JSON input".to_owned()
}

fn unexpected(sign: char, place: &str) -> String {
    let shown = match sign {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        other => other.escape_debug().to_string(),
    };
    format!("invalid character '{shown}' {place}")
}

impl Scanner<'_> {
    /// The next sign that is not space.
    fn sign(&mut self) -> Option<char> {
        while self.rest.next_if(|sign| matches!(sign, ' ' | '\t' | '\r' | '\n')).is_some() {}
        self.rest.next()
    }

    fn peeked(&mut self) -> Option<char> {
        while self.rest.next_if(|sign| matches!(sign, ' ' | '\t' | '\r' | '\n')).is_some() {}
        self.rest.peek().copied()
    }

    fn value(&mut self) -> Scanned {
        match self.sign().ok_or_else(end)? {
            sign @ ('{' | '[') if self.depth == DEPTH => {
                Err(unexpected(sign, &format!("exceeded max depth (drydock reads {DEPTH} levels)")))
            }
            '{' => self.inside(Self::object),
            '[' => self.inside(Self::array),
            '"' => self.string(),
            't' => self.literal("true"),
            'f' => self.literal("false"),
            'n' => self.literal("null"),
            sign @ ('-' | '0'..='9') => self.number(sign),
            sign => Err(unexpected(sign, "looking for beginning of value")),
        }
    }

    fn inside(&mut self, read: fn(&mut Self) -> Scanned) -> Scanned {
        self.depth += 1;
        read(self)?;
        self.depth -= 1;
        Ok(())
    }

    fn object(&mut self) -> Scanned {
        if self.rest_is('}') {
            return Ok(());
        }
        loop {
            match self.sign().ok_or_else(end)? {
                '"' => self.string()?,
                sign => return Err(unexpected(sign, "looking for beginning of object key string")),
            }
            match self.sign().ok_or_else(end)? {
                ':' => self.value()?,
                sign => return Err(unexpected(sign, "after object key")),
            }
            match self.sign().ok_or_else(end)? {
                ',' => {}
                '}' => return Ok(()),
                sign => return Err(unexpected(sign, "after object key:value pair")),
            }
        }
    }

    fn array(&mut self) -> Scanned {
        if self.rest_is(']') {
            return Ok(());
        }
        loop {
            self.value()?;
            match self.sign().ok_or_else(end)? {
                ',' => {}
                ']' => return Ok(()),
                sign => return Err(unexpected(sign, "after array element")),
            }
        }
    }

    /// Whether a list or an object ends before it has begun.
    fn rest_is(&mut self, wanted: char) -> bool {
        self.peeked() == Some(wanted) && self.rest.next().is_some()
    }

    fn string(&mut self) -> Scanned {
        loop {
            match self.rest.next().ok_or_else(end)? {
                '"' => return Ok(()),
                '\\' => match self.rest.next().ok_or_else(end)? {
                    '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' => {}
                    'u' => {
                        for _ in 0..4 {
                            let digit = self.rest.next().ok_or_else(end)?;
                            if !digit.is_ascii_hexdigit() {
                                return Err(unexpected(digit, "in \\u hexadecimal character escape"));
                            }
                        }
                    }
                    sign => return Err(unexpected(sign, "in string escape code")),
                },
                sign if sign < ' ' => return Err(unexpected(sign, "in string literal")),
                _ => {}
            }
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for wanted in word.chars().skip(1) {
            let sign = self.rest.next().ok_or_else(end)?;
            if sign != wanted {
                return Err(unexpected(sign, &format!("in literal {word} (expecting '{wanted}')")));
            }
        }
        Ok(())
    }

    fn number(&mut self, first: char) -> Scanned {
        let mut first = first;
        if first == '-' {
            first = self.digit("in numeric literal")?;
        }
        if first != '0' {
            self.digits();
        }
        if self.rest.next_if_eq(&'.').is_some() {
            self.digit("after decimal point in numeric literal")?;
            self.digits();
        }
        if self.rest.next_if(|sign| matches!(sign, 'e' | 'E')).is_some() {
            let _ = self.rest.next_if(|sign| matches!(sign, '+' | '-'));
            self.digit("in exponent of numeric literal")?;
            self.digits();
        }
        Ok(())
    }

    fn digit(&mut self, place: &str) -> Result<char, String> {
        let sign = self.rest.next().ok_or_else(end)?;
        if sign.is_ascii_digit() { Ok(sign) } else { Err(unexpected(sign, place)) }
    }

    fn digits(&mut self) {
        while self.rest.next_if(char::is_ascii_digit).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_no_json_is_refused_with_words_of_go() {
        for (text, why) in [
            ("", "unexpected end of JSON input"),
            ("{", "unexpected end of JSON input"),
            (r#"{"a"}"#, "invalid character '}' after object key"),
            (r#"{"a":tru}"#, "invalid character '}' in literal true (expecting 'e')"),
            (r#"{"a":1,}"#, "invalid character '}' looking for beginning of object key string"),
            (r#"{"a":1} x"#, "invalid character 'x' after top-level value"),
            (r#"{"a":"\q"}"#, "invalid character 'q' in string escape code"),
            ("[1,]", "invalid character ']' looking for beginning of value"),
            (r#"{"x":01}"#, "invalid character '1' after object key:value pair"),
            ("[1 2]", "invalid character '2' after array element"),
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap_err(), why, "{text}");
        }
        assert_eq!(parse(b"[1]").unwrap(), json!([1]));
    }

    #[test]
    fn depth_has_an_end_and_foreign_bytes_are_no_error() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(parse(deep(DEPTH).as_bytes()).is_ok());
        let why = "invalid character '[' exceeded max depth (drydock reads 127 levels)";
        for levels in [DEPTH + 1, 100_000] {
            assert_eq!(parse(deep(levels).as_bytes()).unwrap_err(), why);
        }
        assert_eq!(parse(b"{\"a\":\"\xff\"}").unwrap(), json!({"a": "\u{fffd}"}));
    }

    #[test]
    fn half_a_sign_is_a_sign_that_nobody_knows() {
        let read = |text: &str| parse(text.as_bytes()).unwrap();
        assert_eq!(read(r#""x\ud800y""#), json!("x\u{fffd}y"));
        assert_eq!(
            read(r#""\udc00\ud83d\ude00\ud800\ud800\\ud800""#),
            json!("\u{fffd}\u{1f600}\u{fffd}\u{fffd}\\ud800")
        );
    }

    #[test]
    fn values_are_shown_as_go_shows_them() {
        let value = json!({"spec": {"b": [1, "x", null], "a": true}});
        assert_eq!(shown(&value), "map[spec:map[a:true b:[1 x <nil>]]]");
        assert_eq!(in_source(&json!(["a"])), r#"[]interface {}{"a"}"#);
    }
}
