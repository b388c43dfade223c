//! YAML in, patches out.

mod ports;

use seaway_api::Canary;
use seaway_api::canary::{CanaryStatus, Phase};
use serde_json::Value;

use super::*;
use crate::change::Action;
use crate::refusal::Blame;
use crate::testing::{canary_with, document, patched, world};
use crate::world::Objects;

/// A route of ours that others have worked on too: a rule of their own before ours, a filter and fields nobody here knows.
const SHARED: &str = include_str!("httproute-with-what-we-do-not-know.yaml");

fn write(canary: &Canary, world: &Objects, split: Split) -> Vec<Change> {
    GatewayApi.write(&Subject::of(canary), world, &split).unwrap()
}

fn read(canary: &Canary, world: &Objects) -> RouteReading {
    GatewayApi.read(&Subject::of(canary), world)
}

fn route(reading: &RouteReading) -> &Route {
    reading.route.as_ref().expect("a route")
}

/// What a server makes of the first create among the changes.
fn created(changes: &[Change]) -> Value {
    let Some(Change { action: Action::Create { body, .. }, .. }) = changes.first() else { panic!("{changes:?}") };
    let mut object = body.clone();
    object["metadata"]["uid"] = "route-uid".into();
    object["metadata"]["resourceVersion"] = "1".into();
    object["metadata"]["generation"] = 1.into();
    object
}

#[test]
fn a_new_route_has_flaggers_shape() {
    let changes = write(&Canary::test(), &Objects::default(), Split::primary_only());
    insta::assert_yaml_snapshot!(changes);
}

#[test]
fn every_field_of_the_service_finds_its_place() {
    let canary = canary_with(include_str!("service-with-everything.yaml"));
    assert_eq!(GatewayApi.check(&canary), []);
    let changes = write(&canary, &Objects::default(), Split::canary(10));
    insta::assert_yaml_snapshot!(created(&changes)["spec"]);
    // What was written is what is read: no drift, nothing to repair.
    let world: Objects = [created(&changes)].into_iter().collect();
    assert!(route(&read(&canary, &world)).shape_ok);
    assert_eq!(write(&canary, &world, Split::canary(10)), []);
}

#[test]
fn moves_twenty_percent_to_the_canary() {
    let world = world(SHARED);
    let changes = write(&Canary::test(), &world, Split::canary(20));
    insta::assert_yaml_snapshot!(changes);
    let before = document(SHARED);
    let mut after = patched(&before, &changes);
    assert_eq!(after["spec"]["rules"][1]["backendRefs"][0]["weight"], 80);
    after["spec"]["rules"][1]["backendRefs"][0]["weight"] = 90.into();
    after["spec"]["rules"][1]["backendRefs"][1]["weight"] = 10.into();
    assert_eq!(after.to_string(), before.to_string(), "bytes outside the two weights are equal");
}

#[test]
fn a_route_that_is_as_it_should_be_is_not_written() {
    assert_eq!(write(&Canary::test(), &world(SHARED), Split::canary(10)), []);
    let reading = read(&Canary::test(), &world(SHARED));
    assert_eq!(route(&reading).split, Some(Split::canary(10)));
    assert!(route(&reading).shape_ok && reading.settled && reading.problem.is_none());
    assert_eq!(reading.generation, 7);
}

