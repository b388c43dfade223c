//! What the operator knows of the cluster, and who cares about which part of it.
//!
//! One watch per kind fills the cache; every read of a round comes from here, so an idle canary costs no request. The
//! answers of our own writes go in at once (read your own writes), and a watch event that is older than what is
//! already known is ignored, so a round never decides on a world that is older than its own last write.
//!
//! A canary is woken by exactly what its last round read: reading through a [`View`] also registers the interest,
//! under the same lock, so no change can slip between the two. Objects are kept [packed](Packed), without `managedFields`,
//! and the ones last used also as they are read; of ConfigMaps and Secrets only name, type and checksum stay.
//!
//! The cache never asks the API server and does not know what any object means.

mod interests;
mod owned;
mod packed;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use seaway_adapters::change::{Kind, ObjectRef};
use seaway_adapters::kinds::{CANARY, CONFIG_MAP, SECRET};
use seaway_adapters::object::{self, text};
use seaway_adapters::routers;
use seaway_adapters::targets::config;
use serde_json::{Value, json};
use tokio::sync::Notify;

pub(crate) use view::View;

use self::interests::{Interests, Subject};
use self::owned::Owned;
use self::packed::{Packed, Samples};
use crate::key::CanaryKey;
use crate::telemetry::Census;

/// Everything watched, shared by the watches, the rounds and the health page.
pub(crate) struct Cache {
    state: Mutex<State>,
    wakes: Wakes,
    /// Told whenever something became known of a kind as a whole.
    progress: Notify,
}

/// Whom changes concern, each once however often, until somebody takes them. Before anybody listens nothing is kept: a
/// standby sees changes for months and starts with every canary.
#[derive(Default)]
struct Wakes {
    keys: Mutex<Option<BTreeSet<CanaryKey>>>,
    more: Notify,
}

#[derive(Default)]
struct State {
    shelves: BTreeMap<Kind, Shelf>,
    interests: Interests,
    /// How many canaries there are, by namespace.
    counts: BTreeMap<String, usize>,
    /// Canaries by namespace and target: two on one target must know of each other.
    rivals: BTreeMap<(String, String), Vec<CanaryKey>>,
    owned: Owned,
    /// Which objects are kept as they are read, the oldest first.
    open: VecDeque<(ObjectRef, Version)>,
}

/// How many objects are kept as they are read. A rollout reads about a dozen, over and over.
const OPEN: usize = 2048;

/// All objects of one kind.
#[derive(Default)]
struct Shelf {
    objects: BTreeMap<Name, Entry>,
    presence: Presence,
    /// Names met since the current list began; what a finished list did not name is gone.
    listing: Option<BTreeSet<Name>>,
    /// How far the watch has come: everything up to here is known, deletions included.
    watched: Version,
    /// Objects we deleted ourselves whose deletion the watch has not shown yet, by uid.
    deleted: BTreeSet<String>,
    samples: Samples,
}

/// How an object came to be known.
enum Source<'a> {
    /// A list or a watch; these come in the server's order.
    Watch,
    /// The answer to a write of this canary.
    Write(&'a CanaryKey),
    /// The answer to a read.
    Read,
}

/// What is known of a kind as a whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// Not listed yet.
    #[default]
    Unknown,
    /// The API server does not know the kind.
    Missing,
    /// Listed: what is not in the cache does not exist.
    Synced,
}

struct Entry {
    version: Version,
    packed: Arc<Packed>,
    open: Option<Arc<Value>>,
}

impl Entry {
    fn read(&self) -> Option<Arc<Value>> {
        self.open.clone().or_else(|| self.packed.open().map(Arc::new))
    }
}

/// Which object something is about, and in which state.
struct Head {
    object: ObjectRef,
    version: Version,
    uid: String,
}

impl Head {
    fn of(kind: Kind, object: &Value) -> Self {
        let uid = text(object, "/metadata/uid").to_owned();
        Self { object: reference(kind, object), version: Version::of(object), uid }
    }
}

/// A resourceVersion. The server promises that they can be compared as whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Version(Option<NonZero<u128>>);

