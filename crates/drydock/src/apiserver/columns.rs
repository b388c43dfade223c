//! The columns in which `kubectl get` shows built-in kinds, with the texts of the real server's printers.
//!
//! Those of the kinds that are about addresses are in `columns/network.rs`, of those that are only kept in
//! `columns/stored.rs`.

mod network;
mod stored;

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::meta;
use super::table::age;

pub(crate) use network::{ENDPOINT_SLICES, ENDPOINTS, INGRESSES, SERVICES};
pub(crate) use stored::{
    CRON_JOBS, JOBS, NETWORK_POLICIES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS,
    REPLICATION_CONTROLLERS, STATEFUL_SETS,
};

/// One column of a table.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) format: &'static str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub(crate) priority: u8,
    /// What it shows of an object, at a time.
    pub(crate) cell: fn(&Value, Timestamp) -> Value,
}

const fn text(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, kind: "string", format: "", priority: 0, cell }
}

const fn number(name: &'static str, cell: fn(&Value, Timestamp) -> Value) -> Column {
    Column { name, kind: "integer", format: "", priority: 0, cell }
}

const fn date(column: Column) -> Column {
    Column { kind: "date", ..column }
}

const fn wide(column: Column) -> Column {
    Column { priority: 1, ..column }
}

const NAME: Column =
    Column { name: "Name", kind: "string", format: "name", priority: 0, cell: |it, _| json!(meta::name(it)) };
const AGE: Column = text("Age", |it, now| since(it, "/metadata/creationTimestamp", now));
const CONTAINERS: Column = wide(text("Containers", |it, _| of_containers(it, "/name")));
const IMAGES: Column = wide(text("Images", |it, _| of_containers(it, "/image")));
const SELECTOR: Column = wide(text("Selector", |it, _| {
    json!(it.pointer("/spec/selector").map(super::selector::label_selector_text).unwrap_or_default())
}));

/// Of kinds that have no more to say.
pub(crate) static PLAIN: &[Column] = &[NAME, AGE];

pub(crate) static CONFIG_MAPS: &[Column] =
    &[NAME, text("Data", |it, _| json!(entries(it, "/data") + entries(it, "/binaryData"))), AGE];

pub(crate) static DAEMON_SETS: &[Column] = &[
    NAME,
    number("Desired", |it, _| count(it, "/status/desiredNumberScheduled")),
    number("Current", |it, _| count(it, "/status/currentNumberScheduled")),
    number("Ready", |it, _| count(it, "/status/numberReady")),
    number("Up-to-date", |it, _| count(it, "/status/updatedNumberScheduled")),
    number("Available", |it, _| count(it, "/status/numberAvailable")),
    text("Node Selector", |it, _| pairs(it, "/spec/template/spec/nodeSelector")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

/// Of kinds that nobody has thought about.
pub(crate) static DATED: &[Column] =
    &[NAME, date(text("Created At", |it, _| json!(meta::field(it, "creationTimestamp"))))];

/// Of custom resources that declare none.
pub(crate) static CUSTOM: &[Column] = &[NAME, date(AGE)];

pub(crate) static CONTROLLER_REVISIONS: &[Column] = &[
    NAME,
    text("Controller", |it, _| {
        let owners = list(it, "/metadata/ownerReferences");
        let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)));
        json!(owner.map_or_else(|| "<none>".to_owned(), owner_name))
    }),
    text("Revision", |it, _| count(it, "/revision")),
    AGE,
];

