//! What the operator tells Prometheus: Flagger's metrics, by Flagger's names, plus our own count of refused decisions.
//!
//! Series of a canary go away with the canary. Nothing here decides anything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use seaway_api::canary::{Canary, Phase};
use seaway_core::split::{Split, Variant};

use crate::key::CanaryKey;

/// Upper bounds of the duration histogram: Prometheus' own defaults.
const BUCKETS: [f64; 11] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Info {
    version: String,
    mesh_provider: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Namespace {
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Target {
    name: String,
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Workload {
    workload: String,
    namespace: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Analysed {
    name: String,
    namespace: String,
    metric: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, PartialOrd, Ord, EncodeLabelSet)]
struct Ending {
    name: String,
    namespace: String,
    deployment_strategy: String,
    analysis_status: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Table {
    table: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Rule {
    invariant: String,
}

/// How many entries each of the operator's own tables has.
pub(crate) type Census = Vec<(&'static str, usize)>;

type DecimalGauge = Gauge<f64, std::sync::atomic::AtomicU64>;

/// The exported metrics.
pub(crate) struct Telemetry {
    registry: Registry,
    canaries: Family<Namespace, Gauge>,
    status: Family<Target, Gauge>,
    weight: Family<Workload, Gauge>,
    duration: Family<Target, Histogram, fn() -> Histogram>,
    analysis: Family<Analysed, DecimalGauge>,
    successes: Family<Ending, Counter>,
    failures: Family<Ending, Counter>,
    violations: Family<Rule, Counter>,
    tables: Family<Table, Gauge>,
    /// Takes the census, while there is an operator at work.
    census: Mutex<Option<Box<dyn Fn() -> Census + Send>>>,
    /// Which series each canary has, so that they can be removed with it.
    series: Mutex<BTreeMap<CanaryKey, Series>>,
}

#[derive(Default)]
struct Series {
    target: String,
    metrics: BTreeSet<Analysed>,
    endings: BTreeSet<Ending>,
}

/// How a rollout ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Promoted.
    Success,
    /// Rolled back.
    Failure,
}

impl Telemetry {
    /// Metrics of an operator of this version whose default router is `mesh_provider`.
    pub(crate) fn new(version: &str, mesh_provider: &str) -> Self {
        let mut registry = Registry::with_prefix("flagger");
        let info = Family::<Info, Gauge>::default();
        let canaries = Family::<Namespace, Gauge>::default();
        let status = Family::<Target, Gauge>::default();
        let weight = Family::<Workload, Gauge>::default();
        let histogram: fn() -> Histogram = || Histogram::new(BUCKETS);
        let duration = Family::<Target, Histogram, fn() -> Histogram>::new_with_constructor(histogram);
        let analysis = Family::<Analysed, DecimalGauge>::default();
        let successes = Family::<Ending, Counter>::default();
        let failures = Family::<Ending, Counter>::default();
        let violations = Family::<Rule, Counter>::default();
        let tables = Family::<Table, Gauge>::default();
        registry.register("info", "Version and default mesh provider", info.clone());
        registry.register("canary_total", "Number of canaries by namespace", canaries.clone());
        registry.register("canary_status", "Last known phase: 0 running, 1 successful, 2 failed", status.clone());
        registry.register("canary_weight", "Share of traffic by workload in percent", weight.clone());
        registry.register("canary_duration_seconds", "Seconds one analysis took", duration.clone());
        registry.register("canary_metric_analysis", "Last value of a metric of the analysis", analysis.clone());
        // The encoder adds `_total`.
        registry.register("canary_successes", "Rollouts that were promoted", successes.clone());
        registry.register("canary_failures", "Rollouts that were rolled back", failures.clone());
        registry.register("canary_refused_decisions", "Decisions refused by an invariant", violations.clone());
        registry.register("operator_entries", "Entries of the operator's own tables", tables.clone());
        info.get_or_create(&Info { version: version.to_owned(), mesh_provider: mesh_provider.to_owned() }).set(1);
        let (census, series) = (Mutex::default(), Mutex::default());
        Self {
            registry,
            canaries,
            status,
            weight,
            duration,
            analysis,
            successes,
            failures,
            violations,
            tables,
            census,
            series,
        }
    }

    /// How many canaries `namespace` has now.
    pub(crate) fn count(&self, namespace: &str, canaries: usize) {
        let labels = Namespace { namespace: namespace.to_owned() };
        if canaries == 0 {
            self.canaries.remove(&labels);
        } else {
            self.canaries.get_or_create(&labels).set(i64::try_from(canaries).unwrap_or(i64::MAX));
        }
    }

    /// Phase and split of a canary after a round.
    pub(crate) fn observe(&self, canary: &Canary, phase: Phase, split: Option<&Split>) {
        let key = CanaryKey::new(canary.namespace(), canary.name());
        self.with_series(&key, |series| {
            if series.target != canary.spec.target_ref.name {
                self.drop_target(&key.namespace, &series.target);
                series.target.clone_from(&canary.spec.target_ref.name);
            }
        });
        let value = match phase {
            Phase::Progressing => 0,
            Phase::Failed => 2,
            _ => 1,
        };
        self.status.get_or_create(&target(canary)).set(value);
        let Some(split) = split else { return };
        let names =
            [(canary.primary_workload(), Variant::Primary), (canary.spec.target_ref.name.clone(), Variant::Canary)];
        for (workload, variant) in names {
            let labels = Workload { workload, namespace: canary.namespace().to_owned() };
            self.weight.get_or_create(&labels).set(i64::from(split.weight(variant)));
        }
    }

    /// One analysis took this many seconds.
    pub(crate) fn analysed(&self, canary: &Canary, seconds: f64) {
        self.duration.get_or_create(&target(canary)).observe(seconds);
    }

    /// A metric of the analysis had this value.
    pub(crate) fn measured(&self, canary: &Canary, metric: &str, value: f64) {
        let Target { name, namespace } = target(canary);
        let labels = Analysed { name, namespace, metric: metric.to_owned() };
        self.analysis.get_or_create(&labels).set(value);
        let key = CanaryKey::new(canary.namespace(), canary.name());
        self.with_series(&key, |series| {
            series.metrics.insert(labels);
        });
    }

    /// A rollout ended.
    pub(crate) fn ended(&self, canary: &Canary, end: End, strategy: &str, skipped: bool) {
        let Target { name, namespace } = target(canary);
        let analysis_status = if skipped && end == End::Success { "skipped" } else { "completed" }.to_owned();
        let labels = Ending { name, namespace, deployment_strategy: strategy.to_owned(), analysis_status };
        match end {
            End::Success => self.successes.get_or_create(&labels).inc(),
            End::Failure => self.failures.get_or_create(&labels).inc(),
        };
        let key = CanaryKey::new(canary.namespace(), canary.name());
        self.with_series(&key, |series| {
            series.endings.insert(labels);
        });
    }

    /// A decision was refused by this invariant.
    pub(crate) fn violated(&self, invariant: &str) {
        self.violations.get_or_create(&Rule { invariant: invariant.to_owned() }).inc();
    }

    /// The canary is gone, and so are its series.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        let series = self.series.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
        let Some(series) = series else { return };
        self.drop_target(&key.namespace, &series.target);
        for labels in &series.metrics {
            self.analysis.remove(labels);
        }
        for labels in &series.endings {
            self.successes.remove(labels);
            self.failures.remove(labels);
        }
    }

    /// From now on `census` tells how much the operator holds. It is asked when somebody wants to know.
    pub(crate) fn ask_for_entries(&self, census: impl Fn() -> Census + Send + 'static) {
        *self.census.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(census));
    }

    /// All of it in Prometheus' text format.
    pub(crate) fn text(&self) -> String {
        let census = self.census.lock().unwrap_or_else(PoisonError::into_inner);
        let series = ("series", self.series.lock().unwrap_or_else(PoisonError::into_inner).len());
        for (table, entries) in census.iter().flat_map(|census| census()).chain([series]) {
            self.tables.get_or_create(&Table { table }).set(i64::try_from(entries).unwrap_or(i64::MAX));
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn with_series(&self, key: &CanaryKey, change: impl FnOnce(&mut Series)) {
        let mut series = self.series.lock().unwrap_or_else(PoisonError::into_inner);
        change(series.entry(key.clone()).or_default());
    }

    fn drop_target(&self, namespace: &str, name: &str) {
        let labels = Target { name: name.to_owned(), namespace: namespace.to_owned() };
        self.status.remove(&labels);
        self.duration.remove(&labels);
        for workload in [name.to_owned(), seaway_api::canary::primary_name(name)] {
            self.weight.remove(&Workload { workload, namespace: namespace.to_owned() });
        }
    }
}

fn target(canary: &Canary) -> Target {
    Target { name: canary.spec.target_ref.name.clone(), namespace: canary.namespace().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(telemetry: &Telemetry) -> Vec<String> {
        let text = telemetry.text();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn names_and_labels_are_flaggers() {
        let telemetry = Telemetry::new("1.0", "gatewayapi:v1");
        let canary = Canary::test();
        telemetry.count("test", 1);
        telemetry.observe(&canary, Phase::Progressing, Some(&Split::canary(10)));
        telemetry.analysed(&canary, 0.2);
        telemetry.measured(&canary, "error-rate", 54.82);
        telemetry.ended(&canary, End::Success, "canary", false);
        telemetry.ended(&canary, End::Failure, "canary", true);
        let lines = lines(&telemetry);
        for expected in [
            r#"flagger_info{version="1.0",mesh_provider="gatewayapi:v1"} 1"#,
            r#"flagger_canary_total{namespace="test"} 1"#,
            r#"flagger_canary_status{name="podinfo",namespace="test"} 0"#,
            r#"flagger_canary_weight{workload="podinfo-primary",namespace="test"} 90"#,
            r#"flagger_canary_weight{workload="podinfo",namespace="test"} 10"#,
            r#"flagger_canary_duration_seconds_count{name="podinfo",namespace="test"} 1"#,
            r#"flagger_canary_metric_analysis{name="podinfo",namespace="test",metric="error-rate"} 54.82"#,
            r#"flagger_canary_successes_total{name="podinfo",namespace="test",deployment_strategy="canary",analysis_status="completed"} 1"#,
            r#"flagger_canary_failures_total{name="podinfo",namespace="test",deployment_strategy="canary",analysis_status="completed"} 1"#,
        ] {
            assert!(lines.iter().any(|line| line == expected), "{expected} is not in {lines:#?}");
        }
    }

    #[test]
    fn a_deleted_canary_leaves_no_series() {
        let telemetry = Telemetry::new("1.0", "istio");
        let before = lines(&telemetry);
        let canary = Canary::test();
        telemetry.count("test", 1);
        telemetry.observe(&canary, Phase::Failed, Some(&Split::primary_only()));
        telemetry.analysed(&canary, 1.0);
        telemetry.measured(&canary, "latency", 0.1);
        telemetry.ended(&canary, End::Failure, "canary", false);
        telemetry.forget(&CanaryKey::new("test", "podinfo"));
        telemetry.count("test", 0);
        assert_eq!(lines(&telemetry), before);
    }
}
