//! Gives a server that is no pod (the gateway, Prometheus) a Service and an EndpointSlice, so that names lead to it.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::ServiceName;

/// What to publish.
#[derive(Clone, Debug)]
pub struct Publication {
    /// Namespace and name of the Service.
    pub service: ServiceName,
    /// The class of the load balancer that serves it; without one it is a plain `ClusterIP` Service.
    pub load_balancer: Option<&'static str>,
    /// Where the server listens.
    pub address: IpAddr,
    /// Names and numbers of its ports; Service and server use the same.
    pub ports: Vec<(String, u16)>,
    /// Labels of both objects.
    pub labels: Vec<(String, String)>,
    /// Annotations of the Service.
    pub annotations: Vec<(String, String)>,
    /// The owner in whose wake both objects are deleted.
    pub owner: Option<Value>,
    /// The field manager that owns the fields.
    pub manager: &'static str,
}

/// Writes the Service and its EndpointSlice by server-side apply.
pub async fn publish(client: &Client, publication: &Publication) -> kube::Result<()> {
    let Publication { service, load_balancer, address, ports, labels, annotations, owner, manager } = publication;
    let params = PatchParams::apply(manager).force();
    let map = |pairs: &[(String, String)]| -> serde_json::Map<String, Value> {
        pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let mut label_map = map(labels);
    let owners: Vec<&Value> = owner.iter().collect();
    let service_ports: Vec<Value> = ports
        .iter()
        .map(|(name, port)| json!({"name": name, "port": port, "targetPort": port, "protocol": "TCP"}))
        .collect();
    let mut object = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service.name,
            "namespace": service.namespace,
            "labels": label_map,
            "annotations": map(annotations),
            "ownerReferences": owners,
        },
        "spec": {"type": "ClusterIP", "ports": service_ports},
    });
    if let Some(class) = load_balancer {
        object["spec"]["type"] = json!("LoadBalancer");
        object["spec"]["loadBalancerClass"] = json!(class);
    }
    let services = Api::<Service>::namespaced(client.clone(), &service.namespace);
    services.patch(&service.name, &params, &Patch::Apply(object)).await?;

    label_map.insert("kubernetes.io/service-name".into(), json!(service.name));
    label_map.insert("endpointslice.kubernetes.io/managed-by".into(), json!(manager));
    let slice_ports: Vec<Value> =
        ports.iter().map(|(name, port)| json!({"name": name, "port": port, "protocol": "TCP"})).collect();
    let object = json!({
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": service.name, "namespace": service.namespace, "labels": label_map, "ownerReferences": owners},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address.to_string()], "conditions": {"ready": true, "serving": true}}],
        "ports": slice_ports,
    });
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), &service.namespace);
    slices.patch(&service.name, &params, &Patch::Apply(object)).await?;
    Ok(())
}
