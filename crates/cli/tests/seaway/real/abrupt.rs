//! Pods that stop at once. Where the order of our own writes decides, no user notices; where Kubernetes replaces pods under
//! traffic, no more users notice than without us.

use std::net::SocketAddr;
use std::time::Duration;

use k8s_openapi::api::core::v1::Service;
use kube::api::DeleteParams;
use seaway_api::canary::Phase;
use seaway_api::foreign::gateway::HttpRoute;
use seaway_drydock::pods::PodOptions;
use serde_json::json;

use super::cluster::{PARTS, RealCluster};
use super::gateways::{Contour, Gateway, Traefik};
use super::haven::in_haven;
use super::users::Users;
use crate::harness::{Ground, NAMESPACES};
use crate::scenarios::deletion::go_and_come_back;

/// podinfo behind a Service and a route, before anybody thought of a canary; and the same once more, which nobody rolls out.
const APPS: &str = include_str!("abrupt.yaml");
const CANARY: &str = include_str!("abrupt-canary.yaml");

/// Pods of each app.
const PODS: i32 = 6;
/// How often a promotion is compared with a plain change of the image.
const COMPARISONS: i64 = 3;
/// Where Kubernetes alone loses so many the first time, chance plays no part and one comparison is enough.
const BEYOND_CHANCE: u64 = 300;

/// Users, while something happens; and how many requests failed meanwhile and shortly after.
async fn lost(cluster: &RealCluster, mut users: Users, what: &str, happens: impl Future<Output = ()>) -> u64 {
    happens.await;
    cluster.sail(Duration::from_secs(3)).await;
    users.rest().await;
    let seen = users.seen();
    let lost = users.failures_of_ours("");
    eprintln!("{what}: {lost} of {} requests failed: {seen:?}", seen.values().sum::<u64>());
    lost
}

/// Lost requests of a promotion, and of `kubectl set image` of a Deployment that is the same, but for the Canary. Both replace
/// their pods at the same time, so that neither finds the machine busier, and under the same load: a throng asks each of them.
async fn lost_by_both<G: Gateway>(cluster: &RealCluster, nth: i64) -> (u64, u64) {
    let tag = format!("6.0.{}", 1 + nth);
    let analysed = lost(cluster, Users::of_gateway(G::WEB, "www.example.com"), "analysis", async {
        cluster.set_image("podinfo", &tag).await;
        cluster.until_weight("podinfo", 50).await;
    });
    // No pod goes before that.
    assert_eq!(analysed.await, 0);
    let ours = Users::throng_of_gateway(G::WEB, "www.example.com");
    let plain = Users::throng_of_gateway(G::WEB, "plain.example.com");
    assert_eq!(
        cluster.status("podinfo").await.phase,
        Phase::Progressing,
        "nothing is replaced before the throng is there"
    );
    let promoted = lost(cluster, ours, "promotion", cluster.until_phase("podinfo", Phase::Succeeded));
    let changed = lost(cluster, plain, "kubectl set image without a canary", async {
        cluster.until_phase("podinfo", Phase::Promoting).await;
        cluster.set_image("plain", &tag).await;
        let replaced = async |cluster: &RealCluster| {
            let status = cluster.deployment("plain").await.status.unwrap_or_default();
            status.observed_generation == Some(1 + nth)
                && status.updated_replicas == Some(PODS)
                && status.replicas == Some(PODS)
        };
        cluster.until("the rollout ended", replaced).await;
    });
    tokio::join!(promoted, changed)
}

/// A promotion loses no more than Kubernetes does. Half as many are expected, since the primary has half of the users. But Envoy
/// hears of a pod that stopped after 10 to 100 ms, as it happens, and loses a few requests until then: so pods are replaced one
/// after the other, several times, and what was lost is added up. How often is never decided by what was lost in promotions: who
/// stops as soon as that looks good forgives a real difference.
async fn a_promotion_loses_no_more<G: Gateway>(cluster: &RealCluster) {
    // All at once: what users lose they lose when the analysis is over.
    cluster.patch_canary("podinfo", json!({"spec": {"analysis": {"stepWeights": [50]}}})).await;
    let (mut ours, mut plain) = (0, 0);
    for nth in 1..=COMPARISONS {
        let lost = Box::pin(lost_by_both::<G>(cluster, nth)).await;
        (ours, plain) = (ours + lost.0, plain + lost.1);
        eprintln!("after {nth} comparisons: {ours} requests lost in promotions, {plain} by Kubernetes alone");
        if nth == 1 && plain >= BEYOND_CHANCE {
            break;
        }
    }
    assert!(ours <= plain, "promotions lost {ours} requests, Kubernetes alone {plain}");
}

