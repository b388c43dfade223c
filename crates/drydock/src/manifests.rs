//! Manifests: YAML as people write it, applied document by document.

use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::core::TypeMeta;
use kube::discovery::{self, Scope};
use kube::{Api, Client};
use serde_json::Value;

/// Why manifests were not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Not YAML.
    #[error("cannot parse the manifests")]
    Yaml(#[from] serde_saphyr::Error),
    /// A document that is no Kubernetes object.
    #[error("document {0} is not a Kubernetes object: it needs apiVersion, kind and metadata.name")]
    NotAnObject(usize),
    /// Refused by the API server.
    #[error("{kind} {name} was not applied")]
    Refused {
        /// Kind of the object.
        kind: String,
        /// Name of the object.
        name: String,
        /// What the server said.
        source: Box<kube::Error>,
    },
}

/// Server-side apply of a multi-document YAML, as `kubectl apply --server-side` does.
pub async fn apply(client: &Client, yaml: &str) -> Result<Vec<DynamicObject>, ApplyError> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(yaml)?;
    let mut applied = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        if document.is_null() {
            continue;
        }
        let object: DynamicObject = serde_json::from_value(document).map_err(|_| ApplyError::NotAnObject(index + 1))?;
        let (Some(types), Some(name)) = (object.types.clone(), object.metadata.name.clone()) else {
            return Err(ApplyError::NotAnObject(index + 1));
        };
        let result = apply_one(client, &types, &name, &object).await;
        applied.push(result.map_err(|source| ApplyError::Refused {
            kind: types.kind,
            name,
            source: Box::new(source),
        })?);
    }
    Ok(applied)
}

async fn apply_one(
    client: &Client,
    types: &TypeMeta,
    name: &str,
    object: &DynamicObject,
) -> kube::Result<DynamicObject> {
    let (resource, scope) = resource(client, types).await?;
    let api: Api<DynamicObject> = match scope {
        Scope::Cluster => Api::all_with(client.clone(), &resource),
        Scope::Namespaced => {
            let namespace = object.metadata.namespace.as_deref().unwrap_or("default");
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
    };
    api.patch(name, &PatchParams::apply("kubectl"), &Patch::Apply(object)).await
}

async fn resource(client: &Client, types: &TypeMeta) -> kube::Result<(ApiResource, Scope)> {
    let (group, version) = types.api_version.split_once('/').unwrap_or(("", &types.api_version));
    let kind = GroupVersionKind::gvk(group, version, &types.kind);
    let (resource, capabilities) = discovery::pinned_kind(client, &kind).await?;
    Ok((resource, capabilities.scope))
}
