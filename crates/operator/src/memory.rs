//! What one process remembers of a canary between two rounds.
//!
//! Nothing here is needed to be safe: all of it is lost in a restart, and the next process derives what it needs from
//! the status and the world. It saves asking twice, saying twice and hurrying where something keeps failing.
//!
//! Times are kept as passed time and handed out as dates of the round that asks, so that nobody who sets the clock makes a
//! wait longer or shorter. Only what an earlier process has written is read as a date, once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use seaway_adapters::routers::RouteReading;
use seaway_adapters::targets::names::InUse;
use seaway_adapters::world::Fetched;
use seaway_api::canary::{CanaryStatus, Phase};
use seaway_api::{Canary, FieldError};
use seaway_core::plan::{Plan, Settings};
use seaway_core::question::{Answer, QuestionKey, Subject};
use seaway_core::rollout::step;
use seaway_core::status::ROLLING_BACK;
use tokio::task::JoinHandle;
use tokio_util::task::AbortOnDropHandle;

use crate::ask::Answered;
use crate::clock::Moment;
use crate::key::CanaryKey;

/// Texts said that are remembered per canary, by hash: thousands of canaries must not cost megabytes of texts.
const SAID: usize = 128;

/// Copies of configs are kept for this long at most, in a promotion that does not end too.
const COPIES_STAY: Duration = Duration::from_secs(600);

/// What is remembered of one canary.
#[derive(Default)]
pub(crate) struct Memory {
    /// Uid of the Canary all of it is about.
    uid: String,
    /// The generation of the spec that was looked at last, whether its Canary was being deleted, and what came of it.
    judged: Option<(i64, bool, Judged)>,
    /// The last plan there was. Questions point into it.
    plan: Option<Arc<Plan>>,
    /// Answers that came back.
    pub(crate) answers: BTreeMap<QuestionKey, Answer>,
    /// Questions under way.
    pub(crate) asked: BTreeMap<QuestionKey, Asking>,
    /// Questions asked so far.
    asks: u64,
    /// When the first question of the present tick was asked.
    pub(crate) tick_began: Option<Duration>,
    /// Failed rounds in a row.
    pub(crate) failures: u32,
    /// Nothing of the leader before can be written any more.
    pub(crate) in_term: bool,
    /// Rounds in a row that wrote something.
    pub(crate) busy: u32,
    /// What a failing round complained about last.
    pub(crate) complaint: Option<String>,
    /// The generation of the route as seen last, whether the data plane has taken it up, and since when that is so.
    route: Option<((i64, bool), Since)>,
    /// When the target was last scaled to zero at rest.
    pub(crate) slept: Option<Duration>,
    standing: Option<Standing>,
    /// Workloads that are short of pods, by name: what the cluster calls the outage, and when it was first seen.
    outages: BTreeMap<String, (String, Duration)>,
    /// The names under which a canary that is being deleted was found to live.
    pub(crate) names_in_use: Option<InUse>,
    copies: Copies,
    said: VecDeque<u64>,
}

/// The plan of a spec, or every reason why there is none.
type Judged = Result<Arc<Plan>, Vec<FieldError>>;

/// A question under way; dropping it stops it.
pub(crate) struct Asking {
    number: u64,
    _task: AbortOnDropHandle<()>,
}

/// A moment that may be older than this process.
#[derive(Clone, Copy)]
struct Since {
    /// When this process first knew of it.
    seen: Duration,
    /// How long ago it was then.
    age: Duration,
}

impl Since {
    fn now(now: Moment) -> Self {
        Self { seen: now.elapsed, age: Duration::ZERO }
    }

    /// What an earlier process, or the server, dated.
    fn dated(date: Timestamp, now: Moment) -> Self {
        Self { seen: now.elapsed, age: now.age_of(date) }
    }

    fn date(self, now: Moment) -> Timestamp {
        now.date_of(self.seen).checked_sub(self.age).unwrap_or(Timestamp::MIN)
    }
}

/// Where a status stands, and since when.
struct Standing {
    /// Step and revision.
    position: (String, String),
    since: Since,
}

/// Primary copies of configs as they were written last: what the next store of the primary would otherwise read back.
/// They hold what Secrets hold, so they are kept for one promotion and not for long. Never shown, never logged.
#[derive(Default)]
struct Copies {
    objects: Fetched,
    /// When the first of them was kept, in passed time.
    since: Option<Duration>,
}

