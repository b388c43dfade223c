//! What users live through, told as stories on the paused clock (and, where processes matter, on the real one).

mod bad_input;
mod clocks;
pub mod deletion;
mod golden;
mod hooks;
mod inside_pods;
mod leaks;
mod lookout;
mod one_actor;
mod panics;
mod processes;
mod readers;
mod recovery;
mod renames;
mod request_budget;
mod restarts;
pub mod rollout;
pub mod setbacks;
mod tutorial;
mod watch;
