//! The kinds that are asked for, each with objects that are right, changes that are right and changes that are not.

mod edges;
mod fresh;
mod grants;
pub mod pod_parts;
mod zeros;

use serde_json::{Value, json};

pub use fresh::{BOAT, SHIP};
pub use grants::CLUSTER_WIDE;

#[expect(clippy::struct_field_names, reason = "Kubernetes' own word")]
pub struct Kind {
    /// `apiVersion` of its objects.
    pub version: &'static str,
    pub plural: &'static str,
    pub kind: &'static str,
    /// How often it is chosen.
    pub weight: u64,
    /// What an object has beside its metadata.
    pub sample: &'static str,
    /// Merge patches that a server accepts.
    pub changes: &'static [&'static str],
    /// Merge patches that a server refuses, prunes, or answers with a warning.
    pub faults: &'static [&'static str],
    /// A field that the operator could `test`, and another value for it.
    pub field: (&'static str, &'static str, &'static str),
    /// Merge patches of the status; none where there is no such sub-resource.
    pub status: &'static [&'static str],
    pub scale: bool,
    /// Fields for field selectors, good and bad.
    pub selectable: &'static [&'static str],
}

impl Kind {
    pub fn path(&self) -> String {
        let root = if self.version.contains('/') { "apis" } else { "api" };
        let place = if self.is_cluster_wide() { "" } else { "namespaces/<<ns>>/" };
        format!("/{root}/{}/{place}{}", self.version, self.plural)
    }

    /// The same in all namespaces.
    pub fn everywhere(&self) -> String {
        self.path().replace("/namespaces/<<ns>>", "")
    }

    /// Where those of a run are, ready for more of a query.
    pub fn listing(&self) -> String {
        self.path() + if self.is_cluster_wide() { "?labelSelector=run%3D<<ns>>&" } else { "?" }
    }

    /// Whether its objects belong to no namespace.
    pub fn is_cluster_wide(&self) -> bool {
        CLUSTER_WIDE.iter().any(|kind| kind.plural == self.plural)
    }

    /// Whether its objects are pods, or have a template of them.
    pub fn makes_pods(&self) -> bool {
        ["deployments", "pods", "replicasets"].contains(&self.plural)
    }

    pub fn is_custom(&self) -> bool {
        ["flagger", "gateway", "conformance"].iter().any(|group| self.version.contains(group))
    }

    /// An object that is right.
    pub fn object(&self, name: &str) -> Value {
        let mut object = json!({"apiVersion": self.version, "kind": self.kind, "metadata": {"name": name}});
        json_patch::merge(&mut object, &self.sample());
        object
    }

    /// Fields that may be given nothing, each with the nothing that belongs there.
    pub fn zeros(&self) -> Vec<(&'static str, &'static str)> {
        let own = of(zeros::ZEROS, self.plural);
        own.iter().chain(zeros::IN_METADATA).copied().collect()
    }

    /// Merge patches at the edge of what a server accepts.
    pub fn edges(&self) -> &'static [&'static str] {
        of(edges::EDGES, self.plural)
    }

    fn sample(&self) -> Value {
        serde_json::from_str(self.sample).unwrap_or_else(|error| panic!("{}: {error}", self.kind))
    }
}

/// What a table says about a kind.
fn of<T>(table: &'static [(&str, &'static [T])], plural: &str) -> &'static [T] {
    table.iter().find(|(kind, _)| *kind == plural).map_or(&[], |(_, entries)| entries)
}

