//! Probes: the questions a kubelet asks a container, over the same virtual network as everyone else.
//!
//! Delays and periods follow the simulated clock; the time limit of one question is real, as all HTTP time limits are.
//! gRPC probes are absent: they count as failed.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use hyper_util::rt::TokioIo;
use k8s_openapi::api::core::v1::{Container, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use tokio::sync::mpsc;

use super::{HttpCheck, Program, at};
use crate::{Clock, Net};

/// What probing found out. Sent only when it changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The container has started and may be asked the other probes.
    Started,
    /// The container may, or may not, get traffic.
    Ready(bool),
    /// The container must be restarted.
    Unhealthy,
}

/// Everything that probing one run of one container needs.
pub(super) struct Prober {
    pub(super) ip: IpAddr,
    pub(super) container: Container,
    pub(super) program: Arc<dyn Program>,
    pub(super) clock: Clock,
    pub(super) net: Net,
    pub(super) findings: mpsc::UnboundedSender<Finding>,
}

#[derive(Clone)]
enum Question {
    Http {
        ip: IpAddr,
        check: HttpCheck,
    },
    Tcp {
        port: u16,
    },
    /// A question this node cannot ask.
    Unknown,
}

struct Schedule {
    delay: Duration,
    period: Duration,
    limit: Duration,
    successes: i32,
    failures: i32,
}

impl Schedule {
    fn of(probe: &Probe) -> Self {
        let seconds = |value: Option<i32>, default: u64| {
            Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
        };
        Self {
            delay: seconds(probe.initial_delay_seconds, 0),
            period: seconds(probe.period_seconds, 10).max(Duration::from_secs(1)),
            limit: seconds(probe.timeout_seconds, 1).max(Duration::from_secs(1)),
            successes: probe.success_threshold.unwrap_or(1).max(1),
            failures: probe.failure_threshold.unwrap_or(3).max(1),
        }
    }
}

impl Prober {
    /// Asks until the container's run is over and this task is aborted.
    pub(super) async fn run(self) {
        if let Some(probe) = &self.container.startup_probe
            && !self.until_started(probe).await
        {
            self.tell(Finding::Unhealthy);
            return;
        }
        self.tell(Finding::Started);
        tokio::join!(self.readiness(), self.liveness());
    }

    async fn until_started(&self, probe: &Probe) -> bool {
        let schedule = Schedule::of(probe);
        self.clock.sleep(schedule.delay).await;
        for _ in 0..schedule.failures {
            if self.ask(probe, &schedule).await {
                return true;
            }
            self.clock.sleep(schedule.period).await;
        }
        false
    }

    async fn readiness(&self) {
        let Some(probe) = &self.container.readiness_probe else {
            self.tell(Finding::Ready(true));
            return;
        };
        let schedule = Schedule::of(probe);
        let mut ready = false;
        let mut streak = 0;
        self.clock.sleep(schedule.delay).await;
        loop {
            if self.ask(probe, &schedule).await == ready {
                streak = 0;
            } else {
                streak += 1;
                if streak >= if ready { schedule.failures } else { schedule.successes } {
                    ready = !ready;
                    streak = 0;
                    self.tell(Finding::Ready(ready));
                }
            }
            self.clock.sleep(schedule.period).await;
        }
    }

    async fn liveness(&self) {
        let Some(probe) = &self.container.liveness_probe else { return };
        let schedule = Schedule::of(probe);
        let mut failures = 0;
        self.clock.sleep(schedule.delay).await;
        loop {
            failures = if self.ask(probe, &schedule).await { 0 } else { failures + 1 };
            if failures >= schedule.failures {
                self.tell(Finding::Unhealthy);
                return;
            }
            self.clock.sleep(schedule.period).await;
        }
    }

    fn tell(&self, finding: Finding) {
        // Nobody listens any more when the container's run is over.
        let _ = self.findings.send(finding);
    }

    async fn ask(&self, probe: &Probe, schedule: &Schedule) -> bool {
        let question = self.question(probe);
        tokio::time::timeout(schedule.limit, self.answers(question)).await.unwrap_or(false)
    }

    fn question(&self, probe: &Probe) -> Question {
        if let Some(get) = &probe.http_get {
            let ip = get.host.as_deref().and_then(|host| host.parse().ok()).unwrap_or(self.ip);
            let path = get.path.clone().unwrap_or_else(|| "/".into());
            return match self.port(&get.port) {
                Some(port) if get.scheme.as_deref().unwrap_or("HTTP") == "HTTP" => {
                    Question::Http { ip, check: HttpCheck { port, path } }
                }
                _ => Question::Unknown,
            };
        }
        if let Some(tcp) = &probe.tcp_socket {
            return self.port(&tcp.port).map_or(Question::Unknown, |port| Question::Tcp { port });
        }
        let command = probe.exec.as_ref().and_then(|exec| exec.command.as_deref()).unwrap_or_default();
        match self.program.check(command) {
            Some(check) => Question::Http { ip: self.ip, check },
            None => Question::Unknown,
        }
    }

    fn port(&self, port: &IntOrString) -> Option<u16> {
        match port {
            IntOrString::Int(number) => u16::try_from(*number).ok(),
            IntOrString::String(name) => {
                let mut declared = self.container.ports.iter().flatten();
                let found = declared.find(|declared| declared.name.as_deref() == Some(name))?;
                u16::try_from(found.container_port).ok()
            }
        }
    }

    async fn answers(&self, question: Question) -> bool {
        match question {
            Question::Http { ip, check } => get(&self.net, ip, &check).await.unwrap_or(false),
            Question::Tcp { port } => self.net.connect(at(self.ip, port)).await.is_ok(),
            Question::Unknown => false,
        }
    }
}

async fn get(net: &Net, ip: IpAddr, check: &HttpCheck) -> Result<bool, tower::BoxError> {
    let address = at(ip, check.port);
    let stream = net.connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let slash = if check.path.starts_with('/') { "" } else { "/" };
    let request = Request::get(format!("{slash}{}", check.path))
        .header(http::header::HOST, address.to_string())
        .header(http::header::USER_AGENT, "kube-probe/1.36")
        .header(http::header::CONNECTION, "close")
        .body(Empty::<Bytes>::new())?;
    // The connection has to be driven for the exchange to move, and may be over first: what counts is the answer.
    let exchange = async move { sender.send_request(request).await.map(|response| response.status()) };
    let (status, _) = futures::join!(exchange, connection);
    let status = status?;
    Ok(status.is_success() || status.is_redirection())
}
