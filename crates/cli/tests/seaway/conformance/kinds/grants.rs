//! Kinds that say who may do what, and where a Service leads: a chart brings most of them.

use super::Kind;

pub const SERVICE_ACCOUNT: Kind = Kind {
    version: "v1",
    plural: "serviceaccounts",
    kind: "ServiceAccount",
    weight: 3,
    sample: r#"{"imagePullSecrets":[{"name":"pull"}],"secrets":[{"name":"token"}]}"#,
    changes: &[
        r#"{"automountServiceAccountToken":false}"#,
        r#"{"imagePullSecrets":[{"name":"other"}]}"#,
        r#"{"secrets":null}"#,
        r#"{"metadata":{"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}}}"#,
    ],
    faults: &[
        r#"{"automountServiceAccountToken":"no"}"#,
        r#"{"imagePullSecrets":[{"name":""}]}"#,
        r#"{"secrets":{"name":"x"}}"#,
        r#"{"spec":{}}"#,
    ],
    field: ("/imagePullSecrets/0/name", "\"pull\"", "\"push\""),
    status: &[],
    scale: false,
    selectable: &["metadata.name=a", "secrets=x"],
};

pub const ROLE: Kind = Kind {
    version: "rbac.authorization.k8s.io/v1",
    plural: "roles",
    kind: "Role",
    weight: 3,
    sample: r#"{"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}"#,
    changes: RULES,
    faults: &[
        r#"{"rules":[{"apiGroups":[""],"resources":["pods"]}]}"#,
        r#"{"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]},{"resources":["x"],"verbs":["get"]},{"verbs":["get"],"apiGroups":[""]}]}"#,
        r#"{"rules":[{}]}"#,
        r#"{"rules":"all"}"#,
        r#"{"rules":[{"verbs":"get"}]}"#,
    ],
    field: ("/rules/0/verbs", "[\"get\"]", "[\"list\",\"watch\"]"),
    status: &[],
    scale: false,
    selectable: &["metadata.name=a", "rules=x"],
};

pub const CLUSTER_ROLE: Kind = Kind {
    plural: "clusterroles",
    kind: "ClusterRole",
    weight: 1,
    faults: &[
        r#"{"rules":[{"nonResourceURLs":["/x"],"resources":["y"],"verbs":["get"]}]}"#,
        r#"{"rules":[{"nonResourceURLs":["/x"],"verbs":["get"]}]}"#,
        r#"{"aggregationRule":{}}"#,
        r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"bad value!"}}]}}"#,
        r#"{"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"a":"b"}}]}}"#,
    ],
    ..ROLE
};

const RULES: &[&str] = &[
    r#"{"rules":[{"apiGroups":["apps"],"resources":["deployments"],"resourceNames":["podinfo"],"verbs":["*"]}]}"#,
    r#"{"rules":null}"#,
    r#"{"rules":[]}"#,
    r#"{"metadata":{"labels":{"app":"y"}}}"#,
];

pub const ROLE_BINDING: Kind = Kind {
    version: "rbac.authorization.k8s.io/v1",
    plural: "rolebindings",
    kind: "RoleBinding",
    weight: 3,
    sample: r#"{"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"view"},"subjects":[{"kind":"ServiceAccount","name":"seaway","namespace":"x"}]}"#,
    changes: &[
        r#"{"subjects":[{"kind":"User","name":"u"},{"kind":"Group","name":"g"}]}"#,
        r#"{"subjects":null}"#,
        r#"{"roleRef":{"apiGroup":""}}"#,
        r#"{"roleRef":{"apiGroup":null}}"#,
    ],
    faults: &[
        r#"{"roleRef":{"name":"other"}}"#,
        r#"{"roleRef":{"kind":"Role"}}"#,
        r#"{"roleRef":{"apiGroup":"x","kind":"Odd","name":"a/b"}}"#,
        r#"{"roleRef":{"name":""}}"#,
        r#"{"roleRef":null}"#,
        r#"{"subjects":[{"kind":"Odd","name":""}]}"#,
        r#"{"subjects":[{"kind":"ServiceAccount","name":"x"}]}"#,
        r#"{"subjects":[{"kind":"User","name":"","apiGroup":"x"},{"kind":"ServiceAccount","name":"Up_per","apiGroup":"x","namespace":"z"}]}"#,
        r#"{"subjects":[{}]}"#,
    ],
    field: ("/subjects/0/name", "\"seaway\"", "\"other\""),
    status: &[],
    scale: false,
    selectable: &["metadata.name=a", "subjects=x"],
};

