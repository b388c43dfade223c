//! People who keep asking a real gateway for `www.example.com`, over connections that they keep, and remember what they got.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;

/// Answers by version and status code; 0 is no answer.
pub type Seen = BTreeMap<(String, u16), u64>;

/// Steady traffic through a gateway; dropping it ends the traffic.
pub struct Users {
    seen: Arc<Mutex<Seen>>,
    _people: JoinSet<()>,
}

impl Users {
    /// So many people, each of whom asks once in `every`.
    pub fn start(gateway: SocketAddr, people: u32, every: Duration) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let mut tasks = JoinSet::new();
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        for person in 0..people {
            let client: Client<_, Empty<bytes::Bytes>> = Client::builder(TokioExecutor::new()).build(connector.clone());
            let seen = seen.clone();
            tasks.spawn(async move {
                tokio::time::sleep(every * person / people).await;
                let mut tick = tokio::time::interval(every);
                loop {
                    tick.tick().await;
                    let answer = ask(&client, gateway).await;
                    *seen.lock().unwrap().entry(answer).or_default() += 1;
                }
            });
        }
        Self { seen, _people: tasks }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Failed requests that no pod of `faulty` answered: failed because of the rollout.
    pub fn failures_of_ours(&self, faulty: &str) -> u64 {
        let ours = |(version, code): &(String, u16)| !(200..400).contains(code) && version != faulty;
        self.seen().into_iter().filter(|(key, _)| ours(key)).map(|(_, count)| count).sum()
    }
}

async fn ask(client: &Client<HttpConnector, Empty<bytes::Bytes>>, gateway: SocketAddr) -> (String, u16) {
    let request = http::Request::get(format!("http://{gateway}/")).header("host", "www.example.com");
    let answer = client.request(request.body(Empty::new()).unwrap()).await;
    let Ok(answer) = answer else { return ("-".to_owned(), 0) };
    let version = answer.headers().get("x-podinfo-version").and_then(|value| value.to_str().ok());
    let (version, code) = (version.unwrap_or("-").to_owned(), answer.status().as_u16());
    // An answer whose body breaks off is none.
    if answer.into_body().collect().await.is_ok() { (version, code) } else { (version, 0) }
}
