//! What is planned against a run, and what follows from it: how long the run may take and where it may end.
//!
//! Detached from the stage, so that a mishap can be added from inside the very request it is to strike: that is how
//! [`forks`](super::forks) tells one story with many faults.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use seaway_drydock::Clock;
use seaway_drydock::fault::{Fault, Faults, Point};

use super::actors::{Actor, Deed, LATEST};
use super::board::Board;
use super::crew::Watch;
use super::ground::{Ground, INTERVAL};
use super::mishap::{Kind, Mishap, Outlook, PAUSE, SPELL};
use super::outside::Outside;
use super::story::{End, OLD, Story};

/// How long anything may take where nothing is known yet.
pub const PATIENCE: Duration = Duration::from_secs(300);
/// What convergence may take beyond what the story takes without faults.
pub const SLACK: u32 = 3;
/// A leader that is killed does not come back in the same story.
const AWAY: Duration = Duration::from_secs(86_400);

/// The plan of one run; clones share it.
#[derive(Clone)]
pub struct Plot {
    story: &'static Story,
    /// How long the story takes without mishaps, if that is known.
    usual: Option<Duration>,
    faults: Faults,
    watch: Watch,
    away: Arc<Mutex<Duration>>,
    outside: Outside,
    board: Board,
    clock: Clock,
    actor: Actor,
    state: Arc<Mutex<State>>,
}

struct State {
    /// When the story began, and the numbers of its first request and event.
    begin: (Timestamp, u64, u64),
    limit: Timestamp,
    mishaps: Vec<Mishap>,
    strikes: Vec<(Mishap, Timestamp)>,
    proves: bool,
    /// Whoever has not acted when the story is over does not act any more.
    over: bool,
}

