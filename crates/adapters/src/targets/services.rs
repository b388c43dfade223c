//! The three Services of an app: `app-canary`, `app-primary` and `app` itself, the apex.
//!
//! Services that we make follow the spec. A Service that was there before (usually the apex) is taken over with the
//! smallest change that works, selector and ports; what they were is noted on it, and put back when the Canary goes.
//! Type, cluster address and traffic distribution of a Service that exists are never changed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use seaway_api::Canary;
use seaway_api::canary::{CanaryService, CustomMetadata};
use serde_json::{Map, Value, json};

use super::{Conventions, Selector, ownership};
use crate::change::Change;
use crate::kinds::{DEPLOYMENT, SERVICE};
use crate::object::{
    self, FLUX_OPT_OUT, MANAGER, Patch, at, has_canary_owner, is_controlled_by, is_owned_by, list, number,
    owner_reference, segment, strings, text,
};
use crate::refusal::Refusal;
use crate::world::World;

/// Where the selector and ports of a Service are noted before it is taken over.
const ORIGINAL: &str = "flagger.kubernetes.io/original-configuration";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Containers whose ports belong to the mesh, not to the app.
const SIDECARS: [&str; 2] = ["istio-proxy", "envoy"];

/// The `-canary` and `-primary` Services exist and select their pods.
pub fn variants(
    canary: &Canary,
    target: &Value,
    world: &dyn World,
    conventions: &Conventions,
) -> Result<Vec<Change>, Refusal> {
    let selector = Selector::of(target, conventions)?;
    let service = service(canary)?;
    let ports = Ports::OfTheSpec;
    let (name, value, metadata) = (canary.canary_service(), selector.value.clone(), service.canary.as_ref());
    let canary_service = Wanted { name, value, metadata, ports };
    let (name, value, metadata) = (canary.primary_service(), selector.primary_value(), service.primary.as_ref());
    let primary_service = Wanted { name, value, metadata, ports };
    let mut changes = Vec::new();
    for wanted in [canary_service, primary_service] {
        let seen = world.get(SERVICE, canary.namespace(), &wanted.name);
        if let Some(seen) = &seen {
            ownership::ours(canary, ownership::VARIANT, seen)?;
        }
        changes.extend(reconcile(canary, service, target, &selector, &wanted, seen.as_deref()));
    }
    Ok(changes)
}

/// The apex Service exists and selects the primary's pods, at these ports.
pub fn apex_to_primary(
    canary: &Canary,
    target: &Value,
    world: &dyn World,
    conventions: &Conventions,
    ports: Ports,
) -> Result<Vec<Change>, Refusal> {
    let selector = Selector::of(target, conventions)?;
    let service = service(canary)?;
    let wanted = Wanted {
        name: canary.apex_name().to_owned(),
        value: selector.primary_value(),
        metadata: service.apex.as_ref(),
        ports,
    };
    let seen = world.get(SERVICE, canary.namespace(), &wanted.name);
    if let Some(seen) = &seen {
        ownership::not_anothers(canary, seen)?;
    }
    Ok(reconcile(canary, service, target, &selector, &wanted, seen.as_deref()).into_iter().collect())
}

/// The apex Service no longer selects the primary's pods. A Service that was there before us gets back what it had, even if
/// that selects the target in its own way. It stays ours, and the note on it stays: until [`release_apex`] it can be derived
/// again. One that is gone is made anew, because the route that stays behind leads to it, and as nobody's: whoever collected
/// it with its Canary would collect it once more.
pub fn apex_to_target(
    canary: &Canary,
    target: &Value,
    world: &dyn World,
    conventions: &Conventions,
) -> Result<Vec<Change>, Refusal> {
    let selector = Selector::of(target, conventions)?;
    let Some(seen) = world.get(SERVICE, canary.namespace(), canary.apex_name()) else {
        let service = service(canary)?;
        let metadata = json!({
            "name": canary.apex_name(), "namespace": canary.namespace(),
            "labels": { &selector.label: canary.apex_name() },
        });
        let selection = json!({ &selector.label: &selector.value });
        return Ok(vec![object::create(
            SERVICE,
            metadata,
            new_spec(service, selection, ports(service, target)),
            MANAGER,
        )]);
    };
    let mut patch = Patch::of(SERVICE, &seen);
    lead_to_target(&mut patch, canary, &seen, &selector);
    Ok(patch.finish().into_iter().collect())
}

