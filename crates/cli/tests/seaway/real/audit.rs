//! What was asked of a real API server and what it wrote, from its audit log: the same evidence that drydock gives.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use jiff::Timestamp;
use seaway_drydock::apiserver::{Commit, Request};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::control_plane::OPERATOR;
use crate::harness::{self, Commits};

/// How often the log is read.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a line waits for earlier ones: requests are logged when they are answered, not when they are stored.
const PATIENCE: Duration = Duration::from_millis(300);

type Hook = Box<dyn Fn(&Commit) + Send>;

/// Reads an audit log; clones share what was read.
#[derive(Clone)]
pub struct Audit {
    book: Arc<Mutex<Book>>,
    _task: Arc<Reader>,
}

struct Reader(JoinHandle<()>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Default)]
struct Book {
    hooks: Vec<Hook>,
    requests: Vec<Request>,
    /// Objects as they were last written, by resource, namespace and name.
    objects: BTreeMap<(String, String, String), Arc<Value>>,
    /// Whether nothing is told for now.
    held: bool,
    /// Writes that are in no log, as lines of it.
    found: Vec<Value>,
}

impl Commits for Audit {
    fn on_commit(&self, hook: impl Fn(&Commit) + Send + Sync + 'static) {
        self.book.lock().unwrap().hooks.push(Box::new(hook));
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

impl Audit {
    /// From a request's answer until it is surely told here.
    pub const LAG: Duration = Duration::from_millis(500);

    /// Follows the log from its beginning.
    pub fn follow(log: PathBuf) -> Self {
        let book: Arc<Mutex<Book>> = Arc::default();
        let told = book.clone();
        let task = tokio::spawn(async move {
            let (mut at, mut rest, mut waiting, mut newest) = (0, String::new(), Vec::new(), 0);
            loop {
                tokio::time::sleep(GLANCE).await;
                read(&log, &mut at, &mut rest);
                while let Some(end) = rest.find('\n') {
                    let line: String = rest.drain(..=end).collect();
                    let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
                    newest = newest.max(version(&event).unwrap_or(0));
                    waiting.push((tokio::time::Instant::now() + PATIENCE, place(&event, newest), event));
                }
                let mut book = told.lock().unwrap();
                let now = tokio::time::Instant::now();
                waiting.extend(book.found.drain(..).map(|event| (now, place(&event, newest), event)));
                if book.held {
                    continue;
                }
                let due = waiting.iter().filter(|(when, ..)| *when <= now).count();
                // What came meanwhile may have been stored before what is due.
                waiting.sort_by_key(|(_, place, _)| *place);
                waiting.drain(..due).for_each(|(.., event)| book.tell(&event));
            }
        });
        Self { book, _task: Arc::new(Reader(task)) }
    }

    /// Tells nothing more until [`Audit::go_on`].
    pub fn hold(&self) {
        self.book.lock().unwrap().held = true;
    }

    /// Goes on after a crash. What was stored and then not logged, or logged as a failure because the answer was lost, is
    /// among these objects, each with the resource it is of: it is told in its place.
    pub fn go_on(&self, objects: Vec<(&str, Value)>) {
        let mut book = self.book.lock().unwrap();
        book.held = false;
        book.found.extend(objects.into_iter().map(|(resource, object)| {
            let (namespace, name) = (&object["metadata"]["namespace"], &object["metadata"]["name"]);
            let group = object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |it| it.0);
            json!({
                "user": {"username": OPERATOR},
                "verb": "patch",
                "objectRef": {"apiGroup": group, "resource": resource, "namespace": namespace, "name": name},
                "responseStatus": {"code": 200},
                "stageTimestamp": Timestamp::now().to_string(),
                "responseObject": object,
            })
        }));
    }

    /// What the operator asked so far.
    pub fn requests(&self) -> Vec<Request> {
        let book = self.book.lock().unwrap();
        book.requests.iter().filter(|request| request.user == harness::OPERATOR).cloned().collect()
    }

    /// The first request of an account of the cluster that is like this. The operator is one, under whatever name it runs.
    pub fn find(&self, wanted: impl Fn(&Request) -> bool) -> Option<Request> {
        let is_account = |user: &str| user == harness::OPERATOR || user.starts_with("system:serviceaccount:");
        let book = self.book.lock().unwrap();
        book.requests.iter().find(|request| is_account(&request.user) && wanted(request)).cloned()
    }
}

fn read(log: &PathBuf, at: &mut u64, rest: &mut String) {
    let Ok(mut file) = std::fs::File::open(log) else { return };
    let mut text = Vec::new();
    let length = file.metadata().map_or(*at, |log| log.len());
    assert!(length >= *at, "the audit log was begun anew, and what it said is lost");
    if file.seek(SeekFrom::Start(*at)).is_ok() && file.read_to_end(&mut text).is_ok() {
        *at += text.len() as u64;
        rest.push_str(&String::from_utf8_lossy(&text));
    }
}

/// Where a line stands among all others. The answer to a deletion has no version: it comes after what was logged before it.
fn place(event: &Value, newest: u64) -> u64 {
    version(event).unwrap_or(newest)
}

/// Where a write stands among all others. Every object of a server takes its versions from one counter.
fn version(event: &Value) -> Option<u64> {
    event["responseObject"]["metadata"]["resourceVersion"].as_str()?.parse().ok()
}

impl Book {
    fn tell(&mut self, event: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let about = &event["objectRef"];
        let request = Request {
            user: match text(&event["user"]["username"]) {
                name if name == OPERATOR => harness::OPERATOR.to_owned(),
                name => name,
            },
            verb: text(&event["verb"]),
            group: text(&about["apiGroup"]),
            resource: text(&about["resource"]),
            namespace: text(&about["namespace"]),
            name: text(&about["name"]),
            subresource: text(&about["subresource"]),
            code: event["responseStatus"]["code"]
                .as_u64()
                .and_then(|code| u16::try_from(code).ok())
                .unwrap_or_default(),
            time: event["stageTimestamp"].as_str().and_then(|time| time.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH),
        };
        if request.is_write() && (200..300).contains(&request.code) {
            self.commit(&request, &event["responseObject"]);
        }
        self.requests.push(request);
    }

