//! Files of one volume that are in each other's way.

use serde_json::{Value, json};

use super::meta;
use super::pod_rules::{given, list};

/// A file, and where it comes from.
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        if self.source.is_empty() { format!("{:?}", self.path) } else { format!("{:?} ({})", self.path, self.source) }
    }

    /// Whether one would have to be the other, or a folder of it.
    fn meets(&self, other: &Self) -> bool {
        let inside = |one: &Self, other: &Self| format!("{}/", one.path).starts_with(&format!("{}/", other.path));
        !self.path.is_empty() && !other.path.is_empty() && (inside(self, other) || inside(other, self))
    }
}

/// What whoever writes these volumes should know.
pub(super) fn overlaps(volumes: &[Value]) -> Vec<String> {
    let mut warnings = Vec::new();
    for volume in volumes {
        let name = meta::text(volume, "/name");
        let warning = |what: &str, told: String| format!("volume {name:?} ({what}): overlapping paths: {told}");
        for (kind, shown, field) in [
            ("configMap", "ConfigMap", "/name"),
            ("secret", "Secret", "/secretName"),
            ("downwardAPI", "DownwardAPI", ""),
        ] {
            let Some(source) = given(volume, kind) else { continue };
            let named = format!("{shown} {:?}", meta::text(source, field));
            let what = if field.is_empty() { shown } else { &named };
            let told = collisions(&mut Vec::new(), files(source, ""));
            warnings.extend(told.into_iter().map(|told| warning(what, told)));
        }
        let mut taken = Vec::new();
        for source in given(volume, "projected").map(|projected| list(projected, "sources")).unwrap_or_default() {
            if source.as_object().is_none_or(serde_json::Map::is_empty) {
                warnings.push(format!("volume {name:?} (Projected) has no sources provided"));
            }
            let told = collisions(&mut taken, projected(source));
            warnings.extend(told.into_iter().map(|told| warning("Projected", told)));
        }
    }
    warnings
}

fn files(source: &Value, from: &str) -> Vec<File> {
    let path = |item: &Value| meta::text(item, "/path").trim_end_matches('/').to_owned();
    list(source, "items").iter().map(|item| File { path: path(item), source: from.to_owned() }).collect()
}

/// The files of one source among several.
fn projected(source: &Value) -> Vec<File> {
    let listed = |source: &Value| given(source, "items").is_some();
    let named = |kind: &str, source: &Value| format!("{kind} {:?}", meta::text(source, "/name"));
    if let Some(source) = given(source, "configMap").filter(|source| listed(source)) {
        return files(source, &named("ConfigMap", source));
    }
    if let Some(source) = given(source, "secret").filter(|source| listed(source)) {
        return files(source, &named("Secret", source));
    }
    if let Some(source) = given(source, "downwardAPI").filter(|source| listed(source)) {
        return files(source, "DownwardAPI");
    }
    given(source, "serviceAccountToken")
        .map(|token| files(&json!({"items": [token]}), "ServiceAccountToken"))
        .unwrap_or_default()
}

/// What is in the way of files, which are then taken too.
fn collisions(taken: &mut Vec<File>, files: Vec<File>) -> Vec<String> {
    let mut told = Vec::new();
    for file in files {
        let met = taken.iter().filter(|other| file.meets(other));
        told.extend(met.map(|other| format!("{} with {}", file.shown(), other.shown())));
        taken.push(file);
    }
    told
}
