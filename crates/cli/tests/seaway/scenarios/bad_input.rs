//! Bad objects: refused on the object itself, nothing else is written, others go on, the corrected object recovers.

use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams};
use seaway_api::canary::{Canary, ConditionStatus, Phase};
use serde_json::{Value, json};

use crate::harness::{CANARY, Ground, OPERATOR, Ship, Users};

/// One file of `examples/bad`, with what its comments promise.
struct Exhibit {
    file: String,
    yaml: String,
    error: bool,
    path: String,
    refused: bool,
}

/// All exhibits that are YAML at all; what a parser refuses never reaches a cluster.
fn museum() -> Vec<Exhibit> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/bad");
    let mut exhibits: Vec<Exhibit> = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        if entry.path().extension().is_none_or(|ending| ending != "yaml") {
            continue;
        }
        let file = entry.file_name().into_string().unwrap();
        let yaml = std::fs::read_to_string(entry.path()).unwrap();
        let comment = |key: &str| {
            let line = yaml.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
            line.trim().to_owned()
        };
        let expect = comment("# expect:");
        let (severity, path) = expect.split_once(' ').expect(&file);
        let (error, path) = (severity == "error", path.to_owned());
        let refused = comment("# crd:") == "refuses";
        if path != "(yaml)" {
            exhibits.push(Exhibit { file, yaml, error, path, refused });
        }
    }
    exhibits.sort_by(|a, b| a.file.cmp(&b.file));
    assert!(exhibits.len() >= 60, "only {} exhibits", exhibits.len());
    exhibits
}

/// Seaway's CRDs without what they add to Flagger's: rules, bounds and alternatives. Such CRDs are in clusters that
/// Seaway takes over, so the operator itself must know every answer.
fn stock(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            for key in ["x-kubernetes-validations", "minimum", "maximum", "minItems", "maxItems", "oneOf", "not"] {
                fields.remove(key);
            }
            fields.values_mut().for_each(|value| *value = stock(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| *value = stock(value.take())),
        _ => {}
    }
    schema
}

fn names(yaml: &str) -> Vec<String> {
    yaml.lines()
        .filter_map(|line| line.strip_prefix("  name: "))
        .map(|name| name.trim_matches('"').to_owned())
        .collect()
}

/// The last Canary of a file is the one the comment is about.
async fn verdict(ship: &Ship, exhibit: &Exhibit) -> Option<(ConditionStatus, String)> {
    let name = names(&exhibit.yaml).pop()?;
    let raw: Value = raw_canary(ship, &name).await?;
    let condition = raw["status"]["conditions"].as_array()?.iter().find(|c| c["type"] == "Accepted")?.clone();
    let status = serde_json::from_value(condition["status"].clone()).unwrap();
    Some((status, condition["message"].as_str().unwrap_or_default().to_owned()))
}

/// The object as stored, also when it does not parse.
async fn raw_canary(ship: &Ship, name: &str) -> Option<Value> {
    use kube::api::{ApiResource, DynamicObject};
    let api: Api<DynamicObject> =
        Api::namespaced_with(ship.cluster.client("test"), "test", &ApiResource::erase::<Canary>(&()));
    api.get_opt(name).await.unwrap().map(|object| serde_json::to_value(object).unwrap())
}

#[tokio::test(start_paused = true)]
async fn our_crds_refuse_what_the_museum_says_they_refuse() {
    let ship = Ship::launch().await;
    for exhibit in museum() {
        // Other clients have a misspelt or misplaced field dropped; server-side apply, which is used here, refuses it.
        let undeclared = exhibit.file.starts_with("misspelt") || exhibit.file.starts_with("field-at");
        let refused = ship.cluster.apply(&exhibit.yaml).await.is_err();
        assert_eq!(refused, exhibit.refused || undeclared, "{}", exhibit.file);
    }
}

