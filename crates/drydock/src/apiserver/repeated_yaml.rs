//! Keys that a map in YAML has twice, in the words of Go's library. The last one counts, but hardly anybody means it.

use std::collections::BTreeSet;

use granit_parser::{Event, Parser, ScalarStyle};

/// A map or a list that is open.
enum Open {
    Map {
        seen: BTreeSet<String>,
        /// The key whose value comes next, and where that begins.
        key: Option<(String, usize)>,
    },
    List,
}

/// What is said of every key that comes up again. What is not YAML has none.
pub(crate) fn repeated_keys(body: &[u8]) -> Vec<String> {
    let Ok(text) = std::str::from_utf8(body) else { return Vec::new() };
    let (mut open, mut told): (Vec<Open>, Vec<String>) = (Vec::new(), Vec::new());
    for next in Parser::new_from_str(text) {
        let Ok((event, span)) = next else { return Vec::new() };
        let line = span.start.line();
        match event {
            Event::Scalar(text, style, ..) => node(&mut open, &mut told, Some(shown(&text, style)), line),
            Event::Alias(_) => node(&mut open, &mut told, None, line),
            Event::MappingStart(..) => {
                begin(&mut open, line);
                open.push(Open::Map { seen: BTreeSet::new(), key: None });
            }
            Event::SequenceStart(..) => {
                begin(&mut open, line);
                open.push(Open::List);
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                end(&mut open, &mut told);
            }
            _ => {}
        }
    }
    told
}

/// A key as Go shows it: texts in quotes, numbers as they are.
fn shown(text: &str, style: ScalarStyle) -> String {
    let number = style == ScalarStyle::Plain && text.parse::<i64>().is_ok();
    if number { text.to_owned() } else { format!("{text:?}") }
}

/// A value that has no parts, or a key.
fn node(open: &mut [Open], told: &mut Vec<String>, text: Option<String>, line: usize) {
    if let Some(Open::Map { key: key @ None, .. }) = open.last_mut() {
        *key = Some((text.unwrap_or_default(), line));
    } else {
        begin(open, line);
        end(open, told);
    }
}

/// A value begins.
fn begin(open: &mut [Open], line: usize) {
    match open.last_mut() {
        Some(Open::Map { key: Some((_, at)), .. }) => *at = line,
        // Nobody knows a key that is a map or a list.
        Some(Open::Map { key: key @ None, .. }) => *key = Some((String::new(), line)),
        _ => {}
    }
}

/// A value has ended, and only now its key is looked at.
fn end(open: &mut [Open], told: &mut Vec<String>) {
    if let Some(Open::Map { seen, key }) = open.last_mut()
        && let Some((key, line)) = key.take()
        && !key.is_empty()
        && key != "\"<<\""
        && !seen.insert(key.clone())
    {
        told.push(format!("line {line}: key {key} already set in map"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_where_their_values_are_and_inner_ones_first() {
        let body = b"data:\n  a: 1\n  a: 2\n  a: 3\nlist:\n- {x: 1, x: 2}\ndata:\n  b: 1\n  b: 1\n";
        assert_eq!(
            repeated_keys(body),
            [
                "line 3: key \"a\" already set in map",
                "line 4: key \"a\" already set in map",
                "line 6: key \"x\" already set in map",
                "line 9: key \"b\" already set in map",
                "line 8: key \"data\" already set in map",
            ]
        );
        assert!(repeated_keys(b"{\"a\": 1").is_empty());
    }
}
