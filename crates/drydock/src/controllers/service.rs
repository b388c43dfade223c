//! Addresses of Services of type LoadBalancer.
//!
//! Cluster addresses are given by the API server. A load balancer of this cluster answers on the Service's own
//! cluster address: it is virtual anyway, unique, and everyone who resolves one resolves the other.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{LoadBalancerIngress, LoadBalancerStatus, Service};

use super::objects::{Key, Objects};
use super::queue::Reconcile;

/// Gives load balancers their address, and takes it back when the type changes.
pub(super) struct ServiceController {
    pub(super) services: Objects<Service>,
}

impl Reconcile for ServiceController {
    const NAME: &'static str = "service";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(service) = self.services.get(key) else { return Ok(None) };
        let Some(spec) = service.spec.as_ref().filter(|_| service.metadata.deletion_timestamp.is_none()) else {
            return Ok(None);
        };
        // A Service with a class of its own is somebody else's to serve.
        if spec.load_balancer_class.is_some() {
            return Ok(None);
        }
        let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
        let has = balancer.and_then(|balancer| balancer.ingress.clone()).unwrap_or_default();
        let wants = wanted_ingress(&service);
        if spec.type_.as_deref() == Some("LoadBalancer") && (wants.is_empty() || !has.is_empty()) {
            return Ok(None);
        }
        if has != wants {
            let mut after = service.as_ref().clone();
            let ingress = Some(wants).filter(|ingress| !ingress.is_empty());
            after.status.get_or_insert_default().load_balancer = Some(LoadBalancerStatus { ingress });
            self.services.replace_status(&after).await?;
        }
        Ok(None)
    }
}

fn wanted_ingress(service: &Service) -> Vec<LoadBalancerIngress> {
    let Some(spec) = &service.spec else { return Vec::new() };
    let address = spec.cluster_ip.clone().filter(|ip| !ip.is_empty() && ip != "None");
    match address {
        Some(ip) if spec.type_.as_deref() == Some("LoadBalancer") => {
            vec![LoadBalancerIngress { ip: Some(ip), ip_mode: Some("VIP".into()), ..LoadBalancerIngress::default() }]
        }
        _ => Vec::new(),
    }
}
