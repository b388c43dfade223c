//! `spec.service` in the language of the Gateway API: parents, matches, filters, time limits.
//!
//! Everything is written with the API server's defaults filled in, so that what is read back equals what was written
//! and a default is never taken for drift. Header and parameter maps are in the order of their names: Flagger's order is
//! random, which looks like drift and resets its weights.

use std::collections::BTreeMap;

use seaway_api::canary::{CanaryService, CorsPolicy, HeaderOperations, HttpMatch, StringMatch};
use seaway_api::duration;
use seaway_api::field::FieldError;
use seaway_api::foreign::gateway::{GROUP, ParentReference, RequestMirror};
use serde_json::{Map, Value, json};

/// Our part of a route; weights and backends are added by the caller.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Shape {
    /// `spec.parentRefs`.
    pub parents: Value,
    /// `spec.hostnames`; `None` when the route serves every host.
    pub hostnames: Option<Value>,
    /// `matches` of our rule.
    pub matches: Value,
    /// `filters` of our rule.
    pub filters: Vec<Value>,
    /// `timeouts` of our rule.
    pub timeouts: Option<Value>,
}

/// The types of filters that we write; filters of other types in our rule stay where they are.
pub(super) const OUR_FILTERS: [&str; 5] =
    ["RequestHeaderModifier", "ResponseHeaderModifier", "URLRewrite", "RequestMirror", "CORS"];

impl Shape {
    /// The shape that a spec asks for, or every field that cannot be said.
    pub(super) fn of(service: &CanaryService) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        if service.gateway_refs.is_empty() {
            errors.push(FieldError::new(
                "spec.service.gatewayRefs",
                "GatewayRefs must be specified when using Gateway API as a provider",
                "name at least one Gateway",
            ));
        }
        let matches = matches(&service.match_, &mut errors);
        let filters = filters(service, &mut errors);
        let timeouts = timeouts(service, &mut errors);
        if !errors.is_empty() {
            return Err(errors);
        }
        Ok(Self {
            parents: service.gateway_refs.iter().map(parent).collect(),
            hostnames: (!service.hosts.is_empty()).then(|| json!(service.hosts)),
            matches,
            filters,
            timeouts,
        })
    }
}

fn parent(given: &ParentReference) -> Value {
    let whole = ParentReference {
        group: Some(given.group.clone().unwrap_or_else(|| GROUP.into())),
        kind: Some(given.kind.clone().unwrap_or_else(|| "Gateway".into())),
        ..given.clone()
    };
    json!(whole)
}

fn matches(given: &[HttpMatch], errors: &mut Vec<FieldError>) -> Value {
    if given.is_empty() {
        return json!([{ "path": { "type": "PathPrefix", "value": "/" } }]);
    }
    given
        .iter()
        .enumerate()
        .map(|(index, one)| route_match(&format!("spec.service.match[{index}]"), one, errors))
        .collect()
}

fn unsupported(path: String, what: &str, remedy: &str) -> FieldError {
    FieldError::new(path, format!("Gateway API doesn't support the specified {what} matching selector"), remedy)
}

fn route_match(path: &str, given: &HttpMatch, errors: &mut Vec<FieldError>) -> Value {
    let mut result = Map::new();
    let uri = match &given.uri {
        None => Some(("PathPrefix", "/")),
        Some(StringMatch { regex: Some(value), .. }) => Some(("RegularExpression", value.as_str())),
        Some(StringMatch { exact: Some(value), .. }) => Some(("Exact", value.as_str())),
        Some(StringMatch { prefix: Some(value), .. }) => Some(("PathPrefix", value.as_str())),
        Some(_) => None,
    };
    match uri {
        Some((type_, value)) => drop(result.insert("path".into(), json!({ "type": type_, "value": value }))),
        None => errors.push(unsupported(format!("{path}.uri"), "path", "use exact, prefix or regex")),
    }
    if !given.headers.is_empty() {
        result.insert("headers".into(), named(&format!("{path}.headers"), "header", &given.headers, errors));
    }
    if !given.query_params.is_empty() {
        let params = named(&format!("{path}.queryParams"), "query parameter", &given.query_params, errors);
        result.insert("queryParams".into(), params);
    }
    match &given.method {
        None => {}
        Some(StringMatch { exact: Some(value), .. }) => drop(result.insert("method".into(), value.as_str().into())),
        Some(_) => errors.push(unsupported(format!("{path}.method"), "method", "use exact")),
    }
    Value::Object(result)
}

/// `BTreeMap` gives the stable order.
fn named(path: &str, what: &str, given: &BTreeMap<String, StringMatch>, errors: &mut Vec<FieldError>) -> Value {
    let mut result = Vec::new();
    for (name, one) in given {
        match one {
            StringMatch { exact: Some(value), .. } => {
                result.push(json!({ "type": "Exact", "name": name, "value": value }));
            }
            StringMatch { regex: Some(value), .. } => {
                result.push(json!({ "type": "RegularExpression", "name": name, "value": value }));
            }
            _ => errors.push(unsupported(format!("{path}[{name}]"), what, "use exact or regex")),
        }
    }
    Value::Array(result)
}

