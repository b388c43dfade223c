//! Discovery: which groups, versions and resources there are, and how healthy the server is.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::openapi;
use super::registry::{Registry, Resource, Version, api_version};

/// The version this server behaves like.
const MINOR: &str = "36";
pub(crate) const GIT_VERSION: &str = "v1.36.3";

/// The media type of aggregated discovery, which answers everything in one request.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Answers a path that is no resource with a media type and a text.
pub(crate) fn answer(registry: &Registry, path: &str, accept: &str) -> Option<(&'static str, String)> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let value = match parts.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => return Some(("text/plain", "ok".to_owned())),
        ["version"] => json!({
            "major": "1", "minor": MINOR, "gitVersion": format!("{GIT_VERSION}+drydock"), "gitCommit": "", "gitTreeState": "clean",
            "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "",
        }),
        [] => {
            json!({"paths": ["/api", "/api/v1", "/apis", "/healthz", "/livez", "/openapi/v3", "/readyz", "/version"]})
        }
        ["api"] if aggregated => return Some((AGGREGATED, aggregate(registry, true).to_string())),
        ["apis"] if aggregated => return Some((AGGREGATED, aggregate(registry, false).to_string())),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let groups: Vec<_> = groups(registry)
                .iter()
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, group)| show(name, group))
                .collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] => {
            let groups = groups(registry);
            let mut group = show(name, groups.get(name)?);
            group["kind"] = "APIGroup".into();
            group["apiVersion"] = "v1".into();
            group
        }
        ["api", version] => resources(registry, "", version)?,
        ["apis", group, version] => resources(registry, group, version)?,
        ["openapi", "v3"] => openapi::index(registry),
        ["openapi", "v3", "api", version] => openapi::document(registry, "", version)?,
        ["openapi", "v3", "apis", group, version] => openapi::document(registry, group, version)?,
        _ => return None,
    };
    Some(("application/json", value.to_string()))
}

/// Served versions per group, the most stable first, with their resources.
pub(crate) type Groups<'a> = BTreeMap<&'a str, Vec<(&'a str, Vec<(&'a Resource, &'a Version)>)>>;

pub(crate) fn groups(registry: &Registry) -> Groups<'_> {
    let mut groups: Groups<'_> = BTreeMap::new();
    for resource in registry.all() {
        for version in resource.versions.iter().filter(|version| version.served) {
            let versions = groups.entry(&resource.group).or_default();
            match versions.iter_mut().find(|(name, _)| *name == version.name) {
                Some((_, resources)) => resources.push((resource, version)),
                None => versions.push((&version.name, vec![(resource, version)])),
            }
        }
    }
    for versions in groups.values_mut() {
        versions.sort_by_key(|(name, _)| std::cmp::Reverse(priority(name)));
    }
    groups
}

/// Kubernetes' order of versions: stable before beta before alpha, higher numbers first.
pub(crate) fn priority(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| text.parse::<u32>().unwrap_or(0);
    let text = version.strip_prefix('v').unwrap_or_default();
    for (rank, word) in [(2, "beta"), (1, "alpha")] {
        if let Some((major, minor)) = text.split_once(word) {
            return (rank, number(major), number(minor));
        }
    }
    if text.parse::<u32>().is_ok() { (3, number(text), 0) } else { (0, 0, 0) }
}

fn show(name: &str, versions: &[(&str, Vec<(&Resource, &Version)>)]) -> Value {
    let versions: Vec<_> = versions
        .iter()
        .map(|(version, _)| json!({"groupVersion": api_version(name, version), "version": version}))
        .collect();
    json!({"name": name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let groups = groups(registry);
    let (_, resources) = groups.get(group)?.iter().find(|(name, _)| *name == version)?;
    let mut list = Vec::new();
    for (resource, version) in resources {
        let mut entry = json!({
            "name": resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
            "kind": resource.kind, "verbs": resource.verbs,
        });
        if !resource.short_names.is_empty() {
            entry["shortNames"] = json!(resource.short_names);
        }
        if !resource.categories.is_empty() {
            entry["categories"] = json!(resource.categories);
        }
        list.push(entry);
        for (subresource, verbs) in &version.subresources {
            let (group, kind_version, kind) = subresource_kind(resource, version, subresource);
            let mut entry = json!({
                "name": format!("{}/{subresource}", resource.plural), "singularName": "",
                "namespaced": resource.namespaced, "kind": kind, "verbs": verbs,
            });
            if (group, kind_version) != (resource.group.as_str(), version.name.as_str()) {
                entry["group"] = group.into();
                entry["version"] = kind_version.into();
            }
            list.push(entry);
        }
    }
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version(group, version), "resources": list,
    }))
}

/// What a sub-resource is made of, where that is not the resource itself.
fn subresource_kind<'a>(
    resource: &'a Resource,
    version: &'a Version,
    subresource: &str,
) -> (&'a str, &'a str, &'a str) {
    match subresource {
        "scale" => ("autoscaling", "v1", "Scale"),
        "attach" => (&resource.group, &version.name, "PodAttachOptions"),
        "eviction" => ("policy", "v1", "Eviction"),
        "exec" => (&resource.group, &version.name, "PodExecOptions"),
        "portforward" => (&resource.group, &version.name, "PodPortForwardOptions"),
        "binding" => (&resource.group, &version.name, "Binding"),
        _ => (&resource.group, &version.name, &resource.kind),
    }
}

fn aggregate(registry: &Registry, core: bool) -> Value {
    let groups = groups(registry);
    let items: Vec<_> = groups
        .iter()
        .filter(|(name, _)| name.is_empty() == core)
        .map(|(name, versions)| {
            let versions: Vec<_> = versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<_> =
                        resources.iter().map(|(resource, version)| aggregate_resource(resource, version)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": name, "creationTimestamp": null}, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregate_resource(resource: &Resource, version: &Version) -> Value {
    let kind = |(group, version, kind): (&str, &str, &str)| json!({"group": group, "version": version, "kind": kind});
    let subresources: Vec<_> = version
        .subresources
        .iter()
        .map(|(name, verbs)| {
            json!({"subresource": name, "responseKind": kind(subresource_kind(resource, version, name)), "verbs": verbs})
        })
        .collect();
    let mut entry = json!({
        "resource": resource.plural, "responseKind": kind((&resource.group, &version.name, &resource.kind)),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" }, "singularResource": resource.singular,
        "verbs": resource.verbs,
    });
    for (key, list) in [("shortNames", &resource.short_names), ("categories", &resource.categories)] {
        if !list.is_empty() {
            entry[key] = json!(list);
        }
    }
    if !subresources.is_empty() {
        entry["subresources"] = json!(subresources);
    }
    entry
}
