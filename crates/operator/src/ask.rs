//! Questions to the outside, each as a task of its own.
//!
//! A round only starts a question and goes on; the answer comes back through a channel and wakes the canary. So a slow
//! hook delays its own canary and nobody else, and a round never waits for the network. A question is started once per
//! key; dropping its handle stops it. What an answer means is decided by the rules. A fault of ours while one is asked is
//! an answer too: without any, its canary would wait for ever.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use seaway_adapters::hooks;
use seaway_adapters::http::Http;
use seaway_adapters::metrics::Inquiry;
use seaway_adapters::world::World;
use seaway_api::Canary;
use seaway_core::builtin::Measure;
use seaway_core::plan::{Check, Hook, Plan, Source};
use seaway_core::question::{Answer, Question, QuestionKey, Subject};
use tokio::sync::Semaphore;
use tokio::sync::mpsc::UnboundedSender;

use crate::key::CanaryKey;
use crate::memory::Memory;
use crate::panics::words;
use crate::requests::Requests;
use crate::telemetry::Telemetry;

/// An answer on its way back.
pub(crate) struct Answered {
    /// Whose question it was.
    pub(crate) canary: CanaryKey,
    /// Which asking of it.
    pub(crate) number: u64,
    /// Which question.
    pub(crate) question: QuestionKey,
    /// What came back.
    pub(crate) answer: Answer,
}

/// Starts questions.
pub(crate) struct Asker {
    http: Http,
    requests: Requests,
    answers: UnboundedSender<Answered>,
    telemetry: Arc<Telemetry>,
    /// How many metrics may be asked for at once.
    metrics: Arc<Semaphore>,
    /// How many hooks. Apart, since one may take minutes, and no metric waits for the hooks of others.
    hooks: Arc<Semaphore>,
}

/// A question with everything needed to ask it.
enum Errand {
    Hook(Box<Hook>, hooks::Payload),
    Metric(Box<Inquiry>),
    Providers(Vec<Inquiry>),
    /// It cannot be asked at all.
    Known(Answer),
}

impl Asker {
    /// An asker with at most so many metrics, and as many hooks, under way at once.
    pub(crate) fn new(
        http: Http,
        requests: Requests,
        answers: UnboundedSender<Answered>,
        telemetry: Arc<Telemetry>,
        questions: usize,
    ) -> Self {
        let [metrics, hooks] = [(); 2].map(|()| Arc::new(Semaphore::new(questions.max(1))));
        Self { http, requests, answers, telemetry, metrics, hooks }
    }

    /// Starts `question` unless it is under way or answered. `now` is passed time.
    pub(crate) fn ask(
        &self,
        canary: &Canary,
        plan: &Plan,
        question: &Question,
        world: &dyn World,
        memory: &mut Memory,
        now: Duration,
    ) {
        let key = &question.key;
        if memory.asked.contains_key(key) || memory.answers.contains_key(key) {
            return;
        }
        if key.tick > 0 && memory.tick_began.is_none() {
            memory.tick_began = Some(now);
        }
        let errand = errand(canary, plan, question, world);
        let metric = match key.subject {
            Subject::Metric(index) => plan.metrics.get(index).map(|check| (canary.clone(), check.clone())),
            _ => None,
        };
        let permits = if matches!(errand, Errand::Hook(..)) { &self.hooks } else { &self.metrics };
        let (http, requests, permits) = (self.http.clone(), self.requests.clone(), permits.clone());
        let (answers, telemetry) = (self.answers.clone(), self.telemetry.clone());
        let canary = CanaryKey::new(canary.namespace(), canary.name());
        let (question, number) = (key.clone(), memory.next_ask());
        let task = tokio::spawn(async move {
            // The semaphore is never closed; without a permit the question is still asked.
            let _permit = permits.acquire().await;
            let asked = AssertUnwindSafe(run(&http, &requests, errand)).catch_unwind().await;
            let answer = asked.unwrap_or_else(|panic| {
                tracing::error!(%canary, panic = words(&*panic), question = ?question.subject, "internal error");
                Answer::Broken("internal error while asking".to_owned())
            });
            if let (Answer::Value { value, .. }, Some((canary, check))) = (&answer, &metric) {
                telemetry.measured(canary, &check.name, exported(check, *value));
            }
            tracing::debug!(canary = %canary, question = ?question.subject, ?answer, "answered");
            let _ = answers.send(Answered { canary, number, question, answer });
        });
        memory.asking(key.clone(), number, task);
    }
}

fn errand(canary: &Canary, plan: &Plan, question: &Question, world: &dyn World) -> Errand {
    let gone = || Errand::Known(Answer::Broken("the check is no longer in the spec".to_owned()));
    match question.key.subject {
        Subject::Hook(index) => plan.hooks.get(index).map_or_else(gone, |hook| {
            Errand::Hook(Box::new(hook.clone()), hooks::payload(canary, question.phase, &hook.metadata))
        }),
        Subject::Metric(index) => {
            plan.metrics.get(index).map_or_else(gone, |check| match Inquiry::of(check, plan, canary, world) {
                Ok(inquiry) => Errand::Metric(Box::new(inquiry)),
                Err(answer) => Errand::Known(answer),
            })
        }
        Subject::Providers => match Inquiry::probes(plan, canary, world) {
            Ok(probes) => Errand::Providers(probes),
            Err(answer) => Errand::Known(answer),
        },
    }
}

