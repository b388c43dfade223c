//! Controllers and pods, seen from outside: what a Deployment becomes, and what clients of its pods notice.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, ReplicaSet};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use seaway_drydock::pods::PodOptions;
use seaway_drydock::{Cluster, Options, Wire};

/// A cluster and the few things a test does to it.
struct Ground(Cluster);

impl Ground {
    async fn paused() -> Self {
        Self(Cluster::start(Options::paused()).await.unwrap())
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        Api::namespaced(self.0.client("test"), "default")
    }

    async fn create<K>(&self, object: Value) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + Serialize + DeserializeOwned,
    {
        let object = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap()
    }

    async fn patch<K>(&self, name: &str, patch: Value)
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// Looks at an object until it is as expected; simulated time passes in between.
    async fn until<K>(&self, name: &str, expected: &str, is_so: impl Fn(&K) -> bool) -> K
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned,
    {
        for _ in 0..6000 {
            if let Some(object) = self.api::<K>().get_opt(name).await.unwrap()
                && is_so(&object)
            {
                return object;
            }
            self.sleep(0.2).await;
        }
        let last = self.api::<K>().get_opt(name).await.unwrap();
        let pods = self.list::<Pod>().await;
        let pods: Vec<_> = pods.iter().map(|pod| (pod.name_any(), waiting(pod))).collect();
        panic!("{name} never was: {expected}\n{last:?}\npods and what they wait for: {pods:?}");
    }

    async fn until_rolled_out(&self, name: &str) -> Deployment {
        self.until(name, "rolled out", is_rolled_out).await
    }

    async fn sleep(&self, seconds: f64) {
        self.0.clock().sleep(Duration::from_secs_f64(seconds)).await;
    }

    async fn get(&self, address: SocketAddr, path: &str) -> Result<Response<Bytes>, Box<dyn std::error::Error>> {
        let stream = self.0.net().connect(address).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        let request = Request::get(path).header("host", "pod").body(Empty::<Bytes>::new())?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        Ok(Response::from_parts(head, body.collect().await?.to_bytes()))
    }

    async fn set_image(&self, name: &str, image: &str) {
        let containers = json!([{"name": "podinfod", "image": image}]);
        let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let api = self.api::<Deployment>();
        api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await.unwrap();
    }
}

fn podinfo(image: &str, replicas: i32) -> Value {
    json!({
        "metadata": {"name": "podinfo"},
        "spec": {
            "replicas": replicas,
            "minReadySeconds": 5,
            "progressDeadlineSeconds": 60,
            "revisionHistoryLimit": 2,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "selector": {"matchLabels": {"app": "podinfo"}},
            "template": {
                "metadata": {"labels": {"app": "podinfo"}},
                "spec": {"containers": [{
                    "name": "podinfod",
                    "image": image,
                    "ports": [{"name": "http", "containerPort": 9898}, {"name": "http-metrics", "containerPort": 9797}],
                    "env": [{"name": "PODINFO_UI_COLOR", "value": "#34577c"}],
                    "command": ["./podinfo", "--port=9898", "--port-metrics=9797"],
                    "readinessProbe": {
                        "exec": {"command": ["podcli", "check", "http", "localhost:9898/readyz"]},
                        "initialDelaySeconds": 5, "timeoutSeconds": 5,
                    },
                    "livenessProbe": {
                        "exec": {"command": ["podcli", "check", "http", "localhost:9898/healthz"]},
                        "initialDelaySeconds": 5, "timeoutSeconds": 5,
                    },
                }]},
            },
        },
    })
}

