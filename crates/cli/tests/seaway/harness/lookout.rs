//! The lookout: sees every committed write and checks the invariants on it.
//!
//! It knows nothing of the operator. From the commits alone it keeps the scene of each Canary (status, weights, pods,
//! whose pods the apex selects) and hands every step from one scene to the next to the rules. What it finds fails the
//! test that asks, at its end.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use seaway_api::canary::{self, Canary};
use seaway_core::invariants::commit::{Pods, Scene, check};
use seaway_core::plan::{Plan, Settings};
use seaway_core::revision::template_hash;
use seaway_core::split::{Split, Variant};
use seaway_drydock::apiserver::Commit;
use serde_json::Value;

use super::Commits;

/// Watches one cluster.
#[derive(Clone, Default)]
pub struct Lookout(Arc<Mutex<Log>>);

/// A Canary as it was committed, and what it says.
type Read = (Arc<Value>, Arc<(Canary, Plan)>);

#[derive(Default)]
struct Log {
    /// Latest object by resource and name, namespace `test` only.
    objects: BTreeMap<(String, String), Arc<Value>>,
    /// What a pod template of a target runs, to the hash of the user's template that runs the same.
    revisions: BTreeMap<(String, String), String>,
    scenes: BTreeMap<String, Scene>,
    /// Canaries as they were last read: reading one is most of what looking costs.
    plans: BTreeMap<String, Read>,
    violations: Vec<(Timestamp, String)>,
    /// How many steps from one scene to the next the rules were asked about.
    judged: usize,
}

/// What the rules speak of. Commits of anything else change no scene.
const WATCHED: [&str; 4] = ["canaries", "deployments", "services", "httproutes"];

impl Lookout {
    /// Starts to watch.
    pub fn on(cluster: &impl Commits) -> Self {
        let lookout = Self::default();
        let log = lookout.0.clone();
        cluster.on_commit(move |commit| log.lock().unwrap().see(commit));
        lookout
    }

    /// What broke a rule so far; asking forgets it.
    pub fn violations(&self) -> Vec<String> {
        self.timed_violations().into_iter().map(|(_, violation)| violation).collect()
    }

    /// The same, with the time of each.
    pub fn timed_violations(&self) -> Vec<(Timestamp, String)> {
        std::mem::take(&mut self.0.lock().unwrap().violations)
    }

    /// How many writes of the operator it judged: none means that it looked elsewhere.
    pub fn judged(&self) -> usize {
        self.0.lock().unwrap().judged
    }
}

impl Log {
    fn see(&mut self, commit: &Commit) {
        let Some(object) = commit.after.as_ref().or(commit.before.as_ref()) else { return };
        if !WATCHED.contains(&commit.resource.as_str()) {
            return;
        }
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("/metadata/namespace") != "test" {
            return;
        }
        let key = (commit.resource.clone(), text("/metadata/name"));
        match &commit.after {
            Some(after) => self.objects.insert(key, after.clone()),
            None => self.objects.remove(&key),
        };
        if commit.resource == "deployments"
            && let Some(template) = object.pointer("/spec/template")
            && !text("/metadata/name").ends_with("-primary")
        {
            self.revisions.insert((text("/metadata/name"), runs(template)), template_hash(template));
        }
        // What others write into a route is theirs; what we write must add up.
        if commit.resource == "httproutes" && commit.after.is_some() && commit.user.starts_with(super::OPERATOR) {
            self.weights_add_up(commit.time, object);
        }
        let canaries: Vec<Arc<Value>> =
            self.objects.iter().filter(|((kind, _), _)| kind == "canaries").map(|(_, object)| object.clone()).collect();
        for canary in canaries {
            self.step(commit, &canary);
        }
    }

