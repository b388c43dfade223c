//! A real kube-apiserver as the ground: the same story, the same table.
//!
//! The operator comes as it does in a cluster: by TLS, with its token, which the server looks at, and with the rights that the
//! chart gives it. What it sends is passed on as it is.

#[allow(dead_code)]
#[path = "../../tests/seaway/real/control_plane.rs"]
mod control_plane;
#[allow(dead_code)]
#[path = "../../tests/seaway/real/namespaces.rs"]
mod namespaces;
#[allow(dead_code)]
#[path = "../../tests/seaway/real/parts.rs"]
mod parts;
#[allow(dead_code)]
#[path = "../../tests/seaway/real/process.rs"]
mod process;
#[allow(dead_code)]
#[path = "../../tests/seaway/real/rendered.rs"]
mod rendered;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use jiff::Timestamp;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::client::Body;
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, Config};
use seaway_drydock::apiserver::Commit;
use seaway_drydock::manifests;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::front::Door;
use crate::scripted::Server;
use control_plane::{ApiServer, Etcd, OPERATOR};
use parts::{installed, part};
use rendered::Rendered;

/// Nothing is written down: that would be the API server's work, and both share the machine.
const NO_AUDIT: &str = r#"{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "None"}]}"#;

/// What the story is told by.
const WATCHED: [(&str, &str, &str, &str); 3] = [
    ("apps", "v1", "Deployment", "deployments"),
    ("flagger.app", "v1beta1", "Canary", "canaries"),
    ("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes"),
];

/// Set in the namespaces that the benchmark made for itself.
const INSIDE: &str = "SEAWAY_BENCH_INSIDE";

/// Runs this program once more in namespaces of its own, unless that is where it runs. `false`: it has run there.
pub fn enter() -> bool {
    if std::env::var_os(INSIDE).is_some() {
        namespaces::prepare();
        return true;
    }
    let wanted = ["etcd", "kube-apiserver", "gateway-api", "helm"];
    let why = wanted.iter().try_for_each(|name| part(name).map(drop)).and_then(|()| namespaces::possible());
    if let Err(why) = why {
        eprintln!("GROUND=real is not possible here: {why}");
        std::process::exit(1);
    }
    let mut inside = namespaces::unshare();
    let ended = inside.arg(std::env::current_exe().unwrap()).env(INSIDE, "1").status().unwrap();
    if !ended.success() {
        std::process::exit(1);
    }
    false
}

/// A way to a kube-apiserver.
#[derive(Clone)]
pub struct Real {
    client: Client,
    /// Brings no name: those who pass say who they are.
    nobody: Client,
    doorman: TlsAcceptor,
    /// What vouches for the doorman.
    authority: String,
}

/// The server and its etcd, which end with this.
pub struct Programs {
    _server: ApiServer,
    _etcd: Etcd,
    _folder: TempDir,
}

impl Real {
    /// Starts both, with the kinds of the Gateway API.
    pub async fn start() -> (Self, Programs) {
        let folder = TempDir::new().unwrap();
        let etcd = Etcd::start(folder.path());
        let server = ApiServer::with("bench", 6443, folder.path(), NO_AUDIT, &[]).await;
        let client = server.client("admin").await;
        let routes = "config/crd/experimental/gateway.networking.k8s.io_httproutes.yaml";
        let routes = std::fs::read_to_string(installed("gateway-api").join(routes)).unwrap();
        manifests::apply(&client, &routes).await.unwrap();
        // Where the operator has its Lease if nothing is said.
        let chart = Rendered::with(&["leaderElection.namespace=kube-system"]);
        let home = "{apiVersion: v1, kind: Namespace, metadata: {name: seaway-system}}\n";
        manifests::apply(&client, &format!("{home}{}", chart.access())).await.unwrap();

        let kubeconfig = Kubeconfig::read_from(server.kubeconfig(OPERATOR)).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        (config.auth_info, config.default_retry) = (AuthInfo::default(), false);
        let nobody = Client::try_from(config).unwrap();
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let tls = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![made.cert.der().clone()], key);
        let (doorman, authority) = (TlsAcceptor::from(Arc::new(tls.unwrap())), BASE64.encode(made.cert.pem()));
        (Self { client, nobody, doorman, authority }, Programs { _server: server, _etcd: etcd, _folder: folder })
    }
}

impl Server for Real {
    const AT_ONCE: usize = 16;

    /// A kind whose CustomResourceDefinition is new is not served at once.
    async fn call(&self, _: &str, request: Request<Full<Bytes>>) -> (u16, Value) {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        for _ in 0..50 {
            let request = Request::from_parts(parts.clone(), Body::from(body.to_vec()));
            let answer = self.client.send(request).await.unwrap();
            let code = answer.status().as_u16();
            let bytes = answer.into_body().collect().await.unwrap().to_bytes();
            if code != 404 || parts.method != http::Method::POST {
                return (code, serde_json::from_slice(&bytes).unwrap_or_default());
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        (404, Value::Null)
    }

    fn hear(&self, hook: impl Fn(&Commit) + Send + Sync + 'static) {
        let hook = Arc::new(hook);
        for (group, version, kind, plural) in WATCHED {
            let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural);
            let api: Api<DynamicObject> = Api::all_with(self.client.clone(), &resource);
            let hook = hook.clone();
            tokio::spawn(async move {
                let mut objects = BTreeMap::<String, Arc<Value>>::new();
                let changes = watcher::watcher(api, watcher::Config::default()).default_backoff().applied_objects();
                let mut changes = Box::pin(changes.into_stream());
                while let Some(change) = changes.next().await {
                    let Ok(object) = change else { continue };
                    let after = Arc::new(serde_json::to_value(&object).unwrap());
                    let before = objects.insert(object.metadata.name.unwrap_or_default(), after.clone());
                    hook(&commit(group, plural, before, after));
                }
            });
        }
    }
}

/// A change that a watch told of; who made it is not known.
fn commit(group: &str, resource: &str, before: Option<Arc<Value>>, after: Arc<Value>) -> Commit {
    Commit {
        user: String::new(),
        verb: if before.is_some() { "patch" } else { "create" }.to_owned(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        // Nothing but the status of a Canary changes here.
        subresource: if resource == "canaries" { "status" } else { "" }.to_owned(),
        before,
        after: Some(after),
        revision: 0,
        time: Timestamp::now(),
    }
}

impl Door for Real {
    type Body = Body;

    fn invitation(&self, door: SocketAddr) -> (Value, Value) {
        let cluster = json!({"server": format!("https://{door}"), "certificate-authority-data": self.authority});
        (cluster, json!({"token": OPERATOR}))
    }

    fn doorman(&self) -> Option<TlsAcceptor> {
        Some(self.doorman.clone())
    }

    async fn pass(&self, request: Request<hyper::body::Incoming>) -> Result<Response<Body>, String> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
        let request = Request::from_parts(parts, Body::from(body.to_vec()));
        self.nobody.send(request).await.map_err(|error| error.to_string())
    }
}
