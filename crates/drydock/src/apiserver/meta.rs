//! Reading and writing the few fields that every object has.
//!
//! Objects are plain JSON here: the server must keep fields it does not know, so it never goes through typed structs.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

/// The string at a JSON pointer, or the empty string.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.<field>` as a string, or the empty string.
pub(crate) fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub(crate) fn name(object: &Value) -> &str {
    field(object, "name")
}

/// `metadata.namespace`; empty for cluster-wide objects.
pub(crate) fn namespace(object: &Value) -> &str {
    field(object, "namespace")
}

/// `metadata.uid`.
pub(crate) fn uid(object: &Value) -> &str {
    field(object, "uid")
}

/// `metadata.generation`; 0 for kinds that do not count it.
pub(crate) fn generation(object: &Value) -> i64 {
    object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0)
}

/// The object as a map; anything else becomes an empty one first.
pub(crate) fn members(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    match object {
        Value::Object(members) => members,
        _ => unreachable!("the value was just made an object"),
    }
}

/// The map at a key, made when it is missing.
pub(crate) fn child<'a>(object: &'a mut Value, key: &str) -> &'a mut Map<String, Value> {
    members(members(object).entry(key).or_insert(Value::Null))
}

/// `metadata`, made when it is missing.
pub(crate) fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    child(object, "metadata")
}

/// Sets a member, or removes it when there is no value. The order of the other members stays.
pub(crate) fn set(members: &mut Map<String, Value>, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            members.insert(key.to_owned(), value);
        }
        None => {
            members.shift_remove(key);
        }
    }
}

/// `metadata.finalizers`.
pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    strings(object.pointer("/metadata/finalizers"))
}

/// The strings of a list.
pub(crate) fn strings(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Replaces `metadata.finalizers`; an empty list leaves no trace.
pub(crate) fn set_finalizers(object: &mut Value, finalizers: &[String]) {
    let list = (!finalizers.is_empty()).then(|| Value::from(finalizers.to_vec()));
    set(metadata(object), "finalizers", list);
}

/// Leaves every owner in once, and says so if one was there twice.
pub(crate) fn distinct_owners(object: &mut Value, when: &str) -> Option<String> {
    let owners = object.pointer_mut("/metadata/ownerReferences")?.as_array_mut()?;
    let (mut distinct, mut twice) = (Vec::new(), Vec::new());
    for owner in owners.drain(..) {
        if distinct.contains(&owner) {
            twice.push(text(&owner, "/uid").to_owned());
        } else {
            distinct.push(owner);
        }
    }
    *owners = distinct;
    (!twice.is_empty()).then(|| {
        format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        )
    })
}

/// Whether deletion was requested.
pub(crate) fn deleting(object: &Value) -> bool {
    !field(object, "deletionTimestamp").is_empty()
}

/// One entry of `metadata.ownerReferences`.
pub(crate) struct Owner<'a> {
    pub(crate) uid: &'a str,
    pub(crate) blocks: bool,
}

/// `metadata.ownerReferences`.
pub(crate) fn owners(object: &Value) -> Vec<Owner<'_>> {
    let list = object.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .map(|owner| Owner {
            uid: text(owner, "/uid"),
            blocks: owner.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false),
        })
        .collect()
}

/// A moment some time from now; the last one there is when that is too far away.
pub(crate) fn later(now: Timestamp, wait: Duration) -> Timestamp {
    now.checked_add(wait).unwrap_or(Timestamp::MAX)
}

/// A time as Kubernetes writes it: whole seconds.
pub(crate) fn seconds(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
