//! `status` of a Canary: Flagger's fields and phases exactly, since other tools and Flagger itself read them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{number, time};

/// How many decisions a status keeps.
pub const DECISIONS_KEPT: usize = 20;

/// How far a rollout has come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CanaryStatus {
    /// Phase.
    #[serde(default)]
    pub phase: Phase,
    /// Failed checks of this analysis.
    #[serde(default, deserialize_with = "number::whole")]
    pub failed_checks: i64,
    /// Share of traffic the canary should have, in percent.
    #[serde(default, deserialize_with = "number::whole")]
    pub canary_weight: i64,
    /// Checks done. Flagger writes −1 for a weighted canary that waits for promotion.
    #[serde(default, deserialize_with = "number::whole")]
    pub iterations: i64,
    /// Affinity cookie of the last rollout, `name=value`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub previous_session_affinity_cookie: String,
    /// Affinity cookie of this rollout.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session_affinity_cookie: String,
    /// Affinity cookie of the primary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub primary_session_affinity_cookie: String,
    /// `configmap/{name}` or `secret/{name}` to its checksum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracked_configs: Option<BTreeMap<String, String>>,
    /// Hash of the target's pod template that is or was analysed last.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_applied_spec: String,
    /// Hash of the pod template that runs in the primary.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub last_promoted_spec: String,
    /// When phase, weight, iterations, failed checks or revision moved last.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The last decisions, for people. Nothing depends on it, and stock CRDs prune it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Value>,
}

impl CanaryStatus {
    /// The condition of type `type_`, compared without regard to case as `kubectl wait` does.
    pub fn condition(&self, type_: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_.eq_ignore_ascii_case(type_))
    }

    /// Whether the condition of type `type_` is `True`.
    pub fn is_true(&self, type_: &str) -> bool {
        self.condition(type_).is_some_and(|condition| condition.status == ConditionStatus::True)
    }

    /// Puts `new` in place of the condition of its type. A condition that says the same stays untouched, times included,
    /// and `lastTransitionTime` moves only with the status. Returns whether anything changed.
    pub fn set_condition(&mut self, new: Condition) -> bool {
        let Some(old) = self.conditions.iter_mut().find(|old| old.type_.eq_ignore_ascii_case(&new.type_)) else {
            self.conditions.push(new);
            return true;
        };
        if old.says_the_same(&new) {
            return false;
        }
        let since = if old.status == new.status { old.last_transition_time } else { new.last_transition_time };
        *old = Condition { last_transition_time: since, ..new };
        true
    }

    /// Removes the condition of type `type_`. Returns whether it was there.
    pub fn remove_condition(&mut self, type_: &str) -> bool {
        let before = self.conditions.len();
        self.conditions.retain(|condition| !condition.type_.eq_ignore_ascii_case(type_));
        self.conditions.len() != before
    }

    /// Whether both mean the same: everything but the decisions, which only explain.
    pub fn means_the_same(&self, other: &Self) -> bool {
        let bare = |status: &Self| Self { decisions: Vec::new(), ..status.clone() };
        bare(self) == bare(other)
    }
}

/// Phase of a rollout; the CRD knows these and no other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// Not written yet.
    #[default]
    #[serde(rename = "")]
    Unset,
    /// The primary is being made.
    Initializing,
    /// The primary serves; no rollout has happened yet.
    Initialized,
    /// A new version waits for consent to start.
    Waiting,
    /// A new version is being analysed.
    Progressing,
    /// The analysis is done and waits for consent to promote.
    WaitingPromotion,
    /// The primary takes over the new version.
    Promoting,
    /// All traffic is on the primary, the canary goes away.
    Finalising,
    /// The new version serves from the primary.
    Succeeded,
    /// The new version was rolled back.
    Failed,
    /// The Canary is being deleted and everything put back.
    Terminating,
    /// Everything was put back.
    Terminated,
}

impl Phase {
    /// Every phase, in the order of the CRD's enum.
    pub const ALL: [Self; 12] = [
        Self::Unset,
        Self::Initializing,
        Self::Initialized,
        Self::Waiting,
        Self::Progressing,
        Self::WaitingPromotion,
        Self::Promoting,
        Self::Finalising,
        Self::Succeeded,
        Self::Failed,
        Self::Terminating,
        Self::Terminated,
    ];