#[test]
fn drift_is_repaired_with_the_current_weights() {
    let mut broken = document(SHARED);
    broken["spec"]["hostnames"] = serde_json::json!(["elsewhere.example.com"]);
    broken["spec"]["parentRefs"][0]["namespace"] = "other".into();
    broken["spec"]["rules"][1]["matches"][0]["path"]["value"] = "/old".into();
    broken["spec"]["rules"][1]["backendRefs"][1]["port"] = 8080.into();
    broken["spec"]["rules"][1]["timeouts"] = serde_json::json!({ "request": "1s" });
    broken["metadata"]["annotations"].as_object_mut().unwrap().shift_remove("helm.toolkit.fluxcd.io/driftDetection");
    let world: Objects = [broken.clone()].into_iter().collect();
    assert!(!route(&read(&Canary::test(), &world)).shape_ok);
    let changes = write(&Canary::test(), &world, Split::canary(30));
    insta::assert_yaml_snapshot!(changes);

    let mut expected = document(SHARED);
    expected["spec"]["rules"][1]["backendRefs"][0]["weight"] = 70.into();
    expected["spec"]["rules"][1]["backendRefs"][1]["weight"] = 30.into();
    expected["spec"]["parentRefs"][0].as_object_mut().unwrap().remove("zone");
    assert_eq!(patched(&broken, &changes), expected);
}

#[test]
fn a_rule_without_our_canary_is_mended_and_a_missing_one_is_added() {
    let mut halved = document(SHARED);
    halved["spec"]["rules"][1]["backendRefs"].as_array_mut().unwrap().pop();
    let objects: Objects = [halved.clone()].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, None);
    let after = patched(&halved, &write(&Canary::test(), &objects, Split::canary(10)));
    assert_eq!(after["spec"]["rules"][1]["backendRefs"][1]["name"], "podinfo-canary");
    assert_eq!(after["spec"]["rules"][1]["backendRefs"][0]["zone"], "a", "what others put on a backend stays");

    let mut without = document(SHARED);
    without["spec"]["rules"].as_array_mut().unwrap().pop();
    let objects: Objects = [without.clone()].into_iter().collect();
    let after = patched(&without, &write(&Canary::test(), &objects, Split::canary(40)));
    assert_eq!(after["spec"]["rules"][0], without["spec"]["rules"][0]);
    assert_eq!(after["spec"]["rules"][1]["backendRefs"][1]["weight"], 40);

    let mut empty = document(SHARED);
    empty["spec"].as_object_mut().unwrap().shift_remove("rules");
    let objects: Objects = [empty.clone()].into_iter().collect();
    let after = patched(&empty, &write(&Canary::test(), &objects, Split::primary_only()));
    assert_eq!(after["spec"]["rules"].as_array().unwrap().len(), 1);
}

#[test]
fn a_backend_that_was_moved_to_another_namespace_comes_back() {
    for moved in [&[0][..], &[1], &[0, 1]] {
        let mut edited = document(SHARED);
        for index in moved {
            edited["spec"]["rules"][1]["backendRefs"][*index]["namespace"] = "elsewhere".into();
        }
        let objects: Objects = [edited.clone()].into_iter().collect();
        let reading = read(&Canary::test(), &objects);
        assert!(!route(&reading).shape_ok && route(&reading).split.is_none(), "{moved:?}");
        let after = patched(&edited, &write(&Canary::test(), &objects, Split::canary(10)));
        assert_eq!(after, document(SHARED), "{moved:?}");
        let text = lead_to_apex(&edited)["spec"].to_string();
        assert!(text.contains("\"podinfo\"") && !text.contains("elsewhere"), "{moved:?}: {text}");
    }
}

#[test]
fn services_of_another_namespace_are_not_ours() {
    let mut shared = document(SHARED);
    let theirs = json!({
        "matches": [{ "path": { "type": "PathPrefix", "value": "/other" } }],
        "backendRefs": [
            { "name": "podinfo-primary", "namespace": "other", "port": 80, "weight": 50 },
            { "name": "podinfo-canary", "namespace": "other", "port": 80, "weight": 50 },
        ],
    });
    shared["spec"]["rules"].as_array_mut().unwrap().push(theirs.clone());
    let objects: Objects = [shared.clone()].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, Some(Split::canary(10)));
    let after = patched(&shared, &write(&Canary::test(), &objects, Split::canary(20)));
    assert_eq!(after["spec"]["rules"][2], theirs);
    assert_eq!(lead_to_apex(&shared)["spec"]["rules"][2], theirs);
}

