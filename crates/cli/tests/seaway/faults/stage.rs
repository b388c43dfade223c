//! One run of one story, with its mishaps, from an empty cluster to the last rollout that proves that nothing is stuck.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use seaway_drydock::fault::{Call, Faults, WatchEvent};

use super::actors::LATEST;
use super::board::{Births, Book};
use super::forks::{self, Outcomes, Wanted};
use super::ground::{Ground, INTERVAL, Terrain};
use super::hand::CANARIES;
use super::mask::{World, world};
use super::mishap::{Kind, Mishap};
use super::oracle;
use super::plot::{PATIENCE, Plot, SLACK};
use super::story::{End, OLD, Story};

/// For how many intervals nothing may be asked after the end.
const SILENCE: u32 = 10;
/// How long a watch that broke more than once may wait before it lists again.
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// The version of the rollout after the end.
const PROOF: &str = "6.1.0";

/// A story under way.
pub struct Stage {
    pub ground: Ground,
    pub story: &'static Story,
    plot: Plot,
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
    pub births: Births,
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

/// What is to happen to a story.
pub enum Fate<'a> {
    /// These mishaps.
    Mishaps(&'a [Mishap]),
    /// Nothing here, and one of these in each of the processes that it forks into.
    Forks(&'a Wanted, &'a Outcomes),
}

/// Plays a story. `reference` is the same story without mishaps.
pub async fn play(story: &'static Story, fate: &Fate<'_>, terrain: &Terrain, reference: Option<&Run>) -> Run {
    let mut laps = vec![Instant::now()];
    let ground = Ground::launch(terrain).await;
    laps.push(Instant::now());
    let plot = Plot::on(&ground, story, reference.map(|reference| reference.took), terrain.proves);
    let stage = Stage { ground, story, plot: plot.clone() };
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
    plot.begin(mark.call, mark.event);
    match fate {
        Fate::Mishaps(mishaps) => mishaps.iter().for_each(|mishap| plot.place(*mishap)),
        Fate::Forks(wanted, outcomes) => forks::split(wanted, &plot, outcomes),
    }
    let mut acted = mark.begin;
    for step in story.steps {
        acted = stage.now();
        step.happen(&stage).await;
    }
    plot.put_off();
    let converged = stage.converge(acted).await;
    run.took = Duration::try_from(stage.last_request().max(mark.begin).duration_since(mark.begin)).unwrap_or_default();
    stage.ground.crowd.every(Duration::from_secs(5));
    laps.push(Instant::now());
    if let Err(reason) = converged {
        run.failures.push(reason);
    } else {
        stage.keeps_quiet(&mut run).await;
    }
    laps.push(Instant::now());
    mark.close(&stage, &mut run);
    if run.failures.is_empty() && plot.proves() {
        stage.prove(reference, &mut run).await;
    }
    let (mishaps, strikes) = (plot.mishaps(), plot.strikes());
    stage.verdicts(&strikes, &mut run);
    run.struck = strikes.len();
    if let [mishap] = mishaps.as_slice() {
        if strikes.is_empty() {
            run.failures.push("the fault's point was never reached".to_owned());
        } else if matches!(mishap.kind, Kind::Api(_)) {
            // At some points there is nothing that it could do: no older version to answer with, nothing to re-create.
            run.struck = stage.ground.crew.leader.faults.struck().len();
        }
    }
    // Several faults, or another terrain, are not held to one particular end.
    if let Some(reference) = reference.filter(|_| mishaps.len() == 1) {
        run.failures.extend(oracle::compare(reference, &run, &mishaps, story));
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

/// Whether a moment lies in the time that a mishap is given for something.
fn within(strikes: &[(Mishap, Timestamp)], time: Timestamp, more: Duration, length: impl Fn(Kind) -> Duration) -> bool {
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
    births: Births,
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
        run.world = world(&book, stage.ground.crew.standby.is_some());
    }
}

impl Stage {
    /// Waits for something, at most until the run's limit.
    pub async fn until(&self, holds: impl Fn(&Book) -> bool) -> bool {
        self.ground.board.until(|| self.plot.limit(), holds).await
    }

    /// Lets simulated time pass.
    pub async fn sail(&self, duration: Duration) {
        self.ground.cluster.clock().sleep(duration).await;
    }

    fn now(&self) -> Timestamp {
        self.ground.cluster.clock().now()
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
    async fn converge(&self, acted: Timestamp) -> Result<(), String> {
        // Where the story stands before its last step may be one of its ends too, so somebody has to move first.
        let patience = acted + INTERVAL * SLACK;
        while self.last_request() <= acted && self.now() < patience {
            self.sail(Duration::from_secs(1)).await;
        }
        loop {
            if !self.until(|book| self.at_end(book)).await {
                let book = self.ground.board.read();
                return Err(format!("no end: {}", oracle::situation(&book)));
            }
            // A fault that is not over yet may still make itself heard.
            let over = |(mishap, struck): &(Mishap, Timestamp)| *struck + mishap.kind.lasts();
            let strikes = self.plot.strikes();
            let over = strikes.iter().map(over).max().unwrap_or_default();
            let over = if strikes.len() > 1 { over + LONGEST_RETRY } else { over };
            let quiet = (self.last_request() + INTERVAL).max(over);
            let now = self.now();
            if quiet <= now {
                return Ok(());
            }
            if self.last_request() > self.plot.limit() {
                return Err(format!("no rest: {}", oracle::situation(&self.ground.board.read())));
            }
            self.ground.cluster.clock().sleep_until(quiet).await;
        }
    }

    fn at_end(&self, book: &Book) -> bool {
        self.plot.ends().iter().any(|end| oracle::rests_at(book, *end))
    }

    /// Then nothing is asked for ten intervals, and everything stays as it is.
    async fn keeps_quiet(&self, run: &mut Run) {
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
        if !self.at_end(&book) {
            run.failures.push(format!("left its end: {}", oracle::situation(&book)));
        }
    }

    /// One more rollout, which must work whatever happened before.
    async fn prove(&self, reference: Option<&Run>, run: &mut Run) {
        let begin = self.now();
        // Faults of the API that have not struck yet may still do so.
        let late = self.plot.outstanding();
        // An adoption is quicker than a rollout; the bound is the rollout's.
        let usual = |reference: &Run| reference.proof_took.max(INTERVAL * 6) + INTERVAL * SLACK + late;
        self.plot.end(reference.map_or(PATIENCE, usual));
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
        // What another fault keeps the operator from hearing or repairing goes on for as long as that fault lasts.
        let others: Duration = strikes.iter().map(|(mishap, _)| mishap.kind.lasts()).sum();
        let others = if strikes.len() > 1 { others } else { Duration::ZERO };
        let violations = self.ground.lookout.timed_violations().into_iter();
        run.failures.extend(
            violations
                .filter(|(time, _)| !within(strikes, *time, others, Kind::surprises))
                .map(|(_, violation)| violation),
        );
        run.failures.append(&mut self.ground.board.read().breaches);
        for faults in self.ways() {
            run.failures.extend(faults.calls().iter().filter_map(super::guard::careless));
        }
        run.asked = self.ground.crowd.asked();
        let ours = self.ground.crowd.bad().into_iter();
        let hurts = |kind: Kind| kind.hurts_users(self.story);
        let ours: Vec<_> = ours.filter(|(time, _)| !within(strikes, *time, others, hurts)).collect();
        if let Some((time, first)) = ours.first() {
            let begin = self.ground.board.read().seconds(*time);
            run.failures.push(format!("{} bad answers, the first at {begin:.1} s: {first}", ours.len()));
        }
    }
}