fn service() -> Value {
    json!({
        "metadata": {"name": "podinfo"},
        "spec": {"selector": {"app": "podinfo"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    })
}

fn is_rolled_out(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    deployment.status.as_ref().is_some_and(|status| {
        status.observed_generation == deployment.metadata.generation
            && status.updated_replicas == wanted
            && status.available_replicas == wanted
            && status.replicas == wanted
    })
}

fn condition(deployment: &Deployment, type_: &str) -> Option<DeploymentCondition> {
    let status = deployment.status.as_ref()?;
    status.conditions.iter().flatten().find(|condition| condition.type_ == type_).cloned()
}

fn reason(deployment: &Deployment, type_: &str) -> String {
    condition(deployment, type_).and_then(|condition| condition.reason).unwrap_or_default()
}

fn waiting(pod: &Pod) -> Option<String> {
    let container = pod.status.as_ref()?.container_statuses.as_ref()?.first()?.clone();
    container.state?.waiting?.reason
}

fn address(pod: &Pod) -> SocketAddr {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap();
    SocketAddr::new(ip.parse().unwrap(), 9898)
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_pods_that_answer() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("ghcr.io/stefanprodan/podinfo:6.0.0", 2)).await;
    let deployment = ground.until_rolled_out("podinfo").await;
    assert_eq!(deployment.annotations().get("deployment.kubernetes.io/revision").map(String::as_str), Some("1"));
    assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");
    assert_eq!(reason(&deployment, "Progressing"), "NewReplicaSetAvailable");

    let pods = ground.list::<Pod>().await;
    assert_eq!(pods.len(), 2);
    for pod in &pods {
        assert!(pod.labels().contains_key("pod-template-hash"));
        assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some("drydock"));
        let answer = ground.get(address(pod), "/").await.unwrap();
        assert_eq!(answer.headers()["x-podinfo-version"], "6.0.0");
        let body: Value = serde_json::from_slice(answer.body()).unwrap();
        assert_eq!((&body["hostname"], &body["version"]), (&json!(pod.name_any()), &json!("6.0.0")));
        assert_eq!(body["color"], "#34577c");
    }
    let metrics = SocketAddr::new(address(&pods[0]).ip(), 9797);
    let metrics = ground.get(metrics, "/metrics").await.unwrap();
    let text = String::from_utf8_lossy(metrics.body()).into_owned();
    assert!(
        text.contains("http_request_duration_seconds_count{method=\"GET\",path=\"root\",status=\"200\"} 1"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_asks_nothing() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 2)).await;
    ground.create::<Service>(service()).await;
    ground
        .create::<HorizontalPodAutoscaler>(json!({
            "metadata": {"name": "podinfo", "annotations": {"drydock.seaway.dev/cpu-utilization": "90"}},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
                "minReplicas": 2, "maxReplicas": 4,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 99}}}],
            },
        }))
        .await;
    ground.until_rolled_out("podinfo").await;
    ground.sleep(30.0).await;
    ground.0.api().log().clear();
    ground.sleep(600.0).await;
    let requests: Vec<_> =
        ground.0.api().log().snapshot().into_iter().filter(|request| request.verb != "watch").collect();
    assert!(requests.is_empty(), "{requests:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_rolling_update_keeps_enough_pods_answering() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 3)).await;
    ground.create::<Service>(service()).await;
    ground.until_rolled_out("podinfo").await;
    ground.set_image("podinfo", "podinfo:6.0.1").await;
    let mut versions = BTreeSet::new();
    loop {
        let slices = ground.list::<EndpointSlice>().await;
        let ready: Vec<_> = slices
            .iter()
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .filter(|endpoint| endpoint.conditions.as_ref().is_some_and(|conditions| conditions.ready == Some(true)))
            .map(|endpoint| endpoint.addresses[0].clone())
            .collect();
        assert!(ready.len() >= 2, "only {ready:?} are ready");
        for ip in ready {
            let answer = ground.get(SocketAddr::new(ip.parse().unwrap(), 9898), "/version").await.unwrap();
            versions.insert(answer.headers()["x-podinfo-version"].to_str().unwrap().to_owned());
        }
        let total = ground.list::<Pod>().await.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).count();
        assert!(total <= 4, "{total} pods are more than the surge allows");
        if is_rolled_out(&ground.api::<Deployment>().get("podinfo").await.unwrap()) {
            break;
        }
        ground.sleep(0.5).await;
    }
    assert_eq!(versions.into_iter().collect::<Vec<_>>(), ["6.0.0", "6.0.1"]);
    let deployment = ground.api::<Deployment>().get("podinfo").await.unwrap();
    assert_eq!(deployment.annotations()["deployment.kubernetes.io/revision"], "2");
    let mut sets: Vec<_> =
        ground.list::<ReplicaSet>().await.iter().map(|set| set.spec.as_ref().unwrap().replicas.unwrap()).collect();
    sets.sort_unstable();
    assert_eq!(sets, [0, 3]);
}

