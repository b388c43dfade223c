use seaway_api::Canary;
use serde_json::json;

use super::*;
use crate::watch::fixture::{Stage, at, decided, key, podinfo, progressing, seen};

fn event(name: &str, count: i32, second: i64) -> Sight {
    Sight::Seen(Object::Event(EventLine {
        name: name.to_owned(),
        about: key(),
        at: Some(at(second)),
        warning: false,
        text: name.to_owned(),
        count,
        writes: count,
    }))
}

fn changes(told: Vec<(Key, Change)>) -> Vec<Change> {
    told.into_iter().map(|(_, change)| change).collect()
}

#[test]
fn the_same_sight_twice_is_told_once() {
    let mut world = World::new(at(0));
    let canary = podinfo(Phase::Progressing);
    assert_eq!(changes(world.take(at(1), seen(&canary))), [Change::Phase { phase: Phase::Progressing }]);
    assert_eq!(world.take(at(2), seen(&canary)), []);
    let split = |stage: Stage| stage.0.canary(&key()).unwrap().split;
    assert_eq!(split(Stage(world).route(3, 90, 10).route(4, 90, 10)), Some((90, 10)));
}

#[test]
fn traffic_is_where_the_route_says() {
    let mut world = progressing();
    let known = world.canary(&key()).unwrap();
    assert_eq!((known.split, known.weights.back()), (Some((70, 30)), Some(&(at(600), 30))));
    world.take(at(610), Sight::Gone(Kind::Route, key()));
    assert_eq!(world.canary(&key()).unwrap().split, None, "without a route only the status is left");
}

#[test]
fn a_route_that_moves_is_told_to_whom_it_concerns() {
    let mut stage = Stage::of(&podinfo(Phase::Progressing)).route(601, 90, 10);
    let other = podinfo(Phase::Progressing).named("other");
    stage.0.take(at(602), seen(&other));
    let route = stage.0.routes.get(&key()).cloned().unwrap();
    let moved = Route { weights: vec![("podinfo-primary".into(), 8), ("podinfo-canary".into(), 2)], ..route };
    let told = stage.0.take(at(603), Sight::Seen(Object::Route(moved)));
    assert_eq!(told, [(key(), Change::Split { primary: 80, canary: 20 })], "any weights become shares of a hundred");
}

#[test]
fn what_happened_before_is_shown_but_not_told() {
    let checks = json!([{"check": "request-duration", "verdict": "fail", "value": 700.0, "max": 500.0}]);
    let mut world = World::new(at(1000));
    let old = decided(podinfo(Phase::Progressing).weight(10), 500, 10, &checks);
    assert_eq!(changes(world.take(at(1000), seen(&old))), [Change::Phase { phase: Phase::Progressing }]);
    assert_eq!(world.take(at(1000), event("old", 1, 500)), []);
    let known = world.canary(&key()).unwrap();
    assert_eq!((known.checks[1].value, known.events.len()), (Some(700.0), 1));
    assert_eq!(known.weights.front(), Some(&(at(500), 10)), "the past is in the history");
    let new = decided(old, 1010, 20, &checks);
    assert!(matches!(changes(world.take(at(1010), seen(&new))).as_slice(), [Change::Check(_)]));
    assert_eq!(world.take(at(1011), seen(&new)), [], "a record is told once");
    assert_eq!(world.take(at(1012), event("new", 1, 1000)).len(), 1);
}

#[test]
fn an_event_that_is_said_again_is_told_again() {
    let mut world = Stage::of(&podinfo(Phase::Progressing)).0;
    world.take(at(601), event("a", 1, 601));
    world.take(at(602), event("b", 1, 602));
    assert_eq!(world.take(at(603), event("a", 1, 601)), []);
    assert_eq!(world.take(at(604), event("a", 2, 604)).len(), 1);
    let order: Vec<_> = world.canary(&key()).unwrap().events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(order, ["a", "b", "a"]);
    for number in 0..100 {
        world.take(at(number), event(&number.to_string(), 1, 605 + number));
    }
    assert_eq!(world.canary(&key()).unwrap().events.len(), EVENTS_KEPT);
}

