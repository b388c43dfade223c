//! Drydock: a whole Kubernetes cluster in one process.
//!
//! An API server as a `tower::Service`, controllers, pods that are real HTTP servers, a gateway, Prometheus and a
//! load generator. It is the demo, the test bed and the simulator; production code cannot lean on it.

pub mod apiserver;
mod bell;
pub mod berth;
pub mod clock;
pub mod cluster;
pub mod controllers;
pub mod fault;
pub mod gateway;
pub mod load;
pub mod manifests;
pub mod names;
pub mod net;
pub mod pods;
pub mod prometheus;
pub mod proxy;
pub mod seed;
pub mod telemetry;

pub use clock::Clock;
pub use cluster::{Cluster, Options};
pub use net::{Net, Wire};
pub use seed::Seed;
