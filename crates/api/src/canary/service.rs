//! `spec.service`: the Services that are generated and the route that splits traffic between them.
//!
//! Fields of Istio's own types that are only copied into Istio objects (`trafficPolicy`) stay as JSON.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::foreign::gateway::{ParentReference, RequestMirror};
use crate::number;

/// The Services and the route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanaryService {
    /// Name of the Service users call. Empty: the target's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Port of the Services.
    #[serde(default, deserialize_with = "number::whole")]
    pub port: i64,
    /// Name of that port. Empty: `http`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub port_name: String,
    /// Port of the container. Absent or 0: `port`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_port: Option<IntOrString>,
    /// `appProtocol` of the port.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub app_protocol: String,
    /// `trafficDistribution` of the Services.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub traffic_distribution: String,
    /// Add every other container port to the Services.
    #[serde(default)]
    pub port_discovery: bool,
    /// Create Services without a cluster address.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub headless: bool,
    /// Time limit of a request, a Go duration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// Time limit of one attempt at a backend (Gateway API).
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub backend_timeout: String,
    /// Istio gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Gateway API parents of the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateway_refs: Vec<ParentReference>,
    /// Host names of the route.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Istio: make a delegate VirtualService.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delegation: bool,
    /// Istio `TrafficPolicy`, copied as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_policy: Option<Value>,
    /// Which requests belong to the route.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub match_: Vec<HttpMatch>,
    /// Rewrite of path and host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Retries of failed requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retries: Option<Retries>,
    /// Header changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Headers>,
    /// Backends that always get a copy of every request (Gateway API).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mirror: Vec<RequestMirror>,
    /// Cross-origin policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cors_policy: Option<CorsPolicy>,
    /// App Mesh mesh.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub mesh_name: String,
    /// App Mesh backends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub backends: Vec<String>,
    /// Metadata of the Service users call and of the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apex: Option<CustomMetadata>,
    /// Metadata of the primary Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<CustomMetadata>,
    /// Metadata of the canary Service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CustomMetadata>,
    /// Metadata keys of generated Services that belong to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmanaged_metadata: Option<UnmanagedMetadata>,
}

/// Labels and annotations of a generated object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CustomMetadata {
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Metadata keys that are left alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnmanagedMetadata {
    /// Annotation keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<String>,
    /// Label keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// One way to compare a string. At most one field is set; none set matches every value that is present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StringMatch {
    /// Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exact: Option<String>,
    /// Begins with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Ends with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
    /// Matches as a whole (RE2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regex: Option<String>,
}

/// Which requests belong to the route, in Istio's shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HttpMatch {
    /// Name, for logs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<StringMatch>,
    /// Scheme.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<StringMatch>,
    /// Method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<StringMatch>,
    /// Host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<StringMatch>,
    /// Headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
    /// Headers that must not match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub without_headers: BTreeMap<String, StringMatch>,
    /// Query parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
    /// Port the request came to.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// Labels of the calling workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source_labels: BTreeMap<String, String>,
    /// Namespace of the calling workload.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub source_namespace: String,
    /// Gateways the rule is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gateways: Vec<String>,
    /// Compare the path without regard to case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ignore_uri_case: bool,
}

/// Rewrite of path and host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewrite {
    /// New path, or new prefix.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uri: String,
    /// New host.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub authority: String,
    /// `ReplacePrefixMatch`; anything else replaces the whole path.
    #[serde(default, rename = "type", skip_serializing_if = "String::is_empty")]
    pub type_: String,
}

/// Retries of failed requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Retries {
    /// How many.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub attempts: Option<i64>,
    /// Time limit of one attempt.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub per_try_timeout: String,
    /// Which failures are retried.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub retry_on: String,
}

/// Header changes on the way in and out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Headers {
    /// Of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<HeaderOperations>,
    /// Of responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<HeaderOperations>,
}

/// Header changes in one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeaderOperations {
    /// Appended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub add: BTreeMap<String, String>,
    /// Replaced.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set: BTreeMap<String, String>,
    /// Removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// Cross-origin policy, in Istio's shape.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CorsPolicy {
    /// Origins, old form.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_origin: Vec<String>,
    /// Origins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_origins: Vec<StringMatch>,
    /// Methods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_methods: Vec<String>,
    /// Request headers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allow_headers: Vec<String>,
    /// Response headers scripts may read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expose_headers: Vec<String>,
    /// How long a browser may remember the answer, a Go duration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub max_age: String,
    /// Whether credentials may be sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_credentials: Option<bool>,
}
