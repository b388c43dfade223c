//! Rules about the provider, the target and its autoscaler.

use super::syntax::is_subdomain;
use super::{Context, Report, Router};
use crate::canary::{Canary, CanarySpec, PROVIDERS};

/// The router the Canary asks for, if there is one.
pub(super) fn provider(canary: &Canary, context: &Context<'_>, report: &mut Report) -> Option<Router> {
    const PATH: &str = "spec.provider";
    let own = canary.spec.provider.as_str();
    let name = if own.is_empty() { context.default_provider } else { own };
    let built = context.capabilities.router_names();
    if name.is_empty() {
        // The caller does not know the operator's default; the one that is built is the likely one.
        return context.capabilities.routers.first().copied();
    }
    let router = context.capabilities.router(name);
    if router.is_none() {
        let whose = if own.is_empty() { "the operator's default provider" } else { "provider" };
        let problem = if PROVIDERS.contains(&name) {
            format!("{whose} \"{name}\" is not built yet")
        } else {
            format!("{whose} \"{name}\" is unknown")
        };
        report.error(PATH, problem, format!("use {built}"));
    }
    router
}

pub(super) fn check(canary: &Canary, context: &Context<'_>, report: &mut Report) {
    let spec = &canary.spec;
    kind(spec, context, report);
    name(spec, report);
    knative(spec, report);
    autoscaler(spec, context, report);
    deadline(spec, report);
    siblings(canary, context, report);
}

fn kind(spec: &CanarySpec, context: &Context<'_>, report: &mut Report) {
    const PATH: &str = "spec.targetRef.kind";
    let target = &spec.target_ref;
    let kind = if target.is_knative() { "KnativeService" } else { target.kind.as_str() };
    let built = context.capabilities.targets;
    if built.contains(&kind) {
        if kind == "Deployment" && target.api_version != "apps/v1" {
            report.warn(
                "spec.targetRef.apiVersion",
                format!("a Deployment is read as apps/v1, not as \"{}\"", target.api_version),
                "write apps/v1",
            );
        }
        return;
    }
    let problem = match kind {
        "" => "there is no kind".to_owned(),
        "DaemonSet" | "Service" => format!("targets of kind {kind} are not built yet"),
        "KnativeService" => "Knative Services are not built yet".to_owned(),
        other => format!("{other} cannot be a target"),
    };
    report.error(PATH, problem, format!("use a {}", built.join(" or a ")));
}

fn name(spec: &CanarySpec, report: &mut Report) {
    const PATH: &str = "spec.targetRef.name";
    let name = spec.target_ref.name.as_str();
    if name.is_empty() {
        report.error(PATH, "there is no name", "name the workload to roll out");
    } else if name.ends_with("-primary") {
        report.error(
            PATH,
            format!("\"{name}\" is the name of a primary, which is made and overwritten by a Canary"),
            "name the workload you deploy to, not its primary",
        );
    } else if !is_subdomain(name) || !is_subdomain(&spec.primary_workload()) {
        report.error(
            PATH,
            format!("\"{name}\" or its primary \"{name}-primary\" is no valid object name"),
            "use lower case letters, digits, dashes and dots, at most 245",
        );
    }
}

fn knative(spec: &CanarySpec, report: &mut Report) {
    let target = &spec.target_ref;
    if target.is_knative() && spec.provider != "knative" {
        let problem = format!("can't use {} provider with Knative Service as target", spec.provider);
        report.error("spec.provider", problem, "use the provider knative");
    }
    if !target.is_knative() && spec.provider == "knative" {
        let problem =
            format!("can't use {}/{} as target if provider is set to knative", target.api_version, target.kind);
        report.error("spec.targetRef", problem, "use a Service of serving.knative.dev/v1");
    }
    if target.is_knative() && spec.autoscaler_ref.is_some() {
        report.error("spec.autoscalerRef", "can't use autoscaler with Knative Service", "remove it");
    }
}

