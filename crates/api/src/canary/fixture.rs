//! Canaries for tests, of this crate and of those above it: `Canary::test().step_weight(10).at(Phase::Progressing)`.
//!
//! Production code never calls these.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::{
    Analysis, AutoscalerRef, Canary, CanaryService, CanarySpec, CanaryStatus, HookType, Metric, ObjectRef, Phase,
    ThresholdRange, Webhook,
};
use crate::foreign::gateway::ParentReference;

#[doc(hidden)]
impl Canary {
    /// `test/podinfo`: a Deployment behind a Gateway, steps of 10 up to 50 each minute, two builtin metrics.
    pub fn test() -> Self {
        let metric = |name: &str, range| Metric {
            name: name.into(),
            interval: "1m".into(),
            threshold_range: Some(range),
            ..Metric::default()
        };
        Self {
            metadata: ObjectMeta {
                name: Some("podinfo".into()),
                namespace: Some("test".into()),
                uid: Some("9b6c1e52-3c0e-4a41-8a0e-2b6f1d6f0001".into()),
                resource_version: Some("1".into()),
                generation: Some(1),
                ..ObjectMeta::default()
            },
            spec: CanarySpec {
                provider: "gatewayapi:v1".into(),
                progress_deadline_seconds: Some(60),
                target_ref: ObjectRef {
                    api_version: "apps/v1".into(),
                    kind: "Deployment".into(),
                    name: "podinfo".into(),
                },
                service: Some(CanaryService {
                    port: 80,
                    target_port: Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(9898)),
                    gateway_refs: vec![ParentReference {
                        name: "gateway".into(),
                        namespace: Some("istio-ingress".into()),
                        ..ParentReference::default()
                    }],
                    hosts: vec!["www.example.com".into()],
                    ..CanaryService::default()
                }),
                analysis: Some(Analysis {
                    interval: "1m".into(),
                    threshold: Some(5),
                    max_weight: Some(50),
                    step_weight: Some(10),
                    metrics: vec![
                        metric("request-success-rate", ThresholdRange { min: Some(99.0), max: None }),
                        metric("request-duration", ThresholdRange { min: None, max: Some(500.0) }),
                    ],
                    ..Analysis::default()
                }),
                ..CanarySpec::default()
            },
            status: None,
        }
    }

    fn change_analysis(mut self, change: impl FnOnce(&mut Analysis)) -> Self {
        change(self.spec.analysis.get_or_insert_default());
        self
    }

    fn change_status(mut self, change: impl FnOnce(&mut CanaryStatus)) -> Self {
        change(self.status.get_or_insert_default());
        self
    }

    /// Another name; the target follows.
    pub fn named(mut self, name: &str) -> Self {
        self.metadata.name = Some(name.into());
        self.metadata.uid = Some(format!("uid-of-{name}"));
        self.spec.target_ref.name = name.into();
        self
    }

    /// Another namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.metadata.namespace = Some(namespace.into());
        self
    }

    /// Equal steps.
    pub fn step_weight(self, weight: i64) -> Self {
        self.change_analysis(|analysis| {
            analysis.step_weight = Some(weight);
            analysis.step_weights = None;
        })
    }

    /// Steps of one's own.
    pub fn step_weights(self, weights: &[i64]) -> Self {
        self.change_analysis(|analysis| {
            analysis.step_weights = Some(weights.to_vec());
            analysis.step_weight = None;
        })
    }

    /// Weight at which the promotion starts.
    pub fn max_weight(self, weight: i64) -> Self {
        self.change_analysis(|analysis| analysis.max_weight = Some(weight))
    }

    /// Step back to the primary while promoting.
    pub fn step_weight_promotion(self, weight: i64) -> Self {
        self.change_analysis(|analysis| analysis.step_weight_promotion = Some(weight))
    }

    /// Blue/green (or A/B with matches).
    pub fn iterations(self, iterations: i64) -> Self {
        self.change_analysis(|analysis| {
            analysis.iterations = Some(iterations);
            analysis.step_weight = None;
            analysis.step_weights = None;
        })
    }

    /// Failed checks until rollback.
    pub fn threshold(self, threshold: i64) -> Self {
        self.change_analysis(|analysis| analysis.threshold = Some(threshold))
    }

    /// Time between checks.
    pub fn interval(self, interval: &str) -> Self {
        self.change_analysis(|analysis| analysis.interval = interval.into())
    }

    /// These metrics and no other.
    pub fn metrics(self, metrics: Vec<Metric>) -> Self {
        self.change_analysis(|analysis| analysis.metrics = metrics)
    }

    /// One more webhook.
    pub fn webhook(self, name: &str, type_: HookType) -> Self {
        let url = format!("http://hooks.test/{name}");
        let webhook = Webhook { name: name.into(), type_, url, ..Webhook::default() };
        self.change_analysis(|analysis| analysis.webhooks.push(webhook))
    }

    /// With a HorizontalPodAutoscaler named like the target.
    pub fn autoscaled(mut self) -> Self {
        self.spec.autoscaler_ref = Some(AutoscalerRef {
            api_version: "autoscaling/v2".into(),
            kind: "HorizontalPodAutoscaler".into(),
            name: self.spec.target_ref.name.clone(),
            ..AutoscalerRef::default()
        });
        self
    }

    /// Promote without analysis.
    pub fn skip_analysis(mut self) -> Self {
        self.spec.skip_analysis = true;
        self
    }

    /// Do nothing.
    pub fn suspended(mut self) -> Self {
        self.spec.suspend = true;
        self
    }

    /// Put everything back on deletion.
    pub fn revert_on_deletion(mut self) -> Self {
        self.spec.revert_on_deletion = true;
        self
    }

    /// With this phase in the status.
    pub fn at(self, phase: Phase) -> Self {
        self.change_status(|status| status.phase = phase)
    }

    /// With this weight in the status.
    pub fn weight(self, weight: i64) -> Self {
        self.change_status(|status| status.canary_weight = weight)
    }

    /// With this many failed checks in the status.
    pub fn failed_checks(self, failed: i64) -> Self {
        self.change_status(|status| status.failed_checks = failed)
    }

    /// With these hashes in the status: analysed last, and running in the primary.
    pub fn revisions(self, applied: &str, promoted: &str) -> Self {
        self.change_status(|status| {
            status.last_applied_spec = applied.into();
            status.last_promoted_spec = promoted.into();
        })
    }

    /// Last moved at this time.
    pub fn since(self, time: Timestamp) -> Self {
        self.change_status(|status| status.last_transition_time = Some(time))
    }

    /// Being deleted since this time, with our finalizer.
    pub fn deleted_at(mut self, time: Timestamp) -> Self {
        self.metadata.deletion_timestamp = Some(time.into());
        self.metadata.finalizers = Some(vec![crate::FINALIZER.into()]);
        self
    }
}
