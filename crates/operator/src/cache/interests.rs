//! Who read which object in its last round, and so who is woken when it changes.
//!
//! Objects are known by a hash only: a canary reads a dozen, and ten thousand canaries would otherwise keep their names
//! twice. Two objects of one hash would wake a canary once too often, which does no harm: a round derives everything
//! again and finds nothing to do.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use seaway_adapters::change::ObjectRef;

use crate::key::CanaryKey;

/// An object, or with an empty name the whole namespace, by its hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Subject(u64);

impl Subject {
    pub(super) fn of(object: &ObjectRef) -> Self {
        let mut hasher = DefaultHasher::new();
        let ObjectRef { kind, namespace, name } = object;
        (kind.group, kind.plural, namespace, name).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// All objects of the kind and namespace of `object`.
    pub(super) fn all_like(object: &ObjectRef) -> Self {
        Self::of(&ObjectRef { name: String::new(), ..object.clone() })
    }
}

/// The interests of all canaries, in both directions.
#[derive(Default)]
pub(super) struct Interests {
    readers: BTreeMap<Subject, Readers>,
    canaries: BTreeMap<Arc<CanaryKey>, Vec<Subject>>,
}

/// Nearly every object has one reader, which then needs no list.
enum Readers {
    One(Arc<CanaryKey>),
    Many(Vec<Arc<CanaryKey>>),
}

impl Readers {
    fn as_slice(&self) -> &[Arc<CanaryKey>] {
        match self {
            Self::One(key) => std::slice::from_ref(key),
            Self::Many(keys) => keys,
        }
    }

    fn add(&mut self, key: Arc<CanaryKey>) {
        match self {
            Self::One(first) => *self = Self::Many(vec![first.clone(), key]),
            Self::Many(keys) => keys.push(key),
        }
    }

    /// Whether anybody is left without `key`.
    fn remove(&mut self, key: &CanaryKey) -> bool {
        match self {
            Self::One(only) => **only != *key,
            Self::Many(keys) => {
                keys.retain(|reader| **reader != *key);
                !keys.is_empty()
            }
        }
    }
}

impl Interests {
    /// `key` reads `subject`.
    pub(super) fn register(&mut self, key: &CanaryKey, subject: Subject) {
        let shared = match self.canaries.get_key_value(key) {
            Some((_, known)) if known.contains(&subject) => return,
            Some((shared, _)) => shared.clone(),
            None => Arc::new(key.clone()),
        };
        self.canaries.entry(shared.clone()).or_default().push(subject);
        match self.readers.get_mut(&subject) {
            Some(readers) => readers.add(shared),
            None => drop(self.readers.insert(subject, Readers::One(shared))),
        }
    }

    /// From now on `key` is interested in `subjects` and in nothing else; all of them are registered.
    pub(super) fn keep(&mut self, key: &CanaryKey, subjects: &BTreeSet<Subject>) {
        let Some(known) = self.canaries.get_mut(key) else { return };
        let (mut kept, dropped): (Vec<_>, Vec<_>) = known.drain(..).partition(|subject| subjects.contains(subject));
        kept.shrink_to_fit();
        *known = kept;
        for subject in dropped {
            self.unregister(key, subject);
        }
    }

    /// `key` is interested in nothing any more.
    pub(super) fn forget(&mut self, key: &CanaryKey) {
        let known = self.canaries.remove(key).unwrap_or_default();
        for subject in known {
            self.unregister(key, subject);
        }
    }

    /// Who reads `subject`.
    pub(super) fn readers(&self, subject: Subject) -> &[Arc<CanaryKey>] {
        self.readers.get(&subject).map(Readers::as_slice).unwrap_or_default()
    }

    /// How many objects are read, and how many canaries read.
    pub(super) fn len(&self) -> usize {
        self.readers.len() + self.canaries.len()
    }

    /// Everyone who reads anything.
    pub(super) fn everyone(&self) -> impl Iterator<Item = &CanaryKey> {
        self.canaries.keys().map(|key| &**key)
    }

    fn unregister(&mut self, key: &CanaryKey, subject: Subject) {
        if self.readers.get_mut(&subject).is_some_and(|readers| !readers.remove(key)) {
            self.readers.remove(&subject);
        }
    }
}

#[cfg(test)]
mod tests {
    use seaway_adapters::kinds::{CONFIG_MAP, SECRET};

    use super::*;

    fn subject(name: &str) -> Subject {
        Subject::of(&ObjectRef { kind: SECRET, namespace: "test".into(), name: name.into() })
    }

    #[test]
    fn what_is_no_longer_read_leaves_nothing_behind() {
        let mut interests = Interests::default();
        let keys = ["a", "b", "c"].map(|name| CanaryKey::new("test", name));
        for key in &keys {
            interests.register(key, subject("shared"));
            interests.register(key, subject("shared"));
            interests.register(key, subject(&key.name));
        }
        let names = |interests: &Interests| {
            interests.readers(subject("shared")).iter().map(|key| key.name.clone()).collect::<String>()
        };
        assert_eq!(names(&interests), "abc");
        interests.keep(&keys[1], &BTreeSet::from([subject("b")]));
        assert_eq!((names(&interests).as_str(), interests.readers(subject("b")).len()), ("ac", 1));
        interests.forget(&keys[0]);
        interests.forget(&keys[2]);
        assert_eq!(interests.everyone().collect::<Vec<_>>(), [&keys[1]]);
        interests.forget(&keys[1]);
        assert!(interests.readers.is_empty() && interests.canaries.is_empty());
    }

    #[test]
    fn subjects_differ_by_kind_namespace_and_name() {
        let object = ObjectRef { kind: SECRET, namespace: "test".into(), name: "a".into() };
        let others = [
            ObjectRef { kind: CONFIG_MAP, ..object.clone() },
            ObjectRef { namespace: "testa".into(), name: String::new(), ..object.clone() },
            ObjectRef { name: String::new(), ..object.clone() },
        ];
        assert!(others.iter().all(|other| Subject::of(other) != Subject::of(&object)));
        assert_eq!(Subject::all_like(&object), Subject::of(&others[2]));
    }
}
