//! A container's environment: literal values, fields of the pod, and keys of ConfigMaps and Secrets.
//!
//! `$(NAME)` in a value refers to a variable defined before it. Resource fields are absent: nothing is limited here.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{ConfigMap, Container, EnvVar, EnvVarSource, Pod, Secret};
use kube::{Api, Client, ResourceExt};

use super::node::{NODE, NODE_IP};

/// Why a container cannot be configured; the text becomes the container's waiting message.
#[derive(Debug, thiserror::Error)]
pub(super) enum EnvironmentError {
    /// A ConfigMap or Secret, or a key of it, is not there.
    #[error("{0}")]
    Missing(String),
    /// The API server did not answer.
    #[error("cannot read the configuration")]
    Api(#[from] kube::Error),
}

/// Reads what the container's environment refers to. Costs no request where it refers to nothing.
pub(super) async fn resolve(
    client: &Client,
    pod: &Pod,
    container: &Container,
    ip: IpAddr,
) -> Result<BTreeMap<String, String>, EnvironmentError> {
    let source = Source { client, namespace: pod.namespace().unwrap_or_default() };
    let mut env = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        let prefix = from.prefix.as_deref().unwrap_or_default();
        let mut values = BTreeMap::new();
        if let Some(reference) = &from.config_map_ref {
            values = source.config_map(&reference.name, reference.optional).await?;
        }
        if let Some(reference) = &from.secret_ref {
            values = source.secret(&reference.name, reference.optional).await?;
        }
        env.extend(values.into_iter().map(|(key, value)| (format!("{prefix}{key}"), value)));
    }
    for EnvVar { name, value, value_from } in container.env.iter().flatten() {
        let value = match (value, value_from) {
            (Some(value), _) => Some(expand(value, &env)),
            (None, Some(from)) => source.value(from, pod, ip).await?,
            (None, None) => Some(String::new()),
        };
        if let Some(value) = value {
            env.insert(name.clone(), value);
        }
    }
    Ok(env)
}

struct Source<'a> {
    client: &'a Client,
    namespace: String,
}

impl Source<'_> {
    async fn value(&self, from: &EnvVarSource, pod: &Pod, ip: IpAddr) -> Result<Option<String>, EnvironmentError> {
        if let Some(field) = &from.field_ref {
            return Ok(Some(field_of(pod, &field.field_path, ip)));
        }
        if let Some(reference) = &from.config_map_key_ref {
            let values = self.config_map(&reference.name, reference.optional).await?;
            return key_of(&values, &reference.key, "ConfigMap", &reference.name, reference.optional);
        }
        if let Some(reference) = &from.secret_key_ref {
            let values = self.secret(&reference.name, reference.optional).await?;
            return key_of(&values, &reference.key, "Secret", &reference.name, reference.optional);
        }
        Ok(None)
    }

    async fn config_map(
        &self,
        name: &str,
        optional: Option<bool>,
    ) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let api: Api<ConfigMap> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.get_opt(name).await? {
            Some(map) => Ok(map.data.unwrap_or_default()),
            None if optional == Some(true) => Ok(BTreeMap::new()),
            None => Err(EnvironmentError::Missing(format!("configmap \"{name}\" not found"))),
        }
    }

    async fn secret(&self, name: &str, optional: Option<bool>) -> Result<BTreeMap<String, String>, EnvironmentError> {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &self.namespace);
        match api.get_opt(name).await? {
            Some(secret) => {
                let text = |(key, bytes): (String, k8s_openapi::ByteString)| {
                    (key, String::from_utf8_lossy(&bytes.0).into_owned())
                };
                Ok(secret.data.unwrap_or_default().into_iter().map(text).collect())
            }
            None if optional == Some(true) => Ok(BTreeMap::new()),
            None => Err(EnvironmentError::Missing(format!("secret \"{name}\" not found"))),
        }
    }
}

fn key_of(
    values: &BTreeMap<String, String>,
    key: &str,
    kind: &str,
    name: &str,
    optional: Option<bool>,
) -> Result<Option<String>, EnvironmentError> {
    match values.get(key) {
        Some(value) => Ok(Some(value.clone())),
        None if optional == Some(true) => Ok(None),
        None => Err(EnvironmentError::Missing(format!("couldn't find key {key} in {kind} {name}"))),
    }
}

fn field_of(pod: &Pod, path: &str, ip: IpAddr) -> String {
    let quoted = |rest: &str| rest.trim_start_matches("['").trim_end_matches("']").to_owned();
    match path {
        "metadata.name" => pod.name_any(),
        "metadata.namespace" => pod.namespace().unwrap_or_default(),
        "metadata.uid" => pod.uid().unwrap_or_default(),
        "spec.nodeName" => NODE.into(),
        "status.hostIP" => NODE_IP.into(),
        "status.podIP" | "status.podIPs" => ip.to_string(),
        _ => {
            if let Some(rest) = path.strip_prefix("metadata.labels") {
                return pod.labels().get(&quoted(rest)).cloned().unwrap_or_default();
            }
            if let Some(rest) = path.strip_prefix("metadata.annotations") {
                return pod.annotations().get(&quoted(rest)).cloned().unwrap_or_default();
            }
            String::new()
        }
    }
}

/// Replaces `$(NAME)` by variables that are already known; `$$(NAME)` is the text itself.
fn expand(value: &str, known: &BTreeMap<String, String>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some(start) = rest.find('$') {
        let (before, after) = rest.split_at(start);
        out.push_str(before);
        if let Some(after) = after.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix("$(").and_then(|after| after.split_once(')')) {
            match known.get(name) {
                Some(value) => out.push_str(value),
                None => out.extend(["$(", name, ")"]),
            }
            rest = after;
        } else {
            out.push('$');
            rest = &after[1..];
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_expanded_once_known() {
        let known = BTreeMap::from([("A".to_owned(), "1".to_owned())]);
        assert_eq!(expand("x$(A)y", &known), "x1y");
        assert_eq!(expand("$(B) $$(A) $", &known), "$(B) $(A) $");
    }
}
