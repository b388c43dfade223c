//! The same on a real cluster: kube-apiserver, kube-controller-manager, etcd, real gateways and a real Prometheus.
//!
//! Every test has a cluster of its own, in network, mount and process namespaces of its own ([`haven`]), so that several run
//! at once on one machine and nothing is left when one panics. `tools/install` brings the programs. Where that is
//! impossible a test says why and is counted as skipped; with `SEAWAY_REAL=required` it fails instead.

mod abrupt;
mod agreement;
mod audit;
mod chart;
mod cluster;
mod companions;
mod control_plane;
mod echo;
mod fleet;
mod gateways;
mod grants;
mod haven;
mod image;
mod kills;
mod kubectl;
mod namespaces;
mod parts;
mod process;
mod prometheus;
mod refusals;
mod rendered;
mod rollout;
mod routes;
mod setbacks;
mod splits;
mod users;
mod versions;

pub use control_plane::{ApiServer, Etcd};
pub use haven::in_haven;
pub use parts::part;
