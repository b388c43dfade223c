//! What is wrong with the volumes of a pod, in the order in which the real server looks.

use serde_json::{Value, json};

use super::claim_rules::claim_template;
use super::dns_names;
use super::error::Cause;
use super::meta;
use super::path_rules::{descending, no_backsteps};
use super::pod_rules::{given, list, required, supported};
use super::projection_rules::{downward, keys_to_paths, mode, projected};
use super::quantity::Quantity;

/// What is wrong with a source at a path.
type Rule = fn(&Value, &str, &mut Vec<Cause>);

/// What a volume may be, what it is called when it is one too many, and rules for it. What storage systems have for
/// themselves is left to them.
const SOURCES: &[(&str, &str, Rule)] = &[
    ("emptyDir", "emptyDir", empty_directory),
    ("hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", git),
    ("gcePersistentDisk", "gcePersistentDisk", |_, _, _| {}),
    ("awsElasticBlockStore", "awsElasticBlockStore", |_, _, _| {}),
    ("secret", "secret", |it, path, causes| keys(it, path, "secretName", causes)),
    ("nfs", "nfs", nfs),
    ("iscsi", "iscsi", |_, _, _| {}),
    ("glusterfs", "glusterfs", |_, _, _| {}),
    ("flocker", "flocker", |_, _, _| {}),
    ("persistentVolumeClaim", "persistentVolumeClaim", |it, path, causes| required(it, path, "claimName", causes)),
    ("rbd", "rbd", |_, _, _| {}),
    ("cinder", "cinder", |_, _, _| {}),
    ("cephfs", "cephFS", |_, _, _| {}),
    ("quobyte", "quobyte", |_, _, _| {}),
    ("downwardAPI", "downwarAPI", |it, path, causes| {
        mode(it, path, "defaultMode", causes);
        downward(it, path, causes);
    }),
    ("fc", "fc", |_, _, _| {}),
    ("flexVolume", "flexVolume", |_, _, _| {}),
    ("configMap", "configMap", |it, path, causes| keys(it, path, "name", causes)),
    ("azureFile", "azureFile", |_, _, _| {}),
    ("vsphereVolume", "vsphereVolume", |_, _, _| {}),
    ("photonPersistentDisk", "photonPersistentDisk", |_, _, _| {}),
    ("portworxVolume", "portworxVolume", |_, _, _| {}),
    ("azureDisk", "azureDisk", |_, _, _| {}),
    ("storageos", "storageos", |_, _, _| {}),
    ("projected", "projected", projected),
    ("scaleIO", "scaleIO", |_, _, _| {}),
    ("csi", "csi", csi),
    ("ephemeral", "ephemeral", ephemeral),
    ("image", "image", |it, path, causes| {
        supported(it, path, "pullPolicy", &["Always", "IfNotPresent", "Never"], causes);
    }),
];

const HOST_PATHS: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];

/// Rules for the volumes of a pod, or of a template where no name is known. Returns those that can be mounted.
pub(super) fn volumes<'a>(spec: &'a Value, path: &str, pod: Option<&str>, causes: &mut Vec<Cause>) -> Vec<&'a Value> {
    let all = list(spec, "volumes");
    let mut good: Vec<&Value> = Vec::new();
    for (at, volume) in all.iter().enumerate() {
        let path = format!("{path}.volumes[{at}]");
        let name = meta::text(volume, "/name");
        let told = causes.len();
        sources(volume, &path, pod, causes);
        if name.is_empty() {
            causes.push(Cause::required(format!("{path}.name"), ""));
        } else {
            let wrong = dns_names::no_label(name);
            causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.name"), &json!(name), why)));
        }
        if good.iter().any(|other| meta::text(other, "/name") == name) {
            causes.push(Cause::duplicate(format!("{path}.name"), &json!(name)));
        }
        if causes.len() == told {
            good.push(volume);
        }
        // A claim that is made for a volume is not one that another could name.
        let claim = meta::text(volume, "/persistentVolumeClaim/claimName");
        let made = |other: &Value| Some(claim) == claim_of(other, pod).as_deref();
        if !claim.is_empty() && all.iter().any(made) {
            let why = "must not reference a PVC that gets created for an ephemeral volume";
            causes.push(Cause::invalid(format!("{path}.persistentVolumeClaim.claimName"), &json!(claim), why));
        }
    }
    good
}

/// The claim that is made for a volume of a pod.
fn claim_of(volume: &Value, pod: Option<&str>) -> Option<String> {
    let pod = pod.filter(|name| !name.is_empty())?;
    given(volume, "ephemeral").map(|_| format!("{pod}-{}", meta::text(volume, "/name")))
}

