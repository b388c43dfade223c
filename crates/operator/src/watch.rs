//! One watch per kind, from the API server into the cache.
//!
//! Lists once, then follows; after any error it waits a little longer each time and goes on from where it was, or
//! lists again when the server has forgotten that point. What the objects mean is not known here, so an object nobody
//! can read spoils nothing but itself.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kube::api::{ApiResource, DynamicObject};
use kube::core::Status;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use seaway_adapters::change::Kind;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::cache::{Cache, Presence, is_route};
use crate::clock::Clock;
use crate::key::CanaryKey;
use crate::scheduler::backoff;

/// A kind to follow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    /// The kind.
    pub(crate) kind: Kind,
    /// Only objects with these labels.
    pub(crate) labels: Option<&'static str>,
    /// Without this kind the operator cannot work at all; otherwise only the canaries that need it cannot.
    pub(crate) required: bool,
}

/// The cluster does not know a kind the operator cannot work without.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} CRD is not registered")]
pub(crate) struct Unregistered {
    pub(crate) kind: &'static str,
}

/// Where and with what a watch works.
#[derive(Clone)]
pub(crate) struct Surroundings {
    /// Way to the API server.
    pub(crate) client: Client,
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    /// Where objects go.
    pub(crate) cache: Arc<Cache>,
    /// Time for pauses.
    pub(crate) clock: Arc<dyn Clock>,
    /// Spreads pauses.
    pub(crate) seed: u64,
}

/// Follows one kind until `stop`. Returns early only when a required kind does not exist.
pub(crate) async fn follow(
    watched: Watched,
    around: Surroundings,
    stop: CancellationToken,
) -> Result<(), Unregistered> {
    let kind = watched.kind;
    let resource = resource(kind);
    let api: Api<DynamicObject> = match &around.namespace {
        Some(namespace) => Api::namespaced_with(around.client.clone(), namespace, &resource),
        None => Api::all_with(around.client.clone(), &resource),
    };
    let mut settings = watcher::Config::default();
    if let Some(labels) = watched.labels {
        settings = settings.labels(labels);
    }
    let mut events = std::pin::pin!(watcher::watcher(api, settings));
    let mut failures = 0;
    loop {
        let event = tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            event = events.next() => event,
        };
        match event {
            Some(Ok(event)) => {
                // Init only says that a list will be tried; it proves nothing.
                if !matches!(event, Event::Init) {
                    failures = 0;
                }
                take(&around.cache, kind, event);
            }
            Some(Err(error)) => {
                let missing = refusal(&error).is_some_and(|status| status.code == 404);
                if missing && watched.required && around.cache.presence(kind) != Presence::Synced {
                    return Err(Unregistered { kind: kind.kind });
                }
                if missing {
                    around.cache.is_missing(kind);
                }
                failures += 1;
                if failures == 1 && missing {
                    tracing::warn!(kind = kind.kind, "CRD is not registered, canaries that need it have to wait");
                } else if failures == 3 {
                    tracing::warn!(kind = kind.kind, error = whole(&error), "the watch keeps failing");
                }
                let key = CanaryKey::new(kind.group, kind.plural);
                let pause = backoff(around.seed, &key, failures, FIRST_PAUSE, LONGEST_PAUSE);
                tokio::select! {
                    biased;
                    () = stop.cancelled() => return Ok(()),
                    () = around.clock.sleep(pause) => {}
                }
            }
            None => return Ok(()),
        }
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(800);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

fn take(cache: &Cache, kind: Kind, event: Event<DynamicObject>) {
    match event {
        Event::Init => cache.list_begins(kind),
        Event::InitApply(object) | Event::Apply(object) => {
            if let Some(object) = raw(kind, object) {
                cache.applied(kind, object);
            }
        }
        Event::InitDone => cache.list_ends(kind),
        Event::Delete(object) => {
            if let Some(object) = raw(kind, object) {
                cache.deleted(kind, &object);
            }
        }
    }
}

/// The object as JSON. Items of a list do not say what they are, so that is added.
fn raw(kind: Kind, mut object: DynamicObject) -> Option<Value> {
    // The record of who manages which field is often larger than the object; of routes it tells when they were written.
    if !is_route(kind) {
        object.metadata.managed_fields = None;
    }
    object.types = Some(kube::api::TypeMeta { api_version: kind.api_version(), kind: kind.kind.to_owned() });
    serde_json::to_value(object).ok()
}

fn resource(kind: Kind) -> ApiResource {
    ApiResource {
        group: kind.group.to_owned(),
        version: kind.version.to_owned(),
        api_version: kind.api_version(),
        kind: kind.kind.to_owned(),
        plural: kind.plural.to_owned(),
    }
}

/// An error with its causes: that a connection was refused is the last of them. Of what a server says its message is enough.
fn whole(error: &watcher::Error) -> String {
    if let Some(status) = refusal(error) {
        return status.message.clone();
    }
    let causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.fold(String::new(), |text, cause| match cause.to_string() {
        cause if text.contains(&cause) => text,
        cause if text.is_empty() => cause,
        cause => format!("{text}: {cause}"),
    })
}

/// What the server said, if it is the one who refused.
fn refusal(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn an_error_is_told_with_its_causes_and_each_of_them_once() {
        let refused = io::Error::other(io::Error::from(io::ErrorKind::ConnectionRefused));
        let error = watcher::Error::InitialListFailed(kube::Error::Service(Box::new(refused)));
        let told = whole(&error);
        assert!(told.starts_with("failed to perform initial object list"), "{told}");
        assert_eq!(told.matches("connection refused").count(), 1, "{told}");
    }

    #[test]
    fn of_a_refusal_the_servers_message_is_told() {
        let message = "httproutes.gateway.networking.k8s.io is forbidden: User \"seaway\" cannot list resource";
        let status = Status::failure(message, "Forbidden").with_code(403);
        let error = watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()));
        assert_eq!(whole(&error), message);
    }
}