impl Memory {
    /// Only a change brings the next round. What can be made again from the spec is not kept until then.
    pub(crate) fn rest(&mut self) {
        if self.answers.is_empty() && self.asked.is_empty() {
            (self.judged, self.plan) = (None, None);
        }
    }

    /// The plan of `canary`, made once per generation of its spec. Answers to questions that the new plan does not ask in
    /// the same words are dropped: nobody was asked what it asks.
    pub(crate) fn plan(&mut self, canary: &Canary, settings: &Settings) -> Judged {
        let (generation, deleting) = (canary.metadata.generation, canary.is_being_deleted());
        if let Some((known, was_deleting, result)) = &self.judged
            && (Some(*known), *was_deleting) == (generation, deleting)
        {
            return result.clone();
        }
        let result = Plan::new(canary, settings).map(Arc::new);
        self.judged = generation.map(|generation| (generation, deleting, result.clone()));
        if let Ok(plan) = &result {
            let before = self.plan.replace(plan.clone());
            let stays =
                |key: &QuestionKey| before.as_ref().is_none_or(|before| asks_the_same(before, plan, &key.subject));
            self.answers.retain(|key, _| stays(key));
            self.asked.retain(|key, _| stays(key));
        }
        result
    }

    /// The number the next question goes by: its answer must name it.
    pub(crate) fn next_ask(&mut self) -> u64 {
        self.asks += 1;
        self.asks
    }

    /// The question `number` is asked by `task`.
    pub(crate) fn asking(&mut self, key: QuestionKey, number: u64, task: JoinHandle<()>) {
        self.asked.insert(key, Asking { number, _task: AbortOnDropHandle::new(task) });
    }

    /// Hands out the copies that were kept.
    pub(crate) fn take_copies(&mut self) -> Fetched {
        std::mem::take(&mut self.copies.objects)
    }

    /// Keeps `objects` if `status` says that they are soon needed again, and they are not too old. Returns how long they
    /// may stay; the one who keeps them must come back by then.
    pub(crate) fn keep_copies(&mut self, objects: Fetched, status: &CanaryStatus, now: Duration) -> Option<Duration> {
        let copying = matches!(status.phase, Phase::Initializing | Phase::Promoting | Phase::Finalising)
            && !status.is_true(ROLLING_BACK);
        let since = self.copies.since.filter(|_| copying);
        self.copies = Copies { objects: Fetched::new(), since };
        if !copying || objects.is_empty() {
            return None;
        }
        // Those written later in the same promotion do not begin a new time.
        let since = *self.copies.since.get_or_insert(now);
        let left = since.saturating_add(COPIES_STAY).checked_sub(now).filter(|left| !left.is_zero());
        if left.is_some() {
            self.copies.objects = objects;
        }
        left
    }

    /// Since when the route is settled, or is not, given what a router reads now. One that is settled when this process first
    /// looks is settled since it was written: otherwise a process that never lives as long as the drain would never end one.
    /// How long the data plane took is not known then; it has taken the route up, and the drain is for what was under way.
    pub(crate) fn route_since(&mut self, reading: &RouteReading, now: Moment) -> Timestamp {
        let state = (reading.generation, reading.settled);
        let since = match self.route {
            Some((known, since)) if known == state => since,
            None if reading.settled => reading.changed.map_or(Since::now(now), |changed| Since::dated(changed, now)),
            _ => Since::now(now),
        };
        self.route = Some((state, since));
        since.date(now)
    }

    /// Since when `status` stands where it does. The date in it is read when it is first seen, which for our own writes is
    /// the moment of writing; from then on only passed time counts.
    pub(crate) fn standing_since(&mut self, status: &CanaryStatus, now: Moment) -> Option<Timestamp> {
        let date = status.last_transition_time?;
        let position = (step(status), status.last_applied_spec.clone());
        let standing = match self.standing.take() {
            Some(standing) if standing.position == position => standing,
            _ => Standing { position, since: Since::dated(date, now) },
        };
        let since = standing.since;
        self.standing = Some(standing);
        Some(since.date(now))
    }

