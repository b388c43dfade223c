//! What whoever writes a pod, or the template of one, should know although it is accepted.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::Value;

use super::meta;
use super::overlap_warnings::overlaps;
use super::pod_rules::{given, list, with_paths};
use super::port_warnings::{names, ports};
use super::quantity::Quantity;
use super::validate;

/// Labels of nodes that have got other names.
const OLD_LABELS: &[(&str, &str)] = &[
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/instance-type", r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    ("failure-domain.beta.kubernetes.io/zone", r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
    ("scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"),
];

const OLD_ANNOTATIONS: &[(&str, &str)] = &[
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        r#"non-functional in v1.16+; use the "priorityClassName" field instead"#,
    ),
    ("security.alpha.kubernetes.io/sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
    ("security.alpha.kubernetes.io/unsafe-sysctls", r#"non-functional in v1.11+; use the "sysctls" field instead"#),
];

/// Sources of volumes that nothing serves any more, and what they are called then.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What to know about a new pod. Whoever changes one is a program, and is left alone.
pub(super) fn of_pod(old: Option<&Value>, pod: &Value) -> Vec<String> {
    if old.is_some() { Vec::new() } else { distinct(of_template(pod, "")) }
}

/// What to know about an object with a template that is new or changed.
pub(super) fn of_workload(old: Option<&Value>, object: &Value) -> Vec<String> {
    if old.is_some_and(|old| meta::generation(old) == meta::generation(object)) {
        return Vec::new();
    }
    let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
    distinct(of_template(template, "spec.template."))
}

/// The same of one that counts changes of its template apart.
pub(super) fn of_daemon_set(old: Option<&Value>, object: &Value) -> Vec<String> {
    let template = |object: &Value| object.pointer("/spec/template").cloned();
    if old.is_some_and(|old| template(old) == template(object)) { Vec::new() } else { of_workload(None, object) }
}

/// Nothing is said twice.
fn distinct(warnings: Vec<String>) -> Vec<String> {
    let mut said = BTreeSet::new();
    warnings.into_iter().filter(|warning| said.insert(warning.clone())).collect()
}

fn of_template(template: &Value, prefix: &str) -> Vec<String> {
    let nothing = Value::Null;
    let spec = template.get("spec").unwrap_or(&nothing);
    let path = format!("{prefix}spec");
    let containers = with_paths(spec, &path);
    let mut warnings = nodes(spec, &path);
    for (annotation, why) in OLD_ANNOTATIONS {
        if template.pointer("/metadata/annotations").is_some_and(|all| all.get(*annotation).is_some()) {
            warnings.push(format!("{prefix}metadata.annotations[{annotation}]: {why}"));
        }
    }
    warnings.extend(volumes(list(spec, "volumes"), &format!("{path}.volumes")));
    warnings.extend(overlaps(list(spec, "volumes")));
    warnings.extend(twice(spec, &path));
    warnings.extend(fractions(spec.get("overhead"), &format!("{path}.overhead")));
    for (path, container) in &containers {
        for name in ["memory", "ephemeral-storage"] {
            for kind in ["limits", "requests"] {
                let amounts = container.pointer(&format!("/resources/{kind}"));
                warnings.extend(fraction(amounts, name, &format!("{path}.resources.{kind}")));
            }
        }
        warnings.extend(hidden(list(container, "env"), &format!("{path}.env")));
    }
    warnings.extend(ports(&containers));
    warnings.extend(names(&containers));
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        warnings.push(format!("{path}.terminationGracePeriodSeconds: {why}"));
    }
    warnings.extend(unselective(spec, &path));
    warnings.extend(addresses(spec, &path));
    warnings
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

/// Nodes are chosen by labels that they will not always have.
fn nodes(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (key, _) in spec.get("nodeSelector").and_then(Value::as_object).into_iter().flatten() {
        warnings.extend(old_label(key).map(|why| format!("{path}.nodeSelector[{key}]: {why}")));
    }
    let affinity = spec.pointer("/affinity/nodeAffinity").unwrap_or(&Value::Null);
    let required = affinity.get(REQUIRED).map(|required| list(required, "nodeSelectorTerms")).unwrap_or_default();
    for (at, term) in required.iter().enumerate() {
        let place = format!("{path}.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[{at}]");
        warnings.extend(node_term(term, &place, false));
    }
    for (at, weighted) in list(affinity, PREFERRED).iter().enumerate() {
        let place = format!("{path}.affinity.nodeAffinity.{PREFERRED}[{at}].preference");
        warnings.extend(node_term(weighted.get("preference").unwrap_or(&Value::Null), &place, true));
    }
    for (at, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let place = format!("{path}.topologySpreadConstraints[{at}]");
        let key = meta::text(constraint, "/topologyKey");
        warnings.extend(old_label(key).map(|why| format!("{place}.topologyKey: {key} is {why}")));
        warnings.extend(null_selector(constraint, &place));
    }
    warnings
}

fn node_term(term: &Value, path: &str, preferred: bool) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let place = format!("{path}.matchExpressions[{at}]");
        let key = meta::text(expression, "/key");
        warnings.extend(old_label(key).map(|why| format!("{place}.key: {key} is {why}")));
        for (number, value) in meta::strings(expression.get("values")).iter().enumerate().filter(|_| preferred) {
            let wrong = validate::no_label_value(value);
            warnings.extend(wrong.iter().map(|why| format!("{place}.values[{number}]: {value} is invalid, {why}")));
        }
    }
    warnings
}