#[test]
fn a_copy_of_our_rule_follows_the_split() {
    let mut doubled = document(SHARED);
    let copy = doubled["spec"]["rules"][1].clone();
    doubled["spec"]["rules"].as_array_mut().unwrap().push(copy);
    doubled["spec"]["rules"][2]["backendRefs"][0]["weight"] = 50.into();
    doubled["spec"]["rules"][2]["backendRefs"][1]["weight"] = 50.into();
    let objects: Objects = [doubled.clone()].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, None, "the two rules disagree");
    let after = patched(&doubled, &write(&Canary::test(), &objects, Split::primary_only()));
    for rule in [1, 2] {
        assert_eq!(after["spec"]["rules"][rule]["backendRefs"][1]["weight"], 0);
    }
}

#[test]
fn a_rule_of_others_with_our_backends_and_more_does_not_hide_the_split() {
    let beta = |weights: [i64; 2]| {
        let mut route = document(SHARED);
        let theirs = json!({
            "matches": [{ "path": { "type": "PathPrefix", "value": "/beta" } }],
            "backendRefs": [
                { "name": "podinfo-primary", "port": 80, "weight": weights[0] },
                { "name": "podinfo-canary", "port": 80, "weight": weights[1] },
                { "name": "podinfo-canary", "port": 80, "weight": weights[1] },
                { "name": "other", "port": 80, "weight": 5 },
            ],
        });
        route["spec"]["rules"].as_array_mut().unwrap().push(theirs);
        route
    };
    let objects: Objects = [beta([100, 0])].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, None, "the two rules disagree");
    let after = patched(&beta([100, 0]), &write(&Canary::test(), &objects, Split::canary(10)));
    assert_eq!(after, beta([90, 10]));
    let objects: Objects = [after].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, Some(Split::canary(10)));
    assert_eq!(write(&Canary::test(), &objects, Split::canary(10)), []);
}

#[test]
fn a_foreign_rule_before_ours_keeps_its_shape() {
    let mut shared = document(SHARED);
    let mut theirs = shared["spec"]["rules"][1].clone();
    theirs["name"] = "beta-users".into();
    theirs["matches"] = serde_json::json!([{ "path": { "type": "PathPrefix", "value": "/" }, "headers": [{ "name": "x-beta", "value": "1" }] }]);
    theirs["timeouts"] = serde_json::json!({ "request": "1s" });
    shared["spec"]["rules"].as_array_mut().unwrap().insert(1, theirs.clone());
    let objects: Objects = [shared.clone()].into_iter().collect();
    assert!(route(&read(&Canary::test(), &objects)).shape_ok);
    assert_eq!(write(&Canary::test(), &objects, Split::canary(10)), []);
    // Not even while ours is half a rule.
    shared["spec"]["rules"][2]["backendRefs"].as_array_mut().unwrap().pop();
    let objects: Objects = [shared.clone()].into_iter().collect();
    let after = patched(&shared, &write(&Canary::test(), &objects, Split::canary(10)));
    assert_eq!(after["spec"]["rules"][1], theirs);
    assert_eq!(after["spec"]["rules"][2]["backendRefs"][1]["name"], "podinfo-canary");
    assert_eq!(after["spec"]["rules"].as_array().unwrap().len(), 3);
}

#[test]
fn weights_that_do_not_add_up_are_no_split() {
    let mut odd = document(SHARED);
    odd["spec"]["rules"][1]["backendRefs"][0].as_object_mut().unwrap().shift_remove("weight");
    let objects: Objects = [odd.clone()].into_iter().collect();
    assert_eq!(route(&read(&Canary::test(), &objects)).split, None);
    let after = patched(&odd, &write(&Canary::test(), &objects, Split::canary(10)));
    assert_eq!(after["spec"]["rules"][1]["backendRefs"][0]["weight"], 90);
}

