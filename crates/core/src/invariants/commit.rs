//! The same rules, over what was really written: every commit is a step from one scene to the next.
//!
//! A scene is plain data that a test can fill from a model, from an API server's commit hook or from a watch. A commit
//! changes one object, so between two scenes either traffic moved, or pods, or the status.

use std::collections::BTreeMap;

use seaway_api::canary::{CanaryStatus, Phase};

use super::Violation;
use crate::intent;
use crate::plan::Plan;
use crate::split::{Split, Variant};
use crate::status::ROLLING_BACK;

/// Everything about one canary that the rules speak of, after one commit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scene {
    /// The stored status.
    pub status: CanaryStatus,
    /// What the route names, if it leads to primary and canary.
    pub split: Option<Split>,
    /// The route leads to the apex Service.
    pub to_apex: bool,
    /// The route names primary, canary and apex, whichever it leads to.
    pub announced: bool,
    /// The primary workload.
    pub primary: Option<Pods>,
    /// The user's workload.
    pub target: Option<Pods>,
    /// Whose pods the apex Service selects.
    pub apex: Option<Variant>,
}

/// One workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pods {
    /// Replicas asked for.
    pub replicas: u32,
    /// Pods that answer.
    pub ready: u32,
    /// Hash of the revision in its pod template.
    pub revision: String,
    /// The configs it reads, by checksum. Left empty where they are not looked at.
    pub configs: BTreeMap<String, String>,
}

/// Checks the step from one scene to the next.
pub fn check(plan: &Plan, before: &Scene, after: &Scene) -> Result<(), Violation> {
    traffic(plan, before, after)?;
    announcement(before, after)?;
    pods(before, after)?;
    primary(plan, before, after)?;
    apex(before, after)?;
    failure(before, after)
}

fn ready(pods: Option<&Pods>) -> bool {
    pods.is_some_and(|pods| pods.ready > 0)
}

/// I1, I9: a rising weight meets a ready pod, and the canary's rises only to what the stored status says.
fn traffic(plan: &Plan, before: &Scene, after: &Scene) -> Result<(), Violation> {
    let (Some(to), true) = (after.split, before.split != after.split) else { return Ok(()) };
    let rises = |variant| to.weight(variant) > before.split.map_or(0, |from| from.weight(variant));
    for (variant, pods) in [(Variant::Primary, &after.primary), (Variant::Canary, &after.target)] {
        if rises(variant) && !ready(pods.as_ref()) {
            return Err(Violation::new("I1", format!("{variant} got {} % with no ready pod", to.weight(variant))));
        }
    }
    let stored = intent::intent(plan, &after.status).split == Some(to);
    if rises(Variant::Canary) && !stored && ready(after.primary.as_ref()) {
        let weight = to.weight(Variant::Canary);
        return Err(Violation::new("I9", format!("the canary got {weight} % and the status does not say so")));
    }
    Ok(())
}

/// I1: a route that serves users is led to other Services only after it named them. One that others led astray is put right at
/// once.
fn announcement(before: &Scene, after: &Scene) -> Result<(), Violation> {
    let arrives = before.to_apex && after.split.is_some() && after.status.phase.is_initializing();
    let leaves = before.split.is_some() && after.to_apex;
    if (arrives || leaves) && !before.announced {
        return Err(Violation::new("I1", "the route leads to Services that it had not named"));
    }
    Ok(())
}

/// I1: no backend is scaled to nothing while the route names it.
fn pods(before: &Scene, after: &Scene) -> Result<(), Violation> {
    let sides = [(Variant::Primary, &before.primary, &after.primary), (Variant::Canary, &before.target, &after.target)];
    for (variant, old, new) in sides {
        let stopped =
            old.as_ref().is_some_and(|pods| pods.replicas > 0) && new.as_ref().is_none_or(|pods| pods.replicas == 0);
        let weight = after.split.map_or(0, |split| split.weight(variant));
        if stopped && weight > 0 {
            return Err(Violation::new("I1", format!("{variant} was stopped while it had {weight} %")));
        }
    }
    Ok(())
}

/// I3, I4: the primary changes to what the stored status promotes, or back to what it had promoted before.
fn primary(plan: &Plan, before: &Scene, after: &Scene) -> Result<(), Violation> {
    let (Some(old), Some(new)) = (&before.primary, &after.primary) else { return Ok(()) };
    let status = &after.status;
    let (copying, back) = match status.phase {
        Phase::Unset | Phase::Initializing => return Ok(()),
        Phase::Promoting => (!status.is_true(ROLLING_BACK), true),
        Phase::Finalising => (false, status.is_true(ROLLING_BACK)),
        _ => (false, false),
    };
    if old.configs != new.configs && !copying && !back {
        let text = format!("the configs of {}'s primary changed in phase {}", plan.key(), status.phase);
        return Err(Violation::new("I3", text));
    }
    let promotes = copying && new.revision == status.last_applied_spec;
    let restores = back && new.revision == status.last_promoted_spec;
    if old.revision == new.revision || promotes || restores {
        return Ok(());
    }
    let text = format!("the primary of {} got {} in phase {}", plan.key(), new.revision, status.phase);
    Err(Violation::new("I3", text))
}

/// I5: the apex moves only to a side that answers, unless nobody does.
fn apex(before: &Scene, after: &Scene) -> Result<(), Violation> {
    if before.apex == after.apex {
        return Ok(());
    }
    let (primary, target) = (ready(after.primary.as_ref()), ready(after.target.as_ref()));
    match after.apex {
        Some(Variant::Primary) if !primary => Err(Violation::new("I5", "the apex points to a primary without pods")),
        Some(Variant::Canary) if !target => Err(Violation::new("I5", "the apex points to a target without pods")),
        _ => Ok(()),
    }
}

/// I4: `Failed` is written when everything is back.
fn failure(before: &Scene, after: &Scene) -> Result<(), Violation> {
    if before.status.phase == Phase::Failed || after.status.phase != Phase::Failed || after.status.canary_weight > 0 {
        return Ok(());
    }
    if after.split != Some(Split::primary_only()) {
        return Err(Violation::new("I4", "failed while the canary still has traffic"));
    }
    if after.target.as_ref().is_some_and(|target| target.replicas > 0) {
        return Err(Violation::new("I4", "failed while the canary still runs"));
    }
    let promoted = &after.status.last_promoted_spec;
    match &after.primary {
        Some(primary) if primary.revision != *promoted => {
            Err(Violation::new("I4", format!("failed while the primary runs {}", primary.revision)))
        }
        _ => Ok(()),
    }
}
