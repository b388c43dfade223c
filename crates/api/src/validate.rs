//! What is wrong with an object, field by field, and what to do about it. The operator and `seaway lint` both ask here, so
//! they say the same.
//!
//! Two kinds of answers. A *warning*: the value is odd, but it has a meaning (Flagger defaults or clamps it, or it works
//! as told), and that meaning is kept. An *error*: a rollout would stall, never end or do something nobody asked for, or
//! the cluster would refuse what has to be created. What cannot be used because nothing executes it
//! (`skipAnalysis`) is never worse than a warning.
//!
//! This module sees one object and what the caller tells it about the rest. It reads no cluster, so a reference to an
//! object that does not exist is not found here.

mod analysis;
mod capabilities;
mod gateway;
mod metrics;
mod references;
mod service;
pub(crate) mod syntax;
mod target;
mod templates;
mod webhooks;

pub use capabilities::{Capabilities, Router, StrategyName};
pub use metrics::BUILTIN_METRICS;
pub use templates::{validate_alert_provider, validate_metric_template};

use crate::canary::Canary;
use crate::field::FieldError;

/// Checks the text of a query template; the error says what is wrong.
pub type TemplateCheck<'a> = &'a dyn Fn(&str) -> Result<(), String>;

/// What the caller knows beside the object.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What this version can do.
    pub capabilities: &'a Capabilities,
    /// Router of a Canary that names none.
    pub default_provider: &'a str,
    /// Refuse references into other namespaces.
    pub no_cross_namespace_refs: bool,
    /// Allow URLs of loopback, link-local and cluster-control addresses.
    pub any_address: bool,
    /// Checks query templates.
    pub template: TemplateCheck<'a>,
    /// The other Canaries, at least those of the same namespace. The object itself may be among them.
    pub siblings: &'a [&'a Canary],
}

impl Default for Context<'_> {
    /// This version's capabilities, no siblings, every template is fine.
    fn default() -> Self {
        Self {
            capabilities: &capabilities::BUILT,
            default_provider: "",
            no_cross_namespace_refs: false,
            any_address: false,
            template: &|_| Ok(()),
            siblings: &[],
        }
    }
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Why the object is not acted on.
    pub errors: Vec<FieldError>,
    /// What was defaulted, clamped or is unwise.
    pub warnings: Vec<FieldError>,
}

impl Report {
    /// Whether the object can be acted on.
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    pub(crate) fn error(&mut self, path: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.errors.push(FieldError::new(path, problem, remedy));
    }

    pub(crate) fn warn(&mut self, path: impl Into<String>, problem: impl Into<String>, remedy: impl Into<String>) {
        self.warnings.push(FieldError::new(path, problem, remedy));
    }

    /// Takes in `other`; its errors count as warnings, because nothing executes what they are about.
    fn take_as_warnings(&mut self, other: Self) {
        self.warnings.extend(other.errors);
        self.warnings.extend(other.warnings);
    }

    fn take(&mut self, other: Self) {
        self.errors.extend(other.errors);
        self.warnings.extend(other.warnings);
    }
}

/// Everything that is wrong with a Canary, in the order of its fields.
pub fn validate(canary: &Canary, context: &Context<'_>) -> Report {
    let mut report = Report::default();
    let spec = &canary.spec;
    let router = target::provider(canary, context, &mut report);
    target::check(canary, context, &mut report);
    references::check(canary, context, &mut report);
    service::check(spec, &mut report);
    if router.is_some_and(Router::is_gateway_api) {
        gateway::check(spec, &mut report);
    }
    let mut found = Report::default();
    analysis::check(spec, router, context, &mut found);
    if let Some(analysis) = spec.analysis() {
        metrics::check(canary, analysis, context, &mut found);
        webhooks::check(analysis, context, &mut found);
    }
    if spec.skip_analysis {
        report.take_as_warnings(found);
    } else {
        report.take(found);
    }
    if !spec.revert_on_deletion {
        report.warn(
            "spec.revertOnDeletion",
            "deleting the Canary removes the primary that serves users",
            "set it to true to have the target serve again first",
        );
    }
    report
}

#[cfg(test)]
mod mutations;
#[cfg(test)]
mod tests;
