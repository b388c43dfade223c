//! Services: what they are given before anybody looks at them, and what is right and wrong about them.
//!
//! A real server gives out addresses and ports of the nodes first, and takes them back if the Service is refused. Here what
//! is given out follows from the Services that are stored.

mod addresses;
mod families;
mod linked;
mod node_ports;
mod rules;
mod traffic;
mod warnings;

use serde_json::{Value, json};

use super::error::Hitch;
use super::meta;
use super::store::State;
pub(super) use rules::{load_balancer, service};
pub(super) use warnings::warnings;

/// Gives a Service what it needs: families, an address, ports.
pub(super) fn begin(service: &mut Value, old: Option<&Value>, state: &State, dry_run: bool) -> Result<(), Hitch> {
    match old {
        None => addresses::list_first(service),
        Some(old) => {
            addresses::keep(service, old);
            node_ports::keep(service, old);
        }
    }
    families::settle(service, old)?;
    if old.is_none_or(is_name) {
        addresses::give(service, state, dry_run)?;
    }
    node_ports::give(service, old, state, dry_run)?;
    if let Some(old) = old {
        forget_type(service, old);
    }
    Ok(())
}

/// Takes away what a Service had only for being of the type that it was, unless somebody asked for something else.
fn forget_type(service: &mut Value, old: &Value) {
    let (was, is) = (meta::text(old, "/spec/type"), meta::text(service, "/spec/type").to_owned());
    let same =
        |service: &Value, field: &str| service.pointer("/spec").and_then(|spec| spec.get(field)) == part(old, field);
    let mut gone = Vec::new();
    if is_name(service) && !is_name(old) {
        if same(service, "clusterIP") && same(service, "clusterIPs") {
            gone.extend(["clusterIP", "clusterIPs"]);
        }
        gone.extend(["ipFamilies", "ipFamilyPolicy"].into_iter().filter(|field| same(service, field)));
    }
    node_ports::forget(service, old);
    if needs_health_check(old) && !needs_health_check(service) && same(service, "healthCheckNodePort") {
        gone.push("healthCheckNodePort");
    }
    if was == "LoadBalancer" && is != was {
        gone.extend(
            ["allocateLoadBalancerNodePorts", "loadBalancerClass"].into_iter().filter(|field| same(service, field)),
        );
    }
    if is_reached_from_outside(old) && !is_reached_from_outside(service) && same(service, "externalTrafficPolicy") {
        gone.push("externalTrafficPolicy");
    }
    let spec = meta::child(service, "spec");
    for field in gone {
        spec.shift_remove(field);
    }
    if is != "LoadBalancer" {
        meta::child(service, "status").insert("loadBalancer".into(), json!({}));
    }
}

/// Nothing is routed to a name, so what is stored about it is not shown.
pub(super) fn hide(service: &mut Value) {
    if is_name(service) {
        meta::child(service, "spec").shift_remove("internalTrafficPolicy");
    }
}

fn part<'a>(service: &'a Value, field: &str) -> Option<&'a Value> {
    service.get("spec").and_then(|spec| spec.get(field))
}

fn texts(service: &Value, field: &str) -> Vec<String> {
    meta::strings(part(service, field)).into_iter().map(str::to_owned).collect()
}

/// Whether a Service is only a name for something else.
fn is_name(service: &Value) -> bool {
    meta::text(service, "/spec/type") == "ExternalName"
}

fn is_headless(service: &Value) -> bool {
    texts(service, "clusterIPs") == ["None"]
}

/// Whether somebody else will write the addresses behind a Service that has none itself.
fn is_open(service: &Value) -> bool {
    let chosen = part(service, "selector").and_then(Value::as_object).is_some_and(|selector| !selector.is_empty());
    meta::text(service, "/spec/clusterIP") == "None" && !chosen
}

fn is_reached_from_outside(service: &Value) -> bool {
    match meta::text(service, "/spec/type") {
        "LoadBalancer" | "NodePort" => true,
        "ClusterIP" => !texts(service, "externalIPs").is_empty(),
        _ => false,
    }
}

/// Whether a load balancer must know which nodes have pods.
fn needs_health_check(service: &Value) -> bool {
    meta::text(service, "/spec/type") == "LoadBalancer" && meta::text(service, "/spec/externalTrafficPolicy") == "Local"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_becomes_a_name_gives_its_address_back() {
        let old = json!({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack"}, "status": {"loadBalancer": {}}});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ExternalName");
        forget_type(&mut new, &old);
        assert_eq!(new["spec"], json!({"type": "ExternalName"}));
        new["spec"]["clusterIP"] = json!("None");
        forget_type(&mut new, &old);
        assert_eq!(new["spec"]["clusterIP"], "None");
    }

    #[test]
    fn a_service_that_is_no_longer_reached_from_outside_gives_its_ports_back() {
        let old = json!({"spec": {"type": "LoadBalancer", "externalTrafficPolicy": "Local", "healthCheckNodePort": 30001,
            "allocateLoadBalancerNodePorts": true, "ports": [{"port": 80, "nodePort": 30000}]}});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ClusterIP");
        forget_type(&mut new, &old);
        assert_eq!(new["spec"], json!({"type": "ClusterIP", "ports": [{"port": 80}]}));
    }
}
