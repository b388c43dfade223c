//! Defaults of built-in kinds that OpenAPI does not carry, by type name: the one place they are written.

use serde_json::{Map, Value, json};

type Members = Map<String, Value>;
type Fill = fn(&mut Members);

/// What each type fills in. Types not listed here have no defaults of their own.
const DEFAULTS: &[(&str, Fill)] = &[
    ("apps.v1.ControllerRevision", |it| put(it, "revision", json!(0))),
    ("apps.v1.DaemonSetSpec", |it| {
        put(it, "revisionHistoryLimit", json!(10));
        put(it, "updateStrategy", json!({"type": "RollingUpdate"}));
    }),
    ("apps.v1.DaemonSetUpdateStrategy", |it| {
        put(it, "type", json!("RollingUpdate"));
        if is(it, "type", "RollingUpdate") {
            put(it, "rollingUpdate", json!({"maxUnavailable": 1, "maxSurge": 0}));
        }
    }),
    ("apps.v1.Deployment", |it| {
        put(it, "spec", json!({}));
        put(it, "status", json!({}));
    }),
    ("apps.v1.DeploymentCondition", |it| {
        put(it, "lastUpdateTime", Value::Null);
        put(it, "lastTransitionTime", Value::Null);
    }),
    ("apps.v1.DeploymentSpec", |it| {
        put(it, "replicas", json!(1));
        put(it, "revisionHistoryLimit", json!(10));
        put(it, "progressDeadlineSeconds", json!(600));
        put(it, "strategy", json!({"type": "RollingUpdate"}));
        put(it, "template", json!({}));
    }),
    ("apps.v1.DeploymentStrategy", |it| {
        put(it, "type", json!("RollingUpdate"));
        if is(it, "type", "RollingUpdate") {
            put(it, "rollingUpdate", json!({}));
        }
    }),
    ("apps.v1.ReplicaSet", |it| {
        put(it, "spec", json!({}));
        put(it, "status", json!({"replicas": 0}));
    }),
    ("apps.v1.ReplicaSetCondition", |it| put(it, "lastTransitionTime", Value::Null)),
    ("apps.v1.ReplicaSetSpec", |it| {
        put(it, "replicas", json!(1));
        put(it, "template", json!({}));
    }),
    ("apps.v1.RollingUpdateDeployment", |it| {
        put(it, "maxUnavailable", json!("25%"));
        put(it, "maxSurge", json!("25%"));
    }),
    ("apps.v1.StatefulSet", |it| put(it, "status", json!({"replicas": 0, "availableReplicas": 0}))),
    ("apps.v1.StatefulSetSpec", |it| {
        put(it, "replicas", json!(1));
        put(it, "podManagementPolicy", json!("OrderedReady"));
        put(it, "revisionHistoryLimit", json!(10));
    }),
    ("autoscaling.v2.HorizontalPodAutoscaler", |it| {
        put(it, "spec", json!({}));
        put(it, "status", json!({}));
    }),
    ("autoscaling.v2.HorizontalPodAutoscalerBehavior", |it| {
        let policy = |kind: &str, value: i64| json!({"type": kind, "value": value, "periodSeconds": 15});
        let Value::Object(up) = it.entry("scaleUp").or_insert_with(|| json!({})) else { return };
        put(up, "stabilizationWindowSeconds", json!(0));
        put_pointer(up, "selectPolicy", json!("Max"));
        put(up, "policies", json!([policy("Pods", 4), policy("Percent", 100)]));
        let Value::Object(down) = it.entry("scaleDown").or_insert_with(|| json!({})) else { return };
        put_pointer(down, "selectPolicy", json!("Max"));
        put(down, "policies", json!([policy("Percent", 100)]));
    }),
    ("autoscaling.v2.HorizontalPodAutoscalerCondition", |it| put(it, "lastTransitionTime", Value::Null)),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", |it| {
        put(it, "minReplicas", json!(1));
        put(
            it,
            "metrics",
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]),
        );
    }),
    ("autoscaling.v2.HorizontalPodAutoscalerStatus", |it| {
        put(it, "desiredReplicas", json!(0));
        put(it, "currentMetrics", Value::Null);
    }),
    ("coordination.v1.Lease", |it| put(it, "spec", json!({}))),
    ("core.v1.ConfigMapVolumeSource", |it| put(it, "defaultMode", json!(420))),
    ("core.v1.Container", container),
    ("core.v1.ContainerPort", |it| put(it, "protocol", json!("TCP"))),
    ("core.v1.ContainerStatus", |it| {
        put(it, "state", json!({}));
        put(it, "lastState", json!({}));
    }),
    ("core.v1.DownwardAPIVolumeSource", |it| put(it, "defaultMode", json!(420))),
    ("core.v1.EndpointPort", |it| put(it, "protocol", json!("TCP"))),
    ("core.v1.EphemeralContainer", container),
    ("core.v1.Event", |it| {
        put(it, "metadata", json!({}));
        put(it, "involvedObject", json!({}));
        put(it, "source", json!({}));
        put(it, "firstTimestamp", Value::Null);
        put(it, "lastTimestamp", Value::Null);
        put(it, "eventTime", Value::Null);
        put(it, "reportingComponent", json!(""));
        put(it, "reportingInstance", json!(""));
    }),
    ("core.v1.EventSeries", |it| put(it, "lastObservedTime", Value::Null)),
    ("core.v1.FileKeySelector", |it| put(it, "optional", json!(false))),
    ("core.v1.GRPCAction", |it| {
        put(it, "port", json!(0));
        put(it, "service", json!(""));
    }),
    ("core.v1.HTTPGetAction", |it| {
        put(it, "port", json!(0));
        put(it, "path", json!("/"));
        put(it, "scheme", json!("HTTP"));
    }),
    ("core.v1.HostPathVolumeSource", |it| put(it, "type", json!(""))),
    ("core.v1.Namespace", |it| put(it, "status", json!({"phase": "Active"}))),
    ("core.v1.ObjectFieldSelector", |it| put(it, "apiVersion", json!("v1"))),
    ("core.v1.PersistentVolumeClaimSpec", |it| {
        put(it, "resources", json!({}));
        put_pointer(it, "volumeMode", json!("Filesystem"));
    }),
    ("core.v1.PersistentVolumeClaimTemplate", |it| {
        put(it, "metadata", json!({}));
        put(it, "spec", json!({}));
    }),
    ("core.v1.Pod", pod),
    ("core.v1.PodCondition", |it| {
        put(it, "lastProbeTime", Value::Null);
        put(it, "lastTransitionTime", Value::Null);
    }),
    ("core.v1.PodSpec", |it| {
        put(it, "restartPolicy", json!("Always"));
        put(it, "terminationGracePeriodSeconds", json!(30));
        put(it, "dnsPolicy", json!("ClusterFirst"));
        if let Some(account) = it.get("serviceAccountName").cloned() {
            put(it, "serviceAccount", account);
        } else if let Some(account) = it.get("serviceAccount").cloned() {
            put(it, "serviceAccountName", account);
        }
        put(it, "securityContext", json!({}));
        put(it, "schedulerName", json!("default-scheduler"));
    }),
    ("core.v1.PodStatus", |it| {
        // The one address and the list of them say the same.
        let Some(address) = it.get("podIP").filter(|address| **address != "").cloned() else { return };
        let first = it.get("podIPs").and_then(|list| list.get(0)).and_then(|first| first.get("ip"));
        if first != Some(&address) {
            it.insert("podIPs".into(), json!([{"ip": address}]));
        }
    }),
    ("core.v1.PodTemplateSpec", |it| {
        put(it, "metadata", json!({}));
        put(it, "spec", json!({}));
    }),
    ("core.v1.PreferredSchedulingTerm", |it| put(it, "preference", json!({}))),
    ("core.v1.Probe", |it| {
        put(it, "timeoutSeconds", json!(1));
        put(it, "periodSeconds", json!(10));
        put(it, "successThreshold", json!(1));
        put(it, "failureThreshold", json!(3));
    }),
    ("core.v1.ProjectedVolumeSource", |it| {
        put(it, "defaultMode", json!(420));
        put(it, "sources", Value::Null);
    }),
    ("core.v1.ResourceFieldSelector", |it| put(it, "divisor", json!("0"))),
    ("core.v1.Secret", |it| put(it, "type", json!("Opaque"))),
    ("core.v1.SecretVolumeSource", |it| put(it, "defaultMode", json!(420))),
    ("core.v1.Service", |it| {
        put(it, "spec", json!({}));
        put(it, "status", json!({}));
        ingress_mode(it);
    }),
    ("core.v1.ServiceAccountTokenProjection", |it| put(it, "expirationSeconds", json!(3600))),
    ("core.v1.ServicePort", |it| {
        put(it, "protocol", json!("TCP"));
        let port = it.get("port").cloned().unwrap_or(json!(0));
        if it.get("targetPort").is_some_and(|target| *target == 0 || *target == "") {
            it.shift_remove("targetPort");
        }
        put(it, "targetPort", port);
    }),
    ("core.v1.ServiceSpec", |it| {
        put(it, "type", json!("ClusterIP"));
        put(it, "sessionAffinity", json!("None"));
        affinity(it);
        let given = it.get("externalIPs").and_then(Value::as_array).is_some_and(|addresses| !addresses.is_empty());
        let outside = is(it, "type", "LoadBalancer") || is(it, "type", "NodePort");
        if outside || is(it, "type", "ClusterIP") {
            put_pointer(it, "internalTrafficPolicy", json!("Cluster"));
        }
        if outside || given && is(it, "type", "ClusterIP") {
            put(it, "externalTrafficPolicy", json!("Cluster"));
        }
        if is(it, "type", "LoadBalancer") {
            put(it, "allocateLoadBalancerNodePorts", json!(true));
        }
    }),
    ("core.v1.ServiceStatus", |it| put(it, "loadBalancer", json!({}))),
    ("core.v1.Sysctl", |it| put_pointer(it, "value", json!(""))),
    ("core.v1.TCPSocketAction", |it| put(it, "port", json!(0))),
    ("core.v1.Volume", |it| {
        if it.keys().all(|key| key == "name") {
            put(it, "emptyDir", json!({}));
        }
        if let Some(Value::Object(image)) = it.get_mut("image") {
            let policy = pull_policy(image.get("reference"));
            put(image, "pullPolicy", json!(policy));
        }
    }),
    ("discovery.v1.EndpointPort", |it| {
        put(it, "name", json!(""));
        put(it, "protocol", json!("TCP"));
    }),
    ("networking.v1.Ingress", |it| put(it, "status", json!({"loadBalancer": {}}))),
];

