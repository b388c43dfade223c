//! Elections over an in-memory server and a paused clock.

use super::*;
use crate::testing::{Server, TestClock};

struct Candidate {
    elector: Elector,
    fence: Fence,
    clock: Arc<dyn Clock>,
}

fn candidate(server: &Server, clock: &Arc<impl Clock>, identity: &str) -> Candidate {
    let fence = Fence::closed();
    let requests = Requests::new(server.client(), clock.clone(), fence.clone());
    let config = LeaseConfig { identity: identity.into(), ..LeaseConfig::default() };
    let elector = Elector::new(config, requests, clock.clone(), fence.clone());
    Candidate { elector, fence, clock: clock.clone() }
}

impl Candidate {
    fn may_act(&self) -> bool {
        self.fence.allows(&*self.clock)
    }
}

fn lease(server: &Server) -> Value {
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/flagger-leader-election";
    server.objects.lock().unwrap()[path].clone()
}

#[tokio::test(start_paused = true)]
async fn the_first_one_leads_and_the_second_waits_for_the_whole_duration() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let (mut a, mut b) = (candidate(&server, &clock, "a"), candidate(&server, &clock, "b"));
    assert!(!a.may_act());
    assert!(a.elector.acquire(&stop).await && a.may_act());
    assert_eq!(lease(&server)["spec"]["holderIdentity"], "a");
    assert_eq!(lease(&server)["spec"]["leaseDurationSeconds"], 60);
    let began = clock.now();
    // a is killed: it never renews.
    assert!(b.elector.acquire(&stop).await);
    let waited = clock.now().duration_since(began).as_secs();
    assert!((60..=65).contains(&waited), "{waited}");
    assert_eq!(lease(&server)["spec"]["leaseTransitions"], 1);
    assert!(b.may_act() && !a.may_act(), "a is fenced since long");
    assert_eq!(a.elector.term(), None);
    assert!(b.elector.term().is_some(), "a may still have a request on its way");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_under_its_holder_begins_a_term_of_its_own() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await);
    let mut terms = Vec::new();
    for identity in ["b", "c"] {
        let mut next = candidate(&server, &clock, identity);
        assert!(matches!(next.elector.attempt().await, Attempt::Taken(_)));
        server.objects.lock().unwrap().clear();
        assert!(next.elector.acquire(&stop).await);
        terms.push(next.elector.term().expect("the one before was never asked"));
    }
    assert_ne!(terms[0], terms[1], "each term has a name of its own");
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_gives_the_lease_back() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let (mut a, mut b) = (candidate(&server, &clock, "a"), candidate(&server, &clock, "b"));
    assert!(a.elector.acquire(&stop).await);
    a.elector.release(true).await;
    assert!(!a.may_act());
    let began = clock.now();
    assert!(b.elector.acquire(&CancellationToken::new()).await);
    assert_eq!(clock.now(), began, "nobody had to wait");
    assert_eq!(b.elector.term(), None, "a had nothing more to say");
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_and_survives_a_short_outage() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await);
    let first = lease(&server);
    server.faults.lock().unwrap().extend([503, 500]);
    assert!(tokio::time::timeout(Duration::from_secs(120), a.elector.hold()).await.is_err(), "it goes on leading");
    assert!(a.may_act());
    assert_eq!(lease(&server)["spec"]["acquireTime"], first["spec"]["acquireTime"]);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_acting_before_anyone_else_starts() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await);
    server.faults.lock().unwrap().extend([503; 100]);
    let began = clock.now();
    a.elector.hold().await;
    assert!(!a.may_act());
    assert!(clock.now().duration_since(began).as_secs() <= 20);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_slept_through_its_lease_is_fenced_when_it_wakes() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await && a.may_act());
    clock.sleep(Duration::from_secs(16)).await;
    assert!(!a.may_act(), "without asking anyone");
}

/// A clock somebody sets while it runs.
struct Wrong {
    clock: Arc<TestClock>,
    ahead: Mutex<jiff::SignedDuration>,
}

impl Wrong {
    fn start(clock: &Arc<TestClock>) -> Arc<Self> {
        Arc::new(Self { clock: clock.clone(), ahead: Mutex::default() })
    }

