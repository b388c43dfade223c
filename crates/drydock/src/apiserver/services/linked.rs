//! Fields of a Service that must go together: its addresses and their families, as they are and as they change.

use serde_json::{Value, json};

use super::{is_headless, is_name, part, texts};
use crate::apiserver::error::Cause;
use crate::apiserver::ip_rules::{self, sloppy};
use crate::apiserver::meta;

const POLICIES: [&str; 3] = ["PreferDualStack", "RequireDualStack", "SingleStack"];
const FAMILIES: [&str; 2] = ["IPv4", "IPv6"];

/// Rules for addresses and families together.
pub(super) fn linked(old: Option<&Value>, service: &Value, causes: &mut Vec<Cause>) {
    if is_name(service) {
        return;
    }
    let (first, addresses, families) =
        (meta::text(service, "/spec/clusterIP"), texts(service, "clusterIPs"), texts(service, "ipFamilies"));
    let wrong = |why: &str| Cause::invalid("spec.clusterIPs", &json!(addresses), why);
    match (first, addresses.first()) {
        ("", None) => {}
        ("", Some(_)) => causes.push(wrong("must be empty when `clusterIP` is not specified")),
        (_, None) => causes.push(Cause::required("spec.clusterIPs", "")),
        (first, Some(listed)) if first != listed => causes.push(wrong("first value must match `clusterIP`")),
        _ => {}
    }
    for (at, family) in families.iter().enumerate() {
        let path = format!("spec.ipFamilies[{at}]");
        if !FAMILIES.contains(&family.as_str()) {
            causes.push(Cause::unsupported(&path, &json!(family), &FAMILIES.map(|family| json!(family))));
        }
        if families.iter().take(at).any(|other| other == family) {
            causes.push(Cause::duplicate(path, &json!(family)));
        }
    }
    if let Some(policy) = part(service, "ipFamilyPolicy").filter(|policy| policy.is_string()) {
        let known = policy.as_str().is_some_and(|policy| POLICIES.contains(&policy));
        causes.extend(
            (!known).then(|| Cause::unsupported("spec.ipFamilyPolicy", policy, &POLICIES.map(|policy| json!(policy)))),
        );
    }
    let had = old.map(|old| texts(old, "clusterIPs")).unwrap_or_default();
    let told = causes.len();
    for (at, address) in addresses.iter().enumerate() {
        if at == 0 && address == "None" {
            causes.extend((addresses.len() > 1).then(|| wrong("'None' must be the first and only value")));
        } else {
            ip_rules::address(&format!("spec.clusterIPs[{at}]"), address, &had, causes);
        }
    }
    let readable = causes.len() == told;
    if addresses.len() > 2 {
        causes.push(wrong("may only hold up to 2 values"));
    }
    if !readable {
        return;
    }
    let is_second_family = |address: &String| sloppy(address).is_some_and(|address| address.is_ipv6());
    let both = addresses.iter().any(is_second_family) && !addresses.iter().all(is_second_family);
    if addresses.len() > 1 && !both {
        causes.push(wrong("may specify no more than one IP for each IP family"));
    }
    if is_headless(service) {
        return;
    }
    for (at, (address, family)) in addresses.iter().zip(&families).enumerate() {
        if is_second_family(address) != (family == "IPv6") && FAMILIES.contains(&family.as_str()) {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
            causes.push(Cause::invalid(format!("spec.clusterIPs[{at}]"), &json!(address), &why));
        }
    }
}

/// A Service may gain and lose a second address or family; the first stays.
pub(super) fn changed(old: &Value, new: &Value, causes: &mut Vec<Cause>) {
    if is_name(old) || is_name(new) {
        return;
    }
    let (was_headless, headless) = (is_headless(old), is_headless(new));
    let addresses = json!(part(new, "clusterIPs"));
    if !(was_headless && headless) {
        changed_list(old, new, "clusterIPs", "clusterIP", &addresses, causes);
    }
    if !was_headless && !headless {
        changed_list(old, new, "ipFamilies", "ipFamily", &addresses, causes);
    }
}

fn changed_list(old: &Value, new: &Value, field: &str, one: &str, addresses: &Value, causes: &mut Vec<Cause>) {
    let (had, has) = (texts(old, field), texts(new, field));
    let first = format!("spec.{field}[0]");
    let fixed = "may not change once set";
    let families = field == "ipFamilies";
    if had.len() == has.len() {
        for at in (0..had.len()).filter(|at| had.get(*at) != has.get(*at)) {
            let path = if families { first.clone() } else { format!("spec.{field}[{at}]") };
            causes.push(Cause::invalid(path, &json!(has), fixed));
        }
        return;
    }
    let moved = !had.is_empty() && !has.is_empty() && had.first() != has.first();
    if had.len() < has.len() {
        causes.extend(moved.then(|| Cause::invalid(first, &json!(has), fixed)));
        return;
    }
    if addresses.as_array().is_none_or(Vec::is_empty) {
        causes.push(Cause::invalid(
            first.clone(),
            &json!(part(new, field)),
            &format!("primary {one} can not be unset"),
        ));
    }
    // The real server shows the addresses where it means the families.
    causes.extend(moved.then(|| Cause::invalid(first, addresses, fixed)));
    let policy = part(new, "ipFamilyPolicy").unwrap_or(&Value::Null);
    if has.len() == 1 && *policy != "SingleStack" {
        let why = format!("must be set to 'SingleStack' when releasing the secondary {one}");
        causes.push(Cause::invalid("spec.ipFamilyPolicy", policy, &why));
    }
}
