//! Binds pods to the node and keeps a worker for each of them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status};
use kube::api::PostParams;
use kube::{Client, ResourceExt};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};

use super::address::Addresses;
use super::kubelet::{Interior, Interiors, Listed};
use super::node::{NODE, register};
use super::worker::Worker;
use super::{Outward, PodOptions, Programs};
use crate::controllers::objects::{Key, Objects};
use crate::controllers::queue::{Queue, Reconcile};
use crate::controllers::{is_finished, wake_itself};
use crate::{Clock, Net, Seed};

/// How long to wait before the node is registered again after a failure.
const REGISTER_RETRY: Duration = Duration::from_secs(1);

/// What every pod of the node shares.
pub(super) struct Site {
    pub(super) clock: Clock,
    pub(super) net: Net,
    pub(super) seed: Seed,
    pub(super) programs: Programs,
    pub(super) options: PodOptions,
    pub(super) interiors: Arc<Interiors>,
    pub(super) outward: Outward,
}

pub(super) fn start(client: &Client, site: Site) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let clock = site.clock;
    let pods = Objects::<Pod>::new(client.clone());
    let queue = Queue::new(clock);
    wake_itself(&pods, &queue);
    let runner = Runner {
        site: Arc::new(site),
        client: client.clone(),
        pods: pods.clone(),
        addresses: Addresses::default(),
        jobs: Mutex::default(),
    };
    let client = client.clone();
    let listed = pods.clone();
    tasks.spawn(async move {
        while let Err(error) = register(&client, &clock).await {
            tracing::debug!(%error, "cannot register the node");
            clock.sleep(REGISTER_RETRY).await;
        }
        listed.listed().await;
        queue.drive(runner).await;
    });
    tasks.spawn(pods.run(clock));
    tasks
}

struct Runner {
    site: Arc<Site>,
    client: Client,
    pods: Objects<Pod>,
    addresses: Addresses,
    jobs: Mutex<BTreeMap<Key, Job>>,
}

/// A running worker. Dropping it ends the pod at once.
struct Job {
    uid: Option<String>,
    pod: watch::Sender<Arc<Pod>>,
    worker: AbortHandle,
    _listed: Listed,
}

impl Drop for Job {
    fn drop(&mut self) {
        self.worker.abort();
    }
}

impl Reconcile for Runner {
    const NAME: &'static str = "pods";

    async fn reconcile(&self, key: &Key) -> kube::Result<Option<Timestamp>> {
        let Some(pod) = self.pods.get(key) else {
            self.jobs().remove(key);
            return Ok(None);
        };
        {
            let mut jobs = self.jobs();
            match jobs.get(key) {
                Some(job) if job.uid == pod.metadata.uid => {
                    job.pod.send_replace(pod);
                    return Ok(None);
                }
                // Somebody else of the same name: the old one must be gone.
                Some(_) => drop(jobs.remove(key)),
                None => {}
            }
        }
        let spec = pod.spec.as_ref();
        match spec.and_then(|spec| spec.node_name.as_deref()) {
            None if pod.metadata.deletion_timestamp.is_none() => self.bind(key, &pod).await?,
            None => self.pods.delete(&pod, Some(0)).await?,
            Some(NODE) if pod.metadata.deletion_timestamp.is_some() => self.pods.delete(&pod, Some(0)).await?,
            Some(NODE) if !is_finished(&pod) => self.run(key, pod),
            // Finished, or on a node that is not ours.
            Some(_) => {}
        }
        Ok(None)
    }
}

impl Runner {
    async fn bind(&self, key: &Key, pod: &Pod) -> kube::Result<()> {
        let binding = Binding {
            metadata: ObjectMeta {
                name: Some(key.name.clone()),
                namespace: Some(key.namespace.clone()),
                uid: pod.uid(),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                api_version: Some("v1".into()),
                kind: Some("Node".into()),
                name: Some(NODE.into()),
                ..ObjectReference::default()
            },
        };
        let api = self.pods.api(&key.namespace);
        let bound = api.create_subresource::<_, Status>("binding", &key.name, &PostParams::default(), &binding).await;
        match bound {
            // The pod went while it was being bound; the watch says the rest.
            Err(kube::Error::Api(refusal)) if refusal.code == 404 => Ok(()),
            other => other.map(|_| ()),
        }
    }

    fn run(&self, key: &Key, pod: Arc<Pod>) {
        let Some(lease) = self.addresses.lease() else {
            tracing::warn!(pod = %key, "no free pod address");
            return;
        };
        let uid = pod.metadata.uid.clone();
        let (sender, receiver) = watch::channel(pod);
        let interior = Arc::new(Interior::new(lease.ip()));
        let listed = self.site.interiors.list(key.clone(), interior.clone());
        let worker = Worker::new(self.site.clone(), self.client.clone(), self.pods.clone(), receiver, lease, interior);
        let worker = tokio::spawn(worker.run()).abort_handle();
        self.jobs().insert(key.clone(), Job { uid, pod: sender, worker, _listed: listed });
    }

    fn jobs(&self) -> MutexGuard<'_, BTreeMap<Key, Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
