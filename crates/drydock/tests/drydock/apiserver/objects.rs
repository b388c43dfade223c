//! Rules of single kinds that reach beyond one request: what is given out, and what is left behind.

use kube::Client;
use serde_json::{Value, json};

use super::{get, refused, send, send_json, server};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const SERVICES: &str = "/api/v1/namespaces/default/services";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const BOATS: &str = "/apis/seaway.dev/v1/namespaces/default/boats";

fn service(name: &str, kind: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name},
        "spec": {"type": kind, "selector": {"app": "a"}, "ports": [{"name": "http", "port": 80}]}})
}

async fn define(client: &Client, properties: &Value) {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "boats.seaway.dev"},
        "spec": {"group": "seaway.dev", "scope": "Namespaced", "names": {"kind": "Boat", "plural": "boats"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    send_json(client, "POST", DEFINITIONS, &definition).await.unwrap();
}

fn boat(name: &str, metadata: &Value) -> Value {
    let mut boat =
        json!({"apiVersion": "seaway.dev/v1", "kind": "Boat", "metadata": {"name": name}, "spec": {"oars": 2}});
    json_patch::merge(&mut boat["metadata"], metadata);
    boat
}

#[tokio::test]
async fn no_two_services_have_the_same_port_of_the_nodes() {
    let client = server().client("test");
    let port = |service: &Value| service["spec"]["ports"][0]["nodePort"].clone();
    let first = send_json(&client, "POST", SERVICES, &service("a", "NodePort")).await.unwrap();
    let second = send_json(&client, "POST", SERVICES, &service("b", "LoadBalancer")).await.unwrap();
    assert_eq!((port(&first), port(&second)), (json!(30000), json!(30001)));
    let mut third = service("c", "NodePort");
    third["spec"]["ports"][0]["nodePort"] = json!(30001);
    let why = refused(send_json(&client, "POST", SERVICES, &third).await).message;
    assert!(why.ends_with("spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated"), "{why}");
    let inner = json!({"spec": {"type": "ClusterIP"}}).to_string();
    let inner = send(&client, "PATCH", &format!("{SERVICES}/b"), MERGE, inner).await.unwrap();
    assert_eq!(port(&inner), Value::Null);
    send_json(&client, "POST", SERVICES, &third).await.unwrap();
}

#[tokio::test]
async fn objects_that_nobody_asked_for_are_there_again_when_their_resource_is() {
    let client = server().client("test");
    define(&client, &json!({"oars": {"type": "integer"}})).await;
    send_json(&client, "POST", BOATS, &boat("a", &json!({}))).await.unwrap();
    send(&client, "DELETE", DEFINITIONS, JSON, "").await.unwrap();
    assert_eq!(refused(send(&client, "GET", BOATS, JSON, "").await).code, 404);
    // They are read by the schema that is there by now.
    define(&client, &json!({"sails": {"type": "integer", "default": 1}})).await;
    let boats = get(&client, BOATS, JSON).await;
    assert_eq!(boats["items"][0]["spec"], json!({"sails": 1}));
    let place = format!("{BOATS}/a");
    let same = send(&client, "PATCH", &place, MERGE, "{}").await.unwrap();
    assert_ne!(same["metadata"]["resourceVersion"], boats["items"][0]["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn nothing_new_comes_of_a_resource_that_goes() {
    let client = server().client("test");
    define(&client, &json!({"oars": {"type": "integer"}})).await;
    send_json(&client, "POST", BOATS, &boat("a", &json!({"finalizers": ["seaway.dev/hold"]}))).await.unwrap();
    send(&client, "DELETE", &format!("{DEFINITIONS}/boats.seaway.dev"), JSON, "").await.unwrap();
    let why = refused(send_json(&client, "POST", BOATS, &boat("b", &json!({}))).await);
    let said =
        "boats.seaway.dev \"b\" is forbidden: create not allowed while custom resource definition is terminating";
    assert_eq!((why.code, why.message.as_str()), (403, said));
    send(&client, "PATCH", &format!("{BOATS}/a"), MERGE, json!({"metadata": {"finalizers": null}}).to_string())
        .await
        .unwrap();
    assert_eq!(refused(send_json(&client, "POST", BOATS, &boat("b", &json!({}))).await).code, 404);
}

#[tokio::test]
async fn a_patch_does_not_change_what_an_object_is() {
    let client = server().client("test");
    let configs = "/api/v1/namespaces/default/configmaps";
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    send_json(&client, "POST", configs, &config).await.unwrap();
    let (place, change) = (format!("{configs}/a"), json!({"kind": "Secret"}).to_string());
    let why = refused(send(&client, "PATCH", &place, MERGE, change.clone()).await);
    assert_eq!(why.code, 422);
    assert!(why.message.ends_with("converting (v1.Secret) to (core.ConfigMap): unknown conversion"), "{}", why.message);
    // Whoever patches strategically is not listened to.
    let strategic = "application/strategic-merge-patch+json";
    assert_eq!(send(&client, "PATCH", &place, strategic, change).await.unwrap()["kind"], "ConfigMap");
}
