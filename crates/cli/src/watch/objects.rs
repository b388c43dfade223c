//! What is kept of the objects around a canary: a few words each, whatever their size. Pure.
//!
//! Text that others wrote is cleaned here once: a control character in an Event must not reach a terminal or a log.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1 as apps;
use k8s_openapi::api::core::v1 as core;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use kube::api::DynamicObject;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_core::revision::template_hash;
use serde::Serialize;
use serde_json::Value;

use super::canary::CanaryFacts;

/// Where an object is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Key {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Key {
    /// The object `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// Where the object with this metadata is.
    pub fn of(meta: &ObjectMeta) -> Self {
        Self::new(meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&format!("{}/{}", self.namespace, self.name))
    }
}

/// The kinds that are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Canaries.
    Canary,
    /// HTTPRoutes.
    Route,
    /// Events about canaries.
    Event,
    /// Deployments.
    Deployment,
    /// DaemonSets.
    DaemonSet,
    /// ReplicaSets.
    ReplicaSet,
    /// Pods.
    Pod,
    /// Services.
    Service,
}

impl Kind {
    /// The name that is used in requests, and in what RBAC allows.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Canary => "canaries",
            Self::Route => "httproutes",
            Self::Event => "events",
            Self::Deployment => "deployments",
            Self::DaemonSet => "daemonsets",
            Self::ReplicaSet => "replicasets",
            Self::Pod => "pods",
            Self::Service => "services",
        }
    }
}

/// An object, reduced.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// A Canary.
    Canary(Box<CanaryFacts>),
    /// A Deployment or DaemonSet.
    Workload(Workload),
    /// A ReplicaSet.
    ReplicaSet(ReplicaSet),
    /// A Pod.
    Pod(Pod),
    /// A Service.
    Service(Service),
    /// An HTTPRoute.
    Route(Route),
    /// An Event about a Canary.
    Event(EventLine),
}

/// A Deployment or DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Which of the two.
    pub kind: Kind,
    /// Where it is.
    pub key: Key,
    /// Its uid, by which its parts name it.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Pods that should be.
    pub desired: i64,
    /// Pods that are ready.
    pub ready: i64,
    /// Images of its containers, by container.
    pub images: Vec<(String, String)>,
    /// Hash of its pod template, as a Canary's status stores it.
    pub template: String,
    /// Why it does not get on, if it says so.
    pub problem: Option<String>,
}

/// A ReplicaSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    /// Where it is.
    pub key: Key,
    /// Its uid.
    pub uid: String,
    /// Uid of the Deployment it belongs to.
    pub owner: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Pods that should be.
    pub desired: i64,
    /// Pods that are ready.
    pub ready: i64,
    /// The Deployment's count of its revisions.
    pub revision: Option<i64>,
}

/// A Pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Where it is.
    pub key: Key,
    /// Uid of the ReplicaSet or DaemonSet it belongs to.
    pub owner: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// How it is.
    pub state: PodState,
    /// The word for it, as kubectl has it: `Running`, `CrashLoopBackOff`, `Terminating`.
    pub word: String,
    /// Containers that are ready.
    pub ready: usize,
    /// Containers.
    pub containers: usize,
    /// How often its containers were started again.
    pub restarts: i32,
}

/// How a pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodState {
    /// All its containers are ready.
    Ready,
    /// It is on its way.
    Starting,
    /// It is on its way out, or done.
    Leaving,
    /// Something is wrong with it.
    Broken,
}

/// A Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Where it is.
    pub key: Key,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whom it selects, `app=podinfo`.
    pub selector: String,
}

/// An HTTPRoute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Where it is.
    pub key: Key,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Backends with their weights, of all rules, each once.
    pub weights: Vec<(String, i64)>,
    /// Why a parent does not serve it; `None` while all do.
    pub problem: Option<String>,
    /// Whether any parent has said something about it.
    pub taken_up: bool,
}

