//! What went through: one record per request and per watch event.

use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;

/// One request that was no watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its number among those that faults can be placed at; `None` for leases.
    pub index: Option<u64>,
    /// `get`, `list`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource, or the path when it is no resource.
    pub resource: String,
    /// The namespace; empty for cluster-wide requests.
    pub namespace: String,
    /// The object's name; empty for collections.
    pub name: String,
    /// The sub-resource; empty for the object itself.
    pub subresource: String,
    /// The status code the client saw; 0 while it has seen none.
    pub code: u16,
    /// The cluster's revision before the request was carried out; 0 when it was not.
    pub before: u64,
    /// The revision after it; equal to the one before when the request changed nothing.
    pub after: u64,
    /// A digest of method, path, query and body: equal requests have equal ones.
    pub digest: u64,
    /// What was sent with it.
    pub body: Bytes,
    /// How many crashes came before it.
    pub life: u64,
    /// The simulated time of the request.
    pub time: Timestamp,
}

impl Call {
    /// Whether it could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list")
    }

    /// Whether it changed something.
    pub fn changed(&self) -> bool {
        self.after != self.before
    }

    /// Whether it is about a resource, not about discovery or health.
    pub fn is_resource(&self) -> bool {
        !self.resource.starts_with('/')
    }

    /// Whether the object was there, as far as the answer tells.
    pub(crate) fn meets_an_object(&self) -> bool {
        self.is_resource() && !self.name.is_empty() && !matches!(self.code, 201 | 404)
    }
}

impl fmt::Display for Call {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(formatter, "call {index}: ")?,
            None => write!(formatter, "lease: ")?,
        }
        write!(formatter, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        for part in [&self.namespace, &self.name, &self.subresource] {
            if !part.is_empty() {
                write!(formatter, "/{part}")?;
            }
        }
        Ok(())
    }
}

/// One event that arrived on a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchEvent {
    /// Its number over all watches.
    pub index: u64,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// `ADDED`, `MODIFIED` or `DELETED`.
    pub kind: String,
    /// The namespace of the object; empty for cluster-wide ones.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
    /// The version of the object.
    pub resource_version: String,
    /// How many crashes came before it.
    pub life: u64,
    /// The simulated time of its arrival.
    pub time: Timestamp,
}

impl fmt::Display for WatchEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "event {}: {} {}", self.index, self.kind, self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        for part in [&self.namespace, &self.name] {
            if !part.is_empty() {
                write!(formatter, "/{part}")?;
            }
        }
        Ok(())
    }
}

/// FNV-1a over several pieces: small, stable over time and platforms, and no protection against anybody.
pub(crate) fn digest(pieces: &[&[u8]]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    for piece in pieces {
        for byte in piece.iter().chain(&[0]) {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}
