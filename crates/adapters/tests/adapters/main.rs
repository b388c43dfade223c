//! What the operator relies on, whichever router or target it talks to: contracts, checked from outside.

#![allow(clippy::unwrap_used)]

mod readiness;
mod routers;
