//! One watch per kind, reduced to what is shown, into one channel.
//!
//! A watch that breaks is begun anew after a pause, with a list: that is how it is known that the API server is back. A
//! kind that we may not see is asked for again now and then, since somebody may be changing that. Nothing is read but by
//! these watches.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::{apps::v1 as apps, core::v1 as core};
use kube::api::{ApiResource, DynamicObject};
use kube::core::NamespaceResourceScope;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use seaway_api::foreign::gateway::HttpRoute;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::task::AbortOnDropHandle;

use super::canary::CanaryFacts;
use super::objects::{EventLine, Key, Kind, Object, Pod, ReplicaSet, Route, Service, Workload, clean, may_belong};
use super::world::{Sight, Trouble, World};

/// First and longest pause before a watch is begun anew.
const PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(15));
/// Pause before asking again for what we may not see, or what does not exist.
const REFUSED: Duration = Duration::from_secs(60);
/// Seconds after which the server ends a watch: so long it can take to notice that it silently went away.
const WATCH_SECONDS: u32 = 60;

/// Which canaries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// In one namespace, or in all.
    pub namespace: Option<String>,
    /// One of this name.
    pub name: Option<String>,
    /// With these labels.
    pub selector: Option<String>,
}

/// How much of a canary is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What is told in lines: the target, the route, Events.
    Told,
    /// Everything a screen shows.
    Shown,
}

/// Where the parts of a canary are found.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    canary: Key,
    target_kind: String,
    target: String,
    apex: String,
}

/// The kinds that are looked at for one canary only.
const DETAILS: [Kind; 6] = [Kind::Event, Kind::Deployment, Kind::DaemonSet, Kind::ReplicaSet, Kind::Pod, Kind::Service];

/// Follows what happens. All watches end when it is dropped.
pub struct Follower {
    client: Client,
    sights: Sender<Sight>,
    /// Watches that go on as long as it does.
    general: Vec<AbortOnDropHandle<()>>,
    /// Watches for one canary.
    special: Vec<AbortOnDropHandle<()>>,
    attended: Option<Parts>,
    /// Routes of all canaries are followed already.
    all_routes: bool,
    all_events: bool,
}

impl Follower {
    /// A follower that does not look at anything yet, and the channel where sights will come.
    pub fn new(client: Client) -> (Self, Receiver<Sight>) {
        let (sights, seen) = mpsc::channel(1024);
        let follower = Self {
            client,
            sights,
            general: Vec::new(),
            special: Vec::new(),
            attended: None,
            all_routes: false,
            all_events: false,
        };
        (follower, seen)
    }

    /// Looks at the canaries in `scope`.
    pub fn canaries(&mut self, scope: &Scope) {
        let mut config = settings();
        if let Some(name) = &scope.name {
            config = config.fields(&format!("metadata.name={name}"));
        }
        if let Some(selector) = &scope.selector {
            config = config.labels(selector);
        }
        let kind = ApiResource {
            group: seaway_api::GROUP.to_owned(),
            version: seaway_api::VERSION.to_owned(),
            api_version: seaway_api::API_VERSION.to_owned(),
            kind: "Canary".to_owned(),
            plural: "canaries".to_owned(),
        };
        let api: Api<DynamicObject> = match &scope.namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind),
            None => Api::all_with(self.client.clone(), &kind),
        };
        let project = |object: DynamicObject| Some(Object::Canary(Box::new(CanaryFacts::of(&object))));
        self.general.push(self.start(Kind::Canary, api, config, project));
    }

    /// Looks at the routes of all canaries in `scope`.
    pub fn routes(&mut self, scope: &Scope) {
        let api = self.api::<HttpRoute>(scope.namespace.as_deref());
        self.general.push(self.start(Kind::Route, api, settings(), |route| Some(Object::Route(Route::of(&route)))));
        self.all_routes = true;
    }

    /// Looks at the Events of all canaries in `scope`.
    pub fn events(&mut self, scope: &Scope) {
        let api = self.api::<core::Event>(scope.namespace.as_deref());
        let config = settings().fields("involvedObject.kind=Canary");
        self.general.push(self.start(Kind::Event, api, config, |event| Some(Object::Event(EventLine::of(event)))));
        self.all_events = true;
    }

    /// Looks at what belongs to the canary `key`, and no longer at what belongs to another. To be called whenever the
    /// world has changed: nothing happens until the Canary was seen, and nothing if it names the same parts as before.
    pub fn attend(&mut self, world: &mut World, key: &Key, detail: Detail) {
        let Some(known) = world.canary(key) else { return };
        let facts = &known.facts;
        let parts = Parts {
            canary: key.clone(),
            target_kind: facts.target_kind.clone(),
            target: facts.target.clone(),
            apex: facts.apex.clone(),
        };
        if facts.target.is_empty() || self.attended.as_ref() == Some(&parts) {
            return;
        }
        self.neglect(world);
        // Until its target was seen, nobody can say whether a status is about it.
        if let Some((kind, _)) = workload(&parts.target_kind) {
            world.expect(kind);
        }
        self.look_closely(&parts, detail);
        self.attended = Some(parts);
    }

    /// Looks no longer at what belongs to one canary.
    pub fn neglect(&mut self, world: &mut World) {
        self.special.clear();
        if self.attended.take().is_some() {
            world.forget(&DETAILS);
            if !self.all_routes {
                world.forget(&[Kind::Route]);
            }
        }
    }

    fn look_closely(&mut self, parts: &Parts, detail: Detail) {
        let namespace = Some(parts.canary.namespace.as_str());
        let mut watches = Vec::new();
        if !self.all_routes {
            let config = settings().fields(&format!("metadata.name={}", parts.apex));
            let project = |route: HttpRoute| Some(Object::Route(Route::of(&route)));
            watches.push(self.start(Kind::Route, self.api::<HttpRoute>(namespace), config, project));
        }
        if !self.all_events {
            let about = format!("involvedObject.kind=Canary,involvedObject.name={}", parts.canary.name);
            let project = |event| Some(Object::Event(EventLine::of(event)));
            watches.push(self.start(
                Kind::Event,
                self.api::<core::Event>(namespace),
                settings().fields(&about),
                project,
            ));
        }
        if let Some((kind, resource)) = workload(&parts.target_kind) {
            let api = Api::<DynamicObject>::namespaced_with(self.client.clone(), &parts.canary.namespace, &resource);
            let names = [parts.target.clone(), seaway_api::canary::primary_name(&parts.target)];
            let project = move |object: DynamicObject| {
                let wanted = object.metadata.name.as_ref().is_some_and(|name| names.contains(name));
                wanted.then(|| Object::Workload(Workload::of(kind, &object)))
            };
            watches.push(self.start(kind, api, settings(), project));
        }
        if detail == Detail::Shown {
            let target = parts.target.clone();
            let project = move |set: apps::ReplicaSet| {
                may_belong(&set.metadata, &target).then(|| Object::ReplicaSet(ReplicaSet::of(&set)))
            };
            watches.push(self.start(Kind::ReplicaSet, self.api(namespace), settings(), project));
            let target = parts.target.clone();
            let project = move |pod: core::Pod| may_belong(&pod.metadata, &target).then(|| Object::Pod(Pod::of(&pod)));
            watches.push(self.start(Kind::Pod, self.api(namespace), settings(), project));
            let apex = parts.apex.clone();
            let project = move |service: core::Service| {
                let name = service.metadata.name.as_deref().unwrap_or_default();
                let ours = matches!(name.strip_prefix(apex.as_str()), Some("" | "-primary" | "-canary"));
                ours.then(|| Object::Service(Service::of(&service)))
            };
            watches.push(self.start(Kind::Service, self.api(namespace), settings(), project));
        }
        self.special = watches;
    }

    fn api<K>(&self, namespace: Option<&str>) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        match namespace {
            Some(namespace) => Api::namespaced(self.client.clone(), namespace),
            None => Api::all(self.client.clone()),
        }
    }

    fn start<K, P>(&self, kind: Kind, api: Api<K>, config: watcher::Config, project: P) -> AbortOnDropHandle<()>
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        P: Fn(K) -> Option<Object> + Send + 'static,
    {
        AbortOnDropHandle::new(tokio::spawn(follow(kind, api, config, project, self.sights.clone())))
    }
}