#[tokio::test(start_paused = true)]
async fn old_replica_sets_beyond_the_limit_are_deleted_and_a_template_that_comes_back_is_reused() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 1)).await;
    for version in ["6.0.1", "6.0.2", "6.0.3"] {
        ground.until_rolled_out("podinfo").await;
        ground.set_image("podinfo", &format!("podinfo:{version}")).await;
    }
    ground.until_rolled_out("podinfo").await;
    ground.sleep(10.0).await;
    assert_eq!(ground.list::<ReplicaSet>().await.len(), 3);
    ground.set_image("podinfo", "podinfo:6.0.2").await;
    let deployment = ground.until_rolled_out("podinfo").await;
    assert_eq!(deployment.annotations()["deployment.kubernetes.io/revision"], "5");
    assert_eq!(ground.list::<ReplicaSet>().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn recreate_never_runs_two_versions_at_once() {
    let ground = Ground::paused().await;
    let mut deployment = podinfo("podinfo:6.0.0", 2);
    deployment["spec"]["strategy"] = json!({"type": "Recreate"});
    ground.create::<Deployment>(deployment).await;
    ground.until_rolled_out("podinfo").await;
    ground.set_image("podinfo", "podinfo:6.0.1").await;
    loop {
        let images: BTreeSet<_> = ground
            .list::<Pod>()
            .await
            .iter()
            .map(|pod| pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap())
            .collect();
        assert!(images.len() <= 1, "{images:?} at once");
        if is_rolled_out(&ground.api::<Deployment>().get("podinfo").await.unwrap()) {
            break;
        }
        ground.sleep(0.3).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_never_gets_ready_exceeds_its_deadline_and_the_old_one_stays() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 2)).await;
    ground.until_rolled_out("podinfo").await;
    let begun = ground.0.clock().now();
    ground.set_image("podinfo", "podinfo:6.0.1-noready").await;
    let deployment = ground
        .until("podinfo", "timed out", |deployment: &Deployment| {
            reason(deployment, "Progressing") == "ProgressDeadlineExceeded"
        })
        .await;
    let took = ground.0.clock().now().duration_since(begun).as_secs();
    assert!((60..90).contains(&took), "after {took} s");
    let progressing = condition(&deployment, "Progressing").unwrap();
    assert_eq!(progressing.status, "False");
    assert!(progressing.message.unwrap().ends_with("has timed out progressing."));
    assert!(deployment.status.as_ref().unwrap().available_replicas.unwrap() >= 1);
    assert_eq!(reason(&deployment, "Available"), "MinimumReplicasAvailable");

    ground.set_image("podinfo", "podinfo:6.0.2").await;
    let deployment = ground.until_rolled_out("podinfo").await;
    assert_eq!(reason(&deployment, "Progressing"), "NewReplicaSetAvailable");
}

