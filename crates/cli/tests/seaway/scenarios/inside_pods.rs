//! A person looks into the load tester's pod: its log, and commands in it, over the API server's real port.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use seaway_cli::demo::ground::{Ground, MANIFESTS};
use serde_json::Value;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

/// Executes a command and gives its output and its exit code.
async fn execute(api: SocketAddr, pod: &str, words: &[&str]) -> (String, String) {
    let mut query = url::form_urlencoded::Serializer::new("stdout=true&stderr=true".to_owned());
    for word in words {
        query.append_pair("command", word);
    }
    let request = Request::get(format!("/api/v1/namespaces/test/pods/{pod}/exec?{}", query.finish()))
        .header("host", api.to_string())
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "v5.channel.k8s.io")
        .body(Empty::<&[u8]>::new())
        .unwrap();
    let stream = TcpStream::connect(api).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = TokioIo::new(hyper::upgrade::on(answer).await.unwrap());
    let (mut output, mut code) = (String::new(), String::new());
    // Frames of a server: no mask, and never in parts. The goodbye ends it.
    while stream.read_u8().await.unwrap() == 0x82 {
        let length = match stream.read_u8().await.unwrap() {
            126 => u64::from(stream.read_u16().await.unwrap()),
            127 => stream.read_u64().await.unwrap(),
            short => u64::from(short),
        };
        let mut payload = vec![0; length as usize];
        stream.read_exact(&mut payload).await.unwrap();
        let (channel, content) = payload.split_first().unwrap();
        match channel {
            1 | 2 => output.push_str(std::str::from_utf8(content).unwrap()),
            _ => {
                let status: Value = serde_json::from_slice(content).unwrap();
                status["details"]["causes"][0]["message"].as_str().unwrap_or("0").clone_into(&mut code);
            }
        }
    }
    (output, code)
}

async fn running(pods: &Api<Pod>, app: &str) -> (String, String) {
    for _ in 0..600 {
        let found = pods.list(&ListParams::default().labels(&format!("app={app}"))).await.unwrap().items;
        for pod in found {
            let status = pod.status.unwrap_or_default();
            if status.phase.as_deref() == Some("Running") {
                return (pod.metadata.name.unwrap(), status.pod_ip.unwrap());
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{app} does not run");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_load_testers_commands_are_there_to_be_tried() {
    let mut ground = Ground::start(20, Path::new(env!("CARGO_BIN_EXE_seaway"))).await.unwrap();
    let wanted = ["00-namespaces.yaml", "loadtester.yaml", "podinfo.yaml"];
    ground.apply(MANIFESTS.into_iter().filter(|(name, _)| wanted.contains(name))).await.unwrap();
    let folder = tempfile::TempDir::new().unwrap();
    let api = ground.open(0, &folder.path().join("kubeconfig")).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(ground.cluster().client("test"), "test");
    let (tester, _) = running(&pods, "flagger-loadtester").await;
    let (_, podinfo) = running(&pods, "podinfo").await;

    assert_eq!(
        execute(api, &tester, &["curl", "-s", "http://localhost:8080/healthz"]).await,
        ("OK".into(), "0".into())
    );
    let url = format!("http://{podinfo}:9898/");
    let (report, code) = execute(api, &tester, &["hey", "-n", "10", "-c", "2", &url]).await;
    assert!(code == "0" && report.contains("[200]\t10 responses"), "{report}");
    let script = format!("curl -sd anon {url}token | grep -o token; exit 4");
    assert_eq!(execute(api, &tester, &["sh", "-c", &script]).await, ("token\n".into(), "4".into()));
    let (said, code) = execute(api, &tester, &["no-such-command"]).await;
    assert!(code == "127" && said.contains("executable file not found in $PATH"), "{said}");

    let hook = r#"{"name":"podinfo","namespace":"test"}"#;
    let open = ["curl", "-s", "-d", hook, "http://flagger-loadtester/gate/open"];
    assert_eq!(execute(api, &tester, &open).await.1, "0");
    let log = pods.logs(&tester, &LogParams::default()).await.unwrap();
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<_> = lines.iter().map(|line| line["msg"].as_str().unwrap()).collect();
    assert_eq!(told, ["starting load tester", "gate opened"]);
    assert_eq!(lines[1]["gate"], "podinfo.test");
}
