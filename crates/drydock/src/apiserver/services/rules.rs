//! What is wrong with a Service, in the order in which the real server looks.

use serde_json::{Value, json};

use super::traffic::one_of;
use super::{is_headless, is_name, linked, part, texts, traffic};
use crate::apiserver::error::Cause;
use crate::apiserver::ip_rules::{self, sloppy};
use crate::apiserver::meta;
use crate::apiserver::pod_rules::port_or_name;
use crate::apiserver::validate::{self, NameRule};

const KINDS: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
pub(super) const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
/// The longest a client may be sent to the same pod, in seconds.
const LONGEST_AFFINITY: i64 = 86400;
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";

/// Rules for a Service, or for a change from what was before.
pub(in crate::apiserver) fn service(old: Option<&Value>, object: &Value, causes: &mut Vec<Cause>) {
    if let Some(old) = old {
        linked::changed(old, object, causes);
        traffic::changed(old, object, causes);
    }
    topology(object, causes);
    let ports = part(object, "ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && !is_name(object) && !is_headless(object) {
        causes.push(Cause::required("spec.ports", ""));
    }
    address_of_kind(object, causes);
    for (at, one) in ports.iter().enumerate() {
        let before = ports.get(..at).unwrap_or_default();
        port(one, before, ports.len() > 1, &format!("spec.ports[{at}]"), causes);
    }
    validate::labels(part(object, "selector"), "spec.selector", causes);
    affinity(object, causes);
    linked::linked(old, object, causes);
    let known = old.map(|old| texts(old, "externalIPs")).unwrap_or_default();
    for (at, address) in texts(object, "externalIPs").iter().enumerate() {
        let (path, told) = (format!("spec.externalIPs[{at}]"), causes.len());
        ip_rules::address(&path, address, &known, causes);
        if causes.len() == told {
            ip_rules::special(&path, address, causes);
        }
    }
    one_of(object, "type", &KINDS, causes);
    for (at, port) in ports.iter().enumerate() {
        let asked = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
        if meta::text(object, "/spec/type") == "ClusterIP" && asked != 0 {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{at}].nodePort"), why));
        }
    }
    places(ports, causes);
    traffic::traffic(old, object, causes);
}

/// Rules for what a load balancer says of itself.
pub(in crate::apiserver) fn load_balancer(service: &Value, causes: &mut Vec<Cause>) {
    let ingress =
        service.pointer("/status/loadBalancer/ingress").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let path = "status.loadBalancer.ingress";
    if meta::text(service, "/spec/type") != "LoadBalancer" {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.extend((!ingress.is_empty()).then(|| Cause::forbidden(path, why)));
        return;
    }
    for (at, one) in ingress.iter().enumerate() {
        let (path, address, host) = (format!("{path}[{at}]"), meta::text(one, "/ip"), meta::text(one, "/hostname"));
        if !address.is_empty() {
            ip_rules::address(&format!("{path}.ip"), address, &[], causes);
        }
        let (place, known) = (format!("{path}.ipMode"), ["Proxy", "VIP"]);
        match one.get("ipMode").filter(|mode| mode.is_string()) {
            None if !address.is_empty() => causes.push(Cause::required(place, "must be specified when `ip` is set")),
            Some(_) if address.is_empty() => {
                causes.push(Cause::forbidden(place, "may not be specified when `ip` is not set"));
            }
            Some(mode) if !known.iter().any(|known| mode == known) => {
                causes.push(Cause::unsupported(&place, mode, &known.map(|mode| json!(mode))));
            }
            _ => {}
        }
        if !host.is_empty() {
            let place = format!("{path}.hostname");
            causes
                .extend(validate::name(NameRule::Subdomain, host).map(|cause| Cause { field: place.clone(), ..cause }));
            let why = "must be a DNS name, not an IP address";
            causes.extend(sloppy(host).map(|_| Cause::invalid(place, &json!(host), why)));
        }
    }
}

