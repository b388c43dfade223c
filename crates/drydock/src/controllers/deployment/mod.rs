//! The Deployment controller: ReplicaSets by template, rolling update and re-creation, revisions, history, deadline.
//!
//! Deliberately absent: adoption of orphaned ReplicaSets, and Events about each scaling step.

mod revision;
mod rollout;
mod status;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use self::rollout::{Resize, asked};
use self::status::Deed;
use super::objects::{Key, Objects};
use super::queue::Reconcile;
use super::{is_finished, selects, stamp};
use crate::Clock;

/// How many old ReplicaSets are kept where the Deployment does not say.
const DEFAULT_HISTORY: i32 = 10;

/// Keeps ReplicaSets as each Deployment asks.
pub(super) struct DeploymentController {
    pub(super) deployments: Objects<Deployment>,
    pub(super) replica_sets: Objects<ReplicaSet>,
    pub(super) pods: Objects<Pod>,
    pub(super) clock: Clock,
}

/// The ReplicaSets of one Deployment while it is being looked at.
struct Family {
    new: Option<Arc<ReplicaSet>>,
    old: Vec<Arc<ReplicaSet>>,
}

impl Family {
    fn all(&self) -> impl Iterator<Item = &Arc<ReplicaSet>> {
        self.new.iter().chain(&self.old)
    }

    fn update(&mut self, set: &Arc<ReplicaSet>) {
        for member in self.new.iter_mut().chain(&mut self.old) {
            if member.metadata.uid == set.metadata.uid {
                member.clone_from(set);
            }
        }
    }
}

impl Reconcile for DeploymentController {
    const NAME: &'static str = "deployment";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(deployment) = self.deployments.get(key) else { return Ok(None) };
        let Some(uid) = &deployment.metadata.uid else { return Ok(None) };
        let mut sets = self.replica_sets.controlled_by(&key.namespace, uid);
        if let (Some(spec), None) = (&deployment.spec, &deployment.metadata.deletion_timestamp) {
            // Those that somebody labelled otherwise are let go of.
            for set in sets.extract_if(.., |set| !selects(&spec.selector, set.as_ref())) {
                self.replica_sets.release(&set, uid).await?;
            }
        }
        let (new, old) = revision::split(&deployment, sets);
        let mut family = Family { new, old };
        if deployment.metadata.deletion_timestamp.is_some() {
            return self.write_status(&deployment, &family, Deed::None).await;
        }
        let deed = self.act(key, &deployment, &mut family).await?;
        let marked = self.copy_revision(key, deployment.clone(), &family).await?;
        if marked.metadata.generation != deployment.metadata.generation {
            // The spec changed meanwhile. Its change has queued the key again; a status now would claim to have seen it.
            return Ok(None);
        }
        self.write_status(&marked, &family, deed).await
    }
}

