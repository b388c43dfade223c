//! What is right and wrong about built-in objects: the rules that the table in `builtin.rs` names.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::validate::{self, NameRule};

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

pub(super) fn immutable_data(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for field in ["data", "binaryData", "immutable"] {
        if old.get(field) != new.get(field) {
            causes.push(Cause::forbidden(field, "field is immutable when `immutable` is set"));
        }
    }
}

/// Pods are named after it.
pub(super) fn long_name(object: &Value) -> Option<String> {
    (meta::name(object).len() > 63).then(|| {
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is \
         recommended: [must be no more than 63 characters]"
            .to_owned()
    })
}

/// Keys are names of files, and no two files have the same.
pub(super) fn keys(object: &Value, causes: &mut Vec<Cause>) {
    let text = |field: &str| object.get(field).and_then(Value::as_object);
    let right = |key: &str| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte));
    for field in ["data", "binaryData"] {
        for key in text(field).into_iter().flatten().map(|(key, _)| key) {
            let place = format!("{field}[{key}]");
            if !right(key) || key.is_empty() {
                let why = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  \
                           or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                causes.push(Cause::invalid(place.clone(), &json!(key), why));
            }
            if field == "data" && text("binaryData").is_some_and(|binary| binary.contains_key(key)) {
                causes.push(Cause::invalid(place, &json!(key), "duplicate of key present in binaryData"));
            }
        }
    }
}

/// Replicas are not negative, the template carries the labels the selector asks for, containers are complete.
pub(super) fn workload(object: &Value, causes: &mut Vec<Cause>) {
    if let Some(replicas) = object.pointer("/spec/replicas").filter(|replicas| replicas.as_i64().is_some_and(|n| n < 0))
    {
        causes.push(Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"));
    }
    let labels = object.pointer("/spec/template/metadata/labels");
    validate::labels(labels, "spec.template.metadata.labels", causes);
    let wanted = object.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
    let expressions = object.pointer("/spec/selector/matchExpressions").and_then(Value::as_array);
    let spec = |field: &str| object.pointer(&format!("/spec/{field}")).and_then(Value::as_i64);
    if let Some(deadline) = spec("progressDeadlineSeconds").filter(|it| *it <= spec("minReadySeconds").unwrap_or(0)) {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", &json!(deadline), why));
    }
    if object.pointer("/spec/selector").is_none_or(Value::is_null) {
        causes.push(Cause::required("spec.selector", ""));
        let labels = labels.cloned().unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", &labels, why));
    } else if wanted.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty) {
        let selector = object.pointer("/spec/selector").cloned().unwrap_or_default();
        causes.push(Cause::invalid("spec.selector", &selector, "empty selector is invalid for deployment"));
    }
    let carried = |key: &str| labels.and_then(|labels| labels.get(key));
    if wanted.into_iter().flatten().any(|(key, value)| carried(key) != Some(value)) {
        let shown = labels.cloned().unwrap_or(json!({}));
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {shown}: `selector` does not match template `labels`"),
            field: "spec.template.metadata.labels".into(),
        });
    }
    containers(object.pointer("/spec/template/spec/containers"), "spec.template.spec.containers", causes);
}

/// A Deployment gets on somehow, and its pods never end.
pub(super) fn strategy(deployment: &Value, causes: &mut Vec<Cause>) {
    let policy = deployment.pointer("/spec/template/spec/restartPolicy").cloned().unwrap_or_default();
    if policy != "Always" {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", &policy, &[json!("Always")]));
    }
    let rolling = deployment.pointer("/spec/strategy/rollingUpdate").filter(|rolling| !rolling.is_null());
    let Some(rolling) = rolling else { return };
    if meta::text(deployment, "/spec/strategy/type") == "Recreate" {
        let why = "may not be specified when strategy `type` is 'Recreate'";
        causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
        return;
    }
    let none = |field: &str| rolling.get(field).is_some_and(|value| *value == 0 || *value == "0%");
    if none("maxUnavailable") && none("maxSurge") {
        let value = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
        let why = "may not be 0 when `maxSurge` is 0";
        causes.push(Cause::invalid("spec.strategy.rollingUpdate.maxUnavailable", value, why));
    }
}

/// What is counted in the status of a Deployment can be.
pub(super) fn counts(deployment: &Value, causes: &mut Vec<Cause>) {
    let number = |field: &str| deployment.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0);
    let fields = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
    for field in fields.into_iter().chain(["observedGeneration"]) {
        if number(field) < 0 {
            let why = "must be greater than or equal to 0";
            causes.push(Cause::invalid(format!("status.{field}"), &json!(number(field)), why));
        }
    }
    for field in ["updatedReplicas", "readyReplicas", "availableReplicas"] {
        if number(field) > number("replicas") {
            let why = "cannot be greater than status.replicas";
            causes.push(Cause::invalid(format!("status.{field}"), &json!(number(field)), why));
        }
    }
    if number("availableReplicas") > number("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        causes.push(Cause::invalid("status.availableReplicas", &json!(number("availableReplicas")), why));
    }
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

