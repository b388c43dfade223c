//! What is right and wrong about built-in objects: the rules that the table in `builtin.rs` names.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules;
use super::quantity::Quantity;
use super::toleration_rules::more_tolerations;
use super::validate::qualified_key;

/// A field that keeps the value it was given first.
pub(super) fn immutable(old: &Value, new: &Value, pointer: &str, causes: &mut Vec<Cause>) {
    let found = new.pointer(pointer).unwrap_or(&Value::Null);
    if old.pointer(pointer).unwrap_or(&Value::Null) != found {
        let path = pointer.trim_start_matches('/').replace('/', ".");
        causes.push(Cause::invalid(path, found, "field is immutable"));
    }
}

pub(super) fn selector_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    immutable(old, new, "/spec/selector", causes);
}

/// Why a name should not be one of hosts too.
fn no_hostname(object: &Value, used: &str) -> Option<String> {
    let why = dns_names::no_label(meta::name(object)).join(" ");
    let what = "which can result in surprising behavior; a DNS label is recommended";
    (!why.is_empty()).then(|| format!("metadata.name: this is used in {used}, {what}: [{why}]"))
}

/// Pods are named after it.
pub(super) fn long_name(object: &Value) -> Option<String> {
    no_hostname(object, "Pod names and hostnames")
}

pub(super) fn long_hostname(pod: &Value) -> Option<String> {
    no_hostname(pod, "the Pod's hostname")
}

pub(super) fn lease(lease: &Value, causes: &mut Vec<Cause>) {
    let number = |field: &str| lease.pointer(&format!("/spec/{field}")).filter(|number| number.is_i64());
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| seconds.as_i64() <= Some(0)) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| count.as_i64() < Some(0)) {
        causes.push(Cause::invalid("spec.leaseTransitions", count, "must be greater than or equal to 0"));
    }
}

/// Without what coordinates elections among holders, a feature that is off.
pub(super) fn lease_as_offered(lease: &mut Value) {
    let Some(Value::Object(spec)) = lease.get_mut("spec") else { return };
    for field in ["strategy", "preferredHolder"] {
        spec.shift_remove(field);
    }
}

/// A pod runs what it was made for; only its images, what it tolerates and the ways to end it can change.
pub(super) fn pod_spec_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let (before, after) = (old.get("spec").unwrap_or(&nothing), new.get("spec").unwrap_or(&nothing));
    pod_rules::changed_annotations(old, new, causes);
    for list in ["containers", "initContainers"] {
        let count = |pod: &Value| pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array).map_or(0, Vec::len);
        if count(old) != count(new) {
            let why = "pod updates may not add or remove containers";
            causes.push(Cause::forbidden(format!("spec.{list}"), why));
            return;
        }
        let all = new.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
        for (at, container) in all.into_iter().flatten().enumerate() {
            if meta::text(container, "/image").is_empty() {
                causes.push(Cause::required(format!("spec.{list}[{at}].image"), ""));
            }
            pod_rules::padded_image(container, &format!("spec.{list}[{at}]"), causes);
        }
    }
    let deadline = |pod: &Value| pod.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    match (deadline(old), deadline(new)) {
        (_, Some(after)) if !(0..=i64::from(i32::MAX)).contains(&after) => {
            let why = "must be between 0 and 2147483647, inclusive";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", &json!(after), why));
            return;
        }
        (Some(before), Some(after)) if before < after => {
            let why = "must be less than or equal to previous value";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", &json!(after), why));
            return;
        }
        (Some(_), None) => {
            let why = "must not update from a positive integer to nil value";
            causes.push(Cause::invalid("spec.activeDeadlineSeconds", &Value::Null, why));
        }
        _ => {}
    }
    let tolerations = |spec| pod_rules::list(spec, "tolerations");
    more_tolerations(tolerations(before), tolerations(after), "spec.tolerations", causes);
    for (at, gate) in pod_rules::list(after, "schedulingGates").iter().enumerate() {
        if !pod_rules::list(before, "schedulingGates").contains(gate) {
            let why =
                format!("only deletion is allowed, but found new scheduling gate '{}'", meta::text(gate, "/name"));
            causes.push(Cause::forbidden(format!("spec.schedulingGates[{at}].name"), &why));
        }
    }
    let grace = |pod: &Value| pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let mended = grace(old).is_some_and(|grace| grace < 0) && grace(new) == Some(1);
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        let members = meta::members(&mut spec);
        for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
            members.shift_remove(field);
        }
        if mended {
            members.shift_remove("terminationGracePeriodSeconds");
        }
        for list in ["containers", "initContainers"] {
            for container in members.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                meta::members(container).shift_remove("image");
            }
        }
        spec
    };
    if fixed(old) != fixed(new) {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                   `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                   `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        causes.push(Cause::forbidden("spec", why));
    }
}