#[tokio::test(start_paused = true)]
async fn bad_objects_spoil_only_themselves_and_recover() {
    let mut ship = Ship::launch().await;
    for crd in seaway_api::crds::crds() {
        ship.replace_crd(&stock(serde_json::to_value(crd).unwrap()).to_string()).await;
    }
    ship.start_operator();
    ship.apply(CANARY).await;
    ship.until_phase("podinfo", Phase::Initialized).await;
    let users = Users::start(&ship.cluster, 10);

    let mut admitted = Vec::new();
    ship.cluster.api().log().clear();
    for exhibit in museum() {
        // A misspelt or misplaced field is dropped by the server; only `lint` can see it.
        let pruned = exhibit.file.starts_with("misspelt") || exhibit.file.starts_with("field-at");
        if !pruned && ship.cluster.apply(&exhibit.yaml).await.is_ok() {
            admitted.push(exhibit);
        }
    }
    assert!(admitted.len() >= 60, "stock CRDs admit only {}", admitted.len());
    ship.sail(Duration::from_secs(30)).await;

    for exhibit in &admitted {
        let (status, message) = verdict(&ship, exhibit).await.unwrap_or_else(|| panic!("{}: no verdict", exhibit.file));
        let expected = if exhibit.error { ConditionStatus::False } else { ConditionStatus::True };
        assert_eq!(status, expected, "{}: {message}", exhibit.file);
        assert!(message.contains(&exhibit.path), "{}: {message}", exhibit.file);
    }
    let told = ship.events().await;
    for exhibit in admitted.iter().filter(|exhibit| exhibit.error) {
        let name = names(&exhibit.yaml).pop().unwrap();
        let on_it = told.iter().filter(|event| event.involved_object.name.as_deref() == Some(&name));
        let warned = on_it.into_iter().any(|event| {
            event.type_.as_deref() == Some("Warning")
                && event.message.as_deref().unwrap_or_default().contains(&exhibit.path)
        });
        assert!(warned, "{}: no Event names {}", exhibit.file, exhibit.path);
    }
    // Of the rejected ones nothing but status and Events was written.
    let rejected: Vec<String> = admitted.iter().filter(|e| e.error).filter_map(|e| names(&e.yaml).pop()).collect();
    for request in ship.cluster.api().log().snapshot() {
        let touched = rejected.iter().any(|name| !name.is_empty() && request.name.starts_with(name.as_str()));
        if request.user == OPERATOR && request.is_write() && touched {
            let allowed =
                request.resource == "events" || request.resource == "canaries" && request.subresource == "status";
            assert!(allowed, "{request:?}");
        }
    }

    // The healthy one beside them finishes.
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());

    // Corrected objects recover without a restart.
    let good = ship.canary("podinfo").await.spec;
    for (index, exhibit) in admitted.iter().filter(|exhibit| exhibit.error).enumerate() {
        let Some(name) = names(&exhibit.yaml).pop().filter(|name| name.len() < 50 && !name.is_empty()) else {
            continue;
        };
        let mut spec = serde_json::to_value(&good).unwrap();
        spec["targetRef"]["name"] = json!(format!("corrected-{index}"));
        spec.as_object_mut().unwrap().remove("autoscalerRef");
        let canary = json!({"apiVersion": "flagger.app/v1beta1", "kind": "Canary",
            "metadata": {"name": name, "namespace": "test"}, "spec": spec});
        ship.replace_canary(canary).await;
    }
    ship.sail(Duration::from_secs(30)).await;
    for exhibit in admitted.iter().filter(|exhibit| exhibit.error) {
        let short = names(&exhibit.yaml).pop().is_some_and(|name| name.len() < 50 && !name.is_empty());
        if short {
            let (status, message) = verdict(&ship, exhibit).await.unwrap();
            assert_eq!(status, ConditionStatus::True, "{}: {message}", exhibit.file);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_becomes_bad_midway_holds_its_traffic() {
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_weight("podinfo", 20).await;
    ship.sail(Duration::from_secs(5)).await;
    ship.patch_canary("podinfo", json!({"spec": {"service": {"gatewayRefs": null}}})).await;
    ship.sail(Duration::from_secs(600)).await;
    assert_eq!(ship.weights("podinfo").await, (80, 20));
    assert_eq!(ship.replicas("podinfo").await, 2);
    let gateway = json!([{"name": "gateway", "namespace": "istio-ingress"}]);
    ship.patch_canary("podinfo", json!({"spec": {"service": {"gatewayRefs": gateway}}})).await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    assert_eq!(ship.image("podinfo-primary").await, "6.0.1");
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn a_bad_spec_is_reverted_all_the_same_when_it_is_deleted() {
    let canary = CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n");
    let ship = Ship::launch_with(&canary).await;
    let users = Users::start(&ship.cluster, 10);
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
    ship.patch_canary("podinfo", json!({"spec": {"service": {"gatewayRefs": null}}})).await;
    ship.sail(Duration::from_secs(60)).await;
    let api: Api<Canary> = ship.api("test");
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
    ship.until("the canary is gone", async |ship| {
        ship.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none()
    })
    .await;
    ship.sail(Duration::from_secs(60)).await;
    assert_eq!(ship.replicas("podinfo").await, 2);
    assert_eq!(users.failures_of_ours("none"), 0, "{:?}", users.seen());
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_read_is_reverted_to_the_port_that_serves() {
    let canary = CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n");
    // Both what the remains of the port say, and what they do not.
    for port in [json!(9898), json!(80)] {
        let ship = Ship::launch_with(&canary).await;
        let users = Users::start(&ship.cluster, 10);
        let spoilt = json!({"service": {"port": port}, "analysis": {"threshold": 1.5}});
        let kind = ApiResource::erase::<Canary>(&());
        let canaries: Api<DynamicObject> = Api::namespaced_with(ship.client(), "test", &kind);
        let patch = Patch::Merge(json!({"spec": spoilt}));
        canaries.patch("podinfo", &PatchParams::default(), &patch).await.unwrap();
        ship.sail(Duration::from_secs(60)).await;
        canaries.delete("podinfo", &DeleteParams::default()).await.unwrap();
        ship.until("the canary is gone", async |_| canaries.get_opt("podinfo").await.unwrap().is_none()).await;
        ship.sail(Duration::from_secs(60)).await;
        assert_eq!(users.failures_of_ours("none"), 0, "{:?}\n{}", users.seen(), ship.transcript);
    }
}

#[tokio::test(start_paused = true)]
async fn a_spec_that_cannot_be_served_can_still_be_deleted() {
    let canary = CANARY.replace("spec:\n", "spec:\n  revertOnDeletion: true\n");
    let ship = Ship::launch_with(&canary).await;
    ship.patch_canary("podinfo", json!({"spec": {"provider": "kuma"}})).await;
    ship.sail(Duration::from_secs(60)).await;
    let api: Api<Canary> = ship.api("test");
    api.delete("podinfo", &DeleteParams::default()).await.unwrap();
    ship.until("the canary is gone", async |ship| {
        ship.api::<Canary>("test").get_opt("podinfo").await.unwrap().is_none()
    })
    .await;
    ship.sail(Duration::from_secs(10)).await;
    let told = ship.events().await;
    let warned = told.iter().filter_map(|event| event.message.as_deref());
    let warned = warned.filter(|text| text.starts_with("deleted without putting anything back, invalid canary spec: "));
    assert_eq!(warned.count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_route_of_somebody_else_is_left_alone() {
    let mut ship = Ship::launch().await;
    let foreign = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\n\
        metadata: {name: podinfo, namespace: test}\n\
        spec: {parentRefs: [{name: gateway, namespace: istio-ingress}], hostnames: [other.example.com]}\n";
    ship.apply(foreign).await;
    ship.start_operator();
    ship.apply(CANARY).await;
    ship.sail(Duration::from_secs(120)).await;
    let status = ship.status("podinfo").await;
    let accepted = status.conditions.iter().find(|condition| condition.type_ == "Accepted").unwrap();
    assert_eq!(accepted.status, ConditionStatus::False, "{accepted:?}");
    assert_eq!(ship.replicas("podinfo").await, 2, "the target goes on serving");
    let route: seaway_api::foreign::gateway::HttpRoute = ship.api("test").get("podinfo").await.unwrap();
    assert_eq!(route.metadata.generation, Some(1));
}

#[tokio::test(start_paused = true)]
async fn objects_of_somebody_else_are_left_alone() {
    let mut ship = Ship::launch().await;
    let own = "apiVersion: v1\nkind: Service\nmetadata: {name: podinfo-canary, namespace: test}\n\
        spec: {selector: {app: shop}, ports: [{port: 80}]}\n";
    let mut workload = serde_json::to_value(ship.deployment("podinfo").await).unwrap();
    workload["metadata"] = json!({"name": "podinfo-primary", "namespace": "test"});
    workload["spec"]["selector"] = json!({"matchLabels": {"app": "shop"}});
    workload["spec"]["template"]["metadata"]["labels"] = json!({"app": "shop"});
    workload.as_object_mut().unwrap().remove("status");
    workload["apiVersion"] = json!("apps/v1");
    workload["kind"] = json!("Deployment");
    ship.apply(&format!("{own}---\n{workload}")).await;
    ship.start_operator();
    ship.cluster.api().log().clear();
    ship.apply(CANARY).await;
    ship.sail(Duration::from_secs(300)).await;
    let status = ship.status("podinfo").await;
    let accepted = status.conditions.iter().find(|condition| condition.type_ == "Accepted").unwrap();
    assert_eq!(accepted.status, ConditionStatus::False, "{accepted:?}");
    let told = ship.events().await;
    for text in [
        "spec.targetRef.name: Deployment podinfo-primary.test exists and no Canary owns it",
        "spec.service.name: Service podinfo-canary.test exists and no Canary owns it",
    ] {
        assert!(accepted.message.contains(text), "{accepted:?}");
        let events = told.iter().filter(|event| event.message.as_deref().is_some_and(|message| message.contains(text)));
        assert_eq!(events.map(|event| event.count).collect::<Vec<_>>(), [Some(1)]);
    }
    for request in ship.requests().into_iter().filter(|request| request.user == OPERATOR && request.is_write()) {
        let allowed = matches!(request.resource.as_str(), "events" | "leases" | "canaries");
        assert!(allowed, "{request:?}");
    }

    // When they are gone, the canary goes on by itself.
    ship.api::<Deployment>("test").delete("podinfo-primary", &DeleteParams::default()).await.unwrap();
    ship.api::<Service>("test").delete("podinfo-canary", &DeleteParams::default()).await.unwrap();
    ship.until_phase("podinfo", Phase::Initialized).await;
}

#[tokio::test(start_paused = true)]
async fn references_into_other_namespaces_can_be_refused() {
    let mut ship = Ship::launch().await;
    ship.configure(|config| config.no_cross_namespace_refs = true);
    ship.start_operator();
    ship.apply(CANARY).await;
    ship.sail(Duration::from_secs(60)).await;
    let status = ship.status("podinfo").await;
    let accepted = status.conditions.iter().find(|condition| condition.type_ == "Accepted").unwrap();
    assert_eq!(accepted.status, ConditionStatus::False);
    assert!(
        accepted.message.contains("error-rate.flagger-system, cross-namespace references are blocked"),
        "{accepted:?}"
    );
    assert_eq!(ship.replicas("podinfo").await, 2);
}

/// Objects of others that are wrong in the ways the corpus names; the canary works or says why, and users are served.
#[tokio::test(start_paused = true)]
async fn bad_objects_of_others_cause_no_outage() {
    use kube::api::{Api, Patch, PatchParams};
    use seaway_api::foreign::gateway::HttpRoute;
    let ship = Ship::launch_initialised().await;
    let users = Users::start(&ship.cluster, 10);
    let routes: Api<HttpRoute> = ship.api("test");
    let rule = |extra: Value| {
        let mut rule = json!({"backendRefs": [
            {"name": "podinfo-primary", "port": 9898}, {"name": "podinfo-canary", "port": 9898, "weight": 0},
        ]});
        rule.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        rule
    };
    let header = json!({"matches": [{"headers": [{"name": "x-team", "value": "shop"}]}]});
    for rules in [Value::Null, json!([rule(json!({}))]), json!([rule(json!({})), rule(header)])] {
        let patch = json!({"spec": {"rules": rules}});
        routes.patch("podinfo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        ship.sail(Duration::from_secs(10)).await;
        users.forget();
        ship.sail(Duration::from_secs(20)).await;
        assert_eq!(users.failures_of_ours("none"), 0, "{rules}: {:?}", users.seen());
    }
    let services: Api<k8s_openapi::api::core::v1::Service> = ship.api("test");
    let patch = json!({"spec": {"selector": null}});
    services.patch("podinfo-primary", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    ship.sail(Duration::from_secs(10)).await;
    users.forget();
    ship.sail(Duration::from_secs(20)).await;
    assert_eq!(users.failures_of_ours("none"), 0, "a Service without selector: {:?}", users.seen());
    ship.set_image("podinfo", "6.0.1").await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
}

/// A filter that somebody put into our rule and the gateway refuses stays: it is not ours. No weight moves while the route
/// is not accepted, an Event says so, and without the filter the rollout goes on.
#[tokio::test(start_paused = true)]
async fn an_unknown_filter_stays_and_is_explained() {
    use kube::api::{Api, Patch, PatchParams};
    use seaway_api::foreign::gateway::HttpRoute;
    let ship = Ship::launch_initialised().await;
    let _users = Users::start(&ship.cluster, 10);
    let routes: Api<HttpRoute> = ship.api("test");
    let edit = async |operations: Value| {
        let patch: json_patch::Patch = serde_json::from_value(operations).unwrap();
        routes.patch("podinfo", &PatchParams::default(), &Patch::Json::<()>(patch)).await.unwrap();
    };
    let odd = json!([{"type": "ExtensionRef", "extensionRef": {"group": "x.io", "kind": "Odd", "name": "odd"}}]);
    edit(json!([{"op": "add", "path": "/spec/rules/0/filters", "value": odd}])).await;
    ship.set_image("podinfo", "6.0.1").await;
    ship.sail(Duration::from_secs(300)).await;
    let route = serde_json::to_value(routes.get("podinfo").await.unwrap()).unwrap();
    assert_eq!(route["spec"]["rules"][0]["filters"], odd);
    assert_eq!(ship.weights("podinfo").await, (100, 0));
    let told = ship.transcript.events();
    assert!(told.iter().any(|text| text.contains("parent gateway is not ready")), "{told:#?}");
    edit(json!([{"op": "remove", "path": "/spec/rules/0/filters"}])).await;
    ship.until_phase("podinfo", Phase::Succeeded).await;
}
