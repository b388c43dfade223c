//! What is right and wrong about the endpoints of a Service.

use std::collections::BTreeSet;
use std::net::IpAddr;

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::ip_rules::{address, special};
use super::meta;
use super::pod_rules::list;
use super::validate;

/// Rules for a slice, new or changed. Addresses that were there are not asked how they are written.
pub(super) fn slice(old: Option<&Value>, slice: &Value, causes: &mut Vec<Cause>) {
    let kind = meta::text(slice, "/addressType");
    let kinds = ["FQDN", "IPv4", "IPv6"];
    if kind.is_empty() {
        causes.push(Cause::required("addressType", ""));
    } else if !kinds.contains(&kind) {
        causes.push(Cause::unsupported("addressType", &json!(kind), &kinds.map(Value::from)));
    }
    ports(slice, causes);
    let known: Vec<String> = old
        .into_iter()
        .flat_map(|old| list(old, "endpoints"))
        .flat_map(|endpoint| meta::strings(endpoint.get("addresses")))
        .map(str::to_owned)
        .collect();
    for (at, endpoint) in list(slice, "endpoints").iter().enumerate() {
        one(endpoint, kind, &format!("endpoints[{at}]"), &known, causes);
    }
}

fn ports(slice: &Value, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    for (at, port) in list(slice, "ports").iter().enumerate() {
        let path = |field: &str| format!("ports[{at}].{field}");
        let name = meta::text(port, "/name");
        if !name.is_empty() {
            let wrong = dns_names::no_label(name);
            causes.extend(wrong.iter().map(|why| Cause::invalid(path("name"), &json!(name), why)));
        }
        if !names.insert(name) {
            causes.push(Cause::duplicate(path("name"), &json!(name)));
        }
        let protocols = ["SCTP", "TCP", "UDP"];
        match meta::text(port, "/protocol") {
            "" => causes.push(Cause::required(path("protocol"), "")),
            known if protocols.contains(&known) => {}
            other => causes.push(Cause::unsupported(&path("protocol"), &json!(other), &protocols.map(Value::from))),
        }
        if let Some(said) = port.get("appProtocol").and_then(Value::as_str) {
            validate::qualified_key(said, &path("appProtocol"), causes);
        }
    }
}

fn one(endpoint: &Value, kind: &str, path: &str, known: &[String], causes: &mut Vec<Cause>) {
    let addresses = meta::strings(endpoint.get("addresses"));
    if addresses.is_empty() {
        causes.push(Cause::required(format!("{path}.addresses"), "must contain at least 1 address"));
    }
    for (at, text) in addresses.into_iter().enumerate() {
        let place = format!("{path}.addresses[{at}]");
        match kind {
            "IPv4" | "IPv6" => numeric(text, kind, &place, known, causes),
            "FQDN" => domain(text, &place, causes),
            _ => {}
        }
    }
    let node = endpoint.get("nodeName").and_then(Value::as_str);
    for why in node.map(dns_names::no_subdomain).unwrap_or_default() {
        causes.push(Cause::invalid(format!("{path}.nodeName"), &endpoint["nodeName"], why));
    }
    validate::labels(endpoint.get("deprecatedTopology"), &format!("{path}.deprecatedTopology"), causes);
    let host = endpoint.get("hostname").and_then(Value::as_str);
    for why in host.map(dns_names::no_label).unwrap_or_default() {
        causes.push(Cause::invalid(format!("{path}.hostname"), &endpoint["hostname"], why));
    }
}

fn numeric(text: &str, kind: &str, place: &str, known: &[String], causes: &mut Vec<Cause>) {
    if known.iter().any(|known| known == text) {
        return;
    }
    let before = causes.len();
    address(place, text, known, causes);
    if let (Ok(read), true) = (text.parse::<IpAddr>(), causes.len() == before) {
        if read.is_ipv4() != (kind == "IPv4") {
            let list = place.rsplit_once('[').map_or(place, |(list, _)| list);
            causes.push(Cause::invalid(list, &json!(text), &format!("must be an {kind} address")));
        } else if read.to_string() != text {
            let why = format!("must be in canonical form ({:?})", read.to_string());
            causes.push(Cause::invalid(place, &json!(text), &why));
        }
    }
    if causes.len() == before || text.parse::<IpAddr>().is_ok() {
        special(place, text, causes);
    }
}

fn domain(text: &str, place: &str, causes: &mut Vec<Cause>) {
    let wrong = dns_names::no_subdomain(text);
    causes.extend(wrong.iter().map(|why| Cause::invalid(place, &json!(text), why)));
    if wrong.is_empty() && !text.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        causes.push(Cause::invalid(place, &json!(text), why));
    }
}

/// The addresses of a slice stay of one type.
pub(super) fn type_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let kind = |slice: &Value| Value::from(meta::text(slice, "/addressType"));
    if kind(old) != kind(new) {
        causes.push(Cause::invalid("addressType", &kind(new), "field is immutable"));
    }
}

/// Go writes out what is empty.
pub(super) fn show_empty(slice: &mut Value) {
    let members = meta::members(slice);
    for list in ["endpoints", "ports"] {
        members.entry(list).or_insert(Value::Null);
    }
    for endpoint in members.get_mut("endpoints").and_then(Value::as_array_mut).into_iter().flatten() {
        meta::child(endpoint, "conditions");
    }
}
