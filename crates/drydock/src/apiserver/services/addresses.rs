//! The addresses of Services: who gets which, and what becomes of them when a Service changes.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::{Value, json};

use super::{is_name, part, texts};
use crate::apiserver::error::{Cause, Hitch};
use crate::apiserver::ip_rules::sloppy;
use crate::apiserver::meta;
use crate::apiserver::store::State;
use crate::apiserver::validate::{self, NameRule};

/// How all addresses of Services begin.
const RANGE: [u8; 2] = [10, 96];

/// Whoever names one address means a list of one.
pub(super) fn list_first(service: &mut Value) {
    let address = meta::text(service, "/spec/clusterIP").to_owned();
    if !address.is_empty() && texts(service, "clusterIPs").is_empty() {
        meta::child(service, "spec").insert("clusterIPs".into(), json!([address]));
    }
}

/// An update that leaves the address out keeps it, and one that changes the first address means the list too.
pub(super) fn keep(service: &mut Value, old: &Value) {
    if !is_name(old) && !is_name(service) {
        for field in ["clusterIP", "clusterIPs"] {
            let nothing = |value: &Value| value.is_null() || value == "" || value.as_array().is_some_and(Vec::is_empty);
            if part(service, field).is_none_or(nothing) {
                meta::set(meta::child(service, "spec"), field, part(old, field).cloned());
            }
        }
    }
    let (was, is) = (meta::text(old, "/spec/clusterIP"), meta::text(service, "/spec/clusterIP").to_owned());
    let (list, before) = (texts(service, "clusterIPs"), texts(old, "clusterIPs"));
    let spec = meta::child(service, "spec");
    if was == is && list.is_empty() && !before.is_empty() {
        spec.insert("clusterIPs".into(), json!(before));
    } else if was != is && list == before {
        meta::set(spec, "clusterIPs", (!is.is_empty()).then(|| json!([is])));
    }
}

/// Gives a Service the address it asks for, or a free one of 10.96/16.
pub(super) fn give(service: &mut Value, state: &State, dry_run: bool) -> Result<(), Hitch> {
    let asked = texts(service, "clusterIPs").into_iter().next().unwrap_or_default();
    if is_name(service) || asked == "None" {
        return Ok(());
    }
    let address = if asked.is_empty() {
        // A rehearsal is shown what nobody can have.
        let free = if dry_run { Some(address(0)) } else { free(state) };
        let Some(address) = free else {
            let name = meta::name(service);
            return Err(Hitch::Failed(format!("failed to allocate a serviceIP for Service {name:?}: range is full")));
        };
        ownerless(service, &address.to_string(), "", dry_run)?;
        address.to_string()
    } else {
        check_asked(service, &asked, state, dry_run)?;
        asked
    };
    let spec = meta::child(service, "spec");
    spec.insert("clusterIPs".into(), json!([address]));
    spec.insert("clusterIP".into(), address.into());
    Ok(())
}

/// The next address that nobody has. A real server draws one, so what somebody had a moment ago is not given out again soon.
fn free(state: &State) -> Option<Ipv4Addr> {
    let last = state.last_address.get();
    // The first and the last are no addresses, the second is the API server's.
    let host =
        (last..u16::MAX).skip(1).chain(2..=last).find(|host| state.holder(IpAddr::V4(address(*host))).is_none())?;
    state.last_address.set(host);
    Some(address(host))
}

/// An address of 10.96/16.
fn address(host: u16) -> Ipv4Addr {
    let [third, fourth] = host.to_be_bytes();
    let [first, second] = RANGE;
    Ipv4Addr::new(first, second, third, fourth)
}

/// An address is given out before anybody looks at the Service, and belongs to a Service that has a name.
fn ownerless(service: &Value, address: &str, asked: &str, dry_run: bool) -> Result<(), Hitch> {
    let wrong = match meta::name(service) {
        "" => Some(Cause::required("", "")),
        name => validate::name(NameRule::PathSegment, name),
    };
    match wrong.filter(|_| !dry_run) {
        None => Ok(()),
        Some(wrong) => {
            let wrong = wrong.message;
            let what = format!("IPAddress.networking.k8s.io {address:?} is invalid: spec.parentRef.name: {wrong}");
            refuse(asked, &what)
        }
    }
}

/// No two Services have the same address. Where nothing is given out it is refused in other words.
fn check_asked(service: &Value, asked: &str, state: &State, dry_run: bool) -> Result<(), Hitch> {
    let asked_for = sloppy(asked);
    let [none, api_server, broadcast] = [0, 1, u16::MAX].map(|host| IpAddr::V4(address(host)));
    let in_range = |address: IpAddr| matches!(address, IpAddr::V4(address) if address.octets()[..2] == RANGE);
    if asked_for.is_some_and(|address| !in_range(address) || !dry_run && [none, broadcast].contains(&address)) {
        let [first, second] = RANGE;
        let why = if dry_run {
            format!(
                "the provided IP ({asked}) is not in the valid range. The range of valid IPs is {first}.{second}.0.0/16"
            )
        } else {
            "the provided network does not match the current range".to_owned()
        };
        return refuse(asked, &why);
    }
    ownerless(service, asked, asked, dry_run)?;
    if asked_for.is_some_and(|address| address == api_server || state.holder(address).is_some()) {
        return refuse(asked, "provided IP is already allocated");
    }
    Ok(())
}

fn refuse(asked: &str, why: &str) -> Result<(), Hitch> {
    let what = if asked.is_empty() { String::new() } else { format!(" {asked}") };
    let why = format!("failed to allocate IP{what}: {why}");
    Err(Hitch::Invalid(vec![Cause::invalid("spec.clusterIPs", &json!([asked]), &why)]))
}
