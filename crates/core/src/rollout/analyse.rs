//! The analysis: at every tick the checks are asked, and their verdict moves the weight, counts a failure or promotes.
//!
//! Between ticks only repairs happen. A weight rises only after a verdict of this very step (answers are keyed by it), only
//! to the plan's next weight, and only towards pods that answer.

use seaway_api::canary::{HookType, Phase};
use serde_json::json;

use super::draft::Draft;
use super::promotion;
use super::rollback::{self, Cause, Wish};
use super::round::{Hooks, Round};
use crate::analysis::{self, Outcome};
use crate::effect::Effect;
use crate::intent;
use crate::observed::{Previous, Readiness, Revision, Workload};
use crate::question::Subject;
use crate::revision::{digest, same_revision};
use crate::split::Split;
use crate::status::{self, ROLLING_BACK};
use crate::zoo;

/// Phases `Progressing` and `WaitingPromotion`.
pub(super) fn decide(round: &Round<'_>) -> Draft {
    let mut draft = analyse(round);
    store_primary(round, &mut draft);
    draft
}

/// What the primary runs is stored as soon as something else is analysed: from here on the target no longer says it, and
/// a primary that somebody deletes can be made again from nothing else. The promotion finds it stored. It comes last:
/// nothing waits for it.
fn store_primary(round: &Round<'_>, draft: &mut Draft) {
    let Round { status, seen, .. } = *round;
    let Some(revision) = seen.revision.as_ref().filter(|revision| same_revision(status, revision)) else { return };
    let settled = round.foreign() || status.is_true(ROLLING_BACK) || promotion::has_applied(round);
    let copying = draft.effects.iter().any(|effect| matches!(effect, Effect::StorePrevious(_)));
    if seen.primary.is_some() && seen.previous == Previous::Absent && !settled && !copying {
        draft.make(Effect::StorePrevious(revision.clone()));
    }
}

fn analyse(round: &Round<'_>) -> Draft {
    if round.status.is_true(ROLLING_BACK) {
        return rollback::go_on(round);
    }
    let mut draft = Draft::new("analyse");
    round.keep(&mut draft);
    let revision = round.seen.revision.as_ref();
    if let Some(other) = revision.filter(|revision| !same_revision(round.status, revision)) {
        return restart(round, draft, other);
    }
    let intended = intent::intent(round.plan, round.status).split;
    let repairing = intended.is_some_and(|split| draft.route(round.serve(split)));
    let Some(target) = &round.seen.target else {
        round.problems(&mut draft);
        return draft;
    };
    if round.status.failed_checks >= i64::from(round.plan.threshold) {
        return rollback::start(round, draft, &Cause::FailedChecks, None, round.status.failed_checks);
    }
    if target.replicas == 0 {
        draft.make(Effect::ScaleUp);
        draft.wake_at(round.next_tick());
        return draft;
    }
    if !primary_holds(round, &mut draft, target) {
        return draft;
    }
    match &target.readiness {
        Readiness::Ready => {}
        Readiness::Waiting { reason, .. } => {
            round.wait_for(&mut draft, "target", &target.readiness, round.target_not_ready(reason));
            return draft;
        }
        Readiness::Failed { reason } => {
            let cause = Cause::Deadline(round.target_not_ready(reason));
            return rollback::start(round, draft, &cause, None, round.status.failed_checks);
        }
    }
    if let Some(revision) = revision.filter(|_| round.plan.skip_analysis) {
        return promotion::start(round, draft, revision);
    }
    if repairing {
        // What was measured until now did not have this split.
        draft.wake_at(round.next_tick());
        return draft;
    }
    if !round.route_settled() {
        round.wait_for_route(&mut draft);
        return draft;
    }
    if let Some(time) = round.measured_at() {
        draft.wake_at(time);
        return draft;
    }
    run_ticks(round, &draft, revision)
}

