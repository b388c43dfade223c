//! Gateway API v1: `Gateway` and `HTTPRoute`.
//!
//! Known are the parts that a router writes, a gateway obeys and a status check reads. Everything else (future filters,
//! session persistence, TLS, …) is kept as it came. Enumerations are strings: a value from a newer release is no error.

mod filter;

use kube_derive::CustomResource;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use filter::{
    Cors, HeaderModifier, HeaderValue, ObjectReference, PathModifier, RequestMirror, RequestRedirect, RouteFilter,
    UrlRewrite,
};

/// Group of all kinds in this module.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// Fields that are not known here, kept as they came.
pub type Other = Map<String, Value>;

/// Routes of HTTP requests to Services.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "HTTPRoute",
    root = "HttpRoute",
    plural = "httproutes",
    namespaced,
    status = "HttpRouteStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "Routes HTTP requests from Gateways to Services.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct HttpRouteSpec {
    /// Gateways that serve the route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_refs: Option<Vec<ParentReference>>,
    /// Host names; none means every host of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostnames: Option<Vec<String>>,
    /// Rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rules: Option<Vec<RouteRule>>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// A parent of a route: a Gateway, or one listener of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ParentReference {
    /// API group; absent means [`GROUP`], empty means core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; absent means `Gateway`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Namespace; absent means the route's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
    /// Port of the listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

impl ParentReference {
    /// Whether both name the same parent, for a route in namespace `own`: defaults count as written.
    pub fn same_parent(&self, that: &Self, own: &str) -> bool {
        let whole = |reference: &Self| {
            (
                reference.group.as_deref().unwrap_or(GROUP).to_owned(),
                reference.kind.as_deref().unwrap_or("Gateway").to_owned(),
                reference.namespace.as_deref().unwrap_or(own).to_owned(),
                reference.name.clone(),
                reference.section_name.clone(),
                reference.port,
            )
        };
        whole(self) == whole(that)
    }
}

/// One rule: requests that match go through the filters to the backends.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteRule {
    /// Name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Any of these; none means every path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matches: Option<Vec<RouteMatch>>,
    /// Filters, in order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<RouteFilter>>,
    /// Backends with their weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_refs: Option<Vec<BackendRef>>,
    /// Time limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<RouteTimeouts>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// One match; all parts of it hold at once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteMatch {
    /// Path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathMatch>,
    /// Headers, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub headers: Option<Vec<NamedMatch>>,
    /// Query parameters, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub query_params: Option<Vec<NamedMatch>>,
    /// Method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// How a path is compared: `Exact`, `PathPrefix` (default) or `RegularExpression`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathMatch {
    /// Kind of comparison.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Value; absent means `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// How a header or query parameter is compared: `Exact` (default) or `RegularExpression`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NamedMatch {
    /// Kind of comparison.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// Name of the header or parameter.
    #[serde(default)]
    pub name: String,
    /// Value.
    #[serde(default)]
    pub value: String,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// A backend with its weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackendRef {
    /// API group; absent means core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Kind; absent means `Service`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Namespace; absent means the route's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<i64>,
    /// Weight; absent means 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<i64>,
    /// Filters for this backend only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Vec<RouteFilter>>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// Time limits of a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteTimeouts {
    /// Of the whole request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
    /// Of one attempt at a backend.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend_request: Option<String>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// What each parent says about the route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpRouteStatus {
    /// One entry per parent and controller.
    #[serde(default)]
    pub parents: Vec<RouteParentStatus>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// What one parent says about the route.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RouteParentStatus {
    /// Which parent.
    #[serde(default)]
    pub parent_ref: ParentReference,
    /// Who says it.
    #[serde(default)]
    pub controller_name: String,
    /// `Accepted`, `ResolvedRefs`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ObservedCondition>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// A condition that says which generation of the object it is about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedCondition {
    /// Type.
    #[serde(default, rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// Generation that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// When the status changed last, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Reason, one word.
    #[serde(default)]
    pub reason: String,
    /// Message for people.
    #[serde(default)]
    pub message: String,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// What a Gateway listens on.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "gateway.networking.k8s.io",
    version = "v1",
    kind = "Gateway",
    plural = "gateways",
    namespaced,
    status = "GatewayStatus",
    derive = "PartialEq",
    schema = "disabled",
    doc = "A place where requests enter.",
    crates(kube_core = "::kube_core")
)]
#[serde(rename_all = "camelCase")]
pub struct GatewaySpec {
    /// Which controller serves it.
    #[serde(default)]
    pub gateway_class_name: String,
    /// Listeners.
    #[serde(default)]
    pub listeners: Vec<Listener>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// A port that is listened on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Listener {
    /// Name.
    #[serde(default)]
    pub name: String,
    /// Host name; absent means every host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hostname: Option<String>,
    /// Port.
    #[serde(default)]
    pub port: i64,
    /// `HTTP`, `HTTPS`, …
    #[serde(default)]
    pub protocol: String,
    /// Which routes may attach; absent means those of the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_routes: Option<AllowedRoutes>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// Which routes may attach to a listener.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AllowedRoutes {
    /// From which namespaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<RouteNamespaces>,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

/// From which namespaces routes may attach: `All`, `Selector` or `Same` (default).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RouteNamespaces {
    /// Rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Fields not known here, `selector` among them.
    #[serde(flatten)]
    pub other: Other,
}

