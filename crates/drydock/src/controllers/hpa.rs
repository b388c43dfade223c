//! The HorizontalPodAutoscaler: scales Deployments by a utilization that a script writes down.
//!
//! There are no real CPUs to measure here. The utilization is an annotation on the autoscaler, or on the pods, whose
//! mean is taken: `drydock.seaway.dev/cpu-utilization: "150"`. Without one the autoscaler only keeps its bounds.
//! Scaling down waits for the stabilization window; scaling policies, and targets other than Deployments, are absent.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, HorizontalPodAutoscalerSpec,
    HorizontalPodAutoscalerStatus, MetricStatus, MetricValueStatus, ResourceMetricStatus,
};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::objects::{Key, Objects};
use super::queue::{Queue, Reconcile};
use super::{is_finished, selects, stamp};
use crate::Clock;

/// What every annotation that scripts a metric begins with.
const PREFIX: &str = "drydock.seaway.dev/";
/// How often a steady overload may scale again, as the real controller's sync period.
const PERIOD: Duration = Duration::from_secs(15);
/// How far utilization may be off its target before anything happens.
const TOLERANCE: f64 = 0.1;
/// How long a lower recommendation must stand before it is followed, where the autoscaler does not say.
const DEFAULT_DOWN_WINDOW: i32 = 300;

/// Scales Deployments between the bounds of their autoscalers.
pub(super) struct HpaController {
    autoscalers: Objects<HorizontalPodAutoscaler>,
    deployments: Objects<Deployment>,
    pods: Objects<Pod>,
    clock: Clock,
    /// What was recommended when, as far back as the stabilization window reaches.
    history: Mutex<BTreeMap<Key, Vec<(Timestamp, i32)>>>,
}

/// A changed Deployment wakes the autoscalers that scale it.
pub(super) fn wake_by_target(
    deployments: &Objects<Deployment>,
    autoscalers: &Objects<HorizontalPodAutoscaler>,
    queue: &Queue,
) {
    let (autoscalers, queue) = (autoscalers.clone(), queue.clone());
    deployments.on_change(move |before, after| {
        let Some(deployment) = after.or(before) else { return };
        for autoscaler in autoscalers.in_namespace(&deployment.namespace().unwrap_or_default()) {
            if target_name(&autoscaler) == deployment.metadata.name.as_deref() {
                queue.add(Key::of(autoscaler.as_ref()));
            }
        }
    });
}

/// A pod with a scripted metric wakes the autoscalers of its namespace.
pub(super) fn wake_by_pod(pods: &Objects<Pod>, autoscalers: &Objects<HorizontalPodAutoscaler>, queue: &Queue) {
    let (autoscalers, queue) = (autoscalers.clone(), queue.clone());
    pods.on_change(move |before, after| {
        let scripted = |pod: &Pod| pod.annotations().keys().any(|key| key.starts_with(PREFIX));
        let Some(pod) = after.or(before) else { return };
        if before.into_iter().chain(after).any(scripted) {
            for autoscaler in autoscalers.in_namespace(&pod.namespace().unwrap_or_default()) {
                queue.add(Key::of(autoscaler.as_ref()));
            }
        }
    });
}

impl Reconcile for HpaController {
    const NAME: &'static str = "hpa";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(autoscaler) = self.autoscalers.get(key) else {
            self.history.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            return Ok(None);
        };
        let spec = &autoscaler.spec;
        if autoscaler.metadata.deletion_timestamp.is_some() {
            return Ok(None);
        }
        let mut judgement = self.judge(key, &autoscaler, spec);
        if let Some(replicas) = judgement.scale_to {
            let target = Key::new(&key.namespace, &spec.scale_target_ref.name);
            let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
            self.deployments.api(&target.namespace).patch_scale(&target.name, &PatchParams::default(), &patch).await?;
            judgement.status.last_scale_time = Some(stamp(&self.clock));
        }
        if autoscaler.status.as_ref() != Some(&judgement.status) {
            let mut after = autoscaler.as_ref().clone();
            after.status = Some(judgement.status);
            self.autoscalers.replace_status(&after).await?;
        }
        Ok(judgement.again)
    }
}

/// What one look at an autoscaler came to.
struct Judgement {
    status: HorizontalPodAutoscalerStatus,
    scale_to: Option<i32>,
    again: Option<Timestamp>,
}

/// What the metrics ask for.
struct Recommendation {
    replicas: i32,
    metrics: Vec<MetricStatus>,
}

