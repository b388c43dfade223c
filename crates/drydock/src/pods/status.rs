//! What a pod says about itself: container states, conditions, phase. Values only; the worker writes them.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{
    ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting, ContainerStatus, HostIP,
    PodCondition, PodIP, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::node::NODE_IP;
use crate::controllers::whole_seconds;

/// Where a container is in its life.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum State {
    /// Not running, and why.
    Waiting {
        /// The reason, one of Kubernetes' words.
        reason: &'static str,
        /// The explanation.
        message: Option<String>,
    },
    /// Running since a moment.
    Running {
        /// When it started.
        since: Timestamp,
    },
    /// Ended.
    Ended(End),
}

/// How a run of a container ended.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct End {
    pub(super) code: i32,
    pub(super) started: Timestamp,
    pub(super) finished: Timestamp,
}

/// One container as its status shows it.
#[derive(Clone, Debug)]
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) image: String,
    pub(super) state: State,
    pub(super) last: Option<End>,
    pub(super) restarts: i32,
    pub(super) started: bool,
    pub(super) ready: bool,
}

/// The pod's conditions with the moment each last changed.
#[derive(Clone, Debug, Default)]
pub(super) struct Conditions(Vec<PodCondition>);

/// The status of a pod whose containers are in these states.
pub(super) fn status(
    containers: &[Shown],
    conditions: &mut Conditions,
    phase: &str,
    ip: IpAddr,
    begun: Timestamp,
    now: Timestamp,
) -> PodStatus {
    let finished = matches!(phase, "Succeeded" | "Failed");
    let unready: Vec<_> = containers.iter().filter(|shown| !shown.ready).map(|shown| shown.name.as_str()).collect();
    let now = whole_seconds(now);
    conditions.set("PodScheduled", None, &now);
    conditions.set("Initialized", None, &now);
    let missing = match (unready.as_slice(), finished) {
        ([], false) => None,
        (_, true) => Some(("PodCompleted".to_owned(), None)),
        (names, false) => {
            let message = format!("containers with unready status: [{}]", names.join(" "));
            Some(("ContainersNotReady".to_owned(), Some(message)))
        }
    };
    conditions.set("ContainersReady", missing.clone(), &now);
    conditions.set("Ready", missing, &now);
    PodStatus {
        phase: Some(phase.into()),
        pod_ip: Some(ip.to_string()),
        pod_ips: Some(vec![PodIP { ip: ip.to_string() }]),
        host_ip: Some(NODE_IP.into()),
        host_ips: Some(vec![HostIP { ip: NODE_IP.into() }]),
        start_time: Some(whole_seconds(begun)),
        conditions: Some(conditions.0.clone()),
        container_statuses: Some(containers.iter().map(container).collect()),
        ..PodStatus::default()
    }
}

impl Conditions {
    fn set(&mut self, type_: &str, missing: Option<(String, Option<String>)>, now: &Time) {
        let value = if missing.is_none() { "True" } else { "False" };
        let (reason, message) = missing.unzip();
        let known = self.0.iter().find(|known| known.type_ == type_ && known.status == value);
        let since = known.and_then(|known| known.last_transition_time.clone()).unwrap_or_else(|| now.clone());
        let condition = PodCondition {
            type_: type_.into(),
            status: value.into(),
            reason,
            message: message.flatten(),
            last_transition_time: Some(since),
            ..PodCondition::default()
        };
        match self.0.iter_mut().find(|known| known.type_ == type_) {
            Some(known) => *known = condition,
            None => self.0.push(condition),
        }
    }
}

fn container(shown: &Shown) -> ContainerStatus {
    let state = match &shown.state {
        State::Waiting { reason, message } => ContainerState {
            waiting: Some(ContainerStateWaiting { reason: Some((*reason).into()), message: message.clone() }),
            ..ContainerState::default()
        },
        State::Running { since } => ContainerState {
            running: Some(ContainerStateRunning { started_at: Some(whole_seconds(*since)) }),
            ..ContainerState::default()
        },
        State::Ended(end) => terminated(end),
    };
    ContainerStatus {
        name: shown.name.clone(),
        image: shown.image.clone(),
        image_id: String::new(),
        ready: shown.ready,
        started: Some(shown.started),
        restart_count: shown.restarts,
        state: Some(state),
        last_state: Some(shown.last.as_ref().map(terminated).unwrap_or_default()),
        ..ContainerStatus::default()
    }
}

fn terminated(end: &End) -> ContainerState {
    let reason = if end.code == 0 { "Completed" } else { "Error" };
    ContainerState {
        terminated: Some(ContainerStateTerminated {
            exit_code: end.code,
            reason: Some(reason.into()),
            started_at: Some(whole_seconds(end.started)),
            finished_at: Some(whole_seconds(end.finished)),
            ..ContainerStateTerminated::default()
        }),
        ..ContainerState::default()
    }
}
