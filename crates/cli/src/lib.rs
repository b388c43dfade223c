//! The one binary `seaway`, as a library: commands, terminal screens, the load tester, the demo.
//!
//! This is the only place that joins a driver with drydock. `main.rs` is a thin door into [`run`].

pub mod goflags;
pub mod loadtester;
pub mod tools;
