//! What goes on inside pods: logs, commands over WebSocket, and the refusals of both. The WebSocket client is written
//! here from the standard, so that it does not share the server's mistakes.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use futures::{AsyncBufReadExt, AsyncReadExt, TryStreamExt};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, LogParams, PostParams};
use seaway_drydock::{Cluster, Options, Wire};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt, DuplexStream};

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;

struct Dock {
    cluster: Cluster,
    pods: Api<Pod>,
}

/// An open command.
struct Command {
    stream: TokioIo<hyper::upgrade::Upgraded>,
    protocol: String,
}

/// What came of a command.
#[derive(Debug, Default)]
struct Outcome {
    out: String,
    err: String,
    status: Value,
    /// The code of the server's goodbye.
    closed: Option<u16>,
}

impl Outcome {
    fn code(&self) -> &str {
        match self.status["status"].as_str() {
            Some("Success") => "0",
            _ => self.status["details"]["causes"][0]["message"].as_str().unwrap_or("none"),
        }
    }
}

impl Dock {
    async fn start() -> Self {
        Self::with(Options::paused()).await
    }

    async fn with(options: Options) -> Self {
        let cluster = Cluster::start(options).await.unwrap();
        cluster.apply("apiVersion: v1\nkind: Namespace\nmetadata: {name: test}").await.unwrap();
        let pods = Api::namespaced(cluster.client("test"), "test");
        Self { cluster, pods }
    }

    async fn pod(&self, name: &str, container: Value) {
        let mut container = container;
        let defaults = [("name", "app"), ("image", "podinfo:6.0.0")];
        for (member, value) in defaults {
            if container.get(member).is_none() {
                container[member] = value.into();
            }
        }
        self.create(name, json!({"containers": [container]})).await;
    }

    async fn create(&self, name: &str, spec: Value) {
        let pod = serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap();
        self.pods.create(&PostParams::default(), &pod).await.unwrap();
    }

    async fn until(&self, name: &str, condition: impl Fn(&Pod) -> bool) {
        for _ in 0..1000 {
            if condition(&self.pods.get(name).await.unwrap()) {
                return;
            }
            self.cluster.clock().sleep(Duration::from_millis(100)).await;
        }
        panic!("it does not come true: {:?}", self.pods.get(name).await.unwrap().status);
    }

    async fn until_running(&self, name: &str) {
        self.until(name, |pod| pod.status.as_ref().is_some_and(|status| status.phase.as_deref() == Some("Running")))
            .await;
    }

    async fn until_restarted(&self, name: &str, times: i32) {
        self.until(name, |pod| {
            let status = pod.status.clone().unwrap_or_default().container_statuses.unwrap_or_default();
            status.first().is_some_and(|container| {
                container.restart_count >= times
                    && container.state.as_ref().is_some_and(|state| state.running.is_some())
            })
        })
        .await;
    }

    /// A connection of its own to the API server.
    fn dial(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(64 * 1024);
        self.cluster.api().attend(far);
        near
    }

    /// Sends one request; the answer's head and body.
    async fn ask(&self, request: Request<Empty<&'static [u8]>>) -> (StatusCode, String) {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(self.dial())).await.unwrap();
        tokio::spawn(connection);
        let answer = sender.send_request(request).await.unwrap();
        let status = answer.status();
        (status, String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap())
    }

    /// The message of a refusal.
    async fn refusal(&self, path: &str) -> (u16, String) {
        let request = Request::get(format!("/api/v1/namespaces/test/pods/{path}")).header("host", "x");
        let (status, body) = self.ask(request.body(Empty::new()).unwrap()).await;
        let message =
            serde_json::from_str::<Value>(&body).ok().and_then(|status| Some(status["message"].as_str()?.to_owned()));
        (status.as_u16(), message.unwrap_or(body))
    }

    fn exec(pod: &str, flags: &str, words: &[&str], protocols: &str) -> Request<Empty<&'static [u8]>> {
        let mut query = url::form_urlencoded::Serializer::new(flags.to_owned());
        for word in words {
            query.append_pair("command", word);
        }
        Request::get(format!("/api/v1/namespaces/test/pods/{pod}/exec?{}", query.finish()))
            .header("host", "x")
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .header("sec-websocket-protocol", protocols)
            .body(Empty::new())
            .unwrap()
    }

    async fn open(&self, request: Request<Empty<&'static [u8]>>) -> Command {
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(self.dial())).await.unwrap();
        tokio::spawn(connection.with_upgrades());
        let answer = sender.send_request(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS, "{:?}", answer.into_body().collect().await);
        assert_eq!(answer.headers()["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let protocol = answer.headers()["sec-websocket-protocol"].to_str().unwrap().to_owned();
        Command { stream: TokioIo::new(hyper::upgrade::on(answer).await.unwrap()), protocol }
    }

    async fn run(&self, pod: &str, words: &[&str]) -> Outcome {
        let request = Self::exec(pod, "stdout=true&stderr=true", words, "v5.channel.k8s.io");
        self.open(request).await.outcome().await
    }

    async fn log(&self, pod: &str, params: &LogParams) -> String {
        self.pods.logs(pod, params).await.unwrap()
    }
}

