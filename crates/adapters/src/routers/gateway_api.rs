//! Gateway API v1: one HTTPRoute named like the apex Service.
//!
//! Lists of a route are atomic for server-side apply, so a route that exists is changed by JSON Patch: two weights,
//! guarded by `test`s of the resourceVersion and of the backend's name at that index. Of a route that is ours (its
//! controller is this Canary) the parents, host names and our rule are kept as the spec asks, always with the current
//! weights; foreign rules, metadata, filters and fields nobody here knows stay byte for byte. A route of that name that
//! is not ours is left alone altogether, unless a Canary released it (see [`release`]). A/B tests, mirroring and cookie
//! affinity are not built here yet.

mod release;
mod rule;

use std::sync::Arc;

use seaway_api::foreign::gateway::{ObservedCondition, ParentReference, RouteParentStatus};
use seaway_api::{Canary, FieldError};
use seaway_core::effect::Destination;
use seaway_core::observed::Route;
use seaway_core::split::{Split, Variant};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use self::release::Variants;
use self::rule::{OUR_FILTERS, Shape};
use super::{Backend, Capabilities, RouteReading, Router, Subject};
use crate::change::{Change, Kind};
use crate::kinds::HTTP_ROUTE;
use crate::object::{self, FLUX_OPT_OUT, MANAGER, Patch, at, is_controlled_by, list, number, owner_reference, text};
use crate::refusal::Refusal;
use crate::targets::services::apex_has;
use crate::world::World;
use crate::zoo;

/// The router of provider `gatewayapi:v1`.
#[derive(Clone, Copy, Debug)]
pub struct GatewayApi;

impl Router for GatewayApi {
    fn serves(&self, provider: &str) -> bool {
        provider.starts_with("gatewayapi:v1") && !provider.starts_with("gatewayapi:v1beta1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { weights: true, settles: true, ..Capabilities::default() }
    }

    fn kinds(&self) -> &'static [Kind] {
        &[HTTP_ROUTE]
    }

    fn check(&self, canary: &Canary) -> Vec<FieldError> {
        let mut errors = self.capabilities().denied(canary);
        errors.extend(canary.spec.service.as_ref().and_then(|service| Shape::of(service).err()).unwrap_or_default());
        errors
    }

    fn read(&self, subject: &Subject<'_>, world: &dyn World) -> RouteReading {
        let canary = subject.canary;
        let Some(seen) = world.get(HTTP_ROUTE, canary.namespace(), canary.apex_name()) else {
            return RouteReading::default();
        };
        let generation = number(&seen, "/metadata/generation").unwrap_or_default();
        let unsettled = unsettled(canary, &seen, generation);
        let (settled, changed) = (unsettled.is_none(), object::changed(&seen));
        if !is_controlled_by(&seen, canary) {
            let left = Route { unsettled, to_apex: true, ..Route::default() };
            let route = release::names_apex(canary, &seen).then_some(left);
            let problem = (!release::is_free(subject, &seen)).then(|| foreign(canary));
            return RouteReading { route, settled, generation, changed, problem };
        }
        let shape = shape(canary).ok();
        let shape_ok = shape.as_ref().is_some_and(|shape| {
            let mut patch = Patch::of(HTTP_ROUTE, &seen);
            repair(&mut patch, subject, world, &seen, shape, None);
            patch.finish().is_none()
        });
        let split = split(subject, &seen);
        let is_true = |changes: Result<Vec<Change>, Refusal>| changes.is_ok_and(|missing| missing.is_empty());
        let (to_apex, announced) = if canary.is_being_deleted() {
            (is_true(self.lead_to_apex(subject, world)), is_true(self.announce(subject, world, Destination::Apex)))
        } else {
            let rule = shape.filter(|_| split.is_none()).and_then(|shape| our_rule(subject, &seen, &shape));
            let rule = rule.and_then(|index| list(&seen, "/spec/rules").get(index));
            let to_apex = rule.is_some_and(|rule| release::leads_to_apex(subject, rule));
            (to_apex, to_apex && is_true(self.announce(subject, world, Destination::Variants)))
        };
        RouteReading {
            settled,
            route: Some(Route { split, shape_ok, unsettled, to_apex, announced, ..Route::default() }),
            generation,
            changed,
            problem: None,
        }
    }

