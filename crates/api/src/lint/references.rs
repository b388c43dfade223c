//! What the objects of the given files say about each other.

use super::{Finding, Object, Severity, Typed};
use crate::field::FieldError;

pub(super) fn check(objects: &[Object]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        let same = |other: &&Object| {
            (&other.kind, &other.namespace, &other.name) == (&object.kind, &object.namespace, &object.name)
        };
        if let Some(first) = objects.iter().take(index).find(same) {
            let problem = format!("{} is also in {}, document {}", object.title(), first.file, first.document + 1);
            let error = FieldError::new("metadata.name", problem, "keep one");
            findings.push(object.finding(Severity::Error, error));
        }
        if let Some(Typed::Canary(canary)) = &object.typed
            && let Some(analysis) = canary.spec.analysis()
        {
            let mut missing = |path: String, kind: &str, namespace: &str, name: &str| {
                let found = objects
                    .iter()
                    .any(|other| other.kind == kind && other.namespace == namespace && other.name == name);
                if !found && !name.is_empty() {
                    let problem = format!("{kind} {namespace}/{name} is not in these files");
                    let error = FieldError::new(path, problem, "make sure it is in the cluster");
                    findings.push(object.finding(Severity::Warning, error));
                }
            };
            for (index, metric) in analysis.metrics.iter().enumerate() {
                if let Some(template) = &metric.template_ref {
                    let path = format!("spec.analysis.metrics[{index}].templateRef");
                    missing(path, "MetricTemplate", template.namespace_or(&object.namespace), &template.name);
                }
            }
            for (index, alert) in analysis.alerts.iter().enumerate() {
                let (path, provider) = (format!("spec.analysis.alerts[{index}].providerRef"), &alert.provider_ref);
                missing(path, "AlertProvider", provider.namespace_or(&object.namespace), &provider.name);
            }
        }
    }
    findings
}
