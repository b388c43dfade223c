//! What the operator asks outside the API: hooks and metrics, and how both can misbehave for a while.
//!
//! It stands where the operator dials. In a good mood hooks answer as the story says, and metrics tell what users got
//! from the canary's pods. (A Prometheus that scrapes all the time would be most of what a run costs, and it has tests of
//! its own.) In a bad mood they answer otherwise, or nobody does.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use seaway_adapters::http::{Dial, Stream};
use seaway_drydock::Clock;

use super::board::Board;
use super::crowd::Experience;

/// How a server outside behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mood {
    /// Takes the connection and never answers.
    Hang,
    /// Nobody is there.
    Refuse,
    /// Answers with this status.
    Status(u16),
    /// Hooks say the opposite of what they should; metrics look terrible.
    Lie,
    /// Metrics look perfect.
    Flatter,
    /// Answers with more than anybody reads.
    Flood,
    /// Sends the caller in a circle.
    Redirect,
    /// Metrics: no data.
    Empty,
    /// Metrics: not a number.
    NaN,
    /// Metrics: more series than one.
    Many,
}

/// Who misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Server {
    /// All hooks.
    Hooks,
    /// Prometheus.
    Metrics,
}

/// The way out; clones share it.
#[derive(Clone)]
pub struct Outside {
    experience: Experience,
    clock: Clock,
    board: Board,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    answers: BTreeMap<String, u16>,
    moods: BTreeMap<Server, (Mood, Timestamp)>,
}

impl Outside {
    /// Everything in a good mood, and no rollback wanted.
    pub fn new(experience: Experience, clock: Clock, board: Board) -> Self {
        let answers = BTreeMap::from([("/rollback".to_owned(), 403)]);
        Self { experience, clock, board, state: Arc::new(Mutex::new(State { answers, ..State::default() })) }
    }

    /// The status of a hook from now on.
    pub fn answer(&self, path: &str, code: u16) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), code);
    }

    /// Misbehaves for so long.
    pub fn mood(&self, server: Server, mood: Mood, length: Duration) {
        self.state.lock().unwrap().moods.insert(server, (mood, self.clock.now() + length));
    }

    fn mood_of(&self, server: Server) -> Option<Mood> {
        let now = self.clock.now();
        self.state.lock().unwrap().moods.get(&server).filter(|(_, end)| now < *end).map(|(mood, _)| *mood)
    }

    fn reply(&self, server: Server, mood: Option<Mood>, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        let path = request.uri().path();
        let usual = self.state.lock().unwrap().answers.get(path).copied().unwrap_or(200);
        let code = match mood {
            None => usual,
            Some(Mood::Status(code)) => code,
            Some(Mood::Lie) if server == Server::Hooks => {
                if usual == 200 {
                    403
                } else {
                    200
                }
            }
            Some(Mood::Redirect) => 307,
            Some(_) => 200,
        };
        self.board.note(|| format!("outside {server:?} {path} {code} {mood:?}"));
        let body = match mood {
            Some(Mood::Flood) => Bytes::from(vec![b'x'; 3 << 20]),
            mood if server == Server::Metrics => Bytes::from(self.samples(mood)),
            _ => Bytes::new(),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        if mood == Some(Mood::Redirect) {
            response.headers_mut().insert(header::LOCATION, header::HeaderValue::from_static("/again"));
        }
        response
    }

    /// An instant vector in Prometheus' shape.
    fn samples(&self, mood: Option<Mood>) -> String {
        let sample =
            |name: &str, value: &str| format!(r#"{{"metric":{{"series":"{name}"}},"value":[1735689600,"{value}"]}}"#);
        let result = match mood {
            None => {
                let rate = self.experience.error_rate(self.clock.now());
                rate.map_or_else(String::new, |rate| sample("a", &rate.to_string()))
            }
            Some(Mood::NaN) => sample("a", "NaN"),
            Some(Mood::Many) => format!("{},{}", sample("a", "0"), sample("b", "100")),
            Some(Mood::Lie) => sample("a", "100"),
            Some(Mood::Flatter) => sample("a", "0"),
            Some(_) => String::new(),
        };
        format!(r#"{{"status":"success","data":{{"resultType":"vector","result":[{result}]}}}}"#)
    }

    fn serve(&self, server: Server, mood: Option<Mood>) -> Stream {
        let (near, far) = tokio::io::duplex(64 << 10);
        let this = self.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let answer = this.reply(server, mood, &request);
            async move { Ok::<_, Infallible>(answer) }
        });
        let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
        tokio::spawn(async move {
            // A caller who leaves early is one of the cases.
            let _ = connection.await;
        });
        Box::new(near)
    }
}

impl Dial for Outside {
    fn dial(&self, host: &str, _port: u16) -> BoxFuture<'static, io::Result<Stream>> {
        let server = if host.starts_with("hooks.") { Server::Hooks } else { Server::Metrics };
        let mood = self.mood_of(server);
        let this = self.clone();
        Box::pin(async move {
            match (server, mood) {
                (_, Some(Mood::Refuse)) => Err(io::ErrorKind::ConnectionRefused.into()),
                (_, Some(Mood::Hang)) => {
                    let (near, far) = tokio::io::duplex(1 << 10);
                    // Whoever holds the other end never reads; it is kept open for as long as anybody would wait.
                    let clock = this.clock;
                    tokio::spawn(async move {
                        clock.sleep(Duration::from_secs(120)).await;
                        drop(far);
                    });
                    Ok(Box::new(near) as Stream)
                }
                (server, mood) => Ok(this.serve(server, mood)),
            }
        })
    }
}
