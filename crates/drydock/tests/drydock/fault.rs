//! Faults, as a real `kube::Client` meets them on the paused clock: one test per kind.

mod moods;
mod watches;

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use seaway_drydock::Seed;
use seaway_drydock::apiserver::ApiServer;
use seaway_drydock::clock::Clock;
use seaway_drydock::fault::{Fault, Faults, Point};
use serde_json::json;

use crate::apiserver::{config, refused};

/// An API server, a client with faults and one without.
pub(crate) struct Strait {
    pub(crate) clock: Clock,
    pub(crate) api: ApiServer,
    pub(crate) faults: Faults,
    /// The client under test.
    pub(crate) ours: Api<ConfigMap>,
    /// Everybody else.
    pub(crate) theirs: Api<ConfigMap>,
}

impl Strait {
    pub(crate) fn new() -> Self {
        let clock = Clock::starting_at("2026-01-01T00:00:00Z".parse().unwrap(), 1);
        let api = ApiServer::start(clock, Seed::new(1));
        let faults = Faults::new(clock);
        let ours = Api::default_namespaced(faults.client(&api, "ours"));
        let theirs = Api::default_namespaced(api.client("theirs"));
        Self { clock, api, faults, ours, theirs }
    }

    fn at(self, call: u64, fault: Fault) -> Self {
        self.faults.plan(Point::Call(call), fault);
        self
    }

    /// The client of the next process.
    pub(crate) fn reborn(&self) -> Api<ConfigMap> {
        Api::default_namespaced(self.faults.client(&self.api, "ours"))
    }

    /// The value that is stored.
    async fn stored(&self, name: &str) -> Option<String> {
        value(&self.theirs.get_opt(name).await.unwrap()?)
    }

    /// Creates an object and gives it further values, as somebody else.
    pub(crate) async fn write(&self, name: &str, values: &[&str]) {
        for (number, value) in values.iter().enumerate() {
            if number == 0 && self.theirs.get_opt(name).await.unwrap().is_none() {
                self.theirs.create(&PostParams::default(), &config(name, value)).await.unwrap();
            } else {
                put(&self.theirs, name, value).await.unwrap();
            }
        }
    }
}

pub(crate) fn value(config: &ConfigMap) -> Option<String> {
    config.data.as_ref()?.get("key").cloned()
}

pub(crate) async fn put(api: &Api<ConfigMap>, name: &str, value: &str) -> kube::Result<ConfigMap> {
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"data": {"key": value}}))).await
}

