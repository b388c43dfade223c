//! One API request, as data.
//!
//! Routers and targets are pure: cached objects in, changes out. The operator sends them in order and stops at the
//! first refusal. Each change carries what it was decided on (uid, resourceVersion, or `test` operations), so that a
//! decision made on an old world is refused by the server, not by hope.

use serde::Serialize;
use serde_json::Value;

/// A kind of object, as the API server names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Kind {
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Resource name in URLs.
    pub plural: &'static str,
}

impl Kind {
    /// `apps/v1`, or `v1` for the core group.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// Which object a change is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ObjectRef {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// One API request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The object.
    pub object: ObjectRef,
    /// What is done to it.
    pub action: Action,
}

/// What is done to an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub enum Action {
    /// POST; the object must not exist.
    Create {
        /// The whole object.
        body: Value,
        /// Field manager of the fields it sets.
        manager: &'static str,
    },
    /// JSON Patch; its first operations are `test`s of what it was decided on.
    JsonPatch {
        /// RFC 6902 operations.
        operations: Value,
    },
    /// JSON merge patch; `metadata.uid` and, for read-modify-write, `metadata.resourceVersion` are in the body.
    MergePatch {
        /// The patch.
        body: Value,
    },
    /// DELETE with a uid precondition.
    Delete {
        /// The uid the decision was made on.
        uid: String,
    },
}
