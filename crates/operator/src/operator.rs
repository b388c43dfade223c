//! The operator as a whole: watches, leader election, and the loop that starts rounds.
//!
//! Which tasks exist: one per watched kind, one for the Lease, one per question under way, and per canary at most one round
//! and one that writes its Events. The loop here is the only one that starts rounds. Dropping the future of [`Operator::run`]
//! stops all of it at once, as a kill would.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use kube::Client;
use seaway_adapters::change::Kind;
use seaway_adapters::http::Http;
use seaway_adapters::kinds::{
    ALERT_PROVIDER, CANARY, CONFIG_MAP, CONTROLLER_REVISION, DEPLOYMENT, HPA, METRIC_TEMPLATE, SECRET, SERVICE,
};
use seaway_adapters::routers;
use seaway_adapters::targets::Conventions;
use seaway_core::plan::Settings;
use tokio::net::TcpListener;
use tokio::sync::mpsc::unbounded_channel;
use tokio::task::{Id, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::announce::Announcer;
use crate::ask::{Answered, Asker};
use crate::cache::Cache;
use crate::clock::{Clock, sleep_until};
use crate::config::Config;
use crate::events::Events;
use crate::key::CanaryKey;
use crate::lease::{Elector, Fence};
use crate::memory::Memories;
use crate::panics::words;
use crate::reconcile::Reconciler;
use crate::requests::Requests;
use crate::scheduler::Queue;
use crate::server::{self, Health};
use crate::telemetry::Telemetry;
use crate::watch::{Surroundings, Unregistered, Watched, follow};

/// Changes come in bursts (an edit, then the controllers' answers to it); a round waits this long to see all of one.
const GATHER: Duration = Duration::from_millis(50);
/// What is left to do at the end, rounds in hand and then Events, may take this long each.
const LAST_WORDS: Duration = Duration::from_secs(20);
/// And Events after a lost Lease so long.
const LAST_WORDS_OF_THE_DEPOSED: Duration = Duration::from_secs(5);

/// Why the operator ended by itself.
#[derive(Debug, thiserror::Error)]
pub enum OperatorError {
    /// A kind the operator cannot work without is not in the cluster.
    #[error("{0} CRD is not registered")]
    Unregistered(&'static str),
    /// Another one leads now, or nobody could be asked for too long.
    #[error("leadership lost")]
    LeadershipLost,
    /// A fault of ours in a task that nothing works without.
    #[error("internal error: {0}")]
    Panicked(String),
}

impl From<Unregistered> for OperatorError {
    fn from(error: Unregistered) -> Self {
        Self::Unregistered(error.kind)
    }
}

/// Canaries of one cluster, rolled out until told to stop.
pub struct Operator {
    config: Config,
    client: Client,
    clock: Arc<dyn Clock>,
    http: Http,
    health: Health,
    listener: Option<TcpListener>,
}

impl Operator {
    /// An operator that talks to the API server by `client`, tells the time by `clock` and the outside by `http`.
    pub fn new(config: Config, client: Client, clock: Arc<dyn Clock>, http: Http) -> Self {
        let telemetry = Arc::new(Telemetry::new(env!("CARGO_PKG_VERSION"), &config.mesh_provider));
        let health = Health { telemetry, synced: Arc::default(), leading: Arc::default() };
        Self { config, client, clock, http, health, listener: None }
    }

    /// The same, with [`Operator::page`] served to whoever connects there while it runs.
    pub fn serving(self, listener: TcpListener) -> Self {
        Self { listener: Some(listener), ..self }
    }

    /// `/metrics`, `/healthz` and `/readyz`, for whoever serves them elsewhere.
    pub fn page(&self) -> axum::Router {
        server::router(self.health.clone())
    }

    /// Works until `shutdown`: then the rounds in hand are finished, the Lease given back, the last Events written. When the
    /// Lease is lost only Events are written, and not for as long.
    pub async fn run(mut self, shutdown: CancellationToken) -> Result<(), OperatorError> {
        let stop = shutdown.child_token();
        // Whatever way this function is left, everything it started is told to stop.
        let _guard = stop.clone().drop_guard();
        let mut tasks = JoinSet::new();
        if let Some(listener) = self.listener.take() {
            tasks.spawn(serve(listener, self.page(), stop.clone()));
        }
        let cache = Arc::new(Cache::new());
        let watched = self.watched();
        for one in &watched {
            let surroundings = Surroundings {
                client: self.client.clone(),
                namespace: self.config.namespace.clone(),
                cache: cache.clone(),
                clock: self.clock.clone(),
                seed: self.config.seed,
            };
            tasks.spawn(follow(*one, surroundings, stop.clone()));
        }
        let kinds: Vec<Kind> = watched.iter().map(|one| one.kind).collect();
        tokio::select! {
            biased;
            () = stop.cancelled() => return Ok(()),
            error = failure(&mut tasks) => return Err(error),
            () = cache.complete(&kinds) => self.health.synced.store(true, Ordering::Relaxed),
        }
        let fence = if self.config.lease.is_some() { Fence::closed() } else { Fence::open() };
        let requests = Requests::new(self.client.clone(), self.clock.clone(), fence.clone());
        let mut elector =
            self.config.lease.clone().map(|lease| Elector::new(lease, requests.clone(), self.clock.clone(), fence));
        if let Some(elector) = &mut elector {
            let won = tokio::select! {
                biased;
                won = elector.acquire(&stop) => won,
                error = failure(&mut tasks) => return Err(error),
            };
            if !won {
                return Ok(());
            }
        }
        self.health.leading.store(true, Ordering::Relaxed);
        let term = elector.as_ref().and_then(Elector::term);
        let events = Events::start(requests.clone(), self.clock.clone());
        let announcer = Arc::new(Announcer::new(events, self.http.clone(), self.config.event_webhook.clone()));
        let lead = self.lead(&cache, requests, announcer.clone(), term, &stop);
        let held = match &mut elector {
            None => tokio::select! {
                biased;
                _ = lead => true,
                error = failure(&mut tasks) => return Err(error),
            },
            Some(elector) => {
                let all_ended = tokio::select! {
                    biased;
                    // Leaving this block drops the loop and with it every round under way.
                    () = elector.hold() => None,
                    all_ended = lead => Some(all_ended),
                    error = failure(&mut tasks) => return Err(error),
                };
                if let Some(all_ended) = all_ended {
                    elector.release(all_ended).await;
                }
                all_ended.is_some()
            }
        };
        self.health.leading.store(false, Ordering::Relaxed);
        say_last_words(&announcer, held, &stop).await;
        if held { Ok(()) } else { Err(OperatorError::LeadershipLost) }
    }

    fn watched(&self) -> Vec<Watched> {
        let kind = |kind: Kind, required: bool| Watched { kind, labels: None, required };
        let mut watched: Vec<Watched> = [CANARY, METRIC_TEMPLATE, ALERT_PROVIDER].map(|own| kind(own, true)).to_vec();
        watched.extend([DEPLOYMENT, SERVICE, HPA].map(|built_in| kind(built_in, true)));
        watched
            .push(Watched { labels: Some("app.kubernetes.io/managed-by=seaway"), ..kind(CONTROLLER_REVISION, true) });
        if self.config.config_tracking {
            watched.extend([CONFIG_MAP, SECRET].map(|built_in| kind(built_in, true)));
        }
        // Not every cluster has every router's kinds; a canary that needs a missing one says so.
        watched.extend(routers::kinds().map(|foreign| kind(foreign, false)));
        watched
    }

    /// Starts rounds until `stop`, then waits for those in hand. Answers whether all of them ended.
    async fn lead(
        &self,
        cache: &Arc<Cache>,
        requests: Requests,
        announcer: Arc<Announcer>,
        term: Option<String>,
        stop: &CancellationToken,
    ) -> bool {
        let (answers, mut answered) = unbounded_channel::<Answered>();
        let config = &self.config;
        let memories = Arc::new(Memories::default());
        let reconciler = Arc::new(Reconciler {
            cache: cache.clone(),
            requests: requests.clone(),
            clock: self.clock.clone(),
            settings: Settings {
                provider: config.mesh_provider.clone(),
                metrics_server: config.metrics_server.clone(),
                no_cross_namespace_refs: config.no_cross_namespace_refs,
                ..Settings::default()
            },
            conventions: Conventions {
                selector_labels: config.selector_labels.clone(),
                include_label_prefixes: config.include_label_prefix.clone(),
                track_configs: config.config_tracking,
            },
            memories: memories.clone(),
            announcer,
            asker: Asker::new(self.http.clone(), requests, answers, self.health.telemetry.clone(), config.questions),
            telemetry: self.health.telemetry.clone(),
            term,
            seed: config.seed,
        });
        let own = Arc::downgrade(&reconciler);
        let census = move || own.upgrade().map(|reconciler| reconciler.census()).unwrap_or_default();
        self.health.telemetry.ask_for_entries(census);
        let mut rounds = Rounds::new(reconciler.clone(), config.rounds.max(1));
        cache.listen();
        let now = self.clock.elapsed();
        cache.canaries().iter().for_each(|key| rounds.queue.wake(key, now));
        loop {
            let next = rounds.start(self.clock.elapsed());
            let timer = async {
                match next {
                    Some(at) => sleep_until(&*self.clock, at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                Some(finished) = rounds.running.join_next_with_id() => rounds.finished(finished),
                keys = cache.woken() => {
                    let at = self.clock.elapsed().saturating_add(GATHER);
                    for key in &keys {
                        rounds.queue.wake(key, at);
                    }
                }
                Some(answer) = answered.recv() => {
                    rounds.queue.wake(&answer.canary, self.clock.elapsed());
                    memories.answered(answer);
                }
                () = timer => {}
            }
        }
        let in_hand = async { while rounds.running.join_next().await.is_some() {} };
        let all_ended = tokio::time::timeout(LAST_WORDS, in_hand).await.is_ok();
        if !all_ended {
            tracing::warn!("stopped with rounds unfinished");
        }
        all_ended
    }
}

async fn serve(listener: TcpListener, page: axum::Router, stop: CancellationToken) -> Result<(), Unregistered> {
    let served = axum::serve(listener, page).with_graceful_shutdown(stop.cancelled_owned()).await;
    if let Err(error) = served {
        tracing::error!(%error, "the page for metrics and health ended");
    }
    Ok(())
}

/// Writes the Events that wait: what they tell of is stored, so nobody tells it again. After a stop whoever leads next has the
/// Lease already. After a lost Lease it may be this very process that leads next, started anew: it must end soon, and at once
/// when it is told to stop.
async fn say_last_words(announcer: &Announcer, held: bool, stop: &CancellationToken) {
    let flush = announcer.flush();
    let told = if held {
        tokio::time::timeout(LAST_WORDS, flush).await.is_ok()
    } else {
        tokio::select! {
            biased;
            () = stop.cancelled() => false,
            told = tokio::time::timeout(LAST_WORDS_OF_THE_DEPOSED, flush) => told.is_ok(),
        }
    };
    if !told {
        tracing::warn!("stopped with Events unwritten or event webhooks uncalled");
        announcer.log_what_waits();
    }
}

/// The rounds that run and those that are due.
struct Rounds {
    reconciler: Arc<Reconciler>,
    queue: Queue,
    running: JoinSet<Option<Duration>>,
    keys: BTreeMap<Id, CanaryKey>,
    most: usize,
}

impl Rounds {
    fn new(reconciler: Arc<Reconciler>, most: usize) -> Self {
        Self { reconciler, queue: Queue::default(), running: JoinSet::new(), keys: BTreeMap::new(), most }
    }

    /// Starts what is due, as far as there is room; returns when to look again, if time alone decides.
    fn start(&mut self, now: Duration) -> Option<Duration> {
        while self.running.len() < self.most {
            let Some(key) = self.queue.start(now) else { return self.queue.next() };
            let (reconciler, owned) = (self.reconciler.clone(), key.clone());
            let handle = self.running.spawn(async move {
                match AssertUnwindSafe(reconciler.round(&owned)).catch_unwind().await {
                    Ok(next) => next,
                    Err(panic) => reconciler.panicked(&owned, &words(&*panic)).await,
                }
            });
            self.keys.insert(handle.id(), key);
        }
        // No room: the next round that ends makes some.
        None
    }

    /// A round ended, one way or another. A panic is a fault of ours, and only this canary's business; here comes only one
    /// that could not even be reported.
    fn finished(&mut self, finished: Result<(Id, Option<Duration>), JoinError>) {
        let (id, next) = match finished {
            Ok((id, next)) => (id, Ok(next)),
            Err(error) => (error.id(), Err(error)),
        };
        let Some(key) = self.keys.remove(&id) else { return };
        let next = next.unwrap_or_else(|error| {
            let message = error.try_into_panic().map(|panic| words(&*panic)).unwrap_or_default();
            tracing::error!(canary = %key, panic = message, "internal error while reporting one");
            self.reconciler.shun(&key)
        });
        self.queue.finish(&key, next);
    }
}

/// Completes when a task the operator cannot do without has ended: a watch found that it can never work, or one of ours
/// panicked. Without its watch a kind would look unchanged for ever.
async fn failure(tasks: &mut JoinSet<Result<(), Unregistered>>) -> OperatorError {
    loop {
        match tasks.join_next().await {
            Some(Ok(Err(error))) => return error.into(),
            Some(Err(error)) => {
                if let Ok(panic) = error.try_into_panic() {
                    return OperatorError::Panicked(words(&*panic));
                }
            }
            Some(Ok(Ok(()))) => {}
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use seaway_adapters::http::{Dial, Stream};

    use super::*;
    use crate::testing::{Server, TestClock};

    /// Nobody can be reached.
    struct Nowhere;

    impl Dial for Nowhere {
        fn dial(&self, _: &str, _: u16) -> futures::future::BoxFuture<'static, io::Result<Stream>> {
            Box::pin(async { Err(io::ErrorKind::HostUnreachable.into()) })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cluster_without_our_kinds_is_a_clear_error() {
        let config = Config { port: None, ..Config::default() };
        let http = Http::through(Arc::new(Nowhere));
        let operator = Operator::new(config, Server::default().client(), TestClock::start(), http);
        let error = operator.run(CancellationToken::new()).await.unwrap_err();
        assert!(error.to_string().ends_with(" CRD is not registered"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stop_before_anything_is_known_is_an_orderly_end() {
        let server = Server::default();
        server.faults.lock().unwrap().extend([503; 2000]);
        let config = Config { port: None, ..Config::default() };
        let http = Http::through(Arc::new(Nowhere));
        let operator = Operator::new(config, server.client(), TestClock::start(), http);
        let stop = CancellationToken::new();
        let running = tokio::spawn(operator.run(stop.clone()));
        tokio::time::sleep(Duration::from_secs(600)).await;
        stop.cancel();
        assert!(running.await.unwrap().is_ok());
        let attempts = server.log.lock().unwrap().len();
        assert!(attempts < 10 * 60, "it does not hammer a server in trouble: {attempts}");
    }

    #[tokio::test]
    async fn a_watch_that_panics_ends_the_operator() {
        let mut tasks = JoinSet::new();
        tasks.spawn(async { Ok(()) });
        tasks.spawn(async { panic!("at the {}", "disco") });
        assert!(matches!(failure(&mut tasks).await, OperatorError::Panicked(words) if words == "at the disco"));
    }
}
