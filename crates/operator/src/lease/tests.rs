//! Elections over an in-memory server and a paused clock.

use super::*;
use crate::testing::{Server, TestClock};

struct Candidate {
    elector: Elector,
    fence: Fence,
    clock: Arc<dyn Clock>,
}

fn candidate(server: &Server, clock: &Arc<TestClock>, identity: &str) -> Candidate {
    let fence = Fence::closed();
    let requests = Requests::new(server.client(), clock.clone(), fence.clone());
    let config = LeaseConfig { identity: identity.into(), ..LeaseConfig::default() };
    let elector = Elector::new(config, requests, clock.clone(), fence.clone());
    Candidate { elector, fence, clock: clock.clone() }
}

impl Candidate {
    fn may_act(&self) -> bool {
        self.fence.allows(self.clock.now())
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
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_stops_gives_the_lease_back() {
    let (server, clock, stop) = (Server::default(), TestClock::start(), CancellationToken::new());
    let (mut a, mut b) = (candidate(&server, &clock, "a"), candidate(&server, &clock, "b"));
    assert!(a.elector.acquire(&stop).await);
    a.elector.release().await;
    assert!(!a.may_act());
    let began = clock.now();
    assert!(b.elector.acquire(&CancellationToken::new()).await);
    assert_eq!(clock.now(), began, "nobody had to wait");
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
