//! The one test binary that sees everything: operator, drydock and command line together.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod conformance;
mod faults;
mod harness;
mod house;
mod kubectl;
mod real;
mod scenarios;

/// The allocator of the real binary, which here also counts what is allocated and not freed.
#[global_allocator]
static MEMORY: cap::Cap<mimalloc::MiMalloc> = cap::Cap::new(mimalloc::MiMalloc, usize::MAX);
