//! Rules about the two kinds a Canary refers to.

use super::syntax::{is_token, url_problem};
use super::{Context, Report};
use crate::{AlertProvider, MetricTemplate};

/// Everything that is wrong with a MetricTemplate.
pub fn validate_metric_template(template: &MetricTemplate, context: &Context<'_>) -> Report {
    let mut report = Report::default();
    let provider = &template.spec.provider;
    let built = context.capabilities.metric_providers;
    if !built.contains(&provider.type_.as_str()) {
        let problem = format!("the metric provider \"{}\" is not built yet", provider.type_);
        report.error("spec.provider.type", problem, format!("use {}", built.join(" or ")));
    }
    if provider.type_ == "prometheus" || !provider.address.is_empty() {
        let problem = url_problem(&provider.address, context.any_address);
        if let Some(problem) = problem {
            report.error("spec.provider.address", problem, "write the http or https URL of the provider");
        }
    }
    for name in provider.headers.keys().filter(|name| !is_token(name)) {
        report.error("spec.provider.headers", format!("\"{name}\" is no header name"), "rename it");
    }
    if provider.secret_ref.as_ref().is_some_and(|secret| secret.name.is_empty()) {
        report.error("spec.provider.secretRef.name", "there is no name", "name a Secret in the template's namespace");
    }
    if template.spec.query.trim().is_empty() {
        report.error("spec.query", "there is no query", "write the query");
    } else if let Err(problem) = (context.template)(&template.spec.query) {
        report.error("spec.query", problem, "correct the template");
    }
    report
}

/// Everything that is wrong with an AlertProvider.
pub fn validate_alert_provider(provider: &AlertProvider, context: &Context<'_>) -> Report {
    let mut report = Report::default();
    let spec = &provider.spec;
    if !context.capabilities.alert_providers.contains(&spec.type_.as_str()) {
        report.warn("spec.type", format!("alerts to \"{}\" are not built yet; none is sent", spec.type_), "");
    }
    match (&spec.secret_ref, spec.address.as_str()) {
        (None, "") => report.error("spec", "there is neither address nor secretRef", "write where alerts go"),
        (Some(_), address) if !address.is_empty() => {
            report.error("spec", "address and secretRef exclude each other", "remove one");
        }
        (Some(secret), _) if secret.name.is_empty() => {
            report.error("spec.secretRef.name", "there is no name", "name a Secret in the provider's namespace");
        }
        (Some(_), _) => {}
        (None, address) => {
            if let Some(problem) = url_problem(address, context.any_address) {
                report.error("spec.address", problem, "write the hook's https URL");
            }
        }
    }
    if !spec.proxy.is_empty()
        && let Some(problem) = url_problem(&spec.proxy, true)
    {
        report.error("spec.proxy", problem, "write the proxy's URL");
    }
    report
}
