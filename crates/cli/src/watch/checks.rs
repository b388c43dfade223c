//! What metrics and hooks said last. Pure.
//!
//! The records of decisions in a Canary's status tell everything. Stock CRDs drop them, so the Events, which are Flagger's
//! own words, are read as well.

use seaway_api::canary::{Analysis, HookType};
use seaway_api::number::go_float;
use serde::Serialize;
use serde_json::Value;

use super::objects::{EventLine, clean};

/// A check and what it said last.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Check {
    /// Name of the metric or hook.
    pub name: String,
    /// The number, if there was one.
    pub value: Option<f64>,
    /// Smallest good value.
    pub min: Option<f64>,
    /// Largest good value.
    pub max: Option<f64>,
    /// `pass`, `fail` or `inconclusive`; empty when it was not asked yet.
    pub verdict: String,
    /// Why it did not pass, where no number says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The type of hook it is, if it is one; hooks have no numbers.
    #[serde(skip)]
    pub hook: Option<HookType>,
}

impl Check {
    /// Everything an analysis asks, with nothing known yet: metrics, then hooks. Hooks that only listen are no checks.
    pub fn asked(analysis: &Analysis) -> Vec<Self> {
        let metrics = analysis.metrics.iter().map(|metric| {
            let range = metric.threshold_range.unwrap_or_default();
            Self { name: clean(&metric.name), min: range.min, max: range.max, ..Self::default() }
        });
        let asks = |kind| !matches!(kind, HookType::Event | HookType::Rollback);
        let hooks = analysis.webhooks.iter().filter(|hook| asks(hook.type_));
        metrics
            .chain(hooks.map(|hook| Self { name: clean(&hook.name), hook: Some(hook.type_), ..Self::default() }))
            .collect()
    }

    /// The value, with as many digits as help.
    pub fn figure(&self) -> String {
        match (self.value, &self.reason) {
            (Some(value), _) if value != 0.0 && value.abs() < 1.0 => format!("{value:.3}"),
            (Some(value), _) => format!("{value:.2}"),
            (None, Some(reason)) => reason.clone(),
            (None, None) => "no data".to_owned(),
        }
    }