/// Whether the primary is fit to be compared with. One that will not come up ends the rollout. With `skipAnalysis` nothing
/// is compared, and the new revision may be the cure.
fn primary_holds(round: &Round<'_>, draft: &mut Draft, target: &Workload) -> bool {
    if round.plan.skip_analysis {
        return true;
    }
    let lost = match round.seen.primary.as_ref().map(|primary| &primary.readiness) {
        Some(Readiness::Ready) => return true,
        Some(readiness @ Readiness::Waiting { reason, .. }) => {
            round.wait_for(draft, "primary", readiness, round.primary_not_ready(reason));
            return false;
        }
        Some(Readiness::Failed { reason }) => round.primary_not_ready(reason),
        // The target is all there is, and may be about to answer.
        None if !target.answers() && matches!(target.readiness, Readiness::Waiting { .. }) => {
            round.wait_for(draft, "primary", &target.readiness, round.primary_missing());
            return false;
        }
        None => round.primary_missing(),
    };
    let (cause, failed) = (Cause::PrimaryNotReady(lost), round.status.failed_checks);
    *draft = rollback::start(round, draft.clone(), &cause, None, failed);
    false
}

/// Another revision: everything back to the primary, and from the beginning. The target already runs.
pub(super) fn restart(round: &Round<'_>, mut draft: Draft, revision: &Revision) -> Draft {
    draft.rule = "restart";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status::restart(status, revision);
    }));
    let back = Split::primary_only();
    draft.route(if zoo::TRUSTS_THE_PRIMARY { Some(Effect::SetSplit(back)) } else { round.set_split(back) });
    let text = format!("New revision detected! Restarting analysis for {}", round.plan.target_key());
    draft.notices.push(round.normal(&format!("restart {}", digest(revision)), text));
    draft
}

/// What one tick came to.
enum Tick {
    /// This happens, or this is asked.
    Decided(Draft),
    /// A gate is closed; the next tick asks again.
    Closed(Draft),
}

/// `revision` is unknown while a config of it cannot be seen: the canary is still watched, but does not advance.
fn run_ticks(round: &Round<'_>, draft: &Draft, revision: Option<&Revision>) -> Draft {
    let digest = digest(&round.applied());
    let mut last = draft.clone();
    for tick in round.ticks(&digest) {
        match run(round, draft.clone(), revision, &digest, tick) {
            Tick::Decided(decided) => return decided,
            Tick::Closed(closed) => last = closed,
        }
    }
    last.wake_at(round.next_tick());
    last
}

/// One tick: rollback hooks, checks, gates, and then a step.
fn run(round: &Round<'_>, mut draft: Draft, revision: Option<&Revision>, digest: &str, tick: u64) -> Tick {
    match rollback::wish(round, &mut draft, digest, tick) {
        Wish::Nobodys => {}
        Wish::Pending => return Tick::Decided(waking(round, draft)),
        Wish::Of(hook) => {
            let failed = round.status.failed_checks;
            return Tick::Decided(rollback::start(round, draft, &Cause::Manual(hook), None, failed));
        }
    }
    let checked = match round.weight() {
        0 if revision.is_none() => Checked::Passed,
        0 => prepare(round, &mut draft, digest, tick),
        _ => check(round, &mut draft, digest, tick),
    };
    match checked {
        Checked::Passed => {}
        Checked::Pending(subject) => {
            draft.make(round.ask(digest, tick, subject));
            return Tick::Decided(waking(round, draft));
        }
        Checked::Failed => return Tick::Decided(fail(round, draft)),
    }
    let Some(revision) = revision else {
        round.problems(&mut draft);
        return Tick::Closed(draft);
    };
    if round.status.phase == Phase::Progressing {
        match round.hooks(&mut draft, digest, tick, HookType::ConfirmTrafficIncrease) {
            Hooks::Passed => {}
            Hooks::Pending(subject) => {
                draft.make(round.ask(digest, tick, subject));
                return Tick::Decided(waking(round, draft));
            }
            Hooks::Refused(hook, _) => {
                let text = format!(
                    "Halt {} advancement waiting for traffic increase approval {}",
                    round.plan.key(),
                    hook.name
                );
                draft.notices.push(round.warning(&format!("traffic gate@{tick}"), text));
                return Tick::Closed(draft);
            }
        }
    }
    match round.plan.steps.next(round.weight()) {
        Some(next) => Tick::Decided(advance(round, draft, next)),
        None => confirm_promotion(round, draft, revision, digest, tick),
    }
}

fn waking(round: &Round<'_>, mut draft: Draft) -> Draft {
    draft.wake_at(round.next_tick());
    draft
}

/// What the checks of a tick came to.
enum Checked {
    Passed,
    Pending(Subject),
    Failed,
}