    /// Since when `workload` is short of pods, as far as this process knows: a date of before it was there would be compared
    /// with a clock that may be wrong, and a good version rolled back for it. `outage` is what the cluster calls it.
    pub(crate) fn short_since(&mut self, workload: &str, outage: Option<&str>, now: Moment) -> Option<Timestamp> {
        let Some(outage) = outage else {
            self.outages.remove(workload);
            return None;
        };
        let since = match self.outages.get(workload) {
            Some((known, since)) if known == outage => *since,
            _ => {
                self.outages.insert(workload.to_owned(), (outage.to_owned(), now.elapsed));
                now.elapsed
            }
        };
        Some(now.date_of(since))
    }

    /// Whether `once` is said for the first time; from now on it is not. The one heard longest ago is forgotten first.
    pub(crate) fn says(&mut self, once: &str) -> bool {
        let mut hasher = DefaultHasher::new();
        once.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.said.iter().position(|said| *said == hash).and_then(|at| self.said.remove(at));
        self.said.push_back(hash);
        if self.said.len() > SAID {
            self.said.pop_front();
        }
        known.is_none()
    }

    /// Drops what no decision at this step will use: questions and answers of other steps, and of the many ticks a gate
    /// may stay closed all but the last two and the last consent.
    pub(crate) fn keep_only(&mut self, step: &str) {
        self.asked.retain(|key, _| key.step == step);
        self.answers.retain(|key, _| key.step == step);
        let newest = self.answers.keys().map(|key| key.tick).max().unwrap_or(0);
        let mut consents = BTreeSet::new();
        let mut kept = BTreeMap::new();
        while let Some((key, answer)) = self.answers.pop_last() {
            let consent = answer == Answer::Yes && consents.insert((key.revision.clone(), key.subject.clone()));
            if consent || key.tick == 0 || key.tick + 1 >= newest {
                kept.insert(key, answer);
            }
        }
        self.answers = kept;
    }

    /// The questions under way.
    pub(crate) fn under_way(&self) -> BTreeSet<QuestionKey> {
        self.asked.keys().cloned().collect()
    }
}

/// The memories of all canaries.
#[derive(Default)]
pub(crate) struct Memories(Mutex<BTreeMap<CanaryKey, Arc<Mutex<Memory>>>>);

impl Memories {
    /// The memory of `key`; a fresh one if the Canary of that name is another one than before.
    pub(crate) fn of(&self, key: &CanaryKey, uid: &str) -> Arc<Mutex<Memory>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let memory = all.entry(key.clone()).or_default().clone();
        let mut known = lock(&memory);
        if known.uid != uid {
            *known = Memory { uid: uid.to_owned(), ..Memory::default() };
        }
        drop(known);
        memory
    }

    /// An answer came back; it is kept if somebody still waits for it.
    pub(crate) fn answered(&self, Answered { canary: key, number, question, answer }: Answered) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = all.get(&key) {
            let mut memory = lock(memory);
            // An answer may already be on its way when its question is dropped and another takes its place.
            if memory.asked.get(&question).is_some_and(|asking| asking.number == number) {
                memory.asked.remove(&question);
                memory.answers.insert(question, answer);
            }
        }
    }

    /// How many canaries are remembered.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The canary is gone: its questions stop.
    pub(crate) fn forget(&self, key: &CanaryKey) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Whether `subject` means the same to both plans.
fn asks_the_same(before: &Plan, after: &Plan, subject: &Subject) -> bool {
    match *subject {
        Subject::Hook(index) => before.hooks.get(index) == after.hooks.get(index),
        Subject::Metric(index) => before.metrics.get(index) == after.metrics.get(index),
        Subject::Providers => before.metrics == after.metrics,
    }
}

