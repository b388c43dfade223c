//! What stands in the store, as the commits tell it: the latest version of every object, who made and removed what, and
//! how often the operator wrote.
//!
//! Whoever waits for something waits here and costs the API server nothing. Judging is left to the [oracles](super::oracle).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::Timestamp;
use seaway_drydock::apiserver::Commit;
use seaway_drydock::{Clock, Cluster};
use serde_json::Value;
use tokio::sync::Notify;

use super::guard;
use super::mask::is_left_out;
use crate::harness::OPERATOR;

/// Resource, namespace and name.
pub type Place = (String, String, String);

/// How often what was created and removed: verb, resource and name.
pub type Births = BTreeMap<(&'static str, String, String), u32>;

/// Shared by the commit hook and whoever looks.
#[derive(Clone)]
pub struct Board {
    book: Arc<Mutex<Book>>,
    news: Arc<Notify>,
    clock: Clock,
}

/// Everything that was committed so far.
#[derive(Default)]
pub struct Book {
    /// The latest version of every object.
    pub objects: BTreeMap<Place, Arc<Value>>,
    /// How often an object was created or removed, generated names shortened.
    pub births: Births,
    /// Object writes of the operator, Leases and Events aside.
    pub writes: u32,
    /// Events the operator wrote.
    pub events: u32,
    /// What broke a rule that one commit shows.
    pub breaches: Vec<String>,
    /// Who wrote an effect last, and who held the Lease then.
    actor: Option<String>,
    /// One line per commit, if somebody wants to read them.
    pub trace: Option<Vec<String>>,
    start: Option<Timestamp>,
}

impl Board {
    /// Follows everything that is committed from now on.
    pub fn of(cluster: &Cluster, traced: bool) -> Self {
        let book = Book { trace: traced.then(Vec::new), start: Some(cluster.clock().now()), ..Book::default() };
        let board = Self { book: Arc::new(Mutex::new(book)), news: Arc::new(Notify::new()), clock: cluster.clock() };
        let (book, news) = (board.book.clone(), board.news.clone());
        cluster.api().on_commit(move |commit| {
            book.lock().unwrap().see(commit);
            news.notify_waiters();
        });
        board
    }

    /// Looks at the board.
    pub fn read(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }

    /// Waits until something holds, but not beyond `limit`, which may be put off meanwhile. Says whether it does.
    pub async fn until(&self, limit: impl Fn() -> Timestamp, holds: impl Fn(&Book) -> bool) -> bool {
        loop {
            let limit = limit();
            let news = self.news.notified();
            if holds(&self.read()) {
                return true;
            }
            if self.clock.now() >= limit {
                return false;
            }
            tokio::select! {
                biased;
                () = news => {}
                () = self.clock.sleep_until(limit) => {}
            }
        }
    }

    /// Adds a line to the trace.
    pub fn note(&self, line: impl FnOnce() -> String) {
        let now = self.clock.now();
        let mut book = self.read();
        book.note(now, line);
    }
}

impl Book {
    fn see(&mut self, commit: &Commit) {
        let Some(object) = commit.after.as_ref().or(commit.before.as_ref()) else { return };
        let place = (commit.resource.clone(), text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        self.note(commit.time, || {
            let (resource, namespace, name) = &place;
            let after = commit.after.as_ref().map_or_else(|| "gone".to_owned(), ToString::to_string);
            format!("commit {} {} {resource} {namespace}/{name} {after}", commit.user, commit.verb)
        });
        let ours = commit.user.starts_with(OPERATOR);
        match commit.resource.as_str() {
            "events" => {
                self.events += u32::from(ours);
                return;
            }
            "leases" => {}
            _ if ours => {
                self.writes += 1;
                self.breaches.extend(guard::foreign_bytes(commit));
                // They are named after what they hold and never change. One that nobody needs any more does no harm, and
                // goes with the next that is stored.
                if commit.resource != "controllerrevisions" {
                    self.one_actor(&commit.user);
                }
            }
            _ => {}
        }
        match (&commit.before, &commit.after) {
            _ if is_left_out(&place.0, &place.2) => {}
            (None, Some(_)) => {
                *self.births.entry(("create", place.0.clone(), family(object, &place))).or_default() += 1;
            }
            (Some(_), None) => {
                *self.births.entry(("delete", place.0.clone(), family(object, &place))).or_default() += 1;
            }
            _ => {}
        }
        match &commit.after {
            Some(after) => self.objects.insert(place, after.clone()),
            None => self.objects.remove(&place),
        };
    }

    fn note(&mut self, time: Timestamp, line: impl FnOnce() -> String) {
        let seconds = self.seconds(time);
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{seconds:>9.3} {}", line()));
        }
    }

    /// Seconds from the beginning of the run.
    pub fn seconds(&self, time: Timestamp) -> f64 {
        time.duration_since(self.start.unwrap_or(time)).as_secs_f64()
    }

    /// I8: once another holder of the Lease has acted, an earlier one acts no more.
    fn one_actor(&mut self, user: &str) {
        if let Some(lease) = self.get("leases", "kube-system", seaway_operator::LEASE_NAME) {
            let holder = text(lease, "/spec/holderIdentity");
            if self.actor.as_deref().is_some_and(|last| last != user) && holder != user {
                let last = self.actor.clone().unwrap_or_default();
                self.breaches.push(format!("I8: {user} wrote after {last} did, and {holder} leads"));
            }
        }
        self.actor = Some(user.to_owned());
    }

    /// An object as it stands.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&(resource.to_owned(), namespace.to_owned(), name.to_owned())).map(AsRef::as_ref)
    }

    /// The Canary of the stories.
    pub fn canary(&self) -> Option<&Value> {
        self.get("canaries", "test", "podinfo")
    }

    /// Its phase.
    pub fn phase(&self) -> &str {
        self.canary().and_then(|canary| canary.pointer("/status/phase")?.as_str()).unwrap_or_default()
    }

    /// Whether the operator still looks after the apex Service: it owns it, or has noted what it was before.
    pub fn apex_is_held(&self) -> bool {
        self.get("services", "test", "podinfo").is_some_and(|apex| {
            let noted = apex.pointer("/metadata/annotations/flagger.kubernetes.io~1original-configuration");
            apex.pointer("/metadata/ownerReferences").or(noted).is_some()
        })
    }

    /// Whether the operator still looks after the route.
    pub fn route_is_held(&self) -> bool {
        self.get("httproutes", "test", "podinfo")
            .is_some_and(|route| route.pointer("/metadata/ownerReferences").is_some())
    }

    /// The weight its status shows.
    pub fn weight(&self) -> i64 {
        self.canary().and_then(|canary| canary.pointer("/status/canaryWeight")?.as_i64()).unwrap_or_default()
    }

    /// Weights of primary and canary in the route.
    pub fn split(&self) -> Option<(i64, i64)> {
        let refs = self.get("httproutes", "test", "podinfo")?.pointer("/spec/rules/0/backendRefs")?.as_array()?;
        let weight = |name: &str| refs.iter().find(|backend| backend["name"] == name)?["weight"].as_i64();
        Some((weight("podinfo-primary")?, weight("podinfo-canary")?))
    }

    /// Replicas a Deployment asks for.
    pub fn replicas(&self, name: &str) -> i64 {
        let deployment = self.get("deployments", "test", name);
        deployment.and_then(|deployment| deployment.pointer("/spec/replicas")?.as_i64()).unwrap_or_default()
    }

    /// The tag of a Deployment's image.
    pub fn tag(&self, name: &str) -> &str {
        let deployment = self.get("deployments", "test", name);
        let image = deployment.and_then(|one| one.pointer("/spec/template/spec/containers/0/image")?.as_str());
        image.and_then(|image| image.rsplit(':').next()).unwrap_or_default()
    }

    /// Pods of a Deployment that answer.
    pub fn ready(&self, name: &str) -> i64 {
        let deployment = self.get("deployments", "test", name);
        deployment.and_then(|deployment| deployment.pointer("/status/readyReplicas")?.as_i64()).unwrap_or_default()
    }
}

/// The text at a place, empty if there is none.
pub fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The name of an object without what was generated for it: pods and slices are told apart by their owner only.
pub fn family(object: &Value, place: &Place) -> String {
    let generated = text(object, "/metadata/generateName");
    let service = text(object, "/metadata/labels/kubernetes.io~1service-name");
    match (place.0.as_str(), generated.as_str()) {
        ("endpointslices", _) if !service.is_empty() => format!("{service}-*"),
        (_, "") => place.2.clone(),
        (_, generated) => format!("{generated}*"),
    }
}
