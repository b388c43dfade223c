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
    /// Differences of one kind have one name, so that they can be counted.
    pub fn signature(&self) -> String {
        let shown =
            |value: &Option<Value>| value.as_ref().map_or("-".to_owned(), |value| shorten(&value.to_string(), 200));
        let path = self.step.path.split('?').next().unwrap_or_default();
        let plural = path.split('/').skip_while(|part| *part != "<<ns>>").nth(1).unwrap_or(path);
        format!(
            "{} {plural} {}: real {} drydock {}",
            self.step.method,
            self.field,
            shown(&self.real),
            shown(&self.drydock)
        )
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
