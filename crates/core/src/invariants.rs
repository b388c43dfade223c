//! What must never happen, as named checks. Read this to trust the rest.
//!
//! [`check`] looks at one decision before it is carried out; the operator calls it every time, and a violation becomes a
//! refused round, an Event and a metric, never a panic. [`commit`] looks at what was really written, one write at a time;
//! tests call it for every commit. The rules do not call anything here: what they derive is checked, not repeated. Shared are
//! only the words: what a status intends, how an answer is judged, which revision is which.

pub mod commit;

use seaway_api::canary::{CanaryStatus, HookType, Phase};

use crate::analysis::{self, Outcome};
use crate::effect::{Decision, Effect};
use crate::intent;
use crate::observed::{Observed, Route, Workload};
use crate::plan::Plan;
use crate::question::{Answer, QuestionKey, Subject};
use crate::revision::{self, flagger_id};
use crate::rollout::step;
use crate::split::{Split, Variant};

/// A rule that would be, or was, broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {text}")]
pub struct Violation {
    /// Which rule, e.g. `I1`.
    pub rule: &'static str,
    /// How.
    pub text: String,
}

impl Violation {
    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Self { rule, text: text.into() }
    }
}

type Checked = Result<(), Violation>;

/// The most object writes one decision may ask for.
const MOST_EFFECTS: usize = 8;

/// Checks one decision against what was stored and seen.
pub fn check(plan: &Plan, before: &CanaryStatus, decision: &Decision, seen: &Observed) -> Checked {
    let case = Case { plan, before, after: decision.status.as_ref().unwrap_or(before), seen };
    for effect in &decision.effects {
        match effect {
            Effect::SetSplit(split) => {
                let current = seen.route.as_ref().and_then(|route| route.split);
                no_traffic_to_the_dead(current, *split, seen)?;
                no_rise_without_a_verdict(&case, current, *split)?;
                let taken_over = seen.route.as_ref().filter(|route| before.phase.is_initializing() && route.to_apex);
                no_traffic_to_the_unknown(taken_over)?;
            }
            Effect::ScaleToZero => no_pods_taken_from_traffic(&case, decision)?,
            Effect::Promote { revision, id } => {
                no_promotion_without_a_pass(&case)?;
                only_what_was_analysed(&case, revision, id)?;
            }
            Effect::CreatePrimary(revision) => only_proven_primaries(&case, revision)?,
            Effect::ApexToPrimary | Effect::ApexSelectsPrimary => {
                someone_behind_the_apex(seen.primary.as_ref(), Variant::Primary)?;
                if *effect == Effect::ApexToPrimary && before.phase.is_initializing() {
                    no_port_taken_from_traffic(seen.route.as_ref())?;
                }
            }
            Effect::ApexToTarget | Effect::RouteToApex | Effect::Release => {
                someone_behind_the_apex(seen.target.as_ref(), Variant::Canary)?;
                let led_away =
                    seen.route.as_ref().filter(|route| *effect == Effect::RouteToApex && route.split.is_some());
                no_traffic_to_the_unknown(led_away)?;
            }
            Effect::Finalizer(false) => nobody_loses_the_primary(&case)?,
            _ => {}
        }
    }
    if before.phase != Phase::Promoting && case.after.phase == Phase::Promoting {
        no_promotion_without_a_pass(&case)?;
    }
    if before.phase != Phase::Failed && case.after.phase == Phase::Failed {
        failure_ends_on_a_proven_revision(&case)?;
    }
    bounded(decision)
}

/// What one decision was made from, and what it would store.
struct Case<'a> {
    plan: &'a Plan,
    before: &'a CanaryStatus,
    after: &'a CanaryStatus,
    seen: &'a Observed,
}

/// I1: traffic only ever moves towards someone who answers. An unknown current split counts as nobody having anything.
fn no_traffic_to_the_dead(from: Option<Split>, to: Split, seen: &Observed) -> Checked {
    for (variant, weight) in to.weights() {
        let rises = weight > from.map_or(0, |from| from.weight(variant));
        let answers = match variant {
            Variant::Primary => answers(seen.primary.as_ref()),
            Variant::Canary => answers(seen.target.as_ref()),
            Variant::Baseline => false,
        };
        if rises && !answers {
            return Err(Violation::new("I1", format!("{variant} would get {weight} % with no ready pod")));
        }
    }
    Ok(())
}

