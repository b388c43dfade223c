//! What is kept of a Canary: what it wants, where it is, and what it says about itself. Pure.
//!
//! An object that cannot be read (stock CRDs accept `threshold: 1.5`) is still shown, with the reason.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::DynamicObject;
use seaway_api::canary::{Canary, CanaryStatus, Condition, ConditionStatus, Phase, parse};
use seaway_api::duration::Interval;
use seaway_core::plan::Steps;
use seaway_core::status::{ACCEPTED, INTERNAL_ERROR, PROMOTED, ROLLING_BACK};
use serde_json::{Value, json};

use super::checks::Check;
use super::objects::{Key, clean};

/// A Canary, reduced to what is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CanaryFacts {
    /// Where it is.
    pub key: Key,
    /// Its uid: another one is another Canary of the same name.
    pub uid: String,
    /// When it was made.
    pub created: Option<Timestamp>,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Why it cannot be read, if so.
    pub unreadable: Option<String>,
    /// Kind of the target.
    pub target_kind: String,
    /// Name of the target.
    pub target: String,
    /// Name of the primary workload.
    pub primary: String,
    /// Name of the Service users call, and of the route.
    pub apex: String,
    /// Name of the primary's Service.
    pub primary_service: String,
    /// Name of the canary's Service.
    pub canary_service: String,
    /// Who routes; empty for the operator's default.
    pub provider: String,
    /// Weights on the way; empty when there are none.
    pub steps: Vec<u8>,
    /// Rounds of checks, where there are these instead of steps.
    pub rounds: Option<i64>,
    /// Pause between two checks.
    pub interval: Duration,
    /// Failed checks that cause a rollback.
    pub threshold: i64,
    /// Metrics and hooks that are asked, nothing known of them yet.
    pub checks: Vec<Check>,
    /// Nothing is done for it.
    pub suspended: bool,
    /// New versions are promoted without being judged.
    pub unjudged: bool,
    /// Its status.
    pub status: CanaryStatus,
}

impl CanaryFacts {
    /// What is kept of an object.
    pub fn of(object: &DynamicObject) -> Self {
        let meta = &object.metadata;
        let mut facts = Self {
            key: Key::of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
            created: meta.creation_timestamp.as_ref().map(|Time(time)| *time),
            deleting: meta.deletion_timestamp.is_some(),
            ..Self::default()
        };
        let raw = json!({
            "metadata": {"name": facts.key.name, "namespace": facts.key.namespace},
            "spec": object.data.get("spec").cloned().unwrap_or_default(),
            "status": object.data.get("status").cloned().unwrap_or_default(),
        });
        match parse(raw) {
            Ok(canary) => facts.read(canary),
            Err(error) => {
                let status = object.data.get("status").cloned().unwrap_or_default();
                facts.status = serde_json::from_value(status).unwrap_or_default();
                facts.unreadable = Some(clean(&error.sentence()));
            }
        }
        facts
    }

    fn read(&mut self, canary: Canary) {
        let spec = &canary.spec;
        let analysis = spec.analysis().cloned().unwrap_or_default();
        self.target_kind = clean(&spec.target_ref.kind);
        self.target = clean(&spec.target_ref.name);
        self.primary = clean(&spec.primary_workload());
        self.apex = clean(spec.apex_name());
        self.primary_service = clean(&spec.primary_service());
        self.canary_service = clean(&spec.canary_service());
        self.provider = clean(&spec.provider);
        self.rounds = analysis.iterations.filter(|rounds| *rounds > 0);
        self.steps = match Steps::new(&analysis) {
            Ok(steps) if self.rounds.is_none() => {
                std::iter::successors(steps.next(0), |weight| steps.next(*weight)).collect()
            }
            _ => Vec::new(),
        };
        self.interval = Interval::of(&analysis.interval).duration();
        self.threshold = analysis.threshold.unwrap_or(1).max(1);
        self.checks = Check::asked(&analysis);
        self.suspended = spec.suspend;
        self.unjudged = spec.skips_analysis();
        self.status = canary.status.unwrap_or_default();
    }

    /// Its phase.
    pub fn phase(&self) -> Phase {
        self.status.phase
    }

    /// Whether a rollback is under way.
    pub fn rolling_back(&self) -> bool {
        self.status.is_true(ROLLING_BACK)
    }

