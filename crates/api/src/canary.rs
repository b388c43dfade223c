//! `Canary`: what a user wants to roll out, how, and how far it has come.
//!
//! The types hold what was written, nothing more: a missing number is `None`, a duration is its text. What the values
//! *mean* (defaults, floors, steps) is decided once, when a plan is made from a spec.

mod analysis;
#[doc(hidden)]
pub mod fixture;
mod names;
mod service;
mod status;

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use analysis::{
    AlertRef, Analysis, AnalysisMatch, HookType, Metric, NamespacedRef, SameSite, SessionAffinity, Severity,
    ThresholdRange, Webhook,
};
pub use names::primary_name;
pub use service::{
    CanaryService, CorsPolicy, CustomMetadata, HeaderOperations, Headers, HttpMatch, Retries, Rewrite, StringMatch,
    UnmanagedMetadata,
};
pub use status::{CanaryStatus, Condition, ConditionStatus, DECISIONS_KEPT, Phase};

use crate::field::{self, FieldError};
use crate::number;

/// Every router a Canary may name, built or not.
pub const PROVIDERS: [&str; 19] = [
    "apisix",
    "appmesh",
    "appmesh:v1beta2",
    "contour",
    "gatewayapi:v1",
    "gatewayapi:v1beta1",
    "gloo",
    "istio",
    "knative",
    "kubernetes",
    "kuma",
    "linkerd",
    "nginx",
    "osm",
    "skipper",
    "smi:v1alpha1",
    "smi:v1alpha2",
    "smi:v1alpha3",
    "traefik",
];

/// What to roll out and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "Canary",
    plural = "canaries",
    namespaced,
    status = "CanaryStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "A workload whose new versions reach users a little at a time.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct CanarySpec {
    /// Router, e.g. `gatewayapi:v1`. Empty: the operator's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub provider: String,
    /// Prometheus URL for builtin and inline metrics. Empty: the operator's default.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub metrics_server: String,
    /// How long a workload may take to become ready, in seconds.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<i64>,
    /// The workload whose changes are rolled out.
    pub target_ref: TargetRef,
    /// Autoscaler of the target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaler_ref: Option<AutoscalerRef>,
    /// Ingress, for the NGINX and Skipper routers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingress_ref: Option<ObjectRef>,
    /// Route, for the APISIX router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route_ref: Option<ObjectRef>,
    /// Upstream with settings to copy, for the Gloo router.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream_ref: Option<UpstreamRef>,
    /// The Services and the route. Only Knative targets go without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<CanaryService>,
    /// How a new version is judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub analysis: Option<Analysis>,
    /// Old name of `analysis`; Flagger's CRD prunes it, objects stored before may still have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary_analysis: Option<Analysis>,
    /// Promote without analysis.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_analysis: bool,
    /// Put everything back as it was when the Canary is deleted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub revert_on_deletion: bool,
    /// Do nothing for this Canary.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspend: bool,
}

impl CanarySpec {
    /// The analysis under its present or its old name.
    pub fn analysis(&self) -> Option<&Analysis> {
        self.analysis.as_ref().or(self.canary_analysis.as_ref())
    }

    /// Whether a new version is promoted without being judged.
    pub fn skips_analysis(&self) -> bool {
        self.skip_analysis || self.analysis().is_none()
    }
}

/// An object in the Canary's own namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectRef {
    /// API group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
}

/// The workload whose changes are rolled out.
pub type TargetRef = ObjectRef;

impl ObjectRef {
    /// A Knative Service is told from a core Service by its API version alone.
    pub fn is_knative(&self) -> bool {
        self.kind == "Service" && self.api_version == "serving.knative.dev/v1"
    }
}

/// The autoscaler of the target and how the primary's copy differs from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AutoscalerRef {
    /// API group and version.
    #[serde(default)]
    pub api_version: String,
    /// `HorizontalPodAutoscaler` or `ScaledObject`.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// KEDA: trigger name to the query of the primary's trigger.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primary_scaler_queries: BTreeMap<String, String>,
    /// Bounds of the primary's autoscaler where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary_scaler_replicas: Option<ScalerReplicas>,
}

/// Bounds of an autoscaler.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScalerReplicas {
    /// Lower bound.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i64>,
    /// Upper bound.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i64>,
}

/// A Gloo Upstream, possibly in another namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamRef {
    /// API group and version.
    #[serde(default)]
    pub api_version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace. Empty: the Canary's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Reads one stored object. Stock CRDs accept values that no type can hold (`threshold: 1.5`); the error names the field,
/// so that such an object spoils only itself.
pub fn parse(object: Value) -> Result<Canary, FieldError> {
    field::parse(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_fraction_where_a_whole_number_belongs_names_its_field() {
        let object = json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "metadata": { "name": "podinfo" },
            "spec": {
                "targetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo" },
                "service": { "port": 80 },
                "analysis": { "interval": "1m", "threshold": 1.5, "stepWeight": 10 }
            }
        });
        let error = parse(object).unwrap_err();
        assert_eq!(error.path, "spec.analysis.threshold");
        assert_eq!(error.problem, "1.5 is not a whole number");
    }

    #[test]
    fn odd_whole_numbers_parse_and_are_judged_later() {
        let object = json!({
            "metadata": { "name": "podinfo" },
            "spec": {
                "targetRef": { "name": "podinfo" },
                "analysis": { "threshold": 1_u64 << 40, "stepWeights": [-10, 300], "iterations": 5.0 }
            }
        });
        let analysis = parse(object).unwrap().spec.analysis.unwrap();
        assert_eq!(analysis.threshold, Some(1 << 40));
        assert_eq!(analysis.step_weights, Some(vec![-10, 300]));
        assert_eq!(analysis.iterations, Some(5));
    }

    #[test]
    fn an_object_without_a_spec_is_an_error_not_a_panic() {
        assert!(parse(json!({ "metadata": {} })).is_err());
        assert_eq!(parse(json!({ "metadata": {}, "spec": null })).unwrap_err().path, "spec");
    }
}