pub(super) fn containers_have_images(pod: &Value, causes: &mut Vec<Cause>) {
    containers(pod.pointer("/spec/containers"), "spec.containers", causes);
}

pub(super) fn containers(list: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    let list = list.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if list.is_empty() {
        causes.push(Cause::required(path, ""));
    }
    for (at, container) in list.iter().enumerate() {
        let name = meta::text(container, "/name");
        if !name.is_empty()
            && let Some(cause) = validate::name(NameRule::Label, name)
        {
            causes.push(Cause { field: format!("{path}[{at}].name"), ..cause });
        }
        if list.iter().take(at).any(|other| meta::text(other, "/name") == name) && !name.is_empty() {
            causes.push(Cause::duplicate(format!("{path}[{at}].name"), &json!(name)));
        }
        if meta::text(container, "/image").is_empty() {
            causes.push(Cause::required(format!("{path}[{at}].image"), ""));
        }
    }
}

/// A pod runs what it was made for; only its images and the ways to end it can change.
pub(super) fn pod_spec_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let fixed = |pod: &Value| {
        let mut spec = pod.get("spec").cloned().unwrap_or_default();
        let members = meta::members(&mut spec);
        for field in ["activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations"] {
            members.shift_remove(field);
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

/// A namespace can be selected by its name.
pub(super) fn label_with_name(namespace: &mut Value) {
    let name = meta::name(namespace).to_owned();
    let labels = meta::metadata(namespace).entry("labels").or_insert_with(|| json!({}));
    meta::members(labels).insert("kubernetes.io/metadata.name".into(), name.into());
}

/// An event lives where the object it is about lives; cluster-wide objects have theirs in `default`.
pub(super) fn event(object: &Value, causes: &mut Vec<Cause>) {
    let involved = meta::text(object, "/involvedObject/namespace");
    let wrong =
        if involved.is_empty() { meta::namespace(object) != "default" } else { involved != meta::namespace(object) };
    let modern = object.get("eventTime").is_some_and(Value::is_string);
    if modern && meta::text(object, "/action").is_empty() {
        causes.push(Cause::required("action", ""));
        return;
    }
    if wrong {
        causes.push(Cause::invalid("involvedObject.namespace", &json!(involved), "does not match event.namespace"));
    }
}

pub(super) fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let (min, max) = (number("/spec/minReplicas").unwrap_or(1), number("/spec/maxReplicas").unwrap_or(0));
    if min < 1 {
        causes.push(Cause::invalid("spec.minReplicas", &json!(min), "must be greater than or equal to 1"));
    }
    let metrics = object.pointer("/spec/metrics").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, metric) in metrics.iter().enumerate() {
        let known = ["ContainerResource", "External", "Object", "Pods", "Resource"];
        let kind = metric.get("type").cloned().unwrap_or_default();
        if kind.as_str().is_none_or(|kind| !known.contains(&kind)) {
            let allowed = known.map(|word| json!(word));
            causes.push(Cause::unsupported(&format!("spec.metrics[{at}].type"), &kind, &allowed));
        } else if kind == "Resource" && metric.get("resource").is_none() {
            let why = "must populate information for the given metric source";
            causes.push(Cause::required(format!("spec.metrics[{at}].resource"), why));
        }
    }
    if min == 0 && !metrics.iter().any(|metric| ["Object", "External"].contains(&meta::text(metric, "/type"))) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", why));
    }
    if max < 1 {
        causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if max < min {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(max), "must be greater than or equal to `minReplicas`"));
    }
}

pub(super) fn encode_strings(secret: &mut Value) {
    let Some(Value::Object(strings)) = meta::members(secret).shift_remove("stringData") else { return };
    let data = meta::child(secret, "data");
    for (key, value) in strings {
        data.insert(key, STANDARD.encode(value.as_str().unwrap_or_default()).into());
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

pub(super) fn quality_of_service(pod: &Value) -> &'static str {
    let list = pod.pointer("/spec/containers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let amount =
        |container: &Value, kind: &str, name: &str| container.pointer(&format!("/resources/{kind}/{name}")).cloned();
    let any = list.iter().any(|container| {
        ["requests", "limits"]
            .iter()
            .any(|kind| ["cpu", "memory"].iter().any(|name| amount(container, kind, name).is_some()))
    });
    let all = list.iter().all(|container| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = amount(container, "limits", name);
            limit.is_some() && limit == amount(container, "requests", name)
        })
    });
    match (any, all) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