pub const CLUSTER_ROLE_BINDING: Kind =
    Kind { plural: "clusterrolebindings", kind: "ClusterRoleBinding", weight: 1, ..ROLE_BINDING };

pub const ENDPOINT_SLICE: Kind = Kind {
    version: "discovery.k8s.io/v1",
    plural: "endpointslices",
    kind: "EndpointSlice",
    weight: 4,
    sample: r#"{"addressType":"IPv4","ports":[{"name":"http","port":80}],"endpoints":[{"addresses":["10.0.0.1"],"conditions":{"ready":true}}]}"#,
    changes: &[
        r#"{"endpoints":[{"addresses":["10.0.0.2"],"nodeName":"n","hostname":"h","zone":"z","targetRef":{"kind":"Pod","name":"p"}}]}"#,
        r#"{"endpoints":[]}"#,
        r#"{"endpoints":[{"addresses":["10.0.0.2"],"hints":{"forZones":[{"name":"a"},{"name":"b"}],"forNodes":[{"name":"n"}]}}]}"#,
        r#"{"ports":[{"name":"a","port":1,"appProtocol":"http"},{"name":"b","port":1,"protocol":"UDP"}]}"#,
        r#"{"ports":null}"#,
        r#"{"metadata":{"labels":{"kubernetes.io/service-name":"podinfo"}}}"#,
        r#"{"metadata":{"annotations":{"noted":"1"}}}"#,
    ],
    faults: &[
        r#"{"addressType":"IPv6"}"#,
        r#"{"addressType":"Odd"}"#,
        r#"{"addressType":null}"#,
        r#"{"endpoints":[{"addresses":[]}]}"#,
        r#"{"endpoints":[{"addresses":["10.0.0.1","::1","x"],"hostname":"Up","nodeName":"","conditions":{}}]}"#,
        r#"{"endpoints":[{"addresses":["010.0.0.1","127.0.0.1","fe80::1","FD00::1"]}]}"#,
        r#"{"endpoints":null}"#,
        r#"{"endpoints":[{"addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"a"},{"name":"a"},{"name":"b c"},{}],"forNodes":[{"name":"Up"},{"name":"n"},{"name":"n"},{}]}}]}"#,
        r#"{"endpoints":[{"addresses":["10.0.0.1"],"hints":{"forZones":[{"name":"1"},{"name":"2"},{"name":"3"},{"name":"4"},{"name":"5"},{"name":"6"},{"name":"7"},{"name":"8"},{"name":"9"}],"forNodes":[{"name":"Up"}]}}]}"#,
        r#"{"ports":[{"name":"UP","protocol":"ICMP","port":0},{"name":"a"},{"name":"a"}]}"#,
        r#"{"ports":[{"appProtocol":"bad proto!"},{"port":70000,"name":"b"}]}"#,
        r#"{"ports":[{"port":"80"}]}"#,
    ],
    field: ("/endpoints/0/addresses/0", "\"10.0.0.1\"", "\"10.0.0.3\""),
    status: &[],
    scale: false,
    selectable: &["metadata.name=a", "addressType=IPv4"],
};

pub const NAMESPACE: Kind = Kind {
    version: "v1",
    plural: "namespaces",
    kind: "Namespace",
    weight: 3,
    sample: "{}",
    changes: &[
        r#"{"metadata":{"labels":{"team":"a"}}}"#,
        r#"{"metadata":{"labels":null}}"#,
        r#"{"metadata":{"labels":{"kubernetes.io/metadata.name":"other"}}}"#,
        r#"{"spec":{"finalizers":["example.com/x"]}}"#,
        r#"{"spec":null}"#,
        r#"{"metadata":{"finalizers":["seaway.dev/hold"]}}"#,
    ],
    faults: &[
        r#"{"spec":{"finalizers":["bad"]}}"#,
        r#"{"spec":{"finalizers":["bad name!","kubernetes"]}}"#,
        r#"{"spec":{"finalizers":"kubernetes"}}"#,
        r#"{"metadata":{"finalizers":["bad"]}}"#,
        r#"{"data":{}}"#,
    ],
    field: ("/metadata/name", "\"<<ns>>-a\"", "\"<<ns>>-b\""),
    status: &[
        r#"{"status":{"phase":"Active"}}"#,
        r#"{"status":{"phase":"Terminating"}}"#,
        r#"{"status":{"phase":"Odd"}}"#,
    ],
    scale: false,
    selectable: &["status.phase=Active"],
};

/// Those that belong to no namespace. Their names begin with that of a run, and only those of the run are listed.
pub static CLUSTER_WIDE: &[Kind] = &[NAMESPACE, CLUSTER_ROLE, CLUSTER_ROLE_BINDING];
