//! The queries every router brings along, as data: Flagger's, so that dashboards and expectations stay the same.
//!
//! They are templates (see [`crate::template`]). How they are sent is the adapters' business.

/// One builtin query.
#[derive(Debug, PartialEq, Eq)]
pub struct Builtin {
    /// Whose series it reads.
    pub observer: &'static str,
    /// What its result means.
    pub measure: Measure,
    /// The query, a template.
    pub query: &'static str,
}

/// What the result of a builtin query means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Percentage of requests without a server error.
    SuccessRate,
    /// 99th percentile of latency in milliseconds.
    Milliseconds,
    /// 99th percentile of latency in seconds.
    Seconds,
}

/// The name of the success-rate metric in a Canary.
pub const SUCCESS_RATE: &str = "request-success-rate";
/// The name of the latency metric in a Canary.
pub const DURATION: &str = "request-duration";

impl Builtin {
    /// Whether a larger value is better.
    pub fn is_success_rate(&self) -> bool {
        self.measure == Measure::SuccessRate
    }
}

/// The builtin metric `name` as `provider` measures it.
pub fn builtin(provider: &str, name: &str) -> Option<&'static Builtin> {
    let success_rate = match name {
        SUCCESS_RATE => true,
        DURATION => false,
        _ => return None,
    };
    let observer = observer(provider);
    BUILTINS.iter().find(|builtin| builtin.observer == observer && builtin.is_success_rate() == success_rate)
}

/// The query of [`builtin`].
pub fn builtin_query(provider: &str, name: &str) -> Option<&'static str> {
    builtin(provider, name).map(|builtin| builtin.query)
}

/// Whose series a provider's canaries are judged by.
fn observer(provider: &str) -> &'static str {
    const OWN: [&str; 10] =
        ["linkerd", "istio", "contour", "nginx", "skipper", "traefik", "osm", "kuma", "apisix", "knative"];
    if let Some(own) = OWN.iter().find(|own| **own == provider) {
        return own;
    }
    match provider {
        provider if provider.starts_with("appmesh") => "appmesh",
        provider if provider.starts_with("gloo") => "gloo",
        provider if provider == "kubernetes" || provider.starts_with("gatewayapi") => "http",
        _ => "istio",
    }
}

