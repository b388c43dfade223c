//! The primary takes over the analysed revision, then all traffic, then the canary goes to sleep.
//!
//! The intent (`Promoting`) is stored before the primary is touched, so a crash in between is continued, not undone. What is
//! copied is the revision that was analysed: if the target moved on before the copy, what was begun is taken back and the
//! analysis starts again.

use seaway_api::canary::Phase;

use super::analyse;
use super::draft::Draft;
use super::rollback::{self, Cause};
use super::round::{Drained, Round};
use crate::effect::Effect;
use crate::intent;
use crate::observed::{Previous, Readiness, Revision};
use crate::revision::{flagger_id, same_revision};
use crate::split::Split;
use crate::status::{self, ROLLING_BACK};
use crate::zoo;

/// Every check has passed, or none is wanted: from here on the primary is changed.
pub(super) fn start(round: &Round<'_>, mut draft: Draft, revision: &Revision) -> Draft {
    draft.rule = if round.plan.skip_analysis { "skip analysis" } else { "promote" };
    let weight = round.weight();
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Promoting;
        status.canary_weight = weight.into();
        status.iterations = 0;
    }));
    copy(round, &mut draft, revision);
    let (target, primary) = (round.plan.target_key(), round.plan.primary_key());
    draft.notices.push(round.normal("copying", format!("Copying {target} template spec to {primary}")));
    draft
}

/// The outgoing primary is stored, then the primary gets the revision.
fn copy(round: &Round<'_>, draft: &mut Draft, revision: &Revision) {
    if round.seen.primary.is_none() {
        return draft.make(Effect::CreatePrimary(revision.clone()));
    }
    draft.make(Effect::StorePrevious(revision.clone()));
    draft.make(Effect::Promote { revision: revision.clone(), id: flagger_id(&round.plan.uid, revision) });
}

/// Whether the primary was given the analysed revision.
pub(super) fn has_applied(round: &Round<'_>) -> bool {
    let id = flagger_id(&round.plan.uid, &round.applied());
    round.seen.primary.as_ref().is_some_and(|primary| primary.id.as_deref() == Some(&id))
}

/// Whether nothing is left to copy. Flagger copies first and writes its phase afterwards, so in a promotion of its making
/// everything is copied.
fn needs_no_copy(round: &Round<'_>) -> bool {
    round.foreign() || has_applied(round)
}

/// Phase `Promoting`.
pub(super) fn promote(round: &Round<'_>) -> Draft {
    if round.status.is_true(ROLLING_BACK) {
        return rollback::go_on(round);
    }
    let mut draft = Draft::new("promote");
    round.keep(&mut draft);
    if round.seen.target.as_ref().is_some_and(|target| target.replicas == 0) {
        draft.make(Effect::ScaleUp);
    }
    let intended = intent::intent(round.plan, round.status).split;
    let repairing = intended.is_some_and(|split| draft.route(round.serve(split)));
    if needs_no_copy(round) { await_primary(round, draft, repairing) } else { change_primary(round, draft) }
}

/// The primary is still to get the analysed revision, or the rest of it.
fn change_primary(round: &Round<'_>, mut draft: Draft) -> Draft {
    draft.wake_at(round.next_tick());
    match &round.seen.revision {
        None => round.problems(&mut draft),
        Some(revision) if !same_revision(round.status, revision) && !zoo::PROMOTES_WHAT_IT_FINDS => {
            return abandon(round, draft, revision);
        }
        Some(revision) => copy(round, &mut draft, revision),
    }
    draft
}

/// The target moved on before the copy was complete. What was begun is taken back first, as long as the status still names
/// it: otherwise the next promotion would store a mixture as what came before it.
fn abandon(round: &Round<'_>, mut draft: Draft, revision: &Revision) -> Draft {
    if round.seen.previous != Previous::Differs {
        return analyse::restart(round, draft, revision);
    }
    draft.rule = "take back";
    draft.route(round.serve(Split::primary_only()));
    draft.make(Effect::RestorePrevious(round.applied()));
    draft
}

/// The primary has the analysed revision and comes up with it, or does not.
fn await_primary(round: &Round<'_>, mut draft: Draft, repairing: bool) -> Draft {
    let Some(primary) = &round.seen.primary else { return fail(round, draft, &round.primary_missing()) };
    draft.make(Effect::PrimaryAutoscaler { refresh: true });
    match &primary.readiness {
        Readiness::Waiting { reason, .. } => {
            round.wait_for(&mut draft, "primary", &primary.readiness, round.primary_not_ready(reason));
            draft
        }
        Readiness::Failed { reason } if zoo::WAITS_FOR_A_DEAD_PRIMARY => {
            round.waiting(&mut draft, "primary", round.primary_not_ready(reason));
            draft
        }
        Readiness::Failed { reason } => fail(round, draft, &round.primary_not_ready(reason)),
        Readiness::Ready if repairing => {
            draft.wake_at(round.next_tick());
            draft
        }
        Readiness::Ready => shift(round, draft),
    }
}

