//! YAML in, changes out.

use super::*;
use crate::change::Action;
use crate::testing::{document, patched};

const PODINFO: &str = include_str!("../podinfo.yaml");
fn now() -> Timestamp {
    "2024-07-11T01:14:00Z".parse().unwrap()
}

fn tracked() -> BTreeSet<String> {
    ["configmap/settings", "configmap/projected", "secret/token"].map(str::to_owned).into()
}

fn prefixed() -> Conventions {
    Conventions { include_label_prefixes: vec!["app.kubernetes.io".into()], ..Conventions::default() }
}

/// A primary as the server stores it after its creation.
fn primary() -> Value {
    let change = create_primary(&Canary::test(), &document(PODINFO), &tracked(), &prefixed(), "id-1").unwrap();
    let Action::Create { mut body, .. } = change.action else { panic!() };
    body["metadata"]["uid"] = "primary-uid".into();
    body["metadata"]["resourceVersion"] = "200".into();
    body["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "1".into();
    body
}

fn promoted(target: &Value, primary: &Value, canary: &Canary) -> (Vec<Change>, Value) {
    let change = promote(canary, target, primary, &tracked(), &prefixed(), "id-2").unwrap();
    let changes: Vec<Change> = change.into_iter().collect();
    let after = patched(primary, &changes);
    (changes, after)
}

#[test]
fn a_primary_is_created_from_its_target() {
    let change = create_primary(&Canary::test(), &document(PODINFO), &tracked(), &prefixed(), "id-1").unwrap();
    insta::assert_yaml_snapshot!(change);
}

#[test]
fn a_primary_of_a_target_at_zero_gets_one_replica() {
    let mut target = document(PODINFO);
    target["spec"]["replicas"] = 0.into();
    let change = create_primary(&Canary::test(), &target, &tracked(), &prefixed(), "id-1").unwrap();
    let Action::Create { body, manager } = change.action else { panic!() };
    assert_eq!((body["spec"]["replicas"].as_i64(), manager), (Some(1), "seaway-create"));
}

#[test]
fn a_promotion_also_takes_away_what_the_target_dropped() {
    let mut target = document(PODINFO);
    let container = &mut target["spec"]["template"]["spec"]["containers"][0];
    container["image"] = "ghcr.io/stefanprodan/podinfo:6.0.1".into();
    container.as_object_mut().unwrap().shift_remove("fieldOfTomorrow");
    target["spec"]["template"]["spec"].as_object_mut().unwrap().shift_remove("affinity");
    target["spec"].as_object_mut().unwrap().shift_remove("minReadySeconds");
    target["spec"]["replicas"] = 5.into();
    target["metadata"]["labels"].as_object_mut().unwrap().shift_remove("app.kubernetes.io/part-of");
    let mut primary = primary();
    primary["metadata"]["annotations"]["somebody.else/note"] = "stays".into();
    let (changes, after) = promoted(&target, &primary, &Canary::test());
    insta::assert_yaml_snapshot!(changes);
    assert!(equals_primary(&target, &after, &tracked(), &prefixed()));
    assert_eq!(after["metadata"]["annotations"]["somebody.else/note"], "stays");
    assert_eq!(after["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(after["metadata"]["labels"], serde_json::json!({ "app": "podinfo-primary" }));
    assert_eq!(after["spec"]["replicas"], 5);
    assert_eq!(promoted(&target, &after, &Canary::test()).0, [], "a repeated promotion writes nothing");
}

#[test]
fn replicas_belong_to_the_autoscaler_where_there_is_one_and_are_never_zero() {
    let mut target = document(PODINFO);
    target["spec"]["replicas"] = 5.into();
    let (_, after) = promoted(&target, &primary(), &Canary::test().autoscaled());
    assert_eq!(after["spec"]["replicas"], 2);
    target["spec"]["replicas"] = 0.into();
    let (_, after) = promoted(&target, &primary(), &Canary::test());
    assert_eq!(after["spec"]["replicas"], 2);
}

#[test]
fn a_primary_made_by_flagger_is_recognised() {
    let target = document(PODINFO);
    let mut theirs = primary();
    theirs["spec"]["template"]["metadata"]["annotations"]["flagger-id"] = "f2b1a9d0-0000-4000-8000-000000000000".into();
    assert!(equals_primary(&target, &theirs, &tracked(), &prefixed()));
    let mut changed = target.clone();
    changed["spec"]["template"]["spec"]["containers"][0]["image"] = "other".into();
    assert!(!equals_primary(&changed, &theirs, &tracked(), &prefixed()));
    assert!(!equals_primary(&target, &theirs, &BTreeSet::new(), &prefixed()), "its references point to copies");
}

#[test]
fn a_target_without_a_selector_label_is_refused() {
    let mut target = document(PODINFO);
    target["spec"]["selector"] = serde_json::json!({ "matchLabels": { "tier": "web" } });
    let refusal = create_primary(&Canary::test(), &target, &tracked(), &prefixed(), "id").unwrap_err();
    assert_eq!(
        refusal.text,
        "getSelectorLabel failed: deployment podinfo.test spec.selector.matchLabels must contain one of [app name app.kubernetes.io/name]"
    );
}

#[test]
fn sizes() {
    let (mut target, mut primary) = (document(PODINFO), primary());
    let hpa = |min: i64| serde_json::json!({ "spec": { "minReplicas": min } });
    let canary = Canary::test();
    assert_eq!(size_for_analysis(&canary, &target, Some(&primary), None), 2);
    target["spec"]["replicas"] = 0.into();
    primary["spec"]["replicas"] = 7.into();
    assert_eq!(size_for_analysis(&canary, &target, Some(&primary), None), 7);
    assert_eq!(size_for_analysis(&canary, &target, None, None), 1);
    assert_eq!(size_for_analysis(&canary.clone().autoscaled(), &target, Some(&primary), Some(&hpa(3))), 3);
    assert_eq!(size_for_analysis(&canary.clone().autoscaled(), &target, Some(&primary), None), 1);
    assert_eq!(size_of_primary(&canary, &target, Some(&primary), None), 7);
    assert_eq!(size_of_primary(&canary, &target, None, None), 1);
    assert_eq!(scale(&target, 0), None);
    insta::assert_yaml_snapshot!(scale(&target, 3));
}

fn seen(changes: &[(&str, Value)]) -> Workload {
    seen_until(changes, Some(now()))
}

fn seen_until(changes: &[(&str, Value)], until: Option<Timestamp>) -> Workload {
    let mut deployment = document(PODINFO);
    for (pointer, value) in changes {
        match pointer.rsplit_once('/') {
            Some((parent, field)) => deployment.pointer_mut(parent).unwrap()[field] = value.clone(),
            None => panic!("{pointer}"),
        }
    }
    observe(&deployment, 100, until, now())
}

fn waiting(changes: &[(&str, Value)]) -> String {
    match seen(changes).readiness {
        Readiness::Waiting { reason, until: None } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn readiness_in_flaggers_words() {
    let workload = seen(&[]);
    assert_eq!((workload.replicas, workload.ready, workload.readiness), (2, 2, Readiness::Ready));
    assert_eq!(workload.id.as_deref(), Some("old"));
    assert_eq!(
        waiting(&[("/metadata/generation", 4.into())]),
        "waiting for rollout to finish: observed deployment generation less than desired generation"
    );
    assert_eq!(
        waiting(&[("/status/updatedReplicas", 1.into())]),
        "waiting for rollout to finish: 1 out of 2 new replicas have been updated"
    );
    assert_eq!(
        waiting(&[("/status/replicas", 3.into())]),
        "waiting for rollout to finish: 1 old replicas are pending termination"
    );
    assert_eq!(
        waiting(&[("/status/availableReplicas", 1.into())]),
        "waiting for rollout to finish: 1 of 2 (readyThreshold 100%) updated replicas are available"
    );
    assert_eq!(waiting(&[("/spec/replicas", 0.into())]), "waiting for rollout to finish: scaled to zero");
}

#[test]
fn half_of_the_pods_may_do_but_none_never_does() {
    let mut deployment = document(PODINFO);
    deployment["status"]["availableReplicas"] = 1.into();
    assert_eq!(observe(&deployment, 50, None, now()).readiness, Readiness::Ready);
    deployment["status"]["availableReplicas"] = 0.into();
    for threshold in [50, 0, -5] {
        assert_ne!(observe(&deployment, threshold, None, now()).readiness, Readiness::Ready);
    }
}

#[test]
fn deadlines() {
    let exceeded =
        serde_json::json!([{ "type": "Progressing", "reason": "ProgressDeadlineExceeded", "status": "False" }]);
    assert_eq!(
        seen(&[("/status/conditions", exceeded)]).readiness,
        Readiness::Failed { reason: "deployment \"podinfo\" exceeded its progress deadline".into() }
    );
    let unavailable = serde_json::json!([
        { "type": "Progressing", "status": "True" },
        {
            "type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable",
            "lastUpdateTime": "2024-07-11T01:00:00Z",
        },
    ]);
    let changes = [("/status/availableReplicas", 0.into()), ("/status/conditions", unavailable)];
    let reason = "waiting for rollout to finish: 0 of 2 (readyThreshold 100%) updated replicas are available";
    let at = |until: Timestamp| seen_until(&changes, Some(until)).readiness;
    let later = now() + jiff::SignedDuration::from_secs(1);
    assert_eq!(at(later), Readiness::Waiting { reason: reason.into(), until: Some(later) });
    assert_eq!(at(now()), Readiness::Failed { reason: reason.into() });
    assert_eq!(
        seen_until(&changes, None).readiness,
        Readiness::Waiting { reason: reason.into(), until: None },
        "however old the cluster's date is"
    );
}

#[test]
fn one_outage_is_told_from_the_next() {
    let mut deployment = document(PODINFO);
    assert_eq!(unavailable(&deployment), None);
    let progressing = serde_json::json!({ "type": "Progressing", "status": "True" });
    let available = |status: &str, reason: &str| serde_json::json!({ "type": "Available", "status": status, "reason": reason, "lastUpdateTime": "then" });
    deployment["status"]["conditions"] =
        serde_json::json!([progressing, available("False", "MinimumReplicasUnavailable")]);
    assert_eq!(unavailable(&deployment), Some("then"));
    deployment["status"]["conditions"] =
        serde_json::json!([progressing, available("True", "MinimumReplicasAvailable")]);
    assert_eq!(unavailable(&deployment), None);
}

#[test]
fn odd_deployments_do_not_panic() {
    for odd in [
        "{}",
        "spec: null",
        "spec: { replicas: null, template: 3 }",
        "spec: { replicas: -1 }\nstatus: [1]",
        "status: { conditions: {} }",
    ] {
        let odd = document(odd);
        let _ = observe(&odd, 100, None, now());
        let _ = equals_primary(&odd, &odd, &tracked(), &prefixed());
        assert!(promote(&Canary::test(), &odd, &odd, &tracked(), &prefixed(), "id").is_err());
    }
}
