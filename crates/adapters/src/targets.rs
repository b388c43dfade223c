//! Targets: the user's workload, the primary made from it, and what both need.
//!
//! Pure like the routers: cached objects in, changes out. New objects are created (a create never overwrites what somebody
//! else made in between); objects that exist are changed by JSON Patch with preconditions, field by field. That is exact
//! where server-side apply is not: a field that the target dropped also goes away on a primary that Flagger created, whose
//! fields another manager owns.

pub mod config;
pub mod deployment;
pub mod hpa;
pub mod names;
pub(crate) mod ownership;
pub mod previous;
pub mod services;
mod template;

use std::collections::BTreeMap;

use serde_json::Value;

pub use self::ownership::{Foreign, foreign_objects};
use crate::object::{is_flux, strings};
use crate::refusal::Refusal;

/// How an installation names and copies things: command-line flags of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conventions {
    /// Labels that may select pods; the first that a target's selector has is used.
    pub selector_labels: Vec<String>,
    /// Prefixes of labels and annotations that a primary takes over from its target; `*` means all.
    pub include_label_prefixes: Vec<String>,
    /// Whether ConfigMaps and Secrets are tracked and copied.
    pub track_configs: bool,
}

impl Default for Conventions {
    fn default() -> Self {
        Self {
            selector_labels: ["app", "name", "app.kubernetes.io/name"].map(str::to_owned).to_vec(),
            include_label_prefixes: Vec::new(),
            track_configs: true,
        }
    }
}

impl Conventions {
    /// The labels or annotations that a primary takes over.
    pub(crate) fn included(&self, entries: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let wanted = |key: &str| {
            !is_flux(key)
                && self.include_label_prefixes.iter().any(|prefix| prefix == "*" || key.starts_with(prefix.as_str()))
        };
        entries.iter().filter(|(key, _)| wanted(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
    }
}

/// The label that tells the target's pods from the primary's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Label key.
    pub label: String,
    /// Its value on the target's pods.
    pub value: String,
}

impl Selector {
    /// The selector label of a Deployment, by the installation's order of preference.
    pub fn of(target: &Value, conventions: &Conventions) -> Result<Self, Refusal> {
        let labels = strings(target, "/spec/selector/matchLabels");
        let found = conventions.selector_labels.iter().find_map(|label| Some((label, labels.get(label)?)));
        found.map(|(label, value)| Self { label: label.clone(), value: value.clone() }).ok_or_else(|| {
            let (name, namespace) =
                (crate::object::text(target, "/metadata/name"), crate::object::text(target, "/metadata/namespace"));
            let wanted = conventions.selector_labels.join(" ");
            Refusal::user(format!(
                "getSelectorLabel failed: deployment {name}.{namespace} spec.selector.matchLabels must contain one of [{wanted}]"
            ))
        })
    }

    /// Its value on the primary's pods.
    pub fn primary_value(&self) -> String {
        seaway_api::canary::primary_name(&self.value)
    }
}