#[tokio::test(start_paused = true)]
async fn a_slow_start_delays_readiness() {
    let ground = Ground::paused().await;
    let begun = ground.0.clock().now();
    ground.create::<Deployment>(podinfo("podinfo:6.0.0-slowstart-40s", 1)).await;
    ground.until_rolled_out("podinfo").await;
    let took = ground.0.clock().now().duration_since(begun).as_secs();
    assert!((45..65).contains(&took), "after {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_is_restarted_ever_more_slowly() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0-crash", 1)).await;
    let restarts = |pod: &Pod| pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].restart_count;
    ground.sleep(5.0).await;
    let name = ground.list::<Pod>().await[0].name_any();
    let pod = ground.until(&name, "backing off", |pod: &Pod| waiting(pod).as_deref() == Some("CrashLoopBackOff")).await;
    assert_eq!(restarts(&pod), 1);
    let last = pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].last_state.clone().unwrap();
    assert_eq!(last.terminated.unwrap().exit_code, 1);
    let begun = ground.0.clock().now();
    ground.until(&name, "restarted 4 times", |pod: &Pod| restarts(pod) == 4).await;
    let took = ground.0.clock().now().duration_since(begun).as_secs();
    assert!((60..=75).contains(&took), "10 + 20 + 40 s, not {took} s");
}

#[tokio::test(start_paused = true)]
async fn a_container_that_panics_once_is_back_at_once() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 1)).await;
    ground.until_rolled_out("podinfo").await;
    let pod = ground.list::<Pod>().await.remove(0);
    // The answer may or may not make it out before the process is gone.
    let _ = ground.get(address(&pod), "/panic").await;
    let is_ready = |pod: &Pod| pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].ready;
    ground.until(&pod.name_any(), "not ready", |pod: &Pod| !is_ready(pod)).await;
    let pod = ground.until(&pod.name_any(), "ready again", is_ready).await;
    let container = pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].clone();
    assert_eq!(container.restart_count, 1);
    assert_eq!(container.last_state.unwrap().terminated.unwrap().exit_code, 255);
    assert_eq!(ground.get(address(&pod), "/").await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_image_cannot_be_pulled() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("nginx:1.29", 1)).await;
    ground.sleep(3.0).await;
    let name = ground.list::<Pod>().await[0].name_any();
    ground.until(&name, "not pulled", |pod: &Pod| waiting(pod).as_deref() == Some("ErrImagePull")).await;
    let pod = ground.until(&name, "given up", |pod: &Pod| waiting(pod).as_deref() == Some("ImagePullBackOff")).await;
    assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Pending"));
    ground.0.api().log().clear();
    ground.sleep(30.0).await;
    ground.api::<Deployment>().delete("podinfo", &DeleteParams::background()).await.unwrap();
    ground.sleep(5.0).await;
    assert!(ground.list::<Pod>().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_stops_answering_its_readiness_probe_leaves_the_endpoints() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 2)).await;
    ground.create::<Service>(service()).await;
    ground.until_rolled_out("podinfo").await;
    let pod = ground.list::<Pod>().await.remove(0);
    let stream = ground.0.net().connect(address(&pod)).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("/readyz/disable").body(Empty::<Bytes>::new()).unwrap();
    assert_eq!(sender.send_request(request).await.unwrap().status(), StatusCode::ACCEPTED);
    ground.sleep(40.0).await;
    let slice = ground.list::<EndpointSlice>().await.remove(0);
    let ready: Vec<_> = slice
        .endpoints
        .iter()
        .flatten()
        .map(|endpoint| (endpoint.addresses[0].clone(), endpoint.conditions.as_ref().unwrap().ready.unwrap()))
        .collect();
    assert_eq!(ready.len(), 2);
    for (ip, is_ready) in ready {
        assert_eq!(is_ready, ip != address(&pod).ip().to_string());
    }
    assert_eq!(slice.ports.unwrap()[0].port, Some(9898), "the named target port is resolved");
}

#[tokio::test(start_paused = true)]
async fn requests_in_flight_outlive_the_deletion_of_their_pod() {
    drain(Options::paused()).await;
}

#[tokio::test]
async fn requests_in_flight_outlive_the_deletion_of_their_pod_on_real_sockets() {
    let mut options = Options::scaled(jiff::Timestamp::UNIX_EPOCH, 10);
    // Two real seconds: a busy machine must get its looks in before the pod has left.
    options.pods = PodOptions { drain: Duration::from_secs(20), ..PodOptions::default() };
    assert_eq!(options.wire, Wire::Loopback);
    drain(options).await;
}