    fn write(&self, subject: &Subject<'_>, world: &dyn World, split: &Split) -> Result<Vec<Change>, Refusal> {
        let canary = subject.canary;
        if canary.is_being_deleted() {
            return Ok(reweigh(subject, world, *split));
        }
        let shape = shape(canary)?;
        let Some(seen) = world.get(HTTP_ROUTE, canary.namespace(), canary.apex_name()) else {
            return Ok(vec![create(subject, &shape, *split)]);
        };
        let mut patch = Patch::of(HTTP_ROUTE, &seen);
        claim(&mut patch, subject, &seen)?;
        let as_it_should_be = || self.read(subject, world).route.is_some_and(|route| route.shape_ok);
        let split = if zoo::DRIFT_RESETS_THE_SPLIT && !as_it_should_be() { Split::primary_only() } else { *split };
        repair(&mut patch, subject, world, &seen, &shape, Some(split));
        Ok(patch.finish().into_iter().collect())
    }

    fn announce(&self, subject: &Subject<'_>, world: &dyn World, next: Destination) -> Result<Vec<Change>, Refusal> {
        let canary = subject.canary;
        let Some(seen) = world.get(HTTP_ROUTE, canary.namespace(), canary.apex_name()) else { return Ok(Vec::new()) };
        let mut patch = Patch::of(HTTP_ROUTE, &seen);
        match next {
            Destination::Apex if !is_controlled_by(&seen, canary) => {}
            Destination::Apex => release::announce_apex(&mut patch, subject, world, &seen)?,
            Destination::Variants => {
                claim(&mut patch, subject, &seen)?;
                // It settles under the parents that the spec names: those that it had may be gone.
                let shape = shape(canary)?;
                repair_front(&mut patch, subject, &seen, &shape);
                if let Some(rule) = our_rule(subject, &seen, &shape) {
                    repair_rule(&mut patch, &seen, rule, &shape);
                    release::announce_variants(&mut patch, subject, world, &seen, rule)?;
                }
            }
        }
        Ok(patch.finish().into_iter().collect())
    }

    fn lead_to_apex(&self, subject: &Subject<'_>, world: &dyn World) -> Result<Vec<Change>, Refusal> {
        let Some(seen) = ours(subject.canary, world) else { return Ok(Vec::new()) };
        let mut patch = Patch::of(HTTP_ROUTE, &seen);
        release::lead_to_apex(&mut patch, subject, world, &seen, Variants::Named)?;
        Ok(patch.finish().into_iter().collect())
    }

    fn release(&self, subject: &Subject<'_>, world: &dyn World) -> Result<Vec<Change>, Refusal> {
        let Some(seen) = ours(subject.canary, world) else { return Ok(Vec::new()) };
        let mut patch = Patch::of(HTTP_ROUTE, &seen);
        release::lead_to_apex(&mut patch, subject, world, &seen, Variants::Forgotten)?;
        release::let_go(&mut patch, subject.canary);
        Ok(patch.finish().into_iter().collect())
    }
}

/// The route, if it is this Canary's. One that was released before (a restart in between) is not ours to touch, nor one
/// that never was.
fn ours(canary: &Canary, world: &dyn World) -> Option<Arc<Value>> {
    world.get(HTTP_ROUTE, canary.namespace(), canary.apex_name()).filter(|seen| is_controlled_by(seen, canary))
}

/// The weights alone. A Canary that goes has no more say in the shape of its route, and its spec may say none.
fn reweigh(subject: &Subject<'_>, world: &dyn World, split: Split) -> Vec<Change> {
    let Some(seen) = ours(subject.canary, world) else { return Vec::new() };
    let mut patch = Patch::of(HTTP_ROUTE, &seen);
    for rule in split_rules(subject, &seen) {
        set_weights(&mut patch, subject, &seen, rule, split);
    }
    patch.finish().into_iter().collect()
}