    /// Why the operator does nothing for it: the spec is not accepted, or cannot even be read.
    pub fn refusal(&self) -> Option<String> {
        let refused = |condition: &&Condition| condition.status == ConditionStatus::False;
        let accepted = self.status.condition(ACCEPTED).filter(refused);
        self.unreadable.clone().or_else(|| accepted.map(|condition| clean(&condition.message)))
    }

    /// A fault of the operator's own that it cannot get past, in its words.
    pub fn fault(&self) -> Option<String> {
        let standing = |condition: &&Condition| condition.status == ConditionStatus::True;
        self.status.condition(INTERNAL_ERROR).filter(standing).map(|condition| clean(&condition.message))
    }

    /// What it says about itself, in one sentence.
    pub fn message(&self) -> String {
        if let Some(held) = self.refusal().or_else(|| self.fault()) {
            return held;
        }
        if let Some(condition) = self.status.condition(ROLLING_BACK).filter(|_| self.rolling_back()) {
            let message = clean(&condition.message);
            return match condition.reason.as_str() {
                "FailedChecks" => format!("{message} checks failed, traffic goes back to the primary"),
                "RollbackHook" => format!("hook {message} asked for it, traffic goes back to the primary"),
                reason if message.is_empty() => clean(reason),
                reason => format!("{}: {message}", clean(reason)),
            };
        }
        self.status.condition(PROMOTED).map(|condition| clean(&condition.message)).unwrap_or_default()
    }

    /// The weight the canary has, going by the status alone. A status that is at rest keeps no traffic on the canary.
    pub fn weight(&self) -> u8 {
        let weight = if self.phase().is_rolling_out() { self.status.canary_weight } else { 0 };
        u8::try_from(weight.clamp(0, 100)).unwrap_or(0)
    }
}

/// A Canary as an object of the API, for tests of this crate.
#[cfg(test)]
pub(crate) fn raw(canary: &Canary) -> DynamicObject {
    serde_json::from_value(serde_json::to_value(canary).unwrap()).unwrap()
}

/// The time and the weight that the record of a decision names.
pub fn recorded(record: &Value) -> Option<(Timestamp, u8)> {
    let time = record.get("time")?.as_str()?.parse().ok()?;
    let phase: Phase = serde_json::from_value(record.get("phase")?.clone()).ok()?;
    let weight = if phase.is_rolling_out() { record.get("weight")?.as_i64()? } else { 0 };
    Some((time, u8::try_from(weight.clamp(0, 100)).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_canary_without_a_status_is_unset() {
        let facts = CanaryFacts::of(&raw(&Canary::test().interval("30s").threshold(3)));
        assert_eq!((facts.phase(), facts.threshold), (Phase::Unset, 3));
        assert_eq!(facts.interval, Duration::from_secs(30));
        assert_eq!(facts.steps, [10, 20, 30, 40, 50]);
        assert_eq!(
            facts.checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>(),
            ["request-success-rate", "request-duration"]
        );
    }

    #[test]
    fn a_canary_nobody_can_read_says_why_and_keeps_its_status() {
        let mut object = raw(&Canary::test().at(Phase::Progressing).weight(20));
        object.data["spec"]["analysis"]["threshold"] = json!(1.5);
        let facts = CanaryFacts::of(&object);
        assert!(facts.message().starts_with("spec.analysis.threshold: 1.5 is not a whole number"));
        assert_eq!((facts.phase(), facts.weight()), (Phase::Progressing, 20));
    }

    #[test]
    fn what_rests_has_no_traffic_on_the_canary() {
        let facts = CanaryFacts::of(&raw(&Canary::test().at(Phase::Failed).weight(30)));
        assert_eq!(facts.weight(), 0);
        let record = json!({"time": "2026-01-02T03:04:05Z", "phase": "Progressing", "weight": 30, "rule": "advance"});
        assert_eq!(recorded(&record), Some(("2026-01-02T03:04:05Z".parse().unwrap(), 30)));
        assert_eq!(recorded(&json!({"rule": "x"})), None);
    }

    #[test]
    fn steps_that_make_no_sense_are_not_shown() {
        assert!(CanaryFacts::of(&raw(&Canary::test().step_weights(&[30, 20]))).steps.is_empty());
        let facts = CanaryFacts::of(&raw(&Canary::test().iterations(10)));
        assert_eq!((facts.steps.len(), facts.rounds), (0, Some(10)));
    }
}
