//! Single decisions that no story leads to by itself.

use jiff::SignedDuration;
use seaway_api::Canary;
use seaway_api::canary::{CanaryStatus, Phase};
use seaway_core::effect::{Destination, Effect};
use seaway_core::invariants;
use seaway_core::observed::{Observed, Readiness, Route, Workload};
use seaway_core::rollout::decide;
use seaway_core::split::Split;
use seaway_core::status::ROLLING_BACK;

use super::takeover::{now, plan, settled, status, workload, writes};
use super::world::revision;

fn analysed(canary: &Canary) -> CanaryStatus {
    let mut status = status(canary, Phase::Progressing);
    status.canary_weight = 20;
    status.last_applied_spec = revision("v1").template;
    status.tracked_configs = Some(revision("v1").configs);
    status
}

/// A mandatory config of the target is gone.
fn unknown(weight: u8) -> Observed {
    let problems = vec!["configmap podinfo.test get query error".to_owned()];
    Observed { revision: None, target_equals_primary: false, problems, ..settled(weight, 2) }
}

#[test]
fn a_canary_whose_config_is_gone_is_still_watched() {
    let canary = Canary::test();
    let decision = decide(now(), &plan(&canary), &analysed(&canary), &unknown(20));
    assert!(matches!(writes(&decision)[..], [Effect::Ask(_)]), "{decision:#?}");
    let dead = Workload { ready: 0, readiness: Readiness::Failed { reason: "too late".into() }, ..workload(2, "") };
    let seen = Observed { target: Some(dead), ..unknown(20) };
    let decision = decide(now(), &plan(&canary), &analysed(&canary), &seen);
    assert!(decision.status.as_ref().unwrap().is_true(ROLLING_BACK), "{decision:#?}");
    assert_eq!(decision.effects.first(), Some(&Effect::SetSplit(Split::primary_only())));
}

#[test]
fn a_canary_whose_config_is_gone_does_not_advance() {
    let canary = Canary::test().metrics(Vec::new());
    let decision = decide(now(), &plan(&canary), &analysed(&canary), &unknown(20));
    assert!(decision.status.is_none() && writes(&decision).is_empty(), "{decision:#?}");
    assert!(decision.wake.is_some() && !decision.notices.is_empty(), "{decision:#?}");
}

/// The status was stored, then the server was away: the split is younger than the interval that the status asks for.
#[test]
fn a_split_that_came_late_is_measured_for_a_whole_interval() {
    let canary = Canary::test();
    let interval = plan(&canary).interval;
    let decision = |intervals: u32, ago: std::time::Duration| {
        let mut status = analysed(&canary);
        status.last_transition_time = Some(now() - interval * intervals);
        let mut seen = settled(20, 2);
        seen.route.as_mut().unwrap().settled_since = Some(now() - ago);
        decide(now(), &plan(&canary), &status, &seen)
    };
    let waits = decision(5, interval / 10);
    assert!(writes(&waits).is_empty() && waits.status.is_none(), "{waits:#?}");
    assert_eq!(waits.wake, Some(now() + interval - interval / 10));
    for asks in [decision(5, interval), decision(10, interval / 10)] {
        assert!(matches!(writes(&asks)[..], [Effect::Ask(_)]), "measured, or edited again and again: {asks:#?}");
    }
}

#[test]
fn the_apex_follows_the_spec_at_rest() {
    let canary = Canary::test();
    let decision = decide(now(), &plan(&canary), &status(&canary, Phase::Succeeded), &settled(0, 0));
    assert!(decision.effects.contains(&Effect::ApexToPrimary), "{decision:#?}");
}

#[test]
fn a_deletion_does_not_wait_for_a_size_that_an_autoscaler_forbids() {
    let canary = Canary::test().revert_on_deletion();
    let seen = Observed { deleting: true, finalizer: true, primary: Some(workload(5, "")), ..settled(0, 2) };
    let mut before = status(&canary, Phase::Terminating);
    before.last_transition_time = Some(now());
    let decision = decide(now(), &plan(&canary), &before, &seen);
    assert_eq!(writes(&decision), [&Effect::ScaleToPrimary]);
    let before = status(&canary, Phase::Terminating);
    let decision = decide(now(), &plan(&canary), &before, &seen);
    assert!(decision.effects.contains(&Effect::ApexToTarget), "{decision:#?}");
}

