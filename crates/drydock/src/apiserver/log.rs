//! What was asked of the server and what changed: the evidence that tests count and check.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use serde_json::Value;

/// How many requests are remembered; a demo that runs for days must not grow.
const KEPT: usize = 100_000;

/// One request that was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who asked: the name given to [`client`](super::ApiServer::client), or the User-Agent of a TCP client.
    pub user: String,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the HTTP method in lower case
    /// for paths that are no resources.
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
    /// The HTTP status code of the answer.
    pub code: u16,
    /// The simulated time of the answer.
    pub time: Timestamp,
}

impl Request {
    /// Whether it could change something.
    pub fn is_write(&self) -> bool {
        !matches!(self.verb.as_str(), "get" | "list" | "watch")
    }
}

/// The requests so far; clones share the same log.
#[derive(Clone, Debug, Default)]
pub struct RequestLog(Arc<Mutex<VecDeque<Request>>>);

impl RequestLog {
    pub(crate) fn push(&self, request: Request) {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == KEPT {
            log.pop_front();
        }
        log.push_back(request);
    }

    /// A copy of the log, oldest first.
    pub fn snapshot(&self) -> Vec<Request> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// One committed write. Refused, dry-run and no-op requests commit nothing.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Who wrote: as in the request log, or the part of the server that cleans up.
    pub user: String,
    /// The verb of the request; what a request caused indirectly (garbage collection) carries its own.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The plural name of the resource.
    pub resource: String,
    /// The sub-resource; empty for the object itself.
    pub subresource: String,
    /// The object before; `None` when it was created.
    pub before: Option<Arc<Value>>,
    /// The object after; `None` when it was removed.
    pub after: Option<Arc<Value>>,
    /// The revision the write was given.
    pub revision: u64,
    /// The simulated time.
    pub time: Timestamp,
}

/// Called with every commit, in order.
pub(crate) type Hook = Arc<dyn Fn(&Commit) + Send + Sync>;