/// A Kubernetes Event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EventLine {
    /// Its object's name, to tell a repetition from another.
    #[serde(skip)]
    pub name: String,
    /// The Canary it is about.
    #[serde(skip)]
    pub about: Key,
    /// When it was said last.
    #[serde(skip)]
    pub at: Option<Timestamp>,
    /// Whether it is a warning.
    pub warning: bool,
    /// Its text.
    pub text: String,
    /// How often it was said.
    pub count: i32,
    /// How often its object was written, to tell a repetition from the same thing seen twice.
    #[serde(skip)]
    pub writes: i32,
}

/// How the text of an Event begins that stands for many; its count is theirs together.
const COMBINED: &str = "(combined from similar events): ";

/// Text without anything that could move a cursor or hide what follows.
pub fn clean(text: &str) -> String {
    let unsafe_ = |c: char| {
        c.is_control() || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.trim_end().chars().map(|c| if unsafe_(c) { ' ' } else { c }).collect()
}

fn created(meta: &ObjectMeta) -> Option<Timestamp> {
    meta.creation_timestamp.as_ref().map(|Time(time)| *time)
}

/// Uid of the controller among the owners.
fn controller(meta: &ObjectMeta) -> Option<&k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference> {
    meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}

impl Workload {
    /// What is kept of a Deployment or DaemonSet. Taken raw, because the template is hashed as it is stored.
    pub fn of(kind: Kind, object: &DynamicObject) -> Self {
        let at = |path: &str| object.data.pointer(path);
        let number = |path: &str| at(path).and_then(Value::as_i64);
        let (desired, ready) = match kind {
            Kind::DaemonSet => (number("/status/desiredNumberScheduled"), number("/status/numberReady")),
            _ => (number("/spec/replicas").or(Some(1)), number("/status/readyReplicas")),
        };
        let containers = at("/spec/template/spec/containers").and_then(Value::as_array);
        let text = |value: &Value, name: &str| clean(value.get(name).and_then(Value::as_str).unwrap_or_default());
        Self {
            kind,
            key: Key::of(&object.metadata),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            created: created(&object.metadata),
            desired: desired.unwrap_or(0),
            ready: ready.unwrap_or(0),
            images: containers.into_iter().flatten().map(|one| (text(one, "name"), text(one, "image"))).collect(),
            template: at("/spec/template").map(template_hash).unwrap_or_default(),
            problem: at("/status/conditions")
                .and_then(Value::as_array)
                .and_then(|conditions| conditions.iter().find(|one| is_problem(one)).map(|one| text(one, "message"))),
        }
    }
}

/// A Deployment that is late, or whose pods are refused by a quota or an admission.
fn is_problem(condition: &Value) -> bool {
    let member = |name: &str| condition.get(name).and_then(Value::as_str).unwrap_or_default();
    matches!((member("type"), member("status")), ("Progressing", "False") | ("ReplicaFailure", "True"))
}

impl ReplicaSet {
    /// What is kept of a ReplicaSet.
    pub fn of(object: &apps::ReplicaSet) -> Self {
        let revision =
            object.metadata.annotations.as_ref().and_then(|all| all.get("deployment.kubernetes.io/revision"));
        let status = object.status.as_ref();
        Self {
            key: Key::of(&object.metadata),
            uid: object.metadata.uid.clone().unwrap_or_default(),
            owner: controller(&object.metadata).map(|owner| owner.uid.clone()).unwrap_or_default(),
            created: created(&object.metadata),
            desired: i64::from(object.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1)),
            ready: i64::from(status.and_then(|status| status.ready_replicas).unwrap_or(0)),
            revision: revision.and_then(|text| text.parse().ok()),
        }
    }
}

