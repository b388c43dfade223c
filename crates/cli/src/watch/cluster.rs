//! The cluster that a kubeconfig names, found as kubectl finds it, and its clock.
//!
//! A cluster in drydock may run faster than we do. Its kubeconfig says so, in a place that kubectl passes over, so that
//! ages and countdowns are those of the cluster.

use std::path::Path;

use anyhow::{Context, bail};
use jiff::Timestamp;
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig, NamedExtension};
use serde::{Deserialize, Serialize};

/// Name under which a kubeconfig keeps the clock.
const EXTENSION: &str = "seaway-clock";

/// A cluster we can talk to.
pub struct Cluster {
    /// Way to its API server.
    pub client: Client,
    /// Namespace of those who name none.
    pub namespace: String,
    /// Its name, for titles: the context, or the address.
    pub name: String,
    /// Where its API server is.
    pub server: String,
    /// Its clock.
    pub clock: RemoteClock,
}

/// What time it is in the cluster: ours, unless its kubeconfig says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RemoteClock {
    /// A time of ours.
    ours: Timestamp,
    /// The cluster's time at that moment.
    theirs: Timestamp,
    /// Seconds of the cluster per second of ours.
    speed: u32,
}

impl Default for RemoteClock {
    fn default() -> Self {
        Self { ours: Timestamp::UNIX_EPOCH, theirs: Timestamp::UNIX_EPOCH, speed: 1 }
    }
}

impl RemoteClock {
    /// A clock that shows `theirs` now and runs `speed` times as fast as ours.
    pub fn showing(theirs: Timestamp, speed: u32) -> Self {
        Self { ours: Timestamp::now(), theirs, speed }
    }

    /// The cluster's time.
    pub fn now(&self) -> Timestamp {
        self.at(Timestamp::now())
    }

    fn at(&self, ours: Timestamp) -> Timestamp {
        let passed = ours.duration_since(self.ours);
        let speed = i32::try_from(self.speed).unwrap_or(1).max(1);
        passed.checked_mul(speed).and_then(|passed| self.theirs.checked_add(passed).ok()).unwrap_or(ours)
    }

    /// The clock as a kubeconfig keeps it.
    pub fn extension(&self) -> NamedExtension {
        NamedExtension { name: EXTENSION.to_owned(), extension: serde_json::to_value(self).unwrap_or_default() }
    }

    fn of(kubeconfig: &Kubeconfig, context: &str) -> Option<Self> {
        let context = kubeconfig.contexts.iter().find(|named| named.name == context)?.context.as_ref()?;
        let cluster = kubeconfig.clusters.iter().find(|named| named.name == context.cluster)?.cluster.as_ref()?;
        let kept = cluster.extensions.iter().flatten().find(|extension| extension.name == EXTENSION)?;
        serde_json::from_value(kept.extension.clone()).ok()
    }
}