/// Fills in the defaults of a named type.
pub(crate) fn fill(name: &str, members: &mut Members) {
    if let Ok(at) = DEFAULTS.binary_search_by(|(known, _)| (*known).cmp(name)) {
        (DEFAULTS[at].1)(members);
    }
}

/// What holds for pods but not for the templates they are made from.
fn pod(it: &mut Members) {
    put(it, "status", json!({"phase": "Pending"}));
    let Some(Value::Object(spec)) = it.get_mut("spec") else { return };
    put(spec, "enableServiceLinks", json!(true));
    // Less than no time is hardly any.
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".into(), json!(1));
    }
    let shares_network = spec.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers"] {
        let Some(Value::Array(containers)) = spec.get_mut(list) else { continue };
        let ports = containers.iter_mut().filter_map(|container| container.get_mut("ports")?.as_array_mut()).flatten();
        for port in ports.filter(|_| shares_network).filter_map(Value::as_object_mut) {
            let number = port.get("containerPort").cloned().filter(|number| *number != 0);
            if port.get("hostPort").is_none_or(|wanted| *wanted == 0) && number.is_some() {
                port.insert("hostPort".into(), number.unwrap_or_default());
            }
        }
        for resources in containers.iter_mut().filter_map(|container| container.get_mut("resources")?.as_object_mut()) {
            // A limit is also the request when none is given.
            let Some(Value::Object(limits)) = resources.get("limits").cloned() else { continue };
            let requests = resources.entry("requests").or_insert_with(|| json!({}));
            for (name, limit) in limits {
                if let Value::Object(requests) = requests {
                    requests.entry(name).or_insert(limit);
                }
            }
        }
    }
}