pub static KINDS: &[Kind] = &[
    grants::SERVICE_ACCOUNT,
    grants::ROLE,
    grants::ROLE_BINDING,
    grants::ENDPOINT_SLICE,
    Kind {
        version: "v1",
        plural: "configmaps",
        kind: "ConfigMap",
        weight: 10,
        sample: r#"{"data":{"color":"blue","size":"1"}}"#,
        changes: &[
            r#"{"data":{"color":"red"}}"#,
            r#"{"data":{"size":null}}"#,
            r#"{"data":null}"#,
            r#"{"binaryData":{"raw":"AAEC"}}"#,
            r#"{"immutable":true}"#,
        ],
        faults: &[
            r#"{"data":{"bad key":"x"}}"#,
            r#"{"data":{"n":1}}"#,
            r#"{"spec":{"x":1},"data":{"ok":"y"}}"#,
            r#"{"data":"text"}"#,
            r#"{"binaryData":{"raw":"%%"}}"#,
            r#"{"binaryData":{"color":"AAEC"}}"#,
            r#"{"immutable":"yes"}"#,
            r#"{"data":["x"]}"#,
        ],
        field: ("/data/color", "\"blue\"", "\"green\""),
        status: &[],
        scale: false,
        selectable: &["metadata.name=a", "metadata.name!=a", "data.color=blue"],
    },
    Kind {
        version: "v1",
        plural: "secrets",
        kind: "Secret",
        weight: 5,
        sample: r#"{"type":"Opaque","data":{"key":"dmFsdWU="}}"#,
        changes: &[
            r#"{"stringData":{"plain":"text"}}"#,
            r#"{"data":{"key":"b3RoZXI="}}"#,
            r#"{"immutable":true}"#,
            r#"{"data":{"key":null}}"#,
        ],
        faults: &[
            r#"{"type":"other"}"#,
            r#"{"data":{"key":"no base64"}}"#,
            r#"{"data":{"bad key":"dmFsdWU="}}"#,
            r#"{"extra":true}"#,
        ],
        field: ("/data/key", "\"dmFsdWU=\"", "\"b3RoZXI=\""),
        status: &[],
        scale: false,
        selectable: &["type=Opaque", "type!=Opaque", "metadata.namespace=other", "data.key=x"],
    },
    Kind {
        version: "v1",
        plural: "services",
        kind: "Service",
        weight: 8,
        sample: r#"{"spec":{"selector":{"app":"podinfo"},"ports":[{"name":"http","port":80,"targetPort":9898}]}}"#,
        changes: &[
            r#"{"spec":{"selector":{"app":"podinfo-primary"}}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":81},{"name":"grpc","port":9999,"protocol":"TCP","appProtocol":"http"}]}}"#,
            r#"{"spec":{"sessionAffinity":"ClientIP"}}"#,
            r#"{"spec":{"publishNotReadyAddresses":true}}"#,
            r#"{"metadata":{"labels":{"app":"y"}}}"#,
        ],
        faults: &[
            r#"{"spec":{"ports":[]}}"#,
            r#"{"spec":{"ports":[{"port":0}]}}"#,
            r#"{"spec":{"ports":[{"name":"a","port":80},{"name":"a","port":81}]}}"#,
            r#"{"spec":{"ports":[{"port":80},{"port":81}]}}"#,
            r#"{"spec":{"ports":[{"name":"UPPER","port":80}]}}"#,
            r#"{"spec":{"type":"Nope"}}"#,
            r#"{"spec":{"clusterIP":"1.2.3"}}"#,
            r#"{"spec":{"sessionAffinity":"Never"}}"#,
            r#"{"spec":{"ports":[{"port":"80"}]}}"#,
            r#"{"spec":{"selector":{"app":"bad value!"}}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"protocol":"ICMP"}]}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"targetPort":70000}]}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"targetPort":"Bad_Name"}]}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"targetPort":"much-too-long-a-name"}]}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"targetPort":0}]}}"#,
            r#"{"spec":{"ports":[{"name":"http","port":80,"targetPort":true}]}}"#,
            r#"{"spec":{"ports":[{"name":"a","port":80},{"name":"b","port":80}]}}"#,
            r#"{"spec":{"ports":[{"port":80,"nodePort":30080}]}}"#,
            r#"{"spec":{"ports":[{"port":80,"appProtocol":"bad proto!"}]}}"#,
            r#"{"spec":{"internalTrafficPolicy":"Odd"}}"#,
            r#"{"spec":{"clusterIP":"10.97.0.1"}}"#,
            r#"{"spec":{"externalIPs":["nope"]}}"#,
        ],
        field: ("/spec/selector/app", "\"podinfo\"", "\"podinfo-canary\""),
        status: &[r#"{"status":{"loadBalancer":{"ingress":[{"ip":"1.2.3.4"}]}}}"#, r#"{"status":{"conditions":[]}}"#],
        scale: false,
        selectable: &["spec.type=ClusterIP", "spec.clusterIP=None", "spec.ports=1"],
    },
    Kind {
        version: "apps/v1",
        plural: "deployments",
        kind: "Deployment",
        weight: 12,
        sample: r#"{"spec":{"selector":{"matchLabels":{"app":"podinfo"}},"template":{"metadata":{"labels":{"app":"podinfo"}},"spec":{"containers":[{"name":"podinfod","image":"podinfo:6.0.0","ports":[{"name":"http","containerPort":9898}],"env":[{"name":"A","value":"1"}],"resources":{"requests":{"cpu":"100m"},"limits":{"memory":"64Mi"}}}]}}}}"#,
        changes: &[
            r#"{"spec":{"replicas":3}}"#,
            r#"{"spec":{"paused":true,"minReadySeconds":5}}"#,
            r#"{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"podinfo:6.0.1"},{"name":"side","image":"car:latest","imagePullPolicy":"Always"}]}}}}"#,
            r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":null}}}"#,
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":1,"maxSurge":"50%"}}}}"#,
            r#"{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":5,"volumes":[{"name":"v","emptyDir":{}}]}}}}"#,
            r#"{"spec":{"progressDeadlineSeconds":60,"revisionHistoryLimit":2}}"#,
        ],
        faults: &[
            r#"{"spec":{"replicas":-1}}"#,
            r#"{"spec":{"replicas":"three"}}"#,
            r#"{"spec":{"selector":{"matchLabels":{"app":"other"}}}}"#,
            r#"{"spec":{"template":{"metadata":{"labels":{"app":"other"}}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"UPPER","image":"x"}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod"}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"x"},{"name":"a","image":"y"}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"restartPolicy":"Never"}}}}"#,
            r#"{"spec":{"strategy":{"type":"Sideways"}}}"#,
            r#"{"spec":{"strategy":{"type":"Recreate","rollingUpdate":{"maxSurge":1}}}}"#,
            r#"{"spec":{"replica":2}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x","imag":"y"}]}}}}"#,
            r#"{"spec":{"minReadySeconds":700}}"#,
            r#"{"spec":{"selector":null}}"#,
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":0}}}}"#,
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":"150%"}}}}"#,
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxUnavailable":-1,"maxSurge":"x"}}}}"#,
            r#"{"spec":{"strategy":{"rollingUpdate":{"maxSurge":true}}}}"#,
            r#"{"spec":{"template":{"metadata":{"labels":{"k":"bad value!"}}}}}"#,
            r#"{"spec":{"template":{"spec":{"activeDeadlineSeconds":5}}}}"#,
            r#"{"spec":{"selector":{"matchExpressions":[{"key":"a","operator":"Odd"}]}}}"#,
            r#"{"spec":{"progressDeadlineSeconds":-5}}"#,
            r#"{"spec":{"paused":"yes"}}"#,
            r#"{"spec":{"template":null}}"#,
            r#"{"spec":{"template":{"spec":{"restartPolicy":"Sometimes","dnsPolicy":"Nope"}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"limits":{"memory":"lots"}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x","ports":[{"containerPort":70000,"name":"UPPER"}]}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"UPPER","resources":{"requests":{"cpu":"-1"}},"ports":[{"containerPort":0}]},{"name":"b"}]}}}}"#,
        ],
        field: ("/spec/template/spec/containers/0/image", "\"podinfo:6.0.0\"", "\"podinfo:6.0.2\""),
        status: &[
            r#"{"status":{"replicas":2,"readyReplicas":1,"observedGeneration":1}}"#,
            r#"{"status":{"conditions":[{"type":"Available","status":"True","reason":"Fine","message":"m"}]}}"#,
            r#"{"status":{"replicas":-1}}"#,
            r#"{"status":{"replicas":1,"readyReplicas":5}}"#,
        ],
        scale: true,
        selectable: &["metadata.name=a", "metadata.namespace=<<ns>>", "spec.replicas=1", "status.phase=x"],
    },
    Kind {
        version: "apps/v1",
        plural: "replicasets",
        kind: "ReplicaSet",
        weight: 2,
        sample: r#"{"spec":{"replicas":1,"selector":{"matchLabels":{"app":"podinfo"}},"template":{"metadata":{"labels":{"app":"podinfo"}},"spec":{"containers":[{"name":"podinfod","image":"podinfo:6.0.0"}]}}}}"#,
        changes: &[r#"{"spec":{"replicas":0}}"#, r#"{"spec":{"minReadySeconds":3}}"#],
        faults: &[
            r#"{"spec":{"replicas":-1}}"#,
            r#"{"spec":{"selector":{"matchLabels":{"app":"other"}}}}"#,
            r#"{"spec":{"template":{"metadata":{"labels":{"app":"other"}}}}}"#,
        ],
        field: ("/spec/replicas", "1", "2"),
        status: &[
            r#"{"status":{"replicas":1,"fullyLabeledReplicas":1}}"#,
            r#"{"status":{"replicas":1,"conditions":[{"type":"ReplicaFailure","status":"True"}]}}"#,
        ],
        scale: true,
        selectable: &["status.replicas=0", "spec.replicas=0"],
    },
    Kind {
        version: "apps/v1",
        plural: "controllerrevisions",
        kind: "ControllerRevision",
        weight: 5,
        sample: r#"{"revision":1,"data":{"spec":{"template":{"x":[1,2]}}}}"#,
        changes: &[r#"{"revision":2}"#, r#"{"metadata":{"annotations":{"seaway":"1"}}}"#],
        faults: &[
            r#"{"data":{"spec":{"template":{"x":[1,2,3]}}}}"#,
            r#"{"revision":-1}"#,
            r#"{"revision":"one"}"#,
            r#"{"data":null}"#,
        ],
        field: ("/revision", "1", "4"),
        status: &[],
        scale: false,
        selectable: &["metadata.name=b", "revision=1"],
    },
    Kind {
        version: "autoscaling/v2",
        plural: "horizontalpodautoscalers",
        kind: "HorizontalPodAutoscaler",
        weight: 6,
        sample: r#"{"spec":{"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"podinfo"},"minReplicas":2,"maxReplicas":4,"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":99}}}]}}"#,
        changes: &[
            r#"{"spec":{"maxReplicas":6}}"#,
            r#"{"spec":{"minReplicas":null}}"#,
            r#"{"spec":{"metrics":null}}"#,
            r#"{"spec":{"behavior":{"scaleDown":{"stabilizationWindowSeconds":60}}}}"#,
            r#"{"spec":{"scaleTargetRef":{"name":"podinfo-primary"}}}"#,
        ],
        faults: &[
            r#"{"spec":{"maxReplicas":0}}"#,
            r#"{"spec":{"maxReplicas":1}}"#,
            r#"{"spec":{"minReplicas":0}}"#,
            r#"{"spec":{"scaleTargetRef":{"name":""}}}"#,
            r#"{"spec":{"scaleTargetRef":null}}"#,
            r#"{"spec":{"metrics":[{"type":"Nope"}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource"}]}}"#,
            r#"{"spec":{"minReplicas":0,"maxReplicas":0}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"","target":{"type":"Odd","averageUtilization":0}}}]}}"#,
            r#"{"spec":{"scaleTargetRef":{"kind":"a/b","apiVersion":"x/y/z"}}}"#,
            r#"{"spec":{"behavior":{"scaleUp":{"selectPolicy":"Odd"}}}}"#,
            r#"{"spec":{"maxReplicas":"x"}}"#,
        ],
        field: ("/spec/maxReplicas", "4", "5"),
        status: &[
            r#"{"status":{"currentReplicas":2,"desiredReplicas":3}}"#,
            r#"{"status":{"currentReplicas":2,"desiredReplicas":-1}}"#,
            r#"{"status":{"currentReplicas":-2,"desiredReplicas":-1}}"#,
            r#"{"status":{"conditions":[{"type":"ScalingActive","status":"True"}]}}"#,
        ],
        scale: false,
        selectable: &["metadata.name=c", "spec.maxReplicas=4"],
    },
    Kind {
        version: "coordination.k8s.io/v1",
        plural: "leases",
        kind: "Lease",
        weight: 8,
        sample: r#"{"spec":{"holderIdentity":"one","leaseDurationSeconds":15,"acquireTime":"2026-01-02T03:04:05.000000Z","renewTime":"2026-01-02T03:04:05.123456Z","leaseTransitions":0}}"#,
        changes: &[
            r#"{"spec":{"renewTime":"2026-01-02T03:04:15.654321Z"}}"#,
            r#"{"spec":{"holderIdentity":"two","leaseTransitions":1}}"#,
            r#"{"spec":{"holderIdentity":null}}"#,
            r#"{"spec":null}"#,
        ],
        faults: &[
            r#"{"spec":{"leaseDurationSeconds":0}}"#,
            r#"{"spec":{"leaseTransitions":-1}}"#,
            r#"{"spec":{"renewTime":"yesterday"}}"#,
            r#"{"spec":{"holderIdentity":""}}"#,
            r#"{"spec":{"holder":"x"}}"#,
            r#"{"spec":{"renewTime":5}}"#,
            r#"{"spec":{"leaseDurationSeconds":1.5}}"#,
        ],
        field: ("/spec/holderIdentity", "\"one\"", "\"two\""),
        status: &[],
        scale: false,
        selectable: &["metadata.name=a", "spec.holderIdentity=one"],
    },
    Kind {
        version: "v1",
        plural: "events",
        kind: "Event",
        weight: 6,
        sample: r#"{"involvedObject":{"apiVersion":"flagger.app/v1beta1","kind":"Canary","namespace":"<<ns>>","name":"podinfo","uid":"u-1"},"reason":"Synced","message":"New revision detected","type":"Normal","count":1,"firstTimestamp":"2026-01-02T03:04:05Z","lastTimestamp":"2026-01-02T03:04:05Z","source":{"component":"seaway"},"reportingComponent":"seaway","reportingInstance":"seaway-0"}"#,
        changes: &[
            r#"{"count":2,"lastTimestamp":"2026-01-02T03:05:05Z"}"#,
            r#"{"message":"Advance podinfo.test canary weight 10"}"#,
            r#"{"type":"Warning"}"#,
        ],
        faults: &[
            r#"{"involvedObject":{"namespace":"elsewhere"}}"#,
            r#"{"involvedObject":null}"#,
            r#"{"count":"many"}"#,
            r#"{"eventTime":"2026-01-02T03:04:05.000000Z"}"#,
        ],
        field: ("/count", "1", "2"),
        status: &[],
        scale: false,
        selectable: &[
            "involvedObject.name=podinfo",
            "reason=Synced,type=Normal",
            "involvedObject.uid!=u-1",
            "type=Warning",
            "source=seaway",
            "source!=seaway",
            "message=x",
        ],
    },
    Kind {
        version: "v1",
        plural: "pods",
        kind: "Pod",
        weight: 2,
        sample: r#"{"spec":{"containers":[{"name":"podinfod","image":"podinfo:6.0.0"}]}}"#,
        changes: &[r#"{"metadata":{"annotations":{"seen":"yes"}}}"#, r#"{"spec":{"activeDeadlineSeconds":100}}"#],
        faults: &[
            r#"{"spec":{"hostname":"other"}}"#,
            r#"{"spec":{"containers":[]}}"#,
            r#"{"spec":{"restartPolicy":"Sometimes"}}"#,
            r#"{"spec":{"restartPolicy":"Sometimes","dnsPolicy":"Nope"}}"#,
            r#"{"spec":{"containers":[{"name":"a","image":"x"},{"name":"a","image":"y"}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"1"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"requests":{"cpu":"0.5"},"limits":{"memory":"1024Ki"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"requests":{"cpu":"-1"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"limits":{"memory":"lots"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"requests":{"widgets":"1"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","resources":{"limits":{"example.com/w":"1.5"}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","ports":[{"containerPort":0}]}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","ports":[{"containerPort":70000,"name":"UPPER","protocol":"ICMP"}]}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","ports":[{"containerPort":80,"name":"http"},{"containerPort":81,"name":"http"}]}]}}"#,
            r#"{"spec":{"containers":[{"name":"UP","image":""},{"name":"b","image":" x "}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","imagePullPolicy":"Maybe","env":[{"name":"A=B","value":"1"},{"name":"A","valueFrom":{}}]}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","livenessProbe":{"httpGet":{"path":"/","port":0}}}]}}"#,
            r#"{"spec":{"containers":[{"name":"podinfod","image":"x","volumeMounts":[{"name":"v","mountPath":"/x"}]}]}}"#,
            r#"{"spec":{"volumes":[{"name":"v"},{"name":"v","emptyDir":{}}]}}"#,
            r#"{"spec":{"initContainers":[{"name":"podinfod","image":"x"},{"name":"i"}]}}"#,
            r#"{"spec":{"activeDeadlineSeconds":0,"hostname":"Bad_Host"}}"#,
        ],
        field: ("/spec/containers/0/image", "\"podinfo:6.0.0\"", "\"podinfo:6.0.1\""),
        status: &[
            r#"{"status":{"phase":"Running","podIP":"10.244.0.9"}}"#,
            r#"{"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#,
            r#"{"status":{"containerStatuses":[{"name":"podinfod","ready":true,"image":"x:1","imageID":"","restartCount":0}]}}"#,
        ],
        scale: false,
        selectable: &["status.phase=Pending", "spec.nodeName=", "spec.containers=x"],
    },
    Kind {
        version: "flagger.app/v1beta1",
        plural: "canaries",
        kind: "Canary",
        weight: 14,
        sample: r#"{"spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"podinfo"},"progressDeadlineSeconds":60,"service":{"port":9898,"hosts":["www.example.com"],"gatewayRefs":[{"name":"gateway","namespace":"istio-ingress"}]},"analysis":{"interval":"1m","threshold":5,"maxWeight":50,"stepWeight":10,"metrics":[{"name":"error-rate","templateRef":{"name":"error-rate","namespace":"flagger-system"},"thresholdRange":{"max":1},"interval":"1m"}]}}}"#,
        changes: &[
            r#"{"spec":{"skipAnalysis":true}}"#,
            r#"{"spec":{"suspend":true}}"#,
            r#"{"spec":{"analysis":{"stepWeight":null,"stepWeights":[1,2,10]}}}"#,
            r#"{"spec":{"analysis":{"webhooks":[{"name":"load-test","url":"http://flagger-loadtester.test/","timeout":"5s","metadata":{"cmd":"hey"}}]}}}"#,
            r#"{"spec":{"service":{"timeout":"15s","retries":{"attempts":3}}}}"#,
            r#"{"spec":{"autoscalerRef":{"kind":"HorizontalPodAutoscaler","name":"podinfo"}}}"#,
            r#"{"spec":{"service":{"port":80.0},"analysis":{"stepWeight":null,"stepWeights":[5.0,1e1]}}}"#,
        ],
        faults: &[
            r#"{"spec":{"targetRef":null}}"#,
            r#"{"spec":{"targetRef":{"kind":"Job"}}}"#,
            r#"{"spec":{"progressDeadlineSeconds":"soon"}}"#,
            r#"{"spec":{"analysis":{"interval":"often"}}}"#,
            r#"{"spec":{"analysis":{"metrics":[{"interval":"1m"}]}}}"#,
            r#"{"spec":{"analysis":{"stepWeight":"ten"}}}"#,
            r#"{"spec":{"nonsense":{"a":1}}}"#,
            r#"{"spec":{"service":{"port":"http"}}}"#,
            r#"{"spec":{"analysis":{"threshold":1.5}}}"#,
            r#"{"spec":{"analysis":{"webhooks":[{"name":"w","type":"wrong","url":"http://x/"}]}}}"#,
            r#"{"spec":"text"}"#,
            r#"{"spec":{"analysis":null}}"#,
            r#"{"spec":null}"#,
        ],
        field: ("/spec/analysis/maxWeight", "50", "60"),
        status: &[
            r#"{"status":{"phase":"Initialized","canaryWeight":0,"failedChecks":0,"iterations":0,"lastTransitionTime":"2026-01-02T03:04:05Z"}}"#,
            r#"{"status":{"phase":"Progressing","canaryWeight":10,"conditions":[{"type":"Promoted","status":"Unknown","reason":"Progressing","message":"m","lastTransitionTime":"2026-01-02T03:04:05Z","lastUpdateTime":"2026-01-02T03:04:05Z"}]}}"#,
            r#"{"status":{"phase":"Sleeping"}}"#,
            r#"{"status":{"canaryWeight":"ten"}}"#,
            r#"{"status":{"canaryWeight":20.0,"failedChecks":1e0}}"#,
            r#"{"status":{"lastTransitionTime":"2026-01-02 03:04:05Z"}}"#,
            r#"{"status":{"lastTransitionTime":"2026-13-02T03:04:05Z"}}"#,
            r#"{"status":{"lastTransitionTime":"2026-01-02t03:04:05.5+02:00"}}"#,
            r#"{"status":{"conditions":[{"type":"Promoted","status":"Unknown","reason":"r","lastUpdateTime":"x"}]}}"#,
            r#"{"status":{"phase":"Failed","unknown":1}}"#,
        ],
        scale: false,
        selectable: &["metadata.name=a", "metadata.name!=a,metadata.namespace=<<ns>>", "status.phase=Failed"],
    },
    Kind {
        version: "flagger.app/v1beta1",
        plural: "metrictemplates",
        kind: "MetricTemplate",
        weight: 4,
        sample: r#"{"spec":{"provider":{"type":"prometheus","address":"http://prometheus:9090"},"query":"sum(x)"}}"#,
        changes: &[r#"{"spec":{"query":"sum(y)"}}"#, r#"{"spec":{"provider":{"secretRef":{"name":"s"}}}}"#],
        faults: &[
            r#"{"spec":{"provider":{"type":"abacus"}}}"#,
            r#"{"spec":{"provider":null}}"#,
            r#"{"spec":{"query":7}}"#,
            r#"{"spec":{"extra":"x"}}"#,
        ],
        field: ("/spec/query", "\"sum(x)\"", "\"sum(z)\""),
        status: &[],
        scale: false,
        selectable: &["metadata.name=a", "spec.query=x"],
    },
    Kind {
        version: "flagger.app/v1beta1",
        plural: "alertproviders",
        kind: "AlertProvider",
        weight: 2,
        sample: r#"{"spec":{"type":"slack","channel":"general","username":"seaway","address":"http://hooks"}}"#,
        changes: &[r#"{"spec":{"channel":"alerts"}}"#, r#"{"spec":{"secretRef":{"name":"s"}}}"#],
        faults: &[r#"{"spec":{"type":"pigeon"}}"#, r#"{"spec":{"channel":[1]}}"#, r#"{"spec":null}"#],
        field: ("/spec/channel", "\"general\"", "\"alerts\""),
        status: &[],
        scale: false,
        selectable: &["metadata.name=a"],
    },
    Kind {
        version: "gateway.networking.k8s.io/v1",
        plural: "httproutes",
        kind: "HTTPRoute",
        weight: 10,
        sample: r#"{"spec":{"parentRefs":[{"name":"gateway","namespace":"istio-ingress"}],"hostnames":["www.example.com"],"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"/"}}],"backendRefs":[{"name":"podinfo-primary","port":9898,"weight":100},{"name":"podinfo-canary","port":9898,"weight":0}]}]}}"#,
        changes: &[
            r#"{"spec":{"hostnames":["a.example.com","b.example.com"]}}"#,
            r#"{"spec":{"rules":[{"backendRefs":[{"name":"podinfo-primary","port":9898}]}]}}"#,
            r#"{"spec":{"rules":[{"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"x","value":"y"}]}}],"backendRefs":[{"name":"podinfo-primary","port":9898}]}]}}"#,
            r#"{"spec":{"rules":null}}"#,
        ],
        faults: &[
            r#"{"spec":{"hostnames":["UPPER"]}}"#,
            r#"{"spec":{"rules":[{"backendRefs":[{"name":"podinfo","port":9898,"weight":-1}]}]}}"#,
            r#"{"spec":{"rules":[{"backendRefs":[{"name":"podinfo"}]}]}}"#,
            r#"{"spec":{"rules":[{"matches":[{"path":{"type":"Sideways","value":"/"}}]}]}}"#,
            r#"{"spec":{"rules":[{"matches":[{"path":{"type":"PathPrefix","value":"no-slash"}}]}]}}"#,
            r#"{"spec":{"rules":[{"filters":[{"type":"RequestMirror"}]}]}}"#,
            r#"{"spec":{"rules":[{"backendRefs":[{"port":1}]}]}}"#,
            r#"{"spec":{"rules":[{"timeouts":{"request":"1h1h"}}]}}"#,
        ],
        field: ("/spec/rules/0/backendRefs/0/weight", "100", "90"),
        status: &[
            r#"{"status":{"parents":[]}}"#,
            r#"{"status":{"parents":[{"controllerName":"example.com/c","parentRef":{"name":"gateway"},"conditions":[{"type":"Accepted","status":"True","reason":"Accepted","message":"","lastTransitionTime":"2026-01-02T03:04:05Z","observedGeneration":1}]}]}}"#,
            r#"{"status":{"parents":[{"parentRef":{"name":"gateway"}}]}}"#,
        ],
        scale: false,
        selectable: &["metadata.name=a", "spec.hostnames=x"],
    },
];
