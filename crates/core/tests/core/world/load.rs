//! A workload in miniature: pods that need time to become ready, and old ones that answer meanwhile.

use jiff::Timestamp;
use seaway_core::observed::Revision;

use super::REPLICAS;

/// A workload in miniature.
#[derive(Clone, Debug)]
pub struct Load {
    pub replicas: u32,
    pub revision: Revision,
    pub id: Option<String>,
    /// Pods of an earlier template that still answer.
    pub(super) old: u32,
    /// All pods of the present template are ready.
    pub(super) up: bool,
    /// Its pods do not come up, whatever the template.
    pub(super) dead: bool,
    pub(super) changed: Timestamp,
}

impl Load {
    pub(super) fn new(changed: Timestamp, revision: Revision, id: Option<String>, up: bool) -> Self {
        Self { replicas: REPLICAS, revision, id, old: 0, up, dead: false, changed }
    }

    /// All pods die and stay dead, or start again.
    pub(super) fn die(&mut self, now: Timestamp, dies: bool) {
        (self.up, self.old, self.changed, self.dead) = (false, 0, now, dies);
    }

    pub(super) fn ready(&self) -> u32 {
        match self.replicas {
            0 => 0,
            replicas if self.up => replicas,
            _ => self.old,
        }
    }

    pub(super) fn set(&mut self, now: Timestamp, revision: &Revision, id: Option<String>) -> bool {
        if self.revision == *revision && self.id == id {
            return false;
        }
        self.old = self.ready();
        self.up = false;
        self.changed = now;
        self.revision = revision.clone();
        self.id = id;
        true
    }

    pub(super) fn scale(&mut self, now: Timestamp, replicas: u32) -> bool {
        if self.replicas == replicas {
            return false;
        }
        if replicas == 0 || self.replicas == 0 {
            (self.up, self.old, self.changed) = (false, 0, now);
        }
        self.replicas = replicas;
        true
    }
}
