//! The table of resources: what the server offers, as data.
//!
//! Verbs read this table and never ask which resource they serve. Built-in kinds come from the generated tables,
//! custom ones from CRDs, at run time.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::builtin::{self, Behaviour};
use super::crd::{Compiled, Rules};
use super::lens::{Lens, lens};
use super::meta;
use super::schema::Schema;

/// One resource, in all its versions.
pub(crate) struct Resource {
    /// The store's key of its objects: `plural.group`, or just the plural in the core group; where it shows the objects
    /// of another resource, that one's.
    pub(crate) id: Arc<str>,
    pub(crate) group: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) namespaced: bool,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) verbs: Vec<String>,
    pub(crate) versions: Vec<Version>,
    /// Made by a CRD.
    pub(crate) custom: bool,
    /// The last revision before its schemas were in force: what was written until then may not fit them.
    pub(crate) since: u64,
    /// What this resource does differently from the others.
    pub(crate) behaviour: &'static Behaviour,
    /// How it shows objects that belong to another resource.
    pub(crate) lens: Option<&'static Lens>,
}

/// One version of a resource.
pub(crate) struct Version {
    pub(crate) name: String,
    pub(crate) served: bool,
    pub(crate) storage: bool,
    pub(crate) shape: Shape,
    /// The schema behind a lens.
    pub(crate) stored: Option<Box<Schema>>,
    /// Sub-resources with their verbs.
    pub(crate) subresources: BTreeMap<String, Vec<String>>,
    /// Where the scale sub-resource finds its numbers.
    pub(crate) scale: Option<ScalePaths>,
    /// Columns of the Table output, as a CRD declares them.
    pub(crate) columns: Vec<Value>,
    /// Fields a field selector may name, beyond those of every resource.
    pub(crate) selectable: Vec<String>,
    /// What whoever uses it is told, if it is to go.
    pub(crate) deprecation: Option<String>,
}

/// What objects of a version look like.
pub(crate) enum Shape {
    /// A type of the generated tables.
    Builtin(Box<Schema>),
    /// What a CRD says, with its CEL rules.
    Custom(Arc<Compiled>),
}

impl Version {
    pub(crate) fn schema(&self) -> &Schema {
        match &self.shape {
            Shape::Builtin(schema) => schema,
            Shape::Custom(compiled) => &compiled.schema,
        }
    }

    /// Tells the schemas of CRDs apart.
    pub(crate) fn digest(&self) -> u64 {
        match &self.shape {
            Shape::Builtin(_) => 0,
            Shape::Custom(compiled) => compiled.digest,
        }
    }

    /// The CEL rules of a CRD's schema, if it has any.
    pub(crate) fn rules(&self) -> Option<&Rules> {
        match &self.shape {
            Shape::Builtin(_) => None,
            Shape::Custom(compiled) => compiled.rules.as_ref(),
        }
    }
}

/// JSON pointers into an object that can be scaled.
#[derive(Clone, Debug)]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    /// A label selector, as text or as an object.
    pub(crate) selector: Option<String>,
}

impl Resource {
    /// `Kind.group`, or just the kind in the core group.
    pub(crate) fn qualified_kind(&self) -> String {
        if self.group.is_empty() { self.kind.clone() } else { format!("{}.{}", self.kind, self.group) }
    }

    /// `plural.group`, or just the plural in the core group: the name used in messages.
    pub(crate) fn name(&self) -> Arc<str> {
        resource_id(&self.plural, &self.group)
    }

    /// Where a server with an etcd keeps its objects. Some kinds had other names once.
    pub(crate) fn storage_place(&self) -> String {
        match self.id.split('.').next().unwrap_or_default() {
            plural if self.custom => format!("{}/{plural}", self.group),
            plural @ "customresourcedefinitions" => format!("{}/{plural}", self.group),
            "services" => "services/specs".to_owned(),
            "nodes" => "minions".to_owned(),
            "replicationcontrollers" => "controllers".to_owned(),
            plural => plural.to_owned(),
        }
    }

    /// The version objects are stored in.
    pub(crate) fn storage(&self) -> Option<&Version> {
        self.versions.iter().find(|version| version.storage)
    }
}

/// A resource in the version a request names.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) resource: Arc<Resource>,
    at: usize,
}

impl Served {
    pub(crate) fn version(&self) -> &Version {
        &self.resource.versions[self.at]
    }

    /// `group/version`, or just the version in the core group.
    pub(crate) fn api_version(&self) -> String {
        api_version(&self.resource.group, &self.version().name)
    }

