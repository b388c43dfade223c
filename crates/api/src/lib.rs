//! The nouns: what users write in YAML, and partial shapes of objects that belong to others.
//!
//! Everything here is data and rules about data. Nothing here talks to a cluster, reads a clock or starts a task; the
//! types carry `kube_core::Resource`, so a client of any kind can use them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`canary`] | `Canary`: spec, status, phases, and the names derived from them |
//! | [`metric_template`], [`alert_provider`] | the two kinds a Canary refers to |
//! | [`crds`] | the CRDs of the three kinds |
//! | [`duration`], [`number`] | how Go reads and prints durations and numbers |
//! | [`field`] | field paths, and the error that names one |
//! | [`validate`] | what is wrong with an object, and what to do |
//! | [`lint`] | the same for YAML files, with line numbers and misspelt fields |
//! | [`foreign`] | other projects' objects; fields that are not known here are kept |

pub mod alert_provider;
pub mod canary;
pub mod crds;
pub mod duration;
pub mod field;
pub mod foreign;
pub mod lint;
pub mod metric_template;
pub mod number;
mod time;
pub mod validate;

pub use alert_provider::AlertProvider;
pub use canary::{Canary, CanarySpec, CanaryStatus, Phase};
pub use field::FieldError;
pub use metric_template::MetricTemplate;

/// The API group of all three kinds.
pub const GROUP: &str = "flagger.app";
/// The only version that is served and stored.
pub const VERSION: &str = "v1beta1";
/// `group/version`, as written in manifests.
pub const API_VERSION: &str = "flagger.app/v1beta1";
/// The finalizer of a Canary with `revertOnDeletion`.
pub const FINALIZER: &str = "finalizer.flagger.app";