#[test]
fn a_route_of_somebody_else_is_left_alone() {
    let mut theirs = document(SHARED);
    theirs["metadata"]["ownerReferences"][0]["uid"] = "another-canary".into();
    let objects: Objects = [theirs].into_iter().collect();
    let reading = read(&Canary::test(), &objects);
    assert!(reading.problem.is_some() && reading.route.is_none());
    let refusal = GatewayApi.write(&Subject::of(&Canary::test()), &objects, &Split::canary(10)).unwrap_err();
    assert_eq!(refusal.blame, crate::refusal::Blame::User);
    assert_eq!(
        refusal.text,
        "HTTPRoute podinfo.test exists and is not owned by Canary podinfo.test; delete it, or give spec.service.name another name"
    );
    assert_eq!(GatewayApi.release(&Subject::of(&Canary::test()), &objects).unwrap(), []);
}

/// What somebody does to a route.
type Edit = fn(&mut Value);

/// The Canary while it is being deleted.
fn leaving() -> Canary {
    let mut canary = serde_json::to_value(Canary::test()).unwrap();
    canary["metadata"]["deletionTimestamp"] = "2025-01-01T00:00:00Z".into();
    serde_json::from_value(canary).unwrap()
}

fn lead_to_apex(seen: &Value) -> Value {
    let objects: Objects = [seen.clone()].into_iter().collect();
    patched(seen, &GatewayApi.lead_to_apex(&Subject::of(&leaving()), &objects).unwrap())
}

fn released() -> Value {
    patched(&document(SHARED), &GatewayApi.release(&Subject::of(&leaving()), &world(SHARED)).unwrap())
}

#[test]
fn of_a_canary_that_goes_only_the_weights_are_written() {
    let mut canary = leaving();
    let service = canary.spec.service.as_mut().unwrap();
    service.gateway_refs.clear();
    service.hosts = vec!["elsewhere.example.com".into()];
    let mut expected = document(SHARED);
    for (index, weight) in [(0, 100), (1, 0)] {
        expected["spec"]["rules"][1]["backendRefs"][index]["weight"] = weight.into();
    }
    let after = patched(&document(SHARED), &write(&canary, &world(SHARED), Split::primary_only()));
    assert_eq!(after["spec"], expected["spec"]);
    assert_eq!(write(&canary, &Objects::default(), Split::primary_only()), [], "no route is made any more");
}

#[test]
fn a_released_route_leads_to_the_apex_and_outlives_its_canary() {
    let changes = GatewayApi.release(&Subject::of(&leaving()), &world(SHARED)).unwrap();
    insta::assert_yaml_snapshot!(changes);
    let objects: Objects = [released()].into_iter().collect();
    let reading = read(&leaving(), &objects);
    assert!(route(&reading).to_apex);
    assert!(reading.settled, "whoever waits for the traffic to leave can see it");
    assert_eq!(GatewayApi.lead_to_apex(&Subject::of(&leaving()), &objects).unwrap(), []);
    assert_eq!(GatewayApi.release(&Subject::of(&leaving()), &objects).unwrap(), []);
}

#[test]
fn a_released_route_does_not_tell_who_led() {
    let with = |labels: Value| {
        let mut seen = document(SHARED);
        seen["metadata"]["labels"] = labels;
        let objects: Objects = [seen.clone()].into_iter().collect();
        let after = patched(&seen, &GatewayApi.release(&Subject::of(&leaving()), &objects).unwrap());
        after["metadata"].get("labels").cloned()
    };
    assert_eq!(with(json!({ "seaway.dev/term": "3" })), None);
    assert_eq!(with(json!({ "seaway.dev/term": "3", "team": "a" })), Some(json!({ "team": "a" })));
}

