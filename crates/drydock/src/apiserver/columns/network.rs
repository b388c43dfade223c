//! Columns of the kinds that are about addresses: Services, endpoints, Ingresses.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::meta;
use super::{AGE, Column, NAME, count, list, listed, or_none, pairs, text, wide};

/// How many addresses are shown before "more".
const SHOWN: usize = 3;
/// How much is shown of the addresses of a load balancer.
const BALANCER_WIDTH: usize = 16;

pub(crate) static ENDPOINTS: &[Column] = &[
    NAME,
    text("Endpoints", |it, _| {
        let all: Vec<_> = list(it, "/subsets").iter().flat_map(subset).collect();
        json!(if all.is_empty() { "<none>".to_owned() } else { few(&all) })
    }),
    AGE,
];

pub(crate) static ENDPOINT_SLICES: &[Column] = &[
    NAME,
    text("AddressType", |it, _| json!(meta::text(it, "/addressType"))),
    text("Ports", |it, _| {
        let port = |port: &Value| match port.get("port").and_then(Value::as_i64) {
            Some(number) => number.to_string(),
            None => port.get("name").and_then(Value::as_str).unwrap_or("*").to_owned(),
        };
        unset(&list(it, "/ports").iter().map(port).collect::<Vec<_>>())
    }),
    text("Endpoints", |it, _| {
        let addresses = list(it, "/endpoints").iter().flat_map(|endpoint| meta::strings(endpoint.get("addresses")));
        unset(&addresses.map(str::to_owned).collect::<Vec<_>>())
    }),
    AGE,
];

pub(crate) static INGRESSES: &[Column] = &[
    NAME,
    text("Class", |it, _| json!(or_none(meta::text(it, "/spec/ingressClassName")))),
    text("Hosts", |it, _| {
        let hosts =
            list(it, "/spec/rules").iter().map(|rule| meta::text(rule, "/host")).filter(|host| !host.is_empty());
        let hosts: Vec<_> = hosts.map(str::to_owned).collect();
        json!(if hosts.is_empty() { "*".to_owned() } else { few(&hosts) })
    }),
    text("Address", |it, _| {
        let all: BTreeSet<_> = list(it, "/status/loadBalancer/ingress").iter().map(balancer).collect();
        json!(all.into_iter().collect::<Vec<_>>().join(","))
    }),
    text("Ports", |it, _| json!(if list(it, "/spec/tls").is_empty() { "80" } else { "80, 443" })),
    AGE,
];

pub(crate) static SERVICES: &[Column] = &[
    NAME,
    text("Type", |it, _| json!(meta::text(it, "/spec/type"))),
    text("Cluster-IP", |it, _| json!(or_none(meta::text(it, "/spec/clusterIP")))),
    text("External-IP", |it, _| external_addresses(it)),
    text("Port(s)", |it, _| {
        listed(list(it, "/spec/ports").iter().map(|port| {
            let node = count(port, "/nodePort").as_i64().filter(|node| *node > 0);
            let node = node.map(|node| format!(":{node}")).unwrap_or_default();
            format!("{}{node}/{}", count(port, "/port"), meta::text(port, "/protocol"))
        }))
    }),
    AGE,
    wide(text("Selector", |it, _| pairs(it, "/spec/selector"))),
];

/// Every address of a subset with every port.
fn subset(subset: &Value) -> Vec<String> {
    let addresses = list(subset, "/addresses").iter().map(|address| meta::text(address, "/ip"));
    let ports = list(subset, "/ports");
    if ports.is_empty() {
        return addresses.map(str::to_owned).collect();
    }
    let with = |port: &Value| {
        let number = count(port, "/port");
        addresses.clone().map(|address| format!("{address}:{number}")).collect::<Vec<_>>()
    };
    ports.iter().flat_map(with).collect()
}

/// The first few, and how many more there are.
fn few(all: &[String]) -> String {
    match all.get(..SHOWN) {
        Some(first) if all.len() > SHOWN => format!("{} + {} more...", first.join(","), all.len() - SHOWN),
        _ => all.join(","),
    }
}

fn unset(all: &[String]) -> Value {
    json!(if all.is_empty() { "<unset>".to_owned() } else { few(all) })
}

fn balancer(ingress: &Value) -> &str {
    match meta::text(ingress, "/ip") {
        "" => meta::text(ingress, "/hostname"),
        ip => ip,
    }
}

fn external_addresses(service: &Value) -> Value {
    let given = list(service, "/spec/externalIPs").iter().filter_map(Value::as_str);
    match meta::text(service, "/spec/type") {
        "ExternalName" => json!(meta::text(service, "/spec/externalName")),
        "LoadBalancer" => {
            let ingress: BTreeSet<_> = list(service, "/status/loadBalancer/ingress").iter().map(balancer).collect();
            let balanced = ingress.into_iter().collect::<Vec<_>>().join(",");
            // Long names of balancers are cut, also where there would be room for them.
            let balanced = match balanced.get(..BALANCER_WIDTH - 3) {
                Some(head) if balanced.len() > BALANCER_WIDTH => format!("{head}..."),
                _ => balanced,
            };
            let balanced = (!balanced.is_empty()).then_some(balanced.as_str());
            let all: Vec<_> = balanced.into_iter().chain(given).collect();
            if all.is_empty() { json!("<pending>") } else { json!(all.join(",")) }
        }
        _ => listed(given),
    }
}
