//! One watch per kind, shared by everyone who reads that kind.
//!
//! [`Objects`] keeps the objects of a kind in a sorted map, tells listeners which object changed, and sends the writes
//! of that kind. The answer to a write enters the map at once, so a controller that runs again before the watch
//! caught up sees what it did itself and does not do it twice. Nothing here retries a write: that is the queue's work.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Debug};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams, Preconditions};
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Clock;
use crate::bell::Bell;

/// How long a broken watch waits before it is opened again, in simulated time.
const WATCH_RETRY: Duration = Duration::from_secs(1);

/// Namespace and name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    pub(crate) fn of(object: &impl ResourceExt) -> Self {
        Self::new(object.namespace().unwrap_or_default(), object.name_any())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A namespaced kind that can be watched, kept and written.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + k8s_openapi::Resource<Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + k8s_openapi::Resource<Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Called with the object before and after a change; at least one of them is there.
type Listener<K> = Box<dyn Fn(Option<&K>, Option<&K>) + Send + Sync>;

struct Cache<K> {
    objects: BTreeMap<Key, Arc<K>>,
    /// Uids that are known to be gone. The watch and the answers to writes are not in step: what one of them still
    /// brings of such an object is old.
    gone: Gone,
}

/// The last uids that went; an object that is longer gone is not heard of again.
#[derive(Default)]
struct Gone {
    uids: BTreeSet<String>,
    order: VecDeque<String>,
}

impl Gone {
    const REMEMBERED: usize = 4096;

    fn insert(&mut self, uid: &str) {
        if self.uids.insert(uid.to_owned()) {
            self.order.push_back(uid.to_owned());
            if self.order.len() > Self::REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.uids.remove(&oldest);
            }
        }
    }
}

/// All objects of one kind, and the way to write them. Clones share the map.
pub(crate) struct Objects<K> {
    client: Client,
    cache: Arc<Mutex<Cache<K>>>,
    listeners: Arc<Mutex<Vec<Listener<K>>>>,
    listed: Arc<Listed>,
}

/// Whether the first list is in the map.
#[derive(Default)]
struct Listed {
    done: AtomicBool,
    changed: Bell,
}

impl<K> Clone for Objects<K> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            cache: self.cache.clone(),
            listeners: self.listeners.clone(),
            listed: self.listed.clone(),
        }
    }
}

impl<K: Kind> Objects<K> {
    pub(crate) fn new(client: Client) -> Self {
        let cache = Cache { objects: BTreeMap::new(), gone: Gone::default() };
        Self { client, cache: Arc::new(Mutex::new(cache)), listeners: Arc::default(), listed: Arc::default() }
    }

