//! What a pod may be made of: refused and warned of in the words of a real kube-apiserver 1.36.

use http::Request;
use http_body_util::BodyExt;
use kube::Client;
use serde_json::{Value, json};

use super::server;

const PODS: &str = "/api/v1/namespaces/default/pods";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";

/// A pod with one container, and with what else is said.
fn pod(spec: &Value) -> Value {
    let mut whole = json!({"containers": [{"name": "m", "image": "i"}]});
    json_patch::merge(&mut whole, spec);
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}, "spec": whole})
}

/// A Deployment of such pods.
fn deployment(spec: &Value) -> Value {
    let pod = pod(spec);
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": pod["spec"]},
    }})
}

/// The warnings, and the object or the refusal.
async fn send(client: &Client, method: &str, path: &str, body: &Value) -> (Vec<String>, Value) {
    let language = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder().method(method).uri(path).header("content-type", language);
    let response = client.send(request.body(body.to_string().into_bytes().into()).unwrap()).await.unwrap();
    let (head, body) = response.into_parts();
    let warnings = head.headers.get_all("warning").iter().map(|text| text.to_str().unwrap().to_owned()).collect();
    (warnings, serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap())
}

fn causes(status: &Value) -> Vec<String> {
    let causes = status["details"]["causes"].as_array().unwrap_or_else(|| panic!("accepted: {status}"));
    let text = |cause: &Value, field: &str| cause[field].as_str().unwrap().to_owned();
    causes.iter().map(|cause| format!("{}: {}", text(cause, "field"), text(cause, "message"))).collect()
}

