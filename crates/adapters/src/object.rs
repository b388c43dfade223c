//! Reading one JSON object and patching it with preconditions.
//!
//! Foreign objects are never round-tripped through a closed struct, so this crate reads them as JSON. A [`Patch`] starts
//! with `test`s of the uid and resourceVersion it was decided on: an object that moved since is refused by the server.

use std::collections::BTreeMap;

use jiff::Timestamp;
use seaway_api::{API_VERSION, Canary};
use serde_json::{Map, Value, json};

use crate::change::{Action, Change, Kind, ObjectRef};

/// Field manager of everything we write.
pub const MANAGER: &str = "seaway";
/// Field manager of primaries at their creation: what it sets (replicas above all) is never applied again.
pub const CREATE_MANAGER: &str = "seaway-create";
/// Keys of Flux's own metadata; copied to no generated object, or Flux would adopt it.
const FLUX: &str = "toolkit.fluxcd.io";

/// Whether a label or annotation belongs to Flux.
pub(crate) fn is_flux(key: &str) -> bool {
    key.contains(FLUX)
}

/// What tells Flux to leave a generated object alone.
pub(crate) const FLUX_OPT_OUT: [(&str, &str); 2] =
    [("kustomize.toolkit.fluxcd.io/reconcile", "disabled"), ("helm.toolkit.fluxcd.io/driftDetection", "disabled")];

/// What is at a JSON pointer: [`Value::pointer`], which copies every segment to unescape it, without the copies. A round
/// looks up a few hundred.
pub fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    if pointer.contains('~') {
        return object.pointer(pointer);
    }
    let mut segments = pointer.split('/');
    // Nothing, or not a pointer.
    if segments.next() != Some("") {
        return None;
    }
    segments.try_fold(object, |value, segment| match value {
        Value::Object(fields) => fields.get(segment),
        // Not `01` nor `+1`.
        Value::Array(items) if segment == "0" || !segment.starts_with(['0', '+']) => {
            items.get(segment.parse::<usize>().ok()?)
        }
        _ => None,
    })
}

/// The string at a pointer; empty when there is none.
pub fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The whole number at a pointer.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<i64> {
    at(object, pointer).and_then(Value::as_i64)
}

