//! The tables behind the names, without any I/O: objects in, endpoints out.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod as KubePod, Service as KubeService};
use k8s_openapi::api::discovery::v1::EndpointSlice as KubeSlice;
use kube::ResourceExt;

use super::LookupError;
use super::follow::Change;

/// A Service by namespace and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServiceName {
    /// The namespace.
    pub namespace: String,
    /// The name in it.
    pub name: String,
}

impl ServiceName {
    /// The Service `name` in `namespace`.
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.name, self.namespace)
    }
}

/// The part of a pod that telemetry and scraping need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pod {
    /// Namespace.
    pub namespace: String,
    /// Name.
    pub name: String,
    /// Uid; tells apart two pods that had the same address one after the other.
    pub uid: String,
    /// The pod's address.
    pub address: IpAddr,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    pub annotations: BTreeMap<String, String>,
    /// The workload that owns the pod: for a ReplicaSet its Deployment.
    pub workload: String,
    /// Whether the pod's phase is Running and nobody asked it to go.
    pub running: bool,
}

/// One address that serves, and whose it is.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The virtual address.
    pub address: SocketAddr,
    /// The pod behind it; `None` for the gateway and other servers that are no pods.
    pub pod: Option<Arc<Pod>>,
}

/// What the index keeps of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServiceEntry {
    pub cluster_ips: Vec<IpAddr>,
    pub ports: Vec<Port>,
    pub headless: bool,
    /// Hostnames and addresses of the load balancer, as written into the status.
    pub ingress: Vec<String>,
    /// `prometheus.io/…` annotations.
    pub scrape: BTreeMap<String, String>,
}

/// A named port of a Service or of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Port {
    pub name: String,
    pub port: u16,
}

#[derive(Clone, Debug)]
struct Slice {
    service: ServiceName,
    ports: Vec<Port>,
    ready: Vec<IpAddr>,
}

/// An answer before the round robin has chosen.
pub(super) struct Route {
    pub service: Option<ServiceName>,
    pub endpoints: Vec<Endpoint>,
}

type Key = (String, String);

/// Services, slices and pods as the watches last told.
#[derive(Default)]
pub(super) struct Index {
    services: BTreeMap<ServiceName, ServiceEntry>,
    cluster_ips: BTreeMap<IpAddr, ServiceName>,
    slices: BTreeMap<Key, Slice>,
    slices_of: BTreeMap<ServiceName, Vec<Key>>,
    pods: BTreeMap<Key, Arc<Pod>>,
    pod_ips: BTreeMap<IpAddr, Key>,
}

const CLUSTER_DOMAIN: &str = ".cluster.local";
const SERVICE_OF_SLICE: &str = "kubernetes.io/service-name";

impl Index {
    pub fn service_changed(&mut self, change: Change<KubeService>) {
        match change {
            Change::Replace(all) => {
                self.services.clear();
                self.cluster_ips.clear();
                for service in &all {
                    self.insert_service(service);
                }
            }
            Change::Apply(service) => {
                self.remove_service(&service_name(&service));
                self.insert_service(&service);
            }
            Change::Delete(service) => self.remove_service(&service_name(&service)),
        }
    }

    fn insert_service(&mut self, service: &KubeService) {
        let name = service_name(service);
        let entry = service_entry(service);
        for address in &entry.cluster_ips {
            self.cluster_ips.insert(*address, name.clone());
        }
        self.services.insert(name, entry);
    }

    fn remove_service(&mut self, name: &ServiceName) {
        for address in self.services.remove(name).map(|entry| entry.cluster_ips).unwrap_or_default() {
            self.cluster_ips.remove(&address);
        }
    }

    pub fn slice_changed(&mut self, change: Change<KubeSlice>) {
        match change {
            Change::Replace(all) => {
                self.slices = all.iter().filter_map(|slice| Some((key(slice), read_slice(slice)?))).collect();
            }
            Change::Apply(slice) => {
                match read_slice(&slice) {
                    Some(read) => self.slices.insert(key(&slice), read),
                    None => self.slices.remove(&key(&slice)),
                };
            }
            Change::Delete(slice) => {
                self.slices.remove(&key(&slice));
            }
        }
        self.slices_of.clear();
        for (key, slice) in &self.slices {
            self.slices_of.entry(slice.service.clone()).or_default().push(key.clone());
        }
    }

