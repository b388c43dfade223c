//! The page for machines: `/metrics`, `/healthz`, `/readyz`.
//!
//! Standby replicas serve it too. It shows state and changes none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;

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
