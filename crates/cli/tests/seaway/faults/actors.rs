//! Others who act in the middle of a rollout: pods that fail, tools and people who write.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use seaway_drydock::{Clock, Net};
use serde_json::{Value, json};

use super::board::{Board, text};
use super::ground::{Ground, INTERVAL};
use super::guard::FOREIGN;
use super::hand::{CANARIES, DEPLOYMENTS, Hand, PODS, ROUTES, SERVICES};
use super::mishap::{Outlook, SPELL};
use super::story::{End, OLD, Story};

/// What happens to the pods with this `app` label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// Their containers exit.
    Crash(&'static str),
    /// They are deleted without grace.
    Vanish(&'static str),
    /// They say they are not ready, for a while.
    Unready(&'static str),
}

/// What somebody else writes into things we manage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replicas of the primary, as an autoscaler or a person would.
    Replicas,
    /// The weights of the route, half and half.
    Weights,
    /// The primary's backend in the route, led to a Service of another namespace.
    Namespace,
    /// Labels on everything of ours.
    Labels,
    /// A rule of their own behind the route's.
    Rule,
    /// The selector of the apex Service.
    Selector,
}

/// What the person does besides the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deed {
    /// Rolls out another version.
    Revision,
    /// Changes the interval.
    Interval,
    /// Suspends the Canary and resumes it after a while.
    Suspend,
    /// Deletes the Canary.
    Delete,
    /// Deletes the Canary and creates it again.
    Recreate,
}

/// The version of [`Deed::Revision`].
pub const LATEST: &str = "6.0.5";

/// Everything an actor needs, detached from the stage so that it can act from inside a request.
#[derive(Clone)]
pub struct Actor {
    board: Board,
    clock: Clock,
    net: Net,
    person: Hand,
    other: Hand,
    canary: Value,
}

impl Actor {
    /// Somebody who acts on this ground.
    pub fn on(ground: &Ground, story: &Story) -> Self {
        Self {
            board: ground.board.clone(),
            clock: ground.cluster.clock(),
            net: ground.cluster.net().clone(),
            person: ground.person.clone(),
            other: ground.other.clone(),
            canary: story.object(),
        }
    }

    /// Harms pods.
    pub async fn harm(self, harm: Harm) {
        let (Harm::Crash(app) | Harm::Vanish(app) | Harm::Unready(app)) = harm;
        for (name, address) in self.pods(app) {
            match harm {
                Harm::Vanish(_) => drop(self.other.delete(&format!("{PODS}/{name}")).await),
                Harm::Crash(_) => self.call(address, "GET", "/panic"),
                Harm::Unready(_) => {
                    self.call(address, "POST", "/readyz/disable");
                    let this = self.clone();
                    tokio::spawn(async move {
                        this.clock.sleep(SPELL).await;
                        this.call(address, "POST", "/readyz/enable");
                    });
                }
            }
        }
    }

    fn pods(&self, app: &str) -> Vec<(String, SocketAddr)> {
        let book = self.board.read();
        let pods = book.objects.iter().filter(|((resource, ..), _)| resource == "pods");
        let pods = pods.filter(|(_, pod)| text(pod, "/metadata/labels/app") == app);
        pods.filter_map(|((_, _, name), pod)| {
            let ip = text(pod, "/status/podIP").parse().ok()?;
            Some((name.clone(), SocketAddr::new(ip, 9898)))
        })
        .collect()
    }

    /// Calls a pod and does not wait for its answer, which may never come.
    fn call(&self, address: SocketAddr, method: &'static str, path: &'static str) {
        let net = self.net.clone();
        tokio::spawn(async move {
            let Ok(stream) = net.connect(address).await else { return };
            let Ok((mut sender, connection)) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await else {
                return;
            };
            tokio::spawn(connection);
            let request = Request::builder().method(method).uri(path).header("host", "pod");
            drop(sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await);
        });
    }

