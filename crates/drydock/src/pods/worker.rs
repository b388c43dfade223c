//! One pod's life: create its containers, restart them when they end, follow their probes, drain at the end.
//!
//! A worker is one task that owns the pod's containers and its address. It writes the pod's status when that changed
//! and at no other time. When the task is dropped, everything it owns ends with it.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container as Spec, Pod, PodStatus};
use kube::{Client, ResourceExt};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::Lease;
use super::backoff::Backoff;
use super::environment::{self, EnvironmentError};
use super::image::Image;
use super::kubelet::{Interior, KILLED};
use super::probe::{Finding, Prober};
use super::runner::Site;
use super::server::Server;
use super::status::{Conditions, End, Shown, State, status};
use super::{Life, PodContext, Program, at};
use crate::controllers::objects::{Key, Objects};

/// How long an image is looked for before the search is called off for a while.
const PULL: Duration = Duration::from_secs(10);
/// How long to wait before looking again for a ConfigMap or Secret that is missing.
const CONFIG_RETRY: Duration = Duration::from_secs(10);
/// How long to wait before a status that could not be written is tried again.
const WRITE_RETRY: Duration = Duration::from_secs(1);
/// Grace of a pod that names none.
const DEFAULT_GRACE: u64 = 30;
/// The least real time between the news that a pod leaves and its leaving. News travels in real time, however fast the
/// clock runs.
const NEWS: Duration = Duration::from_millis(500);

/// Runs one pod.
pub(super) struct Worker {
    site: Arc<Site>,
    client: Client,
    pods: Objects<Pod>,
    pod: watch::Receiver<Arc<Pod>>,
    lease: Lease,
    interior: Arc<Interior>,
    begun: Timestamp,
    containers: Vec<Container>,
    conditions: Conditions,
    signals: mpsc::UnboundedReceiver<Signal>,
    sender: mpsc::UnboundedSender<Signal>,
    written: Option<PodStatus>,
    retry_write: Option<Timestamp>,
}

struct Container {
    spec: Spec,
    shown: Shown,
    /// What happens next without anything else happening, and when.
    next: Option<(Timestamp, Step)>,
    backoff: Backoff,
    run: Option<Run>,
    /// Servers of the last run, if they are not yet known to have given back their addresses.
    dying: JoinSet<()>,
    /// Tells this run's signals from those of a run before.
    runs: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Start,
    StopPulling,
}

/// What lives while a container runs. Dropping it kills the container.
struct Run {
    servers: Vec<Server>,
    tasks: JoinSet<()>,
    _over: DropGuard,
}

enum News {
    Exited(i32),
    Found(Finding),
}

struct Signal {
    container: usize,
    run: u32,
    news: News,
}

impl Worker {
    pub(super) fn new(
        site: Arc<Site>,
        client: Client,
        pods: Objects<Pod>,
        pod: watch::Receiver<Arc<Pod>>,
        lease: Lease,
        interior: Arc<Interior>,
    ) -> Self {
        let begun = site.clock.now();
        let first = begun + site.options.start_up;
        let specs = pod.borrow().spec.as_ref().map(|spec| spec.containers.clone()).unwrap_or_default();
        let containers = specs.into_iter().map(|spec| Container::new(spec, first)).collect();
        let (sender, signals) = mpsc::unbounded_channel();
        Self {
            site,
            client,
            pods,
            pod,
            lease,
            interior,
            begun,
            containers,
            conditions: Conditions::default(),
            signals,
            sender,
            written: None,
            retry_write: None,
        }
    }

    /// Runs the pod until it is deleted and drained, or has ended for good.
    pub(super) async fn run(mut self) {
        loop {
            if self.pod.borrow_and_update().metadata.deletion_timestamp.is_some() {
                return self.terminate().await;
            }
            self.advance().await;
            while let Ok(signal) = self.signals.try_recv() {
                self.handle(&signal);
            }
            // A container that ended at once may be due again; its steps come before the status is worth writing.
            if !self.is_due() {
                self.write().await;
            }
            let next = self.next();
            let clock = self.site.clock;
            tokio::select! {
                biased;
                changed = self.pod.changed() => if changed.is_err() { return },
                Some(signal) = self.signals.recv() => self.handle(&signal),
                () = async { clock.sleep_until(next.unwrap_or_default()).await }, if next.is_some() => {}
            }
        }
    }

    fn next(&self) -> Option<Timestamp> {
        let steps = self.containers.iter().filter_map(|container| container.next.map(|(when, _)| when));
        steps.chain(self.retry_write).min()
    }

    fn is_due(&self) -> bool {
        let now = self.site.clock.now();
        self.containers.iter().any(|container| container.next.is_some_and(|(when, _)| when <= now))
    }

    async fn advance(&mut self) {
        let now = self.site.clock.now();
        for index in 0..self.containers.len() {
            let Some(container) = self.containers.get_mut(index) else { continue };
            match container.next.filter(|(when, _)| *when <= now) {
                Some((_, Step::Start)) => {
                    container.next = None;
                    self.start(index).await;
                }
                Some((_, Step::StopPulling)) => {
                    container.next = None;
                    let message = Some(format!("Back-off pulling image \"{}\"", container.shown.image));
                    container.shown.state = State::Waiting { reason: "ImagePullBackOff", message };
                }
                None => {}
            }
        }
    }

