//! Prometheus: scrapes pods and proxies, keeps the samples in memory, answers PromQL over HTTP.
//!
//! It computes what Prometheus 3 computes, down to the extrapolation of `rate` and the marking of ended series; a part
//! of the language it does not know is an error in Prometheus' shape, never a wrong number. There are no rules, no
//! alerts, no disk and no remote storage.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use kube::Client;
use tokio_util::task::AbortOnDropHandle;

use crate::clock::Clock;
use crate::fault::Switch;
use crate::names::{Names, Publication, ServiceName, publish};

mod aggregate;
mod binary;
mod eval;
mod exposition;
mod histogram;
mod http;
mod labels;
mod range;
mod scrape;
mod storage;
mod value;

#[cfg(test)]
mod golden;
#[cfg(test)]
mod peer;

pub use scrape::Target;

use http::Server;
use scrape::Scraper;
use storage::Storage;

/// Where Prometheus listens, in a corner of the pod network that no pod uses.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 244, 255, 1));

/// The port everyone knows.
const PORT: u16 = 9090;

/// How Prometheus is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Simulated time between two scrapes.
    pub interval: Duration,
    /// Simulated time for which samples are kept.
    pub retention: Duration,
    /// Targets beside the pods and Services that ask to be scraped.
    pub targets: Vec<Target>,
    /// Makes it answer badly when a test wants that.
    pub switch: Option<Switch>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(5),
            retention: Duration::from_secs(1_800),
            targets: Vec::new(),
            switch: None,
        }
    }
}

/// A running Prometheus; dropping it stops it.
pub struct Prometheus {
    _scrapes: AbortOnDropHandle<()>,
    _server: AbortOnDropHandle<()>,
}

impl Prometheus {
    /// Starts to scrape and to answer at [`Prometheus::address`].
    pub async fn start(names: Names, clock: Clock, options: Options) -> io::Result<Self> {
        let storage = Arc::new(RwLock::new(Storage::new(millis(options.retention))));
        let server = Server { storage: Arc::clone(&storage), clock };
        let router = match &options.switch {
            Some(switch) => switch.guard(server.router()),
            None => server.router(),
        };
        let server = crate::proxy::serve_router(names.net(), Self::address(), router).await?;
        let scraper = Scraper::new(names, options.targets, storage);
        let scrapes = tokio::spawn(run(scraper, clock, options.interval));
        Ok(Self { _scrapes: AbortOnDropHandle::new(scrapes), _server: server })
    }

    /// Its virtual address.
    pub fn address() -> SocketAddr {
        SocketAddr::new(ADDRESS, PORT)
    }

    /// Makes it reachable as `prometheus.{namespace}:9090`.
    pub async fn publish(client: &Client, namespace: &str) -> kube::Result<()> {
        let publication = Publication {
            service: ServiceName::new(namespace, "prometheus"),
            load_balancer: None,
            address: ADDRESS,
            ports: vec![("http".to_owned(), PORT)],
            labels: vec![("app".to_owned(), "prometheus".to_owned())],
            annotations: Vec::new(),
            owner: None,
            manager: "drydock-prometheus",
        };
        publish(client, &publication).await
    }
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX / 4)
}

/// A slow target must not hold up the next scrape for long, nor be called down because the clock runs fast.
const LEAST_PATIENCE: Duration = Duration::from_millis(250);

async fn run(mut scraper: Scraper, clock: Clock, interval: Duration) {
    let patience = (interval / clock.speed()).max(LEAST_PATIENCE);
    let mut next = clock.now();
    loop {
        scraper.scrape(clock.now().as_millisecond(), patience).await;
        // A scrape that is missed is not made up for.
        let now = clock.now();
        while next <= now {
            next += interval;
        }
        clock.sleep_until(next).await;
    }
}
