//! Schema of `Canary`: the outer fields, the references and the status.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::schema::{Schema, choice, flag, integer, list, number, object, text, text_map, time};
use super::{Kind, analysis, column, conditions, service};
use crate::canary::{DECISIONS_KEPT, PROVIDERS, Phase};

pub(super) fn definition() -> CustomResourceDefinition {
    Kind {
        name: "Canary",
        plural: "canaries",
        singular: "canary",
        description: "A workload whose new versions reach users a little at a time.",
        columns: vec![
            column("Status", "string", ".status.phase", 0),
            column("Weight", "string", ".status.canaryWeight", 0),
            column("Suspended", "boolean", ".spec.suspend", 1),
            column("FailedChecks", "string", ".status.failedChecks", 1),
            column("Interval", "string", ".spec.analysis.interval", 1),
            column("Mirror", "boolean", ".spec.analysis.mirror", 1),
            column("StepWeight", "string", ".spec.analysis.stepWeight", 1),
            column("StepWeights", "string", ".spec.analysis.stepWeights", 1),
            column("MaxWeight", "string", ".spec.analysis.maxWeight", 1),
            column("LastTransitionTime", "string", ".status.lastTransitionTime", 0),
        ],
        spec: rules(spec()),
        status: status(),
    }
    .definition()
}

fn spec() -> Schema {
    object("What to roll out and how.")
        .field("provider", choice("Router; the operator's default if absent.", &PROVIDERS))
        .field(
            "metricsServer",
            text("Prometheus URL for builtin and inline metrics; the operator's default if absent."),
        )
        .field(
            "progressDeadlineSeconds",
            number("How long a workload may take to become ready, in seconds (default 600)."),
        )
        .field("targetRef", target())
        .field("autoscalerRef", autoscaler())
        .field("ingressRef", reference("Ingress, for the NGINX and Skipper routers.", &["Ingress"]))
        .field("routeRef", reference("Route, for the APISIX router.", &["ApisixRoute"]))
        .field(
            "upstreamRef",
            reference("Upstream with settings to copy, for the Gloo router.", &["Upstream"])
                .field("namespace", text("Namespace; the Canary's own if absent.")),
        )
        .field("service", service::schema())
        .field("analysis", analysis::schema())
        .field("skipAnalysis", flag("Promote without analysis."))
        .field("revertOnDeletion", flag("Put everything back as it was when the Canary is deleted."))
        .field("suspend", flag("Do nothing for this Canary."))
        .required(&["targetRef", "analysis"])
}

/// What Flagger refuses, or can never run whatever its flags are. Bounds on names keep the rules cheap; no object can
/// have a longer name anyway.
fn rules(spec: Schema) -> Schema {
    const KNATIVE: &str = "self.targetRef.kind == 'Service' && self.targetRef.apiVersion == 'serving.knative.dev/v1'";
    const NAMED: &str = "has(self.service) && has(self.service.name) && self.service.name != ''";
    let apex = format!("({NAMED} ? self.service.name : self.targetRef.name)");
    spec.rule(
        &format!("!({KNATIVE}) || (has(self.provider) && self.provider == 'knative')"),
        "a Knative Service needs the provider knative",
    )
    .rule(
        &format!("!has(self.provider) || self.provider != 'knative' || ({KNATIVE})"),
        "the provider knative needs a Knative Service as target",
    )
    .rule(&format!("!({KNATIVE}) || !has(self.autoscalerRef)"), "a Knative Service scales itself; remove autoscalerRef")
    .rule("self.targetRef.kind == 'Service' || has(self.service)", "service.port is needed to make the Services")
    .rule(
        &format!("self.targetRef.kind == 'Service' || size({apex}) <= 55"),
        "the Service name with -primary must fit 63 characters; set a service.name of at most 55",
    )
    .rule(
        &format!("self.targetRef.kind == 'Service' || {apex}.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')"),
        "the Service name must be lower case letters, digits and dashes; set a service.name",
    )
    .rule(
        "self.targetRef.kind == 'Service' || !has(self.service) \
         || (double(self.service.port) >= 1.0 && double(self.service.port) <= 65535.0)",
        "service.port must be from 1 to 65535",
    )
    .rule(
        "(has(self.skipAnalysis) && self.skipAnalysis) || (has(self.provider) && self.provider == 'kubernetes') \
         || !has(self.analysis.stepWeight) || double(self.analysis.stepWeight) >= 0.0",
        "a negative analysis.stepWeight never advances",
    )
}

fn reference(description: &str, kinds: &[&str]) -> Schema {
    object(description)
        .field("apiVersion", text("API group and version."))
        .field("kind", choice("Kind.", kinds))
        .field("name", text("Name."))
        .required(&["apiVersion", "kind", "name"])
}

fn target() -> Schema {
    reference("The workload whose changes are rolled out.", &["DaemonSet", "Deployment", "Service"])
        .field("name", text("Name.").length(1, 253))
}

fn autoscaler() -> Schema {
    let replicas = object("Bounds of the primary's autoscaler where they differ.")
        .field("minReplicas", integer("Lower bound.").at_least(1.0))
        .field("maxReplicas", integer("Upper bound.").at_least(1.0));
    reference("Autoscaler of the target.", &["HorizontalPodAutoscaler", "ScaledObject"])
        .field("primaryScalerQueries", text_map("KEDA: trigger name to the query of the primary's trigger."))
        .field("primaryScalerReplicas", replicas)
}

fn status() -> Schema {
    let phases: Vec<_> = Phase::ALL.iter().map(|phase| phase.as_str()).collect();
    object("How far a rollout has come.")
        .field("phase", choice("Phase of the rollout.", &phases))
        .field("failedChecks", number("Failed checks of this analysis."))
        .field("canaryWeight", number("Share of traffic of the canary, in percent."))
        .field("iterations", number("Checks done."))
        .field("trackedConfigs", text_map("ConfigMaps and Secrets of the target with their checksums."))
        .field("lastAppliedSpec", text("Hash of the revision that is or was analysed last."))
        .field("lastPromotedSpec", text("Hash of the revision that runs in the primary."))
        .field("lastTransitionTime", time("When the rollout moved last."))
        .field("sessionAffinityCookie", text("Affinity cookie of this rollout."))
        .field("primarySessionAffinityCookie", text("Affinity cookie of the primary."))
        .field("previousSessionAffinityCookie", text("Affinity cookie of the last rollout."))
        .field("conditions", conditions())
        .field(
            "decisions",
            list("The last decisions and the numbers they came from.", object("").open())
                .at_most_items(DECISIONS_KEPT as i64),
        )
}
