//! Nothing is under way: keep what is, and notice when the target changes.
//!
//! A settled canary costs nothing: no status, no wake, and only effects that are already true.

use seaway_api::canary::{CanaryStatus, HookType, Phase};

use super::draft::Draft;
use super::gate;
use super::round::{Drained, Hooks, Round, later};
use crate::effect::Effect;
use crate::intent::{self, TargetScale};
use crate::observed::{Previous, Readiness, Revision};
use crate::question::QuestionKey;
use crate::revision::{self, digest, flagger_id};
use crate::split::Split;
use crate::status;
use crate::zoo;

pub(super) fn decide(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("rest");
    keep(round, &mut draft);
    let mut draft = if comes_back(round) { come_back(round, draft) } else { look(round, draft) };
    keep_autoscaler(round, &mut draft);
    draft
}

/// Whether the target changed, and whether everything is where it should be.
fn look(round: &Round<'_>, mut draft: Draft) -> Draft {
    if post_rollout(round, &mut draft) {
        return draft;
    }
    match &round.seen.revision {
        Some(revision) if is_new(round, revision) => gate::start_or_wait(round, draft, revision),
        Some(revision) => {
            stamp(round, &mut draft, revision);
            remake(round, &mut draft);
            tell_of_edits(round, &mut draft, revision);
            sleep(round, &mut draft);
            draft
        }
        None if zoo::TAKES_SILENCE_FOR_A_CHANGE => gate::start_or_wait(round, draft, &Revision::default()),
        None => {
            for (index, problem) in round.seen.problems.iter().enumerate() {
                draft.notices.push(round.warning(&format!("problem {index} {problem}"), problem.clone()));
            }
            remake(round, &mut draft);
            draft
        }
    }
}

/// The split and the Services stay as they should be. If the side that should serve is gone, the other one does.
pub(super) fn keep(round: &Round<'_>, draft: &mut Draft) {
    round.keep(draft);
    let Some(intended) = intent::intent(round.plan, round.status).split else { return };
    let split = match (round.primary_answers(), round.target_answers()) {
        (true, false) => Split::primary_only(),
        (false, true) if round.seen.primary.is_none() => Split::canary(100),
        _ => intended,
    };
    draft.route(round.set_split(split));
}

/// The primary's autoscaler exists. It comes last: without the target's it is refused, and nothing else waits for that.
pub(super) fn keep_autoscaler(round: &Round<'_>, draft: &mut Draft) {
    if round.seen.primary.is_some() {
        draft.make(Effect::PrimaryAutoscaler { refresh: false });
    }
}

/// Whether a failure that ended on the canary, because there was no primary to go back to, can end on the primary after
/// all. One that runs the very revision that failed in it, as Flagger leaves it, gets nothing.
fn comes_back(round: &Round<'_>) -> bool {
    let Round { status, seen, .. } = *round;
    let (Some(primary), Some(revision)) = (&seen.primary, &seen.revision) else { return false };
    let failed = flagger_id(&round.plan.uid, &round.applied());
    let other = !seen.target_equals_primary && primary.id.as_deref() != Some(&failed);
    let proven = other || revision.template == status.last_promoted_spec;
    let waits = status.phase == Phase::Failed && status.canary_weight >= 100 && !round.foreign();
    waits && proven && primary.readiness == Readiness::Ready
}

fn come_back(round: &Round<'_>, mut draft: Draft) -> Draft {
    draft.rule = "primary is back";
    let new = status::changed(round.now, round.plan, round.status, |status| status.canary_weight = 0);
    // The failure itself is as old as it was: nobody is asked about it again.
    draft.status = Some(CanaryStatus { last_transition_time: round.status.last_transition_time, ..new });
    draft.route(round.set_split(Split::primary_only()));
    draft.notices.push(round.normal("routing", "Routing all traffic to primary".into()));
    draft
}

/// Whether the target would run something that was neither analysed last nor runs in the primary.
fn is_new(round: &Round<'_>, revision: &Revision) -> bool {
    if round.foreign() {
        // A hash that cannot be compared is no change: look at the primary instead. After a failure the target is
        // expected to differ from it.
        let configs = round.status.tracked_configs.as_ref().is_none_or(|configs| *configs == revision.configs);
        let as_expected = round.status.phase == Phase::Failed || round.seen.target_equals_primary;
        return !(as_expected && configs);
    }
    if revision::same_revision(round.status, revision) || round.seen.target_equals_primary {
        return false;
    }
    let promoted = revision.template == round.status.last_promoted_spec;
    let Some(primary) = &round.seen.primary else {
        // What was promoted is made again from this.
        return !promoted;
    };
    let in_primary = primary.id.as_deref() == Some(&flagger_id(&round.plan.uid, revision));
    // Going back to the promoted template by hand is no rollout, in Flagger neither.
    let back = promoted && revision.configs == round.status.tracked_configs.clone().unwrap_or_default();
    !in_primary && !back
}

