//! Deletion: with `revertOnDeletion` everything is put back before the Canary goes.
//!
//! The target runs at the primary's size and is ready before anything points to it; the route leads to the apex and its
//! traffic was seen to be gone before the finalizer lets the primary be collected. Apex and route stay ours until then, so
//! what others do to them meanwhile is repaired as in every other phase. What is already missing is not waited for. Without
//! `revertOnDeletion` nothing is held up: owned objects are collected by the API server.

use seaway_api::canary::Phase;

use super::draft::Draft;
use super::round::{Round, later};
use crate::effect::{Destination, Effect};
use crate::observed::Readiness;
use crate::status;
use crate::zoo;

/// How many intervals the target is held at the primary's size.
const PATIENCE: u64 = 3;

pub(super) fn decide(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("revert");
    if !round.seen.finalizer {
        return draft;
    }
    if !round.plan.revert_on_deletion || round.status.phase == Phase::Unset {
        draft.make(Effect::Finalizer(false));
        return draft;
    }
    if !round.status.phase.is_terminating() {
        draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
            status.phase = Phase::Terminating;
            status.canary_weight = 0;
            status.iterations = 0;
            status.remove_condition(status::ROLLING_BACK);
        }));
        let text = format!("Terminating canary {}", round.plan.key());
        draft.notices.push(round.normal("terminating", text));
        return draft;
    }
    let left = leave_the_dead(round, &mut draft);
    if zoo::REVERTS_TO_NO_PODS || target_serves(round, &mut draft) && !left {
        give_back(round, &mut draft);
    }
    draft
}

/// Until the route leads to the apex, nobody is sent to a side that does not answer while the other one does: a Canary may be
/// deleted because of a broken primary, and the target may break down before it has everything. Returns whether the route
/// changes for that.
fn leave_the_dead(round: &Round<'_>, draft: &mut Draft) -> bool {
    let split = round.seen.route.as_ref().and_then(|route| route.split);
    let better = round.only_side().filter(|only| split.is_some_and(|split| split != *only));
    draft.route(better.map(Effect::SetSplit))
}

/// Whether the target runs and is ready to take everything, or is gone and cannot be waited for.
fn target_serves(round: &Round<'_>, draft: &mut Draft) -> bool {
    let Some(target) = &round.seen.target else { return true };
    let scale = match &round.seen.primary {
        // Only ever up: a target that runs more pods than the primary keeps them. And not for ever: an autoscaler with a
        // lower maximum would take them away again and again.
        Some(primary) if primary.replicas > 0 => {
            let small = target.replicas == 0 || (target.replicas < primary.replicas && round.tick < PATIENCE);
            (small && !round.seen.apex_to_target).then_some(Effect::ScaleToPrimary)
        }
        _ => (target.replicas == 0).then_some(Effect::ScaleUp),
    };
    if scale.is_some() {
        draft.make(scale);
        draft.wake_at(round.next_tick());
        return false;
    }
    match &target.readiness {
        Readiness::Ready => true,
        // Once the apex points to the target there is no way back, and no need for one while it answers.
        _ if round.seen.apex_to_target && target.answers() => true,
        Readiness::Waiting { reason, .. } | Readiness::Failed { reason } => {
            let text = format!("canary not ready during finalizing: {}", round.target_not_ready(reason));
            round.wait_for(draft, "target", &target.readiness, text);
            false
        }
    }
}

/// Apex and route lead to the target; they and the finalizer are let go once no traffic can reach what will be collected.
fn give_back(round: &Round<'_>, draft: &mut Draft) {
    if round.seen.target.is_none() {
        // Nobody is left who could serve, so nothing is left behind either.
        return let_go(round, draft);
    }
    if !round.seen.apex_to_target {
        draft.make(Effect::ApexToTarget);
    }
    let since = match &round.seen.route {
        None => Some(jiff::Timestamp::UNIX_EPOCH),
        Some(route) if route.to_apex => route.settled_since,
        // A Service that has just been made is not known anywhere either.
        Some(route) if route.split.is_some() && route.announced && !round.seen.apex_to_target => {
            draft.wake_at(round.next_tick());
            return;
        }
        // One that leads astray is led to the apex at once.
        Some(route) if route.split.is_some() && !round.announced(draft, route, Destination::Apex) => return,
        Some(_) => {
            draft.make(Effect::RouteToApex);
            draft.wake_at(round.next_tick());
            return;
        }
    };
    if !round.seen.apex_to_target {
        draft.wake_at(round.next_tick());
        return;
    }
    match since.map(|since| later(since, round.plan.drain)) {
        Some(time) if time <= round.now => {
            draft.make(Effect::Release);
            let_go(round, draft);
        }
        Some(time) => draft.wake_at(time),
        None => round.wait_for_route(draft),
    }
}

fn let_go(round: &Round<'_>, draft: &mut Draft) {
    draft.make(Effect::Finalizer(false));
    let text = format!("Terminated canary {}", round.plan.key());
    draft.notices.push(round.normal("terminated", text));
}
