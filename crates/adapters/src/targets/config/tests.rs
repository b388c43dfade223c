//! YAML in, changes out.

use super::*;
use crate::testing::{document, world};
use crate::world::Objects;

const PODINFO: &str = include_str!("../podinfo.yaml");
const CONFIGS: &str = include_str!("../configs.yaml");

#[test]
fn the_checksum_is_flaggers() {
    assert_eq!(checksum(&json!({ "data": { "color": "red" } })), "241889ca0604e333");
    // Order of keys does not matter; `<`, `>` and `&` are written as Go writes them.
    let (a, b) = (json!({ "data": { "b": "<&>", "a": "1" } }), json!({ "data": { "a": "1", "b": "<&>" } }));
    assert_eq!(checksum(&a), checksum(&b));
    assert_eq!(go_json(a.get("data")), r#"{"a":"1","b":"\u003c\u0026\u003e"}"#);
    assert_eq!(go_json(None), "null");
}

#[test]
fn binary_data_counts_only_where_there_is_some() {
    let plain = json!({ "data": { "color": "red" }, "binaryData": {} });
    assert_eq!(checksum(&plain), "241889ca0604e333");
    let binary = json!({ "data": { "color": "red" }, "binaryData": { "x": "AAE=" } });
    assert_ne!(checksum(&binary), "241889ca0604e333");
}

#[test]
fn the_projection_holds_no_data() {
    let secret = document(
        "
        apiVersion: v1
        kind: Secret
        metadata:
          name: token
          namespace: test
          uid: u
          resourceVersion: '3'
          managedFields: [{manager: x}]
          annotations: {flagger.app/config-tracking: disabled, kubectl.kubernetes.io/last-applied-configuration: hunter2}
        type: Opaque
        data: {password: aHVudGVyMg==}
        ",
    );
    let projection = project(SECRET, &secret);
    insta::assert_yaml_snapshot!(projection);
    assert!(!projection.to_string().contains("unter"));
}

#[test]
fn every_reference_is_found_once() {
    let target = document(PODINFO);
    let found: Vec<_> = references(&target["spec"]["template"])
        .into_iter()
        .map(|config| (key(config.kind, &config.name), config.optional))
        .collect();
    let expected = [
        ("configmap/projected", false),
        ("configmap/settings", false),
        ("configmap/untracked", false),
        ("secret/maybe", true),
        ("secret/tls", false),
        ("secret/token", false),
    ];
    assert_eq!(found, expected.map(|(key, optional)| (key.to_owned(), optional)));
}

#[test]
fn a_revision_is_template_and_tracked_configs() {
    let revision = revision(&document(PODINFO), &world(CONFIGS), &Conventions::default()).unwrap();
    let expected = [
        ("configmap/projected", "bbbbbbbbbbbbbbbb"),
        ("configmap/settings", "aaaaaaaaaaaaaaaa"),
        ("secret/token", "dddddddddddddddd"),
    ];
    assert_eq!(revision.configs, expected.map(|(key, sum)| (key.to_owned(), sum.to_owned())).into());
    assert!(revision.template.starts_with("s1:"));
    assert!(!equal_primary(&revision, "test", &world(CONFIGS)), "there are no copies yet");
    let off = Conventions { track_configs: false, ..Conventions::default() };
    assert!(super::revision(&document(PODINFO), &Objects::default(), &off).unwrap().configs.is_empty());
}

#[test]
fn a_mandatory_config_that_is_missing_is_named() {
    let mut world = world(CONFIGS);
    world.remove(SECRET, "test", "token");
    let refusal = revision(&document(PODINFO), &world, &Conventions::default()).unwrap_err();
    assert_eq!(refusal.text, "GetTargetConfigs failed: secret token.test get query error: secrets \"token\" not found");
}

fn whole() -> Value {
    document(
        "
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: settings, namespace: test, labels: {app.kubernetes.io/name: x, other: y}}
        data: {color: red}
        binaryData: {logo: AAE=}
        immutable: true
        ",
    )
}

fn copied(source: &Value, seen: Option<&Value>) -> Result<Vec<Change>, Refusal> {
    let conventions =
        Conventions { include_label_prefixes: vec!["app.kubernetes.io".into()], ..Conventions::default() };
    copy(&Canary::test(), source, CONFIG_MAP, "settings-primary", seen, &conventions)
}

#[test]
fn a_copy_has_all_data() {
    insta::assert_yaml_snapshot!(copied(&whole(), None).unwrap());
}

#[test]
fn a_copy_that_exists_is_replaced_as_a_whole_and_keeps_its_other_owners() {
    let seen = document(
        "
        metadata:
          name: settings-primary
          namespace: test
          uid: u
          resourceVersion: '9'
          ownerReferences:
          - {apiVersion: flagger.app/v1beta1, kind: Canary, name: other, uid: other-uid, controller: true, blockOwnerDeletion: true}
        checksum: '0000000000000000'
        ",
    );
    insta::assert_yaml_snapshot!(copied(&whole(), Some(&seen)).unwrap());
}

#[test]
fn an_immutable_copy_is_made_anew_and_a_right_one_is_left_alone() {
    let mut seen = document(
        "
        metadata:
          name: settings-primary
          namespace: test
          uid: u
          resourceVersion: '9'
          ownerReferences:
          - {apiVersion: flagger.app/v1beta1, kind: Canary, name: podinfo, uid: 9b6c1e52-3c0e-4a41-8a0e-2b6f1d6f0001, controller: true}
        immutable: true
        checksum: '0000000000000000'
        ",
    );
    let changes = copied(&whole(), Some(&seen)).unwrap();
    assert!(matches!(
        changes.iter().map(|change| &change.action).collect::<Vec<_>>()[..],
        [crate::change::Action::Delete { .. }, crate::change::Action::Create { .. }]
    ));
    seen["checksum"] = checksum(&whole()).into();
    assert_eq!(copied(&whole(), Some(&seen)).unwrap(), []);
}

#[test]
fn somebody_elses_config_of_that_name_is_not_overwritten() {
    let seen =
        document("metadata: {name: settings-primary, namespace: test, uid: u, resourceVersion: '9'}\nchecksum: x");
    let refusal = copied(&whole(), Some(&seen)).unwrap_err();
    assert_eq!(
        refusal.text,
        "ConfigMap settings-primary.test exists and no Canary owns it; rename or delete it, its name is needed for a copy"
    );
}