/// The list at a pointer; empty when there is none.
pub(crate) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    at(object, pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The map of strings at a pointer (labels, annotations, selectors); empty when there is none.
pub(crate) fn strings(object: &Value, pointer: &str) -> BTreeMap<String, String> {
    let entries = at(object, pointer).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}

/// When anything but the status of an object was last changed, by the server's clock, as its record of managed fields tells.
pub fn changed(object: &Value) -> Option<Timestamp> {
    let entries = list(object, "/metadata/managedFields").iter();
    let own =
        entries.filter(|entry| entry.get("subresource").is_none_or(|part| part.as_str().is_none_or(str::is_empty)));
    own.filter_map(|entry| text(entry, "/time").parse().ok()).max()
}

/// A reference to an object of this name.
pub(crate) fn reference(kind: Kind, namespace: &str, name: &str) -> ObjectRef {
    ObjectRef { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

/// The uid of a Canary; empty when it did not come from an API server.
pub(crate) fn uid(canary: &Canary) -> &str {
    canary.metadata.uid.as_deref().unwrap_or_default()
}

/// The owner reference that makes an object ours.
pub(crate) fn owner_reference(canary: &Canary) -> Value {
    json!({
        "apiVersion": API_VERSION, "kind": "Canary", "name": canary.name(), "uid": uid(canary),
        "controller": true, "blockOwnerDeletion": true,
    })
}

/// The uid of whoever controls an object.
pub fn controller(object: &Value) -> Option<&str> {
    let controller = list(object, "/metadata/ownerReferences").iter().find(|owner| owner["controller"] == true)?;
    Some(text(controller, "/uid")).filter(|uid| !uid.is_empty())
}

/// Whether this Canary is the controlling owner.
pub(crate) fn is_controlled_by(object: &Value, canary: &Canary) -> bool {
    controller(object) == Some(uid(canary))
}

/// Whether this Canary is an owner, controlling or not: without it the object may go when another owner goes.
pub(crate) fn is_owned_by(object: &Value, canary: &Canary) -> bool {
    let uid = uid(canary);
    !uid.is_empty() && list(object, "/metadata/ownerReferences").iter().any(|owner| text(owner, "/uid") == uid)
}

/// Whether some Canary owns the object, controlling or not.
pub(crate) fn has_canary_owner(object: &Value) -> bool {
    list(object, "/metadata/ownerReferences")
        .iter()
        .any(|owner| text(owner, "/kind") == "Canary" && text(owner, "/apiVersion").starts_with("flagger.app/"))
}

/// A key as one segment of a JSON pointer.
pub(crate) fn segment(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

/// These fields of a JSON object have these values; other fields stay.
pub(crate) fn extend(object: &mut Value, fields: Value) {
    if let (Some(object), Value::Object(fields)) = (object.as_object_mut(), fields) {
        object.extend(fields);
    }
}

/// A new object; `spec` and other top-level fields come after `metadata`.
pub(crate) fn create(kind: Kind, metadata: Value, rest: Map<String, Value>, manager: &'static str) -> Change {
    let object = reference(kind, text(&metadata, "/namespace"), text(&metadata, "/name"));
    let mut body = Map::new();
    body.insert("apiVersion".into(), kind.api_version().into());
    body.insert("kind".into(), kind.kind.into());
    body.insert("metadata".into(), metadata);
    body.extend(rest);
    Change { object, action: Action::Create { body: Value::Object(body), manager } }
}

/// Deletes an object that was seen.
pub(crate) fn delete(kind: Kind, seen: &Value) -> Change {
    let object = reference(kind, text(seen, "/metadata/namespace"), text(seen, "/metadata/name"));
    Change { object, action: Action::Delete { uid: text(seen, "/metadata/uid").to_owned() } }
}

/// A JSON Patch under construction. Its paths point into the object it was started on.
pub(crate) struct Patch<'a> {
    object: ObjectRef,
    seen: &'a Value,
    tests: Vec<Value>,
    operations: Vec<Value>,
}

impl<'a> Patch<'a> {
    /// A patch of an object exactly as it was seen.
    pub(crate) fn of(kind: Kind, seen: &'a Value) -> Self {
        let mut patch = Self::of_any_version(kind, seen);
        patch.test("/metadata/resourceVersion", text(seen, "/metadata/resourceVersion"));
        patch
    }

    /// A patch of an object whose spec is as it was seen. Its status may have moved: controllers write that all the
    /// time, and a decision that does not depend on it must not lose to them.
    pub(crate) fn of_spec(kind: Kind, seen: &'a Value) -> Self {
        let Some(generation) = at(seen, "/metadata/generation") else { return Self::of(kind, seen) };
        let mut patch = Self::of_any_version(kind, seen);
        patch.test("/metadata/generation", generation.clone());
        patch
    }

    fn of_any_version(kind: Kind, seen: &'a Value) -> Self {
        let object = reference(kind, text(seen, "/metadata/namespace"), text(seen, "/metadata/name"));
        let mut patch = Self { object, seen, tests: Vec::new(), operations: Vec::new() };
        patch.test("/metadata/uid", text(seen, "/metadata/uid"));
        patch
    }

    /// One more precondition.
    pub(crate) fn test(&mut self, path: &str, value: impl Into<Value>) {
        self.tests.push(json!({ "op": "test", "path": path, "value": value.into() }));
    }

    /// The member at `path` becomes `value`, whether it exists or not; nothing when it is that already.
    pub(crate) fn set(&mut self, path: &str, value: impl Into<Value>) {
        let value = value.into();
        match at(self.seen, path) {
            Some(seen) if *seen == value => {}
            Some(_) => self.operations.push(json!({ "op": "replace", "path": path, "value": value })),
            None => self.operations.push(json!({ "op": "add", "path": path, "value": value })),
        }
    }

    /// A value is added at `path`, which may be the end of a list.
    pub(crate) fn add(&mut self, path: &str, value: impl Into<Value>) {
        self.operations.push(json!({ "op": "add", "path": path, "value": value.into() }));
    }

    /// The member at `path` goes away; nothing when there is none.
    pub(crate) fn unset(&mut self, path: &str) {
        if at(self.seen, path).is_some() {
            self.operations.push(json!({ "op": "remove", "path": path }));
        }
    }

    /// This key of a map goes away, and the map with its last one.
    pub(crate) fn unset_key(&mut self, path: &str, key: &str) {
        match at(self.seen, path).and_then(Value::as_object) {
            Some(map) if map.len() == 1 && map.contains_key(key) => self.unset(path),
            _ => self.unset(&format!("{path}/{}", segment(key))),
        }
    }

    /// `path` becomes `value`, or goes away when there is no value.
    pub(crate) fn set_or_unset(&mut self, path: &str, value: Option<&Value>) {
        match value {
            Some(value) if at(self.seen, path) == Some(value) => {}
            Some(value) => self.set(path, value.clone()),
            None => self.unset(path),
        }
    }

    /// These keys of a map of strings have these values; other keys stay.
    pub(crate) fn merge(&mut self, path: &str, entries: &BTreeMap<String, String>) {
        if entries.is_empty() {
            return;
        }
        if at(self.seen, path).and_then(Value::as_object).is_none() {
            return self.set(path, json!(entries));
        }
        for (key, value) in entries {
            self.set(&format!("{path}/{}", segment(key)), value.as_str());
        }
    }

    /// This Canary is no longer an owner.
    pub(crate) fn disown(&mut self, canary: &Canary) {
        let owners = list(self.seen, "/metadata/ownerReferences");
        let others: Vec<&Value> = owners.iter().filter(|owner| text(owner, "/uid") != uid(canary)).collect();
        if others.len() == owners.len() {
            return;
        }
        if others.is_empty() {
            self.unset("/metadata/ownerReferences");
        } else {
            self.set("/metadata/ownerReferences", json!(others));
        }
    }

    /// The change, or nothing when all of it is true already.
    pub(crate) fn finish(self) -> Option<Change> {
        if self.operations.is_empty() {
            return None;
        }
        let operations = Value::Array(self.tests.into_iter().chain(self.operations).collect());
        Some(Change { object: self.object, action: Action::JsonPatch { operations } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::SERVICE;

    fn seen() -> Value {
        json!({ "metadata": { "name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7", "labels": { "x/y": "1" } } })
    }

    #[test]
    fn a_lookup_finds_what_the_library_finds() {
        let object = json!({ "a": { "b": [1, { "c": null }], "d/e": 2, "": 3 }, "0": 4 });
        for pointer in [
            "", "/", "a", "/a", "/a/", "/a/b/0", "/a/b/1/c", "/a/b/01", "/a/b/+1", "/a/b/2", "/a/b/-", "/a/d~1e", "/0",
            "/a/b/0/x",
        ] {
            assert_eq!(at(&object, pointer), object.pointer(pointer), "{pointer}");
        }
    }

    #[test]
    fn a_patch_that_changes_nothing_is_no_request() {
        let seen = seen();
        let mut patch = Patch::of(SERVICE, &seen);
        patch.merge("/metadata/labels", &BTreeMap::from([("x/y".into(), "1".into())]));
        patch.unset("/spec/ports");
        assert_eq!(patch.finish(), None);
    }

    #[test]
    fn a_patch_tests_what_it_was_decided_on() {
        let seen = seen();
        let mut patch = Patch::of(SERVICE, &seen);
        patch.merge("/metadata/labels", &BTreeMap::from([("x/y".into(), "2".into()), ("z".into(), "3".into())]));
        patch.merge("/metadata/annotations", &BTreeMap::from([("k".into(), "v".into())]));
        let Some(Change { action: Action::JsonPatch { operations }, .. }) = patch.finish() else { panic!() };
        assert_eq!(
            operations,
            json!([
                { "op": "test", "path": "/metadata/uid", "value": "u" },
                { "op": "test", "path": "/metadata/resourceVersion", "value": "7" },
                { "op": "replace", "path": "/metadata/labels/x~1y", "value": "2" },
                { "op": "add", "path": "/metadata/labels/z", "value": "3" },
                { "op": "add", "path": "/metadata/annotations", "value": { "k": "v" } },
            ])
        );
    }
}