    /// The name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::Initializing => "Initializing",
            Self::Initialized => "Initialized",
            Self::Waiting => "Waiting",
            Self::Progressing => "Progressing",
            Self::WaitingPromotion => "WaitingPromotion",
            Self::Promoting => "Promoting",
            Self::Finalising => "Finalising",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
            Self::Terminating => "Terminating",
            Self::Terminated => "Terminated",
        }
    }

    /// The primary does not serve yet.
    pub fn is_initializing(self) -> bool {
        matches!(self, Self::Unset | Self::Initializing)
    }

    /// No rollout is under way; the next one starts from here.
    pub fn is_resting(self) -> bool {
        matches!(self, Self::Initialized | Self::Succeeded | Self::Failed)
    }

    /// A new version is on its way: asked for, analysed or being promoted.
    pub fn is_rolling_out(self) -> bool {
        matches!(self, Self::Waiting | Self::Progressing | Self::WaitingPromotion | Self::Promoting | Self::Finalising)
    }

    /// The Canary is being deleted.
    pub fn is_terminating(self) -> bool {
        matches!(self, Self::Terminating | Self::Terminated)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}

/// One condition, in the shape Flagger stores.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type, e.g. `Promoted`.
    #[serde(rename = "type")]
    pub type_: String,
    /// Whether it holds.
    pub status: ConditionStatus,
    /// When anything in it changed last.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    pub last_update_time: Option<Timestamp>,
    /// When its status changed last.
    #[serde(default, with = "time::optional", skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<Timestamp>,
    /// Reason, one word.
    #[serde(default)]
    pub reason: String,
    /// Message for people.
    #[serde(default)]
    pub message: String,
}

impl Condition {
    /// A condition that came to hold at `now`.
    pub fn new(
        type_: impl Into<String>,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
        now: Timestamp,
    ) -> Self {
        let now = time::whole_seconds(now);
        Self {
            type_: type_.into(),
            status,
            last_update_time: Some(now),
            last_transition_time: Some(now),
            reason: reason.into(),
            message: message.into(),
        }
    }

    /// Whether both say the same, whenever they said it.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.status == other.status && self.reason == other.reason && self.message == other.message
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConditionStatus {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Not known.
    #[default]
    Unknown,
}

impl ConditionStatus {
    /// The word as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn phase_names_are_flaggers() {
        for phase in Phase::ALL {
            assert_eq!(serde_json::to_value(phase).unwrap(), Value::from(phase.as_str()));
            assert_eq!(serde_json::from_value::<Phase>(json!(phase.as_str())).unwrap(), phase);
            let kinds = [phase.is_initializing(), phase.is_resting(), phase.is_rolling_out(), phase.is_terminating()];
            assert_eq!(kinds.iter().filter(|kind| **kind).count(), 1, "{phase} is of exactly one kind");
        }
        assert_eq!(Phase::default(), Phase::Unset);
    }

    #[test]
    fn an_empty_status_still_has_flaggers_four_fields() {
        let value = serde_json::to_value(CanaryStatus::default()).unwrap();
        assert_eq!(value, json!({ "phase": "", "failedChecks": 0, "canaryWeight": 0, "iterations": 0 }));
    }

    #[test]
    fn times_are_written_in_whole_seconds() {
        let status = CanaryStatus {
            last_transition_time: Some("2024-07-11T01:14:00.987Z".parse().unwrap()),
            ..CanaryStatus::default()
        };
        let value = serde_json::to_value(&status).unwrap();
        assert_eq!(value["lastTransitionTime"], "2024-07-11T01:14:00Z");
        let null: CanaryStatus = serde_json::from_value(json!({ "lastTransitionTime": null })).unwrap();
        assert_eq!(null.last_transition_time, None);
    }

    #[test]
    fn a_condition_keeps_its_time_until_its_status_moves() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let condition = |status, reason: &str, second| Condition::new("Promoted", status, reason, "", at(second));
        let mut status = CanaryStatus::default();
        assert!(status.set_condition(condition(ConditionStatus::Unknown, "Progressing", 1)));
        assert!(!status.set_condition(condition(ConditionStatus::Unknown, "Progressing", 2)));
        assert!(status.set_condition(condition(ConditionStatus::Unknown, "Promoting", 3)));
        let promoted = status.condition("promoted").unwrap();
        assert_eq!((promoted.last_transition_time, promoted.last_update_time), (Some(at(1)), Some(at(3))));
        assert!(status.set_condition(condition(ConditionStatus::True, "Succeeded", 4)));
        assert!(status.is_true("Promoted"));
        assert_eq!(status.condition("Promoted").unwrap().last_transition_time, Some(at(4)));
        assert_eq!(status.conditions.len(), 1);
        assert!(status.remove_condition("Promoted") && !status.remove_condition("Promoted"));
    }

    #[test]
    fn decisions_do_not_make_a_difference() {
        let told = CanaryStatus { decisions: vec![json!({ "rule": "advance" })], ..CanaryStatus::default() };
        assert!(told.means_the_same(&CanaryStatus::default()));
        assert!(!told.means_the_same(&CanaryStatus { canary_weight: 10, ..CanaryStatus::default() }));
    }
}
