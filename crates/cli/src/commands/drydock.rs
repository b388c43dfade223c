//! `seaway drydock`: a cluster in this process, for kubectl.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde_json::json;

use crate::demo::ground::{Ground, kubeconfig_path};
use crate::logging::{self, Encoding};
use crate::{manifests, output, signals};

/// Start a cluster in this process and serve it for kubectl.
///
/// API server, controllers, pods, a gateway and Prometheus, with Seaway's custom resources installed. Runs until it is
/// interrupted; nothing is kept.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway drydock
  seaway drydock --with-operator --speed 20 --apply examples/gateway-api
  seaway drydock --port 8001 --kubeconfig ./drydock.kubeconfig --json")]
pub struct Options {
    /// Port of the API server on 127.0.0.1; 0 for any that is free.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// New file for the kubeconfig; a temporary one when not given. Never overwrites; what it wrote is removed at the end.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Manifests to apply at the start: files, or directories in the order of their names. May be repeated.
    #[arg(long, value_name = "FILE")]
    apply: Vec<PathBuf>,
    /// How many times as fast as real time the cluster's clock runs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    speed: u32,
    /// Also run the operator in it.
    #[arg(long)]
    with_operator: bool,
    /// Say how to reach it as one JSON object.
    #[arg(long)]
    json: bool,
    /// Most detailed level that is logged: debug, info, warn, error.
    #[arg(long, default_value = "info")]
    log_level: String,
}

/// Runs until a signal.
pub async fn run(options: Options) -> anyhow::Result<ExitCode> {
    logging::start(Encoding::Console, &options.log_level);
    let stop = signals::shutdown()?;
    let mut files = Vec::new();
    for path in manifests::find(&options.apply)? {
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.push((path.display().to_string(), text));
    }
    let mut ground = Ground::start(options.speed, &std::env::current_exe()?).await?;
    let path = options.kubeconfig.unwrap_or_else(kubeconfig_path);
    let empty = files.is_empty();
    if empty {
        ground.work_in("default");
    }
    ground.open(options.port, &path).await?;
    if options.with_operator {
        ground.start_operator();
    }
    ground.apply(files.iter().map(|(name, text)| (name.as_str(), text.as_str()))).await?;
    invite(&ground, &path, if empty { FIRST_STEPS } else { EXAMPLE }, options.json);
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(ExitCode::SUCCESS),
        error = ground.operator_ended() => Err(error),
    };
    ground.stop().await;
    ended
}

/// What to try in a cluster with the example in it.
pub(crate) const EXAMPLE: &str = "  kubectl get canaries --all-namespaces
  kubectl -n test get deployments,pods,httproutes
  kubectl -n test set image deployment/podinfo podinfod=stefanprodan/podinfo:6.0.3
  kubectl -n test describe canary podinfo";

/// What to try in a cluster with nothing in it.
const FIRST_STEPS: &str = "  kubectl create deployment podinfo --image=stefanprodan/podinfo:6.0.0 --port=9898
  kubectl expose deployment podinfo --port=9898
  kubectl get deployments,pods,services";

/// Says how to use the cluster.
pub(crate) fn invite(ground: &Ground, kubeconfig: &Path, commands: &str, json: bool) {
    let path = kubeconfig.display();
    let namespace = ground.namespace();
    let proxy = ground.cluster().proxy_url(namespace);
    if json {
        output::line(&json!({ "kubeconfig": path.to_string(), "httpProxy": proxy }).to_string());
        return;
    }
    let proxy = proxy.unwrap_or_default();
    output::line(&format!(
        "
The cluster runs until you press Ctrl-C. From another terminal:

  export KUBECONFIG={path}
{commands}

Names of the cluster are reached through its proxy:

  http_proxy={proxy} curl http://podinfo.{namespace}:9898/
"
    ));
}
