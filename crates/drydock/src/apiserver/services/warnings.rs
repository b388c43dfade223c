//! What whoever writes a Service should know.

use serde_json::Value;

use super::{is_name, part, texts};
use crate::apiserver::ip_rules::{warn_address, warn_range};
use crate::apiserver::meta;

const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";

/// Everything about a Service that is allowed and hardly meant.
pub(in crate::apiserver) fn warnings(_: Option<&Value>, service: &Value) -> Vec<String> {
    let mut told = Vec::new();
    if service.pointer("/metadata/annotations").is_some_and(|notes| notes.get(HINTS).is_some()) {
        told.push(format!("annotation {HINTS} is deprecated, please use {MODE} instead"));
    }
    let each = |field: &str, warn: fn(&str, &str) -> Option<String>| {
        let all = texts(service, field);
        let told = all.iter().enumerate().filter_map(|(at, it)| warn(&format!("spec.{field}[{at}]"), it));
        told.collect::<Vec<_>>()
    };
    let address = meta::text(service, "/spec/clusterIP");
    if !["", "None"].contains(&address) {
        told.extend(each("clusterIPs", warn_address));
    }
    let balancer = meta::text(service, "/spec/loadBalancerIP");
    let headless = meta::text(service, "/spec/type") == "ClusterIP" && address == "None";
    let outside = !texts(service, "externalIPs").is_empty();
    if headless {
        for (said, field) in [
            (!balancer.is_empty(), "loadBalancerIP"),
            (outside, "externalIPs"),
            (meta::text(service, "/spec/sessionAffinity") != "None", "SessionAffinity"),
        ] {
            told.extend(said.then(|| format!("spec.{field} is ignored for headless services")));
        }
    }
    told.extend(each("externalIPs", warn_address));
    if outside && !headless && !is_name(service) {
        told.push("spec.externalIPs is deprecated and may no longer be implemented in some clusters".to_owned());
    }
    told.extend(warn_address("spec.loadBalancerIP", balancer));
    told.extend(each("loadBalancerSourceRanges", warn_range));
    if is_name(service) && outside {
        told.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if !is_name(service) && !meta::text(service, "/spec/externalName").is_empty() {
        told.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
    if part(service, "trafficDistribution").is_some_and(|it| it == "PreferClose") {
        told.push("spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\"".to_owned());
    }
    told
}
