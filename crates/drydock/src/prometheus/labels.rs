//! Label sets: sorted, shared, cheap to compare.

use std::collections::BTreeMap;
use std::sync::Arc;

/// The label that holds a metric's name.
pub(super) const NAME: &str = "__name__";

/// A sorted set of labels; a label with an empty value does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// The value of a label; empty if there is none.
    pub fn get(&self, name: &str) -> &str {
        match self.0.binary_search_by(|(key, _)| key.as_ref().cmp(name)) {
            Ok(index) => self.0.get(index).map_or("", |(_, value)| value),
            Err(_) => "",
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Only the labels for which `keep` says so.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| keep(name)).cloned().collect())
    }

    pub fn without_name(&self) -> Self {
        if self.get(NAME).is_empty() { self.clone() } else { self.retain(|name| name != NAME) }
    }

    /// The same labels with some set anew; an empty value removes.
    pub fn with<'a>(&'a self, changes: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut map: BTreeMap<&str, &str> = self.iter().collect();
        map.extend(changes);
        map.into_iter().collect()
    }
}

impl<K: AsRef<str>, V: AsRef<str>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let map: BTreeMap<Arc<str>, Arc<str>> =
            pairs.into_iter().map(|(name, value)| (Arc::from(name.as_ref()), Arc::from(value.as_ref()))).collect();
        Self(map.into_iter().filter(|(_, value)| !value.is_empty()).collect())
    }
}