/// The apex Service is no longer ours to collect, and nothing on it tells that it was taken over.
pub fn release_apex(
    canary: &Canary,
    target: &Value,
    world: &dyn World,
    conventions: &Conventions,
) -> Result<Vec<Change>, Refusal> {
    let Some(seen) = world.get(SERVICE, canary.namespace(), canary.apex_name()) else { return Ok(Vec::new()) };
    let mut patch = Patch::of(SERVICE, &seen);
    lead_to_target(&mut patch, canary, &seen, &Selector::of(target, conventions)?);
    if let Some(original) = note(&seen, ORIGINAL) {
        for (key, before) in original.get("annotations").and_then(Value::as_object).into_iter().flatten() {
            let path = format!("/metadata/annotations/{}", segment(key));
            patch.set_or_unset(&path, Some(before).filter(|before| before.is_string()));
        }
        patch.unset(&format!("/metadata/annotations/{}", segment(ORIGINAL)));
    }
    patch.disown(canary);
    Ok(patch.finish().into_iter().collect())
}

/// Makes the patch bring back what a Service selected before us: what was noted, or the target in the plainest way. A
/// Service that is neither ours nor points to the primary is its user's, and may select what it likes.
fn lead_to_target(patch: &mut Patch<'_>, canary: &Canary, seen: &Value, selector: &Selector) {
    let plain = json!({ &selector.label: &selector.value });
    if let Some(original) = note(seen, ORIGINAL) {
        // A Service may have had no selector, and then has none again.
        let noted = |field: &str| original.get(field).filter(|value| !value.is_null());
        patch.set_or_unset("/spec/selector", noted("selector"));
        patch.set_or_unset("/spec/ports", noted("ports"));
    } else if is_owned_by(seen, canary) {
        patch.set("/spec/selector", plain);
    } else if !has_canary_owner(seen) && selects(seen, selector, &selector.primary_value()) {
        let applied = note(seen, LAST_APPLIED)
            .filter(|applied| !selects(applied, selector, &selector.primary_value()))
            .and_then(|applied| at(&applied, "/spec/selector").cloned());
        patch.set("/spec/selector", applied.unwrap_or(plain));
    }
}

/// What an annotation holds as JSON.
fn note(seen: &Value, key: &str) -> Option<Value> {
    serde_json::from_str(at(seen, "/metadata/annotations")?.get(key)?.as_str()?).ok()
}

/// When a port of the apex Service must be there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// As it stands.
    Now,
    /// When it has been given back: a Service of the user's own has the ports again that are noted on it.
    GivenBack,
}

/// The port by which the apex Service is reached: one that leads to the same place in the pods as `served`, the port of our
/// Services by which users are served, that number itself if it does; else that number, if the Service has it, else its only
/// one. A Service that is not there is made with the port of the spec. Routes speak TCP, so other ports do not count.
pub(crate) fn apex_port(canary: &Canary, world: &dyn World, moment: Moment, served: i64) -> Result<i64, Refusal> {
    let service = canary.spec.service.as_ref();
    let Some(seen) = world.get(SERVICE, canary.namespace(), canary.apex_name()) else {
        return Ok(service.map_or(served, |service| service.port));
    };
    let noted = note(&seen, ORIGINAL).filter(|_| moment == Moment::GivenBack);
    let ports = noted.as_ref().map_or_else(|| list(&seen, "/spec/ports"), |noted| list(noted, "/ports"));
    let ports: Vec<&Value> = ports.iter().filter(|port| is_tcp(port)).collect();
    let target = world.get(DEPLOYMENT, canary.namespace(), &canary.spec.target_ref.name);
    let in_pods = |port: &Value| pod_port(port, target.as_deref());
    let meant = served_in_pods(canary, world, served).or_else(|| service.map(target_port)).map(|port| in_pods(&port));
    let offers = |port: &&&Value| number(port, "/port") == Some(served);
    let leads_there = |port: &&&Value| behind(port).map(in_pods).is_some_and(|there| meant.as_ref() == Some(&there));
    let found = ports.iter().find(|port| offers(port) && leads_there(port));
    let found = found.or_else(|| ports.iter().find(leads_there)).or_else(|| ports.iter().find(offers));
    let only = || ports.first().filter(|_| ports.len() == 1);
    let found = found.or_else(only).and_then(|port| number(port, "/port"));
    found.ok_or_else(|| no_way_by_the_apex(canary, moment, served, meant.as_ref(), &ports))
}

/// The port of the pods behind this port of the primary's Service, as it stands: the spec may say another one since.
fn served_in_pods(canary: &Canary, world: &dyn World, served: i64) -> Option<Value> {
    let primary = world.get(SERVICE, canary.namespace(), &canary.primary_service())?;
    let port =
        list(&primary, "/spec/ports").iter().find(|port| number(port, "/port") == Some(served) && is_tcp(port))?;
    behind(port).cloned()
}