impl HpaController {
    pub(super) fn new(
        autoscalers: Objects<HorizontalPodAutoscaler>,
        deployments: Objects<Deployment>,
        pods: Objects<Pod>,
        clock: Clock,
    ) -> Self {
        Self { autoscalers, deployments, pods, clock, history: Mutex::default() }
    }

    fn judge(&self, key: &Key, autoscaler: &HorizontalPodAutoscaler, spec: &HorizontalPodAutoscalerSpec) -> Judgement {
        let mut status = autoscaler.status.clone().unwrap_or_default();
        status.observed_generation = autoscaler.metadata.generation;
        let target = Key::new(&key.namespace, &spec.scale_target_ref.name);
        let deployment = self.deployments.get(&target).filter(|_| target_name(autoscaler).is_some());
        let Some(deployment) = deployment else {
            let message =
                format!("the HPA controller was unable to get the target's current scale: {target} not found");
            self.set(&mut status, "AbleToScale", "False", "FailedGetScale", &message);
            return Judgement { status, scale_to: None, again: None };
        };
        let current = deployment.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let seen = deployment.status.as_ref().and_then(|status| status.replicas).unwrap_or(0);
        status.current_replicas = Some(seen).filter(|seen| *seen != 0);
        self.set(&mut status, "AbleToScale", "True", "SucceededGetScale", GOT_SCALE);
        let (min, max) = (spec.min_replicas.unwrap_or(1), spec.max_replicas);
        if current == 0 && min != 0 {
            self.set(&mut status, "ScalingActive", "False", "ScalingDisabled", DISABLED);
            status.desired_replicas = 0;
            status.current_metrics = None;
            return Judgement { status, scale_to: None, again: None };
        }
        if current > max || current < min {
            let bound = current.clamp(min.min(max), max);
            self.rescaled(&mut status, bound);
            return Judgement { status, scale_to: Some(bound), again: Some(self.clock.now() + PERIOD) };
        }
        let Some(recommendation) = self.recommend(autoscaler, spec, &deployment, current) else {
            self.set(&mut status, "ScalingActive", "False", "FailedGetResourceMetric", NOT_SCRIPTED);
            status.desired_replicas = current;
            status.current_metrics = None;
            return Judgement { status, scale_to: None, again: None };
        };
        status.current_metrics = Some(recommendation.metrics);
        self.set(&mut status, "ScalingActive", "True", "ValidMetricFound", FOUND_METRIC);
        let (stable, settles) = self.stabilize(key, spec, current, recommendation.replicas);
        let bounded = stable.clamp(min.min(max), max);
        let (limited, reason, message) = match stable {
            _ if stable > max => ("True", "TooManyReplicas", "the desired replica count is more than the maximum"),
            _ if stable < min => ("True", "TooFewReplicas", "the desired replica count is less than the minimum"),
            _ => ("False", "DesiredWithinRange", "the desired count is within the acceptable range"),
        };
        self.set(&mut status, "ScalingLimited", limited, reason, message);
        status.desired_replicas = bounded;
        if bounded == current {
            self.set(&mut status, "AbleToScale", "True", "ReadyForNewScale", READY_TO_SCALE);
            return Judgement { status, scale_to: None, again: settles };
        }
        let due = status.last_scale_time.as_ref().map(|time| time.0 + PERIOD);
        if let Some(due) = due.filter(|due| *due > self.clock.now()) {
            return Judgement { status, scale_to: None, again: Some(due) };
        }
        self.rescaled(&mut status, bounded);
        Judgement { status, scale_to: Some(bounded), again: Some(self.clock.now() + PERIOD) }
    }

    fn rescaled(&self, status: &mut HorizontalPodAutoscalerStatus, replicas: i32) {
        status.desired_replicas = replicas;
        let message = format!("the HPA controller was able to update the target scale to {replicas}");
        self.set(status, "AbleToScale", "True", "SucceededRescale", &message);
    }

    /// The largest size any scripted metric asks for; `None` where nothing is scripted.
    fn recommend(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        spec: &HorizontalPodAutoscalerSpec,
        deployment: &Deployment,
        current: i32,
    ) -> Option<Recommendation> {
        let mut targets: Vec<(String, i32)> = Vec::new();
        for metric in spec.metrics.iter().flatten() {
            if let Some(resource) = &metric.resource
                && let Some(percent) = resource.target.average_utilization
            {
                targets.push((resource.name.clone(), percent));
            }
        }
        if spec.metrics.as_ref().is_none_or(Vec::is_empty) {
            targets.push(("cpu".into(), 80));
        }
        let mut replicas = None;
        let mut metrics = Vec::new();
        for (resource, percent) in targets {
            let Some(used) = self.utilization(autoscaler, deployment, &resource) else { continue };
            let ratio = used / f64::from(percent.max(1));
            let asked =
                if (ratio - 1.0).abs() <= TOLERANCE { current } else { (f64::from(current) * ratio).ceil() as i32 };
            replicas = replicas.max(Some(asked));
            let current = MetricValueStatus { average_utilization: Some(used.round() as i32), ..Default::default() };
            metrics.push(MetricStatus {
                type_: "Resource".into(),
                resource: Some(ResourceMetricStatus { name: resource, current }),
                ..MetricStatus::default()
            });
        }
        replicas.map(|replicas| Recommendation { replicas, metrics })
    }