#[test]
fn a_route_on_its_way_to_the_apex_is_repaired() {
    let led = lead_to_apex(&document(SHARED));
    assert!(led["metadata"].get("ownerReferences").is_some(), "ours until the end");
    let leads = |seen: &Value| {
        let objects: Objects = [seen.clone()].into_iter().collect();
        route(&read(&leaving(), &objects)).to_apex
    };
    assert!(!leads(&document(SHARED)) && leads(&led));
    // Whatever somebody does to it, one patch brings it back.
    let edits: [(&str, Edit); 5] = [
        ("moved", |route| route["spec"]["rules"][1]["backendRefs"][0]["namespace"] = "elsewhere".into()),
        ("backend", |route| route["spec"]["rules"][1]["backendRefs"][0]["name"] = "podinfo-primary".into()),
        ("shared", |route| {
            let theirs =
                json!([{ "name": "podinfo-canary", "port": 80, "weight": 1 }, { "name": "other", "port": 80 }]);
            route["spec"]["rules"][1]["backendRefs"] = theirs;
        }),
        ("nowhere", |route| route["spec"]["rules"][1]["backendRefs"] = json!([])),
        ("no rules", |route| route["spec"]["rules"] = json!([])),
    ];
    for (name, edit) in edits {
        let mut edited = led.clone();
        edit(&mut edited);
        assert!(!leads(&edited), "{name}");
        let after = lead_to_apex(&edited);
        assert!(leads(&after), "{name}: {after:#}");
        let text = after["spec"].to_string();
        assert_eq!(after["spec"]["rules"].as_array().unwrap().len(), if name == "no rules" { 1 } else { 2 }, "{name}");
        assert!(shares(&after).iter().all(|(name, share)| !name.contains('-') || *share == 0), "{name}: {text}");
        assert!(!text.contains("elsewhere"), "{name}: {text}");
        assert_eq!(name == "shared", text.contains("other\""), "others keep their share: {text}");
    }
}

#[test]
fn a_canary_that_was_read_before_it_went_takes_no_route_back() {
    let mut canary = Canary::test();
    canary.status = Some(CanaryStatus { phase: Phase::Progressing, canary_weight: 30, ..CanaryStatus::default() });
    let objects: Objects = [released()].into_iter().collect();
    let refusal = GatewayApi.write(&Subject::of(&canary), &objects, &Split::canary(30)).unwrap_err();
    assert_eq!(refusal.blame, Blame::Cluster, "{refusal}");
    canary.status = Some(CanaryStatus { phase: Phase::Initializing, ..CanaryStatus::default() });
    assert!(!GatewayApi.write(&Subject::of(&canary), &objects, &Split::primary_only()).unwrap().is_empty());
}

#[test]
fn a_service_of_that_name_elsewhere_keeps_its_share() {
    let theirs = json!({ "name": "podinfo", "namespace": "dr", "port": 80, "weight": 5 });
    let mut seen = document(SHARED);
    seen["spec"]["rules"][0]["backendRefs"] = json!([
        { "name": "podinfo-primary", "port": 80, "weight": 90 },
        { "name": "podinfo-canary", "port": 80, "weight": 10 },
        theirs,
    ]);
    let led = lead_to_apex(&seen);
    let backends = led["spec"]["rules"][0]["backendRefs"].as_array().unwrap();
    assert_eq!((backends.last(), &backends[0]["weight"]), (Some(&theirs), &json!(100)));
    assert_eq!(lead_to_apex(&led), led, "and for good");
    for index in [0, 1] {
        seen["spec"]["rules"][0]["backendRefs"][index]["weight"] = 0.into();
    }
    let led = lead_to_apex(&seen);
    assert_eq!(led["spec"]["rules"][0]["backendRefs"].as_array().unwrap().last(), Some(&theirs), "all of it is theirs");
}

