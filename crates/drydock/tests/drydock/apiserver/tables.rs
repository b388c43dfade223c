//! The generated schema tables, and the tables kubectl prints.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::PostParams;

use serde_json::{Value, json};

use super::{deployment, get, send, send_json, server};

/// What kubectl asks for.
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

#[tokio::test(start_paused = true)]
async fn kubectl_gets_rows_and_columns() {
    let client = server().client("test");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(125)).await;
    let table = get(&client, "/apis/apps/v1/namespaces/default/deployments", TABLE).await;
    assert_eq!(table["kind"], "Table");
    assert_eq!(rows(&table, 0), "Name Ready Up-to-date Available Age|podinfo 0/1 0 0 2m5s");
    assert_eq!(
        table["columnDefinitions"][5],
        json!({"name": "Containers", "type": "string", "format": "", "description": "", "priority": 1})
    );
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let table = get(&client, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", TABLE).await;
    assert_eq!(table["rows"].as_array().unwrap().len(), 4);
}

/// Titles and cells up to a priority, a line per row.
fn rows(table: &Value, priority: u64) -> String {
    let titles = table["columnDefinitions"].as_array().unwrap();
    let shown: Vec<bool> = titles.iter().map(|title| title["priority"].as_u64().unwrap() <= priority).collect();
    let line = |cells: Vec<&Value>| {
        assert_eq!(cells.len(), shown.len());
        let cells = cells.iter().zip(&shown).filter(|(_, shown)| **shown);
        let texts = cells.map(|(cell, _)| cell.as_str().map_or_else(|| cell.to_string(), str::to_owned));
        texts.collect::<Vec<_>>().join(" ")
    };
    let mut lines = vec![line(titles.iter().map(|title| &title["name"]).collect())];
    lines.extend(
        table["rows"].as_array().unwrap().iter().map(|row| line(row["cells"].as_array().unwrap().iter().collect())),
    );
    lines.join("|")
}

