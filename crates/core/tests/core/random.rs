//! Random specs, statuses and observations: no panic, no violation, no surprise.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use seaway_api::Canary;
use seaway_api::canary::{CanaryStatus, Condition, ConditionStatus, HookType, Phase};
use seaway_core::effect::{Decision, Effect};
use seaway_core::intent::intent;
use seaway_core::invariants;
use seaway_core::observed::{Observed, Previous, Readiness, Revision, Route, Workload};
use seaway_core::plan::{Plan, Settings};
use seaway_core::question::{Answer, QuestionKey, Subject};
use seaway_core::revision::{applied, digest, flagger_id};
use seaway_core::rollout::{decide, step};
use seaway_core::split::Split;
use seaway_core::template;

use super::world::revision;

const START: i64 = 1_700_000_000;

fn at(offset: i64) -> Timestamp {
    Timestamp::from_second(START + offset).unwrap()
}

prop_compose! {
    fn canaries()(
        step in prop_oneof![Just(None), (1_i64..=100).prop_map(Some)],
        list in proptest::collection::btree_set(1_i64..=100, 1..5),
        max in 0_i64..=100,
        threshold in -1_i64..4,
        back in prop_oneof![Just(0_i64), 1_i64..=100],
        flags in any::<[bool; 3]>(),
        hooks in proptest::collection::vec(0_usize..8, 0..4),
    ) -> Canary {
        let canary = match step {
            Some(step) => Canary::test().step_weight(step).max_weight(max),
            None => Canary::test().step_weights(&list.into_iter().collect::<Vec<_>>()),
        };
        let mut canary = canary.threshold(threshold).step_weight_promotion(back);
        [canary.spec.skip_analysis, canary.spec.suspend, canary.spec.revert_on_deletion] = flags;
        canary.spec.suspend &= back % 5 == 0;
        canary.spec.skip_analysis &= back % 2 == 0;
        let add = |canary: Canary, (index, kind): (usize, usize)| canary.webhook(&format!("hook-{index}"), HookType::ALL[kind]);
        hooks.into_iter().enumerate().fold(canary, add)
    }
}

fn hashes() -> impl Strategy<Value = String> {
    prop_oneof![Just("v1"), Just("v2"), Just("v3")].prop_map(|name| revision(name).template)
}

prop_compose! {
    fn statuses()(
        phase in proptest::sample::select(Phase::ALL.to_vec()),
        weight in prop_oneof![Just(0_i64), Just(100), -5_i64..=120],
        failed in -1_i64..6,
        spec in prop_oneof![9 => hashes(), 1 => Just("7b9c5d".to_owned()), 1 => Just(String::new())],
        promoted in hashes(),
        configs in prop_oneof![Just(None), Just(Some("v1")), Just(Some("v2"))],
        since in prop_oneof![Just(None), (-200_i64..10).prop_map(Some)],
        rolling in prop_oneof![
            4 => Just(None),
            1 => proptest::sample::select(vec!["FailedChecks", "PromotionFailed", "PrimaryNotReady", "Odd"]).prop_map(Some),
        ],
    ) -> CanaryStatus {
        let mut status = CanaryStatus {
            phase,
            canary_weight: weight,
            failed_checks: failed,
            last_applied_spec: spec,
            last_promoted_spec: promoted,
            tracked_configs: configs.map(|name| revision(name).configs),
            last_transition_time: since.map(at),
            ..CanaryStatus::default()
        };
        if let Some(reason) = rolling {
            status.set_condition(Condition::new("RollingBack", ConditionStatus::True, reason, "1", at(-50)));
        }
        status
    }
}

fn readiness() -> impl Strategy<Value = Readiness> {
    let waiting = |until: Option<i64>| Readiness::Waiting { reason: "waiting".into(), until: until.map(at) };
    prop_oneof![
        3 => Just(Readiness::Ready),
        1 => proptest::option::of(-10_i64..100).prop_map(waiting),
        1 => Just(Readiness::Failed { reason: "too late".into() }),
    ]
}

