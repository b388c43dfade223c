//! What stands around the operator's pods: a PodDisruptionBudget, a NetworkPolicy, a Service, monitors. Each must mean these
//! pods, all of them and nobody else's, and what is served there.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client as Web;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt as _;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::core::Selector;
use seaway_operator::Config;
use serde_json::{Value, json};

use super::cluster::RealCluster;
use super::rendered::Rendered;
use crate::harness::{Ground, Namespaced};

/// An operator, its pods, and the namespace they are in.
pub struct Companions<'a> {
    pub cluster: &'a RealCluster,
    pub namespace: &'a str,
    /// What the chart calls all that it makes.
    pub name: &'a str,
    pub pods: Vec<Pod>,
    /// Where the Prometheus operator looks for monitors.
    pub monitors: &'a str,
}

impl Companions<'_> {
    /// Each of them means what it should.
    pub async fn must_fit(&self) {
        self.invite_strangers().await;
        self.budget().await;
        self.policy().await;
        self.service_monitor().await;
        self.pod_monitor().await;
        self.annotations().await;
    }

    /// Pods and Services that are the operator's but for one label: of another release, or another part of this one.
    async fn invite_strangers(&self) {
        let deployment = self.cluster.api::<Deployment>(self.namespace).get(self.name).await.unwrap();
        let labels = deployment.spec.unwrap().selector.match_labels.unwrap();
        for (number, label) in labels.keys().enumerate() {
            let mut labels = labels.clone();
            labels.insert(label.clone(), "another".to_owned());
            let metadata = json!({"name": format!("stranger-{number}"), "namespace": self.namespace, "labels": labels});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {
                "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                "containers": [{
                    "name": "app",
                    "image": "ghcr.io/stefanprodan/podinfo:6.0.0",
                    "ports": [{"name": "http", "containerPort": 9898}],
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
            }});
            let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {
                "selector": labels,
                "ports": [{"name": "http", "port": 9898}],
            }});
            self.cluster.apply(&format!("{pod}\n---\n{service}")).await;
        }
    }

    /// What the server finds by a selector.
    async fn selected<K: Namespaced>(&self, selector: LabelSelector) -> BTreeSet<String> {
        let parameters = ListParams::default().labels_from(&Selector::try_from(selector).unwrap());
        self.cluster.api::<K>(self.namespace).list(&parameters).await.unwrap().iter().map(K::name_any).collect()
    }

    async fn must_select_the_pods(&self, selector: LabelSelector, who: &str) {
        let pods: BTreeSet<_> = self.pods.iter().map(Pod::name_any).collect();
        assert_eq!(self.selected::<Pod>(selector).await, pods, "whom the {who} selects");
    }

    /// The disruption controller counts the pods, and lets one of two go.
    async fn budget(&self) {
        let budgets: Api<PodDisruptionBudget> = self.cluster.api(self.namespace);
        let budget = budgets.get(self.name).await.unwrap();
        self.must_select_the_pods(budget.spec.unwrap().selector.unwrap(), "PodDisruptionBudget").await;
        let all = i32::try_from(self.pods.len()).unwrap();
        let counted = async |_: &RealCluster| {
            let status = budgets.get(self.name).await.unwrap().status.unwrap_or_default();
            (status.expected_pods, status.current_healthy, status.disruptions_allowed)
                == (Some(all), Some(all), Some(all - 1))
        };
        self.cluster.until("the PodDisruptionBudget counts the operator's pods", counted).await;
    }

    /// What is served can be reached, and nothing else; where the operator goes is free.
    async fn policy(&self) {
        let policy = self.cluster.api::<NetworkPolicy>(self.namespace).get(self.name).await.unwrap().spec.unwrap();
        self.must_select_the_pods(policy.pod_selector.unwrap_or_default(), "NetworkPolicy").await;
        assert_eq!(policy.policy_types.unwrap(), ["Ingress"], "DNS, the API server and Prometheus must be reached");
        let rules = policy.ingress.unwrap_or_default();
        assert!(rules.iter().all(|rule| rule.from.is_none()), "whoever scrapes or probes: {rules:?}");
        let page = Config::default().port.unwrap();
        for pod in &self.pods {
            let allowed = rules.iter().flat_map(|rule| rule.ports.as_ref().expect("not every port"));
            let allowed: Vec<_> = allowed
                .map(|allowed| {
                    assert_eq!((allowed.protocol.as_deref().unwrap_or("TCP"), allowed.end_port), ("TCP", None));
                    port(pod, allowed.port.as_ref().expect("not every port"))
                })
                .collect();
            assert_eq!(allowed, [i32::from(page)], "what the NetworkPolicy lets in");
        }
    }

    /// Its selector leads to the Service, the Service to the pods, and its port and path to their counters.
    async fn service_monitor(&self) {
        let (selector, endpoint) = self.monitor("ServiceMonitor", "endpoints").await;
        assert_eq!(self.selected::<Service>(selector).await, [self.name.to_owned()].into(), "what the monitor selects");
        let parameters = ListParams::default().labels(&format!("kubernetes.io/service-name={}", self.name));
        let wanted: BTreeSet<_> = self.pods.iter().map(address).collect();
        let slices: Api<EndpointSlice> = self.cluster.api(self.namespace);
        let mut ports = BTreeMap::new();
        let leads_there = async |_: &RealCluster| {
            let slices = slices.list(&parameters).await.unwrap().items;
            for slice in &slices {
                let named = slice.ports.iter().flatten().filter_map(|port| Some((port.name.clone()?, port.port?)));
                ports.extend(named);
            }
            let endpoints = slices.into_iter().flat_map(|slice| slice.endpoints.unwrap_or_default());
            let found: BTreeSet<_> = endpoints.flat_map(|endpoint| endpoint.addresses).collect();
            found == wanted
        };
        self.cluster.until("the Service leads to the operator's pods", leads_there).await;
        let name = endpoint["port"].as_str().unwrap();
        let port = ports.get(name).unwrap_or_else(|| panic!("the Service has no port {name}, only {ports:?}"));
        for pod in &self.pods {
            must_show_counters(pod, *port, &endpoint["path"]).await;
        }
    }

    /// The same without a Service.
    async fn pod_monitor(&self) {
        let (selector, endpoint) = self.monitor("PodMonitor", "podMetricsEndpoints").await;
        self.must_select_the_pods(selector, "PodMonitor").await;
        for pod in &self.pods {
            let name = IntOrString::String(endpoint["port"].as_str().unwrap().to_owned());
            must_show_counters(pod, port(pod, &name), &endpoint["path"]).await;
        }
    }

    /// What a monitor selects, and the one place where it asks. It looks for it in the operator's namespace, not in its own.
    async fn monitor(&self, kind: &str, endpoints: &str) -> (LabelSelector, Value) {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("monitoring.coreos.com", "v1", kind));
        let monitors: Api<DynamicObject> = Api::namespaced_with(self.cluster.client(), self.monitors, &kind);
        let spec = monitors.get(self.name).await.unwrap().data["spec"].clone();
        assert_eq!(spec["namespaceSelector"], json!({"matchNames": [self.namespace]}));
        let [endpoint] = spec[endpoints].as_array().unwrap().as_slice() else { panic!("one place: {spec}") };
        (serde_json::from_value(spec["selector"].clone()).unwrap(), endpoint.clone())
    }

    /// For a Prometheus that goes by them.
    async fn annotations(&self) {
        for pod in &self.pods {
            let says = |name: &str| pod.annotations()[&format!("prometheus.io/{name}")].clone();
            assert_eq!(says("scrape"), "true");
            must_show_counters(pod, says("port").parse().unwrap(), &json!("/metrics")).await;
        }
    }
}