#[tokio::test(start_paused = true)]
async fn every_kind_has_the_columns_of_a_real_server() {
    let client = server().client("test");
    let container = json!({"name": "main", "image": "podinfo:1"});
    let template = json!({"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}});
    let up = json!({"name": "main", "image": "", "imageID": "", "restartCount": 2, "ready": true,
        "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 1, "finishedAt": "2025-12-31T23:59:00Z"}}});
    let waiting = json!({"name": "main", "image": "", "imageID": "", "restartCount": 0, "ready": false,
        "state": {"waiting": {"reason": "ErrImagePull"}}});
    let cpu = json!({"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}});
    let api = "/api/v1/namespaces/default";
    let apps = "/apis/apps/v1/namespaces/default";
    for (path, mut object, priority, expected) in [
        (
            format!("{apps}/replicasets"),
            json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "a"}}, "template": template}, "status": {"replicas": 2}}),
            1,
            "Name Desired Current Ready Age Containers Images Selector|a 2 2 0 0s main podinfo:1 app=a",
        ),
        (
            format!("{api}/pods"),
            json!({"spec": {"nodeName": "deck", "containers": [container]},
                "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [up]}}),
            1,
            "Name Ready Status Restarts Age IP Node Nominated Node Readiness Gates|a 1/1 Running 2 (60s ago) 0s 10.0.0.1 deck <none> <none>",
        ),
        (
            format!("{api}/pods"),
            json!({"metadata": {"name": "b"}, "spec": {"containers": [container]},
                "status": {"phase": "Pending", "containerStatuses": [waiting]}}),
            0,
            "Name Ready Status Restarts Age|a 1/1 Running 2 (60s ago) 0s|b 0/1 ErrImagePull 0 0s",
        ),
        (
            format!("{api}/services"),
            json!({"spec": {"type": "NodePort", "ports": [{"name": "a", "port": 80}, {"name": "b", "port": 81, "nodePort": 30001}], "selector": {"app": "a"}}}),
            1,
            "Name Type Cluster-IP External-IP Port(s) Age Selector|a NodePort 10.96.0.2 <none> 80:30000/TCP,81:30001/TCP 0s app=a",
        ),
        (
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers".to_owned(),
            json!({"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"}, "maxReplicas": 4, "metrics": [cpu]}}),
            0,
            "Name Reference Targets MinPods MaxPods Replicas Age|a Deployment/podinfo cpu: <unknown>/80% 1 4 0 0s",
        ),
        (
            "/api/v1/nodes".to_owned(),
            json!({"metadata": {"labels": {"node-role.kubernetes.io/worker": ""}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "nodeInfo": node_info(),
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.9"}]}}),
            1,
            "Name Status Roles Age Version Internal-IP External-IP OS-Image Kernel-Version Container-Runtime|\
             a Ready worker 0s v1.36.3 10.0.0.9 <none> v1.36.3 v1.36.3 (v1.36.3) v1.36.3",
        ),
        (
            format!("{api}/events"),
            json!({"involvedObject": {"kind": "Canary", "name": "podinfo", "namespace": "default"}, "type": "Normal",
                "reason": "Synced", "message": "New revision", "lastTimestamp": "2025-12-31T23:58:00Z",
                "firstTimestamp": "2025-12-31T23:57:00Z", "source": {"component": "seaway", "host": "deck"}}),
            1,
            "Last Seen Type Reason Object Subobject Source Message First Seen Count Name|\
             2m Normal Synced canary/podinfo  seaway, deck New revision 3m 1 a",
        ),
        (
            "/apis/networking.k8s.io/v1/namespaces/default/ingresses".to_owned(),
            json!({"spec": {"ingressClassName": "nginx", "rules": [{"host": "a.b"}], "tls": [{"hosts": ["a.b"]}]}}),
            0,
            "Name Class Hosts Address Ports Age|a nginx a.b  80, 443 0s",
        ),
        (
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices".to_owned(),
            json!({"addressType": "IPv4", "ports": [{"name": "http", "port": 80}], "endpoints": [
                {"addresses": ["10.0.0.1"]}, {"addresses": ["10.0.0.2"]}, {"addresses": ["10.0.0.3"]}, {"addresses": ["10.0.0.4"]},
            ]}),
            0,
            "Name AddressType Ports Endpoints Age|a IPv4 80 10.0.0.1,10.0.0.2,10.0.0.3 + 1 more... 0s",
        ),
        (
            "/apis/apps/v1/namespaces/default/controllerrevisions".to_owned(),
            json!({"revision": 4, "data": {}}),
            0,
            "Name Controller Revision Age|a <none> 4 0s",
        ),
        (
            "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings".to_owned(),
            json!({"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [
                {"kind": "User", "name": "ann"}, {"kind": "ServiceAccount", "name": "robot", "namespace": "default"},
            ]}),
            1,
            "Name Role Age Users Groups ServiceAccounts|a Role/r 0s ann  default/robot",
        ),
        (
            format!("{api}/configmaps"),
            json!({"data": {"x": "1"}, "binaryData": {"y": "MQ=="}}),
            0,
            "Name Data Age|a 2 0s",
        ),
        (format!("{api}/secrets"), json!({"data": {"x": "MQ=="}}), 0, "Name Type Data Age|a Opaque 1 0s"),
    ] {
        if object["metadata"]["name"].is_null() {
            object["metadata"]["name"] = json!("a");
        }
        let status = object["status"].clone();
        let made = send_json(&client, "POST", &path, &object).await.unwrap();
        if !status.is_null() {
            let place = format!("{path}/{}/status", made["metadata"]["name"].as_str().unwrap());
            let patch = json!({"status": status}).to_string();
            send(&client, "PATCH", &place, "application/merge-patch+json", patch).await.unwrap();
        }
        assert_eq!(rows(&get(&client, &path, TABLE).await, priority), expected, "{path}");
    }
}

fn node_info() -> Value {
    let fields = [
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    ];
    fields.iter().map(|field| ((*field).to_owned(), json!("v1.36.3"))).collect::<serde_json::Map<_, _>>().into()
}

/// Says so past the test harness, which keeps what a passing test prints to itself.
fn skipped(why: &str) {
    let test = "apiserver::tables::the_schema_tables_are_what_the_generator_makes";
    let _ = writeln!(std::io::stderr(), "skipped: {test}: {why}");
}

#[test]
fn the_schema_tables_are_what_the_generator_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = root.join("../../tools/schemas");
    if Command::new("go").arg("version").output().is_err() {
        skipped("Go is not installed, so the tables cannot be made again");
        return;
    }
    let fresh = tempfile::tempdir().unwrap();
    let made = Command::new("go").args(["run", ".", "-out"]).arg(fresh.path()).current_dir(folder).output().unwrap();
    let complaint = String::from_utf8_lossy(&made.stderr);
    if !made.status.success()
        && ["dial tcp", "no such host", "i/o timeout", "connection refused", "module lookup disabled"]
            .iter()
            .any(|it| complaint.contains(it))
    {
        skipped(&format!("the Go modules are not cached and cannot be downloaded: {}", complaint.trim()));
        return;
    }
    assert!(made.status.success(), "{complaint}");
    for name in ["resources.json", "types.json", "protobuf.json", "gateway.json"] {
        let (new, old) = (fresh.path().join(name), root.join("src/schema").join(name));
        let same = std::fs::read(new).unwrap() == std::fs::read(old).unwrap();
        assert!(same, "{name} is stale: run `make schemas`");
    }
}