    /// Writes what we manage.
    pub async fn write(self, edit: Edit) {
        let other = &self.other;
        let primary = format!("{DEPLOYMENTS}/podinfo-primary");
        let route = format!("{ROUTES}/podinfo");
        match edit {
            Edit::Replicas => drop(other.merge(&primary, &json!({"spec": {"replicas": 2}})).await),
            Edit::Weights => {
                let weight = |index: usize| json!({"op": "replace", "path": format!("/spec/rules/0/backendRefs/{index}/weight"), "value": 50});
                other.edit(&route, &json!([weight(0), weight(1)])).await;
            }
            // What was given back is its user's: what they do to it then is what they want.
            Edit::Namespace if self.board.read().route_is_held() => {
                let path = "/spec/rules/0/backendRefs/0/namespace";
                other.edit(&route, &json!([{"op": "add", "path": path, "value": "elsewhere"}])).await;
            }
            Edit::Labels => {
                let labels = json!({"metadata": {"labels": {format!("{FOREIGN}team"): "harbour"}}});
                for name in ["podinfo", "podinfo-primary", "podinfo-canary"] {
                    other.merge(&format!("{SERVICES}/{name}"), &labels).await;
                }
                other.merge(&primary, &labels).await;
                other.merge(&route, &labels).await;
            }
            Edit::Rule => {
                let rule = json!({
                    "matches": [{"path": {"type": "PathPrefix", "value": "/maintenance"}}],
                    "backendRefs": [{"name": "maintenance", "port": 80}],
                });
                other.edit(&route, &json!([{"op": "add", "path": "/spec/rules/-", "value": rule}])).await;
            }
            Edit::Selector if self.board.read().apex_is_held() => {
                let selector = json!({"spec": {"selector": {"app": "podinfo-canary"}}});
                other.merge(&format!("{SERVICES}/podinfo"), &selector).await;
            }
            Edit::Namespace | Edit::Selector => {}
        }
    }

    /// Acts as the person.
    pub async fn act(self, deed: Deed) {
        let canary = format!("{CANARIES}/podinfo");
        match deed {
            Deed::Revision => drop(self.person.set_image(LATEST, "").await),
            Deed::Interval => {
                let interval = format!("{}s", INTERVAL.as_secs() + 2);
                self.person.merge(&canary, &json!({"spec": {"analysis": {"interval": interval}}})).await;
            }
            Deed::Suspend => {
                self.person.merge(&canary, &json!({"spec": {"suspend": true}})).await;
                tokio::spawn(async move {
                    self.clock.sleep(SPELL).await;
                    self.person.merge(&canary, &json!({"spec": {"suspend": false}})).await;
                });
            }
            Deed::Delete => drop(self.person.delete(&canary).await),
            Deed::Recreate => {
                self.person.delete(&canary).await;
                tokio::spawn(async move {
                    for _ in 0..60 {
                        self.clock.sleep(Duration::from_secs(1)).await;
                        if self.person.create(CANARIES, &self.canary).await {
                            return;
                        }
                    }
                });
            }
        }
    }
}

impl Deed {
    /// How long it takes until the person is done and the story has caught up.
    pub fn lasts(self) -> Duration {
        match self {
            // Everything begins again, at worst at the last moment.
            Self::Revision | Self::Recreate => INTERVAL * 9,
            Self::Interval => INTERVAL * 2,
            // And what was waiting for the end of it.
            Self::Suspend => SPELL + Duration::from_secs(2),
            Self::Delete => INTERVAL,
        }
    }

    /// How a story must end with it.
    pub fn outlook(self, story: &Story) -> Outlook {
        let end = story.end;
        match self {
            // Whichever version came last is rolled out; the story's own step may come later.
            Self::Revision => Outlook::OneOf(vec![end, End::Promoted(LATEST), End::Initialised(LATEST)]),
            Self::Interval | Self::Suspend => Outlook::OneOf(vec![end]),
            Self::Delete => Outlook::OneOf(vec![End::Gone, End::Left]),
            Self::Recreate => {
                let mut ends = vec![end, End::Initialised(OLD), End::Failed(OLD)];
                ends.extend(story.unfit.then_some(End::Adopting));
                for tag in story.tags() {
                    ends.extend([End::Initialised(tag), End::Promoted(tag)]);
                }
                Outlook::OneOf(ends)
            }
        }
    }
}
