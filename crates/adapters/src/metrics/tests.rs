//! From a plan to the request on the wire and back.

use seaway_api::canary::{Metric, NamespacedRef};
use seaway_core::plan::Settings;
use serde_json::json;

use super::*;
use crate::testing::{Script, world};
use crate::world::Objects;

const VALUE: &str =
    r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"99.5"]}]}}"#;
const NOTHING: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

const TEMPLATE: &str = "
apiVersion: flagger.app/v1beta1
kind: MetricTemplate
metadata: {name: error-rate, namespace: istio-system}
spec:
  provider:
    type: prometheus
    address: http://prometheus.istio-system:9090/base/?x=1
    headers: {X-Scope: [tenant]}
    secretRef: {name: login}
  query: |
    sum(
      rate(errors{ns=\"{{ namespace }}\", app=\"{{ target }}\"}[{{ interval }}])
    )
";

fn templated() -> Canary {
    let reference = NamespacedRef { name: "error-rate".into(), namespace: "istio-system".into() };
    let metric = Metric {
        name: "error-rate".into(),
        interval: "30s".into(),
        template_ref: Some(reference),
        ..Metric::default()
    };
    Canary::test().metrics(vec![metric])
}

fn inline() -> Canary {
    Canary::test().metrics(vec![Metric {
        name: "mine".into(),
        query: "up{x=\"{{ target }}\"}".into(),
        ..Metric::default()
    }])
}

fn inquiry(canary: &Canary, world: &Objects) -> Result<Inquiry, Answer> {
    let plan = Plan::new(canary, &Settings::default()).unwrap();
    Inquiry::of(&plan.metrics[0], &plan, canary, world)
}

fn secret(data: &Value) -> Value {
    json!({ "metadata": { "name": "login" }, "data": data })
}

#[tokio::test(start_paused = true)]
async fn a_template_is_rendered_and_asked_with_its_credentials() {
    let inquiry = inquiry(&templated(), &world(TEMPLATE)).unwrap();
    assert_eq!(inquiry.secret().unwrap().name, "login");
    assert_eq!(inquiry.secret().unwrap().namespace, "istio-system");
    let script = Script::answering([(200, VALUE)]);
    let login = secret(&json!({ "username": "YQ==", "password": "Yg==" }));
    let answer = inquiry.ask(&Http::through(script.clone()), Some(&login)).await;
    let query = r#"sum( rate(errors{ns="test", app="podinfo"}[30s]) ) "#;
    assert_eq!(answer, Answer::Value { value: 99.5, query: query.into() });
    let request = script.requests().remove(0).to_lowercase();
    assert!(request.starts_with("get /base/api/v1/query?query=sum%28"), "{request}");
    assert!(request.contains("x-scope: tenant") && request.contains("authorization: basic ytpi"), "{request}");
}

#[tokio::test(start_paused = true)]
async fn builtin_queries_are_flaggers() {
    let inquiry = inquiry(&Canary::test(), &Objects::default()).unwrap();
    assert!(inquiry.trusted && inquiry.secret().is_none());
    assert!(
        inquiry.query().contains(r#"http_request_duration_seconds_count{ kubernetes_namespace="test""#),
        "{}",
        inquiry.query()
    );
    let script = Script::answering([(200, NOTHING), (200, VALUE)]);
    let http = Http::through(script);
    let Answer::NoData { reason, .. } = inquiry.ask(&http, None).await else { panic!() };
    assert_eq!(reason, "no values found");
    assert!(matches!(inquiry.ask(&http, None).await, Answer::Value { .. }));
}

#[tokio::test(start_paused = true)]
async fn errors_in_flaggers_words_and_without_bodies() {
    let broken = |answer: Answer| match answer {
        Answer::Broken(text) => text,
        other => panic!("{other:?}"),
    };
    let http = || Http::through(Script::answering([(500, "stack trace with secrets")]));
    let ask = |inquiry: Inquiry| async move { inquiry.ask(&http(), Some(&secret(&json!({ "token": "eA==" })))).await };
    let failed = "status 500 Internal Server Error";
    let builtin = inquiry(&Canary::test(), &Objects::default()).unwrap();
    assert_eq!(broken(ask(builtin).await), format!("Prometheus query failed: {failed}"));
    let inline = inquiry(&inline(), &Objects::default()).unwrap();
    assert_eq!(broken(ask(inline).await), format!("Prometheus query failed for mine: {failed}"));
    let template = inquiry(&templated(), &world(TEMPLATE)).unwrap();
    assert_eq!(broken(ask(template.clone()).await), format!("Metric query failed for error-rate: {failed}"));

    let no_secret = broken(template.ask(&http(), None).await);
    assert_eq!(no_secret, "Metric template error-rate.istio-system secret login error: secrets \"login\" not found");
    let empty = broken(template.ask(&http(), Some(&secret(&json!({ "username": "eA==" })))).await);
    assert_eq!(
        empty,
        "Metric template error-rate.istio-system provider prometheus error: the secret has neither token nor username and password"
    );
    let missing = broken(inquiry(&templated(), &Objects::default()).unwrap_err());
    assert_eq!(
        missing,
        "Metric template error-rate.istio-system error: metrictemplate.flagger.app \"error-rate\" not found"
    );
    let unrenderable = world(&TEMPLATE.replace("{{ interval }}", "{{ variables.window }}"));
    let text = broken(inquiry(&templated(), &unrenderable).unwrap_err());
    assert!(text.starts_with("Metric template error-rate.istio-system query render error: "), "{text}");
    let datadog = inquiry(&templated(), &world(&TEMPLATE.replace("type: prometheus", "type: datadog"))).unwrap();
    let text = broken(datadog.ask(&http(), Some(&secret(&json!({})))).await);
    assert!(text.starts_with("Metric template error-rate.istio-system provider datadog error: "), "{text}");
    let mut nowhere = Canary::test();
    nowhere.spec.metrics_server = "prometheus".into();
    if let Ok(inquiry) = Plan::new(&nowhere, &Settings::default())
        .map(|plan| Inquiry::of(&plan.metrics[0], &plan, &nowhere, &Objects::default()).unwrap())
    {
        assert!(!inquiry.trusted);
        assert!(
            broken(inquiry.ask(&http(), None).await).starts_with("Error building Prometheus client for prometheus ")
        );
    }
}

#[tokio::test(start_paused = true)]
async fn one_probe_per_provider() {
    const ONE: &str = r#"{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"1"]}]}}"#;
    let plan = Plan::new(&Canary::test(), &Settings::default()).unwrap();
    let probes = Inquiry::probes(&plan, &Canary::test(), &Objects::default()).unwrap();
    assert_eq!((plan.metrics.len(), probes.len()), (2, 1));
    let script = Script::answering([(200, ONE), (200, NOTHING)]);
    let http = Http::through(script.clone());
    assert_eq!(probes[0].probe(&http, None).await, Answer::Yes);
    assert_eq!(probes[0].probe(&http, None).await, Answer::No("prometheus not avaiable: no values found".into()));
    assert_eq!(probes[0].probe(&http, None).await, Answer::No("prometheus not avaiable: connection refused".into()));
    assert!(script.requests()[0].contains("query=vector%281%29"));
}
