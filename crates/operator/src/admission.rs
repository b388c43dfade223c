//! Whether a canary can be served in this cluster, beyond what its spec alone can say.
//!
//! Field errors with a path, like those of the spec: the same condition and the same Event tell about both. What a spec
//! may refer to is checked with the spec.

use std::borrow::Borrow;

use seaway_adapters::change::Kind;
use seaway_adapters::kinds::{ALERT_PROVIDER, METRIC_TEMPLATE};
use seaway_adapters::object::text;
use seaway_adapters::world::World;
use seaway_api::canary::NamespacedRef;
use seaway_api::{Canary, FieldError};
use serde_json::{Map, Value, json};

use crate::cache::Presence;

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

/// Of several canaries with one target the oldest goes on; at the same age the first by name. `rivals` are all of them,
/// `canary` itself among them.
pub(crate) fn rivalry(canary: &Canary, rivals: &[impl Borrow<Value>]) -> Option<FieldError> {
    // Times are RFC 3339 in UTC with whole seconds, so their text sorts as they do.
    let rank = |rival: &Value| {
        (text(rival, "/metadata/creationTimestamp").to_owned(), text(rival, "/metadata/name").to_owned())
    };
    let (_, first) = rivals.iter().map(|rival| rank(rival.borrow())).min()?;
    (first != canary.name()).then(|| {
        let target = &canary.spec.target_ref.name;
        let problem = format!("{target} is already the target of canary {first}");
        FieldError::new("spec.targetRef.name", problem, format!("delete this canary or {first}"))
    })
}

/// What is left of a stored Canary when everything that only a rollout needs is taken away: enough to find what was made
/// for it, and hardly anything that can be invalid.
pub(crate) fn remains(stored: &Value) -> Value {
    let kept = |from: &Value, keys: &[&str]| -> Map<String, Value> {
        let written = |key: &str| from.get(key).filter(|value| !value.is_null()).cloned();
        keys.iter().filter_map(|key| Some(((*key).to_owned(), written(key)?))).collect()
    };
    let none = Value::Null;
    let old = stored.get("spec").unwrap_or(&none);
    let mut spec = kept(old, &["provider", "targetRef", "revertOnDeletion"]);
    // Names are what matters of the Service. Its ports are asked for where it is gone itself; a port has to be there.
    let old = old.get("service").unwrap_or(&none);
    let mut service = kept(old, &["name"]);
    let numbered = |field: &str| old.get(field).filter(|port| matches!(port.as_i64(), Some(1..=65535))).cloned();
    let worded = |field: &str| old.get(field).filter(|word| word.is_string()).cloned();
    service.insert("port".into(), numbered("port").unwrap_or_else(|| json!(80)));
    let words = ["targetPort", "portName", "appProtocol"].map(|field| (field, worded(field)));
    let ports = [("targetPort", numbered("targetPort"))].into_iter().chain(words);
    service.extend(ports.filter_map(|(field, said)| Some((field.to_owned(), said?))));
    service.insert("gatewayRefs".into(), json!([{ "name": "any" }]));
    spec.insert("service".into(), service.into());
    spec.insert("skipAnalysis".into(), json!(true));
    let mut remains = kept(stored, &["apiVersion", "kind", "metadata", "status"]);
    remains.insert("spec".into(), spec.into());
    remains.into()
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

#[cfg(test)]
mod tests {
    use seaway_adapters::world::Objects;
    use seaway_core::plan::{Plan, Settings};

    use super::*;

    fn rival(name: &str, created: &str) -> Value {
        json!({ "metadata": { "name": name, "creationTimestamp": created } })
    }

    #[test]
    fn the_older_of_two_canaries_on_one_target_goes_on() {
        let canary = Canary::test();
        let itself = rival("podinfo", "2024-01-01T00:00:05Z");
        assert!(rivalry(&canary, std::slice::from_ref(&itself)).is_none());
        let younger = rival("a", "2024-01-01T00:00:06Z");
        assert!(rivalry(&canary, &[younger, itself.clone()]).is_none());
        let older = rival("z", "2024-01-01T00:00:04Z");
        let error = rivalry(&canary, &[older, itself.clone()]).unwrap();
        assert_eq!(error.problem, "podinfo is already the target of canary z");
        let same_age = rival("a", "2024-01-01T00:00:05Z");
        assert!(rivalry(&canary, &[same_age, itself]).is_some(), "the first by name");
    }

    #[test]
    fn a_spoilt_spec_still_says_what_to_put_back() {
        let mut stored = serde_json::to_value(Canary::test()).unwrap();
        let whole = Plan::new(&Canary::test(), &Settings::default()).unwrap();
        stored["spec"]["service"] = json!({ "name": stored["spec"]["service"]["name"], "port": "http", "retries": 7 });
        stored["spec"]["analysis"] = json!({ "threshold": 1.5 });
        stored["spec"]["revertOnDeletion"] = json!(true);
        assert!(seaway_api::canary::parse(stored.clone()).is_err());
        let canary = seaway_api::canary::parse(remains(&stored)).unwrap();
        let plan = Plan::new(&canary, &Settings::default()).unwrap();
        assert_eq!(
            (plan.uid, plan.apex, plan.target, plan.primary),
            (whole.uid, whole.apex, whole.target, whole.primary)
        );
        assert!(plan.revert_on_deletion);
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
}
