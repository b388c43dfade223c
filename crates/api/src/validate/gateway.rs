//! Rules about the HTTPRoute that is generated from `spec.service`: the Gateway API would refuse what breaks them, or
//! silently leave it out.

use super::Report;
use super::syntax::{is_hostname, is_label, is_port, is_token};
use crate::canary::{CanaryService, CanarySpec, HttpMatch, StringMatch};
use crate::duration;

const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];
/// Most entries of a list of header changes, header matches or hosts.
const MOST: usize = 16;

pub(super) fn check(spec: &CanarySpec, report: &mut Report) {
    let Some(service) = &spec.service else { return };
    gateways(service, report);
    hosts(service, report);
    timeouts(service, report);
    for (index, condition) in service.match_.iter().enumerate() {
        matches(&format!("spec.service.match[{index}]"), condition, report);
    }
    rewrite(service, report);
    headers(service, report);
    mirror(service, report);
    cors(service, report);
    ignored(service, report);
}

fn gateways(service: &CanaryService, report: &mut Report) {
    const PATH: &str = "spec.service.gatewayRefs";
    if service.gateway_refs.is_empty() {
        report.error(PATH, "there is no Gateway to attach the route to", "name at least one Gateway");
    }
    if service.gateway_refs.len() > 32 {
        report.error(PATH, format!("{} Gateways are too many", service.gateway_refs.len()), "name at most 32");
    }
    for (index, gateway) in service.gateway_refs.iter().enumerate() {
        if gateway.name.is_empty() {
            report.error(format!("{PATH}[{index}].name"), "there is no name", "name the Gateway");
        }
        if gateway.namespace.as_deref().is_some_and(|namespace| !is_label(namespace)) {
            report.error(format!("{PATH}[{index}].namespace"), "not a namespace", "name the Gateway's namespace");
        }
        if gateway.port.is_some_and(|port| !is_port(port)) {
            report.error(format!("{PATH}[{index}].port"), "not a port", "write a port from 1 to 65535");
        }
    }
}

fn hosts(service: &CanaryService, report: &mut Report) {
    for (index, host) in service.hosts.iter().enumerate().filter(|(_, host)| !is_hostname(host)) {
        report.error(
            format!("spec.service.hosts[{index}]"),
            format!("\"{host}\" is no host name of a route"),
            "write it in lower case without port; leave hosts out to serve every host of the Gateway",
        );
    }
    if service.hosts.len() > MOST {
        report.error("spec.service.hosts", format!("{} hosts are too many", service.hosts.len()), "write at most 16");
    }
}

/// Gateway API durations are a part of Go's: whole numbers of h, m, s and ms.
fn is_gateway_duration(text: &str) -> bool {
    let parts = text.bytes().filter(u8::is_ascii_alphabetic).collect::<Vec<_>>();
    duration::parse(text).is_ok() && !text.contains(['.', 'u', 'n', 'µ', 'μ', '+']) && !parts.is_empty()
}

fn timeouts(service: &CanaryService, report: &mut Report) {
    for (field, value) in [("timeout", &service.timeout), ("backendTimeout", &service.backend_timeout)] {
        if !value.is_empty() && !is_gateway_duration(value) {
            report.error(
                format!("spec.service.{field}"),
                format!("\"{value}\" is no duration the Gateway API takes"),
                "write whole hours, minutes, seconds or milliseconds: 1m30s",
            );
        }
    }
    if let (Ok(whole), Ok(part)) = (duration::parse(&service.timeout), duration::parse(&service.backend_timeout))
        && !whole.is_zero()
        && part > whole
    {
        report.error(
            "spec.service.backendTimeout",
            format!("one attempt may take {} but the whole request only {}", service.backend_timeout, service.timeout),
            "make it at most the timeout",
        );
    }
}

fn matches(path: &str, condition: &HttpMatch, report: &mut Report) {
    const UNSUPPORTED: &str = "Gateway API doesn't support the specified";
    if let Some(uri) = &condition.uri {
        let value = uri.exact.as_ref().or(uri.prefix.as_ref());
        if value.is_none() && uri.regex.is_none() {
            let problem = format!("{UNSUPPORTED} path matching selector");
            report.error(format!("{path}.uri"), problem, "use exact, prefix or regex");
        }
        if value.is_some_and(|value| !value.starts_with('/')) && uri.regex.is_none() {
            report.error(format!("{path}.uri"), "a path begins with /", "add the slash");
        }
    }
    if let Some(method) = &condition.method {
        match &method.exact {
            Some(name) if METHODS.contains(&name.as_str()) => {}
            Some(name) => {
                report.error(format!("{path}.method.exact"), format!("\"{name}\" is no method"), "use GET, POST, …");
            }
            None => {
                report.error(format!("{path}.method"), format!("{UNSUPPORTED} header matching selector"), "use exact");
            }
        }
    }
    for (field, map) in [("headers", &condition.headers), ("queryParams", &condition.query_params)] {
        named(&format!("{path}.{field}"), map, report);
    }
    for (field, given) in [
        ("authority", condition.authority.is_some()),
        ("scheme", condition.scheme.is_some()),
        ("port", condition.port.is_some()),
        ("withoutHeaders", !condition.without_headers.is_empty()),
        ("sourceLabels", !condition.source_labels.is_empty()),
        ("sourceNamespace", !condition.source_namespace.is_empty()),
        ("gateways", !condition.gateways.is_empty()),
        ("ignoreUriCase", condition.ignore_uri_case),
    ] {
        if given {
            report.warn(
                format!("{path}.{field}"),
                "a Gateway API route has no such condition; it is left out",
                "remove it",
            );
        }
    }
}

