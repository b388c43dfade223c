//! What is wrong with a pod, or with the template of one, in the order in which the real server looks.

use serde_json::{Value, json};

use super::affinity_rules::{affinity, spread};
use super::container_rules::{container, init_container, restarts};
use super::dns_names;
use super::env_rules::files_of_variables;
use super::error::Cause;
use super::host_rules::{dns, host_aliases, host_network, host_ports, hostname_override, own_users};
use super::meta;
use super::probe_rules::handlers;
use super::schema::join;
use super::security_rules::pod_security;
use super::toleration_rules::tolerations;
use super::validate::{self, NameRule};
use super::volume_rules::volumes;

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";

/// Rules for a pod: those of every template, and some that came too late for templates.
pub(super) fn pod(pod: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = pod.get("spec").unwrap_or(&nothing);
    annotations(pod.pointer("/metadata/annotations"), "metadata.annotations", spec, causes);
    check(spec, "spec", Some(meta::name(pod)), causes);
    if meta::text(spec, "/serviceAccountName").is_empty() {
        for (at, volume) in list(spec, "volumes").iter().enumerate() {
            for (number, source) in
                volume.get("projected").map(|it| list(it, "sources")).unwrap_or_default().iter().enumerate()
            {
                if given(source, "serviceAccountToken").is_some() {
                    let place = format!("spec.volumes[{at}].projected.sources[{number}].serviceAccountToken");
                    causes.push(Cause::forbidden(place, "must not be specified when serviceAccountName is not set"));
                }
            }
        }
    }
    for kind in ["containers", "initContainers"] {
        for (at, container) in list(spec, kind).iter().enumerate() {
            padded_image(container, &format!("spec.{kind}[{at}]"), causes);
        }
    }
    // Until it has got a version it is new.
    let new = meta::field(pod, "resourceVersion").is_empty();
    if new && !list(spec, "ephemeralContainers").is_empty() {
        causes.push(Cause::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
    if new && !meta::text(spec, "/nodeName").is_empty() && !list(spec, "schedulingGates").is_empty() {
        causes.push(Cause::forbidden("spec.nodeName", "cannot be set until all schedulingGates have been cleared"));
    }
}

/// Rules for an image of a pod that runs. Templates have always been let off.
pub(super) fn padded_image(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let image = meta::text(container, "/image");
    if image.trim() != image {
        let why = "must not have leading or trailing whitespace";
        causes.push(Cause::invalid(format!("{path}.image"), &json!(image), why));
    }
}

/// Says that a pod is not run because of the server: a node runs it, and tells the server.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// Rules for a change of the annotations of a pod.
pub(super) fn changed_annotations(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let mirror = |pod: &Value| pod.pointer("/metadata/annotations").and_then(|all| all.get(MIRROR)).cloned();
    let why = match (mirror(old), mirror(new)) {
        (before, after) if before == after => None,
        (None, _) => Some("may not add mirror pod annotation"),
        _ => Some("may not remove or update mirror pod annotation"),
    };
    causes.extend(why.map(|why| Cause::forbidden(format!("metadata.annotations[{MIRROR}]"), why)));
    let spec = new.get("spec").unwrap_or(&Value::Null);
    annotations(new.pointer("/metadata/annotations"), "metadata.annotations", spec, causes);
}

/// Rules for annotations that mean something for pods.
pub(super) fn annotations(annotations: Option<&Value>, path: &str, spec: &Value, causes: &mut Vec<Cause>) {
    const COST: &str = "controller.kubernetes.io/pod-deletion-cost";
    let said = |key: &str| annotations.and_then(|annotations| annotations.get(key)?.as_str());
    if let Some(value) = said(MIRROR).filter(|_| meta::text(spec, "/nodeName").is_empty()) {
        let why = "must set spec.nodeName if mirror pod annotation is set";
        causes.push(Cause::invalid(format!("{path}[{MIRROR}]"), &json!(value), why));
    }
    let is_cost = |cost: &str| cost == "0" || !cost.starts_with(['0', '+']) && cost.parse::<i32>().is_ok();
    if let Some(value) = said(COST).filter(|cost| !is_cost(cost)) {
        causes.push(Cause::invalid(format!("{path}[{COST}]"), &json!(value), "must be a 32bit integer"));
    }
}

/// Rules for what a pod is made of: one with this name, or one that will be made of a template.
pub(super) fn check(spec: &Value, path: &str, pod: Option<&str>, causes: &mut Vec<Cause>) {
    let volumes = volumes(spec, path, pod, causes);
    let containers_path = format!("{path}.containers");
    let containers = list(spec, "containers");
    let host_users = spec.get("hostUsers") != Some(&Value::Bool(false));
    let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0);
    if containers.is_empty() {
        causes.push(Cause::required(containers_path.clone(), ""));
    }
    for (at, one) in containers.iter().enumerate() {
        let path = format!("{containers_path}[{at}]");
        container(one, &path, &volumes, host_users, causes);
        distinct(one, &path, containers.iter().take(at), causes);
        handlers(one, &path, grace, causes);
        restarts(one, &path, false, causes);
    }
    host_ports(containers, &containers_path, causes);
    let before = list(spec, "initContainers");
    for (at, one) in before.iter().enumerate() {
        let place = format!("{path}.initContainers[{at}]");
        container(one, &place, &volumes, host_users, causes);
        restarts(one, &place, true, causes);
        let named = before.iter().take(at).filter(|other| !meta::text(other, "/name").is_empty());
        distinct(one, &place, containers.iter().chain(named), causes);
        // They run one after the other, and the real server looks at each as if it was the first.
        host_ports(std::slice::from_ref(one), &format!("{path}.initContainers"), causes);
        init_container(one, &place, grace, causes);
    }
    host_network(spec, path, pod.is_some(), causes);
    supported(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], causes);
    supported(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], causes);
    validate::labels(spec.get("nodeSelector"), &format!("{path}.nodeSelector"), causes);
    pod_security(spec, path, causes);
    placement(spec, path, causes);
    let all = with_paths(spec, path);
    own_users(spec, path, &all, causes);
    hostname_override(spec, path, causes);
    names(spec, path, causes);
    files_of_variables(&all, list(spec, "volumes"), causes);
}

