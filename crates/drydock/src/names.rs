//! Cluster DNS and service addresses: which endpoint a name, a ClusterIP or a pod IP stands for right now.
//!
//! The tables are fed by watches on Services, EndpointSlices and Pods, and are the only place in drydock that turns a
//! name into an address. Only ready endpoints are answered; a Service without any is a refused connection, as it is
//! behind kube-proxy. The choice among endpoints is round robin, so that a run can be repeated.
//!
//! It deliberately knows nothing about the world outside the cluster: a name that is no Service does not resolve.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::core::v1::{Pod as KubePod, Service as KubeService};
use k8s_openapi::api::discovery::v1::EndpointSlice as KubeSlice;
use kube::{Api, Client};
use tokio::task::AbortHandle;

use crate::bell::{Bell, Listener};
use crate::net::{Net, Stream};

pub(crate) mod dns;
pub(crate) mod follow;
mod index;
mod publish;

pub use index::{Endpoint, Pod, ServiceName};
pub use publish::{Publication, publish};

use follow::{Change, follow};
pub(crate) use index::ServiceEntry;
use index::{Index, Route};

/// Why a name leads nowhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No Service has this name or address.
    #[error("no such host: {0}")]
    NoSuchHost(String),
    /// The Service exists and does not offer this port.
    #[error("service {0} has no port {1}")]
    NoSuchPort(ServiceName, u16),
    /// The Service exists and nobody behind it is ready.
    #[error("service {0} has no ready endpoint")]
    NoEndpoints(ServiceName),
}

impl From<LookupError> for io::Error {
    fn from(error: LookupError) -> Self {
        let kind = match error {
            LookupError::NoSuchHost(_) => io::ErrorKind::NotFound,
            LookupError::NoSuchPort(..) | LookupError::NoEndpoints(_) => io::ErrorKind::ConnectionRefused,
        };
        io::Error::new(kind, error)
    }
}

/// Where a request to a name may go: at least one endpoint, the one to try first in front.
#[derive(Clone, Debug)]
pub struct Destination {
    /// The Service that was named; `None` for a pod address.
    pub service: Option<ServiceName>,
    /// Ready endpoints, never empty, rotated by the round robin.
    pub endpoints: Vec<Endpoint>,
}

/// The cluster's name service; clones share one set of watches, which end with the last clone.
#[derive(Clone)]
pub struct Names {
    shared: Arc<Shared>,
    namespace: Arc<str>,
}

struct Shared {
    net: Net,
    index: Mutex<Index>,
    cursors: Mutex<BTreeMap<(ServiceName, u16), usize>>,
    services_changed: Bell,
    /// How many watches have listed.
    listed: AtomicU8,
    synced: Bell,
    tasks: Mutex<Vec<AbortHandle>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        for task in self.tasks.get_mut().unwrap_or_else(PoisonError::into_inner) {
            task.abort();
        }
    }
}

/// How many watches must have listed before names are complete.
const WATCHES: u8 = 3;

impl Names {
    /// Starts the watches. Short names are looked up in the namespace `default` until [`Names::in_namespace`].
    pub fn start(client: &Client, net: Net) -> Self {
        let shared = Arc::new(Shared {
            net,
            index: Mutex::default(),
            cursors: Mutex::default(),
            services_changed: Bell::default(),
            listed: AtomicU8::new(0),
            synced: Bell::default(),
            tasks: Mutex::default(),
        });
        let services = shared.feed(Api::<KubeService>::all(client.clone()), |shared, change| {
            shared.index().service_changed(change);
            shared.services_changed.ring();
        });
        let slices = Api::<KubeSlice>::all(client.clone());
        let slices = shared.feed(slices, |shared, change| shared.index().slice_changed(change));
        let pods = Api::<KubePod>::all(client.clone());
        let pods = shared.feed(pods, |shared, change| shared.index().pod_changed(change));
        *shared.tasks.lock().unwrap_or_else(PoisonError::into_inner) = vec![services, slices, pods];
        Self { shared, namespace: Arc::from("default") }
    }

