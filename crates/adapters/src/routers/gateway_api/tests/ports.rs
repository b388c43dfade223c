//! By which port a route names the apex Service, and leads to it.

use super::*;
use crate::testing::documents;

/// A Service of the user's own with other ports than the Canary's, which `noted` says, and what the Canary made of it.
fn services(ports: &str, noted: &str, primary: &str) -> Vec<Value> {
    let original = json!({ "selector": { "app": "podinfo" }, "ports": document(noted), "annotations": {} });
    let mut services = documents(&format!(
        "
apiVersion: v1
kind: Service
metadata: {{name: podinfo, namespace: test, uid: apex, resourceVersion: '1', annotations: {{}}}}
spec: {{selector: {{app: podinfo-primary}}, ports: {ports}}}
---
apiVersion: v1
kind: Service
metadata: {{name: podinfo-primary, namespace: test, uid: primary, resourceVersion: '1'}}
spec: {{selector: {{app: podinfo-primary}}, ports: {primary}}}
"
    ));
    services[0]["metadata"]["annotations"]["flagger.kubernetes.io/original-configuration"] =
        original.to_string().into();
    services
}

const HTTP: &str = "[{name: http, protocol: TCP, port: 80, targetPort: 9898}]";

fn in_world(route: &Value, services: &[Value]) -> Objects {
    services.iter().chain([route]).cloned().collect()
}

/// The ports by which the route names the apex Service, with their weights.
fn ports(route: &Value) -> Vec<(i64, i64)> {
    let backends =
        list(route, "/spec/rules/1/backendRefs").iter().filter(|backend| text(backend, "/name") == "podinfo");
    backends.map(|backend| (number(backend, "/port").unwrap(), weight_of(backend))).collect()
}

fn announced_for(canary: &Canary, route: &Value, services: &[Value], next: Destination) -> Value {
    patched(route, &GatewayApi.announce(&Subject::of(canary), &in_world(route, services), next).unwrap())
}

/// Deleted, and led to the apex: the port by which it leads there.
fn led_to(canary: &Canary, services: &[Value]) -> Result<i64, String> {
    let route = document(SHARED);
    let world = in_world(&route, services);
    let changes = GatewayApi.lead_to_apex(&Subject::of(canary), &world).map_err(|refusal| refusal.text)?;
    Ok(ports(&patched(&route, &changes))[0].0)
}

#[test]
fn an_apex_that_is_named_by_another_port_is_announced_by_the_one_that_is_led_to() {
    let services = services(HTTP, "[{port: 9898, targetPort: 9898}]", HTTP);
    let before = with_the_apex_named();
    assert_eq!(ports(&before), [(80, 0)]);
    let reading = |route: &Value| read(&leaving(), &in_world(route, &services)).route.unwrap();
    assert!(!reading(&before).announced);
    let after = announced_for(&leaving(), &before, &services, Destination::Apex);
    assert_eq!(ports(&after), [(9898, 0)]);
    assert_eq!(shares(&after), shares(&before), "users notice nothing");
    assert!(reading(&after).announced);
    assert_eq!(announced_for(&leaving(), &after, &services, Destination::Apex), after, "once is enough");
    let led = GatewayApi.lead_to_apex(&Subject::of(&leaving()), &in_world(&after, &services)).unwrap();
    assert_eq!(ports(&patched(&after, &led)), [(9898, 100)], "the very port");
}

#[test]
fn users_are_led_where_they_were_served_whatever_the_spec_says_since() {
    let mut canary = leaving();
    canary.spec.service.as_mut().unwrap().target_port = serde_json::from_value(json!(9797)).unwrap();
    let own = "[{port: 8080, targetPort: 9898}, {port: 9797, targetPort: 9797}]";
    assert_eq!(led_to(&canary, &services(HTTP, own, HTTP)), Ok(8080));
    // Nothing tells any more where they were served.
    assert_eq!(led_to(&canary, &services(HTTP, own, "[]")), Ok(9797));
}

#[test]
fn a_route_leads_to_no_port_of_another_protocol() {
    let own = "[{port: 443, protocol: UDP, targetPort: 9898}, {port: 8080, protocol: TCP, targetPort: 9898}]";
    assert_eq!(led_to(&leaving(), &services(HTTP, own, HTTP)), Ok(8080));
    let own = "[{port: 80, protocol: UDP, targetPort: 9898}, {port: 8080, targetPort: 1}]";
    assert_eq!(led_to(&leaving(), &services(HTTP, own, HTTP)), Ok(8080), "its only one that counts");
}

#[test]
fn where_no_port_leads_there_people_hear_which_was_looked_for() {
    let own = "[{port: 1, targetPort: 1}, {port: 2, targetPort: 2}, {port: 3, protocol: UDP, targetPort: 9898}]";
    let refused =
        |canary: &Canary, own: &str, primary: &str| led_to(canary, &services(HTTP, own, primary)).unwrap_err();
    let told = [
        refused(&leaving(), own, HTTP),
        refused(&leaving(), "[{port: 3, protocol: UDP, targetPort: 9898}]", HTTP),
        refused(&leaving(), own, "[{port: 80, targetPort: web}]"),
        refused(
            &{
                let mut without = leaving();
                without.spec.service = None;
                without
            },
            own,
            "[]",
        ),
    ];
    insta::assert_yaml_snapshot!(told);
}

#[test]
fn while_our_services_are_announced_users_are_led_by_the_port_that_they_know() {
    let with_port = |port: i64| {
        let mut route = released();
        route["spec"]["rules"][1]["backendRefs"][0]["port"] = port.into();
        route
    };
    let own = "[{port: 8080, targetPort: 9898}, {port: 9797, targetPort: 9797}]";
    let services = services(own, "[]", HTTP);
    let after = announced_for(
        &canary_with("service: { targetPort: 9797 }"),
        &with_port(8080),
        &services,
        Destination::Variants,
    );
    assert_eq!(ports(&after), [(8080, 100)]);
    let after = announced_for(&Canary::test(), &with_port(7), &services, Destination::Variants);
    assert_eq!(ports(&after), [(8080, 100)], "that one is not there");
}

#[test]
fn an_apex_stays_named_by_a_port_that_it_has() {
    let released = released();
    let own = services("[{port: 8080, targetPort: 9898}, {port: 9797, targetPort: 9797}]", "[]", HTTP);
    let taken = |services: &[Value], route: &Value| {
        let world = in_world(route, services);
        patched(route, &write(&Canary::test(), &world, Split::primary_only()))
    };
    let is_right =
        |services: &[Value], route: &Value| self::route(&read(&Canary::test(), &in_world(route, services))).shape_ok;
    let before = taken(&own, &released);
    assert_eq!(ports(&before), [(8080, 0)]);
    assert!(is_right(&own, &before));
    // Its ports become those of the spec.
    let services = services(HTTP, "[]", HTTP);
    assert!(!is_right(&services, &before));
    let after = taken(&services, &before);
    assert_eq!(ports(&after), [(80, 0)]);
    assert!(is_right(&services, &after));
}
