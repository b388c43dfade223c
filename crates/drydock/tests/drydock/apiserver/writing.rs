//! Create, replace, status, scale, defaults and validation of built-in kinds.

use std::sync::{Arc, Mutex};

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Event, Namespace, Pod, Secret, Service};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use super::{config, deployment, deployment_json, refused, server};

fn service(name: &str) -> Service {
    serde_json::from_value(
        json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], "selector": {"app": name}}}),
    )
    .unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_server_owns_uid_time_version_and_generation() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(server.client("test"));
    let mut asked = deployment("podinfo");
    asked.metadata.uid = Some("mine".into());
    asked.metadata.generation = Some(7);
    let made = api.create(&PostParams::default(), &asked).await.unwrap();
    assert_ne!(made.uid().unwrap(), "mine");
    assert_eq!(made.metadata.generation, Some(1));
    assert_eq!(made.creation_timestamp().unwrap().0.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(made.resource_version().unwrap(), server.revision().to_string());
    let status = refused(api.create(&PostParams::default(), &deployment("podinfo")).await);
    assert_eq!((status.code, status.message.as_str()), (409, "deployments.apps \"podinfo\" already exists"));
}

#[tokio::test(start_paused = true)]
async fn a_stale_replacement_is_a_conflict_and_a_blind_one_is_not() {
    let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
    let first = api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let mut second = first.clone();
    second.data = Some([("key".to_owned(), "2".to_owned())].into());
    api.replace("a", &PostParams::default(), &second).await.unwrap();
    let status = refused(api.replace("a", &PostParams::default(), &first).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the \
         latest version and try again"
    );
    api.replace("a", &PostParams::default(), &config("a", "3")).await.unwrap();
    let mut other = config("a", "4");
    other.metadata.uid = Some("another".into());
    let status = refused(api.replace("a", &PostParams::default(), &other).await);
    let stored = "StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0";
    assert!(status.message.contains(stored), "{}", status.message);
    assert!(status.message.contains("Precondition failed: UID in precondition: another"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_write_that_changes_nothing_leaves_no_trace() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(server.client("test"));
    let made = api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let revision = server.revision();
    assert_eq!(api.replace("podinfo", &PostParams::default(), &made).await.unwrap(), made);
    assert_eq!(api.replace("podinfo", &PostParams::default(), &deployment("podinfo")).await.unwrap(), made);
    let patch = Patch::Merge(json!({"spec": {"replicas": 1}}));
    api.patch("podinfo", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(server.revision(), revision);
}

#[tokio::test(start_paused = true)]
async fn generation_counts_desired_state_only() {
    let api: Api<Deployment> = Api::default_namespaced(server().client("test"));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let generation = async |patch: Value| {
        let patched = api.patch("podinfo", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
        patched.metadata.generation.unwrap()
    };
    assert_eq!(generation(json!({"metadata": {"labels": {"a": "b"}}})).await, 1);
    assert_eq!(generation(json!({"status": {"replicas": 3}})).await, 1, "the main endpoint ignores status");
    assert_eq!(generation(json!({"spec": {"replicas": 2}})).await, 2);
    let patch =
        Patch::Merge(json!({"status": {"replicas": 2}, "spec": {"replicas": 9}, "metadata": {"labels": {"a": "c"}}}));
    let seen = api.patch_status("podinfo", &PatchParams::default(), &patch).await.unwrap();
    assert_eq!(seen.metadata.generation, Some(2));
    assert_eq!((seen.spec.unwrap().replicas, seen.status.unwrap().replicas), (Some(2), Some(2)));
    assert_eq!(seen.metadata.labels.unwrap()["a"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_deployment_gets_the_defaults_of_a_real_server() {
    let client = server().client("test");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let mut asked = deployment_json("podinfo");
    asked["spec"]["template"]["spec"]["containers"][0]["readinessProbe"] = json!({"httpGet": {"port": 9898}});
    api.create(&PostParams::default(), &serde_json::from_value(asked).unwrap()).await.unwrap();
    let path = "/apis/apps/v1/namespaces/default/deployments/podinfo";
    let made = super::get(&client, path, "application/json").await;
    assert_eq!(
        made["spec"],
        json!({
            "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
            "selector": {"matchLabels": {"app": "podinfo"}},
            "template": {
                "metadata": {"labels": {"app": "podinfo"}},
                "spec": {
                    "restartPolicy": "Always", "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
                    "schedulerName": "default-scheduler", "securityContext": {},
                    "containers": [{
                        "name": "main", "image": "podinfo:6.0.0", "imagePullPolicy": "IfNotPresent", "resources": {},
                        "ports": [{"containerPort": 9898, "protocol": "TCP"}],
                        "readinessProbe": {
                            "httpGet": {"port": 9898, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                            "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3,
                        },
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    }],
                },
            },
        })
    );
}

/// A real server draws them. Whoever still holds a connection to one that is gone must not reach another Service.
#[tokio::test(start_paused = true)]
async fn the_address_of_a_service_that_is_gone_is_not_the_next_ones() {
    let api: Api<Service> = Api::default_namespaced(server().client("test"));
    let mut addresses = Vec::new();
    for dry_run in [false, true, false, true] {
        let parameters = PostParams { dry_run, ..PostParams::default() };
        addresses.push(api.create(&parameters, &service("a")).await.unwrap().spec.unwrap().cluster_ip.unwrap());
        if !dry_run {
            api.delete("a", &DeleteParams::default()).await.unwrap();
        }
    }
    // A rehearsal is shown what nobody can have.
    assert_eq!(addresses, ["10.96.0.2", "10.96.0.0", "10.96.0.3", "10.96.0.0"]);
}

#[tokio::test(start_paused = true)]
async fn services_get_addresses_in_order_and_keep_them() {
    let api: Api<Service> = Api::default_namespaced(server().client("test"));
    let mut addresses = Vec::new();
    for name in ["a", "b"] {
        let spec = api.create(&PostParams::default(), &service(name)).await.unwrap().spec.unwrap();
        assert_eq!(
            spec.ports.unwrap()[0].target_port,
            Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(80))
        );
        assert_eq!((spec.type_.as_deref(), spec.session_affinity.as_deref()), (Some("ClusterIP"), Some("None")));
        addresses.push(spec.cluster_ip.unwrap());
    }
    assert_eq!(addresses, ["10.96.0.2", "10.96.0.3"]);
    let kept = api.replace("a", &PostParams::default(), &service("a")).await.unwrap();
    assert_eq!(kept.spec.unwrap().cluster_ip.unwrap(), "10.96.0.2");
    let patch = Patch::Merge(json!({"spec": {"clusterIP": "10.96.0.9", "clusterIPs": ["10.96.0.9"]}}));
    let status = refused(api.patch("a", &PatchParams::default(), &patch).await);
    assert!(
        status.message.contains("spec.clusterIPs[0]: Invalid value: [\"10.96.0.9\"]: may not change once set"),
        "{}",
        status.message
    );
    let headless = json!({"metadata": {"name": "c"}, "spec": {"clusterIP": "None", "ports": [{"port": 80}]}});
    let made = api.create(&PostParams::default(), &serde_json::from_value(headless).unwrap()).await.unwrap();
    assert_eq!(made.spec.unwrap().cluster_ip.unwrap(), "None");
}

#[tokio::test(start_paused = true)]
async fn secrets_take_strings_and_keep_bytes() {
    let api: Api<Secret> = Api::default_namespaced(server().client("test"));
    let asked = serde_json::from_value(json!({"metadata": {"name": "a"}, "stringData": {"token": "secret"}})).unwrap();
    let made = api.create(&PostParams::default(), &asked).await.unwrap();
    assert_eq!(made.data.unwrap()["token"].0, b"secret");
    assert_eq!((made.string_data, made.type_.as_deref()), (None, Some("Opaque")));
}

#[tokio::test(start_paused = true)]
async fn wrong_objects_are_refused_with_field_and_reason() {
    let client = server().client("test");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let mut asked = deployment("podinfo");
    asked.spec.as_mut().unwrap().template.metadata.as_mut().unwrap().labels =
        Some([("app".to_owned(), "x".to_owned())].into());
    let status = refused(api.create(&PostParams::default(), &asked).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        status.message,
        "Deployment.apps \"podinfo\" is invalid: spec.template.metadata.labels: Invalid value: {\"app\":\"x\"}: `selector` does \
         not match template `labels`"
    );
    let cause = &status.details.unwrap().causes[0];
    assert_eq!((cause.field.as_str(), cause.reason.as_str()), ("spec.template.metadata.labels", "FieldValueInvalid"));
    for (name, text) in [("Podinfo", "a lowercase RFC 1123 subdomain"), ("", "name or generateName is required")] {
        let status = refused(api.create(&PostParams::default(), &deployment(name)).await);
        assert!(status.message.contains(text), "{}", status.message);
    }
    let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": true});
    let mut asked = deployment_json("podinfo");
    asked["metadata"]["ownerReferences"] = json!([owner("a"), owner("b")]);
    let status = refused(api.create(&PostParams::default(), &serde_json::from_value(asked).unwrap()).await);
    assert!(status.message.contains("Only one reference can have Controller set to true"), "{}", status.message);
    let events: Api<Event> = Api::default_namespaced(client.clone());
    let event = json!({"metadata": {"name": "a"}, "involvedObject": {"name": "a", "namespace": "elsewhere"}});
    let status = refused(events.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await);
    assert!(status.message.contains("\"elsewhere\": does not match event.namespace"), "{}", status.message);
    let configs = super::dynamic(&client, "", "v1", "ConfigMap", "configmaps");
    let wrong = serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"key": 1}})).unwrap();
    let status = refused(configs.create(&PostParams::default(), &wrong).await);
    assert_eq!(
        (status.code, status.message.as_str()),
        (
            400,
            "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct \
             field ConfigMap.data of type string"
        )
    );
}

#[tokio::test(start_paused = true)]
async fn what_no_typed_client_could_read_is_refused() {
    let client = server().client("test");
    let with = |pointer: &str, value: Value| {
        let mut object = deployment_json("podinfo");
        *object.pointer_mut(pointer).unwrap() = value;
        object
    };
    let spec = |spec: Value| json!({"metadata": {"name": "a"}, "spec": spec});
    for (path, object, text) in [
        (
            "apps/v1/namespaces/default/deployments",
            with("/spec", json!({"replicas": 99_999_999_999_i64})),
            "cannot unmarshal number 99999999999 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "apps/v1/namespaces/default/deployments",
            with("/spec/template/spec/containers/0/ports/0/containerPort", json!("http")),
            "cannot unmarshal string into Go struct field ContainerPort.spec.template.spec.containers.ports.containerPort \
             of type int32",
        ),
        (
            "apps/v1/namespaces/default/deployments",
            with("/spec/template/spec/containers", json!({})),
            "cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
        ),
        (
            "coordination.k8s.io/v1/namespaces/default/leases",
            spec(json!({"renewTime": "yesterday"})),
            "parsing time \"yesterday\"",
        ),
        (
            "coordination.k8s.io/v1/namespaces/default/leases",
            spec(json!({"leaseTransitions": 1.5})),
            "cannot unmarshal number 1.5 into Go struct field LeaseSpec.spec.leaseTransitions of type int32",
        ),
        (
            "discovery.k8s.io/v1/namespaces/default/endpointslices",
            json!({"metadata": {"name": "a", "deletionGracePeriodSeconds": u64::MAX}, "addressType": "IPv4", "endpoints": []}),
            "cannot unmarshal number 18446744073709551615 into Go struct field \
             ObjectMeta.metadata.deletionGracePeriodSeconds of type int64",
        ),
    ] {
        let status = refused(super::send_json(&client, "POST", &format!("/apis/{path}"), &object).await);
        assert_eq!((status.code, status.reason.as_str()), (400, "BadRequest"));
        assert!(status.message.contains(text), "{}", status.message);
    }
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = |data: &str| json!({"metadata": {"name": "a"}, "data": {"token": data}});
    let status = refused(super::send_json(&client, "POST", secrets, &secret("!!!")).await);
    assert!(status.message.contains("illegal base64 data"), "{}", status.message);
    let made = super::send_json(&client, "POST", secrets, &secret("c2Vj\ncmV0\n")).await.unwrap();
    assert_eq!(made["data"]["token"], "c2VjcmV0", "line breaks are no data");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    let limits = json!({"resources": {"limits": {"cpu": 1}}, "name": "main", "image": "podinfo:1"});
    let numbers = with("/spec/template/spec/containers/0", limits);
    super::send_json(&client, "POST", "/apis/apps/v1/namespaces/default/deployments", &numbers).await.unwrap();
    let made = api.get("podinfo").await.unwrap().spec.unwrap().template.spec.unwrap();
    assert_eq!(made.containers[0].resources.as_ref().unwrap().limits.as_ref().unwrap()["cpu"].0, "1");
    let wrong = Patch::Merge(json!({"status": {"replicas": "two"}}));
    assert_eq!(refused(api.patch_status("podinfo", &PatchParams::default(), &wrong).await).code, 422);
}

#[tokio::test(start_paused = true)]
async fn a_body_in_a_language_nobody_speaks_here_is_refused() {
    let client = server().client("test");
    let configs = "/api/v1/namespaces/default/configmaps";
    let object = json!({"metadata": {"name": "a"}}).to_string();
    super::send(&client, "POST", configs, "application/json; charset=utf-8", object.clone()).await.unwrap();
    super::send(&client, "PUT", &format!("{configs}/a"), "application/yaml", "metadata: {name: a}").await.unwrap();
    let protobuf = "application/vnd.kubernetes.protobuf";
    let cbor = "application/cbor";
    for (method, path) in
        [("POST", configs.to_owned()), ("PUT", format!("{configs}/a")), ("DELETE", format!("{configs}/a"))]
    {
        let status = refused(super::send(&client, method, &path, cbor, "x").await);
        assert_eq!((status.code, status.reason.as_str()), (415, "UnsupportedMediaType"), "{method}");
        assert_eq!(
            status.message,
            "the body of the request was in an unknown format - accepted media types include: application/json, \
             application/yaml, application/vnd.kubernetes.protobuf"
        );
    }
    for accept in ["application/yaml", protobuf] {
        let request = http::Request::get(configs).header("accept", accept).body(Vec::new()).unwrap();
        let status = refused(client.request::<Value>(request).await);
        assert_eq!((status.code, status.reason.as_str()), (406, "NotAcceptable"));
        assert_eq!(status.message, "only the following media types are accepted: application/json");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_real_server_refuses_is_refused() {
    let client = server().client("test");
    let api = "/api/v1/namespaces/default";
    let config = |metadata: Value| {
        let mut object = json!({"metadata": metadata});
        object["metadata"]["name"] = json!("a");
        object
    };
    let service = |name: &str, address: &str| json!({"metadata": {"name": name}, "spec": {"clusterIP": address, "ports": [{"port": 80}]}});
    super::send_json(&client, "POST", &format!("{api}/services"), &service("first", "10.96.0.9")).await.unwrap();
    let owner = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": ""});
    for (path, object, text) in [
        (
            "services",
            service("a", "here"),
            "spec.clusterIPs[0]: Invalid value: \"here\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ),
        (
            "services",
            service("a", "10.96.0.9"),
            "spec.clusterIPs: Invalid value: [\"10.96.0.9\"]: failed to allocate IP 10.96.0.9: provided IP is already allocated",
        ),
        (
            "configmaps",
            config(json!({"annotations": {"no spaces": ""}})),
            "metadata.annotations: Invalid value: \"no spaces\": name part must consist of alphanumeric characters",
        ),
        (
            "configmaps",
            config(json!({"annotations": {"a": "x".repeat(256 * 1024)}})),
            "metadata.annotations: Too long: may not be more than 262144 bytes",
        ),
        (
            "configmaps",
            config(json!({"ownerReferences": [owner]})),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
    ] {
        let status = refused(super::send_json(&client, "POST", &format!("{api}/{path}"), &object).await);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{path}");
        assert!(status.message.contains(text), "{}", status.message);
    }
    let fine = config(json!({"annotations": {"Example.com/Mixed_Case": "anything goes: {}"}}));
    super::send_json(&client, "POST", &format!("{api}/configmaps"), &fine).await.unwrap();
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "podinfo:1"}]}});
    assert_eq!(refused(super::send_json(&client, "POST", &format!("{api}/pods/a"), &pod).await).code, 405);
}

#[tokio::test(start_paused = true)]
async fn some_kinds_are_replaced_only_by_who_has_seen_them() {
    let client = server().client("test");
    let path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/a";
    let lease = json!({"metadata": {"name": "a"}, "spec": {"holderIdentity": "x"}});
    let mut made = super::send_json(&client, "PUT", path, &lease).await.unwrap();
    for version in [Value::Null, json!("0")] {
        let mut blind = lease.clone();
        blind["metadata"]["resourceVersion"] = version;
        let status = refused(super::send_json(&client, "PUT", path, &blind).await);
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
        assert_eq!(
            status.message,
            "leases.coordination.k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified \
             for an update"
        );
    }
    made["spec"]["holderIdentity"] = json!("y");
    super::send_json(&client, "PUT", path, &made).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_must_not_change_does_not() {
    let client = server().client("test");
    let api: Api<Deployment> = Api::default_namespaced(client.clone());
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let labels = json!({"app": "other"});
    let patch = json!({"spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}});
    let status = refused(api.patch("podinfo", &PatchParams::default(), &Patch::Merge(patch)).await);
    assert_eq!(
        status.message,
        "Deployment.apps \"podinfo\" is invalid: spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"other\"}}: field is immutable"
    );
    let revisions: Api<ControllerRevision> = Api::default_namespaced(client);
    let made = serde_json::from_value(json!({"metadata": {"name": "a"}, "revision": 1, "data": {"x": 1}})).unwrap();
    revisions.create(&PostParams::default(), &made).await.unwrap();
    let patch = Patch::Merge(json!({"data": {"x": 2}}));
    assert_eq!(refused(revisions.patch("a", &PatchParams::default(), &patch).await).code, 422);
    let patch = Patch::Merge(json!({"revision": 2}));
    revisions.patch("a", &PatchParams::default(), &patch).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn names_are_generated_the_same_way_for_the_same_seed() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let api: Api<ConfigMap> = Api::default_namespaced(server().client("test"));
        let asked = serde_json::from_value(json!({"metadata": {"generateName": "run-"}})).unwrap();
        let made = api.create(&PostParams::default(), &asked).await.unwrap();
        assert!(made.name_any().starts_with("run-") && made.name_any().len() == 9);
        runs.push((made.name_any(), made.uid()));
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_checks_everything_and_writes_nothing() {
    let server = server();
    let api: Api<Deployment> = Api::default_namespaced(server.client("test"));
    let revision = server.revision();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let shown = api.create(&dry, &deployment("podinfo")).await.unwrap();
    assert_eq!(shown.spec.unwrap().replicas, Some(1));
    assert_eq!(refused(api.create(&dry, &deployment("Bad")).await).code, 422);
    assert_eq!((server.revision(), api.get_opt("podinfo").await.unwrap()), (revision, None));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    let patch = Patch::Merge(json!({"spec": {"replicas": 5}}));
    assert_eq!(api.patch("podinfo", &params, &patch).await.unwrap().spec.unwrap().replicas, Some(5));
    api.delete("podinfo", &DeleteParams::default().dry_run()).await.unwrap();
    assert_eq!(api.get("podinfo").await.unwrap().spec.unwrap().replicas, Some(1));
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_or_refused_as_asked() {
    let client = server().client("test");
    let send = async |validation: &str| {
        let mut body = deployment_json("podinfo");
        body["spec"]["replica"] = json!(3);
        let path = format!("/apis/apps/v1/namespaces/default/deployments?fieldValidation={validation}");
        let request = http::Request::post(path).body(serde_json::to_vec(&body).unwrap()).unwrap();
        client.request::<Value>(request).await
    };
    let status = refused(send("Strict").await);
    assert_eq!(
        status.message,
        "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.replica\""
    );
    assert_eq!(send("Ignore").await.unwrap()["spec"].get("replica"), None);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_made_in_a_namespace_that_is_not_there() {
    let client = server().client("test");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "nowhere");
    let status = refused(api.create(&PostParams::default(), &config("a", "1")).await);
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"nowhere\" not found"));
    let namespaces: Api<Namespace> = Api::all(client);
    let made = namespaces.get("istio-system").await.unwrap();
    assert_eq!(made.status.unwrap().phase.as_deref(), Some("Active"));
    assert_eq!(made.metadata.labels.unwrap()["kubernetes.io/metadata.name"], "istio-system");
}

#[tokio::test(start_paused = true)]
async fn scale_reads_and_writes_replicas() {
    let api: Api<Deployment> = Api::default_namespaced(server().client("test"));
    api.create(&PostParams::default(), &deployment("podinfo")).await.unwrap();
    let mut scale = api.get_scale("podinfo").await.unwrap();
    assert_eq!(scale.status.as_ref().unwrap().selector.as_deref(), Some("app=podinfo"));
    let patch = Patch::Merge(json!({"spec": {"replicas": 3}}));
    assert_eq!(
        api.patch_scale("podinfo", &PatchParams::default(), &patch).await.unwrap().spec.unwrap().replicas,
        Some(3)
    );
    let now = api.get("podinfo").await.unwrap();
    assert_eq!((now.spec.unwrap().replicas, now.metadata.generation), (Some(3), Some(2)));
    // An entry without a time comes first.
    let first = now.metadata.managed_fields.unwrap().swap_remove(0);
    assert_eq!((first.manager.as_deref(), first.subresource.as_deref()), (Some("test"), Some("scale")));
    assert_eq!(first.time, None);
    scale.spec.as_mut().unwrap().replicas = Some(7);
    assert_eq!(refused(api.replace_scale("podinfo", &PostParams::default(), &scale).await).code, 409);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let api: Api<Pod> = Api::default_namespaced(server().client("test"));
    let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "main", "image": "podinfo:1"}]}});
    let made = api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let status = made.status.unwrap();
    assert_eq!((status.phase.as_deref(), status.qos_class.as_deref()), (Some("Pending"), Some("BestEffort")));
    let binding = json!({"metadata": {"name": "a"}, "target": {"kind": "Node", "name": "deck"}});
    api.create_subresource::<_, Value>("binding", "a", &PostParams::default(), &binding).await.unwrap();
    let bound = api.get("a").await.unwrap();
    assert_eq!(bound.spec.unwrap().node_name.as_deref(), Some("deck"));
    assert_eq!(bound.status.unwrap().conditions.unwrap()[0].type_, "PodScheduled");
    let status = refused(api.create_subresource::<_, Value>("binding", "a", &PostParams::default(), &binding).await);
    assert!(status.message.contains("pod a is already assigned to node \"deck\""), "{}", status.message);
    let patch = Patch::Merge(json!({"spec": {"nodeName": "other"}}));
    let status = refused(api.patch("a", &PatchParams::default(), &patch).await);
    assert!(
        status.message.contains("spec: Forbidden: pod updates may not change fields other than"),
        "{}",
        status.message
    );
    let patch = Patch::Strategic(json!({"spec": {"containers": [{"name": "main", "image": "podinfo:2"}]}}));
    assert_eq!(api.patch("a", &PatchParams::default(), &patch).await.unwrap().metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn requests_and_commits_are_recorded() {
    let server = server();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let writer = seen.clone();
    server.on_commit(move |commit| {
        let side = |object: &Option<Arc<Value>>| if object.is_some() { "yes" } else { "no" };
        let line = format!(
            "{} {} {} {}>{}",
            commit.user,
            commit.verb,
            commit.resource,
            side(&commit.before),
            side(&commit.after)
        );
        writer.lock().unwrap().push(line);
    });
    let api: Api<ConfigMap> = Api::default_namespaced(server.client("alice"));
    api.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    api.replace("a", &PostParams::default(), &config("a", "1")).await.unwrap();
    api.replace("a", &PostParams::default(), &config("a", "2")).await.unwrap();
    api.get_opt("b").await.unwrap();
    api.delete("a", &DeleteParams::default()).await.unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        ["alice create configmaps no>yes", "alice update configmaps yes>yes", "alice delete configmaps yes>no"]
    );
    let log = server.log().snapshot();
    let lines: Vec<_> = log.iter().map(|it| format!("{} {} {} {}", it.user, it.verb, it.name, it.code)).collect();
    assert_eq!(
        lines,
        ["alice create  201", "alice update a 200", "alice update a 200", "alice get b 404", "alice delete a 200"]
    );
    assert_eq!(log.iter().filter(|request| request.is_write()).count(), 4);
    server.log().clear();
    assert!(server.log().snapshot().is_empty());
}