pub(crate) static DEPLOYMENTS: &[Column] = &[
    NAME,
    text("Ready", |it, _| json!(format!("{}/{}", count(it, "/status/readyReplicas"), count(it, "/spec/replicas")))),
    text("Up-to-date", |it, _| count(it, "/status/updatedReplicas")),
    text("Available", |it, _| count(it, "/status/availableReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) static EVENTS: &[Column] = &[
    text("Last Seen", |it, now| {
        since_first(it, &["/series/lastObservedTime", "/lastTimestamp", "/firstTimestamp", "/eventTime"], now)
    }),
    text("Type", |it, _| json!(meta::text(it, "/type"))),
    text("Reason", |it, _| json!(meta::text(it, "/reason"))),
    text("Object", |it, _| {
        let kind = meta::text(it, "/involvedObject/kind").to_ascii_lowercase();
        match meta::text(it, "/involvedObject/name") {
            "" => json!(kind),
            name => json!(format!("{kind}/{name}")),
        }
    }),
    wide(text("Subobject", |it, _| json!(meta::text(it, "/involvedObject/fieldPath")))),
    wide(text("Source", |it, _| {
        let first = |paths: [&str; 2]| paths.into_iter().map(|path| meta::text(it, path)).find(|text| !text.is_empty());
        let who = first(["/source/component", "/reportingComponent"]).unwrap_or_default();
        match first(["/source/host", "/reportingInstance"]) {
            Some(instance) => json!(format!("{who}, {instance}")),
            None => json!(who),
        }
    })),
    text("Message", |it, _| json!(meta::text(it, "/message").trim())),
    wide(text("First Seen", |it, now| since_first(it, &["/firstTimestamp", "/eventTime"], now))),
    wide(text("Count", |it, _| {
        let counted = it.pointer("/series/count").or_else(|| it.get("count")).and_then(Value::as_i64);
        json!(counted.filter(|count| *count > 0).unwrap_or(1))
    })),
    wide(NAME),
];

pub(crate) static AUTOSCALERS: &[Column] = &[
    NAME,
    text("Reference", |it, _| {
        let of = |field| meta::text(it, field);
        json!(format!("{}/{}", of("/spec/scaleTargetRef/kind"), of("/spec/scaleTargetRef/name")))
    }),
    text("Targets", |it, _| json!(targets(it))),
    text("MinPods", |it, _| json!(it.pointer("/spec/minReplicas").map_or("<unset>".to_owned(), Value::to_string))),
    text("MaxPods", |it, _| count(it, "/spec/maxReplicas")),
    text("Replicas", |it, _| count(it, "/status/currentReplicas")),
    AGE,
];

pub(crate) static LEASES: &[Column] =
    &[NAME, text("Holder", |it, _| json!(meta::text(it, "/spec/holderIdentity"))), AGE];

pub(crate) static NAMESPACES: &[Column] = &[NAME, text("Status", |it, _| json!(meta::text(it, "/status/phase"))), AGE];

pub(crate) static NODES: &[Column] = &[
    NAME,
    text("Status", |it, _| json!(node_status(it))),
    text("Roles", |it, _| {
        let labels = it.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten();
        listed(labels.filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")))
    }),
    AGE,
    text("Version", |it, _| json!(meta::text(it, "/status/nodeInfo/kubeletVersion"))),
    wide(text("Internal-IP", |it, _| node_address(it, "InternalIP"))),
    wide(text("External-IP", |it, _| node_address(it, "ExternalIP"))),
    wide(text("OS-Image", |it, _| node_info(it, "osImage"))),
    wide(text("Kernel-Version", |it, _| {
        let kernel = node_info(it, "kernelVersion");
        match meta::text(it, "/status/nodeInfo/architecture") {
            "" => kernel,
            architecture => json!(format!("{} ({architecture})", kernel.as_str().unwrap_or_default())),
        }
    })),
    wide(text("Container-Runtime", |it, _| node_info(it, "containerRuntimeVersion"))),
];

pub(crate) static PODS: &[Column] = &[
    NAME,
    text("Ready", |it, _| {
        let ready = list(it, "/status/containerStatuses").iter().filter(|status| is_up(status)).count();
        json!(format!("{ready}/{}", list(it, "/spec/containers").len()))
    }),
    text("Status", |it, _| json!(pod_status(it))),
    text("Restarts", |it, now| json!(restarts(it, now))),
    AGE,
    wide(text("IP", |it, _| json!(or_none(meta::text(it, "/status/podIP"))))),
    wide(text("Node", |it, _| json!(or_none(meta::text(it, "/spec/nodeName"))))),
    wide(text("Nominated Node", |it, _| json!(or_none(meta::text(it, "/status/nominatedNodeName"))))),
    wide(text("Readiness Gates", |it, _| {
        let gates = list(it, "/spec/readinessGates");
        let met = |gate: &&Value| {
            list(it, "/status/conditions").iter().any(|condition| {
                meta::text(condition, "/type") == meta::text(gate, "/conditionType")
                    && meta::text(condition, "/status") == "True"
            })
        };
        match gates {
            [] => json!("<none>"),
            gates => json!(format!("{}/{}", gates.iter().filter(met).count(), gates.len())),
        }
    })),
];

pub(crate) static REPLICA_SETS: &[Column] = &[
    NAME,
    number("Desired", |it, _| count(it, "/spec/replicas")),
    number("Current", |it, _| count(it, "/status/replicas")),
    number("Ready", |it, _| count(it, "/status/readyReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) static ROLE_BINDINGS: &[Column] = &[
    NAME,
    text("Role", |it, _| json!(format!("{}/{}", meta::text(it, "/roleRef/kind"), meta::text(it, "/roleRef/name")))),
    AGE,
    wide(text("Users", |it, _| subjects(it, "User"))),
    wide(text("Groups", |it, _| subjects(it, "Group"))),
    wide(text("ServiceAccounts", |it, _| subjects(it, "ServiceAccount"))),
];

const WANTED_REPLICAS: Column = number("Desired", |it, _| count(it, "/spec/replicas"));
const FOUND_REPLICAS: Column = number("Available", |it, _| count(it, "/status/replicas"));

pub(crate) static SCALES: &[Column] =
    &[text("Name", |it, _| json!(meta::name(it))), WANTED_REPLICAS, FOUND_REPLICAS, AGE];

/// Of the scales of custom resources.
pub(crate) static CUSTOM_SCALES: &[Column] = &[NAME, WANTED_REPLICAS, FOUND_REPLICAS, date(AGE)];

pub(crate) static SECRETS: &[Column] = &[
    NAME,
    text("Type", |it, _| json!(meta::text(it, "/type"))),
    text("Data", |it, _| json!(entries(it, "/data"))),
    AGE,
];

/// Who is bound, of one kind.
fn subjects(binding: &Value, kind: &str) -> Value {
    let chosen = list(binding, "/subjects").iter().filter(|subject| meta::text(subject, "/kind") == kind);
    let names = chosen.map(|subject| match meta::text(subject, "/namespace") {
        "" => meta::text(subject, "/name").to_owned(),
        namespace => format!("{namespace}/{}", meta::text(subject, "/name")),
    });
    json!(names.collect::<Vec<_>>().join(", "))
}

/// An owner with its kind and group, as `kubectl` names objects.
fn owner_name(owner: &Value) -> String {
    let kind = meta::text(owner, "/kind").to_ascii_lowercase();
    let name = meta::text(owner, "/name");
    match meta::text(owner, "/apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    }
}

fn node_address(node: &Value, kind: &str) -> Value {
    let found = list(node, "/status/addresses").iter().find(|it| meta::text(it, "/type") == kind);
    json!(or_none(found.map(|it| meta::text(it, "/address")).unwrap_or_default()))
}

fn node_info(node: &Value, field: &str) -> Value {
    match meta::text(node, &format!("/status/nodeInfo/{field}")) {
        "" => json!("<unknown>"),
        text => json!(text),
    }
}

/// A number; a missing one is zero.
fn count(object: &Value, pointer: &str) -> Value {
    object.pointer(pointer).filter(|value| value.is_number()).cloned().unwrap_or(json!(0))
}

fn entries(object: &Value, pointer: &str) -> usize {
    object.pointer(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "<none>" } else { text }
}

/// Texts with commas between them.
fn listed(texts: impl Iterator<Item = impl AsRef<str>>) -> Value {
    let joined = texts.map(|text| text.as_ref().to_owned()).collect::<Vec<_>>().join(",");
    json!(or_none(&joined))
}

/// Labels as `key=value`.
fn pairs(object: &Value, pointer: &str) -> Value {
    let labels = object.pointer(pointer).and_then(Value::as_object).into_iter().flatten();
    let mut labels: Vec<_> =
        labels.map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default())).collect();
    labels.sort_unstable();
    listed(labels.into_iter())
}

/// How long ago the first of these times was that is there.
fn since_first(object: &Value, pointers: &[&str], now: Timestamp) -> Value {
    let there = pointers.iter().find(|pointer| !meta::text(object, pointer).is_empty());
    since(object, there.copied().unwrap_or_default(), now)
}

fn since(object: &Value, pointer: &str, now: Timestamp) -> Value {
    match meta::text(object, pointer).parse::<Timestamp>() {
        Ok(time) => json!(age(time, now)),
        Err(_) => json!("<unknown>"),
    }
}

fn of_containers(object: &Value, field: &str) -> Value {
    listed(list(object, "/spec/template/spec/containers").iter().map(|container| meta::text(container, field)))
}

fn is_up(status: &Value) -> bool {
    status.get("ready") == Some(&Value::Bool(true)) && status.pointer("/state/running").is_some()
}

/// The phase, or what keeps the pod from it.
fn pod_status(pod: &Value) -> Cow<'_, str> {
    let (phase, reason) = (meta::text(pod, "/status/phase"), meta::text(pod, "/status/reason"));
    let mut shown = Cow::from(if reason.is_empty() { phase } else { reason });
    let statuses = list(pod, "/status/containerStatuses");
    for status in statuses.iter().rev() {
        let (waits, ended) = (meta::text(status, "/state/waiting/reason"), status.pointer("/state/terminated"));
        if !waits.is_empty() {
            shown = waits.into();
        } else if let Some(ended) = ended {
            let why = meta::text(ended, "/reason");
            let code = || format!("ExitCode:{}", count(ended, "/exitCode"));
            shown = if why.is_empty() { code().into() } else { why.into() };
        }
    }
    if shown == "Completed" && statuses.iter().any(is_up) {
        shown = "Running".into();
    }
    if meta::deleting(pod) && !matches!(phase, "Failed" | "Succeeded") {
        shown = "Terminating".into();
    }
    shown
}

/// How often containers were started again, and when last.
fn restarts(pod: &Value, now: Timestamp) -> String {
    let statuses = list(pod, "/status/containerStatuses");
    let total: i64 = statuses.iter().filter_map(|status| status.get("restartCount")?.as_i64()).sum();
    let ends = statuses.iter().map(|status| meta::text(status, "/lastState/terminated/finishedAt"));
    match ends.filter_map(|end| end.parse::<Timestamp>().ok()).max() {
        Some(last) if total > 0 => format!("{total} ({} ago)", age(last, now)),
        _ => total.to_string(),
    }
}

fn node_status(node: &Value) -> String {
    let ready = list(node, "/status/conditions").iter().find(|it| meta::text(it, "/type") == "Ready");
    let mut shown = match ready.map(|ready| meta::text(ready, "/status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if node.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        shown.push_str(",SchedulingDisabled");
    }
    shown
}

/// What is measured and what is wanted, per metric of an autoscaler: `cpu: 50%/80%`.
fn targets(autoscaler: &Value) -> String {
    let measured = list(autoscaler, "/status/currentMetrics");
    let shown = list(autoscaler, "/spec/metrics").iter().enumerate().map(|(at, metric)| {
        let kind = meta::text(metric, "/type");
        let mut field = kind.to_owned();
        if let Some(first) = field.get_mut(..1) {
            first.make_ascii_lowercase();
        }
        let current = measured.get(at).and_then(|it| it.pointer(&format!("/{field}/current")));
        let wanted = metric.pointer(&format!("/{field}/target"));
        let shared =
            ["External", "Object"].contains(&kind) && wanted.is_some_and(|it| it.get("averageValue").is_some());
        let shared = if shared { " (avg)" } else { "" };
        let (Some(now), Some(wanted)) = (amount(current), amount(wanted)) else {
            return format!("<unknown>/{}{shared}", amount(wanted).unwrap_or_else(|| "<auto>".to_owned()));
        };
        format!("{now}/{wanted}{shared}")
    });
    let names = list(autoscaler, "/spec/metrics").iter().map(|metric| meta::text(metric, "/resource/name"));
    let shown: Vec<_> = names
        .zip(shown)
        .map(|(name, shown)| if name.is_empty() { shown } else { format!("{name}: {shown}") })
        .collect();
    or_none(&shown.join(", ")).to_owned()
}

/// A metric's value: a share of the request, or a quantity.
fn amount(metric: Option<&Value>) -> Option<String> {
    let metric = metric?;
    if let Some(share) = metric.get("averageUtilization").and_then(Value::as_i64) {
        return Some(format!("{share}%"));
    }
    ["averageValue", "value"].iter().find_map(|field| Some(metric.get(field)?.as_str()?.to_owned()))
}
