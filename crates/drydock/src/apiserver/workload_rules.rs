//! What is wrong with a Deployment, ReplicaSet or DaemonSet, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::pod_rules::{self, non_negative};
use super::rules::selector_stays;
use super::selector_rules;
use super::validate;

pub(super) fn replica_set(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = object.get("spec").unwrap_or(&nothing);
    non_negative(spec, "spec", "replicas", causes);
    non_negative(spec, "spec", "minReadySeconds", causes);
    selected_template(spec, "ReplicaSet", causes);
}

pub(super) fn daemon_set(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = object.get("spec").unwrap_or(&nothing);
    selected_template(spec, "DaemonSet", causes);
    non_negative(spec, "spec", "minReadySeconds", causes);
    non_negative(spec, "spec", "revisionHistoryLimit", causes);
}

/// How often names of ReplicaSets collided can only grow.
pub(super) fn changed_deployment(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    selector_stays(old, new, causes);
    let collisions = |object: &Value| object.pointer("/status/collisionCount").and_then(Value::as_i64);
    if collisions(old).is_some_and(|before| collisions(new).unwrap_or(0) < before) {
        let found = json!(collisions(new).unwrap_or(0));
        causes.push(Cause::invalid("status.collisionCount", &found, "cannot be decremented"));
    }
}

pub(super) fn deployment(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = object.get("spec").unwrap_or(&nothing);
    non_negative(spec, "spec", "replicas", causes);
    selected_template(spec, "ReplicaSet", causes);
    strategy(spec, causes);
    non_negative(spec, "spec", "minReadySeconds", causes);
    non_negative(spec, "spec", "revisionHistoryLimit", causes);
    non_negative(spec, "spec", "progressDeadlineSeconds", causes);
    let number = |field: &str| spec.get(field).and_then(Value::as_i64);
    if let Some(deadline) = number("progressDeadlineSeconds").filter(|it| *it <= number("minReadySeconds").unwrap_or(0))
    {
        let why = "must be greater than minReadySeconds";
        causes.push(Cause::invalid("spec.progressDeadlineSeconds", &json!(deadline), why));
    }
    counts(object, causes);
}

