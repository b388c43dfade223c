//! Some objects do not stay: an Event that was last written an hour ago goes when the next one is written.
//!
//! Nobody is woken for that, so an idle cluster keeps its last hour for longer than a real one would. There are never more
//! than those of one hour, however long a cluster lives.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;

use super::meta;
use super::server::{Author, Server};
use super::store::{Change, Key, State};

const AUTHOR: Author<'_> = Author { user: "system:apiserver", verb: "delete", subresource: "" };

/// Every write that may still be the last of its object, oldest first, by resource.
#[derive(Default)]
pub(crate) struct Expiry(BTreeMap<Arc<str>, VecDeque<Written>>);

struct Written {
    at: Timestamp,
    revision: u64,
    key: Key,
}

impl Expiry {
    /// Something was written: what is old goes.
    pub(crate) fn follow(&mut self, server: &Server, state: &mut State, change: &Change) {
        let (resource, key) = &change.id;
        let stays = server.stored(resource).and_then(|served| served.resource.behaviour.stays);
        let Some(stays) = stays.filter(|_| !change.deleted) else { return };
        let (at, revision) = (server.clock.now(), change.revision);
        let all = self.0.entry(resource.clone()).or_default();
        all.push_back(Written { at, revision, key: key.clone() });
        let due = all.partition_point(|written| meta::later(written.at, stays) <= at);
        for Written { revision, key, .. } in all.drain(..due) {
            let current = state.get(resource, &key).map(|object| meta::text(object, "/metadata/resourceVersion"));
            // One that was written again has more time.
            if current == Some(&revision.to_string()) {
                server.remove(state, AUTHOR, (resource.clone(), key));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Event;
    use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
    use serde_json::json;

    use crate::apiserver::ApiServer;
    use crate::{Clock, Seed};

    #[tokio::test(start_paused = true)]
    async fn events_stay_for_an_hour_after_they_were_last_written() {
        let clock = Clock::starting_at(jiff::Timestamp::UNIX_EPOCH, 1);
        let api: Api<Event> = Api::namespaced(ApiServer::start(clock, Seed::new(1)).client("test"), "default");
        let create = async |name: &str| {
            let about = json!({ "kind": "Pod", "namespace": "default", "name": "a" });
            let event = json!({ "metadata": { "name": name }, "involvedObject": about, "reason": "Tested" });
            api.create(&PostParams::default(), &serde_json::from_value(event).unwrap()).await.unwrap();
        };
        let names = async || {
            let events = api.list(&ListParams::default()).await.unwrap();
            events.items.into_iter().filter_map(|event| event.metadata.name).collect::<Vec<_>>()
        };
        let minutes = |minutes: u64| clock.sleep(std::time::Duration::from_secs(60 * minutes));
        // The cleaner works after the write.
        let create = async |name: &str| {
            create(name).await;
            tokio::task::yield_now().await;
        };
        create("counted").await;
        create("deleted").await;
        create("old").await;
        minutes(40).await;
        let count = json!({ "count": 2 });
        api.patch("counted", &PatchParams::default(), &Patch::Merge(count)).await.unwrap();
        api.delete("deleted", &DeleteParams::default()).await.unwrap();
        minutes(19).await;
        create("new").await;
        assert_eq!(names().await, ["counted", "new", "old"]);
        minutes(1).await;
        create("newer").await;
        assert_eq!(names().await, ["counted", "new", "newer"]);
        minutes(40).await;
        create("newest").await;
        assert_eq!(names().await, ["new", "newer", "newest"]);
        minutes(600).await;
        create("alone").await;
        assert_eq!(names().await, ["alone"]);
    }
}