/// Before the first weight there is nothing to measure: the pre-rollout hooks decide.
fn prepare(round: &Round<'_>, draft: &mut Draft, digest: &str, tick: u64) -> Checked {
    let text = format!("Starting canary analysis for {}", round.plan.target_key());
    draft.notices.push(round.normal("starting", text));
    match round.hooks(draft, digest, tick, HookType::PreRollout) {
        Hooks::Passed => Checked::Passed,
        Hooks::Pending(subject) => Checked::Pending(subject),
        Hooks::Refused(hook, reason) => {
            let text = format!("Halt {} advancement pre-rollout check {} failed {reason}", round.plan.key(), hook.name);
            refused(round, draft, &hook.name, reason, tick, text);
            Checked::Failed
        }
    }
}

/// The rollout hooks, then the metrics, in order; the first that does not pass ends it.
fn check(round: &Round<'_>, draft: &mut Draft, digest: &str, tick: u64) -> Checked {
    match round.hooks(draft, digest, tick, HookType::Rollout) {
        Hooks::Passed => {}
        Hooks::Pending(subject) => return Checked::Pending(subject),
        Hooks::Refused(hook, reason) => {
            let text = format!("Halt {} advancement external check {} failed {reason}", round.plan.key(), hook.name);
            refused(round, draft, &hook.name, reason, tick, text);
            return Checked::Failed;
        }
    }
    for (index, metric) in round.plan.metrics.iter().enumerate() {
        let Some(answer) = round.answer(digest, tick, Subject::Metric(index)) else {
            return Checked::Pending(Subject::Metric(index));
        };
        let verdict = analysis::judge(round.plan, metric, answer);
        draft.checks.push(verdict.record);
        if verdict.outcome != Outcome::Pass {
            let told = verdict.text.map(|text| round.warning(&format!("metric {index}@{tick}"), text));
            draft.notices.extend(told);
            return Checked::Failed;
        }
    }
    Checked::Passed
}

fn refused(round: &Round<'_>, draft: &mut Draft, hook: &str, reason: &str, tick: u64, text: String) {
    draft.checks.push(json!({ "check": hook, "verdict": Outcome::Fail.as_str(), "reason": reason }));
    draft.notices.push(round.warning(&format!("hook failed@{tick}"), text));
}

/// A failed check counts; at the threshold the rollback starts in the same write.
fn fail(round: &Round<'_>, mut draft: Draft) -> Draft {
    let failed = round.status.failed_checks.saturating_add(1);
    if failed >= i64::from(round.plan.threshold) {
        return rollback::start(round, draft, &Cause::FailedChecks, None, failed);
    }
    draft.rule = "check failed";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| status.failed_checks = failed));
    draft
}

/// The next weight: stored first, then written to the route.
fn advance(round: &Round<'_>, mut draft: Draft, next: u8) -> Draft {
    draft.rule = "advance";
    draft.status =
        Some(status::changed(round.now, round.plan, round.status, |status| status.canary_weight = next.into()));
    draft.route(round.set_split(Split::canary(next)));
    let text = format!("Advance {} canary weight {next}", round.plan.key());
    draft.notices.push(round.normal("advance", text));
    draft
}

/// All steps are done: promote, if everybody consents. While waiting the canary keeps its weight and is still checked.
fn confirm_promotion(round: &Round<'_>, mut draft: Draft, revision: &Revision, digest: &str, tick: u64) -> Tick {
    match round.hooks(&mut draft, digest, tick, HookType::ConfirmPromotion) {
        Hooks::Passed => Tick::Decided(promotion::start(round, draft, revision)),
        Hooks::Pending(subject) => {
            draft.make(round.ask(digest, tick, subject));
            Tick::Decided(waking(round, draft))
        }
        Hooks::Refused(_, _) if round.status.phase == Phase::WaitingPromotion => Tick::Closed(draft),
        Hooks::Refused(hook, _) => {
            draft.rule = "wait for consent";
            draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
                status.phase = Phase::WaitingPromotion;
            }));
            let text = format!("Halt {} advancement waiting for promotion approval {}", round.plan.key(), hook.name);
            draft.notices.push(round.warning("promotion gate", text));
            Tick::Decided(draft)
        }
    }
}
