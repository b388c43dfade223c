//! The EndpointSlice controller: which pods stand behind a Service, and in what state.
//!
//! Pods that resolve the Service's ports to the same numbers share a slice. A Service without a selector belongs to
//! whoever writes its slices. Slices are not split at 100 endpoints, and there are no topology hints: one node.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ObjectReference, Pod, Service, ServicePort};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;

use super::objects::{Key, Objects, controlled_by};
use super::queue::{Queue, Reconcile};
use super::{hashed_name, is_finished, ready_since};

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";

/// Keeps the slices of every Service that has a selector.
pub(super) struct EndpointSliceController {
    pub(super) services: Objects<Service>,
    pub(super) slices: Objects<EndpointSlice>,
    pub(super) pods: Objects<Pod>,
}

/// A changed slice wakes its Service, so that one that was deleted or edited by hand is repaired.
pub(super) fn wake_by_slice(slices: &Objects<EndpointSlice>, queue: &Queue) {
    let queue = queue.clone();
    slices.on_change(move |before, after| {
        if let Some(slice) = after.or(before).filter(|slice| is_ours(slice))
            && let Some(service) = slice.labels().get(SERVICE_NAME)
        {
            queue.add(Key::new(slice.namespace().unwrap_or_default(), service));
        }
    });
}

/// A changed pod wakes the Services that select it, or did before.
pub(super) fn wake_by_pod(pods: &Objects<Pod>, services: &Objects<Service>, queue: &Queue) {
    let (services, queue) = (services.clone(), queue.clone());
    pods.on_change(move |before, after| {
        let Some(pod) = after.or(before) else { return };
        for service in services.in_namespace(&pod.namespace().unwrap_or_default()) {
            if before.into_iter().chain(after).any(|pod| selects(&service, pod)) {
                queue.add(Key::of(service.as_ref()));
            }
        }
    });
}

impl Reconcile for EndpointSliceController {
    const NAME: &'static str = "endpointslice";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let mut existing = self.slices.in_namespace(&key.namespace);
        existing.retain(|slice| is_ours(slice) && slice.labels().get(SERVICE_NAME) == Some(&key.name));
        let service = self
            .services
            .get(key)
            .filter(|service| has_selector(service) && service.metadata.deletion_timestamp.is_none());
        let wanted = service.map(|service| self.wanted(&service)).unwrap_or_default();
        for slice in &wanted {
            match existing.iter().position(|known| known.metadata.name == slice.metadata.name) {
                Some(position) => self.update(&existing.swap_remove(position), slice).await?,
                None => {
                    self.slices.create(&key.namespace, slice).await?;
                }
            }
        }
        for slice in existing {
            self.slices.delete(&slice, None).await?;
        }
        Ok(None)
    }
}

impl EndpointSliceController {
    async fn update(&self, known: &EndpointSlice, wanted: &EndpointSlice) -> kube::Result<()> {
        let mut after = known.clone();
        after.endpoints.clone_from(&wanted.endpoints);
        after.ports.clone_from(&wanted.ports);
        after.metadata.labels.clone_from(&wanted.metadata.labels);
        // An absent list and an empty one are the same to the API.
        let differs = after.endpoints.as_deref().unwrap_or_default() != known.endpoints.as_deref().unwrap_or_default()
            || after.ports.as_deref().unwrap_or_default() != known.ports.as_deref().unwrap_or_default()
            || after.metadata.labels != known.metadata.labels;
        if differs {
            self.slices.replace(&after).await?;
        }
        Ok(())
    }

    fn wanted(&self, service: &Service) -> Vec<EndpointSlice> {
        let mut pods = self.pods.in_namespace(&service.namespace().unwrap_or_default());
        pods.retain(|pod| selects(service, pod) && !is_finished(pod));
        let mut groups: BTreeMap<Vec<PortKey>, Vec<Endpoint>> = BTreeMap::new();
        for pod in pods {
            if let Some(endpoint) = endpoint(service, &pod) {
                groups.entry(ports(service, &pod)).or_default().push(endpoint);
            }
        }
        if groups.is_empty() {
            // An empty slice says "nobody", which is different from "nobody looked yet".
            groups.insert(Vec::new(), Vec::new());
        }
        groups.into_iter().enumerate().map(|(index, group)| slice(service, index, group)).collect()
    }
}