    /// `≤ 1`, `≥ 99` or both.
    pub fn bounds(&self) -> String {
        let min = self.min.map(|min| format!("≥ {}", go_float(min)));
        let max = self.max.map(|max| format!("≤ {}", go_float(max)));
        [min, max].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Finds the records of checks in the record of a decision, however deep they are.
pub fn recorded(record: &Value, found: &mut Vec<Check>) {
    match record {
        Value::Object(members) => {
            if let (Some(Value::String(name)), Some(Value::String(verdict))) =
                (members.get("check"), members.get("verdict"))
            {
                let number = |key: &str| members.get(key).and_then(Value::as_f64);
                let value = number("value");
                let reason = members.get("reason").and_then(Value::as_str).filter(|_| value.is_none());
                found.push(Check {
                    name: clean(name),
                    value,
                    min: number("min"),
                    max: number("max"),
                    verdict: clean(verdict),
                    reason: reason.map(clean),
                    hook: None,
                });
            } else {
                members.values().for_each(|member| recorded(member, found));
            }
        }
        Value::Array(items) => items.iter().for_each(|item| recorded(item, found)),
        _ => {}
    }
}

/// What an Event says about one of `checks`, if anything: `Halt podinfo.test advancement error-rate 24.73 > 1`,
/// `Pre-rollout check smoke-test passed`, `… check load-test failed …`.
pub fn said(event: &EventLine, checks: &[Check]) -> Option<Check> {
    let words: Vec<&str> = event.text.split_whitespace().collect();
    let check =
        checks.iter().find(|check| words.contains(&check.name.as_str()) || is_builtin(&event.text, &check.name))?;
    if check.hook.is_some() {
        let after = words.iter().skip_while(|word| **word != check.name).nth(1);
        let verdict = match after {
            Some(&"passed") => "pass",
            Some(&"failed") => "fail",
            _ => return None,
        };
        let reason = event.text.split_once(" failed ").map(|(_, reason)| reason.to_owned());
        return Some(Check {
            verdict: verdict.to_owned(),
            reason: reason.filter(|_| verdict == "fail"),
            ..check.clone()
        });
    }
    if event.text.contains("no values found") {
        let (verdict, reason) = ("inconclusive".to_owned(), Some("no values found".to_owned()));
        return Some(Check { verdict, reason, value: None, ..check.clone() });
    }
    let sign = words.iter().position(|word| *word == "<" || *word == ">").filter(|_| event.text.starts_with("Halt"))?;
    let value = words.get(sign.checked_sub(1)?)?;
    Some(Check {
        verdict: "fail".to_owned(),
        value: value.trim_end_matches('%').parse().ok(),
        reason: Some((*value).to_owned()),
        ..check.clone()
    })
}

/// The builtin metrics have words of their own.
fn is_builtin(text: &str, name: &str) -> bool {
    match name {
        "request-success-rate" => text.contains(" advancement success rate "),
        "request-duration" => text.contains(" advancement request duration "),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use seaway_api::Canary;
    use serde_json::json;

    use super::*;

    fn hear(text: &str, checks: &[Check]) -> Option<Check> {
        let event = EventLine {
            name: String::new(),
            about: crate::watch::objects::Key::default(),
            at: None,
            warning: false,
            text: text.to_owned(),
            count: 1,
            writes: 1,
        };
        said(&event, checks)
    }

    #[test]
    fn checks_are_found_wherever_they_are_recorded() {
        let record = json!({"rule": "analyse", "checks": [
            {"check": "latency", "verdict": "fail", "value": 0.7, "max": 0.5},
            {"check": "gate", "verdict": "fail", "reason": "closed\u{7}"},
        ]});
        let mut found = Vec::new();
        recorded(&record, &mut found);
        let shown: Vec<_> = found.iter().map(|check| (check.name.as_str(), check.figure(), check.bounds())).collect();
        assert_eq!(
            shown,
            [("latency", "0.700".to_owned(), "≤ 0.5".to_owned()), ("gate", "closed ".to_owned(), String::new())]
        );
    }

    #[test]
    fn events_tell_what_stock_crds_drop() {
        let canary = Canary::test().webhook("smoke", HookType::PreRollout).webhook("log", HookType::Event);
        let mut checks = Check::asked(canary.spec.analysis().unwrap());
        checks.push(Check { name: "error-rate".into(), max: Some(1.0), ..Check::default() });
        assert_eq!(checks.len(), 4, "a hook that only listens is no check");
        let heard =
            |text: &str| hear(text, &checks).map(|check| (check.name.clone(), check.verdict.clone(), check.figure()));
        let expect =
            |name: &str, verdict: &str, figure: &str| Some((name.to_owned(), verdict.to_owned(), figure.to_owned()));
        assert_eq!(heard("Halt podinfo.test advancement error-rate 24.73 > 1"), expect("error-rate", "fail", "24.73"));
        assert_eq!(
            heard("Halt podinfo.test advancement success rate 12.50% < 99%"),
            expect("request-success-rate", "fail", "12.50")
        );
        assert_eq!(
            heard("Halt podinfo.test advancement request duration 1.2s > 500ms"),
            expect("request-duration", "fail", "1.2s")
        );
        assert_eq!(heard("Pre-rollout check smoke passed"), expect("smoke", "pass", "no data"));
        assert_eq!(heard("Pre-rollout check smoke failed 500"), expect("smoke", "fail", "500"));
        assert_eq!(
            heard("Halt advancement no values found for custom metric: error-rate nothing"),
            expect("error-rate", "inconclusive", "no values found")
        );
        assert_eq!(heard("Advance podinfo.test canary weight 10"), None);
    }
}
