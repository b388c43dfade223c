//! The one node of the cluster.
//!
//! It is created once and never renewed: there is no node controller that would miss a heartbeat, and a settled
//! cluster causes no request.

use k8s_openapi::api::core::v1::Node;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use crate::Clock;
use crate::controllers::stamp;

/// Name of the node.
pub const NODE: &str = "drydock";
/// Address of the node.
pub(super) const NODE_IP: &str = "10.244.0.1";

/// Makes sure the node is there and ready.
pub(super) async fn register(client: &Client, clock: &Clock) -> kube::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    let now = stamp(clock);
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "10000"});
    let status = json!({
        "capacity": resources,
        "allocatable": resources,
        "addresses": [{"type": "InternalIP", "address": NODE_IP}, {"type": "Hostname", "address": NODE}],
        "conditions": [{
            "type": "Ready", "status": "True", "reason": "KubeletReady",
            "message": "drydock is posting ready status",
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        }],
        "nodeInfo": {
            "architecture": "amd64", "bootID": "", "containerRuntimeVersion": "drydock://1", "kernelVersion": "",
            "kubeProxyVersion": "", "kubeletVersion": "v1.36.0", "machineID": "", "operatingSystem": "linux",
            "osImage": "drydock", "systemUUID": "",
        },
    });
    let node: Node = serde_json::from_value(json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux"}},
        "spec": {"podCIDR": "10.244.0.0/16", "podCIDRs": ["10.244.0.0/16"]},
        "status": status,
    }))
    .map_err(kube::Error::SerdeError)?;
    match nodes.create(&PostParams::default(), &node).await {
        Ok(_) => {}
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {}
        Err(error) => return Err(error),
    }
    // A server that takes status only through its sub-resource has dropped it above.
    let patch = Patch::Merge(json!({"status": status}));
    nodes.patch_status(NODE, &PatchParams::default(), &patch).await?;
    // And one with the usual admission took the node for one that is not ready yet; nobody else would tell it otherwise.
    let patch = Patch::Merge(json!({"spec": {"taints": null}}));
    nodes.patch(NODE, &PatchParams::default(), &patch).await?;
    Ok(())
}
