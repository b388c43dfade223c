//! What is wrong with a HorizontalPodAutoscaler, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::validate::{self, NameRule};

const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

pub(super) fn autoscaler(object: &Value, causes: &mut Vec<Cause>) {
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let (min, max) = (number("/spec/minReplicas").unwrap_or(1), number("/spec/maxReplicas").unwrap_or(0));
    if min < 1 {
        causes.push(Cause::invalid("spec.minReplicas", &json!(min), "must be greater than or equal to 1"));
    }
    if max < 1 {
        causes.push(Cause::required("spec.maxReplicas", "must be set and greater than 0"));
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
        let rules = |field: &str| object.pointer(&format!("/spec/behavior/{way}/{field}"));
        if let Some(seconds) = rules("stabilizationWindowSeconds").filter(|it| it.as_i64().is_some_and(|it| it < 0)) {
            let why = "must be greater than or equal to zero";
            causes.push(Cause::invalid(format!("spec.behavior.{way}.stabilizationWindowSeconds"), seconds, why));
        }
        let known = ["Disabled", "Max", "Min"];
        if let Some(policy) = rules("selectPolicy").filter(|it| it.as_str().is_some_and(|it| !known.contains(&it))) {
            let allowed = known.map(|word| json!(word));
            causes.push(Cause::unsupported(&format!("spec.behavior.{way}.selectPolicy"), policy, &allowed));
        }
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
        0 if version.is_empty() => "apiVersion must specify API group".to_owned(),
        0 | 1 => return,
        _ => format!("unexpected GroupVersion string: {version}"),
    };
    causes.push(Cause::invalid("spec.scaleTargetRef.apiVersion", &json!(version), &why));
}

fn metric(metric: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kind = meta::text(metric, "/type");
    if kind.is_empty() {
        causes.push(Cause::required(format!("{path}.type"), "must specify a metric source type"));
    }
    let Some((_, source)) = SOURCES.iter().find(|(known, _)| *known == kind) else {
        let allowed = SOURCES.map(|(known, _)| json!(known));
        // The real server looks twice.
        let cause = Cause::unsupported(&format!("{path}.type"), &json!(kind), &allowed);
        causes.extend([cause.clone(), cause]);
        return;
    };
    let Some(found) = metric.get(*source).filter(|found| found.is_object()) else {
        causes
            .push(Cause::required(format!("{path}.{source}"), "must populate information for the given metric source"));
        return;
    };
    if kind == "Resource" {
        resource(found, &format!("{path}.resource"), causes);
    }
}

fn resource(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    if meta::text(source, "/name").is_empty() {
        causes.push(Cause::required(format!("{path}.name"), "must specify a resource name"));
    }
    let target = |field: &str| source.pointer(&format!("/target/{field}")).filter(|value| !value.is_null());
    let path = format!("{path}.target");
    let kind = target("type").cloned().unwrap_or_else(|| json!(""));
    if kind == "" {
        causes.push(Cause::required(format!("{path}.type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].iter().any(|known| kind == *known) {
        let why = "must be either Utilization, Value, or AverageValue";
        causes.push(Cause::invalid(format!("{path}.type"), &kind, why));
    }
    let (share, value) = (target("averageUtilization"), target("averageValue"));
    if let Some(share) = share.filter(|share| share.as_i64().is_some_and(|share| share < 1)) {
        causes.push(Cause::invalid(format!("{path}.averageUtilization"), share, "must be greater than 0"));
    }
    if share.is_none() && value.is_none() {
        let why = "must set either a target raw value or a target utilization";
        causes.push(Cause::required(format!("{path}.averageUtilization"), why));
    }
}
