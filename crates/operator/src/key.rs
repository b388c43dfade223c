//! Which canary: the name everything in the operator is filed under.

use std::fmt;

use seaway_adapters::object::text;
use serde_json::Value;

/// Namespace and name of a Canary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CanaryKey {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl CanaryKey {
    /// The key of `namespace/name`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    /// The key of a Canary as it is stored.
    pub(crate) fn of(object: &Value) -> Self {
        Self::new(text(object, "/metadata/namespace"), text(object, "/metadata/name"))
    }
}

/// `name.namespace`, as Flagger writes it in logs.
impl fmt::Display for CanaryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.namespace)
    }
}
