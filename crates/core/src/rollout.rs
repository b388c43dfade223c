//! The phase table: what happens next, given what is planned, what is stored and what is seen.
//!
//! [`decide`] is total and synchronous. It never waits: a check that needs the outside is returned as a question, and its
//! answer is part of a later observation. It never remembers: everything it uses is in its arguments, so a restart, a
//! missed event or a second look give the same decision. The operator stores the status first, then makes the effects
//! true in order, then tells the notices.

mod analyse;
mod draft;
mod gate;
mod initialize;
mod promotion;
mod rest;
mod revert;
mod rollback;
mod round;

use jiff::Timestamp;
use seaway_api::canary::{CanaryStatus, Phase};
use serde_json::json;

use crate::effect::{Decision, Effect};
use crate::observed::Observed;
use crate::plan::Plan;
use crate::status::{self, ACCEPTED};
use crate::zoo;

use draft::Draft;
use round::Round;
pub use round::step;

/// What happens next.
pub fn decide(now: Timestamp, plan: &Plan, status: &CanaryStatus, seen: &Observed) -> Decision {
    let round = Round::new(now, plan, status, seen);
    let draft = if seen.deleting {
        let mut draft = revert::decide(&round);
        if zoo::ROLLS_ON_WHILE_REVERTING {
            draft.effects.extend(analyse::decide(&round).effects);
        }
        draft
    } else if plan.suspend {
        suspended(&round)
    } else {
        match status.phase {
            Phase::Unset | Phase::Initializing => initialize::decide(&round),
            Phase::Waiting => gate::decide(&round),
            Phase::Progressing | Phase::WaitingPromotion => analyse::decide(&round),
            Phase::Promoting => promotion::promote(&round),
            Phase::Finalising => promotion::finalise(&round),
            Phase::Initialized | Phase::Succeeded | Phase::Failed
            // Without a deletion these mean nothing; Flagger, too, takes them for resting.
            | Phase::Terminating | Phase::Terminated => rest::decide(&round),
        }
    };
    finish(&round, draft)
}

/// Whether effects of this phase may copy configs to the primary, so that what was read for it is worth keeping.
pub fn is_copying(phase: Phase) -> bool {
    matches!(phase, Phase::Initializing | Phase::Promoting | Phase::Finalising)
}

/// A suspended canary is left exactly as it is, traffic included.
fn suspended(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("suspend");
    draft.notices.push(round.normal("suspended", "skipping canary run as object is suspended".into()));
    draft
}

/// What every decision has in common: the finalizer follows the spec, `Accepted` is true, and a status that is written
/// anyway says why.
fn finish(round: &Round<'_>, mut draft: Draft) -> Decision {
    let Round { now, plan, status, seen, .. } = *round;
    if !seen.deleting && plan.revert_on_deletion != seen.finalizer {
        draft.effects.insert(0, Effect::Finalizer(plan.revert_on_deletion));
    }
    let accepted = status::accepted(now, plan);
    let says_so = status.condition(ACCEPTED).is_some_and(|condition| condition.says_the_same(&accepted));
    let new = match draft.status {
        None if says_so || seen.deleting => None,
        drafted => Some(drafted.unwrap_or_else(|| status.clone())),
    };
    let status = new.and_then(|mut new| {
        if !seen.deleting {
            new.set_condition(accepted);
        }
        if new.means_the_same(status) {
            return None;
        }
        let mut record = json!({
            "time": now.to_string(),
            "phase": new.phase.as_str(),
            "weight": new.canary_weight,
            "rule": draft.rule,
        });
        if !draft.checks.is_empty() {
            record["checks"] = draft.checks.into();
        }
        status::record(&mut new, record);
        Some(new)
    });
    // A stored status is a new situation: look again at once.
    let wake = if status.is_some() { Some(now) } else { draft.wake };
    Decision { status, effects: draft.effects, notices: draft.notices, wake }
}
