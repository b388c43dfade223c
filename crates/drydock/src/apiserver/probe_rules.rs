//! What is wrong with the ways in which a container is asked how it is, and told what is to come.

use serde_json::{Value, json};

use super::error::Cause;
use super::pod_rules::{PORT_RANGE, non_negative, port_or_name, supported};

const HEADER: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used \
                      for validation is '[-A-Za-z0-9]+')";

/// Rules for the hooks and probes of a container that has some seconds to stop.
pub(super) fn handlers(container: &Value, path: &str, grace: i64, causes: &mut Vec<Cause>) {
    for moment in ["postStart", "preStop"] {
        if let Some(hook) = container.pointer(&format!("/lifecycle/{moment}")).filter(|hook| hook.is_object()) {
            handler(hook, &format!("{path}.lifecycle.{moment}"), causes);
            let seconds = hook
                .get("sleep")
                .filter(|sleep| sleep.is_object())
                .map(|sleep| sleep.get("seconds").and_then(Value::as_i64).unwrap_or(0));
            if let Some(seconds) = seconds.filter(|seconds| !(0..=grace).contains(seconds)) {
                let why = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                causes.push(Cause::invalid(format!("{path}.lifecycle.{moment}.sleep"), &json!(seconds), &why));
            }
        }
    }
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get(kind).filter(|probe| probe.is_object()) {
            self::probe(probe, kind, &format!("{path}.{kind}"), causes);
        }
    }
}

fn probe(probe: &Value, kind: &str, path: &str, causes: &mut Vec<Cause>) {
    handler(probe, path, causes);
    for field in ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"] {
        non_negative(probe, path, field, causes);
    }
    let grace = probe.get("terminationGracePeriodSeconds").filter(|seconds| seconds.is_number());
    let place = format!("{path}.terminationGracePeriodSeconds");
    if let Some(seconds) = grace.filter(|seconds| seconds.as_i64() <= Some(0)) {
        causes.push(Cause::invalid(place.clone(), seconds, "must be greater than 0"));
    }
    if kind == "readinessProbe" {
        causes.extend(grace.map(|seconds| Cause::invalid(place, seconds, "must not be set for readinessProbes")));
    } else if let Some(times) = probe.get("successThreshold").filter(|times| times.as_i64().is_some_and(|it| it != 1)) {
        causes.push(Cause::invalid(format!("{path}.successThreshold"), times, "must be 1"));
    }
}

/// There is one way, and it leads somewhere.
fn handler(one: &Value, path: &str, causes: &mut Vec<Cause>) {
    let ways = ["exec", "httpGet", "tcpSocket", "grpc", "sleep"];
    let mut found = ways.iter().filter_map(|way| Some((*way, one.get(*way).filter(|it| it.is_object())?)));
    let Some((way, action)) = found.next() else {
        causes.push(Cause::required(path, "must specify a handler type"));
        return;
    };
    self::action(way, action, &format!("{path}.{way}"), causes);
    for (way, _) in found {
        causes.push(Cause::forbidden(format!("{path}.{way}"), "may not specify more than 1 handler type"));
    }
}

fn action(way: &str, action: &Value, path: &str, causes: &mut Vec<Cause>) {
    let none = json!(0);
    let port = action.get("port").unwrap_or(&none);
    match way {
        "exec" if action.get("command").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
            causes.push(Cause::required(format!("{path}.command"), ""));
        }
        "httpGet" => {
            port_or_name(port, &format!("{path}.port"), causes);
            supported(action, path, "scheme", &["HTTP", "HTTPS"], causes);
            for header in action.get("httpHeaders").and_then(Value::as_array).into_iter().flatten() {
                let name = header.get("name").and_then(Value::as_str).unwrap_or_default();
                if name.is_empty() || name.bytes().any(|byte| !byte.is_ascii_alphanumeric() && byte != b'-') {
                    causes.push(Cause::invalid(format!("{path}.httpHeaders"), &json!(name), HEADER));
                }
            }
        }
        "tcpSocket" => port_or_name(port, &format!("{path}.port"), causes),
        "grpc" if !(1..=65535).contains(&port.as_i64().unwrap_or(0)) => {
            causes.push(Cause::invalid(format!("{path}.port"), port, PORT_RANGE));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(container: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        handlers(container, "c", 30, &mut causes);
        causes.into_iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_probe_has_one_handler() {
        let two = json!({"livenessProbe": {"httpGet": {"port": 80}, "tcpSocket": {"port": 80}}});
        assert_eq!(wrong(&two), ["c.livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"]);
        let none = json!({"readinessProbe": {"periodSeconds": 1}});
        assert_eq!(wrong(&none), ["c.readinessProbe: Required value: must specify a handler type"]);
        let silent = json!({"startupProbe": {"exec": {"command": []}}});
        assert_eq!(wrong(&silent), ["c.startupProbe.exec.command: Required value"]);
    }
}