/// Who selects by nothing at all selects nothing.
fn null_selector(holder: &Value, path: &str) -> Option<String> {
    let why = "a null labelSelector results in matching no pod";
    given(holder, "labelSelector").is_none().then(|| format!("{path}.labelSelector: {why}"))
}

fn unselective(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for kind in ["podAffinity", "podAntiAffinity"] {
        let affinity = spec.pointer(&format!("/affinity/{kind}")).unwrap_or(&Value::Null);
        let path = format!("{path}.affinity.{kind}");
        for (at, term) in list(affinity, REQUIRED).iter().enumerate() {
            warnings.extend(null_selector(term, &format!("{path}.{REQUIRED}[{at}]")));
        }
        for (at, weighted) in list(affinity, PREFERRED).iter().enumerate() {
            let term = weighted.get("podAffinityTerm").unwrap_or(&Value::Null);
            warnings.extend(null_selector(term, &format!("{path}.{PREFERRED}[{at}].podAffinityTerm")));
        }
    }
    warnings
}

fn volumes(volumes: &[Value], path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, volume) in volumes.iter().enumerate() {
        for (field, told, why) in OLD_VOLUMES {
            warnings.extend(given(volume, field).map(|_| format!("{path}[{at}].{told}: {why}")));
            // Claims come up between what was given up early and late.
            if *field == "glusterfs" {
                let place = format!("{path}[{at}].ephemeral.volumeClaimTemplate.spec.resources");
                for kind in ["requests", "limits"] {
                    let amounts = volume.pointer(&format!("/ephemeral/volumeClaimTemplate/spec/resources/{kind}"));
                    warnings.extend(fraction(amounts, "storage", &format!("{place}.{kind}")));
                }
            }
        }
    }
    warnings
}

/// Addresses of hosts and secrets that are named again.
fn twice(spec: &Value, path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (field, key) in [("hostAliases", "ip"), ("imagePullSecrets", "name")] {
        let texts: Vec<_> = list(spec, field).iter().map(|one| meta::text(one, &format!("/{key}"))).collect();
        for (at, text) in texts.iter().enumerate().filter(|(at, text)| texts[..*at].contains(text)) {
            warnings.push(format!("{path}.{field}[{at}].{key}: duplicate {key} {text:?}"));
        }
    }
    for (at, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if meta::text(secret, "/name").is_empty() {
            warnings.push(format!("{path}.imagePullSecrets[{at}].name: invalid empty name \"\""));
        }
    }
    warnings
}

fn fractions(amounts: Option<&Value>, path: &str) -> Vec<String> {
    ["memory", "ephemeral-storage"].iter().filter_map(|name| fraction(amounts, name, path)).collect()
}

/// Bytes cannot be divided.
fn fraction(amounts: Option<&Value>, name: &str, path: &str) -> Option<String> {
    let amount = Quantity::parse(amounts?.get(name)?.as_str()?).ok().filter(|amount| !amount.is_whole())?;
    let shown = amount.canonical();
    Some(format!("{path}[{name}]: fractional byte value {shown:?} is invalid, must be an integer"))
}

/// A variable may be set again only to add to it.
fn hidden(variables: &[Value], path: &str) -> Vec<String> {
    let mut warnings = Vec::new();
    for (at, variable) in variables.iter().enumerate() {
        let (name, value) = (meta::text(variable, "/name"), meta::text(variable, "/value"));
        let before = format!("$({name})");
        let adds = given(variable, "valueFrom").is_none() && value != before && value.contains(&before);
        if variables.iter().take(at).any(|other| meta::text(other, "/name") == name) && !adds {
            let why = format!("hides previous definition of {name:?}, which may be dropped when using apply");
            warnings.push(format!("{path}[{at}]: {why}"));
        }
    }
    warnings
}

/// Addresses that are written in another way than programs write them.
fn addresses(spec: &Value, path: &str) -> Vec<String> {
    let servers = meta::strings(spec.pointer("/dnsConfig/nameservers")).into_iter().enumerate();
    let servers = servers.map(|(at, text)| (format!("{path}.dnsConfig.nameservers[{at}]"), text));
    let aliases = list(spec, "hostAliases").iter().enumerate();
    let aliases = aliases.map(|(at, alias)| (format!("{path}.hostAliases[{at}].ip"), meta::text(alias, "/ip")));
    servers
        .chain(aliases)
        .filter_map(|(place, text)| match text.parse::<IpAddr>() {
            Ok(IpAddr::V6(address)) if address.to_string() != text => Some(format!(
                "{place}: IPv6 address {text:?} should be in RFC 5952 canonical format ({:?})",
                address.to_string()
            )),
            _ => None,
        })
        .collect()
}
