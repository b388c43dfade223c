//! The service between a client and the API server.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, header, request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tower::{BoxError, Service};

use super::calls::digest;
use super::plan::Shared;
use super::stream::{Source, deliver};
use super::{Call, Fault, Point};
use crate::apiserver::{ApiServer, AsOf, AsUser, Body, Params, Target, refusal};

/// Who deletes and re-creates objects under the client.
const OTHER: &str = "another-writer";

/// One process's way to the server.
#[derive(Clone)]
pub(crate) struct Layer {
    shared: Arc<Shared>,
    api: ApiServer,
    inner: AsUser,
    life: u64,
}

impl Layer {
    pub(crate) fn new(shared: Arc<Shared>, api: &ApiServer, user: &str) -> Self {
        Self { life: shared.life(), shared, api: api.clone(), inner: api.as_user(user) }
    }
}

impl<B> Service<Request<B>> for Layer
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

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let layer = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.map_err(Into::into)?.to_bytes();
            layer.answer(parts, body).await
        })
    }
}

impl Layer {
    async fn answer(self, parts: request::Parts, body: Bytes) -> Result<Response<Body>, BoxError> {
        let target = Target::parse(parts.uri.path());
        let params = Params::parse(parts.uri.query().unwrap_or_default());
        let verb = target.as_ref().and_then(|target| target.verb(&parts.method, &params)).unwrap_or("get");
        if verb == "watch" {
            return self.watch(parts, target.unwrap_or_default()).await;
        }
        let there = self.shared.passage(self.life).await;
        let (place, call) = self.shared.begin(self.record(&parts, &body, target.as_ref(), verb));
        if !there {
            return Err(refused());
        }
        let faults = match call.index {
            Some(index) => self.shared.reach(Point::Call(index)).await,
            None => Vec::new(),
        };
        let exchange = Exchange { layer: &self, parts, body, target, call, place };
        let answer = exchange.faulted(faults).await;
        // It may have died or been paused while this request was on its way.
        self.shared.passage(self.life).await;
        if let Ok(response) = &answer {
            let code = response.status().as_u16();
            self.shared.note(place, |call| call.code = code);
        }
        answer
    }

    async fn watch(self, parts: request::Parts, target: Target) -> Result<Response<Body>, BoxError> {
        if !self.shared.passage(self.life).await {
            return Err(refused());
        }
        let source = Source::new(&parts, target);
        let response = self.send(parts, Bytes::new(), None).await?;
        if !response.status().is_success() {
            return Ok(response);
        }
        let (shared, api, life) = (self.shared, self.api, self.life);
        Ok(response.map(|body| deliver(shared, api, life, source, body)))
    }

    fn record(&self, parts: &request::Parts, body: &Bytes, target: Option<&Target>, verb: &str) -> Call {
        let uri = parts.uri.path_and_query().map_or("", http::uri::PathAndQuery::as_str);
        let text = |of: fn(&Target) -> &str| target.map_or("", of).to_owned();
        Call {
            index: None,
            verb: verb.to_owned(),
            group: text(|target| &target.group),
            resource: target.map_or(parts.uri.path(), |target| &target.plural).to_owned(),
            namespace: text(|target| target.namespace.as_deref().unwrap_or_default()),
            name: text(|target| &target.name),
            subresource: text(|target| &target.subresource),
            code: 0,
            before: 0,
            after: 0,
            digest: digest(&[parts.method.as_str().as_bytes(), uri.as_bytes(), body]),
            body: body.clone(),
            life: self.life,
            time: self.shared.clock.now(),
        }
    }

    async fn send(&self, parts: request::Parts, body: Bytes, as_of: Option<u64>) -> Result<Response<Body>, BoxError> {
        let mut request = Request::from_parts(parts, Full::new(body));
        if let Some(revision) = as_of {
            request.extensions_mut().insert(AsOf(revision));
        }
        self.inner.clone().call(request).await
    }
}

/// One request on its way.
struct Exchange<'a> {
    layer: &'a Layer,
    parts: request::Parts,
    body: Bytes,
    target: Option<Target>,
    call: Call,
    place: usize,
}