fn settings() -> watcher::Config {
    watcher::Config::default().timeout(WATCH_SECONDS)
}

/// How the target's kind is asked for; `None` when it has no pods of its own.
fn workload(target_kind: &str) -> Option<(Kind, ApiResource)> {
    match target_kind {
        "Deployment" => Some((Kind::Deployment, ApiResource::erase::<apps::Deployment>(&()))),
        "DaemonSet" => Some((Kind::DaemonSet, ApiResource::erase::<apps::DaemonSet>(&()))),
        _ => None,
    }
}

/// Follows one kind until nobody listens.
async fn follow<K, P>(kind: Kind, api: Api<K>, config: watcher::Config, project: P, sights: Sender<Sight>)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    P: Fn(K) -> Option<Object>,
{
    let mut failures = 0;
    loop {
        let mut events = std::pin::pin!(watcher::watcher(api.clone(), config.clone()));
        let mut pause = Duration::ZERO;
        while let Some(event) = events.next().await {
            let sight = match event {
                Ok(Event::Init) => Some(Sight::Listing(kind)),
                Ok(Event::InitApply(object) | Event::Apply(object)) => project(object).map(Sight::Seen),
                Ok(Event::InitDone) => {
                    failures = 0;
                    Some(Sight::Listed(kind))
                }
                Ok(Event::Delete(object)) => Some(Sight::Gone(kind, Key::of(object.meta()))),
                Err(error) => {
                    let trouble = trouble(&error);
                    failures += 1;
                    pause = match trouble {
                        Some(Trouble::Forbidden(_) | Trouble::Unknown) => REFUSED,
                        Some(Trouble::Lost(_)) | None => backoff(failures),
                    };
                    let told = trouble.map(|trouble| Sight::Trouble(kind, trouble));
                    if let Some(sight) = told
                        && sights.send(sight).await.is_err()
                    {
                        return;
                    }
                    break;
                }
            };
            if let Some(sight) = sight
                && sights.send(sight).await.is_err()
            {
                return;
            }
        }
        tokio::time::sleep(pause).await;
    }
}

fn backoff(failures: u32) -> Duration {
    let (first, longest) = PAUSES;
    first.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(longest)
}

/// What an error means for those who look. `None`: the server only forgot how far we were, and a new list mends it.
fn trouble(error: &watcher::Error) -> Option<Trouble> {
    let status = match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => match error {
            kube::Error::Api(status) => status.clone(),
            other => return Some(Trouble::Lost(reason(other))),
        },
        watcher::Error::WatchError(status) => status.clone(),
        watcher::Error::NoResourceVersion => return Some(Trouble::Lost("the list has no resourceVersion".to_owned())),
    };
    match status.code {
        410 => None,
        401 | 403 => Some(Trouble::Forbidden(clean(&status.message))),
        404 => Some(Trouble::Unknown),
        code => Some(Trouble::Lost(clean(&format!("{code} {}", status.message)))),
    }
}

/// The innermost cause, which is the one people can do something about.
fn reason(error: &kube::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    clean(&cause.to_string())
}

#[cfg(test)]
#[path = "follow/tests.rs"]
mod tests;