impl Command {
    async fn send(&mut self, opcode: u8, payload: &[u8]) {
        let mask = [1, 2, 3, 4];
        let mut frame = vec![0x80 | opcode, 0x80 | u8::try_from(payload.len()).unwrap()];
        assert!(payload.len() < 126, "short frames are enough here");
        frame.extend(mask);
        frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        self.stream.write_all(&frame).await.unwrap();
        self.stream.flush().await.unwrap();
    }

    async fn typed(&mut self, text: &str) {
        self.send(2, &[&[STDIN], text.as_bytes()].concat()).await;
    }

    /// The next frame: opcode and payload.
    async fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let first = self.stream.read_u8().await.ok()?;
        let length = match self.stream.read_u8().await.ok()? {
            126 => u64::from(self.stream.read_u16().await.ok()?),
            127 => self.stream.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).await.ok()?;
        assert_eq!(first & 0xF0, 0x80, "whole frames without extensions");
        Some((first & 0x0F, payload))
    }

    /// Reads until the server says goodbye, and answers it.
    async fn outcome(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        while let Some((opcode, payload)) = self.frame().await {
            match (opcode, payload.split_first()) {
                (2, Some((&STDOUT, text))) => outcome.out.push_str(std::str::from_utf8(text).unwrap()),
                (2, Some((&STDERR, text))) => outcome.err.push_str(std::str::from_utf8(text).unwrap()),
                (2, Some((&STATUS, text))) => outcome.status = serde_json::from_slice(text).unwrap(),
                (8, _) => {
                    outcome.closed = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                    self.send(8, &[]).await;
                }
                (10, _) => {}
                other => panic!("{other:?}"),
            }
        }
        outcome
    }
}

#[tokio::test(start_paused = true)]
async fn podinfo_says_what_it_does() {
    let dock = Dock::start().await;
    dock.pod("quiet", json!({})).await;
    dock.pod("loud", json!({"command": ["./podinfo", "--port=8080", "--level=debug"]})).await;
    dock.until_running("quiet").await;
    dock.until_running("loud").await;
    assert_eq!(dock.run("quiet", &["curl", "-s", "localhost:9898/version"]).await.code(), "0");
    assert_eq!(dock.run("loud", &["curl", "-s", "-A", "me", "localhost:8080/version?x=1"]).await.code(), "0");
    let quiet = dock.log("quiet", &LogParams::default()).await;
    let lines: Vec<Value> = quiet.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> =
        lines.iter().map(|line| (line["msg"].as_str().unwrap(), line["level"].as_str().unwrap())).collect();
    assert_eq!(told, [("Starting podinfo", "info"), ("Starting HTTP Server.", "info")]);
    let loud = dock.log("loud", &LogParams { tail_lines: Some(1), ..LogParams::default() }).await;
    let line: Value = serde_json::from_str(&loud).unwrap();
    assert_eq!(
        (&line["msg"], &line["uri"], &line["user-agent"]),
        (&json!("request started"), &json!("/version?x=1"), &json!("me"))
    );
    let stamped =
        dock.log("quiet", &LogParams { timestamps: true, limit_bytes: Some(30), ..LogParams::default() }).await;
    assert!(stamped.starts_with("2025-01-01T00:00:0") && stamped.len() == 30, "{stamped}");
}

#[tokio::test(start_paused = true)]
async fn a_follower_hears_everything_until_the_pod_is_gone() {
    let dock = Dock::start().await;
    dock.pod("web", json!({"args": ["--level=debug"]})).await;
    dock.until_running("web").await;
    let params = LogParams { follow: true, since_seconds: Some(3600), ..LogParams::default() };
    let mut lines = dock.pods.log_stream("web", &params).await.unwrap().lines();
    for _ in 0..2 {
        lines.try_next().await.unwrap().unwrap();
    }
    dock.run("web", &["curl", "-s", "localhost:9898/headers"]).await;
    assert!(lines.try_next().await.unwrap().unwrap().contains("\"uri\":\"/headers\""));
    let deleted = dock.cluster.clock().now();
    dock.pods.delete("web", &DeleteParams::default()).await.unwrap();
    assert_eq!(lines.try_next().await.unwrap(), None);
    assert!(dock.cluster.clock().now().duration_since(deleted).as_secs() < 40);
}

