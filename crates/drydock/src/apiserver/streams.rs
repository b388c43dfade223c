//! Sub-resources of pods that are no objects but go on while somebody listens: `log`, `exec`, `attach`, `portforward`.
//!
//! Here the pod, its container and its node are found, with the refusals of a real server; `pod_log` and `pod_exec` do
//! the rest with the node's kubelet. `attach` is not offered, since no program here reads its input, nor is
//! `portforward`, since every port of a pod already is a port of this machine: the refusal says which.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use http::request::Parts;
use http::{Method, Response};
use hyper::upgrade::OnUpgrade;
use serde_json::Value;

use super::error::{ApiError, Result};
use super::kubelet::{ContainerName, Kubelet, Refusal};
use super::request::{Params, Target};
use super::server::{Server, failure};
use super::store::Key;
use super::{Body, meta};

/// Where kubelets listen.
const KUBELET_PORT: u16 = 10250;

/// The kubelets by node. They are held weakly: a node that nobody runs any more cannot be reached.
#[derive(Default)]
pub(crate) struct Kubelets(Mutex<BTreeMap<String, Weak<dyn Kubelet>>>);

impl Kubelets {
    /// Makes `kubelet` the one that answers for a node.
    pub(crate) fn register(&self, node: &str, kubelet: Weak<dyn Kubelet>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(node.to_owned(), kubelet);
    }

    fn find(&self, node: &str) -> Option<Arc<dyn Kubelet>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(node)?.upgrade()
    }
}

/// A sub-resource that is a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Streamed {
    Attach,
    Exec,
    Log,
    PortForward,
}

/// A container that is on a node.
pub(super) struct Located {
    pub(super) name: ContainerName,
    pub(super) kubelet: Arc<dyn Kubelet>,
}

impl Streamed {
    /// Whether a path names one.
    pub(crate) fn of(target: &Target) -> Option<Self> {
        if (target.group.as_str(), target.version.as_str(), target.plural.as_str()) != ("", "v1", "pods") {
            return None;
        }
        match target.subresource.as_str() {
            "attach" => Some(Self::Attach),
            "exec" => Some(Self::Exec),
            "log" => Some(Self::Log),
            "portforward" => Some(Self::PortForward),
            _ => None,
        }
    }

    /// The path at the kubelet.
    fn path(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::Exec => "exec",
            Self::Log => "containerLogs",
            Self::PortForward => "portForward",
        }
    }
}

impl Server {
    /// Answers a request for a stream. `upgrade` is there where the connection can become something else than HTTP.
    pub(crate) fn stream(
        &self,
        streamed: Streamed,
        target: &Target,
        head: &Parts,
        upgrade: Option<OnUpgrade>,
    ) -> Response<Body> {
        let answer = match (streamed, &head.method) {
            (Streamed::Log, &Method::GET) => self.pod_log(target, head),
            (Streamed::Exec, &Method::GET | &Method::POST) => self.pod_exec(target, head, upgrade),
            (Streamed::Attach, &Method::GET | &Method::POST) => self.attach(target, head),
            (Streamed::PortForward, &Method::GET | &Method::POST) => self.port_forward(target),
            _ => Err(ApiError::method_not_allowed()),
        };
        answer.unwrap_or_else(|error| failure(&error))
    }

    /// The pod a path names.
    fn pod(&self, target: &Target) -> Result<Arc<Value>> {
        let served = self.stored("pods").ok_or_else(ApiError::no_route)?;
        let namespace = target.namespace.clone().unwrap_or_default();
        let found = self.store.lock().get("pods", &Key { namespace, name: target.name.clone() }).cloned();
        found.ok_or_else(|| ApiError::not_found(&served.resource, &target.name))
    }

    /// The container a request means and the kubelet that runs it; `None` while the pod has no node.
    pub(super) fn locate(&self, streamed: Streamed, target: &Target, asked: &str) -> Result<Option<Located>> {
        let pod = self.pod(target)?;
        let name = ContainerName {
            namespace: meta::text(&pod, "/metadata/namespace").to_owned(),
            pod: target.name.clone(),
            container: container(&pod, &target.name, asked)?,
        };
        let node = meta::text(&pod, "/spec/nodeName");
        if node.is_empty() {
            return Ok(None);
        }
        let address = self.node_address(node)?;
        let kubelet = self.kubelets.find(node).ok_or_else(|| unreachable(streamed, &name, &address))?;
        Ok(Some(Located { name, kubelet }))
    }

