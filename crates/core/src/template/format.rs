//! Values into text, as Go's `fmt` writes them. Where Go would write a complaint into the text (`%!d(string=x)`), this is
//! an error.

use seaway_api::number::go_float;

use super::evaluate::{Value, wrong};
use super::{MOST_OUTPUT, TemplateError};

/// The widest field and the most digits `printf` writes.
const MOST_WIDTH: usize = 1024;

type Result<T> = std::result::Result<T, TemplateError>;

/// `%v`.
pub(super) fn plain(value: &Value) -> Result<String> {
    Ok(match value {
        Value::Nil => return wrong("there is no value to write"),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => go_float(*value),
        Value::Text(value) => value.clone(),
        Value::Map(map) => {
            let members: Vec<String> = map.iter().map(|(key, value)| format!("{key}:{value}")).collect();
            format!("map[{}]", members.join(" "))
        }
    })
}

/// Go's `fmt.Sprint`: a space between two operands when neither is a string.
pub(super) fn print(values: &[Value]) -> Result<String> {
    let mut text = String::new();
    let mut after_text = true;
    for value in values {
        let is_text = matches!(value, Value::Text(_));
        if !after_text && !is_text {
            text.push(' ');
        }
        text.push_str(&plain(value)?);
        after_text = is_text;
    }
    Ok(text)
}

/// Go's `fmt.Sprintf` for the verbs v, s, q, d, x, f, g and t.
pub(super) fn printf(values: &[Value]) -> Result<String> {
    let [Value::Text(pattern), arguments @ ..] = values else { return wrong("printf needs a format") };
    let mut arguments = arguments.iter();
    let mut text = String::new();
    let mut rest = pattern.as_str();
    while let Some((before, after)) = rest.split_once('%') {
        text.push_str(before);
        let (directive, after) = Directive::read(after)?;
        rest = after;
        if directive.verb == '%' {
            text.push('%');
            continue;
        }
        let Some(value) = arguments.next() else { return wrong(format!("printf: no value for %{}", directive.verb)) };
        text.push_str(&directive.apply(value)?);
        if text.len() > MOST_OUTPUT {
            return Err(TemplateError::Limit(format!("a value is longer than {MOST_OUTPUT} bytes")));
        }
    }
    text.push_str(rest);
    if arguments.next().is_some() { wrong("printf: more values than verbs") } else { Ok(text) }
}

/// One `%…x`.
struct Directive {
    left: bool,
    zero: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    verb: char,
}

impl Directive {
    fn read(mut rest: &str) -> Result<(Self, &str)> {
        let mut directive = Self { left: false, zero: false, plus: false, width: 0, precision: None, verb: '%' };
        while let Some(flag) = rest.chars().next().filter(|c| "-0+".contains(*c)) {
            match flag {
                '-' => directive.left = true,
                '0' => directive.zero = true,
                _ => directive.plus = true,
            }
            rest = rest.get(1..).unwrap_or_default();
        }
        (directive.width, rest) = digits(rest)?;
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = digits(after)?;
            directive.precision = Some(precision);
            rest = after;
        }
        let Some(verb) = rest.chars().next() else { return wrong("printf: the format ends within a verb") };
        directive.verb = verb;
        Ok((directive, rest.get(verb.len_utf8()..).unwrap_or_default()))
    }

    fn apply(&self, value: &Value) -> Result<String> {
        let body = match (self.verb, value) {
            ('v' | 'd', Value::Int(number)) => self.signed(number.to_string(), *number >= 0),
            ('v', value) => plain(value)?,
            ('s', Value::Text(text)) => match self.precision {
                Some(length) => text.chars().take(length).collect(),
                None => text.clone(),
            },
            ('q', Value::Text(text)) => quoted(text),
            ('x', Value::Int(number)) => format!("{number:x}"),
            ('f' | 'F', Value::Float(number)) => {
                self.signed(format!("{number:.*}", self.precision.unwrap_or(6)), *number >= 0.0)
            }
            ('g', Value::Float(number)) if self.precision.is_none() => self.signed(go_float(*number), *number >= 0.0),
            ('t', Value::Bool(value)) => value.to_string(),
            (verb, _) => return wrong(format!("printf: %{verb} cannot write this value")),
        };
        let missing = self.width.saturating_sub(body.chars().count());
        Ok(match (self.left, self.zero) {
            (true, _) => body + &" ".repeat(missing),
            (false, true) => match body.strip_prefix(['-', '+']) {
                Some(digits) => format!("{}{}{digits}", body.chars().next().unwrap_or('-'), "0".repeat(missing)),
                None => "0".repeat(missing) + &body,
            },
            (false, false) => " ".repeat(missing) + &body,
        })
    }

    fn signed(&self, text: String, positive: bool) -> String {
        if self.plus && positive { format!("+{text}") } else { text }
    }
}

fn digits(text: &str) -> Result<(usize, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    if number.is_empty() {
        return Ok((0, rest));
    }
    match number.parse::<usize>() {
        Ok(number) if number <= MOST_WIDTH => Ok((number, rest)),
        _ => wrong(format!("printf: a width or precision of more than {MOST_WIDTH}")),
    }
}

/// The last hexadecimal digit of a number.
fn hex(number: u32) -> char {
    char::from_digit(number % 16, 16).unwrap_or('0')
}

/// Go's `%q` for text that a query holds.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.extend(['\\', 'x', hex(u32::from(c) / 16), hex(u32::from(c))]),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