/// Makes the patch take the route back if a Canary released it. One that is somebody else's is refused.
fn claim(patch: &mut Patch<'_>, subject: &Subject<'_>, seen: &Value) -> Result<(), Refusal> {
    if is_controlled_by(seen, subject.canary) {
        return Ok(());
    }
    if !release::is_free(subject, seen) {
        return Err(Refusal::user(foreign(subject.canary)));
    }
    // Routes are released when Canaries go. One that goes and does not know it yet has been read too long ago.
    if !subject.canary.phase().is_initializing() {
        return Err(Refusal::cluster(released(subject.canary)));
    }
    release::take_back(patch, subject.canary, seen);
    Ok(())
}

/// The shape that the spec asks for; refused, with every field that cannot be said.
fn shape(canary: &Canary) -> Result<Shape, Refusal> {
    let without = || Refusal::user("spec.service: the route needs it; write at least a port");
    Shape::of(canary.spec.service.as_ref().ok_or_else(without)?).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(FieldError::sentence).collect();
        Refusal::user(texts.join(", "))
    })
}

fn released(canary: &Canary) -> String {
    let (route, namespace, name) = (canary.apex_name(), canary.namespace(), canary.name());
    format!(
        "HTTPRoute {route}.{namespace} was released by a deletion that {name} has not heard of yet; if this lasts, delete the \
         route, and it is made again"
    )
}

fn foreign(canary: &Canary) -> String {
    let (apex, namespace) = (canary.apex_name(), canary.namespace());
    format!(
        "HTTPRoute {apex}.{namespace} exists and is not owned by Canary {}; delete it, or give spec.service.name another name",
        canary.key()
    )
}

fn backend_ref(name: &str, port: i64, weight: impl Into<i64>) -> Value {
    let weight: i64 = weight.into();
    json!({ "group": "", "kind": "Service", "name": name, "port": port, "weight": weight })
}

fn backend_refs(subject: &Subject<'_>, split: Split) -> Vec<Value> {
    subject
        .backends
        .iter()
        .map(|backend| backend_ref(&backend.host, backend.port, split.weight(backend.variant)))
        .collect()
}

fn create(subject: &Subject<'_>, shape: &Shape, split: Split) -> Change {
    let canary = subject.canary;
    let (labels, annotations) = metadata(canary);
    let metadata = json!({
        "name": canary.apex_name(), "namespace": canary.namespace(),
        "labels": labels, "annotations": annotations, "ownerReferences": [owner_reference(canary)],
    });
    let mut spec = Map::new();
    spec.insert("parentRefs".into(), shape.parents.clone());
    if let Some(hostnames) = &shape.hostnames {
        spec.insert("hostnames".into(), hostnames.clone());
    }
    spec.insert("rules".into(), json!([new_rule(subject, shape, split)]));
    object::create(HTTP_ROUTE, metadata, Map::from_iter([("spec".into(), Value::Object(spec))]), MANAGER)
}

fn new_rule(subject: &Subject<'_>, shape: &Shape, split: Split) -> Value {
    rule_to(shape, json!(backend_refs(subject, split)))
}

/// Our rule, leading to these backends.
fn rule_to(shape: &Shape, backends: Value) -> Value {
    let mut rule = Map::new();
    rule.insert("matches".into(), shape.matches.clone());
    if !shape.filters.is_empty() {
        rule.insert("filters".into(), json!(shape.filters));
    }
    rule.insert("backendRefs".into(), backends);
    if let Some(timeouts) = &shape.timeouts {
        rule.insert("timeouts".into(), timeouts.clone());
    }
    Value::Object(rule)
}

/// Makes the patch put our rule, which the route has not or which leads nowhere, into it.
fn put_rule(patch: &mut Patch<'_>, subject: &Subject<'_>, seen: &Value, shape: &Shape, backends: Value) {
    if let Some(index) = our_rule(subject, seen, shape) {
        patch.set(&format!("/spec/rules/{index}/backendRefs"), backends);
    } else if at(seen, "/spec/rules").is_some_and(Value::is_array) {
        patch.add("/spec/rules/-", rule_to(shape, backends));
    } else {
        patch.set("/spec/rules", json!([rule_to(shape, backends)]));
    }
}

