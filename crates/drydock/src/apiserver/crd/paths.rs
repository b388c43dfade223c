//! Paths that a definition gives: into objects, for columns, scaling and field selectors.

use serde_json::Value;

use crate::apiserver::error::Cause;
use crate::apiserver::meta;

/// How many fields of a version may be selected by.
const MOST_SELECTABLE: usize = 8;

/// Whether a path begins as one does.
fn simple(path: &str, place: &str, causes: &mut Vec<Cause>) -> bool {
    let right = path.starts_with('.');
    if !right {
        causes.push(Cause::invalid(place, &path.into(), "must be a simple json path starting with ."));
    }
    right
}

pub(super) fn column_path(path: &str, place: &str, causes: &mut Vec<Cause>) {
    if path.is_empty() {
        causes.push(Cause::required(place, ""));
    } else {
        simple(path, place, causes);
    }
}

/// The numbers that a scale shows and the selector beside them.
pub(super) fn scale_paths(subresources: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(scale) = subresources.get("scale") else { return };
    for (field, prefix) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (place, found) = (format!("{path}.scale.{field}"), meta::text(scale, &format!("/{field}")));
        if found.is_empty() {
            causes.push(Cause::required(place, ""));
        } else if simple(found, &place, causes) && !found.starts_with(&format!("{prefix}.")) {
            causes.push(Cause::invalid(place, &found.into(), &format!("should be a json path under {prefix}")));
        }
    }
    let (place, found) = (format!("{path}.scale.labelSelectorPath"), meta::text(scale, "/labelSelectorPath"));
    let inside = [".spec.", ".status."].iter().any(|prefix| found.starts_with(prefix));
    if !found.is_empty() && simple(found, &place, causes) && !inside {
        causes.push(Cause::invalid(place, &found.into(), "should be a json path under either .spec or .status"));
    }
}

pub(super) fn selectable_fields(fields: &[Value], schema: &Value, path: &str, causes: &mut Vec<Cause>) {
    let mut seen: Vec<&str> = Vec::new();
    for (at, field) in fields.iter().enumerate() {
        let (place, found) = (format!("{path}[{at}].jsonPath"), meta::text(field, "/jsonPath"));
        if found.is_empty() {
            causes.push(Cause::required(place, ""));
            continue;
        }
        let value = Value::from(found);
        let end = match follow(schema, found) {
            Ok(end) => end,
            Err(why) => {
                causes.push(Cause::invalid(place, &value, &format!("is an invalid path: {why}")));
                continue;
            }
        };
        if found.trim_start_matches('.').split('.').next() == Some("metadata") {
            causes.push(Cause::invalid(&place, &value, "must not point to fields in metadata"));
        }
        if !["string", "boolean", "integer"].contains(&meta::text(end, "/type")) {
            let why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            causes.push(Cause::invalid(&place, &value, why));
        }
        if seen.contains(&found) {
            causes.push(Cause::duplicate(place, &value));
        } else {
            seen.push(found);
        }
    }
    if seen.len() > MOST_SELECTABLE {
        causes.push(Cause::too_many(path, seen.len(), MOST_SELECTABLE));
    }
}

/// The schema of the field that a path leads to.
pub(super) fn follow<'a>(schema: &'a Value, path: &str) -> Result<&'a Value, String> {
    if path.contains('[') {
        return Err("array notation is not allowed".into());
    }
    let Some(names) = path.strip_prefix('.') else {
        let first = path.split('.').next().unwrap_or_default();
        return Err(format!("expected [ or . but got: {first}"));
    };
    names.split('.').try_fold(schema, |schema, name| {
        let found = schema.get("properties").and_then(|properties| properties.get(name));
        found.ok_or_else(|| "does not refer to a valid field".into())
    })
}
