//! The questions a plan asks of the outside: webhooks and metrics, with everything needed to ask and to judge.

use std::time::Duration;

use seaway_api::FieldError;
use seaway_api::canary::{Analysis, HookType, Metric};

use super::Strings;
use crate::builtin::{self, Builtin};

/// One webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hook {
    /// Name, shown in Events.
    pub name: String,
    /// When it is called.
    pub kind: HookType,
    /// Where the POST goes.
    pub url: String,
    /// Time limit of one attempt.
    pub timeout: Duration,
    /// Attempts after the first.
    pub retries: u32,
    /// Accept any TLS certificate.
    pub insecure: bool,
    /// Do not alert while this gate is closed.
    pub mute_alert: bool,
    /// Sent along unchanged.
    pub metadata: Strings,
}

/// One metric check.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Name, shown in Events.
    pub name: String,
    /// Where its query comes from.
    pub source: Source,
    /// The window, as it is put into the query.
    pub interval: String,
    /// What is good.
    pub bounds: Bounds,
    /// Values for the template.
    pub variables: Strings,
}

/// Where the query of a check comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// One of the queries every router has.
    Builtin(&'static Builtin),
    /// Written in the Canary.
    Inline(String),
    /// A MetricTemplate.
    Template {
        /// Its name.
        name: String,
        /// Its namespace.
        namespace: String,
    },
}

/// Inclusive bounds; a side that is absent is open.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// Smallest good value.
    pub min: Option<f64>,
    /// Largest good value.
    pub max: Option<f64>,
}

impl Bounds {
    /// `thresholdRange`, or the older `threshold`, which is a minimum for the success rate and a maximum (of zero when it
    /// is not written) for everything else.
    fn of(metric: &Metric, minimum: bool) -> Self {
        match metric.threshold_range {
            Some(range) => Self { min: range.min, max: range.max },
            None if minimum => Self { min: Some(metric.threshold.unwrap_or(0.0)), max: None },
            None => Self { min: None, max: Some(metric.threshold.unwrap_or(0.0)) },
        }
    }
}

/// The window of a metric that names none.
const DEFAULT_WINDOW: &str = "1m";

/// The checks in the order Flagger makes them: builtin and inline ones as written, then those with a template. One metric
/// may be several checks.
pub(super) fn checks(analysis: &Analysis, namespace: &str, provider: &str, errors: &mut Vec<FieldError>) -> Vec<Check> {
    let mut direct = Vec::new();
    let mut templated = Vec::new();
    for (index, metric) in analysis.metrics.iter().enumerate() {
        let path = format!("spec.analysis.metrics[{index}]");
        let check = |source: Source| {
            let minimum = matches!(source, Source::Builtin(builtin) if builtin.is_success_rate());
            let interval = if metric.interval.is_empty() { DEFAULT_WINDOW } else { &metric.interval };
            Check {
                name: metric.name.clone(),
                bounds: Bounds::of(metric, minimum),
                source,
                interval: interval.to_owned(),
                variables: metric.template_variables.clone(),
            }
        };
        let builtin = builtin::builtin(provider, &metric.name);
        direct.extend(builtin.map(|builtin| check(Source::Builtin(builtin))));
        if !metric.query.is_empty() {
            direct.push(check(Source::Inline(metric.query.clone())));
        }
        if let Some(reference) = &metric.template_ref {
            templated.push(check(Source::Template {
                name: reference.name.clone(),
                namespace: reference.namespace_or(namespace).to_owned(),
            }));
        } else if builtin.is_none() && metric.query.is_empty() {
            errors.push(FieldError::new(
                path,
                format!("metric {} is not builtin and has neither templateRef nor query", metric.name),
                "name a MetricTemplate in templateRef",
            ));
        }
    }
    direct.extend(templated);
    direct
}

#[cfg(test)]
mod tests {
    use seaway_api::canary::{NamespacedRef, ThresholdRange};

    use super::*;

    fn made(metrics: Vec<Metric>) -> (Vec<Check>, Vec<FieldError>) {
        let mut errors = Vec::new();
        let analysis = Analysis { metrics, ..Analysis::default() };
        (checks(&analysis, "test", "gatewayapi:v1", &mut errors), errors)
    }

    fn named(name: &str) -> Metric {
        Metric { name: name.into(), ..Metric::default() }
    }

    #[test]
    fn templates_come_last_and_missing_windows_are_a_minute() {
        let reference = NamespacedRef { name: "t".into(), ..NamespacedRef::default() };
        let template = Metric { template_ref: Some(reference), ..named("a") };
        let inline = Metric { query: "up".into(), ..named("b") };
        let (checks, errors) = made(vec![template, inline, named("request-duration")]);
        assert_eq!(errors, []);
        assert_eq!(checks.iter().map(|check| check.name.as_str()).collect::<Vec<_>>(), ["b", "request-duration", "a"]);
        assert_eq!(checks[2].source, Source::Template { name: "t".into(), namespace: "test".into() });
        assert!(checks.iter().all(|check| check.interval == "1m"));
    }

    #[test]
    fn the_old_threshold_has_a_direction() {
        let threshold = |name: &str| Metric { threshold: Some(99.0), query: "x".into(), ..named(name) };
        let (checks, _) = made(vec![threshold("request-success-rate"), threshold("mine")]);
        assert_eq!(checks[0].bounds, Bounds { min: Some(99.0), max: None });
        assert_eq!(checks[2].bounds, Bounds { min: None, max: Some(99.0) });
        let range = ThresholdRange { min: Some(1.0), max: Some(2.0) };
        let (checks, _) = made(vec![Metric { threshold_range: Some(range), ..threshold("request-duration") }]);
        assert_eq!(checks[0].bounds, Bounds { min: Some(1.0), max: Some(2.0) });
    }

    #[test]
    fn a_metric_without_a_query_is_an_error() {
        let (_, errors) = made(vec![named("request-duration"), named("mine")]);
        assert_eq!(errors.iter().map(|error| error.path.as_str()).collect::<Vec<_>>(), ["spec.analysis.metrics[1]"]);
    }
}