/// Where it runs, whom it knows, and when it is ready.
fn placement(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(wanted) = given(spec, "affinity") {
        affinity(wanted, &format!("{path}.affinity"), causes);
    }
    dns(spec, path, causes);
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        let place = format!("{path}.readinessGates[{at}].conditionType");
        validate::qualified_key(meta::text(gate, "/conditionType"), &place, causes);
    }
    let gates = list(spec, "schedulingGates");
    for (at, gate) in gates.iter().enumerate() {
        let (place, name) = (format!("{path}.schedulingGates[{at}]"), meta::text(gate, "/name"));
        validate::qualified_key(name, &place, causes);
        if gates.iter().take(at).any(|other| meta::text(other, "/name") == name) {
            causes.push(Cause::duplicate(place, &json!(name)));
        }
    }
    spread(list(spec, "topologySpreadConstraints"), &format!("{path}.topologySpreadConstraints"), causes);
}

/// Names of all kinds, and what a pod puts up with.
fn names(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    for field in ["serviceAccountName", "nodeName"] {
        name(spec, path, field, NameRule::Subdomain, causes);
    }
    if let Some(seconds) = spec.get("activeDeadlineSeconds").and_then(Value::as_i64)
        && !(1..=i64::from(i32::MAX)).contains(&seconds)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        causes.push(Cause::invalid(format!("{path}.activeDeadlineSeconds"), &json!(seconds), why));
    }
    for field in ["hostname", "subdomain"] {
        name(spec, path, field, NameRule::Label, causes);
    }
    tolerations(list(spec, "tolerations"), &format!("{path}.tolerations"), causes);
    host_aliases(list(spec, "hostAliases"), &format!("{path}.hostAliases"), causes);
    name(spec, path, "priorityClassName", NameRule::Subdomain, causes);
    if let Some(class) = given(spec, "runtimeClassName").and_then(Value::as_str) {
        let wrong = dns_names::no_subdomain(class);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.runtimeClassName"), &json!(class), why)));
    }
    if given(spec, "preemptionPolicy").is_some_and(|policy| policy == "") {
        causes.push(Cause::required(format!("{path}.preemptionPolicy"), ""));
    } else {
        supported(spec, path, "preemptionPolicy", &["PreemptLowerPriority", "Never"], causes);
    }
    if let Some(system) = given(spec, "os") {
        required(system, &format!("{path}.os"), "name", causes);
        let name = meta::text(system, "/name");
        if !["", "linux", "windows"].contains(&name) {
            let allowed = [json!("linux"), json!("windows")];
            causes.push(Cause::unsupported(&format!("{path}.os"), &json!(name), &allowed));
        }
    }
}