/// The selector makes sense, and the template carries the labels it asks for. Deployments leave it to their ReplicaSets.
fn selected_template(spec: &Value, kind: &str, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let selector = spec.get("selector").filter(|selector| !selector.is_null());
    let wanted = selector.and_then(|it| it.get("matchLabels")).and_then(Value::as_object);
    let expressions = selector.and_then(|it| it.get("matchExpressions")).and_then(Value::as_array);
    let expressions = expressions.map_or(&[][..], Vec::as_slice);
    let told = causes.len();
    let Some(selector) = selector else {
        if kind == "ReplicaSet" {
            causes.push(Cause::required("spec.selector", ""));
        }
        template(spec.get("template").unwrap_or(&nothing), kind, false, causes);
        return;
    };
    selector_rules::selector(selector, "spec.selector", causes);
    if causes.len() > told && kind == "ReplicaSet" {
        causes.push(Cause::invalid("spec.selector", selector, "invalid label selector"));
        return;
    }
    let readable = causes.len() == told;
    let empty = wanted.is_none_or(serde_json::Map::is_empty) && expressions.is_empty();
    if empty {
        let owner = if kind == "DaemonSet" { "daemonset" } else { "deployment" };
        let why = format!("empty selector is invalid for {owner}");
        causes.push(Cause::invalid("spec.selector", selector, &why));
    }
    let labels = spec.pointer("/template/metadata/labels");
    let carried = |key: &str| labels.and_then(|labels| labels.get(key));
    let fits = wanted.into_iter().flatten().all(|(key, value)| carried(key) == Some(value))
        && expressions.iter().all(|expression| {
            let value = carried(meta::text(expression, "/key"));
            let among = value.is_some_and(|value| {
                expression.get("values").and_then(Value::as_array).is_some_and(|values| values.contains(value))
            });
            match meta::text(expression, "/operator") {
                "In" => among,
                "NotIn" => !among,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        });
    template(spec.get("template").unwrap_or(&nothing), kind, fits || !readable, causes);
}

fn template(template: &Value, kind: &str, fits: bool, causes: &mut Vec<Cause>) {
    let labels = template.pointer("/metadata/labels");
    if !fits {
        let why = "`selector` does not match template `labels`";
        causes.push(Cause::invalid("spec.template.metadata.labels", labels.unwrap_or(&Value::Null), why));
    }
    validate::labels(labels, "spec.template.labels", causes);
    validate::annotations(template.pointer("/metadata/annotations"), "spec.template.annotations", causes);
    let nothing = json!({});
    let spec = template.get("spec").unwrap_or(&nothing);
    pod_rules::annotations(template.pointer("/metadata/annotations"), "spec.template.annotations", spec, causes);
    pod_rules::check(spec, "spec.template.spec", None, causes);
    if !pod_rules::list(spec, "ephemeralContainers").is_empty() {
        let why = "ephemeral containers not allowed in pod template";
        causes.push(Cause::forbidden("spec.template.spec.ephemeralContainers", why));
    }
    let policy = spec.get("restartPolicy").filter(|policy| !policy.is_null() && **policy != "Always");
    if let Some(policy) = policy {
        causes.push(Cause::unsupported("spec.template.spec.restartPolicy", policy, &[json!("Always")]));
    }
    if spec.get("activeDeadlineSeconds").is_some_and(Value::is_number) {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        causes.push(Cause::forbidden("spec.template.spec.activeDeadlineSeconds", &why));
    }
}

/// A Deployment gets on somehow.
fn strategy(spec: &Value, causes: &mut Vec<Cause>) {
    let rolling = spec.pointer("/strategy/rollingUpdate").filter(|rolling| !rolling.is_null());
    match (meta::text(spec, "/strategy/type"), rolling) {
        ("Recreate" | "RollingUpdate" | "", None) => {}
        ("Recreate", Some(_)) => {
            let why = "may not be specified when strategy `type` is 'Recreate'";
            causes.push(Cause::forbidden("spec.strategy.rollingUpdate", why));
        }
        ("RollingUpdate" | "", Some(rolling)) => pace(rolling, causes),
        (kind, rolling) => {
            let part = |name: &str| rolling.and_then(|rolling| rolling.get(name)).cloned().unwrap_or_else(|| json!(0));
            let pace = json!({"MaxUnavailable": part("maxUnavailable"), "MaxSurge": part("maxSurge")});
            let shown = json!({"Type": kind, "RollingUpdate": rolling.map_or(Value::Null, |_| pace)});
            causes.push(Cause::unsupported("spec.strategy", &shown, &[json!("Recreate"), json!("RollingUpdate")]));
        }
    }
}

/// How many pods a rollout may add and take away.
fn pace(rolling: &Value, causes: &mut Vec<Cause>) {
    const PATH: &str = "spec.strategy.rollingUpdate";
    for field in ["maxUnavailable", "maxSurge"] {
        non_negative(rolling, PATH, field, causes);
        if let Some(text) = rolling.get(field).filter(|it| it.as_str().is_some_and(|it| percent(it).is_none())) {
            let why = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
                       regex used for validation is '[0-9]+%')";
            causes.push(Cause::invalid(format!("{PATH}.{field}"), text, why));
        }
    }
    let none = |field: &str| {
        rolling.get(field).is_some_and(|it| it.as_i64() == Some(0) || it.as_str().and_then(percent) == Some(0))
    };
    let unavailable = rolling.get("maxUnavailable").unwrap_or(&Value::Null);
    if none("maxUnavailable") && none("maxSurge") {
        causes.push(Cause::invalid(format!("{PATH}.maxUnavailable"), unavailable, "may not be 0 when `maxSurge` is 0"));
    }
    if unavailable.as_str().and_then(percent) > Some(100) {
        causes.push(Cause::invalid(format!("{PATH}.maxUnavailable"), unavailable, "must not be greater than 100%"));
    }
}

fn percent(text: &str) -> Option<u64> {
    text.strip_suffix('%').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()
}

/// What is counted in the status of a Deployment can be.
fn counts(deployment: &Value, causes: &mut Vec<Cause>) {
    let number = |field: &str| deployment.pointer(&format!("/status/{field}")).and_then(Value::as_i64).unwrap_or(0);
    let nothing = json!({});
    let status = deployment.get("status").unwrap_or(&nothing);
    let fields = ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"];
    for field in fields.into_iter().chain(["observedGeneration"]) {
        non_negative(status, "status", field, causes);
    }
    non_negative(status, "status", "collisionCount", causes);
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
