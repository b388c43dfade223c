//! What is particular about namespaces: who holds them, and the two phases they are in.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::validate::{finalizer_name, qualified_key};

/// Its finalizer is the server's: without it nobody would empty it.
pub(super) fn begin(namespace: &mut Value) {
    let held = meta::child(namespace, "spec").entry("finalizers").or_insert_with(|| json!([]));
    if let Value::Array(held) = held
        && !held.iter().any(|name| name == "kubernetes")
    {
        held.push("kubernetes".into());
    }
    label_with_name(namespace);
}

/// A namespace can be selected by its name. One that is yet to get a name gets the label with it, from nobody.
pub(super) fn label_with_name(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    if !name.is_empty() {
        let labels = meta::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
        meta::members(labels).insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

/// Who holds a namespace is said when it is made, and by `finalize` alone from then on.
pub(super) fn keep(namespace: &mut Value, old: &Value, subresource: &str) {
    let members = meta::members(namespace);
    if subresource == "finalize" {
        members.entry("spec").or_insert_with(|| json!({}));
    } else {
        meta::set(members, "spec", old.get("spec").cloned());
    }
}

/// Rules for who holds it. Of a new one it is not said which of them is wrong.
pub(super) fn holders(old: Option<&Value>, namespace: &Value, causes: &mut Vec<Cause>) {
    for (at, name) in meta::strings(namespace.pointer("/spec/finalizers")).into_iter().enumerate() {
        let path = if old.is_none() { "spec.finalizers".to_owned() } else { format!("spec.finalizers[{at}]") };
        qualified_key(name, &path, causes);
        finalizer_name(name, &path, causes);
    }
}

/// Nobody says of a namespace that it is what it is not.
pub(super) fn phase(namespace: &Value, causes: &mut Vec<Cause>) {
    let (phase, why) = if meta::deleting(namespace) {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    let said = meta::text(namespace, "/status/phase");
    if said != phase {
        causes.push(Cause::invalid("status.Phase", &json!(said), why));
    }
}

/// Marks a namespace that somebody deletes.
pub(super) fn mark(namespace: &mut Value, now: &str) {
    meta::metadata(namespace).insert("deletionTimestamp".into(), now.into());
    meta::child(namespace, "status").insert("phase".into(), "Terminating".into());
}
