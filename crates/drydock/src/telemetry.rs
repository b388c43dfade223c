//! What a mesh proxy counts: requests and their durations, in the series names and labels of Istio.
//!
//! Both reporters are written, because both are asked for: the gateway's tutorial queries `reporter="source"`, the
//! builtin queries of an Istio mesh `reporter="destination"`. The destination is the workload of the pod that
//! answered. A request that no pod answered is reported by the source alone.
//!
//! Duration is measured until the head of the answer, in the time of the runtime (real under the scaled clock).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::routing::get;

use crate::names::{Pod, ServiceName};

/// Upper bounds of the duration buckets in milliseconds: Istio's.
const BUCKETS: [f64; 19] = [
    0.5,
    1.0,
    5.0,
    10.0,
    25.0,
    50.0,
    100.0,
    250.0,
    500.0,
    1_000.0,
    2_500.0,
    5_000.0,
    10_000.0,
    30_000.0,
    60_000.0,
    300_000.0,
    600_000.0,
    1_800_000.0,
    3_600_000.0,
];

/// More label sets than any test cluster needs; beyond it a new set is not counted, so that memory stays bounded.
const MAX_SERIES: usize = 5_000;

/// One request as its sender saw it.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// The Service the request was for.
    pub service: Option<&'a ServiceName>,
    /// The pod that answered, or that was tried last.
    pub pod: Option<&'a Pod>,
    /// The status code the sender of the request got.
    pub code: u16,
    /// Envoy's short word for what went wrong (`UF`, `UH`, `UT`), `-` for nothing.
    pub flags: &'static str,
    /// How long the answer took.
    pub duration: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Labels {
    reporter: &'static str,
    workload: String,
    namespace: String,
    app: String,
    version: String,
    service: String,
    service_name: String,
    service_namespace: String,
    code: u16,
    flags: &'static str,
}

#[derive(Clone, Debug, Default)]
struct Series {
    count: u64,
    sum_ms: f64,
    buckets: [u64; BUCKETS.len()],
}

/// The counters of one proxy; clones share them.
#[derive(Clone, Debug)]
pub struct Telemetry {
    source_workload: Arc<str>,
    source_namespace: Arc<str>,
    series: Arc<Mutex<BTreeMap<Labels, Series>>>,
    resent: Arc<AtomicU64>,
}

impl Telemetry {
    /// Empty counters of the proxy that runs as `workload` in `namespace`.
    pub fn new(namespace: &str, workload: &str) -> Self {
        Self {
            source_workload: workload.into(),
            source_namespace: namespace.into(),
            series: Arc::default(),
            resent: Arc::default(),
        }
    }

    /// Counts one request.
    pub fn record(&self, seen: &Observation<'_>) {
        self.count("source", seen);
        if seen.flags == "-" && seen.pod.is_some() {
            self.count("destination", seen);
        }
    }

    /// Counts a request that was sent a second time although its first bytes may have been read.
    pub(crate) fn record_resent(&self) {
        self.resent.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests were sent a second time, each of them a cut connection that no client noticed.
    pub fn resent(&self) -> u64 {
        self.resent.load(Ordering::Relaxed)
    }

    fn count(&self, reporter: &'static str, seen: &Observation<'_>) {
        const UNKNOWN: &str = "unknown";
        let label = |name: &str| seen.pod.and_then(|pod| pod.labels.get(name)).map_or(UNKNOWN, String::as_str);
        let of_pod = |field: fn(&Pod) -> &String| seen.pod.map_or(UNKNOWN, |pod| field(pod)).to_owned();
        let of_service =
            |field: fn(&ServiceName) -> &String| seen.service.map_or(UNKNOWN, |name| field(name)).to_owned();
        let labels = Labels {
            reporter,
            workload: of_pod(|pod| &pod.workload),
            namespace: of_pod(|pod| &pod.namespace),
            app: label("app").to_owned(),
            version: label("version").to_owned(),
            service: seen.service.map_or_else(
                || UNKNOWN.to_owned(),
                |service| format!("{}.{}.svc.cluster.local", service.name, service.namespace),
            ),
            service_name: of_service(|service| &service.name),
            service_namespace: of_service(|service| &service.namespace),
            code: seen.code,
            flags: seen.flags,
        };
        let mut all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MAX_SERIES && !all.contains_key(&labels) {
            return;
        }
        let series = all.entry(labels).or_default();
        let ms = seen.duration.as_secs_f64() * 1_000.0;
        series.count += 1;
        series.sum_ms += ms;
        for (bucket, bound) in series.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(ms <= bound);
        }
    }

    /// The counters in Prometheus' text format.
    pub fn render(&self) -> String {
        let all = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        let texts: Vec<(String, &Series)> = all.iter().map(|(labels, series)| (self.text(labels), series)).collect();
        let mut out = String::from("# TYPE istio_requests_total counter\n");
        for (labels, series) in &texts {
            let _ = writeln!(out, "istio_requests_total{{{labels}}} {}", series.count);
        }
        out.push_str("# TYPE drydock_requests_resent_total counter\n");
        let (source, namespace, resent) = (&self.source_workload, &self.source_namespace, self.resent());
        let labels = format!("source_workload=\"{source}\",source_workload_namespace=\"{namespace}\"");
        let _ = writeln!(out, "drydock_requests_resent_total{{{labels}}} {resent}");
        out.push_str("# TYPE istio_request_duration_milliseconds histogram\n");
        for (labels, series) in &texts {
            for (bound, count) in BUCKETS.iter().zip(series.buckets) {
                let _ = writeln!(out, "istio_request_duration_milliseconds_bucket{{{labels},le=\"{bound}\"}} {count}");
            }
            let Series { count, sum_ms, .. } = series;
            let _ = writeln!(out, "istio_request_duration_milliseconds_bucket{{{labels},le=\"+Inf\"}} {count}");
            let _ = writeln!(out, "istio_request_duration_milliseconds_sum{{{labels}}} {sum_ms}");
            let _ = writeln!(out, "istio_request_duration_milliseconds_count{{{labels}}} {count}");
        }
        out
    }

    fn text(&self, labels: &Labels) -> String {
        let Labels { reporter, workload, namespace, app, version, service, service_name, .. } = labels;
        let Labels { service_namespace, code, flags, .. } = labels;
        let (source, source_namespace) = (&self.source_workload, &self.source_namespace);
        format!(
            "reporter=\"{reporter}\",source_workload=\"{source}\",source_workload_namespace=\"{source_namespace}\",\
             destination_workload=\"{workload}\",destination_workload_namespace=\"{namespace}\",\
             destination_app=\"{app}\",destination_version=\"{version}\",destination_service=\"{service}\",\
             destination_service_name=\"{service_name}\",destination_service_namespace=\"{service_namespace}\",\
             request_protocol=\"http\",response_code=\"{code}\",response_flags=\"{flags}\",\
             connection_security_policy=\"none\""
        )
    }

    /// A server for the counters, at Istio's path and at the usual one.
    pub fn router(&self) -> Router {
        let serve = |telemetry: Telemetry| get(move || std::future::ready(telemetry.render()));
        Router::new().route("/stats/prometheus", serve(self.clone())).route("/metrics", serve(self.clone()))
    }

    /// How many requests the source counted, by destination workload and status code.
    pub fn requests(&self) -> BTreeMap<(String, u16), u64> {
        let mut requests = BTreeMap::new();
        for (labels, series) in self.series.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            if labels.reporter == "source" {
                *requests.entry((labels.workload.clone(), labels.code)).or_default() += series.count;
            }
        }
        requests
    }
}