    /// Calls `listener` on every change from now on, whether the watch or a write of ours brought it.
    pub(crate) fn on_change(&self, listener: impl Fn(Option<&K>, Option<&K>) + Send + Sync + 'static) {
        self.listeners.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(listener));
    }

    /// Resolves once the first list is in the map.
    pub(crate) async fn listed(&self) {
        self.listed.changed.until(|| self.listed.done.load(Ordering::Relaxed)).await;
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.lock().objects.get(key).cloned()
    }

    /// The objects of a namespace, by name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<K>> {
        let start = Key::new(namespace, "");
        let cache = self.lock();
        cache
            .objects
            .range(start..)
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// The objects of a namespace that `uid` controls, by name.
    pub(crate) fn controlled_by(&self, namespace: &str, uid: &str) -> Vec<Arc<K>> {
        let mut objects = self.in_namespace(namespace);
        objects.retain(|object| controller_of(object.as_ref()).is_some_and(|owner| owner.uid == uid));
        objects
    }

    /// Follows the watch for ever.
    pub(crate) async fn run(self, clock: Clock) {
        let api: Api<K> = Api::all(self.client.clone());
        let mut events = pin!(watcher::watcher(api, watcher::Config::default()));
        let mut listing = BTreeSet::new();
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => listing.clear(),
                Ok(Event::InitApply(object)) => {
                    listing.insert(Key::of(&object));
                    self.keep(object);
                }
                Ok(Event::InitDone) => {
                    self.drop_unlisted(&listing);
                    self.listed.done.store(true, Ordering::Relaxed);
                    self.listed.changed.ring();
                }
                Ok(Event::Apply(object)) => {
                    self.keep(object);
                }
                Ok(Event::Delete(object)) => self.forget(&object),
                Err(error) => {
                    tracing::debug!(kind = K::KIND, %error, "watch broke");
                    clock.sleep(WATCH_RETRY).await;
                }
            }
        }
    }

    pub(crate) async fn create(&self, namespace: &str, object: &K) -> kube::Result<Arc<K>> {
        Ok(self.keep(self.api(namespace).create(&PostParams::default(), object).await?))
    }

    /// Replaces an object; refused if it changed since it was read.
    pub(crate) async fn replace(&self, object: &K) -> kube::Result<Arc<K>> {
        let key = Key::of(object);
        Ok(self.keep(self.api(&key.namespace).replace(&key.name, &PostParams::default(), object).await?))
    }

    /// Replaces an object's status; refused if the object changed since it was read.
    pub(crate) async fn replace_status(&self, object: &K) -> kube::Result<Arc<K>> {
        let key = Key::of(object);
        Ok(self.keep(self.api(&key.namespace).replace_status(&key.name, &PostParams::default(), object).await?))
    }

    pub(crate) async fn merge(&self, key: &Key, patch: &Value) -> kube::Result<Arc<K>> {
        let api = self.api(&key.namespace);
        Ok(self.keep(api.patch(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await?))
    }

    pub(crate) async fn merge_status(&self, key: &Key, patch: &Value) -> kube::Result<Arc<K>> {
        let api = self.api(&key.namespace);
        Ok(self.keep(api.patch_status(&key.name, &PatchParams::default(), &Patch::Merge(patch)).await?))
    }

    /// Takes away that an object belongs to an owner; refused if it changed since it was read.
    pub(crate) async fn release(&self, object: &K, owner: &str) -> kube::Result<Arc<K>> {
        let mut free = object.clone();
        free.owner_references_mut().retain(|reference| reference.uid != owner);
        self.replace(&free).await
    }

    /// Deletes exactly this object (by uid). One that is already gone is a success.
    pub(crate) async fn delete(&self, object: &K, grace: Option<u32>) -> kube::Result<()> {
        let key = Key::of(object);
        let mut params = DeleteParams::background();
        params.grace_period_seconds = grace;
        params.preconditions = Some(Preconditions { uid: object.uid(), resource_version: None });
        match self.api(&key.namespace).delete(&key.name, &params).await {
            Ok(answer) => match answer.left() {
                // An object that is only marked comes back with its deletion time and stays until its grace is over.
                Some(after) if after.meta().deletion_timestamp.is_some() && grace != Some(0) => {
                    self.keep(after);
                }
                _ => self.forget(object),
            },
            Err(kube::Error::Api(status)) if status.code == 404 => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    pub(crate) fn api(&self, namespace: &str) -> Api<K> {
        Api::namespaced(self.client.clone(), namespace)
    }

    /// Takes an object into the map unless the map knows better, and returns what the map then holds.
    fn keep(&self, object: K) -> Arc<K> {
        let object = Arc::new(object);
        let before = {
            let mut cache = self.lock();
            if object.meta().uid.as_ref().is_some_and(|uid| cache.gone.uids.contains(uid)) {
                return object;
            }
            let key = Key::of(object.as_ref());
            if let Some(known) = cache.objects.get(&key)
                && !is_newer(object.as_ref(), known)
            {
                return known.clone();
            }
            cache.objects.insert(key, object.clone())
        };
        self.tell(before.as_deref(), Some(&object));
        object
    }

    fn forget(&self, object: &K) {
        let known = {
            let mut cache = self.lock();
            if let Some(uid) = &object.meta().uid {
                cache.gone.insert(uid);
            }
            // A later object of the same name stays.
            let key = Key::of(object);
            let same = cache.objects.get(&key).is_some_and(|known| known.meta().uid == object.meta().uid);
            if same { cache.objects.remove(&key) } else { None }
        };
        if known.is_some() {
            self.tell(Some(object), None);
        }
    }

    fn drop_unlisted(&self, listed: &BTreeSet<Key>) {
        let gone: Vec<_> = {
            let mut cache = self.lock();
            let unlisted: Vec<_> = cache.objects.keys().filter(|key| !listed.contains(key)).cloned().collect();
            unlisted.iter().filter_map(|key| cache.objects.remove(key)).collect()
        };
        for object in gone {
            self.tell(Some(&object), None);
        }
    }

    fn tell(&self, before: Option<&K>, after: Option<&K>) {
        for listener in self.listeners.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            listener(before, after);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Cache<K>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reference from what a controller makes to the object it makes it for. That one can be deleted in the foreground:
/// it then stays until this is gone.
pub(crate) fn controlled_by(owner: &impl Resource<DynamicType = ()>) -> Option<OwnerReference> {
    let reference = owner.controller_owner_ref(&())?;
    Some(OwnerReference { block_owner_deletion: Some(true), ..reference })
}

/// The reference to the object that controls this one.
pub(crate) fn controller_of(object: &impl ResourceExt) -> Option<&OwnerReference> {
    object.owner_references().iter().find(|owner| owner.controller == Some(true))
}

/// Whether `object` is a later state than `known`. Versions of one server are numbers that only grow; where they are
/// not numbers, the newcomer wins.
fn is_newer<K: Kind>(object: &K, known: &K) -> bool {
    let version = |object: &K| object.meta().resource_version.as_deref().and_then(|v| v.parse::<u64>().ok());
    match (version(object), version(known)) {
        (Some(new), Some(old)) => new > old,
        _ => true,
    }
}