type Strings = std::collections::BTreeMap<String, String>;

/// Labels and annotations that a route of ours carries; others stay.
fn metadata(canary: &Canary) -> (Strings, Strings) {
    let apex = canary.spec.service.as_ref().and_then(|service| service.apex.clone()).unwrap_or_default();
    let mut annotations = apex.annotations;
    annotations.extend(FLUX_OPT_OUT.map(|(key, value)| (key.to_owned(), value.to_owned())));
    (apex.labels, annotations)
}

/// Makes the patch bring a route into our shape. With `split` it also sets the weights; without, weights that are there
/// count as right, and only what else is wrong remains.
fn repair(
    patch: &mut Patch<'_>,
    subject: &Subject<'_>,
    world: &dyn World,
    seen: &Value,
    shape: &Shape,
    split: Option<Split>,
) {
    repair_front(patch, subject, seen, shape);
    let fallback = Split::primary_only();
    let Some(index) = our_rule(subject, seen, shape) else {
        let backends = json!(backend_refs(subject, split.unwrap_or(fallback)));
        return put_rule(patch, subject, seen, shape, backends);
    };
    if let Some(split) = split.filter(|_| zoo::WRITES_WHAT_IT_KNOWS) {
        return patch.set(&format!("/spec/rules/{index}"), new_rule(subject, shape, split));
    }
    repair_rule(patch, seen, index, shape);
    let others = split_rules(subject, seen).into_iter().filter(|rule| *rule != index);
    if has_our_backends(subject, world, seen, index) {
        for rule in std::iter::once(index).chain(others) {
            if let Some(split) = split {
                set_weights(patch, subject, seen, rule, split);
            }
        }
    } else {
        let path = format!("/spec/rules/{index}/backendRefs");
        let mut backends = merged_backends(subject, seen, index, |variant| split.unwrap_or(fallback).weight(variant));
        // Taken over from the apex Service, the rule goes on to name it.
        let apex = list(seen, &path).iter().find(|seen_ref| release::is_apex(subject.canary, seen_ref));
        backends.extend(apex.and_then(|apex| release::still_named(subject, world, apex)));
        test_names(patch, seen, index);
        patch.set(&path, backends);
        for rule in others {
            if let Some(split) = split {
                set_weights(patch, subject, seen, rule, split);
            }
        }
    }
}

/// Who the route is for and what it is called: metadata, parents, host names.
fn repair_front(patch: &mut Patch<'_>, subject: &Subject<'_>, seen: &Value, shape: &Shape) {
    let (labels, annotations) = metadata(subject.canary);
    patch.merge("/metadata/labels", &labels);
    patch.merge("/metadata/annotations", &annotations);
    if !same_parents(seen, &shape.parents, subject.canary.namespace()) {
        patch.set("/spec/parentRefs", shape.parents.clone());
    }
    if strings_of(at(seen, "/spec/hostnames")) != strings_of(shape.hostnames.as_ref()) {
        patch.set_or_unset("/spec/hostnames", shape.hostnames.as_ref());
    }
}

fn repair_rule(patch: &mut Patch<'_>, seen: &Value, index: usize, shape: &Shape) {
    let path = |field: &str| format!("/spec/rules/{index}/{field}");
    if without_empty(at(seen, &path("matches"))) != without_empty(Some(&shape.matches)) {
        patch.set(&path("matches"), shape.matches.clone());
    }
    let filters = list(seen, &path("filters"));
    let (ours, others): (Vec<&Value>, Vec<&Value>) =
        filters.iter().partition(|filter| OUR_FILTERS.contains(&text(filter, "/type")));
    let same =
        ours.len() == shape.filters.len() && ours.iter().zip(&shape.filters).all(|(seen, want)| covers(seen, want));
    if !same {
        let all: Vec<&Value> = shape.filters.iter().chain(others).collect();
        if all.is_empty() {
            patch.unset(&path("filters"));
        } else {
            patch.set(&path("filters"), json!(all));
        }
    }
    let timeouts = at(seen, &path("timeouts"));
    if without_empty(timeouts) != without_empty(shape.timeouts.as_ref()) {
        patch.set_or_unset(&path("timeouts"), shape.timeouts.as_ref());
    }
}