/// Finds the cluster: in `file`, else where `KUBECONFIG` says, else in `~/.kube/config`, else around this Pod.
pub async fn find(file: Option<&Path>, context: Option<&str>) -> anyhow::Result<Cluster> {
    let kubeconfig = match file {
        Some(path) => {
            Some(Kubeconfig::read_from(path).with_context(|| format!("cannot read kubeconfig {}", path.display()))?)
        }
        None if is_anywhere() => Some(Kubeconfig::read().context("cannot read the kubeconfig")?),
        None => None,
    };
    let Some(kubeconfig) = kubeconfig else {
        if let Some(context) = context {
            bail!("there is no kubeconfig to find the context {context:?} in; name one with --kubeconfig");
        }
        let config = kube::Config::incluster()
            .context("found no cluster: there is no kubeconfig, and this is no Pod; name one with --kubeconfig")?;
        return connect(config, None, RemoteClock::default());
    };
    let chosen = context.map(str::to_owned).or_else(|| kubeconfig.current_context.clone()).unwrap_or_default();
    let known: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    if !known.contains(&chosen.as_str()) {
        let there =
            if known.is_empty() { "no context at all".to_owned() } else { format!("only {}", known.join(", ")) };
        if chosen.is_empty() {
            bail!("the kubeconfig has no current context; choose one with --context, there is {there}");
        }
        bail!("the kubeconfig has no context {chosen:?}, {there}");
    }
    let clock = RemoteClock::of(&kubeconfig, &chosen).unwrap_or_default();
    let options = KubeConfigOptions { context: Some(chosen.clone()), ..KubeConfigOptions::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .with_context(|| format!("the context {chosen:?} names no usable cluster"))?;
    connect(config, Some(chosen), clock)
}

fn connect(config: kube::Config, context: Option<String>, clock: RemoteClock) -> anyhow::Result<Cluster> {
    let server = config.cluster_url.to_string();
    let namespace = config.default_namespace.clone();
    let client = Client::try_from(config).context("cannot make a client for the cluster")?;
    Ok(Cluster { client, namespace, name: context.unwrap_or_else(|| server.clone()), server, clock })
}

/// Whether there is a kubeconfig where kubectl would look.
fn is_anywhere() -> bool {
    if let Some(paths) = std::env::var_os("KUBECONFIG").filter(|paths| !paths.is_empty()) {
        return std::env::split_paths(&paths).any(|path| path.exists());
    }
    std::env::home_dir().is_some_and(|home| home.join(".kube/config").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
apiVersion: v1
kind: Config
clusters: [{name: here, cluster: {server: 'http://127.0.0.1:1'}}]
users: [{name: me, user: {}}]
contexts:
- {name: one, context: {cluster: here, user: me, namespace: test}}
- {name: two, context: {cluster: here, user: me}}
current-context: one
";

    fn file(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("config");
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    async fn refused(text: &str, context: Option<&str>) -> String {
        let (_folder, path) = file(text);
        format!("{:#}", find(Some(&path), context).await.err().unwrap())
    }

    #[tokio::test]
    async fn a_context_brings_its_namespace() {
        let (_folder, path) = file(TWO);
        let one = find(Some(&path), None).await.unwrap();
        assert_eq!((one.namespace.as_str(), one.name.as_str()), ("test", "one"));
        assert_eq!(one.clock, RemoteClock::default());
        let two = find(Some(&path), Some("two")).await.unwrap();
        assert_eq!((two.namespace.as_str(), two.server.as_str()), ("default", "http://127.0.0.1:1/"));
    }

    #[tokio::test]
    async fn what_cannot_be_used_is_named() {
        assert_eq!(refused(TWO, Some("three")).await, "the kubeconfig has no context \"three\", only one, two");
        let nowhere = TWO.replace("current-context: one", "");
        assert!(refused(&nowhere, None).await.contains("choose one with --context"), "no current context");
        assert!(
            refused(&TWO.replace("cluster: here", "cluster: gone"), None).await.contains("names no usable cluster")
        );
        assert!(refused("a: [", None).await.contains("cannot read kubeconfig"));
        let missing = find(Some(Path::new("/nowhere/at/all")), None).await.err().unwrap();
        assert_eq!(missing.to_string(), "cannot read kubeconfig /nowhere/at/all");
    }

    #[test]
    fn a_fast_cluster_has_its_own_time() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let clock = RemoteClock { ours: at(1_000), theirs: at(500), speed: 20 };
        assert_eq!(clock.at(at(1_010)), at(700));
        assert_eq!(RemoteClock::default().at(at(1_010)), at(1_010));
        let extension = serde_json::to_string(&clock.extension()).unwrap();
        let text = TWO.replace("127.0.0.1:1'", &format!("127.0.0.1:1', extensions: [{extension}]"));
        assert_eq!(RemoteClock::of(&Kubeconfig::from_yaml(&text).unwrap(), "two"), Some(clock));
    }
}