    pub fn pod_changed(&mut self, change: Change<KubePod>) {
        match change {
            Change::Replace(all) => {
                self.pods.clear();
                self.pod_ips.clear();
                for pod in &all {
                    self.insert_pod(pod);
                }
            }
            Change::Apply(pod) => {
                self.remove_pod(&key(&pod));
                self.insert_pod(&pod);
            }
            Change::Delete(pod) => self.remove_pod(&key(&pod)),
        }
    }

    fn insert_pod(&mut self, pod: &KubePod) {
        let Some(read) = read_pod(pod) else { return };
        let key = key(pod);
        // A finished pod keeps its address in its status after another pod may have got it.
        let taken = self.pod_ips.get(&read.address).and_then(|owner| self.pods.get(owner));
        if read.running || taken.is_none_or(|owner| !owner.running) {
            self.pod_ips.insert(read.address, key.clone());
        }
        self.pods.insert(key, Arc::new(read));
    }

    fn remove_pod(&mut self, key: &Key) {
        if let Some(pod) = self.pods.remove(key)
            && self.pod_ips.get(&pod.address) == Some(key)
        {
            self.pod_ips.remove(&pod.address);
        }
    }

    pub fn service(&self, name: &ServiceName) -> Option<&ServiceEntry> {
        self.services.get(name)
    }

    pub fn services(&self) -> Vec<(ServiceName, ServiceEntry)> {
        self.services.iter().map(|(name, entry)| (name.clone(), entry.clone())).collect()
    }

    pub fn scraped_services(&self) -> Vec<(ServiceName, ServiceEntry, Vec<IpAddr>)> {
        let wanted =
            self.services.iter().filter(|(_, entry)| entry.scrape.get("scrape").is_some_and(|on| on == "true"));
        wanted.map(|(name, entry)| (name.clone(), entry.clone(), self.ready(name).collect())).collect()
    }

    pub fn pod_at(&self, address: IpAddr) -> Option<Arc<Pod>> {
        self.pods.get(self.pod_ips.get(&address)?).cloned()
    }

    pub fn pods(&self) -> Vec<Arc<Pod>> {
        self.pods.values().cloned().collect()
    }

    /// Who serves `host:port`; a host without dots is a Service of `namespace`.
    pub fn route(&self, host: &str, port: u16, namespace: &str) -> Result<Route, LookupError> {
        if let Ok(address) = host.trim_matches(['[', ']']).parse::<IpAddr>() {
            return match self.cluster_ips.get(&address) {
                Some(service) => self.service_route(service, port),
                None => Ok(Route { service: None, endpoints: vec![self.endpoint(SocketAddr::new(address, port))] }),
            };
        }
        match self.named(host, namespace) {
            Some(service) => self.service_route(&service, port),
            None => Err(LookupError::NoSuchHost(host.to_owned())),
        }
    }

    /// The Service of a name; one without dots is in `namespace`.
    fn named(&self, host: &str, namespace: &str) -> Option<ServiceName> {
        let lower = host.trim_end_matches('.').to_ascii_lowercase();
        let short = lower.strip_suffix(CLUSTER_DOMAIN).unwrap_or(&lower);
        let mut labels = short.split('.');
        let (name, in_namespace, kind) = (labels.next(), labels.next(), labels.next());
        if labels.next().is_some() || kind.is_some_and(|kind| kind != "svc") {
            return None;
        }
        let service = ServiceName::new(in_namespace.unwrap_or(namespace), name.unwrap_or_default());
        self.services.contains_key(&service).then_some(service)
    }

    /// What DNS answers for the name of a Service.
    pub fn addresses(&self, host: &str, namespace: &str) -> Option<Vec<IpAddr>> {
        let service = self.named(host, namespace)?;
        let entry = self.services.get(&service)?;
        Some(if entry.headless { self.ready(&service).collect() } else { entry.cluster_ips.clone() })
    }

    /// The ready addresses behind a Service.
    fn ready(&self, service: &ServiceName) -> impl Iterator<Item = IpAddr> {
        let keys = self.slices_of.get(service).into_iter().flatten();
        keys.filter_map(|key| self.slices.get(key)).flat_map(|slice| slice.ready.iter().copied())
    }

