//! People who keep asking for podinfo and remember what they got.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Answers by version and status code; 0 is no answer.
pub type Seen = BTreeMap<(String, u16), u64>;

/// So many people ask, each after so long.
const PEOPLE: u32 = 50;
const PAUSE: Duration = Duration::from_millis(80);
/// So many are a throng.
const THRONG: u32 = 120;
/// And so many are a few, beside others.
const FEW: u32 = 10;

/// Fewer prove nothing: two seconds of it.
const CROWD: u64 = 1_000;

/// Steady traffic through a gateway; dropping it ends the traffic.
pub struct Users {
    seen: Arc<Mutex<Seen>>,
    enough: CancellationToken,
    people: JoinSet<()>,
}

impl Users {
    /// People who ask a gateway for `host`, more than 600 times a second together, over connections that they keep.
    pub fn of_gateway(gateway: SocketAddr, host: &str) -> Self {
        Self::start(PEOPLE, gateway, host, 64)
    }

    /// A throng, 1,500 times a second together, for what befalls few.
    pub fn throng_of_gateway(gateway: SocketAddr, host: &str) -> Self {
        Self::start(THRONG, gateway, host, 64)
    }

    /// A few, for one app among many.
    pub fn few_of_gateway(gateway: SocketAddr, host: &str) -> Self {
        Self::start(FEW, gateway, host, 64)
    }

    /// People who ask a Service as often, with a connection for each request: one that is kept would lead to the same pod
    /// for ever.
    pub fn of_service(service: SocketAddr) -> Self {
        Self::start(PEOPLE, service, "podinfo.test", 0)
    }

    fn start(count: u32, at: SocketAddr, host: &str, kept: usize) -> Self {
        let seen: Arc<Mutex<Seen>> = Arc::default();
        let (mut people, enough) = (JoinSet::new(), CancellationToken::new());
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        for person in 0..count {
            let mut builder = Client::builder(TokioExecutor::new());
            let client: Client<_, Empty<bytes::Bytes>> = builder.pool_max_idle_per_host(kept).build(connector.clone());
            let (seen, enough, host) = (seen.clone(), enough.clone(), host.to_owned());
            people.spawn(async move {
                tokio::time::sleep(PAUSE * person / count).await;
                let mut tick = tokio::time::interval(PAUSE);
                while enough.run_until_cancelled(tick.tick()).await.is_some() {
                    let answer = tokio::time::timeout(PATIENCE, ask(&client, at, &host)).await;
                    let answer = answer.unwrap_or_else(|_| ("-".to_owned(), 0));
                    *seen.lock().unwrap().entry(answer).or_default() += 1;
                }
            });
        }
        Self { seen, enough, people }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    /// Waits for the first good answer; what was seen until then does not count, nor what was asked before and answered after.
    pub async fn forget_until_served(&self) {
        while !self.seen().keys().any(|(_, code)| (200..400).contains(code)) {
            tokio::time::sleep(PAUSE / 8).await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        self.seen.lock().unwrap().clear();
    }

    /// Nobody asks any more, and what was asked is answered when this returns.
    pub async fn rest(&mut self) {
        self.enough.cancel();
        while self.people.join_next().await.is_some() {}
    }

    /// Failed requests, but for those that a pod of `faulty` answered with the error that it makes: failed because of the
    /// rollout. Panics where too few asked to tell.
    pub fn failures_of_ours(&self, faulty: &str) -> u64 {
        let all: u64 = self.seen().values().sum();
        assert!(all >= CROWD, "only {all} requests: {:?}", self.seen());
        let ours =
            |(version, code): &(String, u16)| !(200..400).contains(code) && (version != faulty || *code != FAULT);
        self.seen().into_iter().filter(|(key, _)| ours(key)).map(|(_, count)| count).sum()
    }
}

/// What a faulty version answers. Anything else of it, an answer that breaks off above all, is not its fault.
const FAULT: u16 = 500;

/// An answer that takes longer is none.
const PATIENCE: Duration = Duration::from_secs(10);

async fn ask(client: &Client<HttpConnector, Empty<bytes::Bytes>>, at: SocketAddr, host: &str) -> (String, u16) {
    let request = http::Request::get(format!("http://{at}/")).header("host", host);
    let answer = client.request(request.body(Empty::new()).unwrap()).await;
    let Ok(answer) = answer else { return ("-".to_owned(), 0) };
    let version = answer.headers().get("x-podinfo-version").and_then(|value| value.to_str().ok());
    let (version, code) = (version.unwrap_or("-").to_owned(), answer.status().as_u16());
    // An answer whose body breaks off is none.
    if answer.into_body().collect().await.is_ok() { (version, code) } else { (version, 0) }
}
