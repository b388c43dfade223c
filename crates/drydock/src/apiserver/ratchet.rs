//! Ratcheting: an object that a tightened CRD would refuse can still be changed, as long as the change leaves alone
//! what is wrong with it.
//!
//! A complaint is dropped if the old object drew the same one and the value it is about is still the same. Unlike in
//! the real server, items of a list are compared by their place, not by their key.

use serde_json::Value;

use super::error::Cause;

/// Drops the complaints about `new` that `old` had already drawn, where nothing changed.
pub(crate) fn forgive(causes: &mut Vec<Cause>, drawn: &[Cause], old: &Value, new: &Value) {
    causes.retain(|cause| !drawn.contains(cause) || !unchanged(&cause.field, old, new));
}

/// Whether the value at a path is the same; what is missing on both sides is judged by its parent.
fn unchanged(path: &str, old: &Value, new: &Value) -> bool {
    match (find(old, path), find(new, path)) {
        (Some(old), Some(new)) => old == new,
        (None, None) => path
            .rfind(['.', '['])
            .and_then(|end| path.get(..end))
            .is_some_and(|parent| find(old, parent).is_some() && unchanged(parent, old, new)),
        _ => false,
    }
}

/// The value at a path like `spec.masts[1].name`. Keys may hold dots.
fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    if path.is_empty() {
        return Some(value);
    }
    match value {
        Value::Object(members) => {
            let path = path.strip_prefix('.').unwrap_or(path);
            members.iter().find_map(|(key, value)| {
                let rest = path.strip_prefix(key.as_str())?;
                if rest.is_empty() || rest.starts_with(['.', '[']) { find(value, rest) } else { None }
            })
        }
        Value::Array(items) => {
            let (index, rest) = path.strip_prefix('[')?.split_once(']')?;
            find(items.get(index.parse::<usize>().ok()?)?, rest)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let object = json!({"spec": {"a.b": {"c": 1}, "list": [{"x": 2}]}});
        assert_eq!(find(&object, "spec.a.b.c"), Some(&json!(1)));
        assert_eq!(find(&object, "spec.list[0].x"), Some(&json!(2)));
        assert_eq!(find(&object, "spec.list[1].x"), None);
        assert_eq!(find(&object, "sp"), None);
    }

    #[test]
    fn what_is_missing_is_judged_by_its_parent() {
        let (old, new) = (json!({"spec": {"a": 1}}), json!({"spec": {"a": 2}}));
        assert!(unchanged("spec.b", &old, &old));
        assert!(!unchanged("spec.b", &old, &new));
        assert!(!unchanged("spec.b.c", &json!({}), &json!({})));
    }
}