#[test]
fn a_released_route_is_taken_back_as_it_was_before() {
    let objects: Objects = [released()].into_iter().collect();
    let reading = read(&Canary::test(), &objects);
    assert!(reading.problem.is_none() && route(&reading).split.is_none() && !route(&reading).shape_ok);
    let after = patched(&released(), &write(&Canary::test(), &objects, Split::canary(10)));
    assert_eq!(after, with_the_apex_named());
    // That is no drift, and it stays so when weights move.
    let objects: Objects = [after.clone()].into_iter().collect();
    assert!(route(&read(&Canary::test(), &objects)).shape_ok);
    let after = patched(&after, &write(&Canary::test(), &objects, Split::canary(20)));
    assert_eq!(shares(&after), [("podinfo-primary", 80), ("podinfo-canary", 20), ("podinfo", 0)]);
    // A share that somebody gives it is.
    let mut drifted = after.clone();
    drifted["spec"]["rules"][1]["backendRefs"][2]["weight"] = 7.into();
    let objects: Objects = [drifted.clone()].into_iter().collect();
    assert!(!route(&read(&Canary::test(), &objects)).shape_ok);
    assert_eq!(patched(&drifted, &write(&Canary::test(), &objects, Split::canary(20))), after);
    let objects: Objects = [released()].into_iter().collect();
    // With other matches it is still the same rule.
    let canary = canary_with("service: { match: [{ uri: { prefix: /api } }] }");
    let after = patched(&released(), &write(&canary, &objects, Split::canary(10)));
    let rules = |route: &Value| route["spec"]["rules"].as_array().unwrap().len();
    assert_eq!(rules(&after), rules(&document(SHARED)));
    assert_eq!(after["spec"]["rules"][1]["matches"][0]["path"]["value"], "/api");
}

/// The route after it was taken over from the apex Service.
fn with_the_apex_named() -> Value {
    let mut route = document(SHARED);
    let backends = route["spec"]["rules"][1]["backendRefs"].as_array_mut().unwrap();
    let mut apex = backends[0].clone();
    (apex["name"], apex["weight"]) = ("podinfo".into(), 0.into());
    backends.push(apex);
    route
}

fn announce(canary: &Canary, seen: &Value, next: Destination) -> Value {
    let objects: Objects = [seen.clone()].into_iter().collect();
    let changes = GatewayApi.announce(&Subject::of(canary), &objects, next).unwrap();
    let after = patched(seen, &changes);
    let objects: Objects = [after.clone()].into_iter().collect();
    assert_eq!(GatewayApi.announce(&Subject::of(canary), &objects, next).unwrap(), [], "once is enough");
    after
}

/// Whether the route leads to the apex, and whether it names where it leads next.
fn heading(canary: &Canary, seen: &Value) -> (bool, bool) {
    let objects: Objects = [seen.clone()].into_iter().collect();
    let reading = read(canary, &objects);
    assert_eq!(reading.problem, None);
    (route(&reading).to_apex, route(&reading).announced)
}

/// Names and weights of the backends of our rule.
fn shares(seen: &Value) -> Vec<(&str, i64)> {
    let backends = list(seen, "/spec/rules/1/backendRefs").iter();
    backends.map(|backend| (text(backend, "/name"), weight_of(backend))).collect()
}

#[test]
fn the_apex_is_announced_before_the_route_leads_there() {
    let before = document(SHARED);
    assert_eq!(heading(&leaving(), &before), (false, false));
    let after = announce(&leaving(), &before, Destination::Apex);
    assert_eq!(shares(&after), [("podinfo-primary", 90), ("podinfo-canary", 10), ("podinfo", 0)]);
    assert_eq!(after["spec"]["rules"][0], before["spec"]["rules"][0]);
    assert_eq!(heading(&leaving(), &after), (false, true));
    let objects: Objects = [after.clone()].into_iter().collect();
    assert_eq!(route(&read(&leaving(), &objects)).split, Some(Split::canary(10)), "users notice nothing");
    assert_eq!(lead_to_apex(&after), lead_to_apex(&before));
    let led = lead_to_apex(&after);
    assert_eq!(shares(&led), [("podinfo", 100), ("podinfo-primary", 0), ("podinfo-canary", 0)]);
    assert_eq!(heading(&leaving(), &led), (true, true));
    // Released, it names nothing that goes.
    let objects: Objects = [led.clone()].into_iter().collect();
    let after = patched(&led, &GatewayApi.release(&Subject::of(&leaving()), &objects).unwrap());
    assert_eq!(after["spec"], released()["spec"]);
    // A route of somebody else is left alone.
    let mut theirs = before;
    theirs["metadata"]["ownerReferences"][0]["uid"] = "another-canary".into();
    assert_eq!(announce(&leaving(), &theirs, Destination::Apex), theirs);
}

