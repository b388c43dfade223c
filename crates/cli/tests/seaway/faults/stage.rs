//! One run of one story, with its mishaps, from an empty cluster to the last rollout that proves that nothing is stuck.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use seaway_drydock::fault::{Call, Fault, Faults, Point, WatchEvent};

use super::actors::{Actor, Deed, LATEST};
use super::board::Book;
use super::ground::{Ground, INTERVAL, Terrain};
use super::hand::CANARIES;
use super::mask::{World, world};
use super::mishap::{Kind, Mishap, Outlook, PAUSE};
use super::oracle;
use super::story::{End, OLD, Story};

/// How long anything may take where nothing is known yet.
const PATIENCE: Duration = Duration::from_secs(300);
/// What convergence may take beyond what the story takes without faults.
const SLACK: u32 = 3;
/// For how many intervals nothing may be asked after the end.
const SILENCE: u32 = 10;
/// A leader that is killed does not come back in the same story.
const AWAY: Duration = Duration::from_secs(86_400);
/// The version of the rollout after the end.
const PROOF: &str = "6.1.0";

/// A story under way.
pub struct Stage {
    pub ground: Ground,
    pub story: &'static Story,
    limit: Timestamp,
    /// Cleared before the last rollout: whoever has not acted until then does not act any more.
    armed: Arc<AtomicBool>,
}

