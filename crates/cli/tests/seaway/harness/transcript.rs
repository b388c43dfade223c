//! Every committed write that matters, in order: what the golden timelines recorded, taken from the store itself.

use std::fmt;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use seaway_drydock::Cluster;
use seaway_drydock::apiserver::Commit;
use serde_json::Value;

/// One line of the story.
#[derive(Clone, Debug, PartialEq)]
pub enum Entry {
    /// A Canary's stored status.
    Status { name: String, phase: String, weight: i64, failed: i64 },
    /// An Event told or told again.
    Event { kind: String, text: String },
    /// Weights of a route.
    Route { name: String, primary: i64, canary: i64 },
    /// Replicas asked of a Deployment, and its image tag.
    Deployment { name: String, replicas: i64, tag: String },
}

/// The story so far.
#[derive(Clone)]
pub struct Transcript {
    told: Arc<Mutex<Told>>,
    start: Timestamp,
}

#[derive(Default)]
struct Told {
    lines: Vec<(Timestamp, Entry)>,
    /// The last line of each subject. It outlives [`Transcript::clear`]: a write that changes nothing told here is no
    /// line, whenever it comes.
    last: Vec<Entry>,
}

impl Told {
    fn add(&mut self, time: Timestamp, entry: Entry) {
        match self.last.iter_mut().find(|last| same_subject(last, &entry)) {
            Some(last) if *last == entry => return,
            Some(last) => last.clone_from(&entry),
            None if matches!(entry, Entry::Event { .. }) => {}
            None => self.last.push(entry.clone()),
        }
        self.lines.push((time, entry));
    }
}

/// A server that tells of every committed write.
pub trait Commits {
    /// Calls `hook` with each from now on, in order.
    fn on_commit(&self, hook: impl Fn(&Commit) + Send + Sync + 'static);

    /// The server's time.
    fn now(&self) -> Timestamp;
}

impl Commits for Cluster {
    fn on_commit(&self, hook: impl Fn(&Commit) + Send + Sync + 'static) {
        self.api().on_commit(hook);
    }

    fn now(&self) -> Timestamp {
        self.clock().now()
    }
}

impl Transcript {
    /// Records everything that is committed from now on.
    pub fn of(cluster: &impl Commits) -> Self {
        let told: Arc<Mutex<Told>> = Arc::default();
        let sink = told.clone();
        cluster.on_commit(move |commit| {
            if let Some(entry) = entry(commit) {
                sink.lock().unwrap().add(commit.time, entry);
            }
        });
        Self { told, start: cluster.now() }
    }

    pub fn entries(&self) -> Vec<Entry> {
        self.timed().into_iter().map(|(_, entry)| entry).collect()
    }

    /// The same, with the time of each.
    pub fn timed(&self) -> Vec<(Timestamp, Entry)> {
        self.told.lock().unwrap().lines.clone()
    }

    pub fn clear(&self) {
        self.told.lock().unwrap().lines.clear();
    }

    /// Event texts in the order they were told, `(combined from similar events)` taken off.
    pub fn events(&self) -> Vec<String> {
        let text = |entry| match entry {
            Entry::Event { text, .. } => Some(text.trim_start_matches("(combined from similar events): ").to_owned()),
            _ => None,
        };
        self.entries().into_iter().filter_map(text).collect()
    }

    /// (phase, weight) of a Canary, repeats left out.
    pub fn steps(&self, canary: &str) -> Vec<(String, i64)> {
        let mut steps = Vec::new();
        for entry in self.entries() {
            if let Entry::Status { name, phase, weight, .. } = entry
                && name == canary
                && steps.last() != Some(&(phase.clone(), weight))
            {
                steps.push((phase, weight));
            }
        }
        steps
    }

    /// Canary weights of a route, in order.
    pub fn route(&self, route: &str) -> Vec<i64> {
        let weight = |entry| match entry {
            Entry::Route { name, canary, .. } if name == route => Some(canary),
            _ => None,
        };
        self.entries().into_iter().filter_map(weight).collect()
    }
}

impl fmt::Display for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (time, entry) in &self.told.lock().unwrap().lines {
            writeln!(f, "+{:>8.2} {entry:?}", time.duration_since(self.start).as_secs_f64())?;
        }
        Ok(())
    }
}

fn same_subject(one: &Entry, other: &Entry) -> bool {
    match (one, other) {
        (Entry::Status { name: a, .. }, Entry::Status { name: b, .. })
        | (Entry::Route { name: a, .. }, Entry::Route { name: b, .. })
        | (Entry::Deployment { name: a, .. }, Entry::Deployment { name: b, .. }) => a == b,
        _ => false,
    }
}

fn entry(commit: &Commit) -> Option<Entry> {
    let object: &Value = commit.after.as_ref()?;
    let name = object["metadata"]["name"].as_str()?.to_owned();
    match commit.resource.as_str() {
        "canaries" => {
            let status = object.get("status")?;
            Some(Entry::Status {
                name,
                phase: status["phase"].as_str().unwrap_or_default().to_owned(),
                weight: status["canaryWeight"].as_i64().unwrap_or_default(),
                failed: status["failedChecks"].as_i64().unwrap_or_default(),
            })
        }
        "events" if object["source"]["component"] == "flagger" => Some(Entry::Event {
            kind: object["type"].as_str().unwrap_or_default().to_owned(),
            text: object["message"].as_str().unwrap_or_default().to_owned(),
        }),
        "httproutes" => {
            let refs = &object["spec"]["rules"][0]["backendRefs"];
            let weight = |index: usize| refs[index]["weight"].as_i64().unwrap_or(-1);
            Some(Entry::Route { name, primary: weight(0), canary: weight(1) })
        }
        "deployments" => {
            let image = object["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap_or_default();
            Some(Entry::Deployment {
                name,
                replicas: object["spec"]["replicas"].as_i64().unwrap_or(-1),
                tag: image.rsplit(':').next().unwrap_or_default().to_owned(),
            })
        }
        _ => None,
    }
}
