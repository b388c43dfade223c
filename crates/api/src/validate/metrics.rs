//! Rules about metric checks: each has a query, a window and a bound that some values pass and some do not.

use super::syntax::url_problem;
use super::{Context, Report};
use crate::canary::{Analysis, Canary, HookType, Metric};
use crate::duration;
use crate::number::go_float;

/// Metrics whose queries come with the router.
pub const BUILTIN_METRICS: [&str; 2] = ["request-success-rate", "request-duration"];

pub(super) fn check(canary: &Canary, analysis: &Analysis, context: &Context<'_>, report: &mut Report) {
    let server = canary.spec.metrics_server.as_str();
    if !server.is_empty()
        && let Some(problem) = url_problem(server, context.any_address)
    {
        report.error("spec.metricsServer", problem, "write the http or https URL of a Prometheus");
    }
    for (index, metric) in analysis.metrics.iter().enumerate() {
        one(&format!("spec.analysis.metrics[{index}]"), metric, context, report);
    }
    let rollout_hooks = analysis.webhooks.iter().any(|hook| hook.type_ == HookType::Rollout);
    if analysis.metrics.is_empty() && !rollout_hooks {
        report.warn(
            "spec.analysis",
            "nothing is checked: every new version is promoted",
            "add metrics or a webhook of type rollout",
        );
    }
}

fn one(path: &str, metric: &Metric, context: &Context<'_>, report: &mut Report) {
    let builtin = BUILTIN_METRICS.contains(&metric.name.as_str());
    if metric.name.is_empty() {
        report.error(format!("{path}.name"), "there is no name", "name the metric");
    }
    let query = metric.query.trim();
    if !builtin && metric.template_ref.is_none() && query.is_empty() && !metric.name.is_empty() {
        report.error(
            path,
            format!("\"{}\" has no query: it is not builtin and names no template", metric.name),
            format!("add a templateRef or a query, or use {}", BUILTIN_METRICS.join(" or ")),
        );
    }
    if metric.template_ref.as_ref().is_some_and(|template| template.name.is_empty()) {
        report.error(format!("{path}.templateRef.name"), "there is no name", "name a MetricTemplate");
    }
    if !query.is_empty()
        && let Err(problem) = (context.template)(&metric.query)
    {
        report.error(format!("{path}.query"), problem, "correct the template");
    }
    window(path, metric, report);
    bounds(path, metric, builtin, report);
}

fn window(path: &str, metric: &Metric, report: &mut Report) {
    if metric.interval.is_empty() {
        return;
    }
    let remedy = "write a duration: 1m";
    match duration::parse(&metric.interval) {
        Err(error) => report.error(format!("{path}.interval"), error.to_string(), remedy),
        Ok(window) if window.is_zero() => {
            report.error(format!("{path}.interval"), "no request falls into a window of no length", remedy);
        }
        Ok(_) => {}
    }
}

fn bounds(path: &str, metric: &Metric, builtin: bool, report: &mut Report) {
    let range_path = format!("{path}.thresholdRange");
    let Some(range) = metric.threshold_range else {
        if metric.threshold.is_none() {
            let meaning =
                if metric.name == "request-success-rate" { "every value passes" } else { "every value above 0 fails" };
            report.warn(path, format!("there is no thresholdRange: {meaning}"), "add thresholdRange with min or max");
        }
        return;
    };
    match (range.min, range.max) {
        (None, None) => {
            report.error(range_path, "there is neither min nor max: every value would pass", "add min or max");
        }
        (Some(min), Some(max)) if min > max => {
            let problem = format!("min {} is more than max {}: no value would pass", go_float(min), go_float(max));
            report.error(range_path, problem, "swap them");
        }
        (Some(min), _) if builtin && metric.name == "request-success-rate" && min > 100.0 => {
            report.warn(
                range_path,
                format!("a rate is never {} %: every check fails", go_float(min)),
                "write 100 or less",
            );
        }
        (_, Some(max)) if builtin && max < 0.0 => {
            report.warn(range_path, format!("{} is never below 0: every check fails", metric.name), "write 0 or more");
        }
        _ => {}
    }
    if metric.threshold.is_some() {
        report.warn(format!("{path}.threshold"), "thresholdRange is used instead", "remove it");
    }
}
