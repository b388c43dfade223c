//! Somebody who is always a little faster: an admission webhook that answers the first writes of the operator to each kind
//! with a conflict.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use axum::extract::State;
use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use super::cluster::RealCluster;
use super::control_plane::OPERATOR;
use crate::harness::Ground;

/// Refused twice in a row somebody looks again; once more, to be refused after that too.
const REFUSED: u32 = 3;
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 9443);

/// Conflicts so far, by kind.
type Book = Arc<Mutex<BTreeMap<String, u32>>>;

/// A webhook that refuses; nobody is refused any more once it is dropped and its configuration gone.
pub struct Refusals(JoinHandle<()>);

impl Refusals {
    pub async fn start(cluster: &RealCluster) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind(ADDRESS).await.unwrap();
        let router = Router::new().route("/", post(review)).with_state(Book::default());
        let server = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, router) = (acceptor.clone(), router.clone());
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let service = TowerToHyperService::new(router);
                    let server = hyper::server::conn::http1::Builder::new();
                    let _ = server.serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        let configuration = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "refusals"},
            "webhooks": [{
                "name": "refusals.seaway.test",
                "clientConfig": {"url": format!("https://{ADDRESS}/"), "caBundle": BASE64.encode(made.cert.pem())},
                "rules": [{
                    "apiGroups": ["", "apps", "autoscaling", "flagger.app", "gateway.networking.k8s.io"],
                    "apiVersions": ["*"],
                    "operations": ["CREATE", "UPDATE", "DELETE"],
                    "resources": [
                        "canaries/status", "deployments", "controllerrevisions", "services", "horizontalpodautoscalers",
                        "httproutes",
                    ],
                }],
                "matchConditions": [
                    {"name": "operator", "expression": format!("request.userInfo.username == '{OPERATOR}'")},
                ],
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }],
        });
        cluster.apply(&configuration.to_string()).await;
        Self(server)
    }
}

impl Drop for Refusals {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn review(State(book): State<Book>, Json(review): Json<Value>) -> Json<Value> {
    let request = &review["request"];
    let kind = request["resource"]["resource"].as_str().unwrap_or_default().to_owned();
    let mut book = book.lock().unwrap();
    let refused = book.entry(kind).or_default();
    let allowed = *refused >= REFUSED;
    *refused += u32::from(!allowed);
    let status = json!({"code": 409, "reason": "Conflict", "message": "somebody was faster"});
    Json(json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], "allowed": allowed, "status": status},
    }))
}
