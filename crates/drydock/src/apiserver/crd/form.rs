//! A definition as a real server looks at it: what all versions have in common stands once, above them.
//!
//! That is how the oldest API wrote it, and refusals still name places in that form: `spec.validation` instead of
//! `spec.versions[0].schema`.

use serde_json::Value;

/// What every version may have for itself.
const PARTS: [&str; 4] = ["schema", "subresources", "additionalPrinterColumns", "selectableFields"];

pub(super) struct Form<'a> {
    versions: &'a [Value],
    shared: [bool; PARTS.len()],
}

impl<'a> Form<'a> {
    pub(super) fn of(definition: &'a Value) -> Self {
        let versions = definition.pointer("/spec/versions").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let shared = PARTS.map(|part| versions.iter().all(|version| version.get(part) == versions[0].get(part)));
        Self { versions, shared }
    }

    pub(super) fn versions(&self) -> &'a [Value] {
        self.versions
    }

    /// What all versions have in common.
    pub(super) fn common(&self, part: &str) -> Option<&'a Value> {
        self.versions.first().filter(|_| self.is_shared(part))?.get(part)
    }

    /// What a version has for itself.
    pub(super) fn own(&self, version: &'a Value, part: &str) -> Option<&'a Value> {
        version.get(part).filter(|_| !self.is_shared(part))
    }

    fn is_shared(&self, part: &str) -> bool {
        PARTS.iter().position(|known| *known == part).is_some_and(|at| self.shared[at])
    }
}