async fn run(http: &Http, requests: &Requests, errand: Errand) -> Answer {
    match errand {
        Errand::Hook(hook, payload) => hooks::call(http, &hook, &payload).await,
        Errand::Metric(inquiry) => match secret(requests, &inquiry).await {
            Ok(secret) => inquiry.ask(http, secret.as_ref()).await,
            Err(answer) => answer,
        },
        Errand::Providers(probes) => {
            for probe in probes {
                let answer = match secret(requests, &probe).await {
                    Ok(secret) => probe.probe(http, secret.as_ref()).await,
                    Err(answer) => answer,
                };
                if answer != Answer::Yes {
                    return answer;
                }
            }
            Answer::Yes
        }
        Errand::Known(answer) => answer,
    }
}

/// Flagger exports builtin durations in seconds, whatever the query measures in.
fn exported(check: &Check, value: f64) -> f64 {
    match check.source {
        Source::Builtin(builtin) if builtin.measure == Measure::Milliseconds => value / 1000.0,
        _ => value,
    }
}

/// The credentials of a provider, read when they are needed and kept nowhere.
async fn secret(requests: &Requests, inquiry: &Inquiry) -> Result<Option<serde_json::Value>, Answer> {
    let Some(object) = inquiry.secret() else { return Ok(None) };
    let answer = requests.get(object).await;
    answer.map_err(|error| Answer::Broken(format!("secret {}.{} error: {error}", object.name, object.namespace)))
}

#[cfg(test)]
mod tests {
    use std::io;

    use futures::future::BoxFuture;
    use seaway_adapters::http::{Dial, Stream};
    use seaway_api::canary::{HookType, Phase};
    use seaway_core::plan::Settings;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

    use super::*;
    use crate::lease::Fence;
    use crate::testing::{Server, TestClock};

    /// A way out with a fault of ours in it.
    struct Broken;

    impl Dial for Broken {
        fn dial(&self, _: &str, _: u16) -> BoxFuture<'static, io::Result<Stream>> {
            Box::pin(async { panic!("at the disco") })
        }
    }

    /// An asker of one metric and one hook at a time.
    fn asker(way: impl Dial + 'static) -> (Asker, UnboundedReceiver<Answered>) {
        let (answers, answered) = unbounded_channel();
        let requests = Requests::new(Server::default().client(), TestClock::start(), Fence::open());
        let telemetry = Arc::new(Telemetry::new("0", "gatewayapi:v1"));
        (Asker::new(Http::through(Arc::new(way)), requests, answers, telemetry, 1), answered)
    }

    fn ask(asker: &Asker, canary: &Canary, subject: Subject, tick: u64, memory: &mut Memory) {
        let plan = Plan::new(canary, &Settings { provider: "gatewayapi:v1".into(), ..Settings::default() }).unwrap();
        let key = QuestionKey { revision: String::new(), step: String::new(), tick, subject };
        let question = Question { key, phase: Phase::Progressing };
        let world = seaway_adapters::world::Objects::default();
        asker.ask(canary, &plan, &question, &world, memory, Duration::ZERO);
    }

    /// Whoever is asked on this port does not answer, and nobody else can be reached.
    struct Deaf(u16);

    impl Dial for Deaf {
        fn dial(&self, _: &str, port: u16) -> BoxFuture<'static, io::Result<Stream>> {
            let hangs = port == self.0;
            Box::pin(async move {
                if hangs {
                    std::future::pending::<()>().await;
                }
                Err(io::ErrorKind::ConnectionRefused.into())
            })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_hook_that_hangs_delays_no_metric_of_others() {
        let (asker, mut answered) = asker(Deaf(80));
        let mut memories = [(); 2].map(|()| Memory::default());
        let hangs = Canary::test().named("hangs").webhook("load", HookType::Rollout);
        ask(&asker, &hangs, Subject::Hook(0), 1, &mut memories[0]);
        tokio::task::yield_now().await;
        ask(&asker, &Canary::test(), Subject::Metric(0), 1, &mut memories[1]);
        for canary in ["podinfo", "hangs"] {
            assert_eq!(answered.recv().await.unwrap().canary, CanaryKey::new("test", canary));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_that_panics_is_answered() {
        let (asker, mut answered) = asker(Broken);
        let canary = Canary::test().webhook("gate", HookType::Rollout);
        let mut memory = Memory::default();
        for tick in [1, 2] {
            ask(&asker, &canary, Subject::Hook(0), tick, &mut memory);
            let answer = answered.recv().await.unwrap().answer;
            assert_eq!(answer, Answer::Broken("internal error while asking".to_owned()));
        }
    }
}
