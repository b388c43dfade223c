//! Discovery: which groups, versions and resources there are, and how healthy the server is.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::crd;
use super::error::{ApiError, Result};
use super::openapi;
use super::registry::{Registry, Resource, Version, api_version};
use super::request::Params;

/// The version this server behaves like.
const MINOR: &str = "36";
pub(crate) const GIT_VERSION: &str = "v1.36.3";

/// The media type of aggregated discovery, which answers everything in one request.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// The groups of Kubernetes that are offered here, the most important first: a name that several groups have means the
/// first of them. Custom groups come behind, by name.
const RANKS: &[&str] = &[
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "apiextensions.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
];

/// What is said to be healthy, each by itself.
const CHECKS: [&str; 2] = ["ping", "log"];

/// Something that is said about the server as a whole.
pub(crate) struct Page {
    pub(crate) media_type: &'static str,
    pub(crate) body: Vec<u8>,
    /// It was asked for by what is in it, so it never changes.
    pub(crate) forever: bool,
}

impl Page {
    fn new(media_type: &'static str, text: String) -> Self {
        Self { media_type, body: text.into_bytes(), forever: false }
    }
}

/// Answers a path that is no resource.
pub(crate) fn answer(registry: &Registry, path: &str, params: &Params, accept: &str) -> Result<Page> {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let aggregated = accept.contains("as=APIGroupDiscoveryList") && accept.contains("v=v2");
    let value = match parts.as_slice() {
        [probe @ ("healthz" | "livez" | "readyz")] => return Ok(health(probe, params.given("verbose"))),
        ["healthz" | "livez" | "readyz", check] if CHECKS.contains(check) => {
            return Ok(Page::new("text/plain; charset=utf-8", "ok".to_owned()));
        }
        ["version"] => version(),
        [] => json!({"paths": paths(registry)}),
        ["api"] if aggregated => return Ok(Page::new(AGGREGATED, aggregate(registry, true).to_string())),
        ["apis"] if aggregated => return Ok(Page::new(AGGREGATED, aggregate(registry, false).to_string())),
        ["api"] => json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}),
        ["apis"] => {
            let groups = groups(registry);
            let groups: Vec<_> = groups.iter().filter(|group| !group.name.is_empty()).map(show).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        ["apis", name] => {
            let groups = groups(registry);
            let found = groups.iter().find(|group| group.name == *name).ok_or_else(ApiError::no_route)?;
            let mut group = json!({"kind": "APIGroup", "apiVersion": "v1"});
            json_patch::merge(&mut group, &show(found));
            group
        }
        ["api", version] => resources(registry, "", version).ok_or_else(ApiError::no_route)?,
        ["apis", group, version] => resources(registry, group, version).ok_or_else(ApiError::no_route)?,
        ["openapi", rest @ ..] => return openapi::answer(registry, rest, params, accept),
        _ => return Err(ApiError::no_route()),
    };
    Ok(Page::new("application/json", value.to_string()))
}

fn version() -> Value {
    json!({
        "major": "1", "minor": MINOR, "emulationMajor": "1", "emulationMinor": MINOR, "minCompatibilityMajor": "1",
        "minCompatibilityMinor": MINOR, "gitVersion": format!("{GIT_VERSION}+drydock"), "gitCommit": "",
        "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    })
}

/// All is well as long as it answers at all.
fn health(probe: &str, verbose: bool) -> Page {
    let text = if verbose {
        let checks: String = CHECKS.iter().flat_map(|check| ["[+]", check, " ok\n"]).collect();
        format!("{checks}{probe} check passed\n")
    } else {
        "ok".to_owned()
    };
    Page::new("text/plain; charset=utf-8", text)
}

/// Where there is something to see.
fn paths(registry: &Registry) -> Vec<String> {
    let mut paths: Vec<String> =
        ["/api", "/apis", "/openapi/v2", "/openapi/v3", "/version"].map(str::to_owned).to_vec();
    for probe in ["/healthz", "/livez", "/readyz"] {
        paths.push(probe.to_owned());
        paths.extend(CHECKS.iter().map(|check| format!("{probe}/{check}")));
    }
    for group in groups(registry) {
        let root = if group.name.is_empty() { "/api".to_owned() } else { format!("/apis/{}", group.name) };
        paths.extend(group.versions.iter().map(|(version, _)| format!("{root}/{version}")));
        paths.extend((!group.name.is_empty()).then_some(root));
    }
    paths.sort_unstable();
    paths
}

/// What a version of a group offers.
pub(crate) type Offers<'a> = Vec<(&'a Resource, &'a Version)>;

/// A group with its served versions, the most stable first.
pub(crate) struct Group<'a> {
    pub(crate) name: &'a str,
    pub(crate) versions: Vec<(&'a str, Offers<'a>)>,
}

pub(crate) fn groups(registry: &Registry) -> Vec<Group<'_>> {
    let mut groups: BTreeMap<&str, Vec<(&str, Offers<'_>)>> = BTreeMap::new();
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
    let mut groups: Vec<_> = groups.into_iter().map(|(name, versions)| Group { name, versions }).collect();
    // Stable: what has no rank stays in the order of names.
    groups.sort_by_key(|group| RANKS.iter().position(|ranked| *ranked == group.name).unwrap_or(RANKS.len()));
    groups
}

/// What one version of one group offers.
pub(crate) fn offers<'a>(registry: &'a Registry, group: &str, version: &str) -> Option<Offers<'a>> {
    let group = groups(registry).into_iter().find(|found| found.name == group)?;
    group.versions.into_iter().find(|(name, _)| *name == version).map(|(_, offers)| offers)
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

fn show(group: &Group<'_>) -> Value {
    let shown = |version: &str| json!({"groupVersion": api_version(group.name, version), "version": version});
    let versions: Vec<_> = group.versions.iter().map(|(version, _)| shown(version)).collect();
    json!({"name": group.name, "versions": versions, "preferredVersion": versions.first()})
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let mut list = Vec::new();
    for (resource, version) in offers(registry, group, version)? {
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
        if let Some(storage) = resource.storage().filter(|_| resource.behaviour.review.is_none()) {
            // Of the core group Go leaves the name empty and keeps the line. Definitions are stored in an older version.
            let group = if resource.lens.is_some() { "" } else { &resource.group };
            let version = if &*resource.id == crd::DEFINITIONS { "v1beta1" } else { &storage.name };
            let hash = Sha256::digest(format!("{group}/{version}/{}", resource.kind));
            entry["storageVersionHash"] = STANDARD.encode(&hash[..8]).into();
        }
        list.push(entry);
        // Of custom resources the status comes first.
        let mut subresources: Vec<_> = version.subresources.iter().collect();
        subresources.sort_by_key(|(name, _)| resource.custom && *name != "status");
        for (subresource, verbs) in subresources {
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
        .filter(|group| group.name.is_empty() == core)
        .map(|group| {
            let versions: Vec<_> = group
                .versions
                .iter()
                .map(|(version, resources)| {
                    let resources: Vec<_> =
                        resources.iter().map(|(resource, version)| aggregate_resource(resource, version)).collect();
                    json!({"version": version, "resources": resources, "freshness": "Current"})
                })
                .collect();
            json!({"metadata": {"name": group.name}, "versions": versions})
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
