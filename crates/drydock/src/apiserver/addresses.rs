//! The addresses of Services: who gets which, and what may become of them.

use std::net::IpAddr;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::builtin::immutable;
use super::error::Cause;
use super::meta;
use super::store::State;

/// Rules for one state of a Service.
pub(crate) fn check(object: &Value, causes: &mut Vec<Cause>) {
    let address = meta::text(object, "/spec/clusterIP");
    if !matches!(address, "" | "None") && address.parse::<IpAddr>().is_err() {
        let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!(address), why));
    }
    let kind = meta::text(object, "/spec/type");
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
        let number = port.get("port").and_then(Value::as_i64).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            causes.push(Cause::invalid(
                format!("{path}.port"),
                &json!(number),
                "must be between 1 and 65535, inclusive",
            ));
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
        let taken: std::collections::BTreeSet<_> =
            state.list("services", None).map(|(_, other)| meta::text(other, "/spec/clusterIP").to_owned()).collect();
        let free = (2_u16..=u16::MAX).map(|host| format!("10.96.{}.{}", host >> 8, host & 0xff));
        free.into_iter().find(|address| !taken.contains(address)).unwrap_or_default()
    } else {
        asked.to_owned()
    };
    let spec = meta::child(service, "spec");
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
}

/// No two Services have the same address.
pub(crate) fn check_free(service: &Value, state: &State, causes: &mut Vec<Cause>) {
    let address = meta::text(service, "/spec/clusterIP");
    let id = (meta::namespace(service), meta::name(service));
    let taken = state.list("services", None).any(|(_, other)| {
        (meta::namespace(other), meta::name(other)) != id && meta::text(other, "/spec/clusterIP") == address
    });
    if !matches!(address, "" | "None") && taken {
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        causes.push(Cause::invalid("spec.clusterIPs", &json!([address]), &why));
    }
}

/// An update that leaves the address out keeps it.
pub(crate) fn keep(service: &mut Value, old: &Value) {
    if meta::text(service, "/spec/type") == "ExternalName" {
        return;
    }
    for field in ["clusterIP", "clusterIPs"] {
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