/// Two weights change; each is guarded by the name that must still stand at that index.
fn set_weights(patch: &mut Patch<'_>, subject: &Subject<'_>, seen: &Value, rule: usize, split: Split) {
    let path = format!("/spec/rules/{rule}/backendRefs");
    for (index, seen_ref) in list(seen, &path).iter().enumerate() {
        let Some(backend) = backend_of(subject, seen_ref) else { continue };
        let weight = split.weight(backend.variant);
        if weight_of(seen_ref) != i64::from(weight) {
            patch.test(&format!("{path}/{index}/name"), backend.host.as_str());
            patch.set(&format!("{path}/{index}/weight"), weight);
        }
    }
}

fn test_names(patch: &mut Patch<'_>, seen: &Value, rule: usize) {
    let path = format!("/spec/rules/{rule}/backendRefs");
    for (index, seen_ref) in list(seen, &path).iter().enumerate() {
        patch.test(&format!("{path}/{index}/name"), text(seen_ref, "/name"));
    }
}

/// Our backends with what others put on them (filters of one backend, fields not known here).
fn merged_backends(subject: &Subject<'_>, seen: &Value, rule: usize, weight: impl Fn(Variant) -> u8) -> Vec<Value> {
    let refs = list(seen, &format!("/spec/rules/{rule}/backendRefs"));
    let merged = subject.backends.iter().map(|backend| {
        let want = backend_ref(&backend.host, backend.port, weight(backend.variant));
        let same = refs.iter().find(|seen_ref| is_ours(subject, seen_ref, backend));
        let same = same.or_else(|| refs.iter().find(|seen_ref| has_name_of(seen_ref, backend)));
        // The primary takes the place that the apex Service had in a released route.
        let before =
            |seen_ref: &&Value| backend.variant == Variant::Primary && release::is_apex(subject.canary, seen_ref);
        let mut whole = same.or_else(|| refs.iter().find(before)).cloned().unwrap_or_else(|| json!({}));
        object::extend(&mut whole, want);
        if !is_at_home(subject.canary, &whole)
            && let Some(fields) = whole.as_object_mut()
        {
            fields.shift_remove("namespace");
        }
        whole
    });
    merged.collect()
}

/// The backend is in the route's own namespace.
fn is_at_home(canary: &Canary, backend_ref: &Value) -> bool {
    [None, Some(canary.namespace())].contains(&backend_ref.get("namespace").and_then(Value::as_str))
}

/// The Service has the name of this backend of ours, in whatever namespace. Only in our own rule is one of another
/// namespace ours too, moved there by somebody.
fn has_name_of(backend_ref: &Value, backend: &Backend) -> bool {
    is_service(backend_ref, &backend.host)
}

fn is_service(backend_ref: &Value, name: &str) -> bool {
    let kind = backend_ref.get("kind").and_then(Value::as_str).unwrap_or("Service");
    kind == "Service" && text(backend_ref, "/group").is_empty() && text(backend_ref, "/name") == name
}

fn is_ours(subject: &Subject<'_>, backend_ref: &Value, backend: &Backend) -> bool {
    has_name_of(backend_ref, backend) && is_at_home(subject.canary, backend_ref)
}

/// The backend has one of our names, in whatever namespace.
fn is_namesake(subject: &Subject<'_>, backend_ref: &Value) -> bool {
    subject.backends.iter().any(|backend| has_name_of(backend_ref, backend))
}

/// The backend is the apex Service by name, in another namespace.
fn is_apex_abroad(subject: &Subject<'_>, backend_ref: &Value) -> bool {
    is_service(backend_ref, subject.canary.apex_name()) && !is_at_home(subject.canary, backend_ref)
}

fn backend_of<'a>(subject: &'a Subject<'_>, backend_ref: &Value) -> Option<&'a Backend> {
    subject.backends.iter().find(|backend| is_ours(subject, backend_ref, backend))
}

