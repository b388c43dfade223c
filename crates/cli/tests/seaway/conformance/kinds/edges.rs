//! Changes at the edge of what a server accepts: which side they are on is for the server to say.

mod objects;

/// Merge patches of a kind.
pub(super) static EDGES: &[(&str, &[&str])] = &[
    (
        "leases",
        &[
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05Z"}}"#,
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05.123Z"}}"#,
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05.1234567Z"}}"#,
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05.123456789Z"}}"#,
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05.000000+02:00"}}"#,
            r#"{"spec":{"renewTime":"2026-01-02T03:04:05,123456-05:30"}}"#,
            r#"{"spec":{"acquireTime":"2026-13-02T03:04:05.000000Z"}}"#,
            r#"{"spec":{"acquireTime":"2026-01-02 03:04:05.000000Z"}}"#,
            r#"{"spec":{"acquireTime":""}}"#,
        ],
    ),
    (
        "events",
        &[
            r#"{"lastTimestamp":"2026-01-02T03:04:05.999999Z"}"#,
            r#"{"lastTimestamp":"2026-01-02T03:04:05+02:00"}"#,
            r#"{"lastTimestamp":"2026-02-30T03:04:05Z"}"#,
            r#"{"firstTimestamp":"soon"}"#,
        ],
    ),
    (
        "horizontalpodautoscalers",
        &[
            r#"{"spec":{"behavior":{"scaleUp":{"policies":[]}}}}"#,
            r#"{"spec":{"behavior":{"scaleDown":{"policies":[{"type":"Pods","value":1,"periodSeconds":15}]}}}}"#,
            r#"{"spec":{"behavior":{"scaleDown":{"policies":[{"type":"Odd","value":0,"periodSeconds":1801}]}}}}"#,
            r#"{"spec":{"behavior":{"scaleUp":{"selectPolicy":"Disabled","stabilizationWindowSeconds":3601}}}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"0"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"Utilization","averageUtilization":5,"averageValue":"1"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Pods","pods":{"metric":{"name":"a/b"},"target":{"type":"Value","value":"1"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"+1"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"100u"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"0.1n"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"1.500"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"type":"AverageValue","averageValue":"340282366920938463463374607431768211456"}}}]}}"#,
            r#"{"spec":{"metrics":[{"type":"External","external":{"metric":{"name":"queue"},"target":{"type":"AverageValue","averageValue":"10"}}}]}}"#,
        ],
    ),
    (
        "deployments",
        &[
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","livenessProbe":{"httpGet":{"port":80},"tcpSocket":{"port":80}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","readinessProbe":{"exec":{"command":[]}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","readinessProbe":{"grpc":{"port":9999}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","livenessProbe":{"httpGet":{"port":"http","scheme":"FTP"}}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","startupProbe":{"tcpSocket":{"port":0},"successThreshold":2}}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"a.b","image":"x:1","imagePullPolicy":"Maybe"}]}}}}"#,
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"podinfod","image":"x:1","resources":{"requests":{"cpu":"1e3","memory":"1.5Gi"}}}]}}}}"#,
        ],
    ),
    ("secrets", objects::SECRETS),
    ("services", objects::SERVICES),
    ("replicasets", objects::REPLICA_SETS),
    ("controllerrevisions", &[r#"{"revision":0}"#, r#"{"data":"text"}"#, r#"{"revision":2,"data":[1]}"#]),
];
