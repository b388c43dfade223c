//! The users of the stories: they ask for `www.example.com` all the time and keep every answer that was not good.
//!
//! Which of these is our fault is decided by who gave it. A pod that was told to fail says so in a header: that is the
//! app's own error. Everything else (an answer of the gateway itself, a connection that broke) is the rollout's, except
//! in the time in which a fault took away the pods or the way to them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http_body_util::BodyExt;
use jiff::Timestamp;
use seaway_drydock::pods::podinfo::FAULT_HEADER;
use seaway_drydock::proxy::{Mesh, empty};
use seaway_drydock::{Clock, Cluster};
use tokio::task::JoinHandle;

use super::board::Board;

/// Steady traffic; dropping it ends it.
pub struct Crowd {
    book: Arc<Mutex<Book>>,
    task: JoinHandle<()>,
}

/// What users got, as the metrics server of the stories tells it; clones share it.
#[derive(Clone, Default)]
pub struct Experience(Arc<Mutex<VecDeque<(Timestamp, bool)>>>);

impl Experience {
    /// How many percent of the canary's answers failed lately; `None` without any.
    pub fn error_rate(&self, now: Timestamp) -> Option<f64> {
        let answers = self.0.lock().unwrap();
        let recent: Vec<bool> = answers.iter().filter(|(time, _)| *time + WINDOW >= now).map(|(_, bad)| *bad).collect();
        let bad = recent.iter().filter(|bad| **bad).count();
        (!recent.is_empty()).then(|| bad as f64 * 100.0 / recent.len() as f64)
    }

    fn answered(&self, now: Timestamp, bad: bool) {
        let mut answers = self.0.lock().unwrap();
        answers.push_back((now, bad));
        while answers.front().is_some_and(|(time, _)| *time + WINDOW < now) {
            answers.pop_front();
        }
    }
}

/// How far the metrics server looks back.
const WINDOW: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Book {
    asked: u64,
    /// Whether there ever was a good answer.
    served: bool,
    bad: Vec<(Timestamp, String)>,
    pause: Duration,
}

impl Crowd {
    /// One request every `pause`, in simulated time.
    pub fn start(cluster: &Cluster, board: &Board, experience: &Experience, pause: Duration) -> Self {
        let book = Arc::new(Mutex::new(Book { pause, ..Book::default() }));
        let (shared, mesh, clock, board) = (book.clone(), cluster.mesh().clone(), cluster.clock(), board.clone());
        let experience = experience.clone();
        let task = tokio::spawn(async move {
            loop {
                let pause = shared.lock().unwrap().pause;
                clock.sleep(pause).await;
                ask(&mesh, clock, &shared, &experience, &board).await;
            }
        });
        Self { book, task }
    }

    /// Asks less often, or more.
    pub fn every(&self, pause: Duration) {
        self.book.lock().unwrap().pause = pause;
    }

    /// How many requests were sent.
    pub fn asked(&self) -> u64 {
        self.book.lock().unwrap().asked
    }

    /// The bad answers that no pod gave on purpose, with their time.
    pub fn bad(&self) -> Vec<(Timestamp, String)> {
        self.book.lock().unwrap().bad.clone()
    }
}

async fn ask(mesh: &Mesh, clock: Clock, book: &Mutex<Book>, experience: &Experience, board: &Board) {
    let request = http::Request::get("http://gateway-istio.istio-ingress/version")
        .header("host", "www.example.com")
        .body(empty())
        .unwrap();
    let response = mesh.send(request).await;
    let (head, body) = response.into_parts();
    let whole = body.collect().await;
    let header = |name: &str| {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or("-").to_owned()
    };
    let (code, version, pod) = (head.status, header("x-podinfo-version"), header("x-podinfo-pod"));
    let scripted = head.headers.contains_key(FAULT_HEADER);
    board.note(|| format!("answer {code} {version} {pod}"));
    if pod.starts_with("podinfo-") && !pod.starts_with("podinfo-primary-") {
        experience.answered(clock.now(), !code.is_success());
    }
    let mut book = book.lock().unwrap();
    book.asked += 1;
    book.served |= code.is_success();
    match whole {
        // Nobody was promised anything before there was a route.
        _ if !book.served => {}
        Err(error) => book.bad.push((clock.now(), format!("{code} of {version} broke off: {error}"))),
        Ok(body) if !code.is_success() && !scripted => {
            let body = body.to_bytes();
            book.bad.push((clock.now(), format!("{code} {}", String::from_utf8_lossy(&body).trim())));
        }
        Ok(_) => {}
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.task.abort();
    }
}