impl Version {
    fn of(object: &Value) -> Self {
        Self(text(object, "/metadata/resourceVersion").parse().ok())
    }

    /// Whether `new` may replace `self`. A version that is no number cannot be compared and is believed.
    fn yields_to(self, new: Self) -> bool {
        match (self.0, new.0) {
            (Some(old), Some(new)) => new > old,
            _ => true,
        }
    }
}

impl Cache {
    /// An empty cache.
    pub(crate) fn new() -> Self {
        Self { state: Mutex::default(), wakes: Wakes::default(), progress: Notify::new() }
    }

    /// From now on it is remembered whom changes concern, see [`Cache::woken`].
    pub(crate) fn listen(&self) {
        self.wakes.lock().get_or_insert_default();
    }

    /// Everyone whom a change concerns since the last call; waits for the first.
    pub(crate) async fn woken(&self) -> BTreeSet<CanaryKey> {
        loop {
            let keys = self.wakes.lock().as_mut().map(std::mem::take).unwrap_or_default();
            if !keys.is_empty() {
                return keys;
            }
            // One that comes between the two lines is kept for the next who waits.
            self.wakes.more.notified().await;
        }
    }

    /// A new list of `kind` begins.
    pub(crate) fn list_begins(&self, kind: Kind) {
        self.lock().shelf(kind).listing = Some(BTreeSet::new());
    }

    /// The list is complete: what it did not name, and nobody wrote meanwhile, is gone.
    pub(crate) fn list_ends(&self, kind: Kind) {
        let mut state = self.lock();
        let shelf = state.shelf(kind);
        let Some(listed) = shelf.listing.take() else { return };
        shelf.watched =
            shelf.objects.values().map(|entry| entry.version).max().max(Some(shelf.watched)).unwrap_or_default();
        let first = std::mem::replace(&mut shelf.presence, Presence::Synced) != Presence::Synced;
        shelf.deleted.clear();
        let gone: Vec<_> = shelf.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        for name in gone {
            let (namespace, name) = parts(&name);
            self.discard(&mut state, &ObjectRef { kind, namespace: namespace.into(), name: name.into() }, None);
        }
        // What was filled in order has left its nodes half empty.
        let shelf = state.shelf(kind);
        shelf.objects = std::mem::take(&mut shelf.objects).into_iter().collect();
        self.progress.notify_waiters();
        // A kind that is seen for the first time changes what "absent" means for everyone who read it as absent. Who that
        // is is not kept: it happens once in the life of a cluster.
        if first {
            state.interests.everyone().for_each(|key| self.send(key.clone()));
        }
    }

    /// The watch shows `object`.
    pub(crate) fn applied(&self, kind: Kind, object: Value) {
        let version = Version::of(&object);
        self.store(kind, object, &Source::Watch);
        let mut state = self.lock();
        let shelf = state.shelf(kind);
        if shelf.listing.is_none() {
            shelf.watched = shelf.watched.max(version);
        }
    }

    /// The API server answered a write of `writer` with an object of which `projection` is kept; everyone else who reads
    /// it is woken.
    pub(crate) fn written(&self, kind: Kind, projection: Arc<Value>, writer: &CanaryKey) {
        self.keep(Head::of(kind, &projection), &Source::Write(writer), || projection);
    }

    /// The watch shows that `object` (its last state) is deleted.
    pub(crate) fn deleted(&self, kind: Kind, object: &Value) {
        let mut state = self.lock();
        let reference = reference(kind, object);
        let shelf = state.shelf(kind);
        shelf.deleted.remove(text(object, "/metadata/uid"));
        shelf.watched = shelf.watched.max(Version::of(object));
        let known = shelf.objects.get(&name_of(&reference));
        // An object of the same name that was made later stays.
        if known
            .is_some_and(|known| known.version == Version::of(object) || known.version.yields_to(Version::of(object)))
        {
            self.discard(&mut state, &reference, None);
        }
    }