/// The primary is ready: traffic goes back to it, all at once or in steps.
fn shift(round: &Round<'_>, mut draft: Draft) -> Draft {
    // A target that moved on gets no more traffic than it must: it was never analysed. One that cannot be read did not.
    let same = round.seen.revision.as_ref().is_none_or(|revision| same_revision(round.status, revision));
    let step = round.plan.promotion_step.filter(|_| same && !round.plan.skip_analysis && round.weight() > 0);
    let Some(step) = step else {
        if !round.plan.skip_analysis {
            draft.notices.push(round.normal("routing", "Routing all traffic to primary".into()));
        }
        return leave(round, draft);
    };
    if round.tick == 0 {
        draft.wake_at(round.next_tick());
        return draft;
    }
    let weight = round.weight().saturating_sub(step);
    let text = format!("Advance {} primary weight {}", round.plan.key(), 100 - weight);
    draft.notices.push(round.normal("primary advance", text));
    if weight == 0 {
        return leave(round, draft);
    }
    draft.rule = "shift back";
    draft.status =
        Some(status::changed(round.now, round.plan, round.status, |status| status.canary_weight = weight.into()));
    draft.route(round.set_split(Split::canary(weight)));
    draft
}

/// Everything to the primary.
fn leave(round: &Round<'_>, mut draft: Draft) -> Draft {
    draft.rule = "all traffic to primary";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Finalising;
        status.canary_weight = 0;
        status.iterations = 0;
    }));
    draft.route(round.set_split(Split::primary_only()));
    draft
}

/// Phase `Finalising`: the canary sleeps once its traffic was seen to be gone.
pub(super) fn finalise(round: &Round<'_>) -> Draft {
    if round.status.is_true(ROLLING_BACK) {
        return rollback::go_on(round);
    }
    let mut draft = Draft::new("finalise");
    round.keep(&mut draft);
    draft.route(round.serve(Split::primary_only()));
    match round.seen.primary.as_ref().map(|primary| &primary.readiness) {
        Some(Readiness::Ready) => {}
        Some(Readiness::Failed { reason }) => return fail(round, draft, &round.primary_not_ready(reason)),
        Some(readiness @ Readiness::Waiting { reason, .. }) => {
            round.wait_for(&mut draft, "primary", readiness, round.primary_not_ready(reason));
            return draft;
        }
        None => return remake(round, draft),
    }
    if !matches!(round.drained(), Drained::Yes) && !zoo::SCALES_DOWN_FIRST {
        round.wait_for_drain(&mut draft);
        return draft;
    }
    draft.rule = "succeed";
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Succeeded;
        status.canary_weight = 0;
        status.iterations = 0;
        status.last_promoted_spec.clone_from(&round.status.last_applied_spec);
    }));
    draft.make(Effect::ScaleToZero);
    draft.make(Effect::KeepCurrent(round.applied()));
    let target = round.plan.target_key();
    let text = if round.plan.skip_analysis {
        format!("Promotion completed! Canary analysis was skipped for {target}")
    } else {
        format!("Promotion completed! Scaling down {target}")
    };
    draft.notices.push(round.normal("completed", text));
    draft
}

/// The promoted primary is gone before the end. While the target still is what was promoted it is made from that again.
fn remake(round: &Round<'_>, mut draft: Draft) -> Draft {
    match &round.seen.revision {
        Some(revision) if same_revision(round.status, revision) => {
            draft.make(Effect::CreatePrimary(revision.clone()));
            draft.notices.push(round.warning("primary missing", round.primary_missing()));
            draft.wake_at(round.next_tick());
            draft
        }
        Some(_) => fail(round, draft, &round.primary_missing()),
        None => {
            round.problems(&mut draft);
            round.waiting(&mut draft, "primary", round.primary_missing());
            draft
        }
    }
}

/// The primary does not come up with the new revision: the old one comes back.
fn fail(round: &Round<'_>, mut draft: Draft, error: &str) -> Draft {
    draft.effects.clear();
    let cause = match error.to_owned() {
        error if zoo::ROLLS_BACK_TO_A_BROKEN_PRIMARY => Cause::PrimaryNotReady(error),
        error => Cause::PromotionFailed(error),
    };
    rollback::start(round, draft, &cause, None, round.status.failed_checks)
}
