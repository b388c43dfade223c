//! Rules about the generated Services, whatever the router: the cluster would refuse to create what breaks them.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::Report;
use super::syntax::{is_container_port_name, is_label, is_label_value, is_port, is_qualified_name};
use crate::canary::{CanaryService, CanarySpec, CustomMetadata};

/// `-primary` must still fit the 63 characters of a Service name.
const LONGEST_APEX: usize = 55;

pub(super) fn check(spec: &CanarySpec, report: &mut Report) {
    let Some(service) = &spec.service else {
        if spec.target_ref.kind != "Service" {
            report.error("spec.service", "there is no service", "add service.port, the port users call");
        }
        return;
    };
    apex(spec, service, report);
    ports(service, report);
    for (name, metadata) in [("apex", &service.apex), ("primary", &service.primary), ("canary", &service.canary)] {
        if let Some(metadata) = metadata {
            labels(&format!("spec.service.{name}"), metadata, report);
        }
    }
}

fn apex(spec: &CanarySpec, service: &CanaryService, report: &mut Report) {
    let apex = spec.apex_name();
    let path = if service.name.is_empty() { "spec.targetRef.name" } else { "spec.service.name" };
    if apex.is_empty() {
        return;
    }
    if apex.len() > LONGEST_APEX {
        report.error(
            path,
            format!("the Service name has {} characters and \"-primary\" is added to it; 63 is the limit", apex.len()),
            format!("set a service.name of at most {LONGEST_APEX} characters"),
        );
    } else if !is_label(apex) {
        report.error(
            path,
            format!("\"{apex}\" cannot be the name of a Service"),
            "set a service.name of lower case letters, digits and dashes",
        );
    } else if apex.starts_with(|c: char| c.is_ascii_digit()) {
        report.warn(path, "many clusters refuse a Service whose name begins with a digit", "set another service.name");
    }
}

fn ports(service: &CanaryService, report: &mut Report) {
    const PATH: &str = "spec.service.targetPort";
    if !is_port(service.port) {
        report.error("spec.service.port", format!("{} is no port", service.port), "write a port from 1 to 65535");
    }
    if !service.port_name.is_empty() && !is_label(&service.port_name) {
        report.error(
            "spec.service.portName",
            format!("\"{}\" cannot be the name of a port", service.port_name),
            "use lower case letters, digits and dashes, at most 63",
        );
    }
    match &service.target_port {
        Some(IntOrString::Int(port)) if *port != 0 && !is_port(i64::from(*port)) => {
            report.error(PATH, format!("{port} is no port"), "write a port from 1 to 65535 or the port's name");
        }
        Some(IntOrString::String(name)) if name.parse::<u32>().is_ok() && name != "0" => {
            report.error(
                PATH,
                format!("\"{name}\" is a name, not a number, and no port can have it"),
                "remove the quotes",
            );
        }
        Some(IntOrString::String(name)) if name != "0" && !is_container_port_name(name) => {
            report.error(
                PATH,
                format!("\"{name}\" cannot be the name of a container port"),
                "use the port's number, or its name of at most 15 lower case letters, digits and dashes",
            );
        }
        _ => {}
    }
}

fn labels(path: &str, metadata: &CustomMetadata, report: &mut Report) {
    for (key, value) in &metadata.labels {
        if !is_qualified_name(key) || !is_label_value(value) {
            report.error(
                format!("{path}.labels.{key}"),
                format!("\"{key}: {value}\" is no valid label"),
                "values have at most 63 letters, digits, dashes, underscores and dots",
            );
        }
    }
    for key in metadata.annotations.keys().filter(|key| !is_qualified_name(&key.to_ascii_lowercase())) {
        report.error(format!("{path}.annotations.{key}"), format!("\"{key}\" is no valid annotation key"), "rename it");
    }
}
