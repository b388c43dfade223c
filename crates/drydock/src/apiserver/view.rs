//! How objects are shown: in full, as metadata only, or as a table; always in the version that was asked for.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::columns::Column;
use super::error::{ApiError, Result};
use super::meta;
use super::registry::Served;
use super::table::{printed, table};

/// The form a client asks for in its Accept header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Full,
    Metadata,
    /// The metadata of a list; of one object it makes no sense.
    MetadataList,
    Table,
}

impl Form {
    /// The first form in the header that this server speaks. Not everything can be a Table.
    pub(crate) fn negotiate(accept: &str, tabular: bool) -> Result<Self> {
        for offer in accept.split(',').map(str::trim).filter(|offer| !offer.is_empty()) {
            let mut parts = offer.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default();
            if !matches!(media, "application/json" | "application/*" | "*/*") {
                continue;
            }
            match parts.find_map(|part| part.strip_prefix("as=")) {
                None => return Ok(Self::Full),
                Some("Table") if tabular => return Ok(Self::Table),
                Some("PartialObjectMetadata") => return Ok(Self::Metadata),
                Some("PartialObjectMetadataList") => return Ok(Self::MetadataList),
                Some(_) => {}
            }
        }
        if accept.is_empty() {
            return Ok(Self::Full);
        }
        Err(ApiError::not_acceptable())
    }
}

/// What the rows of a table hold besides their cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Include {
    #[default]
    Metadata,
    Object,
    None,
}

/// A form and a version.
#[derive(Clone)]
pub(crate) struct View {
    served: Served,
    form: Form,
    include: Include,
    api_version: String,
    /// Whether it shows what is stored and usually hidden too.
    bare: bool,
}

impl View {
    pub(crate) fn new(served: Served, form: Form) -> Self {
        let api_version = served.api_version();
        Self { served, form, include: Include::default(), api_version, bare: false }
    }

    /// With what the parameter `includeObject` asks for: kubectl sorts rows by the whole objects behind them.
    pub(crate) fn including(self, asked: &str) -> Result<Self> {
        let include = match asked {
            "" | "Metadata" => Include::Metadata,
            "Object" => Include::Object,
            "None" => Include::None,
            other => return Err(ApiError::bad_request(format!("unrecognized includeObject value: {other:?}"))),
        };
        Ok(Self { include, ..self })
    }

    /// The same, and nothing that is stored is hidden.
    pub(crate) fn bare(&self) -> Self {
        Self { bare: true, ..self.clone() }
    }

    /// Whether the answer to a verb can have this form.
    pub(crate) fn suits(&self, verb: &str, subresource: &str) -> Result<()> {
        let list = match verb {
            "list" | "deletecollection" => true,
            "watch" => return Ok(()),
            _ => false,
        };
        let resource = &self.served.resource;
        let package = resource.group.split('.').next().filter(|group| !group.is_empty()).unwrap_or("core");
        let kind = match (resource.custom, list) {
            (true, false) if subresource == "scale" => "*v1.Scale".to_owned(),
            (true, true) => "*unstructured.UnstructuredList".to_owned(),
            (true, false) => "*unstructured.Unstructured".to_owned(),
            (false, false) if subresource == "scale" => "*autoscaling.Scale".to_owned(),
            (false, true) => format!("*{package}.{}", resource.list_kind),
            (false, false) => format!("*{package}.{}", resource.kind),
        };
        match self.form {
            Form::Metadata if list => Err(ApiError::not_of_that_form(&format!(
                "you requested PartialObjectMetadata, but the requested object is a list ({kind})"
            ))),
            Form::MetadataList if !list && resource.custom && subresource != "scale" => {
                Err(ApiError::unforeseen("content is not a list"))
            }
            Form::MetadataList if !list => Err(ApiError::not_of_that_form(&format!(
                "you requested PartialObjectMetadataList, but the requested object is not a list ({kind})"
            ))),
            _ => Ok(()),
        }
    }