/// An event lives where the object it is about lives; cluster-wide objects have theirs in `default`.
pub(super) fn event(object: &Value, causes: &mut Vec<Cause>) {
    let (involved, namespace) = (meta::text(object, "/involvedObject/namespace"), meta::namespace(object));
    let modern = object.get("eventTime").is_some_and(Value::is_string);
    let lives_there = match (involved, modern) {
        ("", true) => ["default", "kube-system"].contains(&namespace),
        ("", false) => namespace == "default",
        (involved, modern) => modern || involved == namespace,
    };
    if !lives_there {
        causes.push(Cause::invalid("involvedObject.namespace", &json!(involved), "does not match event.namespace"));
    }
    if modern {
        modern_event(object, causes);
    }
}

/// Whoever says when something happened says who saw it and what was done, and is brief.
fn modern_event(object: &Value, causes: &mut Vec<Cause>) {
    let text = |field: &str| meta::text(object, &format!("/{field}"));
    for (field, most) in [
        ("reportingComponent", usize::MAX),
        ("reportingInstance", 128),
        ("action", 128),
        ("reason", 128),
        ("message", 1024),
    ] {
        if text(field).is_empty() && field != "message" {
            causes.push(Cause::required(field, ""));
        }
        if text(field).len() > most {
            causes.push(Cause::invalid(field, &json!(""), &format!("can have at most {most} characters")));
        }
        if field == "reportingComponent" {
            qualified_key(text(field), field, causes);
        }
    }
}

/// What is wrong with an Event, for somebody who knows it by its newer name.
pub(super) fn in_newer_words(causes: &mut [Cause]) {
    for cause in causes.iter_mut().filter(|cause| cause.field == "reportingComponent") {
        "reportingController".clone_into(&mut cause.field);
    }
}