#[test]
fn our_services_are_announced_before_a_released_route_leads_there() {
    let after = announce(&Canary::test(), &released(), Destination::Variants);
    assert_eq!(shares(&after), [("podinfo", 100), ("podinfo-primary", 0), ("podinfo-canary", 0)]);
    assert_eq!(heading(&Canary::test(), &released()), (true, false));
    assert_eq!(heading(&Canary::test(), &after), (true, true));
    let objects: Objects = [after.clone()].into_iter().collect();
    let reading = read(&Canary::test(), &objects);
    assert!(route(&reading).split.is_none() && !route(&reading).shape_ok, "it leads elsewhere");
    assert_eq!(patched(&after, &write(&Canary::test(), &objects, Split::canary(10))), with_the_apex_named());
    // One of them gets lost.
    let mut edited = after.clone();
    edited["spec"]["rules"][1]["backendRefs"].as_array_mut().unwrap().pop();
    assert_eq!(heading(&Canary::test(), &edited), (true, false));
    assert_eq!(announce(&Canary::test(), &edited, Destination::Variants), after);
    // The Canary goes again before it has its route: it still leads where it led.
    assert_eq!(heading(&leaving(), &after), (true, true));
    // The spec's matches are others now.
    let canary = canary_with("service: { match: [{ uri: { prefix: /api } }] }");
    let after = announce(&canary, &released(), Destination::Variants);
    assert_eq!(heading(&canary, &after), (true, true));
}

#[test]
fn a_route_that_somebody_leads_away_while_it_is_taken_over_waits_for_no_announcement() {
    let mut edited = announce(&Canary::test(), &released(), Destination::Variants);
    edited["spec"]["rules"][1]["backendRefs"][1]["weight"] = 1.into();
    assert_eq!(heading(&Canary::test(), &edited), (false, false));
}

#[test]
fn a_route_that_its_user_keeps_is_not_taken_back() {
    let edits: [(&str, Edit); 5] = [
        ("another's", |route| route["spec"]["rules"][1]["backendRefs"][0]["namespace"] = "other".into()),
        ("unmarked", |route| route["metadata"]["annotations"].as_object_mut().unwrap().clear()),
        ("elsewhere", |route| route["spec"]["rules"][1]["backendRefs"][0]["name"] = "other".into()),
        ("shared", |route| {
            route["spec"]["rules"][1]["backendRefs"].as_array_mut().unwrap().push(json!({ "name": "other" }));
        }),
        ("controlled", |route| {
            let owner = json!({ "apiVersion": "v1", "kind": "Tool", "name": "t", "uid": "t", "controller": true });
            route["metadata"]["ownerReferences"] = json!([owner]);
        }),
    ];
    for (name, edit) in edits {
        let mut edited = released();
        edit(&mut edited);
        let objects: Objects = [edited].into_iter().collect();
        assert!(read(&Canary::test(), &objects).problem.is_some(), "{name}");
        assert!(GatewayApi.write(&Subject::of(&Canary::test()), &objects, &Split::canary(10)).is_err(), "{name}");
    }
}