/// A volume is one thing.
fn sources(volume: &Value, path: &str, pod: Option<&str>, causes: &mut Vec<Cause>) {
    let mut found = false;
    for (field, told, rule) in SOURCES {
        let Some(source) = given(volume, field) else { continue };
        if found {
            causes.push(Cause::forbidden(format!("{path}.{told}"), "may not specify more than 1 volume type"));
            continue;
        }
        found = true;
        if *field == "image" && pod.is_some() {
            required(source, &format!("{path}.image"), "reference", causes);
        }
        rule(source, &format!("{path}.{field}"), causes);
        let name = meta::text(volume, "/name");
        if let Some(claim) = claim_of(volume, pod).filter(|_| *field == "ephemeral" && !name.is_empty()) {
            for why in dns_names::no_subdomain(&claim) {
                let why = format!("PVC name {claim:?}: {why}");
                causes.push(Cause::invalid(format!("{path}.name"), &json!(name), &why));
            }
        }
    }
    if !found {
        causes.push(Cause::required(path, "must specify a volume type"));
    }
}

fn empty_directory(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    if Quantity::parse(meta::text(source, "/sizeLimit")).is_ok_and(Quantity::is_negative) {
        let why = "SizeLimit field must be a valid resource quantity";
        causes.push(Cause::forbidden(format!("{path}.sizeLimit"), why));
    }
}

fn host_path(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(source, path, "path", causes);
    let place = meta::text(source, "/path");
    if !place.is_empty() {
        no_backsteps(place, &format!("{path}.path"), causes);
        supported(source, path, "type", &HOST_PATHS, causes);
    }
}

fn git(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(source, path, "repository", causes);
    descending(meta::text(source, "/directory"), &format!("{path}.directory"), causes);
}

fn nfs(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(source, path, "server", causes);
    required(source, path, "path", causes);
    let place = meta::text(source, "/path");
    if !place.starts_with('/') {
        causes.push(Cause::invalid(format!("{path}.path"), &json!(place), "must be an absolute path"));
    }
}

/// Keys of an object as files.
fn keys(source: &Value, path: &str, name: &str, causes: &mut Vec<Cause>) {
    required(source, path, name, causes);
    mode(source, path, "defaultMode", causes);
    keys_to_paths(source, path, causes);
}

fn csi(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    required(source, path, "driver", causes);
    let driver = meta::text(source, "/driver");
    if driver.len() > 63 {
        causes.push(Cause::too_long(format!("{path}.driver"), "may not be more than 63 bytes"));
    }
    if !driver.is_empty() {
        for why in dns_names::no_subdomain(&driver.to_ascii_lowercase()) {
            causes.push(Cause::invalid(format!("{path}.driver"), &json!(driver), why));
        }
    }
    let Some(secret) = given(source, "nodePublishSecretRef") else { return };
    required(secret, &format!("{path}.nodePublishSecretRef"), "name", causes);
    let name = meta::text(secret, "/name");
    if !name.is_empty() {
        let wrong = dns_names::no_subdomain(name);
        causes.extend(wrong.iter().map(|why| Cause::invalid(format!("{path}.name"), &json!(name), why)));
    }
}

fn ephemeral(source: &Value, path: &str, causes: &mut Vec<Cause>) {
    let path = format!("{path}.volumeClaimTemplate");
    match given(source, "volumeClaimTemplate") {
        Some(template) => claim_template(template, &path, causes),
        None => causes.push(Cause::required(path, "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(all: &Value) -> Vec<String> {
        let mut causes = Vec::new();
        volumes(&json!({"volumes": all}), "spec", Some("pod"), &mut causes);
        causes.iter().map(Cause::line).collect()
    }

    #[test]
    fn a_volume_is_one_thing() {
        let two = json!([{"name": "v", "emptyDir": {}, "configMap": {}, "downwardAPI": {}}]);
        let why = "Forbidden: may not specify more than 1 volume type";
        // The real server has a letter too few.
        let lines = [format!("spec.volumes[0].downwarAPI: {why}"), format!("spec.volumes[0].configMap: {why}")];
        assert_eq!(wrong(&two), lines);
    }

    #[test]
    fn a_claim_that_is_made_for_a_volume_is_no_volume_of_another() {
        let template =
            json!({"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
        let volumes = json!([
            {"name": "a", "ephemeral": {"volumeClaimTemplate": template}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "pod-a"}},
        ]);
        let place = "spec.volumes[1].persistentVolumeClaim.claimName";
        let why = "must not reference a PVC that gets created for an ephemeral volume";
        assert_eq!(wrong(&volumes), [format!("{place}: Invalid value: \"pod-a\": {why}")]);
    }
}
