//! A Canary is deleted with `revertOnDeletion`, others meddle meanwhile, and it comes back.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams};
use seaway_api::canary::{Canary, Phase};
use seaway_api::foreign::gateway::HttpRoute;
use seaway_drydock::fault::{Call, Faults, Point};
use seaway_drydock::proxy::empty;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use super::golden::{expected, in_one, ours};
use super::rollout::NEWS;
use crate::harness::{CANARY, GATEWAY, Ground, OPERATOR, Ship, Users};

const SERVICE: &str = "
apiVersion: v1
kind: Service
metadata: {name: podinfo, namespace: test, labels: {team: harbour}}
spec:
  selector: {app: podinfo, tier: web}
  ports: [{name: web, port: 9898, targetPort: 9898}]
";

fn canary() -> String {
    CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n")
}

async fn delete(ground: &impl Ground) {
    let api: Api<Canary> = ground.api("test");
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
}

async fn until_gone<G: Ground>(ground: &G) {
    let gone = async |ground: &G| ground.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none();
    ground.until("the Canary is gone", gone).await;
}

/// The Canary, which has `revertOnDeletion`, goes as Flagger's do, and comes back. Its route stays.
pub async fn go_and_come_back(ground: &impl Ground, canary: &str) {
    ground.transcript().clear();
    delete(ground).await;
    until_gone(ground).await;
    ground.sail(NEWS).await;
    let told = in_one(ours(ground.transcript(), "podinfo"));
    assert_eq!(told, in_one(expected("A6-delete-canary-revertOnDeletion")), "{}", ground.transcript());
    let left = route(ground).await;
    assert!(left["metadata"].get("ownerReferences").is_none());
    ground.apply(canary).await;
    ground.until_phase("podinfo", Phase::Initialized).await;
    let taken = route(ground).await;
    assert_eq!(taken["metadata"]["uid"], left["metadata"]["uid"], "the same route");
    assert_eq!(taken["metadata"]["ownerReferences"][0]["kind"], "Canary");
    assert!(taken["metadata"]["annotations"].get("seaway.dev/released-by").is_none());
    assert_eq!(taken["spec"]["rules"].as_array().unwrap().len(), 1);
    assert_eq!(ground.weights("podinfo").await, (100, 0));
}

async fn apex(ship: &Ship) -> Value {
    let service: Service = ship.api("test").get("podinfo").await.unwrap();
    serde_json::to_value(service).unwrap()
}

async fn until_apex_leads_to_the_target(ship: &Ship) {
    ship.until("the apex leads to the target", async |ship| apex(ship).await["spec"]["selector"]["app"] == "podinfo")
        .await;
}

