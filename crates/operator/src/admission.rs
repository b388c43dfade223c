//! Whether a canary can be served in this cluster, beyond what its spec alone can say.
//!
//! Field errors with a path, like those of the spec: the same condition and the same Event tell about both.

use seaway_adapters::change::Kind;
use seaway_adapters::kinds::{ALERT_PROVIDER, METRIC_TEMPLATE};
use seaway_adapters::world::World;
use seaway_api::canary::NamespacedRef;
use seaway_api::{Canary, FieldError};
use serde_json::Value;

use crate::cache::Presence;

/// The installation's own limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Admission {
    /// Refuse references to objects of other namespaces.
    pub(crate) no_cross_namespace_refs: bool,
}

impl Admission {
    /// What stands against `canary`. `rivals` are all canaries of its target, itself among them.
    pub(crate) fn check(self, canary: &Canary, rivals: &[Value]) -> Vec<FieldError> {
        let mut errors: Vec<FieldError> = rivalry(canary, rivals).into_iter().collect();
        if self.no_cross_namespace_refs {
            errors.extend(foreign_references(canary));
        }
        errors
    }
}

/// A kind the router needs is not in the cluster.
pub(crate) fn registered(kind: Kind, presence: Presence) -> Option<FieldError> {
    (presence != Presence::Synced).then(|| {
        FieldError::new(
            "spec.provider",
            format!("{} CRD is not registered", kind.kind),
            format!("install the CRDs of {}", kind.group),
        )
    })
}

/// Of several canaries with one target the oldest goes on; at the same age the first by name.
fn rivalry(canary: &Canary, rivals: &[Value]) -> Option<FieldError> {
    let text =
        |rival: &Value, pointer: &str| rival.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    // Times are RFC 3339 in UTC with whole seconds, so their text sorts as they do.
    let rank = |rival: &Value| (text(rival, "/metadata/creationTimestamp"), text(rival, "/metadata/name"));
    let (_, first) = rivals.iter().map(rank).min()?;
    (first != canary.name()).then(|| {
        let target = &canary.spec.target_ref.name;
        let problem = format!("{target} is already the target of canary {first}");
        FieldError::new("spec.targetRef.name", problem, format!("delete this canary or {first}"))
    })
}

/// Objects the spec refers to that do not exist (yet). Only a warning: they may come, and checks without them never pass.
pub(crate) fn missing(canary: &Canary, world: &dyn World) -> Vec<FieldError> {
    let own = canary.namespace();
    let absent = |path: String, kind: Kind, reference: &NamespacedRef| {
        let namespace = reference.namespace_or(own);
        world.get(kind, namespace, &reference.name).is_none().then(|| {
            let problem = format!("{} {}.{namespace} does not exist", kind.kind, reference.name);
            FieldError::new(path, problem, "create it, or correct the reference")
        })
    };
    let Some(analysis) = canary.spec.analysis() else { return Vec::new() };
    let metrics = analysis.metrics.iter().enumerate().filter_map(|(index, metric)| {
        let path = format!("spec.analysis.metrics[{index}].templateRef");
        absent(path, METRIC_TEMPLATE, metric.template_ref.as_ref()?)
    });
    let alerts = analysis.alerts.iter().enumerate().filter_map(|(index, alert)| {
        absent(format!("spec.analysis.alerts[{index}].providerRef"), ALERT_PROVIDER, &alert.provider_ref)
    });
    metrics.chain(alerts).collect()
}

fn foreign_references(canary: &Canary) -> Vec<FieldError> {
    let own = canary.namespace();
    let refused = |path: String, what: &str, name: &str, namespace: &str| {
        (namespace != own).then(|| {
            let problem = format!("can't access {what} {name}.{namespace}, cross-namespace references are blocked");
            FieldError::new(path, problem, "")
        })
    };
    let mut errors = Vec::new();
    if let Some(upstream) = canary.spec.upstream_ref.as_ref().filter(|upstream| !upstream.namespace.is_empty()) {
        errors.extend(refused("spec.upstreamRef".into(), "gloo upstream", &upstream.name, &upstream.namespace));
    }
    let Some(analysis) = canary.spec.analysis() else { return errors };
    let reference = |path: String, what: &str, reference: &NamespacedRef| {
        refused(path, what, &reference.name, reference.namespace_or(own))
    };
    for (index, metric) in analysis.metrics.iter().enumerate() {
        let path = format!("spec.analysis.metrics[{index}].templateRef");
        errors.extend(metric.template_ref.as_ref().and_then(|found| reference(path, "metric template", found)));
    }
    for (index, alert) in analysis.alerts.iter().enumerate() {
        let path = format!("spec.analysis.alerts[{index}].providerRef");
        errors.extend(reference(path, "alert provider", &alert.provider_ref));
    }
    errors
}

#[cfg(test)]
mod tests {
    use seaway_adapters::world::Objects;
    use serde_json::json;

    use super::*;

    fn rival(name: &str, created: &str) -> Value {
        json!({ "metadata": { "name": name, "creationTimestamp": created } })
    }

    #[test]
    fn the_older_of_two_canaries_on_one_target_goes_on() {
        let admission = Admission::default();
        let canary = Canary::test();
        let itself = rival("podinfo", "2024-01-01T00:00:05Z");
        assert!(admission.check(&canary, std::slice::from_ref(&itself)).is_empty());
        let younger = rival("a", "2024-01-01T00:00:06Z");
        assert!(admission.check(&canary, &[younger, itself.clone()]).is_empty());
        let older = rival("z", "2024-01-01T00:00:04Z");
        let errors = admission.check(&canary, &[older, itself.clone()]);
        assert_eq!(errors[0].problem, "podinfo is already the target of canary z");
        let same_age = rival("a", "2024-01-01T00:00:05Z");
        assert_eq!(admission.check(&canary, &[same_age, itself]).len(), 1, "the first by name");
    }

    #[test]
    fn a_template_that_does_not_exist_is_a_warning() {
        let mut canary = Canary::test();
        let analysis = canary.spec.analysis.as_mut().unwrap();
        let reference = NamespacedRef { name: "latency".into(), namespace: String::new() };
        analysis.metrics[1].template_ref = Some(reference);
        let mut world = Objects::default();
        let warnings = missing(&canary, &world);
        assert_eq!(warnings[0].path, "spec.analysis.metrics[1].templateRef");
        assert_eq!(warnings[0].problem, "MetricTemplate latency.test does not exist");
        world.insert(json!({ "kind": "MetricTemplate", "metadata": { "name": "latency", "namespace": "test" } }));
        assert!(missing(&canary, &world).is_empty());
    }

    #[test]
    fn references_to_other_namespaces_can_be_refused() {
        let mut canary = Canary::test();
        let analysis = canary.spec.analysis.as_mut().unwrap();
        analysis.metrics[0].template_ref =
            Some(NamespacedRef { name: "error-rate".into(), namespace: "istio-system".into() });
        assert!(Admission::default().check(&canary, &[]).is_empty());
        let errors = Admission { no_cross_namespace_refs: true }.check(&canary, &[]);
        assert_eq!(errors[0].path, "spec.analysis.metrics[0].templateRef");
        assert_eq!(
            errors[0].problem,
            "can't access metric template error-rate.istio-system, cross-namespace references are blocked"
        );
    }
}
