//! Rules about references into other namespaces. The texts are Flagger's.

use super::{Context, Report};
use crate::canary::Canary;

pub(super) fn check(canary: &Canary, context: &Context<'_>, report: &mut Report) {
    if !context.no_cross_namespace_refs {
        return;
    }
    let own = canary.namespace();
    let mut refuse = |path: String, what: &str, name: &str, namespace: &str| {
        if !namespace.is_empty() && namespace != own {
            report.error(
                path,
                format!("can't access {what} {name}.{namespace}, cross-namespace references are blocked"),
                format!(
                    "put it into the namespace {own}, or ask for the operator to run without -no-cross-namespace-refs"
                ),
            );
        }
    };
    if let Some(upstream) = &canary.spec.upstream_ref {
        refuse("spec.upstreamRef.namespace".into(), "gloo upstream", &upstream.name, &upstream.namespace);
    }
    let Some(analysis) = canary.spec.analysis() else { return };
    for (index, metric) in analysis.metrics.iter().enumerate() {
        if let Some(template) = &metric.template_ref {
            let path = format!("spec.analysis.metrics[{index}].templateRef.namespace");
            refuse(path, "metric template", &template.name, &template.namespace);
        }
    }
    for (index, alert) in analysis.alerts.iter().enumerate() {
        let path = format!("spec.analysis.alerts[{index}].providerRef.namespace");
        refuse(path, "alert provider", &alert.provider_ref.name, &alert.provider_ref.namespace);
    }
}
