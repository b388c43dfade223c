//! What is wrong with what a pod shares with its node, and with the names it knows.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::dns_names;
use super::error::Cause;
use super::meta;
use super::pod_rules::{given, list};

/// Rules for ports of the node, each of which can be taken once.
pub(super) fn host_ports(containers: &[Value], path: &str, causes: &mut Vec<Cause>) {
    let mut taken = Vec::new();
    for (at, container) in containers.iter().enumerate() {
        for (number, port) in list(container, "ports").iter().enumerate() {
            let wanted = port.get("hostPort").and_then(Value::as_i64).unwrap_or(0);
            let shown = format!("{}/{}/{wanted}", meta::text(port, "/protocol"), meta::text(port, "/hostIP"));
            if wanted == 0 {
                continue;
            }
            if taken.contains(&shown) {
                causes.push(Cause::duplicate(format!("{path}[{at}].ports[{number}].hostPort"), &json!(shown)));
            } else {
                taken.push(shown);
            }
        }
    }
}

/// Rules for a pod in the network of its node, where a port is a port of the node. A template need not say so.
pub(super) fn host_network(spec: &Value, path: &str, is_pod: bool, causes: &mut Vec<Cause>) {
    if spec.get("hostNetwork") != Some(&Value::Bool(true)) {
        return;
    }
    for (at, container) in list(spec, "containers").iter().enumerate() {
        for (port_at, port) in list(container, "ports").iter().enumerate() {
            let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or(0);
            let wanted = number("hostPort");
            if (is_pod || wanted != 0) && wanted != number("containerPort") {
                let place = format!("{path}.containers[{at}].ports[{port_at}].hostPort");
                let why = "must match `containerPort` when `hostNetwork` is true";
                causes.push(Cause::invalid(place, &json!(wanted), why));
            }
        }
    }
}

/// Rules for a pod that does not share the users of its node.
pub(super) fn own_users(spec: &Value, path: &str, containers: &[(String, &Value)], causes: &mut Vec<Cause>) {
    if spec.get("hostUsers") != Some(&Value::Bool(false)) {
        return;
    }
    let why = "when `hostUsers` is false";
    for (field, told) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if spec.get(field) == Some(&Value::Bool(true)) {
            causes.push(Cause::forbidden(format!("{path}.{told}"), why));
        }
    }
    for (path, container) in containers {
        if !list(container, "volumeDevices").is_empty() {
            causes.push(Cause::forbidden(format!("{path}.volumeDevices"), why));
        }
    }
}

/// Rules for a name that a pod has instead of its own.
pub(super) fn hostname_override(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let Some(name) = given(spec, "hostnameOverride").and_then(Value::as_str) else { return };
    let place = format!("{path}.hostnameOverride");
    for field in ["setHostnameAsFQDN", "hostNetwork"] {
        if spec.get(field) == Some(&Value::Bool(true)) {
            let why = format!("may not be specified when {field} is true");
            causes.push(Cause::forbidden(place.clone(), &why));
        }
    }
    if name.len() > 64 {
        causes.push(Cause::too_long(place.clone(), "may not be more than 64 bytes"));
    }
    for why in dns_names::no_subdomain(name) {
        causes.push(Cause::invalid(place.clone(), &json!(name), why));
    }
}

/// Rules for names of hosts that only this pod knows.
pub(super) fn host_aliases(aliases: &[Value], path: &str, causes: &mut Vec<Cause>) {
    for (at, alias) in aliases.iter().enumerate() {
        address(meta::text(alias, "/ip"), &format!("{path}[{at}].ip"), causes);
        for (number, name) in meta::strings(alias.get("hostnames")).iter().enumerate() {
            let place = format!("{path}[{at}].hostnames[{number}]");
            let wrong = dns_names::no_subdomain(name);
            causes.extend(wrong.iter().map(|why| Cause::invalid(place.clone(), &json!(name), why)));
        }
    }
}

/// Rules for whom a pod asks for names.
pub(super) fn dns(spec: &Value, path: &str, causes: &mut Vec<Cause>) {
    let path = format!("{path}.dnsConfig");
    let config = given(spec, "dnsConfig");
    let servers = config.map(|config| meta::strings(config.get("nameservers"))).unwrap_or_default();
    if meta::text(spec, "/dnsPolicy") == "None" && servers.is_empty() {
        let (place, why) = if config.is_none() {
            (path, "must provide `dnsConfig` when `dnsPolicy` is None")
        } else {
            (format!("{path}.nameservers"), "must provide at least one DNS nameserver when `dnsPolicy` is None")
        };
        causes.push(Cause::required(place, why));
        return;
    }
    let Some(config) = config else { return };
    if servers.len() > 3 {
        let why = "must not have more than 3 nameservers";
        causes.push(Cause::invalid(format!("{path}.nameservers"), &json!(servers), why));
    }
    for (at, server) in servers.iter().enumerate() {
        address(server, &format!("{path}.nameservers[{at}]"), causes);
    }
    let (searches, place) = (meta::strings(config.get("searches")), format!("{path}.searches"));
    if searches.len() > 32 {
        causes.push(Cause::invalid(place.clone(), &json!(searches), "must not have more than 32 search paths"));
    }
    if searches.join(" ").len() > 2048 {
        let why = "must not have more than 2048 characters (including spaces) in the search list";
        causes.push(Cause::invalid(place.clone(), &json!(searches), why));
    }
    for (at, search) in searches.iter().enumerate().filter(|(_, search)| **search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let wrong = dns_names::no_search_domain(search);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{place}[{at}]"), &json!(search), why)));
    }
    for (at, option) in list(config, "options").iter().enumerate() {
        if meta::text(option, "/name").is_empty() {
            causes.push(Cause::required(format!("{path}.options[{at}]"), "must not be empty"));
        }
    }
}

/// Rules for an address that nobody could read in two ways.
fn address(text: &str, place: &str, causes: &mut Vec<Cause>) {
    let why = match text.parse::<IpAddr>() {
        Ok(IpAddr::V6(address)) if address.to_ipv4_mapped().is_some() => "must not be an IPv4-mapped IPv6 address",
        Ok(_) => return,
        Err(_) if without_zeros(text).is_some() => "must not have leading 0s",
        Err(_) => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
    };
    causes.push(Cause::invalid(place, &json!(text), why));
}

/// An address whose numbers begin with zeros, which old programs took for octal and others did not.
fn without_zeros(text: &str) -> Option<Ipv4Addr> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    text.split('.').map(plain).collect::<Vec<_>>().join(".").parse().ok()
}
