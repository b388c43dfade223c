//! The addresses of Services: who gets which, and what may become of them.

use std::net::{IpAddr, Ipv4Addr};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::error::Cause;
use super::meta;
use super::rules::immutable;
use super::store::{Key, State};
use super::validate::{self, NameRule};

/// Rules for one state of a Service.
pub(crate) fn check(object: &Value, causes: &mut Vec<Cause>) {
    let address = meta::text(object, "/spec/clusterIP");
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!(address), why));
    }
    let kind = meta::text(object, "/spec/type");
    let ingress = object.pointer("/status/loadBalancer/ingress").and_then(Value::as_array);
    if kind != "LoadBalancer" && ingress.is_some_and(|ingress| !ingress.is_empty()) {
        let why = "may only be used when `spec.type` is 'LoadBalancer'";
        causes.push(Cause::forbidden("status.loadBalancer.ingress", why));
    }
    let known = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !known.contains(&kind) {
        let allowed = known.map(|word| json!(word));
        causes.push(Cause::unsupported("spec.type", &json!(kind), &allowed));
    }
    let ports = object.pointer("/spec/ports").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let headless = meta::text(object, "/spec/clusterIP") == "None";
    if ports.is_empty() && kind != "ExternalName" && !headless {
        causes.push(Cause::required("spec.ports", ""));
    }
    for (at, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{at}]");
        if ports.len() > 1 && meta::text(port, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        }
        let name = meta::text(port, "/name");
        if !name.is_empty() && ports.iter().take(at).any(|other| meta::text(other, "/name") == name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
        if !name.is_empty()
            && let Some(cause) = validate::name(NameRule::Label, name)
        {
            causes.push(Cause { field: format!("{path}.name"), ..cause });
        }
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            causes.push(Cause::invalid(
                format!("{path}.port"),
                &json!(number),
                "must be between 1 and 65535, inclusive",
            ));
        }
        let protocol = port.get("protocol").cloned().unwrap_or_default();
        let known = ["SCTP", "TCP", "UDP"];
        if protocol.as_str().is_none_or(|protocol| !known.contains(&protocol)) {
            let allowed = known.map(|word| json!(word));
            causes.push(Cause::unsupported(&format!("{path}.protocol"), &protocol, &allowed));
        }
        if let Some(target) = port.get("targetPort").and_then(Value::as_i64).filter(|it| !(1..=65535).contains(it)) {
            let why = "must be between 1 and 65535, inclusive";
            causes.push(Cause::invalid(format!("{path}.targetPort"), &json!(target), why));
        }
    }
}

/// Gives a Service the lowest free address of 10.96/16. The first belongs to the API server.
pub(crate) fn allocate(service: &mut Value, state: &State, _: Timestamp) {
    let kind = meta::text(service, "/spec/type");
    let asked = meta::text(service, "/spec/clusterIP");
    if kind == "ExternalName" {
        return;
    }
    let address = if asked.is_empty() {
        free(state).map(|address| address.to_string()).unwrap_or_default()
    } else {
        asked.to_owned()
    };
    let spec = meta::child(service, "spec");
    spec.entry("ipFamilies").or_insert_with(|| json!(["IPv4"]));
    spec.entry("ipFamilyPolicy").or_insert_with(|| json!("SingleStack"));
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
}

/// The lowest address nobody has.
fn free(state: &State) -> Option<Ipv4Addr> {
    let first = 2;
    let mut taken = state.addresses().skip_while(|taken| *taken < IpAddr::V4(address(first))).peekable();
    (first..=u16::MAX).map(address).find(|address| taken.next_if_eq(&IpAddr::V4(*address)).is_none())
}

/// An address of 10.96/16.
fn address(host: u16) -> Ipv4Addr {
    let [third, fourth] = host.to_be_bytes();
    Ipv4Addr::new(10, 96, third, fourth)
}

/// No two Services have the same address.
pub(crate) fn check_free(service: &Value, state: &State, causes: &mut Vec<Cause>) {
    let address = meta::text(service, "/spec/clusterIP");
    let holder = address.parse().ok().and_then(|address| state.holder(address));
    let own =
        |key: &Key| (key.namespace.as_str(), key.name.as_str()) == (meta::namespace(service), meta::name(service));
    if holder.is_some_and(|(_, key)| !own(key)) {
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        causes.push(Cause::invalid("spec.clusterIPs", &json!([address]), &why));
    }
}

/// An update that leaves the address out keeps it.
pub(crate) fn keep(service: &mut Value, old: &Value) {
    if meta::text(service, "/spec/type") == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let kept = old.pointer("/spec").and_then(|spec| spec.get(field)).cloned();
        let spec = meta::child(service, "spec");
        if spec.get(field).is_none_or(|value| value.is_null() || value == "") {
            meta::set(spec, field, kept);
        }
    }
}

/// Only a Service that is, or becomes, a name for something else may lose its address.
pub(crate) fn check_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let external = |service| meta::text(service, "/spec/type") == "ExternalName";
    if !external(old) && !external(new) {
        immutable(old, new, "/spec/clusterIP", causes);
    }
}
