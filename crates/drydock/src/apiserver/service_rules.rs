//! What is wrong with a Service, in the order in which the real server looks.

use std::net::IpAddr;

use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::pod_rules::port_or_name;
use super::validate::{self, NameRule};

const KINDS: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const PORT_RANGE: &str = "must be between 1 and 65535, inclusive";
/// The longest a client may be sent to the same pod, in seconds.
const LONGEST_AFFINITY: i64 = 86400;

/// Rules for one state of a Service.
pub(super) fn service(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = object.get("spec").unwrap_or(&nothing);
    let kind = meta::text(spec, "/type");
    let headless = meta::text(spec, "/clusterIP") == "None";
    let ports = spec.get("ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if ports.is_empty() && kind != "ExternalName" && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    address_of_kind(spec, kind, headless, causes);
    for (at, one) in ports.iter().enumerate() {
        port(one, &ports[..at], ports.len() > 1, &format!("spec.ports[{at}]"), causes);
    }
    validate::labels(spec.get("selector"), "spec.selector", causes);
    one_of(spec, "sessionAffinity", &["ClientIP", "None"], causes);
    let seconds = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds");
    if let Some(seconds) = seconds.filter(|it| it.as_i64().is_some_and(|it| it <= 0 || it > LONGEST_AFFINITY)) {
        let why = format!("must be greater than 0 and less than {LONGEST_AFFINITY}");
        causes.push(Cause::invalid("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, &why));
    }
    for (at, address) in meta::strings(spec.get("externalIPs")).iter().enumerate() {
        if address.parse::<IpAddr>().is_err() {
            causes.push(Cause::invalid(format!("spec.externalIPs[{at}]"), &json!(address), ADDRESS));
        }
    }
    one_of(spec, "type", &KINDS, causes);
    places(ports, causes);
    for (at, port) in ports.iter().enumerate() {
        let asked = port.get("nodePort").and_then(Value::as_i64).unwrap_or(0);
        if kind == "ClusterIP" && asked != 0 {
            let why = "may not be used when `type` is 'ClusterIP'";
            causes.push(Cause::forbidden(format!("spec.ports[{at}].nodePort"), why));
        }
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], causes);
    let ingress = object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    if kind != "LoadBalancer" && ingress.is_some_and(|ingress| !ingress.is_empty()) {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden("status.loadBalancer.ingress", why));
    }
}

/// Rules for the addresses of a Service, which are worked out before anything else is looked at.
pub(super) fn service_addresses(object: &Value, causes: &mut Vec<Cause>) {
    let nothing = json!({});
    let spec = object.get("spec").unwrap_or(&nothing);
    if meta::text(spec, "/type") == "ExternalName" {
        for (field, told) in
            [("clusterIP", "clusterIPs"), ("ipFamilies", "ipFamilies"), ("ipFamilyPolicy", "ipFamilyPolicy")]
        {
            if spec.get(field).is_some_and(|it| !it.is_null() && *it != "") {
                causes.push(Cause::forbidden(format!("spec.{told}"), "may not be set for ExternalName services"));
            }
        }
        return;
    }
    one_of(spec, "ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"], causes);
    for (at, family) in meta::strings(spec.get("ipFamilies")).iter().enumerate() {
        if !["IPv4", "IPv6"].contains(family) {
            let allowed = [json!("IPv4"), json!("IPv6")];
            causes.push(Cause::unsupported(&format!("spec.ipFamilies[{at}]"), &json!(family), &allowed));
        }
    }
    let address = meta::text(spec, "/clusterIP");
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!(address), ADDRESS));
    }
}

/// A name leads somewhere, and what is reached from outside has an address.
fn address_of_kind(spec: &Value, kind: &str, headless: bool, causes: &mut Vec<Cause>) {
    let name = meta::text(spec, "/externalName");
    match kind {
        "NodePort" | "LoadBalancer" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            causes.push(Cause::invalid("spec.clusterIPs[0]", &json!("None"), &why));
        }
        "ExternalName" => {
            if name.is_empty() {
                causes.push(Cause::required("spec.externalName", ""));
            } else if let Some(cause) = validate::name(NameRule::Subdomain, name.strip_suffix('.').unwrap_or(name)) {
                causes.push(Cause { field: "spec.externalName".to_owned(), ..cause });
            }
        }
        _ => {}
    }
}

fn one_of(spec: &Value, field: &str, known: &[&str], causes: &mut Vec<Cause>) {
    let found = spec.get(field).filter(|found| found.as_str().is_some_and(|found| !known.contains(&found)));
    if let Some(found) = found {
        let allowed: Vec<_> = known.iter().map(|word| json!(word)).collect();
        causes.push(Cause::unsupported(&format!("spec.{field}"), found, &allowed));
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

/// No two ports are the same number of the same protocol.
fn places(ports: &[Value], causes: &mut Vec<Cause>) {
    let number = |port: &Value| port.get("port").and_then(Value::as_i64).unwrap_or(0);
    let place = |port: &Value| (port.get("protocol").cloned(), number(port));
    for (at, port) in ports.iter().enumerate() {
        if ports.iter().take(at).any(|other| place(other) == place(port)) {
            let (protocol, number) = place(port);
            let shown = json!({"Name": "", "Protocol": protocol, "AppProtocol": null, "Port": number, "TargetPort": 0, "NodePort": 0});
            causes.push(Cause::duplicate(format!("spec.ports[{at}]"), &shown));
        }
    }
}
