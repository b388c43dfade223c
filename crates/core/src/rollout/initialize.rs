//! Adoption: a primary is made from the target, traffic moves to it, and only then the target goes to sleep.
//!
//! There is no moment without ready pods behind the apex Service (I5): the primary is ready before anything points to it,
//! and the target is scaled down only after the route was seen to send everything elsewhere. Until then the apex Service
//! keeps its ports too, since a route that another Canary left leads users to one of them; they follow the spec in the phases
//! after this one.

use seaway_api::canary::Phase;

use super::draft::Draft;
use super::round::{Drained, Round};
use crate::effect::{Destination, Effect};
use crate::observed::{Readiness, Revision, Workload};
use crate::question::{Answer, Subject};
use crate::revision::flagger_id;
use crate::split::Split;
use crate::status;

pub(super) fn decide(round: &Round<'_>) -> Draft {
    let mut draft = Draft::new("initialize");
    if round.status.phase == Phase::Unset {
        draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
            status.phase = Phase::Initializing;
        }));
        return draft;
    }
    let (Some(revision), Some(_)) = (&round.seen.revision, &round.seen.target) else {
        round.problems(&mut draft);
        return draft;
    };
    draft.make(Effect::VariantServices);
    match &round.seen.primary {
        None => {
            draft.make(Effect::CreatePrimary(revision.clone()));
            draft.wake_at(round.next_tick());
        }
        // Adoption takes what the target runs now, also when it changed since the primary was made. But what was once
        // promoted, or serves users already, is not replaced without analysis: this phase may be a memory of a server that
        // lags behind, and no write of the status comes before this one to tell.
        Some(primary) if is_nobodys_yet(round, primary) && !has(round, revision) => {
            draft.make(Effect::Promote { revision: revision.clone(), id: id(round, revision) });
            draft.wake_at(round.next_tick());
        }
        Some(primary) => match &primary.readiness {
            Readiness::Ready => take_over(round, &mut draft, revision),
            Readiness::Waiting { reason, .. } | Readiness::Failed { reason } => {
                // The target still serves, so even a primary that will not come up is only waited for.
                let text = round.primary_not_ready(reason);
                round.wait_for(&mut draft, "primary", &primary.readiness, text);
            }
        },
    }
    ask_providers(round, &mut draft);
    draft
}

/// The primary was never promoted and serves nobody.
fn is_nobodys_yet(round: &Round<'_>, primary: &Workload) -> bool {
    let serves = round.seen.apex_to_primary && primary.readiness == Readiness::Ready;
    round.status.last_promoted_spec.is_empty() && !serves
}

fn id(round: &Round<'_>, revision: &Revision) -> String {
    flagger_id(&round.plan.uid, revision)
}

/// Whether the primary runs this revision.
fn has(round: &Round<'_>, revision: &Revision) -> bool {
    let marked = |primary: &Workload| primary.id.as_deref() == Some(&id(round, revision));
    round.seen.target_equals_primary || round.seen.primary.as_ref().is_some_and(marked)
}

/// The primary is ready: everything points to it, and after the drain the target may sleep.
fn take_over(round: &Round<'_>, draft: &mut Draft, revision: &Revision) {
    draft.make(Effect::PrimaryAutoscaler { refresh: false });
    if !round.seen.apex_to_primary {
        let nobody_comes_by_it = round.seen.route.is_none();
        draft.make(if nobody_comes_by_it { Effect::ApexToPrimary } else { Effect::ApexSelectsPrimary });
    }
    if let Some(route) = round.seen.route.as_ref().filter(|route| route.to_apex)
        && !round.announced(draft, route, Destination::Variants)
    {
        return;
    }
    draft.make(round.set_split(Split::primary_only()));
    if !round.seen.apex_to_primary || !matches!(round.drained(), Drained::Yes) {
        round.wait_for_drain(draft);
        return;
    }
    draft.status = Some(status::changed(round.now, round.plan, round.status, |status| {
        status.phase = Phase::Initialized;
        status.canary_weight = 0;
        status.failed_checks = 0;
        status.iterations = 0;
        if has(round, revision) {
            status::stamp(status, revision);
            status.last_promoted_spec.clone_from(&revision.template);
        }
    }));
    draft.make(Effect::ScaleToZero);
    draft.make(Effect::KeepCurrent(revision.clone()));
    draft.notices.push(round.normal("done", format!("Initialization done! {}", round.plan.key())));
}

/// Asks once whether the metric providers can be reached. The answer is told and blocks nothing.
fn ask_providers(round: &Round<'_>, draft: &mut Draft) {
    if round.plan.skip_analysis {
        return;
    }
    let answer =
        if round.plan.metrics.is_empty() { Some(&Answer::Yes) } else { round.answer("", 0, Subject::Providers) };
    let told = match answer {
        None => return draft.make(round.ask("", 0, Subject::Providers)),
        Some(Answer::Yes) => round.normal("providers", "all the metrics providers are available!".into()),
        Some(Answer::No(reason) | Answer::Broken(reason)) => {
            round.warning("providers", format!("Error checking metric providers: {reason}"))
        }
        Some(Answer::Value { .. } | Answer::NoData { .. }) => return,
    };
    // Told before anything this round reports, as Flagger does.
    draft.notices.insert(0, told);
}
