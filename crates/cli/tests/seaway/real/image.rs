//! The chart's image, as far as a node without containers can run it: `seaway` as a process, with what a container is given.
//!
//! Containers have the network of the haven in common, so each process has its page on a port of its own, and its pod answers
//! there where the chart says.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use hyper_util::client::legacy::Client as Web;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Pod, ServiceAccount};
use kube::Client;
use kube::api::{Api, PostParams};
use rustix::process::{Pid, Signal, kill_process};
use seaway_drydock::pods::{PodContext, Program};
use tokio::process::Command;

use super::control_plane::ApiServer;

/// What the chart calls it.
pub const IMAGE: &str = "seaway";

/// Where every container finds who it is. The haven has a `/run` of its own.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// Where the chart's probes and monitors ask.
const PORT: u16 = 8080;

/// `seaway` in a container.
#[derive(Clone)]
pub struct OperatorImage {
    /// For what a kubelet asks.
    client: Client,
    server: SocketAddr,
    authority: PathBuf,
    folder: PathBuf,
    running: Arc<AtomicUsize>,
}

impl OperatorImage {
    /// The image, for the pods of a cluster. What they say goes to files in `folder`.
    pub async fn of(api: &ApiServer, folder: &Path) -> Self {
        Self {
            client: api.client("kubelet").await,
            server: api.address(),
            authority: api.authority(),
            folder: folder.to_owned(),
            running: Arc::default(),
        }
    }

    /// How many containers have not ended, of pods that are gone too.
    pub fn running(&self) -> usize {
        self.running.load(Ordering::Relaxed)
    }

    /// Who a pod is, as a kubelet asks for it. Returns the folder to mount; none if nobody wants it there.
    async fn account(&self, pod: &PodContext) -> kube::Result<Option<PathBuf>> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace);
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), &pod.namespace);
        let spec = pods.get(&pod.name).await?.spec.unwrap();
        let account = accounts.get(&spec.service_account_name.unwrap()).await?;
        if !spec.automount_service_account_token.or(account.automount_service_account_token).unwrap_or(true) {
            return Ok(None);
        }
        let name = account.metadata.name.unwrap();
        let token = accounts.create_token_request(&name, &PostParams::default(), &TokenRequest::default()).await?;
        let folder = self.folder.join(format!("{}-account", pod.name));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("token"), token.status.unwrap().token.unwrap()).unwrap();
        fs::write(folder.join("namespace"), &pod.namespace).unwrap();
        fs::copy(&self.authority, folder.join("ca.crt")).unwrap();
        Ok(Some(folder))
    }

    /// Runs a container to its end and returns its exit code.
    async fn run(&self, pod: &PodContext, page: u16) -> i32 {
        let account = match self.account(pod).await {
            Ok(account) => account,
            Err(error) => {
                eprintln!("{} does not start: {error}", pod.name);
                return 128;
            }
        };
        let log = self.folder.join(format!("{}.log", pod.name));
        let said = File::options().append(true).create(true).open(&log).unwrap();
        let (program, arguments) = pod.command.split_first().unwrap();
        assert_eq!(program, "/seaway", "what the Dockerfile puts there");
        let mut command = match account {
            Some(folder) => mounted(&folder),
            None => Command::new(env!("CARGO_BIN_EXE_seaway")),
        };
        command
            .args(arguments)
            .args(&pod.args)
            .arg(format!("-port={page}"))
            .env_clear()
            .envs(&pod.env)
            .env("HOSTNAME", &pod.name)
            .env("KUBERNETES_SERVICE_HOST", self.server.ip().to_string())
            .env("KUBERNETES_SERVICE_PORT", self.server.port().to_string())
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        let mut child = command.spawn().unwrap();
        let process = Arc::new(Mutex::new(child.id().and_then(|id| Pid::from_raw(id.cast_signed()))));
        let ending = EndsWithItsPod(process.clone());
        pod.spawn(async move {
            let _ending = ending;
            std::future::pending::<()>().await;
        });
        let ended = child.wait().await.unwrap();
        process.lock().unwrap().take();
        if !ended.success() {
            eprintln!("{} ended, {ended}:\n{}", pod.name, fs::read_to_string(&log).unwrap_or_default());
        }
        ended.code().unwrap_or(137)
    }
}

/// `seaway`, where a folder is mounted in the place of its account. Nobody else sees it there.
fn mounted(account: &Path) -> Command {
    fs::create_dir_all(ACCOUNT).unwrap();
    let mut command = Command::new("/usr/bin/env");
    let script = r#"mount --bind "$0" "$1" && shift && exec "$@""#;
    command
        .args(["unshare", "--mount", "sh", "-c", script])
        .arg(account)
        .arg(ACCOUNT)
        .arg(env!("CARGO_BIN_EXE_seaway"));
    command
}

impl Program for OperatorImage {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        let page = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        let (image, context) = (self.clone(), pod.clone());
        self.running.fetch_add(1, Ordering::Relaxed);
        // Not a task of the pod: the process may still be at work when that is gone.
        tokio::spawn(async move {
            let code = image.run(&context, page.port()).await;
            image.running.fetch_sub(1, Ordering::Relaxed);
            context.exit(code);
        });
        let web = Web::builder(TokioExecutor::new()).build_http::<Body>();
        let forward = async move |request: Request| -> Response {
            let asked = http::Request::get(format!("http://{page}{}", request.uri())).body(Body::empty()).unwrap();
            web.request(asked)
                .await
                .map_or_else(|_| StatusCode::BAD_GATEWAY.into_response(), |told| told.map(Body::new))
        };
        vec![(PORT, Router::new().fallback(forward))]
    }
}

/// Asks a process to end when its pod does, as long as the number is its own.
struct EndsWithItsPod(Arc<Mutex<Option<Pid>>>);

impl Drop for EndsWithItsPod {
    fn drop(&mut self) {
        if let Some(process) = *self.0.lock().unwrap() {
            // One that has just ended needs no telling.
            let _ = kill_process(process, Signal::TERM);
        }
    }
}
