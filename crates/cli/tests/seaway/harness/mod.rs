//! The ground the scenarios stand on: a drydock on the paused clock with an operator that can be killed at any moment.
//!
//! This is the only place in the tests that joins operator and drydock. A [`Ship`] is a cluster with podinfo, a gateway,
//! users who keep asking for `www.example.com`, hooks that answer as the test says, and a transcript of every committed
//! write.

mod alone;
mod ground;
mod hooks;
mod lookout;
pub mod podinfo;
mod process;
pub mod scripted;
mod skip;
mod transcript;
mod users;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kube::api::Api;
use seaway_adapters::http::Http;
use seaway_api::canary::{Canary, Phase};
use seaway_cli::glue::{ClusterClock, ClusterDial};
use seaway_drydock::apiserver::Request;
use seaway_drydock::pods::Programs;
use seaway_drydock::{Cluster, Options};
use seaway_operator::{Config, Operator};
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use alone::{ALONE, alone};
pub use ground::{Ground, Namespaced};
pub use hooks::Hooks;
pub use lookout::Lookout;
pub use process::Process;
pub use skip::{leave_out, nothing_may_be_skipped, skip};
pub use transcript::{Commits, Entry, Transcript};
pub use users::Users;

/// The name under which the operator's requests are logged.
pub const OPERATOR: &str = "seaway";

/// The tutorial's manifests, as users get them.
pub const NAMESPACES: &str = include_str!("../../../../../examples/gateway-api/00-namespaces.yaml");
pub const GATEWAY: &str = include_str!("../../../../../examples/gateway-api/gateway.yaml");
pub const PODINFO: &str = include_str!("../../../../../examples/gateway-api/podinfo.yaml");
pub const LOADTESTER: &str = include_str!("../../../../../examples/gateway-api/loadtester.yaml");
pub const METRIC_TEMPLATES: &str = include_str!("../../../../../examples/gateway-api/metric-templates.yaml");
pub const CANARY: &str = include_str!("../../../../../examples/gateway-api/canary.yaml");

/// A cluster, its operator and its users.
pub struct Ship {
    pub cluster: Cluster,
    pub hooks: Hooks,
    pub transcript: Transcript,
    pub lookout: Lookout,
    config: Config,
    ahead: Arc<AtomicI64>,
    operator: Option<(JoinHandle<()>, CancellationToken)>,
}

impl Ship {
    /// Namespaces, CRDs, gateway, podinfo 6.0.0, hooks and metric templates; no Canary and no operator yet.
    pub async fn launch() -> Self {
        let hooks = Hooks::default();
        let programs = Programs::built_in().with("ghcr.io/fluxcd/flagger-loadtester", hooks.clone());
        let cluster = Cluster::start(Options { programs, ..Options::paused() }).await.unwrap();
        let transcript = Transcript::of(&cluster);
        let lookout = Lookout::on(&cluster);
        let config = Config {
            mesh_provider: "gatewayapi:v1".into(),
            metrics_server: "http://prometheus.istio-system:9090".into(),
            port: None,
            ..Config::default()
        };
        let ship = Self { cluster, hooks, transcript, lookout, config, ahead: Arc::default(), operator: None };
        for crd in seaway_api::crds::crds() {
            ship.apply(&serde_json::to_string(&crd).unwrap()).await;
        }
        for manifest in [NAMESPACES, GATEWAY, PODINFO, LOADTESTER, METRIC_TEMPLATES] {
            ship.apply(manifest).await;
        }
        ship
    }

    /// The same, with the operator running and the tutorial's Canary initialised.
    pub async fn launch_initialised() -> Self {
        Self::launch_with(CANARY).await
    }

    /// The same, with a Canary of the test's own.
    pub async fn launch_with(canary: &str) -> Self {
        let mut ship = Self::launch().await;
        ship.start_operator();
        ship.apply(canary).await;
        ship.until_phase("podinfo", Phase::Initialized).await;
        ship
    }

    /// Changes the operator's settings for the next start.
    pub fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
    }

    /// Sets the date of the operator's computer: so many seconds ahead of everybody else's.
    pub fn set_clock(&self, ahead: i64) {
        self.ahead.store(ahead, Ordering::Relaxed);
    }

    /// Starts an operator process, in-process.
    pub fn start_operator(&mut self) {
        self.start_operator_with(self.cluster.client(OPERATOR));
    }

    /// The same, with a way to the API server of the test's own.
    pub fn start_operator_with(&mut self, client: kube::Client) {
        assert!(self.operator.is_none(), "one operator is running already");
        let stop = CancellationToken::new();
        let operator = Operator::new(
            self.config.clone(),
            client,
            Arc::new(ClusterClock::shifted(self.cluster.clock(), self.ahead.clone())),
            Http::through(Arc::new(ClusterDial(self.cluster.names().clone()))),
        );
        let token = stop.clone();
        let task = tokio::spawn(async move {
            if let Err(error) = operator.run(token).await {
                eprintln!("operator stopped: {error}");
            }
        });
        self.operator = Some((task, stop));
    }

    /// As `kill -9`: everything the operator had in hand is gone, nothing is released.
    pub async fn kill_operator(&mut self) {
        let (task, _) = self.operator.take().expect("an operator is running");
        task.abort();
        let _ = task.await;
    }

    /// As SIGTERM.
    pub async fn stop_operator(&mut self) {
        let (task, stop) = self.operator.take().expect("an operator is running");
        stop.cancel();
        task.await.unwrap();
    }

    /// Replaces a CRD.
    pub async fn replace_crd(&self, json: &str) {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        let object: Value = serde_json::from_str(json).unwrap();
        let api: Api<CustomResourceDefinition> = Api::all(self.cluster.client("kubectl"));
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let current = api.get(&name).await.unwrap();
        let mut object: CustomResourceDefinition = serde_json::from_value(object).unwrap();
        object.metadata.resource_version = current.metadata.resource_version;
        api.replace(&name, &kube::api::PostParams::default(), &object).await.unwrap();
    }

    /// Replaces a whole Canary, as `kubectl replace` does.
    pub async fn replace_canary(&self, canary: Value) {
        use kube::api::{ApiResource, DynamicObject, PostParams};
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.cluster.client("kubectl"), "test", &ApiResource::erase::<Canary>(&()));
        let mut object: DynamicObject = serde_json::from_value(canary).unwrap();
        let name = object.metadata.name.clone().unwrap();
        object.metadata.resource_version = api.get(&name).await.unwrap().metadata.resource_version;
        api.replace(&name, &PostParams::default(), &object).await.unwrap();
    }

    /// What the operator asked the API server since the log was cleared, leases and watches left out.
    pub fn requests(&self) -> Vec<Request> {
        let log = self.cluster.api().log().snapshot();
        let housekeeping = |request: &Request| request.resource == "leases" || request.verb == "watch";
        log.into_iter().filter(|request| request.user == OPERATOR && !housekeeping(request)).collect()
    }
}

impl Ground for Ship {
    fn client(&self) -> kube::Client {
        self.cluster.client("test")
    }

    fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    async fn sail(&self, duration: Duration) {
        self.cluster.clock().sleep(duration).await;
    }

    async fn apply(&self, yaml: &str) {
        if let Err(error) = self.cluster.apply(yaml).await {
            panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
        }
    }
}

impl Drop for Ship {
    /// Every scenario ends with the lookout's word, whatever it was about.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = self.lookout.violations();
            assert!(violations.is_empty(), "{violations:#?}");
        }
    }
}
