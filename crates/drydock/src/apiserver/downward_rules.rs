//! What is wrong with how a container is told about its own pod.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::quantity::Quantity;
use super::validate;

/// What an environment variable may say.
pub(super) const IN_VARIABLES: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What a file may say.
pub(super) const IN_FILES: &[&str] =
    &["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// What is known about a pod, but said nowhere.
const UNSAID: [&str; 3] = ["spec.restartPolicy", "spec.schedulerName", "status.phase"];

const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Units of what is counted in bytes.
const BYTES: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Rules for a field of the pod, of which some can be said here.
pub(super) fn field(selector: &Value, path: &str, said_here: &[&str], causes: &mut Vec<Cause>) {
    let (version, name) = (meta::text(selector, "/apiVersion"), meta::text(selector, "/fieldPath"));
    for (field, text) in [("apiVersion", version), ("fieldPath", name)] {
        if text.is_empty() {
            causes.push(Cause::required(format!("{path}.{field}"), ""));
            return;
        }
    }
    let place = format!("{path}.fieldPath");
    let mut unreadable = |why: &str| {
        causes.push(Cause::invalid(place.clone(), &json!(name), &format!("error converting fieldPath: {why}")));
    };
    if version != "v1" {
        return unreadable(&format!("unsupported pod version: {version}"));
    }
    let key = name.strip_suffix("']").and_then(|text| text.split_once("['")).filter(|(map, _)| !map.is_empty());
    match key {
        // The case of annotations does not matter.
        Some(("metadata.annotations", key)) => validate::qualified_key(&key.to_ascii_lowercase(), path, causes),
        Some(("metadata.labels", key)) => validate::qualified_key(key, path, causes),
        Some(_) => unreadable(&format!("field label does not support subscript: {name}")),
        None => {
            // What old clients call it.
            let name = if name == "spec.host" { "spec.nodeName" } else { name };
            if ![IN_VARIABLES, IN_FILES, &UNSAID].iter().any(|known| known.contains(&name)) {
                unreadable(&format!("field label not supported: {name}"));
            } else if !said_here.contains(&name) {
                let allowed: Vec<_> = said_here.iter().map(|name| json!(name)).collect();
                causes.push(Cause::unsupported(&place, &json!(name), &allowed));
            }
        }
    }
}

/// Rules for the resources of a container. A file must say of which.
pub(super) fn resource(selector: &Value, path: &str, in_file: bool, causes: &mut Vec<Cause>) {
    let resource = meta::text(selector, "/resource");
    let huge = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if in_file && meta::text(selector, "/containerName").is_empty() {
        causes.push(Cause::required(format!("{path}.containerName"), ""));
    } else if resource.is_empty() {
        causes.push(Cause::required(format!("{path}.resource"), ""));
    } else if !RESOURCES.contains(&resource) && !huge {
        let allowed: Vec<_> = RESOURCES.iter().map(|name| json!(name)).collect();
        causes.push(Cause::unsupported(&format!("{path}.resource"), &json!(resource), &allowed));
    }
    let Ok(divisor) = Quantity::parse(meta::text(selector, "/divisor")) else { return };
    if !divisor.is_negative() && !divisor.is_positive() {
        return;
    }
    let (units, words, what) = match resource {
        "limits.cpu" | "requests.cpu" => (&["1m", "1"][..], "1m and 1".to_owned(), "cpu"),
        "limits.memory" | "requests.memory" => (&BYTES[..], BYTES.join(", "), "memory"),
        "limits.ephemeral-storage" | "requests.ephemeral-storage" => {
            (&BYTES[..], BYTES.join(", "), "local ephemeral storage")
        }
        _ if huge => (&BYTES[..], BYTES.join(", "), "hugepages"),
        _ => return,
    };
    if !units.contains(&divisor.canonical().as_str()) {
        let why = format!("only divisor's values {words} are supported with the {what} resource");
        causes.push(Cause::invalid(format!("{path}.divisor"), &json!(resource), &why));
    }
}
