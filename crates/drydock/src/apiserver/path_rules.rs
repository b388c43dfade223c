//! What is wrong with a path inside a volume, or on a node.

use serde_json::json;

use super::error::Cause;

/// Rules for a path that does not lead up.
pub(super) fn no_backsteps(path: &str, place: &str, causes: &mut Vec<Cause>) {
    if path.split('/').any(|part| part == "..") {
        causes.push(Cause::invalid(place, &json!(path), "must not contain '..'"));
    }
}

/// Rules for a path that leads down from where it begins.
pub(super) fn descending(path: &str, place: &str, causes: &mut Vec<Cause>) {
    if path.starts_with('/') {
        causes.push(Cause::invalid(place, &json!(path), "must be a relative path"));
    }
    no_backsteps(path, place, causes);
}

/// The same, and kubelets do not keep it for themselves.
pub(super) fn unreserved(path: &str, place: &str, causes: &mut Vec<Cause>) {
    descending(path, place, causes);
    if path.starts_with("..") && !path.starts_with("../") {
        causes.push(Cause::invalid(place, &json!(path), "must not start with '..'"));
    }
}
