//! Statuses that somebody else wrote: Flagger's own, and those found when the operator starts.

use std::collections::BTreeMap;

use jiff::Timestamp;
use seaway_api::Canary;
use seaway_api::canary::{CanaryStatus, HookType, Phase};
use seaway_core::effect::{Decision, Effect};
use seaway_core::observed::{Observed, Readiness, Route, Workload};
use seaway_core::plan::{Plan, Settings};
use seaway_core::rollout::decide;
use seaway_core::split::Split;
use seaway_core::status::accepted;

use super::world::revision;

const FLAGGERS: &str = "76f6b8b6c7";

pub fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).unwrap()
}

pub fn workload(replicas: u32, id: &str) -> Workload {
    let readiness = match replicas {
        0 => Readiness::Waiting { reason: "no replicas".into(), until: None },
        _ => Readiness::Ready,
    };
    Workload { replicas, ready: replicas, readiness, id: Some(id.into()) }
}

/// A canary as Flagger leaves it: settled long ago, with a random id on its primary.
pub fn settled(weight: u8, target: u32) -> Observed {
    Observed {
        target: Some(workload(target, "")),
        primary: Some(workload(2, "0e6a9c5e-0000-4000-8000-000000000000")),
        revision: Some(revision("v1")),
        target_equals_primary: true,
        apex_to_primary: true,
        route: Some(Route {
            split: Some(Split::canary(weight)),
            shape_ok: true,
            settled_since: Some(now() - jiff::SignedDuration::from_secs(60)),
            unsettled: None,
            unsettled_since: None,
            to_apex: false,
            announced: false,
        }),
        ..Observed::default()
    }
}

pub fn status(canary: &Canary, phase: Phase) -> CanaryStatus {
    let long_ago = now() - jiff::SignedDuration::from_hours(5);
    let mut status = canary.clone().at(phase).revisions(FLAGGERS, FLAGGERS).since(long_ago).status_or_default();
    status.set_condition(accepted(now(), &plan(canary)));
    status
}

pub fn plan(canary: &Canary) -> Plan {
    Plan::new(canary, &Settings::default()).unwrap()
}

pub fn writes(decision: &Decision) -> Vec<&Effect> {
    let moving = |effect: &&Effect| {
        !matches!(effect, Effect::VariantServices | Effect::ApexToPrimary | Effect::PrimaryAutoscaler { .. })
    };
    decision.effects.iter().filter(moving).collect()
}

#[test]
fn a_settled_canary_of_flaggers_is_stamped_without_a_rollout() {
    let canary = Canary::test().webhook("after", HookType::PostRollout);
    for phase in [Phase::Initialized, Phase::Succeeded, Phase::Failed] {
        let mut before = status(&canary, phase);
        before.tracked_configs = Some(revision("v1").configs);
        let mut seen = settled(0, 0);
        // The target of a failed canary is expected to differ.
        seen.target_equals_primary = phase != Phase::Failed;
        let decision = decide(now(), &plan(&canary), &before, &seen);
        let after = decision.status.clone().unwrap();
        assert_eq!((after.phase, after.last_applied_spec.as_str()), (phase, "s1:v1"), "{phase}");
        assert_eq!(after.last_transition_time, before.last_transition_time);
        assert_eq!(after.last_promoted_spec, if phase == Phase::Failed { FLAGGERS } else { "s1:v1" });
        assert!(writes(&decision).is_empty() && decision.notices.is_empty(), "{decision:#?}");
        // And from then on nothing.
        let again = decide(now(), &plan(&canary), &after, &seen);
        assert_eq!((again.status.clone(), again.wake), (None, None));
        assert!(writes(&again).is_empty() && again.notices.is_empty(), "{again:#?}");
    }
}

#[test]
fn a_hash_that_changed_without_the_target_is_stamped_without_a_rollout() {
    let canary = Canary::test().threshold(3);
    for phase in [Phase::Initialized, Phase::Succeeded] {
        let mut before = status(&canary, phase);
        (before.last_applied_spec, before.last_promoted_spec) = ("s1:old".into(), "s1:old".into());
        before.tracked_configs = Some(revision("v1").configs);
        let decision = decide(now(), &plan(&canary), &before, &settled(0, 0));
        let after = decision.status.clone().unwrap();
        let stamped = (after.phase, after.last_applied_spec.as_str(), after.last_promoted_spec.as_str());
        assert_eq!(stamped, (phase, "s1:v1", "s1:v1"));
        assert_eq!(after.last_transition_time, before.last_transition_time);
        assert!(writes(&decision).is_empty(), "{decision:#?}");
        assert_eq!(decide(now(), &plan(&canary), &after, &settled(0, 0)).status, None);
    }
}

