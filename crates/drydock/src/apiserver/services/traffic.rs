//! Rules for how traffic reaches a Service: what belongs to load balancers only, and which policies there are.

use serde_json::{Value, json};

use super::{is_reached_from_outside, needs_health_check, part, texts};
use crate::apiserver::error::Cause;
use crate::apiserver::ip_rules;
use crate::apiserver::meta;
use crate::apiserver::validate;

const BALANCERS_ONLY: &str = "may only be used when `type` is 'LoadBalancer'";
/// Where source ranges were said before there was a field for them.
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";

fn is_balancer(service: &Value) -> bool {
    meta::text(service, "/spec/type") == "LoadBalancer"
}

/// Rules for how traffic comes in.
pub(super) fn traffic(old: Option<&Value>, service: &Value, causes: &mut Vec<Cause>) {
    source_ranges(old, service, causes);
    if part(service, "allocateLoadBalancerNodePorts").is_some_and(Value::is_boolean) && !is_balancer(service) {
        causes.push(Cause::forbidden("spec.allocateLoadBalancerNodePorts", BALANCERS_ONLY));
    }
    class(service, causes);
    policies(service, causes);
    let known = ["Cluster", "Local"];
    one_of(service, "internalTrafficPolicy", &known, causes);
    one_of(service, "trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"], causes);
}

/// Rules for a change of it.
pub(super) fn changed(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let named = |service| part(service, "loadBalancerClass").unwrap_or(&Value::Null);
    if is_balancer(old) && is_balancer(new) && named(old) != named(new) {
        causes.push(Cause::invalid("spec.loadBalancerClass", named(new), "may not change once set"));
    }
    class(new, causes);
    let health = |service| part(service, "healthCheckNodePort");
    if needs_health_check(old) && needs_health_check(new) && health(old) != health(new) {
        causes.push(Cause::forbidden("spec.healthCheckNodePort", "field is immutable"));
    }
}

fn source_ranges(old: Option<&Value>, service: &Value, causes: &mut Vec<Cause>) {
    let trimmed = |service: &Value| {
        let ranges = texts(service, "loadBalancerSourceRanges");
        ranges.iter().map(|range| range.trim().to_owned()).collect::<Vec<_>>()
    };
    let ranges = trimmed(service);
    if !ranges.is_empty() {
        let path = "spec.LoadBalancerSourceRanges";
        if !is_balancer(service) {
            causes.push(Cause::forbidden(path, BALANCERS_ONLY));
        }
        let known = old.map(trimmed).unwrap_or_default();
        for (at, range) in ranges.iter().enumerate() {
            ip_rules::range(&format!("{path}[{at}]"), range, &known, causes);
        }
        return;
    }
    let noted = |service: &Value| {
        let notes = service.pointer("/metadata/annotations")?;
        notes.get(RANGES).and_then(Value::as_str).map(str::to_owned)
    };
    let Some(said) = noted(service) else { return };
    let path = format!("metadata.annotations[{RANGES}]");
    if !is_balancer(service) {
        causes.push(Cause::forbidden(path.clone(), BALANCERS_ONLY));
    }
    if old.and_then(noted).as_ref() != Some(&said) && !said.trim().is_empty() {
        for range in said.split(',') {
            ip_rules::range(&path, range.trim(), &[], causes);
        }
    }
}

fn class(service: &Value, causes: &mut Vec<Cause>) {
    let Some(class) = part(service, "loadBalancerClass").and_then(Value::as_str) else { return };
    if is_balancer(service) {
        validate::qualified_key(class, "spec.loadBalancerClass", causes);
    } else {
        causes.push(Cause::forbidden("spec.loadBalancerClass", BALANCERS_ONLY));
    }
}

fn policies(service: &Value, causes: &mut Vec<Cause>) {
    let policy = meta::text(service, "/spec/externalTrafficPolicy");
    if is_reached_from_outside(service) {
        if policy.is_empty() {
            causes.push(Cause::required("spec.externalTrafficPolicy", ""));
        } else {
            one_of(service, "externalTrafficPolicy", &["Cluster", "Local"], causes);
        }
    } else if !policy.is_empty() {
        let why = "may only be set for externally-accessible services";
        causes.push(Cause::invalid("spec.externalTrafficPolicy", &json!(policy), why));
    }
    let port = part(service, "healthCheckNodePort").and_then(Value::as_i64).unwrap_or(0);
    let path = "spec.healthCheckNodePort";
    match (needs_health_check(service), port) {
        (true, 0) => causes.push(Cause::required(path, "")),
        (true, 1..=65535) | (false, 0) => {}
        (true, port) => causes.push(Cause::invalid(path, &json!(port), super::rules::PORT_RANGE)),
        (false, port) => {
            let why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            causes.push(Cause::invalid(path, &json!(port), why));
        }
    }
}

/// A word that is one of those that are known.
pub(super) fn one_of(service: &Value, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let found = part(service, field).filter(|found| found.as_str().is_some_and(|found| !known.contains(&found)));
    if let Some(found) = found {
        let allowed: Vec<_> = known.iter().map(|word| json!(word)).collect();
        causes.push(Cause::unsupported(&format!("spec.{field}"), found, &allowed));
    }
}