/// The kind of connection error a request ended with.
fn broken<T: std::fmt::Debug>(result: kube::Result<T>) -> std::io::ErrorKind {
    match result {
        Err(kube::Error::Service(error)) => error.downcast_ref::<std::io::Error>().unwrap().kind(),
        other => panic!("expected a broken connection, got {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted_and_leases_are_not() {
    let strait = Strait::new();
    let leases: Api<Lease> = Api::default_namespaced(strait.faults.client(&strait.api, "ours"));
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let lease = serde_json::from_value(json!({"metadata": {"name": "leader"}})).unwrap();
    leases.create(&PostParams::default(), &lease).await.unwrap();
    strait.theirs.get("a").await.unwrap();
    put(&strait.ours, "a", "1").await.unwrap();
    put(&strait.ours, "a", "2").await.unwrap();
    put(&strait.ours, "a", "2").await.unwrap();
    assert!(strait.ours.get_opt("b").await.unwrap().is_none());
    strait.ours.list(&ListParams::default()).await.unwrap();

    let calls = strait.faults.calls();
    let lines: Vec<_> =
        calls.iter().map(|call| format!("{call} {} {}", call.code, if call.changed() { "+" } else { "-" })).collect();
    assert_eq!(
        lines,
        [
            "call 0: create configmaps/default 201 +",
            "lease: create leases.coordination.k8s.io/default 201 +",
            "call 1: patch configmaps/default/a 200 -",
            "call 2: patch configmaps/default/a 200 +",
            "call 3: patch configmaps/default/a 200 -",
            "call 4: get configmaps/default/b 404 -",
            "call 5: list configmaps/default 200 -",
        ]
    );
    assert_eq!(calls[3].digest, calls[4].digest);
    assert_ne!(calls[2].digest, calls[3].digest);
    assert!(strait.faults.struck().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_crash_before_a_call_leaves_it_undone_and_the_process_dead() {
    let strait = Strait::new().at(1, Fault::CrashBefore);
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let other_task = strait.ours.clone();
    tokio::select! {
        biased;
        answer = put(&strait.ours, "a", "2") => panic!("a dead process was answered: {answer:?}"),
        () = strait.faults.crash() => {}
    }
    let late = tokio::time::timeout(Duration::from_secs(3600), other_task.get("a")).await;
    assert!(late.is_err(), "another task of the dead process was answered: {late:?}");
    assert_eq!(strait.stored("a").await.as_deref(), Some("1"));

    let next = strait.reborn();
    assert_eq!(value(&next.get("a").await.unwrap()).as_deref(), Some("1"));
    assert_eq!(strait.faults.struck(), ["call 1: patch configmaps/default/a: CrashBefore"]);
    let last = strait.faults.calls().pop().unwrap();
    assert_eq!((last.index, last.life), (Some(2), 1));
}

#[tokio::test(start_paused = true)]
async fn a_crash_after_a_call_leaves_it_done() {
    let strait = Strait::new().at(1, Fault::CrashAfter);
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let ours = strait.ours.clone();
    let task = tokio::spawn(async move { put(&ours, "a", "2").await });
    strait.faults.crash().await;
    assert!(!task.is_finished());
    task.abort();
    assert_eq!(strait.stored("a").await.as_deref(), Some("2"));
    let call = strait.faults.calls().pop().unwrap();
    assert!(call.changed() && call.code == 0, "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_a_write_that_happened() {
    let strait = Strait::new().at(0, Fault::LostReply).at(1, Fault::LostReply);
    let created = strait.ours.create(&PostParams::default(), &config("a", "1")).await;
    assert_eq!(broken(created), std::io::ErrorKind::ConnectionReset);
    assert_eq!(strait.stored("a").await.as_deref(), Some("1"));
    // A read that is lost and one that breaks are the same, so it is not placed there.
    strait.ours.get("a").await.unwrap();
    assert_eq!(strait.faults.struck().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_has_the_words_of_a_real_server() {
    let strait = Strait::new().at(0, Fault::Conflict).at(1, Fault::Conflict).at(2, Fault::Conflict);
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let status = refused(put(&strait.ours, "a", "2").await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to \
         the latest version and try again"
    );
    assert_eq!(status.details.unwrap().name, "a");
    assert_eq!(strait.stored("a").await.as_deref(), Some("1"));
    let status = refused(strait.ours.delete("nobody", &DeleteParams::default()).await);
    assert_eq!(status.code, 404, "nobody can have modified what is not there");
    assert_eq!(strait.faults.struck(), ["call 1: patch configmaps/default/a: Conflict"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests_say_when_to_come_back() {
    let fault = Fault::TooManyRequests { retry_after: Duration::from_millis(4500), calls: 2 };
    let strait = Strait::new().at(0, fault);
    let status = refused(strait.ours.create(&PostParams::default(), &config("a", "1")).await);
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.details.unwrap().retry_after_seconds, 5);
    let request =
        http::Request::get("/api/v1/namespaces/default/configmaps").body(kube::client::Body::empty()).unwrap();
    let client: Client = strait.ours.clone().into_client();
    let response = client.send(request).await.unwrap();
    assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"5".parse().unwrap()));
    assert!(strait.ours.list(&ListParams::default()).await.unwrap().items.is_empty());
}

#[tokio::test(start_paused = true)]
async fn server_errors_refuse_or_hide_what_was_done() {
    let strait = Strait::new()
        .at(0, Fault::Status(500))
        .at(1, Fault::Status(503))
        .at(2, Fault::Status(504))
        .at(3, Fault::AppliedStatus(504));
    for (code, reason) in [(500, "InternalError"), (503, "ServiceUnavailable"), (504, "Timeout")] {
        let status = refused(strait.ours.create(&PostParams::default(), &config("a", "1")).await);
        assert_eq!((status.code, status.reason.as_str()), (code, reason));
        assert_eq!(strait.stored("a").await, None);
    }
    assert_eq!(refused(strait.ours.create(&PostParams::default(), &config("a", "1")).await).code, 504);
    assert_eq!(strait.stored("a").await.as_deref(), Some("1"));
    assert_eq!(strait.faults.struck().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn connections_hang_and_break_before_anything_is_done() {
    let strait = Strait::new().at(0, Fault::Hang(Duration::from_secs(40))).at(1, Fault::Reset);
    let begun = strait.clock.now();
    let hung = strait.ours.create(&PostParams::default(), &config("a", "1")).await;
    assert_eq!(broken(hung), std::io::ErrorKind::TimedOut);
    assert_eq!(strait.clock.now().duration_since(begun).as_secs(), 40);
    let reset = strait.ours.create(&PostParams::default(), &config("a", "1")).await;
    assert_eq!(broken(reset), std::io::ErrorKind::ConnectionReset);
    assert_eq!(strait.stored("a").await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_shows_the_past() {
    let strait = Strait::new();
    strait.write("a", &["1", "2", "3"]).await;
    strait.write("b", &["1"]).await;
    for (call, versions) in [1, 2, 3, 4].into_iter().enumerate() {
        strait.faults.plan(Point::Call(call as u64), Fault::Stale(versions));
    }
    for expected in [Some("2"), Some("1"), None, Some("3")] {
        let read = strait.ours.get_opt("a").await.unwrap();
        assert_eq!(read.as_ref().and_then(value).as_deref(), expected);
    }
    assert_eq!(strait.faults.struck().len(), 3, "nobody knows a fourth version");

    for (call, versions) in [(4, 1), (5, 2), (6, 1)] {
        strait.faults.plan(Point::Call(call), Fault::Stale(versions));
    }
    let seen = async |parameters: &ListParams| {
        let list = strait.ours.list(parameters).await.unwrap();
        let version: u64 = list.metadata.resource_version.unwrap().parse().unwrap();
        let items: Vec<_> =
            list.items.iter().map(|item| (item.metadata.name.clone().unwrap(), value(item).unwrap())).collect();
        (version, items)
    };
    let latest = strait.api.revision();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(seen(&ListParams::default()).await, (latest - 1, vec![pair("a", "3")]));
    assert_eq!(seen(&ListParams::default()).await, (latest - 2, vec![pair("a", "2")]));
    // What the selector hides does not count as a version.
    assert_eq!(seen(&ListParams::default().labels("app=a")).await, (latest - 2, vec![pair("a", "2")]));
    assert_eq!(seen(&ListParams::default()).await.0, latest);
}

#[tokio::test(start_paused = true)]
async fn a_recreated_object_has_the_same_name_and_another_uid() {
    let strait = Strait::new().at(1, Fault::Recreated).at(2, Fault::Recreated).at(4, Fault::Recreated);
    let first = strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let mut edited = first.clone();
    edited.data = config("a", "2").data;
    let status = refused(strait.ours.replace("a", &PostParams::default(), &edited).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    let second = strait.theirs.get("a").await.unwrap();
    assert_ne!(first.metadata.uid, second.metadata.uid);
    assert_eq!((first.data, first.metadata.labels), (second.data, second.metadata.labels));
    let third = strait.ours.get("a").await.unwrap();
    assert_ne!(second.metadata.uid, third.metadata.uid);

    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    strait.ours.patch("a", &PatchParams::default(), &Patch::Merge(held)).await.unwrap();
    let kept = strait.ours.get("a").await.unwrap();
    assert_eq!(kept.metadata.uid, third.metadata.uid);
    assert_eq!(strait.faults.struck().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_restart_refuses_everything_for_a_while() {
    let strait = Strait::new().at(1, Fault::Restart(Duration::from_secs(2)));
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    assert_eq!(broken(put(&strait.ours, "a", "2").await), std::io::ErrorKind::ConnectionReset);
    assert_eq!(broken(strait.ours.get("a").await), std::io::ErrorKind::ConnectionRefused);
    strait.clock.sleep(Duration::from_millis(2001)).await;
    assert_eq!(value(&strait.ours.get("a").await.unwrap()).as_deref(), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn a_paused_process_writes_late() {
    let strait = Strait::new().at(1, Fault::Pause(Duration::from_secs(60)));
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    let begun = strait.clock.now();
    let writing = async {
        put(&strait.ours, "a", "late").await.unwrap();
        strait.clock.now().duration_since(begun).as_secs()
    };
    let reading = async {
        strait.clock.sleep(Duration::from_secs(1)).await;
        strait.ours.get("a").await.unwrap();
        strait.clock.now().duration_since(begun).as_secs()
    };
    let meanwhile = async {
        strait.clock.sleep(Duration::from_secs(30)).await;
        put(&strait.theirs, "a", "meanwhile").await.unwrap();
    };
    assert_eq!(tokio::join!(writing, reading, meanwhile), (60, 60, ()));
    assert_eq!(strait.stored("a").await.as_deref(), Some("late"));
}

#[tokio::test(start_paused = true)]
async fn somebody_else_gets_in_before_a_call() {
    let strait = Strait::new();
    strait.write("a", &["1"]).await;
    let theirs = strait.theirs.clone();
    strait.faults.before(Point::Call(1), async move {
        put(&theirs, "a", "theirs").await.unwrap();
    });
    let (told, mut hears) = tokio::sync::mpsc::unbounded_channel();
    strait.faults.on(Point::Call(2), move || told.send(()).unwrap());
    let read = strait.ours.get("a").await.unwrap();
    let status = refused(strait.ours.replace("a", &PostParams::default(), &read).await);
    assert_eq!(status.reason, "Conflict");
    assert!(hears.try_recv().is_err());
    strait.ours.get("a").await.unwrap();
    assert!(hears.try_recv().is_ok());
    assert_eq!(strait.stored("a").await.as_deref(), Some("theirs"));
}

#[tokio::test(start_paused = true)]
async fn faults_know_where_they_make_sense() {
    let strait = Strait::new();
    strait.ours.create(&PostParams::default(), &config("a", "1")).await.unwrap();
    strait.ours.get("a").await.unwrap();
    put(&strait.ours, "a", "2").await.unwrap();
    refused(put(&strait.ours, "b", "2").await);
    let calls = strait.faults.calls();
    let applies = |fault: Fault| calls.iter().map(|call| fault.applies(call)).collect::<Vec<_>>();
    assert_eq!(applies(Fault::CrashBefore), [true; 4]);
    assert_eq!(applies(Fault::LostReply), [true, false, true, true]);
    assert_eq!(applies(Fault::Conflict), [false, false, true, false]);
    assert_eq!(applies(Fault::Stale(1)), [false, true, false, false]);
    assert_eq!(applies(Fault::Recreated), [false, true, true, false]);
    assert_eq!(applies(Fault::DropEvent), [false; 4]);
}