impl Plot {
    /// Nothing planned yet.
    pub fn on(ground: &Ground, story: &'static Story, usual: Option<Duration>, proves: bool) -> Self {
        let (leader, clock) = (&ground.crew.leader, ground.cluster.clock());
        let begin = clock.now();
        let state = State {
            begin: (begin, 0, 0),
            limit: begin + PATIENCE,
            mishaps: Vec::new(),
            strikes: Vec::new(),
            proves,
            over: false,
        };
        Self {
            story,
            usual,
            faults: leader.faults.clone(),
            watch: leader.watch.clone(),
            away: leader.away.clone(),
            outside: ground.outside.clone(),
            board: ground.board.clone(),
            clock,
            actor: Actor::on(ground, story),
            state: Arc::new(Mutex::new(state)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// The story begins: points count from here.
    pub fn begin(&self, call: u64, event: u64) {
        let now = self.clock.now();
        let mut state = self.lock();
        state.begin = (now, call, event);
        state.limit = self.limit_of(&state);
    }

    /// A point of the story as the leader's requests and events are counted.
    fn counted(&self, at: Point) -> Point {
        let (_, call, event) = self.lock().begin;
        match at {
            Point::Call(index) => Point::Call(call + index),
            Point::Watch(index) => Point::Watch(event + index),
        }
    }

    /// Calls back at a point of the story.
    pub fn at(&self, at: Point, act: impl FnOnce() + Send + 'static) {
        self.faults.on(self.counted(at), act);
    }

    /// Places a mishap. The run is given the time it needs on top.
    pub fn place(&self, mishap: Mishap) {
        {
            let mut state = self.lock();
            state.mishaps.push(mishap);
            state.limit = self.limit_of(&state);
        }
        let at = self.counted(mishap.at);
        // Nothing that is planned may hold the plan: what never happens would keep the whole cluster in memory.
        let (board, clock, state) = (self.board.clone(), self.clock, self.state.clone());
        self.faults.on(at, move || {
            board.note(|| format!("fault {mishap}"));
            state.lock().unwrap().strikes.push((mishap, clock.now()));
        });
        let watch = self.watch.clone();
        match mishap.kind {
            Kind::Api(fault) => self.faults.plan(at, fault),
            Kind::LeaderKilled => {
                let away = self.away.clone();
                self.faults.on(at, move || *away.lock().unwrap() = AWAY);
                self.faults.plan(at, Fault::CrashBefore);
            }
            Kind::LeaderPaused => {
                // What is on its way goes out first, then the process wakes up.
                self.faults.on(at, move || watch.freeze(PAUSE + Duration::from_millis(5)));
                self.faults.plan(at, Fault::Pause(PAUSE));
            }
            Kind::ClockSet(hours) => self.faults.on(at, move || watch.set(Kind::wrong_by(hours))),
            Kind::Outside(server, mood) => {
                let outside = self.outside.clone();
                self.act(at, async move { outside.mood(server, mood, SPELL) });
            }
            Kind::Pods(harm) => self.act(at, self.actor.clone().harm(harm)),
            Kind::Writer(edit) => self.act(at, self.actor.clone().write(edit)),
            Kind::Person(deed) => self.act(at, self.actor.clone().act(deed)),
        }
    }

    /// Somebody acts at a point, unless it comes too late.
    fn act(&self, at: Point, act: impl Future<Output = ()> + Send + 'static) {
        let state = self.state.clone();
        self.faults.before(at, async move {
            let over = state.lock().unwrap().over;
            if !over {
                act.await;
            }
        });
    }

    fn limit_of(&self, state: &State) -> Timestamp {
        state.begin.0 + self.allowed(state)
    }

    /// How long the story may take with all that is planned.
    fn allowed(&self, state: &State) -> Duration {
        let lasts: Duration = state.mishaps.iter().map(|mishap| mishap.kind.lasts()).sum();
        let mut allowed = self.usual.map_or(PATIENCE, |usual| usual + lasts + INTERVAL * SLACK);
        if state.mishaps.len() > 1 {
            // Each of them may cost a failed check, and one may start the analysis again.
            allowed += INTERVAL * SLACK * 2 + self.usual.unwrap_or_default();
        }
        allowed
    }

    /// When everything has to be over.
    pub fn limit(&self) -> Timestamp {
        self.lock().limit
    }

    /// Gives more time if somebody waited in vain until now: what they did afterwards takes its time all the same.
    pub fn put_off(&self) {
        let now = self.clock.now();
        let mut state = self.lock();
        if now >= state.limit {
            // Faults that were placed behind the wait strike only now.
            state.limit = now + self.allowed(&state);
        }
    }

    /// The story is over; so much more time for what follows.
    pub fn end(&self, more: Duration) {
        let now = self.clock.now();
        let mut state = self.lock();
        (state.over, state.limit) = (true, now + more);
    }

    /// What is planned.
    pub fn mishaps(&self) -> Vec<Mishap> {
        self.lock().mishaps.clone()
    }

    /// When each mishap happened.
    pub fn strikes(&self) -> Vec<(Mishap, Timestamp)> {
        self.lock().strikes.clone()
    }

    /// How long the mishaps last that have not happened yet.
    pub fn outstanding(&self) -> Duration {
        let state = self.lock();
        let struck: Duration = state.strikes.iter().map(|(mishap, _)| mishap.kind.lasts()).sum();
        let lasts: Duration = state.mishaps.iter().map(|mishap| mishap.kind.lasts()).sum();
        lasts.saturating_sub(struck)
    }

    /// Whether one more rollout follows the end.
    pub fn proves(&self) -> bool {
        self.lock().proves
    }

    /// Decides that anew.
    pub fn prove(&self, proves: bool) {
        self.lock().proves = proves;
    }

    /// Where the run may come to rest. Of several mishaps together nobody can say more than that it is an end.
    pub fn ends(&self) -> Vec<End> {
        let (story, mishaps) = (self.story, self.mishaps());
        let outlooks: Vec<Outlook> = mishaps.iter().map(|mishap| mishap.kind.outlook(story)).collect();
        match outlooks.as_slice() {
            [Outlook::OneOf(ends)] => ends.clone(),
            outlooks if outlooks.iter().all(|outlook| *outlook == Outlook::Same) => vec![story.end],
            _ => {
                let deleted = mishaps.iter().any(|mishap| mishap.kind == Kind::Person(Deed::Delete));
                let mut ends = vec![story.end];
                ends.extend(deleted.then_some(End::Left));
                ends.extend(story.unfit.then_some(End::Adopting));
                let tags = story.tags().chain([OLD, LATEST]);
                ends.extend(tags.flat_map(|tag| [End::Initialised(tag), End::Promoted(tag), End::Failed(tag)]));
                ends
            }
        }
    }
}
