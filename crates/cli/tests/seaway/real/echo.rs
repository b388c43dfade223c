//! A program that tells what reached it, and remembers it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use seaway_drydock::pods::{PodContext, Program};
use serde_json::json;

/// By this header a request is told from all others.
pub const MARK: &str = "x-mark";

/// Which apps a marked request came to, copies of it included, in the order of their names.
type Visits = BTreeMap<String, Vec<String>>;

/// Pods answer with what they were asked. Clones share what they remember.
#[derive(Clone, Default)]
pub struct Echo(Arc<Mutex<Visits>>);

impl Echo {
    /// Who was reached by the request with this mark.
    pub fn visited(&self, mark: &str) -> Vec<String> {
        self.0.lock().unwrap().get(mark).cloned().unwrap_or_default()
    }

    fn remember(&self, app: &str, request: &Request) {
        let Some(mark) = request.headers().get(MARK).and_then(|mark| mark.to_str().ok()) else { return };
        let mut visits = self.0.lock().unwrap();
        let visited = visits.entry(mark.to_owned()).or_default();
        visited.insert(visited.partition_point(|earlier| earlier.as_str() < app), app.to_owned());
    }
}

impl Program for Echo {
    fn launch(&self, pod: &PodContext) -> Vec<(u16, Router)> {
        let app = pod.labels.get("app").cloned().unwrap_or_default();
        let memory = self.clone();
        let echo = async move |request: Request| {
            memory.remember(&app, &request);
            let headers = request.headers().iter().filter(|(name, _)| name.as_str().starts_with("x-test-"));
            let headers: BTreeMap<_, _> =
                headers.map(|(name, value)| (name.as_str(), String::from_utf8_lossy(value.as_bytes()))).collect();
            let host = request.headers().get("host").map(|host| String::from_utf8_lossy(host.as_bytes()));
            let uri = request.uri().path_and_query().map(ToString::to_string);
            let told =
                json!({"app": app, "method": request.method().as_str(), "uri": uri, "host": host, "headers": headers});
            ([("x-test-answer", "pod")], told.to_string())
        };
        vec![(8080, Router::new().fallback(echo))]
    }
}