impl Exchange<'_> {
    /// Lets the first fault that applies answer; without one the server does.
    async fn faulted(self, faults: Vec<Fault>) -> Result<Response<Body>, BoxError> {
        let shared = self.layer.shared.clone();
        for fault in faults {
            if !fault.applies(&self.call) {
                continue;
            }
            match fault {
                Fault::Conflict => {
                    if let Some(conflict) = self.conflict() {
                        self.strike(fault);
                        return Ok(conflict);
                    }
                }
                Fault::Recreated => {
                    if self.recreate().await {
                        self.strike(fault);
                    }
                }
                Fault::Stale(versions) => {
                    if let Some(revision) = self.layer.api.ago(&self.parts.uri, versions) {
                        self.strike(fault);
                        return self.forward(Some(revision)).await;
                    }
                }
                Fault::Pause(how_long) => {
                    self.strike(fault);
                    shared.hold(how_long);
                    shared.passage(self.layer.life).await;
                }
                Fault::CrashBefore => {
                    self.strike(fault);
                    shared.crash();
                    return std::future::pending().await;
                }
                Fault::CrashAfter => {
                    self.strike(fault);
                    let _lost = self.forward(None).await;
                    shared.crash();
                    return std::future::pending().await;
                }
                Fault::LostReply => {
                    self.strike(fault);
                    let _lost = self.forward(None).await;
                    return Err(reset());
                }
                Fault::TooManyRequests { retry_after, calls } => {
                    self.strike(fault);
                    let seconds = whole_seconds(retry_after);
                    shared.throttle(calls.saturating_sub(1), seconds);
                    return Ok(refusal(429, Some(seconds)));
                }
                Fault::Status(code) => {
                    self.strike(fault);
                    return Ok(refusal(code, None));
                }
                Fault::AppliedStatus(code) => {
                    self.strike(fault);
                    let _lost = self.forward(None).await;
                    return Ok(refusal(code, None));
                }
                Fault::Hang(how_long) => {
                    self.strike(fault);
                    shared.clock.sleep(how_long).await;
                    return Err(timed_out());
                }
                Fault::Reset => {
                    self.strike(fault);
                    return Err(reset());
                }
                Fault::Restart(how_long) => {
                    self.strike(fault);
                    shared.leave(how_long);
                    return Err(reset());
                }
                Fault::DropEvent
                | Fault::DuplicateEvent
                | Fault::DelayEvent(_)
                | Fault::ReplayOld
                | Fault::Gone
                | Fault::Silent(_) => {}
            }
        }
        match shared.throttled(&self.call) {
            Some(seconds) => Ok(refusal(429, Some(seconds))),
            None => self.forward(None).await,
        }
    }

    fn strike(&self, fault: Fault) {
        self.layer.shared.strike(fault, &self.call);
    }

    async fn forward(self, as_of: Option<u64>) -> Result<Response<Body>, BoxError> {
        let Self { layer, parts, body, place, .. } = self;
        // The server carries a request out in one go, so nothing of anybody else comes between the two revisions.
        let before = layer.api.revision();
        let answer = layer.send(parts, body, as_of).await;
        let after = layer.api.revision();
        layer.shared.note(place, |call| (call.before, call.after) = (before, after));
        answer
    }

    fn conflict(&self) -> Option<Response<Body>> {
        let target = self.target.as_ref()?;
        self.layer.api.object(target)?;
        self.layer.api.conflict(target)
    }

    /// Deletes the object of the request and creates it anew from its own manifest. Answers whether that worked.
    async fn recreate(&self) -> bool {
        let Some(target) = &self.target else { return false };
        let Some(object) = self.layer.api.object(target) else { return false };
        if object.pointer("/metadata/finalizers").and_then(Value::as_array).is_some_and(|held| !held.is_empty()) {
            return false;
        }
        let mut manifest = Value::clone(&object);
        if let Some(metadata) = manifest.get_mut("metadata").and_then(Value::as_object_mut) {
            for owned_by_the_server in [
                "uid",
                "resourceVersion",
                "creationTimestamp",
                "generation",
                "managedFields",
                "deletionTimestamp",
                "deletionGracePeriodSeconds",
            ] {
                metadata.remove(owned_by_the_server);
            }
        }
        let path = self.parts.uri.path().trim_end_matches(&format!("/{}", self.call.subresource));
        let Some((collection, _)) = path.rsplit_once('/') else { return false };
        let options = json!({"propagationPolicy": "Background", "gracePeriodSeconds": 0});
        self.other("DELETE", path, &options).await && self.other("POST", collection, &manifest).await
    }

    async fn other(&self, method: &str, path: &str, body: &Value) -> bool {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(Bytes::from(body.to_string())));
        let Ok(request) = request else { return false };
        let answer = self.layer.api.as_user(OTHER).call(request).await;
        answer.is_ok_and(|response| response.status().is_success())
    }
}

fn whole_seconds(duration: Duration) -> u64 {
    (duration.as_secs() + u64::from(duration.subsec_nanos() > 0)).max(1)
}

/// The connection was broken by the other side.
pub(crate) fn reset() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer").into()
}

/// Nobody listens.
fn refused() -> BoxError {
    io::Error::new(io::ErrorKind::ConnectionRefused, "connection refused").into()
}

/// The connection went silent and was given up.
pub(crate) fn timed_out() -> BoxError {
    io::Error::new(io::ErrorKind::TimedOut, "connection timed out").into()
}
