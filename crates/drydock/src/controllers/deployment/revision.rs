//! Which ReplicaSet belongs to the Deployment's present pod template, and what is written on it.
//!
//! A ReplicaSet is recognised by an equal template, not by its name: the hash in the name only keeps names apart.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::super::hashed_name;
use super::super::objects::controlled_by;
use super::rollout::{Fences, wanted};

/// Label that tells the pods of one template from those of another.
pub(super) const HASH: &str = "pod-template-hash";
/// Annotation with the number of the rollout.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of the Deployment that say nothing about the ReplicaSet.
const NOT_COPIED: [&str; 5] =
    ["kubectl.kubernetes.io/last-applied-configuration", REVISION, REVISION_HISTORY, DESIRED, MAX];

/// The ReplicaSets of a Deployment: the one of its present template, and the others.
pub(super) fn split(
    deployment: &Deployment,
    sets: Vec<Arc<ReplicaSet>>,
) -> (Option<Arc<ReplicaSet>>, Vec<Arc<ReplicaSet>>) {
    let Some(spec) = &deployment.spec else { return (None, sets) };
    let mut new: Option<Arc<ReplicaSet>> = None;
    for set in &sets {
        // The oldest of several equal ones, so that all observers pick the same.
        let older = new.as_ref().is_none_or(|new| set.metadata.creation_timestamp < new.metadata.creation_timestamp);
        if older && has_template(set, &spec.template) {
            new = Some(set.clone());
        }
    }
    let old = sets.into_iter().filter(|set| new.as_ref().is_none_or(|new| !Arc::ptr_eq(new, set))).collect();
    (new, old)
}

/// Whether the ReplicaSet runs this template, the hash label aside.
pub(super) fn has_template(set: &ReplicaSet, template: &PodTemplateSpec) -> bool {
    let Some(own) = set.spec.as_ref().and_then(|spec| spec.template.as_ref()) else { return false };
    without_hash(own) == without_hash(template)
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    if let Some(labels) = template.metadata.as_mut().and_then(|meta| meta.labels.as_mut()) {
        labels.remove(HASH);
    }
    template
}

/// A short name for a template. `collisions` is raised when the name is taken by another template.
fn hash(template: &PodTemplateSpec, collisions: i32) -> String {
    let mut bytes = serde_json::to_vec(template).unwrap_or_default();
    if collisions > 0 {
        bytes.extend(collisions.to_be_bytes());
    }
    hashed_name(&bytes, 10)
}

/// The ReplicaSet for the Deployment's present template, with nothing but its size to be decided.
pub(super) fn new_replica_set(deployment: &Deployment, old: &[Arc<ReplicaSet>], replicas: i32) -> Option<ReplicaSet> {
    let spec = deployment.spec.as_ref()?;
    let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0);
    let hash = hash(&spec.template, collisions);
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.insert(HASH.into(), hash.clone());
    let labels = labels.clone();
    let mut selector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().insert(HASH.into(), hash.clone());
    let mut set = ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{}-{hash}", deployment.metadata.name.as_deref()?)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            owner_references: Some(vec![controlled_by(deployment)?]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            min_ready_seconds: spec.min_ready_seconds,
            replicas: Some(replicas),
            selector,
            template: Some(template),
        }),
        status: None,
    };
    set.metadata.annotations = Some(annotations(deployment, &set, old));
    Some(set)
}

/// What the new ReplicaSet's annotations should be. A template that comes back gets the next number and remembers
/// its earlier ones.
pub(super) fn annotations(
    deployment: &Deployment,
    set: &ReplicaSet,
    old: &[Arc<ReplicaSet>],
) -> BTreeMap<String, String> {
    let mut annotations = set.metadata.annotations.clone().unwrap_or_default();
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !NOT_COPIED.contains(&key.as_str()) {
            annotations.insert(key.clone(), value.clone());
        }
    }
    let next = old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1;
    let own = revision(set);
    if own < next {
        if own > 0 {
            let history = annotations.entry(REVISION_HISTORY.into()).or_default();
            if !history.is_empty() {
                history.push(',');
            }
            history.push_str(&own.to_string());
        }
        annotations.insert(REVISION.into(), next.to_string());
    }
    annotations.extend(size_annotations(deployment));
    annotations
}

/// What a ReplicaSet of this Deployment says about the whole, so that a later change of size can be noticed.
pub(super) fn size_annotations(deployment: &Deployment) -> BTreeMap<String, String> {
    let wanted = wanted(deployment);
    let most = wanted + Fences::of(deployment).surge;
    BTreeMap::from([(DESIRED.into(), wanted.to_string()), (MAX.into(), most.to_string())])
}

/// The number of the rollout that made or last used this ReplicaSet; 0 if it has none.
pub(super) fn revision(set: &ReplicaSet) -> i64 {
    number(set, REVISION).unwrap_or(0)
}

/// The Deployment's size when this ReplicaSet was last resized.
pub(super) fn desired_annotation(set: &ReplicaSet) -> Option<i32> {
    number(set, DESIRED)
}

/// The most replicas the Deployment allowed when this ReplicaSet was last resized.
pub(super) fn max_annotation(set: &ReplicaSet) -> Option<i32> {
    number(set, MAX)
}

fn number<T: std::str::FromStr>(set: &ReplicaSet, annotation: &str) -> Option<T> {
    set.metadata.annotations.as_ref()?.get(annotation)?.parse().ok()
}
