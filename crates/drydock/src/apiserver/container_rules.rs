//! What is wrong with one container of a pod, in the order in which the real server looks.

use serde_json::{Value, json};

use super::dns_names;
use super::env_rules::environment;
use super::error::Cause;
use super::meta;
use super::mount_rules::mounts;
use super::pod_rules::{PORT_RANGE, given, list, port_name, required, supported};
use super::probe_rules::handlers;
use super::quantity::Quantity;
use super::security_rules::container_security;

/// Resources that every node has.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Rules for every kind of container of a pod with these volumes, which may share the users of its node.
pub(super) fn container(one: &Value, path: &str, volumes: &[&Value], host_users: bool, causes: &mut Vec<Cause>) {
    required(one, path, "name", causes);
    let name = meta::text(one, "/name");
    if !name.is_empty() {
        let wrong = dns_names::no_label(name);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.name"), &json!(name), why)));
    }
    required(one, path, "image", causes);
    supported(one, path, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], causes);
    ports(list(one, "ports"), &format!("{path}.ports"), causes);
    environment(one, path, causes);
    mounts(one, path, volumes, causes);
    supported(one, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], causes);
    resources(one, &format!("{path}.resources"), causes);
    container_security(one, path, host_users, causes);
}

/// Rules for when a container is started again. Of one that runs before the others less is told.
pub(super) fn restarts(one: &Value, path: &str, before_others: bool, causes: &mut Vec<Cause>) {
    supported(one, path, "restartPolicy", &["Always", "Never", "OnFailure"], causes);
    let rules = list(one, "restartPolicyRules");
    if given(one, "restartPolicy").is_none() && !rules.is_empty() {
        let why = "must specify restartPolicy when restart rules are used";
        causes.push(Cause::required(format!("{path}.restartPolicy"), why));
        if before_others {
            return;
        }
    }
    for (at, rule) in rules.iter().enumerate() {
        let path = format!("{path}.restartPolicyRules[{at}]");
        supported(rule, &path, "action", &["Restart", "RestartAllContainers"], causes);
        match given(rule, "exitCodes") {
            Some(codes) => supported(codes, &format!("{path}.exitCodes"), "operator", &["In", "NotIn"], causes),
            None => causes.push(Cause::required(format!("{path}.exitCodes"), "must be specified")),
        }
    }
}

/// Rules for a container that runs before the others, and ends before they start unless it is always restarted.
pub(super) fn init_container(one: &Value, path: &str, grace: i64, causes: &mut Vec<Cause>) {
    if meta::text(one, "/restartPolicy") == "Always" {
        handlers(one, path, grace, causes);
        return;
    }
    for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
        if given(one, field).is_some() {
            let why = "may not be set for init containers without restartPolicy=Always";
            causes.push(Cause::forbidden(format!("{path}.{field}"), why));
        }
    }
}

fn ports(ports: &[Value], path: &str, causes: &mut Vec<Cause>) {
    for (at, port) in ports.iter().enumerate() {
        let path = format!("{path}[{at}]");
        let name = meta::text(port, "/name");
        let wrong = if name.is_empty() { Vec::new() } else { port_name(name) };
        for why in &wrong {
            causes.push(Cause::invalid(format!("{path}.name"), &json!(name), why));
        }
        let taken = ports.iter().take(at).any(|other| meta::text(other, "/name") == name);
        if taken && wrong.is_empty() && !name.is_empty() {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
        match port.get("containerPort").and_then(Value::as_i64).unwrap_or(0) {
            0 => causes.push(Cause::required(format!("{path}.containerPort"), "")),
            1..=65535 => {}
            number => causes.push(Cause::invalid(format!("{path}.containerPort"), &json!(number), PORT_RANGE)),
        }
        if let Some(number) = port.get("hostPort").and_then(Value::as_i64).filter(|it| !(0..=65535).contains(it)) {
            causes.push(Cause::invalid(format!("{path}.hostPort"), &json!(number), PORT_RANGE));
        }
        supported(port, &path, "protocol", &["SCTP", "TCP", "UDP"], causes);
    }
}

fn resources(container: &Value, path: &str, causes: &mut Vec<Cause>) {
    let amounts = |kind: &str| container.pointer(&format!("/resources/{kind}")).and_then(Value::as_object);
    let amount = |text: &Value| Quantity::parse(text.as_str().unwrap_or_default()).ok();
    for kind in ["limits", "requests"] {
        for (name, text) in amounts(kind).into_iter().flatten() {
            let place = format!("{path}.{kind}[{name}]");
            resource_name(name, &place, causes);
            let Some(asked) = amount(text) else { continue };
            let shown = json!(asked.canonical());
            if asked.is_negative() {
                causes.push(Cause::invalid(place.clone(), &shown, "must be greater than or equal to 0"));
            }
            if name.contains('/') && !asked.is_whole() {
                causes.push(Cause::invalid(place, &shown, "must be an integer"));
            }
            if kind == "limits" {
                continue;
            }
            let limit = amounts("limits").and_then(|limits| limits.get(name)).and_then(amount);
            match limit {
                Some(limit) if name.contains('/') && asked.compare(limit).is_ne() => {
                    let why = format!("must be equal to {name} limit of {}", limit.canonical());
                    causes.push(Cause::invalid(format!("{path}.requests"), &shown, &why));
                }
                Some(limit) if asked.compare(limit).is_gt() => {
                    let why = format!("must be less than or equal to {name} limit of {}", limit.canonical());
                    causes.push(Cause::invalid(format!("{path}.requests"), &shown, &why));
                }
                None if name.contains('/') => {
                    let why = "Limit must be set for non overcommitable resources";
                    causes.push(Cause::required(format!("{path}.limits"), why));
                }
                _ => {}
            }
        }
    }
}

fn resource_name(name: &str, place: &str, causes: &mut Vec<Cause>) {
    if name.contains('/') || STANDARD.contains(&name) || name.starts_with("hugepages-") {
        return;
    }
    for why in ["must be a standard resource type or fully qualified", "must be a standard resource for containers"] {
        causes.push(Cause::invalid(place, &json!(name), why));
    }
}
