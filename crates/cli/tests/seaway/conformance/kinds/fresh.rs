//! Kinds that a script defines itself, and what it may do with them then.

use super::Kind;

/// A kind with everything: rules, defaults, lists that merge, a status and a scale.
pub static SHIP: Kind = Kind {
    version: "<<ns>>.conformance.seaway.dev/v1",
    plural: "ships",
    kind: "Ship",
    weight: 0,
    sample: r#"{"spec":{"size":3,"color":"blue","crew":[{"name":"ann","rank":"captain"}],"cargo":{"tea":1},"tags":["x"],"port":"http"}}"#,
    changes: &[
        r#"{"spec":{"size":4}}"#,
        r#"{"spec":{"size":null}}"#,
        r#"{"spec":{"crew":[{"name":"bob"}]}}"#,
        r#"{"spec":{"cargo":{"tea":null,"salt":7}}}"#,
        r#"{"spec":{"notes":{"any":[1,{"thing":true}]}}}"#,
        r#"{"spec":{"port":80,"tags":[]}}"#,
        r#"{"spec":{"color":"red","size":80}}"#,
        r#"{"spec":{"size":5.0,"port":8e1,"cargo":{"tea":2.0},"notes":{"any":[1.0,{"thing":1.5}]}}}"#,
    ],
    faults: &[
        r#"{"spec":{"size":0}}"#,
        r#"{"spec":{"size":"big"}}"#,
        r#"{"spec":{"size":60}}"#,
        r#"{"spec":{"color":"pink"}}"#,
        r#"{"spec":{"crew":[{"rank":"cook"}]}}"#,
        r#"{"spec":{"crew":[{"name":"ann"},{"name":"ann"}]}}"#,
        r#"{"spec":{"tags":["x","x"]}}"#,
        r#"{"spec":{"tags":["a","b","c","d"]}}"#,
        r#"{"spec":{"cargo":{"tea":"much"}}}"#,
        r#"{"spec":{"unknown":1,"crew":[{"name":"ann","age":5}]}}"#,
        r#"{"spec":{"port":true}}"#,
        r#"{"spec":null}"#,
        r#"{"spec":"text"}"#,
    ],
    field: ("/spec/color", "\"blue\"", "\"green\""),
    status: &[
        r#"{"status":{"phase":"Afloat","replicas":2}}"#,
        r#"{"status":{"phase":7}}"#,
        r#"{"status":{"replicas":1,"unknown":true}}"#,
    ],
    scale: true,
    selectable: &["metadata.name=a", "spec.color=blue", "spec.color!=blue", "spec.size=3"],
};

/// A kind that says little about itself.
pub static BOAT: Kind = Kind {
    version: "<<ns>>.conformance.seaway.dev/v1",
    plural: "boats",
    kind: "Boat",
    weight: 0,
    sample: r#"{"spec":{"oars":2},"more":{"a":1}}"#,
    changes: &[
        r#"{"spec":{"oars":4}}"#,
        r#"{"status":{"phase":"Afloat"}}"#,
        r#"{"spec":{"any":"thing"}}"#,
        r#"{"more":null}"#,
    ],
    faults: &[r#"{"spec":{"oars":"two"}}"#, r#"{"spec":[]}"#, r#"{"spec":{"oars":2.5}}"#],
    field: ("/spec/oars", "2", "6"),
    status: &[],
    scale: false,
    selectable: &["metadata.name=a", "spec.oars=2"],
};
