//! The load tester's HTTP side: paths, status codes and texts as hooks out there expect them.
//!
//! Nobody is asked who they are: whoever reaches the port may run commands. What must not reach it is a web page in
//! somebody's browser, which can send to any port of the machine it is shown on. So a call that carries `Origin` is
//! refused everywhere, and a command must come as `application/json`, which a page cannot send to another site without
//! asking first. Gates take any content type: people open them with a plain `curl -d`.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Request as Call, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, get};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use regex::Regex;

use super::gates::Gates;
use super::journal::Journal;
use super::payload::{Payload, Request};
use super::tasks::{Environment, Failure, Limits, Tasks};
use super::toolbox::Toolbox;
use crate::tools::hey::CLOCK_SPEED;

/// How a load tester is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long one command may run.
    pub time_limit: Duration,
    /// Commands that run at the same time.
    pub most_running: usize,
    /// Bytes of output that are kept of each command.
    pub largest_output: usize,
    /// Only canaries of namespaces that match are served.
    pub namespaces: Option<Regex>,
    /// Proxy through which commands reach the cluster's names; `None` leaves the environment as it is.
    pub proxy: Option<String>,
    /// Simulated seconds per second, told to `hey`; `None` where time is real.
    pub clock_speed: Option<u32>,
    /// Tools for commands that the machine may not have.
    pub toolbox: Option<Arc<Toolbox>>,
    /// Who else hears what it does.
    pub journal: Journal,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            time_limit: Duration::from_secs(60 * 60),
            most_running: 100,
            largest_output: 64 * 1024,
            namespaces: None,
            proxy: None,
            clock_speed: None,
            toolbox: None,
            journal: Journal::default(),
        }
    }
}

impl Options {
    pub(super) fn environment(&self) -> Environment {
        let mut variables: Vec<(String, Option<OsString>)> = Vec::new();
        if let Some(proxy) = &self.proxy {
            for name in ["http_proxy", "HTTP_PROXY"] {
                variables.push((name.to_owned(), Some(proxy.into())));
            }
            // The machine's own exemptions must not send a cluster's names around the proxy.
            for name in ["no_proxy", "NO_PROXY"] {
                variables.push((name.to_owned(), None));
            }
        }
        if let Some(speed) = self.clock_speed {
            variables.push((CLOCK_SPEED.to_owned(), Some(speed.to_string().into())));
        }
        if let Some(toolbox) = &self.toolbox {
            variables.push(("PATH".to_owned(), Some(toolbox.path())));
        }
        Environment { variables }
    }
}

/// What the load tester counts.
#[derive(Clone, Debug, Default)]
pub(super) struct Metrics {
    pub running: Gauge,
    tasks: Family<[(&'static str, &'static str); 1], Counter>,
}

impl Metrics {
    pub fn finished(&self, well: bool) {
        self.tasks.get_or_create(&[("result", if well { "success" } else { "failure" })]).inc();
    }
}

#[derive(Debug)]
struct Tester {
    namespaces: Option<Regex>,
    gates: Gates,
    tasks: Tasks,
    registry: Registry,
    journal: Journal,
    // Kept so that the tools stay on disk as long as commands may be started.
    _toolbox: Option<Arc<Toolbox>>,
}

type Shared = State<Arc<Tester>>;

/// The load tester as a service. Commands in the background end when the last clone of it is dropped.
pub fn router(options: &Options) -> Router {
    let metrics = Metrics::default();
    let mut registry = Registry::with_prefix("seaway_loadtester");
    registry.register("tasks_running", "Commands that run now", metrics.running.clone());
    registry.register("tasks", "Commands that ended, by result", metrics.tasks.clone());
    let limits = Limits { running: options.most_running, time: options.time_limit, output: options.largest_output };
    let tester = Tester {
        namespaces: options.namespaces.clone(),
        gates: Gates::default(),
        tasks: Tasks::new(limits, options.environment(), metrics, options.journal.clone()),
        registry,
        journal: options.journal.clone(),
        _toolbox: options.toolbox.clone(),
    };
    Router::new()
        .route("/gate/approve", any(|| async { "OK" }))
        .route("/gate/halt", any(|| async { forbidden() }))
        .route("/gate/check", gate(check, ""))
        .route("/gate/open", gate(open, ""))
        .route("/gate/close", gate(close, ""))
        .route("/rollback/check", gate(check, "rollback."))
        .route("/rollback/open", gate(open, "rollback."))
        .route("/rollback/close", gate(close, "rollback."))
        .fallback(task)
        .layer(from_fn(no_browsers))
        .route("/healthz", get(|| async { "OK" }))
        .route("/metrics", get(exposition))
        .with_state(Arc::new(tester))
}

