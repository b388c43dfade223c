//! Fetches the metrics of every live target at one moment.
//!
//! Targets come from the names' pod cache and from annotations; scraping goes over the cluster's network and costs the
//! API server nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tower::BoxError;

use super::exposition;
use super::labels::{Labels, NAME};
use super::storage::{Sample, Storage, stale};
use crate::names::Names;
use crate::net::Net;

/// A page longer than this is refused.
const MAX_PAGE: usize = 16 << 20;

/// Something that shows metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The job label.
    pub job: String,
    /// Where it listens.
    pub address: SocketAddr,
    /// Where its page is.
    pub path: String,
    /// Further labels of all its series.
    pub labels: BTreeMap<String, String>,
}

impl Target {
    /// A target without further labels.
    pub fn new(job: &str, address: SocketAddr, path: &str) -> Self {
        Self { job: job.to_owned(), address, path: path.to_owned(), labels: BTreeMap::new() }
    }

    /// What identifies it from scrape to scrape.
    fn labels(&self) -> BTreeMap<String, String> {
        let mut labels = self.labels.clone();
        labels.insert("job".to_owned(), self.job.clone());
        labels.insert("instance".to_owned(), self.address.to_string());
        labels
    }
}

/// Scrapes, and remembers what each target showed last.
pub(super) struct Scraper {
    net: Net,
    names: Names,
    fixed: Vec<Target>,
    storage: Arc<RwLock<Storage>>,
    seen: BTreeMap<BTreeMap<String, String>, BTreeSet<Labels>>,
}

impl Scraper {
    pub fn new(names: Names, fixed: Vec<Target>, storage: Arc<RwLock<Storage>>) -> Self {
        Self { net: names.net().clone(), names, fixed, storage, seen: BTreeMap::new() }
    }

    /// Scrapes every target once; all samples get the time `now`. A target that takes longer than `patience` is down.
    pub async fn scrape(&mut self, now: i64, patience: Duration) {
        let targets = self.targets();
        let pages = targets.iter().map(|target| async {
            let fetched = tokio::time::timeout(patience, fetch(&self.net, target)).await;
            fetched.map_err(|_| BoxError::from("timed out")).flatten()
        });
        let pages = futures::future::join_all(pages).await;
        let mut storage = self.storage.write().unwrap_or_else(PoisonError::into_inner);
        let mut before = std::mem::take(&mut self.seen);
        for (target, page) in targets.iter().zip(pages) {
            let identity = target.labels();
            let samples = page.and_then(|page| Ok(exposition::parse(&page)?));
            let up = samples.is_ok();
            let samples = samples.unwrap_or_else(|error| {
                tracing::debug!(job = target.job, address = %target.address, %error, "scrape failed");
                Vec::new()
            });
            let mut shown = BTreeSet::new();
            let own = |name: &str| -> Labels {
                identity.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain([(NAME, name)]).collect()
            };
            let health = [("up", f64::from(u8::from(up))), ("scrape_samples_scraped", samples.len() as f64)];
            let health = health.map(|(name, value)| (own(name), value));
            let scraped = samples.into_iter().map(|(labels, value)| (merged(&labels, &identity), value));
            for (labels, value) in scraped.chain(health) {
                storage.append(&labels, Sample { time: now, value });
                shown.insert(labels);
            }
            for gone in before.remove(&identity).unwrap_or_default().difference(&shown) {
                storage.append(gone, Sample { time: now, value: stale() });
            }
            self.seen.insert(identity, shown);
        }
        for gone in before.into_values().flatten() {
            storage.append(&gone, Sample { time: now, value: stale() });
        }
        storage.expire(now);
    }

    fn targets(&self) -> Vec<Target> {
        let mut targets = self.fixed.clone();
        for pod in self.names.pods().iter().filter(|pod| pod.running) {
            let annotation = |name: &str| pod.annotations.get(&format!("prometheus.io/{name}")).map(String::as_str);
            let port = annotation("port").and_then(|port| port.parse().ok());
            let (Some("true"), Some(port)) = (annotation("scrape"), port) else { continue };
            let mut labels: BTreeMap<String, String> =
                pod.labels.iter().map(|(name, value)| (sanitised(name), value.clone())).collect();
            for (name, value) in [
                ("kubernetes_namespace", &pod.namespace),
                ("kubernetes_pod_name", &pod.name),
                ("namespace", &pod.namespace),
                ("pod", &pod.name),
            ] {
                labels.insert(name.to_owned(), value.clone());
            }
            let path = annotation("path").unwrap_or("/metrics").to_owned();
            let address = SocketAddr::new(pod.address, port);
            targets.push(Target { job: "kubernetes-pods".to_owned(), address, path, labels });
        }
        for (service, entry, addresses) in self.names.scraped_services() {
            let Some(port) = entry.scrape.get("port").and_then(|port| port.parse().ok()) else { continue };
            let path = entry.scrape.get("path").map_or("/metrics", String::as_str);
            for address in addresses {
                let mut target = Target::new("kubernetes-service-endpoints", SocketAddr::new(address, port), path);
                for (name, value) in [
                    ("kubernetes_namespace", &service.namespace),
                    ("kubernetes_name", &service.name),
                    ("namespace", &service.namespace),
                    ("service", &service.name),
                ] {
                    target.labels.insert(name.to_owned(), value.clone());
                }
                targets.push(target);
            }
        }
        targets
    }
}

/// A label of the target wins; what the page said under that name is kept as `exported_…`.
fn merged(scraped: &Labels, target: &BTreeMap<String, String>) -> Labels {
    let exported = scraped.iter().map(|(name, value)| {
        let name = if target.contains_key(name) { format!("exported_{name}") } else { name.to_owned() };
        (name, value.to_owned())
    });
    exported.chain(target.iter().map(|(name, value)| (name.clone(), value.clone()))).collect()
}

/// A Kubernetes label name as a Prometheus one.
fn sanitised(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

async fn fetch(net: &Net, target: &Target) -> Result<String, BoxError> {
    let stream = net.connect(target.address).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(&target.path)
        .header(http::header::HOST, target.address.to_string())
        .header(http::header::ACCEPT, "text/plain;version=0.0.4")
        .header(http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    tokio::spawn(connection);
    let response = sender.send_request(request).await?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status()).into());
    }
    let body = Limited::new(response.into_body(), MAX_PAGE).collect().await?.to_bytes();
    Ok(String::from_utf8(body.to_vec())?)
}