#[test]
fn going_back_after_a_failure_under_flagger_is_no_rollout() {
    let canary = Canary::test();
    let mut before = status(&canary, Phase::Failed);
    before.last_applied_spec = revision("v2").template;
    before.tracked_configs = Some(revision("v2").configs);
    let decision = decide(now(), &plan(&canary), &before, &settled(0, 0));
    let after = decision.status.clone().unwrap();
    assert_eq!((after.phase, after.last_promoted_spec.as_str()), (Phase::Failed, "s1:v1"));
    assert!(writes(&decision).is_empty(), "{decision:#?}");
    assert_eq!(decide(now(), &plan(&canary), &after, &settled(0, 0)).status, None);
}

#[test]
fn new_configs_after_a_failure_under_flagger_are_rolled_out() {
    let canary = Canary::test();
    let mut before = status(&canary, Phase::Failed);
    before.tracked_configs = Some(revision("v2").configs);
    let seen = Observed { target_equals_primary: false, ..settled(0, 0) };
    let decision = decide(now(), &plan(&canary), &before, &seen);
    assert_eq!(decision.status.unwrap().phase, Phase::Progressing);
}

#[test]
fn a_target_that_differs_from_flaggers_primary_is_rolled_out() {
    let canary = Canary::test();
    let seen = Observed { target_equals_primary: false, ..settled(0, 0) };
    let decision = decide(now(), &plan(&canary), &status(&canary, Phase::Succeeded), &seen);
    assert_eq!(decision.status.unwrap().phase, Phase::Progressing);
}

#[test]
fn a_promotion_that_failed_under_flagger_keeps_its_canary() {
    let canary = Canary::test().weight(100);
    let decision = decide(now(), &plan(&canary), &status(&canary, Phase::Failed), &settled(100, 2));
    assert!(writes(&decision).is_empty(), "{decision:#?}");
    assert_eq!(decision.status.unwrap().canary_weight, 100);
}

#[test]
fn waiting_for_promotion_with_weight_zero_means_the_maximum() {
    let canary = Canary::test().webhook("promote", HookType::ConfirmPromotion);
    let mut before = status(&canary, Phase::WaitingPromotion);
    before.last_applied_spec = revision("v1").template;
    before.tracked_configs = Some(revision("v1").configs);
    before.iterations = -1;
    let decision = decide(now(), &plan(&canary), &before, &settled(50, 2));
    assert!(decision.status.is_none(), "{decision:#?}");
    assert!(matches!(writes(&decision)[..], [Effect::Ask(_)]), "the checks go on: {decision:#?}");
}

#[test]
fn an_analysis_of_unknown_revision_starts_again() {
    let canary = Canary::test().weight(30);
    let decision = decide(now(), &plan(&canary), &status(&canary, Phase::Progressing), &settled(30, 2));
    let after = decision.status.clone().unwrap();
    assert_eq!((after.phase, after.canary_weight), (Phase::Progressing, 0));
    assert_eq!(writes(&decision), [&Effect::SetSplit(Split::primary_only())]);
}

#[test]
fn a_status_without_anything_is_a_beginning() {
    let decision = decide(now(), &plan(&Canary::test()), &CanaryStatus::default(), &Observed::default());
    let after = decision.status.unwrap();
    assert_eq!(after.phase, Phase::Initializing);
    assert_eq!(after.conditions.len(), 2);
    assert_eq!(after.tracked_configs, None::<BTreeMap<String, String>>);
}

#[test]
fn a_route_that_was_just_written_is_no_news() {
    let canary = Canary::test();
    let initializing = status(&canary, Phase::Initializing);
    let told = |seconds: i64| {
        let mut seen = settled(0, 2);
        seen.route.as_mut().unwrap().settled_since = None;
        seen.route.as_mut().unwrap().unsettled = Some("the gateway is not ready".into());
        seen.route.as_mut().unwrap().unsettled_since = Some(now() - jiff::SignedDuration::from_secs(seconds));
        let decision = decide(now(), &plan(&canary), &initializing, &seen);
        assert_eq!(decision.status, None, "initialisation waits for the gateway");
        decision.notices.iter().filter(|notice| notice.text.contains("gateway")).count()
    };
    let interval = i64::try_from(plan(&canary).interval.as_secs()).unwrap();
    assert_eq!((told(1), told(interval - 1), told(interval)), (0, 0, 1));
}
