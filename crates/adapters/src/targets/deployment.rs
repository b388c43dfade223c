//! Deployments as targets: how ready they are, the primary made from one, its promotion, the target's size.
//!
//! A primary is created once, with its replicas. After that its size belongs to its autoscaler; only a target without
//! one hands its replicas on at a promotion. Annotations and labels that others put on a primary stay.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use seaway_api::Canary;
use seaway_core::observed::{Readiness, Workload};
use serde_json::{Map, Value, json};

use super::template::{FLAGGER_ID, primary_template};
use super::{Conventions, Selector};
use crate::change::Change;
use crate::kinds::DEPLOYMENT;
use crate::object::{self, CREATE_MANAGER, Patch, at, is_flux, list, number, owner_reference, segment, strings, text};
use crate::refusal::Refusal;
use crate::zoo;

/// Fields of `spec` that a primary takes over besides the template.
pub(super) const COPIED: [&str; 4] = ["progressDeadlineSeconds", "minReadySeconds", "revisionHistoryLimit", "strategy"];

/// Annotations that describe the target alone: what kubectl applied to it, and its own rollout counter.
const NOT_COPIED: [&str; 2] = ["kubectl.kubernetes.io/last-applied-configuration", "deployment.kubernetes.io/revision"];

/// A Deployment, reduced to what the rules ask. `threshold` is the percentage of updated pods that must be available,
/// `until` the time at which one that is [`unavailable`] counts as failed.
pub fn observe(deployment: &Value, threshold: i64, until: Option<Timestamp>, now: Timestamp) -> Workload {
    let id = at(deployment, "/spec/template/metadata/annotations").and_then(|all| all.get(FLAGGER_ID));
    Workload {
        replicas: replicas(deployment),
        ready: count(deployment, "/status/readyReplicas"),
        readiness: readiness(deployment, threshold, until, now),
        id: id.and_then(Value::as_str).map(str::to_owned),
    }
}

fn count(deployment: &Value, pointer: &str) -> u32 {
    number(deployment, pointer).and_then(|count| u32::try_from(count).ok()).unwrap_or_default()
}

fn replicas(deployment: &Value) -> u32 {
    match number(deployment, "/spec/replicas") {
        Some(replicas) => u32::try_from(replicas).unwrap_or_default(),
        None => 1,
    }
}

fn condition<'a>(deployment: &'a Value, type_: &str) -> Option<&'a Value> {
    list(deployment, "/status/conditions").iter().find(|condition| text(condition, "/type") == type_)
}

fn readiness(deployment: &Value, threshold: i64, until: Option<Timestamp>, now: Timestamp) -> Readiness {
    let generation = number(deployment, "/metadata/generation").unwrap_or_default();
    if number(deployment, "/status/observedGeneration").unwrap_or_default() < generation {
        let reason = "waiting for rollout to finish: observed deployment generation less than desired generation";
        return Readiness::Waiting { reason: reason.into(), until: None };
    }
    let progressing = condition(deployment, "Progressing");
    if progressing.is_some_and(|condition| text(condition, "/reason") == "ProgressDeadlineExceeded") {
        let reason = format!("deployment {:?} exceeded its progress deadline", text(deployment, "/metadata/name"));
        return Readiness::Failed { reason };
    }
    let Some(reason) = unfinished(deployment, threshold) else { return Readiness::Ready };
    match until.filter(|_| unavailable(deployment).is_some()) {
        Some(until) if until <= now => Readiness::Failed { reason },
        until => Readiness::Waiting { reason, until },
    }
}

/// Since when too few pods are available, as the cluster's own clock says; `None` while enough are. It tells one outage
/// from the next. How long one lasts is for the caller to measure: the cluster's clock is not ours, and either may be set.
pub fn unavailable(deployment: &Value) -> Option<&str> {
    condition(deployment, "Progressing")?;
    let available = condition(deployment, "Available")?;
    let short = text(available, "/status") == "False" && text(available, "/reason") == "MinimumReplicasUnavailable";
    short.then(|| text(available, "/lastUpdateTime"))
}

fn unfinished(deployment: &Value, threshold: i64) -> Option<String> {
    let wanted = replicas(deployment);
    let updated = count(deployment, "/status/updatedReplicas");
    let all = count(deployment, "/status/replicas");
    let available = count(deployment, "/status/availableReplicas");
    if wanted == 0 && !zoo::ZERO_IS_READY {
        return Some("waiting for rollout to finish: scaled to zero".into());
    }
    if updated < wanted {
        return Some(format!(
            "waiting for rollout to finish: {updated} out of {wanted} new replicas have been updated"
        ));
    }
    if all > updated {
        let old = all - updated;
        return Some(format!("waiting for rollout to finish: {old} old replicas are pending termination"));
    }
    // A threshold that rounds down to nothing would call a workload ready that answers nobody.
    let needed = u32::try_from(i64::from(updated) * threshold.clamp(0, 100) / 100).unwrap_or(updated);
    let needed = if zoo::ZERO_IS_READY { needed } else { needed.max(1) };
    (available < needed).then(|| {
        format!(
            "waiting for rollout to finish: {available} of {needed} (readyThreshold {threshold}%) updated replicas are available"
        )
    })
}