#[tokio::test(start_paused = true)]
async fn a_crash_leaves_the_log_of_the_run_before() {
    let dock = Dock::start().await;
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    let (code, why) = dock.refusal("web/log?previous=true").await;
    assert_eq!((code, why.as_str()), (400, "previous terminated container \"app\" in pod \"web\" not found"));
    let mut following = dock.pods.log_stream("web", &LogParams { follow: true, ..LogParams::default() }).await.unwrap();
    dock.run("web", &["curl", "-s", "localhost:9898/panic"]).await;
    let mut all = String::new();
    following.read_to_string(&mut all).await.unwrap();
    assert!(all.contains("Panic command received"), "a follower stays with its run: {all}");
    dock.until_restarted("web", 1).await;
    let (now, before) = (LogParams::default(), LogParams { previous: true, ..LogParams::default() });
    assert!(!dock.log("web", &now).await.contains("Panic"));
    assert_eq!(dock.log("web", &before).await, all);

    dock.pod("broken", json!({"image": "podinfo:6.0.0-crash"})).await;
    let crashed = |pod: &Pod| {
        let status = pod.status.clone().unwrap_or_default().container_statuses.unwrap_or_default();
        status.first().and_then(|status| status.state.clone()?.waiting?.reason).as_deref() == Some("CrashLoopBackOff")
    };
    dock.until("broken", crashed).await;
    assert!(dock.log("broken", &now).await.contains("scripted crash"));
    assert!(dock.log("broken", &before).await.contains("scripted crash"));
    let (code, why) = dock.refusal("broken/exec?command=true&stdout=true").await;
    assert_eq!((code, why.as_str()), (500, "container not found (\"app\")"));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_log_says_why() {
    let dock = Dock::start().await;
    dock.pod("unknown", json!({"image": "nginx"})).await;
    dock.create("two", json!({"containers": [{"name": "a", "image": "podinfo:1"}, {"name": "b", "image": "podinfo:1", "args": ["--port=1", "--port-metrics=2"]}]})).await;
    dock.create("elsewhere", json!({"nodeName": "other", "containers": [{"name": "a", "image": "podinfo:1"}]})).await;
    dock.until_running("two").await;
    for (path, code, expected) in [
        ("nobody/log", 404, "pods \"nobody\" not found"),
        ("nobody/exec?command=true&stdout=true", 404, "pods \"nobody\" not found"),
        ("unknown/log", 400, "container \"app\" in pod \"unknown\" is waiting to start: image can't be pulled"),
        ("unknown/exec?command=true&stdout=true", 500, "container not found (\"app\")"),
        ("two/log", 400, "a container name must be specified for pod two, choose one of: [a b]"),
        ("two/log?container=c", 400, "container c is not valid for pod two"),
        (
            "two/log?container=a&tailLines=-1",
            422,
            "PodLogOptions \"two\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        ("elsewhere/log", 404, "nodes \"other\" not found"),
        ("two/exec?container=a&stdout=true", 400, "you must specify at least one command for the container"),
        ("two/exec?container=a&command=true", 400, "you must specify at least 1 of stdin, stdout, stderr"),
        (
            "two/attach?container=a",
            400,
            "drydock does not offer attach: no program here reads its input; use kubectl logs -f, or kubectl exec",
        ),
        ("two/portforward", 400, "drydock does not offer port-forward, and pod two listens on no port of this machine"),
    ] {
        assert_eq!(dock.refusal(path).await, (code, expected.to_owned()), "{path}");
    }
    assert_eq!(dock.refusal("two/log?container=b").await.0, 200);

    let node = json!({"metadata": {"name": "other"}, "status": {"addresses": [{"type": "InternalIP", "address": "10.9.9.9"}]}});
    let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(dock.cluster.client("test"));
    nodes.create(&PostParams::default(), &serde_json::from_value(node).unwrap()).await.unwrap();
    let refused = "dial tcp 10.9.9.9:10250: connect: connection refused";
    let log = format!("Get \"https://10.9.9.9:10250/containerLogs/test/elsewhere/a\": {refused}");
    assert_eq!(dock.refusal("elsewhere/log").await, (500, log));
    let exec = format!("error dialing backend: {refused}");
    assert_eq!(dock.refusal("elsewhere/exec?command=true&stdout=true").await, (500, exec));
}

#[tokio::test(start_paused = true)]
async fn a_command_runs_and_its_code_arrives() {
    let dock = Dock::start().await;
    let env = json!([{"name": "COLOR", "value": "blue"}]);
    dock.pod("web", json!({"env": env})).await;
    dock.until_running("web").await;
    let version = dock.run("web", &["curl", "-s", "http://localhost:9898/version"]).await;
    assert_eq!((version.out.as_str(), version.code()), ("{\"commit\":\"drydock\",\"version\":\"6.0.0\"}", "0"));
    assert_eq!((version.err.as_str(), version.closed), ("", Some(1000)));
    assert_eq!(version.status, json!({"metadata": {}, "status": "Success"}));

    let failed = dock.run("web", &["curl", "-sSf", "localhost:9898/status/503"]).await;
    assert_eq!((failed.code(), failed.out.as_str()), ("22", ""));
    assert_eq!(failed.err, "curl: (22) The requested URL returned error: 503\n");
    assert_eq!(failed.status["reason"], "NonZeroExitCode");

    let told =
        dock.run("web", &["curl", "-so", "/dev/null", "-w", "%{http_code}\\n", "localhost:9898/status/201"]).await;
    assert_eq!(told.out, "201\n");
    let posted = dock.run("web", &["curl", "-sid", "hello", "localhost:9898/echo"]).await;
    assert!(
        posted.out.starts_with("HTTP/1.1 202 Accepted\r\n") && posted.out.ends_with("\r\n\r\nhello"),
        "{}",
        posted.out
    );
    for (words, code, err) in [
        (
            vec!["curl", "http://localhost:1/"],
            "7",
            "curl: (7) Failed to connect to localhost port 1: Connection refused\n",
        ),
        (vec!["curl", "http://nobody.test/"], "6", "curl: (6) Could not resolve host: nobody.test\n"),
        (vec!["curl", "-L", "http://x/"], "2", "curl: option -L is not offered by drydock's curl\n"),
        (
            vec!["curl", "-sSm", "1", "localhost:9898/delay/5"],
            "28",
            "curl: (28) Operation timed out after 1000 milliseconds\n",
        ),
        (
            vec!["ls"],
            "127",
            "OCI runtime exec failed: exec failed: unable to start container process: exec: \"ls\": executable file not found in $PATH: unknown\n",
        ),
        (vec!["sh"], "2", "sh: drydock has no interactive shell; write sh -c '…'\n"),
        (
            vec!["sh", "-c", "echo a | grep a"],
            "2",
            "sh: drydock's shell has no '|'; it knows ; && || quotes and variables\n",
        ),
        (vec!["sh", "-c", "nothing"], "127", "sh: nothing: not found\n"),
        (vec!["podcli", "check", "http", "localhost:9898/readyz"], "0", ""),
        (
            vec!["podcli", "check", "http", "localhost:9898/status/500"],
            "1",
            "http://localhost:9898/status/500 answered 500 Internal Server Error\n",
        ),
    ] {
        let outcome = dock.run("web", &words).await;
        assert_eq!((outcome.code(), outcome.err.as_str()), (code, err), "{words:?}");
    }
    let script = "echo \"$COLOR $HOSTNAME\" && false || hostname; sh -c 'exit 3'";
    let shell = dock.run("web", &["/bin/sh", "-c", script]).await;
    assert_eq!((shell.out.as_str(), shell.code()), ("blue web\nweb\n", "3"));
    assert!(dock.run("web", &["env"]).await.out.contains("\nCOLOR=blue\n"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_reaches_the_names_of_the_cluster() {
    let dock = Dock::start().await;
    let service = "
apiVersion: v1
kind: Service
metadata: {name: api, namespace: test}
spec:
  selector: {app: api}
  ports: [{port: 80, targetPort: 9898}]
---
apiVersion: v1
kind: Pod
metadata: {name: api, namespace: test, labels: {app: api}}
spec: {containers: [{name: app, image: 'podinfo:7.0.0'}]}
";
    dock.cluster.apply(service).await.unwrap();
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    dock.until("api", |pod| pod.status.as_ref().and_then(|status| status.pod_ip.as_ref()).is_some()).await;
    while dock.cluster.names().resolve("api.test", 80).is_err() {
        dock.cluster.clock().sleep(Duration::from_millis(100)).await;
    }
    for url in ["http://api/version", "http://api.test.svc.cluster.local/version"] {
        let outcome = dock.run("web", &["curl", "-s", url]).await;
        assert!(outcome.out.contains("\"version\":\"7.0.0\""), "{url}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_older_protocol_pings_and_input_are_understood() {
    let dock = Dock::start().await;
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    let words = ["sh", "-c", "sleep 2; echo done; echo oops"];
    let request = Dock::exec("web", "stdin=true&stdout=true&tty=true", &words, "v1.channel.k8s.io, v4.channel.k8s.io");
    let mut command = dock.open(request).await;
    assert_eq!(command.protocol, "v4.channel.k8s.io");
    // Nobody reads it, which must hold nobody up.
    for _ in 0..100 {
        command.typed("not read").await;
    }
    command.send(9, b"there?").await;
    assert_eq!(command.frame().await, Some((10, b"there?".to_vec())));
    let outcome = command.outcome().await;
    assert_eq!((outcome.out.as_str(), outcome.code()), ("done\r\noops\r\n", "0"), "lines end as on a terminal");

    let request = Dock::exec("web", "stdin=true&stdout=true", &["true"], "v5.channel.k8s.io, v4.channel.k8s.io");
    let mut command = dock.open(request).await;
    assert_eq!(command.protocol, "v5.channel.k8s.io");
    command.send(2, &[255, STDIN]).await;
    assert_eq!(command.outcome().await.code(), "0");
}

#[tokio::test(start_paused = true)]
async fn a_command_ends_with_its_client_and_with_its_container() {
    let dock = Dock::start().await;
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    let sleep = || Dock::exec("web", "stdout=true", &["sleep", "1000000"], "v5.channel.k8s.io");
    drop(dock.open(sleep()).await);
    let mut polite = dock.open(sleep()).await;
    polite.send(8, &[]).await;
    assert_eq!(polite.frame().await, Some((8, vec![0x03, 0xE8])));
    let mut rude = dock.open(sleep()).await;
    rude.stream.write_all(&[0x82, 0x00]).await.unwrap();
    assert_eq!(rude.frame().await, Some((8, vec![0x03, 0xEA])), "frames of clients are masked");

    let waiting = dock.open(sleep()).await;
    dock.run("web", &["curl", "-s", "localhost:9898/panic"]).await;
    assert_eq!(waiting.outcome().await.code(), "137");
    assert!(dock.cluster.clock().now().as_second() < 1_735_689_600 + 600, "nobody waited for the end of the sleep");
}

#[tokio::test(start_paused = true)]
async fn other_ways_to_execute_are_refused_clearly() {
    let dock = Dock::start().await;
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    let path = "/api/v1/namespaces/test/pods/web/exec?command=true&stdout=true";
    let spdy = Request::post(path).header("host", "x").header("connection", "Upgrade").header("upgrade", "SPDY/3.1");
    let (status, body) = dock.ask(spdy.body(Empty::new()).unwrap()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("over WebSocket only") && body.contains("kubectl 1.31"), "{body}");
    let (status, body) = dock.ask(Dock::exec("web", "stdout=true", &["true"], "v1.channel.k8s.io")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("v5.channel.k8s.io and v4.channel.k8s.io"), "{body}");
    let mut page = Dock::exec("web", "stdout=true", &["true"], "v5.channel.k8s.io");
    page.headers_mut().insert("origin", "https://example.com".parse().unwrap());
    let (status, body) = dock.ask(page).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "a browser would let any page do this: {body}");
    let page = Request::get("/api/v1/pods").header("host", "x").header("origin", "https://example.com");
    assert_eq!(dock.ask(page.body(Empty::new()).unwrap()).await.0, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn ports_of_pods_are_ports_of_this_machine() {
    let options = Options { wire: Wire::Loopback, ..Options::paused() };
    let dock = Dock::with(options).await;
    dock.pod("web", json!({})).await;
    dock.until_running("web").await;
    let (code, message) = dock.refusal("web/portforward?ports=9898").await;
    assert_eq!(code, 400);
    let (_, rest) = message.split_once("port 9898 is at http://").expect(&message);
    let address: std::net::SocketAddr = rest.split(',').next().unwrap().parse().unwrap();
    assert!(address.ip().is_loopback() && message.contains("port 9797 is at http://127.0.0.1:"), "{message}");
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::get("/version").header("host", "x").body(Empty::<&[u8]>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::OK);
}