    /// The server was asked for `object` because what is known of it, `doubted`, seems to be old.
    fn refreshed(&self, object: &ObjectRef, doubted: Option<&Value>, answer: Option<Value>) {
        if let Some(answer) = answer {
            return self.store(object.kind, answer, &Source::Read);
        }
        let mut state = self.lock();
        let known = state.shelf(object.kind).objects.get(&name_of(object));
        if known.is_some_and(|known| doubted.is_some_and(|doubted| known.version == Version::of(doubted))) {
            self.discard(&mut state, object, None);
        }
    }

    /// We deleted the object with this uid ourselves.
    pub(crate) fn removed(&self, object: &ObjectRef, uid: &str, writer: &CanaryKey) {
        let mut state = self.lock();
        let known = state.read(object).is_some_and(|value| text(&value, "/metadata/uid") == uid);
        if known {
            state.shelf(object.kind).deleted.insert(uid.to_owned());
            self.discard(&mut state, object, Some(writer));
        }
    }

    /// The API server does not know `kind`.
    pub(crate) fn is_missing(&self, kind: Kind) {
        let mut state = self.lock();
        let shelf = state.shelf(kind);
        if shelf.presence == Presence::Unknown {
            shelf.presence = Presence::Missing;
            self.progress.notify_waiters();
        }
    }

    /// What is known of `kind` as a whole.
    pub(crate) fn presence(&self, kind: Kind) -> Presence {
        self.lock().shelves.get(&kind).map_or(Presence::Unknown, |shelf| shelf.presence)
    }

    /// Waits until every one of `kinds` is listed or known to be missing.
    pub(crate) async fn complete(&self, kinds: &[Kind]) {
        loop {
            let progress = self.progress.notified();
            if kinds.iter().all(|kind| self.presence(*kind) != Presence::Unknown) {
                return;
            }
            progress.await;
        }
    }

    /// The canaries of `target` in the namespace of `key`, by name; none if that is `key` alone.
    pub(crate) fn rivals(&self, key: &CanaryKey, target: &str) -> Vec<Arc<Value>> {
        let state = self.lock();
        let keys = state.rivals.get(&(key.namespace.clone(), target.to_owned()));
        let keys = keys.filter(|keys| keys.iter().any(|other| other != key));
        keys.into_iter().flatten().filter_map(|key| state.read(&canary_reference(key))).collect()
    }

    /// Every canary that is known.
    pub(crate) fn canaries(&self) -> Vec<CanaryKey> {
        let state = self.lock();
        let names = state.shelves.get(&CANARY).into_iter().flat_map(|shelf| shelf.objects.keys());
        names.map(|name| parts(name)).map(|(namespace, name)| CanaryKey::new(namespace, name)).collect()
    }

    /// How many canaries there are in `namespace`.
    pub(crate) fn count(&self, namespace: &str) -> usize {
        self.lock().counts.get(namespace).copied().unwrap_or_default()
    }

    /// How much is kept.
    pub(crate) fn census(&self) -> Census {
        let state = self.lock();
        let woken = self.wakes.lock().as_ref().map_or(0, BTreeSet::len);
        let entries = || state.shelves.values().flat_map(|shelf| shelf.objects.values());
        vec![
            ("objects", entries().count()),
            ("deletions", state.shelves.values().map(|shelf| shelf.deleted.len()).sum()),
            ("open", entries().filter(|entry| entry.open.is_some()).count()),
            ("interests", state.interests.len()),
            ("targets", state.rivals.len()),
            ("owners", state.owned.len()),
            ("namespaces", state.counts.len()),
            ("woken", woken),
        ]
    }

    /// The world as one round of `key` sees it.
    pub(crate) fn view(self: &Arc<Self>, key: &CanaryKey) -> View {
        View { cache: self.clone(), key: key.clone(), read: Mutex::default() }
    }

    fn store(&self, kind: Kind, object: Value, source: &Source<'_>) {
        let head = Head::of(kind, &object);
        self.keep(head, source, move || Arc::new(project(kind, object)));
    }

