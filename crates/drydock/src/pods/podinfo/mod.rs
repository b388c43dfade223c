//! podinfo: the small web application of Flagger's tutorials, as a program of this cluster.
//!
//! The image tag is its version. It serves the endpoints that rollouts are watched and disturbed through, counts its
//! requests and logs as the real one does, and can be told to misbehave ([`faults`]). Its user interface, gRPC, caches
//! and stores are absent.

pub mod faults;
mod handlers;
mod metrics;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::USER_AGENT;
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::faults::Faults;
use self::metrics::Metrics;
use super::commands::SmallImage;
use super::{Console, HttpCheck, PodContext, Program};

/// Response header with the version of the pod that answered.
pub const VERSION_HEADER: HeaderName = HeaderName::from_static("x-podinfo-version");
/// Response header with the name of the pod that answered.
pub const POD_HEADER: HeaderName = HeaderName::from_static("x-podinfo-pod");
/// Response header on failures that were scripted.
pub const FAULT_HEADER: HeaderName = HeaderName::from_static("x-drydock-fault");

const HTTP_PORT: u16 = 9898;
const METRICS_PORT: u16 = 9797;

/// The program.
#[derive(Clone, Copy, Debug, Default)]
pub struct Podinfo;

/// One running podinfo.
struct App {
    pod: PodContext,
    faults: Faults,
    /// When a slow start is over.
    warm: Timestamp,
    /// Every request is logged.
    debug: bool,
    ready: AtomicBool,
    requests: AtomicU64,
    metrics: Metrics,
}

/// A version that runs in one role and crashes in another: `DRYDOCK_CRASH_AS` names the value of a pod label.
fn crashes_here(pod: &PodContext) -> bool {
    pod.env.get("DRYDOCK_CRASH_AS").is_some_and(|role| pod.labels.values().any(|value| value == role))
}

impl Program for Podinfo {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        let faults = Faults::of(&pod.tag, &pod.env);
        let http = flag(pod, "--port").unwrap_or(HTTP_PORT);
        log(
            pod,
            "info",
            "Starting podinfo",
            json!({"version": pod.tag, "revision": "drydock", "port": http.to_string()}),
        );
        if faults.crash || crashes_here(pod) {
            log(pod, "fatal", "scripted crash", json!({}));
            pod.exit(1);
            return Vec::new();
        }
        log(pod, "info", "Starting HTTP Server.", json!({"addr": format!(":{http}")}));
        let app = Arc::new(App {
            warm: pod.clock.now() + faults.slow_start,
            debug: level(pod) == "debug",
            ready: AtomicBool::new(true),
            // Pods start at different places of the error pattern, so that two of them do not fail in step.
            requests: AtomicU64::new(pod.seed.below(100)),
            metrics: Metrics::default(),
            faults,
            pod: pod.clone(),
        });
        let main = handlers::router().layer(from_fn_with_state(app.clone(), observe)).with_state(app.clone());
        let metrics = flag(pod, "--port-metrics").unwrap_or(METRICS_PORT);
        let mut ports = vec![(http, main)];
        if metrics != 0 && metrics != http {
            ports.push((metrics, handlers::metrics_router().with_state(app)));
        }
        ports
    }

    fn check(&self, command: &[String]) -> Option<HttpCheck> {
        check(command)
    }

    fn execute(&self, pod: &PodContext, command: Vec<String>, console: Console) -> BoxFuture<'static, i32> {
        Box::pin(SmallImage { pod: pod.clone(), check }.execute(command, console))
    }
}

/// `podcli check http localhost:9898/readyz`, alone or inside a shell command.
fn check(command: &[String]) -> Option<HttpCheck> {
    let words: Vec<&str> = command.iter().flat_map(|part| part.split_whitespace()).collect();
    let at = words.windows(3).position(|window| window == ["podcli", "check", "http"])?;
    let target = words.iter().skip(at + 3).find(|word| !word.starts_with('-'))?;
    let target = target.strip_prefix("http://").unwrap_or(target);
    let (host, path) =
        target.split_once('/').map_or((target, "/".to_owned()), |(host, path)| (host, format!("/{path}")));
    let (name, port) = host.rsplit_once(':').unwrap_or((host, "80"));
    if !matches!(name, "localhost" | "127.0.0.1") {
        return None;
    }
    Some(HttpCheck { port: port.parse().ok()?, path })
}

/// Writes a line in the shape of the real one's.
fn log(pod: &PodContext, level: &str, message: &str, fields: Value) {
    let mut line = json!({"level": level, "ts": format!("{:.3}", pod.clock.now()), "msg": message});
    if let (Value::Object(line), Value::Object(fields)) = (&mut line, fields) {
        line.extend(fields);
    }
    pod.log(&line.to_string());
}

/// How much is logged: `--level`, or its environment variable.
fn level(pod: &PodContext) -> &str {
    let mut words = pod.command.iter().chain(&pod.args);
    let flag = words.find_map(|word| word.strip_prefix("--level="));
    flag.or(pod.env.get("PODINFO_LEVEL").map(String::as_str)).unwrap_or("info")
}

/// The value of a `--name=value` flag of the container.
fn flag(pod: &PodContext, name: &str) -> Option<u16> {
    let mut words = pod.command.iter().chain(&pod.args);
    words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}

impl App {
    fn log_request(&self, request: &Request<Body>) {
        let agent = request.headers().get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or_default();
        let fields = json!({
            "proto": format!("{:?}", request.version()), "uri": request.uri().to_string(),
            "method": request.method().as_str(), "user-agent": agent,
        });
        log(&self.pod, "debug", "request started", fields);
    }

    fn is_ready(&self) -> bool {
        !self.faults.never_ready && self.ready.load(Ordering::Relaxed) && self.pod.clock.now() >= self.warm
    }
}

/// Stands around every request: scripted faults, the count, and the headers that say who answered.
async fn observe(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let begun = Instant::now();
    let method = metrics::method(request.method());
    let route = metrics::route(request.extensions().get::<MatchedPath>().map(MatchedPath::as_str));
    if app.debug {
        app.log_request(&request);
    }
    let disturbed = !matches!(route.as_str(), "healthz" | "readyz" | "readyz_enable" | "readyz_disable" | "metrics");
    let fails = disturbed && app.faults.fails(app.requests.fetch_add(1, Ordering::Relaxed));
    if disturbed && !app.faults.latency.is_zero() {
        // Latency is what a client measures: it does not shrink with the speed of the clock.
        tokio::time::sleep(app.faults.latency).await;
    }
    let mut response = if fails {
        let body = json!({"code": 500, "message": "scripted failure"});
        (StatusCode::INTERNAL_SERVER_ERROR, [(FAULT_HEADER, "error")], axum::Json(body)).into_response()
    } else {
        next.run(request).await
    };
    app.metrics.record(method, &route, response.status().as_u16(), begun.elapsed());
    let headers = response.headers_mut();
    for (name, value) in [(VERSION_HEADER, &app.pod.tag), (POD_HEADER, &app.pod.name)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn understands_its_own_check_command() {
        let check = |words: &[&str]| Podinfo.check(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
        let readyz = Some(HttpCheck { port: 9898, path: "/readyz".into() });
        assert_eq!(check(&["podcli", "check", "http", "localhost:9898/readyz"]), readyz);
        assert_eq!(check(&["sh", "-c", "podcli check http --timeout=2s localhost:9898/readyz"]), readyz);
        assert_eq!(check(&["podcli", "check", "http", "example.com/"]), None);
        assert_eq!(check(&["true"]), None);
    }
}
