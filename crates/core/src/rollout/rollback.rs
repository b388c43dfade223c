//! Back to what was proven: traffic first, pods afterwards, `Failed` last.
//!
//! The intent is the condition `RollingBack`; while it is true, phase, weight and failed checks keep their last values, and
//! a new revision waits. Traffic goes to whoever answers: to the primary if it does, to the canary if it alone does, and
//! nowhere if nobody does. A primary that was changed by a failed promotion is restored before it gets its traffic back. If
//! there is no primary to go back to, the rollout fails on the canary, so that there is always an end.

use jiff::Timestamp;
use seaway_api::canary::{Condition, ConditionStatus, HookType, Phase};

use super::analyse;
use super::draft::Draft;
use super::promotion;
use super::round::{Drained, Reply, Round, later};
use crate::effect::{Effect, Notice, Severity};
use crate::observed::{Previous, Readiness, Revision};
use crate::question::Subject;
use crate::revision::same_revision;
use crate::split::Split;
use crate::status::{self, ROLLING_BACK};
use crate::zoo;

/// Why a rollout is rolled back.
pub(super) enum Cause {
    /// Too many checks failed.
    FailedChecks,
    /// The canary did not become ready in time.
    Deadline(String),
    /// A rollback hook asked for it.
    Manual(String),
    /// The primary broke while the canary was analysed.
    PrimaryNotReady(String),
    /// The primary does not come up with the promoted revision.
    PromotionFailed(String),
}

const FAILED_CHECKS: &str = "FailedChecks";
const DEADLINE: &str = "ProgressDeadlineExceeded";
const MANUAL: &str = "RollbackHook";
const PRIMARY_NOT_READY: &str = "PrimaryNotReady";
const PROMOTION_FAILED: &str = "PromotionFailed";

impl Cause {
    fn reason_and_message(&self, failed: i64) -> (&'static str, String) {
        match self {
            Self::FailedChecks => (FAILED_CHECKS, failed.to_string()),
            Self::Deadline(error) => (DEADLINE, error.clone()),
            Self::Manual(hook) => (MANUAL, hook.clone()),
            Self::PrimaryNotReady(error) => (PRIMARY_NOT_READY, error.clone()),
            Self::PromotionFailed(error) => (PROMOTION_FAILED, error.clone()),
        }
    }
}

/// Whether a rollback hook wants this to end.
pub(super) enum Wish {
    /// All were asked, none does.
    Nobodys,
    /// One is still to answer.
    Pending,
    /// This one does.
    Of(String),
}

/// Asks the rollback hooks, one after the other.
pub(super) fn wish(round: &Round<'_>, draft: &mut Draft, digest: &str, tick: u64) -> Wish {
    for (index, hook) in round.plan.hooks_of(HookType::Rollback) {
        match round.reply(digest, tick, index) {
            Reply::Pending => {
                draft.make(round.ask(digest, tick, Subject::Hook(index)));
                return Wish::Pending;
            }
            Reply::Yes => return Wish::Of(hook.name.clone()),
            Reply::No(_) => {
                let text = format!("Rollback hook {} not signaling a rollback", hook.name);
                draft.notices.push(round.normal(&format!("rollback hook {index}@{tick}"), text));
            }
        }
    }
    Wish::Nobodys
}

/// The decision to roll back, and its first move. `revision`: what is rejected, when the status does not name it yet.
pub(super) fn start(
    round: &Round<'_>,
    mut draft: Draft,
    cause: &Cause,
    revision: Option<&Revision>,
    failed: i64,
) -> Draft {
    draft.rule = "roll back";
    let (reason, message) = cause.reason_and_message(failed);
    let condition = Condition::new(ROLLING_BACK, ConditionStatus::True, reason, message, round.now);
    let new = status::changed(round.now, round.plan, round.status, |status| {
        status.failed_checks = failed;
        status.set_condition(condition);
        if let Some(revision) = revision {
            status::stamp(status, revision);
        }
    });
    draft.route(None);
    if let Some(condition) = new.condition(ROLLING_BACK) {
        announce(round, &mut draft, condition);
    }
    draft.status = Some(new);
    let moving = move_traffic(round, &mut draft, reason);
    if zoo::ROLLS_BACK_WITHOUT_INTENT && moving {
        draft.status = None;
    }
    draft
}