    /// Who serves a port of a Service.
    pub fn service_route(&self, name: &ServiceName, port: u16) -> Result<Route, LookupError> {
        let entry = self.services.get(name).ok_or_else(|| LookupError::NoSuchHost(name.to_string()))?;
        let port_name = match entry.ports.iter().find(|offered| offered.port == port) {
            Some(offered) => Some(offered.name.as_str()),
            // A headless Service is only a DNS record: any port of the pods can be dialled.
            None if entry.headless => None,
            None => return Err(LookupError::NoSuchPort(name.clone(), port)),
        };
        let mut addresses = Vec::new();
        let slices = self.slices_of.get(name).into_iter().flatten().filter_map(|key| self.slices.get(key));
        for slice in slices {
            let target = match port_name {
                Some(wanted) => slice.ports.iter().find(|offered| offered.name == wanted).map(|offered| offered.port),
                None => Some(port),
            };
            if let Some(target) = target {
                addresses.extend(slice.ready.iter().map(|address| SocketAddr::new(*address, target)));
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        if addresses.is_empty() {
            return Err(LookupError::NoEndpoints(name.clone()));
        }
        let endpoints = addresses.into_iter().map(|address| self.endpoint(address)).collect();
        Ok(Route { service: Some(name.clone()), endpoints })
    }

    fn endpoint(&self, address: SocketAddr) -> Endpoint {
        Endpoint { address, pod: self.pod_at(address.ip()) }
    }
}

fn key(object: &impl ResourceExt) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn service_name(service: &KubeService) -> ServiceName {
    let (namespace, name) = key(service);
    ServiceName { namespace, name }
}

fn service_entry(service: &KubeService) -> ServiceEntry {
    let spec = service.spec.clone().unwrap_or_default();
    let mut addresses = spec.cluster_ips.unwrap_or_default();
    addresses.extend(spec.cluster_ip.clone());
    let headless = spec.cluster_ip.as_deref() == Some("None");
    let ports =
        spec.ports.unwrap_or_default().into_iter().filter_map(|port| {
            Some(Port { name: port.name.unwrap_or_default(), port: u16::try_from(port.port).ok()? })
        });
    let ingress = service
        .status
        .as_ref()
        .and_then(|status| status.load_balancer.as_ref()?.ingress.as_ref())
        .into_iter()
        .flatten()
        .flat_map(|ingress| ingress.hostname.iter().chain(&ingress.ip).cloned())
        .collect();
    ServiceEntry {
        cluster_ips: addresses.iter().filter_map(|address| address.parse().ok()).collect(),
        ports: ports.collect(),
        headless,
        ingress,
        scrape: service
            .annotations()
            .iter()
            .filter_map(|(name, value)| Some((name.strip_prefix("prometheus.io/")?.to_owned(), value.clone())))
            .collect(),
    }
}

fn read_slice(slice: &KubeSlice) -> Option<Slice> {
    let service = ServiceName::new(slice.namespace()?, slice.labels().get(SERVICE_OF_SLICE)?.as_str());
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        Some(Port { name: port.name.clone().unwrap_or_default(), port: u16::try_from(port.port?).ok()? })
    });
    let ready = slice.endpoints.iter().flatten().filter(|endpoint| {
        // An unknown condition is to be taken as ready, says the API.
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready).unwrap_or(true)
    });
    let ready = ready.filter_map(|endpoint| endpoint.addresses.first()?.parse().ok()).collect();
    Some(Slice { service, ports: ports.collect(), ready })
}

fn read_pod(pod: &KubePod) -> Option<Pod> {
    let status = pod.status.as_ref()?;
    Some(Pod {
        namespace: pod.namespace().unwrap_or_default(),
        name: pod.name_any(),
        uid: pod.uid().unwrap_or_default(),
        address: status.pod_ip.as_ref()?.parse().ok()?,
        labels: pod.labels().clone(),
        annotations: pod.annotations().clone(),
        workload: workload(pod),
        running: status.phase.as_deref() == Some("Running") && pod.metadata.deletion_timestamp.is_none(),
    })
}

