//! Nothing is under way: keep what is, and notice when the target changes.
//!
//! A settled canary costs nothing: no status, no wake, and only effects that are already true.

use seaway_api::canary::{HookType, Phase};

use super::draft::Draft;
use super::gate;
use super::round::{Drained, Hooks, Round, later};
use crate::effect::Effect;
use crate::intent::{self, TargetScale};
use crate::observed::{Revision, Workload};
use crate::question::QuestionKey;
use crate::revision::{self, digest, flagger_id};
use crate::status;

pub(super) fn decide(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("rest");
    keep(round, &mut draft);
    if post_rollout(round, &mut draft) {
        return draft;
    }
    match &round.seen.revision {
        Some(revision) if is_new(round, revision) => gate::start_or_wait(round, draft, revision),
        Some(revision) => {
            settle(round, &mut draft, revision);
            draft
        }
        None => {
            for (index, problem) in round.seen.problems.iter().enumerate() {
                draft.notices.push(round.warning(&format!("problem {index} {problem}"), problem.clone()));
            }
            draft
        }
    }
}

/// The split, the Services and the autoscaler stay as they should be.
pub(super) fn keep(round: &Round<'_>, draft: &mut Draft) {
    round.keep(draft);
    if round.seen.primary.is_some() {
        draft.make(Effect::PrimaryAutoscaler { refresh: false });
    }
    if let Some(split) = intent::intent(round.plan, round.status).split {
        draft.make(round.set_split(split));
    }
}

/// Whether the target would run something that was neither analysed last nor runs in the primary.
fn is_new(round: &Round<'_>, revision: &Revision) -> bool {
    if round.foreign() {
        // A hash that cannot be compared is no change: look at the primary instead. After a failure the target is
        // expected to differ from it.
        let configs = round.status.tracked_configs.as_ref().is_none_or(|configs| *configs == revision.configs);
        return round.status.phase != Phase::Failed && !(round.seen.target_equals_primary && configs);
    }
    if revision::same_revision(round.status, revision) {
        return false;
    }
    let id = flagger_id(&round.plan.uid, revision);
    let in_primary = round.seen.primary.as_ref().is_some_and(|primary| primary.id.as_deref() == Some(&id));
    // Going back to the promoted template by hand is no rollout, in Flagger neither.
    let back = revision.template == round.status.last_promoted_spec
        && revision.configs == round.status.tracked_configs.clone().unwrap_or_default();
    !in_primary && !back
}

/// The target is known and sleeps; what is missing is made again from what was proven.
fn settle(round: &Round<'_>, draft: &mut Draft, revision: &Revision) {
    if round.foreign() {
        draft.rule = "take over";
        let mut new = status::changed(round.now, round.plan, round.status, |status| {
            status::stamp(status, revision);
            if status.phase != Phase::Failed {
                status.last_promoted_spec.clone_from(&revision.template);
            }
        });
        // Taking over is no transition: ticks and hooks go by the old time.
        new.last_transition_time = round.status.last_transition_time;
        draft.status = Some(new);
    }
    let proven = round.status.last_applied_spec == round.status.last_promoted_spec
        && revision::same_revision(round.status, revision);
    if round.seen.primary.is_none() && proven {
        draft.make(Effect::CreatePrimary(revision.clone()));
    }
    sleep(round, draft);
}

/// Pods of the target that should be gone go, once no traffic can reach them and somebody else answers.
pub(super) fn sleep(round: &Round<'_>, draft: &mut Draft) {
    let running = round.seen.target.as_ref().is_some_and(|target| target.replicas > 0);
    let wanted = intent::intent(round.plan, round.status).target != TargetScale::Zero;
    if !running || wanted || !round.seen.primary.as_ref().is_some_and(Workload::answers) {
        return;
    }
    match round.drained() {
        Drained::Yes => draft.make(Effect::ScaleToZero),
        Drained::At(time) => draft.wake_at(time),
        // The route is being repaired; its change wakes us.
        Drained::No => {}
    }
}

/// Asks the post-rollout hooks, one after the other. Returns whether one is still to answer. They are asked soon after the
/// end or not at all, so that a restart does not ask for canaries that ended long ago.
fn post_rollout(round: &Round<'_>, draft: &mut Draft) -> bool {
    if !matches!(round.status.phase, Phase::Succeeded | Phase::Failed) {
        return false;
    }
    let revision = digest(&round.applied());
    let young = round.status.last_transition_time.is_some_and(|since| round.now < later(since, round.plan.interval));
    let step = super::step(round.status);
    let begun = |key: &QuestionKey| key.step == step && key.revision == revision;
    let begun = round.seen.answers.keys().any(begun) || round.seen.asked.iter().any(begun);
    if !young && !begun {
        return false;
    }
    match round.hooks(draft, &revision, 0, HookType::PostRollout) {
        Hooks::Passed => false,
        Hooks::Pending(subject) => {
            draft.make(round.ask(&revision, 0, subject));
            true
        }
        Hooks::Refused(hook, reason) => {
            let text = format!("Post-rollout hook {} failed {reason}", hook.name);
            draft.notices.push(round.warning("post-rollout failed", text));
            false
        }
    }
}