/// The memory behind its lock. A round that panicked may have left it half changed; nothing in it matters for safety.
pub(crate) fn lock(memory: &Mutex<Memory>) -> MutexGuard<'_, Memory> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use seaway_adapters::change::ObjectRef;
    use seaway_adapters::kinds::SECRET;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn moment(second: u32) -> Moment {
        Moment { date: at(second.into()), elapsed: Duration::from_secs(second.into()) }
    }

    fn route(settled: bool, generation: i64) -> RouteReading {
        RouteReading { settled, generation, ..RouteReading::default() }
    }

    fn question(step: &str, tick: u64) -> QuestionKey {
        QuestionKey { revision: "r".into(), step: step.into(), tick, subject: Subject::Hook(0) }
    }

    #[test]
    fn a_route_is_settled_since_its_generation_was_first_seen_settled() {
        let mut memory = Memory::default();
        assert_eq!(memory.route_since(&route(false, 1), moment(1)), at(1));
        assert_eq!(memory.route_since(&route(true, 1), moment(2)), at(2));
        assert_eq!(memory.route_since(&route(true, 1), moment(3)), at(2));
        assert_eq!(memory.route_since(&route(true, 2), moment(4)), at(4), "a new generation settles anew");
        assert_eq!(memory.route_since(&route(false, 2), moment(5)), at(5));
        assert_eq!(memory.route_since(&route(false, 2), moment(6)), at(5));
        assert_eq!(memory.route_since(&route(false, 3), moment(7)), at(7), "a new generation is waited for anew");
        assert_eq!(memory.route_since(&route(true, 3), moment(8)), at(8));
    }

    #[test]
    fn a_route_that_was_settled_before_this_process_began_is_as_old_as_its_last_change() {
        let mut memory = Memory::default();
        let old = RouteReading { changed: Some(at(93)), ..route(true, 4) };
        assert_eq!(memory.route_since(&old, moment(100)), at(93));
        assert_eq!(memory.route_since(&old, moment(105)), at(93));
        let new = RouteReading { changed: Some(at(106)), ..route(true, 5) };
        assert_eq!(memory.route_since(&new, moment(107)), at(107), "seen to settle");
        let early = RouteReading { changed: Some(at(3700)), ..route(true, 4) };
        assert_eq!(Memory::default().route_since(&early, moment(100)), at(100), "the server's clock is not ours");
        let silent = route(true, 4);
        assert_eq!(Memory::default().route_since(&silent, moment(100)), at(100), "nobody tells");
    }

    #[test]
    fn setting_the_clock_changes_no_wait() {
        let mut memory = Memory::default();
        let status = CanaryStatus { last_transition_time: Some(at(100)), ..CanaryStatus::default() };
        let ages = |memory: &mut Memory, now: Moment| {
            let since = [
                memory.standing_since(&status, now),
                Some(memory.route_since(&route(true, 1), now)),
                memory.short_since("podinfo", Some("then"), now),
            ];
            since.map(|since| now.date.duration_since(since.unwrap()).as_secs())
        };
        assert_eq!(ages(&mut memory, moment(130)), [30, 0, 0], "what an earlier process wrote is read as a date");
        for (date, passed) in [(140, 140), (3600 + 150, 150), (160, 160), (-3600 + 170, 170)] {
            let now = Moment { date: at(date), elapsed: Duration::from_secs(passed) };
            let waited = i64::try_from(passed).unwrap() - 130;
            assert_eq!(ages(&mut memory, now), [30 + waited, waited, waited], "at {date}");
        }
    }

    #[test]
    fn a_date_to_come_counts_as_now() {
        let status = CanaryStatus { last_transition_time: Some(at(3700)), ..CanaryStatus::default() };
        assert_eq!(Memory::default().standing_since(&status, moment(100)), Some(at(100)));
    }

    #[test]
    fn each_outage_of_each_workload_is_measured_by_itself() {
        let mut memory = Memory::default();
        assert_eq!(memory.short_since("a", Some("first"), moment(1)), Some(at(1)));
        assert_eq!(memory.short_since("b", Some("first"), moment(2)), Some(at(2)));
        assert_eq!(memory.short_since("a", Some("second"), moment(3)), Some(at(3)));
        assert_eq!(memory.short_since("a", None, moment(4)), None);
        assert_eq!(memory.short_since("a", Some("second"), moment(5)), Some(at(5)));
        assert_eq!(memory.short_since("b", Some("first"), moment(6)), Some(at(2)));
    }

    #[tokio::test]
    async fn an_answer_nobody_waits_for_is_dropped() {
        let memories = Memories::default();
        let key = CanaryKey::new("test", "podinfo");
        let memory = memories.of(&key, "u1");
        let answered = |step: &str, number: u64| {
            let (canary, question) = (key.clone(), question(step, 1));
            memories.answered(Answered { canary, number, question, answer: Answer::Yes });
        };
        lock(&memory).asking(question("a", 1), 1, tokio::spawn(std::future::pending()));
        lock(&memory).asking(question("b", 1), 2, tokio::spawn(std::future::pending()));
        answered("a", 7);
        assert!(lock(&memory).answers.is_empty(), "the answer to an earlier question of the same key");
        answered("a", 1);
        answered("c", 1);
        assert_eq!(lock(&memory).answers.len(), 1);
        lock(&memory).keep_only("b");
        answered("a", 1);
        assert!(lock(&memory).answers.is_empty() && lock(&memory).asked.len() == 1);
        let reborn = memories.of(&key, "u2");
        assert!(lock(&reborn).asked.is_empty(), "another Canary of the same name");
    }

    #[test]
    fn an_answer_counts_for_the_question_that_was_asked() {
        let (mut memory, settings) = (Memory::default(), Settings::default());
        let mut canary = Canary::test();
        canary.metadata.generation = Some(1);
        memory.plan(&canary, &settings).unwrap();
        for subject in [Subject::Metric(0), Subject::Metric(1), Subject::Providers] {
            memory.answers.insert(QuestionKey { subject, ..question("a", 1) }, Answer::Yes);
        }
        let subjects = |memory: &Memory| memory.answers.keys().map(|key| key.subject.clone()).collect::<Vec<_>>();

        canary.metadata.generation = Some(2);
        canary.spec.analysis.as_mut().unwrap().threshold = Some(7);
        assert_eq!(memory.plan(&canary, &settings).unwrap().threshold, 7);
        assert_eq!(subjects(&memory).len(), 3, "an edit elsewhere repeats nothing");

        canary.metadata.generation = Some(3);
        canary.spec.analysis.as_mut().unwrap().metrics[1].interval = "7m".into();
        memory.plan(&canary, &settings).unwrap();
        assert_eq!(subjects(&memory), [Subject::Metric(0)]);
    }

    #[test]
    fn a_spec_is_read_once_per_generation() {
        let (mut memory, settings) = (Memory::default(), Settings::default());
        let mut canary = Canary::test();
        canary.metadata.generation = Some(1);
        let first = memory.plan(&canary, &settings).unwrap();
        assert!(Arc::ptr_eq(&first, &memory.plan(&canary, &settings).unwrap()));
        canary.metadata.generation = None;
        assert!(!Arc::ptr_eq(&first, &memory.plan(&canary, &settings).unwrap()), "nothing to go by");
    }

    #[test]
    fn copies_of_secrets_stay_for_one_promotion_and_not_for_long() {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let object = ObjectRef { kind: SECRET, namespace: "test".into(), name: "credentials-primary".into() };
        let copies = || Fetched::from([(object.clone(), serde_json::Value::Null)]);
        let mut memory = Memory::default();
        let mut status = CanaryStatus { phase: Phase::Promoting, ..CanaryStatus::default() };
        assert_eq!(memory.keep_copies(copies(), &status, minutes(100)), Some(minutes(10)));
        let taken = memory.take_copies();
        assert_eq!(memory.keep_copies(taken, &status, minutes(104)), Some(minutes(6)));
        assert_eq!(memory.keep_copies(copies(), &status, minutes(110)), None);
        assert!(memory.take_copies().is_empty(), "the promotion does not end");
        status.phase = Phase::Succeeded;
        assert_eq!(memory.keep_copies(copies(), &status, minutes(111)), None);
        assert!(memory.take_copies().is_empty(), "it has ended");
        status.phase = Phase::Finalising;
        assert_eq!(memory.keep_copies(copies(), &status, minutes(112)), Some(minutes(10)), "the next one");
    }

    #[test]
    fn a_gate_that_stays_closed_for_a_week_costs_no_memory() {
        let mut memory = Memory::default();
        for tick in 1..=60_000 {
            let answer = if tick == 7 { Answer::Yes } else { Answer::No("status 403 Forbidden".into()) };
            memory.answers.insert(question("a", tick), answer);
            memory.keep_only("a");
        }
        let ticks: Vec<u64> = memory.answers.keys().map(|key| key.tick).collect();
        assert_eq!(ticks, [7, 59_999, 60_000]);
    }

    #[test]
    fn a_text_is_said_once() {
        let mut memory = Memory::default();
        assert!(memory.says("a") && !memory.says("a"));
        (0..SAID).for_each(|n| assert!(memory.says(&n.to_string())));
        assert_eq!(memory.said.len(), SAID, "bounded");
    }
}
