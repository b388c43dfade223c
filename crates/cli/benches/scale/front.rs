//! The API server's door for the operator, on loopback: it counts every request and every byte.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Buf;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use seaway_drydock::apiserver::{self, ApiServer, User};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, ServiceExt};

/// What came through the door.
#[derive(Default)]
pub struct Tally {
    requests: Mutex<BTreeMap<Asked, u64>>,
    watch_bytes: AtomicU64,
    other_bytes: AtomicU64,
}

/// A kind of request: verb, and resource with its sub-resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    pub verb: &'static str,
    pub resource: String,
}

impl Asked {
    /// Leases and watches: what the process costs, however many canaries there are.
    pub fn is_housekeeping(&self) -> bool {
        self.verb == "watch" || self.resource == "leases"
    }

    pub fn is_read(&self) -> bool {
        matches!(self.verb, "get" | "list" | "watch")
    }

    fn of(method: &Method, path: &str, query: &str) -> Self {
        let mut words = path.split('/').filter(|word| !word.is_empty()).peekable();
        // api/v1 or apis/group/version
        let skipped = if words.next() == Some("api") { 1 } else { 2 };
        let mut words = words.skip(skipped).peekable();
        if words.peek() == Some(&"namespaces") {
            words.next();
            words.next();
        }
        let resource = words.next().unwrap_or_default();
        let named = words.next().is_some();
        let resource = words.next().map_or_else(|| resource.to_owned(), |sub| format!("{resource}/{sub}"));
        let verb = match *method {
            Method::GET if query.contains("watch=true") => "watch",
            Method::GET if named => "get",
            Method::GET => "list",
            Method::POST => "create",
            Method::PUT => "update",
            Method::PATCH => "patch",
            _ => "delete",
        };
        Self { verb, resource }
    }
}

/// One reading of the door.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    pub requests: BTreeMap<Asked, u64>,
    pub watch_bytes: u64,
    pub other_bytes: u64,
}

impl Reading {
    /// What came since `before`.
    pub fn since(&self, before: &Self) -> Self {
        let counts = self.requests.iter().map(|(asked, count)| {
            let earlier = before.requests.get(asked).copied().unwrap_or_default();
            (asked.clone(), count - earlier)
        });
        Self {
            requests: counts.filter(|(_, count)| *count > 0).collect(),
            watch_bytes: self.watch_bytes - before.watch_bytes,
            other_bytes: self.other_bytes - before.other_bytes,
        }
    }

    /// How many requests there were of this kind.
    pub fn count(&self, keep: impl Fn(&Asked) -> bool) -> u64 {
        self.requests.iter().filter(|(asked, _)| keep(asked)).map(|(_, count)| count).sum()
    }
}

impl Tally {
    pub fn read(&self) -> Reading {
        Reading {
            requests: self.requests.lock().unwrap().clone(),
            watch_bytes: self.watch_bytes.load(Ordering::Relaxed),
            other_bytes: self.other_bytes.load(Ordering::Relaxed),
        }
    }
}

/// What is behind the door.
pub trait Door: Clone + Send + Sync + 'static {
    /// What its answers are made of.
    type Body: hyper::body::Body<Data: Buf + Send, Error: Into<BoxError>> + Send + 'static;

    /// How the operator finds the door, and who it is there: cluster and user of a kubeconfig.
    fn invitation(&self, door: SocketAddr) -> (Value, Value);

    /// Who makes its connections private, if they are.
    fn doorman(&self) -> Option<TlsAcceptor>;

    /// Answers a request of the operator.
    fn pass(&self, request: Request<Incoming>) -> impl Future<Output = Result<Response<Self::Body>, String>> + Send;
}

impl Door for ApiServer {
    type Body = apiserver::Body;

    fn invitation(&self, door: SocketAddr) -> (Value, Value) {
        (json!({"server": format!("http://{door}")}), json!({}))
    }

    fn doorman(&self) -> Option<TlsAcceptor> {
        None
    }

    async fn pass(&self, mut request: Request<Incoming>) -> Result<Response<Self::Body>, String> {
        request.extensions_mut().insert(User("seaway".to_owned()));
        self.clone().oneshot(request).await.map_err(|error| error.to_string())
    }
}

/// Opens the door and returns its address.
pub async fn open(api: &impl Door, tally: &Arc<Tally>) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    let address = listener.local_addr()?;
    let (api, tally) = (api.clone(), tally.clone());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (api, tally) = (api.clone(), tally.clone());
            let _ = stream.set_nodelay(true);
            tokio::spawn(async move {
                match api.doorman() {
                    None => serve(api, tally, stream).await,
                    Some(doorman) => {
                        if let Ok(stream) = doorman.accept(stream).await {
                            serve(api, tally, stream).await;
                        }
                    }
                }
            });
        }
    });
    Ok(address)
}

async fn serve(api: impl Door, tally: Arc<Tally>, stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(move |request: Request<Incoming>| {
        let (api, tally) = (api.clone(), tally.clone());
        async move {
            let uri = request.uri();
            let asked = Asked::of(request.method(), uri.path(), uri.query().unwrap_or_default());
            let is_watch = asked.verb == "watch";
            *tally.requests.lock().unwrap().entry(asked).or_default() += 1;
            let answer = api.pass(request).await.map_err(io::Error::other)?;
            Ok::<_, io::Error>(answer.map(|body| {
                body.map_frame(move |frame| {
                    let bytes = if is_watch { &tally.watch_bytes } else { &tally.other_bytes };
                    bytes.fetch_add(frame.data_ref().map_or(0, |data| data.remaining() as u64), Ordering::Relaxed);
                    frame
                })
            }))
        }
    });
    // Clients may leave at any moment.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}