/// A Service port as a pod serves it; ordered, so that pods with equal ports meet.
type PortKey = (Option<String>, i32, Option<String>, Option<String>);

fn ports(service: &Service, pod: &Pod) -> Vec<PortKey> {
    let ports = service.spec.iter().flat_map(|spec| spec.ports.iter().flatten());
    let mut ports: Vec<_> = ports
        .filter_map(|port| {
            let number = target_port(port, pod)?;
            // An unnamed port has the empty name, as Kubernetes writes it.
            let name = Some(port.name.clone().unwrap_or_default());
            let protocol = Some(port.protocol.clone().unwrap_or_else(|| "TCP".into()));
            Some((name, number, protocol, port.app_protocol.clone()))
        })
        .collect();
    ports.sort();
    ports
}

fn target_port(port: &ServicePort, pod: &Pod) -> Option<i32> {
    match &port.target_port {
        None | Some(IntOrString::Int(0)) => Some(port.port),
        Some(IntOrString::Int(number)) => Some(*number),
        Some(IntOrString::String(name)) => {
            let spec = pod.spec.as_ref()?;
            let mut declared = spec.containers.iter().flat_map(|container| container.ports.iter().flatten());
            declared.find(|declared| declared.name.as_deref() == Some(name)).map(|declared| declared.container_port)
        }
    }
}

fn endpoint(service: &Service, pod: &Pod) -> Option<Endpoint> {
    let address = pod.status.as_ref()?.pod_ip.clone().filter(|ip| !ip.is_empty())?;
    let always = service.spec.as_ref().and_then(|spec| spec.publish_not_ready_addresses) == Some(true);
    let serving = ready_since(pod).is_some();
    let terminating = pod.metadata.deletion_timestamp.is_some();
    Some(Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(always || (serving && !terminating)),
            serving: Some(serving),
            terminating: Some(terminating),
        }),
        node_name: pod.spec.as_ref().and_then(|spec| spec.node_name.clone()),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.namespace(),
            name: Some(pod.name_any()),
            uid: pod.uid(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    })
}

fn slice(service: &Service, index: usize, (ports, endpoints): (Vec<PortKey>, Vec<Endpoint>)) -> EndpointSlice {
    let mut labels = service.labels().clone();
    labels.insert(SERVICE_NAME.into(), service.name_any());
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    if service.spec.as_ref().and_then(|spec| spec.cluster_ip.as_deref()) == Some("None") {
        labels.insert(HEADLESS.into(), String::new());
    }
    let ports = ports.into_iter().map(|(name, port, protocol, app_protocol)| EndpointPort {
        name,
        port: Some(port),
        protocol,
        app_protocol,
    });
    EndpointSlice {
        address_type: "IPv4".into(),
        endpoints: Some(endpoints),
        metadata: ObjectMeta {
            name: Some(slice_name(service, index)),
            namespace: service.namespace(),
            labels: Some(labels),
            owner_references: controlled_by(service).map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ports: Some(ports.collect()),
    }
}

/// A name that looks generated but is the same for the same Service, so that a repeated create cannot make a second.
fn slice_name(service: &Service, index: usize) -> String {
    let suffix = hashed_name(format!("{}/{index}", service.uid().unwrap_or_default()).as_bytes(), 5);
    format!("{}-{suffix}", service.name_any())
}

fn is_ours(slice: &EndpointSlice) -> bool {
    slice.labels().get(MANAGED_BY).map(String::as_str) == Some(MANAGER)
}

fn has_selector(service: &Service) -> bool {
    let external = service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) == Some("ExternalName");
    !external && service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).is_some_and(|map| !map.is_empty())
}

fn selects(service: &Service, pod: &Pod) -> bool {
    let Some(selector) = service.spec.as_ref().and_then(|spec| spec.selector.as_ref()) else { return false };
    has_selector(service) && selector.iter().all(|(key, value)| pod.labels().get(key) == Some(value))
}
