//! YAML in, changes out.

use super::*;
use crate::testing::{document, patched, world};
use crate::world::Objects;

const TARGET: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: podinfo, namespace: test, uid: t, resourceVersion: '1', labels: {app: podinfo, kustomize.toolkit.fluxcd.io/name: x}}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}
  minReplicas: 2
  maxReplicas: 4
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 99}}}]
  behavior: {scaleDown: {stabilizationWindowSeconds: 300}}
";

const PRIMARY: &str = "
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: podinfo-primary, namespace: test, uid: p, resourceVersion: '7', labels: {app: podinfo}, annotations: {note: keep}, ownerReferences: [{apiVersion: flagger.app/v1beta1, kind: Canary, name: podinfo, uid: 9b6c1e52-3c0e-4a41-8a0e-2b6f1d6f0001, controller: true}]}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo-primary}
  minReplicas: 2
  maxReplicas: 10
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 99}}}]
  behavior: {scaleUp: {stabilizationWindowSeconds: 1}}
";

#[test]
fn the_primary_gets_a_copy_of_its_own() {
    insta::assert_yaml_snapshot!(primary(&Canary::test().autoscaled(), &world(TARGET), false).unwrap());
}

#[test]
fn it_follows_only_when_asked_to() {
    let objects = world(&format!("{TARGET}\n---\n{PRIMARY}"));
    let canary = Canary::test().autoscaled();
    assert_eq!(primary(&canary, &objects, false).unwrap(), []);
    let changes = primary(&canary, &objects, true).unwrap();
    insta::assert_yaml_snapshot!(changes);
    let objects: Objects = [document(TARGET), patched(&document(PRIMARY), &changes)].into_iter().collect();
    assert_eq!(primary(&canary, &objects, true).unwrap(), []);
}

#[test]
fn bounds_of_the_primary_may_differ() {
    let mut canary = Canary::test().autoscaled();
    let bounds = seaway_api::canary::ScalerReplicas { min_replicas: Some(5), max_replicas: None };
    canary.spec.autoscaler_ref.as_mut().unwrap().primary_scaler_replicas = Some(bounds);
    let changes = primary(&canary, &world(TARGET), false).unwrap();
    let crate::change::Action::Create { body, .. } = &changes[0].action else { panic!() };
    assert_eq!((body["spec"]["minReplicas"].as_i64(), body["spec"]["maxReplicas"].as_i64()), (Some(5), Some(4)));
}

#[test]
fn what_cannot_be() {
    assert_eq!(primary(&Canary::test(), &Objects::default(), true).unwrap(), []);
    let refused = primary(&Canary::test().autoscaled(), &Objects::default(), true).unwrap_err();
    assert_eq!(missing(&Canary::test().autoscaled(), &Objects::default()), Some(refused.clone()));
    assert_eq!(missing(&Canary::test().autoscaled(), &world(TARGET)), None);
    assert!(refused.text.starts_with("HorizontalPodAutoscaler podinfo.test get query error: "), "{refused}");
    let mut keda = Canary::test().autoscaled();
    keda.spec.autoscaler_ref.as_mut().unwrap().kind = "ScaledObject".into();
    assert_eq!(primary(&keda, &Objects::default(), true).unwrap_err().blame, crate::refusal::Blame::User);
}
