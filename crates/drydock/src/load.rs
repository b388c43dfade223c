//! A bounded load generator: so many workers, so many requests a second, for so long.
//!
//! Pace and duration follow the cluster's clock; latency is measured in the runtime's own time, which is real time
//! unless the runtime is paused. Every request is a [`Record`]; a [`Summary`] holds counts and latency buckets, so that
//! a long run needs no more memory than a short one.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{HOST, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::BodyExt;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::BoxError;

use crate::clock::Clock;
use crate::net::Stream;
use crate::pods::podinfo::{FAULT_HEADER, VERSION_HEADER};
use crate::proxy::{Body, Mesh, UPSTREAM, full};

mod summary;

pub use summary::{Latency, Summary, VersionSummary};

/// Opens a connection to what is to be loaded.
pub type Dial = Arc<dyn Fn() -> BoxFuture<'static, io::Result<Stream>> + Send + Sync>;

/// How requests travel.
#[derive(Clone)]
pub enum Road {
    /// Over connections of the worker's own, kept alive.
    Dial(Dial),
    /// Through the mesh, which counts them.
    Mesh(Mesh),
}

/// When to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// After so many requests of all workers together.
    Count(u64),
    /// After so much simulated time.
    After(Duration),
}

/// What to send.
#[derive(Clone, Debug)]
pub struct Load {
    /// Method of every request.
    pub method: Method,
    /// The request target as sent: a path, or a whole URI for a proxy or the mesh.
    pub target: Uri,
    /// Further headers; `host` is taken from the target unless it is among them.
    pub headers: HeaderMap,
    /// Body of every request.
    pub body: Bytes,
    /// Requests under way at once.
    pub workers: usize,
    /// Requests per simulated second of each worker; as fast as answers come if `None`.
    pub rate: Option<f64>,
    /// When to stop.
    pub stop: Stop,
    /// How long to wait for an answer, in the runtime's time.
    pub patience: Duration,
}

impl Load {
    /// One worker that sends one GET for `target`.
    pub fn get(target: Uri) -> Self {
        Self {
            method: Method::GET,
            target,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            workers: 1,
            rate: None,
            stop: Stop::Count(1),
            patience: Duration::from_secs(20),
        }
    }

    /// With a `Host` header, by which a gateway routes. A host that no header can hold is left out.
    pub fn host(mut self, host: &str) -> Self {
        if let Ok(value) = HeaderValue::try_from(host) {
            self.headers.insert(HOST, value);
        }
        self
    }

    /// With so many workers, each at so many requests per simulated second.
    pub fn pace(mut self, workers: usize, rate: Option<f64>) -> Self {
        (self.workers, self.rate) = (workers, rate);
        self
    }

    /// Until `stop`.
    pub fn until(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer of this status.
    Status(u16),
    /// Without a whole answer, and why.
    Broken(String),
}

/// One request.
#[derive(Clone, Debug)]
pub struct Record {
    /// Simulated time at which it was sent.
    pub at: Timestamp,
    /// How it ended.
    pub outcome: Outcome,
    /// Version of the application that answered.
    pub version: Option<String>,
    /// The pod that answered, as `namespace/name`.
    pub pod: Option<String>,
    /// The scripted fault that the pod confessed to.
    pub fault: Option<String>,
    /// Until the last byte of the answer.
    pub latency: Duration,
    /// Bytes of the answer's body.
    pub bytes: u64,
}

impl Record {
    /// No answer, or one of the 5xx.
    pub fn failed(&self) -> bool {
        !matches!(self.outcome, Outcome::Status(status) if status < 500)
    }

