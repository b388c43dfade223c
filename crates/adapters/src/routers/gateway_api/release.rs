//! How a route leaves our hands when its Canary is deleted with `revertOnDeletion`, and comes back with the next one.
//!
//! It is led to the apex Service first and stays ours meanwhile, so that edits of others are repaired. Then it is let go,
//! with an annotation: deleting it to make room for a new Canary would be downtime, and a route that never was ours must
//! not be touched. Whoever wants to keep a released route for themselves takes the annotation away, or leads the route
//! elsewhere.
//!
//! On both ways the route announces where it will lead: it names those Services, without a share. A data plane that is sent
//! to a Service it has not heard of answers with errors until it has: Envoy, for some ten milliseconds, with 503. For the same
//! reason the Services that it led to before stay named, without a share: Envoy may be told that they are gone before it is
//! told of the new route.

use std::collections::BTreeMap;

use seaway_api::Canary;
use serde_json::{Value, json};

use super::rule::Shape;
use super::{
    Subject, backend_of, backend_ref, is_at_home, is_namesake, is_ours, is_service, merged_backends, our_rule,
    put_rule, test_names, weight_of,
};
use crate::object::{self, Patch, at, controller, list, number, owner_reference};
use crate::refusal::Refusal;
use crate::targets::services::{Moment, apex_has, apex_port};
use crate::term::TERM;
use crate::world::World;

/// Which Canary a route was released by.
pub(super) const RELEASED_BY: &str = "seaway.dev/released-by";

/// Some rule names the apex Service.
pub(super) fn names_apex(canary: &Canary, seen: &Value) -> bool {
    let mut backends = list(seen, "/spec/rules").iter().flat_map(|rule| list(rule, "/backendRefs"));
    backends.any(|backend| is_apex(canary, backend))
}

/// The backend is the apex Service.
pub(super) fn is_apex(canary: &Canary, backend: &Value) -> bool {
    is_service(backend, canary.apex_name()) && is_at_home(canary, backend)
}

/// The rule leads to the apex Service and nowhere else. Services of ours may be announced in it.
pub(super) fn leads_to_apex(subject: &Subject<'_>, rule: &Value) -> bool {
    let (apex, others): (Vec<&Value>, Vec<&Value>) =
        list(rule, "/backendRefs").iter().partition(|backend| is_apex(subject.canary, backend));
    let announced = |backend: &Value| is_namesake(subject, backend) && weight_of(backend) == 0;
    !apex.is_empty() && others.into_iter().all(announced)
}

/// A route that a Canary released and that is still as it was left: nobody's, and leading to the apex Service. The Canary
/// may have had another name; what counts is that we made the route.
pub(super) fn is_free(subject: &Subject<'_>, seen: &Value) -> bool {
    let released = at(seen, "/metadata/annotations").is_some_and(|notes| notes.get(RELEASED_BY).is_some());
    let as_it_was_left = list(seen, "/spec/rules").iter().any(|rule| leads_to_apex(subject, rule));
    released && controller(seen).is_none() && as_it_was_left
}

/// Every rule that leads to a backend of ours, its backends, and the first of ours among them.
fn rules_to_variants<'a>(
    subject: &Subject<'_>,
    seen: &'a Value,
) -> impl Iterator<Item = (usize, &'a [Value], &'a Value)> {
    list(seen, "/spec/rules").iter().enumerate().filter_map(|(index, rule)| {
        let backends = list(rule, "/backendRefs");
        Some((index, backends, backends.iter().find(|backend| backend_of(subject, backend).is_some())?))
    })
}

/// The apex Service by this port, with what others put on the backend whose place it takes.
fn apex_in_place_of(backend: &Value, canary: &Canary, port: i64, share: i64) -> Value {
    let mut apex = backend.clone();
    object::extend(&mut apex, backend_ref(canary.apex_name(), port, share));
    apex
}

/// The port of the apex Service when it is given back. What served until now is asked for first: the spec may say another one
/// since, or cannot be read.
fn given_back(canary: &Canary, world: &dyn World, served: Option<i64>) -> Result<i64, Refusal> {
    let in_spec = || canary.spec.service.as_ref().map(|service| service.port);
    apex_port(canary, world, Moment::GivenBack, served.or_else(in_spec).unwrap_or_default())
}

/// The same backend, named and no more.
fn without_share(backend: &Value) -> Value {
    let mut named = backend.clone();
    object::extend(&mut named, json!({ "weight": 0 }));
    named
}

/// The apex Service as a rule goes on to name it that was taken over from it: without a share, by a port that it has. A rule
/// that names a port that is not there is at fault in the eyes of gateways.
pub(super) fn still_named(subject: &Subject<'_>, world: &dyn World, apex: &Value) -> Option<Value> {
    let mut named = without_share(apex);
    object::extend(&mut named, json!({ "port": port_it_has(subject, world, apex).ok()? }));
    Some(named)
}

/// A port that the apex Service has now: the one by which it is named, as long as it has that.
fn port_it_has(subject: &Subject<'_>, world: &dyn World, apex: &Value) -> Result<i64, Refusal> {
    let named = number(apex, "/port").filter(|port| apex_has(subject.canary, world, *port));
    named.map_or_else(|| apex_port(subject.canary, world, Moment::Now, subject.port()), Ok)
}

