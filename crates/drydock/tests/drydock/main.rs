//! Drydock's tests against its public face: one binary, one module per part.

// Fixtures are outside of test functions, where clippy's exception for tests does not reach.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod apiserver;
mod cluster;
mod controllers;
mod determinism;
mod fault;
mod gateway;
mod load;
mod prometheus;
mod streams;
mod yard;
