//! Schema of `spec.service`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::JSONSchemaProps;

use super::schema::{
    Schema, choice, flag, int_or_string, integer, list, map, number, object, requires, text, text_list, text_map,
};

const GROUP: &str = r"^$|^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
const KIND: &str = "^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$";
const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";

pub(super) fn schema() -> Schema {
    object("The Services and the route.")
        .field("name", text("Name of the Service users call; the target's name if absent.").length(0, 253))
        .field("port", number("Port of the Services."))
        .field("portName", text("Name of that port (default http)."))
        .field("targetPort", int_or_string("Port of the container, by number or name; port if absent."))
        .field("appProtocol", text("Application protocol of the port."))
        .field(
            "trafficDistribution",
            choice("Traffic distribution of the Services.", &["PreferClose", "PreferSameZone", "PreferSameNode"]),
        )
        .field("portDiscovery", flag("Add every other container port to the Services."))
        .field("headless", flag("Create Services without a cluster address."))
        .field("timeout", text("Time limit of a request."))
        .field("backendTimeout", text("Time limit of one attempt at a backend (Gateway API)."))
        .field("gateways", text_list("Gateways (Istio)."))
        .field("gatewayRefs", list("Parents of the route (Gateway API).", gateway_ref()).at_most_items(32))
        .field("hosts", text_list("Host names of the route."))
        .field("delegation", flag("Make a delegate VirtualService (Istio)."))
        .field("trafficPolicy", traffic_policy())
        .field("match", list("Which requests belong to the route; any of these.", http_match()))
        .field("rewrite", rewrite())
        .field("retries", retries())
        .field("headers", headers())
        .field("mirror", list("Backends that always get a copy of every request (Gateway API).", mirror()))
        .field("corsPolicy", cors_policy())
        .field("meshName", text("Mesh (App Mesh)."))
        .field("backends", text_list("Backends (App Mesh)."))
        .field("apex", metadata("Metadata of the Service users call and of the route."))
        .field("primary", metadata("Metadata of the primary Service."))
        .field("canary", metadata("Metadata of the canary Service."))
        .field(
            "unmanagedMetadata",
            object("Metadata keys of the Services that belong to others.")
                .field("annotations", text_list("Annotation keys."))
                .field("labels", text_list("Label keys.")),
        )
        .required(&["port"])
}

/// One way to compare a string, or none.
pub(super) fn string_match(description: &str) -> Schema {
    object(description)
        .field("exact", text("Equal."))
        .field("prefix", text("Begins with."))
        .field("regex", text("Matches as a whole (RE2)."))
        .at_most_one_of(&["exact", "prefix", "regex"])
}

fn http_match() -> Schema {
    object("")
        .field("name", text("Name, for logs."))
        .field("uri", string_match("Path."))
        .field("scheme", string_match("Scheme."))
        .field("method", string_match("Method."))
        .field("authority", string_match("Host."))
        .field("headers", map("Request headers.", string_match("")))
        .field("withoutHeaders", map("Request headers that must not match.", string_match("")))
        .field("queryParams", map("Query parameters.", string_match("")))
        .field("port", integer("Port the request came to."))
        .field("sourceLabels", text_map("Labels of the calling workload."))
        .field("sourceNamespace", text("Namespace of the calling workload."))
        .field("gateways", text_list("Gateways the rule is for."))
        .field("ignoreUriCase", flag("Compare the path without regard to case."))
}

fn rewrite() -> Schema {
    object("Rewrite of path and host.")
        .field("uri", text("New path, or new prefix."))
        .field("authority", text("New host."))
        .field("type", text("ReplacePrefixMatch; anything else replaces the whole path."))
}

fn retries() -> Schema {
    object("Retries of failed requests.")
        .field("attempts", integer("How many.").format("int32"))
        .field("perTryTimeout", text("Time limit of one attempt."))
        .field("retryOn", text("Which failures are retried."))
}

fn headers() -> Schema {
    let operations = |description: &str| {
        object(description)
            .field("add", text_map("Appended."))
            .field("set", text_map("Replaced."))
            .field("remove", text_list("Removed."))
    };
    object("Header changes.")
        .field("request", operations("Of requests."))
        .field("response", operations("Of responses."))
}

fn port() -> Schema {
    integer("Port.").format("int32").between(1.0, 65_535.0)
}

fn gateway_ref() -> Schema {
    object("")
        .field("group", text("API group.").length(0, 253).pattern(GROUP).default("gateway.networking.k8s.io"))
        .field("kind", text("Kind.").length(1, 63).pattern(KIND).default("Gateway"))
        .field("name", text("Name.").length(1, 253))
        .field("namespace", text("Namespace; the Canary's own if absent.").length(1, 63).pattern(LABEL))
        .field("sectionName", text("Listener.").length(1, 253).pattern(SUBDOMAIN))
        .field("port", port())
        .required(&["name"])
}

fn mirror() -> Schema {
    let backend = object("Where the copies go.")
        .field("group", text("API group.").length(0, 253).pattern(GROUP).default(""))
        .field("kind", text("Kind.").length(1, 63).pattern(KIND).default("Service"))
        .field("name", text("Name.").length(1, 253))
        .field("namespace", text("Namespace; the Canary's own if absent.").length(1, 63).pattern(LABEL))
        .field("port", port())
        .required(&["name"])
        .rule("self.group != '' || self.kind != 'Service' || has(self.port)", "a Service needs its port");
    object("").field("backendRef", backend)
}

