//! Faults of watches, as kube's own watcher meets them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::DeleteParams;
use kube::runtime::watcher::{self, Event};
use seaway_drydock::Clock;
use seaway_drydock::fault::{Fault, LAG, LOSS_NOTICED, Point};
use tokio_util::task::AbortOnDropHandle;

use super::{Strait, put, value};

/// Follows ConfigMaps and writes down what it is told, with the second it happened in.
struct Lookout {
    seen: Arc<Mutex<Vec<String>>>,
    task: AbortOnDropHandle<()>,
}

impl Lookout {
    fn start(api: Api<ConfigMap>, clock: Clock) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, begun) = (seen.clone(), clock.now());
        let task = tokio::spawn(async move {
            let mut events = std::pin::pin!(watcher::watcher(api, watcher::Config::default()));
            while let Some(event) = events.next().await {
                let failed = event.is_err();
                let text = |config: &ConfigMap| {
                    format!("{}={}", config.metadata.name.clone().unwrap(), value(config).unwrap_or_default())
                };
                let what = match event {
                    Ok(Event::Init) => "list".to_owned(),
                    Ok(Event::InitApply(config)) => format!("has {}", text(&config)),
                    Ok(Event::InitDone) => continue,
                    Ok(Event::Apply(config)) => text(&config),
                    Ok(Event::Delete(config)) => format!("{} is gone", text(&config)),
                    Err(watcher::Error::WatchError(status)) => status.reason.clone(),
                    Err(watcher::Error::WatchFailed(_)) => "broken".to_owned(),
                    Err(watcher::Error::InitialListFailed(_) | watcher::Error::WatchStartFailed(_)) => {
                        "refused".to_owned()
                    }
                    Err(error) => error.to_string(),
                };
                let second = clock.now().duration_since(begun).as_secs();
                log.lock().unwrap().push(format!("{second}s {what}"));
                if failed {
                    clock.sleep(Duration::from_secs(1)).await;
                }
            }
        });
        Self { seen, task: AbortOnDropHandle::new(task) }
    }

    fn told(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

/// A watcher that has listed `a=1`; the fault waits for the second event after that.
async fn watched(fault: Fault) -> (Strait, Lookout) {
    let strait = Strait::new();
    strait.write("a", &["1"]).await;
    strait.faults.plan(Point::Watch(1), fault);
    let lookout = Lookout::start(strait.ours.clone(), strait.clock);
    strait.clock.sleep(Duration::from_millis(10)).await;
    put(&strait.theirs, "a", "2").await.unwrap();
    strait.clock.sleep(Duration::from_millis(10)).await;
    assert_eq!(lookout.told(), ["0s list", "0s has a=1", "0s a=2"]);
    put(&strait.theirs, "a", "3").await.unwrap();
    (strait, lookout)
}

/// What the watcher is told from the faulted event on.
async fn afterwards(strait: &Strait, lookout: &Lookout) -> Vec<String> {
    strait.clock.sleep(Duration::from_secs(120)).await;
    assert_eq!(strait.faults.struck().len(), 1, "{:?}", strait.faults.struck());
    lookout.told().split_off(3)
}

#[tokio::test(start_paused = true)]
async fn events_are_counted_and_bookmarks_are_not() {
    let (strait, lookout) = watched(Fault::Conflict).await;
    strait.clock.sleep(Duration::from_secs(200)).await;
    strait.theirs.delete("a", &DeleteParams::default()).await.unwrap();
    strait.clock.sleep(Duration::from_secs(1)).await;
    let lines: Vec<_> = strait.faults.watch_events().iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "event 0: MODIFIED configmaps/default/a",
            "event 1: MODIFIED configmaps/default/a",
            "event 2: DELETED configmaps/default/a",
        ]
    );
    assert_eq!(lookout.told().last().unwrap(), "200s a=3 is gone");
    assert!(strait.faults.struck().is_empty(), "a conflict is nothing that happens to events");
}