    fn keep(&self, head: Head, source: &Source<'_>, projection: impl FnOnce() -> Arc<Value>) {
        let kind = head.object.kind;
        let mut samples = {
            let mut state = self.lock();
            let shelf = state.shelf(kind);
            // Most events show what our own write has made, and that is known already.
            if !shelf.is_news(&head, source) {
                return;
            }
            shelf.samples.clone()
        };
        let projection = projection();
        let Some(packed) = Packed::of(&projection, &mut samples) else { return };
        let mut state = self.lock();
        // Somebody may have been faster.
        if !state.shelf(kind).is_news(&head, source) {
            return;
        }
        let Head { object, version, .. } = head;
        let before = if kind == CANARY { state.read(&object) } else { None };
        if let Some(before) = before {
            state.forget_rival(&before);
            // A changed target frees the canaries of the old one.
            self.wake_rivals(&state, &before);
        }
        let entry = Entry { version, packed: Arc::new(packed), open: None };
        let shelf = state.shelf(kind);
        shelf.samples.learn(samples);
        let is_new = shelf.objects.insert(name_of(&object), entry).is_none();
        // Most objects of a cluster are nobody's here.
        if !state.interests.readers(Subject::of(&object)).is_empty() {
            state.opened(&object, version, &projection);
        }
        if is_new && kind == CANARY {
            *state.counts.entry(object.namespace.clone()).or_default() += 1;
        }
        state.owned.insert(kind, &projection);
        if kind == CANARY {
            state.remember_rival(&projection);
            self.wake_rivals(&state, &projection);
        }
        let writer = match source {
            Source::Write(writer) => Some(*writer),
            Source::Watch | Source::Read => None,
        };
        self.wake(&state, &object, writer);
    }

    fn discard(&self, state: &mut State, object: &ObjectRef, writer: Option<&CanaryKey>) {
        if object.kind == CANARY
            && let Some(canary) = state.read(object)
        {
            state.forget_rival(&canary);
            state.owned.forget(text(&canary, "/metadata/uid"));
            self.wake_rivals(state, &canary);
        } else if owned::is_indexed(object.kind)
            && let Some(last) = state.read(object)
        {
            state.owned.remove(object.kind, &last);
        }
        let removed = state.shelf(object.kind).objects.remove(&name_of(object));
        if removed.is_some() && object.kind == CANARY {
            state.discount(&object.namespace);
        }
        self.wake(state, object, writer);
    }

    /// Wakes everyone who read `object`, except the one who wrote it.
    fn wake(&self, state: &State, object: &ObjectRef, writer: Option<&CanaryKey>) {
        let subjects = [Subject::of(object), Subject::all_like(object)];
        let readers = subjects.iter().flat_map(|subject| state.interests.readers(*subject)).map(|key| &**key);
        let own = (object.kind == CANARY).then(|| CanaryKey::new(&object.namespace, &object.name));
        readers.chain(own.as_ref()).filter(|key| Some(*key) != writer).for_each(|key| self.send(key.clone()));
    }

    fn wake_rivals(&self, state: &State, canary: &Value) {
        let own = CanaryKey::of(canary);
        let others = state.rivals.get(&target(canary)).into_iter().flatten().filter(|key| **key != own);
        others.for_each(|key| self.send(key.clone()));
    }