#[test]
fn a_parent_that_has_not_seen_this_generation_is_not_settled() {
    let unsettled = |change: &dyn Fn(&mut Value)| {
        let mut seen = document(SHARED);
        change(&mut seen);
        let objects: Objects = [seen].into_iter().collect();
        let reading = read(&Canary::test(), &objects);
        assert_eq!(reading.settled, route(&reading).unsettled.is_none());
        route(&reading).unsettled.clone()
    };
    assert_eq!(unsettled(&|_| ()), None);
    assert_eq!(
        unsettled(&|seen| seen["metadata"]["generation"] = 8.into()).unwrap(),
        "HTTPRoute podinfo.test parent gateway is not ready (status: True, observed generation: 7, current generation: 8)"
    );
    assert_eq!(
        unsettled(&|seen| seen["status"]["parents"][0]["conditions"][0]["status"] = "False".into()).unwrap(),
        "HTTPRoute podinfo.test parent gateway is not ready (status: False, observed generation: 7, current generation: 7)"
    );
    assert_eq!(
        unsettled(&|seen| drop(seen.as_object_mut().unwrap().shift_remove("status"))).unwrap(),
        "HTTPRoute podinfo.test parent gateway is not ready (status: Unknown, observed generation: 0, current generation: 7)"
    );
}

#[test]
fn what_the_gateway_api_cannot_say_is_a_field_error() {
    let canary = canary_with(
        "
        service:
          gatewayRefs: []
          timeout: 1.5s
          backendTimeout: soon
          corsPolicy: { allowOrigins: [{ regex: '.*' }], maxAge: later }
          match:
          - uri: { suffix: .html }
            method: { prefix: P }
            headers: { x-a: { prefix: b }, x-b: { exact: c } }
            queryParams: { q: { suffix: z } }
        ",
    );
    let texts: Vec<String> = GatewayApi.check(&canary).iter().map(FieldError::sentence).collect();
    insta::assert_yaml_snapshot!(texts);
    assert!(GatewayApi.write(&Subject::of(&canary), &Objects::default(), &Split::primary_only()).is_err());
}

#[test]
fn what_this_router_does_not_do_is_a_field_error() {
    let canary = canary_with(
        "
        analysis:
          mirror: true
          sessionAffinity: { cookieName: version }
          match: [{ headers: { x-beta: { exact: '1' } } }]
        ",
    );
    let paths: Vec<String> = GatewayApi.check(&canary).into_iter().map(|error| error.path).collect();
    assert_eq!(paths, ["spec.analysis.mirror", "spec.analysis.match", "spec.analysis.sessionAffinity"]);
}

#[test]
fn odd_routes_do_not_panic() {
    let shapes = [
        "spec: null",
        "spec: { rules: [] }",
        "spec: { rules: {} }",
        "spec: { rules: [null, 1, {backendRefs: 3}] }",
        "spec: { rules: [{backendRefs: [{name: podinfo-primary}, {name: podinfo-canary}, {name: podinfo-canary, weight: -5}]}] }",
        "spec: { parentRefs: [1], hostnames: 7, rules: [{ backendRefs: [{ name: podinfo-canary, weight: 1e9 }] }] }",
        "status: { parents: [null, {parentRef: []}] }",
    ];
    for shape in shapes {
        let mut odd = document(SHARED);
        for (key, value) in document(shape).as_object().unwrap() {
            odd[key] = value.clone();
        }
        let objects: Objects = [odd.clone()].into_iter().collect();
        let _ = read(&Canary::test(), &objects);
        let changes = write(&Canary::test(), &objects, Split::canary(10));
        let _ = GatewayApi.release(&Subject::of(&Canary::test()), &objects);
        if odd.get("spec").is_some_and(Value::is_object) {
            let objects: Objects = [patched(&odd, &changes)].into_iter().collect();
            assert_eq!(route(&read(&Canary::test(), &objects)).split, Some(Split::canary(10)), "{shape}");
        }
    }
}
