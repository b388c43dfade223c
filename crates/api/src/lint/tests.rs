//! Files as people write them, and what is said about them.

use super::*;

const GOOD: &str = "\
apiVersion: flagger.app/v1beta1
kind: Canary
metadata:
  name: podinfo
  namespace: test
spec:
  targetRef:
    apiVersion: apps/v1
    kind: Deployment
    name: podinfo
  service:
    port: 9898
    gatewayRefs:
      - name: gateway
        namespace: istio-ingress
  analysis:
    interval: 1m
    threshold: 5
    stepWeight: 10
    metrics:
      - name: request-success-rate
        thresholdRange:
          min: 99
  revertOnDeletion: true
";

fn findings(text: &str) -> Vec<Finding> {
    lint(&[Source { name: "a.yaml", text }], &Context::default())
}

fn said(text: &str) -> Vec<String> {
    findings(text).iter().map(ToString::to_string).collect()
}

#[test]
fn a_good_file_is_silent() {
    assert_eq!(said(GOOD), Vec::<String>::new());
}

#[test]
fn a_misspelt_group_is_found() {
    assert_eq!(
        said(&GOOD.replace("flagger.app/v1beta1", "flager.app/v1beta1")),
        ["a.yaml:1: error: apiVersion: there is no group \"flager.app\" with a Canary; write flagger.app/v1beta1"]
    );
    assert_eq!(said(&GOOD.replace("flagger.app/v1beta1", "canaries.example.com/v1")), Vec::<String>::new());
    assert_eq!(said("apiVersion: flagger.io/v1\nkind: Widget\n"), Vec::<String>::new(), "no kind of ours");
}

#[test]
fn many_documents_are_no_aliases() {
    let many = vec![GOOD; 5000].join("---\n");
    assert!(!said(&many).iter().any(|text| text.contains("aliases")));
}

#[test]
fn each_fault_has_its_line_and_field() {
    for (from, to, expected) in [
        (
            "stepWeight: 10",
            "stepWieght: 10",
            "a.yaml:19: error: spec.analysis.stepWieght: there is no such field; the API server would drop it; did you mean \"stepWeight\"?",
        ),
        (
            "stepWeight: 10",
            "stepWeight: \"10\"",
            "a.yaml:19: error: spec.analysis.stepWeight: is the text \"10\", not a number; remove the quotes",
        ),
        (
            "stepWeight: 10",
            "stepWeight: -10",
            "a.yaml:19: error: spec.analysis.stepWeight: a step of -10 never advances; write a step from 1 to 100",
        ),
        (
            "threshold: 5",
            "threshold: 1.5",
            "a.yaml:18: error: spec.analysis.threshold: 1.5 is not a whole number; write a value of the type the field has",
        ),
        (
            "threshold: 5",
            "threshold: 0",
            "a.yaml:18: warning: spec.analysis.threshold: 0 is read as 1: the first failed check rolls back; write 1 or more",
        ),
        (
            "interval: 1m",
            "interval: 1h",
            "a.yaml:17: error: spec.analysis.interval: \"1h\" does not match ^[0-9]+(m|s); write minutes or seconds: 1m, 30s",
        ),
        (
            "kind: Deployment",
            "kind: Deploymnet",
            "a.yaml:9: error: spec.targetRef.kind: \"Deploymnet\" is not allowed; did you mean \"Deployment\"?",
        ),
        (
            "          min: 99",
            "          min: 99\n          max: 9",
            "a.yaml:22: error: spec.analysis.metrics[0].thresholdRange: min 99 is more than max 9: no value would pass; swap them",
        ),
        ("    port: 9898\n", "    portName: http\n", "a.yaml:11: error: spec.service.port: is missing; add it"),
        (
            "    stepWeight: 10\n",
            "",
            "a.yaml:16: error: spec.analysis: something is missing; write exactly one of: interval + threshold + iterations, or interval + threshold + stepWeight, or interval + threshold + stepWeights",
        ),
        (
            "  revertOnDeletion: true",
            "  revertOnDeletion: true\n  maxWeight: 50",
            "a.yaml:25: error: spec.maxWeight: there is no such field; the API server would drop it; it belongs to spec.analysis",
        ),
        (
            "revertOnDeletion: true",
            "revertOnDeletion: \"true\"",
            "a.yaml:24: error: spec.revertOnDeletion: is the text \"true\", not true or false; write true or false without quotes",
        ),
        (
            "v1beta1",
            "v1alpha3",
            "a.yaml:1: error: apiVersion: \"flagger.app/v1alpha3\" is not served; write flagger.app/v1beta1",
        ),
        (
            "kind: Canary",
            "kind: Canarie",
            "a.yaml:2: error: kind: flagger.app has no kind \"Canarie\"; use Canary, MetricTemplate or AlertProvider",
        ),
        (
            "  name: podinfo\n  namespace",
            "  name: Pod_Info\n  namespace",
            "a.yaml:4: error: metadata.name: \"Pod_Info\" is no object name; use lower case letters, digits, dashes and dots",
        ),
        (
            "spec:",
            "  namespace: other\nspec:",
            "a.yaml:6: error: the key \"namespace\" is written twice; correct the YAML",
        ),
        (
            "  revertOnDeletion: true\n",
            "",
            "a.yaml:6: warning: spec.revertOnDeletion: deleting the Canary removes the primary that serves users; set it to true to have the target serve again first",
        ),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        assert!(said(&text).contains(&expected.to_owned()), "{expected}\nnot in {:#?}", said(&text));
    }
}

