//! Programs in a bad mood: whatever answers HTTP can be told to fail, hang, lie or flood.
//!
//! A [`Switch`] stands in front of a router. It belongs to the test, which turns it while the cluster runs; the program
//! behind it notices nothing. There is no schedule here: when to turn it is the test's business, for example at a
//! [`Point`](super::Point).

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures::stream;
use jiff::Timestamp;
use serde_json::json;

use crate::Clock;
use crate::bell::Bell;
use crate::pods::{HttpCheck, PodContext, Program};

/// How a program answers. Durations are simulated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mood {
    /// As it is meant to.
    #[default]
    Well,
    /// As it is meant to, but so much later.
    Slow(Duration),
    /// With a status code and no body.
    Status(u16),
    /// Not at all, until the mood changes.
    Hang,
    /// With 200 and a body of a gibibyte.
    Flood,
    /// With a redirect to where the request already went.
    RedirectLoop,
    /// With 200 and bytes that are no text.
    Garbage,
    /// With a broken connection.
    Reset,
    /// With 200 and this JSON.
    Body(String),
}

impl Mood {
    /// What Prometheus answers to an instant query: one series for each value, none for no data. Values are in its
    /// notation, so `NaN` is one.
    pub fn vector(time: Timestamp, values: &[&str]) -> Self {
        let series = values.iter().enumerate().map(
            |(number, value)| json!({"metric": {"series": number.to_string()}, "value": [time.as_second(), value]}),
        );
        let data = json!({"resultType": "vector", "result": series.collect::<Vec<_>>()});
        Self::Body(json!({"status": "success", "data": data}).to_string())
    }
}

/// Turns the mood of whatever it stands in front of; clones are the same switch.
#[derive(Clone, Debug)]
pub struct Switch {
    clock: Clock,
    mood: Arc<Mutex<Mood>>,
    turned: Arc<Bell>,
    spoilt: Arc<AtomicU64>,
}

impl Switch {
    /// A switch that is on [`Mood::Well`].
    pub fn new(clock: Clock) -> Self {
        Self { clock, mood: Arc::default(), turned: Arc::default(), spoilt: Arc::default() }
    }

    /// Turns it. Requests that hang are answered in the new mood.
    pub fn set(&self, mood: Mood) {
        *self.mood() = mood;
        self.turned.ring();
    }

    fn mood(&self) -> MutexGuard<'_, Mood> {
        self.mood.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests came while the mood was not [`Mood::Well`].
    pub fn spoilt(&self) -> u64 {
        self.spoilt.load(Ordering::Relaxed)
    }

    /// Puts the switch in front of a router.
    pub fn guard(&self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self.clone(), answer))
    }

    /// The mood, once it is another one than hanging.
    async fn settled(&self) -> Mood {
        self.turned.until(|| *self.mood() != Mood::Hang).await;
        self.mood().clone()
    }
}

async fn answer(State(switch): State<Switch>, request: Request, next: Next) -> Response {
    if *switch.mood() != Mood::Well {
        switch.spoilt.fetch_add(1, Ordering::Relaxed);
    }
    match switch.settled().await {
        // It does not hang any more.
        Mood::Well | Mood::Hang => next.run(request).await,
        Mood::Slow(how_much) => {
            switch.clock.sleep(how_much).await;
            next.run(request).await
        }
        Mood::Status(code) => StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR).into_response(),
        Mood::Flood => flood(),
        Mood::RedirectLoop => {
            let here = HeaderValue::from_str(&request.uri().to_string()).unwrap_or(HeaderValue::from_static("/"));
            (StatusCode::FOUND, [(header::LOCATION, here)]).into_response()
        }
        Mood::Garbage => Bytes::from_static(b"\x00\xff\xfe{]<\x1b[2J\xc3\x28").into_response(),
        Mood::Reset => {
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by peer");
            Body::from_stream(stream::iter([Err::<Bytes, _>(broken)])).into_response()
        }
        Mood::Body(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
    }
}

/// A gibibyte in pieces. It ends, so that a client without a limit fails its test instead of stopping it.
fn flood() -> Response {
    const PIECE: &[u8] = &[b' '; 64 * 1024];
    let pieces = (0..16 * 1024).map(|_| Ok::<_, Infallible>(Bytes::from_static(PIECE)));
    Body::from_stream(stream::iter(pieces)).into_response()
}

/// A program behind a [`Switch`]: all its ports have the same mood, probes included.
pub struct Moody<P> {
    program: P,
    switch: Switch,
}

impl<P> Moody<P> {
    /// Puts the switch in front of a program.
    pub fn new(program: P, switch: &Switch) -> Self {
        Self { program, switch: switch.clone() }
    }
}

impl<P: Program> Program for Moody<P> {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        self.program.launch(pod).into_iter().map(|(port, router)| (port, self.switch.guard(router))).collect()
    }

    fn check(&self, command: &[String]) -> Option<HttpCheck> {
        self.program.check(command)
    }
}
