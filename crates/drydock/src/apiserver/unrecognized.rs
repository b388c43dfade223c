//! Bodies that are no objects, and what Go says about them.

use bytes::Bytes;
use serde_json::Value;

use super::error::{ApiError, Result};
use super::request::parse_body;

/// How much of a body is shown.
const SHOWN: usize = 30;

/// Custom resources say of which kind they are; Go finds out before it looks at anything else.
pub(crate) fn check_kind(object: &Value, body: &Bytes, kind: &str) -> Result<()> {
    if object.get("kind").and_then(Value::as_str).is_some_and(|said| !said.is_empty()) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): Object 'Kind' is missing in '{text}' ({})",
        summary(body)
    )))
}

/// Reads a body that should be an object of a kind; without a kind it is the options of a request.
pub(crate) fn read(body: &Bytes, kind: &str) -> Result<Value> {
    // What does not begin as JSON may be YAML, which has words of its own.
    let json = body.is_empty() || matches!(body.first(), Some(b'{' | b'['));
    let why = match serde_json::from_slice::<Value>(body) {
        Ok(value @ Value::Object(_)) => return Ok(value),
        Ok(Value::Array(_)) => "json: cannot unmarshal array into Go value of type struct { APIVersion string \
            \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"
            .to_owned(),
        Err(error) if json && error.is_eof() => "unexpected end of JSON input".to_owned(),
        _ => return parse_body(body),
    };
    let why = format!("couldn't get version/kind; json parse error: {why}");
    if kind.is_empty() {
        return Err(ApiError::bad_request(why));
    }
    Err(ApiError::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    )))
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
        let error = read(&Bytes::from_static(body.as_bytes()), kind).unwrap_err();
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
