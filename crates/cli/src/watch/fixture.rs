//! A canary and all that belongs to it at one moment of its life, for tests: objects as an API server would send them.

use jiff::Timestamp;
use seaway_api::canary::{Canary, Condition, ConditionStatus, HookType, Phase};
use serde_json::{Value, json};

use super::canary::{CanaryFacts, raw};
use super::objects::{EventLine, Key, Kind, Object, Pod, ReplicaSet, Route, Service, Workload};
use super::world::{Sight, World};

/// Seconds after the Canary was made.
pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// The canary all this is about.
pub fn key() -> Key {
    Key::new("test", "podinfo")
}

/// The canary of the example: five steps, two metrics, two hooks.
pub fn podinfo(phase: Phase) -> Canary {
    let mut canary = Canary::test()
        .webhook("smoke-test", HookType::PreRollout)
        .webhook("load-test", HookType::Rollout)
        .at(phase)
        .since(at(600));
    canary.metadata.creation_timestamp = Some(at(0).into());
    canary
}

/// With a condition.
pub fn with(mut canary: Canary, type_: &str, status: ConditionStatus, reason: &str, message: &str) -> Canary {
    let condition = Condition::new(type_, status, reason, message, at(600));
    canary.status.get_or_insert_default().set_condition(condition);
    canary
}

/// With a record of a decision.
pub fn decided(mut canary: Canary, second: i64, weight: i64, checks: &Value) -> Canary {
    let record = json!({
        "time": at(second).to_string(), "phase": "Progressing", "weight": weight, "rule": "advance", "checks": checks,
    });
    canary.status.get_or_insert_default().decisions.push(record);
    canary
}

/// A world in the making.
pub struct Stage(pub World);

impl Stage {
    /// Nothing but the canary.
    pub fn of(canary: &Canary) -> Self {
        let mut stage = Self(World::new(at(590)));
        for sight in [Sight::Listing(Kind::Canary), seen(canary), Sight::Listed(Kind::Canary)] {
            stage.0.take(at(600), sight);
        }
        stage
    }

    /// One more sight.
    pub fn sees(mut self, second: i64, sight: Sight) -> Self {
        self.0.take(at(second), sight);
        self
    }

    fn object(self, object: Object) -> Self {
        self.sees(600, Sight::Seen(object))
    }

    /// A Deployment with a ReplicaSet and its pods, each named by its state.
    pub fn workload(self, name: &str, tag: &str, replicas: i64, pods: &[&str]) -> Self {
        let ready = pods.iter().filter(|state| **state == "Running").count();
        let meta = |name: &str, uid: &str, owner: Option<(&str, &str)>| {
            let owners = owner.map(|(name, uid)| {
                json!([{"apiVersion": "apps/v1", "kind": "X", "name": name, "uid": uid, "controller": true}])
            });
            json!({
                "name": name, "namespace": "test", "uid": uid, "ownerReferences": owners,
                "creationTimestamp": at(0).to_string(),
                "annotations": {"deployment.kubernetes.io/revision": "3"},
            })
        };
        let deployment = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta(name, name, None),
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [
                {"name": "podinfod", "image": format!("ghcr.io/stefanprodan/podinfo:{tag}")},
            ]}}},
            "status": {"readyReplicas": ready},
        });
        let set_name = format!("{name}-5d8c7b9f4");
        let set = json!({
            "metadata": meta(&set_name, &set_name, Some((name, name))),
            "spec": {"replicas": replicas, "selector": {}}, "status": {"replicas": replicas, "readyReplicas": ready},
        });
        let deployment = Workload::of(Kind::Deployment, &serde_json::from_value(deployment).unwrap());
        let mut stage = self
            .object(Object::Workload(deployment))
            .object(Object::ReplicaSet(ReplicaSet::of(&serde_json::from_value(set).unwrap())));
        for (index, state) in pods.iter().enumerate() {
            let container = match *state {
                "Running" => json!({"running": {}}),
                reason => json!({"waiting": {"reason": reason}}),
            };
            let pod = json!({
                "metadata": meta(&format!("{set_name}-{index}x2vq"), "", Some((&set_name, &set_name))),
                "spec": {"containers": [{"name": "podinfod"}]},
                "status": {"phase": "Running", "containerStatuses": [{
                    "name": "podinfod", "ready": *state == "Running", "image": "", "imageID": "", "state": container,
                    "restartCount": if *state == "CrashLoopBackOff" { 4 } else { 0 },
                }]},
            });
            stage = stage.object(Object::Pod(Pod::of(&serde_json::from_value(pod).unwrap())));
        }
        stage
    }

    /// The route, and the three Services.
    pub fn route(self, second: i64, primary: i64, canary: i64) -> Self {
        let route = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": {"name": "podinfo", "namespace": "test", "creationTimestamp": at(0).to_string()},
            "spec": {"rules": [{"backendRefs": [
                {"name": "podinfo-primary", "weight": primary}, {"name": "podinfo-canary", "weight": canary},
            ]}]},
            "status": {"parents": [{"parentRef": {"name": "gateway"}, "conditions": [{"type": "Accepted", "status": "True"}]}]},
        });
        let mut stage =
            self.sees(second, Sight::Seen(Object::Route(Route::of(&serde_json::from_value(route).unwrap()))));
        for (name, app) in
            [("podinfo", "podinfo-primary"), ("podinfo-primary", "podinfo-primary"), ("podinfo-canary", "podinfo")]
        {
            let service = json!({
                "metadata": {"name": name, "namespace": "test", "creationTimestamp": at(0).to_string()},
                "spec": {"selector": {"app": app}},
            });
            stage = stage.object(Object::Service(Service::of(&serde_json::from_value(service).unwrap())));
        }
        stage
    }

    /// Events, said so many seconds after the beginning.
    pub fn events(self, events: &[(i64, bool, &str)]) -> Self {
        events.iter().fold(self, |stage, (second, warning, text)| {
            let event = EventLine {
                name: (*text).to_owned(),
                about: key(),
                at: Some(at(*second)),
                warning: *warning,
                text: (*text).to_owned(),
                count: 1,
                writes: 1,
            };
            stage.sees(*second, Sight::Seen(Object::Event(event)))
        })
    }
}

