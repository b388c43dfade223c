//! Other people's languages: routers, targets, metric providers, hooks.
//!
//! Everything that turns Seaway's effects into somebody's objects, and somebody's objects into observations, is pure:
//! cached objects in, [`change::Change`]s out. Only `http` opens connections.

pub mod change;