    async fn start(&mut self, index: usize) {
        let now = self.site.clock.now();
        let pod = self.pod.borrow().clone();
        let Some(container) = self.containers.get_mut(index) else { return };
        let image = Image::parse(&container.shown.image);
        let Some(program) = self.site.programs.find(&image) else {
            let message = Some(format!("no program is known for the image \"{}\": not found", container.shown.image));
            container.shown.state = State::Waiting { reason: "ErrImagePull", message };
            container.next = Some((now + PULL, Step::StopPulling));
            return;
        };
        let env = match environment::resolve(&self.client, &pod, &container.spec, self.lease.ip()).await {
            Ok(env) => env,
            Err(error) => {
                if let EnvironmentError::Missing(text) = &error {
                    let message = Some(text.clone());
                    container.shown.state = State::Waiting { reason: "CreateContainerConfigError", message };
                }
                container.next = Some((now + CONFIG_RETRY, Step::Start));
                return;
            }
        };
        if container.runs > 0 {
            container.shown.restarts += 1;
        }
        container.runs += 1;
        let (exit, exits) = mpsc::unbounded_channel();
        let over = CancellationToken::new();
        let context = PodContext {
            namespace: pod.namespace().unwrap_or_default(),
            name: pod.name_any(),
            container: container.spec.name.clone(),
            ip: self.lease.ip(),
            image: container.shown.image.clone(),
            tag: image.tag,
            env,
            command: container.spec.command.clone().unwrap_or_default(),
            args: container.spec.args.clone().unwrap_or_default(),
            labels: pod.labels().clone(),
            clock: self.site.clock,
            net: self.site.net.clone(),
            seed: self.site.seed.fork(&format!("{}/{}", pod.uid().unwrap_or_default(), container.spec.name)),
            log: self.interior.begin(&container.spec.name),
            outward: self.site.outward.clone(),
            life: Life { exit, over: over.clone() },
        };
        while container.dying.join_next().await.is_some() {}
        let mut run = Run { servers: Vec::new(), tasks: JoinSet::new(), _over: over.drop_guard() };
        container.shown.state = State::Running { since: now };
        let route = Route { container: index, run: container.runs, sender: self.sender.clone() };
        let mut ports = Vec::new();
        for (port, router) in program.launch(&context) {
            ports.push(port);
            match Server::start(&self.site.net, at(self.lease.ip(), port), router).await {
                Ok(server) => run.servers.push(server),
                Err(error) => {
                    tracing::debug!(pod = %context.name, port, %error, "the port cannot be served");
                    context.exit(1);
                }
            }
        }
        self.interior.runs(&container.spec.name, program.clone(), context, ports);
        let findings = route.clone().findings(&mut run.tasks);
        route.exits(exits, &mut run.tasks);
        let prober = Prober {
            ip: self.lease.ip(),
            container: container.spec.clone(),
            program: program as Arc<dyn Program>,
            clock: self.site.clock,
            net: self.site.net.clone(),
            findings,
        };
        run.tasks.spawn(prober.run());
        container.run = Some(run);
    }

    fn handle(&mut self, signal: &Signal) {
        let now = self.site.clock.now();
        let always = self.restarts();
        let name = self.pod.borrow().name_any();
        let Some(container) = self.containers.get_mut(signal.container) else { return };
        if container.runs != signal.run || container.run.is_none() {
            return;
        }
        match &signal.news {
            News::Found(Finding::Started) => container.shown.started = true,
            News::Found(Finding::Ready(ready)) => container.shown.ready = *ready,
            News::Found(Finding::Unhealthy) => container.end(KILLED, now, always, &name),
            News::Exited(code) => container.end(*code, now, always, &name),
        }
        if container.run.is_none() {
            self.interior.ended(&container.spec.name, container.next.is_some());
        }
    }

    fn restarts(&self) -> Restart {
        let policy = self.pod.borrow().spec.as_ref().and_then(|spec| spec.restart_policy.clone());
        match policy.as_deref() {
            Some("Never") => Restart::Never,
            Some("OnFailure") => Restart::OnFailure,
            _ => Restart::Always,
        }
    }

