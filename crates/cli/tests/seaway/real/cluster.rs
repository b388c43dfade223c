//! A whole real cluster: control plane, a node that runs pods, names, and the operator as a process of its own.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, ListParams, PostParams};
use seaway_api::canary::Canary;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_cli::glue::{LOADTESTER_IMAGE, LoadTester};
use seaway_cli::loadtester::{Offer, Toolbox};
use seaway_drydock::Clock;
use seaway_drydock::berth::Berth;
use seaway_drydock::manifests::{self, ApplyError};
use seaway_drydock::pods::{PodOptions, Programs};
use serde::Serialize;
use serde_json::Value;
use tempfile::TempDir;

use super::audit::Audit;
use super::control_plane::{AUDIT_POLICY, ApiServer, Etcd, OPERATOR, in_time};
use super::image::{IMAGE, OperatorImage};
use super::parts::installed;
use super::process::Program;
use super::rendered::{Grant, Rendered};
use crate::harness::{Ground, Lookout, Namespaced, Transcript};

/// The programs every cluster is made of.
pub const PARTS: [&str; 5] = ["etcd", "kube-apiserver", "kube-controller-manager", "gateway-api", "helm"];

/// In the environment: what the operator may not do, although the chart grants it. `tools/grants` sets it.
const WITHOUT_GRANT: &str = "SEAWAY_WITHOUT_GRANT";

/// For so long after the server is back an operator may end because of something that was killed: it had lost its Lease by then,
/// and has last words to say.
const AFTERMATH: Duration = Duration::from_secs(45);

/// A cluster, and the operator in it.
pub struct RealCluster {
    pub audit: Audit,
    pub transcript: Transcript,
    pub lookout: Lookout,
    pub berth: Berth,
    pub api: ApiServer,
    pub etcd: Etcd,
    client: Client,
    image: OperatorImage,
    /// When all was back after something had been killed.
    struck: Option<Instant>,
    /// When refusals were nobody's fault.
    excused: Vec<(Timestamp, Option<Timestamp>)>,
    operator: Mutex<Option<Program>>,
    flags: Vec<String>,
    _controllers: Program,
    folder: TempDir,
}

impl RealCluster {
    /// Control plane, node and custom resources; nothing else yet.
    pub async fn start(pods: PodOptions) -> Self {
        Self::with(pods, |programs| programs).await
    }

    /// The same, with more programs for the pods.
    pub async fn with(pods: PodOptions, more: impl FnOnce(Programs) -> Programs) -> Self {
        Self::assembled(&[], pods, more).await
    }

