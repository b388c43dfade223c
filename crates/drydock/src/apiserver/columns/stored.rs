//! Columns of the kinds that drydock keeps and does nothing for: batch work, volumes, policies.

use serde_json::{Value, json};

use super::super::meta;
use super::super::selector::label_selector_text;
use super::{AGE, CONTAINERS, Column, IMAGES, NAME, SELECTOR, count, list, listed, or_none, pairs, since, text, wide};

const UNSET: &str = "<unset>";

const ATTRIBUTES_CLASS: Column =
    text("VolumeAttributesClass", |it, _| json!(or_unset(meta::text(it, "/spec/volumeAttributesClassName"))));
const STATUS: Column =
    text("Status", |it, _| json!(if meta::deleting(it) { "Terminating" } else { meta::text(it, "/status/phase") }));
const STORAGE_CLASS: Column = text("StorageClass", |it, _| json!(meta::text(it, "/spec/storageClassName")));
const VOLUME_MODE: Column = wide(text("VolumeMode", |it, _| json!(or_unset(meta::text(it, "/spec/volumeMode")))));

pub(crate) static CRON_JOBS: &[Column] = &[
    NAME,
    text("Schedule", |it, _| json!(meta::text(it, "/spec/schedule"))),
    text("Timezone", |it, _| json!(or_none(meta::text(it, "/spec/timeZone")))),
    text("Suspend", |it, _| {
        json!(if it.pointer("/spec/suspend") == Some(&Value::Bool(true)) { "True" } else { "False" })
    }),
    text("Active", |it, _| json!(list(it, "/status/active").len())),
    text("Last Schedule", |it, now| match meta::text(it, "/status/lastScheduleTime") {
        "" => json!("<none>"),
        _ => since(it, "/status/lastScheduleTime", now),
    }),
    AGE,
    wide(text("Containers", |it, _| of_job(it, "/name"))),
    wide(text("Images", |it, _| of_job(it, "/image"))),
    wide(text("Selector", |it, _| {
        json!(it.pointer("/spec/jobTemplate/spec/selector").map_or("<none>".into(), label_selector_text))
    })),
];

pub(crate) static JOBS: &[Column] = &[
    NAME,
    text("Status", |_, _| json!("Running")),
    text("Completions", |it, _| json!(format!("{}/{}", count(it, "/status/succeeded"), wanted(it)))),
    text("Duration", |it, now| match meta::text(it, "/status/startTime") {
        "" => json!(""),
        _ => since(it, "/status/startTime", now),
    }),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

pub(crate) static NETWORK_POLICIES: &[Column] = &[
    NAME,
    text("Pod-Selector", |it, _| json!(it.pointer("/spec/podSelector").map_or("<none>".into(), label_selector_text))),
    AGE,
];

pub(crate) static PERSISTENT_VOLUME_CLAIMS: &[Column] = &[
    NAME,
    STATUS,
    text("Volume", |it, _| json!(meta::text(it, "/spec/volumeName"))),
    // What it got, not what it asks for.
    text("Capacity", |it, _| json!(meta::text(it, "/status/capacity/storage"))),
    text("Access Modes", |it, _| access_modes(it, "/status/accessModes")),
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    AGE,
    VOLUME_MODE,
];

pub(crate) static PERSISTENT_VOLUMES: &[Column] = &[
    NAME,
    text("Capacity", |it, _| json!(meta::text(it, "/spec/capacity/storage"))),
    text("Access Modes", |it, _| access_modes(it, "/spec/accessModes")),
    text("Reclaim Policy", |it, _| json!(meta::text(it, "/spec/persistentVolumeReclaimPolicy"))),
    STATUS,
    text("Claim", |it, _| {
        let claim = |field: &str| meta::text(it, &format!("/spec/claimRef/{field}"));
        match claim("name") {
            "" => json!(""),
            name => json!(format!("{}/{name}", claim("namespace"))),
        }
    }),
    STORAGE_CLASS,
    ATTRIBUTES_CLASS,
    text("Reason", |it, _| json!(meta::text(it, "/status/reason"))),
    AGE,
    VOLUME_MODE,
];

pub(crate) static POD_DISRUPTION_BUDGETS: &[Column] = &[
    NAME,
    text("Min Available", |it, _| limit(it, "/spec/minAvailable")),
    text("Max Unavailable", |it, _| limit(it, "/spec/maxUnavailable")),
    text("Allowed Disruptions", |it, _| count(it, "/status/disruptionsAllowed")),
    AGE,
];

pub(crate) static REPLICATION_CONTROLLERS: &[Column] = &[
    NAME,
    text("Desired", |it, _| count(it, "/spec/replicas")),
    text("Current", |it, _| count(it, "/status/replicas")),
    text("Ready", |it, _| count(it, "/status/readyReplicas")),
    AGE,
    CONTAINERS,
    IMAGES,
    wide(text("Selector", |it, _| pairs(it, "/spec/selector"))),
];

pub(crate) static STATEFUL_SETS: &[Column] = &[
    NAME,
    text("Ready", |it, _| json!(format!("{}/{}", count(it, "/status/readyReplicas"), count(it, "/spec/replicas")))),
    AGE,
    CONTAINERS,
    IMAGES,
];

fn or_unset(text: &str) -> &str {
    if text.is_empty() { UNSET } else { text }
}

fn access_modes(object: &Value, pointer: &str) -> Value {
    let modes = list(object, pointer).iter().filter_map(|mode| {
        Some(match mode.as_str()? {
            "ReadWriteOnce" => "RWO",
            "ReadOnlyMany" => "ROX",
            "ReadWriteMany" => "RWX",
            "ReadWriteOncePod" => "RWOP",
            _ => return None,
        })
    });
    json!(modes.collect::<Vec<_>>().join(","))
}

/// A number of pods, or a share of them.
fn limit(object: &Value, pointer: &str) -> Value {
    match object.pointer(pointer) {
        Some(Value::String(share)) => json!(share),
        Some(number) => json!(number.to_string()),
        None => json!("N/A"),
    }
}

/// How often a Job is to succeed.
fn wanted(job: &Value) -> String {
    let number = |pointer: &str| job.pointer(pointer).and_then(Value::as_i64);
    match (number("/spec/completions"), number("/spec/parallelism")) {
        (Some(completions), _) => completions.to_string(),
        (None, Some(parallelism)) if parallelism > 1 => format!("1 of {parallelism}"),
        (None, _) => "1".to_owned(),
    }
}

fn of_job(cron_job: &Value, field: &str) -> Value {
    let containers = list(cron_job, "/spec/jobTemplate/spec/template/spec/containers");
    listed(containers.iter().map(|container| meta::text(container, field)))
}
