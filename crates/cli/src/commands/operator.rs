//! `seaway operator`: the operator in a cluster, with Flagger's flags.
//!
//! Every flag of Flagger is accepted, so that a Deployment only swaps its image. What a flag asks for and Seaway does
//! not do yet is said in a warning at the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Args};
use kube::config::{KubeConfigOptions, Kubeconfig};
use seaway_adapters::http::{Guard, Http, Proxy};
use seaway_operator::{Config, Operator, SystemClock};

use crate::listen;
use crate::logging::{self, Encoding};
use crate::signals;

/// Run the operator in a cluster: a drop-in for Flagger.
///
/// Takes Flagger's flags, with one dash or two. Without -kubeconfig it uses the Pod's service account, or outside a
/// cluster the kubeconfig that kubectl uses. Hooks and metric queries go through the proxies that HTTP_PROXY, HTTPS_PROXY
/// and NO_PROXY name.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  seaway operator -mesh-provider=gatewayapi:v1 -metrics-server=http://prometheus.istio-system:9090
  seaway operator --kubeconfig ~/.kube/config --namespace test --log-level info --zap-encoding console")]
pub struct Flags {
    /// Kubeconfig file; the Pod's service account when empty.
    #[arg(long, default_value = "")]
    kubeconfig: String,
    /// Address of the API server, instead of the kubeconfig's.
    #[arg(long, default_value = "")]
    master: String,
    /// Watch one namespace only.
    #[arg(long, default_value = "")]
    namespace: String,
    /// Who routes traffic for canaries that do not say: gatewayapi:v1.
    #[arg(long, default_value = "istio")]
    mesh_provider: String,
    /// Prometheus for builtin metrics.
    #[arg(long, default_value = "http://prometheus:9090")]
    metrics_server: String,
    /// Labels that may tell a target's pods, in order.
    #[arg(long, default_value = "app,name,app.kubernetes.io/name", value_delimiter = ',')]
    selector_labels: Vec<String>,
    /// Prefixes of labels and annotations copied to the primary, or *.
    #[arg(long, default_value = "", value_delimiter = ',')]
    include_label_prefix: Vec<String>,
    /// A change of a tracked ConfigMap or Secret is a new revision.
    #[arg(long, default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = switch, action = ArgAction::Set)]
    enable_config_tracking: bool,
    /// Refuse references to objects of other namespaces.
    #[arg(long, default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = switch, action = ArgAction::Set)]
    no_cross_namespace_refs: bool,
    /// URL that every event is posted to; EVENT_WEBHOOK_URL wins.
    #[arg(long, default_value = "")]
    event_webhook: String,
    /// Port of /metrics, /healthz and /readyz; 0 for none.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// One leader among several operators, by a Lease. On by default, so that two never act at once.
    #[arg(long, default_value = "true", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = switch, action = ArgAction::Set)]
    enable_leader_election: bool,
    /// Namespace of the Lease; -namespace wins.
    #[arg(long, default_value = "kube-system")]
    leader_election_namespace: String,
    /// How long a leader that is gone is waited for.
    #[arg(long, default_value = "60s")]
    lease_duration: String,
    /// Most detailed level that is logged: debug, info, warn, error.
    #[arg(long, default_value = "debug")]
    log_level: String,
    /// Encoding of the logs: json or console.
    #[arg(long, default_value = "json")]
    zap_encoding: Encoding,
    /// Print the version and leave.
    #[arg(long, default_value = "false", default_missing_value = "true", num_args = 0..=1, require_equals = true, value_parser = switch, action = ArgAction::Set)]
    version: bool,
    #[command(flatten)]
    unserved: Unserved,
    #[command(flatten)]
    klog: Klog,
}

