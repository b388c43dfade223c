//! Which object a write means, and what of it a client may change at all.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::apiserver::error::{ApiError, Result};
use crate::apiserver::meta;
use crate::apiserver::request::Call;

/// An update must mean the object at its address.
pub(crate) fn check_place(call: &Call, object: &Value) -> Result<()> {
    let sent = meta::namespace(object);
    if !sent.is_empty() && call.namespace.as_deref().is_some_and(|namespace| namespace != sent) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    match meta::name(object) {
        "" => Err(ApiError::nameless(&call.name)),
        name if name != call.name => Err(ApiError::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            call.name
        ))),
        _ => Ok(()),
    }
}

/// An update must mean the object that is there.
pub(super) fn check_identity(call: &Call, live: &Value, new: &Value) -> Result<()> {
    let resource = &call.served.resource;
    let name = meta::name(live);
    let sent = meta::name(new);
    if sent.is_empty() {
        return Err(ApiError::nameless(name));
    }
    if sent != name {
        return Err(ApiError::bad_request(format!(
            "the name of the object ({sent}) does not match the name on the URL ({name})"
        )));
    }
    if resource.namespaced && !meta::namespace(new).is_empty() && meta::namespace(new) != meta::namespace(live) {
        return Err(ApiError::bad_request(
            "the namespace of the provided object does not match the namespace sent on the request",
        ));
    }
    let (uid, live_uid) = (meta::uid(new), meta::uid(live));
    // Of a patch only the result counts, and a uid that has changed is a bad one.
    if !uid.is_empty() && uid != live_uid && call.verb != "patch" {
        return Err(ApiError::other_uid(resource, name, &call.storage_key(), (uid, live_uid)));
    }
    let version = match meta::field(new, "resourceVersion") {
        "0" => "",
        version => version,
    };
    if version.parse::<u64>().is_err() && !version.is_empty() {
        return Err(ApiError::unforeseen(&format!("strconv.ParseUint: parsing {version:?}: invalid syntax")));
    }
    if version.is_empty() && !resource.behaviour.blind_update {
        return Err(ApiError::unseen(resource, name));
    }
    if !version.is_empty() && version != meta::field(live, "resourceVersion") {
        return Err(ApiError::modified(resource, name));
    }
    Ok(())
}

/// What a client says about metadata that nobody can change, and that is not so. What it leaves out stays as it is, and the
/// time of a deletion does so in any case.
pub(super) fn changed_fixed(live: &Value, new: &Value) -> Vec<(&'static str, Value)> {
    let changed = |field: &'static str| {
        let (held, said) = (live.get("metadata")?.get(field), new.get("metadata")?.get(field)?);
        let settled = field == "deletionTimestamp" && held.is_some();
        (!settled && *said != "" && Some(said) != held).then(|| (field, said.clone()))
    };
    ["uid", "deletionTimestamp", "deletionGracePeriodSeconds"].into_iter().filter_map(changed).collect()
}

/// Puts back what the client may not change: the server's metadata, and the part the other endpoint writes.
pub(super) fn restore(call: &Call, live: &Value, new: &mut Value) {
    if call.subresource == "status" && call.served.resource.custom {
        let status = new.get("status").cloned();
        *new = live.clone();
        meta::set(meta::members(new), "status", status);
        return;
    }
    if call.subresource == "status" {
        // Built-in kinds let most of the metadata of a status pass.
        let (status, metadata) = (new.get("status").cloned(), new.get("metadata").cloned());
        *new = live.clone();
        meta::set(meta::members(new), "status", status);
        meta::set(meta::members(new), "metadata", metadata);
        for field in call.served.resource.behaviour.fixed_by_status {
            meta::set(meta::metadata(new), field, live.pointer(&format!("/metadata/{field}")).cloned());
        }
    }
    let metadata = meta::metadata(new);
    for field in [
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "generation",
    ] {
        meta::set(metadata, field, live.get("metadata").and_then(|metadata| metadata.get(field)).cloned());
    }
    metadata.shift_remove("selfLink");
    if call.served.has("status") && call.subresource != "status" {
        meta::set(meta::members(new), "status", live.get("status").cloned());
    }
}

/// The annotations, without the one that the Deployment controller of a real cluster writes along with the status, which is
/// why it is not counted there.
pub(super) fn notes(object: &Value) -> BTreeMap<&String, &Value> {
    let all = object.pointer("/metadata/annotations").and_then(Value::as_object);
    all.into_iter().flatten().filter(|(key, _)| *key != "deployment.kubernetes.io/revision").collect()
}

/// Whether anything outside metadata and status differs.
pub(super) fn desired_state_changed(call: &Call, live: &Value, new: &Value) -> bool {
    let ignored = |key: &str| match key {
        "metadata" | "apiVersion" | "kind" => true,
        "status" => call.served.has("status"),
        _ => false,
    };
    part(live, ignored) != part(new, ignored)
}

/// The members of an object that are not left out, in the order of their names.
fn part(object: &Value, ignored: impl Fn(&str) -> bool) -> BTreeMap<&String, &Value> {
    object.as_object().into_iter().flatten().filter(|(key, _)| !ignored(key)).collect()
}