fn no_way_by_the_apex(
    canary: &Canary,
    moment: Moment,
    served: i64,
    meant: Option<&Value>,
    ports: &[&Value],
) -> Refusal {
    let wanted = match meant {
        Some(Value::String(name)) => format!("that leads to the pods' port {name} (spec.service.targetPort)"),
        Some(port) => format!("that leads to port {port} of the pods (spec.service.targetPort)"),
        None => format!("with the number {served}"),
    };
    let ports: Vec<String> = ports.iter().filter_map(|port| Some(number(port, "/port")?.to_string())).collect();
    let ports =
        if ports.is_empty() { "no TCP port".to_owned() } else { format!("only the TCP ports {}", ports.join(", ")) };
    let when = if moment == Moment::Now { "" } else { " once it is given back" };
    let (apex, namespace) = (canary.apex_name(), canary.namespace());
    Refusal::user(format!(
        "Service {apex}.{namespace} has {ports}{when}; add one {wanted}, so that its route can lead there"
    ))
}

/// Whether the apex Service has a port of this number that a route can lead to. One that is not there is made with that of the
/// spec.
pub(crate) fn apex_has(canary: &Canary, world: &dyn World, port: i64) -> bool {
    let Some(seen) = world.get(SERVICE, canary.namespace(), canary.apex_name()) else {
        return canary.spec.service.as_ref().is_some_and(|service| service.port == port);
    };
    list(&seen, "/spec/ports").iter().any(|seen| number(seen, "/port") == Some(port) && is_tcp(seen))
}

/// Without a word a port of a Service is of TCP.
fn is_tcp(port: &Value) -> bool {
    ["", "TCP"].contains(&text(port, "/protocol"))
}

/// The port of the pods behind a port of a Service.
fn behind(port: &Value) -> Option<&Value> {
    port.get("targetPort").or_else(|| port.get("port"))
}

/// A port of the pods by its number, if the target tells which one has that name.
fn pod_port(port: &Value, target: Option<&Value>) -> Value {
    let containers = target.map_or(&[][..], |target| list(target, "/spec/template/spec/containers"));
    let mut named = containers.iter().flat_map(|container| list(container, "/ports"));
    let found = named.find(|named| named.get("name").is_some_and(|name| name == port));
    found.and_then(|named| named.get("containerPort")).unwrap_or(port).clone()
}

/// Whether the apex Service exists and selects pods by this value of the selector label.
pub fn apex_selects(canary: &Canary, world: &dyn World, selector: &Selector, value: &str) -> bool {
    world.get(SERVICE, canary.namespace(), canary.apex_name()).is_some_and(|seen| selects(&seen, selector, value))
}

fn selects(service: &Value, selector: &Selector, value: &str) -> bool {
    strings(service, "/spec/selector").get(&selector.label).is_some_and(|seen| seen == value)
}

/// Whether the apex Service exists and [`apex_to_target`] has nothing left to do to it.
pub fn apex_leads_to_target(canary: &Canary, target: &Value, world: &dyn World, conventions: &Conventions) -> bool {
    apex_to_target(canary, target, world, conventions).is_ok_and(|changes| changes.is_empty())
}

/// What becomes of the ports of a Service that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// They become those of the spec.
    OfTheSpec,
    /// They stay, because users may still come by them.
    AsTheyAre,
}

struct Wanted<'a> {
    name: String,
    value: String,
    metadata: Option<&'a CustomMetadata>,
    ports: Ports,
}

fn service(canary: &Canary) -> Result<&CanaryService, Refusal> {
    canary.spec.service.as_ref().ok_or_else(|| Refusal::user("spec.service: Services need it; write at least a port"))
}

fn reconcile(
    canary: &Canary,
    service: &CanaryService,
    target: &Value,
    selector: &Selector,
    wanted: &Wanted<'_>,
    seen: Option<&Value>,
) -> Option<Change> {
    let (labels, annotations) = metadata(service, selector, wanted);
    let ports = ports(service, target);
    let selection = json!({ &selector.label: &wanted.value });
    let Some(seen) = seen else {
        let metadata = json!({
            "name": wanted.name, "namespace": canary.namespace(),
            "labels": labels, "annotations": annotations, "ownerReferences": [owner_reference(canary)],
        });
        return Some(object::create(SERVICE, metadata, new_spec(service, selection, ports), MANAGER));
    };

    let ours = is_controlled_by(seen, canary);
    let mut patch = Patch::of(SERVICE, seen);
    let same_ports = wanted.ports == Ports::AsTheyAre || same_ports(list(seen, "/spec/ports"), &ports);
    let same_selector = at(seen, "/spec/selector") == Some(&selection);
    if !(ours || has_canary_owner(seen) || same_ports && same_selector) {
        note_original(&mut patch, seen);
    }
    if !same_ports {
        patch.set("/spec/ports", keep_node_ports(ports, list(seen, "/spec/ports")));
    }
    if !same_selector {
        patch.set("/spec/selector", selection);
    }
    if ours {
        patch.merge("/metadata/labels", &labels);
        patch.merge("/metadata/annotations", &annotations);
    }
    patch.finish()
}

