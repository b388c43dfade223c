//! Ratcheting: an object that a tightened CRD would refuse can still be changed, as long as the change leaves alone
//! what is wrong with it.
//!
//! A complaint is dropped if the old object drew the same one about the same value. Items of a list are the same where
//! the schema says so: those of a map have the same key, those of a set the same value, others the same place.

use serde_json::Value;

use super::error::Cause;
use super::fields::item_step;
use super::schema::{ListType, Schema};

/// Drops the complaints about `new` that `old` had already drawn, where nothing changed.
pub(crate) fn forgive(causes: &mut Vec<Cause>, drawn: &[Cause], schema: &Schema, old: &Value, new: &Value) {
    causes.retain(|cause| {
        let was = place_before(schema, new, old, &cause.field);
        let message = cause.message.replace(&cause.field, &was);
        let known = Cause { reason: cause.reason, message, field: was };
        !drawn.contains(&known) || !unchanged((&known.field, old), (&cause.field, new))
    });
}

/// Where in the old object the value was that is at a path of the new one. What was nowhere keeps its path.
fn place_before(schema: &Schema, new: &Value, old: &Value, path: &str) -> String {
    let unknown = Schema::default();
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let name = path.strip_prefix('.').unwrap_or(path);
            let dot = path.get(..path.len() - name.len()).unwrap_or_default();
            let below = new.iter().find_map(|(key, new)| {
                let rest = name.strip_prefix(key.as_str())?;
                let ends = rest.is_empty() || rest.starts_with(['.', '[']);
                let old = old.get(key).filter(|_| ends)?;
                let schema = schema.member(key).unwrap_or(&unknown);
                Some(format!("{dot}{key}{}", place_before(schema, new, old, rest)))
            });
            below.unwrap_or_else(|| path.to_owned())
        }
        (Value::Array(new), Value::Array(old)) => {
            let found = path.strip_prefix('[').and_then(|path| path.split_once(']')).and_then(|(index, rest)| {
                let index = index.parse::<usize>().ok()?;
                let item = new.get(index)?;
                let same = |other: &Value| item_step(schema, other) == item_step(schema, item);
                let at = match schema.resolve().list {
                    ListType::Atomic => index,
                    _ => old.iter().position(same)?,
                };
                Some(format!("[{at}]{}", place_before(schema.item(), item, old.get(at)?, rest)))
            });
            found.unwrap_or_else(|| path.to_owned())
        }
        _ => path.to_owned(),
    }
}

/// Whether the values at two paths are the same; what is missing on both sides is judged by its parent.
fn unchanged(old: (&str, &Value), new: (&str, &Value)) -> bool {
    match (find(old.1, old.0), find(new.1, new.0)) {
        (Some(old), Some(new)) => old == new,
        (None, None) => {
            let parent = |path: &'_ str| path.rfind(['.', '[']).map(|end| path.split_at(end).0.to_owned());
            let (Some(before), Some(after)) = (parent(old.0), parent(new.0)) else { return false };
            find(old.1, &before).is_some() && unchanged((&before, old.1), (&after, new.1))
        }
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
        assert!(unchanged(("spec.b", &old), ("spec.b", &old)));
        assert!(!unchanged(("spec.b", &old), ("spec.b", &new)));
        assert!(!unchanged(("spec.b.c", &json!({})), ("spec.b.c", &json!({}))));
    }

    #[test]
    fn items_of_a_map_are_known_by_their_key() {
        let list = |kind: &str| {
            Schema::parse(&json!({"type": "object", "properties": {"masts": {
                "type": "array", "x-kubernetes-list-type": kind, "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}, "height": {"type": "integer"}}},
            }}}))
        };
        let old = json!({"masts": [{"name": "main", "height": 99}]});
        let new = json!({"masts": [{"name": "fore", "height": 3}, {"name": "main", "height": 99}]});
        assert_eq!(place_before(&list("map"), &new, &old, "masts[1].height"), "masts[0].height");
        assert_eq!(place_before(&list("atomic"), &new, &old, "masts[1].height"), "masts[1].height");
        let complaint = |field: &str| Cause::invalid(field, &json!(99), &format!("{field} in body is too high"));
        let mut causes = vec![complaint("masts[1].height")];
        forgive(&mut causes, &[complaint("masts[0].height")], &list("map"), &old, &new);
        assert_eq!(causes, []);
        let mut causes = vec![complaint("masts[1].height")];
        forgive(&mut causes, &[complaint("masts[0].height")], &list("atomic"), &old, &new);
        assert_eq!(causes.len(), 1);
    }
}
