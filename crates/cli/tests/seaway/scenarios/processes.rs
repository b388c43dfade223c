//! Seaway as real processes on real sockets: killed without a word, two at once, without a cluster, stopped in a hurry.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use seaway_api::canary::Phase;
use seaway_cli::demo::ground::{Ground, MANIFESTS};

use crate::harness::{Process, Transcript, Users, podinfo};

/// Asks at every step: a hook, and a metric whose answer does not depend on how much was scraped so far. The names are
/// those of the cluster, which a process outside reaches through the proxy alone.
const CANARY: &str = "
apiVersion: flagger.app/v1beta1
kind: MetricTemplate
metadata: {name: always, namespace: test}
spec:
  provider: {type: prometheus, address: 'http://prometheus.istio-system:9090'}
  query: vector(42)
---
apiVersion: flagger.app/v1beta1
kind: Canary
metadata: {name: podinfo, namespace: test}
spec:
  targetRef: {apiVersion: apps/v1, kind: Deployment, name: podinfo}
  progressDeadlineSeconds: 60
  service:
    port: 9898
    hosts: [www.example.com]
    gatewayRefs: [{name: gateway, namespace: istio-ingress}]
  analysis:
    interval: 10s
    threshold: 2
    maxWeight: 60
    stepWeight: 20
    metrics:
      - {name: always, templateRef: {name: always}, thresholdRange: {min: 42, max: 42}, interval: 1m}
    webhooks:
      - {name: ready, type: pre-rollout, url: 'http://flagger-loadtester.test/gate/approve', timeout: 5s}
      - {name: gate, url: 'http://flagger-loadtester.test/gate/approve', timeout: 5s}
";

struct Harbour {
    ground: Ground,
    transcript: Transcript,
    folder: tempfile::TempDir,
}

impl Harbour {
    async fn open() -> Self {
        let mut ground = Ground::start(1, Path::new(env!("CARGO_BIN_EXE_seaway"))).await.unwrap();
        let transcript = Transcript::of(ground.cluster());
        ground.apply(MANIFESTS.into_iter().filter(|(name, _)| *name != "canary.yaml")).await.unwrap();
        ground.apply([("canary", CANARY)]).await.unwrap();
        let folder = tempfile::TempDir::new().unwrap();
        ground.open(0, &folder.path().join("kubeconfig")).await.unwrap();
        Self { ground, transcript, folder }
    }

    fn operator(&self, flags: &[&str]) -> Process {
        let proxy = self.ground.cluster().proxy_url("flagger-system").unwrap();
        Process::operator(&self.folder.path().join("kubeconfig"), &proxy, flags)
    }

    /// How often a hook was called, and answered, through the proxy.
    fn hooks_answered(&self) -> u64 {
        let requests = self.ground.cluster().mesh().telemetry().requests();
        requests.get(&("flagger-loadtester".to_owned(), 200)).copied().unwrap_or_default()
    }