fn filters(service: &CanaryService, errors: &mut Vec<FieldError>) -> Vec<Value> {
    let mut filters = Vec::new();
    let mut push = |type_: &str, field: &str, body: Value| filters.push(json!({ "type": type_, field: body }));
    if let Some(headers) = &service.headers {
        if let Some(body) = headers.request.as_ref().and_then(header_modifier) {
            push("RequestHeaderModifier", "requestHeaderModifier", body);
        }
        if let Some(body) = headers.response.as_ref().and_then(header_modifier) {
            push("ResponseHeaderModifier", "responseHeaderModifier", body);
        }
    }
    if let Some(rewrite) = &service.rewrite {
        let mut body = Map::new();
        if !rewrite.authority.is_empty() {
            body.insert("hostname".into(), rewrite.authority.as_str().into());
        }
        if !rewrite.uri.is_empty() {
            let path = match rewrite.type_.as_str() {
                "ReplacePrefixMatch" => json!({ "type": "ReplacePrefixMatch", "replacePrefixMatch": rewrite.uri }),
                _ => json!({ "type": "ReplaceFullPath", "replaceFullPath": rewrite.uri }),
            };
            body.insert("path".into(), path);
        }
        if !body.is_empty() {
            push("URLRewrite", "urlRewrite", Value::Object(body));
        }
    }
    for mirror in &service.mirror {
        push("RequestMirror", "requestMirror", request_mirror(mirror));
    }
    if let Some(body) = service.cors_policy.as_ref().and_then(|policy| cors(policy, errors)) {
        push("CORS", "cors", body);
    }
    filters
}

fn header_modifier(given: &HeaderOperations) -> Option<Value> {
    let values = |map: &BTreeMap<String, String>| -> Value {
        map.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    let mut body = Map::new();
    if !given.add.is_empty() {
        body.insert("add".into(), values(&given.add));
    }
    if !given.set.is_empty() {
        body.insert("set".into(), values(&given.set));
    }
    if !given.remove.is_empty() {
        body.insert("remove".into(), json!(given.remove));
    }
    (!body.is_empty()).then_some(Value::Object(body))
}

fn request_mirror(given: &RequestMirror) -> Value {
    let mut whole = given.clone();
    whole.backend_ref.group.get_or_insert_default();
    whole.backend_ref.kind.get_or_insert_with(|| "Service".into());
    json!(whole)
}

fn cors(given: &CorsPolicy, errors: &mut Vec<FieldError>) -> Option<Value> {
    let mut origins: Vec<&str> = given.allow_origin.iter().map(String::as_str).collect();
    for (index, origin) in given.allow_origins.iter().enumerate() {
        match origin {
            StringMatch { exact: Some(value), .. } => origins.push(value),
            _ => errors.push(FieldError::new(
                format!("spec.service.corsPolicy.allowOrigins[{index}]"),
                "Gateway API compares origins for equality only",
                "use exact, or allowOrigin",
            )),
        }
    }
    let mut body = Map::new();
    let mut put = |name: &str, values: Value| {
        if values.as_array().is_none_or(|values| !values.is_empty()) {
            body.insert(name.into(), values);
        }
    };
    put("allowOrigins", json!(origins));
    put("allowMethods", json!(given.allow_methods));
    put("allowHeaders", json!(given.allow_headers));
    put("exposeHeaders", json!(given.expose_headers));
    if given.allow_credentials == Some(true) {
        put("allowCredentials", true.into());
    }
    if !given.max_age.is_empty() {
        match duration::parse(&given.max_age) {
            Ok(age) => put("maxAge", age.as_secs().into()),
            Err(problem) => errors.push(FieldError::new(
                "spec.service.corsPolicy.maxAge",
                problem.to_string(),
                "write a duration such as 24h",
            )),
        }
    }
    (!body.is_empty()).then_some(Value::Object(body))
}

fn timeouts(service: &CanaryService, errors: &mut Vec<FieldError>) -> Option<Value> {
    let mut body = Map::new();
    let fields =
        [("request", "timeout", &service.timeout), ("backendRequest", "backendTimeout", &service.backend_timeout)];
    for (name, field, given) in fields {
        if given.is_empty() {
            continue;
        }
        // The Gateway API's own duration is stricter than Go's: `1.5s` and a sign are no durations there.
        match duration::parse(given) {
            Ok(_) if given.chars().all(|c| c.is_ascii_alphanumeric()) => {
                drop(body.insert(name.into(), given.as_str().into()));
            }
            Ok(_) => errors.push(FieldError::new(
                format!("spec.service.{field}"),
                format!("{given} is not a Gateway API duration"),
                "write whole numbers with units, such as 1s500ms",
            )),
            Err(problem) => {
                errors.push(FieldError::new(
                    format!("spec.service.{field}"),
                    problem.to_string(),
                    "write a duration such as 30s",
                ));
            }
        }
    }
    (!body.is_empty()).then_some(Value::Object(body))
}
