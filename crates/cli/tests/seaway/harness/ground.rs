//! What scenarios stand on. A scenario that is written for any ground runs on drydock and on a real cluster.

use std::fmt::Debug;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Event;
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams};
use seaway_api::canary::{Canary, CanaryStatus, Phase};
use seaway_api::foreign::gateway::HttpRoute;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::Transcript;

/// A kind of objects that live in namespaces.
pub trait Namespaced:
    kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned
{
}

impl<K> Namespaced for K where
    K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + Debug + DeserializeOwned
{
}

/// A cluster with podinfo in the namespace `test`, or about to have it.
pub trait Ground {
    /// How often a scenario that waits looks, and how many times at most.
    const GLANCE: Duration = Duration::from_secs(1);
    const GLANCES: u32 = 7200;

    /// A client who may do everything.
    fn client(&self) -> Client;

    /// Every committed write that matters.
    fn transcript(&self) -> &Transcript;

    /// Lets the cluster's time pass.
    async fn sail(&self, duration: Duration);

    /// Applies manifests.
    async fn apply(&self, yaml: &str);

    fn api<K>(&self, namespace: &str) -> Api<K>
    where
        K: kube::Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client(), namespace)
    }

    /// The answer to a request that may be made again.
    async fn answer<T>(&self, request: impl AsyncFn() -> kube::Result<T>) -> kube::Result<T> {
        request().await
    }

    /// An object in the namespace `test`.
    async fn get<K: Namespaced>(&self, name: &str) -> K {
        let api = self.api::<K>("test");
        self.answer(async || api.get(name).await).await.unwrap()
    }

    async fn canary(&self, name: &str) -> Canary {
        self.get(name).await
    }

    async fn status(&self, name: &str) -> CanaryStatus {
        self.canary(name).await.status.unwrap_or_default()
    }

    async fn deployment(&self, name: &str) -> Deployment {
        self.get(name).await
    }

    async fn patch_canary(&self, name: &str, patch: Value) {
        let api: Api<Canary> = self.api("test");
        let patch = Patch::Merge(patch);
        self.answer(async || api.patch(name, &PatchParams::default(), &patch).await).await.unwrap();
    }

    /// As `kubectl set image deployment/NAME podinfod=IMAGE`.
    async fn set_image(&self, name: &str, tag: &str) {
        let api: Api<Deployment> = self.api("test");
        let image = format!("ghcr.io/stefanprodan/podinfo:{tag}");
        let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "podinfod", "image": image}]}}}});
        let patch = Patch::Strategic(patch);
        self.answer(async || api.patch(name, &PatchParams::default(), &patch).await).await.unwrap();
    }

    /// The image of a Deployment's first container.
    async fn image(&self, name: &str) -> String {
        let deployment = self.deployment(name).await;
        let image = deployment.spec.unwrap().template.spec.unwrap().containers[0].image.clone().unwrap();
        image.rsplit(':').next().unwrap().to_owned()
    }

    async fn replicas(&self, name: &str) -> i32 {
        self.deployment(name).await.spec.unwrap().replicas.unwrap_or(1)
    }

    /// Pods of a Deployment that are ready.
    async fn ready(&self, name: &str) -> i32 {
        self.deployment(name).await.status.and_then(|status| status.ready_replicas).unwrap_or(0)
    }

    /// Weights of primary and canary in the HTTPRoute of that name.
    async fn weights(&self, name: &str) -> (i64, i64) {
        let route: HttpRoute = self.get(name).await;
        let route = serde_json::to_value(route).unwrap();
        let refs = &route["spec"]["rules"][0]["backendRefs"];
        (refs[0]["weight"].as_i64().unwrap(), refs[1]["weight"].as_i64().unwrap())
    }

    async fn events(&self) -> Vec<Event> {
        let api: Api<Event> = self.api("test");
        api.list(&ListParams::default()).await.unwrap().items
    }

    /// Waits, in the cluster's time.
    async fn until(&self, what: &str, mut holds: impl AsyncFnMut(&Self) -> bool) {
        for _ in 0..Self::GLANCES {
            if holds(self).await {
                return;
            }
            self.sail(Self::GLANCE).await;
        }
        panic!("never: {what}\n{}", self.transcript());
    }

    async fn until_phase(&self, name: &str, phase: Phase) {
        self.until(&format!("{name} is {phase:?}"), async |ground| ground.status(name).await.phase == phase).await;
    }

    async fn until_weight(&self, name: &str, weight: i64) {
        let what = format!("{name} has weight {weight}");
        self.until(&what, async |ground| ground.status(name).await.canary_weight == weight).await;
    }
}