async fn drain(options: Options) {
    let ground = Ground(Cluster::start(options).await.unwrap());
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 1)).await;
    ground.create::<Service>(service()).await;
    ground.until_rolled_out("podinfo").await;
    let pod = ground.list::<Pod>().await.remove(0);
    let address = address(&pod);
    let slow = (0..5).map(|_| ground.get(address, "/delay/1"));
    let deletion = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        ground.api::<Pod>().delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
        let mut seen = None;
        for _ in 0..200 {
            let slices = ground.list::<EndpointSlice>().await;
            let mut endpoints = slices.iter().flat_map(|slice| slice.endpoints.iter().flatten());
            let leaving = endpoints.find(|endpoint| endpoint.addresses[0] == address.ip().to_string()).unwrap();
            let conditions = leaving.conditions.as_ref().unwrap();
            seen = Some((conditions.ready, conditions.terminating));
            if seen == Some((Some(false), Some(true))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(seen, Some((Some(false), Some(true))));
        // A client that has not heard of it yet is still served.
        assert_eq!(ground.get(address, "/").await.unwrap().status(), 200);
    };
    let (answers, ()) = futures::future::join(futures::future::join_all(slow), deletion).await;
    for answer in answers {
        assert_eq!(answer.unwrap().status(), 200);
    }
    for _ in 0..100 {
        if ground.api::<Pod>().get_opt(&pod.name_any()).await.unwrap().is_none() {
            assert!(ground.get(address, "/").await.is_err(), "nobody listens there any more");
            return;
        }
        ground.sleep(0.5).await;
    }
    panic!("the pod is still there");
}

#[tokio::test(start_paused = true)]
async fn an_autoscaler_keeps_its_bounds_follows_its_script_and_leaves_zero_alone() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.0", 1)).await;
    ground
        .create::<HorizontalPodAutoscaler>(json!({
            "metadata": {"name": "podinfo"},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
                "minReplicas": 2, "maxReplicas": 5,
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 100}}}],
            },
        }))
        .await;
    let size = |deployment: &Deployment| deployment.spec.as_ref().unwrap().replicas.unwrap();
    ground.until("podinfo", "at its minimum", |deployment: &Deployment| size(deployment) == 2).await;
    ground.sleep(60.0).await;
    assert_eq!(size(&ground.api::<Deployment>().get("podinfo").await.unwrap()), 2);

    let script = |value: &str| json!({"metadata": {"annotations": {"drydock.seaway.dev/cpu-utilization": value}}});
    ground.patch::<HorizontalPodAutoscaler>("podinfo", script("150")).await;
    ground.until("podinfo", "scaled up", |deployment: &Deployment| size(deployment) == 3).await;
    ground.until("podinfo", "at its maximum", |deployment: &Deployment| size(deployment) == 5).await;
    let begun = ground.0.clock().now();
    ground.patch::<HorizontalPodAutoscaler>("podinfo", script("10")).await;
    ground.until("podinfo", "at its minimum again", |deployment: &Deployment| size(deployment) == 2).await;
    let took = ground.0.clock().now().duration_since(begun).as_secs();
    assert!((295..330).contains(&took), "the window of 300 s is kept, it took {took} s");

    ground.patch::<Deployment>("podinfo", json!({"spec": {"replicas": 0}})).await;
    let active = |autoscaler: &HorizontalPodAutoscaler| {
        let conditions = autoscaler.status.as_ref()?.conditions.as_ref()?;
        conditions.iter().find(|condition| condition.type_ == "ScalingActive")?.reason.clone()
    };
    ground
        .until("podinfo", "disabled", |autoscaler: &HorizontalPodAutoscaler| {
            active(autoscaler).as_deref() == Some("ScalingDisabled")
        })
        .await;
    ground.sleep(60.0).await;
    assert_eq!(size(&ground.api::<Deployment>().get("podinfo").await.unwrap()), 0);
}

