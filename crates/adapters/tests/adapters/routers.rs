//! What every router promises: it does what it says, says only what is so, and touches nothing else.
//!
//! A router comes with one route that others have worked on too. Changes are applied to it as a server would, and the route
//! is read again.

use json_patch::{Patch, patch};
use seaway_adapters::change::{Action, Change};
use seaway_adapters::routers::{RouteReading, Router, Subject, find};
use seaway_adapters::world::Objects;
use seaway_api::Canary;
use seaway_core::split::Split;
use serde_json::{Value, json};

/// The routers, each with a route that is at 10 % and settled.
const ROUTERS: [(&str, &str); 1] =
    [("gatewayapi:v1", include_str!("../../src/routers/gateway_api/httproute-with-what-we-do-not-know.yaml"))];

/// One router at work on one route.
struct Bench {
    router: &'static dyn Router,
    canary: Canary,
    route: Value,
}

impl Bench {
    fn all() -> Vec<Self> {
        let bench = |(provider, yaml): (&str, &str)| Self {
            router: find(provider).unwrap(),
            canary: Canary::test(),
            route: serde_saphyr::from_str(yaml).unwrap(),
        };
        ROUTERS.map(bench).into()
    }

    fn world(&self) -> Objects {
        [self.route.clone()].into_iter().collect()
    }

    fn read(&self) -> RouteReading {
        self.router.read(&Subject::of(&self.canary), &self.world())
    }

    fn split(&self) -> Option<Split> {
        self.read().route.and_then(|route| route.split)
    }

    /// Writes a split as the operator and the server would: every precondition holds, and a changed spec is a new
    /// generation that nobody has taken up yet.
    fn write(&mut self, split: Split) {
        let changes = self.router.write(&Subject::of(&self.canary), &self.world(), &split).unwrap();
        for Change { object, action } in changes {
            let Action::JsonPatch { operations } = action else { panic!("{object:?} exists: {action:?}") };
            let before = self.route["spec"].clone();
            patch(&mut self.route, &serde_json::from_value::<Patch>(operations).unwrap()).unwrap();
            if self.route["spec"] != before {
                let generation = self.route["metadata"]["generation"].as_i64().unwrap();
                self.route["metadata"]["generation"] = (generation + 1).into();
            }
        }
    }
}

/// What people and controllers do to a route between two rounds.
fn edits() -> [(&'static str, Value); 5] {
    [
        ("/metadata/annotations", json!({ "owner": "somebody" })),
        ("/spec/hostnames", json!(["elsewhere.example.com"])),
        ("/spec/rules/1/matches", json!([{ "path": { "type": "Exact", "value": "/old" } }])),
        ("/spec/rules/1/timeouts", json!({ "request": "1s" })),
        ("/spec/rules/1/backendRefs/1/port", json!(8080)),
    ]
}

#[test]
fn a_split_that_is_written_is_read_and_nothing_else_has_changed() {
    for mut bench in Bench::all() {
        let before = bench.route.clone();
        for weight in [20, 100, 0, 55, 10] {
            bench.write(Split::canary(weight));
            assert_eq!(bench.split(), Some(Split::canary(weight)));
        }
        // Back where it was: whatever is different now is not ours.
        bench.route["metadata"]["generation"] = before["metadata"]["generation"].clone();
        assert_eq!(bench.route.to_string(), before.to_string());
    }
}

#[test]
fn drift_is_repaired_at_the_split_that_is_asked_for() {
    for (pointer, value) in edits() {
        for mut bench in Bench::all() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            bench.route.pointer_mut(parent).unwrap()[field] = value.clone();
            assert!(!bench.read().route.unwrap().shape_ok, "{pointer} is no drift");
            bench.write(Split::canary(30));
            let route = bench.read().route.unwrap();
            assert_eq!((route.split, route.shape_ok), (Some(Split::canary(30)), true), "after an edit of {pointer}");
        }
    }
}

#[test]
fn a_route_is_settled_when_somebody_has_taken_it_up() {
    for mut bench in Bench::all() {
        assert!(bench.read().settled);
        bench.write(Split::primary_only());
        let reading = bench.read();
        assert!(!reading.settled, "nobody has said anything about this generation");
        assert!(reading.route.unwrap().unsettled.is_some(), "people are told what is waited for");
        bench.route["status"]["parents"][0]["conditions"][0]["observedGeneration"] = reading.generation.into();
        assert!(bench.read().settled);
    }
}