    /// The address of a node.
    fn node_address(&self, name: &str) -> Result<String> {
        let served = self.stored("nodes").ok_or_else(ApiError::no_route)?;
        let key = Key { namespace: String::new(), name: name.to_owned() };
        let node = self.store.lock().get("nodes", &key).cloned();
        let node = node.ok_or_else(|| ApiError::not_found(&served.resource, name))?;
        let addresses = node.pointer("/status/addresses").and_then(Value::as_array);
        let internal = addresses.into_iter().flatten().find(|address| meta::text(address, "/type") == "InternalIP");
        Ok(internal.map_or(name, |address| meta::text(address, "/address")).to_owned())
    }

    fn attach(&self, target: &Target, head: &Parts) -> Result<Response<Body>> {
        let params = Params::parse(head.uri.query().unwrap_or_default());
        self.locate(Streamed::Attach, target, params.get("container"))?.ok_or_else(|| unassigned(&target.name))?;
        let why =
            "drydock does not offer attach: no program here reads its input; use kubectl logs -f, or kubectl exec";
        Err(ApiError::bad_request(why))
    }

    fn port_forward(&self, target: &Target) -> Result<Response<Body>> {
        let pod = self.pod(target)?;
        let node = meta::text(&pod, "/spec/nodeName");
        if node.is_empty() {
            return Err(unassigned(&target.name));
        }
        let namespace = target.namespace.as_deref().unwrap_or_default();
        let ports = self.kubelets.find(node).map(|kubelet| kubelet.ports(namespace, &target.name)).unwrap_or_default();
        let ports: Vec<_> = ports.iter().map(|(port, real)| format!("port {port} is at http://{real}")).collect();
        Err(ApiError::bad_request(if ports.is_empty() {
            format!("drydock does not offer port-forward, and pod {} listens on no port of this machine", target.name)
        } else {
            format!(
                "drydock does not offer port-forward, nor is it needed: the ports of pod {} are ports of this machine: {}",
                target.name,
                ports.join(", ")
            )
        }))
    }
}

/// The container that is asked for, or the only one.
fn container(pod: &Value, name: &str, asked: &str) -> Result<String> {
    let names = |list: &str| {
        let containers = pod.pointer(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        containers.iter().map(|container| meta::text(container, "/name")).collect::<Vec<_>>()
    };
    let main = names("/spec/containers");
    let all = [names("/spec/initContainers"), main.clone(), names("/spec/ephemeralContainers")].concat();
    match (asked, main.as_slice()) {
        ("", [only]) => Ok((*only).to_owned()),
        ("", []) => Err(ApiError::bad_request(format!("a container name must be specified for pod {name}"))),
        ("", _) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {name}, choose one of: [{}]",
            all.join(" ")
        ))),
        (asked, _) if all.contains(&asked) => Ok(asked.to_owned()),
        (asked, _) => Err(ApiError::bad_request(format!("container {asked} is not valid for pod {name}"))),
    }
}

/// The pod has no node yet.
pub(super) fn unassigned(pod: &str) -> ApiError {
    ApiError::bad_request(format!("pod {pod} does not have a host assigned"))
}

/// What a real server says when nobody answers at the node.
fn unreachable(streamed: Streamed, name: &ContainerName, address: &str) -> ApiError {
    let ContainerName { namespace, pod, container } = name;
    let refused = format!("dial tcp {address}:{KUBELET_PORT}: connect: connection refused");
    ApiError::of_node(
        500,
        match streamed {
            Streamed::Log => {
                let path = streamed.path();
                format!("Get \"https://{address}:{KUBELET_PORT}/{path}/{namespace}/{pod}/{container}\": {refused}")
            }
            _ => format!("error dialing backend: {refused}"),
        },
    )
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::BadRequest(message) => Self::of_node(400, message),
            Refusal::NotFound(message) => Self::of_node(404, message),
            Refusal::Failed(message) => Self::of_node(500, message),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_container_is_named_or_the_only_one() {
        let one = json!({"spec": {"containers": [{"name": "app"}], "initContainers": [{"name": "init"}]}});
        let two = json!({"spec": {"containers": [{"name": "app"}, {"name": "proxy"}]}});
        let message =
            |pod: &Value, asked: &str| container(pod, "p", asked).map_err(|error| error.to_status()["message"].clone());
        assert_eq!(message(&one, ""), Ok("app".into()));
        assert_eq!(message(&one, "init"), Ok("init".into()));
        assert_eq!(message(&two, "proxy"), Ok("proxy".into()));
        let choose = "a container name must be specified for pod p, choose one of: [app proxy]";
        assert_eq!(message(&two, ""), Err(choose.into()));
        assert_eq!(message(&one, "web"), Err("container web is not valid for pod p".into()));
    }
}