/// I1: a route that serves users is led to other Services only after it was seen to name them.
fn no_traffic_to_the_unknown(route: Option<&Route>) -> Checked {
    match route {
        Some(route) if !route.announced || route.settled_since.is_none() => {
            Err(Violation::new("I1", "the route would lead to Services that the data plane has not heard of"))
        }
        _ => Ok(()),
    }
}

/// I1: ports of the apex Service change only when no route of another Canary's leads users to them.
fn no_port_taken_from_traffic(route: Option<&Route>) -> Checked {
    match route {
        Some(route) if route.to_apex || route.settled_since.is_none() => {
            Err(Violation::new("I1", "the apex Service would lose a port while traffic may reach it"))
        }
        _ => Ok(()),
    }
}

/// I1: pods go only after the route was seen to send them nothing.
fn no_pods_taken_from_traffic(case: &Case<'_>, decision: &Decision) -> Checked {
    let gets_nothing = |split: &Split| split.weight(Variant::Canary) == 0 && split.mirror().is_none();
    let seen_gone = case
        .seen
        .route
        .as_ref()
        .is_some_and(|route| route.settled_since.is_some() && route.split.as_ref().is_some_and(gets_nothing));
    let stays =
        decision.effects.iter().all(|effect| !matches!(effect, Effect::SetSplit(split) if !gets_nothing(split)));
    if !seen_gone || !stays {
        return Err(Violation::new("I1", "the target would lose its pods while traffic may reach them"));
    }
    // Before adoption is complete the target is all there is.
    if case.before.phase.is_initializing() && !answers(case.seen.primary.as_ref()) {
        return Err(Violation::new("I5", "the target would sleep before the primary answers"));
    }
    Ok(())
}

/// I3: the primary changes only after every required step has passed with data present, or when no analysis is wanted.
fn no_promotion_without_a_pass(case: &Case<'_>) -> Checked {
    let Case { plan, before, seen, .. } = case;
    match before.phase {
        // Adoption: there is nothing older to protect.
        Phase::Unset | Phase::Initializing if before.last_promoted_spec.is_empty() => Ok(()),
        // Decided, checked and stored earlier.
        Phase::Promoting => Ok(()),
        Phase::Progressing | Phase::WaitingPromotion if plan.skip_analysis => Ok(()),
        Phase::Progressing | Phase::WaitingPromotion => {
            if plan.steps.next(intent::weight(plan, before)).is_some() {
                return Err(Violation::new("I3", "a promotion before the last step"));
            }
            if !has_passing_verdict(plan, before, seen) {
                return Err(Violation::new("I3", "a promotion without a passing verdict of this step"));
            }
            Ok(())
        }
        phase => Err(Violation::new("I3", format!("a promotion in phase {phase}"))),
    }
}

/// I3: what is copied is what was analysed.
fn only_what_was_analysed(case: &Case<'_>, revision: &revision::Revision, id: &str) -> Checked {
    let adopting = case.before.phase.is_initializing();
    let same = adopting || revision::same_revision(case.after, revision);
    if !same || case.seen.revision.as_ref() != Some(revision) {
        return Err(Violation::new("I3", "the revision to promote is not the one that was analysed"));
    }
    if flagger_id(&case.plan.uid, revision) != id {
        return Err(Violation::new("I3", "the id does not belong to the revision"));
    }
    Ok(())
}

/// I3: a primary is made from what the user runs at adoption, from what was promoted, or from what is being promoted.
fn only_proven_primaries(case: &Case<'_>, revision: &revision::Revision) -> Checked {
    let proven = match case.after.phase {
        Phase::Unset | Phase::Initializing => true,
        Phase::Promoting | Phase::Finalising if revision::same_revision(case.after, revision) => true,
        _ => case.after.last_promoted_spec == revision.template,
    };
    if proven { Ok(()) } else { Err(Violation::new("I3", "a primary would be made from an unproven revision")) }
}