/// What can be expected of the primary.
#[derive(Clone, Copy, PartialEq)]
enum Prospect {
    /// It runs what was proven, or will.
    Good,
    /// It has, or had, the revision that failed in it, and what it ran before may be stored.
    Restorable,
    /// It is missing or broken, and there is nothing to bring it back with.
    Lost,
}

fn prospect(round: &Round<'_>, condition: &Condition) -> Prospect {
    let promoting = condition.reason == PROMOTION_FAILED;
    if promoting && round.foreign() {
        // A promotion that Flagger began left nothing to restore.
        return Prospect::Lost;
    }
    match (&round.seen.primary, round.seen.previous) {
        (None, Previous::Differs) => Prospect::Restorable,
        (Some(_), Previous::Absent) if promoting && rejected(round) => Prospect::Lost,
        (Some(_), _) if promoting && rejected(round) => Prospect::Restorable,
        (None, _) => Prospect::Lost,
        (Some(primary), _) => match primary.readiness {
            // Right after the restoration the Deployment still shows how the promotion failed.
            Readiness::Failed { .. } if restoring_until(round, condition).is_some() => Prospect::Good,
            // While some of its pods answer it is only what was restored that must be complete.
            Readiness::Failed { .. } if promoting || !primary.answers() => Prospect::Lost,
            _ => Prospect::Good,
        },
    }
}

/// Until when a primary in which a promotion failed is waited for, whatever its Deployment says; `None` when that time is
/// over.
fn restoring_until(round: &Round<'_>, condition: &Condition) -> Option<Timestamp> {
    let until = later(condition.last_transition_time.unwrap_or(round.now), round.plan.deadline);
    (condition.reason == PROMOTION_FAILED && round.now < until).then_some(until)
}

/// Whether the primary runs the revision that failed in it.
fn rejected(round: &Round<'_>) -> bool {
    promotion::has_applied(round) && round.seen.previous != Previous::Intact
}

/// The rollback continues wherever the last round, or a crash, has left it.
pub(super) fn go_on(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("roll back");
    let Some(condition) = round.status.condition(ROLLING_BACK) else { return draft };
    match prospect(round, condition) {
        Prospect::Restorable => {
            announce(round, &mut draft, condition);
            move_traffic(round, &mut draft, &condition.reason);
            draft.make(Effect::RestorePrevious(round.applied()));
            draft.wake_at(round.next_tick());
            draft
        }
        prospect => match cure(round) {
            Some(revision) => analyse::restart(round, draft, revision),
            None if prospect == Prospect::Lost && round.target_answers() => stay_on_canary(round, draft, condition),
            None => withdraw(round, draft, condition),
        },
    }
}

/// A new revision that is wanted without analysis does not wait for the end of a rollback: it may be the only cure.
fn cure<'a>(round: &Round<'a>) -> Option<&'a Revision> {
    let new = round.seen.revision.as_ref()?;
    (round.plan.skip_analysis && !same_revision(round.status, new)).then_some(new)
}

/// Traffic leaves the canary, and after the drain the rollout has failed.
fn withdraw(round: &Round<'_>, mut draft: Draft, condition: &Condition) -> Draft {
    let moving = move_traffic(round, &mut draft, &condition.reason);
    if moving {
        announce(round, &mut draft, condition);
    }
    if !moving && can_spare_canary(round, &condition.reason) && matches!(round.drained(), Drained::Yes) {
        return fail(round, draft, condition);
    }
    round.wait_for_drain(&mut draft);
    let primary = round.seen.primary.as_ref().map(|primary| &primary.readiness);
    match (primary, restoring_until(round, condition)) {
        (Some(Readiness::Ready), _) => {}
        (Some(Readiness::Failed { reason }), Some(until)) => {
            round.waiting(&mut draft, "primary", round.primary_not_ready(reason));
            draft.wake_at(until);
        }
        (Some(readiness @ (Readiness::Waiting { reason, .. } | Readiness::Failed { reason })), _) => {
            round.wait_for(&mut draft, "primary", readiness, round.primary_not_ready(reason));
        }
        (None, _) => round.waiting(&mut draft, "primary", round.primary_missing()),
    }
    draft
}

