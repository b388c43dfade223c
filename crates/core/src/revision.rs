//! Which version is which: hashes of pod templates and tracked configs.
//!
//! A hash that is stored names its algorithm (`s1:`). If the algorithm ever changes, so does its number, and a status
//! with an older or foreign hash is compared by other means and stamped anew without a rollout. Nothing here is random:
//! the same revision of the same canary gives the same bytes on every machine.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use seaway_api::canary::CanaryStatus;
use serde_json::Value;

pub use crate::observed::Revision;

/// Prefix of the hashes this version writes.
pub const ALGORITHM: &str = "s1:";

/// `s1:` and 16 hex digits over the canonical JSON of a raw pod template: keys sorted, no white space, and no members
/// that are `null` (API servers differ in whether they write `creationTimestamp: null`).
pub fn template_hash(template: &Value) -> String {
    let mut text = String::new();
    canonical(template, &mut text);
    format!("{ALGORITHM}{}", hex(&Sha256::digest(text.as_bytes())[..8]))
}

/// Whether a stored hash was written by this algorithm and can be compared with [`template_hash`].
pub fn is_ours(hash: &str) -> bool {
    hash.starts_with(ALGORITHM)
}

/// The revision the status says is, or was last, under analysis.
pub fn applied(status: &CanaryStatus) -> Revision {
    Revision { template: status.last_applied_spec.clone(), configs: status.tracked_configs.clone().unwrap_or_default() }
}

/// Whether the status already names this revision as the one analysed last.
pub fn same_revision(status: &CanaryStatus, revision: &Revision) -> bool {
    applied(status) == *revision
}

/// Short hash of template and configs together, for keys.
pub fn digest(revision: &Revision) -> String {
    hex(&hash_of("revision", "", revision)[..8])
}

/// The `flagger-id` of a primary's pod template: shaped like a UUID, but a hash of canary and revision, so that a
/// repeated promotion writes the same bytes and restarts nothing.
pub fn flagger_id(uid: &str, revision: &Revision) -> String {
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash_of("flagger-id", uid, revision)[..16]);
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    let text = hex(&bytes);
    format!("{}-{}-{}-{}-{}", &text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..])
}

/// Every part is preceded by its length, so no two different revisions give the same input.
fn hash_of(purpose: &str, uid: &str, revision: &Revision) -> [u8; 32] {
    let mut hasher = Sha256::new();
    let mut part = |text: &str| {
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text.as_bytes());
    };
    part(purpose);
    part(uid);
    part(&revision.template);
    for (name, checksum) in &revision.configs {
        part(name);
        part(checksum);
    }
    hasher.finalize().into()
}

fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(members) => {
            let sorted: BTreeMap<&String, &Value> = members.iter().filter(|(_, value)| !value.is_null()).collect();
            out.push('{');
            for (index, (key, value)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(key.as_str()).to_string());
                out.push(':');
                canonical(value, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                canonical(item, out);
            }
            out.push(']');
        }
        plain => out.push_str(&plain.to_string()),
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn revision(template: &str, configs: &[(&str, &str)]) -> Revision {
        Revision {
            template: template.into(),
            configs: configs.iter().map(|(name, sum)| ((*name).into(), (*sum).into())).collect(),
        }
    }

    #[test]
    fn order_of_keys_and_nulls_do_not_matter_order_of_lists_does() {
        let a = json!({ "metadata": { "labels": { "b": "2", "a": "1" }, "creationTimestamp": null }, "spec": { "x": [1, 2] } });
        let b = json!({ "spec": { "x": [1, 2] }, "metadata": { "labels": { "a": "1", "b": "2" } } });
        let c = json!({ "spec": { "x": [2, 1] }, "metadata": { "labels": { "a": "1", "b": "2" } } });
        assert_eq!(template_hash(&a), template_hash(&b));
        assert_ne!(template_hash(&a), template_hash(&c));
        let hash = template_hash(&a);
        assert!(is_ours(&hash) && hash.len() == 19, "{hash}");
    }

    #[test]
    fn the_hash_is_the_one_that_statuses_already_hold() {
        let template = json!({ "spec": { "containers": [{ "name": "podinfod", "image": "podinfo:6.0.0" }] } });
        // sha256 of {"spec":{"containers":[{"image":"podinfo:6.0.0","name":"podinfod"}]}}
        assert_eq!(template_hash(&template), GOLDEN);
    }
    const GOLDEN: &str = "s1:17cf3419d42e8fa9";

    #[test]
    fn ids_look_like_uuids_and_depend_on_everything() {
        let one = flagger_id("uid", &revision("s1:aa", &[("secret/x", "1")]));
        assert_eq!(one.split('-').map(str::len).collect::<Vec<_>>(), [8, 4, 4, 4, 12]);
        assert_eq!(one, flagger_id("uid", &revision("s1:aa", &[("secret/x", "1")])));
        for other in [
            flagger_id("other", &revision("s1:aa", &[("secret/x", "1")])),
            flagger_id("uid", &revision("s1:ab", &[("secret/x", "1")])),
            flagger_id("uid", &revision("s1:aa", &[("secret/x", "2")])),
            flagger_id("uid", &revision("s1:aa", &[("secret/x1", "")])),
        ] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn a_status_without_configs_equals_a_revision_without_configs() {
        let mut status = CanaryStatus { last_applied_spec: "s1:aa".into(), ..CanaryStatus::default() };
        assert!(same_revision(&status, &revision("s1:aa", &[])));
        status.tracked_configs = Some(BTreeMap::new());
        assert!(same_revision(&status, &revision("s1:aa", &[])));
        assert!(!same_revision(&status, &revision("s1:aa", &[("configmap/c", "1")])));
    }
}