/// Flags of Flagger that have no effect yet, or none any more. All text: a value that Flagger accepts must not stop us.
#[derive(Args, Debug)]
#[command(next_help_heading = "Accepted, without effect")]
struct Unserved {
    /// Requests per second: reads come from caches, there is nothing to throttle.
    #[arg(long, value_name = "N")]
    kubeconfig_qps: Option<String>,
    /// Burst of requests: reads come from caches, there is nothing to throttle.
    #[arg(long, value_name = "N")]
    kubeconfig_burst: Option<String>,
    /// A separate cluster for routes.
    #[arg(long, value_name = "FILE")]
    kubeconfig_service_mesh: Option<String>,
    /// Pause of the control loop: changes are seen at once.
    #[arg(long, value_name = "DURATION")]
    control_loop_interval: Option<String>,
    /// Number of workers: canaries do not wait for each other.
    #[arg(long, value_name = "N")]
    threadiness: Option<String>,
    /// Prefix of NGINX annotations.
    #[arg(long, value_name = "PREFIX")]
    ingress_annotations_prefix: Option<String>,
    /// Ingress class of Contour routes.
    #[arg(long, value_name = "CLASS")]
    ingress_class: Option<String>,
    /// Cluster name in alerts.
    #[arg(long, value_name = "NAME")]
    cluster_name: Option<String>,
    /// Alerts to Slack.
    #[arg(long, value_name = "URL")]
    slack_url: Option<String>,
    /// Token for Slack.
    #[arg(long, value_name = "TOKEN")]
    slack_token: Option<String>,
    /// Proxy for Slack.
    #[arg(long, value_name = "URL")]
    slack_proxy_url: Option<String>,
    /// Channel of Slack.
    #[arg(long, value_name = "NAME")]
    slack_channel: Option<String>,
    /// User of Slack.
    #[arg(long, value_name = "NAME")]
    slack_user: Option<String>,
    /// Alerts to Teams.
    #[arg(long, value_name = "URL")]
    msteams_url: Option<String>,
    /// Proxy for Teams.
    #[arg(long, value_name = "URL")]
    msteams_proxy_url: Option<String>,
    /// Global logger of zap.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    zap_replace_globals: Option<String>,
}

/// What a flag without effect would have done, for the warning. Names as clap knows them.
const UNSERVED: &[(&str, &str)] = &[
    ("kubeconfig_service_mesh", "routes are written to the one cluster only"),
    ("control_loop_interval", "there is no control loop; changes are seen at once"),
    ("ingress_annotations_prefix", "NGINX is not routed yet"),
    ("ingress_class", "Contour is not routed yet"),
    ("cluster_name", "alerts are not sent yet"),
    ("slack_url", "alerts are not sent yet"),
    ("slack_token", "alerts are not sent yet"),
    ("slack_proxy_url", "alerts are not sent yet"),
    ("slack_channel", "alerts are not sent yet"),
    ("slack_user", "alerts are not sent yet"),
    ("msteams_url", "alerts are not sent yet"),
    ("msteams_proxy_url", "alerts are not sent yet"),
];

/// Flags of Kubernetes' logging library, which Flagger's binary has too.
#[derive(Args, Debug)]
#[command(next_help_heading = "Accepted, as in every Go program with klog")]
struct Klog {
    #[arg(long, hide = true)]
    v: Option<String>,
    #[arg(long, hide = true)]
    vmodule: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    logtostderr: Option<String>,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    alsologtostderr: Option<String>,
    #[arg(long, hide = true)]
    stderrthreshold: Option<String>,
    #[arg(long = "log_dir", hide = true)]
    log_dir: Option<String>,
    #[arg(long = "log_file", hide = true)]
    log_file: Option<String>,
    #[arg(long = "log_file_max_size", hide = true)]
    log_file_max_size: Option<String>,
    #[arg(long = "log_backtrace_at", hide = true)]
    log_backtrace_at: Option<String>,
    #[arg(long = "skip_headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_headers: Option<String>,
    #[arg(long = "skip_log_headers", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    skip_log_headers: Option<String>,
    #[arg(long = "add_dir_header", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    add_dir_header: Option<String>,
    #[arg(long = "one_output", hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    one_output: Option<String>,
}

/// A truth value, in any of Go's spellings.
fn switch(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        other => Err(format!("{other:?} is neither true nor false")),
    }
}