fn autoscaler(spec: &CanarySpec, context: &Context<'_>, report: &mut Report) {
    let Some(autoscaler) = &spec.autoscaler_ref else { return };
    let built = context.capabilities.autoscalers;
    if !built.contains(&autoscaler.kind.as_str()) {
        let problem = match autoscaler.kind.as_str() {
            "ScaledObject" => "autoscalers of kind ScaledObject are not built yet".to_owned(),
            other => format!("\"{other}\" is no autoscaler"),
        };
        report.error("spec.autoscalerRef.kind", problem, format!("use a {}", built.join(" or a ")));
    } else if autoscaler.kind == "HorizontalPodAutoscaler" && autoscaler.api_version != "autoscaling/v2" {
        report.warn(
            "spec.autoscalerRef.apiVersion",
            format!("a HorizontalPodAutoscaler is read as autoscaling/v2, not as \"{}\"", autoscaler.api_version),
            "write autoscaling/v2",
        );
    }
    if !is_subdomain(&autoscaler.name) || !is_subdomain(&autoscaler.primary_name()) {
        let problem = format!("\"{}\" is no valid object name", autoscaler.name);
        report.error("spec.autoscalerRef.name", problem, "name the autoscaler of the target");
    }
    let Some(replicas) = &autoscaler.primary_scaler_replicas else { return };
    for (field, value) in [("minReplicas", replicas.min_replicas), ("maxReplicas", replicas.max_replicas)] {
        if value.is_some_and(|value| !(1..=i64::from(i32::MAX)).contains(&value)) {
            let path = format!("spec.autoscalerRef.primaryScalerReplicas.{field}");
            report.error(path, "must be at least 1", "write how many replicas the primary may have");
        }
    }
    if let (Some(min), Some(max)) = (replicas.min_replicas, replicas.max_replicas)
        && min > max
    {
        report.error(
            "spec.autoscalerRef.primaryScalerReplicas",
            format!("minReplicas {min} is more than maxReplicas {max}"),
            "swap them or leave one out",
        );
    }
}

fn deadline(spec: &CanarySpec, report: &mut Report) {
    const PATH: &str = "spec.progressDeadlineSeconds";
    match spec.progress_deadline_seconds {
        Some(seconds) if seconds < 0 => {
            report.error(
                PATH,
                format!("{seconds} seconds have always passed"),
                "write a positive number or leave it out (600)",
            );
        }
        Some(seconds) if seconds > i64::from(i32::MAX) => {
            report.error(
                PATH,
                format!("{seconds} seconds do not fit 32 bits"),
                "write a smaller number or leave it out (600)",
            );
        }
        Some(0) => {
            report.warn(PATH, "a workload that is not ready at once is rolled back", "write how long it may take");
        }
        _ => {}
    }
}

/// Two Canaries must not fight over one workload or one Service. The older one keeps it.
fn siblings(canary: &Canary, context: &Context<'_>, report: &mut Report) {
    let age = |canary: &Canary| {
        let created = canary.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created.is_none(), created, canary.name().to_owned())
    };
    let older = context.siblings.iter().filter(|sibling| {
        sibling.namespace() == canary.namespace() && sibling.name() != canary.name() && age(sibling) < age(canary)
    });
    for sibling in older {
        let (ours, theirs) = (&canary.spec.target_ref, &sibling.spec.target_ref);
        if ours.kind == theirs.kind && ours.name == theirs.name {
            report.error(
                "spec.targetRef",
                format!("{} {} is already the target of the Canary {}", ours.kind, ours.name, sibling.name()),
                "keep one Canary per workload",
            );
            return;
        }
        if canary.apex_name() == sibling.apex_name() {
            report.error(
                "spec.service.name",
                format!("the Service {} already belongs to the Canary {}", canary.apex_name(), sibling.name()),
                "give each Canary a service.name of its own",
            );
            return;
        }
    }
}
