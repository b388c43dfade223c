//! What goes on inside the pods of this node, for the API server that asks.
//!
//! A worker writes here what its containers do; the server's questions are answered from it. It is held apart from the
//! workers, so that a question neither waits for one nor keeps one alive.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use super::log::Log;
use super::{PodContext, Program, at};
use crate::Net;
use crate::apiserver::{Console, ContainerName, Kubelet, LogOptions, Refusal};
use crate::controllers::objects::Key;

/// Exit code of a process that was killed.
pub(super) const KILLED: i32 = 137;

/// The inside of one pod. Its logs end when it is dropped.
pub(super) struct Interior {
    ip: IpAddr,
    containers: Mutex<BTreeMap<String, Chamber>>,
}

/// The inside of one container.
#[derive(Default)]
struct Chamber {
    /// Why it has not started.
    waiting: Option<&'static str>,
    /// Of the run that goes on, or of the last one.
    log: Option<Log>,
    /// Of the run that ended and was, or will be, followed by another.
    previous: Option<Log>,
    live: Option<Live>,
}

/// A run that goes on.
struct Live {
    program: Arc<dyn Program>,
    context: PodContext,
    ports: Vec<u16>,
}

impl Interior {
    pub(super) fn new(ip: IpAddr) -> Self {
        Self { ip, containers: Mutex::default() }
    }

    fn containers(&self) -> MutexGuard<'_, BTreeMap<String, Chamber>> {
        self.containers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A container waits, and why.
    pub(super) fn waiting(&self, container: &str, reason: &'static str) {
        self.containers().entry(container.to_owned()).or_default().waiting = Some(reason);
    }

    /// A run begins; what it writes goes here.
    pub(super) fn begin(&self, container: &str) -> Log {
        let log = Log::default();
        self.containers().entry(container.to_owned()).or_default().log = Some(log.clone());
        log
    }

    /// The run listens on its ports and can be told to execute commands.
    pub(super) fn runs(&self, container: &str, program: Arc<dyn Program>, context: PodContext, ports: Vec<u16>) {
        let live = Live { program, context, ports };
        self.containers().entry(container.to_owned()).or_default().live = Some(live);
    }

    /// The run is over; with `again` there will be another.
    pub(super) fn ended(&self, container: &str, again: bool) {
        let mut containers = self.containers();
        let Some(chamber) = containers.get_mut(container) else { return };
        chamber.live = None;
        if let Some(log) = &chamber.log {
            log.close();
        }
        if again {
            chamber.previous.clone_from(&chamber.log);
        }
    }
}

impl Drop for Interior {
    fn drop(&mut self) {
        for log in self.containers().values().filter_map(|chamber| chamber.log.as_ref()) {
            log.close();
        }
    }
}

/// The insides of all pods of the node.
pub(super) struct Interiors {
    net: Net,
    table: Mutex<BTreeMap<Key, Arc<Interior>>>,
}

/// Keeps an interior in the table; dropping it takes it out.
pub(super) struct Listed {
    interiors: Arc<Interiors>,
    key: Key,
}

impl Interiors {
    pub(super) fn new(net: Net) -> Self {
        Self { net, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, BTreeMap<Key, Arc<Interior>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets questions about a pod find its inside. There is one pod of a name at a time.
    pub(super) fn list(self: &Arc<Self>, key: Key, interior: Arc<Interior>) -> Listed {
        self.table().insert(key.clone(), interior);
        Listed { interiors: self.clone(), key }
    }

    fn find(&self, namespace: &str, pod: &str) -> Result<Arc<Interior>, Refusal> {
        let found = self.table().get(&Key::new(namespace, pod)).cloned();
        found.ok_or_else(|| Refusal::NotFound(format!("pod {pod:?} does not exist")))
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // Dropped outside the lock of the table: the last handle closes logs.
        let interior = self.interiors.table().remove(&self.key);
        drop(interior);
    }
}

impl Kubelet for Interiors {
    fn logs(&self, of: &ContainerName, options: &LogOptions) -> Result<BoxStream<'static, Bytes>, Refusal> {
        let ContainerName { namespace, pod, container } = of;
        let interior = self.find(namespace, pod)?;
        let containers = interior.containers();
        let chamber = containers.get(container);
        let log = if options.previous {
            chamber.and_then(|chamber| chamber.previous.as_ref()).ok_or_else(|| {
                Refusal::BadRequest(format!("previous terminated container {container:?} in pod {pod:?} not found"))
            })?
        } else {
            chamber.and_then(|chamber| chamber.log.as_ref()).ok_or_else(|| {
                let why = match chamber.and_then(|chamber| chamber.waiting) {
                    Some("ErrImagePull") => "image can't be pulled",
                    Some("ImagePullBackOff") => "trying and failing to pull image",
                    Some(reason) => reason,
                    None => "ContainerCreating",
                };
                Refusal::BadRequest(format!("container {container:?} in pod {pod:?} is waiting to start: {why}"))
            })?
        };
        Ok(log.read(options))
    }

    fn execute(
        &self,
        inside: &ContainerName,
        command: Vec<String>,
        console: Console,
    ) -> Result<BoxFuture<'static, i32>, Refusal> {
        let ContainerName { namespace, pod, container } = inside;
        let interior = self.find(namespace, pod)?;
        let containers = interior.containers();
        let live = containers.get(container).and_then(|chamber| chamber.live.as_ref());
        let live = live.ok_or_else(|| Refusal::Failed(format!("container not found ({container:?})")))?;
        let over = live.context.life.over.clone();
        let execution = live.program.execute(&live.context, command, console);
        // What runs in a container does not outlive it.
        Ok(Box::pin(async move { over.run_until_cancelled(execution).await.unwrap_or(KILLED) }))
    }

    fn ports(&self, namespace: &str, pod: &str) -> Vec<(u16, SocketAddr)> {
        let Ok(interior) = self.find(namespace, pod) else { return Vec::new() };
        let containers = interior.containers();
        let ports = containers.values().filter_map(|chamber| chamber.live.as_ref()).flat_map(|live| &live.ports);
        ports.filter_map(|port| Some((*port, self.net.loopback(at(interior.ip, *port))?))).collect()
    }
}
