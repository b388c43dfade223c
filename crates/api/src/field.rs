//! A problem with one field, and typed parsing that says which field it was.
//!
//! This module does not judge values; that is `validate`.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is wrong with one field and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct FieldError {
    /// Where: `spec.analysis.stepWeights[2]`. Empty for the object as a whole.
    pub path: String,
    /// What is wrong, lower case, without the path.
    pub problem: String,
    /// What to write instead. Empty when the problem says it already.
    pub remedy: String,
}

impl FieldError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { path: path.into(), problem: problem.into(), remedy: remedy.into() }
    }

    /// The whole message for a condition, an Event or a log line: path, problem and remedy.
    pub fn sentence(&self) -> String {
        match (self.path.is_empty(), self.remedy.is_empty()) {
            (true, true) => self.problem.clone(),
            (true, false) => format!("{}; {}", self.problem, self.remedy),
            (false, true) => format!("{}: {}", self.path, self.problem),
            (false, false) => format!("{}: {}; {}", self.path, self.problem, self.remedy),
        }
    }
}

/// Reads `value` as `T`; on failure the error names the field, not only the type.
pub fn parse<T: DeserializeOwned>(value: Value) -> Result<T, FieldError> {
    serde_path_to_error::deserialize(value).map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        FieldError::new(path, error.into_inner().to_string(), "write a value of the type the field has")
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Inner {
        list: Vec<u8>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Outer {
        inner: Inner,
    }

    #[test]
    fn the_error_names_the_element() {
        let error = parse::<Outer>(json!({ "inner": { "list": [1, "x"] } })).unwrap_err();
        assert_eq!(error.path, "inner.list[1]");
        let error = parse::<Outer>(json!({ "inner": {} })).unwrap_err();
        assert_eq!((error.path.as_str(), error.problem.as_str()), ("inner", "missing field `list`"));
        assert_eq!(parse::<Outer>(json!([])).unwrap_err().path, "");
    }
}