/// Envoy answers 503 for some ten milliseconds when it is sent to a Service that it has not heard of.
#[test]
fn a_route_in_use_names_where_it_leads_before_it_leads_there() {
    let canary = Canary::test().revert_on_deletion();
    let long_ago = now() - SignedDuration::from_secs(60);
    let settled_at = |route: &Route, settled_since| Some(Route { settled_since, ..route.clone() });
    let leaving = Observed { deleting: true, finalizer: true, apex_to_target: true, ..settled(10, 2) };
    let coming = settled(0, 2);
    let to_apex = Route { split: None, shape_ok: false, to_apex: true, ..coming.route.clone().unwrap() };
    let coming = Observed { route: Some(to_apex), ..coming };
    let leads_there = Effect::SetSplit(Split::primary_only());
    for (phase, seen, next, leads) in [
        (Phase::Terminating, leaving, Destination::Apex, Effect::RouteToApex),
        (Phase::Initializing, coming, Destination::Variants, leads_there),
    ] {
        let before = status(&canary, phase);
        let decision = |route: Option<Route>| {
            let seen = Observed { route, ..seen.clone() };
            let decision = decide(now(), &plan(&canary), &before, &seen);
            invariants::check(&plan(&canary), &before, &decision, &seen).unwrap();
            decision
        };
        let route = seen.route.clone().unwrap();
        let first = decision(seen.route.clone());
        assert!(first.effects.contains(&Effect::Announce(next)) && !first.effects.contains(&leads), "{first:#?}");
        let announced = Route { announced: true, ..route };
        for (settled_since, wake) in [(None, None), (Some(now()), Some(now() + plan(&canary).drain))] {
            let waits = decision(settled_at(&announced, settled_since));
            assert!(!waits.effects.contains(&leads), "{phase}: {waits:#?}");
            assert!(!waits.effects.contains(&Effect::Announce(next)), "{phase}: {waits:#?}");
            assert!(wake.is_none() || waits.wake == wake, "{phase}: {waits:#?}");
        }
        let last = decision(settled_at(&announced, Some(long_ago)));
        assert!(last.effects.contains(&leads), "{phase}: {last:#?}");
        // And without it no decision is carried out.
        let hasty =
            Observed { route: settled_at(&Route { announced: false, ..announced }, Some(long_ago)), ..seen.clone() };
        let violation = invariants::check(&plan(&canary), &before, &last, &hasty).unwrap_err();
        assert_eq!(violation.rule, "I1", "{violation}");
    }
}

/// A route that another Canary left leads users to a port of the apex that this one's spec may not have.
#[test]
fn an_apex_that_users_come_by_keeps_its_ports() {
    let canary = Canary::test();
    let before = status(&canary, Phase::Initializing);
    let seen = Observed { apex_to_primary: false, ..settled(0, 2) };
    let left = seen.route.clone().unwrap();
    let left = Route { split: None, shape_ok: false, to_apex: true, ..left };
    let announced = Route { announced: true, ..left.clone() };
    let gone = Route { settled_since: None, ..seen.route.clone().unwrap() };
    for route in [left, announced, gone] {
        let seen = Observed { route: Some(route), ..seen.clone() };
        let decision = decide(now(), &plan(&canary), &before, &seen);
        assert!(!decision.effects.contains(&Effect::ApexToPrimary), "{decision:#?}");
        assert!(
            decision.effects.contains(&Effect::ApexSelectsPrimary),
            "in the cluster they change over: {decision:#?}"
        );
        let mut hasty = decision;
        hasty.effects = vec![Effect::ApexToPrimary];
        let violation = invariants::check(&plan(&canary), &before, &hasty, &seen).unwrap_err();
        assert_eq!(violation.rule, "I1", "{violation}");
    }
    let first = decide(now(), &plan(&canary), &before, &Observed { route: None, ..seen });
    assert!(first.effects.contains(&Effect::ApexToPrimary), "nobody comes by it: {first:#?}");
}

/// A server that lags behind shows a canary as it was in its adoption, long after that.
#[test]
fn a_primary_that_serves_users_is_not_replaced_by_an_adoption() {
    let canary = Canary::test();
    let mut adopting = status(&canary, Phase::Initializing);
    (adopting.last_applied_spec, adopting.last_promoted_spec) = (String::new(), String::new());
    let pushed = Observed { revision: Some(revision("v2")), target_equals_primary: false, ..settled(0, 2) };
    let promotes = |seen: &Observed| {
        let decision = decide(now(), &plan(&canary), &adopting, seen);
        decision.effects.iter().any(|effect| matches!(effect, Effect::Promote { .. }))
    };
    assert!(!promotes(&pushed));
    assert!(promotes(&Observed { apex_to_primary: false, ..pushed.clone() }), "nobody is on it yet");
    let down = Observed { primary: Some(workload(0, "")), ..pushed };
    assert!(promotes(&down), "nobody is served by it");
}