#[tokio::test(start_paused = true)]
async fn a_lost_event_is_never_seen_but_noticed() {
    let (strait, lookout) = watched(Fault::DropEvent).await;
    strait.clock.sleep(Duration::from_secs(2)).await;
    strait.write("b", &["1"]).await;
    put(&strait.theirs, "a", "4").await.unwrap();
    put(&strait.theirs, "a", "5").await.unwrap();
    let noticed = LOSS_NOTICED.as_secs();
    let told = afterwards(&strait, &lookout).await;
    let expected = ["2s b=1".to_owned(), "2s a=4".into(), "2s a=5".into(), format!("{noticed}s Expired")];
    assert_eq!(told[..4], expected);
    let relisted = noticed + 1;
    assert_eq!(
        told[4..],
        [format!("{relisted}s list"), format!("{relisted}s has a=5"), format!("{relisted}s has b=1")]
    );
}

#[tokio::test(start_paused = true)]
async fn an_event_comes_twice() {
    let (strait, lookout) = watched(Fault::DuplicateEvent).await;
    assert_eq!(afterwards(&strait, &lookout).await, ["0s a=3", "0s a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_event_keeps_its_place() {
    let (strait, lookout) = watched(Fault::DelayEvent(Duration::from_secs(20))).await;
    strait.clock.sleep(Duration::from_secs(2)).await;
    put(&strait.theirs, "a", "4").await.unwrap();
    assert_eq!(afterwards(&strait, &lookout).await, ["20s a=3", "20s a=4"]);
}

#[tokio::test(start_paused = true)]
async fn an_old_version_comes_back_for_a_while() {
    let (strait, lookout) = watched(Fault::ReplayOld).await;
    let caught_up = format!("{}s a=3", LAG.as_secs());
    assert_eq!(afterwards(&strait, &lookout).await, ["0s a=3", "0s a=2", &caught_up]);
}

#[tokio::test(start_paused = true)]
async fn a_first_version_has_nothing_before_it() {
    let strait = Strait::new();
    strait.faults.plan(Point::Watch(0), Fault::ReplayOld);
    let lookout = Lookout::start(strait.ours.clone(), strait.clock);
    strait.clock.sleep(Duration::from_millis(10)).await;
    strait.write("a", &["1"]).await;
    strait.clock.sleep(Duration::from_secs(5)).await;
    assert_eq!(lookout.told(), ["0s list", "0s a=1"]);
    assert!(strait.faults.struck().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_gone_makes_the_client_list() {
    let (strait, lookout) = watched(Fault::Gone).await;
    assert_eq!(afterwards(&strait, &lookout).await, ["0s Expired", "1s list", "1s has a=3"]);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_breaks_in_the_end_and_nothing_is_lost() {
    let (strait, lookout) = watched(Fault::Silent(Duration::from_secs(90))).await;
    strait.clock.sleep(Duration::from_secs(2)).await;
    put(&strait.theirs, "a", "4").await.unwrap();
    assert_eq!(afterwards(&strait, &lookout).await, ["90s broken", "91s a=3", "91s a=4"]);
}

#[tokio::test(start_paused = true)]
async fn a_restart_breaks_all_watches() {
    let (strait, lookout) = watched(Fault::Restart(Duration::from_millis(2500))).await;
    let other = Lookout::start(strait.ours.clone(), strait.clock);
    // It lists while the server is away.
    let told = afterwards(&strait, &lookout).await;
    assert_eq!(told, ["0s broken", "1s refused", "2s refused", "3s a=3"]);
    assert_eq!(other.told().last().unwrap(), "3s has a=3");
}

#[tokio::test(start_paused = true)]
async fn a_paused_process_sees_events_late() {
    let (strait, lookout) = watched(Fault::Pause(Duration::from_secs(30))).await;
    strait.clock.sleep(Duration::from_secs(2)).await;
    put(&strait.theirs, "a", "4").await.unwrap();
    assert_eq!(afterwards(&strait, &lookout).await, ["30s a=3", "30s a=4"]);
}

#[tokio::test(start_paused = true)]
async fn a_process_dies_of_an_event() {
    let (strait, lookout) = watched(Fault::CrashBefore).await;
    strait.faults.crash().await;
    put(&strait.theirs, "a", "4").await.unwrap();
    assert!(afterwards(&strait, &lookout).await.is_empty());
    assert!(!lookout.task.is_finished());
    let next = Lookout::start(strait.reborn(), strait.clock);
    strait.clock.sleep(Duration::from_millis(10)).await;
    assert_eq!(next.told(), ["0s list", "0s has a=4"]);
}
