//! The addresses of Services: who gets which, and what may become of them.

use std::net::{IpAddr, Ipv4Addr};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::error::Cause;
use super::meta;
use super::store::{Key, State};
use super::validate::{self, NameRule};

/// How all addresses of Services begin.
const RANGE: [u8; 2] = [10, 96];

/// Gives a Service the lowest free address of 10.96/16. The first belongs to the API server.
pub(crate) fn allocate(service: &mut Value, state: &State, _: Timestamp) {
    let kind = meta::text(service, "/spec/type");
    let asked = meta::text(service, "/spec/clusterIP");
    if kind == "ExternalName" {
        return drop_policy(service);
    }
    let address = if asked.is_empty() {
        free(state).map(|address| address.to_string()).unwrap_or_default()
    } else {
        asked.to_owned()
    };
    let spec = meta::child(service, "spec");
    // Nobody knows what addresses somebody else will write.
    let open = address == "None" && spec.get("selector").is_none_or(|it| it.as_object().is_none_or(Map::is_empty));
    if open && !spec.contains_key("ipFamilies") && !spec.contains_key("ipFamilyPolicy") {
        spec.insert("ipFamilies".into(), json!(["IPv4", "IPv6"]));
        spec.insert("ipFamilyPolicy".into(), json!("RequireDualStack"));
    }
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
    let [first, second] = RANGE;
    Ipv4Addr::new(first, second, third, fourth)
}

/// An address is given out before anybody looks at the Service, and belongs to a Service that has a name.
pub(crate) fn check_owner(service: &Value, causes: &mut Vec<Cause>) {
    let address = meta::text(service, "/spec/clusterIP");
    let wrong = match meta::name(service) {
        "" => Some(Cause::required("", "")),
        name => validate::name(NameRule::PathSegment, name),
    };
    if let Some(wrong) = wrong.filter(|_| address.parse::<Ipv4Addr>().is_ok()) {
        let wrong = wrong.message;
        let why = format!(
            "failed to allocate IP: IPAddress.networking.k8s.io {address:?} is invalid: spec.parentRef.name: {wrong}"
        );
        causes.push(Cause::invalid("spec.clusterIPs", &json!([""]), &why));
    }
}

/// No two Services have the same address. Where nothing is given out it is refused in other words.
pub(crate) fn check_free(service: &Value, state: &State, dry_run: bool, causes: &mut Vec<Cause>) {
    let address = meta::text(service, "/spec/clusterIP");
    if address.parse::<Ipv4Addr>().is_ok_and(|address| address.octets()[..2] != RANGE) {
        let [first, second] = RANGE;
        let why = if dry_run {
            format!(
                "failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. The range of valid \
                 IPs is {first}.{second}.0.0/16"
            )
        } else {
            format!("failed to allocate IP {address}: the provided network does not match the current range")
        };
        causes.push(Cause::invalid("spec.clusterIPs", &json!([address]), &why));
    }
    let holder = address.parse().ok().and_then(|address| state.holder(address));
    let own =
        |key: &Key| (key.namespace.as_str(), key.name.as_str()) == (meta::namespace(service), meta::name(service));
    if holder.is_some_and(|(_, key)| !own(key)) {
        let why = format!("failed to allocate IP {address}: provided IP is already allocated");
        causes.push(Cause::invalid("spec.clusterIPs", &json!([address]), &why));
    }
}

/// An update that leaves the address out keeps it. A Service that becomes a name for something else gives it back, and one
/// that no longer is gets one.
pub(crate) fn keep(service: &mut Value, old: &Value, state: &State, now: Timestamp) {
    match (is_name(old), is_name(service)) {
        (false, true) => give_back(service, old),
        (true, true) => drop_policy(service),
        (true, false) => return allocate(service, state, now),
        (false, false) => {}
    }
    if is_name(service) {
        return;
    }
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        let kept = old.pointer("/spec").and_then(|spec| spec.get(field)).cloned();
        let spec = meta::child(service, "spec");
        // The policy is told from none even if it is empty.
        let empty = |value: &Value| value.is_null() || value == "" && field != "ipFamilyPolicy";
        if spec.get(field).is_none_or(empty) {
            meta::set(spec, field, kept);
        }
    }
    // Whoever changes the first address means the list too.
    let address = meta::text(service, "/spec/clusterIP").to_owned();
    if !address.is_empty() && address != meta::text(old, "/spec/clusterIP") {
        meta::child(service, "spec").insert("clusterIPs".into(), json!([address]));
    }
}

/// Whether a Service is only a name for something else.
fn is_name(service: &Value) -> bool {
    meta::text(service, "/spec/type") == "ExternalName"
}

/// What a Service has that was an address before, as far as nobody asked for something else.
fn give_back(service: &mut Value, old: &Value) {
    let address = meta::text(service, "/spec/clusterIP");
    let same = address.is_empty() || address == meta::text(old, "/spec/clusterIP");
    let spec = meta::child(service, "spec");
    if same {
        spec.shift_remove("clusterIP");
        spec.shift_remove("clusterIPs");
    }
    for field in ["ipFamilies", "ipFamilyPolicy"] {
        if spec.get(field) == old.pointer("/spec").and_then(|spec| spec.get(field)) {
            spec.shift_remove(field);
        }
    }
    drop_policy(service);
}

/// Nothing is routed to a name.
fn drop_policy(service: &mut Value) {
    meta::child(service, "spec").shift_remove("internalTrafficPolicy");
}

/// Only a Service that is, or becomes, a name for something else may lose its address.
pub(crate) fn check_stays(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    let external = |service| meta::text(service, "/spec/type") == "ExternalName";
    let address = |service| meta::text(service, "/spec/clusterIP");
    let other = address(old) != address(new) && (address(new) == "None" || address(new).parse::<IpAddr>().is_ok());
    if other && !address(old).is_empty() && !external(old) && !external(new) {
        causes.push(Cause::invalid("spec.clusterIPs[0]", &json!([address(new)]), "may not change once set"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_that_becomes_a_name_gives_its_address_back() {
        let old = json!({"spec": {"type": "ClusterIP", "clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"],
            "ipFamilies": ["IPv4"], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster"}});
        let mut new = old.clone();
        new["spec"]["type"] = json!("ExternalName");
        give_back(&mut new, &old);
        assert_eq!(new, json!({"spec": {"type": "ExternalName"}}));
        new["spec"]["clusterIP"] = json!("None");
        give_back(&mut new, &old);
        assert_eq!(new["spec"]["clusterIP"], "None");
    }
}
