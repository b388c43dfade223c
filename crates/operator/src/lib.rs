//! The operator: observe, decide, apply, for every canary of a cluster.
//!
//! ```text
//! watches ─► cache ─► observe ─► decide ─► status (compare-and-swap) ─► effects, in order ─► notices
//!              ▲                   ▲                                          │
//!              └───────────────────┴── answers of checks (run as tasks) ◄─────┘
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`Operator`] | the whole: tasks, election, the loop that starts rounds |
//! | `reconcile` | one round of one canary; the only file that knows observing, deciding and applying |
//! | `observe`, `apply` | cached objects to what the rules see; decisions to requests |
//! | `cache`, `watch` | what is known of the cluster, who is woken by what |
//! | `scheduler`, `memory` | when the next round is due; what is remembered between two |
//! | `ask`, `announce`, `events` | questions to hooks and metrics; telling people |
//! | `lease`, `requests` | who may act; how a request is sent |
//! | `admission` | what stands against a canary in this cluster |
//! | `telemetry`, `server` | metrics and health |
//!
//! Its clock, API client and outgoing HTTP are handed in as values. It knows no rule of a rollout and no field of a
//! route: those are in `seaway_core` and `seaway_adapters`.

mod admission;
mod announce;
mod apply;
mod ask;
mod cache;
mod clock;
mod config;
mod events;
mod key;
mod lease;
mod memory;
mod observe;
mod operator;
mod panics;
mod reconcile;
mod requests;
mod scheduler;
mod server;
mod telemetry;
#[cfg(test)]
mod testing;
mod watch;
mod zoo;

pub use clock::{Clock, SystemClock};
pub use config::Config;
pub use key::CanaryKey;
pub use lease::{LEASE_NAME, LeaseConfig};
pub use operator::{Operator, OperatorError};
