//! What is wrong with the metrics that a HorizontalPodAutoscaler follows, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::quantity::Quantity;
use super::validate::{self, NameRule};

const SOURCES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];
/// The order in which sources are looked at.
const LOOKED_AT: [&str; 5] = ["object", "external", "pods", "resource", "containerResource"];

pub(super) fn metric(metric: &Value, path: &str, causes: &mut Vec<Cause>) {
    let kind = meta::text(metric, "/type");
    if kind.is_empty() {
        causes.push(Cause::required(format!("{path}.type"), "must specify a metric source type"));
    }
    let wanted = SOURCES.iter().find(|(known, _)| *known == kind).map(|(_, source)| *source);
    let unknown = || {
        let allowed = SOURCES.map(|(known, _)| json!(known));
        Cause::unsupported(&format!("{path}.type"), &json!(kind), &allowed)
    };
    if wanted.is_none() {
        causes.push(unknown());
    }
    let given = |source: &&&str| metric.get(**source).is_some_and(Value::is_object);
    let present: Vec<_> = LOOKED_AT.iter().filter(given).copied().collect();
    if let Some(first) = present.first() {
        source(first, metric.get(*first).unwrap_or(&Value::Null), &format!("{path}.{first}"), causes);
    }
    match wanted {
        // The real server looks twice.
        None => causes.push(unknown()),
        Some(wanted) if !present.contains(&wanted) => {
            let why = "must populate information for the given metric source";
            causes.push(Cause::required(format!("{path}.{wanted}"), why));
        }
        Some(_) => {}
    }
    for other in present.iter().filter(|other| present.len() > 1 && Some(**other) != wanted) {
        causes.push(Cause::forbidden(format!("{path}.{other}"), "must populate the given metric source only"));
    }
}

fn source(kind: &str, source: &Value, path: &str, causes: &mut Vec<Cause>) {
    match kind {
        "object" => reference(source.get("describedObject"), &format!("{path}.describedObject"), causes),
        "resource" | "containerResource" if meta::text(source, "/name").is_empty() => {
            causes.push(Cause::required(format!("{path}.name"), "must specify a resource name"));
        }
        _ => {}
    }
    if kind == "containerResource" && meta::text(source, "/container").is_empty() {
        causes.push(Cause::required(format!("{path}.container"), "must specify a container"));
    }
    if ["object", "external", "pods"].contains(&kind) {
        let place = format!("{path}.metric.name");
        match meta::text(source, "/metric/name") {
            "" => causes.push(Cause::required(place, "must specify a metric name")),
            name => causes.extend(validate::name(NameRule::PathSegment, name).map(|it| Cause { field: place, ..it })),
        }
    }
    target(source, &format!("{path}.target"), causes);
    let given = |field: &str| source.pointer(&format!("/target/{field}")).is_some_and(|value| !value.is_null());
    let path = format!("{path}.target");
    let (value, average, share) = (given("value"), given("averageValue"), given("averageUtilization"));
    let missing = match kind {
        "object" if !value && !average => Some(("averageValue", "must set either a target value or averageValue")),
        "external" if !value && !average => {
            Some(("averageValue", "must set either a target value for metric or a per-pod target"))
        }
        "pods" if !average => Some(("averageValue", "must specify a positive target averageValue")),
        "resource" | "containerResource" if !share && !average => {
            Some(("averageUtilization", "must set either a target raw value or a target utilization"))
        }
        _ => None,
    };
    causes.extend(missing.map(|(field, why)| Cause::required(format!("{path}.{field}"), why)));
    let both = match kind {
        "external" if value && average => {
            Some(("value", "may not set both a target value for metric and a per-pod target"))
        }
        "resource" | "containerResource" if share && average => {
            Some(("averageValue", "may not set both a target raw value and a target utilization"))
        }
        _ => None,
    };
    causes.extend(both.map(|(field, why)| Cause::forbidden(format!("{path}.{field}"), why)));
}

/// An object that a metric is about.
fn reference(object: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
    for field in ["kind", "name"] {
        let place = format!("{path}.{field}");
        match object.map_or("", |object| meta::text(object, &format!("/{field}"))) {
            "" => causes.push(Cause::required(place, "")),
            text => causes.extend(validate::name(NameRule::PathSegment, text).map(|it| Cause { field: place, ..it })),
        }
    }
}

fn target(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    let target = |field: &str| source.pointer(&format!("/target/{field}")).filter(|value| !value.is_null());
    let kind = target("type").cloned().unwrap_or_else(|| json!(""));
    if kind == "" {
        causes.push(Cause::required(format!("{path}.type"), "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].iter().any(|known| kind == *known) {
        let why = "must be either Utilization, Value, or AverageValue";
        causes.push(Cause::invalid(format!("{path}.type"), &kind, why));
    }
    for field in ["value", "averageValue"] {
        let amount = target(field).and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok());
        if let Some(amount) = amount.filter(|amount| !amount.is_positive()) {
            causes.push(Cause::invalid(format!("{path}.{field}"), &json!(amount.canonical()), "must be positive"));
        }
    }
    if let Some(share) = target("averageUtilization").filter(|share| share.as_i64().is_some_and(|share| share < 1)) {
        causes.push(Cause::invalid(format!("{path}.averageUtilization"), share, "must be greater than 0"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(one: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        metric(one, "m", &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_target_is_one_amount_and_more_than_nothing() {
        let resource = |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        let both = json!({"type": "Utilization", "averageUtilization": 5, "averageValue": "1"});
        assert_eq!(
            wrong(&resource(both)),
            ["m.resource.target.averageValue: Forbidden: may not set both a target raw value and a target utilization"]
        );
        assert_eq!(
            wrong(&resource(json!({"type": "AverageValue", "averageValue": "0"}))),
            ["m.resource.target.averageValue: Invalid value: \"0\": must be positive"]
        );
    }
}
