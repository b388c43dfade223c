//! The mesh sidecar: sends a request to a name of the cluster and counts it.

use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Uri};
use http::{Request, Response, StatusCode};
use tokio::time::Instant;

use super::pool::{self, Body, Pool};
use crate::names::{LookupError, Names, Pod};
use crate::telemetry::{Observation, Telemetry};

/// Names the pod that answered, as `namespace/name`.
pub static UPSTREAM: HeaderName = HeaderName::from_static("x-drydock-upstream");

/// How long a sidecar waits for the head of an answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Sends requests to names of the cluster as a sidecar would; clones share connections and counters.
#[derive(Clone)]
pub struct Mesh {
    names: Names,
    pool: Pool,
    telemetry: Telemetry,
}

impl Mesh {
    /// A sidecar without an application: `telemetry` says whose.
    pub fn new(names: Names, telemetry: Telemetry) -> Self {
        let pool = Pool::new(names.net().clone(), telemetry.clone());
        Self { names, pool, telemetry }
    }

    /// The same sidecar for callers of another namespace, in which short names are looked up.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { names: self.names.in_namespace(namespace), ..self.clone() }
    }

    /// What was counted.
    pub fn telemetry(&self) -> &Telemetry {
        &self.telemetry
    }

    /// The names behind it.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Sends a request with an absolute URI. A `Host` header other than the URI's host is kept, because it is what the
    /// gateway routes by. There is always an answer: one of the sidecar's own says in its body what went wrong.
    pub async fn send(&self, request: Request<Body>) -> Response<Body> {
        let Some(host) = request.uri().host().map(str::to_owned) else {
            return refusal(StatusCode::BAD_REQUEST, "the request has no absolute URI");
        };
        if request.uri().scheme_str().is_some_and(|scheme| scheme != "http") {
            return refusal(StatusCode::BAD_REQUEST, "only http is spoken inside the cluster");
        }
        let port = request.uri().port_u16().unwrap_or(80);
        let destination = match self.names.lookup(&host, port) {
            Ok(destination) => destination,
            Err(error) => {
                let (status, service) = match &error {
                    LookupError::NoSuchHost(_) => (StatusCode::BAD_GATEWAY, None),
                    LookupError::NoSuchPort(service, _) | LookupError::NoEndpoints(service) => {
                        (StatusCode::SERVICE_UNAVAILABLE, Some(service))
                    }
                };
                if service.is_some() {
                    let duration = Duration::ZERO;
                    let seen = Observation { service, pod: None, code: status.as_u16(), flags: "UH", duration };
                    self.telemetry.record(&seen);
                }
                return refusal(status, &error.to_string());
            }
        };
        let begun = Instant::now();
        let (tried, answer) = self.pool.forward(&destination.endpoints, origin_form(request), Some(PATIENCE)).await;
        let pod = tried.and_then(|endpoint| endpoint.pod.as_deref());
        let (code, flags) = match &answer {
            Ok(response) => (response.status(), "-"),
            Err(failure) => (failure.status(), failure.flags()),
        };
        // Only pods are part of the mesh: what goes to the gateway is counted there.
        if pod.is_some() {
            let service = destination.service.as_ref();
            let duration = begun.elapsed();
            self.telemetry.record(&Observation { service, pod, code: code.as_u16(), flags, duration });
        }
        match answer {
            Ok(mut response) => {
                strip_hop_by_hop(response.headers_mut());
                name_upstream(response.headers_mut(), pod);
                response
            }
            Err(_) => refusal(code, &format!("{host}:{port} did not answer")),
        }
    }
}

/// An answer of a proxy's own.
pub(super) fn refusal(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(pool::full(format!("{why}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("drydock-mesh"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Says which pod answered; a name that came from somewhere else is not believed.
pub(crate) fn name_upstream(headers: &mut HeaderMap, pod: Option<&Pod>) {
    match pod.and_then(|pod| HeaderValue::try_from(format!("{}/{}", pod.namespace, pod.name)).ok()) {
        Some(value) => headers.insert(UPSTREAM.clone(), value),
        None => headers.remove(&UPSTREAM),
    };
}

/// The request as a server expects it: a path instead of a whole URI, a `Host` header (the one that is there, or else
/// the URI's host), no headers for proxies.
pub(crate) fn origin_form(mut request: Request<Body>) -> Request<Body> {
    let authority = request.uri().authority().and_then(|authority| HeaderValue::try_from(authority.as_str()).ok());
    if let Some(authority) = authority
        && !request.headers().contains_key(header::HOST)
    {
        request.headers_mut().insert(header::HOST, authority);
    }
    let path = request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/"));
    *request.uri_mut() = Uri::from(path);
    *request.version_mut() = http::Version::HTTP_11;
    strip_hop_by_hop(request.headers_mut());
    request
}

/// Removes what concerns only one connection.
pub(crate) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ] {
        headers.remove(name);
    }
}
