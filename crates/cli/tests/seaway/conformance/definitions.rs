//! Definitions of custom resources: what they say comes true by and by on a real server, and a script waits for it.
//!
//! Names are accepted, the resource is established, discovery shows it and handlers take up a new schema, each in a task of
//! its own. Between two requests of a script all of that comes to rest, on both servers, and how long it takes is not
//! compared.

use std::collections::BTreeSet;
use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::{Value, json};

use super::script::{Memory, Step};

/// Where definitions are.
pub const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Kept on a definition by the server until nothing of the resource is left.
const CLEANUP: &str = "customresourcecleanup.apiextensions.k8s.io";

/// How often and how many times a server is asked whether it has come to rest.
const PAUSE: Duration = Duration::from_millis(10);
const PATIENCE: usize = 500;

/// How long the handlers of a real server may take to serve what a definition says, which nothing shows.
const HANDLERS: Duration = Duration::from_millis(120);

/// The definitions that a script has written.
#[derive(Default)]
pub struct Definitions(BTreeSet<String>);

impl Definitions {
    /// Waits for what follows from a request, if it is one about a definition. Watches that begin at no version in
    /// particular begin with what came of it then: a real server remembers nothing from before.
    pub async fn follow(&mut self, client: &Client, step: &Step, memory: &mut Memory, answer: &Value) {
        let path = memory.fill(&step.path);
        let Some(rest) = path.strip_prefix(DEFINITIONS) else { return };
        let refused = answer["kind"] == "Status" && answer["status"] == "Failure";
        if step.method == "GET" || refused || path.contains("dryRun") {
            return;
        }
        let named = rest.trim_start_matches('/').split(['/', '?']).next().unwrap_or_default();
        let shown = answer.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        for name in [named, shown].into_iter().filter(|name| !name.is_empty()) {
            self.0.insert(name.to_owned());
        }
        for name in &self.0 {
            let changed = text(answer, "/kind").starts_with("CustomResourceDefinition");
            let version = rest_of(client, name, changed).await;
            memory.version = version.unwrap_or_else(|| memory.version.clone());
        }
    }

    /// Takes away what the script left behind, so that the next ones find a server as light as this one did.
    pub async fn clear(&self, client: &Client) {
        for name in &self.0 {
            let place = format!("{DEFINITIONS}/{name}");
            let Some(definition) = get(client, &place).await else { continue };
            for version in served(&definition) {
                let group = text(&definition, "/spec/group");
                let place = format!("/apis/{group}/{version}/{}", text(&definition, "/spec/names/plural"));
                let list = get(client, &place).await.unwrap_or_default();
                for object in list["items"].as_array().into_iter().flatten() {
                    let namespace = text(object, "/metadata/namespace");
                    let inside = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
                    let plural = text(&definition, "/spec/names/plural");
                    release(
                        client,
                        &format!("/apis/{group}/{version}/{inside}{plural}/{}", text(object, "/metadata/name")),
                    )
                    .await;
                }
            }
            release(client, &place).await;
            let _ = client.request::<Value>(Request::delete(place).body(Vec::new()).unwrap()).await;
        }
    }
}

/// Takes the finalizers of an object away, but for the server's own.
async fn release(client: &Client, place: &str) {
    let Some(object) = get(client, place).await else { return };
    let held = object.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
    let own: Vec<_> = held.iter().filter(|name| *name == CLEANUP).collect();
    if own.len() != held.len() {
        let patch = json!({"metadata": {"finalizers": own}}).to_string().into_bytes();
        let request = Request::patch(place).header("content-type", "application/merge-patch+json").body(patch).unwrap();
        let _ = client.request::<Value>(request).await;
    }
}

/// Waits until a definition is in force, refused for good, or gone. Says in which version its objects can be listed.
async fn rest_of(client: &Client, name: &str, changed: bool) -> Option<String> {
    let mut version = None;
    for _ in 0..PATIENCE {
        let Some(definition) = get(client, &format!("{DEFINITIONS}/{name}")).await else { break };
        if is_held(client, &definition).await {
            break;
        }
        if is_at_rest(&definition) && is_offered(client, &definition).await {
            version = listed_at(client, &definition).await;
            break;
        }
        tokio::time::sleep(PAUSE).await;
    }
    if changed {
        tokio::time::sleep(HANDLERS).await;
    }
    version
}

/// The version of a list of objects, which a real server can make only when their storage is ready.
async fn listed_at(client: &Client, definition: &Value) -> Option<String> {
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    let list = get(client, &format!("/apis/{group}/{}/{plural}", served(definition).first()?)).await?;
    Some(text(&list, "/metadata/resourceVersion").to_owned())
}

/// Whether a definition that goes waits for objects which somebody else must let go.
async fn is_held(client: &Client, definition: &Value) -> bool {
    if definition.pointer("/metadata/deletionTimestamp").is_none() {
        return false;
    }
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    let Some(version) = served(definition).into_iter().next() else { return false };
    let list = get(client, &format!("/apis/{group}/{version}/{plural}")).await.unwrap_or_default();
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    let waits = |object: &Value| object.pointer("/metadata/deletionTimestamp").is_some();
    !items.is_empty() && items.iter().all(waits)
}

fn is_at_rest(definition: &Value) -> bool {
    let held = definition.pointer("/metadata/finalizers").and_then(Value::as_array);
    if definition.pointer("/metadata/deletionTimestamp").is_some() {
        return !held.is_some_and(|held| held.iter().any(|name| name == CLEANUP));
    }
    let condition = |kind: &str| {
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let found = conditions.into_iter().flatten().find(|condition| condition["type"] == kind);
        found.map_or("", |condition| text(condition, "/status")).to_owned()
    };
    match condition("NamesAccepted").as_str() {
        "True" => {
            condition("Established") == "True" && definition["status"]["acceptedNames"] == definition["spec"]["names"]
        }
        "False" => true,
        _ => false,
    }
}

/// Whether discovery shows a resource in all versions that are served, and in no others.
async fn is_offered(client: &Client, definition: &Value) -> bool {
    let deleting = definition.pointer("/metadata/deletionTimestamp").is_some();
    let conditions = definition["status"]["conditions"].as_array();
    let established =
        conditions.into_iter().flatten().any(|known| known["type"] == "Established" && known["status"] == "True");
    let (group, plural) = (text(definition, "/spec/group"), text(definition, "/spec/names/plural"));
    for version in served(definition) {
        let found = get(client, &format!("/apis/{group}/{version}")).await.unwrap_or_default();
        let shown = found["resources"].as_array().into_iter().flatten().any(|known| known["name"] == plural);
        if shown != established && !deleting {
            return false;
        }
    }
    true
}

fn served(definition: &Value) -> Vec<String> {
    let versions = definition.pointer("/spec/versions").and_then(Value::as_array).into_iter().flatten();
    versions.filter(|version| version["served"] == true).map(|version| text(version, "/name").to_owned()).collect()
}

async fn get(client: &Client, place: &str) -> Option<Value> {
    client.request(Request::get(place).body(Vec::new()).unwrap()).await.ok()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
