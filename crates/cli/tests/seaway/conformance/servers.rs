//! Both servers, bare: etcd and kube-apiserver on the one side, drydock's API server on the other.

use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use kube::Client;
use seaway_drydock::apiserver::ApiServer as Drydock;
use seaway_drydock::{Clock, Seed};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::compare::{Difference, differences};
use super::definitions::DEFINITIONS;
use super::explained::explanation;
use super::generator;
use super::mask::masked;
use super::runner::{self, Run};
use super::script::{Body, Step};
use super::trial::{Try, Verdict, judge};
use crate::real::{ApiServer, Etcd};

/// How often a script is tried when a server was too slow for its watches, each time with twice the time.
const PATIENCE: u32 = 5;

pub struct Servers {
    real: Client,
    drydock: Client,
    namespaces: AtomicU64,
    _parts: (Etcd, ApiServer, TempDir),
}

impl Servers {
    pub async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let etcd = Etcd::start(folder.path());
        // The usual place in etcd, which some refusals name.
        let api = ApiServer::start("registry", 6443, folder.path()).await;
        let drydock = Drydock::without_controllers(Clock::starting_at(Timestamp::now(), 1), Seed::new(1));
        let servers = Self {
            real: api.client("admin").await,
            drydock: drydock.client("conformance"),
            namespaces: AtomicU64::new(1),
            _parts: (etcd, api, folder),
        };
        servers.define().await;
        servers
    }

    /// Both serve the same custom resources: ours, and what drydock brings along.
    async fn define(&self) {
        for crd in seaway_api::crds::crds() {
            post(&self.drydock, DEFINITIONS, &serde_json::to_value(crd).unwrap()).await;
        }
        let brought: Value =
            self.drydock.request(http::Request::get(DEFINITIONS).body(Vec::new()).unwrap()).await.unwrap();
        for crd in brought["items"].as_array().unwrap() {
            let metadata = json!({"name": crd["metadata"]["name"], "annotations": crd["metadata"]["annotations"]});
            let kind = json!("CustomResourceDefinition");
            let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": kind, "metadata": metadata, "spec": crd["spec"]});
            post(&self.real, DEFINITIONS, &crd).await;
        }
        for plural in [
            "flagger.app/v1beta1/canaries",
            "flagger.app/v1beta1/metrictemplates",
            "flagger.app/v1beta1/alertproviders",
            "gateway.networking.k8s.io/v1/httproutes",
        ] {
            let request = || http::Request::get(format!("/apis/{plural}")).body(Vec::new()).unwrap();
            for _ in 0..200 {
                if self.real.request::<Value>(request()).await.is_ok() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        }
        // Schemas reach the handlers a moment after the resource is served.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }

    async fn both(&self, steps: &[Step], times: u32) -> (Run, Run) {
        let namespace = format!("run-{}", self.namespaces.fetch_add(1, Ordering::Relaxed));
        tokio::join!(
            runner::run(&self.real, &namespace, steps, times),
            runner::run(&self.drydock, &namespace, steps, times)
        )
    }

    /// Plays a script on both, and again where a server was so slow that its watches may not have seen the same.
    pub async fn once(&self, steps: &[Step]) -> Try {
        for patience in 0..PATIENCE {
            let (real, drydock) = self.both(steps, 1 << patience).await;
            if real.slow || drydock.slow {
                continue;
            }
            let (real, drydock) = (masked(&real.answers), masked(&drydock.answers));
            let answers = steps.iter().zip(real.iter().zip(&drydock));
            let mut found: Vec<_> =
                answers.flat_map(|(step, (real, drydock))| differences(step, real, drydock)).collect();
            // What a watch saw follows from the requests after it.
            found.sort_by_key(|difference| difference.step.is_watch());
            return Try { real, found };
        }
        let script: Vec<_> = steps.iter().map(ToString::to_string).collect();
        panic!("the servers are too slow for the watches of\n{}", script.join("\n"));
    }

    /// Asks both and prints what they say: `METHOD /path content-type body`, one request per line.
    pub async fn by_hand(&self, lines: &str) {
        let mut steps = Vec::new();
        for (id, line) in lines.lines().filter(|line| !line.trim().is_empty()).enumerate() {
            let mut words = line.splitn(4, ' ');
            let mut word = || words.next().unwrap_or_default().to_owned();
            let method = match word().as_str() {
                "POST" => "POST",
                "PUT" => "PUT",
                "PATCH" => "PATCH",
                "DELETE" => "DELETE",
                _ => "GET",
            };
            let (path, headers) = (word(), vec![("content-type", word())]);
            steps.push(Step { id, method, path, headers, body: Body::Text(word()) });
        }
        let (real, drydock) = self.both(&steps, 1).await;
        for (step, (real, drydock)) in steps.iter().zip(masked(&real.answers).iter().zip(masked(&drydock.answers))) {
            eprintln!("{step}");
            if *real == drydock {
                eprintln!("both:           {real}");
            } else {
                eprintln!("kube-apiserver: {real}\ndrydock:        {drydock}");
            }
        }
    }

    fn unexplained(verdict: Verdict) -> Vec<Difference> {
        let unexplained = |difference: &Difference| explanation(difference).is_none();
        verdict.wavering.into_iter().chain(verdict.found).filter(unexplained).collect()
    }

    /// Prints every request and answer of a seed, and the shortest sequence that still differs.
    pub async fn replay(&self, seed: u64) {
        for step in generator::script(seed) {
            eprintln!("{step}");
        }
        self.replay_quietly(seed).await;
    }

    pub async fn replay_quietly(&self, seed: u64) {
        let mut steps = generator::script(seed);
        let mut found = Self::unexplained(judge(self, &steps).await);
        let Some(first) = found.first().cloned() else { return eprintln!("seed {seed}: no difference") };
        if !first.step.is_watch() {
            steps.truncate(steps.iter().position(|step| step.id == first.step.id).unwrap_or(0) + 1);
        }
        let mut index = 0;
        while index < steps.len() {
            if steps[index].id == first.step.id {
                index += 1;
                continue;
            }
            let mut fewer = steps.clone();
            fewer.remove(index);
            let left = Self::unexplained(judge(self, &fewer).await);
            if left.iter().any(|difference| difference.step.id == first.step.id && difference.field == first.field) {
                (steps, found) = (fewer, left);
            } else {
                index += 1;
            }
        }
        eprintln!("\nseed {seed} differs; the shortest sequence that does:");
        for step in &steps {
            eprintln!("{step}");
        }
        for difference in found.iter().filter(|difference| difference.step.id == first.step.id) {
            eprintln!("{difference}");
        }
        eprintln!("kube-apiserver: {}\ndrydock:        {}", first.answers.0, first.answers.1);
        eprintln!(
            "again: SEAWAY_CONFORMANCE_SEED={seed} cargo test --workspace --test seaway {} -- --nocapture",
            super::TEST
        );
    }
}

async fn post(client: &Client, path: &str, object: &Value) {
    let request = http::Request::post(path).header("content-type", "application/json");
    let created: Result<Value, _> = client.request(request.body(object.to_string().into_bytes()).unwrap()).await;
    created.unwrap_or_else(|error| panic!("{}: {error}", object["metadata"]["name"]));
}
