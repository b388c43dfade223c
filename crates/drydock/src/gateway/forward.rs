//! The data plane of one Gateway: takes a request, finds its rule, sends it to a pod.
//!
//! Bodies are streamed both ways. An answer of the gateway's own carries `Server: drydock-gateway`, a proxied one
//! `X-Drydock-Upstream` with the pod that gave it. Time limits are those of the route and count until the head of the
//! answer. Protocol upgrades are not offered.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::{self, HeaderValue};
use http::uri::Authority;
use http::{Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::BoxError;

use super::matching::Question;
use super::table::{Backend, Entry, Rule, Table};
use super::tee;
use crate::names::{LookupError, Names, Pod, ServiceName};
use crate::net::Listener;
use crate::proxy::mesh::{name_upstream, origin_form, strip_hop_by_hop};
use crate::proxy::pool::{Failure, Pool};
use crate::proxy::{Body, full};
use crate::telemetry::{Observation, Telemetry};

/// Mirrored requests under way at once; more are not copied, because a slow shadow must not cost the real traffic.
const MAX_MIRRORS: usize = 256;

/// How long a copy of a request may take.
const MIRROR_PATIENCE: Duration = Duration::from_secs(30);

/// The data plane of one Gateway.
pub(super) struct DataPlane {
    names: Names,
    pool: Pool,
    pub telemetry: Telemetry,
    table: RwLock<Arc<Table>>,
    mirrors: Arc<Semaphore>,
}

impl DataPlane {
    pub fn new(names: Names, telemetry: Telemetry) -> Self {
        let pool = Pool::new(names.net().clone(), telemetry.clone());
        let mirrors = Arc::new(Semaphore::new(MAX_MIRRORS));
        Self { names, pool, telemetry, table: RwLock::default(), mirrors }
    }

    /// Makes a new table the one that every following request obeys.
    pub fn obey(&self, table: Table) {
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(table);
    }

    /// Serves a port until the task is dropped.
    pub async fn serve(self: Arc<Self>, mut listener: Listener) {
        let port = listener.address().port();
        let mut connections = JoinSet::new();
        loop {
            let stream = match listener.accept().await {
                Ok(stream) => stream,
                Err(error) => {
                    tracing::warn!(%error, port, "gateway cannot accept");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            };
            let plane = Arc::clone(&self);
            connections.spawn(async move {
                let service = service_fn(|request: Request<Incoming>| {
                    let plane = Arc::clone(&plane);
                    let request = request.map(|body| body.map_err(BoxError::from).boxed_unsync());
                    async move { Ok::<_, std::convert::Infallible>(plane.answer(port, request).await) }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                // The machine's date has no meaning here, and it would make two equal runs differ.
                server.auto_date_header(false);
                if let Err(error) = server.serve_connection(TokioIo::new(stream), service).await {
                    tracing::trace!(%error, "gateway connection ended");
                }
            });
            while connections.try_join_next().is_some() {}
        }
    }

    /// Answers one request that came in on `port`.
    pub async fn answer(&self, port: u16, request: Request<Body>) -> Response<Body> {
        let begun = Instant::now();
        let table = Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner));
        let (host, asked_port) = authority(&request);
        let question = Question {
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            method: request.method(),
            headers: request.headers(),
        };
        let Some(entry) = table.find(port, &host, &question) else {
            return self.own(begun, None, StatusCode::NOT_FOUND, "NR", "no route matches");
        };
        let Entry { matcher, rule, .. } = entry;
        let origin = request.headers().get(header::ORIGIN).cloned();
        if let Some(cors) = &rule.filters.cors
            && let Some(answer) = cors.preflight(&request)
        {
            return signed(answer);
        }
        if let Some(redirect) = &rule.filters.redirect {
            return signed(redirect.answer(request.uri(), &host, asked_port, matcher.prefix()));
        }
        let mut response = self.route(begun, rule, matcher.prefix(), request).await;
        if let (Some(cors), Some(origin)) = (&rule.filters.cors, origin) {
            cors.mark(&origin, response.headers_mut());
        }
        response
    }

    async fn route(
        &self,
        begun: Instant,
        rule: &Rule,
        matched: Option<&str>,
        request: Request<Body>,
    ) -> Response<Body> {
        const ERROR: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
        let Some(backend) = rule.balancer.next().and_then(|index| rule.backends.get(index)) else {
            return self.own(begun, None, ERROR, "NC", "the rule has no backend with a weight");
        };
        let Some((service, port)) = &backend.target else {
            return self.own(begun, None, ERROR, "NC", "the backend is not valid");
        };
        let endpoints = match self.names.lookup_service(service, *port) {
            Ok(destination) => destination.endpoints,
            Err(LookupError::NoEndpoints(_)) => {
                let status = StatusCode::SERVICE_UNAVAILABLE;
                return self.own(begun, Some(service), status, "UH", "the backend has no ready endpoint");
            }
            Err(error) => return self.own(begun, Some(service), ERROR, "NC", &error.to_string()),
        };
        let mut request = request;
        // A whole URI says which host was routed by; a header that says something else is not passed on.
        if request.uri().authority().is_some() {
            request.headers_mut().remove(header::HOST);
        }
        let mut request = origin_form(request);
        rule.filters.on_request(&mut request, matched);
        backend.filters.on_request(&mut request, matched);
        let request = self.mirrored(rule, request);

        let forward = self.pool.forward(&endpoints, request, rule.backend_limit);
        let (tried, answer) = match rule.request_limit {
            None => forward.await,
            Some(limit) => match tokio::time::timeout_at(begun + limit, forward).await {
                Ok(done) => done,
                Err(_) => (endpoints.first(), Err(Failure::TimedOut)),
            },
        };
        let pod = tried.and_then(|endpoint| endpoint.pod.as_deref());
        let (code, flags) = match &answer {
            Ok(response) => (response.status(), "-"),
            Err(failure) => (failure.status(), failure.flags()),
        };
        self.record(begun, Some(service), pod, code, flags);
        match answer {
            Ok(response) => finished(response, rule, backend, pod),
            Err(_) => signed_text(code, "the backend did not answer"),
        }
    }

    /// Starts the copies of a request, if it is one of those to be copied.
    fn mirrored(&self, rule: &Rule, request: Request<Body>) -> Request<Body> {
        let mut request = request;
        for mirror in &rule.mirrors {
            if !mirror.share.next() {
                continue;
            }
            let Ok(permit) = Arc::clone(&self.mirrors).try_acquire_owned() else { continue };
            let (service, port) = &mirror.target;
            let Ok(destination) = self.names.lookup_service(service, *port) else { continue };
            let (parts, body) = request.into_parts();
            let (body, copied) = tee::tee(body);
            let copy = Request::from_parts(parts.clone(), copied);
            request = Request::from_parts(parts, body);
            let (pool, telemetry) = (self.pool.clone(), self.telemetry.clone());
            tokio::spawn(async move {
                let begun = Instant::now();
                let (tried, answer) = pool.forward(&destination.endpoints, copy, Some(MIRROR_PATIENCE)).await;
                let (code, flags) = match &answer {
                    Ok(response) => (response.status(), "-"),
                    Err(failure) => (failure.status(), failure.flags()),
                };
                let service = destination.service.as_ref();
                let pod = tried.and_then(|endpoint| endpoint.pod.as_deref());
                let duration = begun.elapsed();
                telemetry.record(&Observation { service, pod, code: code.as_u16(), flags, duration });
                if let Ok(response) = answer {
                    // Read to the end, so that the connection can be used again.
                    let _ = tokio::time::timeout(MIRROR_PATIENCE, drain(response.into_body())).await;
                }
                drop(permit);
            });
        }
        request
    }

    fn own(
        &self,
        begun: Instant,
        service: Option<&ServiceName>,
        status: StatusCode,
        flags: &'static str,
        why: &str,
    ) -> Response<Body> {
        self.record(begun, service, None, status, flags);
        signed_text(status, why)
    }

    fn record(
        &self,
        begun: Instant,
        service: Option<&ServiceName>,
        pod: Option<&Pod>,
        code: StatusCode,
        flags: &'static str,
    ) {
        let duration = begun.elapsed();
        self.telemetry.record(&Observation { service, pod, code: code.as_u16(), flags, duration });
    }
}

async fn drain(mut body: Body) {
    while let Some(Ok(_)) = body.frame().await {}
}

fn finished(mut response: Response<Body>, rule: &Rule, backend: &Backend, pod: Option<&Pod>) -> Response<Body> {
    let headers = response.headers_mut();
    strip_hop_by_hop(headers);
    backend.filters.on_response(headers);
    rule.filters.on_response(headers);
    name_upstream(headers, pod);
    *response.version_mut() = Version::HTTP_11;
    response
}

fn signed(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("drydock-gateway"));
    response
}

fn signed_text(status: StatusCode, why: &str) -> Response<Body> {
    let mut response = Response::new(full(format!("{why}\n")));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    signed(response)
}

/// The host a client named, as routes are looked up by, and the port, if it named one.
fn authority(request: &Request<Body>) -> (String, Option<u16>) {
    let named = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    let named = named.and_then(|value| value.parse::<Authority>().ok());
    let named = request.uri().authority().or(named.as_ref());
    let host = named.map(Authority::host).unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    (host, named.and_then(Authority::port_u16))
}
