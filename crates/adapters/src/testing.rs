//! What the tests of this crate share: YAML in, a world out, and shorter words for insta.

use seaway_api::Canary;
use serde_json::Value;

use crate::change::{Action, Change};
use crate::world::Objects;

/// The documents of a YAML text.
pub(crate) fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).expect("test YAML parses")
}

/// The only document of a YAML text.
pub(crate) fn document(yaml: &str) -> Value {
    documents(yaml).into_iter().next().expect("test YAML has a document")
}

/// A world with the objects of a YAML text.
pub(crate) fn world(yaml: &str) -> Objects {
    documents(yaml).into_iter().collect()
}

/// A Canary whose spec has these fields replaced.
pub(crate) fn canary_with(patch: &str) -> Canary {
    fn merge(into: &mut Value, from: Value) {
        match (into, from) {
            (Value::Object(into), Value::Object(from)) => {
                for (key, value) in from {
                    merge(into.entry(key).or_insert(Value::Null), value);
                }
            }
            (into, from) => *into = from,
        }
    }
    let mut object = serde_json::to_value(Canary::test()).expect("a Canary is JSON");
    merge(&mut object["spec"], document(patch));
    serde_json::from_value(object).expect("a patched Canary parses")
}

/// Applies JSON Patches to the object they are about, as a server would; creates and deletes are ignored. Understands what
/// this crate writes: `test`, `add`, `replace`, `remove`.
pub(crate) fn patched(object: &Value, changes: &[Change]) -> Value {
    let mut result = object.clone();
    for change in changes {
        let Action::JsonPatch { operations } = &change.action else { continue };
        for operation in operations.as_array().expect("a list of operations") {
            apply(&mut result, operation);
        }
    }
    result
}

fn apply(object: &mut Value, operation: &Value) {
    let path = operation["path"].as_str().expect("a path");
    let (parent, last) = path.rsplit_once('/').expect("a pointer");
    let last = last.replace("~1", "/").replace("~0", "~");
    let value = operation["value"].clone();
    match operation["op"].as_str().expect("an op") {
        "test" => assert_eq!(object.pointer(path), Some(&value), "test of {path}"),
        "remove" => {
            let removed = match object.pointer_mut(parent).expect("a parent") {
                Value::Object(fields) => fields.shift_remove(&last).is_some(),
                Value::Array(items) => {
                    items.remove(last.parse::<usize>().expect("an index"));
                    true
                }
                _ => false,
            };
            assert!(removed, "remove of {path}");
        }
        op => {
            assert!(op == "add" || object.pointer(path).is_some(), "{op} of {path}");
            match object.pointer_mut(parent).unwrap_or_else(|| panic!("parent of {path}")) {
                Value::Object(fields) => drop(fields.insert(last, value)),
                Value::Array(items) if last == "-" => items.push(value),
                Value::Array(items) => items[last.parse::<usize>().expect("an index")] = value,
                _ => panic!("{path} has no parent"),
            }
        }
    }
}

/// A server of the simplest kind: whole objects, changed by changes.
#[derive(Default)]
pub(crate) struct Server {
    objects: std::collections::BTreeMap<crate::change::ObjectRef, Value>,
    version: u64,
}

impl Server {
    /// Stores an object as somebody else would.
    pub(crate) fn put(&mut self, kind: crate::change::Kind, mut object: Value) {
        self.version += 1;
        let name = object["metadata"]["name"].as_str().expect("a name").to_owned();
        if object["metadata"]["uid"].is_null() {
            object["metadata"]["uid"] = format!("{}-{name}-{}", kind.plural, self.version).into();
        }
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        let namespace = object["metadata"]["namespace"].as_str().expect("a namespace").to_owned();
        self.objects.insert(crate::change::ObjectRef { kind, namespace, name }, object);
    }

    /// One object in full.
    pub(crate) fn get(&self, kind: crate::change::Kind, name: &str) -> &Value {
        let object = crate::change::ObjectRef { kind, namespace: "test".into(), name: name.into() };
        self.objects.get(&object).unwrap_or_else(|| panic!("{object:?} exists"))
    }

