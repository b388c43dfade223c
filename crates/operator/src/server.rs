//! The page for machines: `/metrics`, `/healthz`, `/readyz`.
//!
//! Standby replicas serve it too. It shows state and changes none.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;

use crate::telemetry::Telemetry;

/// What the page shows.
#[derive(Clone)]
pub(crate) struct Health {
    /// The metrics.
    pub(crate) telemetry: Arc<Telemetry>,
    /// Every required watch has listed once.
    pub(crate) synced: Arc<AtomicBool>,
    /// This process leads.
    pub(crate) leading: Arc<AtomicBool>,
}

/// Connections that may wait to be taken.
const BACKLOG: i32 = 1024;

/// Listens on every address of this machine. The kubelet asks by the pod's family, which may be IPv6 alone; a machine without
/// IPv6 has only the others.
///
/// # Errors
///
/// When the port is taken, or may not be used.
pub async fn listen(port: u16) -> io::Result<TcpListener> {
    match both_families(port) {
        Ok(listener) => Ok(listener),
        Err(_) => TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await,
    }
}

fn both_families(port: u16) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP))?;
    // Some machines say otherwise for sockets that say nothing.
    socket.set_only_v6(false)?;
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)).into())?;
    socket.listen(BACKLOG)?;
    TcpListener::from_std(socket.into())
}

/// The page.
pub(crate) fn router(health: Health) -> Router {
    Router::new()
        .route("/healthz", get(async || "OK"))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics))
        .with_state(health)
}

async fn ready(State(health): State<Health>) -> (StatusCode, String) {
    let role = if health.leading.load(Ordering::Relaxed) { "leader" } else { "standby" };
    if health.synced.load(Ordering::Relaxed) {
        (StatusCode::OK, format!("OK ({role})"))
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, format!("caches are not complete yet ({role})"))
    }
}

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    let media = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, media)], health.telemetry.text())
}

#[cfg(test)]
mod tests {
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    use super::*;

    async fn answer(health: &Health, path: &str) -> (u16, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router(health.clone()).oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn the_page_is_there_for_either_family() {
        let listener = listen(0).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(tokio::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok());
        let has_ipv6 = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).await.is_ok();
        assert_eq!(tokio::net::TcpStream::connect((Ipv6Addr::LOCALHOST, port)).await.is_ok(), has_ipv6);
        assert!(listen(port).await.is_err(), "somebody listens there");
    }

    #[tokio::test]
    async fn ready_when_the_caches_are() {
        let telemetry = Arc::new(Telemetry::new("1.0", "istio"));
        let health = Health { telemetry, synced: Arc::default(), leading: Arc::default() };
        assert_eq!(answer(&health, "/healthz").await, (200, "OK".into()));
        assert_eq!(answer(&health, "/readyz").await.0, 503);
        health.synced.store(true, Ordering::Relaxed);
        assert_eq!(answer(&health, "/readyz").await, (200, "OK (standby)".into()));
        health.leading.store(true, Ordering::Relaxed);
        assert_eq!(answer(&health, "/readyz").await, (200, "OK (leader)".into()));
        assert!(answer(&health, "/metrics").await.1.contains("flagger_info"));
    }
}
