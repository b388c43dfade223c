//! The request metrics, with podinfo's names, labels and buckets, in Prometheus' text form.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use axum::http::Method;

/// Upper bounds in seconds: the default buckets of Prometheus' Go client.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Copy, Default)]
struct Histogram {
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum: f64,
}

/// Method, route and status of a series.
type Labels = (String, String, u16);

/// What one podinfo counted.
#[derive(Default)]
pub(super) struct Metrics(Mutex<BTreeMap<Labels, Histogram>>);

/// The label of a route; requests that match none share one, so that clients cannot make up endless series.
pub(super) fn route(matched: Option<&str>) -> String {
    let Some(path) = matched else { return "unknown".into() };
    let parts: Vec<&str> =
        path.split('/').map(|part| part.trim_matches(['{', '}'])).filter(|it| !it.is_empty()).collect();
    if parts.is_empty() { "root".into() } else { parts.join("_") }
}

/// The label of a method: clients can make these up, too.
pub(super) fn method(method: &Method) -> &'static str {
    let known = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"];
    known.into_iter().find(|known| method.as_str() == *known).unwrap_or("OTHER")
}

impl Metrics {
    /// Counts an answer.
    pub(super) fn record(&self, method: &str, route: &str, status: u16, took: Duration) {
        let seconds = took.as_secs_f64();
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let histogram = series.entry((method.into(), route.into(), status)).or_default();
        for (bucket, bound) in histogram.buckets.iter_mut().zip(BUCKETS) {
            *bucket += u64::from(seconds <= bound);
        }
        histogram.count += 1;
        histogram.sum += seconds;
    }

    /// The text a scrape gets.
    pub(super) fn render(&self) -> String {
        let series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::from(
            "# HELP http_request_duration_seconds Seconds spent serving HTTP requests.\n\
             # TYPE http_request_duration_seconds histogram\n",
        );
        let mut totals: BTreeMap<u16, u64> = BTreeMap::new();
        for ((method, path, status), histogram) in series.iter() {
            let labels = format!("method=\"{method}\",path=\"{path}\",status=\"{status}\"");
            let name = "http_request_duration_seconds";
            for (count, bound) in histogram.buckets.iter().zip(BUCKETS) {
                // Writing to a String cannot fail.
                let _ = writeln!(text, "{name}_bucket{{{labels},le=\"{bound}\"}} {count}");
            }
            let _ = writeln!(text, "{name}_bucket{{{labels},le=\"+Inf\"}} {}", histogram.count);
            let _ = writeln!(text, "{name}_sum{{{labels}}} {}", histogram.sum);
            let _ = writeln!(text, "{name}_count{{{labels}}} {}", histogram.count);
            *totals.entry(*status).or_default() += histogram.count;
        }
        text.push_str("# HELP http_requests_total The total number of HTTP requests.\n");
        text.push_str("# TYPE http_requests_total counter\n");
        for (status, count) in totals {
            let _ = writeln!(text, "http_requests_total{{status=\"{status}\"}} {count}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_not_paths_are_labels() {
        for (path, label) in [
            (Some("/"), "root"),
            (Some("/status/{code}"), "status_code"),
            (Some("/readyz/enable"), "readyz_enable"),
            (None, "unknown"),
        ] {
            assert_eq!(route(path), label);
        }
        assert_eq!(method(&Method::GET), "GET");
        assert_eq!(method(&Method::from_bytes(b"BREW").unwrap()), "OTHER");
    }

    #[test]
    fn counts_into_cumulative_buckets() {
        let metrics = Metrics::default();
        metrics.record("GET", "root", 200, Duration::from_millis(3));
        metrics.record("GET", "root", 200, Duration::from_millis(700));
        let text = metrics.render();
        for line in [
            "http_request_duration_seconds_bucket{method=\"GET\",path=\"root\",status=\"200\",le=\"0.005\"} 1",
            "http_request_duration_seconds_bucket{method=\"GET\",path=\"root\",status=\"200\",le=\"1\"} 2",
            "http_request_duration_seconds_bucket{method=\"GET\",path=\"root\",status=\"200\",le=\"+Inf\"} 2",
            "http_request_duration_seconds_count{method=\"GET\",path=\"root\",status=\"200\"} 2",
            "http_requests_total{status=\"200\"} 2",
        ] {
            assert!(text.lines().any(|have| have == line), "{line} in\n{text}");
        }
    }
}