/// Runs until a signal, or until leadership is lost.
pub async fn run(flags: Flags, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    if flags.version {
        println!("Seaway version {}", env!("CARGO_PKG_VERSION"));
        return Ok(ExitCode::SUCCESS);
    }
    logging::start(flags.zap_encoding, &flags.log_level);
    if !logging::is_level(&flags.log_level) {
        let level = &flags.log_level;
        tracing::warn!("flag -log-level: {level:?} is no level, info is used; use debug, info, warn or error");
    }
    for warning in warnings(matches, |name| std::env::var_os(name).is_some_and(|value| !value.is_empty())) {
        tracing::warn!("{warning}");
    }
    let stop = signals::shutdown()?;
    let config = flags.config(std::env::var("EVENT_WEBHOOK_URL").ok())?;
    let proxy = Proxy::from_environment(variable)?;
    if proxy.is_used() {
        tracing::info!(?proxy, "hooks and metric queries go through a proxy");
    }
    let cluster = flags.cluster().await?;
    tracing::info!(server = %cluster.cluster_url, "starting");
    let guard = Guard { deny: addresses(&cluster.cluster_url).await, ..Guard::default() };
    let client = kube::Client::try_from(cluster).context("cannot make a client for the cluster")?;
    let http = Http::system(guard).with_proxy(proxy);
    let page = match config.port {
        Some(port) => Some(listen::on_every_address(port).await?),
        None => None,
    };
    let operator = Operator::new(config, client, Arc::new(SystemClock), http);
    match page {
        Some(listener) => operator.serving(listener).run(stop).await?,
        None => operator.run(stop).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// A variable of the environment. What is not text stays recognisable as such, to be refused where it is read.
fn variable(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// What was asked for and will not happen.
fn warnings(matches: &ArgMatches, environment: impl Fn(&str) -> bool) -> Vec<String> {
    let typed = |name: &str| {
        matches.try_contains_id(name).unwrap_or(false) && matches.value_source(name) == Some(ValueSource::CommandLine)
    };
    let flags = UNSERVED.iter().filter(|(name, _)| typed(name));
    let mut warnings: Vec<String> =
        flags.map(|(name, why)| format!("flag -{} has no effect: {why}", name.replace('_', "-"))).collect();
    for name in ["SLACK_URL", "MSTEAMS_URL"] {
        if environment(name) {
            warnings.push(format!("variable {name} has no effect: alerts are not sent yet"));
        }
    }
    warnings
}

impl Flags {
    fn config(&self, event_webhook: Option<String>) -> anyhow::Result<Config> {
        let duration = seaway_api::duration::parse(&self.lease_duration)
            .ok()
            .filter(|duration| *duration >= Duration::from_secs(1))
            .context("-lease-duration must be a duration of at least 1s, for example 60s")?;
        let filled = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let words = |list: &[String]| list.iter().filter_map(|word| filled(word.trim())).collect::<Vec<_>>();
        let config = Config {
            namespace: filled(&self.namespace),
            mesh_provider: self.mesh_provider.clone(),
            metrics_server: self.metrics_server.clone(),
            selector_labels: words(&self.selector_labels),
            include_label_prefix: words(&self.include_label_prefix),
            config_tracking: self.enable_config_tracking,
            no_cross_namespace_refs: self.no_cross_namespace_refs,
            event_webhook: event_webhook.and_then(|url| filled(&url)).or_else(|| filled(&self.event_webhook)),
            port: (self.port != 0).then_some(self.port),
            lease: None,
            seed: seed(),
            ..Config::default()
        };
        if config.selector_labels.is_empty() {
            bail!("-selector-labels is empty; name at least one label, for example app");
        }
        if !self.enable_leader_election {
            return Ok(config);
        }
        Ok(config.elect(identity(), self.leader_election_namespace.clone(), duration))
    }

    async fn cluster(&self) -> anyhow::Result<kube::Config> {
        let mut config = if self.kubeconfig.is_empty() {
            kube::Config::infer().await.context("found no cluster; give -kubeconfig or run in a Pod")?
        } else {
            let path = PathBuf::from(&self.kubeconfig);
            let file =
                Kubeconfig::read_from(&path).with_context(|| format!("cannot read kubeconfig {}", path.display()))?;
            kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("kubeconfig {} names no usable cluster", path.display()))?
        };
        if !self.master.is_empty() {
            config.cluster_url =
                self.master.parse().with_context(|| format!("-master {:?} is no address", self.master))?;
        }
        // A refused write goes back to the rules, which look again before they try again; a client that repeats it on
        // its own would repeat a decision that may be out of date.
        config.default_retry = false;
        Ok(config)
    }
}

/// Where the API server is. No hook may be called there: whoever writes a Canary must not speak to it as the operator.
async fn addresses(url: &http::Uri) -> Vec<SocketAddr> {
    let port = url.port_u16().unwrap_or(if url.scheme_str() == Some("http") { 80 } else { 443 });
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    match tokio::net::lookup_host((host, port)).await {
        Ok(found) => found.collect(),
        // The client will say the same, and better.
        Err(_) => Vec::new(),
    }
}

/// A number that differs between processes: it only spreads timers.
fn seed() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time.as_nanos() as u64 ^ (u64::from(std::process::id()) << 40)
}

/// Our name in the Lease: the host, and a part that differs between processes, as Flagger builds it.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").ok().or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    format!("{}_{:016x}", host.unwrap_or_else(|| "seaway".to_owned()), seed())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{Command, FromArgMatches};

    use super::*;
    use crate::goflags;

    fn parse(line: &[&str]) -> (Flags, ArgMatches) {
        let command = Flags::augment_args(Command::new("operator").no_binary_name(true));
        let args = goflags::normalise(&command, line.iter().map(OsString::from));
        let matches = command.try_get_matches_from(args).unwrap();
        (Flags::from_arg_matches(&matches).unwrap(), matches)
    }

    /// The container args of Flagger's chart, with everything in it turned on.
    const CHART: &[&str] = &[
        "-log-level=info",
        "-mesh-provider=gatewayapi:v1",
        "-metrics-server=http://prometheus:9090",
        "-selector-labels=app,name,app.kubernetes.io/name",
        "-enable-config-tracking=true",
        "-namespace=shop",
        "-slack-user=flagger",
        "-slack-channel=general",
        "-slack-url=https://hooks.example.com",
        "-enable-leader-election=true",
        "-leader-election-namespace=flagger-system",
        "-kubeconfig-qps=20",
        "-kubeconfig-burst=50",
        "-threadiness=4",
        "-no-cross-namespace-refs=true",
        "-ingress-class=contour",
        "-event-webhook=http://events/",
        "-zap-encoding=console",
        "-v=4",
        "-logtostderr",
    ];

    #[test]
    fn a_chart_keeps_its_arguments() {
        let (flags, _) = parse(CHART);
        let config = flags.config(None).unwrap();
        assert_eq!(config.namespace.as_deref(), Some("shop"));
        assert_eq!(config.mesh_provider, "gatewayapi:v1");
        assert!(config.no_cross_namespace_refs);
        assert_eq!(config.event_webhook.as_deref(), Some("http://events/"));
        assert_eq!(config.lease.unwrap().namespace, "shop", "-namespace wins over -leader-election-namespace");
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let (_, matches) = parse(CHART);
        let warnings = warnings(&matches, |name| name == "MSTEAMS_URL");
        assert!(
            warnings.contains(&"flag -slack-url has no effect: alerts are not sent yet".to_owned()),
            "{warnings:?}"
        );
        assert!(warnings.iter().any(|text| text.contains("MSTEAMS_URL")));
        assert!(!warnings.iter().any(|text| text.contains("-mesh-provider")));
    }

    #[test]
    fn nothing_is_said_when_nothing_is_asked() {
        assert_eq!(warnings(&parse(&[]).1, |_| false), Vec::<String>::new());
    }

    #[test]
    fn without_flags_the_settings_are_flaggers_plus_election() {
        let config = parse(&[]).0.config(None).unwrap();
        let lease = config.lease.clone().unwrap();
        assert_eq!((lease.namespace.as_str(), lease.duration), ("kube-system", Duration::from_secs(60)));
        assert_eq!(Config { lease: None, seed: 0, ..config }, Config { lease: None, ..Config::default() });
    }

    #[test]
    fn the_environment_wins_for_the_event_hook() {
        let (flags, _) = parse(&["-event-webhook=http://flag/"]);
        let config = flags.config(Some("http://environment/".to_owned())).unwrap();
        assert_eq!(config.event_webhook.as_deref(), Some("http://environment/"));
    }

    #[test]
    fn election_can_be_turned_off() {
        assert_eq!(parse(&["-enable-leader-election=false"]).0.config(None).unwrap().lease, None);
    }

    #[tokio::test]
    async fn the_api_server_is_found_for_the_guard() {
        let found = addresses(&"https://127.0.0.1:6443".parse().unwrap()).await;
        assert_eq!(found, [SocketAddr::from((std::net::Ipv4Addr::LOCALHOST, 6443))]);
        let found = addresses(&"https://[::1]".parse().unwrap()).await;
        assert_eq!(found, [SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 443))]);
    }

    #[test]
    fn a_lease_must_last() {
        let problem = parse(&["-lease-duration=10ms"]).0.config(None).unwrap_err();
        assert!(problem.to_string().contains("at least 1s"));
    }
}
