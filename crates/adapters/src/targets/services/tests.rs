//! YAML in, changes out.

use super::*;
use crate::change::Action;
use crate::testing::{canary_with, document, patched, world};
use crate::world::Objects;

const PODINFO: &str = include_str!("../podinfo.yaml");

/// An apex Service that its user made long before.
const MINE: &str = "
apiVersion: v1
kind: Service
metadata:
  name: podinfo
  namespace: test
  uid: mine
  resourceVersion: '5'
  labels: {team: a}
  annotations: {note: keep, kustomize.toolkit.fluxcd.io/reconcile: enabled}
spec:
  type: NodePort
  clusterIP: 10.96.0.9
  selector: {app: podinfo, tier: web}
  ports:
  - {name: http, protocol: TCP, port: 80, targetPort: http, nodePort: 30080}
  - {name: grpc, protocol: TCP, port: 9999, targetPort: 9999}
  sessionAffinity: ClientIP
";

fn apex(canary: &Canary, world: &Objects) -> Vec<Change> {
    apex_to_primary(canary, &document(PODINFO), world, &Conventions::default(), Ports::OfTheSpec).unwrap()
}

fn lead_back(canary: &Canary, world: &Objects) -> Vec<Change> {
    apex_to_target(canary, &document(PODINFO), world, &Conventions::default()).unwrap()
}

fn release(canary: &Canary, world: &Objects) -> Vec<Change> {
    release_apex(canary, &document(PODINFO), world, &Conventions::default()).unwrap()
}

fn leads_back(canary: &Canary, world: &Objects) -> bool {
    apex_leads_to_target(canary, &document(PODINFO), world, &Conventions::default())
}

/// The objects of creates, as a server would store them.
fn stored(changes: &[Change]) -> Objects {
    let objects = changes.iter().map(|change| {
        let Action::Create { body, .. } = &change.action else { panic!("{change:?}") };
        let mut body = body.clone();
        body["metadata"]["uid"] = format!("uid-of-{}", change.object.name).into();
        body["metadata"]["resourceVersion"] = "1".into();
        body
    });
    objects.collect()
}

#[test]
fn three_services() {
    let canary = Canary::test();
    let mut changes = variants(&canary, &document(PODINFO), &Objects::default(), &Conventions::default()).unwrap();
    changes.extend(apex(&canary, &Objects::default()));
    insta::assert_yaml_snapshot!(changes);
    let world = stored(&changes);
    assert_eq!(variants(&canary, &document(PODINFO), &world, &Conventions::default()).unwrap(), []);
    assert_eq!(apex(&canary, &world), []);
}

#[test]
fn metadata_ports_and_options() {
    let canary = canary_with(
        "
        service:
          port: 80
          portName: web
          targetPort: http
          appProtocol: http
          portDiscovery: true
          headless: true
          trafficDistribution: PreferClose
          canary: {labels: {a: b, skip: me}, annotations: {c: d}}
          unmanagedMetadata: {labels: [skip], annotations: [helm.toolkit.fluxcd.io/driftDetection]}
        ",
    );
    let changes = variants(&canary, &document(PODINFO), &Objects::default(), &Conventions::default()).unwrap();
    insta::assert_yaml_snapshot!(changes[0]);
}

#[test]
fn drift_of_our_own_services_is_repaired_and_foreign_metadata_stays() {
    let canary = Canary::test();
    let made = stored(&apex(&canary, &Objects::default()));
    let mut seen = (*crate::world::World::get(&made, SERVICE, "test", "podinfo").unwrap()).clone();
    seen["spec"]["selector"] = json!({ "app": "podinfo" });
    seen["spec"]["ports"][0]["targetPort"] = 1.into();
    seen["spec"]["ports"][0]["nodePort"] = 31000.into();
    seen["metadata"]["labels"] = json!({ "somebody": "else" });
    let world: Objects = [seen.clone()].into_iter().collect();
    let after = patched(&seen, &apex(&canary, &world));
    assert_eq!(after["spec"]["selector"], json!({ "app": "podinfo-primary" }));
    assert_eq!(after["spec"]["ports"][0]["targetPort"], 9898);
    assert_eq!(after["spec"]["ports"][0]["nodePort"], 31000);
    assert_eq!(after["metadata"]["labels"], json!({ "somebody": "else", "app": "podinfo" }));
}

#[test]
fn a_service_that_was_there_is_taken_over_and_given_back() {
    let canary = Canary::test();
    let before = document(MINE);
    let changes = apex(&canary, &world(MINE));
    insta::assert_yaml_snapshot!(changes);
    let taken = patched(&before, &changes);
    let objects: Objects = [taken.clone()].into_iter().collect();
    assert_eq!(apex(&canary, &objects), [], "taken over once");
    let selector = Selector { label: "app".into(), value: "podinfo".into() };
    assert!(apex_selects(&canary, &objects, &selector, "podinfo-primary"));
    let given_back = patched(&taken, &release(&canary, &objects));
    assert_eq!(given_back, before);
}