    /// One object.
    pub(crate) fn object(&self, object: &Value, now: Timestamp) -> Value {
        match self.form {
            Form::Full => self.versioned(object),
            Form::Metadata | Form::MetadataList => partial(object),
            Form::Table => {
                self.table(&[object], &json!({"resourceVersion": meta::field(object, "resourceVersion")}), now)
            }
        }
    }

    /// Something that is no object of the resource.
    pub(crate) fn other(&self, value: Value, columns: &[Column], now: Timestamp) -> Value {
        match self.form {
            Form::Full => value,
            Form::Metadata | Form::MetadataList => partial(&value),
            Form::Table => {
                let metadata = json!({"resourceVersion": meta::field(&value, "resourceVersion")});
                printed(columns, &[&value], &metadata, now)
            }
        }
    }

    /// A list.
    pub(crate) fn list(&self, items: &[Arc<Value>], metadata: &Value, now: Timestamp) -> Value {
        let resource = &self.served.resource;
        // Lists of custom resources say so when nothing follows.
        let mut metadata = metadata.clone();
        if resource.custom && self.form == Form::Full && metadata.get("continue").is_none() {
            metadata["continue"] = "".into();
        }
        let metadata = &metadata;
        match self.form {
            Form::Full => {
                let items: Vec<_> = items.iter().map(|item| self.item(item)).collect();
                json!({"kind": resource.list_kind, "apiVersion": self.api_version, "metadata": metadata, "items": items})
            }
            Form::Metadata | Form::MetadataList => {
                let items: Vec<_> = items.iter().map(|item| partial(item)).collect();
                // Go's empty slice that was never made.
                let items = if items.is_empty() { Value::Null } else { items.into() };
                json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": metadata, "items": items})
            }
            Form::Table => {
                let items: Vec<&Value> = items.iter().map(|item| &**item).collect();
                self.table(&items, metadata, now)
            }
        }
    }

    /// A bookmark: the kind and a resource version, nothing else.
    pub(crate) fn bookmark(&self, revision: u64, initial_events_end: bool) -> Value {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_events_end {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        match self.form {
            Form::Metadata | Form::MetadataList => {
                json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
            }
            Form::Table => {
                let object = json!({"metadata": metadata});
                let list = json!({"resourceVersion": revision.to_string()});
                self.table(&[&object], &list, Timestamp::UNIX_EPOCH)
            }
            Form::Full => {
                json!({"kind": self.served.resource.kind, "apiVersion": self.api_version, "metadata": metadata})
            }
        }
    }

    fn versioned(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Some(version) = object.get_mut("apiVersion")
            && *version != self.api_version.as_str()
        {
            *version = self.api_version.clone().into();
        }
        if let Some(lens) = self.served.lens() {
            lens.show(&mut object);
        }
        self.hide(&mut object);
        object
    }

    /// Takes away what is stored and never read.
    fn hide(&self, object: &mut Value) {
        if !self.bare {
            (self.served.resource.behaviour.hide)(object);
        }
    }

    /// Items of built-in lists do not repeat their kind; those of custom resources do.
    fn item(&self, object: &Value) -> Value {
        if self.served.resource.custom {
            return self.versioned(object);
        }
        let members = object.as_object().into_iter().flatten();
        let kept = members.filter(|(key, _)| !matches!(key.as_str(), "kind" | "apiVersion"));
        let mut item = Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>());
        if let Some(lens) = self.served.lens() {
            lens.show(&mut item);
        }
        self.hide(&mut item);
        item
    }

    fn table(&self, items: &[&Value], metadata: &Value, now: Timestamp) -> Value {
        let mut table = table(&self.served, items, metadata, now);
        let rows = table.get_mut("rows").and_then(Value::as_array_mut).into_iter().flatten();
        for (row, item) in rows.zip(items) {
            match self.include {
                Include::Metadata => {}
                Include::Object => row["object"] = self.versioned(item),
                Include::None => drop(row.as_object_mut().and_then(|row| row.remove("object"))),
            }
        }
        table
    }
}

/// Only the metadata of an object.
pub(crate) fn partial(object: &Value) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_default();
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata})
}