/// What is known of a run when it is over.
#[derive(Default)]
pub struct Run {
    /// Requests of the leader that belong to the story, numbered from its beginning.
    pub calls: Vec<Call>,
    /// Watch events of the leader that belong to the story.
    pub events: Vec<WatchEvent>,
    /// How long the story took to come to rest.
    pub took: Duration,
    /// How long the rollout after it took.
    pub proof_took: Duration,
    /// The objects at its end, masked.
    pub world: World,
    /// What was created and removed, by resource and name.
    pub births: BTreeMap<(&'static str, String, String), u32>,
    /// Object writes and Events of the operator.
    pub noise: (u32, u32),
    /// Which mishaps really happened.
    pub struck: usize,
    /// What went wrong, in words. Empty is what everybody hopes for.
    pub failures: Vec<String>,
    /// Requests of users.
    pub asked: u64,
    /// What building the cluster, prelude, story, silence and the rollout after it cost in real time.
    pub laps: Vec<Duration>,
    /// Everything, line by line, if it was wanted.
    pub trace: Vec<String>,
}

/// When each mishap happened.
type Strikes = Arc<Mutex<Vec<(Mishap, Timestamp)>>>;

/// Plays a story. `reference` is the same story without mishaps.
pub async fn play(story: &'static Story, mishaps: &[Mishap], terrain: &Terrain, reference: Option<&Run>) -> Run {
    let mut laps = vec![Instant::now()];
    let ground = Ground::launch(terrain).await;
    laps.push(Instant::now());
    let clock = ground.cluster.clock();
    let mut stage = Stage { ground, story, limit: clock.now() + PATIENCE, armed: Arc::new(AtomicBool::new(true)) };
    let mut run = Run::default();
    if story.adopts() {
        stage.sail(Duration::from_secs(5)).await;
    } else {
        stage.ground.person.found(CANARIES, &story.object()).await;
        if !stage.until(|book| oracle::rests_at(book, End::Initialised(OLD))).await {
            run.failures.push("never initialised".to_owned());
        }
        stage.sail(INTERVAL).await;
    }
    laps.push(Instant::now());
    let mark = Mark::here(&stage);
    let strikes = Strikes::default();
    for mishap in mishaps {
        stage.plan(*mishap, &mark, &strikes);
    }
    let lasts: Duration = mishaps.iter().map(|mishap| mishap.kind.lasts()).sum();
    let allowed = reference.map_or(PATIENCE, |reference| reference.took + lasts + INTERVAL * SLACK);
    stage.limit = mark.begin + allowed;
    let mut acted = mark.begin;
    for step in story.steps {
        acted = stage.now();
        step.happen(&stage).await;
    }
    if stage.now() >= stage.limit {
        // Somebody waited in vain; what they did afterwards takes its time all the same.
        stage.limit = stage.now() + reference.map_or(PATIENCE, |reference| reference.took) + INTERVAL * SLACK;
    }
    let ends = ends(story, mishaps);
    if mishaps.len() > 1 {
        // Each of them may cost a failed check, and one may start the analysis again.
        stage.limit += INTERVAL * SLACK * 2 + reference.map_or(Duration::ZERO, |reference| reference.took);
    }
    let converged = stage.converge(&ends, acted, &strikes).await;
    run.took = Duration::try_from(stage.last_request().max(mark.begin).duration_since(mark.begin)).unwrap_or_default();
    stage.ground.crowd.every(Duration::from_secs(5));
    laps.push(Instant::now());
    if let Err(reason) = converged {
        run.failures.push(reason);
    } else {
        stage.keeps_quiet(&ends, &mut run).await;
    }
    laps.push(Instant::now());
    mark.close(&stage, &mut run);
    if run.failures.is_empty() && terrain.proves {
        // Faults of the API that have not struck yet may still do so.
        let struck = strikes.lock().unwrap().iter().map(|(mishap, _)| mishap.kind.lasts()).sum();
        stage.prove(reference, lasts.saturating_sub(struck), &mut run).await;
    }
    stage.verdicts(&strikes.lock().unwrap(), &mut run);
    run.struck = strikes.lock().unwrap().len();
    if run.struck < mishaps.len() && mishaps.len() == 1 {
        run.failures.push("the fault never struck".to_owned());
    }
    // Several faults, or another terrain, are not held to one particular end.
    if let Some(reference) = reference.filter(|_| mishaps.len() == 1) {
        run.failures.extend(oracle::compare(reference, &run, mishaps, story));
    }
    laps.push(Instant::now());
    run.laps = laps.windows(2).map(|lap| lap[1] - lap[0]).collect();
    run.trace = stage.ground.board.read().trace.take().unwrap_or_default();
    if terrain.traced {
        for call in stage.ways().flat_map(Faults::calls) {
            run.trace.push(format!("request {} {call} {:016x} {}", call.time, call.digest, call.code));
        }
    }
    run
}

/// Where a run with these mishaps may come to rest. Of several together nobody can say more than that it is an end.
fn ends(story: &Story, mishaps: &[Mishap]) -> Vec<End> {
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

/// Whether a moment lies in the time that a mishap is given for something.
fn within(strikes: &[(Mishap, Timestamp)], time: Timestamp, more: Duration, length: fn(Kind) -> Duration) -> bool {
    strikes.iter().any(|(mishap, struck)| {
        let length = length(mishap.kind);
        !length.is_zero() && time >= *struck && time <= *struck + length + more
    })
}

/// What the counters showed when the story began.
struct Mark {
    begin: Timestamp,
    call: u64,
    event: u64,
    births: BTreeMap<(&'static str, String, String), u32>,
    noise: (u32, u32),
}

impl Mark {
    fn here(stage: &Stage) -> Self {
        let faults = &stage.ground.crew.leader.faults;
        let call = faults.calls().iter().filter_map(|call| call.index).max().map_or(0, |index| index + 1);
        let event = faults.watch_events().len() as u64;
        let begin = stage.ground.cluster.clock().now();
        let book = stage.ground.board.read();
        Self { begin, call, event, births: book.births.clone(), noise: (book.writes, book.events) }
    }

    /// What happened since.
    fn close(&self, stage: &Stage, run: &mut Run) {
        let faults = &stage.ground.crew.leader.faults;
        let since = |index: Option<u64>| index.and_then(|index| index.checked_sub(self.call));
        run.calls = faults
            .calls()
            .into_iter()
            .filter_map(|call| Some(Call { index: Some(since(call.index)?), ..call }))
            .collect();
        run.events = faults
            .watch_events()
            .into_iter()
            .filter_map(|event| Some(WatchEvent { index: event.index.checked_sub(self.event)?, ..event }))
            .collect();
        let book = stage.ground.board.read();
        run.births = book.births.clone();
        for (key, count) in &self.births {
            if let Some(total) = run.births.get_mut(key) {
                *total -= count;
            }
        }
        run.births.retain(|_, count| *count > 0);
        run.noise = (book.writes - self.noise.0, book.events - self.noise.1);
        run.world = world(&book);
    }
}

impl Stage {
    /// Waits for something, at most until the run's limit.
    pub async fn until(&self, holds: impl Fn(&Book) -> bool) -> bool {
        self.ground.board.until(self.limit, holds).await
    }

    /// Lets simulated time pass.
    pub async fn sail(&self, duration: Duration) {
        self.ground.cluster.clock().sleep(duration).await;
    }

    fn now(&self) -> Timestamp {
        self.ground.cluster.clock().now()
    }

    /// Places a mishap; points count from the beginning of the story.
    fn plan(&self, mishap: Mishap, mark: &Mark, strikes: &Strikes) {
        let leader = &self.ground.crew.leader;
        let at = match mishap.at {
            Point::Call(index) => Point::Call(mark.call + index),
            Point::Watch(index) => Point::Watch(mark.event + index),
        };
        let (clock, board, strikes) = (self.ground.cluster.clock(), self.ground.board.clone(), strikes.clone());
        leader.faults.on(at, move || {
            board.note(|| format!("fault {mishap}"));
            strikes.lock().unwrap().push((mishap, clock.now()));
        });
        let actor = Actor::on(&self.ground, self.story);
        let watch = leader.watch.clone();
        match mishap.kind {
            Kind::Api(fault) => leader.faults.plan(at, fault),
            Kind::LeaderKilled => {
                let away = leader.away.clone();
                leader.faults.on(at, move || *away.lock().unwrap() = AWAY);
                leader.faults.plan(at, Fault::CrashBefore);
            }
            Kind::LeaderPaused => {
                // What is on its way goes out first, then the process wakes up.
                leader.faults.on(at, move || watch.freeze(PAUSE + Duration::from_millis(5)));
                leader.faults.plan(at, Fault::Pause(PAUSE));
            }
            Kind::ClockSet(hours) => leader.faults.on(at, move || watch.set(Kind::wrong_by(hours))),
            Kind::Outside(server, mood) => {
                let outside = self.ground.outside.clone();
                leader.faults.on(at, move || outside.mood(server, mood, super::mishap::SPELL));
            }
            Kind::Pods(harm) => leader.faults.before(at, self.while_armed(actor.harm(harm))),
            Kind::Writer(edit) => leader.faults.before(at, self.while_armed(actor.write(edit))),
            Kind::Person(deed) => leader.faults.before(at, self.while_armed(actor.act(deed))),
        }
    }

    /// Somebody's act, unless it comes too late.
    fn while_armed<F>(&self, act: F) -> impl Future<Output = ()> + Send + use<F>
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let armed = self.armed.clone();
        async move {
            if armed.load(Ordering::Relaxed) {
                act.await;
            }
        }
    }

    /// Everybody's way to the API server.
    fn ways(&self) -> impl Iterator<Item = &Faults> {
        let crew = &self.ground.crew;
        [Some(&crew.leader), crew.standby.as_ref()].into_iter().flatten().map(|member| &member.faults)
    }

    /// When the operator last asked for something, Leases aside.
    fn last_request(&self) -> Timestamp {
        let last = |faults: &Faults| {
            let calls = faults.calls();
            calls.iter().rev().find(|call| call.index.is_some()).map(|call| call.time)
        };
        self.ways().filter_map(last).max().unwrap_or_default()
    }

    /// Waits until the story is at one of its ends and the operator has said all it had to say.
    async fn converge(&self, ends: &[End], acted: Timestamp, strikes: &Strikes) -> Result<(), String> {
        // Where the story stands before its last step may be one of its ends too, so somebody has to move first.
        let patience = acted + INTERVAL * SLACK;
        while self.last_request() <= acted && self.now() < patience {
            self.sail(Duration::from_secs(1)).await;
        }
        let at_end = |book: &Book| ends.iter().any(|end| oracle::rests_at(book, *end));
        loop {
            if !self.until(at_end).await {
                let book = self.ground.board.read();
                return Err(format!("no end: {}", oracle::situation(&book)));
            }
            // A fault that is not over yet may still make itself heard.
            let over = |(mishap, struck): &(Mishap, Timestamp)| *struck + mishap.kind.lasts();
            let over = strikes.lock().unwrap().iter().map(over).max().unwrap_or_default();
            let quiet = (self.last_request() + INTERVAL).max(over);
            let now = self.now();
            if quiet <= now {
                return Ok(());
            }
            if self.last_request() > self.limit {
                return Err(format!("no rest: {}", oracle::situation(&self.ground.board.read())));
            }
            self.ground.cluster.clock().sleep_until(quiet).await;
        }
    }

    /// Then nothing is asked for ten intervals, and everything stays as it is.
    async fn keeps_quiet(&self, ends: &[End], run: &mut Run) {
        let last = self.last_request();
        self.sail(INTERVAL * (SILENCE - 1)).await;
        for faults in self.ways() {
            let late: Vec<String> = faults
                .calls()
                .iter()
                .filter(|call| call.index.is_some() && call.time > last)
                .map(ToString::to_string)
                .collect();
            if !late.is_empty() {
                run.failures.push(format!("not silent: {late:?}"));
            }
        }
        let book = self.ground.board.read();
        if !ends.iter().any(|end| oracle::rests_at(&book, *end)) {
            run.failures.push(format!("left its end: {}", oracle::situation(&book)));
        }
    }

    /// One more rollout, which must work whatever happened before.
    async fn prove(&mut self, reference: Option<&Run>, late: Duration, run: &mut Run) {
        let begin = self.now();
        self.armed.store(false, Ordering::Relaxed);
        // An adoption is quicker than a rollout; the bound is the rollout's.
        let usual = |reference: &Run| reference.proof_took.max(INTERVAL * 6) + INTERVAL * SLACK + late;
        let allowed = reference.map_or(PATIENCE, usual);
        self.limit = begin + allowed;
        self.ground.crowd.every(Duration::from_millis(500));
        self.ground.outside.answer("/rollback", 403);
        let gone = self.ground.board.read().canary().is_none();
        let end = if gone {
            let tag = self.ground.board.read().tag("podinfo").to_owned();
            if self.story.unfit {
                // Nothing can be adopted that does not run as primary.
                self.ground.person.set_image(PROOF, "").await;
            }
            self.ground.person.create(CANARIES, &self.story.object()).await;
            let known = self.story.tags().chain([OLD, LATEST]).find(|known| *known == tag && !self.story.unfit);
            End::Initialised(known.unwrap_or(PROOF))
        } else {
            // What never was initialised is initialised with the new version at once.
            let adopts = oracle::rests_at(&self.ground.board.read(), End::Adopting);
            self.ground.person.set_image(PROOF, "").await;
            if adopts { End::Initialised(PROOF) } else { End::Promoted(PROOF) }
        };
        // With faults still to come the Canary may be created anew even now.
        let adopted = |book: &Book| !late.is_zero() && oracle::rests_at(book, End::Initialised(PROOF));
        if !self.until(|book| oracle::rests_at(book, end) || adopted(book)).await {
            let book = self.ground.board.read();
            run.failures.push(format!("the rollout after it never ended: {}", oracle::situation(&book)));
        }
        run.proof_took = Duration::try_from(self.now().duration_since(begin)).unwrap_or_default();
    }

    /// What was seen all along: invariants at every commit, preconditions of every write, answers to users.
    fn verdicts(&self, strikes: &[(Mishap, Timestamp)], run: &mut Run) {
        let violations = self.ground.lookout.timed_violations().into_iter();
        run.failures.extend(
            violations
                .filter(|(time, _)| !within(strikes, *time, Duration::ZERO, Kind::surprises))
                .map(|(_, violation)| violation),
        );
        run.failures.append(&mut self.ground.board.read().breaches);
        for faults in self.ways() {
            run.failures.extend(faults.calls().iter().filter_map(super::guard::careless));
        }
        run.asked = self.ground.crowd.asked();
        let ours = self.ground.crowd.bad().into_iter();
        // What another fault keeps the operator from repairing stays broken for as long as that fault lasts.
        let others: Duration = strikes.iter().map(|(mishap, _)| mishap.kind.lasts()).sum();
        let others = if strikes.len() > 1 { others } else { Duration::ZERO };
        let ours: Vec<_> = ours.filter(|(time, _)| !within(strikes, *time, others, Kind::hurts_users)).collect();
        if let Some((time, first)) = ours.first() {
            let begin = self.ground.board.read().seconds(*time);
            run.failures.push(format!("{} bad answers, the first at {begin:.1} s: {first}", ours.len()));
        }
    }
}
