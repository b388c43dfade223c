//! Tables: one change to a good Canary, and the field that is named for it.

use serde_json::{Value, json};

use super::*;
use crate::canary::parse;

fn changed(pointer: &str, value: &Value) -> Canary {
    let mut object = serde_json::to_value(Canary::test().revert_on_deletion()).unwrap();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(&format!("/spec{parent}")).unwrap();
    match value {
        Value::Null => drop(parent.as_object_mut().unwrap().remove(name)),
        value => parent[name] = value.clone(),
    }
    parse(object).unwrap()
}

fn paths(errors: &[FieldError]) -> Vec<&str> {
    errors.iter().map(|error| error.path.as_str()).collect()
}

#[test]
fn the_tutorials_canary_is_good() {
    let report = validate(&Canary::test().revert_on_deletion(), &Context::default());
    assert_eq!(report, Report::default());
}

#[test]
fn what_would_stall_is_an_error_at_its_field() {
    let metric = |metric: Value| json!([metric]);
    let hook = |url: &str| json!([{ "name": "hook", "url": url }]);
    let cases: Vec<(&str, Value, &str)> = vec![
        ("/analysis/stepWeight", json!(-10), "spec.analysis.stepWeight"),
        ("/analysis/stepWeight", json!(0), "spec.analysis.stepWeight"),
        ("/analysis/stepWeight", Value::Null, "spec.analysis"),
        ("/analysis/stepWeights", json!([1]), "spec.analysis"),
        ("/analysis/maxWeight", json!(1000), "spec.analysis.maxWeight"),
        ("/analysis/stepWeightPromotion", json!(-1), "spec.analysis.stepWeightPromotion"),
        ("/analysis/stepWeightPromotion", json!(200), "spec.analysis.stepWeightPromotion"),
        ("/analysis/mirrorWeight", json!(500), "spec.analysis.mirrorWeight"),
        ("/analysis/canaryReadyThreshold", json!(-5), "spec.analysis.canaryReadyThreshold"),
        ("/analysis/primaryReadyThreshold", json!(500), "spec.analysis.primaryReadyThreshold"),
        ("/analysis/mirror", json!(true), "spec.analysis.mirror"),
        ("/analysis/match", json!([{ "headers": { "x": { "exact": "y" } } }]), "spec.analysis.match"),
        ("/analysis/sessionAffinity", json!({ "cookieName": "c" }), "spec.analysis.sessionAffinity"),
        ("/analysis", Value::Null, "spec.analysis"),
        ("/analysis/metrics", metric(json!({ "name": "" })), "spec.analysis.metrics[0].name"),
        ("/analysis/metrics", metric(json!({ "name": "mine" })), "spec.analysis.metrics[0]"),
        ("/analysis/metrics", metric(json!({ "name": "mine", "query": "  " })), "spec.analysis.metrics[0]"),
        (
            "/analysis/metrics",
            metric(json!({ "name": "request-duration", "thresholdRange": { "min": 2, "max": 1 } })),
            "spec.analysis.metrics[0].thresholdRange",
        ),
        (
            "/analysis/metrics",
            metric(json!({ "name": "request-duration", "thresholdRange": {} })),
            "spec.analysis.metrics[0].thresholdRange",
        ),
        (
            "/analysis/metrics",
            metric(json!({ "name": "request-duration", "interval": "10sx", "threshold": 1 })),
            "spec.analysis.metrics[0].interval",
        ),
        (
            "/analysis/metrics",
            metric(json!({ "name": "request-duration", "interval": "0s", "threshold": 1 })),
            "spec.analysis.metrics[0].interval",
        ),
        (
            "/analysis/metrics",
            metric(json!({ "name": "m", "threshold": 1, "templateRef": { "name": "" } })),
            "spec.analysis.metrics[0].templateRef.name",
        ),
        ("/analysis/webhooks", hook("file:///etc/passwd"), "spec.analysis.webhooks[0].url"),
        ("/analysis/webhooks", hook("http://169.254.169.254/latest"), "spec.analysis.webhooks[0].url"),
        ("/analysis/webhooks", hook("https://kubernetes.default.svc/api"), "spec.analysis.webhooks[0].url"),
        ("/analysis/webhooks", hook("::::"), "spec.analysis.webhooks[0].url"),
        ("/analysis/webhooks", hook(""), "spec.analysis.webhooks[0].url"),
        (
            "/analysis/webhooks",
            json!([{ "name": "h", "url": "http://x/", "retries": -1 }]),
            "spec.analysis.webhooks[0].retries",
        ),
        (
            "/analysis/webhooks",
            json!([{ "name": "h", "url": "http://x/", "timeout": "5sx" }]),
            "spec.analysis.webhooks[0].timeout",
        ),
        (
            "/analysis/webhooks",
            json!([{ "name": "h", "url": "http://x/", "timeout": "0s" }]),
            "spec.analysis.webhooks[0].timeout",
        ),
        (
            "/analysis/alerts",
            json!([{ "name": "a", "providerRef": { "name": "" } }]),
            "spec.analysis.alerts[0].providerRef.name",
        ),
        ("/service", Value::Null, "spec.service"),
        ("/service/port", json!(0), "spec.service.port"),
        ("/service/port", json!(-1), "spec.service.port"),
        ("/service/port", json!(70_000), "spec.service.port"),
        ("/service/portName", json!("HTTP"), "spec.service.portName"),
        ("/service/targetPort", json!("9898"), "spec.service.targetPort"),
        ("/service/targetPort", json!(70_000), "spec.service.targetPort"),
        ("/service/name", json!("a".repeat(300)), "spec.service.name"),
        ("/service/name", json!("my.app"), "spec.service.name"),
        ("/service/gatewayRefs", json!([]), "spec.service.gatewayRefs"),
        ("/service/gatewayRefs", json!([{ "name": "" }]), "spec.service.gatewayRefs[0].name"),
        ("/service/hosts", json!(["*"]), "spec.service.hosts[0]"),
        ("/service/hosts", json!(["ok.example.com", "10.0.0.1"]), "spec.service.hosts[1]"),
        ("/service/timeout", json!("1.5s"), "spec.service.timeout"),
        ("/service/match", json!([{ "uri": {} }]), "spec.service.match[0].uri"),
        ("/service/match", json!([{ "uri": { "prefix": "api" } }]), "spec.service.match[0].uri"),
        ("/service/match", json!([{ "method": { "exact": "FETCH" } }]), "spec.service.match[0].method.exact"),
        ("/service/match", json!([{ "headers": { "x": { "prefix": "y" } } }]), "spec.service.match[0].headers.x"),
        ("/service/rewrite", json!({ "authority": "a:80" }), "spec.service.rewrite.authority"),
        ("/service/mirror", json!([{ "backendRef": { "name": "x" } }]), "spec.service.mirror[0].backendRef.port"),
        ("/service/headers", json!({ "request": { "set": { "bad name": "x" } } }), "spec.service.headers.request.set"),
        ("/service/apex", json!({ "labels": { "a": "b c" } }), "spec.service.apex.labels.a"),
        ("/service/corsPolicy", json!({ "maxAge": "1d" }), "spec.service.corsPolicy.maxAge"),
        ("/targetRef/name", json!(""), "spec.targetRef.name"),
        ("/targetRef/name", json!("podinfo-primary"), "spec.targetRef.name"),
        ("/targetRef/name", json!("a".repeat(253)), "spec.targetRef.name"),
        ("/targetRef/name", json!("Pod_Info"), "spec.targetRef.name"),
        ("/targetRef/kind", json!("DaemonSet"), "spec.targetRef.kind"),
        ("/targetRef/kind", json!("Service"), "spec.targetRef.kind"),
        ("/targetRef/kind", json!("StatefulSet"), "spec.targetRef.kind"),
        (
            "/targetRef",
            json!({ "apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "x" }),
            "spec.provider",
        ),
        (
            "/autoscalerRef",
            json!({ "apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "name": "x" }),
            "spec.autoscalerRef.kind",
        ),
        (
            "/autoscalerRef",
            json!({ "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "name": "x",
                "primaryScalerReplicas": { "minReplicas": 5, "maxReplicas": 2 } }),
            "spec.autoscalerRef.primaryScalerReplicas",
        ),
        ("/progressDeadlineSeconds", json!(-1), "spec.progressDeadlineSeconds"),
        ("/provider", json!("istio"), "spec.provider"),
        ("/provider", json!("gatewayapi:v1beta1"), "spec.provider"),
        ("/provider", json!("gateway"), "spec.provider"),
        ("/metricsServer", json!("prometheus:9090"), "spec.metricsServer"),
    ];
    for (pointer, value, path) in cases {
        let report = validate(&changed(pointer, &value), &Context::default());
        assert!(paths(&report.errors).contains(&path), "{pointer} {value}: {report:#?}");
        assert!(report.errors.iter().all(|error| !error.problem.is_empty() && !error.remedy.is_empty()));
    }
}

#[test]
fn steps_must_rise() {
    for (weights, path) in [
        (&[][..], "spec.analysis.stepWeights"),
        (&[50, 10], "spec.analysis.stepWeights[1]"),
        (&[10, 10], "spec.analysis.stepWeights[1]"),
        (&[-10, 10], "spec.analysis.stepWeights[0]"),
        (&[0, 10], "spec.analysis.stepWeights[0]"),
        (&[10, 150], "spec.analysis.stepWeights[1]"),
    ] {
        let report = validate(&Canary::test().step_weights(weights), &Context::default());
        assert_eq!(paths(&report.errors), [path], "{weights:?}");
    }
    let report = validate(&Canary::test().step_weights(&[1, 5, 100]), &Context::default());
    assert!(report.is_ok() && paths(&report.warnings).contains(&"spec.analysis.maxWeight"));
}

#[test]
fn what_flagger_defaults_or_clamps_is_a_warning() {
    for (pointer, value, path) in [
        ("/analysis/threshold", json!(0), "spec.analysis.threshold"),
        ("/analysis/threshold", json!(-1), "spec.analysis.threshold"),
        ("/analysis/threshold", json!(1_u64 << 40), "spec.analysis.threshold"),
        ("/analysis/stepWeight", json!(101), "spec.analysis.stepWeight"),
        ("/analysis/maxWeight", json!(0), "spec.analysis.maxWeight"),
        ("/analysis/maxWeight", json!(-1), "spec.analysis.maxWeight"),
        ("/analysis/interval", json!("0s"), "spec.analysis.interval"),
        ("/analysis/interval", json!("10sx"), "spec.analysis.interval"),
        ("/analysis/metrics", json!([]), "spec.analysis"),
        ("/analysis/metrics", json!([{ "name": "request-duration" }]), "spec.analysis.metrics[0]"),
        ("/analysis/alerts", json!([{ "name": "a", "providerRef": { "name": "slack" } }]), "spec.analysis.alerts"),
        ("/revertOnDeletion", Value::Null, "spec.revertOnDeletion"),
        ("/progressDeadlineSeconds", json!(0), "spec.progressDeadlineSeconds"),
        ("/service/retries", json!({ "attempts": 3 }), "spec.service.retries"),
        ("/targetRef/apiVersion", json!("extensions/v1beta1"), "spec.targetRef.apiVersion"),
    ] {
        let report = validate(&changed(pointer, &value), &Context::default());
        assert!(report.is_ok() && paths(&report.warnings) == [path], "{pointer} {value}: {report:#?}");
    }
}

#[test]
fn what_just_works_is_neither() {
    for (pointer, value) in [
        ("/analysis/stepWeight", json!(7)),
        ("/analysis/interval", json!("1m30s")),
        ("/analysis/maxWeight", Value::Null),
        ("/service/targetPort", json!("http")),
        ("/service/targetPort", json!(0)),
        ("/service/timeout", json!("1m30s")),
        ("/service/match", json!([{ "uri": { "regex": "x.*" }, "method": { "exact": "GET" } }])),
        ("/provider", Value::Null),
    ] {
        let report = validate(&changed(pointer, &value), &Context::default());
        assert_eq!(report, Report::default(), "{pointer} {value}");
    }
}

#[test]
fn iterations_must_begin_and_end() {
    for iterations in [-1, 0, 1_000_000_000, i64::MAX] {
        let report = validate(&Canary::test().iterations(iterations), &Context::default());
        assert!(paths(&report.errors).contains(&"spec.analysis.iterations"), "{iterations}: {report:#?}");
    }
    let report = validate(&Canary::test().iterations(10), &Context::default());
    assert!(report.errors[0].problem.contains("blue/green is not built yet"), "{report:#?}");
}

#[test]
fn a_skipped_analysis_cannot_stall() {
    let report = validate(&Canary::test().step_weight(-10).skip_analysis(), &Context::default());
    assert!(report.is_ok() && paths(&report.warnings).contains(&"spec.analysis.stepWeight"), "{report:#?}");
}

#[test]
fn capabilities_decide_what_is_built() {
    let wide = Capabilities {
        routers: &[Router { name: "istio", strategies: &[StrategyName::Weighted, StrategyName::BlueGreen] }],
        targets: &["Deployment", "DaemonSet"],
        ..Capabilities::built().clone()
    };
    let mut canary = Canary::test().iterations(10);
    canary.spec.provider = "istio".into();
    canary.spec.target_ref.kind = "DaemonSet".into();
    assert!(validate(&canary, &Context { capabilities: &wide, ..Context::default() }).is_ok());
    canary.spec.provider = String::new();
    let context = Context { default_provider: "istio", capabilities: &wide, ..Context::default() };
    assert!(validate(&canary, &context).is_ok());
    let report = validate(&canary, &Context { default_provider: "istio", ..Context::default() });
    assert!(report.errors[0].problem.contains("operator's default"), "{report:#?}");
}

#[test]
fn the_older_canary_keeps_the_target() {
    let born = |name: &str, second: i64| {
        let mut canary = Canary::test();
        canary.metadata.name = Some(name.into());
        canary.metadata.creation_timestamp = Some(jiff::Timestamp::from_second(second).unwrap().into());
        canary
    };
    let (old, new) = (born("z", 1), born("a", 2));
    let siblings = [&old, &new];
    let context = Context { siblings: &siblings, ..Context::default() };
    assert!(validate(&old, &context).is_ok());
    assert_eq!(paths(&validate(&new, &context).errors), ["spec.targetRef"]);
    let elsewhere = new.clone().in_namespace("prod");
    assert!(validate(&elsewhere, &context).is_ok());
    let mut apex = new.clone().named("b");
    apex.spec.service.as_mut().unwrap().name = "podinfo".into();
    assert_eq!(paths(&validate(&apex, &context).errors), ["spec.service.name"]);
}

#[test]
fn other_namespaces_can_be_closed() {
    let canary = changed(
        "/analysis/metrics",
        &json!([{ "name": "m", "threshold": 1, "templateRef": { "name": "t", "namespace": "flagger-system" } }]),
    );
    assert!(validate(&canary, &Context::default()).is_ok());
    let closed = Context { no_cross_namespace_refs: true, ..Context::default() };
    let report = validate(&canary, &closed);
    assert_eq!(paths(&report.errors), ["spec.analysis.metrics[0].templateRef.namespace"]);
    assert_eq!(
        report.errors[0].problem,
        "can't access metric template t.flagger-system, cross-namespace references are blocked"
    );
}

#[test]
fn query_templates_are_asked_about() {
    let refuse = |text: &str| if text.contains("{{ nonsense") { Err("no such function".to_owned()) } else { Ok(()) };
    let context = Context { template: &refuse, ..Context::default() };
    let canary = changed("/analysis/metrics", &json!([{ "name": "m", "threshold": 1, "query": "up{{ nonsense" }]));
    assert_eq!(paths(&validate(&canary, &context).errors), ["spec.analysis.metrics[0].query"]);
}

#[test]
fn templates_and_providers_have_rules_too() {
    let template = |provider: Value, query: &str| {
        let object = json!({ "metadata": {}, "spec": { "provider": provider, "query": query } });
        validate_metric_template(&crate::field::parse(object).unwrap(), &Context::default())
    };
    assert!(template(json!({ "type": "prometheus", "address": "http://prometheus.istio-system:9090" }), "up").is_ok());
    assert_eq!(paths(&template(json!({ "type": "prometheus" }), "").errors), ["spec.provider.address", "spec.query"]);
    assert_eq!(paths(&template(json!({ "type": "datadog" }), "up").errors), ["spec.provider.type"]);
    let provider = |spec: Value| {
        let object = json!({ "metadata": {}, "spec": spec });
        validate_alert_provider(&crate::field::parse(object).unwrap(), &Context::default())
    };
    assert!(provider(json!({ "type": "slack", "address": "https://hooks.slack.com/x" })).is_ok());
    assert_eq!(paths(&provider(json!({ "type": "slack" })).errors), ["spec"]);
    assert_eq!(paths(&provider(json!({ "type": "slack", "address": "slack" })).errors), ["spec.address"]);
}