/// All containers in the order in which they start, each with its place.
pub(super) fn with_paths<'a>(spec: &'a Value, path: &str) -> Vec<(String, &'a Value)> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    let each = kinds.flat_map(|kind| list(spec, kind).iter().enumerate().map(move |(at, one)| (kind, at, one)));
    each.map(|(kind, at, one)| (format!("{path}.{kind}[{at}]"), one)).collect()
}

pub(super) fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A member that is there, be it empty.
pub(super) fn given<'a>(holder: &'a Value, field: &str) -> Option<&'a Value> {
    holder.get(field).filter(|found| !found.is_null())
}

/// A text that must be there.
pub(super) fn required(holder: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    if holder.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
        causes.push(Cause::required(format!("{path}.{field}"), ""));
    }
}

fn name(holder: &Value, path: &str, field: &str, rule: NameRule, causes: &mut Vec<Cause>) {
    let text = holder.get(field).and_then(Value::as_str).unwrap_or_default();
    if !text.is_empty()
        && let Some(cause) = validate::name(rule, text)
    {
        causes.push(Cause { field: format!("{path}.{field}"), ..cause });
    }
}

pub(super) fn supported(holder: &Value, path: &str, field: &str, words: &[&str], causes: &mut Vec<Cause>) {
    let found = holder.get(field).filter(|found| found.is_string());
    if let Some(found) = found.filter(|found| found.as_str().is_none_or(|found| !words.contains(&found))) {
        let allowed: Vec<_> = words.iter().map(|word| json!(word)).collect();
        causes.push(Cause::unsupported(&format!("{path}.{field}"), found, &allowed));
    }
}

/// Containers do not share names, not even with those that run before them.
fn distinct<'a>(one: &Value, path: &str, mut others: impl Iterator<Item = &'a Value>, causes: &mut Vec<Cause>) {
    let name = meta::text(one, "/name");
    if others.any(|other| meta::text(other, "/name") == name) {
        causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
    }
}

/// What is wrong with the name of a port.
pub(super) fn port_name(name: &str) -> Vec<&'static str> {
    let wrong = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.bytes().any(|byte| !(byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!name.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    wrong.into_iter().filter(|(wrong, _)| *wrong).map(|(_, why)| why).collect()
}

/// A port by its number or its name.
pub(super) fn port_or_name(port: &Value, path: &str, causes: &mut Vec<Cause>) {
    if let Some(number) = port.as_i64().filter(|number| !(1..=65535).contains(number)) {
        causes.push(Cause::invalid(path, &json!(number), PORT_RANGE));
    }
    for why in port.as_str().map(port_name).unwrap_or_default() {
        causes.push(Cause::invalid(path, port, why));
    }
}

/// A number that counts something.
pub(super) fn non_negative(holder: &Value, path: &str, field: &str, causes: &mut Vec<Cause>) {
    if let Some(number) = holder.get(field).filter(|number| number.as_i64().is_some_and(|number| number < 0)) {
        causes.push(Cause::invalid(join(path, field), number, "must be greater than or equal to 0"));
    }
}
