//! Ports of a pod of which it is not clear whose they are.

use std::collections::BTreeMap;

use serde_json::Value;

use super::meta;
use super::pod_rules::list;

/// A port of a container.
struct Port<'a> {
    path: String,
    name: &'a str,
    number: i64,
    protocol: &'a str,
    host: (&'a str, i64),
}

fn all_ports<'a>(containers: &[(String, &'a Value)]) -> Vec<Port<'a>> {
    let mut all = Vec::new();
    for (path, container) in containers {
        for (at, port) in list(container, "ports").iter().enumerate() {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or(0);
            all.push(Port {
                path: format!("{path}.ports[{at}]"),
                name: meta::text(port, "/name"),
                number: number("containerPort"),
                protocol: meta::text(port, "/protocol"),
                host: (meta::text(port, "/hostIP"), number("hostPort")),
            });
        }
    }
    all
}

/// Ports that several containers have, or one has twice.
pub(super) fn ports(containers: &[(String, &Value)]) -> Vec<String> {
    let all = all_ports(containers);
    let mut warnings = Vec::new();
    for (at, port) in all.iter().enumerate() {
        let (address, number) = port.host;
        if !address.is_empty() && number == 0 {
            let Port { path, name, number, protocol, .. } = port;
            warnings.push(format!(
                "{path}: hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{number} \
                 Protocol:{protocol} HostIP:{address}}}"
            ));
        }
        for other in all.iter().take(at).filter(|it| (it.number, it.protocol) == (port.number, port.protocol)) {
            let how = if port.host == other.host {
                "duplicate"
            } else if number == 0 || other.host.1 == 0 {
                "overlapping"
            } else if number == other.host.1 && address.is_empty() != other.host.0.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            warnings.push(format!("{}: {how} port definition with {}", port.path, other.path));
        }
    }
    warnings
}

/// Names that several ports have.
pub(super) fn names(containers: &[(String, &Value)]) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut known = BTreeMap::new();
    for Port { path, name, .. } in all_ports(containers).into_iter().filter(|port| !port.name.is_empty()) {
        if let Some(other) = known.get(name) {
            warnings.push(format!(
                "{path}: duplicate port name {name:?} with {other}, services and probes that select ports by name will \
                 use {other}"
            ));
        } else {
            known.insert(name, path);
        }
    }
    warnings
}