/// The `spec` of a Service that does not exist yet.
fn new_spec(service: &CanaryService, selection: Value, ports: Vec<Value>) -> Map<String, Value> {
    let mut spec = Map::from_iter([
        ("type".into(), "ClusterIP".into()),
        ("selector".into(), selection),
        ("ports".into(), ports.into()),
    ]);
    if service.headless {
        spec.insert("clusterIP".into(), "None".into());
    }
    if !service.traffic_distribution.is_empty() {
        spec.insert("trafficDistribution".into(), service.traffic_distribution.as_str().into());
    }
    Map::from_iter([("spec".into(), Value::Object(spec))])
}

/// Notes what a foreign Service was, and keeps Flux from undoing the takeover.
fn note_original(patch: &mut Patch<'_>, seen: &Value) {
    let annotations = strings(seen, "/metadata/annotations");
    if annotations.contains_key(ORIGINAL) {
        return;
    }
    let before: BTreeMap<&str, Option<&String>> = FLUX_OPT_OUT.map(|(key, _)| (key, annotations.get(key))).into();
    let original = json!({
        "selector": at(seen, "/spec/selector"), "ports": at(seen, "/spec/ports"), "annotations": before,
    });
    let mut entries: BTreeMap<String, String> =
        FLUX_OPT_OUT.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    entries.insert(ORIGINAL.into(), original.to_string());
    patch.merge("/metadata/annotations", &entries);
}

fn metadata(
    service: &CanaryService,
    selector: &Selector,
    wanted: &Wanted<'_>,
) -> (BTreeMap<String, String>, BTreeMap<String, String>) {
    let CustomMetadata { mut labels, mut annotations } = wanted.metadata.cloned().unwrap_or_default();
    labels.insert(selector.label.clone(), wanted.name.clone());
    annotations.extend(FLUX_OPT_OUT.map(|(key, value)| (key.to_owned(), value.to_owned())));
    if let Some(unmanaged) = &service.unmanaged_metadata {
        labels.retain(|key, _| !unmanaged.labels.contains(key));
        annotations.retain(|key, _| !unmanaged.annotations.contains(key));
    }
    (labels, annotations)
}

/// The port of the pods.
fn target_port(service: &CanaryService) -> Value {
    match &service.target_port {
        None | Some(IntOrString::Int(0)) => json!(service.port),
        Some(IntOrString::String(name)) if name.is_empty() || name == "0" => json!(service.port),
        Some(given) => json!(given),
    }
}

/// The port of the spec and, if asked for, every other port of the target's containers.
fn ports(service: &CanaryService, target: &Value) -> Vec<Value> {
    let target_port = target_port(service);
    let name = if service.port_name.is_empty() { "http" } else { &service.port_name };
    let mut main = json!({ "name": name, "protocol": "TCP", "port": service.port, "targetPort": target_port });
    if !service.app_protocol.is_empty() {
        main["appProtocol"] = service.app_protocol.as_str().into();
    }
    let mut ports = vec![main];
    if !service.port_discovery {
        return ports;
    }
    for container in list(target, "/spec/template/spec/containers") {
        let container_name = text(container, "/name");
        if SIDECARS.contains(&container_name) {
            continue;
        }
        for (index, port) in list(container, "/ports").iter().enumerate() {
            let Some(number) = number(port, "/containerPort") else { continue };
            let given = text(port, "/name");
            if target_port == number || (!given.is_empty() && target_port == given) {
                continue;
            }
            // Two entries with one port number would make the whole Service invalid.
            if ports.iter().any(|port| port["port"] == number) {
                continue;
            }
            let name = if given.is_empty() { format!("tcp-{container_name}-{index}") } else { given.to_owned() };
            ports.push(json!({ "name": name, "protocol": "TCP", "port": number, "targetPort": number }));
        }
    }
    ports
}

/// Order does not matter, nor does what the server adds.
fn same_ports(seen: &[Value], wanted: &[Value]) -> bool {
    let fields = ["name", "port", "targetPort", "appProtocol"];
    let same = |seen: &Value, wanted: &Value| {
        let protocol = seen.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
        protocol == text(wanted, "/protocol") && fields.iter().all(|field| seen.get(*field) == wanted.get(*field))
    };
    seen.len() == wanted.len() && wanted.iter().all(|wanted| seen.iter().any(|seen| same(seen, wanted)))
}

fn keep_node_ports(mut ports: Vec<Value>, seen: &[Value]) -> Vec<Value> {
    for port in &mut ports {
        let before = seen.iter().find(|seen| seen.get("name") == port.get("name"));
        if let Some(node_port) = before.and_then(|seen| seen.get("nodePort")) {
            port["nodePort"] = node_port.clone();
        }
    }
    ports
}

#[cfg(test)]
mod tests;