/// Every builtin query: two per observer.
pub static BUILTINS: [Builtin; 26] = [
    Builtin {
        observer: "apisix",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( apisix_http_status{ route=~"{{ namespace }}_{{ route }}-{{ target }}-canary_.+", "#,
            r#"code!~"5.." }[{{ interval }}] ) ) / sum( rate( apisix_http_status{ route=~"{{ namespace }}_{{ "#,
            r#"route }}-{{ target }}-canary_.+" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "apisix",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( apisix_http_latency_bucket{ type=~"request", route=~"{{ "#,
            r#"namespace }}_{{ route }}-{{ target }}-canary_.+" }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "appmesh",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( envoy_cluster_upstream_rq{ kubernetes_namespace="{{ namespace }}", "#,
            r#"kubernetes_pod_name=~"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)", envoy_response_code!~"5.*" "#,
            r#"}[{{ interval }}] ) ) / sum( rate( envoy_cluster_upstream_rq{ kubernetes_namespace="{{ "#,
            r#"namespace }}", kubernetes_pod_name=~"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)" }[{{ interval "#,
            r#"}}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "appmesh",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( envoy_cluster_upstream_rq_time_bucket{ "#,
            r#"kubernetes_namespace="{{ namespace }}", kubernetes_pod_name=~"{{ target "#,
            r#"}}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)" }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "contour",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( envoy_cluster_upstream_rq{ envoy_cluster_name=~"{{ namespace }}_{{ service "#,
            r#"}}-canary_[0-9a-zA-Z-]+", envoy_response_code!~"5.*" }[{{ interval }}] ) ) / sum( rate( "#,
            r#"envoy_cluster_upstream_rq{ envoy_cluster_name=~"{{ namespace }}_{{ service "#,
            r#"}}-canary_[0-9a-zA-Z-]+", }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "contour",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( envoy_cluster_upstream_rq_time_bucket{ "#,
            r#"envoy_cluster_name=~"{{ namespace }}_{{ service }}-canary_[0-9a-zA-Z-]+", }[{{ interval }}] ) ) "#,
            r#"by (le) )"#,
        ),
    },
    Builtin {
        observer: "gloo",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( envoy_cluster_upstream_rq{ envoy_cluster_name=~"{{ namespace }}-{{ target "#,
            r#"}}-canaryupstream-[0-9a-zA-Z-]+_[0-9a-zA-Z-]+", envoy_response_code!~"5.*" }[{{ interval }}] ) "#,
            r#") / sum( rate( envoy_cluster_upstream_rq{ envoy_cluster_name=~"{{ namespace }}-{{ target "#,
            r#"}}-canaryupstream-[0-9a-zA-Z-]+_[0-9a-zA-Z-]+", }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "gloo",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( envoy_cluster_upstream_rq_time_bucket{ "#,
            r#"envoy_cluster_name=~"{{ namespace }}-{{ target }}-canaryupstream-[0-9a-zA-Z-]+_[0-9a-zA-Z-]+", "#,
            r#"}[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "http",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( http_request_duration_seconds_count{ kubernetes_namespace="{{ namespace }}", "#,
            r#"kubernetes_pod_name=~"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)", status!~"5.*" }[{{ interval "#,
            r#"}}] ) ) / sum( rate( http_request_duration_seconds_count{ kubernetes_namespace="{{ namespace "#,
            r#"}}", kubernetes_pod_name=~"{{ target }}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "http",
        measure: Measure::Seconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( http_request_duration_seconds_bucket{ "#,
            r#"kubernetes_namespace="{{ namespace }}", kubernetes_pod_name=~"{{ target "#,
            r#"}}-[0-9a-zA-Z]+(-[0-9a-zA-Z]+)" }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "istio",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( istio_requests_total{ reporter="destination", destination_workload_namespace="{{ "#,
            r#"namespace }}", destination_workload=~"{{ target }}", response_code!~"5.*" }[{{ interval }}] ) ) "#,
            r#"/ sum( rate( istio_requests_total{ reporter="destination", destination_workload_namespace="{{ "#,
            r#"namespace }}", destination_workload=~"{{ target }}" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "istio",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( istio_request_duration_milliseconds_bucket{ "#,
            r#"reporter="destination", destination_workload_namespace="{{ namespace }}", "#,
            r#"destination_workload=~"{{ target }}" }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "knative",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( envoy_cluster_upstream_rq{ envoy_cluster_name=~"{{ namespace }}/{{ route }}", "#,
            r#"envoy_response_code!~"5.*" }[{{ interval }}] ) ) / sum( rate( envoy_cluster_upstream_rq{ "#,
            r#"envoy_cluster_name=~"{{ namespace }}/{{ route }}", }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "knative",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( envoy_cluster_upstream_rq_time_bucket{ "#,
            r#"envoy_cluster_name=~"{{ namespace }}/{{ route }}", }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "kuma",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( envoy_cluster_upstream_rq{ service=~"{{ target }}-canary_{{ namespace "#,
            r#"}}_svc_[0-9a-zA-Z-]+", envoy_response_code!~"5.*" }[{{ interval }}] ) ) / sum( rate( "#,
            r#"envoy_cluster_upstream_rq{ service=~"{{ target }}-canary_{{ namespace }}_svc_[0-9a-zA-Z-]+", "#,
            r#"}[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "kuma",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( envoy_cluster_upstream_rq_time_bucket{ service=~"{{ target "#,
            r#"}}-canary_{{ namespace }}_svc_[0-9a-zA-Z-]+", }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "linkerd",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( response_total{ namespace="{{ namespace }}", deployment=~"{{ target }}", "#,
            r#"classification!="failure", direction="inbound" }[{{ interval }}] ) ) / sum( rate( "#,
            r#"response_total{ namespace="{{ namespace }}", deployment=~"{{ target }}", direction="inbound" "#,
            r#"}[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "linkerd",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( response_latency_ms_bucket{ namespace="{{ namespace }}", "#,
            r#"deployment=~"{{ target }}", direction="inbound" }[{{ interval }}] ) ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "nginx",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( nginx_ingress_controller_requests{ namespace="{{ namespace }}", ingress="{{ ingress "#,
            r#"}}", canary!="", status!~"5.*" }[{{ interval }}] ) ) / sum( rate( "#,
            r#"nginx_ingress_controller_requests{ namespace="{{ namespace }}", ingress="{{ ingress }}", "#,
            r#"canary!="" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "nginx",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"sum( rate( nginx_ingress_controller_response_duration_seconds_sum{ namespace="{{ namespace }}", "#,
            r#"ingress="{{ ingress }}", canary!="" }[{{ interval }}] ) ) / sum( rate( "#,
            r#"nginx_ingress_controller_response_duration_seconds_count{ namespace="{{ namespace }}", "#,
            r#"ingress="{{ ingress }}", canary!="" }[{{ interval }}] ) ) * 1000"#,
        ),
    },
    Builtin {
        observer: "osm",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( osm_request_total{ destination_namespace="{{ namespace }}", "#,
            r#"destination_kind="Deployment", destination_name="{{ target }}", response_code!~"5.*" }[{{ "#,
            r#"interval }}] ) ) / sum( rate( osm_request_total{ destination_namespace="{{ namespace }}", "#,
            r#"destination_kind="Deployment", destination_name="{{ target }}" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "osm",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( osm_request_duration_ms_bucket{ destination_namespace="{{ "#,
            r#"namespace }}", destination_kind="Deployment", destination_name="{{ target }}" }[{{ interval }}] "#,
            r#") ) by (le) )"#,
        ),
    },
    Builtin {
        observer: "skipper",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"{{- $route := printf "kube(ew)?_%s__%s_canary__.*__%s_canary(_[0-9]+)?" namespace ingress "#,
            r#"service }} sum(rate(skipper_response_duration_seconds_bucket{route=~"{{ $route "#,
            r#"}}",code!~"5..",le="+Inf"}[{{ interval }}])) / "#,
            r#"sum(rate(skipper_response_duration_seconds_bucket{route=~"{{ $route }}",le="+Inf"}[{{ interval "#,
            r#"}}])) * 100"#,
        ),
    },
    Builtin {
        observer: "skipper",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"{{- $route := printf "kube(ew)?_%s__%s_canary__.*__%s_canary(_[0-9]+)?" namespace ingress "#,
            r#"service }} sum(rate(skipper_serve_route_duration_seconds_sum{route=~"{{ $route }}"}[{{ interval "#,
            r#"}}])) / sum(rate(skipper_serve_route_duration_seconds_count{route=~"{{ $route }}"}[{{ interval "#,
            r#"}}])) * 1000"#,
        ),
    },
    Builtin {
        observer: "traefik",
        measure: Measure::SuccessRate,
        query: concat!(
            r#"sum( rate( traefik_service_request_duration_seconds_bucket{ service=~"{{ namespace }}-{{ target "#,
            r#"}}-canary-[0-9a-zA-Z-]+@kubernetescrd", code!~"5..", le="+Inf" }[{{ interval }}] ) ) / sum( "#,
            r#"rate( traefik_service_request_duration_seconds_bucket{ service=~"{{ namespace }}-{{ target "#,
            r#"}}-canary-[0-9a-zA-Z-]+@kubernetescrd", le="+Inf" }[{{ interval }}] ) ) * 100"#,
        ),
    },
    Builtin {
        observer: "traefik",
        measure: Measure::Milliseconds,
        query: concat!(
            r#"histogram_quantile( 0.99, sum( rate( traefik_service_request_duration_seconds_bucket{ "#,
            r#"service=~"{{ namespace }}-{{ target }}-canary-[0-9a-zA-Z-]+@kubernetescrd" }[{{ interval }}] ) "#,
            r#") by (le) ) * 1000"#,
        ),
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::template::{self, Vars};

    #[test]
    fn every_builtin_query_renders() {
        let vars = Vars {
            name: "podinfo".into(),
            namespace: "test".into(),
            target: "podinfo".into(),
            service: "svc".into(),
            ingress: "ing".into(),
            route: "rt".into(),
            interval: "1m".into(),
            ..Vars::default()
        };
        for builtin in &BUILTINS {
            let text = template::parse(builtin.query).unwrap().render(&vars).unwrap();
            assert!(!text.contains("{{") && text.contains("[1m]"), "{}: {text}", builtin.observer);
        }
    }

    #[test]
    fn skippers_query_builds_its_route_with_printf() {
        let vars = Vars {
            namespace: "test".into(),
            ingress: "podinfo".into(),
            service: "podinfo".into(),
            interval: "1m".into(),
            ..Vars::default()
        };
        let query = builtin_query("skipper", DURATION).unwrap();
        let route = r#"{route=~"kube(ew)?_test__podinfo_canary__.*__podinfo_canary(_[0-9]+)?"}[1m]"#;
        assert_eq!(
            template::parse(query).unwrap().render(&vars).unwrap(),
            format!(
                " sum(rate(skipper_serve_route_duration_seconds_sum{route})) \
                 / sum(rate(skipper_serve_route_duration_seconds_count{route})) * 1000"
            )
        );
    }

    #[test]
    fn providers_share_observers() {
        for (provider, observer) in [
            ("gatewayapi:v1", "http"),
            ("gatewayapi:v1beta1", "http"),
            ("kubernetes", "http"),
            ("istio", "istio"),
            ("appmesh:v1beta2", "appmesh"),
            ("gloo", "gloo"),
            ("smi:v1alpha2", "istio"),
            ("nginx", "nginx"),
        ] {
            assert_eq!(builtin(provider, SUCCESS_RATE).unwrap().observer, observer);
            assert_eq!(builtin(provider, DURATION).unwrap().observer, observer);
        }
        assert_eq!(builtin("istio", "error-rate"), None);
    }
}
