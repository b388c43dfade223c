//! The app's users: a steady stream of requests through the gateway, from outside the cluster, as long as the story
//! lasts. Every answer is counted by the version that gave it.

use std::sync::{Arc, Mutex, PoisonError};

use http::Uri;
use seaway_drydock::load::{self, Outcome, Record, Road, Stop};
use seaway_drydock::{Clock, Cluster};
use tokio_util::task::AbortOnDropHandle;

use super::model::{Load, Sight};
use super::story::BAD;

const HOST: &str = "www.example.com";
const GATEWAY: (&str, u16) = ("gateway-istio.istio-ingress", 80);

/// Users who ask at the same time.
const WORKERS: usize = 7;
/// Requests per second of ours, all users together, whatever the cluster's clock does. A gateway that takes turns must
/// not meet these users and the load test always at the same turn, so the two rates have no common measure.
const RATE: f64 = 83.0;
/// Requests per simulated second at least: a story told faster still needs its thousands of requests.
const LEAST_RATE: f64 = 3.1;

/// Users who come, ask again and again, and leave.
pub struct Users {
    road: Road,
    clock: Clock,
    met: Arc<Mutex<Load>>,
    here: Mutex<Option<AbortOnDropHandle<()>>>,
}

impl Users {
    /// Users of the app in this cluster; they come when told.
    pub fn of(cluster: &Cluster) -> Self {
        let names = cluster.names().clone();
        let road = Road::Dial(Arc::new(move || {
            let names = names.clone();
            Box::pin(async move { names.dial(GATEWAY.0, GATEWAY.1).await })
        }));
        Self { road, clock: cluster.clock(), met: Arc::default(), here: Mutex::default() }
    }

    /// They come and ask until they leave.
    pub fn come(&self) {
        let rate = (RATE / f64::from(self.clock.speed())).max(LEAST_RATE) / WORKERS as f64;
        let asked =
            load::Load::get(Uri::from_static("/")).host(HOST).pace(WORKERS, Some(rate)).until(Stop::Count(u64::MAX));
        let (road, clock, met) = (self.road.clone(), self.clock, Arc::clone(&self.met));
        let task = tokio::spawn(async move {
            let watch = move |record: &Record| count(&mut met.lock().unwrap_or_else(PoisonError::into_inner), record);
            load::run(&asked, &road, clock, watch).await;
        });
        *self.here.lock().unwrap_or_else(PoisonError::into_inner) = Some(AbortOnDropHandle::new(task));
    }

    /// They leave; an answer that is still under way is not waited for.
    pub async fn leave(&self) {
        let here = self.here.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(here) = here {
            here.abort();
            // Cancelled is what it should be.
            let _ = here.await;
        }
    }

    /// What they have met so far.
    pub fn met(&self) -> Sight {
        Sight::Load(self.met.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}

/// Counts one request. A failure is the rollout's fault unless a pod of the version that is scripted to fail gave it.
fn count(load: &mut Load, record: &Record) {
    let good = matches!(record.outcome, Outcome::Status(200..=399));
    let version = record.version.clone().unwrap_or_default();
    load.requests += 1;
    load.blamed += u64::from(!good && version != BAD);
    let tally = load.versions.entry(version).or_default();
    tally.requests += 1;
    tally.errors += u64::from(!good);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use jiff::Timestamp;

    use super::*;

    fn record(outcome: Outcome, version: Option<&str>) -> Record {
        Record {
            at: Timestamp::UNIX_EPOCH,
            outcome,
            version: version.map(str::to_owned),
            pod: None,
            fault: None,
            latency: Duration::ZERO,
            bytes: 0,
        }
    }

    #[test]
    fn only_the_bad_version_may_fail() {
        let mut load = Load::default();
        count(&mut load, &record(Outcome::Status(200), Some("6.0.1")));
        count(&mut load, &record(Outcome::Status(500), Some(BAD)));
        assert_eq!(load.blamed, 0);
        count(&mut load, &record(Outcome::Status(500), Some("6.0.1")));
        count(&mut load, &record(Outcome::Status(404), None));
        count(&mut load, &record(Outcome::Status(503), None));
        count(&mut load, &record(Outcome::Broken("connection refused".to_owned()), None));
        assert_eq!(load.blamed, 4, "a missing route or a refused connection is nobody's script");
        assert_eq!(load.requests, 6);
    }
}