/// Creates the primary of a target.
pub fn create_primary(
    canary: &Canary,
    target: &Value,
    tracked: &BTreeSet<String>,
    conventions: &Conventions,
    id: &str,
) -> Result<Change, Refusal> {
    let selector = Selector::of(target, conventions)?;
    let mut labels = conventions.included(&strings(target, "/metadata/labels"));
    labels.insert(selector.label.clone(), selector.primary_value());
    let mut annotations = strings(target, "/metadata/annotations");
    annotations.retain(|key, _| !is_flux(key) && !NOT_COPIED.contains(&key.as_str()));
    let metadata = json!({
        "name": canary.primary_workload(), "namespace": canary.namespace(),
        "labels": labels, "annotations": annotations, "ownerReferences": [owner_reference(canary)],
    });
    let mut spec = Map::new();
    spec.insert("replicas".into(), replicas(target).max(1).into());
    for field in COPIED {
        if let Some(value) = target.get("spec").and_then(|spec| spec.get(field)) {
            spec.insert(field.into(), value.clone());
        }
    }
    spec.insert("selector".into(), json!({ "matchLabels": { &selector.label: selector.primary_value() } }));
    spec.insert("template".into(), primary_template(target, &selector, tracked, conventions, Some(id)));
    Ok(object::create(DEPLOYMENT, metadata, Map::from_iter([("spec".into(), Value::Object(spec))]), CREATE_MANAGER))
}

/// Brings a primary to its target's template: byte-equal but for the rewriting, fields that the target dropped included.
pub fn promote(
    canary: &Canary,
    target: &Value,
    primary: &Value,
    tracked: &BTreeSet<String>,
    conventions: &Conventions,
    id: &str,
) -> Result<Option<Change>, Refusal> {
    let selector = Selector::of(target, conventions)?;
    let mut patch = Patch::of(DEPLOYMENT, primary);
    for field in COPIED {
        patch.set_or_unset(&format!("/spec/{field}"), target.get("spec").and_then(|spec| spec.get(field)));
    }
    let replicas = replicas(target);
    if canary.spec.autoscaler_ref.is_none() && replicas > 0 {
        patch.set("/spec/replicas", replicas);
    }
    patch.set("/spec/template", primary_template(target, &selector, tracked, conventions, Some(id)));
    let mut labels = conventions.included(&strings(target, "/metadata/labels"));
    labels.insert(selector.label.clone(), selector.primary_value());
    follow(&mut patch, "/metadata/labels", &labels, primary, conventions);
    let mut annotations = conventions.included(&strings(target, "/metadata/annotations"));
    annotations.retain(|key, _| !NOT_COPIED.contains(&key.as_str()));
    follow(&mut patch, "/metadata/annotations", &annotations, primary, conventions);
    Ok(patch.finish())
}

/// Entries of the included prefixes follow the target: set and, where the prefix is ours to judge, removed. With `*`
/// everything is included, and nothing tells ours from foreign, so nothing is removed.
fn follow(
    patch: &mut Patch<'_>,
    path: &str,
    wanted: &BTreeMap<String, String>,
    primary: &Value,
    conventions: &Conventions,
) {
    patch.merge(path, wanted);
    if conventions.include_label_prefixes.iter().any(|prefix| prefix == "*") {
        return;
    }
    for key in conventions.included(&strings(primary, path)).keys().filter(|key| !wanted.contains_key(*key)) {
        patch.unset(&format!("{path}/{}", segment(key)));
    }
}

/// Whether the primary runs exactly what the target would: for taking over a status whose hash nobody can compute.
/// Tracked configs are compared by the caller.
pub fn equals_primary(target: &Value, primary: &Value, tracked: &BTreeSet<String>, conventions: &Conventions) -> bool {
    let Ok(selector) = Selector::of(target, conventions) else { return false };
    let want = primary_template(target, &selector, tracked, conventions, None);
    let mut have = json!({
        "metadata": {
            "labels": strings(primary, "/spec/template/metadata/labels"),
        },
        "spec": at(primary, "/spec/template/spec").cloned().unwrap_or_default(),
    });
    let mut annotations = strings(primary, "/spec/template/metadata/annotations");
    annotations.remove(FLAGGER_ID);
    if !annotations.is_empty() {
        have["metadata"]["annotations"] = json!(annotations);
    }
    want == have
}

/// Gives a Deployment this size; nothing when it has it.
pub fn scale(deployment: &Value, replicas: u32) -> Option<Change> {
    let mut patch = Patch::of_spec(DEPLOYMENT, deployment);
    patch.set("/spec/replicas", replicas);
    patch.finish()
}

/// The size of a target that is about to be analysed: what it has; else what its autoscaler begins with; else what the
/// primary has; never zero.
pub fn size_for_analysis(canary: &Canary, target: &Value, primary: Option<&Value>, autoscaler: Option<&Value>) -> u32 {
    let own = replicas(target);
    if own > 0 {
        return own;
    }
    if canary.spec.autoscaler_ref.is_some() {
        return autoscaler.map_or(1, |hpa| count(hpa, "/spec/minReplicas")).max(1);
    }
    primary.map_or(1, replicas).max(1)
}

/// The size of a target that takes over from its primary: at least one, and the primary's where there is one. Never more
/// than the target's own autoscaler allows, or the two would undo each other for ever.
pub fn size_of_primary(canary: &Canary, target: &Value, primary: Option<&Value>, autoscaler: Option<&Value>) -> u32 {
    let most = autoscaler.map(|hpa| count(hpa, "/spec/maxReplicas")).filter(|most| *most > 0).unwrap_or(u32::MAX);
    match primary {
        Some(primary) => replicas(primary).clamp(1, most),
        None => size_for_analysis(canary, target, None, autoscaler),
    }
}

/// The text of a target that does not exist, as Flagger words it.
pub fn not_found(namespace: &str, name: &str) -> Refusal {
    Refusal::cluster(format!("deployment {name}.{namespace} get query error: deployments.apps {name:?} not found"))
}

#[cfg(test)]
mod tests;
