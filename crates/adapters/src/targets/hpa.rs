//! HorizontalPodAutoscalers: the primary's copy of the target's.
//!
//! The target's own autoscaler is never written: at zero replicas it rests by itself.

use seaway_api::Canary;
use seaway_api::canary::AutoscalerRef;
use serde_json::{Map, Value, json};

use super::ownership;
use crate::change::Change;
use crate::kinds::HPA;
use crate::object::{self, MANAGER, Patch, is_flux, owner_reference, strings, text};
use crate::refusal::Refusal;
use crate::world::World;

/// Fields of `spec` that follow the target's autoscaler.
const FOLLOWED: [&str; 4] = ["minReplicas", "maxReplicas", "metrics", "behavior"];

/// The primary's autoscaler exists; with `refresh` it also follows the target's. Nothing without an `autoscalerRef`.
///
/// A target's autoscaler that is missing refuses only a refresh: a primary that has its own, or has none, goes on as it
/// is, and nothing else has to wait. See [`missing`].
pub fn primary(canary: &Canary, world: &dyn World, refresh: bool) -> Result<Vec<Change>, Refusal> {
    let Some(autoscaler) = &canary.spec.autoscaler_ref else { return Ok(Vec::new()) };
    if autoscaler.kind != "HorizontalPodAutoscaler" {
        let kind = &autoscaler.kind;
        return Err(Refusal::user(format!(
            "spec.autoscalerRef.kind: {kind} is not supported; use HorizontalPodAutoscaler"
        )));
    }
    let namespace = canary.namespace();
    let seen = world.get(HPA, namespace, &autoscaler.primary_name());
    if seen.is_some() && !refresh {
        return Ok(Vec::new());
    }
    let Some(target) = world.get(HPA, namespace, &autoscaler.name) else {
        return if refresh { Err(not_found(autoscaler, namespace)) } else { Ok(Vec::new()) };
    };
    let spec = spec(canary, autoscaler, &target);
    let mut labels = strings(&target, "/metadata/labels");
    labels.retain(|key, _| !is_flux(key));
    let Some(seen) = seen else {
        let metadata = json!({
            "name": autoscaler.primary_name(), "namespace": namespace,
            "labels": labels, "ownerReferences": [owner_reference(canary)],
        });
        return Ok(vec![object::create(
            HPA,
            metadata,
            Map::from_iter([("spec".into(), Value::Object(spec))]),
            MANAGER,
        )]);
    };
    ownership::ours(canary, ownership::AUTOSCALER, &seen)?;
    let mut patch = Patch::of(HPA, &seen);
    for field in FOLLOWED {
        patch.set_or_unset(&format!("/spec/{field}"), spec.get(field));
    }
    patch.merge("/metadata/labels", &labels);
    Ok(patch.finish().into_iter().collect())
}

/// The target's autoscaler that the spec names and nobody has made, in Flagger's words: for people.
pub fn missing(canary: &Canary, world: &dyn World) -> Option<Refusal> {
    let autoscaler = canary.spec.autoscaler_ref.as_ref()?;
    let namespace = canary.namespace();
    world.get(HPA, namespace, &autoscaler.name).is_none().then(|| not_found(autoscaler, namespace))
}

fn not_found(autoscaler: &AutoscalerRef, namespace: &str) -> Refusal {
    let name = &autoscaler.name;
    Refusal::cluster(format!(
        "HorizontalPodAutoscaler {name}.{namespace} get query error: horizontalpodautoscalers.autoscaling {name:?} not found"
    ))
}

fn spec(canary: &Canary, autoscaler: &AutoscalerRef, target: &Value) -> Map<String, Value> {
    let reference = json!({
        "apiVersion": text(target, "/spec/scaleTargetRef/apiVersion"),
        "kind": text(target, "/spec/scaleTargetRef/kind"),
        "name": canary.primary_workload(),
    });
    let mut spec = Map::from_iter([("scaleTargetRef".into(), reference)]);
    for field in FOLLOWED {
        if let Some(value) = target.get("spec").and_then(|spec| spec.get(field)) {
            spec.insert(field.into(), value.clone());
        }
    }
    if let Some(bounds) = &autoscaler.primary_scaler_replicas {
        for (field, bound) in [("minReplicas", bounds.min_replicas), ("maxReplicas", bounds.max_replicas)] {
            if let Some(bound) = bound {
                spec.insert(field.into(), bound.into());
            }
        }
    }
    spec
}

#[cfg(test)]
mod tests;