#[test]
fn an_apex_that_users_come_by_by_another_port_changes_hands_with_its_ports() {
    let (canary, before) = (Canary::test(), document(MINE));
    let select = |world: &Objects| {
        apex_to_primary(&canary, &document(PODINFO), world, &Conventions::default(), Ports::AsTheyAre).unwrap()
    };
    let taken = patched(&before, &select(&world(MINE)));
    assert_eq!(taken["spec"]["selector"], json!({ "app": "podinfo-primary" }));
    assert_eq!(taken["spec"]["ports"], before["spec"]["ports"]);
    let objects: Objects = [taken.clone()].into_iter().collect();
    assert_eq!(select(&objects), []);
    let whole = patched(&taken, &apex(&canary, &objects));
    assert_eq!(whole["spec"], patched(&before, &apex(&canary, &world(MINE)))["spec"], "they follow later");
    let given_back = patched(&whole, &release(&canary, &[whole.clone()].into_iter().collect()));
    assert_eq!(given_back, before);
    assert_eq!(select(&Objects::default()), apex(&canary, &Objects::default()), "a new one has those of the spec");
}

#[test]
fn a_service_that_flagger_took_over_is_given_back_by_what_kubectl_applied() {
    let mut seen = document(MINE);
    seen["spec"]["selector"] = json!({ "app": "podinfo-primary" });
    let applied = json!({ "spec": { "selector": { "app": "podinfo", "tier": "web" } } }).to_string();
    seen["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = applied.into();
    let objects: Objects = [seen.clone()].into_iter().collect();
    let after = patched(&seen, &release(&Canary::test(), &objects));
    assert_eq!(after["spec"]["selector"], json!({ "app": "podinfo", "tier": "web" }));
}

#[test]
fn our_own_apex_outlives_its_canary() {
    let canary = Canary::test();
    let made = stored(&apex(&canary, &Objects::default()));
    let changes = release(&canary, &made);
    insta::assert_yaml_snapshot!(changes);
    let seen = crate::world::World::get(&made, SERVICE, "test", "podinfo").unwrap();
    let after: Objects = [patched(&seen, &changes)].into_iter().collect();
    assert_eq!(release(&canary, &after), []);
    let anew = stored(&lead_back(&canary, &Objects::default()));
    assert_eq!(release(&canary, &anew), []);
    let anew = crate::world::World::get(&anew, SERVICE, "test", "podinfo").unwrap();
    assert_eq!(anew["spec"]["selector"], json!({ "app": "podinfo" }));
    assert!(anew["metadata"].get("ownerReferences").is_none());
}

#[test]
fn a_service_without_our_label_is_given_back_and_then_left_alone() {
    let mut mine = document(MINE);
    mine["spec"]["selector"] = json!({ "app.kubernetes.io/name": "podinfo" });
    let objects: Objects = [mine.clone()].into_iter().collect();
    let canary = Canary::test();
    let taken = patched(&mine, &apex(&canary, &objects));
    let objects: Objects = [taken.clone()].into_iter().collect();
    assert!(!leads_back(&canary, &objects));
    let given_back = patched(&taken, &release(&canary, &objects));
    assert_eq!(given_back, mine);
    let objects: Objects = [given_back].into_iter().collect();
    assert_eq!(release(&canary, &objects), [], "nothing is left to give back");
    assert!(leads_back(&canary, &objects));
}

#[test]
fn until_it_is_released_the_way_back_can_be_derived_again() {
    let canary = Canary::test();
    let made = stored(&apex(&canary, &Objects::default()));
    let own = (*crate::world::World::get(&made, SERVICE, "test", "podinfo").unwrap()).clone();
    let mine = document(MINE);
    let taken = patched(&mine, &apex(&canary, &world(MINE)));
    for (seen, selector) in [(own, json!({ "app": "podinfo" })), (taken, mine["spec"]["selector"].clone())] {
        let led = patched(&seen, &lead_back(&canary, &[seen.clone()].into_iter().collect()));
        assert_eq!(led["spec"]["selector"], selector);
        assert!(leads_back(&canary, &[led.clone()].into_iter().collect()));
        let mut edited = led.clone();
        edited["spec"]["selector"] = json!({ "app": "nobody" });
        let objects: Objects = [edited.clone()].into_iter().collect();
        assert!(!leads_back(&canary, &objects));
        assert_eq!(patched(&edited, &lead_back(&canary, &objects)), led);
    }
}

#[test]
fn a_service_without_a_selector_has_none_again() {
    let mut mine = document(MINE);
    mine["spec"].as_object_mut().unwrap().shift_remove("selector");
    let canary = Canary::test();
    let taken = patched(&mine, &apex(&canary, &[mine.clone()].into_iter().collect()));
    let led = patched(&taken, &lead_back(&canary, &[taken.clone()].into_iter().collect()));
    assert!(leads_back(&canary, &[led.clone()].into_iter().collect()), "{led:#}");
    assert_eq!(patched(&led, &release(&canary, &[led.clone()].into_iter().collect())), mine);
}

#[test]
fn a_manifest_that_names_the_primary_is_no_way_back() {
    let mut seen = document(MINE);
    seen["spec"]["selector"] = json!({ "app": "podinfo-primary" });
    let applied = json!({ "spec": { "selector": { "app": "podinfo-primary" } } }).to_string();
    seen["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"] = applied.into();
    let objects: Objects = [seen.clone()].into_iter().collect();
    assert!(!leads_back(&Canary::test(), &objects));
    let after = patched(&seen, &release(&Canary::test(), &objects));
    assert_eq!(after["spec"]["selector"], json!({ "app": "podinfo" }));
    let objects: Objects = [after].into_iter().collect();
    assert!(leads_back(&Canary::test(), &objects));
    assert!(!leads_back(&Canary::test(), &Objects::default()), "the route that stays behind leads to it");
}