fn weight_of(backend_ref: &Value) -> i64 {
    number(backend_ref, "/weight").unwrap_or(1)
}

/// Every rule that splits between our backends. A copy of our rule made by somebody else is among them: left at an old
/// split it would send users to a canary without pods.
fn split_rules(subject: &Subject<'_>, seen: &Value) -> Vec<usize> {
    let splits = |rule: &Value| {
        let refs = list(rule, "/backendRefs");
        subject.backends.iter().all(|backend| refs.iter().any(|seen_ref| is_ours(subject, seen_ref, backend)))
    };
    list(seen, "/spec/rules").iter().enumerate().filter(|(_, rule)| splits(rule)).map(|(index, _)| index).collect()
}

/// Our rule. First choice is one with our matches that names all our backends: others may have rules of their own that
/// split between them too, and keep the shape they gave those. Then one with our matches that still names one backend
/// (somebody took the other away, and a second rule with these matches would never be reached). Then, because the spec's
/// matches may have changed, the first that names all our backends. Then one that leads to the apex Service, with our
/// matches or, in a route that was released, any: that is how we left it. Last, one with our matches that leads nowhere:
/// the server puts it into a route whose rules were taken away, and it would hide ours.
fn our_rule(subject: &Subject<'_>, seen: &Value, shape: &Shape) -> Option<usize> {
    let rules = list(seen, "/spec/rules");
    let splits = split_rules(subject, seen);
    let has_our_matches = |index: &usize| {
        rules.get(*index).is_some_and(|rule| without_empty(rule.get("matches")) == without_empty(Some(&shape.matches)))
    };
    let names_a_backend = |index: &usize| {
        let backends = rules.get(*index).map_or(&[][..], |rule| list(rule, "/backendRefs"));
        backends.iter().any(|seen_ref| is_namesake(subject, seen_ref) || is_apex_abroad(subject, seen_ref))
    };
    let whole = splits.iter().copied().find(has_our_matches);
    let half = || (0..rules.len()).find(|index| has_our_matches(index) && names_a_backend(index));
    let leads_nowhere = |index: &usize| {
        rules.get(*index).is_some_and(|rule| {
            let redirects = list(rule, "/filters").iter().any(|filter| text(filter, "/type") == "RequestRedirect");
            list(rule, "/backendRefs").is_empty() && !redirects
        })
    };
    let empty = || (0..rules.len()).find(|index| has_our_matches(index) && leads_nowhere(index));
    let to_apex: Vec<usize> = (0..rules.len())
        .filter(|index| rules.get(*index).is_some_and(|rule| release::leads_to_apex(subject, rule)))
        .collect();
    let left = || {
        let any = to_apex.first().filter(|_| release::is_free(subject, seen));
        to_apex.iter().find(|index| has_our_matches(index)).or(any).copied()
    };
    whole.or_else(half).or_else(|| splits.first().copied()).or_else(left).or_else(empty)
}

/// The rule names exactly our backends, in our order, at our port; and maybe the apex Service, without a share, at one of its.
fn has_our_backends(subject: &Subject<'_>, world: &dyn World, seen: &Value, rule: usize) -> bool {
    let refs = list(seen, &format!("/spec/rules/{rule}/backendRefs"));
    let (ours, named) = refs.split_at(subject.backends.len().min(refs.len()));
    ours.len() == subject.backends.len()
        && named.len() <= 1
        && named.iter().all(|seen_ref| {
            let port_is_there = || number(seen_ref, "/port").is_some_and(|port| apex_has(subject.canary, world, port));
            release::is_apex(subject.canary, seen_ref) && weight_of(seen_ref) == 0 && port_is_there()
        })
        && ours.iter().zip(&subject.backends).all(|(seen_ref, backend)| {
            is_ours(subject, seen_ref, backend) && number(seen_ref, "/port") == Some(backend.port)
        })
}

