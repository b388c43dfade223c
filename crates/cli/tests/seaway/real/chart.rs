//! The chart, by real Helm on the real API server.

use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client as Web;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams};
use seaway_api::canary::Phase;
use seaway_drydock::pods::PodOptions;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::cluster::{PARTS, RealCluster};
use super::companions::{Companions, must_let_through_what_is_asked_for};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use super::parts::installed;
use super::rendered::{Rendered, folder};
use super::users::Users;
use crate::harness::{Ground, NAMESPACES};

const APP: &str = include_str!("app.yaml");

#[test]
fn the_chart_has_the_custom_resources_of_the_binary() {
    let printed = Command::new(env!("CARGO_BIN_EXE_seaway")).args(["generate", "crds"]).output().unwrap();
    let stored = std::fs::read_to_string(folder().join("files/crds.yaml")).unwrap();
    let ours = String::from_utf8(printed.stdout).unwrap();
    assert!(stored == ours, "run: seaway generate crds > charts/seaway/files/crds.yaml");
}

/// Runs Helm as an administrator of the cluster.
fn helm(cluster: &RealCluster, arguments: &[&str]) {
    try_helm(cluster, arguments).unwrap_or_else(|said| panic!("helm {}: {said}", arguments.join(" ")));
}

/// The same, where it may refuse; the error is what it says.
fn try_helm(cluster: &RealCluster, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(installed("helm"));
    command.arg("--kubeconfig").arg(cluster.api.kubeconfig("admin")).args(arguments);
    for (name, folder) in [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")] {
        command.env(name, cluster.folder().join("helm").join(folder));
    }
    let output = command.output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

/// Helm deletes the roles before the pods: what those still want to say when they stop is refused.
async fn uninstall(cluster: &mut RealCluster, release: &str, namespace: &str) {
    cluster.dismiss(|cluster| helm(cluster, &["uninstall", release, "--namespace", namespace, "--wait"])).await;
}

/// The pods of the operator: its Deployment is the only one there.
async fn pods(cluster: &RealCluster, namespace: &str) -> Vec<Pod> {
    let mut pods = cluster.api::<Pod>(namespace).list(&ListParams::default()).await.unwrap().items;
    pods.retain(|pod| pod.owner_references().iter().any(|owner| owner.kind == "ReplicaSet"));
    pods
}

/// Whether one leads, all answer where the chart probes them, and none had to be started again.
async fn are_well(cluster: &RealCluster, namespace: &str) -> bool {
    let mut asked = 0;
    for pod in pods(cluster, namespace).await {
        let (spec, status) = (pod.spec.unwrap(), pod.status.unwrap_or_default());
        let [container] = spec.containers.as_slice() else { panic!("one container") };
        assert!(status.container_statuses.iter().flatten().all(|status| status.restart_count == 0), "{status:?}");
        let port = container.ports.as_ref().unwrap()[0].container_port;
        let Some(address) = status.pod_ip.filter(|_| pod.metadata.deletion_timestamp.is_none()) else { continue };
        for probe in [&container.liveness_probe, &container.readiness_probe] {
            let path = probe.as_ref().unwrap().http_get.as_ref().unwrap().path.clone().unwrap();
            let answer = Web::builder(TokioExecutor::new())
                .build_http::<Empty<Bytes>>()
                .get(format!("http://{address}:{port}{path}").parse().unwrap())
                .await;
            assert!(answer.is_ok_and(|answer| answer.status().is_success()), "{path} of {:?}", pod.metadata.name);
            asked += 1;
        }
    }
    asked > 0 && leader(cluster, namespace).await.is_some()
}

/// Who holds the operator's Lease.
async fn leader(cluster: &RealCluster, namespace: &str) -> Option<String> {
    let leases: Api<Lease> = cluster.api(namespace);
    let lease = leases.get_opt("flagger-leader-election").await.unwrap()?;
    lease.spec?.holder_identity.filter(|holder| !holder.is_empty())
}

/// The server would take every object of the chart, and the pods of its Deployment, and knows each of their fields.
async fn must_be_valid(cluster: &RealCluster, chart: Rendered) {
    let pod = chart.pod();
    for object in chart.0.iter().chain([&pod]) {
        let taken = taken_by(cluster, object).await;
        taken.unwrap_or_else(|error| panic!("{} {}: {error}", object["kind"], object["metadata"]["name"]));
    }
}

/// Whether the server would take an object, and knows its fields.
async fn taken_by(cluster: &RealCluster, object: &Value) -> kube::Result<DynamicObject> {
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    let kind = GroupVersionKind::try_from(object.types.as_ref().unwrap()).unwrap();
    let (resource, _) = kube::discovery::pinned_kind(&cluster.client(), &kind).await.unwrap();
    let api: Api<DynamicObject> = match &object.metadata.namespace {
        Some(namespace) => Api::namespaced_with(cluster.client(), namespace, &resource),
        None => Api::all_with(cluster.client(), &resource),
    };
    let parameters = PatchParams::apply("chart").dry_run().validation_strict().force();
    api.patch(object.metadata.name.as_deref().unwrap(), &parameters, &Patch::Apply(&object)).await
}

/// The values that somebody has for Flagger's chart.
const FLAGGER_VALUES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seaway/real/values-for-flagger.yaml");

/// The chart as it becomes with them. What it cannot do for them it says.
fn as_for_flagger() -> Rendered {
    let chart = Rendered::by(&["--values", FLAGGER_VALUES]).unwrap();
    let deployment = chart.0.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let rule = "/spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0";
    let avoided = &deployment.pointer(rule).unwrap()["podAffinityTerm"]["labelSelector"];
    assert_eq!(*avoided, deployment["spec"]["selector"], "whom its pods avoid");
    let name = "a".repeat(70);
    let long = Rendered::by(&["--values", FLAGGER_VALUES, "--set", &format!("fullnameOverride={name}")]).unwrap();
    let deployment = long.0.iter().find(|object| object["kind"] == "Deployment").unwrap();
    assert_eq!(deployment["metadata"]["name"], name[..63], "long names are shortened");
    for (value, refusal) in [
        ("istio.kubeconfig.secretName=other", "istio.kubeconfig.secretName: routes in another cluster are not built"),
        ("controlplane.kubeconfig.secretName=other", "controlplane.kubeconfig.secretName: routes in another cluster"),
        ("prometheus.install=true", "prometheus.install: this chart brings no Prometheus"),
        ("image.repository=ghcr.io/fluxcd/flagger", "is Flagger's image and cannot run Seaway"),
        ("image.repository=registry.example.com:5000/seaway:0.1.0", "has a tag; write the tag in image.tag"),
        ("serviceMonitor.enabled=true,fullnameOverride=1st", "the Service of serviceMonitor cannot be called 1st"),
        ("fullnameOverride=Seaway_1", "at '/fullnameOverride': 'Seaway_1' does not match pattern"),
        ("linkerdAuthPolicy.create=true", "linkerdAuthPolicy.create: this chart brings no AuthorizationPolicy"),
        ("istio=none", "at '/istio': got string, want"),
    ] {
        let said = Rendered::by(&["--values", FLAGGER_VALUES, "--set", value]).err().unwrap_or_default();
        assert!(said.contains(refusal), "{value}: {said}");
    }
    chart
}

/// The monitors' kinds, as the Prometheus operator brings them.
async fn define_monitors(cluster: &RealCluster) {
    let folder = installed("prometheus-operator").join("example/prometheus-operator-crd");
    for plural in ["servicemonitors", "podmonitors"] {
        let file = folder.join(format!("monitoring.coreos.com_{plural}.yaml"));
        cluster.apply(&std::fs::read_to_string(file).unwrap()).await;
    }
    cluster.until_defined().await;
}

/// Where nobody brought the custom resources the chart does, and leaves them behind.
async fn must_bring_its_own(cluster: &mut RealCluster, install: &[&str]) {
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let ours = ["canaries", "metrictemplates", "alertproviders"].map(|plural| format!("{plural}.flagger.app"));
    for name in &ours {
        assert!(definitions.get_opt(name).await.unwrap().is_some(), "Helm took {name} along, which it had not brought");
        definitions.delete(name, &DeleteParams::default()).await.unwrap();
        cluster.until("it is gone", async |_| definitions.get_opt(name).await.unwrap().is_none()).await;
    }
    // The operator would end at once, again and again, and Helm would say nothing.
    let refusal = try_helm(cluster, &[install, &["--set", "crd.create=false"]].concat()).unwrap_err();
    let mut missing = ours.clone();
    missing.sort();
    let advice = format!("crd.create: the cluster has no {}; set crd.create=true", missing.join(", "));
    assert!(refusal.contains(&advice), "{refusal}");
    helm(cluster, install);
    for name in &ours {
        let definition = definitions.get(name).await.unwrap();
        assert_eq!(definition.annotations()["meta.helm.sh/release-name"], "flagger", "{name} is not the chart's");
    }
    uninstall(cluster, "flagger", "flagger-system").await;
    for name in &ours {
        assert!(definitions.get_opt(name).await.unwrap().is_some(), "people's canaries would be gone with {name}");
    }
}

#[test]
fn helm_installs_upgrades_and_uninstalls_it_in_a_restricted_namespace() {
    let parts = [&PARTS[..], &["prometheus-operator"]].concat();
    in_haven("real::chart::helm_installs_upgrades_and_uninstalls_it_in_a_restricted_namespace", &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        define_monitors(&cluster).await;
        for name in ["flagger-system", "seaway-system"] {
            let labels = json!({"pod-security.kubernetes.io/enforce": "restricted"});
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
            cluster.apply(&namespace.to_string()).await;
        }
        let everything = "leaderElection.replicaCount=2,podDisruptionBudget.enabled=true,networkPolicy.enabled=true,\
                          serviceMonitor.enabled=true,serviceMonitor.namespace=seaway-system,\
                          podMonitor.enabled=true,podMonitor.namespace=seaway-system,\
                          podLabels.app\\.kubernetes\\.io/name=somebody-elses";
        must_be_valid(&cluster, Rendered::with(&[everything])).await;
        let free = Rendered::with(&["securityContext.enabled=false"]);
        let refused = taken_by(&cluster, &free.pod()).await.unwrap_err().to_string();
        assert!(refused.contains("violates PodSecurity \"restricted"), "the namespaces are restricted: {refused}");
        must_be_valid(&cluster, as_for_flagger()).await;
        must_let_through_what_is_asked_for();
        // As the tutorial installs Flagger, but for the name of the chart.
        let chart = folder();
        let chart = chart.to_string_lossy();
        let tutorial = [
            "upgrade",
            "-i",
            "flagger",
            &chart,
            "--namespace",
            "flagger-system",
            "--set",
            "prometheus.install=false",
            "--set",
            "meshProvider=gatewayapi:v1",
            "--set",
            "metricsServer=http://prometheus.istio-system:9090",
            // Its pods must be ready.
            "--wait",
        ];
        // The harness brought the custom resources before; the chart leaves them to whoever did.
        helm(&cluster, &tutorial);
        let well = async |cluster: &RealCluster| are_well(cluster, "flagger-system").await;
        cluster.until("it leads", well).await;
        let first = leader(&cluster, "flagger-system").await;
        let grown = ["--set", everything];
        helm(&cluster, &[&tutorial[..], &grown].concat());
        cluster.until("two are there", async |cluster| pods(cluster, "flagger-system").await.len() == 2).await;
        let another = async |cluster: &RealCluster| leader(cluster, "flagger-system").await != first;
        cluster.until("a new one takes the Lease", another).await;
        cluster.until("it leads", well).await;
        let (namespace, name, pods) = ("flagger-system", "flagger-seaway", pods(&cluster, "flagger-system").await);
        Companions { cluster: &cluster, namespace, name, pods, monitors: "seaway-system" }.must_fit().await;
        uninstall(&mut cluster, "flagger", "flagger-system").await;
        let deployments: Api<Deployment> = cluster.api("flagger-system");
        assert!(deployments.list(&ListParams::default()).await.unwrap().items.is_empty());
        must_bring_its_own(&mut cluster, &tutorial).await;
        // A name that looks like a number, a part that somebody turned off the hard way, and custom resources that are there.
        let values = "podDisruptionBudget=null,crd.create=false";
        let odd = ["install", "123", &chart, "--namespace", "flagger-system", "--set", values];
        helm(&cluster, &[&odd[..], &["--wait"]].concat());
        cluster.until("it leads", well).await;
    });
}