/// Whether the canary can be spared: the primary carries everything, or the canary will not answer either and there is
/// nothing to lose. After a failed promotion "answers" is not enough: the restored primary must be complete.
fn can_spare_canary(round: &Round<'_>, reason: &str) -> bool {
    let hopeless = round.seen.target.as_ref().is_none_or(|target| {
        target.replicas == 0 || (!target.answers() && matches!(target.readiness, Readiness::Failed { .. }))
    });
    if reason != PROMOTION_FAILED {
        return round.primary_answers() || hopeless;
    }
    let ready = round.seen.primary.as_ref().is_some_and(|primary| primary.readiness == Readiness::Ready);
    !rejected(round) && (ready || hopeless)
}

/// Moves traffic to where it is served best. Returns whether anything had to move.
fn move_traffic(round: &Round<'_>, draft: &mut Draft, reason: &str) -> bool {
    // After a failed promotion "answers" is not enough: the restored primary must be able to carry everything.
    let ready = round.seen.primary.as_ref().is_some_and(|primary| primary.readiness == Readiness::Ready);
    let carries = reason != PROMOTION_FAILED || (ready && !rejected(round));
    let split = match (round.primary_answers(), round.target_answers()) {
        (true, _) if carries => Split::primary_only(),
        (true, false) => Split::primary_only(),
        (false, true) => Split::canary(100),
        // Both answer while the primary is being restored, or nobody does: nothing is moved.
        _ => return false,
    };
    draft.route(round.set_split(split))
}

/// Traffic is gone: the canary sleeps, and once it does the rollout has failed.
fn fail(round: &Round<'_>, mut draft: Draft, condition: &Condition) -> Draft {
    let text = format!("Canary failed! Scaling down {}", round.plan.key());
    draft.notices.push(Notice { severity: Severity::Warning, text, once: once(round, condition, "failed") });
    if round.seen.target.as_ref().is_some_and(|target| target.replicas > 0) {
        draft.make(Effect::ScaleToZero);
        return draft;
    }
    draft.rule = "fail";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Failed;
        status.canary_weight = 0;
        status.iterations = 0;
        status.failed_checks = 0;
        let over = Condition { status: ConditionStatus::False, ..condition.clone() };
        let now = Some(status::whole_seconds(round.now));
        status.set_condition(Condition { last_transition_time: now, last_update_time: now, ..over });
    }));
    draft
}

/// There is no primary to go back to: like Flagger, leave everything on the canary, which answers. From here a new
/// revision can start, and a primary that comes back gets its traffic back.
fn stay_on_canary(round: &Round<'_>, mut draft: Draft, condition: &Condition) -> Draft {
    draft.rule = "fail on canary";
    announce(round, &mut draft, condition);
    if !round.foreign() {
        let (primary, target) = (round.plan.primary_key(), round.plan.target_key());
        let text = format!("Canary failed! {primary} cannot be brought back, all traffic stays on {target}");
        draft.notices.push(Notice { severity: Severity::Warning, text, once: once(round, condition, "stayed") });
    }
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Failed;
        status.canary_weight = 100;
        status.iterations = 0;
        status.failed_checks = 0;
        status.remove_condition(ROLLING_BACK);
    }));
    draft.route(round.set_split(Split::canary(100)));
    draft
}

/// Tells why, in Flagger's words; once, as long as this process remembers.
fn announce(round: &Round<'_>, draft: &mut Draft, condition: &Condition) {
    let (key, message) = (round.plan.key(), &condition.message);
    let texts = match condition.reason.as_str() {
        FAILED_CHECKS => vec![format!("Rolling back {key} failed checks threshold reached {message}")],
        DEADLINE => vec![format!("Rolling back {key} progress deadline exceeded {message}")],
        MANUAL => {
            vec![format!("Rollback check {message} passed"), format!("Rolling back {key} manual webhook invoked")]
        }
        PROMOTION_FAILED => {
            let target = round.plan.target_key();
            vec![message.clone(), format!("Promotion of {target} failed, primary not ready: {message}")]
        }
        _ => vec![message.clone()],
    };
    for (index, text) in texts.into_iter().enumerate() {
        let once = once(round, condition, &format!("announced {index}"));
        draft.notices.push(Notice { severity: Severity::Warning, text, once });
    }
}

/// The step may move when the rollback starts, the condition's time does not.
fn once(round: &Round<'_>, condition: &Condition, what: &str) -> String {
    let since = condition.last_transition_time.map_or(0, Timestamp::as_second);
    format!("{}/rolling back since {since}/{what}", round.status.last_applied_spec)
}