prop_compose! {
    fn workloads()(
        replicas in 0_u32..3,
        readiness in readiness(),
        partly in 0_u32..3,
        id in proptest::option::of(hashes()),
    ) -> Workload {
        // Zero replicas are never ready, and a ready workload has pods.
        match replicas {
            0 => {
                let readiness = Readiness::Waiting { reason: "none".into(), until: None };
                Workload { replicas, ready: 0, readiness, id }
            }
            _ if readiness == Readiness::Ready => Workload { replicas, ready: replicas, readiness, id },
            _ => Workload { replicas, ready: partly.min(replicas), readiness, id },
        }
    }
}

prop_compose! {
    fn routes()(
        weight in proptest::option::of(0_u8..=100),
        shape_ok in any::<bool>(),
        settled in proptest::option::of(-60_i64..=0),
        waited in proptest::option::of(-60_i64..=0),
        [to_apex, announced] in any::<[bool; 2]>(),
    ) -> Route {
        Route {
            split: weight.map(Split::canary),
            shape_ok,
            settled_since: settled.map(at),
            unsettled: settled.is_none().then(|| "not accepted".into()),
            unsettled_since: waited.filter(|_| settled.is_none()).map(at),
            to_apex,
            announced,
        }
    }
}

fn replies() -> impl Strategy<Value = Answer> {
    let value = prop_oneof![Just(99.9), Just(0.1), Just(f64::NAN), Just(f64::INFINITY), Just(1e9), any::<f64>()];
    prop_oneof![
        4 => Just(Answer::Yes),
        1 => Just(Answer::No("status 403 Forbidden".into())),
        4 => value.prop_map(|value| Answer::Value { value, query: "up".into() }),
        1 => Just(Answer::NoData { reason: "no values found".into(), query: "up".into() }),
        1 => Just(Answer::Broken("Prometheus query failed".into())),
    ]
}

prop_compose! {
    fn observations()(
        flags in any::<[bool; 5]>(),
        target in proptest::option::weighted(0.9, workloads()),
        primary in proptest::option::weighted(0.9, workloads()),
        spec in proptest::option::weighted(0.9, proptest::sample::select(vec!["v1", "v2", "v3"])),
        route in proptest::option::weighted(0.9, routes()),
        replies in proptest::collection::vec(proptest::option::of(replies()), 8),
        tick in 0_u64..4,
        previous in proptest::sample::select(vec![
            Previous::Unknown, Previous::Absent, Previous::Intact, Previous::Differs,
        ]),
        slept in proptest::option::weighted(0.2, -200_i64..=0),
        standing in proptest::option::weighted(0.3, -400_i64..=100),
    ) -> (Observed, Vec<Option<Answer>>, u64) {
        let [deleting, finalizer, equal, to_primary, to_target] = flags;
        let seen = Observed {
            deleting: deleting && finalizer,
            finalizer,
            target,
            primary,
            revision: spec.map(revision),
            target_equals_primary: equal,
            problems: if spec.is_none() { vec!["deployment podinfo.test get query error".into()] } else { Vec::new() },
            apex_to_primary: to_primary,
            apex_to_target: to_target && !to_primary,
            route,
            previous,
            standing_since: standing.map(at),
            slept: slept.map(at),
            answers: BTreeMap::new(),
            asked: BTreeSet::new(),
        };
        (seen, replies, tick)
    }
}