/// The split that all rules with our backends agree on: every backend of ours has the weight that [`set_weights`] gives it.
/// What else a rule of others leads to is theirs, and no part of it.
fn split(subject: &Subject<'_>, seen: &Value) -> Option<Split> {
    let refs = |rule: usize| list(seen, &format!("/spec/rules/{rule}/backendRefs"));
    let ours: Vec<(Variant, i64)> = split_rules(subject, seen)
        .into_iter()
        .flat_map(refs)
        .filter_map(|seen_ref| Some((backend_of(subject, seen_ref)?.variant, weight_of(seen_ref))))
        .collect();
    let (_, weight) = ours.iter().find(|(variant, _)| *variant == Variant::Canary)?;
    let split = Split::canary(u8::try_from(*weight).ok().filter(|weight| *weight <= 100)?);
    ours.iter().all(|(variant, weight)| *weight == i64::from(split.weight(*variant))).then_some(split)
}

/// Why the data plane may not have taken up this generation, in Flagger's words. Unlike Flagger's check, a parent that has
/// said nothing yet counts as not ready.
fn unsettled(canary: &Canary, seen: &Value, generation: i64) -> Option<String> {
    let statuses: Vec<RouteParentStatus> =
        list(seen, "/status/parents").iter().filter_map(|status| RouteParentStatus::deserialize(status).ok()).collect();
    list(seen, "/spec/parentRefs").iter().find_map(|parent| {
        let parent = ParentReference::deserialize(parent).ok()?;
        let accepted: Vec<&ObservedCondition> = statuses
            .iter()
            .filter(|status| status.parent_ref.same_parent(&parent, canary.namespace()))
            .flat_map(|status| status.conditions.iter().filter(|condition| condition.type_ == "Accepted"))
            .collect();
        let ready = |condition: &&ObservedCondition| {
            condition.status == "True" && condition.observed_generation.unwrap_or_default() >= generation
        };
        if accepted.iter().any(ready) || zoo::SILENCE_IS_SETTLED {
            return None;
        }
        let (status, observed) = accepted
            .first()
            .map_or(("Unknown", 0), |condition| (condition.status.as_str(), condition.observed_generation.unwrap_or_default()));
        Some(format!(
            "HTTPRoute {}.{} parent {} is not ready (status: {status}, observed generation: {observed}, current generation: {generation})",
            canary.apex_name(), canary.namespace(), parent.name
        ))
    })
}

fn same_parents(seen: &Value, want: &Value, namespace: &str) -> bool {
    let parse = |parents: &[Value]| -> Option<Vec<ParentReference>> {
        parents.iter().map(|parent| ParentReference::deserialize(parent).ok()).collect()
    };
    let (seen, want) = (parse(list(seen, "/spec/parentRefs")), parse(want.as_array().map_or(&[], Vec::as_slice)));
    match (seen, want) {
        (Some(seen), Some(want)) => {
            seen.len() == want.len() && seen.iter().zip(&want).all(|(seen, want)| seen.same_parent(want, namespace))
        }
        _ => false,
    }
}

fn strings_of(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A value without empty lists and maps, which mean the same as absent ones.
fn without_empty(value: Option<&Value>) -> Option<Value> {
    match value? {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => None,
        Value::Array(items) => {
            Some(items.iter().map(|item| without_empty(Some(item)).unwrap_or(Value::Null)).collect())
        }
        Value::Object(fields) => {
            let kept: Map<String, Value> =
                fields.iter().filter_map(|(key, field)| Some((key.clone(), without_empty(Some(field))?))).collect();
            (!kept.is_empty()).then_some(Value::Object(kept))
        }
        scalar => Some(scalar.clone()),
    }
}

/// Everything wanted is there; what the server's defaults or somebody else added is no difference.
fn covers(seen: &Value, want: &Value) -> bool {
    match (seen, want) {
        (Value::Object(seen), Value::Object(want)) => {
            want.iter().all(|(key, want)| seen.get(key).is_some_and(|seen| covers(seen, want)))
        }
        (Value::Array(seen), Value::Array(want)) => {
            seen.len() == want.len() && seen.iter().zip(want).all(|(seen, want)| covers(seen, want))
        }
        _ => seen == want,
    }
}

#[cfg(test)]
mod tests;
