//! The schemas against the Rust types, and the rules against the inputs they must and must not refuse.

use serde_json::{Map, Value, json};

use super::*;
use crate::{AlertProvider, Canary, MetricTemplate, field};

/// A value that fits `schema` and uses every property in it. Of alternatives the first one that fits is kept.
fn full(schema: &JSONSchemaProps) -> Value {
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
        JSONSchemaPropsOrArray as Items, JSONSchemaPropsOrBool as Values,
    };
    if let Some(choices) = &schema.enum_ {
        return choices.last().map(|choice| choice.0.clone()).unwrap_or_default();
    }
    match schema.type_.as_deref() {
        Some("string") if schema.format.as_deref() == Some("date-time") => json!("2024-07-11T01:14:00Z"),
        Some("string") if schema.pattern.as_deref() == Some("^[0-9]+(m|s)") => json!("1m"),
        Some("string") => json!("text"),
        Some("number" | "integer") => json!(7),
        Some("boolean") => json!(true),
        Some("array") => match &schema.items {
            Some(Items::Schema(items)) => json!([full(items)]),
            _ => json!([]),
        },
        Some("object") => match (&schema.properties, &schema.additional_properties) {
            (Some(properties), _) => {
                Value::Object(properties.iter().map(|(name, schema)| (name.clone(), full(schema))).collect())
            }
            (None, Some(Values::Schema(values))) => json!({ "key": full(values) }),
            (None, _) => Value::Object(Map::new()),
        },
        _ => json!("named"),
    }
}

pub(crate) fn full_object(kind: &str) -> Value {
    let mut object = full(schema_of(kind).unwrap());
    object["apiVersion"] = json!(crate::API_VERSION);
    object["kind"] = json!(kind);
    object["metadata"] = json!({ "name": "podinfo" });
    object["status"]["conditions"][0]["status"] = json!("True");
    object
}

/// Paths of all leaves.
fn leaves(path: &str, value: &Value, into: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (name, value) in fields {
                leaves(&format!("{path}.{name}"), value, into);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for value in items {
                leaves(&format!("{path}[]"), value, into);
            }
        }
        Value::Number(number) => into.push((path.to_owned(), json!(number.as_f64()))),
        leaf => into.push((path.to_owned(), leaf.clone())),
    }
}

fn sorted_leaves(value: &Value) -> Vec<(String, Value)> {
    let mut list = Vec::new();
    leaves("", value, &mut list);
    list.sort_by(|a, b| a.0.cmp(&b.0));
    list
}

#[test]
fn every_property_of_the_schema_passes_through_the_types() {
    let canary: Canary = field::parse(full_object("Canary")).unwrap();
    assert_eq!(sorted_leaves(&serde_json::to_value(canary).unwrap()), sorted_leaves(&full_object("Canary")));
    let template: MetricTemplate = field::parse(full_object("MetricTemplate")).unwrap();
    assert_eq!(sorted_leaves(&serde_json::to_value(template).unwrap()), sorted_leaves(&full_object("MetricTemplate")));
    let provider: AlertProvider = field::parse(full_object("AlertProvider")).unwrap();
    assert_eq!(sorted_leaves(&serde_json::to_value(provider).unwrap()), sorted_leaves(&full_object("AlertProvider")));
}

#[test]
fn every_field_of_the_types_is_in_the_schema() {
    // A full object has a value in every field of the types, or the Debug text would show the default of that field.
    let canary: Canary = field::parse(full_object("Canary")).unwrap();
    let text = format!("{:?}", (canary.spec, canary.status));
    let text = text
        .replace("canary_analysis: None", "")
        .replace("sessionAffinity: None", "")
        .replace("other: {}", "")
        .replace("percent: None", "")
        // Only A/B headers have a suffix; only Istio's match goes without one.
        .replace("suffix: None", "")
        .replace("same_site: Some(None)", "");
    for default in [": None", ": []", ": \"\"", ": {}", ": false"] {
        let at = text.find(default);
        assert!(at.is_none(), "not in the schema: …{}", &text[at.unwrap_or(0).saturating_sub(80)..]);
    }
}

#[test]
fn names_columns_and_annotations_are_flaggers() {
    let all = crds();
    let names: Vec<_> = all.iter().filter_map(|crd| crd.metadata.name.as_deref()).collect();
    assert_eq!(names, ["canaries.flagger.app", "metrictemplates.flagger.app", "alertproviders.flagger.app"]);
    let shown = |crd: &CustomResourceDefinition| -> Vec<String> {
        let columns = crd.spec.versions[0].additional_printer_columns.clone().unwrap();
        columns.into_iter().filter(|column| column.priority.is_none()).map(|column| column.name).collect()
    };
    assert_eq!(shown(&all[0]), ["Status", "Weight", "LastTransitionTime"]);
    assert_eq!((shown(&all[1]), shown(&all[2])), (vec!["Provider".to_owned()], vec!["Type".to_owned()]));
    for crd in &all {
        let text = serde_json::to_value(crd).unwrap();
        assert_eq!(text["metadata"]["annotations"]["helm.sh/resource-policy"], "keep");
        assert_eq!(text["spec"]["names"]["categories"], json!(["all"]));
        assert_eq!(text["spec"]["names"].get("shortNames"), None);
        assert_eq!(text["spec"]["versions"][0]["subresources"], json!({ "status": {} }));
    }
}

