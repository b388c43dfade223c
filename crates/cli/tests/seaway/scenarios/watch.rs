//! `seaway watch` beside `seaway drydock`, each a process of its own: what it tells of a promotion and of a rollback, how
//! it ends when it waits, and what it says when there is nothing to watch.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const CANARY: &str = "
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
    threshold: 1
    maxWeight: 40
    stepWeight: 20
    webhooks:
      - {name: gate, url: 'http://flagger-loadtester.test/gate/check', timeout: 5s}
";

/// `seaway drydock` with the operator and the tutorial's app; stopped when dropped.
struct Drydock {
    process: Child,
    folder: tempfile::TempDir,
    proxy: String,
    _talk: BufReader<ChildStdout>,
}

fn seaway() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_seaway"));
    for name in ["HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy", "KUBECONFIG", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::null());
    command
}

impl Drydock {
    fn launch() -> Self {
        let folder = tempfile::TempDir::new().unwrap();
        let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway-api");
        let manifests = folder.path().join("manifests");
        std::fs::create_dir(&manifests).unwrap();
        for name in ["00-namespaces.yaml", "gateway.yaml", "loadtester.yaml", "podinfo.yaml"] {
            std::fs::copy(examples.join(name), manifests.join(name)).unwrap();
        }
        std::fs::write(manifests.join("zz-canary.yaml"), CANARY).unwrap();
        let mut process = seaway()
            .args(["drydock", "--with-operator", "--speed", "10", "--json", "--log-level", "error", "--apply"])
            .arg(&manifests)
            .arg("--kubeconfig")
            .arg(folder.path().join("kubeconfig"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut talk = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        talk.read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let proxy = ready["httpProxy"].as_str().unwrap().to_owned();
        Self { process, folder, proxy, _talk: talk }
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("kubeconfig")
    }

    fn watch(&self, args: &[&str]) -> Command {
        let mut command = seaway();
        command.arg("watch").args(args).arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// Waits for the end of the rollout: exit code and the lines that were told.
    fn wait(&self, output: &str) -> (Option<i32>, String) {
        let args = ["podinfo", "--wait", "--timeout", "4m", "--output", output];
        let output = self.watch(&args).output().unwrap();
        let told = String::from_utf8(output.stdout).unwrap();
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        (output.status.code(), told)
    }

    async fn client(&self) -> kube::Client {
        let file = kube::config::Kubeconfig::read_from(self.kubeconfig()).unwrap();
        let config = kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await;
        kube::Client::try_from(config.unwrap()).unwrap()
    }

    async fn set_image(&self, tag: &str) {
        let api: kube::Api<k8s_openapi::api::apps::v1::Deployment> = kube::Api::namespaced(self.client().await, "test");
        let image = format!("ghcr.io/stefanprodan/podinfo:{tag}");
        let container = serde_json::json!({"name": "podinfod", "image": image});
        let patch = serde_json::json!({"spec": {"template": {"spec": {"containers": [container]}}}});
        let patch = kube::api::Patch::Strategic(patch);
        api.patch("podinfo", &kube::api::PatchParams::default(), &patch).await.unwrap();
    }

    /// Opens or closes the gate that every check asks.
    fn gate(&self, what: &str) {
        let curl = self.folder.path().join("curl");
        if !curl.exists() {
            std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_seaway"), &curl).unwrap();
        }
        let data = r#"{"name":"podinfo","namespace":"test"}"#;
        let url = format!("http://flagger-loadtester.test/gate/{what}");
        let sent = Command::new(curl).env("http_proxy", &self.proxy).args(["-s", "-d", data, &url]).output().unwrap();
        assert!(sent.status.success(), "{sent:?}");
    }
}

impl Drop for Drydock {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn records(told: &str) -> Vec<Value> {
    told.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect()
}

fn told<'a>(records: &'a [Value], change: &str, member: &str) -> Vec<&'a str> {
    records.iter().filter(|record| record["change"] == change).filter_map(|record| record[member].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_waits_for_promotions_and_rollbacks() {
    let drydock = Drydock::launch();
    let (code, lines) = drydock.wait("plain");
    assert_eq!(code, Some(0), "the app was brought under control\n{lines}");
    assert!(lines.lines().last().unwrap().ends_with("test/podinfo  verdict  promoted"), "{lines}");

    drydock.gate("open");
    // The status still says how the last rollout ended when this one begins to wait.
    drydock.set_image("6.0.1").await;
    let (code, lines) = drydock.wait("json");
    let records = records(&lines);
    assert_eq!(code, Some(0), "{lines}");
    let phases = told(&records, "phase", "phase");
    let end = ["Progressing", "Promoting", "Finalising", "Succeeded"];
    assert!(phases.ends_with(&end), "{phases:?}");
    let weights: Vec<_> = records.iter().filter(|one| one["change"] == "split").map(|one| &one["canary"]).collect();
    assert_eq!(weights, [0, 20, 40, 0], "{lines}");
    assert!(told(&records, "event", "text").contains(&"Advance podinfo.test canary weight 40"), "{lines}");
    assert_eq!(told(&records, "verdict", "verdict"), ["promoted"]);
    assert!(
        records.iter().all(|one| one["about"]["namespace"] == "test" && one["about"]["name"] == "podinfo"),
        "{lines}"
    );

    drydock.gate("close");
    drydock.set_image("6.0.2").await;
    let (code, lines) = drydock.wait("json");
    let records = self::records(&lines);
    assert_eq!(code, Some(1), "{lines}");
    assert_eq!(told(&records, "phase", "phase").last(), Some(&"Failed"));
    assert!(told(&records, "check", "name").contains(&"gate"), "{lines}");
    assert_eq!(told(&records, "verdict", "verdict"), ["failed"]);
    let (code, again) = drydock.wait("plain");
    assert_eq!(code, Some(1), "a verdict that is known already is told at once\n{again}");

    let output = drydock.watch(&["podinfo", "--wait", "--timeout", "1s", "-n", "nowhere"]).output().unwrap();
    assert_refused(&output, "there is no canary podinfo in namespace nowhere of drydock");
    drydock.gate("open");
    drydock.set_image("6.0.3").await;
    let output = drydock.watch(&["podinfo", "--wait", "--timeout", "1s"]).output().unwrap();
    assert_eq!(output.status.code(), Some(124), "{output:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watch_says_when_the_server_is_gone_and_ends_when_nobody_reads() {
    let mut drydock = Drydock::launch();
    let mut watch = drydock.watch(&["-A", "-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines().map(Result::unwrap);
    let begin = Instant::now();
    assert!(lines.any(|line| line.contains(r#""phase":"Initialized""#)), "a canary of any namespace is told");
    drydock.process.kill().unwrap();
    drydock.process.wait().unwrap();
    let trouble = lines.find(|line| line.contains(r#""change":"trouble""#)).unwrap();
    assert!(trouble.contains("no connection, trying again"), "{trouble}");
    assert!(begin.elapsed() < Duration::from_secs(120));
    watch.kill().unwrap();
    watch.wait().unwrap();

    let output = drydock.watch(&["podinfo"]).output().unwrap();
    assert_refused(&output, "cannot watch canaries at the API server");
}

fn assert_refused(output: &Output, why: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(why), "{said}");
}

#[test]
fn what_is_not_there_is_said() {
    let folder = tempfile::TempDir::new().unwrap();
    let alone = |args: &[&str]| seaway().arg("watch").args(args).env("HOME", folder.path()).output().unwrap();
    assert_refused(&alone(&[]), "found no cluster");
    assert_refused(&alone(&["--context", "x"]), "there is no kubeconfig to find the context \"x\" in");
    assert_refused(&alone(&["--kubeconfig", "/nowhere"]), "cannot read kubeconfig /nowhere");
    assert_refused(&alone(&["--wait"]), "<NAME>");
    assert_refused(&alone(&["podinfo", "-A"]), "cannot be used with");
    assert_refused(&alone(&["podinfo", "--wait", "--timeout", "soon"]), "soon");
}
