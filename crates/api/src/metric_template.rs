//! `MetricTemplate`: a query with holes, and the provider that answers it.
//!
//! The query text is Go `text/template`; it is parsed where queries are rendered, not here.

use std::collections::BTreeMap;

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use crate::canary::Condition;

/// Every metric system a template may name, built or not.
pub const METRIC_PROVIDERS: [&str; 11] = [
    "prometheus",
    "influxdb",
    "datadog",
    "externalmetrics",
    "stackdriver",
    "cloudwatch",
    "newrelic",
    "graphite",
    "dynatrace",
    "keptn",
    "splunk",
];

/// What a MetricTemplate asks for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "MetricTemplate",
    plural = "metrictemplates",
    namespaced,
    status = "MetricTemplateStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "A query with holes, and the provider that answers it.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct MetricTemplateSpec {
    /// Who answers the query.
    pub provider: MetricProvider,
    /// The query, a Go `text/template`.
    pub query: String,
}

/// The system that answers a query.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricProvider {
    /// `prometheus`, `datadog`, …
    #[serde(rename = "type")]
    pub type_: String,
    /// Endpoint URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// Extra HTTP headers, each with its values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Secret with credentials, in the template's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// Cloud region.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub region: String,
    /// Accept any TLS certificate of the provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub insecure_skip_verify: bool,
}

/// A Secret in the namespace of the object that names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// Name of the Secret.
    pub name: String,
}

/// Status of a MetricTemplate; Flagger never writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MetricTemplateStatus {
    /// Conditions, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
