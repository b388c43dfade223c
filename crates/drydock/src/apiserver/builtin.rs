//! What built-in resources do beyond the rules that all resources share, as one table.
//!
//! This is the only place that knows resources by name. A resource that is not listed has no rules of its own.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;

use super::affinity_rules::resolve_label_keys;
use super::autoscaler_rules::{autoscaler, autoscaler_status};
use super::columns::{self, Column};
use super::crd;
use super::data_rules::{changed_secret, config_map, encode_strings, immutable_data, secret, unusable_secret};
use super::endpoint_rules;
use super::error::{Cause, Hitch};
use super::meta;
use super::namespace_rules;
use super::pod_rules;
use super::pod_warnings;
use super::rbac_rules;
use super::review;
use super::rules::{
    admit, event, hold_back, immutable, lease, lease_as_offered, long_hostname, long_name, pod_grace, pod_spec_stays,
    quality_of_service, selector_stays,
};
use super::server::Server;
use super::services;
use super::store::{Change, Id, State};
use super::validate::NameRule;
use super::workload_rules::{changed_deployment, daemon_set, deployment, replica_set};

/// When a kind looks at the whole object once more because it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Second {
    Never,
    BeforeTheChange,
    AfterTheChange,
    /// Before, with all rules for one state, and at the change of metadata only then.
    AllBeforeTheChange,
}

/// The rules of one resource.
pub(crate) struct Behaviour {
    /// Whether `metadata.generation` counts changes of the desired state.
    pub(crate) generation: bool,
    /// Whether it counts changes of the annotations too.
    pub(crate) annotations_count: bool,
    /// Whether it counts changes of the labels too.
    pub(crate) labels_count: bool,
    /// Whether a status sent along with a new object is kept.
    pub(crate) status_on_create: bool,
    /// Metadata that a write of the status cannot change.
    pub(crate) fixed_by_status: &'static [&'static str],
    /// Whether a PUT to a name that does not exist creates it.
    pub(crate) create_on_update: bool,
    /// Whether a PUT may leave out the version it replaces.
    pub(crate) blind_update: bool,
    pub(crate) name: NameRule,
    /// Fields a field selector may name, beyond those of every resource.
    pub(crate) selectable: &'static [&'static str],
    /// Columns of the Table output.
    pub(crate) columns: &'static [Column],
    /// Whether nobody has thought of a Table for it: one without rows has no list of them either.
    pub(crate) unprinted: bool,
    /// Answers an object instead of storing it.
    pub(crate) review: Option<review::Answer>,
    /// What whoever writes an object should know.
    pub(crate) notice: &'static str,
    /// What whoever creates this object should know.
    pub(crate) warn: fn(&Value) -> Option<String>,
    /// What whoever creates this object, or makes it of another, should know.
    pub(crate) warn_changed: fn(Option<&Value>, &Value) -> Vec<String>,
    /// Completes an object as it is read, in the name of whoever wrote it.
    pub(crate) complete: fn(&mut Value),
    /// Gives an object what it needs before anybody looks at it: its old state, what else is stored, whether it is only
    /// tried.
    pub(crate) begin: fn(&mut Value, Option<&Value>, &State, bool) -> Result<(), Hitch>,
    /// Lists that are one field each and hold amounts.
    pub(crate) amounts: &'static [&'static str],
    /// Takes away what is stored and never shown.
    pub(crate) hide: fn(&mut Value),
    /// Completes a new object, given what else is stored.
    pub(crate) prepare: fn(&mut Value, &State, Timestamp),
    /// Completes a changed object, given its old state and the sub-resource that is written.
    pub(crate) prepare_update: fn(&mut Value, &Value, &str),
    /// Whether `check` says everything, also which fields must be there.
    pub(crate) complete_rules: bool,
    /// Maps of which the rules for a change tell an empty one from none.
    pub(crate) told_apart: &'static [&'static str],
    /// When metadata is looked at again on behalf of the kind.
    pub(crate) second: Second,
    /// Whether the kind itself does not ask what of the metadata may change, so that it is asked once.
    pub(crate) fixed_once: bool,
    /// Rules for one state.
    pub(crate) check: fn(&Value, &mut Vec<Cause>),
    /// Rules for a change, from the first to the second.
    pub(crate) check_update: fn(&Value, &Value, &mut Vec<Cause>),
    /// Rules for a new object, or for a change from what was before.
    pub(crate) check_whole: fn(Option<&Value>, &Value, &mut Vec<Cause>),
    /// Rules for what is written as a status.
    pub(crate) check_status: fn(&Value, &mut Vec<Cause>),
    /// Marks an object that somebody deletes, at a time, where that is not done as usual.
    pub(crate) mark: Option<fn(&mut Value, &str)>,
    /// How many seconds an object that is deleted may take to go; `None` means it goes at once.
    pub(crate) grace: Option<fn(&Value) -> i64>,
    /// Whether its objects own no others, so that nothing is asked about these when one is deleted.
    pub(crate) owns_nothing: bool,
    /// Whether a deletion is answered with the object that is gone.
    pub(crate) shows_deleted: bool,
    /// What must be gone before an object of this resource can go.
    pub(crate) contents: Option<Contents>,
    /// Told about every write of the resource, while the store is locked.
    pub(crate) committed: fn(&Server, &mut State, &Arc<Change>),
    /// Does what follows from a write, after everybody was told about it.
    pub(crate) followed: fn(&Server, &mut State, &Arc<Change>),
    /// How long an object stays after it was last written; for ever if nothing is said.
    pub(crate) stays: Option<Duration>,
}

