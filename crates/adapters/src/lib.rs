//! Other people's languages: routers, targets, metric providers, hooks.
//!
//! Everything that turns Seaway's effects into somebody's objects, and somebody's objects into observations, is pure:
//! cached objects in, [`change::Change`]s out. Only [`http`] opens connections.

pub mod change;
pub mod effects;
pub mod hooks;
pub mod http;
pub mod kinds;
pub mod metrics;
pub mod object;
pub mod refusal;
pub mod routers;
pub mod targets;
pub mod term;
pub mod world;
mod zoo;

#[cfg(test)]
mod testing;
