//! From an answer to a verdict: is this number good, and what do people read about it?
//!
//! Missing data never passes: no value, NaN, several series or a query that could not be asked are all inconclusive, and
//! inconclusive counts as a failed check. The texts are Flagger's. How often a check may fail is `rollout`'s business.

use std::time::Duration;

use seaway_api::duration;
use seaway_api::number::go_float;
use serde_json::{Value, json};

use crate::builtin::Measure;
use crate::plan::{Bounds, Check, Plan, Source};
use crate::question::Answer;
use crate::zoo;

/// What one check said.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Pass, fail or inconclusive.
    pub outcome: Outcome,
    /// What to tell people when it did not pass.
    pub text: Option<String>,
    /// Query, value, bounds and outcome, for the record.
    pub record: Value,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Within bounds.
    Pass,
    /// Out of bounds.
    Fail,
    /// Not known; never a pass.
    Inconclusive,
}

impl Outcome {
    /// The word used in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Inconclusive => "inconclusive",
        }
    }
}

/// Judges the answer to a metric check.
pub fn judge(plan: &Plan, check: &Check, answer: &Answer) -> Verdict {
    let (outcome, text) = match answer {
        Answer::Value { value, .. } if value.is_nan() => {
            (Outcome::Inconclusive, Some(no_values(plan, check, "no values found")))
        }
        Answer::Value { value, .. } => match breach(plan, check, *value) {
            Some(text) => (Outcome::Fail, Some(text)),
            None => (Outcome::Pass, None),
        },
        Answer::NoData { .. } if zoo::MISSING_DATA_PASSES => (Outcome::Pass, None),
        Answer::NoData { reason, .. } => (Outcome::Inconclusive, Some(no_values(plan, check, reason))),
        Answer::Broken(text) => (Outcome::Inconclusive, Some(text.clone())),
        // Consent is no measurement.
        Answer::Yes | Answer::No(_) => {
            (Outcome::Inconclusive, Some(format!("Metric query failed for {}: the answer is not a number", check.name)))
        }
    };
    let record = record(check, answer, outcome);
    Verdict { outcome, text, record }
}

/// The Event for a value that is out of bounds; `None` when it is good.
fn breach(plan: &Plan, check: &Check, value: f64) -> Option<String> {
    let halt = format!("Halt {} advancement", plan.key());
    let measure = match check.source {
        Source::Builtin(builtin) => Some(builtin.measure),
        Source::Inline(_) | Source::Template { .. } => None,
    };
    match measure {
        Some(Measure::SuccessRate) => out_of(check.bounds, value)
            .map(|(sign, bound)| format!("{halt} success rate {}% {sign} {}%", fixed(value), go_float(bound))),
        Some(Measure::Milliseconds) => slow(&halt, check.bounds, value),
        Some(Measure::Seconds) => slow(&halt, check.bounds, value * 1000.0),
        None => out_of(check.bounds, value)
            .map(|(sign, bound)| format!("{halt} {} {} {sign} {}", check.name, fixed(value), go_float(bound))),
    }
}

/// Go's `%.2f`.
fn fixed(value: f64) -> String {
    if value.is_finite() { format!("{value:.2}") } else { go_float(value) }
}

/// Latency is compared and shown in whole milliseconds, bounds included.
fn slow(halt: &str, bounds: Bounds, value: f64) -> Option<String> {
    let whole = Bounds { min: bounds.min.map(f64::trunc), max: bounds.max.map(f64::trunc) };
    let (sign, bound) = out_of(whole, value.trunc())?;
    Some(format!("{halt} request duration {} {sign} {}", milliseconds(value), milliseconds(bound)))
}

/// Which bound a value breaks, and on which side. Infinities break like any other number.
fn out_of(bounds: Bounds, value: f64) -> Option<(char, f64)> {
    let below = bounds.min.filter(|min| value < *min).map(|min| ('<', min));
    below.or_else(|| bounds.max.filter(|max| value > *max).map(|max| ('>', max)))
}

/// Whole milliseconds as Go prints a duration.
fn milliseconds(value: f64) -> String {
    let text = duration::format(Duration::from_millis(value.abs() as u64));
    if value <= -1.0 { format!("-{text}") } else { text }
}

/// The Event for missing data.
fn no_values(plan: &Plan, check: &Check, reason: &str) -> String {
    let name = &check.name;
    match check.source {
        Source::Builtin(builtin) => {
            let text = format!(
                "Halt advancement no values found for {} metric {name} probably {} is not receiving traffic",
                plan.provider,
                plan.target_key()
            );
            if builtin.is_success_rate() { format!("{text}: {reason}") } else { text }
        }
        Source::Inline(_) => format!("Halt advancement no values found for metric: {name}"),
        Source::Template { .. } => format!("Halt advancement no values found for custom metric: {name}: {reason}"),
    }
}

