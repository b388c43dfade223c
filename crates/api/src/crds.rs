//! The CRDs of the three kinds, as data.
//!
//! They are a superset of Flagger's: same names, same columns, same required fields, enums and patterns. A rule is added
//! only for what Flagger refuses or can never run, whatever its flags are; everything else that is wrong is found by
//! `validate` and shown in a condition, so that no manifest that worked before is turned away.
//!
//! The Rust types and these schemas are two views of the same thing; tests compare them field by field.

mod alert_provider;
mod analysis;
mod canary;
mod metric_template;
mod schema;
mod service;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schema::{Schema, object, text};

use crate::{GROUP, VERSION};

/// The three CRDs, ready to apply.
pub fn crds() -> Vec<CustomResourceDefinition> {
    vec![canary::definition(), metric_template::definition(), alert_provider::definition()]
}

/// The schema of one of the three kinds; `None` for any other.
pub fn schema_of(kind: &str) -> Option<&'static JSONSchemaProps> {
    static SCHEMAS: LazyLock<BTreeMap<String, JSONSchemaProps>> = LazyLock::new(|| {
        let schema = |crd: CustomResourceDefinition| {
            let version = crd.spec.versions.into_iter().next()?;
            Some((crd.spec.names.kind, version.schema?.open_api_v3_schema?))
        };
        crds().into_iter().filter_map(schema).collect()
    });
    SCHEMAS.get(kind)
}

/// What differs between the three definitions.
struct Kind {
    name: &'static str,
    plural: &'static str,
    singular: &'static str,
    description: &'static str,
    columns: Vec<CustomResourceColumnDefinition>,
    spec: Schema,
    status: Schema,
}

impl Kind {
    fn definition(self) -> CustomResourceDefinition {
        let root = object(self.description)
            .field("apiVersion", text("Group and version of this object's schema."))
            .field("kind", text("Kind of this object."))
            .field("metadata", object(""))
            .field("spec", self.spec)
            .field("status", self.status);
        CustomResourceDefinition {
            metadata: ObjectMeta {
                name: Some(format!("{}.{GROUP}", self.plural)),
                annotations: Some(BTreeMap::from([("helm.sh/resource-policy".to_owned(), "keep".to_owned())])),
                ..ObjectMeta::default()
            },
            spec: CustomResourceDefinitionSpec {
                group: GROUP.into(),
                names: CustomResourceDefinitionNames {
                    kind: self.name.into(),
                    list_kind: Some(format!("{}List", self.name)),
                    plural: self.plural.into(),
                    singular: Some(self.singular.into()),
                    categories: Some(vec!["all".into()]),
                    short_names: None,
                },
                scope: "Namespaced".into(),
                versions: vec![CustomResourceDefinitionVersion {
                    name: VERSION.into(),
                    served: true,
                    storage: true,
                    subresources: Some(CustomResourceSubresources {
                        status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
                        scale: None,
                    }),
                    additional_printer_columns: Some(self.columns),
                    schema: Some(CustomResourceValidation { open_api_v3_schema: Some(root.build()) }),
                    ..CustomResourceDefinitionVersion::default()
                }],
                ..CustomResourceDefinitionSpec::default()
            },
            status: None,
        }
    }
}

/// A column of `kubectl get`; priority 1 shows with `-o wide` only.
fn column(name: &str, type_: &str, path: &str, priority: i32) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.into(),
        type_: type_.into(),
        json_path: path.into(),
        priority: (priority > 0).then_some(priority),
        ..CustomResourceColumnDefinition::default()
    }
}

/// `status.conditions`, the same for all kinds.
fn conditions() -> Schema {
    schema::list(
        "What is known about the object.",
        object("")
            .field("type", text("Name of the condition."))
            .field("status", text("True, False or Unknown."))
            .field("reason", text("The reason in one word."))
            .field("message", text("The reason for people."))
            .field("lastUpdateTime", schema::time("When anything in the condition changed last."))
            .field("lastTransitionTime", schema::time("When its status changed last."))
            .required(&["type", "status", "reason"]),
    )
}

#[cfg(test)]
pub(crate) mod tests;
