//! `AlertProvider`: a chat system that is told about rollouts.

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};

use crate::canary::Condition;
use crate::metric_template::SecretRef;

/// Where alerts go. Exactly one of `address` and `secretRef` is set.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "flagger.app",
    version = "v1beta1",
    kind = "AlertProvider",
    plural = "alertproviders",
    namespaced,
    status = "AlertProviderStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "A chat system that is told about rollouts.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct AlertProviderSpec {
    /// `slack`, `msteams`, `discord`, `rocket` or `gchat`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Channel to post to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub channel: String,
    /// Name shown as the sender.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// Hook URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub address: String,
    /// HTTP proxy URL.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proxy: String,
    /// Secret that holds the address (and a token), in the provider's own namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
}

/// Status of an AlertProvider; Flagger never writes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AlertProviderStatus {
    /// Conditions, if any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
}
