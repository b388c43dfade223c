//! etcd, kube-apiserver and kube-controller-manager, as anybody runs them.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use jiff::Timestamp;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::json;

use super::parts::installed;
use super::process::Program;

/// Who may come, and in which groups. What they bring as token is their name.
const USERS: [(&str, &str); 5] = [
    ("admin", "system:masters"),
    ("kubelet", "system:masters"),
    ("kube-controller-manager", "system:masters"),
    ("gateway", "system:masters"),
    (OPERATOR, "system:serviceaccounts"),
];

/// Who the operator is: the ServiceAccount of the chart.
pub const OPERATOR: &str = "system:serviceaccount:seaway-system:seaway";

/// Everything that is written, with what came of it; of the rest only that it was asked.
pub const AUDIT_POLICY: &str = "
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
omitManagedFields: true
rules:
- level: RequestResponse
  verbs: [create, update, patch, delete, deletecollection]
  resources:
  - {group: flagger.app}
  - {group: gateway.networking.k8s.io}
  - {group: apps, resources: [deployments, deployments/status, deployments/scale]}
  - {group: '', resources: [services, events]}
  - {group: events.k8s.io}
- level: Metadata
";

/// The controllers that make a Deployment run, and the one that says which of its pods may go.
const CONTROLLERS: &str = "deployment-controller,replicaset-controller,daemonset-controller,endpointslice-controller,\
    endpoints-controller,garbage-collector-controller,horizontal-pod-autoscaler-controller,namespace-controller,\
    serviceaccount-controller,disruption-controller";

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(90);

/// How long one request to a server that may have been killed is waited for: it may be lost without a word.
const ANSWER: Duration = Duration::from_secs(10);

/// The answer to a request, if there is one in time.
pub async fn in_time<T>(request: impl Future<Output = kube::Result<T>>) -> Option<kube::Result<T>> {
    tokio::time::timeout(ANSWER, request).await.ok()
}

/// The store behind API servers; each has a prefix of its own in it.
pub struct Etcd {
    folder: PathBuf,
    program: Program,
}

impl Etcd {
    pub fn start(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), program: Self::run(folder) }
    }

    fn run(folder: &Path) -> Program {
        let (clients, peers) = ("http://127.0.0.1:2379", "http://127.0.0.1:2380");
        let mut command = Command::new(installed("etcd"));
        command.arg("--data-dir").arg(folder.join("etcd")).args(["--unsafe-no-fsync", "--log-level=error"]).args([
            "--listen-client-urls",
            clients,
            "--advertise-client-urls",
            clients,
            "--listen-peer-urls",
            peers,
        ]);
        Program::start("etcd", folder, &mut command)
    }

    /// `kill -9`, and a new one on the same data.
    pub fn crash(&mut self) {
        self.program.kill();
        self.program = Self::run(&self.folder);
    }
}

/// A kube-apiserver. Several share an [`Etcd`].
pub struct ApiServer {
    name: String,
    port: u16,
    folder: PathBuf,
    plugins: &'static [&'static str],
    program: Program,
    /// When it was killed, and when the next one was ready.
    away: Vec<(Timestamp, Option<Timestamp>)>,
}

impl ApiServer {
    /// Starts one and returns when it is ready. It writes down what it is asked.
    pub async fn start(name: &str, port: u16, folder: &Path) -> Self {
        Self::with(name, port, folder, AUDIT_POLICY, &[]).await
    }