/// What more is asked of an Event that is made under its newer name: nothing of the old words, and a time.
pub(super) fn new_event(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = Value::from("");
    let unset = |field: &str| match object.get(field) {
        None | Some(Value::Null) => true,
        Some(Value::Number(number)) => number.as_i64() == Some(0),
        Some(Value::Object(members)) => members.values().all(|member| *member == nothing),
        Some(_) => false,
    };
    if unset("eventTime") {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = meta::text(object, "/type");
    if !["Normal", "Warning"].contains(&kind) {
        causes.push(Cause::invalid("type", &nothing, &format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp", "count", "source"].into_iter().filter(|field| !unset(field)) {
        causes.push(Cause::invalid(field, &nothing, "needs to be unset"));
    }
}

/// What was told under the newer name of an Event is told; only how often it happened may change.
pub(super) fn told_event(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let kept = |field: &str| {
        let text =
            matches!(field, "reason" | "message" | "type" | "action" | "reportingComponent" | "reportingInstance");
        let said = |event: &Value| match event.get(field) {
            None if text => Value::from(""),
            found => found.cloned().unwrap_or_default(),
        };
        (said(old) != said(new)).then(|| said(new))
    };
    // Go shows its own names.
    let part = |holder: &Value, name: &str| Value::from(meta::text(holder, &format!("/{name}")));
    let reference = |found: &Value| {
        json!({"Kind": part(found, "kind"), "Namespace": part(found, "namespace"), "Name": part(found, "name"),
            "UID": part(found, "uid"), "APIVersion": part(found, "apiVersion"),
            "ResourceVersion": part(found, "resourceVersion"), "FieldPath": part(found, "fieldPath")})
    };
    for field in [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ] {
        let Some(said) = kept(field) else { continue };
        let shown = match field {
            "involvedObject" | "related" if said.is_object() => reference(&said),
            "source" => json!({"Component": part(&said, "component"), "Host": part(&said, "host")}),
            "count" if said.is_null() => json!(0),
            _ => said,
        };
        let field = if field == "reportingComponent" { "reportingController" } else { field };
        causes.push(Cause::invalid(field, &shown, "field is immutable"));
    }
}

/// A pod nobody runs, or that has ended, needs no time to stop.
pub(super) fn pod_grace(pod: &Value) -> i64 {
    let ended = matches!(meta::text(pod, "/status/phase"), "Succeeded" | "Failed");
    if ended || meta::text(pod, "/spec/nodeName").is_empty() {
        return 0;
    }
    pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(30)
}

/// What the admission plugins of every real server add to a pod: a priority, and patience with a node that is not well.
pub(super) fn admit(pod: &mut Value) {
    let spec = meta::child(pod, "spec");
    spec.entry("priority").or_insert(json!(0));
    spec.entry("preemptionPolicy").or_insert(json!("PreemptLowerPriority"));
    let Value::Array(tolerations) = spec.entry("tolerations").or_insert_with(|| json!([])) else { return };
    for taint in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = |toleration: &Value| {
            ["", taint].contains(&meta::text(toleration, "/key"))
                && matches!(meta::text(toleration, "/effect"), "" | "NoExecute")
        };
        if !tolerations.iter().any(tolerated) {
            let wait = json!({"key": taint, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
            tolerations.push(wait);
        }
    }
}

/// A new pod with gates waits for somebody to open them.
pub(super) fn hold_back(pod: &mut Value, now: Timestamp) {
    let gated = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty());
    if gated {
        let why = "Scheduling is blocked due to non-empty scheduling gates";
        let condition = json!({"type": "PodScheduled", "status": "False", "lastProbeTime": null,
            "lastTransitionTime": meta::seconds(now), "reason": "SchedulingGated", "message": why});
        meta::child(pod, "status").insert("conditions".into(), json!([condition]));
    }
}

pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let of = |list: &str| pod.pointer(&format!("/spec/{list}")).and_then(Value::as_array);
    let list: Vec<_> = ["containers", "initContainers"].into_iter().filter_map(of).flatten().collect();
    let amount = |container: &Value, kind: &str, name: &str| {
        let text = container.pointer(&format!("/resources/{kind}/{name}"))?.as_str()?;
        // Whoever asks for nothing has not asked.
        Quantity::parse(text).ok().filter(|amount| amount.is_positive())
    };
    let any = list.iter().any(|container| {
        ["requests", "limits"]
            .iter()
            .any(|kind| ["cpu", "memory"].iter().any(|name| amount(container, kind, name).is_some()))
    });
    let all = list.iter().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let both = amount(container, "limits", name).zip(amount(container, "requests", name));
            both.is_some_and(|(limit, request)| limit.compare(request).is_eq())
        })
    });
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_a_time_says_who_saw_what() {
        let mut told = json!({
            "metadata": {"namespace": "default"}, "eventTime": "2026-01-02T03:04:05.000000Z", "action": "look",
            "reason": "r".repeat(129), "reportingComponent": "seaway", "reportingInstance": "",
        });
        let wrong = |told: &Value| {
            let mut causes = Vec::new();
            event(told, &mut causes);
            causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect::<Vec<_>>()
        };
        assert_eq!(
            wrong(&told),
            ["reportingInstance: Required value", "reason: Invalid value: \"\": can have at most 128 characters"]
        );
        told["eventTime"] = Value::Null;
        assert_eq!(wrong(&told), [""; 0], "without a time nobody asks");
    }
}