    /// The scripted utilization in percent: the autoscaler's own, or the mean of the target's pods.
    fn utilization(
        &self,
        autoscaler: &HorizontalPodAutoscaler,
        deployment: &Deployment,
        resource: &str,
    ) -> Option<f64> {
        let annotation = format!("{PREFIX}{resource}-utilization");
        let scripted = |annotations: &BTreeMap<String, String>| -> Option<f64> {
            annotations.get(&annotation)?.trim_end_matches('%').parse().ok().filter(|value: &f64| value.is_finite())
        };
        if let Some(own) = scripted(autoscaler.annotations()) {
            return Some(own);
        }
        let selector = &deployment.spec.as_ref()?.selector;
        let pods = self.pods.in_namespace(&deployment.namespace().unwrap_or_default());
        let used: Vec<f64> = pods
            .iter()
            .filter(|pod| selects(selector, pod.as_ref()) && !is_finished(pod))
            .filter_map(|pod| scripted(pod.annotations()))
            .collect();
        if used.is_empty() { None } else { Some(used.iter().sum::<f64>() / used.len() as f64) }
    }

    /// The largest recommendation of the down-scaling window, and when that may change by time alone.
    fn stabilize(
        &self,
        key: &Key,
        spec: &HorizontalPodAutoscalerSpec,
        current: i32,
        recommended: i32,
    ) -> (i32, Option<Timestamp>) {
        let behavior = spec.behavior.as_ref().and_then(|behavior| behavior.scale_down.as_ref());
        let window = behavior.and_then(|rules| rules.stabilization_window_seconds).unwrap_or(DEFAULT_DOWN_WINDOW);
        let window = Duration::from_secs(u64::try_from(window).unwrap_or(0));
        let now = self.clock.now();
        let mut all = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        let history = all.entry(key.clone()).or_default();
        if history.is_empty() && recommended < current {
            // The size the target has is what was last asked for.
            history.push((now, current));
        }
        if history.last().is_none_or(|(_, last)| *last != recommended) {
            history.push((now, recommended));
        }
        // An entry counts until its successor is older than the window: until then it was in force inside it.
        while history.get(1).is_some_and(|(since, _)| *since + window <= now) {
            history.remove(0);
        }
        let largest = history.iter().map(|(_, asked)| *asked).max().unwrap_or(recommended);
        let stable = if recommended >= current { recommended } else { largest.min(current) };
        (stable, history.get(1).map(|(since, _)| *since + window))
    }

    fn set(&self, status: &mut HorizontalPodAutoscalerStatus, type_: &str, value: &str, reason: &str, message: &str) {
        let conditions = status.conditions.get_or_insert_default();
        if let Some(known) = conditions.iter_mut().find(|known| known.type_ == type_) {
            if known.status != value {
                known.last_transition_time = Some(stamp(&self.clock));
            }
            known.status = value.into();
            known.reason = Some(reason.into());
            known.message = Some(message.into());
            return;
        }
        conditions.push(HorizontalPodAutoscalerCondition {
            type_: type_.into(),
            status: value.into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_transition_time: Some(stamp(&self.clock)),
        });
    }
}

const GOT_SCALE: &str = "the HPA controller was able to get the target's current scale";
const READY_TO_SCALE: &str = "recommended size matches current size";
const DISABLED: &str = "scaling is disabled since the replica count of the target is zero";
const FOUND_METRIC: &str =
    "the HPA was able to successfully calculate a replica count from cpu resource utilization (percentage of request)";
const NOT_SCRIPTED: &str =
    "no utilization is scripted: annotate the autoscaler or its pods with drydock.seaway.dev/cpu-utilization";

/// The Deployment this autoscaler scales, if it scales one.
fn target_name(autoscaler: &HorizontalPodAutoscaler) -> Option<&str> {
    let target = &autoscaler.spec.scale_target_ref;
    (target.kind == "Deployment").then_some(target.name.as_str())
}