/// Only `latest` (or no tag at all) has to be pulled again: the registry may have moved it.
fn pull_policy(image: Option<&Value>) -> &'static str {
    let image = image.and_then(Value::as_str).unwrap_or_default();
    let tag = image.rsplit('/').next().unwrap_or_default().split_once(':').map_or("latest", |(_, tag)| tag);
    if tag == "latest" && is_reference(image) && !image.contains('@') { "Always" } else { "IfNotPresent" }
}

/// Whether a registry could have an image of that name. Only that of the registry itself may be in upper case.
fn is_reference(image: &str) -> bool {
    let is_host = |text: &str| text.contains(['.', ':']) || text == "localhost" || text != text.to_lowercase();
    let rest = image.split_once('/').filter(|(host, _)| is_host(host)).map_or(image, |(_, rest)| rest);
    let path = rest.split(':').next().unwrap_or_default();
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    path.split('/').all(|part| !part.is_empty() && part.bytes().all(known))
}

fn container(it: &mut Members) {
    let policy = pull_policy(it.get("image"));
    put(it, "imagePullPolicy", json!(policy));
    put(it, "resources", json!({}));
    put(it, "terminationMessagePath", json!("/dev/termination-log"));
    put(it, "terminationMessagePolicy", json!("File"));
}

fn put(members: &mut Members, key: &str, value: Value) {
    // A text that is empty is one that was not given.
    if members.get(key).is_none_or(|found| found.is_null() || found == "" && value.is_string()) {
        members.insert(key.to_owned(), value);
    }
}

