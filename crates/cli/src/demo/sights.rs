//! What can be seen of a rollout from outside, through the same API that kubectl uses.

use std::time::Duration;

use futures::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Event;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use seaway_api::Canary;
use seaway_api::foreign::gateway::HttpRoute;
use tokio::sync::mpsc::Sender;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::model::{CanaryView, EventLine, Sight};

/// Watches one canary until dropped: sights go to `sights`, the Canary itself also to the returned receiver.
pub fn watch_canary(
    client: &Client,
    namespace: &str,
    name: &str,
    sights: &Sender<Sight>,
) -> (JoinSet<()>, watch::Receiver<CanaryView>) {
    let named = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let (sender, receiver) = watch::channel(CanaryView::default());
    let mut tasks = JoinSet::new();

    let canaries = watcher(Api::<Canary>::namespaced(client.clone(), namespace), named.clone());
    let canaries =
        canaries.default_backoff().applied_objects().filter_map(async |canary| canary.ok()).map(move |canary| {
            let view = canary_view(&canary);
            sender.send_replace(view.clone());
            Some(Sight::Canary(Box::new(view)))
        });
    tasks.spawn(forward(canaries, sights.clone()));

    let routes = watcher(Api::<HttpRoute>::namespaced(client.clone(), namespace), named);
    let target = name.to_owned();
    let routes = routes.default_backoff().applied_objects().filter_map(async |route| route.ok());
    tasks.spawn(forward(routes.map(move |route| split(&route, &target)), sights.clone()));

    let about = format!("involvedObject.kind=Canary,involvedObject.name={name}");
    let events =
        watcher(Api::<Event>::namespaced(client.clone(), namespace), watcher::Config::default().fields(&about));
    let events = events.default_backoff().applied_objects().filter_map(async |event| event.ok());
    tasks.spawn(forward(events.map(|event| Some(event_line(event))), sights.clone()));

    (tasks, receiver)
}

async fn forward(stream: impl Stream<Item = Option<Sight>>, sights: Sender<Sight>) {
    let mut stream = std::pin::pin!(stream);
    while let Some(sight) = stream.next().await {
        if let Some(sight) = sight
            && sights.send(sight).await.is_err()
        {
            return;
        }
    }
}

fn canary_view(canary: &Canary) -> CanaryView {
    let analysis = canary.spec.analysis();
    let interval = analysis.map(|analysis| analysis.interval.as_str()).filter(|text| !text.is_empty());
    let status = canary.status.clone().unwrap_or_default();
    CanaryView {
        phase: status.phase,
        weight: status.canary_weight,
        failed_checks: status.failed_checks,
        threshold: analysis.and_then(|analysis| analysis.threshold).unwrap_or(1),
        interval: interval.and_then(|text| seaway_api::duration::parse(text).ok()).unwrap_or(Duration::from_secs(60)),
        moved: status.last_transition_time,
        rolling_back: status.is_true("RollingBack"),
        decisions: status.decisions,
    }
}

/// The weights of the rule that names both variants.
fn split(route: &HttpRoute, target: &str) -> Option<Sight> {
    let rules = route.spec.rules.as_ref()?;
    let weight = |variant: &str| {
        let name = format!("{target}-{variant}");
        rules.iter().flat_map(|rule| rule.backend_refs.iter().flatten()).find_map(|backend| {
            (backend.name == name).then(|| u8::try_from(backend.weight.unwrap_or(1)).unwrap_or(u8::MAX))
        })
    };
    Some(Sight::Split(weight("primary")?, weight("canary").unwrap_or(0)))
}

/// Similar Events share one object after a while; people care for the newest text, not for how it is stored.
fn event_line(event: Event) -> Sight {
    let message = event.message.unwrap_or_default();
    Sight::Event(EventLine {
        name: event.metadata.name.unwrap_or_default(),
        warning: event.type_.as_deref() == Some("Warning"),
        text: message.trim_start_matches("(combined from similar events): ").to_owned(),
        count: event.count.unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_split_is_read_from_the_route() {
        let route: HttpRoute = serde_json::from_value(json!({
            "apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "podinfo"},
            "spec": {"rules": [{"backendRefs": [
                {"name": "podinfo-primary", "port": 9898, "weight": 80},
                {"name": "podinfo-canary", "port": 9898, "weight": 20},
            ]}]},
        }))
        .unwrap();
        assert_eq!(split(&route, "podinfo"), Some(Sight::Split(80, 20)));
        assert_eq!(split(&route, "other"), None);
    }

    #[test]
    fn a_canary_without_a_status_is_unset() {
        let canary: Canary = serde_json::from_value(json!({
            "apiVersion": "flagger.app/v1beta1", "kind": "Canary", "metadata": {"name": "podinfo"},
            "spec": {
                "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "podinfo"},
                "service": {"port": 9898},
                "analysis": {"interval": "30s", "threshold": 3},
            },
        }))
        .unwrap();
        let view = canary_view(&canary);
        assert_eq!((view.phase, view.threshold), (seaway_api::Phase::Unset, 3));
        assert_eq!(view.interval, Duration::from_secs(30));
    }
}