    /// The same, with more admission plugins.
    pub async fn with_plugins(plugins: &'static [&'static str]) -> Self {
        Self::assembled(plugins, PodOptions::default(), |programs| programs).await
    }

    async fn assembled(
        plugins: &'static [&'static str],
        pods: PodOptions,
        more: impl FnOnce(Programs) -> Programs,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let etcd = Etcd::start(folder.path());
        let api = ApiServer::with("cluster", 6443, folder.path(), AUDIT_POLICY, plugins).await;
        let audit = Audit::follow(api.audit_log());
        let (transcript, lookout) = (Transcript::of(&audit), Lookout::on(&audit));
        let controllers = api.controllers();
        let toolbox = Toolbox::create(Path::new(env!("CARGO_BIN_EXE_seaway")), Offer::OursFirst).unwrap();
        let image = OperatorImage::of(&api, folder.path()).await;
        let programs =
            Programs::built_in().with(LOADTESTER_IMAGE, LoadTester::new(Arc::new(toolbox))).with(IMAGE, image.clone());
        let clock = Clock::starting_at(Timestamp::now(), 1);
        let berth = Berth::start(&api.client("kubelet").await, clock, more(programs), pods).await.unwrap();
        let client = api.client("admin").await;
        let cluster = Self {
            audit,
            transcript,
            lookout,
            berth,
            api,
            etcd,
            client,
            image,
            struck: None,
            excused: Vec::new(),
            operator: Mutex::default(),
            flags: Vec::new(),
            _controllers: controllers,
            folder,
        };
        for crd in seaway_api::crds::crds() {
            cluster.apply(&serde_json::to_string(&crd).unwrap()).await;
        }
        let gateway_api = installed("gateway-api").join("config/crd/experimental");
        for file in fs::read_dir(gateway_api).unwrap().map(|entry| entry.unwrap().path()) {
            if file.file_name().is_some_and(|name| name != "kustomization.yaml") {
                cluster.apply(&fs::read_to_string(file).unwrap()).await;
            }
        }
        cluster.until_defined().await;
        cluster
    }

    /// Returns when every custom resource is found by those who look what there is: that is later than it is stored.
    pub async fn until_defined(&self) {
        let definitions: Api<CustomResourceDefinition> = Api::all(self.client());
        for definition in definitions.list(&ListParams::default()).await.unwrap() {
            let (group, plural) = (definition.spec.group, definition.spec.names.plural);
            for version in definition.spec.versions.iter().filter(|version| version.served) {
                let listed = format!("{group}/{}", version.name);
                let found = async |cluster: &Self| {
                    let there = cluster.client().list_api_group_resources(&listed).await;
                    there.is_ok_and(|list| list.resources.iter().any(|resource| resource.name == plural))
                };
                self.until(&format!("{plural} of {listed} are served"), found).await;
            }
        }
    }

    /// Where its programs keep what they keep.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts `seaway operator` as the chart does, as who the chart says it is, with these values of the chart set.
    pub async fn start_operator(&mut self, values: &[&str]) {
        let mut chart = Rendered::with(values);
        if let Ok(grant) = std::env::var(WITHOUT_GRANT) {
            chart.take_away(&grant);
        }
        self.apply("{apiVersion: v1, kind: Namespace, metadata: {name: seaway-system}}").await;
        self.apply(&chart.access()).await;
        self.until_granted(&chart).await;
        self.flags = chart.flags();
        self.restart_operator();
    }

    /// Returns when the server has read the chart's roles: it stores them first.
    async fn until_granted(&self, chart: &Rendered) {
        for granted in chart.grants() {
            let allowed = async |cluster: &Self| cluster.may_operator(granted.request()).await;
            self.until("the operator's role is known", allowed).await;
        }
    }

    /// Whether the server would let the operator.
    pub async fn may_operator(&self, asked: ResourceAttributes) -> bool {
        let (reviews, mut review): (Api<SubjectAccessReview>, _) =
            (Api::all(self.client()), SubjectAccessReview::default());
        (review.spec.user, review.spec.resource_attributes) = (Some(OPERATOR.to_owned()), Some(asked));
        let told = reviews.create(&PostParams::default(), &review).await.unwrap();
        told.status.is_some_and(|status| status.allowed)
    }

    /// Starts another one like the last.
    pub fn restart_operator(&self) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
        command
            .arg("operator")
            .arg(format!("-kubeconfig={}", self.api.kubeconfig(OPERATOR).display()))
            .args(&self.flags)
            .arg("-port=0");
        *self.operator.lock().unwrap() = Some(Program::start("seaway", self.folder.path(), &mut command));
    }

    /// As the kubelet does: an operator that ended is started again. The only reason it may have is a Lease that it could not
    /// renew in time, because the API server or its store was killed.
    fn keep_operator(&self) {
        let mut operator = self.operator.lock().unwrap();
        let Some(ended) = operator.take_if(|operator| operator.ended().is_some()) else { return };
        drop(operator);
        let said = ended.said();
        let was_struck = self.struck.is_some_and(|at| at.elapsed() < AFTERMATH);
        assert!(was_struck && said.ends_with("error: leadership lost"), "the operator ended:\n{said}");
        eprintln!("the operator lost its Lease and is started again");
        self.restart_operator();
    }

    /// The operator asks for nothing that it may not do.
    fn must_be_allowed(&self) {
        let excused = |time| self.excused.iter().any(|(from, to)| time >= *from && to.is_none_or(|to| time <= to));
        let forbidden =
            self.audit.find(|asked| asked.code == 403 && !self.api.was_away(asked.time) && !excused(asked.time));
        if let Some(asked) = forbidden {
            panic!("the chart's RBAC is too narrow, forbidden: {}", Grant::for_request(&asked));
        }
    }

    /// Somebody takes the operator away and its rights with it, in whatever order. Returns when its last process has ended.
    pub async fn dismiss(&mut self, takes_it_away: impl FnOnce(&Self)) {
        self.excused.push((Timestamp::now(), None));
        takes_it_away(self);
        self.until("the operator's processes have ended", async |cluster| cluster.image.running() == 0).await;
        if let Some((_, to)) = self.excused.last_mut() {
            *to = Some(Timestamp::now());
        }
    }

    /// Something is killed, and is back when this returns. What the log of the API server lacks then is looked up.
    pub async fn strike(&mut self, blow: fn(&mut Self)) {
        self.audit.hold();
        blow(self);
        self.api.until_ready().await;
        self.struck = Some(Instant::now());
        let mut found = Vec::new();
        found.extend(self.listed::<Canary>().await.into_iter().map(|canary| ("canaries", canary)));
        found.extend(self.listed::<HttpRoute>().await.into_iter().map(|route| ("httproutes", route)));
        found.extend(self.listed::<Deployment>().await.into_iter().map(|deployment| ("deployments", deployment)));
        found.extend(self.listed::<Service>().await.into_iter().map(|service| ("services", service)));
        self.audit.go_on(found);
    }

    /// All objects of a kind in the namespace `test`.
    async fn listed<K: Namespaced + Serialize>(&self) -> Vec<Value> {
        let api = self.api::<K>("test");
        let list = self.answer(async || api.list(&ListParams::default()).await).await.unwrap();
        let typed = |object| {
            let mut object = serde_json::to_value(object).unwrap();
            (object["apiVersion"], object["kind"]) = (K::api_version(&()).into(), K::kind(&()).into());
            object
        };
        list.into_iter().map(typed).collect()
    }

    /// `kill -9`.
    pub fn kill_operator(&mut self) {
        self.operator.get_mut().unwrap().take().expect("an operator is running").kill();
    }
}