/// Ids that can mean something, and answers under the keys this status would ask.
fn meaningful(plan: &Plan, status: &CanaryStatus, seen: &mut Observed, replies: Vec<Option<Answer>>, tick: u64) {
    for workload in [&mut seen.primary, &mut seen.target].into_iter().flatten() {
        let named = |template: &String| Revision { template: template.clone(), ..applied(status) };
        workload.id = workload.id.as_ref().map(|template| flagger_id(&plan.uid, &named(template)));
    }
    let revisions = [Some(applied(status)), seen.revision.clone()];
    for (index, reply) in replies.into_iter().enumerate() {
        let Some(answer) = reply else { continue };
        let subject = if index < 4 { Subject::Hook(index) } else { Subject::Metric(index - 4) };
        for revision in revisions.iter().flatten() {
            let (revision, step, subject) = (digest(revision), step(status), subject.clone());
            seen.answers.insert(QuestionKey { revision, step, tick, subject }, answer.clone());
        }
    }
}

fn check_decision(plan: &Plan, status: &CanaryStatus, seen: &Observed, decision: &Decision) {
    if let Err(violation) = invariants::check(plan, status, decision, seen) {
        panic!("{violation}\n{status:#?}\n{seen:#?}\n{decision:#?}");
    }
    assert_eq!(*decision, decide(at(0), plan, status, seen), "the same inputs give the same decision");
    if let Some(new) = &decision.status {
        assert!(!new.means_the_same(status), "a status is written only when it says something new");
        assert!((0..=100).contains(&new.canary_weight) || new.canary_weight == status.canary_weight);
        assert!(new.decisions.len() <= 20);
        // It must survive being stored.
        let stored: CanaryStatus = serde_json::from_value(serde_json::to_value(new).unwrap()).unwrap();
        assert!(stored.means_the_same(new), "{stored:?}\n{new:?}");
    }
    if plan.suspend && !seen.deleting {
        let writes = |effect: &Effect| !matches!(effect, Effect::Finalizer(_));
        assert!(!decision.effects.iter().any(writes), "a suspended canary is left alone");
    }
    assert!(decision.wake.is_none_or(|wake| wake >= at(0)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decisions_never_panic_and_never_violate(
        canary in canaries(),
        status in statuses(),
        (mut seen, replies, tick) in observations(),
    ) {
        let plan = Plan::new(&canary, &Settings::default()).unwrap();
        meaningful(&plan, &status, &mut seen, replies, tick);
        let decision = decide(at(0), &plan, &status, &seen);
        check_decision(&plan, &status, &seen, &decision);
        let split = intent(&plan, &status).split;
        prop_assert!(split.is_none_or(|split| split.mirror().is_none()));
    }

    #[test]
    fn a_status_that_was_just_stored_is_not_stored_again_at_rest(
        canary in canaries(),
        status in statuses(),
        (mut seen, _, _) in observations(),
    ) {
        let plan = Plan::new(&canary, &Settings::default()).unwrap();
        meaningful(&plan, &status, &mut seen, Vec::new(), 0);
        let mut status = status;
        // In a world that stands still the status comes to rest.
        for _ in 0..6 {
            match decide(at(0), &plan, &status, &seen).status {
                Some(new) => status = new,
                None => return Ok(()),
            }
        }
        prop_assert!(false, "still changing: {status:?}");
    }

    #[test]
    fn templates_never_panic(text in "(\\{\\{|\\}\\}|[a-z$.| \"()=:,%0-9-]|if |end|else|range |name|printf |variables){0,40}") {
        if let Ok(template) = template::parse(&text) {
            let _ = template.render(&template::Vars::default());
        }
    }

    #[test]
    fn ticks_and_wakes_are_sane_for_any_time(since in any::<i32>(), interval in 1_u64..1_000_000) {
        let mut canary = Canary::test().at(Phase::Progressing).since(at(i64::from(since)));
        canary.spec.analysis.as_mut().unwrap().interval = format!("{interval}s");
        let plan = Plan::new(&canary, &Settings::default()).unwrap();
        let decision = decide(at(0), &plan, &canary.status_or_default(), &Observed::default());
        prop_assert!(decision.wake.is_none_or(|wake| wake >= at(0)));
        prop_assert!(plan.interval >= Duration::from_secs(10));
    }
}