    /// A Canary and its plan, if it has any.
    fn plan(&mut self, object: &Arc<Value>) -> Option<Arc<(Canary, Plan)>> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        if let Some((read, plan)) = self.plans.get(name)
            && Arc::ptr_eq(read, object)
        {
            return Some(plan.clone());
        }
        let canary = canary::parse(Value::clone(object)).ok()?;
        let settings = Settings { provider: "gatewayapi:v1".into(), ..Settings::default() };
        let plan = Plan::new(&canary, &settings).ok()?;
        let plan = Arc::new((canary, plan));
        self.plans.insert(name.to_owned(), (object.clone(), plan.clone()));
        Some(plan)
    }

    fn step(&mut self, commit: &Commit, object: &Arc<Value>) {
        let Some(read) = self.plan(object) else { return };
        let (canary, plan) = &*read;
        let target = canary.spec.target_ref.name.clone();
        let apex = canary.apex_name().to_owned();
        let route = self.object("httproutes", &apex).map_or(Scene::default(), |route| heading(route, &apex));
        let after = Scene {
            status: canary.status.clone().unwrap_or_default(),
            primary: self.pods(&format!("{target}-primary")),
            target: self.pods(&target),
            apex: self.object("services", &apex).and_then(|service| {
                let app = service.pointer("/spec/selector/app")?.as_str()?;
                Some(if app.ends_with("-primary") { Variant::Primary } else { Variant::Canary })
            }),
            ..route
        };
        let name = plan.key().clone();
        if let Some(before) = self.scenes.get(&name)
            && commit.user.starts_with(super::OPERATOR)
        {
            self.judged += 1;
            if let Err(violation) = check(plan, before, &after) {
                let by = format!("({} {} by {})", commit.verb, commit.resource, commit.user);
                self.violations.push((commit.time, format!("{violation} {by}")));
            }
        }
        self.scenes.insert(name, after);
    }

    fn object(&self, resource: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(resource.to_owned(), name.to_owned())).map(AsRef::as_ref)
    }

    fn pods(&self, deployment: &str) -> Option<Pods> {
        let object = self.object("deployments", deployment)?;
        let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or(0) as u32;
        let target = deployment.strip_suffix("-primary").unwrap_or(deployment).to_owned();
        let template = (target, runs(object.pointer("/spec/template")?));
        let revision = self.revisions.get(&template).cloned().unwrap_or_default();
        let (replicas, ready) = (number("/spec/replicas"), number("/status/readyReplicas"));
        Some(Pods { replicas, ready, revision, ..Pods::default() })
    }

    /// I2, for every rule that names our Services.
    fn weights_add_up(&mut self, time: Timestamp, route: &Value) {
        for rule in route.pointer("/spec/rules").and_then(Value::as_array).into_iter().flatten() {
            let refs = rule["backendRefs"].as_array().cloned().unwrap_or_default();
            let sum: i64 = refs.iter().map(|backend| backend["weight"].as_i64().unwrap_or(1)).sum();
            let ours = refs.iter().any(|backend| backend["name"].as_str().unwrap_or_default().ends_with("-primary"));
            if ours && sum != 100 {
                self.violations.push((time, format!("I2: weights add up to {sum}")));
            }
        }
    }
}

/// What tells two revisions of the scenarios apart: images and environment.
fn runs(template: &Value) -> String {
    let containers = template.pointer("/spec/containers").and_then(Value::as_array).into_iter().flatten();
    containers.fold(String::new(), |all, container| format!("{all}{}{}", container["image"], container["env"]))
}

/// Where the first rule of a route leads: a scene of which the rest is empty.
fn heading(route: &Value, apex_name: &str) -> Scene {
    let refs = route.pointer("/spec/rules/0/backendRefs").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let weight = |name: String| {
        let backend = refs.iter().find(|backend| backend["name"] == name)?;
        Some(backend["weight"].as_i64().unwrap_or(1))
    };
    let [apex, primary, canary] = ["", "-primary", "-canary"].map(|suffix| weight(format!("{apex_name}{suffix}")));
    let to_apex = apex.is_some_and(|share| share > 0) && primary.unwrap_or(0) + canary.unwrap_or(0) == 0;
    let split = canary.and_then(|canary| u8::try_from(canary).ok()).map(Split::canary);
    // A name that stands there twice is somebody's mistake.
    let primaries = refs.iter().filter(|backend| backend["name"] == format!("{apex_name}-primary")).count();
    Scene {
        split: split.filter(|_| !to_apex && primaries < 2),
        to_apex,
        announced: [apex, primary, canary].iter().all(Option::is_some),
        ..Scene::default()
    }
}