/// A path of one family of gates; the prefix keeps the families apart.
fn gate(answer: fn(&Tester, &Bytes, &str) -> Response, prefix: &'static str) -> MethodRouter<Arc<Tester>> {
    any(move |State(tester): Shared, body: Bytes| async move { answer(&tester, &body, prefix) })
}

/// Refuses calls of web pages; hooks and people's tools do not send an origin.
async fn no_browsers(call: Call, next: Next) -> Response {
    if call.headers().contains_key(ORIGIN) {
        return refuse(StatusCode::FORBIDDEN, "web pages may not call the load tester".to_owned());
    }
    next.run(call).await
}

fn is_json(headers: &HeaderMap) -> bool {
    let given = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    given.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

fn forbidden() -> Response {
    (StatusCode::FORBIDDEN, "Forbidden").into_response()
}

fn refuse(status: StatusCode, text: String) -> Response {
    tracing::warn!(status = status.as_u16(), reason = text, "hook refused");
    (status, text).into_response()
}

impl Tester {
    /// Reads the body of a call; the error is the answer.
    fn payload(&self, body: &Bytes) -> Result<Payload, Box<Response>> {
        let payload: Payload = serde_json::from_slice(body)
            .map_err(|error| Box::new(refuse(StatusCode::BAD_REQUEST, format!("payload is not valid: {error}"))))?;
        match &self.namespaces {
            Some(served) if !served.is_match(&payload.namespace) => {
                let text = format!("namespace {} is not served by this load tester", payload.namespace);
                Err(Box::new(refuse(StatusCode::FORBIDDEN, text)))
            }
            _ => Ok(payload),
        }
    }
}

fn check(tester: &Tester, body: &Bytes, prefix: &str) -> Response {
    match tester.payload(body) {
        Ok(payload) if tester.gates.is_open(&format!("{prefix}{}", payload.canary())) => "Approved".into_response(),
        Ok(_) => forbidden(),
        Err(answer) => *answer,
    }
}

fn open(tester: &Tester, body: &Bytes, prefix: &str) -> Response {
    match tester.payload(body) {
        Ok(payload) => {
            let key = format!("{prefix}{}", payload.canary());
            tracing::info!(gate = key, "gate opened");
            tester.journal.say("info", "gate opened", &[("gate", &key)]);
            if tester.gates.open(key) {
                StatusCode::ACCEPTED.into_response()
            } else {
                refuse(StatusCode::INSUFFICIENT_STORAGE, "too many gates are open; close some".to_owned())
            }
        }
        Err(answer) => *answer,
    }
}

fn close(tester: &Tester, body: &Bytes, prefix: &str) -> Response {
    match tester.payload(body) {
        Ok(payload) => {
            let key = format!("{prefix}{}", payload.canary());
            tracing::info!(gate = key, "gate closed");
            tester.journal.say("info", "gate closed", &[("gate", &key)]);
            tester.gates.close(&key);
            StatusCode::ACCEPTED.into_response()
        }
        Err(answer) => *answer,
    }
}

async fn task(State(tester): Shared, headers: HeaderMap, body: Bytes) -> Response {
    if !is_json(&headers) {
        let text = "commands must come as JSON; send the header Content-Type: application/json";
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, text.to_owned());
    }
    let payload = match tester.payload(&body) {
        Ok(payload) => payload,
        Err(answer) => return *answer,
    };
    let outcome = match Request::read(&payload) {
        Err(problem) => return refuse(StatusCode::BAD_REQUEST, problem),
        Ok(Request::Background { command, log_output }) => {
            tester.tasks.start(payload.canary(), command, log_output).map(|()| StatusCode::ACCEPTED.into_response())
        }
        Ok(Request::Blocking { command, log_output, return_output }) => tester
            .tasks
            .run(&payload.canary(), &command, log_output)
            .await
            .map(|output| if return_output { output.into_response() } else { StatusCode::OK.into_response() }),
    };
    outcome.unwrap_or_else(|failure| match failure {
        Failure::Busy(most) => {
            refuse(StatusCode::TOO_MANY_REQUESTS, format!("{most} commands run already; try again later"))
        }
        Failure::Failed(text) => (StatusCode::INTERNAL_SERVER_ERROR, text).into_response(),
    })
}