    /// The names of all objects of a kind.
    pub(crate) fn names(&self, kind: crate::change::Kind) -> Vec<&str> {
        self.objects.keys().filter(|object| object.kind == kind).map(|object| object.name.as_str()).collect()
    }

    /// What a cache makes of it.
    pub(crate) fn world(&self) -> Objects {
        let configs = [crate::kinds::CONFIG_MAP, crate::kinds::SECRET];
        let cached = self.objects.iter().map(|(reference, object)| {
            if configs.contains(&reference.kind) {
                crate::targets::config::project(reference.kind, object)
            } else {
                object.clone()
            }
        });
        cached.collect()
    }

    /// The objects that are asked for, those that exist.
    pub(crate) fn fetch(&self, needs: &[crate::change::ObjectRef]) -> crate::world::Fetched {
        needs.iter().filter_map(|need| Some((need.clone(), self.objects.get(need)?.clone()))).collect()
    }

    /// Obeys one change; panics where a real server would refuse.
    pub(crate) fn obey(&mut self, change: &Change) {
        let object = &change.object;
        match &change.action {
            Action::Create { body, .. } => {
                assert!(!self.objects.contains_key(object), "{object:?} exists already");
                self.put(object.kind, body.clone());
            }
            Action::JsonPatch { .. } => {
                let before = self.objects.get(object).unwrap_or_else(|| panic!("{object:?} exists")).clone();
                self.put(object.kind, patched(&before, std::slice::from_ref(change)));
            }
            Action::Delete { uid } => {
                let gone = self.objects.remove(object).unwrap_or_else(|| panic!("{object:?} exists"));
                assert_eq!(gone["metadata"]["uid"], uid.as_str());
            }
            other @ Action::MergePatch { .. } => panic!("not written by this crate: {other:?}"),
        }
    }
}

/// A network with one server behind every name. It gives the next answer of a list to each connection and notes what was
/// asked; status 0 hangs, and when the list is at its end connections are refused.
pub(crate) struct Script {
    answers: std::sync::Mutex<std::collections::VecDeque<(u16, String, String)>>,
    requests: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
}

impl Script {
    pub(crate) fn answering<const N: usize>(answers: [(u16, &str); N]) -> std::sync::Arc<Self> {
        Self::with_headers(answers.map(|(status, body)| (status, "", body)))
    }

    /// Answers with extra header lines, each ended by CRLF.
    pub(crate) fn with_headers<const N: usize>(answers: [(u16, &str, &str); N]) -> std::sync::Arc<Self> {
        let answers = answers.map(|(status, head, body)| (status, head.to_owned(), body.to_owned()));
        std::sync::Arc::new(Self {
            answers: std::sync::Mutex::new(answers.into()),
            requests: std::sync::Arc::default(),
        })
    }

    /// The requests so far, as text.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

impl crate::http::Dial for Script {
    fn dial(&self, _: &str, _: u16) -> futures::future::BoxFuture<'static, std::io::Result<crate::http::Stream>> {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let answer = self.answers.lock().unwrap().pop_front();
        let requests = self.requests.clone();
        Box::pin(async move {
            let (status, head, body) = answer.ok_or(std::io::ErrorKind::ConnectionRefused)?;
            let (near, mut far) = tokio::io::duplex(1 << 16);
            tokio::spawn(async move {
                let mut request = vec![0; 1 << 16];
                let read = far.read(&mut request).await.unwrap_or_default();
                requests.lock().unwrap().push(String::from_utf8_lossy(&request[..read]).into_owned());
                if status == 0 {
                    return std::future::pending::<()>().await;
                }
                let answer = format!("HTTP/1.1 {status} X\r\n{head}Content-Length: {}\r\n\r\n{body}", body.len());
                let _ = far.write_all(answer.as_bytes()).await;
            });
            Ok(Box::new(near) as crate::http::Stream)
        })
    }
}
