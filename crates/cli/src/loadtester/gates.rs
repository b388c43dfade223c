//! Gates: a person's or a script's consent, kept in memory.
//!
//! A gate nobody has opened is closed. Gates are lost with the process, as Flagger's are.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// A canary's name is chosen by whoever calls, so the number of remembered gates must have an end.
const MOST_GATES: usize = 10_000;

/// The open gates, by `name.namespace` or `rollback.name.namespace`.
#[derive(Debug, Default)]
pub(super) struct Gates(Mutex<HashSet<String>>);

impl Gates {
    /// Opens a gate; false when there are too many open ones to remember another.
    pub fn open(&self, key: String) -> bool {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MOST_GATES && !open.contains(&key) {
            return false;
        }
        open.insert(key);
        true
    }

    /// Closes a gate.
    pub fn close(&self, key: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }

    /// Whether somebody has opened it.
    pub fn is_open(&self, key: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(key)
    }
}
