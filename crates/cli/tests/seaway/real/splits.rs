//! What share of the users a gateway really sends to the canary.

use std::time::Duration;

use seaway_api::foreign::gateway::HttpRoute;
use serde_json::Value;

use super::cluster::RealCluster;
use super::users::Users;
use crate::harness::Ground;

/// From the word that a gateway has the route until its workers have it too. Traefik gathers changes for two seconds, and Envoy
/// hears of them from Contour, which has given its word by then.
const TAKEN_UP: Duration = Duration::from_millis(3500);
/// Fewer answers than this prove nothing. More are counted for as long as the split lasts: a gateway that draws lots is a
/// point off now and then.
const ENOUGH: u64 = 2_000;
const PLENTY: u64 = 5_000;
/// Points between the weight and the share.
const TOLERANCE: f64 = 3.0;

/// One split: while the target has this version, under this generation of the route.
struct Measured {
    version: String,
    generation: i64,
    weight: i64,
    canary: u64,
    all: u64,
}

/// Answers of the canary among all, split by split.
#[derive(Default)]
pub struct Splits(Vec<Measured>);

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
            let Some(split) = observed(cluster).await else { continue };
            if self
                .0
                .iter()
                .any(|known| (&known.version, known.generation, known.weight) == (&split.0, split.1, split.2))
            {
                continue;
            }
            cluster.sail(TAKEN_UP).await;
            let before = users.seen();
            let (mut canary, mut all) = (0, 0);
            while all < PLENTY {
                cluster.sail(Duration::from_millis(50)).await;
                let since = |version: Option<&str>| -> u64 {
                    let count = |(key, count): (&(String, u16), &u64)| count - before.get(key).copied().unwrap_or(0);
                    let seen = users.seen();
                    seen.iter().filter(|((seen, _), _)| version.is_none_or(|version| version == seen)).map(count).sum()
                };
                let answers = (since(Some(&split.0)), since(None));
                // They count only if the split was still the same afterwards.
                if observed(cluster).await.as_ref() != Some(&split) {
                    break;
                }
                (canary, all) = answers;
            }
            if all >= ENOUGH {
                let (version, generation, weight) = split;
                self.0.push(Measured { version, generation, weight, canary, all });
            }
        }
    }

    /// Panics unless exactly these versions were measured under these weights, in this order, and every share was right.
    pub fn must_be(&self, splits: &[(&str, &[i64])]) {
        for Measured { version, weight, canary, all, .. } in &self.0 {
            let share = *canary as f64 * 100.0 / *all as f64;
            eprintln!("{version} at weight {weight:>3}: {canary} of {all} answers, {share:.1} %");
            assert!((share - *weight as f64).abs() <= TOLERANCE, "{share:.1} % instead of {weight} %");
            assert!(*weight != 0 || *canary == 0, "{canary} users met {version}, which has no share");
        }
        let measured: Vec<_> = self.0.iter().map(|split| (split.version.as_str(), split.weight)).collect();
        let wanted: Vec<_> = splits
            .iter()
            .flat_map(|(version, weights)| weights.iter().map(move |weight| (*version, *weight)))
            .collect();
        assert_eq!(measured, wanted, "splits with {ENOUGH} answers or more");
    }
}

/// The canary's version, the route's generation and the weight that it gives the canary, once its gateway has taken it up.
/// None where answers do not tell the two sides apart.
async fn observed(cluster: &RealCluster) -> Option<(String, i64, i64)> {
    let canary = cluster.image("podinfo").await;
    if cluster.image("podinfo-primary").await == canary {
        return None;
    }
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
    conditions.iter().any(accepted).then_some((canary, generation, weight))
}