/// A port of a pod, by its name or as it is.
fn port(pod: &Pod, meant: &IntOrString) -> i32 {
    let ports = || pod.spec.as_ref().unwrap().containers.iter().flat_map(|container| container.ports.iter().flatten());
    match meant {
        IntOrString::Int(number) => *number,
        IntOrString::String(name) => {
            let found = ports().find(|port| port.name.as_deref() == Some(name));
            found.unwrap_or_else(|| panic!("no port of the pod is called {name}")).container_port
        }
    }
}

fn address(pod: &Pod) -> String {
    pod.status.as_ref().unwrap().pod_ip.clone().unwrap()
}

/// What Prometheus finds there is what the operator counts.
async fn must_show_counters(pod: &Pod, port: i32, path: &Value) {
    let url = format!("http://{}:{port}{}", address(pod), path.as_str().unwrap());
    let web = Web::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = web.get(url.parse().unwrap()).await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let (head, body) = answer.into_parts();
    let text = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
    let media = head.headers.get("content-type").map_or("", |media| media.to_str().unwrap());
    let is_read = ["text/plain", "application/openmetrics-text"].iter().any(|known| media.starts_with(known));
    assert!(head.status == 200 && is_read, "{url}: {} with {media:?}", head.status);
    assert!(text.lines().any(|line| line.starts_with("flagger_info{")), "{url}: {text}");
}

/// Rules of the user's, for what goes in and out, are in the NetworkPolicy as they were written.
pub fn must_let_through_what_is_asked_for() {
    let egress = json!([{"ports": [{"port": 53, "protocol": "UDP"}]}]);
    let from = json!([{"podSelector": {"matchLabels": {"app": "prometheus"}}}]);
    let given = [
        "networkPolicy.enabled=true",
        "networkPolicy.egress[0].ports[0].port=53",
        "networkPolicy.egress[0].ports[0].protocol=UDP",
        "networkPolicy.ingressFrom[0].podSelector.matchLabels.app=prometheus",
    ];
    let objects = Rendered::with(&given).0;
    let policy = &objects.iter().find(|object| object["kind"] == "NetworkPolicy").unwrap()["spec"];
    assert_eq!(policy["policyTypes"], json!(["Ingress", "Egress"]));
    assert_eq!((&policy["egress"], &policy["ingress"][0]["from"]), (&egress, &from));
}