#[test]
fn schemas_are_structural() {
    fn walk(path: &str, schema: &Value) {
        let node = schema.as_object().unwrap();
        assert!(node.contains_key("type") || node.contains_key("x-kubernetes-int-or-string"), "{path} has no type");
        for key in ["oneOf", "anyOf", "allOf", "not"] {
            let text = node.get(key).map(Value::to_string).unwrap_or_default();
            assert!(!text.contains("\"type\":") && !text.contains("\"description\":"), "{path}.{key} has a type");
        }
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            assert!(!node.contains_key("additionalProperties"), "{path} has both kinds of properties");
            for (name, schema) in properties {
                walk(&format!("{path}.{name}"), schema);
            }
        }
        for key in ["items", "additionalProperties"] {
            if let Some(schema) = node.get(key) {
                walk(&format!("{path}.{key}"), schema);
            }
        }
    }
    for kind in ["Canary", "MetricTemplate", "AlertProvider"] {
        walk(kind, &serde_json::to_value(schema_of(kind).unwrap()).unwrap());
    }
    assert!(schema_of("Deployment").is_none());
}

/// Messages of the CEL rules that refuse this spec.
fn refusals(change: impl FnOnce(&mut Value)) -> Vec<String> {
    let mut object = serde_json::to_value(Canary::test()).unwrap();
    change(&mut object["spec"]);
    let schema = serde_json::to_value(schema_of("Canary").unwrap()).unwrap();
    let Err(errors) = kube_cel::Validator::new().validate(&schema, &object, None) else { return Vec::new() };
    errors.into_iter().map(|error| error.message).collect()
}

#[test]
fn rules_let_everything_through_that_flagger_can_run() {
    let cases: Vec<(&str, Value)> = vec![
        ("/analysis/threshold", json!(0)),
        ("/analysis/threshold", json!(-1)),
        ("/analysis/maxWeight", json!(0)),
        ("/analysis/interval", json!("0s")),
        ("/analysis/stepWeight", json!(7)),
        ("/analysis/stepWeight", json!(0)),
        ("/service/name", json!("")),
        ("/service/name", json!("a".repeat(55))),
        ("/service/port", json!(65_535)),
        ("/service/port", json!(80.0)),
        ("/targetRef/kind", json!("DaemonSet")),
    ];
    for (pointer, value) in cases {
        assert_eq!(refusals(|spec| set(spec, pointer, value.clone())), Vec::<String>::new(), "{pointer} {value}");
    }
    let skipped = refusals(|spec| {
        set(spec, "/analysis/stepWeight", json!(-10));
        spec["skipAnalysis"] = json!(true);
    });
    assert!(skipped.is_empty(), "{skipped:?}");
    let knative = refusals(|spec| {
        spec["targetRef"] = json!({ "apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello" });
        spec["provider"] = json!("knative");
        spec.as_object_mut().unwrap().remove("service");
    });
    assert!(knative.is_empty(), "{knative:?}");
}

#[test]
fn rules_refuse_what_can_never_run() {
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/analysis/stepWeight", json!(-10), "never advances"),
        ("/service/port", json!(0), "1 to 65535"),
        ("/service/port", json!(-1), "1 to 65535"),
        ("/service/port", json!(70_000), "1 to 65535"),
        ("/service/name", json!("a".repeat(56)), "fit 63"),
        ("/targetRef/name", json!("a".repeat(253)), "fit 63"),
        ("/targetRef/name", json!("my.app"), "dashes"),
        ("/provider", json!("knative"), "needs a Knative Service"),
        ("/analysis/sessionAffinity", json!({ "cookieName": "a", "primaryCookieName": "a" }), "must differ"),
        ("/service/mirror", json!([{ "backendRef": { "group": "", "kind": "Service", "name": "x" } }]), "its port"),
    ];
    for (pointer, value, message) in cases {
        let found = refusals(|spec| set(spec, pointer, value.clone()));
        assert!(found.iter().any(|text| text.contains(message)), "{pointer} {value}: {found:?}");
    }
    let missing = refusals(|spec| drop(spec.as_object_mut().unwrap().remove("service")));
    assert!(missing.iter().any(|text| text.contains("service.port")), "{missing:?}");
    let knative = refusals(|spec| {
        spec["targetRef"] = json!({ "apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "hello" });
        spec["autoscalerRef"] = json!({ "apiVersion": "x", "kind": "ScaledObject", "name": "hello" });
    });
    assert_eq!(knative.len(), 2, "{knative:?}");
}

fn set(spec: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    spec.pointer_mut(parent).unwrap()[name] = value;
}