/// An object that holds others, as a namespace does.
pub(crate) struct Contents {
    /// The objects inside.
    pub(crate) list: fn(&State, &Value) -> Vec<Id>,
    /// Lets go of it, once it is empty.
    pub(crate) release: fn(&mut Value),
}

/// No rules.
const PLAIN: Behaviour = Behaviour {
    generation: false,
    annotations_count: false,
    labels_count: false,
    status_on_create: false,
    fixed_by_status: &[],
    create_on_update: false,
    blind_update: true,
    name: NameRule::Subdomain,
    selectable: &[],
    columns: columns::PLAIN,
    unprinted: false,
    review: None,
    notice: "",
    warn: |_| None,
    warn_changed: |_, _| Vec::new(),
    complete: |_| {},
    begin: |_, _, _, _| Ok(()),
    amounts: &[],
    hide: |_| {},
    prepare: |_, _, _| {},
    prepare_update: |_, _, _| {},
    complete_rules: false,
    told_apart: &[],
    second: Second::Never,
    fixed_once: false,
    check: |_, _| {},
    check_update: |_, _, _| {},
    check_whole: |_, _, _| {},
    check_status: |_, _| {},
    mark: None,
    grace: None,
    owns_nothing: false,
    shows_deleted: false,
    contents: None,
    committed: |_, _, _| {},
    followed: |_, _, _| {},
    stays: None,
};

/// The rules of custom resources.
pub(crate) static CUSTOM: Behaviour = Behaviour {
    generation: true,
    blind_update: false,
    columns: columns::CUSTOM,
    followed: crd::instance_followed,
    ..PLAIN
};

static OTHERS: Behaviour = PLAIN;

/// Roles and their bindings are kept, as charts expect, but nothing reads them.
const UNENFORCED: Behaviour = Behaviour {
    notice: "drydock stores roles and bindings and does not enforce them: everybody may do everything",
    ..PLAIN
};

const ROLE: Behaviour = Behaviour {
    columns: columns::DATED,
    unprinted: true,
    name: NameRule::PathSegment,
    create_on_update: true,
    complete: rbac_rules::show_rules,
    complete_rules: true,
    second: Second::AllBeforeTheChange,
    ..UNENFORCED
};

