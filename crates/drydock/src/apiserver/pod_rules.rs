//! What is wrong with a pod, or with the template of one, in the order in which the real server looks.

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::probe_rules::handlers;
use super::quantity::Quantity;
use super::schema::join;
use super::validate::{self, NameRule};

pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
/// Resources that every node has.
const STANDARD: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Rules for a pod: those of every template, and some that came too late for templates.
pub(super) fn pod(pod: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = pod.get("spec").unwrap_or(&nothing);
    check(spec, "spec", causes);
    for kind in ["containers", "initContainers"] {
        for (at, container) in list(spec, kind).iter().enumerate() {
            let image = meta::text(container, "/image");
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                causes.push(Cause::invalid(format!("spec.{kind}[{at}].image"), &json!(image), why));
            }
        }
    }
}

/// Rules for what a pod is made of.
pub(super) fn check(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let volumes = volumes(spec, path, causes);
    let containers_path = format!("{path}.containers");
    let containers = list(spec, "containers");
    if containers.is_empty() {
        causes.push(Cause::required(containers_path.clone(), ""));
    }
    for (at, one) in containers.iter().enumerate() {
        let path = format!("{containers_path}[{at}]");
        container(one, &path, &volumes, causes);
        distinct(one, &path, containers.iter().take(at), causes);
        let grace = spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64);
        handlers(one, &path, grace.unwrap_or(0), causes);
    }
    for (at, one) in list(spec, "initContainers").iter().enumerate() {
        let path = format!("{path}.initContainers[{at}]");
        container(one, &path, &volumes, causes);
        distinct(one, &path, containers.iter().chain(list(spec, "initContainers").iter().take(at)), causes);
    }
    supported(spec, path, "restartPolicy", &["Always", "OnFailure", "Never"], causes);
    supported(spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"], causes);
    validate::labels(spec.get("nodeSelector"), &format!("{path}.nodeSelector"), causes);
    for (field, rule) in [("serviceAccountName", NameRule::Subdomain), ("nodeName", NameRule::Subdomain)] {
        name(spec, path, field, rule, causes);
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
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(holder: &Value, path: &str, field: &str, rule: NameRule, causes: &mut Vec<Cause>) {
    let text = holder.get(field).and_then(Value::as_str).unwrap_or_default();
    if !text.is_empty()
        && let Some(cause) = validate::name(rule, text)
    {
        causes.push(Cause { field: format!("{path}.{field}"), ..cause });
    }
}

/// A name that must be there.
fn required_name(holder: &Value, path: &str, causes: &mut Vec<Cause>) {
    if meta::text(holder, "/name").is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    name(holder, path, "name", NameRule::Label, causes);
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
    if !name.is_empty() && others.any(|other| meta::text(other, "/name") == name) {
        causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
    }
}

/// The names of a pod's volumes.
fn volumes<'a>(spec: &'a Value, path: &str, causes: &mut Vec<Cause>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        required_name(volume, &path, causes);
        let name = meta::text(volume, "/name");
        if names.contains(&name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
        names.push(name);
    }
    names
}

/// What every kind of container must be.
fn container(one: &Value, path: &str, volumes: &[&str], causes: &mut Vec<Cause>) {
    required_name(one, path, causes);
    if meta::text(one, "/image").is_empty() {
        causes.push(Cause::required(format!("{path}.image"), ""));
    }
    supported(one, path, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], causes);
    ports(list(one, "ports"), &format!("{path}.ports"), causes);
    for (at, variable) in list(one, "env").iter().enumerate() {
        environment(variable, &format!("{path}.env[{at}]"), causes);
    }
    for (at, mount) in list(one, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{at}]");
        let name = meta::text(mount, "/name");
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else if !volumes.contains(&name) {
            causes.push(Cause::missing(format!("{path}.name"), &json!(name)));
        }
        if meta::text(mount, "/mountPath").is_empty() {
            causes.push(Cause::required(format!("{path}.mountPath"), ""));
        }
        let place = mount.get("mountPath");
        if list(one, "volumeMounts").iter().take(at).any(|other| other.get("mountPath") == place) {
            let found = place.cloned().unwrap_or_else(|| json!(""));
            causes.push(Cause::invalid(format!("{path}.mountPath"), &found, "must be unique"));
        }
    }
    supported(one, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], causes);
    resources(one, &format!("{path}.resources"), causes);
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

fn environment(variable: &Value, path: &str, causes: &mut Vec<Cause>) {
    let name = meta::text(variable, "/name");
    if name.is_empty() {
        causes.push(Cause::required(format!("{path}.name"), ""));
    } else if name.bytes().any(|byte| !(b' '..=b'~').contains(&byte) || byte == b'=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        causes.push(Cause::invalid(format!("{path}.name"), &json!(name), why));
    }
    let Some(from) = variable.get("valueFrom").filter(|from| from.is_object()) else { return };
    let known = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let sources = known.iter().filter(|source| from.get(**source).is_some_and(|it| !it.is_null())).count();
    let why = match (meta::text(variable, "/value").is_empty(), sources) {
        (_, 0) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (false, _) => "may not be specified when `value` is not empty",
        (true, 1) => return,
        (true, _) => "may not have more than one field specified at a time",
    };
    causes.push(Cause::invalid(format!("{path}.valueFrom"), &json!(""), why));
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