/// I4: after a failure traffic is on a primary that runs what was promoted, or, if that is broken, on the canary.
fn failure_ends_on_a_proven_revision(case: &Case<'_>) -> Checked {
    let Case { plan, before, after, seen } = case;
    if after.canary_weight >= 100 {
        let answers = answers(seen.target.as_ref());
        return if answers {
            Ok(())
        } else {
            Err(Violation::new("I4", "all traffic on a canary that does not answer"))
        };
    }
    let split = seen.route.as_ref().and_then(|route| route.split);
    if split != Some(Split::primary_only()) {
        return Err(Violation::new("I4", "failed while the canary still has traffic"));
    }
    let rejected = flagger_id(&plan.uid, &revision::applied(before));
    let runs_it = seen.primary.as_ref().is_some_and(|primary| primary.id.as_deref() == Some(&rejected));
    if runs_it && before.last_applied_spec != before.last_promoted_spec {
        return Err(Violation::new("I4", "failed while the primary runs the rejected revision"));
    }
    Ok(())
}

/// I5: the apex never points to nobody.
fn someone_behind_the_apex(workload: Option<&Workload>, variant: Variant) -> Checked {
    if answers(workload) {
        Ok(())
    } else {
        Err(Violation::new("I5", format!("the apex would point to a {variant} without pods")))
    }
}

/// I5: the primary may be collected only after the route was seen to leave it, if anybody else can serve.
fn nobody_loses_the_primary(case: &Case<'_>) -> Checked {
    let Case { plan, before, seen, .. } = case;
    let released = |route: &Route| route.to_apex && route.settled_since.is_some();
    let left = seen.route.as_ref().is_none_or(released) && seen.apex_to_target;
    let promised = plan.revert_on_deletion && seen.deleting && before.phase != Phase::Unset && seen.target.is_some();
    if promised && !left {
        Err(Violation::new("I5", "the primary would go while traffic may reach it"))
    } else {
        Ok(())
    }
}

/// I9: the canary's weight rises only after a passing verdict of this step, and only to the plan's next weight.
fn no_rise_without_a_verdict(case: &Case<'_>, from: Option<Split>, to: Split) -> Checked {
    let Case { plan, before, after, seen } = case;
    let weight = to.weight(Variant::Canary);
    let rises = weight > from.map_or(0, |from| from.weight(Variant::Canary));
    let restores = intent::intent(plan, before).split == Some(to);
    let only_side = !answers(seen.primary.as_ref());
    if !rises || restores || only_side {
        return Ok(());
    }
    if after.canary_weight == 100 && after.phase == Phase::Failed {
        // A failed promotion of Flagger's: its primary is broken.
        return Ok(());
    }
    let stood_at = intent::weight(plan, before);
    if plan.steps.next(stood_at) != Some(weight) || after.canary_weight != i64::from(weight) {
        return Err(Violation::new("I9", format!("the canary would jump from {stood_at} to {weight}")));
    }
    if stood_at > 0 && !has_passing_verdict(plan, before, seen) {
        return Err(Violation::new("I9", format!("the canary would rise to {weight} without a passing verdict")));
    }
    Ok(())
}

/// I11: a round does not write without end.
fn bounded(decision: &Decision) -> Checked {
    let writes = decision.effects.iter().filter(|effect| !matches!(effect, Effect::Ask(_))).count();
    if writes > MOST_EFFECTS {
        return Err(Violation::new("I11", format!("{writes} effects in one round")));
    }
    let questions = decision.effects.len() - writes;
    if questions > 1 {
        return Err(Violation::new("I11", format!("{questions} questions in one round")));
    }
    Ok(())
}

/// Whether some tick of this step has every rollout hook's consent and every metric within bounds, with data.
fn has_passing_verdict(plan: &Plan, before: &CanaryStatus, seen: &Observed) -> bool {
    let applied = revision::digest(&revision::applied(before));
    let step = step(before);
    let key = |tick, subject| QuestionKey { revision: applied.clone(), step: step.clone(), tick, subject };
    let passes = |tick: u64| {
        let consents = |index| matches!(seen.answers.get(&key(tick, Subject::Hook(index))), Some(Answer::Yes));
        let good = |(index, check)| {
            let answer = seen.answers.get(&key(tick, Subject::Metric(index)));
            answer.is_some_and(|answer| analysis::judge(plan, check, answer).outcome == Outcome::Pass)
        };
        plan.hooks_of(HookType::Rollout).all(|(index, _)| consents(index)) && plan.metrics.iter().enumerate().all(good)
    };
    let without_checks = plan.metrics.is_empty() && plan.hooks_of(HookType::Rollout).next().is_none();
    without_checks || seen.answers.keys().any(|key| key.tick > 0 && passes(key.tick))
}

fn answers(workload: Option<&Workload>) -> bool {
    workload.is_some_and(Workload::answers)
}
