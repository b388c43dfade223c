//! Rules about the steps: a rollout must begin, move, and end.

use std::time::Duration;

use super::syntax::is_token;
use super::{Context, Report, Router, StrategyName};
use crate::canary::{Analysis, CanarySpec};
use crate::duration::{Interval, format as go};

/// No analysis takes longer on purpose.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3_600);

pub(super) fn check(spec: &CanarySpec, router: Option<Router>, context: &Context<'_>, report: &mut Report) {
    const PATH: &str = "spec.analysis";
    let Some(analysis) = spec.analysis() else {
        report.error(PATH, "there is no analysis", "add interval, threshold and stepWeight");
        return;
    };
    if spec.analysis.is_none() {
        report.warn("spec.canaryAnalysis", "the field has a new name", "rename it to analysis");
    }
    interval(analysis, report);
    threshold(analysis, report);
    strategy(analysis, router, report);
    steps(analysis, report);
    percentages(analysis, report);
    affinity(analysis, report);
    alerts(analysis, context, report);
}

fn interval(analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.interval";
    let interval = Interval::of(&analysis.interval);
    let used = go(interval.duration());
    match interval {
        Interval::Given(_) => {}
        Interval::Default => report.warn(PATH, format!("there is no interval; {used} is used"), "write one"),
        Interval::Raised => {
            report.warn(PATH, format!("\"{}\" is too short; {used} is used", analysis.interval), "write at least 10s");
        }
        Interval::Broken(error) => report.warn(PATH, format!("{error}; {used} is used"), "write a Go duration: 1m30s"),
    }
}

fn threshold(analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.threshold";
    match analysis.threshold {
        None => report.warn(PATH, "there is no threshold; the first failed check rolls back", "write one"),
        Some(threshold) if threshold <= 0 => {
            report.warn(
                PATH,
                format!("{threshold} is read as 1: the first failed check rolls back"),
                "write 1 or more",
            );
        }
        Some(threshold) if threshold > 1_000_000 => {
            report.warn(
                PATH,
                format!("no analysis fails {threshold} times; nothing will roll back"),
                "write a small number",
            );
        }
        Some(_) => {}
    }
}

/// The strategy must be one the router can carry out. A strategy nobody built is refused, never replaced by another.
fn strategy(analysis: &Analysis, router: Option<Router>, report: &mut Report) {
    let Some(router) = router else { return };
    let iterates = analysis.iterations.is_some_and(|iterations| iterations > 0);
    let asked = [
        (iterates && !analysis.match_.is_empty(), StrategyName::AbTest, "match"),
        (iterates && analysis.match_.is_empty(), StrategyName::BlueGreen, "iterations"),
        (analysis.mirror, StrategyName::Mirror, "mirror"),
        (analysis.session_affinity.is_some(), StrategyName::Affinity, "sessionAffinity"),
    ];
    for (_, strategy, field) in asked.into_iter().filter(|(asked, ..)| *asked) {
        if !router.strategies.contains(&strategy) {
            report.error(
                format!("spec.analysis.{field}"),
                format!("{} is not built yet for {}", strategy.as_str(), router.name),
                "use stepWeight or stepWeights",
            );
        }
    }
    if !iterates && !analysis.match_.is_empty() {
        report.error(
            "spec.analysis.match",
            "a match counts only with iterations (A/B testing); weights are for all users",
            "use iterations instead of weights, or remove the match",
        );
    }
}

fn steps(analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis";
    let given = [
        ("stepWeight", analysis.step_weight.is_some()),
        ("stepWeights", analysis.step_weights.is_some()),
        ("iterations", analysis.iterations.is_some()),
    ];
    let names: Vec<_> = given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
    if names.len() != 1 {
        let problem = if names.is_empty() {
            "there are no steps".to_owned()
        } else {
            format!("{} exclude each other", names.join(" and "))
        };
        report.error(PATH, problem, "write exactly one of stepWeight, stepWeights and iterations");
        return;
    }
    if let Some(iterations) = analysis.iterations {
        self::iterations(iterations, analysis, report);
    }
    if let Some(step) = analysis.step_weight {
        step_weight(step, analysis, report);
    }
    if let Some(weights) = &analysis.step_weights {
        step_weights(weights, analysis, report);
    }
}

fn iterations(iterations: i64, analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.iterations";
    let Some(count) = u32::try_from(iterations).ok().filter(|count| *count > 0) else {
        let problem = if iterations > 0 { "never ends" } else { "never begins" };
        report.error(PATH, format!("an analysis of {iterations} checks {problem}"), "write how many checks must pass");
        return;
    };
    let whole = Interval::of(&analysis.interval).duration().saturating_mul(count);
    if whole > LONGEST {
        let years = whole.as_secs() / LONGEST.as_secs();
        report.error(
            PATH,
            format!("{iterations} checks take more than {years} years"),
            "write how many checks must pass",
        );
    }
}