/// What is wrong with such a pod, and in the same way with a template of it.
async fn refused(spec: &Value, expected: &[&str]) {
    let client = server().client("test");
    for (path, object, prefix) in [(PODS, pod(spec), "spec"), (DEPLOYMENTS, deployment(spec), "spec.template.spec")] {
        let (_, said) = send(&client, "POST", path, &object).await;
        let expected: Vec<_> = expected.iter().map(|line| format!("{prefix}.{line}")).collect();
        assert_eq!(causes(&said), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn volumes_are_one_thing_each_and_mounted_if_they_are_good() {
    let two = json!({"volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]});
    refused(&two, &["volumes[0].secret: Forbidden: may not specify more than 1 volume type"]).await;
    let items = json!([{"key": "k", "path": "../k", "mode": 512}]);
    let outside = json!({"volumes": [{"name": "v", "configMap": {"name": "c", "items": items}}]});
    refused(
        &outside,
        &[
            "volumes[0].configMap.items[0].path: Invalid value: \"../k\": must not contain '..'",
            "volumes[0].configMap.items[0].mode: Invalid value: 512: must be a number between 0 and 0777 (octal), both \
             inclusive",
        ],
    )
    .await;
    let bad = json!({
        "volumes": [{"name": "v", "hostPath": {}}],
        "containers": [{"name": "m", "image": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
    });
    let not_found = "containers[0].volumeMounts[0].name: Not found: \"v\"";
    refused(&bad, &["volumes[0].hostPath.path: Required value", not_found]).await;
}

#[tokio::test(start_paused = true)]
async fn variables_come_from_somewhere() {
    let env = json!([
        {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.color"}}},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s"}}},
    ]);
    refused(
        &json!({"containers": [{"name": "m", "image": "i", "env": env}]}),
        &[
            "containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: \"spec.color\": error converting \
             fieldPath: field label not supported: spec.color",
            "containers[0].env[1].valueFrom.secretKeyRef.key: Required value",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_says_clearly_where_it_wants_to_be() {
    refused(
        &json!({"tolerations": [{"value": "v", "tolerationSeconds": 5}]}),
        &[
            "tolerations[0].operator: Invalid value: \"\": operator must be Exists when `key` is empty, which means \
             \"match all values and all keys\"",
            "tolerations[0].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set",
        ],
    )
    .await;
    let heavy = json!([{"weight": 101, "podAffinityTerm": {"labelSelector": {}}}]);
    refused(
        &json!({"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": heavy}}}),
        &[
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must \
             be in the range 1-100",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: \
             Required value: can not be empty",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: \
             Invalid value: \"\": name part must be non-empty",
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: \
             Invalid value: \"\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and \
             end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation \
             is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
        ],
    )
    .await;
    let spread = |skew: u64| json!({"maxSkew": skew, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"});
    refused(
        &json!({"topologySpreadConstraints": [spread(1), spread(0)]}),
        &[
            "topologySpreadConstraints[0].{topologyKey, whenUnsatisfiable}: Duplicate value: \"{z, DoNotSchedule}\"",
            "topologySpreadConstraints[1].maxSkew: Invalid value: 0: must be greater than zero",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_a_container_may_do_does_not_contradict_itself() {
    let context = json!({"privileged": true, "allowPrivilegeEscalation": false, "runAsUser": -1});
    refused(
        &json!({"containers": [{"name": "m", "image": "i", "securityContext": context}]}),
        &[
            "containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
            "containers[0].securityContext: Invalid value: {\"Capabilities\":null,\"Privileged\":true,\
             \"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":-1,\"RunAsGroup\":null,\"RunAsNonRoot\":null,\
             \"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,\"ProcMount\":null,\
             \"SeccompProfile\":null,\"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and \
             `privileged` to true",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_shares_its_node_and_knows_some_names() {
    let ports = json!([{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]);
    refused(
        &json!({"containers": [{"name": "m", "image": "i", "ports": ports}]}),
        &["containers[0].ports[1].hostPort: Duplicate value: \"TCP//80\""],
    )
    .await;
    refused(
        &json!({"dnsPolicy": "None", "hostAliases": [{"ip": "010.0.0.1"}]}),
        &[
            "dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None",
            "hostAliases[0].ip: Invalid value: \"010.0.0.1\": must not have leading 0s",
        ],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_there_twice_is_warned_of_when_the_template_changes() {
    let client = server().client("test");
    let twice = json!({"imagePullSecrets": [{"name": "s"}, {"name": "s"}], "containers": [{"name": "m", "image": "i",
        "env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}],
        "ports": [{"name": "http", "containerPort": 80}, {"containerPort": 80}]}]});
    let warnings = |prefix: &str| {
        let hides = r#"hides previous definition of \"A\", which may be dropped when using apply"#;
        [
            format!(r#"{prefix}.imagePullSecrets[1].name: duplicate name \"s\""#),
            format!("{prefix}.containers[0].env[1]: {hides}"),
            format!("{prefix}.containers[0].ports[1]: duplicate port definition with {prefix}.containers[0].ports[0]"),
        ]
        .map(|text| format!("299 - \"{text}\""))
    };
    assert_eq!(send(&client, "POST", PODS, &pod(&twice)).await.0, warnings("spec"));
    assert_eq!(send(&client, "POST", DEPLOYMENTS, &deployment(&twice)).await.0, warnings("spec.template.spec"));
    let one = format!("{DEPLOYMENTS}/d");
    let label = json!({"metadata": {"labels": {"x": "y"}}});
    assert!(send(&client, "PATCH", &one, &label).await.0.is_empty(), "nothing of the template has changed");
    let scale = json!({"spec": {"replicas": 3}});
    assert_eq!(send(&client, "PATCH", &format!("{one}/scale"), &scale).await.0, warnings("spec.template.spec"));
}

#[tokio::test(start_paused = true)]
async fn a_pod_can_tolerate_more_but_not_less() {
    let client = server().client("test");
    let tolerant = |tolerations: Value| json!({"spec": {"tolerations": tolerations}});
    let key = |key: &str| json!({"key": key, "operator": "Exists"});
    let (_, stored) = send(&client, "POST", PODS, &pod(&tolerant(json!([key("k")]))["spec"])).await;
    let mut more = stored["spec"]["tolerations"].as_array().unwrap().clone();
    more.push(key("l"));
    let one = format!("{PODS}/p");
    let (_, said) = send(&client, "PATCH", &one, &tolerant(more.clone().into())).await;
    assert_eq!(said["spec"]["tolerations"], Value::from(more));
    let (_, said) = send(&client, "PATCH", &one, &tolerant(json!([key("l")]))).await;
    let why = "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds";
    assert_eq!(causes(&said), [why]);
}
