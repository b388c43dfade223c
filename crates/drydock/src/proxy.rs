//! A resolving HTTP forward proxy: ordinary commands with `http_proxy` set to it reach the names of the cluster.
//!
//! It stands for the mesh sidecar. A request in absolute form is sent and counted by [`Mesh`]; `CONNECT` is a plain
//! tunnel to the address behind the name and is not counted, since what flows through it is not looked at. The user
//! name of the proxy URL (`http://test@127.0.0.1:1234`) is the namespace in which short names are looked up, and its
//! password (`http://test:10.244.0.7@…`), where there is one, the address of the pod that `localhost` is.
//!
//! It never opens a connection to anything outside the cluster.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{self, HeaderMap};
use http::uri::{Authority, Uri};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;
use tower::BoxError;

pub(crate) mod cluster_ip;
pub(crate) mod mesh;
pub(crate) mod pool;

pub use mesh::{Mesh, UPSTREAM};
pub use pool::{Body, empty, full};

use crate::net::Net;
use mesh::refusal;

/// A running forward proxy; dropping it closes its port and its connections.
pub struct Proxy {
    address: SocketAddr,
    _task: AbortOnDropHandle<()>,
}

impl Proxy {
    /// Listens on a free loopback port. Short names are looked up in the namespace of `mesh` unless the client names
    /// another.
    pub async fn start(mesh: Mesh) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(accept(listener, mesh));
        Ok(Self { address, _task: AbortOnDropHandle::new(task) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What to put into `http_proxy`, for commands that live in `namespace`.
    pub fn url(&self, namespace: &str) -> String {
        format!("http://{namespace}@{}", self.address)
    }
}

async fn accept(listener: TcpListener, mesh: Mesh) {
    let mut connections = JoinSet::new();
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                // Out of file descriptors, most likely: wait for some to be closed.
                tracing::warn!(%error, "proxy cannot accept");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                continue;
            }
        };
        let mesh = mesh.clone();
        connections.spawn(async move {
            let service = service_fn(|request| {
                let mesh = mesh.clone();
                async move { Ok::<_, std::convert::Infallible>(serve(mesh, request).await) }
            });
            let _ = stream.set_nodelay(true);
            let server = hyper::server::conn::http1::Builder::new()
                .preserve_header_case(true)
                .auto_date_header(false)
                .serve_connection(TokioIo::new(stream), service)
                .with_upgrades();
            if let Err(error) = server.await {
                tracing::trace!(%error, "proxy connection ended");
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mesh: Mesh, mut request: Request<Incoming>) -> Response<Body> {
    let (namespace, home) = origin(request.headers()).unwrap_or_default();
    let mesh = if namespace.is_empty() { mesh } else { mesh.in_namespace(&namespace) };
    if let Some(uri) = home.and_then(|home| at_home(request.uri(), home)) {
        *request.uri_mut() = uri;
    }
    if request.method() == Method::CONNECT {
        return tunnel(&mesh, request).await;
    }
    mesh.send(request.map(|body| body.map_err(BoxError::from).boxed_unsync())).await
}

/// Where the client lives: the namespace in the user name of `Proxy-Authorization`, the pod in its password.
fn origin(headers: &HeaderMap) -> Option<(String, Option<IpAddr>)> {
    let value = headers.get(header::PROXY_AUTHORIZATION)?.to_str().ok()?;
    let decoded = BASE64.decode(value.strip_prefix("Basic ")?.trim()).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    let (namespace, home) = text.split_once(':').unwrap_or((&text, ""));
    Some((namespace.to_owned(), home.parse().ok()))
}

/// A pod's own name for itself, made one that others understand; `None` for all other names.
fn at_home(uri: &Uri, home: IpAddr) -> Option<Uri> {
    uri.host().filter(|host| matches!(*host, "localhost" | "127.0.0.1" | "[::1]"))?;
    let mut parts = uri.clone().into_parts();
    let address = SocketAddr::new(home, uri.port_u16().unwrap_or(80));
    parts.authority = Some(Authority::try_from(address.to_string()).ok()?);
    Uri::from_parts(parts).ok()
}

async fn tunnel(mesh: &Mesh, request: Request<Incoming>) -> Response<Body> {
    let target = request.uri().host().map(str::to_owned).zip(request.uri().port_u16());
    let Some((host, port)) = target else {
        return refusal(StatusCode::BAD_REQUEST, "CONNECT needs host:port");
    };
    let mut far = match mesh.names().dial(&host, port).await {
        Ok(stream) => stream,
        Err(error) => return refusal(StatusCode::BAD_GATEWAY, &error.to_string()),
    };
    tokio::spawn(async move {
        if let Ok(near) = hyper::upgrade::on(request).await {
            let _ = tokio::io::copy_bidirectional(&mut TokioIo::new(near), &mut far).await;
            let _ = far.shutdown().await;
        }
    });
    Response::new(empty())
}

/// Serves a router on a virtual address until the handle is dropped.
pub(crate) async fn serve_router(
    net: &Net,
    address: SocketAddr,
    router: axum::Router,
) -> io::Result<AbortOnDropHandle<()>> {
    let mut listener = net.bind(address).await?;
    let task = tokio::spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok(stream) = listener.accept().await {
            let service = TowerToHyperService::new(router.clone());
            connections.spawn(async move {
                let mut server = hyper::server::conn::http1::Builder::new();
                server.auto_date_header(false);
                let _ = server.serve_connection(TokioIo::new(stream), service).await;
            });
            while connections.try_join_next().is_some() {}
        }
    });
    Ok(AbortOnDropHandle::new(task))
}