    fn send(&self, key: CanaryKey) {
        if let Some(keys) = self.wakes.lock().as_mut() {
            keys.insert(key);
            self.wakes.more.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code under this lock panics half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, Option<BTreeSet<CanaryKey>>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf {
    /// Whether something is learned from an object with this head.
    fn is_news(&mut self, head: &Head, source: &Source<'_>) -> bool {
        let (name, version) = (name_of(&head.object), head.version);
        let stale = match self.objects.get(&name) {
            Some(known) => !known.version.yields_to(version),
            // An answer that comes after the watch has passed its version, and the object is not there: it was deleted.
            None => !matches!(source, Source::Watch) && version.0.is_some() && version <= self.watched,
        };
        if let Some(listing) = &mut self.listing {
            listing.insert(name);
        }
        !stale && !self.deleted.contains(&head.uid)
    }
}

impl State {
    fn shelf(&mut self, kind: Kind) -> &mut Shelf {
        self.shelves.entry(kind).or_default()
    }

    fn read(&self, object: &ObjectRef) -> Option<Arc<Value>> {
        self.entry(object)?.read()
    }

    fn entry(&self, object: &ObjectRef) -> Option<&Entry> {
        self.shelves.get(&object.kind)?.objects.get(&name_of(object))
    }

    /// Keeps an object of this version as it is read, and in exchange only packs the one that has been open for longest.
    fn opened(&mut self, object: &ObjectRef, version: Version, value: &Arc<Value>) {
        if !self.set_open(object, version, Some(value)) {
            return;
        }
        self.open.push_back((object.clone(), version));
        if self.open.len() > OPEN
            && let Some((oldest, version)) = self.open.pop_front()
        {
            self.set_open(&oldest, version, None);
        }
    }

    /// Nobody reads the object for a while.
    fn close(&mut self, object: &ObjectRef) {
        if let Some(version) = self.entry(object).map(|entry| entry.version) {
            self.set_open(object, version, None);
        }
    }

    fn set_open(&mut self, object: &ObjectRef, version: Version, value: Option<&Arc<Value>>) -> bool {
        let shelf = self.shelves.get_mut(&object.kind);
        let entry = shelf.and_then(|shelf| shelf.objects.get_mut(&name_of(object)));
        let same = entry.filter(|entry| entry.version == version && entry.open.is_some() != value.is_some());
        same.map(|entry| entry.open = value.cloned()).is_some()
    }

    fn remember_rival(&mut self, canary: &Value) {
        let (keys, key) = (self.rivals.entry(target(canary)).or_default(), CanaryKey::of(canary));
        if let Err(place) = keys.binary_search(&key) {
            keys.insert(place, key);
        }
    }

    fn forget_rival(&mut self, canary: &Value) {
        let target = target(canary);
        if let Some(keys) = self.rivals.get_mut(&target) {
            let key = CanaryKey::of(canary);
            keys.retain(|known| *known != key);
            if keys.is_empty() {
                self.rivals.remove(&target);
            }
        }
    }

    /// One canary less in `namespace`.
    fn discount(&mut self, namespace: &str) {
        if let Some(count) = self.counts.get_mut(namespace) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(namespace);
            }
        }
    }
}

/// Of a route it matters when it was last written.
pub(crate) fn is_route(kind: Kind) -> bool {
    routers::kinds().any(|route| route == kind)
}

/// What is kept of an object: of ConfigMaps and Secrets a checksum and never the data, of others all but the record of
/// who manages which field, which is often larger than the object. Of a route's record the time of the last change stays.
fn project(kind: Kind, mut object: Value) -> Value {
    if kind == CONFIG_MAP || kind == SECRET {
        return config::project(kind, &object);
    }
    let changed = is_route(kind).then(|| object::changed(&object)).flatten();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
        if let Some(changed) = changed {
            metadata.insert("managedFields".to_owned(), json!([{ "time": changed.to_string() }]));
        }
    }
    object
}

fn reference(kind: Kind, object: &Value) -> ObjectRef {
    let CanaryKey { namespace, name } = CanaryKey::of(object);
    ObjectRef { kind, namespace, name }
}

/// `namespace/name`: of one namespace all together, in the order of their names.
type Name = Box<str>;

fn name_of(object: &ObjectRef) -> Name {
    format!("{}/{}", object.namespace, object.name).into_boxed_str()
}

/// Namespace and name of what is kept under `name`.
fn parts(name: &str) -> (&str, &str) {
    name.split_once('/').unwrap_or(("", name))
}

fn canary_reference(key: &CanaryKey) -> ObjectRef {
    ObjectRef { kind: CANARY, namespace: key.namespace.clone(), name: key.name.clone() }
}

fn target(canary: &Value) -> (String, String) {
    (text(canary, "/metadata/namespace").to_owned(), text(canary, "/spec/targetRef/name").to_owned())
}

#[cfg(test)]
mod tests;