    /// How the resource shows objects that belong to another one.
    pub(crate) fn lens(&self) -> Option<&'static Lens> {
        self.resource.lens
    }

    /// What objects look like when they are stored, or on their way there.
    pub(crate) fn stored_schema(&self) -> &Schema {
        self.version().stored.as_deref().unwrap_or_else(|| self.version().schema())
    }

    /// A stored object as it is read now: without what its schema no longer has, with what it has by default.
    pub(crate) fn current(&self, object: &Arc<Value>) -> Arc<Value> {
        let written = || meta::field(object, "resourceVersion").parse::<u64>().unwrap_or_default();
        if self.resource.since == 0 || written() > self.resource.since {
            return object.clone();
        }
        let mut read = Value::clone(object);
        self.version().schema().prune(&mut read, "", &mut Vec::new());
        self.version().schema().fill(&mut read);
        Arc::new(read)
    }

    /// Whether the version has a sub-resource.
    pub(crate) fn has(&self, subresource: &str) -> bool {
        self.version().subresources.contains_key(subresource)
    }
}

/// `group/version`, or just the version in the core group.
pub(crate) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// All resources.
#[derive(Default)]
pub(crate) struct Registry {
    resources: BTreeMap<Arc<str>, Arc<Resource>>,
}

/// One line of the generated table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    group: String,
    version: String,
    kind: String,
    plural: String,
    singular: String,
    namespaced: bool,
    #[serde(default)]
    short_names: Vec<String>,
    #[serde(default)]
    categories: Vec<String>,
    verbs: Vec<String>,
    #[serde(default)]
    subresources: BTreeMap<String, Vec<String>>,
    r#type: String,
}

impl Registry {
    /// The built-in resources.
    pub(crate) fn builtin() -> Result<Self, serde_json::Error> {
        let rows: Vec<Row> = serde_json::from_str(include_str!("../schema/resources.json"))?;
        let mut registry = Self::default();
        for row in rows {
            let name = resource_id(&row.plural, &row.group);
            let lens = lens(&name);
            let id = lens.map_or(name, |lens| lens.of.into());
            let scale = row.subresources.contains_key("scale").then(|| ScalePaths {
                spec_replicas: "/spec/replicas".into(),
                status_replicas: "/status/replicas".into(),
                selector: Some("/spec/selector".into()),
            });
            let version = Version {
                name: row.version,
                served: true,
                storage: true,
                shape: Shape::Builtin(Box::new(Schema::named(&row.r#type))),
                stored: lens.map(|lens| Box::new(Schema::named(lens.type_name))),
                subresources: row.subresources,
                scale,
                columns: Vec::new(),
                selectable: Vec::new(),
                deprecation: None,
            };
            let behaviour = builtin::behaviour(&id);
            let mut version = version;
            if behaviour.contents.is_some() {
                version.subresources.insert("finalize".into(), vec!["update".into()]);
            }
            registry.install(Resource {
                behaviour,
                id,
                list_kind: format!("{}List", row.kind),
                group: row.group,
                kind: row.kind,
                plural: row.plural,
                singular: row.singular,
                namespaced: row.namespaced,
                short_names: row.short_names,
                categories: row.categories,
                verbs: row.verbs,
                versions: vec![version],
                custom: false,
                since: 0,
                lens,
            });
        }
        Ok(registry)
    }

    /// Adds a resource, or replaces the one of the same name.
    pub(crate) fn install(&mut self, resource: Resource) {
        self.resources.insert(resource.name(), Arc::new(resource));
    }

    /// Removes a resource.
    pub(crate) fn uninstall(&mut self, id: &str) {
        self.resources.remove(id);
    }

    /// A resource by its id.
    pub(crate) fn get(&self, id: &str) -> Option<&Arc<Resource>> {
        self.resources.get(id)
    }

    /// The resource a path names.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<Served> {
        let resource = self.resources.get(&resource_id(plural, group))?;
        let at = resource.versions.iter().position(|known| known.served && known.name == version)?;
        Some(Served { resource: resource.clone(), at })
    }

    /// The resource of an id, in the version it is stored in.
    pub(crate) fn stored(&self, id: &str) -> Option<Served> {
        let resource = self.resources.get(id)?;
        let at = resource.versions.iter().position(|version| version.storage)?;
        Some(Served { resource: resource.clone(), at })
    }

    /// All resources, by id.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.resources.values()
    }
}

/// `plural.group`, or just the plural in the core group.
pub(crate) fn resource_id(plural: &str, group: &str) -> Arc<str> {
    if group.is_empty() { plural.into() } else { format!("{plural}.{group}").into() }
}
