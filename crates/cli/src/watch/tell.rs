//! A change as a line of text, or as JSON. Pure.

use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

use super::objects::Key;
use super::world::Change;
use crate::output::Paint;

/// A change in words, without the time and without whom it is about.
pub fn words(change: &Change, paint: Paint) -> String {
    match change {
        Change::Phase { phase } => format!("phase    {}", paint.bold(phase.as_str())),
        Change::Split { primary, canary } => format!("split    primary {primary} / canary {canary}"),
        Change::Check(check) => {
            let verdict = match check.verdict.as_str() {
                "pass" => paint.good("pass"),
                other => paint.bad(other),
            };
            let bounds = check.bounds();
            let bounds = if bounds.is_empty() { bounds } else { format!("({bounds}) ") };
            format!("check    {} {} {bounds}{verdict}", check.name, check.figure())
        }
        Change::Event(event) => {
            format!("event    {}", if event.warning { paint.warn(&event.text) } else { event.text.clone() })
        }
        Change::Refused { message } => format!("refused  {}", paint.bad(message)),
        Change::Deleted => format!("phase    {}", paint.bold("Deleted")),
    }
}

/// A change as one line of a log.
pub fn line(at: Timestamp, key: &Key, change: &Change, paint: Paint) -> String {
    format!("{}  {key}  {}", paint.faint(&second(at)), words(change, paint))
}

/// A change as JSON: `members` first, then what changed.
pub fn record(members: Value, change: &impl Serialize) -> Value {
    let mut record = members;
    if let (Some(record), Ok(Value::Object(change))) = (record.as_object_mut(), serde_json::to_value(change)) {
        record.extend(change);
    }
    record
}

/// A change of one canary as JSON.
pub fn about(at: Timestamp, key: &Key, change: &Change) -> Value {
    record(json!({ "time": second(at), "about": key }), change)
}

/// Something that is about no canary: the connection, the end of waiting.
pub fn note(at: Timestamp, change: &str, message: &str) -> Value {
    json!({ "time": second(at), "change": change, "message": message })
}

/// A time in whole seconds.
pub fn second(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

#[cfg(test)]
mod tests {
    use seaway_api::Phase;

    use super::*;
    use crate::watch::checks::Check;
    use crate::watch::objects::EventLine;

    fn all() -> Vec<Change> {
        let check = Check {
            name: "error-rate".into(),
            value: Some(24.7),
            max: Some(1.0),
            verdict: "fail".into(),
            ..Check::default()
        };
        let hook =
            Check { name: "gate".into(), reason: Some("closed".into()), verdict: "fail".into(), ..Check::default() };
        let key = Key::new("test", "podinfo");
        let text = "Rolling back podinfo.test failed checks threshold reached 5".to_owned();
        vec![
            Change::Phase { phase: Phase::Progressing },
            Change::Split { primary: 90, canary: 10 },
            Change::Check(check),
            Change::Check(hook),
            Change::Event(EventLine {
                name: "x".into(),
                about: key,
                at: None,
                warning: true,
                text,
                count: 1,
                writes: 1,
            }),
            Change::Refused { message: "spec.analysis.stepWeight: 0 is not between 1 and 100".into() },
            Change::Deleted,
        ]
    }

    #[test]
    fn changes_can_be_read_aloud_and_filtered() {
        let (at, key) = ("2026-01-02T03:04:05.678Z".parse().unwrap(), Key::new("test", "podinfo"));
        let lines: Vec<String> = all().iter().map(|change| line(at, &key, change, Paint::plain())).collect();
        let records: Vec<String> = all().iter().map(|change| about(at, &key, change).to_string()).collect();
        insta::assert_snapshot!(format!("{}\n\n{}", lines.join("\n"), records.join("\n")));
    }
}