async fn select(ship: &Ship, selector: Value) {
    let api: Api<Service> = ship.api("test");
    let patch = json!({"spec": {"selector": selector}});
    api.patch("podinfo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn route(ground: &impl Ground) -> Value {
    let route: HttpRoute = ground.get("podinfo").await;
    serde_json::to_value(route).unwrap()
}

/// What a route leads to or names: Service, port, share.
fn backends(route: &Value) -> Vec<(String, i64, i64)> {
    let backends = route["spec"]["rules"][0]["backendRefs"].as_array().into_iter().flatten();
    let each = |backend: &Value| {
        let name = backend["name"].as_str().unwrap_or_default().to_owned();
        (name, backend["port"].as_i64().unwrap_or_default(), backend["weight"].as_i64().unwrap_or(1))
    };
    backends.map(each).collect()
}

/// Where the operator led users from now on without having named that Service, and that port of it, before.
fn surprises(ship: &Ship) -> Arc<Mutex<Vec<String>>> {
    let found: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = found.clone();
    ship.cluster.api().on_commit(move |commit| {
        let ours = commit.resource == "httproutes" && commit.user == OPERATOR;
        let (Some(before), Some(after), true) = (&commit.before, &commit.after, ours) else { return };
        let named = backends(before);
        for (name, port, share) in backends(after) {
            if share > 0 && !named.iter().any(|(known, at, _)| (known, *at) == (&name, port)) {
                sink.lock().unwrap().push(format!("{name}:{port} at {}", commit.time));
            }
        }
    });
    found
}

/// Others in the cluster, who ask the apex Service itself by this port as long as it has it; what they got instead of answers.
fn neighbours(ship: &Ship, port: u16) -> (Arc<Mutex<Vec<u16>>>, AbortOnDropHandle<()>) {
    let lost: Arc<Mutex<Vec<u16>>> = Arc::default();
    let (sink, mesh, clock) = (lost.clone(), ship.cluster.mesh().clone(), ship.cluster.clock());
    let services = ship.api::<Service>("test");
    let task = tokio::spawn(async move {
        let has_it = async || {
            let spec = services.get("podinfo").await.unwrap().spec.unwrap_or_default();
            spec.ports.unwrap_or_default().iter().any(|seen| seen.port == i32::from(port))
        };
        while has_it().await {
            clock.sleep(Duration::from_millis(100)).await;
            let request = http::Request::get(format!("http://podinfo.test:{port}/")).body(empty()).unwrap();
            let code = mesh.send(request).await.status().as_u16();
            if code != 200 && has_it().await {
                sink.lock().unwrap().push(code);
            }
        }
    });
    (lost, AbortOnDropHandle::new(task))
}

/// A way to the API server on which somebody else always writes the route just before the operator does: what it sends then
/// is refused, and it has to look again.
fn beside_another_writer(ship: &Ship) -> kube::Client {
    let faults = Faults::new(ship.cluster.clock());
    let writes = Arc::new(AtomicU32::new(0));
    for index in 0..500 {
        let (seen, writes, routes) = (faults.clone(), writes.clone(), ship.api::<HttpRoute>("test"));
        faults.before(Point::Call(index), async move {
            let of_route = |call: &Call| call.index == Some(index) && call.is_write() && call.resource == "httproutes";
            if !seen.calls().iter().any(of_route) {
                return;
            }
            // Every other time, or it would never get through.
            let write = writes.fetch_add(1, Ordering::Relaxed);
            if write.is_multiple_of(2) {
                let note = json!({"metadata": {"annotations": {"note": write.to_string()}}});
                routes.patch("podinfo", &PatchParams::default(), &Patch::Merge(note)).await.unwrap();
            }
        });
    }
    faults.client(ship.cluster.api(), OPERATOR)
}

/// Users get answers, now.
async fn assert_served(ship: &Ship, users: &Users) {
    users.forget();
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn an_apex_edited_while_it_is_given_back_is_repaired_and_the_deletion_ends() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    until_apex_leads_to_the_target(&ship).await;
    select(&ship, json!({"app": "nobody"})).await;
    ship.sail(Duration::from_secs(2)).await;
    assert_served(&ship, &users).await;
    until_gone(&ship).await;
    assert_eq!(apex(&ship).await["spec"]["selector"], json!({"app": "podinfo"}));
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_users_own_is_repaired_too_and_given_back_as_it_was() {
    let mut ship = Ship::launch().await;
    // Pods are chosen in the user's own way, by a label that the operator knows nothing of.
    let deployment = json!({"spec": {"template": {"metadata": {"labels": {"tier": "web"}}}}});
    let api: Api<Deployment> = ship.api("test");
    api.patch("podinfo", &PatchParams::default(), &Patch::Merge(deployment)).await.unwrap();
    ship.apply(SERVICE).await;
    select(&ship, json!({"app": null})).await;
    let before = apex(&ship).await;
    assert_eq!(before["spec"]["selector"], json!({"tier": "web"}));
    ship.start_operator();
    ship.apply(&canary()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    ship.until("the apex is as it was", async |ship| apex(ship).await["spec"] == before["spec"]).await;
    select(&ship, json!({"tier": "nobody"})).await;
    ship.sail(Duration::from_secs(2)).await;
    assert_served(&ship, &users).await;
    until_gone(&ship).await;
    let after = apex(&ship).await;
    assert_eq!(after["spec"], before["spec"]);
    for field in ["labels", "annotations", "ownerReferences"] {
        assert_eq!(after["metadata"].get(field), before["metadata"].get(field), "{field}");
    }
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn a_route_edited_while_it_is_given_back_is_repaired() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    ship.until("the route leads to the apex", async |ship| {
        route(ship).await["spec"]["rules"][0]["backendRefs"][0]["name"] == "podinfo"
    })
    .await;
    // Somebody puts back what they know, at the worst moment: this Service is about to be collected.
    let api: Api<HttpRoute> = ship.api("test");
    let patch = json!([{"op": "replace", "path": "/spec/rules/0/backendRefs/0/name", "value": "podinfo-primary"}]);
    let patch = Patch::Json::<()>(serde_json::from_value(patch).unwrap());
    api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap();
    until_gone(&ship).await;
    assert_eq!(route(&ship).await["spec"]["rules"][0]["backendRefs"][0]["name"], "podinfo");
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_canary_can_be_created_again_without_a_moment_of_downtime() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    for version in ["6.0.1", "6.0.2"] {
        go_and_come_back(&ship, &canary()).await;
        ship.set_image("podinfo", version).await;
        ship.until_phase("podinfo", Phase::Succeeded).await;
        assert_eq!(ship.image("podinfo-primary").await, version);
    }
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_canary_deleted_again_before_it_has_its_route_leaves_what_it_found() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    until_gone(&ship).await;
    let (left, before) = (route(&ship).await, apex(&ship).await);
    ship.apply(&canary()).await;
    ship.until_phase("podinfo", Phase::Initializing).await;
    delete(&ship).await;
    until_gone(&ship).await;
    assert_eq!(route(&ship).await["metadata"]["annotations"], left["metadata"]["annotations"]);
    assert_eq!(apex(&ship).await["spec"], before["spec"]);
    ship.apply(&canary()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_released_route_that_its_user_changed_is_theirs() {
    let ship = Ship::launch_with(&canary()).await;
    delete(&ship).await;
    until_gone(&ship).await;
    let api: Api<HttpRoute> = ship.api("test");
    let patch = json!({"metadata": {"annotations": {"seaway.dev/released-by": null}}});
    api.patch("podinfo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    let before = route(&ship).await;
    ship.apply(&canary()).await;
    ship.sail(Duration::from_secs(60)).await;
    let status = ship.status("podinfo").await;
    let told = &status.condition("Accepted").unwrap().message;
    assert!(told.contains("HTTPRoute podinfo.test exists and is not owned"), "{told}");
    assert_eq!(route(&ship).await["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);
}

/// A gateway like the tutorial's, which serves the same host.
fn another_gateway() -> String {
    GATEWAY.replace("name: gateway\n", "name: quay\n")
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_comes_back_under_another_gateway_is_initialised() {
    let ship = Ship::launch_with(&canary()).await;
    delete(&ship).await;
    until_gone(&ship).await;
    ship.apply(&another_gateway()).await;
    let gateways = ApiResource::from_gvk(&GroupVersionKind::gvk("gateway.networking.k8s.io", "v1", "Gateway"));
    let gateways: Api<DynamicObject> = Api::namespaced_with(ship.client(), "istio-ingress", &gateways);
    gateways.delete("gateway", &DeleteParams::default()).await.unwrap();
    ship.apply(&canary().replace("name: gateway\n", "name: quay\n")).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    assert_eq!(route(&ship).await["spec"]["parentRefs"][0]["name"], "quay");
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_comes_back_with_another_port_loses_no_request() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    until_gone(&ship).await;
    ship.apply(&canary().replace(" port: 9898", " port: 80")).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    assert_eq!(route(&ship).await["spec"]["rules"][0]["backendRefs"][0]["port"], 80);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_comes_back_with_another_port_and_goes_again_names_the_port_that_it_gives_back() {
    let ship = Ship::launch_with(&canary()).await;
    let (users, surprises) = (Users::start(&ship.cluster, 10), surprises(&ship));
    delete(&ship).await;
    until_gone(&ship).await;
    ship.apply(&canary().replace(" port: 9898", " port: 80")).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    ship.sail(Duration::from_secs(5)).await;
    assert_eq!(apex(&ship).await["spec"]["ports"][0]["port"], 80);
    assert_eq!(backends(&route(&ship).await).last(), Some(&("podinfo".to_owned(), 80, 0)));
    delete(&ship).await;
    until_gone(&ship).await;
    assert_eq!(apex(&ship).await["spec"]["ports"][0]["port"], 9898, "as it was found");
    assert_eq!(backends(&route(&ship).await), [("podinfo".to_owned(), 9898, 100)]);
    assert_eq!(*surprises.lock().unwrap(), [""; 0]);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn another_writer_costs_no_request_of_a_canary_that_comes_back_with_another_port() {
    let mut ship = Ship::launch_with(&canary()).await;
    delete(&ship).await;
    until_gone(&ship).await;
    ship.stop_operator().await;
    let (users, surprises) = (Users::start(&ship.cluster, 10), surprises(&ship));
    let (lost, _task) = neighbours(&ship, 9898);
    ship.start_operator_with(beside_another_writer(&ship));
    ship.apply(&canary().replace(" port: 9898", " port: 80")).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    ship.sail(Duration::from_secs(30)).await;
    assert_eq!(*lost.lock().unwrap(), [0; 0], "they come by the port that they know");
    assert_eq!(apex(&ship).await["spec"]["ports"][0]["port"], 80);
    assert_eq!(backends(&route(&ship).await)[0], ("podinfo-primary".to_owned(), 80, 100));
    assert_eq!(*surprises.lock().unwrap(), [""; 0]);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_the_users_own_is_led_to_by_a_port_that_it_has() {
    let mut ship = Ship::launch().await;
    ship.apply(&SERVICE.replace(" port: 9898", " port: 80").replace(", tier: web", "")).await;
    ship.start_operator();
    ship.apply(&canary()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    until_gone(&ship).await;
    assert_eq!(apex(&ship).await["spec"]["ports"][0]["port"], 80, "its ports are given back");
    assert_eq!(route(&ship).await["spec"]["rules"][0]["backendRefs"][0]["port"], 80);
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn of_several_ports_the_one_is_led_to_that_leads_to_the_same_place() {
    for (ports, led_to) in [
        ("{name: metrics, port: 9797, targetPort: 9797}, {name: web, port: 8080, targetPort: 9898}", 8080),
        ("{name: admin, port: 80, targetPort: 9797}, {name: web, port: 8080, targetPort: http}", 8080),
        ("{name: admin, port: 9797, targetPort: 9898}, {name: web, port: 80, targetPort: http}", 80),
    ] {
        let mut ship = Ship::launch().await;
        let service = SERVICE.replace("{name: web, port: 9898, targetPort: 9898}", ports);
        ship.apply(&service.replace(", tier: web", "")).await;
        ship.start_operator();
        let canary = canary().replace(" port: 9898", " port: 80").replace("targetPort: 9898", "targetPort: http");
        ship.apply(&canary).await;
        ship.until_phase("podinfo", Phase::Initialized).await;
        let users = Users::start(&ship.cluster, 10);
        delete(&ship).await;
        until_gone(&ship).await;
        assert_eq!(route(&ship).await["spec"]["rules"][0]["backendRefs"][0]["port"], led_to, "{ports}");
        assert_served(&ship, &users).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_port_that_changed_while_the_canary_was_suspended_is_not_led_to() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    let spec = json!({"suspend": true, "service": {"port": 80}});
    ship.patch_canary("podinfo", json!({"spec": spec})).await;
    ship.sail(Duration::from_secs(60)).await;
    delete(&ship).await;
    until_gone(&ship).await;
    assert_served(&ship, &users).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
}

#[tokio::test(start_paused = true)]
async fn users_are_led_where_they_were_served_although_the_spec_says_another_port_of_the_pods_since() {
    let mut ship = Ship::launch().await;
    let ports = "{name: web, port: 8080, targetPort: 9898}, {name: admin, port: 9797, targetPort: 9797}";
    let service = SERVICE.replace("{name: web, port: 9898, targetPort: 9898}", ports);
    ship.apply(&service.replace(", tier: web", "")).await;
    ship.start_operator();
    ship.apply(&canary()).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);
    let spec = json!({"suspend": true, "service": {"targetPort": 9797}});
    ship.patch_canary("podinfo", json!({"spec": spec})).await;
    ship.sail(Duration::from_secs(60)).await;
    delete(&ship).await;
    until_gone(&ship).await;
    assert_eq!(backends(&route(&ship).await), [("podinfo".to_owned(), 8080, 100)]);
    assert_served(&ship, &users).await;
}

/// Every pod of a Deployment goes, and none that comes is ever ready.
async fn break_down(ship: &Ship, deployment: &str) {
    let strategy = json!({"strategy": {"type": "Recreate", "rollingUpdate": null}});
    let api: Api<Deployment> = ship.api("test");
    api.patch(deployment, &PatchParams::default(), &Patch::Merge(json!({"spec": strategy}))).await.unwrap();
    ship.set_image(deployment, "6.0.9-crash").await;
    ship.until("nobody answers", async |ship| ship.ready(deployment).await == 0).await;
    ship.sail(Duration::from_secs(2)).await;
}

#[tokio::test(start_paused = true)]
async fn a_canary_that_breaks_down_while_it_is_given_back_gets_no_traffic() {
    let ship = Ship::launch_with(&canary()).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 50).await;
    ship.sail(Duration::from_secs(5)).await;
    delete(&ship).await;
    ship.until_phase("podinfo", Phase::Terminating).await;
    break_down(&ship, "podinfo").await;
    assert_served(&ship, &users).await;
    // Mended, it takes everything.
    ship.set_image("podinfo", "6.0.2").await;
    until_gone(&ship).await;
    assert_served(&ship, &users).await;
}

#[tokio::test(start_paused = true)]
async fn a_canary_deleted_for_its_broken_primary_serves_as_soon_as_the_target_does() {
    let ship = Ship::launch_with(&canary()).await;
    break_down(&ship, "podinfo-primary").await;
    let users = Users::start(&ship.cluster, 10);
    delete(&ship).await;
    ship.until("the target answers", async |ship| ship.ready("podinfo").await == 2).await;
    ship.sail(Duration::from_secs(1)).await;
    assert_served(&ship, &users).await;
    until_gone(&ship).await;
}
