//! Kept-alive HTTP/1.1 connections to pods, and the one rule for when a request may be sent again.
//!
//! A request is sent a second time only if no byte of it can have reached a pod: the connection was refused, or was
//! closed before the request was written; or it is an idempotent request without a body on a connection that had been
//! idle, which its server may close at any moment. The latter hides a cut connection from the client, so it is counted.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tower::BoxError;

use crate::names::Endpoint;
use crate::net::Net;
use crate::telemetry::Telemetry;

/// A streamed body of any origin.
pub type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body that is already there.
pub fn full(content: impl Into<Bytes>) -> Body {
    Full::new(content.into()).map_err(|never| match never {}).boxed_unsync()
}

/// No body.
pub fn empty() -> Body {
    Empty::new().map_err(|never| match never {}).boxed_unsync()
}

/// Idle connections kept per pod.
const KEEP: usize = 64;

/// Why no answer came.
pub(crate) enum Failure {
    /// Nobody took the request.
    Unreachable,
    /// The connection broke before the answer's head.
    Broken,
    /// The answer's head took too long.
    TimedOut,
}

impl Failure {
    /// The status a proxy answers with.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Unreachable | Self::Broken => StatusCode::SERVICE_UNAVAILABLE,
            Self::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    /// Envoy's short word for it.
    pub fn flags(&self) -> &'static str {
        match self {
            Self::Unreachable => "UF",
            Self::Broken => "UC",
            Self::TimedOut => "UT",
        }
    }
}

enum SendError {
    /// Nothing was sent; the request is still whole.
    NotSent(Box<Request<Body>>),
    Broken,
}

/// A pod's address and uid: a new pod at an old address must not get the old pod's connections.
type Key = (SocketAddr, Arc<str>);
type Idle = BTreeMap<Key, Vec<SendRequest<Body>>>;

/// Connections by pod; clones share them.
#[derive(Clone)]
pub(crate) struct Pool {
    net: Net,
    idle: Arc<Mutex<Idle>>,
    telemetry: Telemetry,
}

impl Pool {
    /// No connections yet; `telemetry` counts the requests that are sent again.
    pub fn new(net: Net, telemetry: Telemetry) -> Self {
        Self { net, idle: Arc::default(), telemetry }
    }

    /// Sends a request to the first endpoint; if nobody there takes it, once to the second. Answers with the endpoint
    /// that was tried last.
    pub async fn forward<'e>(
        &self,
        endpoints: &'e [Endpoint],
        mut request: Request<Body>,
        limit: Option<Duration>,
    ) -> (Option<&'e Endpoint>, Result<Response<Body>, Failure>) {
        let mut tried = None;
        for endpoint in endpoints.iter().take(2) {
            tried = Some(endpoint);
            let attempt = self.send(endpoint, request);
            let answer = match limit {
                Some(limit) => match tokio::time::timeout(limit, attempt).await {
                    Ok(answer) => answer,
                    Err(_) => return (tried, Err(Failure::TimedOut)),
                },
                None => attempt.await,
            };
            match answer {
                Ok(response) => return (tried, Ok(response)),
                Err(SendError::Broken) => return (tried, Err(Failure::Broken)),
                Err(SendError::NotSent(whole)) => request = *whole,
            }
        }
        (tried, Err(Failure::Unreachable))
    }

    async fn send(&self, to: &Endpoint, request: Request<Body>) -> Result<Response<Body>, SendError> {
        let uid = to.pod.as_ref().map_or("", |pod| pod.uid.as_str());
        let key: Key = (to.address, Arc::from(uid));
        let mut request = request;
        if let Some(mut connection) = self.take(&key) {
            let again = repeatable(&request);
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(self.answered(key, connection, response)),
                Err(mut error) => match (error.take_message(), again) {
                    (Some(whole), _) => request = whole,
                    (None, Some(copy)) => {
                        self.telemetry.record_resent();
                        request = copy;
                    }
                    (None, None) => return Err(SendError::Broken),
                },
            }
        }
        let Ok(stream) = self.net.connect(to.address).await else {
            return Err(SendError::NotSent(Box::new(request)));
        };
        let Ok((mut connection, driver)) = http1::handshake::<_, Body>(TokioIo::new(stream)).await else {
            return Err(SendError::NotSent(Box::new(request)));
        };
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::trace!(%error, "connection to a pod ended");
            }
        });
        match connection.try_send_request(request).await {
            Ok(response) => Ok(self.answered(key, connection, response)),
            Err(mut error) => Err(match error.take_message() {
                Some(whole) => SendError::NotSent(Box::new(whole)),
                None => SendError::Broken,
            }),
        }
    }

    fn take(&self, key: &Key) -> Option<SendRequest<Body>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let connections = idle.get_mut(key)?;
        connections.retain(|connection| !connection.is_closed());
        // One whose answer is still being read is not ready; it stays for later.
        let ready = connections.iter().position(SendRequest::is_ready);
        let taken = ready.map(|at| connections.swap_remove(at));
        if connections.is_empty() {
            idle.remove(key);
        }
        taken
    }

    fn answered(
        &self,
        key: Key,
        connection: SendRequest<Body>,
        response: Response<hyper::body::Incoming>,
    ) -> Response<Body> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        idle.retain(|_, connections| {
            connections.retain(|connection| !connection.is_closed());
            !connections.is_empty()
        });
        let connections = idle.entry(key).or_default();
        if connections.len() < KEEP {
            connections.push(connection);
        }
        response.map(|body| body.map_err(BoxError::from).boxed_unsync())
    }
}

/// A copy of a request that may safely be sent twice.
fn repeatable(request: &Request<Body>) -> Option<Request<Body>> {
    let idempotent = [Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method());
    if !idempotent || !request.body().is_end_stream() {
        return None;
    }
    let mut copy = Request::new(empty());
    copy.method_mut().clone_from(request.method());
    copy.uri_mut().clone_from(request.uri());
    copy.headers_mut().clone_from(request.headers());
    Some(copy)
}
