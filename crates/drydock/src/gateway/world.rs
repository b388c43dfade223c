//! What the gateway knows: the Gateway API objects of the cluster, read once when they change.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::spec::{GatewayClassSpec, GatewaySpec, HttpRouteSpec, ReferenceGrantSpec};
use crate::names::follow::Change;

/// Namespace and name; the namespace is empty for a GatewayClass.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object as the data plane sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct Object<S> {
    pub key: Key,
    pub uid: String,
    pub resource_version: String,
    pub generation: i64,
    pub created: Option<Timestamp>,
    pub spec: S,
    pub status: Value,
}

impl<S: DeserializeOwned> Object<S> {
    /// Reads an object; one that cannot be read spoils itself and nothing else.
    pub fn read(object: &DynamicObject) -> Option<Self> {
        let key = key(object);
        let spec = object.data.get("spec").cloned().unwrap_or_else(|| Value::Object(serde_json::Map::default()));
        let spec = match serde_json::from_value(spec) {
            Ok(spec) => spec,
            Err(error) => {
                tracing::warn!(object = %key, %error, "gateway cannot read an object");
                return None;
            }
        };
        Some(Self {
            key,
            uid: object.uid().unwrap_or_default(),
            resource_version: object.resource_version().unwrap_or_default(),
            generation: object.metadata.generation.unwrap_or_default(),
            created: object.metadata.creation_timestamp.as_ref().map(|time| time.0),
            spec,
            status: object.data.get("status").cloned().unwrap_or(Value::Null),
        })
    }
}

fn key(object: &DynamicObject) -> Key {
    Key { namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

/// Objects of one kind by name.
pub(super) type Table<S> = BTreeMap<Key, Arc<Object<S>>>;

/// Puts a change into a table.
pub(super) fn apply<S: DeserializeOwned>(table: &mut Table<S>, change: Change<DynamicObject>) {
    let read = |object: &DynamicObject| Object::read(object).map(|read| (key(object), Arc::new(read)));
    match change {
        Change::Replace(all) => *table = all.iter().filter_map(read).collect(),
        Change::Apply(object) => match read(&object) {
            Some((key, read)) => {
                table.insert(key, read);
            }
            None => {
                table.remove(&key(&object));
            }
        },
        Change::Delete(object) => {
            table.remove(&key(&object));
        }
    }
}

/// All objects the gateway obeys.
#[derive(Default)]
pub(super) struct World {
    pub classes: Table<GatewayClassSpec>,
    pub gateways: Table<GatewaySpec>,
    pub routes: Table<HttpRouteSpec>,
    pub grants: Table<ReferenceGrantSpec>,
    /// Labels of each namespace.
    pub namespaces: BTreeMap<String, BTreeMap<String, String>>,
}

impl World {
    /// Whether routes of `from` may name a Service of another namespace.
    pub fn granted(&self, from: &str, to: &str, service: &str) -> bool {
        self.grants.values().filter(|grant| grant.key.namespace == to).any(|grant| {
            let from =
                grant.spec.from.iter().any(|source| {
                    source.group == super::GROUP && source.kind == "HTTPRoute" && source.namespace == from
                });
            let to = grant.spec.to.iter().any(|target| {
                let named = target.name.as_deref().is_none_or(|name| name.is_empty() || name == service);
                target.group.is_empty() && target.kind == "Service" && named
            });
            from && to
        })
    }
}
