//! The one test binary that sees everything: operator, drydock and command line together.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod conformance;
mod faults;
mod harness;
mod house;
mod kubectl;
mod real;
mod scenarios;