fn step_weight(step: i64, analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.stepWeight";
    const MAX: &str = "spec.analysis.maxWeight";
    if step <= 0 {
        report.error(PATH, format!("a step of {step} never advances"), "write a step from 1 to 100");
    } else if step > 100 {
        report.warn(PATH, format!("{step} is read as 100: all traffic in one step"), "write a step from 1 to 100");
    }
    match analysis.max_weight {
        Some(max) if max <= 0 => report.warn(MAX, format!("{max} is read as 100"), "write a weight from 1 to 100"),
        Some(max) if max > 100 => {
            report.error(MAX, format!("a weight of {max} is never reached"), "write a weight from 1 to 100");
        }
        Some(max) if step <= 100 && step > max => report.warn(
            PATH,
            format!("the first step of {step} is already more than maxWeight {max}"),
            "write a step of at most maxWeight",
        ),
        _ => {}
    }
}

fn step_weights(weights: &[i64], analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.stepWeights";
    if weights.is_empty() {
        report.error(PATH, "there are no steps", "write rising weights from 1 to 100: [1, 5, 20, 50]");
    }
    let mut before = 0;
    for (index, weight) in weights.iter().copied().enumerate() {
        let path = format!("{PATH}[{index}]");
        if !(1..=100).contains(&weight) {
            report.error(path, format!("{weight} is no share of traffic"), "write a weight from 1 to 100");
        } else if weight <= before {
            let problem = format!("{weight} comes after {before}, so the rollout would not advance");
            report.error(path, problem, "write rising weights");
        }
        before = before.max(weight);
    }
    if analysis.max_weight.is_some() {
        report.warn(
            "spec.analysis.maxWeight",
            "stepWeights end at their last weight; maxWeight is not used",
            "remove it",
        );
    }
}

fn percentages(analysis: &Analysis, report: &mut Report) {
    let promotion = analysis.step_weight_promotion;
    if let Some(promotion) = promotion.filter(|promotion| !(0..=100).contains(promotion)) {
        let problem = format!("a step of {promotion} does not bring traffic back to the primary");
        report.error("spec.analysis.stepWeightPromotion", problem, "write a step from 1 to 100");
    }
    for (field, value) in [
        ("mirrorWeight", analysis.mirror_weight),
        ("primaryReadyThreshold", analysis.primary_ready_threshold),
        ("canaryReadyThreshold", analysis.canary_ready_threshold),
    ] {
        if let Some(value) = value.filter(|value| !(0..=100).contains(value)) {
            report.error(format!("spec.analysis.{field}"), format!("{value} is no percentage"), "write 0 to 100");
        }
    }
}

fn affinity(analysis: &Analysis, report: &mut Report) {
    const PATH: &str = "spec.analysis.sessionAffinity";
    let Some(affinity) = &analysis.session_affinity else { return };
    if affinity.cookie_name == affinity.primary_cookie_name {
        report.error(
            format!("{PATH}.primaryCookieName"),
            "can't use the same cookie name for both primary and cookie name; please update them to be different",
            "rename one",
        );
    }
    for (field, name) in [("cookieName", &affinity.cookie_name), ("primaryCookieName", &affinity.primary_cookie_name)] {
        let optional = field == "primaryCookieName" && name.is_empty();
        if !optional && !is_token(name) {
            report.error(
                format!("{PATH}.{field}"),
                format!("\"{name}\" is no cookie name"),
                "use letters, digits and dashes",
            );
        }
    }
    if affinity.max_age.is_some_and(|age| age < 0) {
        report.error(
            format!("{PATH}.maxAge"),
            "the cookie would be deleted at once",
            "write how many seconds it lives",
        );
    }
}

fn alerts(analysis: &Analysis, context: &Context<'_>, report: &mut Report) {
    const PATH: &str = "spec.analysis.alerts";
    for (index, alert) in analysis.alerts.iter().enumerate() {
        if alert.provider_ref.name.is_empty() {
            report.error(format!("{PATH}[{index}].providerRef.name"), "there is no name", "name an AlertProvider");
        }
    }
    if !analysis.alerts.is_empty() && context.capabilities.alert_providers.is_empty() {
        report.warn(
            PATH,
            "alerts are not built yet; none is sent",
            "watch the Events of the Canary, or use a webhook of type event",
        );
    }
}
