//! For unit tests only: an API server of forty lines and the clock of a paused runtime.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http::{Method, Request, Response, StatusCode};
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::clock::Clock;

/// tokio's clock, shifted to a fixed date.
pub(crate) struct TestClock(Instant);

impl TestClock {
    pub(crate) fn start() -> Arc<Self> {
        Arc::new(Self(Instant::now()))
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap() + self.0.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}

/// A fault after the work is done.
pub(crate) const LOST: u16 = 504;

/// Objects by path, with resource versions and conflicts.
#[derive(Clone, Default)]
pub(crate) struct Server {
    pub(crate) objects: Arc<Mutex<BTreeMap<String, Value>>>,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    /// Statuses to answer with instead of working, next first.
    pub(crate) faults: Arc<Mutex<Vec<u16>>>,
    version: Arc<Mutex<u64>>,
}

impl Server {
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path().to_owned();
        let body: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap_or_default();
        self.log.lock().unwrap().push(format!("{} {path}", parts.method));
        let fault = self.faults.lock().unwrap().pop();
        let (status, mut answer) = match fault {
            Some(LOST) => {
                self.work(&parts.method, path, body);
                (LOST, json!({ "kind": "Status", "message": "injected" }))
            }
            Some(status) => (status, json!({ "kind": "Status", "message": "injected" })),
            None => self.work(&parts.method, path, body),
        };
        if status >= 400 {
            answer["code"] = json!(status);
        }
        let status = StatusCode::from_u16(status).unwrap();
        Response::builder().status(status).body(Body::from(serde_json::to_vec(&answer).unwrap())).unwrap()
    }

    fn work(&self, method: &Method, mut path: String, body: Value) -> (u16, Value) {
        let mut objects = self.objects.lock().unwrap();
        if method == Method::POST {
            path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
        }
        let stored = objects.get(&path).cloned();
        let mut object = match (method.as_str(), stored) {
            ("POST", Some(_)) => return (409, json!({ "reason": "AlreadyExists", "message": "exists" })),
            ("POST", None) => body,
            (_, None) => return (404, json!({ "reason": "NotFound", "message": "not found" })),
            ("GET", Some(stored)) => return (200, stored),
            ("PUT", Some(stored)) => {
                if stored["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                    return (409, json!({ "reason": "Conflict", "message": "conflict" }));
                }
                body
            }
            (_, Some(mut stored)) => {
                for (key, value) in body.as_object().unwrap() {
                    stored[key] = value.clone();
                }
                stored
            }
        };
        let mut version = self.version.lock().unwrap();
        *version += 1;
        object["metadata"]["resourceVersion"] = json!(version.to_string());
        objects.insert(path, object.clone());
        (if method == Method::POST { 201 } else { 200 }, object)
    }
}