    /// Failed, and no pod said that it was meant to.
    pub fn unexplained(&self) -> bool {
        self.failed() && self.fault.is_none()
    }
}

/// A worker further behind than this gives up the requests it missed.
const MAX_LAG: Duration = Duration::from_secs(1);

/// Sends the load and returns when it is done. `watch` sees every record as it happens. Dropping the future stops all
/// workers.
pub async fn run<F>(load: &Load, road: &Road, clock: Clock, watch: F) -> Summary
where
    F: Fn(&Record) + Send + Sync + 'static,
{
    let shared = Arc::new(Shared {
        load: load.clone(),
        clock,
        deadline: match load.stop {
            Stop::After(duration) => Some(clock.now() + duration),
            Stop::Count(_) => None,
        },
        left: AtomicU64::new(match load.stop {
            Stop::Count(count) => count,
            Stop::After(_) => u64::MAX,
        }),
        summary: Mutex::new(Summary::default()),
        watch,
    });
    let (begun, begun_real) = (clock.now(), Instant::now());
    let mut workers = JoinSet::new();
    for _ in 0..load.workers.max(1) {
        let worker = Worker { shared: Arc::clone(&shared), road: road.clone(), connection: None };
        workers.spawn(worker.run());
    }
    while workers.join_next().await.is_some() {}
    let mut summary = std::mem::take(&mut *shared.summary.lock().unwrap_or_else(PoisonError::into_inner));
    summary.elapsed = Duration::try_from(clock.now().duration_since(begun)).unwrap_or_default();
    summary.elapsed_real = begun_real.elapsed();
    summary
}

struct Shared<F> {
    load: Load,
    clock: Clock,
    deadline: Option<Timestamp>,
    left: AtomicU64,
    summary: Mutex<Summary>,
    watch: F,
}

struct Worker<F> {
    shared: Arc<Shared<F>>,
    road: Road,
    connection: Option<SendRequest<Body>>,
}

impl<F: Fn(&Record) + Send + Sync> Worker<F> {
    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let period = shared.load.rate.filter(|rate| *rate > 0.0).map(|rate| Duration::from_secs_f64(1.0 / rate));
        let mut next = shared.clock.now();
        loop {
            let over = shared.deadline.is_some_and(|deadline| shared.clock.now() >= deadline);
            let taken = || shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
            if over || taken().is_err() {
                return;
            }
            let record = self.once().await;
            (shared.watch)(&record);
            shared.summary.lock().unwrap_or_else(PoisonError::into_inner).add(&record);
            match period {
                Some(period) => {
                    next += period;
                    let now = shared.clock.now();
                    if now > next + MAX_LAG {
                        next = now;
                    }
                    match shared.deadline {
                        Some(deadline) => shared.clock.sleep_until(next.min(deadline)).await,
                        None => shared.clock.sleep_until(next).await,
                    }
                }
                // Answers from memory may never suspend; others must get their turn.
                None => tokio::task::yield_now().await,
            }
        }
    }

    async fn once(&mut self) -> Record {
        let (at, begun) = (self.shared.clock.now(), Instant::now());
        let patience = self.shared.load.patience;
        let answer = match tokio::time::timeout(patience, self.exchange()).await {
            Ok(answer) => answer,
            Err(_) => Err(BoxError::from("timed out")),
        };
        let latency = begun.elapsed();
        let text = |headers: &HeaderMap, name: &HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        match answer {
            Ok((head, bytes)) => Record {
                at,
                outcome: Outcome::Status(head.status().as_u16()),
                version: text(head.headers(), &VERSION_HEADER),
                pod: text(head.headers(), &UPSTREAM),
                fault: text(head.headers(), &FAULT_HEADER),
                latency,
                bytes,
            },
            Err(error) => {
                self.connection = None;
                let outcome = Outcome::Broken(error.to_string());
                Record { at, outcome, version: None, pod: None, fault: None, latency, bytes: 0 }
            }
        }
    }

    /// Sends one request and reads its answer to the end.
    async fn exchange(&mut self) -> Result<(Response<()>, u64), BoxError> {
        let request = self.request()?;
        let response = match &self.road {
            Road::Mesh(mesh) => mesh.send(request).await,
            Road::Dial(dial) => {
                let dial = Arc::clone(dial);
                let response = self.over_connection(dial, request).await?;
                response.map(|body| body.map_err(BoxError::from).boxed_unsync())
            }
        };
        let (head, mut body) = response.into_parts();
        let mut bytes = 0;
        while let Some(frame) = body.frame().await {
            bytes += frame?.data_ref().map_or(0, Bytes::len) as u64;
        }
        Ok((Response::from_parts(head, ()), bytes))
    }

    async fn over_connection(
        &mut self,
        dial: Dial,
        mut request: Request<Body>,
    ) -> Result<Response<hyper::body::Incoming>, BoxError> {
        if let Some(connection) = self.connection.as_mut().filter(|connection| connection.is_ready()) {
            match connection.try_send_request(request).await {
                Ok(response) => return Ok(response),
                // The server closed an idle connection; nothing was sent.
                Err(mut error) => match error.take_message() {
                    Some(whole) => request = whole,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let stream = dial().await?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(driver);
        Ok(self.connection.insert(connection).send_request(request).await?)
    }

    fn request(&self) -> Result<Request<Body>, BoxError> {
        let load = &self.shared.load;
        let mut request = Request::new(full(load.body.clone()));
        *request.method_mut() = load.method.clone();
        *request.uri_mut() = load.target.clone();
        *request.headers_mut() = load.headers.clone();
        if !load.headers.contains_key(HOST) {
            let authority = load.target.authority().map_or("localhost", |authority| authority.as_str());
            request.headers_mut().insert(HOST, HeaderValue::try_from(authority)?);
        }
        Ok(request)
    }
}
