//! Where two answers differ, field by field.

use std::fmt;

use serde_json::Value;

use super::script::Step;

/// One field that is not the same.
#[derive(Clone, Debug)]
pub struct Difference {
    pub step: Step,
    /// Where, as a JSON pointer into the answer.
    pub field: String,
    /// What the real server said; `None` where it said nothing.
    pub real: Option<Value>,
    pub drydock: Option<Value>,
    /// The whole answers.
    pub answers: (Value, Value),
}

impl Difference {
    /// Differences of one kind have one name, so that they can be counted: what was asked, and the first thing that differs.
    pub fn signature(&self) -> String {
        let (path, query) = self.step.path.split_once('?').unwrap_or((&self.step.path, ""));
        let mut parts = path.split('/').skip_while(|part| *part != "<<ns>>").skip(1);
        let (plural, name, sub) =
            (parts.next().unwrap_or(path), parts.next().map_or("", |_| "NAME"), parts.next().unwrap_or_default());
        let shown =
            |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), |value| shorten(&value.to_string(), 300));
        let said = |answer: &Value| {
            format!("{} {}", answer["code"], shorten(answer["body"]["message"].as_str().unwrap_or_default(), 300))
        };
        let (real, drydock) = (said(&self.answers.0), said(&self.answers.1));
        let what = if real == drydock {
            format!("{}: {} | {}", self.field, shown(&self.real), shown(&self.drydock))
        } else {
            format!("{real} | {drydock}")
        };
        format!("{} {plural} {name} {sub} [{}] {what}", self.step.method, shorten(query, 60))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |value: &Option<Value>| value.as_ref().map_or("(nothing)".to_owned(), ToString::to_string);
        writeln!(out, "at {}", self.field)?;
        writeln!(out, "  - kube-apiserver: {}", shown(&self.real))?;
        write!(out, "  + drydock:        {}", shown(&self.drydock))
    }
}

fn shorten(text: &str, length: usize) -> String {
    text.chars().take(length).collect()
}

/// All differences between the answers to one step.
pub fn differences(step: &Step, real: &Value, drydock: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk(Some(real), Some(drydock), "", &mut |field, real, drydock| {
        found.push(Difference {
            step: step.clone(),
            field: field.to_owned(),
            real: real.cloned(),
            drydock: drydock.cloned(),
            answers: (Value::Null, Value::Null),
        });
    });
    for difference in &mut found {
        difference.answers = (real.clone(), drydock.clone());
    }
    found
}

fn walk(
    real: Option<&Value>,
    drydock: Option<&Value>,
    field: &str,
    found: &mut impl FnMut(&str, Option<&Value>, Option<&Value>),
) {
    match (real, drydock) {
        (Some(Value::Object(one)), Some(Value::Object(other))) => {
            for (key, value) in one {
                walk(Some(value), other.get(key), &format!("{field}/{}", key.replace('/', "~1")), found);
            }
            for (key, value) in other.iter().filter(|(key, _)| !one.contains_key(*key)) {
                walk(None, Some(value), &format!("{field}/{}", key.replace('/', "~1")), found);
            }
        }
        (Some(Value::Array(one)), Some(Value::Array(other))) => {
            for index in 0..one.len().max(other.len()) {
                walk(one.get(index), other.get(index), &format!("{field}/{index}"), found);
            }
        }
        (one, other) if one == other => {}
        (one, other) => found(field, one, other),
    }
}