/// What the controller says about a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayStatus {
    /// Addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<GatewayAddress>,
    /// `Accepted`, `Programmed`, …
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<ObservedCondition>,
    /// Fields not known here, `listeners` among them.
    #[serde(flatten)]
    pub other: Other,
}

/// An address of a Gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayAddress {
    /// `IPAddress` or `Hostname`.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The address.
    #[serde(default)]
    pub value: String,
    /// Fields not known here.
    #[serde(flatten)]
    pub other: Other,
}

#[cfg(test)]
mod tests {
    use kube_core::Resource;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_route_with_unknown_fields_comes_back_as_it_was() {
        let route = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute",
            "metadata": { "name": "podinfo", "namespace": "test", "generation": 3 },
            "spec": {
                "parentRefs": [{ "name": "gateway", "namespace": "istio-ingress", "newField": { "a": [1, 2.5, null] } }],
                "hostnames": ["www.example.com"],
                "useDefaultGateways": "All",
                "rules": [{
                    "matches": [{ "path": { "type": "PathPrefix", "value": "/", "z": 1 }, "cookie": "x" }],
                    "filters": [
                        { "type": "ExtensionRef", "extensionRef": { "group": "x", "kind": "Y", "name": "z" } },
                        { "type": "RequestMirror", "requestMirror":
                            { "backendRef": { "name": "copy", "port": 80 }, "fraction": { "numerator": 1 } } }
                    ],
                    "backendRefs": [{ "name": "podinfo-primary", "port": 80, "weight": 100, "zone": "a" }],
                    "retry": { "codes": [500] },
                    "sessionPersistence": { "sessionName": "s" }
                }]
            },
            "status": { "parents": [{
                "controllerName": "c", "parentRef": { "name": "gateway" }, "extra": true,
                "conditions": [{ "type": "Accepted", "status": "True", "observedGeneration": 3, "reason": "Accepted",
                    "message": "", "lastTransitionTime": "2024-07-11T01:14:00Z", "more": 1 }]
            }], "more": {} }
        });
        let typed: HttpRoute = serde_json::from_value(route.clone()).unwrap();
        assert_eq!(typed.spec.rules.as_ref().unwrap()[0].backend_refs.as_ref().unwrap()[0].weight, Some(100));
        assert_eq!(serde_json::to_value(&typed).unwrap(), route);
        assert_eq!(HttpRoute::kind(&()), "HTTPRoute");
        assert_eq!(
            HttpRoute::url_path(&(), Some("test")),
            "/apis/gateway.networking.k8s.io/v1/namespaces/test/httproutes"
        );
    }

    #[test]
    fn a_gateway_with_unknown_fields_comes_back_as_it_was() {
        let gateway = json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
            "metadata": { "name": "gateway", "namespace": "istio-ingress" },
            "spec": {
                "gatewayClassName": "istio",
                "listeners": [{ "name": "default", "hostname": "*.example.com", "port": 80, "protocol": "HTTP",
                    "tls": { "mode": "Terminate" },
                    "allowedRoutes": { "namespaces": { "from": "All", "selector": {} }, "kinds": [] } }],
                "infrastructure": { "labels": { "a": "b" } }
            },
            "status": { "addresses": [{ "type": "IPAddress", "value": "10.96.0.7" }], "listeners": [{ "name": "default" }] }
        });
        let typed: Gateway = serde_json::from_value(gateway.clone()).unwrap();
        assert_eq!(serde_json::to_value(&typed).unwrap(), gateway);
    }

    #[test]
    fn defaults_count_when_parents_are_compared() {
        let short = ParentReference { name: "gateway".into(), ..ParentReference::default() };
        let long = ParentReference {
            group: Some(GROUP.into()),
            kind: Some("Gateway".into()),
            namespace: Some("test".into()),
            ..short.clone()
        };
        assert!(short.same_parent(&long, "test"));
        assert!(!short.same_parent(&long, "other"));
    }
}
