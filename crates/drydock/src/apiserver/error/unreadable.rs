//! Refusals of what cannot be read: bodies of another kind, patches that make no object.

use serde_json::{Value, json};

use super::{ApiError, Cause};
use crate::apiserver::go_json::shown;
use crate::apiserver::registry::Resource;

impl ApiError {
    /// What was sent cannot be taken for an object of the kind that is wanted.
    pub(crate) fn cannot_be(version: &str, kind: &str, wanted: &str, why: &str) -> Self {
        Self::bad_request(format!("{kind} in version {version:?} cannot be handled as a {wanted}: {why}"))
    }

    /// Options of a request that are something else.
    pub(crate) fn no_options(api_version: &str, kind: &str) -> Self {
        let version = if api_version.is_empty() { "meta.k8s.io/v1" } else { api_version };
        Self::bad_request(unregistered(version, kind))
    }

    /// A patch makes something of an object that cannot be read.
    pub(crate) fn unreadable_patch(object: &Value, why: &str) -> Self {
        let mut sorted = object.clone();
        sorted.sort_all_objects();
        let cause = Cause::invalid("patch", &Value::from(sorted.to_string()), why);
        let mut error = Self::new(422, "Invalid", format!(" \"\" is invalid: {}", cause.line()));
        *error.details = json!({"causes": [cause.to_json()]});
        error
    }

    /// A merge patch puts a list in the place of an object.
    pub(crate) fn patched_to_a_list(list: &[Value]) -> Self {
        let why = "couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { \
                   APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }";
        Self::unreadable_patch(&list.iter().map(without_nulls).collect(), why)
    }

    /// A strategic merge patch makes something of an object that does not fit its type.
    pub(crate) fn unfitting_patch(patch: &Value, why: &str) -> Self {
        let cause = Cause::invalid("patch", &Value::from(shown(&without_nulls(patch))), why);
        let mut error = Self::new(422, "Invalid", format!(" \"\" is invalid: {}", cause.line()));
        *error.details = json!({"causes": [cause.to_json()]});
        error
    }

    /// An apply patch that has the right fields with values that do not fit.
    pub(crate) fn unfitting_apply(resource: &Resource, version: &str, object: &Value, why: &str) -> Self {
        let (place, group, kind) = (place(object), &resource.group, &resource.kind);
        Self::unforeseen(&format!(
            "failed to convert new object ({place}; {group}/{version}, Kind={kind}) to proper version: unable to convert \
             unstructured object to {group}/{version}, Kind={kind}: {why}"
        ))
    }

    /// A strategic merge patch says something that nobody understands.
    pub(crate) fn unknown_directive(directive: &str, patch: &serde_json::Map<String, Value>) -> Self {
        let patch = shown(&Value::Object(patch.clone()));
        Self::unforeseen(&format!("unknown patch type: {directive} in map: {patch}"))
    }

    /// An apply patch that does not have the types its kind has.
    pub(crate) fn untyped(resource: &Resource, version: &str, object: &Value, why: &str) -> Self {
        let place = place(object);
        let (group, kind) = (&resource.group, &resource.kind);
        Self::unforeseen(&format!(
            "failed to create typed patch object ({place}; {group}/{version}, Kind={kind}): {why}"
        ))
    }
}

/// A kind that no type of Go is for.
pub(crate) fn unregistered(api_version: &str, kind: &str) -> String {
    let scheme = "scheme \"pkg/api/legacyscheme/scheme.go:30\"";
    format!("no kind {kind:?} is registered for version {api_version:?} in {scheme}")
}

/// The namespace and the name of an object.
fn place(object: &Value) -> String {
    let metadata = |name: &str| object.get("metadata").and_then(|it| it.get(name)).and_then(Value::as_str);
    format!("{}/{}", metadata("namespace").unwrap_or_default(), metadata("name").unwrap_or_default())
}

/// What is null in a patch is no longer there when it has been carried out.
fn without_nulls(patch: &Value) -> Value {
    match patch {
        Value::Object(members) => {
            let left = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(left.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        other => other.clone(),
    }
}