fn cors_policy() -> Schema {
    let origin = object("")
        .field("exact", text("Equal."))
        .field("prefix", text("Begins with."))
        .field("regex", text("Matches as a whole (RE2)."))
        .one_of(&[&["exact"], &["prefix"], &["regex"]]);
    object("Cross-origin policy.")
        .field("allowOrigin", text_list("Origins, each in full."))
        .field("allowOrigins", list("Origins, by pattern.", origin))
        .field("allowMethods", text_list("Methods."))
        .field("allowHeaders", text_list("Request headers."))
        .field("exposeHeaders", text_list("Response headers scripts may read."))
        .field("maxAge", text("How long a browser may remember the answer."))
        .field("allowCredentials", flag("Whether credentials may be sent."))
}

fn metadata(description: &str) -> Schema {
    object(description).field("labels", text_map("Labels.")).field("annotations", text_map("Annotations."))
}

fn traffic_policy() -> Schema {
    object("Istio TrafficPolicy, copied as it is.")
        .field("connectionPool", object("").field("http", connection_pool()))
        .field("loadBalancer", load_balancer())
        .field("outlierDetection", outlier_detection())
        .field("tls", tls())
}

fn connection_pool() -> Schema {
    object("HTTP connection pool.")
        .field("h2UpgradePolicy", choice("Upgrade to HTTP/2.", &["DEFAULT", "DO_NOT_UPGRADE", "UPGRADE"]))
        .field("http1MaxPendingRequests", integer("Most requests that wait.").format("int32"))
        .field("http2MaxRequests", integer("Most requests at once.").format("int32"))
        .field("idleTimeout", text("Time an idle connection is kept."))
        .field("maxRequestsPerConnection", integer("Most requests per connection.").format("int32"))
        .field("maxRetries", integer("Most retries at once.").format("int32"))
}

fn load_balancer() -> Schema {
    let cookie = object("Hash of a cookie.")
        .field("name", text("Name."))
        .field("path", text("Path."))
        .field("ttl", text("Lifetime."));
    let hash = object("Hash of a part of the request.")
        .field("httpHeaderName", text("Hash of a header."))
        .field("httpCookie", cookie)
        .field("useSourceIp", flag("Hash of the caller's address."))
        .field("httpQueryParameterName", text("Hash of a query parameter."))
        .field("minimumRingSize", integer("Least size of the ring."));
    let distribute =
        object("").field("from", text("Origin.")).field("to", map("Weights of destinations.", integer("")));
    let failover = object("").field("from", text("Region.")).field("to", text("Region to use instead."));
    let locality = object("Preference for near endpoints.")
        .field("distribute", list("Shares per locality.", distribute))
        .field("enabled", flag("Whether it is on."))
        .field("failover", list("Where to go when a region fails.", failover));
    let one_hash = [&["httpHeaderName"][..], &["httpCookie"], &["useSourceIp"], &["httpQueryParameterName"]];
    let by_hash = JSONSchemaProps {
        properties: Some(
            std::iter::once((
                "consistentHash".to_owned(),
                JSONSchemaProps {
                    one_of: Some(one_hash.iter().map(|set| requires(set)).collect()),
                    ..JSONSchemaProps::default()
                },
            ))
            .collect(),
        ),
        ..requires(&["consistentHash"])
    };
    object("Choice of an endpoint.")
        .field("simple", choice("Algorithm.", &["ROUND_ROBIN", "LEAST_CONN", "RANDOM", "PASSTHROUGH", "LEAST_REQUEST"]))
        .field("consistentHash", hash)
        .field("localityLbSetting", locality)
        .field("warmupDurationSecs", text("Time a new endpoint takes to full load."))
        .alternatives(vec![requires(&["simple"]), by_hash])
}

fn outlier_detection() -> Schema {
    object("Eviction of bad endpoints.")
        .field("baseEjectionTime", text("Shortest eviction."))
        .field("consecutive5xxErrors", integer("5xx answers until eviction."))
        .field("consecutiveErrors", integer("Errors until eviction.").format("int32"))
        .field("consecutiveGatewayErrors", integer("Gateway errors until eviction.").format("int32"))
        .field("consecutiveLocalOriginFailures", integer("Local failures until eviction.").format("int32"))
        .field("interval", text("Time between sweeps."))
        .field("maxEjectionPercent", integer("Largest share that may be evicted.").format("int32"))
        .field("minHealthPercent", integer("Least healthy share for it to work.").format("int32"))
        .field("splitExternalLocalOriginErrors", flag("Tell local failures from others."))
}

fn tls() -> Schema {
    object("TLS to the endpoints.")
        .field("mode", choice("Kind of TLS.", &["DISABLE", "SIMPLE", "MUTUAL", "ISTIO_MUTUAL"]))
        .field("caCertificates", text("CA file."))
        .field("clientCertificate", text("Certificate file."))
        .field("privateKey", text("Key file."))
        .field("sni", text("Server name."))
        .field("subjectAltNames", text_list("Accepted names."))
}
