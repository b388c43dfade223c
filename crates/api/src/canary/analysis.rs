//! `spec.analysis`: the steps, the checks and the people who are told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::service::StringMatch;
use crate::number;

/// How a new version is judged. Exactly one of `stepWeight`, `stepWeights` and `iterations` is written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Analysis {
    /// Time between two checks, a Go duration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// Number of checks for A/B and blue/green.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub iterations: Option<i64>,
    /// Failed checks until rollback.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub threshold: Option<i64>,
    /// Canary weight at which the promotion starts.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub max_weight: Option<i64>,
    /// Weight added per step.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub step_weight: Option<i64>,
    /// Weights of the steps, absolute.
    #[serde(default, deserialize_with = "number::list", skip_serializing_if = "Option::is_none")]
    pub step_weights: Option<Vec<i64>>,
    /// Weight given back to the primary per step while promoting. Absent or 0: all at once.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub step_weight_promotion: Option<i64>,
    /// Mirror traffic to the canary before it gets any.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mirror: bool,
    /// Percentage of requests that is mirrored.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub mirror_weight: Option<i64>,
    /// Percentage of the primary's replicas that must be available.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub primary_ready_threshold: Option<i64>,
    /// Percentage of the canary's replicas that must be available.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub canary_ready_threshold: Option<i64>,
    /// Who sees the canary in an A/B test.
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub match_: Vec<AnalysisMatch>,
    /// Metric checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Alerts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alerts: Vec<AlertRef>,
    /// Webhooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<Webhook>,
    /// Keep a user on the variant that was seen first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_affinity: Option<SessionAffinity>,
}

/// One condition of an A/B test; all parts of it hold at once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnalysisMatch {
    /// Header name to match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, StringMatch>,
    /// Query parameter to match.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_params: BTreeMap<String, StringMatch>,
    /// Labels of the calling workload.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub source_labels: BTreeMap<String, String>,
}

/// One metric check.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Metric {
    /// Name; `request-success-rate` and `request-duration` are builtin.
    #[serde(default)]
    pub name: String,
    /// Window of the query, a Go duration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub interval: String,
    /// Old form of a bound; its direction depends on the metric.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Bounds, both inclusive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold_range: Option<ThresholdRange>,
    /// A query written in place.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub query: String,
    /// A query kept in a MetricTemplate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_ref: Option<NamespacedRef>,
    /// Values for the template.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub template_variables: BTreeMap<String, String>,
}

/// Inclusive bounds; a side that is absent is open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRange {
    /// Smallest good value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest good value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
}

/// A name in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NamespacedRef {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace. Empty: the Canary's own.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

impl NamespacedRef {
    /// The namespace that is meant, for a Canary in `own`.
    pub fn namespace_or<'a>(&'a self, own: &'a str) -> &'a str {
        if self.namespace.is_empty() { own } else { &self.namespace }
    }
}

/// One alert.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AlertRef {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Least severity that is sent.
    #[serde(default, skip_serializing_if = "is_unset")]
    pub severity: Severity,
    /// The AlertProvider.
    #[serde(default)]
    pub provider_ref: NamespacedRef,
}

/// Severity of an alert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Not written; documented as `info`.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// Everything.
    Info,
    /// Warnings and errors.
    Warn,
    /// Errors only.
    Error,
}

/// By reference because serde calls it so.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_unset(severity: &Severity) -> bool {
    *severity == Severity::Unset
}

/// One webhook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Webhook {
    /// Name, shown in Events.
    #[serde(default)]
    pub name: String,
    /// When it is called.
    #[serde(default, rename = "type")]
    pub type_: HookType,
    /// Where the POST goes.
    #[serde(default)]
    pub url: String,
    /// Do not alert while this gate is closed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mute_alert: bool,
    /// Time limit, a Go duration. Empty: 10 s.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub timeout: String,
    /// Attempts after the first.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub retries: Option<i64>,
    /// Accept any TLS certificate.
    #[serde(default, rename = "disableTLS", skip_serializing_if = "std::ops::Not::not")]
    pub disable_tls: bool,
    /// Sent along unchanged.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

/// When a webhook is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookType {
    /// On every check; also what an absent or empty type means.
    #[default]
    #[serde(alias = "")]
    Rollout,
    /// Before a new version is scaled up, until it consents.
    ConfirmRollout,
    /// Before the first weight.
    PreRollout,
    /// Before each weight, until it consents.
    ConfirmTrafficIncrease,
    /// Before the promotion, until it consents.
    ConfirmPromotion,
    /// After the end, good or bad.
    PostRollout,
    /// For every Event.
    Event,
    /// On every check: consent means roll back.
    Rollback,
}

impl HookType {
    /// Every type, in the order a rollout meets them.
    pub const ALL: [Self; 8] = [
        Self::ConfirmRollout,
        Self::PreRollout,
        Self::Rollout,
        Self::ConfirmTrafficIncrease,
        Self::ConfirmPromotion,
        Self::PostRollout,
        Self::Event,
        Self::Rollback,
    ];

    /// The name as written in YAML.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rollout => "rollout",
            Self::ConfirmRollout => "confirm-rollout",
            Self::PreRollout => "pre-rollout",
            Self::ConfirmTrafficIncrease => "confirm-traffic-increase",
            Self::ConfirmPromotion => "confirm-promotion",
            Self::PostRollout => "post-rollout",
            Self::Event => "event",
            Self::Rollback => "rollback",
        }
    }
}

impl std::fmt::Display for HookType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Cookie affinity.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionAffinity {
    /// Cookie of users who saw the canary.
    #[serde(default)]
    pub cookie_name: String,
    /// Cookie of users who saw the primary. Empty: they are not pinned.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub primary_cookie_name: String,
    /// `Domain` attribute.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub domain: String,
    /// `HttpOnly` attribute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub http_only: bool,
    /// `Max-Age` attribute in seconds. Absent or 0: one day.
    #[serde(default, deserialize_with = "number::optional", skip_serializing_if = "Option::is_none")]
    pub max_age: Option<i64>,
    /// `Partitioned` attribute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub partitioned: bool,
    /// `Path` attribute.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// `SameSite` attribute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub same_site: Option<SameSite>,
    /// `Secure` attribute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub secure: bool,
}

/// The `SameSite` attribute of a cookie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SameSite {
    /// Never sent across sites.
    Strict,
    /// Sent on top-level navigation.
    Lax,
    /// Always sent.
    None,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn hook_names_are_the_wire_names_and_empty_means_rollout() {
        for hook in HookType::ALL {
            assert_eq!(serde_json::to_value(hook).unwrap(), Value::from(hook.as_str()));
            assert_eq!(serde_json::from_value::<HookType>(json!(hook.as_str())).unwrap(), hook);
        }
        assert_eq!(serde_json::from_value::<HookType>(json!("")).unwrap(), HookType::Rollout);
    }

    #[test]
    fn severities_have_an_order() {
        assert!(Severity::Info < Severity::Warn && Severity::Warn < Severity::Error);
        assert_eq!(serde_json::from_value::<Severity>(json!("")).unwrap(), Severity::Unset);
    }
}
