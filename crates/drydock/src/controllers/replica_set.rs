//! The ReplicaSet controller: as many pods as asked for, and how many of them are ready and available.
//!
//! Deliberately absent: adoption of orphaned pods; a pod belongs to a ReplicaSet when the ReplicaSet made it.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{ReplicaSet, ReplicaSetCondition, ReplicaSetStatus};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt;

use super::objects::{Key, Objects, controlled_by};
use super::queue::Reconcile;
use super::{is_finished, ready_since, selects, stamp};
use crate::Clock;

const REPLICA_FAILURE: &str = "ReplicaFailure";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Keeps pods as each ReplicaSet asks.
pub(super) struct ReplicaSetController {
    pub(super) replica_sets: Objects<ReplicaSet>,
    pub(super) pods: Objects<Pod>,
    pub(super) clock: Clock,
}

impl Reconcile for ReplicaSetController {
    const NAME: &'static str = "replicaset";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(set) = self.replica_sets.get(key) else { return Ok(None) };
        let failure =
            if set.metadata.deletion_timestamp.is_some() { None } else { self.match_count(key, &set).await.err() };
        let (status, again) = self.status(&set, failure.as_ref());
        if set.status.as_ref() != Some(&status) {
            let mut after = set.as_ref().clone();
            after.status = Some(status);
            self.replica_sets.replace_status(&after).await?;
        }
        match failure {
            Some(error) => Err(error),
            None => Ok(again),
        }
    }
}

impl ReplicaSetController {
    /// The ReplicaSet's pods that neither ended nor are being deleted.
    fn active(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let (Some(uid), Some(spec)) = (&set.metadata.uid, &set.spec) else { return Vec::new() };
        let mut pods = self.pods.controlled_by(&set.namespace().unwrap_or_default(), uid);
        pods.retain(|pod| {
            pod.metadata.deletion_timestamp.is_none() && !is_finished(pod) && selects(&spec.selector, pod.as_ref())
        });
        pods
    }

    /// Lets go of pods that somebody labelled otherwise, to look at them in peace.
    async fn release(&self, set: &ReplicaSet) -> kube::Result<()> {
        let (Some(uid), Some(spec)) = (&set.metadata.uid, &set.spec) else { return Ok(()) };
        for pod in self.pods.controlled_by(&set.namespace().unwrap_or_default(), uid) {
            if pod.metadata.deletion_timestamp.is_some() || selects(&spec.selector, pod.as_ref()) {
                continue;
            }
            self.pods.release(&pod, uid).await?;
        }
        Ok(())
    }

    async fn match_count(&self, key: &Key, set: &ReplicaSet) -> kube::Result<()> {
        self.release(set).await?;
        let active = self.active(set);
        let wanted = set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let wanted = usize::try_from(wanted).unwrap_or(0);
        if active.len() < wanted {
            let Some(pod) = new_pod(set) else { return Ok(()) };
            for _ in active.len()..wanted {
                self.pods.create(&key.namespace, &pod).await?;
            }
        } else if active.len() > wanted {
            let surplus = active.len() - wanted;
            for pod in dispensable_first(active).into_iter().take(surplus) {
                self.pods.delete(&pod, None).await?;
            }
        }
        Ok(())
    }

    /// The status for the pods seen now, and when the next of them becomes available by the passing of time alone.
    fn status(&self, set: &ReplicaSet, failure: Option<&kube::Error>) -> (ReplicaSetStatus, Option<Timestamp>) {
        let active = self.active(set);
        let now = self.clock.now();
        let spec = set.spec.as_ref();
        let min_ready = spec.and_then(|spec| spec.min_ready_seconds).unwrap_or(0);
        let min_ready = Duration::from_secs(u64::try_from(min_ready).unwrap_or(0));
        let mut available = 0;
        let mut ready = 0;
        let mut next = None;
        for since in active.iter().filter_map(|pod| ready_since(pod)) {
            ready += 1;
            let when = since + min_ready;
            if when <= now || min_ready.is_zero() {
                available += 1;
            } else {
                next = Some(next.map_or(when, |next: Timestamp| next.min(when)));
            }
        }
        let labels =
            spec.and_then(|spec| spec.template.as_ref()?.metadata.as_ref()?.labels.clone()).unwrap_or_default();
        let labelled =
            active.iter().filter(|pod| labels.iter().all(|(key, value)| pod.labels().get(key) == Some(value)));
        let some = |number: usize| (number > 0).then(|| i32::try_from(number).unwrap_or(i32::MAX));
        let status = ReplicaSetStatus {
            replicas: some(active.len()).unwrap_or(0),
            fully_labeled_replicas: some(labelled.count()),
            ready_replicas: some(ready),
            available_replicas: some(available),
            observed_generation: set.metadata.generation,
            conditions: self.conditions(set, failure),
            terminating_replicas: set.status.as_ref().and_then(|status| status.terminating_replicas),
        };
        (status, next)
    }

    fn conditions(&self, set: &ReplicaSet, failure: Option<&kube::Error>) -> Option<Vec<ReplicaSetCondition>> {
        let known = set.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
        let had = known.iter().any(|condition| condition.type_ == REPLICA_FAILURE);
        let mut conditions = known;
        match failure {
            Some(kube::Error::Api(refusal)) if !had && refusal.code != 409 => conditions.push(ReplicaSetCondition {
                type_: REPLICA_FAILURE.into(),
                status: "True".into(),
                reason: Some("FailedCreate".into()),
                message: Some(refusal.message.clone()),
                last_transition_time: Some(stamp(&self.clock)),
            }),
            Some(_) => {}
            None => conditions.retain(|condition| condition.type_ != REPLICA_FAILURE),
        }
        Some(conditions).filter(|conditions| !conditions.is_empty())
    }
}

fn new_pod(set: &ReplicaSet) -> Option<Pod> {
    let template = set.spec.as_ref()?.template.as_ref()?;
    let meta = template.metadata.clone().unwrap_or_default();
    Some(Pod {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", set.metadata.name.as_deref()?)),
            namespace: set.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            finalizers: meta.finalizers,
            owner_references: Some(vec![controlled_by(set)?]),
            ..ObjectMeta::default()
        },
        spec: template.spec.clone(),
        status: None,
    })
}

/// Kubernetes' order of who goes first: unbound, pending, not ready, cheap, ready for the shortest time, youngest.
fn dispensable_first(mut pods: Vec<Arc<Pod>>) -> Vec<Arc<Pod>> {
    pods.sort_by_cached_key(|pod| {
        let bound = pod.spec.as_ref().is_some_and(|spec| spec.node_name.is_some());
        let phase = match pod.status.as_ref().and_then(|status| status.phase.as_deref()) {
            Some("Running") => 2,
            Some("Unknown") => 1,
            _ => 0,
        };
        let ready = ready_since(pod);
        let cost: i64 = pod.annotations().get(DELETION_COST).and_then(|cost| cost.parse().ok()).unwrap_or(0);
        let restarts = pod.status.iter().flat_map(|status| status.container_statuses.iter().flatten());
        let restarts = restarts.map(|container| container.restart_count).max().unwrap_or(0);
        let created = pod.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (bound, phase, ready.is_some(), cost, Reverse(ready), Reverse(restarts), Reverse(created), pod.name_any())
    });
    pods
}