#[tokio::test(start_paused = true)]
async fn load_balancers_get_an_address_and_services_without_a_selector_are_left_alone() {
    let ground = Ground::paused().await;
    let mut balancer = service();
    balancer["spec"]["type"] = json!("LoadBalancer");
    ground.create::<Service>(balancer).await;
    ground.create::<Service>(json!({"metadata": {"name": "outside"}, "spec": {"ports": [{"port": 80}]}})).await;
    let service = ground
        .until("podinfo", "reachable", |service: &Service| {
            let balancer = service.status.as_ref().and_then(|status| status.load_balancer.as_ref());
            balancer.is_some_and(|balancer| balancer.ingress.is_some())
        })
        .await;
    let ingress = service.status.unwrap().load_balancer.unwrap().ingress.unwrap();
    assert_eq!(ingress[0].ip, service.spec.unwrap().cluster_ip);
    let owners: Vec<_> = ground.list::<EndpointSlice>().await;
    let owners: Vec<_> = owners.iter().map(|slice| slice.labels()["kubernetes.io/service-name"].clone()).collect();
    assert_eq!(owners, ["podinfo"]);
}

#[tokio::test(start_paused = true)]
async fn configuration_reaches_the_program_and_its_absence_is_shown() {
    let ground = Ground::paused().await;
    let mut deployment = podinfo("podinfo:6.0.0", 1);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["env"] =
        json!([{"name": "PODINFO_UI_COLOR", "valueFrom": {"configMapKeyRef": {"name": "look", "key": "color"}}}]);
    ground.create::<Deployment>(deployment).await;
    ground.sleep(3.0).await;
    let name = ground.list::<Pod>().await[0].name_any();
    ground
        .until(&name, "unconfigured", |pod: &Pod| waiting(pod).as_deref() == Some("CreateContainerConfigError"))
        .await;
    ground.create::<ConfigMap>(json!({"metadata": {"name": "look"}, "data": {"color": "#ff0000"}})).await;
    ground.until_rolled_out("podinfo").await;
    let pod = ground.list::<Pod>().await.remove(0);
    let body = ground.get(address(&pod), "/").await.unwrap().into_body();
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["color"], "#ff0000");
}

#[tokio::test(start_paused = true)]
async fn scripted_errors_are_marked_and_counted() {
    let ground = Ground::paused().await;
    ground.create::<Deployment>(podinfo("podinfo:6.0.2-err50", 1)).await;
    ground.until_rolled_out("podinfo").await;
    let pod = ground.list::<Pod>().await.remove(0);
    let mut failed = 0;
    for _ in 0..20 {
        let answer = ground.get(address(&pod), "/").await.unwrap();
        if answer.status() == StatusCode::INTERNAL_SERVER_ERROR {
            assert_eq!(answer.headers()["x-drydock-fault"], "error");
            assert_eq!(answer.headers()["x-podinfo-version"], "6.0.2-err50");
            failed += 1;
        }
    }
    assert_eq!(failed, 10);
    assert_eq!(ground.get(address(&pod), "/healthz").await.unwrap().status(), 200);
}

#[test]
fn two_runs_of_the_same_seed_are_the_same() {
    async fn story() -> Vec<String> {
        let ground = Ground::paused().await;
        ground.create::<Deployment>(podinfo("podinfo:6.0.0", 3)).await;
        ground.create::<Service>(service()).await;
        ground.until_rolled_out("podinfo").await;
        ground.set_image("podinfo", "podinfo:6.0.1-slowstart-20s").await;
        ground.until_rolled_out("podinfo").await;
        let requests = ground.0.api().log().snapshot();
        requests.iter().map(|request| format!("{request:?}")).collect()
    }
    // A runtime of its own for each: what a scheduler did before is part of its order.
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(story())
    };
    let (one, other) = (run(), run());
    for (position, (one, other)) in one.iter().zip(&other).enumerate() {
        assert_eq!(one, other, "request {position}");
    }
    assert_eq!(one.len(), other.len());
}
