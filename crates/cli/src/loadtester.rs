//! The load tester: the service that canary hooks call for gates, smoke tests and load.
//!
//! A drop-in for Flagger's: the same paths, payloads and answers. Commands run as real processes, bounded in number,
//! time and output. Gates live in memory and are closed until somebody opens them.
//!
//! Not offered: the `helm`, `kubectl`, `concord` and `ngrinder` tasks. They are answered with 400 and a text that says
//! so, as is every type nobody knows.
//!
//! On a paused clock there are no processes, so tests there answer hooks with a program of their own instead.

mod exec;
mod gates;
mod journal;
mod payload;
mod server;
mod tasks;
mod toolbox;

pub use exec::execute;
pub use journal::Journal;
pub use server::{Options, router};
pub use toolbox::{Offer, Toolbox};
