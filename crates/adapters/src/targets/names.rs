//! The names a Canary lives under, and a spec that says others.
//!
//! All names are derived from `spec.targetRef.name` and `spec.service.name`. Whoever edits one of them asks for new objects
//! under new names, while the route and the primary that serve users keep the old ones, with whatever weights they have,
//! and nobody would look after them any more. So such an edit is refused while the old objects carry traffic: the Canary
//! is held as it is until the name is put back, or the old objects are gone.
//!
//! Objects that a Canary owns under other names and does not use (Flagger leaves them behind when a name is edited) are
//! nobody's trouble: what counts is that there is nothing under the name the spec says.

use seaway_api::{Canary, FieldError};
use serde_json::Value;

use crate::kinds::{DEPLOYMENT, SERVICE};
use crate::object::{is_owned_by, number, strings, text, uid};
use crate::routers;
use crate::world::World;

/// Names in use that the spec does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InUse {
    /// The route, by kind and name: also the name of the apex Service.
    route: Option<(String, String)>,
    /// The target whose primary serves users.
    target: Option<String>,
}

impl InUse {
    /// The names `canary` lives under although its spec says others.
    pub fn of(canary: &Canary, world: &dyn World) -> Self {
        let namespace = canary.namespace();
        let service = world.get(SERVICE, namespace, &canary.primary_service());
        let service = service.filter(|service| is_owned_by(service, canary));
        let mut in_use = Self::default();
        // Where there is a Service for it, the spec's own route was there before and comes back.
        if service.is_none() {
            let routes = routers::kinds().flat_map(|kind| world.controlled(kind, namespace, uid(canary)));
            let mut names =
                routes.map(|route| (text(&route, "/kind").to_owned(), text(&route, "/metadata/name").to_owned()));
            in_use.route = names.find(|(_, name)| name != canary.apex_name());
        }
        if world.get(DEPLOYMENT, namespace, &canary.primary_workload()).is_none() {
            let serves = |workload: &Value| {
                number(workload, "/spec/replicas") != Some(0)
                    && service.as_ref().is_none_or(|service| selects(service, workload))
            };
            let workloads = world.controlled(DEPLOYMENT, namespace, uid(canary));
            let mut serving = workloads.iter().filter(|workload| serves(workload));
            let target = serving.find_map(|primary| text(primary, "/metadata/name").strip_suffix("-primary"));
            in_use.target = target.map(str::to_owned);
        }
        in_use
    }

    /// What is wrong with the spec, by field.
    pub fn errors(&self, canary: &Canary) -> Vec<FieldError> {
        let namespace = canary.namespace();
        let error = |path: &str, what: String, old: &str| {
            let problem = format!("{what} serves users under the old name, and would be left alone");
            FieldError::new(
                path,
                problem,
                format!("change it back to {old}, or delete this canary and create it again"),
            )
        };
        // A route that is named after the target moved because the target did.
        let route = self.route.as_ref().filter(|(_, name)| self.target.as_ref() != Some(name));
        let route = route.map(|(kind, name)| error("spec.service.name", format!("{kind} {name}.{namespace}"), name));
        let target = self
            .target
            .as_ref()
            .map(|target| error("spec.targetRef.name", format!("Deployment {target}-primary.{namespace}"), target));
        target.into_iter().chain(route).collect()
    }

    /// The Canary as it was before its names were edited: what deletion has to put back is under those.
    pub fn restore(self, mut canary: Canary) -> Canary {
        if let Some((_, name)) = self.route {
            canary.spec.service.get_or_insert_default().name = name;
        }
        if let Some(target) = self.target {
            canary.spec.target_ref.name = target;
        }
        canary
    }
}

