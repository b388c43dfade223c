//! Patches that change what an object is: its kind and its version.
//!
//! A real server reads what a patch leaves as whatever it says it is, and only then finds out that it is something else.

use serde_json::{Value, json};

use super::decode::decode;
use super::error::{ApiError, Cause, Result};
use super::go_json::kind_of;
use super::meta;
use super::registry::Resource;
use super::request::Call;
use super::schema::Schema;
use super::write::{is_known_version, why_no};

/// Versions that are served no longer and whose objects look as those of today do: what a patch leaves is read as any of
/// them.
const GONE: &[(&str, &[&str])] = &[
    ("clusterrolebindings.rbac.authorization.k8s.io", RBAC),
    ("clusterroles.rbac.authorization.k8s.io", RBAC),
    ("controllerrevisions.apps", &["apps/v1beta1", "apps/v1beta2"]),
    ("cronjobs.batch", &["batch/v1beta1"]),
    ("daemonsets.apps", &["apps/v1beta2", "extensions/v1beta1"]),
    ("deployments.apps", &["apps/v1beta1", "apps/v1beta2", "extensions/v1beta1"]),
    ("leases.coordination.k8s.io", &["coordination.k8s.io/v1beta1"]),
    ("replicasets.apps", &["apps/v1beta2", "extensions/v1beta1"]),
    ("rolebindings.rbac.authorization.k8s.io", RBAC),
    ("roles.rbac.authorization.k8s.io", RBAC),
    ("statefulsets.apps", &["apps/v1beta1", "apps/v1beta2"]),
];
const RBAC: &[&str] = &["rbac.authorization.k8s.io/v1alpha1", "rbac.authorization.k8s.io/v1beta1"];

/// Refuses what a patch leaves if it is no longer of its kind.
pub(crate) fn check_kind(call: &Call, new: &mut Value) -> Result<()> {
    for field in ["apiVersion", "kind"] {
        if let Some(found) = new.get(field).filter(|found| !found.is_string() && !found.is_null()) {
            let why = format!("cannot unmarshal {} into Go struct field .{field} of type string", kind_of(found));
            let why = format!("couldn't get version/kind; json parse error: json: {why}");
            return Err(ApiError::unreadable_patch(new, &why));
        }
    }
    let (version, kind) = (meta::text(new, "/apiVersion"), meta::text(new, "/kind"));
    if call.served.resource.custom {
        return check_custom(call, new, version, kind);
    }
    check_builtin(call, new, version, kind)?;
    if is_gone(&call.served.resource, version) {
        meta::members(new).insert("apiVersion".into(), call.served.api_version().into());
    }
    Ok(())
}

fn is_gone(resource: &Resource, version: &str) -> bool {
    GONE.iter().any(|(id, versions)| *id == &*resource.id && versions.contains(&version))
}

/// Whether a version that is gone had other kinds of the group and not this one.
fn is_of_others(resource: &Resource, version: &str) -> bool {
    let had = |(_, versions): &&(&str, &[&str])| versions.contains(&version);
    !is_gone(resource, version) && GONE.iter().filter(had).any(|(id, _)| id.ends_with(&format!(".{}", resource.group)))
}

fn check_builtin(call: &Call, new: &Value, version: &str, kind: &str) -> Result<()> {
    let resource = &call.served.resource;
    let kind = if kind.is_empty() { &resource.kind } else { kind };
    if version.is_empty() {
        return Err(unversioned(call, new));
    }
    let expected = call.served.api_version();
    let is_known = is_known_version(&resource.group, version) && !is_of_others(resource, version);
    if kind == resource.kind && (version == expected || is_gone(resource, version) || is_known) {
        return Ok(());
    }
    let (group, short) = version.rsplit_once('/').unwrap_or(("core", version));
    let group = group.split('.').next().unwrap_or(group);
    let schema = Schema::named(&format!("{group}.{short}.{kind}"));
    let mut copy = new.clone();
    schema.drop_nulls(&mut copy);
    let why = decode(&schema, &mut copy).err().unwrap_or_else(|| why_no(resource, version, kind));
    Err(ApiError::unreadable_patch(new, &why))
}

/// What has no version is read by the server's own types, whose names nobody else knows.
fn unversioned(call: &Call, new: &Value) -> ApiError {
    let members = new.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let mut unknown: Vec<_> = members.filter(|name| !["apiVersion", "kind"].contains(name)).collect();
    unknown.sort_unstable();
    let told: Vec<_> = unknown.iter().map(|name| format!("unknown field {name:?}")).collect();
    match call.params.get("fieldValidation") {
        "Strict" => ApiError::unreadable_patch(new, &format!("strict decoding error: {}", told.join(", "))),
        "Ignore" => ApiError::nameless(&call.name),
        _ => ApiError::nameless(&call.name).after(&told),
    }
}

fn check_custom(call: &Call, new: &Value, version: &str, kind: &str) -> Result<()> {
    let (resource, expected) = (&call.served.resource, call.served.api_version());
    if kind.is_empty() {
        let mut sorted = new.clone();
        sorted.sort_all_objects();
        return Err(ApiError::unreadable_patch(new, &format!("Object 'Kind' is missing in '{sorted}'")));
    }
    if version.is_empty() {
        return Err(ApiError::internal("Object 'apiVersion' is missing in 'object has no apiVersion field'"));
    }
    let mut causes = Vec::new();
    if kind != resource.kind {
        causes.push(Cause::invalid("kind", &json!(kind), &format!("must be {}", resource.kind)));
    }
    if version != expected {
        causes.push(Cause::invalid("apiVersion", &json!(version), &format!("must be {expected}")));
    }
    let group = version.rsplit_once('/').map_or("", |(group, _)| group);
    if causes.is_empty() { Ok(()) } else { Err(ApiError::wrong_kind(group, kind, meta::name(new), &causes)) }
}