/// A canary as a sight.
pub fn seen(canary: &Canary) -> Sight {
    Sight::Seen(Object::Canary(Box::new(CanaryFacts::of(&raw(canary)))))
}

const BEGINNING: [(i64, bool, &str); 3] = [
    (420, false, "New revision detected! Scaling up podinfo.test"),
    (480, false, "Starting canary analysis for podinfo.test"),
    (480, false, "Pre-rollout check smoke-test passed"),
];

const GOOD: &str = "6.0.1";

/// The primary is being made.
pub fn initialising() -> World {
    let canary = with(
        podinfo(Phase::Initializing),
        "Promoted",
        ConditionStatus::Unknown,
        "Initializing",
        "New Deployment detected, starting initialization.",
    );
    let events = [(
        598,
        true,
        "podinfo-primary.test not ready: waiting for rollout to finish: observed deployment generation less than desired generation",
    )];
    Stage::of(&canary)
        .workload("podinfo-primary", "6.0.0", 2, &["Running", "ContainerCreating"])
        .workload("podinfo", "6.0.0", 2, &["Running", "Running"])
        .events(&events)
        .0
}

/// Three of five steps are done, and everything is well.
pub fn progressing() -> World {
    let mut canary = with(
        podinfo(Phase::Progressing).weight(30),
        "Promoted",
        ConditionStatus::Unknown,
        "Progressing",
        "New revision detected, progressing canary analysis.",
    );
    for (second, weight) in [(480, 10), (540, 20), (600, 30)] {
        let checks = json!([
            {"check": "request-success-rate", "verdict": "pass", "value": 99.87, "min": 99.0},
            {"check": "request-duration", "verdict": "pass", "value": 12.0, "max": 500.0},
        ]);
        canary = decided(canary, second, weight, &checks);
    }
    let events = [
        (480, false, "Advance podinfo.test canary weight 10"),
        (540, false, "Advance podinfo.test canary weight 20"),
        (600, false, "Advance podinfo.test canary weight 30"),
    ];
    Stage::of(&canary)
        .workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"])
        .workload("podinfo", GOOD, 2, &["Running", "Running"])
        .route(600, 70, 30)
        .events(&BEGINNING)
        .events(&events)
        .0
}

/// Somebody has to say yes.
pub fn waiting() -> World {
    let canary = with(
        podinfo(Phase::WaitingPromotion).weight(50),
        "Promoted",
        ConditionStatus::Unknown,
        "WaitingPromotion",
        "Waiting for approval.",
    );
    let events = [(600, true, "Halt podinfo.test advancement waiting for promotion approval gate")];
    Stage::of(&canary)
        .workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"])
        .workload("podinfo", GOOD, 2, &["Running", "Running"])
        .route(600, 50, 50)
        .events(&BEGINNING)
        .events(&events)
        .0
}