#[test]
fn events_come_in_any_order_and_are_shown_by_time() {
    let mut world = Stage::of(&podinfo(Phase::Progressing)).0;
    for second in [630, 610, 620] {
        world.take(at(640), event(&second.to_string(), 1, second));
    }
    let order: Vec<_> = world.canary(&key()).unwrap().events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(order, ["610", "620", "630"]);
    assert_eq!(world.take(at(641), event("x", 1, 641)).len(), 1);
    let stranger = EventLine { about: Key::new("test", "stranger"), ..world.canary(&key()).unwrap().events[0].clone() };
    assert_eq!(world.take(at(642), Sight::Seen(Object::Event(stranger))), []);
}

#[test]
fn what_a_new_list_does_not_name_is_gone() {
    let mut world = progressing();
    let pods = world.pods.len();
    let kept = world.pods.values().next().unwrap().clone();
    world.take(at(610), Sight::Listing(Kind::Pod));
    assert_eq!(world.pods.len(), pods, "until the list is complete nothing is gone");
    world.take(at(610), Sight::Seen(Object::Pod(kept)));
    world.take(at(610), Sight::Listed(Kind::Pod));
    assert_eq!((world.pods.len(), world.access(Kind::Pod)), (1, Some(&Access::Synced)));
    world.take(at(611), Sight::Listing(Kind::Canary));
    assert_eq!(changes(world.take(at(611), Sight::Listed(Kind::Canary))), [Change::Deleted]);
    assert_eq!((world.canaries().count(), world.canary(&key()).unwrap().gone), (0, Some(at(611))));
}

#[test]
fn another_canary_of_the_same_name_starts_anew() {
    let mut world = progressing();
    let events = world.canary(&key()).unwrap().events.len();
    let mut again = Canary::test();
    again.metadata.uid = Some("another".into());
    world.take(at(700), seen(&again));
    let known = world.canary(&key()).unwrap();
    assert_eq!((known.facts.phase(), known.events.len(), known.checks.len()), (Phase::Unset, events, 2));
    assert_eq!(known.weights.len(), 1);
}

#[test]
fn a_trouble_lasts_from_its_beginning_until_the_next_list() {
    let mut world = progressing();
    world.take(at(610), Sight::Trouble(Kind::Pod, Trouble::Lost("a".into())));
    world.take(at(620), Sight::Listing(Kind::Pod));
    world.take(at(620), Sight::Trouble(Kind::Pod, Trouble::Lost("b".into())));
    let troubles: Vec<_> = world.troubles().map(|(kind, at, trouble)| (kind, at, trouble.clone())).collect();
    assert_eq!(troubles, [(Kind::Pod, at(610), Trouble::Lost("b".into()))]);
    assert!(!world.pods.is_empty(), "what was seen is still the best we know");
    world.take(at(630), Sight::Listing(Kind::Pod));
    world.take(at(630), Sight::Listed(Kind::Pod));
    assert_eq!(world.troubles().count(), 0);
    world.forget(&[Kind::Pod, Kind::Deployment, Kind::Service, Kind::ReplicaSet, Kind::Route, Kind::Event]);
    assert!(world.workloads.is_empty() && world.services.is_empty() && world.access(Kind::Pod).is_none());
}

#[test]
fn without_decisions_the_events_tell_of_the_checks() {
    let mut world = Stage::of(&podinfo(Phase::Progressing)).0;
    let text = "Halt podinfo.test advancement success rate 74.31% < 99%";
    world.take(at(601), event(text, 1, 601));
    let check = world.canary(&key()).unwrap().checks[0].clone();
    assert_eq!((check.verdict.as_str(), check.figure().as_str(), check.min), ("fail", "74.31", Some(99.0)));
}