fn named(path: &str, map: &std::collections::BTreeMap<String, StringMatch>, report: &mut Report) {
    if map.len() > MOST {
        report.error(path, format!("{} conditions are too many", map.len()), "write at most 16");
    }
    for (name, value) in map {
        if value.exact.is_none() && value.regex.is_none() {
            let problem = "Gateway API doesn't support the specified matching selector";
            report.error(format!("{path}.{name}"), problem, "use exact or regex");
        }
    }
}

fn rewrite(service: &CanaryService, report: &mut Report) {
    let Some(rewrite) = &service.rewrite else { return };
    match rewrite.type_.as_str() {
        "ReplacePrefixMatch" => {
            let prefix = |condition: &HttpMatch| condition.uri.as_ref().is_none_or(|uri| uri.prefix.is_some());
            if service.match_.len() > 1 || !service.match_.iter().all(prefix) {
                report.error(
                    "spec.service.rewrite.type",
                    "a prefix can be replaced only where the route has exactly one match, by prefix",
                    "match one prefix, or use ReplaceFullPath",
                );
            }
        }
        "" | "ReplaceFullPath" => {}
        other => report.warn(
            "spec.service.rewrite.type",
            format!("\"{other}\" is read as ReplaceFullPath"),
            "use ReplaceFullPath or ReplacePrefixMatch",
        ),
    }
    if !rewrite.authority.is_empty() && (!is_hostname(&rewrite.authority) || rewrite.authority.starts_with('*')) {
        let problem = format!("\"{}\" is no host name", rewrite.authority);
        report.error("spec.service.rewrite.authority", problem, "write a host name without port");
    }
}

fn headers(service: &CanaryService, report: &mut Report) {
    let Some(headers) = &service.headers else { return };
    for (side, operations) in [("request", &headers.request), ("response", &headers.response)] {
        let Some(operations) = operations else { continue };
        let path = format!("spec.service.headers.{side}");
        let lists = [
            ("add", operations.add.keys().collect::<Vec<_>>()),
            ("set", operations.set.keys().collect()),
            ("remove", operations.remove.iter().collect()),
        ];
        for (field, names) in lists {
            if names.len() > MOST {
                report.error(
                    format!("{path}.{field}"),
                    format!("{} headers are too many", names.len()),
                    "write at most 16",
                );
            }
            for name in names.into_iter().filter(|name| !is_token(name)) {
                report.error(format!("{path}.{field}"), format!("\"{name}\" is no header name"), "rename it");
            }
        }
    }
}

fn mirror(service: &CanaryService, report: &mut Report) {
    for (index, mirror) in service.mirror.iter().enumerate() {
        let (path, backend) = (format!("spec.service.mirror[{index}].backendRef"), &mirror.backend_ref);
        let is_service = backend.kind.as_deref().unwrap_or("Service") == "Service"
            && backend.group.as_deref().unwrap_or_default().is_empty();
        if backend.name.is_empty() {
            report.error(format!("{path}.name"), "there is no name", "name the Service that gets the copies");
        }
        if !backend.port.map_or(!is_service, is_port) {
            report.error(format!("{path}.port"), "a Service needs its port", "write a port from 1 to 65535");
        }
    }
}

fn cors(service: &CanaryService, report: &mut Report) {
    let Some(cors) = &service.cors_policy else { return };
    if !cors.max_age.is_empty() && duration::parse(&cors.max_age).is_err() {
        let problem = format!("\"{}\" is not a duration", cors.max_age);
        report.error("spec.service.corsPolicy.maxAge", problem, "write a Go duration: 24h");
    }
    if !cors.allow_origins.is_empty() {
        report.warn(
            "spec.service.corsPolicy.allowOrigins",
            "a Gateway API route has no origin patterns; they are left out",
            "list the origins in allowOrigin",
        );
    }
}

fn ignored(service: &CanaryService, report: &mut Report) {
    for (field, given) in [
        ("retries", service.retries.is_some()),
        ("trafficPolicy", service.traffic_policy.is_some()),
        ("gateways", !service.gateways.is_empty()),
        ("delegation", service.delegation),
        ("meshName", !service.mesh_name.is_empty()),
        ("backends", !service.backends.is_empty()),
    ] {
        if given {
            report.warn(format!("spec.service.{field}"), "the Gateway API router does not use it", "remove it");
        }
    }
}