    /// The same names, with short ones looked up in `namespace`.
    pub fn in_namespace(&self, namespace: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), namespace: Arc::from(namespace) }
    }

    /// Returns once every watch has delivered its first list.
    pub async fn synced(&self) {
        self.shared.synced.until(|| self.shared.listed.load(Ordering::Relaxed) >= WATCHES).await;
    }

    /// A signal that fires whenever a Service changed.
    pub(crate) fn service_changes(&self) -> Listener {
        self.shared.services_changed.listen()
    }

    /// Where a request to `host` (a name, a ClusterIP or a pod address) and `port` may go.
    pub fn lookup(&self, host: &str, port: u16) -> Result<Destination, LookupError> {
        let route = self.shared.index().route(host, port, &self.namespace)?;
        Ok(self.shared.choose(route, port))
    }

    /// Where a request to a Service may go.
    pub fn lookup_service(&self, service: &ServiceName, port: u16) -> Result<Destination, LookupError> {
        let route = self.shared.index().service_route(service, port)?;
        Ok(self.shared.choose(route, port))
    }

    /// The addresses behind a name, the next one of the round robin in front.
    pub fn resolve(&self, host: &str, port: u16) -> Result<Vec<SocketAddr>, LookupError> {
        Ok(self.lookup(host, port)?.endpoints.into_iter().map(|endpoint| endpoint.address).collect())
    }

    /// Opens a connection to a ready endpoint behind a name; a second endpoint is tried when the first refuses.
    pub async fn dial(&self, host: &str, port: u16) -> io::Result<Stream> {
        let addresses = self.resolve(host, port)?;
        let mut last = None;
        for address in addresses.into_iter().take(2) {
            match self.shared.net.connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| io::ErrorKind::ConnectionRefused.into()))
    }

    /// The pod that owns an address now.
    pub fn pod_at(&self, address: IpAddr) -> Option<Arc<Pod>> {
        self.shared.index().pod_at(address)
    }

    /// Every pod that has an address, in order of namespace and name.
    pub fn pods(&self) -> Vec<Arc<Pod>> {
        self.shared.index().pods()
    }

    /// Every Service there is.
    pub(crate) fn services(&self) -> Vec<(ServiceName, ServiceEntry)> {
        self.shared.index().services()
    }

    /// What DNS answers for a name: a Service's own address, or those of its pods where it has none.
    pub(crate) fn addresses(&self, host: &str) -> Option<Vec<IpAddr>> {
        self.shared.index().addresses(host, &self.namespace)
    }

    /// Every Service that asks to be scraped by annotation, with its ready addresses.
    pub(crate) fn scraped_services(&self) -> Vec<(ServiceName, ServiceEntry, Vec<IpAddr>)> {
        self.shared.index().scraped_services()
    }

    /// The address table underneath.
    pub fn net(&self) -> &Net {
        &self.shared.net
    }

    /// What is known about a Service; `None` if there is none.
    pub(crate) fn service(&self, service: &ServiceName) -> Option<ServiceEntry> {
        self.shared.index().service(service).cloned()
    }
}

impl Shared {
    fn index(&self) -> std::sync::MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one watch into the index for as long as anyone holds the names.
    fn feed<K>(self: &Arc<Self>, api: Api<K>, apply: fn(&Self, Change<K>)) -> AbortHandle
    where
        K: kube::Resource + Clone + serde::de::DeserializeOwned + std::fmt::Debug + Send + 'static,
    {
        let shared = Arc::downgrade(self);
        let mut listed = false;
        let task = follow(api, move |change| {
            let Some(shared) = shared.upgrade() else { return };
            let first = !listed && matches!(change, Change::Replace(_));
            apply(&shared, change);
            if first {
                listed = true;
                shared.listed.fetch_add(1, Ordering::Relaxed);
                shared.synced.ring();
            }
        });
        tokio::spawn(task).abort_handle()
    }

    /// Turns the endpoints so that each lookup starts one further.
    fn choose(&self, route: Route, port: u16) -> Destination {
        let Route { service, mut endpoints } = route;
        if let Some(service) = &service {
            let mut cursors = self.cursors.lock().unwrap_or_else(PoisonError::into_inner);
            let cursor = cursors.entry((service.clone(), port)).or_default();
            let turn = *cursor % endpoints.len().max(1);
            *cursor = turn + 1;
            endpoints.rotate_left(turn);
        }
        Destination { service, endpoints }
    }
}