/// The same where Go tells an empty text from none.
fn put_pointer(members: &mut Members, key: &str, value: Value) {
    if members.get(key).is_none_or(Value::is_null) {
        members.insert(key.to_owned(), value);
    }
}

/// Clients are sent to the same pod for some time, or there is nothing to say about it.
fn affinity(service: &mut Members) {
    if is(service, "sessionAffinity", "None") {
        service.shift_remove("sessionAffinityConfig");
    } else if is(service, "sessionAffinity", "ClientIP") {
        let seconds = service.get("sessionAffinityConfig").and_then(|it| it.pointer("/clientIP/timeoutSeconds"));
        if seconds.is_none_or(Value::is_null) {
            let config = json!({"clientIP": {"timeoutSeconds": 10800}});
            service.insert("sessionAffinityConfig".to_owned(), config);
        }
    }
}

/// A load balancer answers for its addresses itself, unless it says otherwise.
fn ingress_mode(service: &mut Members) {
    if service.get("spec").and_then(|spec| spec.get("type")).is_none_or(|kind| kind != "LoadBalancer") {
        return;
    }
    let ingress =
        service.get_mut("status").and_then(|status| status.pointer_mut("/loadBalancer/ingress")?.as_array_mut());
    for one in ingress.into_iter().flatten().filter_map(Value::as_object_mut) {
        if one.get("ip").is_some_and(|ip| *ip != "") {
            put_pointer(one, "ipMode", json!("VIP"));
        }
    }
}

fn is(members: &Members, key: &str, expected: &str) -> bool {
    members.get(key).and_then(Value::as_str) == Some(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_so_that_it_can_be_searched() {
        assert!(DEFAULTS.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn a_moving_tag_is_always_pulled() {
        for (image, policy) in [
            ("podinfo", "Always"),
            ("ghcr.io:443/podinfo", "Always"),
            ("a/podinfo:latest", "Always"),
            ("podinfo:6.0.1", "IfNotPresent"),
            (" podinfo", "IfNotPresent"),
        ] {
            let mut members = Members::from_iter([("image".to_owned(), json!(image))]);
            container(&mut members);
            assert_eq!(members["imagePullPolicy"], policy, "{image}");
        }
    }
}