/// Makes the patch name the apex Service, without a share, in every rule that [`lead_to_apex`] leads there, by the port by
/// which that leads there. A data plane knows a Service by each port apart.
pub(super) fn announce_apex(
    patch: &mut Patch<'_>,
    subject: &Subject<'_>,
    world: &dyn World,
    seen: &Value,
) -> Result<(), Refusal> {
    for (index, backends, first) in rules_to_variants(subject, seen) {
        let port = given_back(subject.canary, world, number(first, "/port"))?;
        let named = backends.iter().position(|backend| is_apex(subject.canary, backend));
        let path = format!("/spec/rules/{index}/backendRefs");
        match named.and_then(|place| Some((place, backends.get(place)?))) {
            None => {
                test_names(patch, seen, index);
                patch.add(&format!("{path}/-"), apex_in_place_of(first, subject.canary, port, 0));
            }
            Some((_, known)) if number(known, "/port") == Some(port) => {}
            Some((place, known)) => {
                test_names(patch, seen, index);
                patch.set(&format!("{path}/{place}"), apex_in_place_of(known, subject.canary, port, 0));
            }
        }
    }
    Ok(())
}

/// Makes the patch name our backends, without a share, in this rule, which leads to the apex Service. It goes on to lead there
/// by the same port, if the Service has that.
pub(super) fn announce_variants(
    patch: &mut Patch<'_>,
    subject: &Subject<'_>,
    world: &dyn World,
    seen: &Value,
    rule: usize,
) -> Result<(), Refusal> {
    let path = format!("/spec/rules/{rule}/backendRefs");
    let mut all = Vec::new();
    for backend in list(seen, &path).iter().filter(|backend| is_apex(subject.canary, backend)) {
        let mut apex = backend.clone();
        object::extend(&mut apex, json!({ "port": port_it_has(subject, world, backend)? }));
        all.push(apex);
    }
    all.extend(merged_backends(subject, seen, rule, |_| 0));
    test_names(patch, seen, rule);
    patch.set(&path, all);
    Ok(())
}

/// What becomes of our backends in a route that is led to the apex Service.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Variants {
    /// They stay named, without a share.
    Named,
    /// They are forgotten: those Services go with the Canary.
    Forgotten,
}

/// Makes the patch lead every rule that names a backend of ours to the apex Service instead. Backends of others keep their
/// share. Our rule is put back if somebody has taken it away.
pub(super) fn lead_to_apex(
    patch: &mut Patch<'_>,
    subject: &Subject<'_>,
    world: &dyn World,
    seen: &Value,
    variants: Variants,
) -> Result<(), Refusal> {
    let canary = subject.canary;
    // A spec that cannot be read any more says nothing of our rule.
    let shape = canary.spec.service.as_ref().and_then(|service| Shape::of(service).ok());
    let own_rule = shape.as_ref().and_then(|shape| our_rule(subject, seen, shape));
    let mut ours = 0;
    for (index, backends, first) in rules_to_variants(subject, seen) {
        // Where our rule leads to no Service of ours any more it led to the apex Service, which somebody has moved since.
        let leads_on =
            |backend: &Value| is_apex(canary, backend) || is_namesake(subject, backend) && weight_of(backend) > 0;
        let is_moved_apex = |backend: &Value| is_service(backend, canary.apex_name());
        let moved = own_rule == Some(index) && !backends.iter().any(leads_on);
        let (own, others): (Vec<&Value>, Vec<&Value>) = backends.iter().partition(|backend| {
            is_namesake(subject, backend) || is_apex(canary, backend) || moved && is_moved_apex(backend)
        });
        ours += 1;
        let share: i64 = if others.is_empty() { 100 } else { own.iter().copied().map(weight_of).sum() };
        let known = own.iter().find(|backend| is_apex(canary, backend));
        let port = given_back(canary, world, number(first, "/port"))?;
        let apex = apex_in_place_of(known.unwrap_or(&first), canary, port, share);
        let named = subject.backends.iter().filter(|_| variants == Variants::Named);
        let named = named.filter_map(|backend| own.iter().find(|seen_ref| is_ours(subject, seen_ref, backend)));
        let named: Vec<Value> = named.map(|backend| without_share(backend)).collect();
        test_names(patch, seen, index);
        let all: Vec<&Value> = std::iter::once(&apex).chain(&named).chain(others).collect();
        patch.set(&format!("/spec/rules/{index}/backendRefs"), json!(all));
    }
    if let Some(shape) = shape.filter(|_| ours == 0 && !names_apex(canary, seen)) {
        let port = given_back(canary, world, None)?;
        put_rule(patch, subject, seen, &shape, json!([backend_ref(canary.apex_name(), port, 100)]));
    }
    Ok(())
}

/// Makes the patch let go of the route. Whose term it was matters to nobody then.
pub(super) fn let_go(patch: &mut Patch<'_>, canary: &Canary) {
    patch.unset_key("/metadata/labels", TERM);
    patch.merge("/metadata/annotations", &BTreeMap::from([(RELEASED_BY.to_owned(), canary.name().to_owned())]));
    patch.disown(canary);
}

/// Makes the patch take a released route back.
pub(super) fn take_back(patch: &mut Patch<'_>, canary: &Canary, seen: &Value) {
    patch.unset_key("/metadata/annotations", RELEASED_BY);
    let owners = list(seen, "/metadata/ownerReferences");
    let owners: Vec<Value> = owners.iter().cloned().chain([owner_reference(canary)]).collect();
    patch.set("/metadata/ownerReferences", owners);
}