fn record(check: &Check, answer: &Answer, outcome: Outcome) -> Value {
    let (value, query, reason) = match answer {
        Answer::Value { value, query } => (Some(*value), Some(query), None),
        Answer::NoData { reason, query } => (None, Some(query), Some(reason)),
        Answer::Broken(reason) | Answer::No(reason) => (None, None, Some(reason)),
        Answer::Yes => (None, None, None),
    };
    let mut record = json!({ "check": check.name, "verdict": outcome.as_str() });
    let members = [
        ("query", query.map(|text| Value::from(text.as_str()))),
        // JSON has no infinities; serde writes them as null.
        ("value", value.map(Value::from)),
        ("min", check.bounds.min.map(Value::from)),
        ("max", check.bounds.max.map(Value::from)),
        ("reason", reason.map(|text| Value::from(text.as_str()))),
    ];
    for (name, member) in members {
        if let Some(member) = member {
            record[name] = member;
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use seaway_api::Canary;
    use seaway_api::canary::{Metric, NamespacedRef, ThresholdRange};

    use super::*;
    use crate::plan::Settings;

    fn metric(name: &str, min: Option<f64>, max: Option<f64>) -> Metric {
        let threshold_range = Some(ThresholdRange { min, max });
        Metric { name: name.into(), interval: "1m".into(), threshold_range, ..Metric::default() }
    }

    fn judged(metric: Metric, answer: &Answer) -> Verdict {
        let plan = Plan::new(&Canary::test().metrics(vec![metric]), &Settings::default()).unwrap();
        judge(&plan, &plan.metrics[0], answer)
    }

    fn value(value: f64) -> Answer {
        Answer::Value { value, query: "q".into() }
    }

    fn text(metric: Metric, answer: &Answer) -> Option<String> {
        judged(metric, answer).text
    }

    #[test]
    fn events_are_worded_like_flaggers() {
        let rate = || metric("request-success-rate", Some(99.0), Some(99.9));
        let latency = || metric("request-duration", Some(10.9), Some(500.0));
        let template = || Metric {
            template_ref: Some(NamespacedRef { name: "t".into(), ..NamespacedRef::default() }),
            ..metric("error-rate", Some(0.5), Some(1.0))
        };
        let inline = || Metric { query: "up".into(), ..metric("mine", None, Some(1e21)) };
        let missing = Answer::NoData { reason: "no values found".into(), query: "q".into() };
        for (metric, answer, said) in [
            (rate(), value(98.765), "Halt podinfo.test advancement success rate 98.77% < 99%"),
            (rate(), value(100.0), "Halt podinfo.test advancement success rate 100.00% > 99.9%"),
            (latency(), value(1.515_999), "Halt podinfo.test advancement request duration 1.515s > 500ms"),
            (latency(), value(0.009), "Halt podinfo.test advancement request duration 9ms < 10ms"),
            (template(), value(54.816), "Halt podinfo.test advancement error-rate 54.82 > 1"),
            (template(), value(0.1), "Halt podinfo.test advancement error-rate 0.10 < 0.5"),
            (inline(), value(f64::INFINITY), "Halt podinfo.test advancement mine +Inf > 1e+21"),
            (
                rate(),
                missing.clone(),
                "Halt advancement no values found for gatewayapi:v1 metric request-success-rate \
                 probably podinfo.test is not receiving traffic: no values found",
            ),
            (
                latency(),
                missing.clone(),
                "Halt advancement no values found for gatewayapi:v1 metric request-duration \
                 probably podinfo.test is not receiving traffic",
            ),
            (inline(), missing.clone(), "Halt advancement no values found for metric: mine"),
            (template(), missing, "Halt advancement no values found for custom metric: error-rate: no values found"),
            (template(), Answer::Broken("Metric template t.test error: x".into()), "Metric template t.test error: x"),
        ] {
            assert_eq!(text(metric, &answer).as_deref(), Some(said));
        }
    }

    #[test]
    fn bounds_are_inclusive_and_latency_is_whole_milliseconds() {
        for (metric, number) in [
            (metric("request-success-rate", Some(99.0), None), 99.0),
            (metric("request-duration", None, Some(500.0)), 0.5),
            (metric("request-duration", None, Some(500.0)), 0.500_9),
            (Metric { query: "up".into(), ..metric("mine", Some(1.0), Some(1.0)) }, 1.0),
        ] {
            assert_eq!(judged(metric, &value(number)).outcome, Outcome::Pass, "{number}");
        }
    }

    #[test]
    fn missing_data_never_passes() {
        let open = || Metric { query: "up".into(), ..metric("mine", Some(f64::MIN), None) };
        for answer in [
            value(f64::NAN),
            Answer::NoData { reason: "query returned multiple values".into(), query: "q".into() },
            Answer::Broken("no".into()),
            Answer::Yes,
            Answer::No("no".into()),
        ] {
            let verdict = judged(open(), &answer);
            assert_eq!(verdict.outcome, Outcome::Inconclusive);
            assert!(verdict.text.is_some() && verdict.record["verdict"] == "inconclusive");
        }
    }

    #[test]
    fn records_hold_the_numbers() {
        let verdict = judged(metric("request-success-rate", Some(99.0), None), &value(12.5));
        assert_eq!(
            verdict.record,
            json!({ "check": "request-success-rate", "verdict": "fail", "query": "q", "value": 12.5, "min": 99.0 })
        );
    }
}
