//! The endpoints.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::App;

/// The longest `/delay`, in real seconds.
const LONGEST_DELAY: u64 = 60;

/// What is served on the main port.
pub(super) fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/", get(info))
        .route("/api/info", get(info))
        .route("/version", get(version))
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .route("/readyz/enable", post(enable))
        .route("/readyz/disable", post(disable))
        .route("/status/{code}", get(status))
        .route("/delay/{seconds}", get(delay))
        .route("/token", get(token).post(token))
        .route("/env", get(env))
        .route("/headers", get(headers).post(headers))
        .route("/echo", post(echo))
        .route("/api/echo", post(echo))
        .route("/panic", get(panic))
        .route("/metrics", get(metrics))
}

/// What is served on the metrics port.
pub(super) fn metrics_router() -> Router<Arc<App>> {
    Router::new().route("/metrics", get(metrics)).route("/healthz", get(healthz))
}

async fn info(State(app): State<Arc<App>>) -> Json<Value> {
    let env = |name: &str, default: &str| app.pod.env.get(name).cloned().unwrap_or_else(|| default.to_owned());
    Json(json!({
        "hostname": app.pod.name,
        "version": app.pod.tag,
        "revision": "drydock",
        "color": env("PODINFO_UI_COLOR", "#34577c"),
        "logo": env("PODINFO_UI_LOGO", "https://raw.githubusercontent.com/stefanprodan/podinfo/gh-pages/cuddle_clap.gif"),
        "message": env("PODINFO_UI_MESSAGE", &format!("greetings from podinfo v{}", app.pod.tag)),
        "goos": "linux",
        "goarch": "amd64",
        "runtime": "drydock",
        "num_goroutine": "1",
        "num_cpu": "1",
    }))
}

async fn version(State(app): State<Arc<App>>) -> Json<Value> {
    Json(json!({"commit": "drydock", "version": app.pod.tag}))
}

async fn healthz() -> Json<Value> {
    Json(json!({"status": "OK"}))
}

async fn readyz(State(app): State<Arc<App>>) -> Response {
    if app.is_ready() {
        Json(json!({"status": "OK"})).into_response()
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "Service Unavailable"}))).into_response()
    }
}

async fn enable(State(app): State<Arc<App>>) -> StatusCode {
    app.ready.store(true, Ordering::Relaxed);
    StatusCode::ACCEPTED
}

async fn disable(State(app): State<Arc<App>>) -> StatusCode {
    app.ready.store(false, Ordering::Relaxed);
    StatusCode::ACCEPTED
}

async fn status(Path(code): Path<String>) -> Response {
    // A status below 200 is not an answer but an announcement of one, which HTTP does not let us send alone.
    match code.parse::<u16>().ok().filter(|code| *code >= 200).and_then(|code| StatusCode::from_u16(code).ok()) {
        Some(code) => (code, Json(json!({"status": code.as_u16()}))).into_response(),
        None => bad_request("not a status code"),
    }
}

async fn delay(Path(seconds): Path<String>) -> Response {
    match seconds.parse::<u64>() {
        Ok(seconds) => {
            tokio::time::sleep(Duration::from_secs(seconds.min(LONGEST_DELAY))).await;
            Json(json!({"delay": seconds.min(LONGEST_DELAY)})).into_response()
        }
        Err(_) => bad_request("not a number of seconds"),
    }
}

/// A token in the shape of a JWT that nobody signed: load tests only need something to ask for.
async fn token(State(app): State<Arc<App>>, body: Bytes) -> Json<Value> {
    let user = String::from_utf8_lossy(&body);
    let user = if user.is_empty() { "anonymous" } else { user.as_ref() };
    let expires = app.pod.clock.now() + Duration::from_secs(60);
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({"name": user, "iss": "podinfo", "exp": expires.as_second()});
    let token = format!("{}.{}.", part(&json!({"alg": "none", "typ": "JWT"})), part(&claims));
    Json(json!({"token": token, "expires_at": expires.to_string()}))
}

async fn env(State(app): State<Arc<App>>) -> Json<Vec<String>> {
    let hostname = format!("HOSTNAME={}", app.pod.name);
    let own = app.pod.env.iter().map(|(name, value)| format!("{name}={value}"));
    Json(std::iter::once(hostname).chain(own).collect())
}

async fn headers(headers: HeaderMap) -> Json<BTreeMap<String, Vec<String>>> {
    let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in &headers {
        all.entry(name.to_string()).or_default().push(String::from_utf8_lossy(value.as_bytes()).into_owned());
    }
    Json(all)
}

async fn echo(body: Bytes) -> (StatusCode, Bytes) {
    (StatusCode::ACCEPTED, body)
}

async fn panic(State(app): State<Arc<App>>) -> StatusCode {
    super::log(&app.pod, "info", "Panic command received", json!({}));
    app.pod.exit(255);
    StatusCode::INTERNAL_SERVER_ERROR
}

async fn metrics(State(app): State<Arc<App>>) -> Response {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], app.metrics.render()).into_response()
}

fn bad_request(message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"code": 400, "message": message}))).into_response()
}
