//! Everything that can be set from outside, with Flagger's defaults.
//!
//! Reading flags and environment variables is the command line's job; here they are values.

use std::time::Duration;

use crate::lease::LeaseConfig;

/// Settings of one operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Watch this namespace only; `None`: all of them.
    pub namespace: Option<String>,
    /// Router of canaries that name none, e.g. `istio` or `gatewayapi:v1`.
    pub mesh_provider: String,
    /// Prometheus for builtin metrics and inline queries.
    pub metrics_server: String,
    /// Labels that may select a target's pods, in the order they are looked for.
    pub selector_labels: Vec<String>,
    /// Prefixes of labels and annotations that are copied to the primary; `*` means all.
    pub include_label_prefix: Vec<String>,
    /// Follow the ConfigMaps and Secrets a target refers to.
    pub config_tracking: bool,
    /// Refuse references to objects of other namespaces.
    pub no_cross_namespace_refs: bool,
    /// Where Events of canaries without an `event` hook are sent too.
    pub event_webhook: Option<String>,
    /// The port of `/metrics`, `/healthz` and `/readyz` on every address of the pod; `None`: they are not served. Whoever runs
    /// the operator listens there and hands the listener to [`Operator::serving`](crate::Operator::serving).
    pub port: Option<u16>,
    /// Leader election; `None`: act at once.
    pub lease: Option<LeaseConfig>,
    /// Rounds that may run at the same time.
    pub rounds: usize,
    /// Hooks and queries that may be under way at the same time.
    pub questions: usize,
    /// Spreads timers; the same number gives the same times.
    pub seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            namespace: None,
            mesh_provider: "istio".to_owned(),
            metrics_server: "http://prometheus:9090".to_owned(),
            selector_labels: ["app", "name", "app.kubernetes.io/name"].map(str::to_owned).to_vec(),
            include_label_prefix: Vec::new(),
            config_tracking: true,
            no_cross_namespace_refs: false,
            event_webhook: None,
            port: Some(8080),
            lease: Some(LeaseConfig::default()),
            rounds: 64,
            questions: 256,
            seed: 0,
        }
    }
}

impl Default for LeaseConfig {
    fn default() -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            identity: "seaway".to_owned(),
            duration: Duration::from_secs(60),
            renew_deadline: Duration::from_secs(15),
            retry: Duration::from_secs(5),
        }
    }
}

impl Config {
    /// Election under `identity`. `-namespace` decides where the Lease is, as in Flagger; `namespace` only without it.
    pub fn elect(mut self, identity: impl Into<String>, namespace: impl Into<String>, duration: Duration) -> Self {
        // A leader must give up well before others may take over, also when somebody asks for a very short lease.
        let renew_deadline = (duration / 4).min(Duration::from_secs(15));
        self.lease = Some(LeaseConfig {
            namespace: self.namespace.clone().unwrap_or_else(|| namespace.into()),
            identity: identity.into(),
            duration,
            renew_deadline,
            retry: renew_deadline / 3,
        });
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_lease_is_flaggers() {
        let config = Config::default().elect("pod_1", "kube-system", Duration::from_secs(60));
        assert_eq!(config.lease, Some(LeaseConfig { identity: "pod_1".into(), ..LeaseConfig::default() }));
    }

    #[test]
    fn the_watched_namespace_holds_the_lease() {
        let config = Config { namespace: Some("shop".into()), ..Config::default() };
        let lease = config.elect("pod_1", "kube-system", Duration::from_secs(8)).lease.unwrap();
        assert_eq!((lease.namespace.as_str(), lease.renew_deadline), ("shop", Duration::from_secs(2)));
    }
}