/// The two ways to say where traffic should go say the same.
fn topology(service: &Value, causes: &mut Vec<Cause>) {
    let note = |name: &str| service.pointer("/metadata/annotations").and_then(|notes| notes.get(name));
    if let (Some(mode), Some(hints)) = (note(MODE), note(HINTS))
        && mode != hints
    {
        let why = format!("must match annotations[{HINTS}] when both are specified");
        causes.push(Cause::invalid(format!("metadata.annotations[{MODE}]"), mode, &why));
    }
}

/// A name leads somewhere and has no address, and what is reached from outside has one.
fn address_of_kind(service: &Value, causes: &mut Vec<Cause>) {
    let kind = meta::text(service, "/spec/type");
    match kind {
        "NodePort" | "LoadBalancer" if is_headless(service) => {
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &why));
        }
        "ExternalName" => {
            for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
                let said = part(service, field)
                    .is_some_and(|it| it.is_string() || it.as_array().is_some_and(|it| !it.is_empty()));
                let why = "may not be set for ExternalName services";
                causes.extend(said.then(|| Cause::forbidden(format!("spec.{field}"), why)));
            }
            let name = meta::text(service, "/spec/externalName");
            match name.strip_suffix('.').unwrap_or(name) {
                "" => causes.push(Cause::required("spec.externalName", "")),
                name => causes.extend(
                    validate::name(NameRule::Subdomain, name)
                        .map(|cause| Cause { field: "spec.externalName".to_owned(), ..cause }),
                ),
            }
        }
        _ => {}
    }
}

fn affinity(service: &Value, causes: &mut Vec<Cause>) {
    one_of(service, "sessionAffinity", &["ClientIP", "None"], causes);
    let seconds = service.pointer("/spec/sessionAffinityConfig/clientIP/timeoutSeconds");
    if let Some(seconds) = seconds.filter(|it| it.as_i64().is_some_and(|it| it <= 0 || it > LONGEST_AFFINITY)) {
        let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY}");
        causes.push(Cause::invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, &why));
    }
}

fn port(port: &Value, before: &[Value], several: bool, path: &str, causes: &mut Vec<Cause>) {
    let name = meta::text(port, "/name");
    if name.is_empty() && several {
        causes.push(Cause::required(format!("{path}.name"), ""));
    }
    if !name.is_empty() {
        if let Some(cause) = validate::name(NameRule::Label, name) {
            causes.push(Cause { field: format!("{path}.name"), ..cause });
        }
        if before.iter().any(|other| meta::text(other, "/name") == name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
    }
    let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
    if !(1..=65535).contains(&number) {
        causes.push(Cause::invalid(format!("{path}.port"), &json!(number), PORT_RANGE));
    }
    let protocol = port.get("protocol").cloned().unwrap_or_default();
    let known = ["SCTP", "TCP", "UDP"];
    if protocol.as_str().is_none_or(|protocol| !known.contains(&protocol)) {
        causes.push(Cause::unsupported(&format!("{path}.protocol"), &protocol, &known.map(|word| json!(word))));
    }
    if let Some(target) = port.get("targetPort") {
        port_or_name(target, &format!("{path}.targetPort"), causes);
    }
    if let Some(language) = port.get("appProtocol").and_then(Value::as_str) {
        validate::qualified_key(language, &format!("{path}.appProtocol"), causes);
    }
}

/// No two ports are the same number of the same protocol, of the Service or of the nodes.
fn places(ports: &[Value], causes: &mut Vec<Cause>) {
    let number = |port: &Value, field: &str| port.get(field).and_then(Value::as_i64).unwrap_or(0);
    let place = |port: &Value, field: &str| (port.get("protocol").cloned(), number(port, field));
    let again = |at: usize, port: &Value, field: &str| {
        ports.iter().take(at).any(|other| place(other, field) == place(port, field))
    };
    for (at, port) in ports.iter().enumerate() {
        let own = number(port, "nodePort");
        if own != 0 && again(at, port, "nodePort") {
            causes.push(Cause::duplicate(format!("spec.ports[{at}].nodePort"), &json!(own)));
        }
    }
    for (at, port) in ports.iter().enumerate() {
        if again(at, port, "port") {
            let (protocol, number) = place(port, "port");
            let shown = json!({"Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0});
            causes.push(Cause::duplicate(format!("spec.ports[{at}]"), &shown));
        }
    }
}
