//! The stories of kubectl, on the server they are about.

use seaway_drydock::pods::PodOptions;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Gateway, Traefik};
use super::haven::in_haven;
use crate::harness::{GATEWAY, Ground as _, NAMESPACES};
use crate::kubectl::{Ground, kubectl, tell_all};

#[test]
fn kubectl_prints_the_same_as_on_drydock() {
    let parts = [&PARTS[..], &["kubectl", "traefik"]].concat();
    let test = "real::kubectl::kubectl_prints_the_same_as_on_drydock";
    in_haven(test, &parts, async || {
        let mut cluster = RealCluster::start(PodOptions::default()).await;
        let _traefik = Traefik::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        // The stories' Gateway is Istio's.
        cluster
            .apply(&GATEWAY.replace("gatewayClassName: istio", "gatewayClassName: traefik").replace("80", "8000"))
            .await;
        cluster.start_operator(&[]).await;
        let ground = Ground::at(cluster.api.kubeconfig("admin"), &["operator", "pods"], &kubectl().unwrap());
        tokio::task::spawn_blocking(move || tell_all(test, &ground)).await.unwrap();
    });
}