/// Whether an object is controlled by something that was made from the workload `target` or its primary. ReplicaSets
/// bear the name of their Deployment, so this keeps the pods of others out of memory before anything else is known.
pub fn may_belong(meta: &ObjectMeta, target: &str) -> bool {
    controller(meta).is_some_and(|owner| {
        owner.name.strip_prefix(target).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

impl Pod {
    /// What is kept of a Pod.
    pub fn of(object: &core::Pod) -> Self {
        let status = object.status.clone().unwrap_or_default();
        let containers = status.container_statuses.unwrap_or_default();
        let total = object.spec.as_ref().map_or(containers.len(), |spec| spec.containers.len());
        let ready = containers.iter().filter(|one| one.ready).count();
        let phase = status.phase.unwrap_or_default();
        let (state, word) = if object.metadata.deletion_timestamp.is_some() {
            (PodState::Leaving, "Terminating".to_owned())
        } else if let Some((state, word)) = containers.iter().find_map(trouble) {
            (state, word)
        } else {
            let state = match phase.as_str() {
                "Running" if ready == total => PodState::Ready,
                "Succeeded" => PodState::Leaving,
                "Failed" => PodState::Broken,
                _ => PodState::Starting,
            };
            (state, status.reason.filter(|reason| !reason.is_empty()).unwrap_or(phase))
        };
        Self {
            key: Key::of(&object.metadata),
            owner: controller(&object.metadata).map(|owner| owner.uid.clone()).unwrap_or_default(),
            created: created(&object.metadata),
            state,
            word: clean(&word),
            ready,
            containers: total,
            restarts: containers.iter().map(|one| one.restart_count).sum(),
        }
    }
}

/// Why a container does not run, in the word that kubectl shows.
fn trouble(container: &core::ContainerStatus) -> Option<(PodState, String)> {
    let state = container.state.as_ref()?;
    if let Some(waiting) = &state.waiting {
        let reason = waiting.reason.clone().unwrap_or_else(|| "Waiting".to_owned());
        let normal = matches!(reason.as_str(), "ContainerCreating" | "PodInitializing" | "Waiting");
        return Some((if normal { PodState::Starting } else { PodState::Broken }, reason));
    }
    let ended = state.terminated.as_ref()?;
    let reason = ended.reason.clone().unwrap_or_else(|| format!("Exit {}", ended.exit_code));
    Some((if ended.exit_code == 0 { PodState::Leaving } else { PodState::Broken }, reason))
}

impl Service {
    /// What is kept of a Service.
    pub fn of(object: &core::Service) -> Self {
        let selector = object.spec.as_ref().and_then(|spec| spec.selector.clone()).unwrap_or_default();
        let selector: Vec<String> = selector.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self {
            key: Key::of(&object.metadata),
            created: created(&object.metadata),
            selector: clean(&selector.join(",")),
        }
    }
}

impl Route {
    /// What is kept of an HTTPRoute.
    pub fn of(object: &HttpRoute) -> Self {
        let mut weights: Vec<(String, i64)> = Vec::new();
        for backend in object.spec.rules.iter().flatten().flat_map(|rule| rule.backend_refs.iter().flatten()) {
            if !weights.iter().any(|(name, _)| *name == backend.name) {
                weights.push((clean(&backend.name), backend.weight.unwrap_or(1).max(0)));
            }
        }
        let parents = object.status.as_ref().map(|status| status.parents.as_slice()).unwrap_or_default();
        let refused =
            parents.iter().flat_map(|parent| &parent.conditions).find(|condition| condition.status == "False");
        Self {
            key: Key::of(&object.metadata),
            created: created(&object.metadata),
            weights,
            problem: refused.map(|condition| clean(&format!("{}: {}", condition.reason, condition.message))),
            taken_up: !parents.is_empty(),
        }
    }

    /// The weight of a backend.
    pub fn weight(&self, backend: &str) -> Option<i64> {
        self.weights.iter().find(|(name, _)| name == backend).map(|(_, weight)| *weight)
    }
}

impl EventLine {
    /// What is kept of an Event. Similar ones share one object after a while; people care for the newest text, not for
    /// how it is stored.
    pub fn of(event: core::Event) -> Self {
        let message = event.message.unwrap_or_default();
        let writes = event.count.unwrap_or(1);
        let series = event.series.and_then(|series| series.last_observed_time).map(|time| time.0);
        let stamps = [event.last_timestamp.map(|time| time.0), series, event.event_time.map(|time| time.0)];
        let at = stamps.into_iter().flatten().max().or_else(|| created(&event.metadata));
        let about = event.involved_object;
        let namespace = about.namespace.or_else(|| event.metadata.namespace.clone());
        Self {
            name: event.metadata.name.unwrap_or_default(),
            about: Key::new(namespace.unwrap_or_default(), about.name.unwrap_or_default()),
            at,
            warning: event.type_.as_deref() == Some("Warning"),
            text: clean(message.trim_start_matches(COMBINED)),
            count: if message.starts_with(COMBINED) { 1 } else { writes },
            writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(status: &Value) -> Pod {
        let object = json!({
            "metadata": {"name": "podinfo-7f-x", "namespace": "test", "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "podinfo-7f", "uid": "rs", "controller": true},
            ]},
            "spec": {"containers": [{"name": "app"}, {"name": "proxy"}]},
            "status": status,
        });
        Pod::of(&serde_json::from_value(object).unwrap())
    }

    fn container(name: &str, ready: bool, state: &Value, restarts: i32) -> Value {
        json!({"name": name, "ready": ready, "restartCount": restarts, "state": state, "image": "", "imageID": ""})
    }

    #[test]
    fn a_pod_is_called_what_kubectl_calls_it() {
        let running = json!({"running": {}});
        let ready = pod(&json!({"phase": "Running", "containerStatuses": [
            container("app", true, &running, 1), container("proxy", true, &running, 2),
        ]}));
        assert_eq!((ready.state, ready.word.as_str(), ready.restarts), (PodState::Ready, "Running", 3));
        assert_eq!((ready.ready, ready.containers, ready.owner.as_str()), (2, 2, "rs"));
        let crashing = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let broken = pod(&json!({"phase": "Running", "containerStatuses": [container("app", false, &crashing, 9)]}));
        assert_eq!((broken.state, broken.word.as_str()), (PodState::Broken, "CrashLoopBackOff"));
        let pending = pod(&json!({"phase": "Pending"}));
        assert_eq!((pending.state, pending.word.as_str(), pending.containers), (PodState::Starting, "Pending", 2));
        let evicted = pod(&json!({"phase": "Failed", "reason": "Evicted"}));
        assert_eq!((evicted.state, evicted.word.as_str()), (PodState::Broken, "Evicted"));
    }

    #[test]
    fn only_what_bears_the_targets_name_is_kept() {
        let owned = |owner: &str| {
            let meta = json!({"ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": "1", "controller": true}]});
            may_belong(&serde_json::from_value(meta).unwrap(), "podinfo")
        };
        assert!(owned("podinfo") && owned("podinfo-7f") && owned("podinfo-primary-88"));
        assert!(!owned("podinfos-7f") && !owned("other"));
        assert!(!may_belong(&ObjectMeta::default(), "podinfo"));
    }

    #[test]
    fn a_route_keeps_its_weights_and_says_who_refuses_it() {
        let route: HttpRoute = serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "podinfo"},
            "spec": {"rules": [{"backendRefs": [
                {"name": "podinfo-primary", "port": 9898, "weight": 80},
                {"name": "podinfo-canary", "port": 9898, "weight": 20},
            ]}]},
            "status": {"parents": [{"parentRef": {"name": "gateway"}, "conditions": [
                {"type": "Accepted", "status": "False", "reason": "NotAllowed", "message": "no\nlistener"},
            ]}]},
        }))
        .unwrap();
        let route = Route::of(&route);
        assert_eq!((route.weight("podinfo-primary"), route.weight("podinfo-canary")), (Some(80), Some(20)));
        assert_eq!(route.problem.as_deref(), Some("NotAllowed: no listener"));
    }

    #[test]
    fn text_of_others_cannot_move_the_cursor() {
        assert_eq!(clean("a\u{1b}[2Jb\nc\u{202e}d\n"), "a [2Jb c d");
        let event =
            core::Event { message: Some(format!("{COMBINED}Halt\r")), count: Some(7), ..core::Event::default() };
        let line = EventLine::of(event);
        assert_eq!((line.text.as_str(), line.count, line.writes), ("Halt", 1, 7), "seven texts, this one once");
    }
}
