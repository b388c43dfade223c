//! Watching canaries of a cluster: what can be seen from outside, through the same API that kubectl uses.
//!
//! ```text
//! cluster  finds the cluster that a kubeconfig names, and its clock
//! follow   one watch per kind, reduced to what is shown, into one channel
//! canary   what is kept of a Canary                                     (pure, and so is all that follows)
//! objects  what is kept of its Deployments, pods, Services, route and Events
//! world    everything seen so far; a sight goes in, changes worth telling come out
//! view     the world as one canary sees it: phase, steps, split, checks, Events
//! tree     what belongs to a canary, from Deployments down to pods
//! checks   what metrics and hooks said last
//! tell     a change as a line of text or as JSON
//! verdict  whether a rollout has ended, and how
//! ```
//!
//! `seaway demo` and `seaway watch` look through the same eyes. Nothing here writes to a cluster, and nothing here draws:
//! that is the business of [`crate::screens`].

pub mod canary;
pub mod checks;
pub mod cluster;
pub mod follow;
pub mod objects;
pub mod tell;
pub mod tree;
pub mod verdict;
pub mod view;
pub mod world;

#[cfg(test)]
pub(crate) mod fixture;
