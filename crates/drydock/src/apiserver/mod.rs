//! The API server: Kubernetes' API as a `tower::Service`, in memory.
//!
//! [`ApiServer`] is handed to `kube::Client` (tests, with layers in between) or served on a port (kubectl). A request
//! goes `request` → `registry` (which resource?) → one file per verb family (`read`, `watch`, `write`, `patch`,
//! `delete`, `subresource`) → `store`. Verbs never ask which resource they serve: what differs is data in the registry.
//!
//! There is deliberately no authentication, no authorisation and no admission webhook here, and protobuf is only read.

mod affinity_rules;
mod apply;
mod autoscaler_metrics;
mod autoscaler_rules;
mod builtin;
mod claim_rules;
mod columns;
mod container_rules;
mod convert;
mod crd;
mod data_rules;
mod decode;
mod defaults;
mod delete;
mod discovery;
mod dns_names;
mod downward_rules;
mod endpoint_rules;
mod env_rules;
mod error;
mod expiry;
mod fields;
mod garbage;
mod go_json;
mod go_names;
mod go_numbers;
mod go_regex;
mod host_rules;
mod inside;
mod ip_rules;
mod json_patch_paths;
mod json_patch_tests;
mod json_patch_twice;
mod judge;
mod kubelet;
mod labels;
mod lens;
mod log;
mod managed;
mod merge;
mod meta;
mod moment;
mod mount_rules;
mod namespace_rules;
mod openapi;
mod openapi_v2;
mod options;
mod overlap_warnings;
mod patch;
mod patch_kind;
mod path_rules;
mod plain_numbers;
mod pod_exec;
mod pod_log;
mod pod_place;
mod pod_rules;
mod pod_warnings;
mod port_warnings;
mod probe_rules;
mod projection_rules;
mod protobuf;
mod quantity;
mod ratchet;
mod rbac_rules;
mod read;
mod registry;
mod repeated;
mod repeated_yaml;
mod request;
mod review;
mod rules;
mod scale;
mod schema;
mod security_rules;
mod selector;
mod selector_rules;
mod serve;
mod server;
mod services;
mod store;
mod streams;
mod subresource;
mod table;
mod tls_pair;
mod toleration_rules;
mod twice_over;
mod unrecognized;
mod validate;
mod view;
mod volume_rules;
mod watch;
mod websocket;
mod workload_rules;
mod write;
mod zero;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use http_body_util::combinators::UnsyncBoxBody;
use tower::{BoxError, Service};

pub(crate) use inside::{AsOf, expired, refusal};
pub use kubelet::{Console, ContainerName, Kubelet, LogOptions, Output, Refusal, Terminal};
pub use log::{Commit, Request, RequestLog};
pub(crate) use request::{Params, Target};

use crate::net::Connection;
use crate::{Clock, Seed};
use server::{HISTORY, Server};

/// The body of an answer; a watch is one that goes on.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A handle to the server; clones are the same server, and it ends with the last of them.
#[derive(Clone)]
pub struct ApiServer(Arc<Server>);

/// Names the user of a request to the service; a request without it is known by its User-Agent.
#[derive(Clone, Debug)]
pub struct User(pub String);

impl ApiServer {
    /// Starts a server with the namespaces and CRDs every drydock cluster has. Must be called inside a tokio runtime.
    #[expect(clippy::needless_pass_by_value, reason = "both are handles")]
    pub fn start(clock: Clock, seed: Seed) -> Self {
        let (server, committed) = Server::new(clock, &seed, HISTORY);
        tokio::spawn(garbage::collect(Arc::downgrade(&server), committed));
        Self(server)
    }

    /// The same without the garbage collector, as a kube-apiserver is without kube-controller-manager: nothing happens
    /// but what is asked for, and nothing is forgotten.
    #[expect(clippy::needless_pass_by_value, reason = "both are handles")]
    pub fn without_controllers(clock: Clock, seed: Seed) -> Self {
        Self(Server::new(clock, &seed, usize::MAX).0)
    }

    /// A client in this process.
    pub fn client(&self, user: &str) -> kube::Client {
        kube::Client::new(self.as_user(user), "default")
    }

    /// The service with every request in the name of `user`: what a fault layer is put around.
    pub fn as_user(&self, user: &str) -> AsUser {
        AsUser { server: self.clone(), user: User(user.to_owned()) }
    }

    /// Serves plain HTTP on an address and returns the one that was bound.
    pub async fn serve(&self, address: SocketAddr) -> io::Result<SocketAddr> {
        serve::serve(&self.0, address).await
    }

    /// Serves plain HTTP on a stream that somebody opened, as on a connection to the port.
    pub fn attend(&self, stream: impl Connection) {
        serve::attend(&self.0, stream);
    }

    /// Makes `kubelet` answer for what goes on inside the pods of a node, as long as somebody holds it.
    pub fn register_kubelet(&self, node: &str, kubelet: Weak<dyn Kubelet>) {
        self.0.kubelets.register(node, kubelet);
    }

    /// Every request so far.
    pub fn log(&self) -> RequestLog {
        self.0.log.clone()
    }

    /// Calls `hook` with every committed write, in order. It runs while the store is locked, so that nothing happens
    /// in between: it must not send requests and wait for them.
    pub fn on_commit(&self, hook: impl Fn(&Commit) + Send + Sync + 'static) {
        self.0.add_hook(Arc::new(hook));
    }

    /// How many watches are open.
    pub fn watches(&self) -> usize {
        Arc::strong_count(&self.0.watching) - 1
    }

    /// The resource version of the last write.
    pub fn revision(&self) -> u64 {
        self.0.store.lock().revision()
    }

    /// Forgets the history up to now: watches and continued lists from older versions get 410, as on a real cluster
    /// every five minutes.
    pub fn compact(&self) {
        let mut state = self.0.store.lock();
        let revision = state.revision();
        state.compact(revision);
    }
}

impl<B> Service<HttpRequest<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: HttpRequest<B>) -> Self::Future {
        let server = self.0.clone();
        Box::pin(async move { Ok(server.answer(request).await) })
    }
}

/// The server as one user sees it; see [`ApiServer::as_user`].
#[derive(Clone)]
pub struct AsUser {
    server: ApiServer,
    user: User,
}

impl<B> Service<HttpRequest<B>> for AsUser
where
    ApiServer: Service<HttpRequest<B>>,
{
    type Response = <ApiServer as Service<HttpRequest<B>>>::Response;
    type Error = <ApiServer as Service<HttpRequest<B>>>::Error;
    type Future = <ApiServer as Service<HttpRequest<B>>>::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.server.poll_ready(context)
    }

    fn call(&mut self, mut request: HttpRequest<B>) -> Self::Future {
        request.extensions_mut().insert(self.user.clone());
        self.server.call(request)
    }
}

/// A body that is there at once.
fn full(bytes: Bytes) -> Body {
    use http_body_util::BodyExt;
    http_body_util::Full::new(bytes).map_err(|never: Infallible| match never {}).boxed_unsync()
}
