//! The families of a Service's addresses. This cluster has one, as most do: who needs both is refused.

use serde_json::{Value, json};

use super::linked::linked;
use super::{is_name, is_open, part, texts};
use crate::apiserver::error::{Cause, Hitch};
use crate::apiserver::ip_rules::sloppy;
use crate::apiserver::meta;

/// The family of this cluster.
const OWN: &str = "IPv4";
const OTHER: &str = "IPv6";

const SINGLE: &str = "SingleStack";
const PREFER: &str = "PreferDualStack";
const REQUIRE: &str = "RequireDualStack";

/// Settles which families a Service has, and refuses what cannot be.
pub(super) fn settle(service: &mut Value, old: Option<&Value>) -> Result<(), Hitch> {
    if is_name(service) || old.is_some_and(|old| prefers_both_as_before(service, old)) {
        return Ok(());
    }
    let open = is_open(service);
    let default = if open { REQUIRE } else { SINGLE };
    let policy = policy(service).or_else(|| old.and_then(policy)).unwrap_or(default).to_owned();
    meta::child(service, "spec").insert("ipFamilyPolicy".into(), policy.clone().into());
    let mut causes = Vec::new();
    linked(old, service, &mut causes);
    Hitch::unless_right(causes)?;
    let (mut addresses, mut families) = (texts(service, "clusterIPs"), texts(service, "ipFamilies"));
    let mut causes = Vec::new();
    if let Some(old) = old {
        release(&policy, old, &mut addresses, &mut families, &mut causes);
    }
    if policy == SINGLE {
        for (list, what) in [(&addresses, "cluster IPs"), (&families, "IP families")] {
            let why = format!("must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified");
            causes.extend((list.len() == 2).then(|| about_policy(&policy, &why)));
        }
    }
    let shown = json!(addresses);
    for (at, address) in addresses.iter().enumerate().take_while(|(_, address)| *address != "None") {
        let family = if sloppy(address).is_some_and(|address| address.is_ipv6()) { OTHER } else { OWN };
        if at < families.len() {
            continue;
        }
        if family == OWN {
            families.push(family.to_owned());
        } else {
            let why = format!("{family} is not configured on this cluster");
            causes.push(Cause::invalid(format!("spec.clusterIPs[{at}]"), &shown, &why));
        }
    }
    Hitch::unless_right(causes)?;
    if !open {
        Hitch::unless_right(unavailable(&policy, &families))?;
    }
    if families.is_empty() {
        families.push(OWN.to_owned());
    }
    // Nobody knows of which families the addresses are that somebody else will write.
    if let (true, [one]) = (open && policy != SINGLE, families.as_slice()) {
        let other = if one == OWN { OTHER } else { OWN };
        families.push(other.to_owned());
    }
    let spec = meta::child(service, "spec");
    spec.insert("ipFamilies".into(), json!(families));
    meta::set(spec, "clusterIPs", (!addresses.is_empty()).then(|| json!(addresses)));
    Ok(())
}

fn policy(service: &Value) -> Option<&str> {
    part(service, "ipFamilyPolicy").and_then(Value::as_str)
}

fn about_policy(policy: &str, why: &str) -> Cause {
    Cause::invalid("spec.ipFamilyPolicy", &json!(policy), why)
}

/// A second address or family goes where one is wanted, and only there.
fn release(
    policy: &str,
    old: &Value,
    addresses: &mut Vec<String>,
    families: &mut Vec<String>,
    causes: &mut Vec<Cause>,
) {
    let lists = [(addresses, "clusterIPs", "cluster IP"), (families, "ipFamilies", "IP family")];
    for (list, field, what) in lists {
        let had = texts(old, field);
        if policy == SINGLE && *list == had {
            list.truncate(1);
        } else if policy != SINGLE && !list.is_empty() && list.len() < had.len() {
            causes.push(about_policy(policy, &format!("must be 'SingleStack' to release the secondary {what}")));
        }
    }
}

/// What this cluster cannot offer.
fn unavailable(policy: &str, families: &[String]) -> Vec<Cause> {
    let both =
        (policy == REQUIRE).then(|| about_policy(policy, "this cluster is not configured for dual-stack services"));
    let foreign = families.iter().enumerate().filter(|(_, family)| *family != OWN).map(|(at, family)| {
        Cause::invalid(format!("spec.ipFamilies[{at}]"), &json!(family), "not configured on this cluster")
    });
    both.into_iter().chain(foreign).collect()
}

/// Whoever prefers both families, and changes nothing about them, is left alone.
fn prefers_both_as_before(service: &Value, old: &Value) -> bool {
    policy(service) == Some(PREFER)
        && policy(old).is_none_or(|policy| policy == PREFER)
        && ["type", "clusterIPs", "ipFamilies"].iter().all(|field| part(service, field) == part(old, field))
        && ["ClusterIP", "NodePort", "LoadBalancer"].contains(&meta::text(service, "/spec/type"))
}