impl DeploymentController {
    async fn act(&self, key: &Key, deployment: &Arc<Deployment>, family: &mut Family) -> kube::Result<Deed> {
        let paused = deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true);
        if paused || is_resized(deployment, family) {
            let changes = rollout::rescale(deployment, family.new.as_ref(), &family.old);
            self.resize(deployment, family, changes).await?;
            self.mark_size(deployment, family).await?;
            return Ok(Deed::None);
        }
        let rolling = rollout::is_rolling(deployment);
        if !rolling {
            let changes = rollout::empty_old(&family.old);
            if !changes.is_empty() {
                self.resize(deployment, family, changes).await?;
                return Ok(Deed::None);
            }
            if self.old_pods_remain(key, family) {
                return Ok(Deed::None);
            }
        }
        let deed = self.ensure_new(key, deployment, family).await?;
        if let Some(new) = &family.new {
            let changes = if rolling {
                rollout::roll(deployment, new, &family.old)
            } else {
                let replicas = rollout::wanted(deployment);
                let change = Resize { replica_set: new.clone(), replicas };
                Some(change).filter(|change| asked(new) != change.replicas).into_iter().collect()
            };
            self.resize(deployment, family, changes).await?;
        }
        let status = status::status(deployment, family.new.as_ref(), &family.old, deed, &stamp(&self.clock));
        if status::is_complete(deployment, &status) {
            self.clean_history(deployment, family).await?;
        }
        Ok(deed)
    }

    /// Finds or makes the ReplicaSet of the present template and keeps what is written on it current.
    async fn ensure_new(&self, key: &Key, deployment: &Arc<Deployment>, family: &mut Family) -> kube::Result<Deed> {
        if let Some(new) = &family.new {
            let annotations = revision::annotations(deployment, new, &family.old);
            let min_ready = deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
            let own_min_ready = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
            if new.metadata.annotations.as_ref() != Some(&annotations)
                || min_ready.unwrap_or(0) != own_min_ready.unwrap_or(0)
            {
                let patch = json!({"metadata": {"annotations": annotations}, "spec": {"minReadySeconds": min_ready.unwrap_or(0)}});
                let set = self.replica_sets.merge(&Key::of(new.as_ref()), &patch).await?;
                family.update(&set);
            }
            return Ok(Deed::None);
        }
        let replicas = rollout::new_size(deployment, 0, &family.old);
        let Some(set) = revision::new_replica_set(deployment, &family.old, replicas) else { return Ok(Deed::None) };
        match self.replica_sets.create(&key.namespace, &set).await {
            Ok(set) => {
                family.new = Some(set);
                Ok(Deed::Created)
            }
            Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {
                self.count_collision(key, deployment, &set).await?;
                Err(kube::Error::Api(refusal))
            }
            Err(error) => Err(error),
        }
    }

    /// The name is taken. If it is ours with the same template the watch will show it; otherwise another name is needed.
    async fn count_collision(&self, key: &Key, deployment: &Deployment, wanted: &ReplicaSet) -> kube::Result<()> {
        let name = wanted.metadata.name.as_deref().unwrap_or_default();
        let taken = self.replica_sets.api(&key.namespace).get(name).await?;
        let ours = super::objects::controller_of(&taken).map(|owner| &owner.uid) == deployment.metadata.uid.as_ref();
        let same = deployment.spec.as_ref().is_some_and(|spec| revision::has_template(&taken, &spec.template));
        if ours && same {
            return Ok(());
        }
        let collisions = deployment.status.as_ref().and_then(|status| status.collision_count).unwrap_or(0) + 1;
        self.deployments.merge_status(key, &json!({"status": {"collisionCount": collisions}})).await?;
        Ok(())
    }

    async fn resize(&self, deployment: &Deployment, family: &mut Family, changes: Vec<Resize>) -> kube::Result<()> {
        for Resize { replica_set, replicas } in changes {
            let annotations = revision::size_annotations(deployment);
            let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}});
            let set = self.replica_sets.merge(&Key::of(replica_set.as_ref()), &patch).await?;
            family.update(&set);
        }
        Ok(())
    }

    /// Writes the Deployment's size on active ReplicaSets whose own size stays, so that the change counts as followed.
    async fn mark_size(&self, deployment: &Deployment, family: &mut Family) -> kube::Result<()> {
        let stale: Vec<_> = family.all().filter(|set| is_stale(deployment, set)).cloned().collect();
        for set in stale {
            let patch = json!({"metadata": {"annotations": revision::size_annotations(deployment)}});
            let set = self.replica_sets.merge(&Key::of(set.as_ref()), &patch).await?;
            family.update(&set);
        }
        Ok(())
    }

    /// `Recreate` waits for the last old pod to be really gone, not only for the ReplicaSets to stop counting it.
    fn old_pods_remain(&self, key: &Key, family: &Family) -> bool {
        family
            .old
            .iter()
            .filter_map(|set| set.metadata.uid.as_deref())
            .any(|uid| self.pods.controlled_by(&key.namespace, uid).iter().any(|pod| !is_finished(pod)))
    }

    async fn clean_history(&self, deployment: &Deployment, family: &mut Family) -> kube::Result<()> {
        let limit = deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(DEFAULT_HISTORY);
        let mut idle: Vec<_> = family
            .old
            .iter()
            .filter(|set| {
                asked(set) == 0
                    && set.metadata.deletion_timestamp.is_none()
                    && set.status.as_ref().is_some_and(|status| {
                        status.replicas == 0 && status.observed_generation >= set.metadata.generation
                    })
            })
            .cloned()
            .collect();
        idle.sort_by_key(|set| (revision::revision(set), set.metadata.creation_timestamp.clone()));
        let surplus = idle.len().saturating_sub(usize::try_from(limit).unwrap_or(0));
        for set in idle.into_iter().take(surplus) {
            self.replica_sets.delete(&set, None).await?;
            family.old.retain(|member| member.metadata.uid != set.metadata.uid);
        }
        Ok(())
    }

    /// The Deployment carries the number of its present rollout.
    async fn copy_revision(
        &self,
        key: &Key,
        deployment: Arc<Deployment>,
        family: &Family,
    ) -> kube::Result<Arc<Deployment>> {
        let number = |set: &Arc<ReplicaSet>| set.metadata.annotations.as_ref()?.get(revision::REVISION).cloned();
        let Some(number) = family.new.as_ref().and_then(number) else { return Ok(deployment) };
        let own = deployment.metadata.annotations.as_ref().and_then(|all| all.get(revision::REVISION));
        if own == Some(&number) {
            return Ok(deployment);
        }
        self.deployments.merge(key, &json!({"metadata": {"annotations": {revision::REVISION: number}}})).await
    }

    async fn write_status(
        &self,
        deployment: &Arc<Deployment>,
        family: &Family,
        deed: Deed,
    ) -> kube::Result<Option<Timestamp>> {
        let status = status::status(deployment, family.new.as_ref(), &family.old, deed, &stamp(&self.clock));
        let again = status::deadline(deployment, &status);
        if deployment.status.as_ref() != Some(&status) {
            let mut after = deployment.as_ref().clone();
            after.status = Some(status);
            self.deployments.replace_status(&after).await?;
        }
        Ok(again)
    }
}

/// Whether the Deployment's size changed since its ReplicaSets were last resized.
fn is_resized(deployment: &Deployment, family: &Family) -> bool {
    family.all().any(|set| is_stale(deployment, set))
}

fn is_stale(deployment: &Deployment, set: &ReplicaSet) -> bool {
    asked(set) > 0 && revision::desired_annotation(set).is_some_and(|desired| desired != rollout::wanted(deployment))
}