    async fn until_phase(&self, phase: &str) {
        podinfo::until_phase(&self.ground, phase, &self.transcript).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_twenty_times_it_still_finishes_the_rollout() {
    let harbour = Harbour::open().await;
    let flags = ["-enable-leader-election=false"];
    let mut operator = harbour.operator(&flags);
    harbour.until_phase("Initialized").await;
    let users = Users::start(harbour.ground.cluster(), 20);
    harbour.transcript.clear();
    podinfo::set_image(&harbour.ground, "6.0.1").await;
    let mut kills = 0;
    while kills < 20 {
        // Lives of different lengths, so that the kills fall into ticks, between them, and into start-up.
        tokio::time::sleep(Duration::from_millis(600 + 370 * (kills % 7))).await;
        operator.kill();
        kills += 1;
        operator = harbour.operator(&flags);
    }
    harbour.until_phase("Succeeded").await;
    assert_eq!(harbour.transcript.route("podinfo"), [20, 40, 60, 0], "{}", harbour.transcript);
    let mut advances = harbour.transcript.events();
    advances.retain(|text| text.starts_with("Advance"));
    let told = advances.len();
    advances.dedup();
    assert_eq!(advances.len(), told, "a step was told twice\n{}", harbour.transcript);
    assert!(harbour.hooks_answered() >= 4, "one before the first step, one at each of three");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_operators_one_leads_and_the_other_takes_over() {
    let harbour = Harbour::open().await;
    let flags = ["-lease-duration=8s"];
    let mut first = harbour.operator(&flags);
    harbour.until_phase("Initialized").await;
    let leases: Api<Lease> = Api::namespaced(harbour.ground.cluster().client("test"), "kube-system");
    let holder = async || {
        let lease = leases.get("flagger-leader-election").await.unwrap();
        lease.spec.unwrap().holder_identity.unwrap_or_default()
    };
    let leader = holder().await;
    let mut second = harbour.operator(&flags);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(holder().await, leader, "the standby waits");
    assert!(first.is_running() && second.is_running());

    harbour.transcript.clear();
    podinfo::set_image(&harbour.ground, "6.0.1").await;
    podinfo::until_weight(&harbour.ground, 20, &harbour.transcript).await;
    first.kill();
    harbour.until_phase("Succeeded").await;
    assert_ne!(holder().await, leader, "the standby leads");
    assert!(second.is_running());
    assert_eq!(harbour.transcript.route("podinfo"), [20, 40, 60, 0], "{}", harbour.transcript);
    assert!(harbour.hooks_answered() >= 4, "one before the first step, one at each of three");
    assert_eq!(podinfo::status(&harbour.ground).await.phase, Phase::Succeeded);
}

#[test]
fn a_proxy_that_cannot_be_used_is_named_at_the_start() {
    for (name, value) in
        [("HTTP_PROXY", "socks5://me:secret@a.test"), ("https_proxy", "a.test:port"), ("NO_PROXY", "a b")]
    {
        let output = Process::command(Path::new("/nowhere")).env(name, value).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(name) && !said.contains("secret"), "{said}");
    }
}

#[test]
fn an_api_server_that_cannot_be_reached_is_named_with_the_reason() {
    let folder = tempfile::TempDir::new().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    // Nobody listens on port 1.
    let text = "{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}], \
                contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {}}]}";
    std::fs::write(&kubeconfig, text).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
    command.arg("operator").arg(format!("-kubeconfig={}", kubeconfig.display())).arg("-port=0");
    let mut operator = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(operator.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut said = Vec::new();
    for line in lines {
        let last = line.contains("the watch keeps failing");
        said.push(line);
        if last {
            break;
        }
    }
    operator.kill().unwrap();
    operator.wait().unwrap();
    assert!(said[0].contains("http://127.0.0.1:1/"), "{said:#?}");
    assert!(said.last().unwrap().contains("Connection refused"), "{said:#?}");
    assert!(said.len() < 4, "each failed request is a line: {said:#?}");
    assert!(!said.iter().any(|line| line.contains(".cargo")), "{said:#?}");
}

#[test]
fn a_second_signal_leaves_no_files_behind() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
    command.args(["drydock", "--json"]).env("TMPDIR", folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut drydock = command.spawn().unwrap();
    let mut invitation = String::new();
    BufReader::new(drydock.stdout.take().unwrap()).read_line(&mut invitation).unwrap();
    let left = || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left().len(), 2, "a kubeconfig and tools: {:?}", left());
    let hurry = format!("kill -INT {0}; kill -TERM {0}", drydock.id());
    assert!(Command::new("sh").args(["-c", &hurry]).status().unwrap().success());
    drydock.wait().unwrap();
    assert_eq!(left(), Vec::<std::ffi::OsString>::new());
}

#[test]
fn a_file_that_is_no_text_spoils_only_itself() {
    let folder = tempfile::TempDir::new().unwrap();
    std::fs::write(folder.path().join("a.yaml"), b"kind: Canary\nname: \xff\n").unwrap();
    std::fs::write(folder.path().join("b.yaml"), CANARY.replace("stepWeight:", "stepWait:")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_seaway")).arg("lint").arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("a.yaml:2: error: this is not UTF-8 text"), "{said}");
    assert!(said.contains("b.yaml:") && said.contains("stepWait"), "{said}");
}