fn pods_that_stop_at_once_cost_no_more<G: Gateway>(test: &str) {
    let parts = [&PARTS[..], G::PARTS].concat();
    // The manifests are for Traefik.
    let here = |manifest: &str| manifest.replace("namespace: traefik", &format!("namespace: {}", G::NAMESPACE));
    in_haven(test, &parts, async || {
        let at_once = PodOptions { drain: Duration::ZERO, ..PodOptions::default() };
        let mut cluster = RealCluster::start(at_once).await;
        let _gateway = G::start(&cluster).await;
        cluster.apply(NAMESPACES).await;
        cluster.apply(&here(APPS)).await;
        cluster.start_operator(&[]).await;
        for name in ["podinfo", "plain"] {
            cluster.until("the app runs", async |cluster| cluster.ready(name).await == PODS).await;
        }

        let service: Service = cluster.api("test").get("podinfo").await.unwrap();
        let address = service.spec.unwrap().cluster_ip.unwrap().parse().unwrap();
        let within = Users::of_service(SocketAddr::new(address, 9898));
        // The gateway has a route to the Service that nobody knows of but the user.
        let without = Users::of_gateway(G::WEB, "door.example.com");
        without.forget_until_served().await;
        let taken_over = async {
            cluster.sail(Duration::from_secs(2)).await;
            cluster.apply(&here(CANARY)).await;
            cluster.until_phase("podinfo", Phase::Initialized).await;
            cluster.until("the old pods are gone", async |cluster| cluster.ready("podinfo").await == 0).await;
        };
        let within = lost(&cluster, within, "takeover of a Service", taken_over).await;
        let without = lost(&cluster, without, "the same, for users of its gateway", async {}).await;
        assert_eq!((within, without), (0, 0));
        // From here on the gateway knows of the Service only what the operator tells it.
        cluster.api::<HttpRoute>("test").delete("door", &DeleteParams::default()).await.unwrap();

        let users = Users::of_gateway(G::WEB, "www.example.com");
        let rolled_back = lost(&cluster, users, "rollback", async {
            cluster.set_image("podinfo", "6.0.1").await;
            cluster.until_weight("podinfo", 25).await;
            cluster
                .patch_canary(
                    "podinfo",
                    json!({"spec": {"analysis": {"webhooks": [
                        {"name": "back", "type": "rollback", "url": "http://podinfo-primary.test:9898/echo"}
                    ]}}}),
                )
                .await;
            cluster.until_phase("podinfo", Phase::Failed).await;
            cluster.until("the canary's pods are gone", async |cluster| cluster.ready("podinfo").await == 0).await;
        });
        assert_eq!(rolled_back.await, 0);
        cluster.patch_canary("podinfo", json!({"spec": {"analysis": {"webhooks": null}}})).await;

        a_promotion_loses_no_more::<G>(&cluster).await;

        let users = Users::of_gateway(G::WEB, "www.example.com");
        let again = lost(&cluster, users, "deletion with revert, and the Canary once more", async {
            go_and_come_back(&cluster, &here(CANARY)).await;
            cluster.until("the target's pods are gone", async |cluster| cluster.ready("podinfo").await == 0).await;
        });
        assert_eq!(again.await, 0);
    });
}

#[test]
fn behind_traefik_pods_that_stop_at_once_cost_no_more_than_kubernetes_itself_does() {
    pods_that_stop_at_once_cost_no_more::<Traefik>(
        "real::abrupt::behind_traefik_pods_that_stop_at_once_cost_no_more_than_kubernetes_itself_does",
    );
}

#[test]
fn behind_contour_pods_that_stop_at_once_cost_no_more_than_kubernetes_itself_does() {
    pods_that_stop_at_once_cost_no_more::<Contour>(
        "real::abrupt::behind_contour_pods_that_stop_at_once_cost_no_more_than_kubernetes_itself_does",
    );
}