#[test]
fn a_field_without_a_value_counts_as_not_written() {
    let text = GOOD
        .replacen("  service:\n", "  autoscalerRef:\n  service:\n    hosts: null\n    portDiscovery: ~\n", 1)
        .replacen("  revertOnDeletion: true\n", "    webhooks:\n  revertOnDeletion: true\n", 1);
    let warning = |line: u32, path: &str| {
        format!("a.yaml:{line}: warning: {path}: is empty; it counts as not written; write a value or remove the field")
    };
    assert_eq!(
        said(&text),
        [
            warning(11, "spec.autoscalerRef"),
            warning(13, "spec.service.hosts"),
            warning(14, "spec.service.portDiscovery"),
            warning(27, "spec.analysis.webhooks"),
        ]
    );
    let text = GOOD.replacen("port: 9898", "port:", 1);
    assert_eq!(said(&text), ["a.yaml:12: error: spec.service.port: is missing; add it"]);
    let text = GOOD.replacen("    gatewayRefs:\n", "    hosts: [null]\n    gatewayRefs:\n", 1);
    assert_eq!(
        said(&text),
        ["a.yaml:13: error: spec.service.hosts[0]: is empty, not a text; write a value or remove the field"]
    );
}

#[test]
fn one_fault_is_said_once() {
    let found = findings(&GOOD.replacen("port: 9898", "port: true", 1));
    assert_eq!(found.iter().filter(|finding| finding.path == "spec.service.port").count(), 1, "{found:#?}");
}

#[test]
fn references_are_looked_up_in_all_files() {
    let canary = GOOD.replacen(
        "      - name: request-success-rate\n",
        "      - name: errors\n        templateRef:\n          name: errors\n          namespace: flagger-system\n",
        1,
    );
    assert_eq!(
        said(&canary),
        [
            "a.yaml:22: warning: spec.analysis.metrics[0].templateRef: MetricTemplate flagger-system/errors is not in these \
          files; make sure it is in the cluster"
        ]
    );
    let template = "apiVersion: flagger.app/v1beta1\nkind: MetricTemplate\nmetadata: {name: errors, namespace: flagger-system}\n\
        spec: {provider: {type: prometheus, address: 'http://prometheus:9090'}, query: up}\n";
    let sources = [Source { name: "a.yaml", text: &canary }, Source { name: "b.yaml", text: template }];
    assert_eq!(lint(&sources, &Context::default()), Vec::new());
}

#[test]
fn two_canaries_of_one_target_and_one_object_twice() {
    let other = GOOD.replacen("  name: podinfo\n  namespace", "  name: zebra\n  namespace", 1);
    let text = format!("{GOOD}---\n{other}---\n{GOOD}");
    let found = findings(&text);
    let places: Vec<_> = found.iter().map(|finding| (finding.document, finding.path.as_str())).collect();
    assert_eq!(places, [(1, "spec.targetRef"), (2, "metadata.name")], "{found:#?}");
}

#[test]
fn objects_of_others_are_left_alone() {
    assert_eq!(
        said("apiVersion: apps/v1\nkind: Deployment\nspec: {anything: goes}\n---\njust: text\n"),
        Vec::<String>::new()
    );
    assert_eq!(said("").len(), 0);
    assert_eq!(said("a: [1\n").len(), 1);
}
