//! What is wrong with where a container sees volumes, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::path_rules::{descending, no_backsteps};
use super::pod_rules::{given, list, required, supported};

const PROPAGATION: [&str; 3] = ["Bidirectional", "HostToContainer", "None"];

/// Rules for the mounts and devices of a container of a pod with these volumes.
pub(super) fn mounts(container: &Value, path: &str, volumes: &[&Value], causes: &mut Vec<Cause>) {
    let (mounts, devices) = (list(container, "volumeMounts"), list(container, "volumeDevices"));
    let mounts_path = format!("{path}.volumeMounts");
    for (at, mount) in mounts.iter().enumerate() {
        let path = format!("{mounts_path}[{at}]");
        let (name, place) = (meta::text(mount, "/name"), meta::text(mount, "/mountPath"));
        required(mount, &path, "name", causes);
        if volume(volumes, name).is_none() {
            causes.push(Cause::missing(format!("{path}.name"), &json!(name)));
        }
        required(mount, &path, "mountPath", causes);
        let mut wrong = |field: &str, found: &str, why: &str| {
            causes.push(Cause::invalid(format!("{path}.{field}"), &json!(found), why));
        };
        if mounts.iter().take(at).any(|other| meta::text(other, "/mountPath") == place) {
            wrong("mountPath", place, "must be unique");
        }
        if taken(devices, "/name", name) {
            wrong("name", name, "must not already exist in volumeDevices");
        }
        if taken(devices, "/devicePath", place) {
            wrong("mountPath", place, "must not already exist as a path in volumeDevices");
        }
        // From here on the real server does not say which of them it means.
        let (inside, computed) = (meta::text(mount, "/subPath"), meta::text(mount, "/subPathExpr"));
        descending(inside, &format!("{mounts_path}.subPath"), causes);
        if !computed.is_empty() && !inside.is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            causes.push(Cause::invalid(format!("{path}.subPathExpr"), &json!(computed), why));
        }
        descending(computed, &format!("{mounts_path}.subPathExpr"), causes);
        propagation(mount, container, &mounts_path, causes);
        read_only(mount, &mounts_path, causes);
    }
    for (at, device) in devices.iter().enumerate() {
        self::device(device, &format!("{path}.volumeDevices[{at}]"), &devices[..at], (mounts, volumes), causes);
    }
}

fn volume<'a>(volumes: &[&'a Value], name: &str) -> Option<&'a Value> {
    volumes.iter().copied().find(|volume| meta::text(volume, "/name") == name)
}

fn taken(others: &[Value], pointer: &str, text: &str) -> bool {
    others.iter().any(|other| meta::text(other, pointer) == text)
}

/// Who sees what is mounted later.
fn propagation(mount: &Value, container: &Value, path: &str, causes: &mut Vec<Cause>) {
    supported(mount, path, "mountPropagation", &PROPAGATION, causes);
    let privileged = container.pointer("/securityContext/privileged") == Some(&Value::Bool(true));
    if mount.get("mountPropagation").is_some_and(|word| word == "Bidirectional") && !privileged {
        let why = "Bidirectional mount propagation is available only to privileged containers";
        causes.push(Cause::forbidden(format!("{path}.mountPropagation"), why));
    }
}

/// What is mounted inside can only be kept from writing where nothing can be written.
fn read_only(mount: &Value, path: &str, causes: &mut Vec<Cause>) {
    supported(mount, path, "recursiveReadOnly", &["Disabled", "Enabled", "IfPossible"], causes);
    if !["Enabled", "IfPossible"].contains(&meta::text(mount, "/recursiveReadOnly")) {
        return;
    }
    let place = format!("{path}.recursiveReadOnly");
    if mount.get("readOnly") != Some(&Value::Bool(true)) {
        causes.push(Cause::forbidden(place.clone(), "may only be specified when readOnly is true"));
    }
    if given(mount, "mountPropagation").is_some_and(|word| word != "None") {
        let why = "may only be specified when mountPropagation is None or not specified";
        causes.push(Cause::forbidden(place, why));
    }
}

/// A claimed volume as a device, given those before it, the mounts and the volumes.
fn device(one: &Value, path: &str, before: &[Value], others: (&[Value], &[&Value]), causes: &mut Vec<Cause>) {
    let (mounts, volumes) = others;
    let (name, place) = (meta::text(one, "/name"), meta::text(one, "/devicePath"));
    let invalid = |field: &str, found: &str, why: &str| Cause::invalid(format!("{path}.{field}"), &json!(found), why);
    required(one, path, "name", causes);
    if !name.is_empty() && taken(before, "/name", name) {
        causes.push(invalid("name", name, "must be unique"));
    }
    match volume(volumes, name) {
        None => causes.push(Cause::missing(format!("{path}.name"), &json!(name))),
        Some(volume) if ["persistentVolumeClaim", "ephemeral"].iter().all(|kind| given(volume, kind).is_none()) => {
            let why = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
            causes.push(invalid("name", name, why));
        }
        Some(_) => {}
    }
    required(one, path, "devicePath", causes);
    let leads_up = |path: &str| {
        let mut found = Vec::new();
        no_backsteps(path, "", &mut found);
        !found.is_empty()
    };
    if !leads_up(place) && taken(before, "/devicePath", place) {
        causes.push(invalid("devicePath", place, "must be unique"));
    }
    if leads_up(place) {
        causes.push(invalid("devicePath", place, "can not contain backsteps ('..')"));
    }
    if taken(mounts, "/name", name) {
        causes.push(invalid("name", name, "must not already exist in volumeMounts"));
    }
    if taken(mounts, "/mountPath", place) {
        causes.push(invalid("devicePath", place, "must not already exist as a path in volumeMounts"));
    }
}