/// The name people know: a ReplicaSet's name is its Deployment's plus the template hash.
fn workload(pod: &KubePod) -> String {
    let owners = pod.owner_references();
    let Some(owner) = owners.iter().find(|owner| owner.controller == Some(true)).or(owners.first()) else {
        return pod.name_any();
    };
    let hash = pod.labels().get("pod-template-hash");
    match hash.and_then(|hash| owner.name.strip_suffix(hash.as_str())?.strip_suffix('-')) {
        Some(deployment) if owner.kind == "ReplicaSet" => deployment.to_owned(),
        _ => owner.name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn index() -> Index {
        let mut index = Index::default();
        let service = json!({
            "metadata": {"name": "podinfo", "namespace": "test"},
            "spec": {"clusterIP": "10.96.0.7", "clusterIPs": ["10.96.0.7"], "ports": [{"name": "http", "port": 80}]},
        });
        index.service_changed(Change::Replace(vec![serde_json::from_value(service).unwrap()]));
        let slice = json!({
            "metadata": {"name": "podinfo-x", "namespace": "test", "labels": {"kubernetes.io/service-name": "podinfo"}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 9898}],
            "endpoints": [
                {"addresses": ["10.244.0.3"], "conditions": {"ready": true}},
                {"addresses": ["10.244.0.2"], "conditions": {}},
                {"addresses": ["10.244.0.4"], "conditions": {"ready": false}},
            ],
        });
        index.slice_changed(Change::Replace(vec![serde_json::from_value(slice).unwrap()]));
        let pod = json!({
            "metadata": {
                "name": "podinfo-primary-6b5d-abcde", "namespace": "test", "uid": "1",
                "labels": {"pod-template-hash": "6b5d"},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "podinfo-primary-6b5d",
                                     "uid": "2", "controller": true}],
            },
            "status": {"phase": "Running", "podIP": "10.244.0.2"},
        });
        index.pod_changed(Change::Replace(vec![serde_json::from_value(pod).unwrap()]));
        index
    }

    fn addresses(index: &Index, host: &str, port: u16) -> Vec<String> {
        let route = index.route(host, port, "test").map(|route| route.endpoints).unwrap_or_default();
        route.iter().map(|endpoint| endpoint.address.to_string()).collect()
    }

    #[test]
    fn every_form_of_a_name_leads_to_the_ready_endpoints() {
        let index = index();
        for host in ["podinfo", "podinfo.test", "podinfo.test.svc", "PODINFO.test.svc.cluster.local", "10.96.0.7"] {
            assert_eq!(addresses(&index, host, 80), ["10.244.0.2:9898", "10.244.0.3:9898"], "{host}");
        }
        assert_eq!(addresses(&index, "10.244.0.2", 9797), ["10.244.0.2:9797"]);
    }

    #[test]
    fn wrong_names_and_ports_say_what_is_wrong() {
        let index = index();
        let error = |host: &str, port| index.route(host, port, "other").map(|_| ()).unwrap_err();
        assert!(matches!(error("podinfo", 80), LookupError::NoSuchHost(_)), "another namespace");
        assert!(matches!(error("podinfo.test.pod", 80), LookupError::NoSuchHost(_)));
        assert!(matches!(error("www.example.com", 80), LookupError::NoSuchHost(_)));
        assert!(matches!(error("podinfo.test", 81), LookupError::NoSuchPort(_, 81)));
    }

    #[test]
    fn an_address_belongs_to_its_pod_and_workload() {
        let index = index();
        let pod = index.pod_at("10.244.0.2".parse().unwrap()).unwrap();
        assert_eq!((pod.name.as_str(), pod.workload.as_str()), ("podinfo-primary-6b5d-abcde", "podinfo-primary"));
        assert!(index.pod_at("10.244.0.3".parse().unwrap()).is_none());
    }

    #[test]
    fn a_finished_pod_does_not_keep_an_address_that_was_given_away() {
        let mut index = index();
        let finished = json!({
            "metadata": {"name": "old", "namespace": "test", "uid": "0"},
            "status": {"phase": "Failed", "podIP": "10.244.0.2"},
        });
        index.pod_changed(Change::Apply(serde_json::from_value(finished.clone()).unwrap()));
        assert_eq!(index.pod_at("10.244.0.2".parse().unwrap()).unwrap().uid, "1");
        index.pod_changed(Change::Delete(serde_json::from_value(finished).unwrap()));
        assert_eq!(index.pod_at("10.244.0.2".parse().unwrap()).unwrap().uid, "1");
    }
}