    fn set(&self, ahead: i64) {
        *self.ahead.lock().unwrap() = jiff::SignedDuration::from_secs(ahead);
    }
}

impl Clock for Wrong {
    fn now(&self) -> Timestamp {
        self.clock.now() + *self.ahead.lock().unwrap()
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    fn sleep(&self, duration: Duration) -> futures::future::BoxFuture<'static, ()> {
        self.clock.sleep(duration)
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_forward_steals_no_lease() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let standby = Wrong::start(&clock);
    let (mut a, mut b) = (candidate(&server, &clock, "a"), candidate(&server, &standby, "b"));
    assert!(a.elector.acquire(&stop).await);
    assert!(matches!(b.elector.attempt().await, Attempt::Taken(_)));
    standby.set(3600);
    clock.sleep(Duration::from_secs(10)).await;
    assert_eq!(b.elector.attempt().await, Attempt::Taken("a".into()));
    clock.sleep(Duration::from_secs(50)).await;
    assert!(matches!(b.elector.attempt().await, Attempt::Ours(_)), "sixty seconds have really passed");
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_clock_is_set_forward_writes_again_after_its_next_renewal() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let wrong = Wrong::start(&clock);
    let mut a = candidate(&server, &wrong, "a");
    assert!(a.elector.acquire(&stop).await);
    wrong.set(3600);
    assert!(!a.may_act(), "it may have slept");
    assert!(tokio::time::timeout(Duration::from_secs(30), a.elector.hold()).await.is_err(), "it goes on leading");
    assert!(a.may_act());
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_slept_does_not_take_what_another_had_meanwhile() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let wrong = Wrong::start(&clock);
    let (mut a, mut b) = (candidate(&server, &wrong, "a"), candidate(&server, &clock, "b"));
    assert!(a.elector.acquire(&stop).await);
    // Passed time stood still for a; b led for a while and is gone again.
    wrong.set(3600);
    b.elector.seen = Some((lease(&server), Duration::ZERO));
    assert!(b.elector.acquire(&stop).await);
    b.elector.release(true).await;
    a.elector.hold().await;
    assert!(!a.may_act(), "what it has in hand was decided before b led");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_back_holds_no_fence_open() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let wrong = Wrong::start(&clock);
    let mut a = candidate(&server, &wrong, "a");
    assert!(a.elector.acquire(&stop).await && a.may_act());
    wrong.set(-3600);
    assert!(a.may_act());
    clock.sleep(Duration::from_secs(16)).await;
    assert!(!a.may_act());
}

#[tokio::test(start_paused = true)]
async fn a_fence_that_closed_never_opens_again() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    a.elector.config.retry = Duration::from_secs(17);
    assert!(a.elector.acquire(&stop).await);
    let writes = server.log.lock().unwrap().len();
    // The server would take the renewal at 17 s, but nothing could be written since 15 s.
    a.elector.hold().await;
    assert!(!a.may_act());
    assert_eq!(server.log.lock().unwrap().len(), writes, "nobody was asked");
    let late = Moment::now(&*clock).after(Duration::from_secs(15));
    assert!(!a.fence.extend(late, &*clock) && !a.may_act(), "nor by an answer that comes late");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_holds_up_no_stop() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await);
    let silent = tower::service_fn(|_: http::Request<kube::client::Body>| {
        std::future::pending::<Result<http::Response<kube::client::Body>, std::convert::Infallible>>()
    });
    let client = kube::Client::new(silent, "default");
    a.elector.requests = Requests::new(client, clock.clone(), a.fence.clone());
    let began = clock.now();
    a.elector.release(true).await;
    assert_eq!(clock.now().duration_since(began).as_secs(), 10);
    assert!(!a.may_act());
}

#[tokio::test(start_paused = true)]
async fn who_may_still_be_writing_keeps_the_lease_until_it_runs_out() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let mut a = candidate(&server, &clock, "a");
    assert!(a.elector.acquire(&stop).await);
    a.elector.release(false).await;
    assert!(!a.may_act());
    let mut b = candidate(&server, &clock, "b");
    let began = clock.now();
    assert!(b.elector.acquire(&stop).await);
    assert!(clock.now().duration_since(began) >= a.elector.config.duration.try_into().unwrap());
    assert!(b.elector.term().is_some(), "what may be under way is changed first");
}
