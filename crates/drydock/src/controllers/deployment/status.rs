//! What a Deployment says about itself: counts, conditions and the progress deadline, with Kubernetes' words.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::rollout::{Fences, wanted};

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "Available";
const REPLICA_FAILURE: &str = "ReplicaFailure";
const COMPLETE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

/// What the reconciliation just did, where that is a reason for a condition by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// Nothing worth a reason.
    None,
    /// The ReplicaSet of the present template was made.
    Created,
}

/// The status for what is seen now. Equal input gives an equal status, so that it is only written on a change.
pub(super) fn status(
    deployment: &Deployment,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    deed: Deed,
    now: &Time,
) -> DeploymentStatus {
    let before = deployment.status.clone().unwrap_or_default();
    let mut status = count(deployment, new, old, &before);
    let least = wanted(deployment) - Fences::of(deployment).unavailable;
    let availability = if count_of(status.available_replicas) >= least {
        condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
    } else {
        let message = "Deployment does not have minimum availability.";
        condition(AVAILABLE, "False", "MinimumReplicasUnavailable", message, now)
    };
    set(&mut status, availability);
    if has_deadline(deployment) {
        judge_progress(deployment, &before, &mut status, new, deed, now);
    } else {
        remove(&mut status, PROGRESSING);
    }
    match new.into_iter().chain(old).find_map(|set| failure_of(set)) {
        Some((reason, message)) => set(&mut status, condition(REPLICA_FAILURE, "True", &reason, &message, now)),
        None => remove(&mut status, REPLICA_FAILURE),
    }
    if status.conditions.as_ref().is_some_and(Vec::is_empty) {
        status.conditions = None;
    }
    status
}

fn count(
    deployment: &Deployment,
    new: Option<&Arc<ReplicaSet>>,
    old: &[Arc<ReplicaSet>],
    before: &DeploymentStatus,
) -> DeploymentStatus {
    let seen = |pick: fn(&ReplicaSet) -> i32| -> i32 { new.into_iter().chain(old).map(|set| pick(set)).sum() };
    let total = seen(|set| set.status.as_ref().map_or(0, |status| status.replicas));
    let ready = seen(|set| set.status.as_ref().map_or(0, |status| count_of(status.ready_replicas)));
    let available = seen(|set| set.status.as_ref().map_or(0, |status| count_of(status.available_replicas)));
    let updated = new.and_then(|set| set.status.as_ref()).map_or(0, |status| status.replicas);
    // Zero is left out, as the Go structs of Kubernetes do, or a settled status would be written again and again.
    let some = |number: i32| (number != 0).then_some(number);
    DeploymentStatus {
        observed_generation: deployment.metadata.generation,
        replicas: some(total),
        updated_replicas: some(updated),
        ready_replicas: some(ready),
        available_replicas: some(available),
        unavailable_replicas: some((total - available).max(0)),
        collision_count: before.collision_count,
        conditions: before.conditions.clone(),
        terminating_replicas: before.terminating_replicas,
    }
}

fn judge_progress(
    deployment: &Deployment,
    before: &DeploymentStatus,
    status: &mut DeploymentStatus,
    new: Option<&Arc<ReplicaSet>>,
    deed: Deed,
    now: &Time,
) {
    let known = get(before, PROGRESSING);
    if deployment.spec.as_ref().and_then(|spec| spec.paused) == Some(true) {
        if known.is_none_or(|known| known.reason.as_deref() != Some(PAUSED) && !is_timed_out(known)) {
            set(status, condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now));
        }
        return;
    }
    let subject = match new.and_then(|set| set.metadata.name.as_deref()) {
        Some(name) => format!("ReplicaSet \"{name}\""),
        None => format!("Deployment \"{}\"", deployment.metadata.name.as_deref().unwrap_or_default()),
    };
    if known.is_some_and(|known| known.reason.as_deref() == Some(PAUSED)) {
        set(status, condition(PROGRESSING, "Unknown", "DeploymentResumed", "Deployment is resumed", now));
        return;
    }
    if deed == Deed::Created {
        let name = new.and_then(|set| set.metadata.name.as_deref()).unwrap_or_default();
        let message = format!("Created new replica set \"{name}\"");
        replace(status, condition(PROGRESSING, "True", "NewReplicaSetCreated", &message, now));
        return;
    }
    // A finished rollout stays finished while pods come and go, until there is something new to roll out.
    let finished = known.is_some_and(|known| known.reason.as_deref() == Some(COMPLETE));
    if finished && count_of(status.replicas) == count_of(status.updated_replicas) {
        return;
    }
    if is_complete(deployment, status) {
        let message = format!("{subject} has successfully progressed.");
        set(status, condition(PROGRESSING, "True", COMPLETE, &message, now));
    } else if known.is_none() || has_progressed(before, status) {
        let message = format!("{subject} is progressing.");
        replace(status, condition(PROGRESSING, "True", "ReplicaSetUpdated", &message, now));
    } else if deadline(deployment, before).is_some_and(|deadline| deadline <= now.0) {
        let message = format!("{subject} has timed out progressing.");
        set(status, condition(PROGRESSING, "False", TIMED_OUT, &message, now));
    }
}

