//! How a status changes: one function that keeps its rules, whatever the change.
//!
//! `lastTransitionTime` moves only when phase, weight, iterations, failed checks or revision move, because ticks are
//! counted from it. Conditions carry the intents Flagger has no field for, and survive CRDs that prune what they do not
//! know.

use jiff::Timestamp;
use seaway_api::FieldError;
use seaway_api::canary::{CanaryStatus, Condition, ConditionStatus, DECISIONS_KEPT, Phase};
use serde_json::Value;

use crate::observed::Revision;
use crate::plan::Plan;

/// Flagger's condition: whether the last revision reached the primary.
pub const PROMOTED: &str = "Promoted";
/// Whether the spec can be served, and what is wrong with it.
pub const ACCEPTED: &str = "Accepted";
/// True from the decision to roll back until `Failed` is written.
pub const ROLLING_BACK: &str = "RollingBack";

/// True from a round that broke off by a fault of ours until one has gone through.
pub const INTERNAL_ERROR: &str = "InternalError";

/// The most errors or warnings one condition repeats.
const TOLD: usize = 10;

/// `status` after `change`, with everything that follows from it.
pub fn changed(
    now: Timestamp,
    plan: &Plan,
    status: &CanaryStatus,
    change: impl FnOnce(&mut CanaryStatus),
) -> CanaryStatus {
    let mut new = status.clone();
    change(&mut new);
    if moved(status, &new) {
        new.last_transition_time = Some(whole_seconds(now));
    }
    new.set_condition(promoted(now, plan, new.phase));
    new
}

/// Stamps the revision that is analysed from now on.
pub fn stamp(status: &mut CanaryStatus, revision: &Revision) {
    status.last_applied_spec.clone_from(&revision.template);
    status.tracked_configs = Some(revision.configs.clone());
}

/// Back to the beginning of an analysis of `revision`.
pub fn restart(status: &mut CanaryStatus, revision: &Revision) {
    status.phase = Phase::Progressing;
    status.canary_weight = 0;
    status.failed_checks = 0;
    status.iterations = 0;
    stamp(status, revision);
    status.remove_condition(ROLLING_BACK);
}

/// The status of a Canary whose spec cannot be served: everything stays where it is, and `Accepted` says why. `None`
/// when it already says so.
pub fn rejected(now: Timestamp, status: &CanaryStatus, errors: &[FieldError]) -> Option<CanaryStatus> {
    let mut new = status.clone();
    let condition = Condition::new(ACCEPTED, ConditionStatus::False, "InvalidSpec", sentences(errors), now);
    new.set_condition(condition).then_some(new)
}

/// The status of a Canary that we failed at by a fault of ours; everything stays where it is. `None` when it already says
/// so.
pub fn broken(now: Timestamp, status: &CanaryStatus, text: &str) -> Option<CanaryStatus> {
    let mut new = status.clone();
    let condition = Condition::new(INTERNAL_ERROR, ConditionStatus::True, "RoundBrokeOff", text.to_owned(), now);
    new.set_condition(condition).then_some(new)
}

/// The status after a round that went through; `None` when none had broken off.
pub fn mended(status: &CanaryStatus) -> Option<CanaryStatus> {
    status.is_true(INTERNAL_ERROR).then(|| {
        let mut new = status.clone();
        new.remove_condition(INTERNAL_ERROR);
        new
    })
}

/// `Accepted` as it should be: true, with the plan's warnings.
pub fn accepted(now: Timestamp, plan: &Plan) -> Condition {
    let (reason, message) = if plan.warnings.is_empty() {
        ("Valid", "the spec is valid".to_owned())
    } else {
        ("ValidWithWarnings", sentences(&plan.warnings))
    };
    Condition::new(ACCEPTED, ConditionStatus::True, reason, message, now)
}

/// Keeps a decision for people; the oldest one makes room.
pub fn record(status: &mut CanaryStatus, decision: Value) {
    status.decisions.push(decision);
    let surplus = status.decisions.len().saturating_sub(DECISIONS_KEPT);
    status.decisions.drain(..surplus);
}

fn sentences(errors: &[FieldError]) -> String {
    let mut told: Vec<String> = errors.iter().take(TOLD).map(FieldError::sentence).collect();
    if errors.len() > TOLD {
        told.push(format!("and {} more", errors.len() - TOLD));
    }
    told.join(". ")
}

