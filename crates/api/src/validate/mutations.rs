//! Every field of every kind, spoilt in every way its type allows: nothing panics, and what is found names a field.

use serde_json::{Value, json};

use super::*;
use crate::crds::tests::full_object;
use crate::lint::{Source, lint};

/// What may stand where `value` stands.
fn spoilt(value: &Value) -> Vec<Value> {
    let mut list = match value {
        Value::String(_) => [
            "",
            "\0",
            "\u{202e}🚢",
            "{{",
            "{{ end }}",
            "../..",
            "10sx",
            "-5m",
            "1m0.5.5s",
            "http://",
            "ftp://[::1",
            "a\nb",
        ]
        .into_iter()
        .map(Value::from)
        .chain([json!("x".repeat(65_536))])
        .collect(),
        Value::Number(_) => vec![
            json!(0),
            json!(-1),
            json!(1.5),
            json!(65_536),
            json!(1_u64 << 31),
            json!(i64::MAX),
            json!(i64::MIN),
            json!(u64::MAX),
            json!(1e300),
        ],
        Value::Array(items) => {
            let one = items.first().cloned().unwrap_or_default();
            vec![json!([]), json!([one, one]), Value::Array(vec![one; 100]), json!([null])]
        }
        Value::Object(_) => vec![json!({}), json!({ "unknown": { "": [] } })],
        Value::Bool(value) => vec![json!(!value)],
        Value::Null => Vec::new(),
    };
    list.extend([Value::Null, json!("text"), json!(7), json!([[]]), json!({ "a": null })]);
    list
}

fn pointers(prefix: &str, value: &Value, into: &mut Vec<String>) {
    into.push(prefix.to_owned());
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                pointers(&format!("{prefix}/{name}"), value, into);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                pointers(&format!("{prefix}/{index}"), value, into);
            }
        }
        _ => {}
    }
}

#[test]
fn nothing_a_server_could_store_makes_it_panic() {
    let mut tried = 0;
    for kind in ["Canary", "MetricTemplate", "AlertProvider"] {
        let object = full_object(kind);
        let mut places = Vec::new();
        pointers("/spec", &object["spec"], &mut places);
        for place in places {
            for value in spoilt(object.pointer(&place).unwrap()) {
                let mut object = object.clone();
                *object.pointer_mut(&place).unwrap() = value;
                // Reading text is the slow part, so only some go through it.
                if tried % 16 == 0 {
                    read(&object);
                }
                check(kind, object);
                tried += 1;
            }
        }
    }
    assert!(tried > 1_600, "{tried} mutations");
}

fn read(object: &Value) {
    // JSON is YAML, so the text of the object is a file.
    let text = object.to_string();
    for finding in lint(&[Source { name: "spoilt", text: &text }], &Context::default()) {
        assert!(!finding.problem.is_empty() && finding.line > 0, "{finding:?}");
    }
}

fn check(kind: &str, object: Value) {
    let report = match kind {
        "Canary" => crate::canary::parse(object).map(|canary| validate(&canary, &Context::default())),
        "MetricTemplate" => {
            crate::field::parse(object).map(|template| validate_metric_template(&template, &Context::default()))
        }
        _ => crate::field::parse(object).map(|provider| validate_alert_provider(&provider, &Context::default())),
    };
    match report {
        Ok(report) => assert!(report.errors.iter().all(|error| error.path.starts_with("spec")), "{report:?}"),
        Err(error) => assert!(error.path.starts_with("spec"), "{error:?}"),
    }
}
