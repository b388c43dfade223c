//! Where drydock meets the rest: its clock for the operator, its names for outgoing requests, the load tester as one of
//! its programs. Only values are passed on; nothing is decided here.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use seaway_adapters::http::{Dial, Stream};
use seaway_drydock::names::Names;
use seaway_drydock::pods::{Console, PodContext, Program};

use crate::commands::loadtester::Flags;
use crate::loadtester::{self, Journal, Toolbox};

/// The image under which manifests name the load tester.
pub const LOADTESTER_IMAGE: &str = "flagger-loadtester";

/// The cluster's time, for the operator.
#[derive(Clone, Debug)]
pub struct ClusterClock {
    clock: seaway_drydock::Clock,
    /// Seconds by which the date shown is ahead; time passes as it does.
    ahead: Arc<AtomicI64>,
}

impl ClusterClock {
    /// A clock that agrees with the cluster's.
    pub fn new(clock: seaway_drydock::Clock) -> Self {
        Self::shifted(clock, Arc::default())
    }

    /// A clock whose date is `ahead` of the cluster's by so many seconds, as if somebody had set it; whoever holds the
    /// handle may set it again at any time.
    pub fn shifted(clock: seaway_drydock::Clock, ahead: Arc<AtomicI64>) -> Self {
        Self { clock, ahead }
    }
}

impl seaway_operator::Clock for ClusterClock {
    fn now(&self) -> Timestamp {
        let ahead = SignedDuration::from_secs(self.ahead.load(Ordering::Relaxed));
        self.clock.now().checked_add(ahead).unwrap_or(Timestamp::MAX)
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(self.clock.now().duration_since(Timestamp::UNIX_EPOCH)).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let clock = self.clock;
        Box::pin(async move { clock.sleep(duration).await })
    }
}

/// The cluster's names, for hooks and metric queries.
#[derive(Clone)]
pub struct ClusterDial(pub Names);

impl Dial for ClusterDial {
    fn dial(&self, host: &str, port: u16) -> BoxFuture<'static, io::Result<Stream>> {
        let (names, host) = (self.0.clone(), host.to_owned());
        Box::pin(async move {
            let stream: Stream = Box::new(names.dial(&host, port).await?);
            Ok(stream)
        })
    }
}

/// The load tester as a program of the cluster. Its commands are real processes, so it needs real sockets: on loopback,
/// where other programs of the machine can call it (web pages cannot, see the load tester's server).
#[derive(Clone, Debug, Default)]
pub struct LoadTester {
    proxy: Arc<OnceLock<SocketAddr>>,
    toolbox: Option<Arc<Toolbox>>,
}

impl LoadTester {
    /// A load tester whose commands find our tools in `toolbox`.
    pub fn new(toolbox: Arc<Toolbox>) -> Self {
        Self { proxy: Arc::default(), toolbox: Some(toolbox) }
    }

    /// Tells where the cluster's resolving proxy listens, which is known only once the cluster runs. Pods that were
    /// started before do not learn it.
    pub fn reach_through(&self, proxy: SocketAddr) {
        // Set twice only if one program is given to two clusters; the first one keeps it.
        let _ = self.proxy.set(proxy);
    }

    /// The port and the rest of what a pod's flags and its place in the cluster mean.
    fn options(&self, pod: &PodContext) -> anyhow::Result<(u16, loadtester::Options)> {
        let args = pod.command.iter().skip(1).chain(&pod.args).map(OsString::from);
        let flags = Flags::parse(args)?;
        let said = pod.clone();
        let journal = Journal::to(move |mut line| {
            line["ts"] = format!("{:.3}", said.clock.now()).into();
            said.log(&line.to_string());
        });
        let options = loadtester::Options {
            // The user name of the proxy's URL is the namespace in which short names are looked up, the password is
            // what localhost means.
            proxy: self.proxy.get().map(|address| format!("http://{}:{}@{address}", pod.namespace, pod.ip)),
            clock_speed: Some(pod.clock.speed()),
            toolbox: self.toolbox.clone(),
            journal,
            ..flags.options()?
        };
        Ok((flags.port(), options))
    }
}

impl Program for LoadTester {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        match self.options(pod) {
            Ok((port, options)) => {
                options.journal.say("info", "starting load tester", &[("port", &port.to_string())]);
                vec![(port, loadtester::router(&options))]
            }
            Err(error) => {
                tracing::error!(pod = pod.name, namespace = pod.namespace, %error, "load tester cannot start");
                pod.log(&format!("{error:#}"));
                pod.exit(2);
                Vec::new()
            }
        }
    }

    /// Any command of this machine: who may call a hook may run one anyway.
    fn execute(&self, pod: &PodContext, command: Vec<String>, console: Console) -> BoxFuture<'static, i32> {
        let environment = pod.env.clone();
        match self.options(pod) {
            Ok((_, options)) => Box::pin(loadtester::execute(options, environment, command, console)),
            Err(error) => Box::pin(async move {
                console.complain(format!("{error:#}\n")).await;
                2
            }),
        }
    }
}
