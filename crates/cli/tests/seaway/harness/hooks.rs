//! Hooks that answer as the test says, behind the load tester's name. There are no processes on the paused clock.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use seaway_drydock::pods::{PodContext, Program};
use serde_json::Value;

/// A program that answers every hook with 200 unless told otherwise, and remembers who called.
#[derive(Clone, Default)]
pub struct Hooks(Arc<Mutex<Book>>);

#[derive(Default)]
struct Book {
    answers: BTreeMap<String, u16>,
    calls: Vec<(String, Value)>,
}

impl Hooks {
    /// The status code for calls to this path from now on.
    pub fn answer(&self, path: &str, code: u16) {
        self.0.lock().unwrap().answers.insert(path.to_owned(), code);
    }

    /// Paths and payloads of all calls so far.
    pub fn calls(&self) -> Vec<(String, Value)> {
        self.0.lock().unwrap().calls.clone()
    }
}

impl Program for Hooks {
    fn launch(&self, _pod: &PodContext) -> Vec<(u16, Router)> {
        vec![(8080, Router::new().fallback(call).with_state(self.clone()))]
    }
}

async fn call(State(hooks): State<Hooks>, uri: axum::http::Uri, body: String) -> StatusCode {
    let mut book = hooks.0.lock().unwrap();
    // Probes of the pod come without a payload.
    if let Ok(payload) = serde_json::from_str(&body) {
        book.calls.push((uri.path().to_owned(), payload));
    }
    let code = book.answers.get(uri.path()).copied().unwrap_or(200);
    StatusCode::from_u16(code).unwrap()
}
