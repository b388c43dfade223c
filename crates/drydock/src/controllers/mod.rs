//! The controllers of a cluster: Deployment, ReplicaSet, EndpointSlice, Service addresses and HorizontalPodAutoscaler.
//!
//! They know nothing of drydock's API server: all they have is a `kube::Client` and the clock, so they run on a real
//! one as well. Each kind is watched once ([`objects`]), every controller is a level-triggered function over those
//! shared maps ([`queue`]), and a settled cluster causes no request. Garbage collection and namespaces belong to the
//! API server's side of drydock.

mod deployment;
mod endpoint_slice;
mod hpa;
pub(crate) mod objects;
pub(crate) mod queue;
mod replica_set;
mod service;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::core::{Selector, SelectorExt};
use kube::{Client, ResourceExt};
use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use self::objects::{Key, Kind, Objects, controller_of};
use self::queue::Queue;
use crate::Clock;
use crate::seed::ALPHABET;

/// Starts every controller. They run until the set is dropped.
pub fn start(client: &Client, clock: Clock) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let deployments = Objects::<Deployment>::new(client.clone());
    let replica_sets = Objects::<ReplicaSet>::new(client.clone());
    let pods = Objects::<Pod>::new(client.clone());
    let services = Objects::<Service>::new(client.clone());
    let slices = Objects::<EndpointSlice>::new(client.clone());
    let autoscalers = Objects::<HorizontalPodAutoscaler>::new(client.clone());

    let queue = Queue::new(clock);
    wake_itself(&deployments, &queue);
    wake_controller(&replica_sets, "Deployment", &queue);
    wake_recreating(&pods, &replica_sets, &queue);
    let controller = deployment::DeploymentController {
        deployments: deployments.clone(),
        replica_sets: replica_sets.clone(),
        pods: pods.clone(),
        clock,
    };
    let all = (deployments.clone(), replica_sets.clone(), pods.clone());
    tasks.spawn(async move {
        tokio::join!(all.0.listed(), all.1.listed(), all.2.listed());
        queue.drive(controller).await;
    });

    let queue = Queue::new(clock);
    wake_itself(&replica_sets, &queue);
    wake_controller(&pods, "ReplicaSet", &queue);
    let controller =
        replica_set::ReplicaSetController { replica_sets: replica_sets.clone(), pods: pods.clone(), clock };
    let all = (replica_sets.clone(), pods.clone());
    tasks.spawn(async move {
        tokio::join!(all.0.listed(), all.1.listed());
        queue.drive(controller).await;
    });

    let queue = Queue::new(clock);
    wake_itself(&services, &queue);
    endpoint_slice::wake_by_slice(&slices, &queue);
    endpoint_slice::wake_by_pod(&pods, &services, &queue);
    let controller = endpoint_slice::EndpointSliceController {
        services: services.clone(),
        slices: slices.clone(),
        pods: pods.clone(),
    };
    let all = (services.clone(), slices.clone(), pods.clone());
    tasks.spawn(async move {
        tokio::join!(all.0.listed(), all.1.listed(), all.2.listed());
        queue.drive(controller).await;
    });

    let queue = Queue::new(clock);
    wake_itself(&services, &queue);
    tasks.spawn(queue.drive(service::ServiceController { services: services.clone() }));

    let queue = Queue::new(clock);
    wake_itself(&autoscalers, &queue);
    hpa::wake_by_target(&deployments, &autoscalers, &queue);
    hpa::wake_by_pod(&pods, &autoscalers, &queue);
    let controller = hpa::HpaController::new(autoscalers.clone(), deployments.clone(), pods.clone(), clock);
    let all = (autoscalers.clone(), deployments.clone(), pods.clone());
    tasks.spawn(async move {
        tokio::join!(all.0.listed(), all.1.listed(), all.2.listed());
        queue.drive(controller).await;
    });

    tasks.spawn(deployments.run(clock));
    tasks.spawn(replica_sets.run(clock));
    tasks.spawn(pods.run(clock));
    tasks.spawn(services.run(clock));
    tasks.spawn(slices.run(clock));
    tasks.spawn(autoscalers.run(clock));
    tasks
}

/// A changed object is looked at again.
pub(crate) fn wake_itself<K: Kind>(objects: &Objects<K>, queue: &Queue) {
    let queue = queue.clone();
    objects.on_change(move |before, after| {
        if let Some(object) = after.or(before) {
            queue.add(Key::of(object));
        }
    });
}

/// A changed object wakes the object that controls it.
fn wake_controller<K: Kind>(objects: &Objects<K>, kind: &'static str, queue: &Queue) {
    let queue = queue.clone();
    objects.on_change(move |before, after| {
        if let Some(object) = after.or(before)
            && let Some(owner) = controller_of(object).filter(|owner| owner.kind == kind)
        {
            queue.add(Key::new(object.namespace().unwrap_or_default(), &owner.name));
        }
    });
}

/// A pod that is gone wakes its Deployment: re-creation waits for the last one.
fn wake_recreating(pods: &Objects<Pod>, replica_sets: &Objects<ReplicaSet>, queue: &Queue) {
    let (replica_sets, queue) = (replica_sets.clone(), queue.clone());
    pods.on_change(move |before, after| {
        if let (Some(pod), None) = (before, after)
            && let Some(owner) = controller_of(pod)
        {
            let namespace = pod.namespace().unwrap_or_default();
            let set = replica_sets.get(&Key::new(namespace.clone(), &owner.name));
            if let Some(owner) = set.as_deref().and_then(controller_of) {
                queue.add(Key::new(namespace, &owner.name));
            }
        }
    });
}

/// The time as objects carry it: whole seconds, so that what was written equals what is read back.
pub(crate) fn stamp(clock: &Clock) -> Time {
    whole_seconds(clock.now())
}

pub(crate) fn whole_seconds(time: Timestamp) -> Time {
    Time(Timestamp::from_second(time.as_second()).unwrap_or(time))
}

/// A name part that looks generated but is the same for the same bytes, in the letters Kubernetes generates names of.
fn hashed_name(bytes: &[u8], length: usize) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(length).map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()])).collect()
}

/// Whether labels satisfy a selector; an invalid selector selects nothing.
fn selects(
    selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector,
    object: &impl ResourceExt,
) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(object.labels()))
}

/// The time a pod became ready, if it is.
fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready" && condition.status == "True")?;
    Some(ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

/// Whether a pod has ended for good.
pub(crate) fn is_finished(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded"))
}
