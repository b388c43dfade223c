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

/// So many may there be in a slice, of an endpoint, and of hints to one.
const MOST_ENDPOINTS: usize = 1000;
const MOST_PORTS: usize = 20_000;
const MOST_ADDRESSES: usize = 100;
const MOST_TOPOLOGY: usize = 16;
const MOST_HINTS: usize = 8;

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
    let endpoints = list(slice, "endpoints");
    if endpoints.len() > MOST_ENDPOINTS {
        causes.push(Cause::too_many("endpoints", endpoints.len(), MOST_ENDPOINTS));
        return;
    }
    for (at, endpoint) in endpoints.iter().enumerate() {
        one(endpoint, kind, &format!("endpoints[{at}]"), &known, causes);
    }
}

fn ports(slice: &Value, causes: &mut Vec<Cause>) {
    let mut names = BTreeSet::new();
    let ports = list(slice, "ports");
    if ports.len() > MOST_PORTS {
        causes.push(Cause::too_many("ports", ports.len(), MOST_PORTS));
        return;
    }
    for (at, port) in ports.iter().enumerate() {
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
    if addresses.len() > MOST_ADDRESSES {
        causes.push(Cause::too_many(format!("{path}.addresses"), addresses.len(), MOST_ADDRESSES));
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
    let topology = endpoint.get("deprecatedTopology");
    let labels = topology.and_then(Value::as_object).map_or(0, serde_json::Map::len);
    if labels > MOST_TOPOLOGY {
        causes.push(Cause::too_many(format!("{path}.deprecatedTopology"), labels, MOST_TOPOLOGY));
    }
    validate::labels(topology, &format!("{path}.deprecatedTopology"), causes);
    let host = endpoint.get("hostname").and_then(Value::as_str);
    for why in host.map(dns_names::no_label).unwrap_or_default() {
        causes.push(Cause::invalid(format!("{path}.hostname"), &endpoint["hostname"], why));
    }
    if let Some(hints) = endpoint.get("hints") {
        self::hints(hints, &format!("{path}.hints"), causes);
    }
}

/// Zones and nodes that an endpoint is best for. Who names too many of the one is not told about the other.
fn hints(hints: &Value, path: &str, causes: &mut Vec<Cause>) {
    type Rule = fn(&str) -> Vec<&'static str>;
    let kinds: [(&str, Rule); 2] = [("forZones", validate::no_label_value), ("forNodes", dns_names::no_subdomain)];
    for (kind, rule) in kinds {
        let named = list(hints, kind);
        if named.len() > MOST_HINTS {
            causes.push(Cause::too_many(format!("{path}.{kind}"), named.len(), MOST_HINTS));
            return;
        }
        let mut seen = BTreeSet::new();
        for (at, one) in named.iter().enumerate() {
            let (place, name) = (format!("{path}.{kind}[{at}].name"), meta::text(one, "/name"));
            if !seen.insert(name) {
                causes.push(Cause::duplicate(place.clone(), &json!(name)));
            }
            causes.extend(rule(name).into_iter().map(|why| Cause::invalid(place.clone(), &json!(name), why)));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(endpoints: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        let object = json!({"addressType": "IPv4", "endpoints": endpoints});
        slice(None, &object, &mut causes);
        causes.iter().map(Cause::line).collect()
    }

    #[test]
    fn there_may_be_so_many_endpoints_and_addresses() {
        let endpoint = json!({"addresses": ["10.0.0.1"]});
        assert_eq!(wrong(&json!(vec![endpoint.clone(); 1000])), Vec::<String>::new());
        assert_eq!(wrong(&json!(vec![endpoint; 1001])), ["endpoints: Too many: 1001: must have at most 1000 items"]);
        let addresses: Vec<_> = (0..101).map(|at| format!("10.0.0.{at}")).collect();
        assert_eq!(
            wrong(&json!([{"addresses": addresses}])),
            ["endpoints[0].addresses: Too many: 101: must have at most 100 items"]
        );
    }

    #[test]
    fn hints_name_places_that_can_be_and_each_once() {
        let hints = json!({"forZones": [{"name": "a"}, {"name": "a"}, {"name": "b c"}], "forNodes": [{"name": "Up"}]});
        let said = wrong(&json!([{"addresses": ["10.0.0.1"], "hints": hints}]));
        let fields: Vec<_> = said.iter().map(|line| line.split(": ").take(2).collect::<Vec<_>>().join(": ")).collect();
        assert_eq!(
            fields,
            [
                "endpoints[0].hints.forZones[1].name: Duplicate value",
                "endpoints[0].hints.forZones[2].name: Invalid value",
                "endpoints[0].hints.forNodes[0].name: Invalid value",
            ]
        );
    }
}
