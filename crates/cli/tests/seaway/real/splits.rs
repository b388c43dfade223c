//! What share of the users a gateway really sends to the canary.

use std::collections::BTreeMap;
use std::time::Duration;

use seaway_api::foreign::gateway::HttpRoute;
use serde_json::Value;

use super::cluster::RealCluster;
use super::users::Users;
use crate::harness::Ground;

/// From the gateway's word that it has the route until its workers have it too. Traefik gathers changes for two seconds.
const TAKEN_UP: Duration = Duration::from_millis(2500);
/// Fewer answers than this prove nothing. More are counted for as long as the split lasts: a gateway that draws lots is a
/// point off now and then.
const ENOUGH: u64 = 2_000;
const PLENTY: u64 = 5_000;
/// Points between the weight and the share.
const TOLERANCE: f64 = 3.0;

/// Answers of the canary among all, by its version and the weight of the route they were asked under.
#[derive(Default)]
pub struct Splits(BTreeMap<(String, i64), (u64, u64)>);

impl Splits {
    /// Measures every split that lasts long enough, until `story` ends.
    pub async fn during(cluster: &RealCluster, users: &Users, story: impl Future<Output = ()>) -> Self {
        let mut splits = Self::default();
        tokio::select! {
            () = story => {}
            () = splits.measure(cluster, users) => {}
        }
        splits
    }

    async fn measure(&mut self, cluster: &RealCluster, users: &Users) {
        loop {
            cluster.sail(Duration::from_millis(50)).await;
            let Some((generation, weight)) = observed(cluster).await else { continue };
            let canary = cluster.image("podinfo").await;
            if weight == 0 || self.0.contains_key(&(canary.clone(), weight)) {
                continue;
            }
            cluster.sail(TAKEN_UP).await;
            let before = users.seen();
            let mut answers = (0, 0);
            while answers.1 < PLENTY && observed(cluster).await == Some((generation, weight)) {
                cluster.sail(Duration::from_millis(50)).await;
                let since = |version: Option<&str>| -> u64 {
                    let count = |(key, count): (&(String, u16), &u64)| count - before.get(key).copied().unwrap_or(0);
                    let seen = users.seen();
                    seen.iter().filter(|((seen, _), _)| version.is_none_or(|version| version == seen)).map(count).sum()
                };
                answers = (since(Some(&canary)), since(None));
            }
            if answers.1 >= ENOUGH {
                self.0.insert((canary, weight), answers);
            }
        }
    }

    /// Panics unless each of these versions was measured under each of its weights, and every share was right.
    pub fn must_be(&self, splits: &[(&str, &[i64])]) {
        for ((version, weight), (canary, all)) in &self.0 {
            let share = *canary as f64 * 100.0 / *all as f64;
            eprintln!("{version} at weight {weight:>3}: {canary} of {all} answers, {share:.1} %");
            assert!((share - *weight as f64).abs() <= TOLERANCE, "{share:.1} % instead of {weight} %");
        }
        for (version, weights) in splits {
            let is_missing = |weight: &&i64| !self.0.contains_key(&((*version).to_owned(), **weight));
            let missing: Vec<_> = weights.iter().filter(is_missing).collect();
            assert!(missing.is_empty(), "no {ENOUGH} answers about {version} under the weights {missing:?}");
        }
    }
}

/// Generation and canary weight of the route, once its gateway has taken it up.
async fn observed(cluster: &RealCluster) -> Option<(i64, i64)> {
    let route: HttpRoute = cluster.api("test").get("podinfo").await.ok()?;
    let route = serde_json::to_value(route).ok()?;
    let generation = route.pointer("/metadata/generation")?.as_i64()?;
    let conditions = route.pointer("/status/parents/0/conditions")?.as_array()?;
    let accepted = |condition: &Value| {
        condition["type"] == "Accepted"
            && condition["status"] == "True"
            && condition["observedGeneration"] == generation
    };
    let weight = route.pointer("/spec/rules/0/backendRefs/1/weight")?.as_i64()?;
    conditions.iter().any(accepted).then_some((generation, weight))
}