    fn phase(&self) -> &'static str {
        let ended = |container: &Container| match &container.shown.state {
            State::Ended(end) if container.next.is_none() && container.run.is_none() => Some(end.code),
            _ => None,
        };
        let codes: Vec<_> = self.containers.iter().map(ended).collect();
        if codes.iter().all(Option::is_some) {
            return if codes.iter().all(|code| *code == Some(0)) { "Succeeded" } else { "Failed" };
        }
        if self.containers.iter().any(|container| container.runs == 0) { "Pending" } else { "Running" }
    }

    async fn write(&mut self) {
        let now = self.site.clock.now();
        let shown: Vec<_> = self.containers.iter().map(|container| container.shown.clone()).collect();
        for container in &shown {
            if let State::Waiting { reason, .. } = container.state {
                self.interior.waiting(&container.name, reason);
            }
        }
        let phase = self.phase();
        let status = status(&shown, &mut self.conditions, phase, self.lease.ip(), self.begun, now);
        self.retry_write = None;
        if self.written.as_ref() == Some(&status) {
            return;
        }
        let pod = self.pod.borrow().clone();
        // The uid keeps a status from reaching a later pod of the same name.
        let patch = json!({"metadata": {"uid": pod.metadata.uid}, "status": status});
        match self.pods.merge_status(&Key::of(pod.as_ref()), &patch).await {
            Ok(_) => self.written = Some(status),
            Err(error) => {
                tracing::debug!(pod = %pod.name_any(), %error, "cannot write the status");
                self.retry_write = Some(now + WRITE_RETRY);
            }
        }
    }

    /// Goes on serving while everyone learns that the pod leaves, then stops, waits for requests in flight, and goes.
    async fn terminate(mut self) {
        let pod = self.pod.borrow().clone();
        let grace = pod.metadata.deletion_grace_period_seconds.and_then(|grace| u64::try_from(grace).ok());
        let grace = Duration::from_secs(grace.unwrap_or(DEFAULT_GRACE));
        let drains = !self.site.options.drain.is_zero();
        if drains && self.containers.iter().any(|container| container.run.is_some()) {
            let heard = tokio::time::sleep(NEWS.min(grace));
            let drained = self.site.clock.sleep(self.site.options.drain.min(grace));
            futures::join!(heard, drained);
        }
        let servers: Vec<_> = self
            .containers
            .iter_mut()
            .flat_map(|container| {
                container.run.as_mut().map(|run| std::mem::take(&mut run.servers)).unwrap_or_default()
            })
            .collect();
        servers.iter().for_each(Server::stop);
        // Requests take real time, so the time they are given is real too.
        let all = servers.into_iter().map(|server| server.drain(grace));
        futures::future::join_all(all).await;
        while let Err(error) = self.pods.delete(&pod, Some(0)).await {
            tracing::debug!(pod = %pod.name_any(), %error, "cannot remove the pod");
            if matches!(&error, kube::Error::Api(refusal) if refusal.code == 409) {
                return;
            }
            self.site.clock.sleep(WRITE_RETRY).await;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Restart {
    Always,
    OnFailure,
    Never,
}

impl Container {
    fn new(spec: Spec, first: Timestamp) -> Self {
        let shown = Shown {
            name: spec.name.clone(),
            image: spec.image.clone().unwrap_or_default(),
            state: State::Waiting { reason: "ContainerCreating", message: None },
            last: None,
            restarts: 0,
            started: false,
            ready: false,
        };
        Self {
            spec,
            shown,
            next: Some((first, Step::Start)),
            backoff: Backoff::default(),
            run: None,
            dying: JoinSet::new(),
            runs: 0,
        }
    }

    fn end(&mut self, code: i32, now: Timestamp, restart: Restart, pod: &str) {
        for server in self.run.take().map(|run| run.servers).unwrap_or_default() {
            self.dying.spawn(server.kill());
        }
        self.shown.ready = false;
        self.shown.started = false;
        let started = if let State::Running { since } = self.shown.state { since } else { now };
        let end = End { code, started, finished: now };
        self.shown.state = State::Ended(end.clone());
        if restart == Restart::Never || (restart == Restart::OnFailure && code == 0) {
            return;
        }
        let run = Duration::try_from(now.duration_since(started)).unwrap_or_default();
        let wait = self.backoff.ended_after(run);
        self.next = Some((now + wait, Step::Start));
        self.shown.last = Some(end);
        if !wait.is_zero() {
            let seconds = wait.as_secs();
            let message = format!("back-off {seconds}s restarting failed container={} pod={pod}", self.shown.name);
            self.shown.state = State::Waiting { reason: "CrashLoopBackOff", message: Some(message) };
        }
    }
}

/// Marks what a run reports with the container and the run it came from.
#[derive(Clone)]
struct Route {
    container: usize,
    run: u32,
    sender: mpsc::UnboundedSender<Signal>,
}

impl Route {
    fn send(&self, news: News) {
        // The worker is gone when nobody receives, and with it the reason to report.
        let _ = self.sender.send(Signal { container: self.container, run: self.run, news });
    }

    fn findings(self, tasks: &mut JoinSet<()>) -> mpsc::UnboundedSender<Finding> {
        let (sender, mut receiver) = mpsc::unbounded_channel();
        tasks.spawn(async move {
            while let Some(finding) = receiver.recv().await {
                self.send(News::Found(finding));
            }
        });
        sender
    }

    fn exits(self, mut exits: mpsc::UnboundedReceiver<i32>, tasks: &mut JoinSet<()>) {
        if let Ok(code) = exits.try_recv() {
            // Ended while it was launched: known before anyone could take it for running.
            self.send(News::Exited(code));
            return;
        }
        tasks.spawn(async move {
            if let Some(code) = exits.recv().await {
                self.send(News::Exited(code));
            }
        });
    }
}
