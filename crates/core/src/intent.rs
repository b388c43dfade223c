//! What should be, from the stored status alone.
//!
//! Whatever happened, and whoever wrote the status last, this says which split and which scale belong to it. Routers and
//! targets make it so and keep it so. It does not say *when*: whether a move is safe now depends on what is observed,
//! and that is `rollout`'s business.

use seaway_api::canary::{CanaryStatus, Phase};

use crate::plan::Plan;
use crate::split::Split;
use crate::status::ROLLING_BACK;

/// What should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent {
    /// The split the route should name; `None` while the route is not ours to set.
    pub split: Option<Split>,
    /// The size the target should have.
    pub target: TargetScale,
}

/// The size the target should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetScale {
    /// As it is.
    Leave,
    /// Running.
    Up,
    /// No pods, once no traffic can reach them.
    Zero,
}

/// What should be. Total: there is an answer for every status anybody could have written.
pub fn intent(plan: &Plan, status: &CanaryStatus) -> Intent {
    let split = |weight: u8| Some(Split::canary(weight));
    if status.is_true(ROLLING_BACK) {
        return Intent { split: split(0), target: TargetScale::Leave };
    }
    match status.phase {
        // Before adoption and after release the route is the user's.
        Phase::Unset | Phase::Initializing | Phase::Terminating | Phase::Terminated => {
            Intent { split: None, target: TargetScale::Leave }
        }
        Phase::Progressing | Phase::WaitingPromotion | Phase::Promoting => {
            Intent { split: split(weight(plan, status)), target: TargetScale::Up }
        }
        Phase::Finalising => Intent { split: split(0), target: TargetScale::Up },
        // Flagger ends a failed promotion with everything on the canary: its primary is broken and nothing else serves.
        Phase::Failed | Phase::Waiting if status.canary_weight >= 100 => {
            Intent { split: split(100), target: TargetScale::Up }
        }
        Phase::Initialized | Phase::Waiting | Phase::Succeeded | Phase::Failed => {
            Intent { split: split(0), target: TargetScale::Zero }
        }
    }
}

/// The canary's share. Flagger writes 0 while it waits for promotion although the route stays at the maximum.
pub fn weight(plan: &Plan, status: &CanaryStatus) -> u8 {
    match status.canary_weight {
        ..=0 if status.phase == Phase::WaitingPromotion => plan.steps.max(),
        weight => u8::try_from(weight.clamp(0, 100)).unwrap_or(100),
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use seaway_api::Canary;
    use seaway_api::canary::{Condition, ConditionStatus};

    use super::*;
    use crate::plan::Settings;

    fn of(phase: Phase, weight: i64) -> Intent {
        let canary = Canary::test().at(phase).weight(weight);
        intent(&Plan::new(&canary, &Settings::default()).unwrap(), &canary.status_or_default())
    }

    #[test]
    fn every_phase_has_an_intent() {
        let at = |weight| Some(Split::canary(weight));
        for (phase, weight, split, target) in [
            (Phase::Unset, 0, None, TargetScale::Leave),
            (Phase::Initializing, 0, None, TargetScale::Leave),
            (Phase::Initialized, 0, at(0), TargetScale::Zero),
            (Phase::Waiting, 0, at(0), TargetScale::Zero),
            (Phase::Progressing, 20, at(20), TargetScale::Up),
            (Phase::Progressing, -3, at(0), TargetScale::Up),
            (Phase::Progressing, 400, at(100), TargetScale::Up),
            (Phase::WaitingPromotion, 60, at(60), TargetScale::Up),
            (Phase::WaitingPromotion, 0, at(50), TargetScale::Up),
            (Phase::Promoting, 50, at(50), TargetScale::Up),
            (Phase::Finalising, 0, at(0), TargetScale::Up),
            (Phase::Succeeded, 0, at(0), TargetScale::Zero),
            (Phase::Failed, 0, at(0), TargetScale::Zero),
            (Phase::Failed, 100, at(100), TargetScale::Up),
            (Phase::Terminating, 0, None, TargetScale::Leave),
        ] {
            assert_eq!(of(phase, weight), Intent { split, target }, "{phase} {weight}");
        }
    }

    #[test]
    fn rolling_back_means_everything_to_the_primary() {
        let canary = Canary::test().at(Phase::Progressing).weight(30);
        let mut status = canary.status_or_default();
        status.set_condition(Condition::new(
            ROLLING_BACK,
            ConditionStatus::True,
            "FailedChecks",
            "",
            Timestamp::UNIX_EPOCH,
        ));
        let plan = Plan::new(&canary, &Settings::default()).unwrap();
        assert_eq!(intent(&plan, &status).split, Some(Split::primary_only()));
    }
}