const BINDING: Behaviour = Behaviour {
    columns: columns::ROLE_BINDINGS,
    name: NameRule::PathSegment,
    create_on_update: true,
    complete: rbac_rules::complete_binding,
    complete_rules: true,
    second: Second::AllBeforeTheChange,
    check_update: rbac_rules::role_stays,
    ..UNENFORCED
};

/// Kinds that charts bring and that `kubectl apply --prune` looks for. Nothing acts on them.
const STORED: Behaviour =
    Behaviour { notice: "drydock stores this kind and does nothing for it: no pods, no volumes, no rules", ..PLAIN };

/// The same, of kinds whose changes are counted.
const COUNTED: Behaviour = Behaviour { generation: true, ..STORED };

/// Questions whether somebody may do something.
const ACCESS: Behaviour = Behaviour { review: Some(review::access), ..PLAIN };

static BEHAVIOURS: &[(&str, Behaviour)] = &[
    ("clusterrolebindings.rbac.authorization.k8s.io", Behaviour { check: rbac_rules::cluster_role_binding, ..BINDING }),
    ("clusterroles.rbac.authorization.k8s.io", Behaviour { check: rbac_rules::cluster_role, ..ROLE }),
    (
        "controllerrevisions.apps",
        Behaviour {
            columns: columns::CONTROLLER_REVISIONS,
            complete_rules: true,
            second: Second::BeforeTheChange,
            check: |revision, causes| {
                pod_rules::non_negative(revision, "", "revision", causes);
                // Of an object that has a version already it is enough that the data does not change.
                let new = meta::field(revision, "resourceVersion").is_empty();
                match revision.get("data").unwrap_or(&Value::Null) {
                    Value::Null if new => causes.push(Cause::required("data", "data is mandatory")),
                    Value::Object(_) => {}
                    _ if new => causes.push(Cause::required("data", "data must be a valid JSON object")),
                    _ => {}
                }
            },
            check_update: |old, new, causes| immutable(old, new, "/data", causes),
            ..PLAIN
        },
    ),
    ("cronjobs.batch", Behaviour { columns: columns::CRON_JOBS, ..COUNTED }),
    (
        "customresourcedefinitions.apiextensions.k8s.io",
        Behaviour {
            columns: columns::DATED,
            unprinted: true,
            generation: true,
            blind_update: false,
            complete: crd::complete,
            prepare: crd::prepare,
            prepare_update: crd::prepare_update,
            complete_rules: true,
            check_whole: crd::check,
            check_status: crd::check_status,
            warn_changed: crd::unrecognized_formats,
            mark: Some(crd::mark),
            committed: crd::committed,
            followed: crd::followed,
            ..PLAIN
        },
    ),
    (
        "daemonsets.apps",
        Behaviour {
            columns: columns::DAEMON_SETS,
            generation: true,
            warn_changed: pod_warnings::of_daemon_set,
            complete_rules: true,
            check: daemon_set,
            check_update: selector_stays,
            ..PLAIN
        },
    ),
    (
        "deployments.apps",
        Behaviour {
            generation: true,
            annotations_count: true,
            fixed_by_status: &["labels"],
            columns: columns::DEPLOYMENTS,
            warn: long_name,
            warn_changed: pod_warnings::of_workload,
            complete_rules: true,
            check: deployment,
            check_update: changed_deployment,
            ..PLAIN
        },
    ),
    ("endpoints", Behaviour { create_on_update: true, columns: columns::ENDPOINTS, ..PLAIN }),
    (
        "endpointslices.discovery.k8s.io",
        Behaviour {
            generation: true,
            labels_count: true,
            fixed_once: true,
            complete: endpoint_rules::show_empty,
            columns: columns::ENDPOINT_SLICES,
            complete_rules: true,
            second: Second::BeforeTheChange,
            check_whole: endpoint_rules::slice,
            check_update: endpoint_rules::type_stays,
            ..PLAIN
        },
    ),
    (
        "events",
        Behaviour {
            create_on_update: true,
            selectable: &[
                "involvedObject.kind",
                "involvedObject.namespace",
                "involvedObject.name",
                "involvedObject.uid",
                "involvedObject.apiVersion",
                "involvedObject.resourceVersion",
                "involvedObject.fieldPath",
                "reason",
                "reportingComponent",
                "source",
                "type",
            ],
            columns: columns::EVENTS,
            name: NameRule::PathSegment,
            complete_rules: true,
            check: event,
            owns_nothing: true,
            stays: Some(Duration::from_secs(3600)),
            ..PLAIN
        },
    ),
    (
        "horizontalpodautoscalers.autoscaling",
        Behaviour {
            columns: columns::AUTOSCALERS,
            complete_rules: true,
            check: autoscaler,
            check_status: autoscaler_status,
            amounts: &["/spec/metrics", "/status/currentMetrics"],
            ..PLAIN
        },
    ),
    ("ingresses.networking.k8s.io", Behaviour { generation: true, columns: columns::INGRESSES, ..PLAIN }),
    ("jobs.batch", Behaviour { columns: columns::JOBS, ..COUNTED }),
    (
        "leases.coordination.k8s.io",
        Behaviour {
            create_on_update: true,
            blind_update: false,
            columns: columns::LEASES,
            prepare: |lease, _, _| lease_as_offered(lease),
            prepare_update: |lease, _, _| lease_as_offered(lease),
            check: lease,
            ..PLAIN
        },
    ),
    (
        "namespaces",
        Behaviour {
            name: NameRule::Label,
            selectable: &["status.phase"],
            columns: columns::NAMESPACES,
            complete: namespace_rules::label_with_name,
            prepare: |namespace, _, _| namespace_rules::begin(namespace),
            prepare_update: namespace_rules::keep,
            complete_rules: true,
            second: Second::AllBeforeTheChange,
            check_whole: namespace_rules::holders,
            check_status: namespace_rules::phase,
            mark: Some(namespace_rules::mark),
            contents: Some(Contents {
                list: |state, namespace| state.inside(meta::name(namespace)),
                release: |namespace| {
                    meta::child(namespace, "spec").shift_remove("finalizers");
                },
            }),
            ..PLAIN
        },
    ),
    ("localsubjectaccessreviews.authorization.k8s.io", ACCESS),
    ("networkpolicies.networking.k8s.io", Behaviour { columns: columns::NETWORK_POLICIES, ..COUNTED }),
    (
        "nodes",
        Behaviour { columns: columns::NODES, status_on_create: true, selectable: &["spec.unschedulable"], ..PLAIN },
    ),
    ("persistentvolumeclaims", Behaviour { columns: columns::PERSISTENT_VOLUME_CLAIMS, prepare: pending, ..STORED }),
    ("persistentvolumes", Behaviour { columns: columns::PERSISTENT_VOLUMES, prepare: pending, ..STORED }),
    ("poddisruptionbudgets.policy", Behaviour { columns: columns::POD_DISRUPTION_BUDGETS, ..COUNTED }),
    (
        "pods",
        Behaviour {
            generation: true,
            fixed_by_status: &["deletionTimestamp", "ownerReferences"],
            selectable: &[
                "spec.nodeName",
                "spec.restartPolicy",
                "spec.schedulerName",
                "spec.serviceAccountName",
                "status.phase",
                "status.podIP",
                "status.nominatedNodeName",
            ],
            columns: columns::PODS,
            warn: long_hostname,
            warn_changed: pod_warnings::of_pod,
            prepare: |pod, _, now| {
                admit(pod);
                resolve_label_keys(pod);
                hold_back(pod, now);
                let class = quality_of_service(pod);
                meta::child(pod, "status").insert("qosClass".into(), class.into());
            },
            complete_rules: true,
            second: Second::BeforeTheChange,
            prepare_update: |pod, old, _| {
                admit(pod);
                if let Some(class) = old.pointer("/status/qosClass") {
                    meta::child(pod, "status").entry("qosClass").or_insert(class.clone());
                }
            },
            check: pod_rules::pod,
            check_update: pod_spec_stays,
            grace: Some(pod_grace),
            shows_deleted: true,
            ..PLAIN
        },
    ),
    (
        "replicasets.apps",
        Behaviour {
            generation: true,
            columns: columns::REPLICA_SETS,
            warn: long_name,
            warn_changed: pod_warnings::of_workload,
            complete_rules: true,
            check: replica_set,
            check_update: selector_stays,
            ..PLAIN
        },
    ),
    ("replicationcontrollers", Behaviour { columns: columns::REPLICATION_CONTROLLERS, ..COUNTED }),
    ("rolebindings.rbac.authorization.k8s.io", Behaviour { check: rbac_rules::role_binding, ..BINDING }),
    ("roles.rbac.authorization.k8s.io", Behaviour { check: rbac_rules::role, ..ROLE }),
    ("serviceaccounts", Behaviour { warn_changed: account_warnings, shows_deleted: true, ..PLAIN }),
    ("selfsubjectaccessreviews.authorization.k8s.io", ACCESS),
    ("selfsubjectreviews.authentication.k8s.io", Behaviour { review: Some(review::identity), ..PLAIN }),
    ("selfsubjectrulesreviews.authorization.k8s.io", Behaviour { review: Some(review::rules), ..PLAIN }),
    ("subjectaccessreviews.authorization.k8s.io", ACCESS),
    (
        "secrets",
        Behaviour {
            selectable: &["type"],
            columns: columns::SECRETS,
            told_apart: &["data"],
            complete: encode_strings,
            second: Second::AfterTheChange,
            check: secret,
            check_update: changed_secret,
            warn_changed: unusable_secret,
            ..PLAIN
        },
    ),
    ("statefulsets.apps", Behaviour { columns: columns::STATEFUL_SETS, ..COUNTED }),
    (
        "configmaps",
        Behaviour {
            columns: columns::CONFIG_MAPS,
            // An empty map of data is what it has by default.
            told_apart: &["binaryData"],
            second: Second::AfterTheChange,
            check: config_map,
            check_update: immutable_data,
            ..PLAIN
        },
    ),
    (
        "services",
        Behaviour {
            name: NameRule::Label,
            create_on_update: true,
            selectable: &["spec.clusterIP", "spec.type"],
            columns: columns::SERVICES,
            warn_changed: services::warnings,
            begin: services::begin,
            hide: services::hide,
            complete_rules: true,
            check_whole: services::service,
            check_status: services::load_balancer,
            shows_deleted: true,
            ..PLAIN
        },
    ),
];

/// A volume, or the claim of one, begins by waiting.
fn pending(volume: &mut Value, _: &State, _: Timestamp) {
    meta::child(volume, "status").insert("phase".into(), "Pending".into());
}

/// What whoever writes a ServiceAccount should know.
fn account_warnings(old: Option<&Value>, account: &Value) -> Vec<String> {
    let note = "kubernetes.io/enforce-mountable-secrets";
    let held = |account: &Value| account.pointer("/metadata/annotations").and_then(|notes| notes.get(note)).is_some();
    let told = held(account) && !old.is_some_and(held);
    let why = "deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets";
    told.then(|| format!("metadata.annotations[{note}]: {why}")).into_iter().collect()
}

/// The rules of a built-in resource.
pub(crate) fn behaviour(id: &str) -> &'static Behaviour {
    BEHAVIOURS.iter().find(|(known, _)| *known == id).map_or(&OTHERS, |(_, behaviour)| behaviour)
}
