//! Who counts as ready answers somebody.

use jiff::Timestamp;
use seaway_adapters::targets::deployment::observe;
use seaway_core::observed::Readiness;
use serde_json::json;

/// Every small Deployment whose rollout could look complete, at every threshold that rounds in its own way.
#[test]
fn whoever_is_ready_has_a_pod_that_answers() {
    let mut ready = 0;
    for replicas in 0..=4 {
        for updated in 0..=4 {
            for available in 0..=updated {
                for threshold in [-5, 0, 1, 24, 25, 49, 50, 51, 99, 100, 500] {
                    let deployment = json!({
                        "metadata": { "name": "podinfo", "namespace": "test", "generation": 3 },
                        "spec": { "replicas": replicas },
                        "status": {
                            "observedGeneration": 3, "replicas": updated, "updatedReplicas": updated,
                            "readyReplicas": available, "availableReplicas": available,
                            "conditions": [{ "type": "Progressing", "status": "True" }],
                        },
                    });
                    let workload = observe(&deployment, threshold, None, Timestamp::UNIX_EPOCH);
                    let complete = workload.readiness == Readiness::Ready;
                    assert!(!complete || workload.answers(), "ready at {threshold} % without a pod: {deployment}");
                    ready += u32::from(complete);
                }
            }
        }
    }
    assert!(ready > 100, "only {ready} are ready at all");
}