impl Ground for RealCluster {
    const GLANCE: Duration = Duration::from_millis(100);
    const GLANCES: u32 = 3_000;

    fn client(&self) -> Client {
        self.client.clone()
    }

    fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    async fn sail(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
        self.keep_operator();
        self.must_be_allowed();
    }

    /// A server that was killed never answers; one that is new, or whose store is, has nothing to say for a moment.
    async fn answer<T>(&self, request: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
        let passes =
            |error: &kube::Error| !matches!(error, kube::Error::Api(said) if said.code < 500 && said.code != 429);
        for _ in 0..Self::GLANCES {
            match in_time(request()).await {
                Some(answer) if !answer.as_ref().is_err_and(passes) => return answer,
                _ => self.sail(Self::GLANCE).await,
            }
        }
        panic!("never an answer");
    }

    /// A kind whose CustomResourceDefinition is new is not served at once.
    async fn apply(&self, yaml: &str) {
        for _ in 0..100 {
            match manifests::apply(&self.client, yaml).await {
                Ok(_) => return,
                Err(ApplyError::Refused { source, .. }) if !matches!(&*source, kube::Error::Api(refusal) if refusal.code != 404) =>
                {
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Err(error) => panic!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string)),
            }
        }
        panic!("never applied:\n{yaml}");
    }
}

impl Drop for RealCluster {
    /// As on drydock, every scenario ends with the lookout's word, and with nothing forbidden.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.transcript);
            return;
        }
        // What happened last is read last.
        std::thread::sleep(Audit::LAG);
        let violations = self.lookout.violations();
        assert!(violations.is_empty(), "{violations:#?}");
        self.must_be_allowed();
    }
}