/// When the rollout will have been without progress for too long; `None` when it is done, failed or has no deadline.
pub(super) fn deadline(deployment: &Deployment, status: &DeploymentStatus) -> Option<Timestamp> {
    let spec = deployment.spec.as_ref()?;
    let seconds = spec.progress_deadline_seconds.filter(|_| has_deadline(deployment) && spec.paused != Some(true))?;
    let known = get(status, PROGRESSING)?;
    if is_timed_out(known) || known.reason.as_deref() == Some(COMPLETE) {
        return None;
    }
    let since = known.last_update_time.as_ref()?.0;
    Some(since + Duration::from_secs(u64::try_from(seconds).ok()?))
}

/// The whole Deployment runs the present template and every replica is available.
pub(super) fn is_complete(deployment: &Deployment, status: &DeploymentStatus) -> bool {
    let wanted = wanted(deployment);
    count_of(status.updated_replicas) == wanted
        && count_of(status.replicas) == wanted
        && count_of(status.available_replicas) == wanted
        && status.observed_generation >= deployment.metadata.generation
}

fn has_progressed(before: &DeploymentStatus, after: &DeploymentStatus) -> bool {
    let old = |status: &DeploymentStatus| count_of(status.replicas) - count_of(status.updated_replicas);
    count_of(after.updated_replicas) > count_of(before.updated_replicas)
        || old(after) < old(before)
        || count_of(after.ready_replicas) > count_of(before.ready_replicas)
        || count_of(after.available_replicas) > count_of(before.available_replicas)
}

fn has_deadline(deployment: &Deployment) -> bool {
    // The API's way to say "no deadline" is the largest number.
    deployment.spec.as_ref().and_then(|spec| spec.progress_deadline_seconds).is_some_and(|seconds| seconds != i32::MAX)
}

fn is_timed_out(condition: &DeploymentCondition) -> bool {
    condition.reason.as_deref() == Some(TIMED_OUT)
}

fn failure_of(set: &ReplicaSet) -> Option<(String, String)> {
    let conditions = set.status.as_ref()?.conditions.as_ref()?;
    let failure = conditions.iter().find(|condition| condition.type_ == REPLICA_FAILURE)?;
    Some((failure.reason.clone().unwrap_or_default(), failure.message.clone().unwrap_or_default()))
}

fn count_of(number: Option<i32>) -> i32 {
    number.unwrap_or(0)
}

fn condition(type_: &str, status: &str, reason: &str, message: &str, now: &Time) -> DeploymentCondition {
    DeploymentCondition {
        type_: type_.into(),
        status: status.into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_update_time: Some(now.clone()),
        last_transition_time: Some(now.clone()),
    }
}

fn get<'a>(status: &'a DeploymentStatus, type_: &str) -> Option<&'a DeploymentCondition> {
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_)
}

/// Sets a condition unless it already says the same.
fn set(status: &mut DeploymentStatus, condition: DeploymentCondition) {
    let same = get(status, &condition.type_)
        .is_some_and(|known| known.status == condition.status && known.reason == condition.reason);
    if !same {
        replace(status, condition);
    }
}

/// Sets a condition with a new update time; the transition time stays when only the reason or text changes.
fn replace(status: &mut DeploymentStatus, mut condition: DeploymentCondition) {
    if let Some(known) = get(status, &condition.type_)
        && known.status == condition.status
    {
        condition.last_transition_time.clone_from(&known.last_transition_time);
    }
    remove(status, &condition.type_);
    status.conditions.get_or_insert_default().push(condition);
}

fn remove(status: &mut DeploymentStatus, type_: &str) {
    if let Some(conditions) = &mut status.conditions {
        conditions.retain(|condition| condition.type_ != type_);
    }
}
