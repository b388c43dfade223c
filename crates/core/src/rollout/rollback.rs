//! Back to what was proven: traffic first, pods afterwards, `Failed` last.
//!
//! The intent is the condition `RollingBack`; while it is true, phase, weight and failed checks keep their last values, and
//! a new revision waits. Traffic goes to whoever answers: to the primary if it does, to the canary if it alone does, and
//! nowhere if nobody does. A primary that was changed by a failed promotion is restored before it gets its traffic back.

use seaway_api::canary::{Condition, ConditionStatus, HookType, Phase};

use super::draft::Draft;
use super::promotion;
use super::round::{Drained, Reply, Round};
use crate::effect::{Effect, Notice, Severity};
use crate::observed::{Readiness, Revision, Workload};
use crate::question::Subject;
use crate::split::Split;
use crate::status::{self, ROLLING_BACK};

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
    draft.effects.retain(|effect| !matches!(effect, Effect::SetSplit(_)));
    if let Some(condition) = new.condition(ROLLING_BACK) {
        announce(round, &mut draft, condition);
    }
    draft.status = Some(new);
    move_traffic(round, &mut draft, reason);
    draft
}

/// The rollback continues wherever the last round, or a crash, has left it.
pub(super) fn go_on(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("roll back");
    let Some(condition) = round.status.condition(ROLLING_BACK) else { return draft };
    let reason = condition.reason.as_str();
    if reason == PROMOTION_FAILED && promotion::copied(round) {
        announce(round, &mut draft, condition);
        if round.foreign() {
            return end_as_flagger(round, draft);
        }
        move_traffic(round, &mut draft, reason);
        draft.make(Effect::RestorePrevious(round.applied()));
        draft.wake_at(round.next_tick());
        return draft;
    }
    let moving = move_traffic(round, &mut draft, reason);
    if moving {
        announce(round, &mut draft, condition);
    }
    if !moving && primary_carries(round, reason) && matches!(round.drained(), Drained::Yes) {
        return fail(round, draft, condition);
    }
    round.wait_for_drain(&mut draft);
    if let Some(Readiness::Waiting { reason, .. } | Readiness::Failed { reason }) =
        round.seen.primary.as_ref().map(|primary| &primary.readiness)
    {
        round.waiting(&mut draft, "primary", round.primary_not_ready(reason));
    }
    draft
}

/// Whether the canary can be spared. If neither side answers there is nothing to lose.
fn primary_carries(round: &Round<'_>, reason: &str) -> bool {
    let ready = |primary: &Workload| match reason {
        PROMOTION_FAILED => primary.readiness == Readiness::Ready,
        _ => primary.answers(),
    };
    round.seen.primary.as_ref().is_some_and(ready)
        || (reason != PROMOTION_FAILED && !round.seen.target.as_ref().is_some_and(Workload::answers))
}

/// Moves traffic to where it is served best. Returns whether anything had to move.
fn move_traffic(round: &Round<'_>, draft: &mut Draft, reason: &str) -> bool {
    let answers = |workload: &Option<Workload>| workload.as_ref().is_some_and(Workload::answers);
    let (primary, target) = (answers(&round.seen.primary), answers(&round.seen.target));
    // After a failed promotion "answers" is not enough: the restored primary must be able to carry everything.
    let ready = round.seen.primary.as_ref().is_some_and(|primary| primary.readiness == Readiness::Ready);
    let promoted = reason == PROMOTION_FAILED;
    let split = match (primary, target) {
        (true, _) if !promoted || (ready && !promotion::copied(round)) => Split::primary_only(),
        (true, false) => Split::primary_only(),
        (false, true) => Split::canary(100),
        // Both answer while the primary is being restored, or nobody does: nothing is moved.
        _ => return false,
    };
    let effect = round.set_split(split);
    let moves = effect.is_some();
    draft.make(effect);
    moves
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

/// A promotion that Flagger began left nothing to restore: like Flagger, leave everything on the canary, if it answers.
fn end_as_flagger(round: &Round<'_>, mut draft: Draft) -> Draft {
    if !round.seen.target.as_ref().is_some_and(Workload::answers) {
        draft.wake_at(round.next_tick());
        return draft;
    }
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Failed;
        status.canary_weight = 100;
        status.iterations = 0;
        status.failed_checks = 0;
        status.remove_condition(ROLLING_BACK);
    }));
    draft.make(round.set_split(Split::canary(100)));
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
    let since = condition.last_transition_time.map_or(0, jiff::Timestamp::as_second);
    format!("{}/rolling back since {since}/{what}", round.status.last_applied_spec)
}
