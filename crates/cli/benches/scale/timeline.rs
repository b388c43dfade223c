//! When each canary reached which point of its rollout, taken from the commits of the API server.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use seaway_drydock::apiserver::Commit;
use serde_json::Value;

use crate::scripted::Server;

/// The name of canary number `index`.
pub fn name(index: usize) -> String {
    format!("app-{index:05}")
}

fn index(name: &str) -> Option<usize> {
    name.strip_prefix("app-")?.parse().ok()
}

/// The points one canary has reached.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marks {
    /// The image of the target changed.
    pub changed: Option<Instant>,
    /// The status says `Progressing`.
    pub detected: Option<Instant>,
    /// The target has replicas.
    pub scaled: Option<Instant>,
    /// The route gives the canary weight.
    pub weighed: Option<Instant>,
    /// The status says `Succeeded`.
    pub finished: Option<Instant>,
    /// The status says `Initialized` or `Succeeded`.
    pub rests: bool,
}

/// The marks of all canaries.
#[derive(Clone)]
pub struct Timeline(Arc<Mutex<Vec<Marks>>>);

impl Timeline {
    /// Follows the commits of `api`.
    pub fn of(api: &impl Server, canaries: usize) -> Self {
        let timeline = Self(Arc::new(Mutex::new(vec![Marks::default(); canaries])));
        let own = timeline.clone();
        api.hear(move |commit| own.take(commit));
        timeline
    }

    fn take(&self, commit: &Commit) {
        let Some(after) = commit.after.as_deref() else { return };
        let Some(index) = after.pointer("/metadata/name").and_then(Value::as_str).and_then(index) else { return };
        let mut all = self.lock();
        let Some(marks) = all.get_mut(index) else { return };
        let now = Instant::now();
        match (commit.resource.as_str(), commit.subresource.as_str()) {
            ("deployments", "") => {
                let Some(before) = commit.before.as_deref() else { return };
                let image = |object: &Value| object.pointer("/spec/template/spec/containers/0/image").cloned();
                let replicas = |object: &Value| object.pointer("/spec/replicas").and_then(Value::as_u64);
                if image(before) != image(after) {
                    *marks = Marks { changed: Some(now), rests: marks.rests, ..Marks::default() };
                } else if marks.changed.is_some() && replicas(before) == Some(0) && replicas(after) > Some(0) {
                    marks.scaled.get_or_insert(now);
                }
            }
            ("canaries", "status") => {
                let phase = after.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
                marks.rests = matches!(phase, "Initialized" | "Succeeded");
                if marks.changed.is_some() && phase == "Progressing" {
                    marks.detected.get_or_insert(now);
                }
                if marks.detected.is_some() && phase == "Succeeded" {
                    marks.finished.get_or_insert(now);
                }
            }
            ("httproutes", "") => {
                let weight = after.pointer("/spec/rules/0/backendRefs/1/weight").and_then(Value::as_u64);
                if marks.changed.is_some() && weight > Some(0) {
                    marks.weighed.get_or_insert(now);
                }
            }
            _ => {}
        }
    }

    /// How many canaries have this.
    pub fn count(&self, has: impl Fn(&Marks) -> bool) -> usize {
        self.lock().iter().filter(|marks| has(marks)).count()
    }

    /// How long it took the canaries numbered `these` from the change of the image to a point.
    pub fn spread(&self, these: Range<usize>, point: impl Fn(&Marks) -> Option<Instant>) -> Spread {
        let all = self.lock();
        let these = &all[these];
        let took = |marks: &Marks| Some(point(marks)?.saturating_duration_since(marks.changed?));
        let mut times: Vec<Duration> = these.iter().filter_map(took).collect();
        times.sort_unstable();
        let at = |part: f64| {
            let last = times.len().checked_sub(1)?;
            times.get((part * last as f64).round() as usize).copied()
        };
        Spread { p50: at(0.5), p99: at(0.99), missing: these.len() - times.len() }
    }

    /// Over what time the images of the canaries numbered `these` changed.
    pub fn changes(&self, these: Range<usize>) -> Duration {
        let all = self.lock();
        let times = || all[these.clone()].iter().filter_map(|marks| marks.changed);
        times().max().zip(times().min()).map(|(last, first)| last - first).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Marks>> {
        self.0.lock().unwrap()
    }
}

/// Percentiles over all canaries.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spread {
    pub p50: Option<Duration>,
    pub p99: Option<Duration>,
    /// Canaries that never got there.
    pub missing: usize,
}
