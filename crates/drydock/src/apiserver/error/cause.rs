//! One thing wrong with an object, at one field.

use serde_json::{Value, json};

/// One thing wrong with an object, at one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// Why, in one word (`FieldValueInvalid`, ...).
    pub(crate) reason: &'static str,
    /// What is wrong, for people.
    pub(crate) message: String,
    /// Where (`spec.ports[0].port`).
    pub(crate) field: String,
}

impl Cause {
    /// A value that breaks a rule.
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {value}: {why}"), field: field.into() }
    }

    /// A value that breaks a rule and is too big to be shown.
    pub(crate) fn invalid_unshown(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {why}"), field: field.into() }
    }

    /// A value of the wrong JSON type; the type stands where the value would.
    pub(crate) fn wrong_type(field: &str, expected: &str, found: &str) -> Self {
        Self {
            reason: "FieldValueTypeInvalid",
            message: format!("Invalid value: {found:?}: {field} in body must be of type {expected}: {found:?}"),
            field: field.to_owned(),
        }
    }

    /// A field that must be there.
    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let message = if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// A value outside an enumeration.
    pub(crate) fn unsupported(field: &str, value: &Value, allowed: &[Value]) -> Self {
        let quoted = |value: &Value| value.as_str().map_or_else(|| format!("\"{value}\""), |text| format!("{text:?}"));
        let allowed: Vec<_> = allowed.iter().map(quoted).collect();
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value}: supported values: {}", allowed.join(", ")),
            field: field.to_owned(),
        }
    }

    /// Something that is not allowed here at all.
    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// Too many bytes to be shown.
    pub(crate) fn too_long(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueTooLong", message: format!("Too long: {why}"), field: field.into() }
    }

    /// A list that is longer than it may be.
    pub(crate) fn too_many(field: impl Into<String>, found: usize, most: usize) -> Self {
        let message = format!("Too many: {found}: must have at most {most} items");
        Self { reason: "FieldValueTooMany", message, field: field.into() }
    }

    /// A list entry that is there twice.
    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", message: format!("Duplicate value: {value}"), field: field.into() }
    }

    /// Something that is named but nowhere to be found.
    pub(crate) fn missing(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueNotFound", message: format!("Not found: {value}"), field: field.into() }
    }

    /// An object that fits none or too many of several schemas. The real server does not say where.
    pub(crate) fn ambiguous(path: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: \"\": {path:?} {why}"),
            field: "<nil>".to_owned(),
        }
    }

    /// Rules that could not be looked at, since the object is not what they are about.
    pub(crate) fn unchecked() -> Self {
        let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
                   complete validation";
        Self::invalid("<nil>", &Value::Null, why)
    }

    /// Whether the object is not of the shape that rules rely on, as opposed to having a bad value.
    pub(crate) fn blocks_rules(&self) -> bool {
        [
            "FieldValueNotSupported",
            "FieldValueRequired",
            "FieldValueTooLong",
            "FieldValueTooMany",
            "FieldValueTypeInvalid",
        ]
        .contains(&self.reason)
    }

    pub(crate) fn line(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    pub(super) fn to_json(&self) -> Value {
        json!({"reason": self.reason, "message": self.message, "field": self.field})
    }
}
