//! The operators of a run: one alone, or a leader and a standby, each with a clock and a way to the API server of its own.
//!
//! A crew member that dies or ends is started again after a moment, as a Deployment would. Which faults strike whom is
//! planned by the [mishaps](super::mishap); here is only what happens to the process.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use jiff::{SignedDuration, Timestamp};
use seaway_adapters::http::Http;
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::fault::Faults;
use seaway_drydock::{Clock, Cluster};
use seaway_operator::{Config, Operator};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::outside::Outside;
use crate::harness::OPERATOR;

/// How long a Lease counts in the stories. Shorter than usual, so that a takeover is a matter of two intervals.
pub const LEASE: Duration = Duration::from_secs(20);

/// How long until a process that ended runs again.
pub const RESTART: Duration = Duration::from_secs(1);

/// The clock of one process: the cluster's, set wrong or standing still at will.
#[derive(Clone)]
pub struct Watch {
    cluster: Clock,
    epoch: Timestamp,
    state: Arc<Mutex<Dial>>,
}

#[derive(Default)]
struct Dial {
    wrong_by: SignedDuration,
    frozen_until: Option<Timestamp>,
}

impl Watch {
    fn new(cluster: Clock) -> Self {
        Self { cluster, epoch: cluster.now(), state: Arc::default() }
    }

    /// Sets the date wrong. Time that passes is not changed by it.
    pub fn set(&self, wrong_by: SignedDuration) {
        self.state.lock().unwrap().wrong_by = wrong_by;
    }

    /// Nobody who sleeps by this clock wakes up for so long.
    pub fn freeze(&self, how_long: Duration) {
        self.state.lock().unwrap().frozen_until = Some(self.cluster.now() + how_long);
    }
}

impl seaway_operator::Clock for Watch {
    fn now(&self) -> Timestamp {
        self.cluster.now() + self.state.lock().unwrap().wrong_by
    }

    fn elapsed(&self) -> Duration {
        Duration::try_from(self.cluster.now().duration_since(self.epoch)).unwrap_or_default()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let this = self.clone();
        Box::pin(async move {
            this.cluster.sleep(duration).await;
            loop {
                let until = this.state.lock().unwrap().frozen_until;
                match until.filter(|until| *until > this.cluster.now()) {
                    Some(until) => this.cluster.sleep_until(until).await,
                    None => return,
                }
            }
        })
    }
}

/// One operator, started again whenever it ends.
pub struct Member {
    /// Everything between it and the API server.
    pub faults: Faults,
    /// Its clock.
    pub watch: Watch,
    /// How long it stays away when it dies.
    pub away: Arc<Mutex<Duration>>,
    task: JoinHandle<()>,
}

/// Who runs the stories.
pub struct Crew {
    /// The one that leads at the beginning.
    pub leader: Member,
    /// The one that waits, if there is any.
    pub standby: Option<Member>,
}

impl Crew {
    /// Takes the ship over: alone and without election, or as two who share a Lease.
    pub fn embark(cluster: &Cluster, board: &Board, outside: &Outside, two: bool) -> Self {
        let config = Config {
            mesh_provider: "gatewayapi:v1".into(),
            metrics_server: "http://prometheus.istio-system:9090".into(),
            port: None,
            lease: None,
            ..Config::default()
        };
        let member = |name: String, config: Config| Member::embark(name, config, cluster, board, outside);
        if !two {
            return Self { leader: member(OPERATOR.to_owned(), config), standby: None };
        }
        let elect = |name: &str| config.clone().elect(name, "kube-system", LEASE);
        let [a, b] = [format!("{OPERATOR}-a"), format!("{OPERATOR}-b")];
        let (first, second) = (elect(&a), elect(&b));
        Self { leader: member(a, first), standby: Some(member(b, second)) }
    }
}

impl Member {
    fn embark(name: String, config: Config, cluster: &Cluster, board: &Board, outside: &Outside) -> Self {
        let clock = cluster.clock();
        let (faults, watch, away) = (Faults::new(clock), Watch::new(clock), Arc::new(Mutex::new(RESTART)));
        let berth = Berth {
            name,
            config,
            api: cluster.api().clone(),
            clock,
            faults: faults.clone(),
            watch: watch.clone(),
            away: away.clone(),
            outside: outside.clone(),
            board: board.clone(),
        };
        Self { faults, watch, away, task: tokio::spawn(berth.serve()) }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What a member needs to start over.
struct Berth {
    name: String,
    config: Config,
    api: ApiServer,
    clock: Clock,
    faults: Faults,
    watch: Watch,
    away: Arc<Mutex<Duration>>,
    outside: Outside,
    board: Board,
}

impl Berth {
    async fn serve(self) {
        loop {
            let operator = Operator::new(
                self.config.clone(),
                self.faults.client(&self.api, &self.name),
                Arc::new(self.watch.clone()),
                Http::through(Arc::new(self.outside.clone())),
            );
            tokio::select! {
                biased;
                () = self.faults.crash() => self.board.note(|| format!("{} died", self.name)),
                ended = operator.run(CancellationToken::new()) => {
                    self.board.note(|| format!("{} ended: {ended:?}", self.name));
                }
            }
            let away = *self.away.lock().unwrap();
            self.clock.sleep(away).await;
        }
    }
}