/// Whether a Service leads to the pods of a workload.
fn selects(service: &Value, workload: &Value) -> bool {
    let labels = strings(workload, "/spec/template/metadata/labels");
    let selector = strings(service, "/spec/selector");
    !selector.is_empty() && selector.iter().all(|(key, value)| labels.get(key) == Some(value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::HTTP_ROUTE;
    use crate::object::owner_reference;
    use crate::world::Objects;

    fn owned(canary: &Canary, kind: &str, name: &str, spec: &Value) -> Value {
        let owners = [owner_reference(canary)];
        json!({ "kind": kind, "metadata": { "namespace": "test", "name": name, "ownerReferences": owners }, "spec": spec })
    }

    fn route(canary: &Canary, name: &str) -> Value {
        owned(canary, HTTP_ROUTE.kind, name, &Value::Null)
    }

    fn primary(canary: &Canary, target: &str) -> Value {
        let app = format!("{target}-primary");
        let spec = json!({ "replicas": 2, "template": { "metadata": { "labels": { "app": app, "tier": "web" } } } });
        owned(canary, DEPLOYMENT.kind, &format!("{target}-primary"), &spec)
    }

    fn service(canary: &Canary, apex: &str, app: &str) -> Value {
        owned(canary, SERVICE.kind, &format!("{apex}-primary"), &json!({ "selector": { "app": app } }))
    }

    fn sentences(in_use: &InUse, canary: &Canary) -> Vec<String> {
        in_use.errors(canary).iter().map(FieldError::sentence).collect()
    }

    /// Everything of a Canary that lives under `podinfo`.
    fn podinfo(canary: &Canary) -> Objects {
        let service = service(canary, "podinfo", "podinfo-primary");
        Objects::from_iter([route(canary, "podinfo"), primary(canary, "podinfo"), service])
    }

    #[test]
    fn names_that_the_spec_says_are_no_trouble() {
        let canary = Canary::test();
        let world = Objects::from_iter([route(&canary, "podinfo"), primary(&canary, "podinfo")]);
        assert_eq!(InUse::of(&canary, &world), InUse::default());
        assert_eq!(InUse::of(&canary, &Objects::default()), InUse::default(), "nothing is made yet");
        assert_eq!(InUse::default().restore(canary.clone()), canary);
    }

    #[test]
    fn an_edited_service_name_is_refused_while_the_old_route_serves() {
        let mut canary = Canary::test();
        let world = podinfo(&canary);
        canary.spec.service.as_mut().unwrap().name = "shop".into();
        let in_use = InUse::of(&canary, &world);
        assert_eq!(
            sentences(&in_use, &canary),
            ["spec.service.name: HTTPRoute podinfo.test serves users under the old name, and would be left alone; \
              change it back to podinfo, or delete this canary and create it again"]
        );
        assert_eq!(in_use.restore(canary).apex_name(), "podinfo");
    }

    #[test]
    fn an_edited_target_is_refused_while_the_old_primary_serves() {
        let mut canary = Canary::test();
        let world = podinfo(&canary);
        canary.spec.target_ref.name = "shop".into();
        let in_use = InUse::of(&canary, &world);
        let told = sentences(&in_use, &canary);
        assert_eq!(told.len(), 1, "one edit, one error: {told:?}");
        assert!(told[0].starts_with("spec.targetRef.name: Deployment podinfo-primary.test serves"), "{told:?}");
        let before = in_use.restore(canary);
        assert_eq!((before.apex_name(), before.primary_workload().as_str()), ("podinfo", "podinfo-primary"));

        let mut canary = Canary::test();
        canary.spec.service.as_mut().unwrap().name = "podinfo".into();
        canary.spec.target_ref.name = "shop".into();
        let told = sentences(&InUse::of(&canary, &world), &canary);
        assert!(
            told.len() == 1 && told[0].starts_with("spec.targetRef.name"),
            "with a Service of its own name: {told:?}"
        );
    }

    #[test]
    fn leftovers_of_an_older_name_hold_nothing_up() {
        let canary = Canary::test();
        let mut world = podinfo(&canary);
        for leftover in [route(&canary, "old"), primary(&canary, "old")] {
            world.insert(leftover);
        }
        assert_eq!(InUse::of(&canary, &world), InUse::default());
        world.remove(HTTP_ROUTE, "test", "podinfo");
        assert_eq!(InUse::of(&canary, &world), InUse::default(), "the route was deleted and comes back");
        world.remove(DEPLOYMENT, "test", "podinfo-primary");
        assert_eq!(InUse::of(&canary, &world), InUse::default(), "so does the primary");
        let mut theirs = Canary::test();
        theirs.metadata.uid = Some("another".into());
        assert_eq!(InUse::of(&canary, &Objects::from_iter([route(&theirs, "old")])), InUse::default());
    }
}