fn moved(old: &CanaryStatus, new: &CanaryStatus) -> bool {
    let position = |status: &CanaryStatus| {
        let numbers = (status.phase, status.canary_weight, status.iterations, status.failed_checks);
        (numbers, status.last_applied_spec.clone(), status.tracked_configs.clone().unwrap_or_default())
    };
    position(old) != position(new)
}

/// The condition Flagger writes for a phase.
fn promoted(now: Timestamp, plan: &Plan, phase: Phase) -> Condition {
    let kind = &plan.target_kind;
    let (status, message) = match phase {
        Phase::Initialized => (ConditionStatus::True, format!("{kind} initialization completed.")),
        Phase::Waiting | Phase::WaitingPromotion => (ConditionStatus::Unknown, "Waiting for approval.".to_owned()),
        Phase::Progressing => {
            (ConditionStatus::Unknown, "New revision detected, progressing canary analysis.".to_owned())
        }
        Phase::Promoting => {
            (ConditionStatus::Unknown, "Canary analysis completed, starting primary rolling update.".to_owned())
        }
        Phase::Finalising => {
            (ConditionStatus::Unknown, "Canary analysis completed, routing all traffic to primary.".to_owned())
        }
        Phase::Succeeded => {
            (ConditionStatus::True, "Canary analysis completed successfully, promotion finished.".to_owned())
        }
        Phase::Failed => (ConditionStatus::False, format!("Canary analysis failed, {kind} scaled to zero.")),
        Phase::Unset | Phase::Initializing | Phase::Terminating | Phase::Terminated => {
            (ConditionStatus::Unknown, format!("New {kind} detected, starting initialization."))
        }
    };
    Condition::new(PROMOTED, status, phase.as_str(), message, now)
}

/// Statuses store whole seconds; comparing with what was stored must not see a difference.
pub(crate) fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use seaway_api::Canary;

    use super::*;
    use crate::plan::Settings;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn plan() -> Plan {
        Plan::new(&Canary::test(), &Settings::default()).unwrap()
    }

    #[test]
    fn time_moves_with_the_position_only() {
        let start = changed(at(10), &plan(), &CanaryStatus::default(), |status| status.phase = Phase::Progressing);
        assert_eq!(start.last_transition_time, Some(at(10)));
        let same = changed(at(20), &plan(), &start, |status| {
            status.tracked_configs = Some(std::collections::BTreeMap::new());
            status.remove_condition(ROLLING_BACK);
        });
        assert_eq!(same.last_transition_time, Some(at(10)));
        let advanced = changed(at(30), &plan(), &same, |status| status.canary_weight = 10);
        assert_eq!(advanced.last_transition_time, Some(at(30)));
        let condition = advanced.condition(PROMOTED).unwrap();
        assert_eq!((condition.status, condition.reason.as_str()), (ConditionStatus::Unknown, "Progressing"));
    }

    #[test]
    fn a_rejection_is_written_once() {
        let errors = [FieldError::new("spec.analysis.stepWeight", "0 is not between 1 and 100", "write a percentage")];
        let rejected_once = rejected(at(1), &CanaryStatus::default(), &errors).unwrap();
        let condition = rejected_once.condition(ACCEPTED).unwrap();
        assert_eq!(condition.reason, "InvalidSpec");
        assert_eq!(condition.message, "spec.analysis.stepWeight: 0 is not between 1 and 100; write a percentage");
        assert_eq!(rejected(at(2), &rejected_once, &errors), None);
        let mut accepted = rejected_once;
        assert!(accepted.set_condition(super::accepted(at(3), &plan())));
        assert!(!accepted.set_condition(super::accepted(at(4), &plan())));
    }

    #[test]
    fn a_fault_of_ours_is_told_once_and_taken_back_once() {
        let whole = CanaryStatus::default();
        assert_eq!(mended(&whole), None);
        let broken_once = broken(at(1), &whole, "internal error").unwrap();
        assert_eq!(broken(at(2), &broken_once, "internal error"), None);
        assert!(mended(&broken_once).unwrap().means_the_same(&whole));
    }

    #[test]
    fn twenty_decisions_are_kept() {
        let mut status = CanaryStatus::default();
        (0..30).for_each(|number| record(&mut status, Value::from(number)));
        assert_eq!((status.decisions.len(), &status.decisions[0]), (20, &Value::from(10)));
    }
}
