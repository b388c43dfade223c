//! Rules about webhooks: somebody can be called, in a time that can pass.

use super::syntax::url_problem;
use super::{Context, Report};
use crate::canary::{Analysis, Webhook};
use crate::duration;

pub(super) fn check(analysis: &Analysis, context: &Context<'_>, report: &mut Report) {
    for (index, webhook) in analysis.webhooks.iter().enumerate() {
        one(&format!("spec.analysis.webhooks[{index}]"), webhook, context, report);
    }
}

fn one(path: &str, webhook: &Webhook, context: &Context<'_>, report: &mut Report) {
    if webhook.name.is_empty() {
        report.warn(format!("{path}.name"), "Events about this webhook have no name in them", "name it");
    }
    if let Some(problem) = url_problem(&webhook.url, context.any_address) {
        report.error(format!("{path}.url"), problem, "write the http or https URL of a service");
    }
    let timeout = format!("{path}.timeout");
    match duration::timeout(&webhook.timeout) {
        Err(error) => report.error(timeout, error.to_string(), "write a duration: 15s"),
        Ok(limit) if limit.is_zero() => report.error(timeout, "no call ends in no time", "write a duration: 15s"),
        Ok(limit) if webhook.timeout.len() == 1 => {
            let used = duration::format(limit);
            report.warn(timeout, format!("\"{}\" has no unit; {used} is used", webhook.timeout), "add the unit: 15s");
        }
        Ok(_) => {}
    }
    if let Some(retries) = webhook.retries.filter(|retries| !(0..=1_000).contains(retries)) {
        report.error(
            format!("{path}.retries"),
            format!("{retries} retries make no sense"),
            "write 0 or a small number",
        );
    }
}
