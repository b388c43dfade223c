//! Sends a script to a server and writes down what it said.

use std::time::{Duration, Instant};

use http::response::Parts;
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body as HttpBody;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::definitions::{DEFINITIONS, Definitions};
use super::script::{Memory, Step};

/// A script must be over before its watches are, or they would not see the same: by so much.
const MARGIN: Duration = Duration::from_millis(300);

/// How long a watch that begins with what is there may take to say what that is. Of Events a real server keeps no cache: it
/// answers first and looks then, and the next request must not come between.
const MOMENT: Duration = Duration::from_millis(50);

/// Stands for the answer of a server that closed the connection instead.
pub const BROKEN_OFF: u16 = 599;

/// One answer, as it came.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub code: u16,
    pub media_type: String,
    pub warnings: Vec<String>,
    /// JSON; a text where it is none; for a watch the list of its events.
    pub body: Value,
}

/// What a server said to every step.
pub struct Run {
    pub answers: Vec<Answer>,
    /// Whether it took so long that watches may have ended before.
    pub slow: bool,
}

enum Pending {
    Done(Answer),
    Watch(JoinHandle<Answer>),
}

/// Plays a script in a namespace of its own, in so many times the time it should take.
pub async fn run(client: &Client, namespace: &str, steps: &[Step], times: u32) -> Run {
    let steps: Vec<_> = steps.iter().map(|step| step.with_more_time(times)).collect();
    let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
    let created = http::Request::post("/api/v1/namespaces").header("content-type", "application/json");
    let created = send(client, created.body(object.to_string().into_bytes().into()).unwrap()).await;
    assert_eq!(created.code, 201, "{}", created.body);
    let version = created.body["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
    let mut memory = Memory { namespace: namespace.to_owned(), version, ..Memory::default() };
    let mut pending = Vec::new();
    let mut definitions = Definitions::default();
    let begun = Instant::now();
    for step in &steps {
        let request = request(step, &memory);
        if step.is_watch() {
            // Events are read while the script goes on.
            let mut answer = Incoming::from(client.send(request).await);
            if step.begins_with_what_is_there() {
                let _ = tokio::time::timeout(MOMENT, answer.read_on()).await;
            }
            pending.push(Pending::Watch(tokio::spawn(answer.whole())));
        } else {
            let answer = send(client, request).await;
            definitions.follow(client, step, &mut memory, &answer.body).await;
            memory.answers.insert(step.id, answer.body.clone());
            pending.push(Pending::Done(answer));
        }
    }
    let slow = begun.elapsed() > haste(&steps, times);
    let mut answers = Vec::new();
    for (one, step) in pending.into_iter().zip(&steps) {
        answers.push(match one {
            Pending::Done(answer) => answer,
            Pending::Watch(reading) => {
                let mut answer = reading.await.unwrap();
                if answer.code == 200 {
                    answer.body = events(&answer.body, step);
                }
                answer
            }
        });
    }
    definitions.clear(client).await;
    Run { answers, slow }
}

/// How long a script may take. One without watches has the time of the shortest, unless it must wait for definitions.
fn haste(steps: &[Step], times: u32) -> Duration {
    let defines = steps.iter().any(|step| step.path.starts_with(DEFINITIONS));
    let unwatched = if defines { Duration::MAX } else { Duration::from_secs(1) * times };
    steps.iter().filter_map(Step::lasts).min().unwrap_or(unwatched).saturating_sub(MARGIN)
}

fn request(step: &Step, memory: &Memory) -> http::Request<HttpBody> {
    let mut request =
        http::Request::builder().method(step.method).uri(memory.fill(&step.path)).header("user-agent", "conformance/1");
    for (name, value) in step.headers.iter().filter(|(_, value)| !value.is_empty()) {
        request = request.header(*name, value);
    }
    request.body(memory.body(&step.body).into_bytes().into()).unwrap()
}

async fn send(client: &Client, request: http::Request<HttpBody>) -> Answer {
    Incoming::from(client.send(request).await).whole().await
}

/// An answer whose body is on its way.
struct Incoming {
    head: Parts,
    body: HttpBody,
    read: Vec<u8>,
}

impl From<kube::Result<http::Response<HttpBody>>> for Incoming {
    fn from(response: kube::Result<http::Response<HttpBody>>) -> Self {
        // A real server may close the connection where others have an answer; nothing is equal to that.
        let response = response.unwrap_or_else(|error| {
            let said = HttpBody::from(error.to_string().into_bytes());
            http::Response::builder().status(BROKEN_OFF).body(said).unwrap()
        });
        let (head, body) = response.into_parts();
        Self { head, body, read: Vec::new() }
    }
}

impl Incoming {
    /// Reads the next piece; `false` at the end.
    async fn read_on(&mut self) -> bool {
        match self.body.frame().await {
            Some(Ok(frame)) => {
                self.read.extend(frame.into_data().unwrap_or_default());
                true
            }
            _ => false,
        }
    }

    async fn whole(mut self) -> Answer {
        while self.read_on().await {}
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let warnings = self.head.headers.get_all("warning").iter().map(text).collect();
        let media_type = self.head.headers.get("content-type").map(text).unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default().to_owned();
        let text = String::from_utf8_lossy(&self.read).into_owned();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { code: self.head.status.as_u16(), media_type, warnings, body }
    }
}

/// The lines of a watch as a list. One line alone has been read as JSON already.
fn events(body: &Value, step: &Step) -> Value {
    match body {
        Value::String(lines) => {
            let event = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{step}: {error}: {line}"));
            Value::Array(lines.lines().map(event).collect())
        }
        one if one.get("object").is_some() => json!([one]),
        other => other.clone(),
    }
}