async fn exposition(State(tester): Shared) -> Response {
    let mut text = String::new();
    match encode(&mut text, &tester.registry) {
        Ok(()) => {
            ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text).into_response()
        }
        Err(error) => refuse(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http_body_util::BodyExt;
    use rstest::rstest;
    use tower::ServiceExt;

    use super::*;

    const APP: &str = r#"{"name":"podinfo","namespace":"test","phase":"Progressing"}"#;

    const JSON: (&str, &str) = ("content-type", "application/json");

    async fn post(router: &Router, path: &str, body: &str) -> (u16, String) {
        send(router, path, &[JSON], body).await
    }

    async fn send(router: &Router, path: &str, headers: &[(&str, &str)], body: &str) -> (u16, String) {
        let request =
            headers.iter().fold(http::Request::post(path), |request, (name, value)| request.header(*name, *value));
        let request = request.body(Body::from(body.to_owned())).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn task(metadata: &str) -> String {
        format!(r#"{{"name":"podinfo","namespace":"test","metadata":{metadata}}}"#)
    }

    #[tokio::test]
    async fn fixed_gates_answer_without_a_body() {
        let tester = router(&Options::default());
        assert_eq!(post(&tester, "/gate/approve", "").await, (200, "OK".to_owned()));
        assert_eq!(post(&tester, "/gate/halt", "").await, (403, "Forbidden".to_owned()));
    }

    #[rstest]
    #[case("/gate")]
    #[case("/rollback")]
    #[tokio::test]
    async fn a_gate_is_closed_until_it_is_opened(#[case] family: &str) {
        let tester = router(&Options::default());
        assert_eq!(post(&tester, &format!("{family}/check"), APP).await, (403, "Forbidden".to_owned()));
        assert_eq!(post(&tester, &format!("{family}/open"), APP).await, (202, String::new()));
        assert_eq!(post(&tester, &format!("{family}/check"), APP).await, (200, "Approved".to_owned()));
        assert_eq!(post(&tester, &format!("{family}/close"), APP).await, (202, String::new()));
        assert_eq!(post(&tester, &format!("{family}/check"), APP).await.0, 403);
    }

    #[tokio::test]
    async fn the_two_families_of_gates_are_apart() {
        let tester = router(&Options::default());
        post(&tester, "/gate/open", APP).await;
        assert_eq!(post(&tester, "/rollback/check", APP).await.0, 403);
    }

    #[rstest]
    #[case("{", 400, "payload is not valid")]
    #[case("{}", 400, "metadata not found in payload")]
    #[case(r#"{"metadata":{"type":"cmd"}}"#, 400, "cmd not found in metadata")]
    #[case(r#"{"metadata":{"type":"helm","cmd":"test"}}"#, 400, "task type helm is not offered")]
    #[case(r#"{"metadata":{"cmd":7}}"#, 400, "payload is not valid")]
    #[tokio::test]
    async fn a_call_that_makes_no_sense_is_refused(#[case] body: &str, #[case] status: u16, #[case] text: &str) {
        let answer = post(&router(&Options::default()), "/", body).await;
        assert_eq!(answer.0, status);
        assert!(answer.1.starts_with(text), "{}", answer.1);
    }

    #[tokio::test]
    async fn a_blocking_task_answers_when_it_is_done() {
        let tester = router(&Options::default());
        let quiet = task(r#"{"type":"bash","cmd":"echo token"}"#);
        assert_eq!(post(&tester, "/", &quiet).await, (200, String::new()));
        let told = task(r#"{"type":"bash","cmd":"echo token","returnCmdOutput":"true"}"#);
        assert_eq!(post(&tester, "/any/path", &told).await, (200, "token\n".to_owned()));
        let failed = task(r#"{"type":"bash","cmd":"false"}"#);
        assert_eq!(post(&tester, "/", &failed).await, (500, "command false failed: : exit status 1".to_owned()));
    }

    #[tokio::test]
    async fn a_web_page_reaches_neither_commands_nor_gates() {
        let tester = router(&Options::default());
        let command = task(r#"{"type":"bash","cmd":"true"}"#);
        let page = ("origin", "http://example.com");
        for path in ["/", "/gate/approve", "/gate/open", "/rollback/open", "/gate/check"] {
            assert_eq!(send(&tester, path, &[JSON, page], &command).await.0, 403, "{path}");
        }
        assert_eq!(post(&tester, "/gate/check", APP).await.0, 403, "it was not opened");
        for kind in ["text/plain", "application/x-www-form-urlencoded", "text/plain;application/json"] {
            assert_eq!(send(&tester, "/", &[("content-type", kind)], &command).await.0, 415, "{kind}");
        }
        assert_eq!(send(&tester, "/", &[], &command).await.0, 415);
        let charset = ("content-type", "application/json; charset=utf-8");
        assert_eq!(send(&tester, "/", &[charset], &command).await.0, 200);
    }

    #[tokio::test]
    async fn people_open_gates_with_a_plain_curl() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let tester = router(&Options::default());
        assert_eq!(send(&tester, "/gate/open", &[form], APP).await.0, 202);
        assert_eq!(send(&tester, "/gate/check", &[form], APP).await.0, 200);
    }

    #[tokio::test]
    async fn a_background_task_is_accepted_at_once() {
        let tester = router(&Options::default());
        assert_eq!(post(&tester, "/", &task(r#"{"cmd":"sleep 5"}"#)).await, (202, String::new()));
    }

    #[tokio::test]
    async fn commands_see_the_proxy_and_the_clock() {
        let options =
            Options { proxy: Some("http://test@127.0.0.1:9".to_owned()), clock_speed: Some(20), ..Options::default() };
        let cmd = task(r#"{"type":"bash","cmd":"echo $http_proxy $SEAWAY_CLOCK_SPEED","returnCmdOutput":"true"}"#);
        assert_eq!(post(&router(&options), "/", &cmd).await, (200, "http://test@127.0.0.1:9 20\n".to_owned()));
    }

    #[tokio::test]
    async fn namespaces_that_are_not_served_are_refused() {
        let options = Options { namespaces: Some(Regex::new("^prod$").unwrap()), ..Options::default() };
        let tester = router(&options);
        for path in ["/", "/gate/check", "/gate/open", "/rollback/close"] {
            assert_eq!(post(&tester, path, APP).await.0, 403, "{path}");
        }
        assert_eq!(post(&tester, "/gate/approve", APP).await.0, 200);
    }

    #[tokio::test]
    async fn tasks_are_counted() {
        let tester = router(&Options::default());
        post(&tester, "/", &task(r#"{"type":"bash","cmd":"true"}"#)).await;
        post(&tester, "/", &task(r#"{"type":"bash","cmd":"false"}"#)).await;
        let request = http::Request::get("/metrics").body(Body::empty()).unwrap();
        let body = tester.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        assert!(text.contains(r#"seaway_loadtester_tasks_total{result="success"} 1"#), "{text}");
        assert!(text.contains(r#"seaway_loadtester_tasks_total{result="failure"} 1"#), "{text}");
        assert!(text.contains("seaway_loadtester_tasks_running 0"), "{text}");
    }
}