/// A hash that another algorithm wrote, or that changed although the target did not, is replaced by the present one. That
/// is no transition: ticks and hooks go by the old time.
fn stamp(round: &Round<'_>, draft: &mut Draft, revision: &Revision) {
    let Round { status, seen, .. } = *round;
    let failed = status.phase == Phase::Failed;
    let same = revision::same_revision(status, revision);
    let applied = round.foreign() || (seen.target_equals_primary && !failed && !same);
    // After a failure the target is the rejected one, unless somebody has put it back.
    let put_back = failed && seen.target_equals_primary && status.canary_weight < 100;
    let promoted = if failed { put_back && status.last_promoted_spec != revision.template } else { applied };
    if !applied && !promoted {
        return;
    }
    draft.rule = if round.foreign() { "take over" } else { "stamp again" };
    let mut new = status::changed(round.now, round.plan, status, |status| {
        if applied {
            status::stamp(status, revision);
        }
        if promoted {
            status.last_promoted_spec.clone_from(&revision.template);
        }
    });
    new.last_transition_time = status.last_transition_time;
    draft.status = Some(new);
}

/// A primary that is gone is made again from what was proven: from the target, if it is that, or from what is stored.
/// People are told either way.
pub(super) fn remake(round: &Round<'_>, draft: &mut Draft) {
    let Round { status, seen, .. } = *round;
    if seen.primary.is_some() {
        return;
    }
    draft.notices.push(round.warning("primary missing", round.primary_missing()));
    match &seen.revision {
        Some(revision) if revision.template == status.last_promoted_spec => {
            draft.make(Effect::CreatePrimary(revision.clone()));
        }
        _ if status.phase == Phase::Failed && seen.previous == Previous::Differs => {
            draft.make(Effect::RestorePrevious(round.applied()));
        }
        _ => {}
    }
}

/// A primary that was given what the target runs and runs something else was edited by hand. It stays as it is, as with
/// Flagger: whoever edits what serves users has a reason. But it was never analysed, and people hear of it.
fn tell_of_edits(round: &Round<'_>, draft: &mut Draft, revision: &Revision) {
    let Round { status, seen, plan, .. } = *round;
    let given = seen.primary.as_ref().and_then(|primary| primary.id.as_deref());
    let edited = given == Some(&flagger_id(&plan.uid, revision)) && !seen.target_equals_primary;
    if edited && status.phase != Phase::Failed && revision::same_revision(status, revision) {
        let primary = plan.primary_key();
        let text = format!("{primary} was edited and no longer runs what was promoted, the next promotion replaces it");
        draft.notices.push(round.warning("primary edited", text));
    }
}

/// Pods of the target that should be gone go, once no traffic can reach them and somebody else answers.
pub(super) fn sleep(round: &Round<'_>, draft: &mut Draft) {
    let running = round.seen.target.as_ref().is_some_and(|target| target.replicas > 0);
    let wanted = intent::intent(round.plan, round.status).target != TargetScale::Zero;
    if !running || wanted || !round.primary_answers() {
        return;
    }
    match round.drained() {
        Drained::Yes => put_to_sleep(round, draft),
        Drained::At(time) => draft.wake_at(time),
        // The route is being repaired; its change wakes us.
        Drained::No => {}
    }
}

/// Somebody else may want the target to run (a deployment tool that puts its replicas back): once per interval is enough.
fn put_to_sleep(round: &Round<'_>, draft: &mut Draft) {
    if let Some(slept) = round.seen.slept {
        let again = later(slept, round.plan.interval);
        if again > round.now {
            return draft.wake_at(again);
        }
        let target = round.plan.target_key();
        let text = format!("{target} was scaled up although no rollout is under way, scaling it to zero again");
        draft.notices.push(round.warning(&format!("woken since {slept}"), text));
    }
    draft.make(Effect::ScaleToZero);
}

/// Asks the post-rollout hooks, one after the other. Returns whether one is still to answer. They are asked soon after the
/// end or not at all, so that a restart does not ask for canaries that ended long ago.
fn post_rollout(round: &Round<'_>, draft: &mut Draft) -> bool {
    if !matches!(round.status.phase, Phase::Succeeded | Phase::Failed) {
        return false;
    }
    let revision = digest(&round.applied());
    let young = round.since.is_some_and(|since| round.now < later(since, round.plan.interval));
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