/// Too many checks failed, traffic has just left.
pub fn rolling_back() -> World {
    let canary = with(
        podinfo(Phase::Progressing).weight(20).failed_checks(5),
        "RollingBack",
        ConditionStatus::True,
        "FailedChecks",
        "5",
    );
    let failed = json!([{"check": "request-success-rate", "verdict": "fail", "value": 74.31, "min": 99.0}]);
    let canary = decided(decided(canary, 540, 20, &failed), 600, 20, &failed);
    let events = [
        (480, false, "Advance podinfo.test canary weight 10"),
        (540, true, "Halt podinfo.test advancement success rate 74.31% < 99%"),
        (600, true, "Rolling back podinfo.test failed checks threshold reached 5"),
    ];
    Stage::of(&canary)
        .workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"])
        .workload("podinfo", "6.0.2-err25", 2, &["Running", "CrashLoopBackOff"])
        .route(560, 80, 20)
        .route(601, 100, 0)
        .events(&BEGINNING)
        .events(&events)
        .0
}

/// The new version was bad.
pub fn failed() -> World {
    let canary = with(
        podinfo(Phase::Failed),
        "Promoted",
        ConditionStatus::False,
        "Failed",
        "Canary analysis failed, Deployment scaled to zero.",
    );
    Stage::of(&canary)
        .workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"])
        .workload("podinfo", "6.0.2-err25", 0, &[])
        .route(600, 100, 0)
        .events(&BEGINNING)
        .events(&[(600, true, "Canary failed! Scaling down podinfo.test")])
        .0
}

/// The new version was good.
pub fn succeeded() -> World {
    let canary = with(
        podinfo(Phase::Succeeded),
        "Promoted",
        ConditionStatus::True,
        "Succeeded",
        "Canary analysis completed successfully, promotion finished.",
    );
    Stage::of(&canary)
        .workload("podinfo-primary", GOOD, 2, &["Running", "Running"])
        .workload("podinfo", GOOD, 0, &[])
        .route(600, 100, 0)
        .events(&BEGINNING)
        .events(&[(600, false, "Promotion completed! Scaling down podinfo.test")])
        .0
}

/// The spec cannot be run.
pub fn not_accepted() -> World {
    let message = "spec.analysis.stepWeights[2]: 20 is not between 1 and 100 and larger than the step before; write ascending percentages. spec.analysis.metrics[0].interval: \"soon\" is no duration; write 1m";
    let canary = with(podinfo(Phase::Initialized), "Accepted", ConditionStatus::False, "InvalidSpec", message);
    Stage::of(&canary).workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"]).route(600, 100, 0).0
}

/// The operator has a fault of its own.
pub fn broken() -> World {
    let message = "internal error, the canary is left as it is and looked at again later";
    let canary = podinfo(Phase::Progressing).weight(20);
    let canary = with(canary, "InternalError", ConditionStatus::True, "RoundBrokeOff", message);
    Stage::of(&canary).workload("podinfo-primary", "6.0.0", 2, &["Running", "Running"]).route(600, 80, 20).0
}

/// It was there, and is not any more.
pub fn deleted() -> World {
    Stage(succeeded()).sees(605, Sight::Gone(Kind::Canary, key())).0
}

/// A hundred canaries in four namespaces, in every phase.
pub fn hundred() -> World {
    let mut world = World::new(at(590));
    let phases = [
        Phase::Succeeded,
        Phase::Progressing,
        Phase::Initialized,
        Phase::Failed,
        Phase::WaitingPromotion,
        Phase::Promoting,
    ];
    for index in 0..100 {
        let phase = phases[index % phases.len()];
        let weight = if phase == Phase::Progressing { (index as i64 % 5 + 1) * 10 } else { 50 };
        let canary = podinfo(phase)
            .named(&format!("app-{index:02}"))
            .in_namespace(["cart", "web", "search", "payments"][index % 4]);
        let canary =
            canary.weight(weight).failed_checks(if index % 7 == 0 { 2 } else { 0 }).since(at(600 - index as i64 * 13));
        let canary =
            with(canary, "Promoted", ConditionStatus::Unknown, phase.as_str(), "What the operator says about it.");
        world.take(at(600), seen(&canary));
    }
    world
}
