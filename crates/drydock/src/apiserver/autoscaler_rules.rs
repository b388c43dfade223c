//! What is wrong with a HorizontalPodAutoscaler, in the order in which the real server looks.

use serde_json::{Value, json};

use super::autoscaler_metrics::metric;
use super::error::Cause;
use super::meta;
use super::quantity::Quantity;
use super::validate::{self, NameRule};

/// The longest that a rule may look back, and that a policy may count, in seconds.
const LONGEST_WINDOW: i64 = 3600;
const LONGEST_PERIOD: i64 = 1800;

/// What is wrong with its status.
pub(super) fn autoscaler_status(object: &Value, causes: &mut Vec<Cause>) {
    for field in ["currentReplicas", "desiredReplicas"] {
        let number = object.pointer(&format!("/status/{field}")).filter(|it| it.as_i64().is_some_and(|it| it < 0));
        if let Some(number) = number {
            causes.push(Cause::invalid(format!("status.{field}"), number, "must be greater than or equal to 0"));
        }
    }
}

pub(super) fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let (min, max) = (number("/spec/minReplicas").unwrap_or(1), number("/spec/maxReplicas").unwrap_or(0));
    if min < 1 {
        causes.push(Cause::invalid("spec.minReplicas", &json!(min), "must be greater than or equal to 1"));
    }
    if max == 0 {
        causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
    } else if max < 0 {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(max), "must be greater than or equal to 1"));
    }
    if max < min {
        causes.push(Cause::invalid("spec.maxReplicas", &json!(max), "must be greater than or equal to `minReplicas`"));
    }
    target(object, causes);
    let metrics = object.pointer("/spec/metrics").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    for (at, one) in metrics.iter().enumerate() {
        metric(one, &format!("spec.metrics[{at}]"), causes);
    }
    if min == 0 && !metrics.iter().any(|metric| ["Object", "External"].contains(&meta::text(metric, "/type"))) {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        causes.push(Cause::forbidden("spec.metrics", why));
    }
    for way in ["scaleUp", "scaleDown"] {
        if let Some(rules) = object.pointer(&format!("/spec/behavior/{way}")).filter(|rules| rules.is_object()) {
            scaling(rules, &format!("spec.behavior.{way}"), causes);
        }
    }
}

/// How fast a number of replicas may change.
fn scaling(rules: &Value, path: &str, causes: &mut Vec<Cause>) {
    let window = rules.get("stabilizationWindowSeconds").and_then(Value::as_i64);
    if let Some(seconds) = window.filter(|seconds| !(0..=LONGEST_WINDOW).contains(seconds)) {
        let why = if seconds < 0 {
            "must be greater than or equal to zero".to_owned()
        } else {
            format!("must be less than or equal to {LONGEST_WINDOW}")
        };
        causes.push(Cause::invalid(format!("{path}.stabilizationWindowSeconds"), &json!(seconds), &why));
    }
    one_of(rules, path, "selectPolicy", &["Disabled", "Max", "Min"], causes);
    let policies = rules.get("policies").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if policies.is_empty() {
        causes.push(Cause::required(format!("{path}.policies"), "must specify at least one Policy"));
    }
    for (at, policy) in policies.iter().enumerate() {
        self::policy(policy, &format!("{path}.policies[{at}]"), causes);
    }
    let tolerance = rules.get("tolerance").and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
    if let Some(tolerance) = tolerance.filter(|tolerance| tolerance.is_negative()) {
        let shown = json!(tolerance.canonical());
        causes.push(Cause::invalid(format!("{path}.tolerance"), &shown, "must be greater than or equal to 0"));
    }
}

fn policy(policy: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kind = policy.get("type").cloned().unwrap_or_else(|| json!(""));
    one_of(&json!({"type": kind}), path, "type", &["Percent", "Pods"], causes);
    for field in ["value", "periodSeconds"] {
        let number = policy.get(field).and_then(Value::as_i64).unwrap_or(0);
        let place = format!("{path}.{field}");
        if number <= 0 {
            causes.push(Cause::invalid(place, &json!(number), "must be greater than zero"));
        } else if field == "periodSeconds" && number > LONGEST_PERIOD {
            let why = format!("must be less than or equal to {LONGEST_PERIOD}");
            causes.push(Cause::invalid(place, &json!(number), &why));
        }
    }
}

fn one_of(holder: &Value, path: &str, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let found = holder.get(field).filter(|it| it.as_str().is_some_and(|it| !known.contains(&it)));
    if let Some(found) = found {
        let allowed: Vec<_> = known.iter().map(|word| json!(word)).collect();
        causes.push(Cause::unsupported(&format!("{path}.{field}"), found, &allowed));
    }
}

/// What is scaled must have a kind, a name and a group.
fn target(object: &Value, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        let place = format!("spec.scaleTargetRef.{field}");
        match meta::text(object, &format!("/spec/scaleTargetRef/{field}")) {
            "" => causes.push(Cause::required(place, "")),
            text => causes.extend(validate::name(NameRule::PathSegment, text).map(|it| Cause { field: place, ..it })),
        }
    }
    let version = meta::text(object, "/spec/scaleTargetRef/apiVersion");
    let why = match version.matches('/').count() {
        0 => "apiVersion must specify API group".to_owned(),
        1 if version.starts_with('/') => "apiVersion must specify API group".to_owned(),
        1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &json!(version), &why));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_of_scaling_have_a_policy_that_moves() {
        let mut causes = Vec::new();
        scaling(&json!({"policies": []}), "up", &mut causes);
        scaling(&json!({"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1801}]}), "down", &mut causes);
        let fields: Vec<_> = causes.iter().map(|cause| cause.field.as_str()).collect();
        assert_eq!(fields, ["up.policies", "down.policies[0].value", "down.policies[0].periodSeconds"]);
    }
}
