//! One watch as a stream of whole answers: the list at once, then each change.
//!
//! kube's watcher hands out the objects of a re-list one by one; whoever keeps a table wants to replace it in one step,
//! so that nobody sees it half empty.

use std::fmt::Debug;
use std::time::Duration;

use futures::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;

/// What a watch says.
pub(crate) enum Change<K> {
    /// All objects there are: the first answer, and again after the watch was lost.
    Replace(Vec<K>),
    /// An object is new or different.
    Apply(K),
    /// An object is gone.
    Delete(K),
}

const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// Watches everything `api` covers and hands each change to `sink`, for ever. A lost watch is opened again.
pub(crate) async fn follow<K>(api: Api<K>, mut sink: impl FnMut(Change<K>) + Send)
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let mut events = Box::pin(watcher::watcher(api, watcher::Config::default()));
    let mut listing = Vec::new();
    let mut pause = FIRST_RETRY;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => listing.push(object),
            Ok(Event::InitDone) => {
                pause = FIRST_RETRY;
                sink(Change::Replace(std::mem::take(&mut listing)));
            }
            Ok(Event::Apply(object)) => sink(Change::Apply(object)),
            Ok(Event::Delete(object)) => sink(Change::Delete(object)),
            Err(error) => {
                tracing::debug!(%error, "watch lost");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LAST_RETRY);
            }
        }
    }
}
