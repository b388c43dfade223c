//! What has been seen of the demo, as one value. Pure: sights go in, changes worth telling come out.
//!
//! The canary is seen as `seaway watch` sees it; here is what only the demo knows: its story and its users.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use jiff::Timestamp;
use seaway_api::Phase;
use serde::Serialize;

use super::story::{NAME, NAMESPACE};
use crate::watch::objects::Key;
use crate::watch::world::{self, World};

/// Simulated time over which the shares of versions are counted.
const RECENTLY: Duration = Duration::from_secs(30);
/// Simulated time between two counts that are kept.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// Where the story is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Chapter {
    /// The cluster starts and the app is brought under control.
    #[default]
    Launch,
    /// A good version is released.
    Promotion,
    /// A bad version is released.
    Rollback,
    /// It is over.
    End,
}

/// One thing that was seen.
#[derive(Clone, Debug, PartialEq)]
pub enum Sight {
    /// The story moved on; `version` is what is released in it.
    Chapter(Chapter, String),
    /// Something in the cluster.
    Cluster(world::Sight),
    /// What clients have met so far.
    Load(Load),
}

/// What clients met.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Load {
    /// Requests that were answered or given up.
    pub requests: u64,
    /// Failed, and not answered by a pod that is scripted to fail: the rollout's fault.
    pub blamed: u64,
    /// By the version that answered; the empty version is nobody.
    pub versions: BTreeMap<String, Tally>,
}

/// Requests to one version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// Of these, failed.
    pub errors: u64,
}

/// Something new that is worth telling.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The next chapter.
    Chapter {
        /// Which.
        chapter: Chapter,
        /// What is released in it.
        version: String,
    },
    /// The canary changed.
    Canary(world::Change),
}

/// Everything that has been seen.
#[derive(Clone, Debug)]
pub struct Model {
    /// Simulated seconds per second.
    pub speed: u32,
    /// When the story began.
    pub began: Timestamp,
    /// The simulated time.
    pub now: Timestamp,
    /// Where the story is.
    pub chapter: Chapter,
    /// The cluster.
    pub world: World,
    /// What clients met.
    pub load: Load,
    /// What they had met a little earlier, oldest first.
    earlier: VecDeque<(Timestamp, Load)>,
    /// Every phase that was seen, in order.
    pub phases: Vec<Phase>,
    /// Version of each release: the app's first, the good one, the bad one.
    pub versions: Vec<String>,
}

impl Model {
    /// Nothing has been seen yet.
    pub fn new(began: Timestamp, speed: u32, version: &str) -> Self {
        Self {
            speed,
            began,
            now: began,
            chapter: Chapter::default(),
            world: World::new(began),
            load: Load::default(),
            earlier: VecDeque::new(),
            phases: Vec::new(),
            versions: vec![version.to_owned()],
        }
    }

    /// The canary it is about.
    pub fn key() -> Key {
        Key::new(NAMESPACE, NAME)
    }

    /// Takes in a sight; what is new about it comes back.
    pub fn see(&mut self, now: Timestamp, sight: Sight) -> Vec<Change> {
        self.now = self.now.max(now);
        match sight {
            Sight::Chapter(chapter, version) => {
                self.chapter = chapter;
                if matches!(chapter, Chapter::Promotion | Chapter::Rollback) {
                    self.versions.push(version.clone());
                }
                vec![Change::Chapter { chapter, version }]
            }
            Sight::Cluster(sight) => {
                let changes = self.world.take(self.now, sight);
                self.phases.extend(changes.iter().filter_map(|(_, change)| match change {
                    world::Change::Phase { phase } => Some(*phase),
                    _ => None,
                }));
                changes.into_iter().map(|(_, change)| Change::Canary(change)).collect()
            }
            Sight::Load(load) => {
                self.count(load);
                Vec::new()
            }
        }
    }

    fn count(&mut self, load: Load) {
        let due = self.earlier.back().is_none_or(|(at, _)| elapsed(*at, self.now) >= COUNT_EVERY);
        if due {
            self.earlier.push_back((self.now, load.clone()));
        }
        while self.earlier.front().is_some_and(|(at, _)| elapsed(*at, self.now) > RECENTLY) {
            self.earlier.pop_front();
        }
        self.load = load;
    }

    /// Which share of the last requests a version answered, in percent; `None` when there were none.
    pub fn share(&self, version: &str) -> Option<f64> {
        let (_, before) = self.earlier.front()?;
        let all = self.load.requests.saturating_sub(before.requests);
        let of = |load: &Load| load.versions.get(version).map_or(0, |tally| tally.requests);
        let its = of(&self.load).saturating_sub(of(before));
        (all > 0).then(|| its as f64 * 100.0 / all as f64)
    }

    /// The Canary's phase.
    pub fn phase(&self) -> Phase {
        self.world.canary(&Self::key()).map(|known| known.facts.phase()).unwrap_or_default()
    }

    /// Simulated time since the story began.
    pub fn elapsed(&self) -> Duration {
        elapsed(self.began, self.now)
    }
}

fn elapsed(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use seaway_api::Canary;

    use super::*;
    use crate::watch::canary::{CanaryFacts, raw};
    use crate::watch::objects::Object;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn load(old: u64, new: u64) -> Sight {
        let versions = [("6.0.0", old), ("6.0.1", new)];
        let versions = versions.map(|(version, requests)| (version.to_owned(), Tally { requests, errors: 0 })).into();
        Sight::Load(Load { requests: old + new, blamed: 0, versions })
    }

    #[test]
    fn phases_are_remembered_in_order() {
        let mut model = Model::new(at(0), 20, "6.0.0");
        for phase in [Phase::Initializing, Phase::Initialized, Phase::Initialized] {
            let facts = CanaryFacts::of(&raw(&Canary::test().at(phase)));
            model.see(at(1), Sight::Cluster(world::Sight::Seen(Object::Canary(Box::new(facts)))));
        }
        assert_eq!(
            (model.phases.as_slice(), model.phase()),
            (&[Phase::Initializing, Phase::Initialized][..], Phase::Initialized)
        );
    }

    #[test]
    fn shares_are_those_of_the_last_seconds() {
        let mut model = Model::new(at(0), 20, "6.0.0");
        assert_eq!(model.share("6.0.0"), None);
        model.see(at(0), load(1000, 0));
        assert_eq!(model.share("6.0.0"), None, "nothing happened since");
        model.see(at(10), load(1090, 10));
        assert_eq!((model.share("6.0.0"), model.share("6.0.1")), (Some(90.0), Some(10.0)));
        model.see(at(35), load(1140, 60));
        assert_eq!(model.share("6.0.1"), Some(50.0), "what is long past does not count");
    }
}