    fn commit(&mut self, request: &Request, answer: &Value) {
        let named = |name: &str| (request.resource.clone(), request.namespace.clone(), name.to_owned());
        let name = answer.pointer("/metadata/name").and_then(Value::as_str).unwrap_or(&request.name);
        let key = named(name);
        let before = self.objects.get(&key).cloned();
        let meta = |field: &str| answer.pointer(&format!("/metadata/{field}"));
        let is_gone = request.verb == "delete" && meta("uid").is_none()
            || meta("deletionTimestamp").is_some() && meta("finalizers").is_none();
        let after = if is_gone {
            self.objects.remove(&key);
            None
        } else if meta("uid").is_none() || request.subresource == "scale" {
            // Not the object: a Scale, or many at once.
            return;
        } else {
            // Seen already, or found before an older line about it was read.
            let number =
                |version: Option<&Value>| version.and_then(Value::as_str).and_then(|text| text.parse::<u64>().ok());
            let seen = |seen: &Arc<Value>| {
                number(seen.pointer("/metadata/resourceVersion")) >= number(meta("resourceVersion"))
            };
            if before.as_ref().is_some_and(seen) {
                return;
            }
            let after = Arc::new(answer.clone());
            self.objects.insert(key, after.clone());
            Some(after)
        };
        let commit = Commit {
            user: request.user.clone(),
            verb: request.verb.clone(),
            group: request.group.clone(),
            resource: request.resource.clone(),
            subresource: request.subresource.clone(),
            before,
            after,
            revision: meta("resourceVersion").and_then(Value::as_str).and_then(|v| v.parse().ok()).unwrap_or_default(),
            time: request.time,
        };
        self.hooks.iter().for_each(|hook| hook(&commit));
    }
}
