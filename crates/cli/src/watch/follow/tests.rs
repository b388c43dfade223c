//! Watches on an API server that refuses, forgets and goes away.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use http::{Request, Response, Uri};
use jiff::Timestamp;
use kube::client::Body;
use seaway_api::Canary;
use serde_json::{Value, json};

use super::*;
use crate::watch::world::Access;

/// Answers by path; what it is asked is written down. A watch of nothing never ends.
#[derive(Clone, Default)]
struct Server {
    asked: Arc<Mutex<Vec<String>>>,
    /// Answers to lists of canaries, the last one again and again.
    canaries: Arc<Mutex<VecDeque<(u16, Value)>>>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (server, asked) = (server.clone(), request.uri().clone());
            async move { Ok::<_, Infallible>(server.answer(&asked).await) }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, asked: &Uri) -> Response<Body> {
        let (path, query) = (asked.path().to_owned(), asked.query().unwrap_or_default().to_owned());
        let watch = query.contains("watch=true");
        self.asked.lock().unwrap().push(format!("{} {path}", if watch { "watch" } else { "list" }));
        if watch {
            std::future::pending::<()>().await;
        }
        let (code, body) = match path.rsplit('/').next().unwrap_or_default() {
            "canaries" => {
                let mut answers = self.canaries.lock().unwrap();
                if answers.len() > 1 { answers.pop_front().unwrap() } else { answers.front().cloned().unwrap() }
            }
            "pods" => (403, failure(403, "pods is forbidden")),
            "httproutes" => (404, failure(404, "the server could not find the requested resource")),
            _ => (200, items(&[])),
        };
        Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
    }
}

fn items(items: &[Value]) -> Value {
    json!({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}, "items": items})
}

fn failure(code: u16, message: &str) -> Value {
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message, "reason": "", "code": code})
}

fn podinfo() -> Value {
    let mut object = serde_json::to_value(Canary::test()).unwrap();
    object["apiVersion"] = seaway_api::API_VERSION.into();
    object["kind"] = "Canary".into();
    object
}

async fn look(server: &Server, enough: impl Fn(&World) -> bool) -> World {
    let (mut follower, mut seen) = Follower::new(server.client());
    follower.canaries(&Scope { namespace: Some("test".into()), name: Some("podinfo".into()), selector: None });
    let mut world = World::new(Timestamp::UNIX_EPOCH);
    while !enough(&world) {
        let sight = tokio::time::timeout(Duration::from_secs(600), seen.recv()).await.expect("in time").unwrap();
        world.take(Timestamp::UNIX_EPOCH, sight);
        follower.attend(&mut world, &Key::new("test", "podinfo"), Detail::Shown);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn what_may_not_be_seen_is_named_and_the_rest_is_shown() {
    let server = Server::default();
    server.canaries.lock().unwrap().push_back((200, items(&[podinfo()])));
    let kinds = [Kind::Canary, Kind::Event, Kind::Deployment, Kind::ReplicaSet, Kind::Service];
    let enough = |world: &World| {
        kinds.iter().all(|kind| world.access(*kind) == Some(&Access::Synced)) && world.troubles().count() == 2
    };
    let world = look(&server, enough).await;
    let troubles: Vec<_> = world.troubles().map(|(kind, _, trouble)| (kind, trouble.clone())).collect();
    assert_eq!(
        troubles,
        [(Kind::Route, Trouble::Unknown), (Kind::Pod, Trouble::Forbidden("pods is forbidden".into()))]
    );
    let mut asked = server.asked.lock().unwrap().clone();
    asked.sort();
    asked.dedup();
    insta::assert_snapshot!(asked.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_went_away_is_asked_until_it_is_back() {
    let server = Server::default();
    let unavailable = || (503, failure(503, "the server is starting"));
    server.canaries.lock().unwrap().extend([unavailable(), unavailable(), (200, items(&[podinfo()]))]);
    let lost = std::cell::Cell::new(false);
    let world = look(&server, |world| {
        let now =
            world.troubles().any(|(kind, _, trouble)| kind == Kind::Canary && matches!(trouble, Trouble::Lost(_)));
        lost.set(lost.get() || now);
        world.access(Kind::Canary) == Some(&Access::Synced)
    });
    let world = world.await;
    assert!(lost.get() && world.canary(&Key::new("test", "podinfo")).is_some());
}

#[test]
fn errors_are_sorted_by_what_they_mean() {
    let api = |code: u16| {
        let status = serde_json::from_value::<kube::core::Status>(failure(code, "because")).unwrap();
        trouble(&watcher::Error::InitialListFailed(kube::Error::Api(status.boxed())))
    };
    assert_eq!(api(410), None);
    assert_eq!(api(403), Some(Trouble::Forbidden("because".into())));
    assert_eq!(api(401), Some(Trouble::Forbidden("because".into())));
    assert_eq!(api(404), Some(Trouble::Unknown));
    assert_eq!(api(500), Some(Trouble::Lost("500 because".into())));
    assert!(trouble(&watcher::Error::NoResourceVersion).is_some());
    assert_eq!((backoff(1), backoff(3), backoff(99)), (Duration::from_millis(500), Duration::from_secs(2), PAUSES.1));
}
