//! The cluster the stories happen in: as small as a rollout can be, because it is built thousands of times.
//!
//! One app with one tracked ConfigMap, a gateway, users. Hooks and metrics are answered [outside](super::outside) the
//! cluster, so no pod is spent on them.

use std::sync::OnceLock;
use std::time::Duration;

use seaway_drydock::pods::PodOptions;
use seaway_drydock::{Cluster, Options, prometheus};
use serde_json::{Value, json};

use super::board::Board;
use super::crew::Crew;
use super::crowd::{Crowd, Experience};
use super::hand::{CONFIG_MAPS, DEPLOYMENTS, Hand, image};
use super::outside::Outside;
use crate::harness::Lookout;

/// The analysis interval of all stories.
pub const INTERVAL: Duration = Duration::from_secs(10);

/// What differs between two runs of the same story besides their faults.
#[derive(Clone, Copy, Debug)]
pub struct Terrain {
    /// Uids, names and everything that looks random.
    pub seed: u64,
    /// Pods of the app.
    pub replicas: u32,
    /// Pause between two users' requests.
    pub pause: Duration,
    /// A leader and a standby instead of one operator alone.
    pub two: bool,
    /// Whether one more rollout follows the end.
    pub proves: bool,
    /// Whether every commit and every answer is written down.
    pub traced: bool,
}

impl Default for Terrain {
    fn default() -> Self {
        Self { seed: 1, replicas: 1, pause: Duration::from_millis(500), two: false, proves: true, traced: false }
    }
}

/// A cluster with everything but a Canary.
pub struct Ground {
    pub cluster: Cluster,
    pub board: Board,
    pub lookout: Lookout,
    pub outside: Outside,
    pub crew: Crew,
    pub crowd: Crowd,
    /// The person whose app it is.
    pub person: Hand,
    /// Somebody or something else that writes.
    pub other: Hand,
}

impl Ground {
    /// Builds the cluster and starts the operator.
    pub async fn launch(terrain: &Terrain) -> Self {
        // Metrics come from the users themselves, so Prometheus has nothing to do.
        let prometheus =
            prometheus::Options { interval: Duration::from_secs(86_400), ..prometheus::Options::default() };
        let pods = PodOptions { start_up: Duration::from_millis(500), drain: Duration::from_secs(2) };
        let options = Options { seed: terrain.seed, pods, prometheus, ..Options::paused() };
        let cluster = Cluster::start(options).await.unwrap();
        let board = Board::of(&cluster, terrain.traced);
        let lookout = Lookout::on(&cluster);
        let person = Hand::of(cluster.api(), "person");
        let other = Hand::of(cluster.api(), "gitops");
        for crd in crds() {
            person.found("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd).await;
        }
        for namespace in ["istio-ingress", "test"] {
            person.found("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).await;
        }
        person.found("/apis/gateway.networking.k8s.io/v1/namespaces/istio-ingress/gateways", &gateway()).await;
        person.found(CONFIG_MAPS, &json!({"metadata": {"name": "settings"}, "data": {"color": "blue"}})).await;
        person.found(DEPLOYMENTS, &app(terrain.replicas)).await;
        person.found("/apis/flagger.app/v1beta1/namespaces/test/metrictemplates", &error_rate()).await;
        let experience = Experience::default();
        let outside = Outside::new(experience.clone(), cluster.clock(), board.clone());
        let crew = Crew::embark(&cluster, &board, &outside, terrain.two);
        let crowd = Crowd::start(&cluster, &board, &experience, terrain.pause);
        Self { cluster, board, lookout, outside, crew, crowd, person, other }
    }
}

/// The kinds of ours, made once per process.
fn crds() -> &'static [Value] {
    static CRDS: OnceLock<Vec<Value>> = OnceLock::new();
    CRDS.get_or_init(|| seaway_api::crds::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect())
}

fn gateway() -> Value {
    json!({
        "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "gateway"},
        "spec": {"gatewayClassName": "istio", "listeners": [{
            "name": "default", "hostname": "*.example.com", "port": 80, "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "All"}},
        }]},
    })
}

fn app(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "podinfo", "labels": {"app": "podinfo", "example.com/owner": "shop"}},
        "spec": {
            "replicas": replicas,
            "progressDeadlineSeconds": 30,
            "selector": {"matchLabels": {"app": "podinfo"}},
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {"metadata": {"labels": {"app": "podinfo"}}, "spec": {"containers": [{
                "name": "podinfod",
                "image": image("6.0.0"),
                "command": ["./podinfo", "--port=9898"],
                "ports": [{"name": "http", "containerPort": 9898}],
                "env": [{"name": "DRYDOCK_CRASH_AS", "value": ""}],
                "envFrom": [{"configMapRef": {"name": "settings"}}],
                "readinessProbe": {"httpGet": {"path": "/readyz", "port": 9898}, "initialDelaySeconds": 1, "periodSeconds": 5},
            }]}},
        },
    })
}

fn error_rate() -> Value {
    json!({
        "apiVersion": "flagger.app/v1beta1", "kind": "MetricTemplate", "metadata": {"name": "error-rate"},
        "spec": {
            "provider": {"type": "prometheus", "address": "http://metrics.example:9090"},
            "query": "error_rate{workload=\"{{ target }}\"}[{{ interval }}]",
        },
    })
}
