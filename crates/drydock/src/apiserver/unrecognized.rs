//! Bodies that are no objects, and what Go says about them.

use bytes::Bytes;
use serde_json::Value;

use super::error::{ApiError, Result};
use super::{go_json, request};

/// How much of a body is shown.
const SHOWN: usize = 30;

/// Custom resources say of which kind they are; Go finds out before it looks at anything else.
pub(crate) fn check_kind(object: &Value, body: &Bytes, kind: &str, lenient: Option<&str>) -> Result<()> {
    if object.get("kind").and_then(Value::as_str).is_some_and(|said| !said.is_empty()) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    // Whoever does not want to hear about unknown fields is answered by another decoder.
    if let Some(version) = lenient {
        return Err(ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: Object 'Kind' is missing in '{text}'"
        )));
    }
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({})",
        summary(body)
    )))
}

/// Reads a body that should be an object of a kind; without a kind it is the options of a request.
pub(crate) fn read(body: &Bytes, kind: &str, yaml: bool) -> Result<Value> {
    let refuse = |why: String| {
        Err(ApiError::bad_request(if kind.is_empty() {
            why
        } else {
            format!("the object provided is unrecognized (must be of type {kind}): {why} ({})", summary(body))
        }))
    };
    let begins_as_json = body.is_empty() || matches!(body.trim_ascii_start().first(), Some(b'{' | b'['));
    let read = match go_json::parse(body) {
        Err(why) if begins_as_json && !yaml => Err(why),
        // What does not begin as JSON may be YAML.
        Err(_) => match request::yaml(body) {
            Ok(value) => Ok(value),
            Err(()) => return refuse("yaml: did not find expected node content".to_owned()),
        },
        Ok(value) => Ok(value),
    };
    let why = match read {
        Ok(Value::Null) if !body.trim_ascii().is_empty() => return Ok(Value::Object(serde_json::Map::new())),
        Ok(Value::Null) => "unexpected end of JSON input".to_owned(),
        Ok(value @ Value::Object(_)) => {
            let odd = |field: &&&str| value.get(**field).is_some_and(|it| !it.is_string() && !it.is_null());
            match ["apiVersion", "kind"].iter().find(odd) {
                None => return Ok(value),
                Some(field) => {
                    let found = value.get(*field).map_or("null", go_json::kind_of);
                    format!("json: cannot unmarshal {found} into Go struct field .{field} of type string")
                }
            }
        }
        Ok(other) => format!(
            "json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go_json::kind_of(&other)
        ),
        Err(why) => why,
    };
    refuse(format!("couldn't get version/kind; json parse error: {why}"))
}

/// JSON objects are shown as they are, anything else in hexadecimal.
fn summary(body: &[u8]) -> String {
    match body {
        [] => "<empty>".to_owned(),
        [b'{', ..] => {
            let text = String::from_utf8_lossy(body.get(..SHOWN).unwrap_or(body)).into_owned();
            if body.len() > SHOWN { format!("{text} ...") } else { text }
        }
        _ => {
            let bytes: Vec<_> = body.iter().take(SHOWN).map(|byte| format!("{byte:02x}")).collect();
            let shown = bytes.concat();
            if body.len() > SHOWN { format!("{shown} ...") } else { shown }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(body: &'static str, kind: &str) -> String {
        let error = read(&Bytes::from_static(body.as_bytes()), kind, false).unwrap_err();
        error.to_status()["message"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_body_that_breaks_off_is_shown() {
        assert_eq!(
            said("{", "Canary"),
            "the object provided is unrecognized (must be of type Canary): couldn't get version/kind; json parse error: \
             unexpected end of JSON input ({)"
        );
        assert_eq!(said("{", ""), "couldn't get version/kind; json parse error: unexpected end of JSON input");
        assert!(said("[]", "Canary").ends_with("(5b5d)"));
    }
}