/// An upgrade takes seconds; fewer glances than this may have missed the moment when one operator follows another.
const GLANCES: usize = 20;

/// How many operators of `seaway-system` were ready, glance by glance.
struct Available {
    enough: CancellationToken,
    watching: JoinHandle<Vec<i32>>,
}

impl Available {
    fn watch(cluster: &RealCluster) -> Self {
        let (enough, deployments) = (CancellationToken::new(), cluster.api::<Deployment>("seaway-system"));
        let until = enough.clone();
        let watching = tokio::spawn(async move {
            let mut seen = Vec::new();
            while !until.is_cancelled() {
                let status = deployments.get("seaway").await.unwrap().status.unwrap_or_default();
                seen.push(status.available_replicas.unwrap_or(0));
                tokio::time::sleep(RealCluster::GLANCE / 2).await;
            }
            seen
        });
        Self { enough, watching }
    }

    async fn fewest(self) -> i32 {
        self.enough.cancel();
        let seen = self.watching.await.unwrap();
        assert!(seen.len() >= GLANCES, "nobody could tell from {} glances", seen.len());
        seen.into_iter().min().unwrap()
    }
}

/// The operator as people run it: in the chart's pods, as their ServiceAccount. A new version of it takes over a rollout.
#[test]
fn helm_upgrades_the_operator_in_the_middle_of_a_rollout() {
    let parts = [&PARTS[..], &["traefik"]].concat();
    in_haven("real::chart::helm_upgrades_the_operator_in_the_middle_of_a_rollout", &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _traefik = Traefik::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        let chart = folder();
        let chart = chart.to_string_lossy();
        let release =
            ["upgrade", "-i", "seaway", &chart, "--namespace", "seaway-system", "--create-namespace", "--wait"];
        helm(&cluster, &release);
        cluster.apply(&APP.replace("NAME", "app")).await;
        cluster.until_phase("app", Phase::Initialized).await;
        let mut users = Users::of_gateway(Traefik::WEB, "app.example.com");
        users.forget_until_served().await;
        let before = leader(&cluster, "seaway-system").await;

        cluster.transcript.clear();
        cluster.set_image("app", "6.0.1").await;
        cluster.until_weight("app", 25).await;
        let available = Available::watch(&cluster);
        helm(&cluster, &[&release[..], &["--set", "logLevel=debug"]].concat());
        assert_eq!(available.fewest().await, 1, "the new one is ready before the old one goes");
        cluster.until_phase("app", Phase::Succeeded).await;
        assert_ne!(leader(&cluster, "seaway-system").await, before);
        assert!(are_well(&cluster, "seaway-system").await);
        assert_eq!(cluster.transcript.route("app"), [25, 50, 0]);
        assert_eq!(cluster.image("app-primary").await, "6.0.1");

        // Without an operator everything stays as it is.
        uninstall(&mut cluster, "seaway", "seaway-system").await;
        cluster.sail(Duration::from_secs(2)).await;
        assert_eq!(cluster.weights("app").await, (100, 0));
        users.rest().await;
        assert_eq!(users.failures_of_ours(""), 0, "{:?}", users.seen());
        assert!(cluster.lookout.judged() > 10, "the invariants were hardly checked: {}", cluster.lookout.judged());
    });
}
