//! What a built-in object is in Go before anything is read into it: structs that are no pointers are always there.
//!
//! Whoever creates an object owns what is new in comparison with this, so these structs themselves belong to nobody.

use serde_json::{Map, Value};

use super::schema::{Kind, Schema};

/// Fields inside structs that are there even if they are empty. Those of every object (`spec`, `status`) need not be named.
const VALUES: &[(&str, &[&str])] = &[
    ("apiextensions.v1.CustomResourceDefinitionSpec", &["names"]),
    ("apiextensions.v1.CustomResourceDefinitionStatus", &["acceptedNames"]),
    ("apps.v1.ControllerRevision", &["revision"]),
    ("apps.v1.DaemonSetSpec", &["template", "updateStrategy"]),
    ("apps.v1.DeploymentSpec", &["strategy", "template"]),
    ("apps.v1.ReplicaSetSpec", &["template"]),
    ("autoscaling.v2.HorizontalPodAutoscalerSpec", &["scaleTargetRef"]),
    (
        "core.v1.Event",
        &[
            "eventTime",
            "firstTimestamp",
            "involvedObject",
            "lastTimestamp",
            "reportingComponent",
            "reportingInstance",
            "source",
        ],
    ),
    ("core.v1.NodeStatus", &["daemonEndpoints", "nodeInfo"]),
    ("core.v1.PodSpec", &["containers"]),
    ("core.v1.PodTemplateSpec", &["metadata", "spec"]),
    ("core.v1.ServiceStatus", &["loadBalancer"]),
    ("networking.v1.IngressStatus", &["loadBalancer"]),
    ("rbac.v1.ClusterRoleBinding", &["roleRef"]),
    ("rbac.v1.RoleBinding", &["roleRef"]),
];

/// The object of a kind that nobody has written to. Custom resources have no Go types: theirs is empty.
pub(crate) fn zero(schema: &Schema) -> Value {
    let node = schema.resolve();
    match node.kind {
        Kind::Integer => return Value::from(0),
        Kind::Array => return Value::Array(Vec::new()),
        Kind::String if node.rules.is_empty() => return Value::from(""),
        Kind::String => return Value::Null,
        _ => {}
    }
    let Some(name) = schema.type_name() else { return Value::Object(Map::new()) };
    let held = VALUES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, fields)| fields);
    let mut members = Map::new();
    for field in held {
        members.extend(schema.member(field).map(|schema| ((*field).to_owned(), zero(schema))));
    }
    if node.properties.contains_key("apiVersion") && node.properties.contains_key("metadata") {
        for field in ["metadata", "spec", "status"] {
            members.extend(node.properties.get(field).map(|schema| (field.to_owned(), zero(schema))));
        }
    }
    members.extend(written_out(schema).map(|field| (field.to_owned(), Value::Null)));
    Value::Object(members)
}

/// The lists of a kind that Go writes out even if there are none.
pub(crate) fn written_out(schema: &Schema) -> impl Iterator<Item = &'static str> {
    LISTS.iter().filter(|(known, _)| Some(*known) == schema.type_name()).map(|(_, field)| *field)
}

/// Lists that Go writes out even if there are none.
const LISTS: [(&str, &str); 4] = [
    ("discovery.v1.EndpointSlice", "endpoints"),
    ("discovery.v1.EndpointSlice", "ports"),
    ("rbac.v1.ClusterRole", "rules"),
    ("rbac.v1.Role", "rules"),
];

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn structs_by_value_are_there_and_pointers_are_not() {
        let template = json!({"metadata": {}, "spec": {"containers": []}});
        assert_eq!(
            zero(&Schema::named("apps.v1.Deployment")),
            json!({"metadata": {}, "spec": {"strategy": {}, "template": template}, "status": {}})
        );
        assert_eq!(zero(&Schema::of_custom_resource(&json!({"type": "object"}))), json!({}));
    }
}
