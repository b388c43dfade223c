//! People who keep asking for `www.example.com`, a few times per simulated second, and remember what they got.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use seaway_drydock::Cluster;
use seaway_drydock::proxy::empty;
use tokio::task::JoinHandle;

/// Fewer requests than this prove nothing.
const ENOUGH: u64 = 50;

/// Stands for a status code where the head came and the body broke off.
const BROKEN_BODY: u16 = 0;

/// Steady traffic through the gateway; dropping it ends the traffic.
pub struct Users {
    seen: Arc<Mutex<BTreeMap<(String, u16), u64>>>,
    task: JoinHandle<()>,
}

impl Users {
    /// `per_second` requests each simulated second.
    pub fn start(cluster: &Cluster, per_second: u32) -> Self {
        let seen: Arc<Mutex<BTreeMap<(String, u16), u64>>> = Arc::default();
        let (book, mesh, clock) = (seen.clone(), cluster.mesh().clone(), cluster.clock());
        let task = tokio::spawn(async move {
            loop {
                clock.sleep(Duration::from_secs(1) / per_second).await;
                let request = http::Request::get("http://gateway-istio.istio-ingress/")
                    .header("host", "www.example.com")
                    .body(empty())
                    .unwrap();
                let response = mesh.send(request).await;
                let version = response.headers().get("x-podinfo-version");
                let version = version.and_then(|value| value.to_str().ok()).unwrap_or("-").to_owned();
                let code = response.status().as_u16();
                let code = if response.into_body().collect().await.is_ok() { code } else { BROKEN_BODY };
                *book.lock().unwrap().entry((version, code)).or_default() += 1;
            }
        });
        Self { seen, task }
    }

    /// Answers by version and status code; 0 is an answer whose body broke off.
    pub fn seen(&self) -> BTreeMap<(String, u16), u64> {
        self.seen.lock().unwrap().clone()
    }

    /// Forgets what was seen so far.
    pub fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }

    /// Failed requests that no pod of `faulty` answered: failed because of the rollout. Panics when there were too few
    /// requests to say so.
    pub fn failures_of_ours(&self, faulty: &str) -> u64 {
        let seen = self.seen();
        assert!(seen.values().sum::<u64>() >= ENOUGH, "there were hardly any users: {seen:?}");
        let ours = |(version, code): &(String, u16)| !(200..400).contains(code) && version != faulty;
        seen.into_iter().filter(|(key, _)| ours(key)).map(|(_, count)| count).sum()
    }
}

impl Drop for Users {
    fn drop(&mut self) {
        self.task.abort();
    }
}