    /// The same, with an audit policy of the caller's and more admission plugins.
    pub async fn with(name: &str, port: u16, folder: &Path, policy: &str, plugins: &'static [&'static str]) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir(&folder).unwrap();
        let tokens: Vec<_> = USERS.iter().map(|(user, group)| format!("{user},{user},{user},\"{group}\"\n")).collect();
        std::fs::write(folder.join("tokens"), tokens.concat()).unwrap();
        std::fs::write(folder.join("audit-policy"), policy).unwrap();
        let key = rcgen::KeyPair::generate().unwrap();
        std::fs::write(folder.join("accounts.key"), key.serialize_pem()).unwrap();
        std::fs::write(folder.join("accounts.pub"), key.public_key_pem()).unwrap();
        let program = Self::run(name, port, &folder, plugins);
        let mut server = Self { name: name.to_owned(), port, folder, plugins, program, away: Vec::new() };
        server.until_ready().await;
        server
    }

    fn run(name: &str, port: u16, folder: &Path, plugins: &[&str]) -> Program {
        let file = |flag: &str, name: &str| format!("--{flag}={}", folder.join(name).display());
        let mut command = Command::new(installed("kube-apiserver"));
        command
            .args(["--etcd-servers=http://127.0.0.1:2379", "--bind-address=127.0.0.1", "--advertise-address=10.96.0.1"])
            .args([format!("--etcd-prefix=/{name}"), format!("--secure-port={port}")])
            .args([file("cert-dir", "certificates"), file("token-auth-file", "tokens")])
            .args(["--authorization-mode=RBAC", "--service-account-issuer=https://kubernetes.default.svc"])
            .args([file("service-account-key-file", "accounts.pub")])
            .args([file("service-account-signing-key-file", "accounts.key")])
            .args(["--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount"])
            .args([file("audit-policy-file", "audit-policy"), file("audit-log-path", "audit.log")])
            // One file, however long.
            .arg("--audit-log-maxsize=0")
            .args(["--endpoint-reconciler-type=none", "--allow-privileged=true"])
            .arg(format!("--enable-admission-plugins={}", plugins.join(",")));
        Program::start("kube-apiserver", folder, &mut command)
    }

    /// `kill -9`, and a new one.
    pub fn crash(&mut self) {
        self.away.push((Timestamp::now(), None));
        self.program.kill();
        self.program = Self::run(&self.name, self.port, &self.folder, self.plugins);
    }

    /// Returns when it answers.
    pub async fn until_ready(&mut self) {
        let begun = std::time::Instant::now();
        loop {
            self.program.must_run();
            if self.folder.join("certificates/apiserver.crt").exists() {
                let request = http::Request::get("/readyz").body(Vec::new()).unwrap();
                let client = self.client("admin").await;
                if in_time(client.request_text(request))
                    .await
                    .is_some_and(|answer| answer.is_ok_and(|text| text == "ok"))
                {
                    if let Some((_, back)) = self.away.last_mut() {
                        back.get_or_insert(Timestamp::now());
                    }
                    return;
                }
            }
            assert!(begun.elapsed() < PATIENCE, "kube-apiserver is not ready:\n{}", self.program.said());
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Whether it was away or not ready at that time. A server that has not read its roles yet forbids everything.
    pub fn was_away(&self, time: Timestamp) -> bool {
        self.away.iter().any(|(from, to)| time >= *from && to.is_none_or(|to| time <= to))
    }

    /// Where its audit log is.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// Where it lives.
    pub fn url(&self) -> String {
        format!("https://{}", self.address())
    }

    /// The same, for those who make a URL of it.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// What vouches for it.
    pub fn authority(&self) -> PathBuf {
        self.folder.join("certificates/apiserver.crt")
    }

    /// A kubeconfig for one of the users.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let file = self.folder.join(format!("{}.kubeconfig", user.replace(':', "-")));
        let text = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": self.name, "cluster": {"server": self.url(), "certificate-authority": self.authority()}}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": self.name, "context": {"cluster": self.name, "user": user}}],
            "current-context": self.name,
        });
        std::fs::write(&file, text.to_string()).unwrap();
        file
    }

    /// A client for one of the users.
    pub async fn client(&self, user: &str) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(user)).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        Client::try_from(config).unwrap()
    }

    /// Starts its controllers.
    pub fn controllers(&self) -> Program {
        let kubeconfig = self.kubeconfig("kube-controller-manager");
        let mut command = Command::new(installed("kube-controller-manager"));
        command
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .arg(format!("--service-account-private-key-file={}", self.folder.join("accounts.key").display()))
            .arg(format!("--root-ca-file={}", self.authority().display()))
            .args(["--leader-elect=false", "--use-service-account-credentials=false", "--bind-address=127.0.0.1"])
            .arg(format!("--secure-port={}", self.port + 3814))
            .arg(format!("--controllers={CONTROLLERS}"));
        Program::start("kube-controller-manager", &self.folder, &mut command)
    }
}
