//! What a spec means: every default applied, every duration parsed, every step known.
//!
//! A [`Plan`] is made once per round from the Canary and the operator's settings, and everything after it speaks plan,
//! not spec. Whether a spec is acceptable is judged by `seaway_api::validate`; here is only the conversion, and the
//! refusal of what the rules cannot do yet. A plan does not know the cluster: whether a router can do what is asked is
//! for the router to say.

mod check;
mod steps;

use std::collections::BTreeMap;
use std::time::Duration;

use seaway_api::FieldError;
use seaway_api::canary::{Analysis, Canary, CanarySpec, HookType};
use seaway_api::duration::{Interval, timeout};
use seaway_api::validate::{Context, Report, validate};

pub use check::{Bounds, Check, Hook, Source};
pub use steps::Steps;

use crate::template::{self, Vars};

/// What the operator's flags add to every plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Router of canaries that name none (`--mesh-provider`).
    pub provider: String,
    /// Prometheus of canaries that name none (`--metrics-server`).
    pub metrics_server: String,
    /// How long traffic may still arrive after a route was seen to send it elsewhere.
    pub drain: Duration,
    /// Refuse references into other namespaces.
    pub no_cross_namespace_refs: bool,
    /// Allow webhooks to loopback, link-local and cluster-control addresses.
    pub any_address: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            provider: "gatewayapi:v1".into(),
            metrics_server: "http://prometheus:9090".into(),
            drain: Duration::from_secs(10),
            no_cross_namespace_refs: false,
            any_address: false,
        }
    }
}

/// How a new version meets users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// A growing share of all requests.
    Weighted,
    /// Everybody who matches a condition.
    AbTest,
    /// Nobody until all at once.
    BlueGreen,
    /// Copies of requests, before or instead of a share.
    Mirror,
    /// A growing share of users, each pinned by a cookie.
    Affinity,
}

/// A spec whose meaning is settled.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Uid of the Canary.
    pub uid: String,
    /// Name of the Canary.
    pub name: String,
    /// Namespace of everything.
    pub namespace: String,
    /// Kind of the target, e.g. `Deployment`.
    pub target_kind: String,
    /// Name of the target.
    pub target: String,
    /// Name of the primary workload.
    pub primary: String,
    /// Name of the Service users call, and of the route.
    pub apex: String,
    /// Name of the primary's Service.
    pub primary_service: String,
    /// Name of the canary's Service.
    pub canary_service: String,
    /// Ingress of routers that need one; the target's name otherwise.
    pub ingress: String,
    /// Route of routers that need one; the target's name otherwise.
    pub route: String,
    /// Router, e.g. `gatewayapi:v1`.
    pub provider: String,
    /// Prometheus of builtin and inline metrics.
    pub metrics_server: String,
    /// How the new version meets users.
    pub strategy: Strategy,
    /// Time between two checks.
    pub interval: Duration,
    /// Failed checks until rollback, at least one.
    pub threshold: u32,
    /// The weights.
    pub steps: Steps,
    /// Weight given back per tick while promoting; `None`: all at once.
    pub promotion_step: Option<u8>,
    /// How long a workload may take to become ready.
    pub deadline: Duration,
    /// Share of the primary's pods that must be available, in percent.
    pub primary_ready_threshold: u8,
    /// Share of the canary's pods that must be available, in percent.
    pub canary_ready_threshold: u8,
    /// Webhooks in the order written; `Subject::Hook` is an index into it.
    pub hooks: Vec<Hook>,
    /// Metric checks in the order asked; `Subject::Metric` is an index into it.
    pub metrics: Vec<Check>,
    /// Promote without analysis.
    pub skip_analysis: bool,
    /// Do nothing.
    pub suspend: bool,
    /// Put everything back on deletion.
    pub revert_on_deletion: bool,
    /// How long traffic may still arrive after a route was seen to send it elsewhere.
    pub drain: Duration,
    /// What was defaulted, clamped or is unwise: shown in the condition `Accepted`.
    pub warnings: Vec<FieldError>,
}

impl Plan {
    /// The plan of a Canary, or every reason why there is none.
    pub fn new(canary: &Canary, settings: &Settings) -> Result<Self, Vec<FieldError>> {
        let spec = &canary.spec;
        let context = Context {
            default_provider: &settings.provider,
            no_cross_namespace_refs: settings.no_cross_namespace_refs,
            any_address: settings.any_address,
            template: &|text| template::parse(text).map(drop).map_err(|error| error.to_string()),
            ..Context::default()
        };
        let Report { mut errors, warnings } = validate(canary, &context);
        let analysis = spec.analysis().cloned().unwrap_or_default();
        let mut found = Vec::new();
        let strategy = strategy(&analysis, &mut found);
        let metrics = check::checks(&analysis, canary.namespace(), provider(spec, settings), &mut found);
        let hooks = hooks(&analysis, &mut found);
        let steps = Steps::new(&analysis).unwrap_or_else(|error| {
            found.push(error);
            Steps::at_once()
        });
        // Nothing executes an analysis that is skipped. What validation has said already, people need once.
        if errors.is_empty() && !spec.skips_analysis() {
            errors = found;
        }
        if !errors.is_empty() {
            return Err(errors);
        }
        let named = |reference: Option<&str>| reference.unwrap_or(&spec.target_ref.name).to_owned();
        Ok(Self {
            uid: canary.metadata.uid.clone().unwrap_or_default(),
            name: canary.name().to_owned(),
            namespace: canary.namespace().to_owned(),
            target_kind: spec.target_ref.kind.clone(),
            target: spec.target_ref.name.clone(),
            primary: canary.primary_workload(),
            apex: canary.apex_name().to_owned(),
            primary_service: canary.primary_service(),
            canary_service: canary.canary_service(),
            ingress: named(spec.ingress_ref.as_ref().map(|reference| reference.name.as_str())),
            route: named(spec.route_ref.as_ref().map(|reference| reference.name.as_str())),
            provider: provider(spec, settings).to_owned(),
            metrics_server: non_empty(&spec.metrics_server, &settings.metrics_server).to_owned(),
            strategy,
            interval: Interval::of(&analysis.interval).duration(),
            threshold: analysis.threshold.and_then(|number| u32::try_from(number).ok()).unwrap_or(1).max(1),
            steps,
            promotion_step: percent(analysis.step_weight_promotion).filter(|step| *step > 0),
            deadline: Duration::from_secs(
                spec.progress_deadline_seconds.and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(600),
            ),
            primary_ready_threshold: percent(analysis.primary_ready_threshold).unwrap_or(100),
            canary_ready_threshold: percent(analysis.canary_ready_threshold).unwrap_or(100),
            hooks,
            metrics,
            skip_analysis: spec.skips_analysis(),
            suspend: spec.suspend,
            revert_on_deletion: spec.revert_on_deletion,
            drain: settings.drain,
            warnings,
        })
    }

    /// `name.namespace`, as Events about the Canary say it.
    pub fn key(&self) -> String {
        format!("{}.{}", self.name, self.namespace)
    }

    /// `target.namespace`, as Events about the target say it.
    pub fn target_key(&self) -> String {
        format!("{}.{}", self.target, self.namespace)
    }

    /// `primary.namespace`, as Events about the primary say it.
    pub fn primary_key(&self) -> String {
        format!("{}.{}", self.primary, self.namespace)
    }

    /// The hooks of one type with their index, in order.
    pub fn hooks_of(&self, kind: HookType) -> impl Iterator<Item = (usize, &Hook)> {
        self.hooks.iter().enumerate().filter(move |(_, hook)| hook.kind == kind)
    }

    /// What the query of one metric may refer to.
    pub fn vars(&self, check: &Check) -> Vars {
        let vars = Vars {
            name: self.name.clone(),
            namespace: self.namespace.clone(),
            target: self.target.clone(),
            service: self.apex.clone(),
            ingress: self.ingress.clone(),
            route: self.route.clone(),
            interval: check.interval.clone(),
            variables: check.variables.clone(),
        };
        match check.source {
            Source::Builtin(builtin) if builtin.observer == "skipper" => skipper_names(vars),
            _ => vars,
        }
    }
}

/// Skipper writes every character of a name that is no word character as `_` in its route ids.
fn skipper_names(vars: Vars) -> Vars {
    let word = |text: String| text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect::<String>();
    Vars { namespace: word(vars.namespace), ingress: word(vars.ingress), service: word(vars.service), ..vars }
}

fn provider<'a>(spec: &'a CanarySpec, settings: &'a Settings) -> &'a str {
    non_empty(&spec.provider, &settings.provider)
}

fn non_empty<'a>(first: &'a str, second: &'a str) -> &'a str {
    if first.is_empty() { second } else { first }
}

/// A percentage; what lies outside is cut to the nearest end, absent stays absent.
fn percent(number: Option<i64>) -> Option<u8> {
    number.map(|number| u8::try_from(number.clamp(0, 100)).unwrap_or(100))
}

/// Which strategy the analysis asks for; one that is not built yet is an error, never another behaviour.
fn strategy(analysis: &Analysis, errors: &mut Vec<FieldError>) -> Strategy {
    let iterations = analysis.iterations.unwrap_or(0) > 0;
    let (strategy, path, name) = if analysis.mirror {
        (Strategy::Mirror, "spec.analysis.mirror", "traffic mirroring")
    } else if analysis.session_affinity.is_some() {
        (Strategy::Affinity, "spec.analysis.sessionAffinity", "session affinity")
    } else if iterations && !analysis.match_.is_empty() {
        (Strategy::AbTest, "spec.analysis.match", "A/B testing")
    } else if iterations {
        (Strategy::BlueGreen, "spec.analysis.iterations", "blue/green")
    } else {
        return Strategy::Weighted;
    };
    let remedy = "use stepWeight or stepWeights for a weighted canary";
    errors.push(FieldError::new(path, format!("{name} is not supported yet"), remedy));
    strategy
}

fn hooks(analysis: &Analysis, errors: &mut Vec<FieldError>) -> Vec<Hook> {
    let hook = |(index, webhook): (usize, &seaway_api::canary::Webhook)| {
        let timeout = timeout(&webhook.timeout).unwrap_or_else(|error| {
            errors.push(FieldError::new(
                format!("spec.analysis.webhooks[{index}].timeout"),
                error.to_string(),
                "write a duration such as 10s",
            ));
            seaway_api::duration::DEFAULT_TIMEOUT
        });
        Hook {
            name: webhook.name.clone(),
            kind: webhook.type_,
            url: webhook.url.clone(),
            timeout,
            retries: webhook.retries.and_then(|number| u32::try_from(number).ok()).unwrap_or(0),
            insecure: webhook.disable_tls,
            mute_alert: webhook.mute_alert,
            metadata: webhook.metadata.clone(),
        }
    };
    analysis.webhooks.iter().enumerate().map(hook).collect()
}

/// A map of strings, as templates and hooks carry along.
pub type Strings = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(canary: &Canary) -> Result<Plan, Vec<FieldError>> {
        Plan::new(canary, &Settings::default())
    }

    fn paths(canary: &Canary) -> Vec<String> {
        plan(canary).unwrap_err().into_iter().map(|error| error.path).collect()
    }

    #[test]
    fn the_usual_canary_becomes_a_plan() {
        let plan = plan(&Canary::test()).unwrap();
        assert_eq!(plan.strategy, Strategy::Weighted);
        assert_eq!((plan.interval, plan.deadline), (Duration::from_secs(60), Duration::from_secs(60)));
        assert_eq!((plan.threshold, plan.steps.max(), plan.steps.next(0)), (5, 50, Some(10)));
        assert_eq!((plan.primary.as_str(), plan.apex.as_str()), ("podinfo-primary", "podinfo"));
        assert_eq!(plan.metrics.len(), 2);
    }

    #[test]
    fn what_flagger_defaults_or_clamps_keeps_its_meaning() {
        let plan = plan(&Canary::test().threshold(0).interval("1s").max_weight(0)).unwrap();
        assert_eq!((plan.threshold, plan.interval, plan.steps.max()), (1, Duration::from_secs(10), 100));
    }

    #[test]
    fn strategies_that_are_not_built_are_field_errors() {
        assert!(paths(&Canary::test().iterations(10)).contains(&"spec.analysis.iterations".to_owned()));
        let mut mirror = Canary::test();
        mirror.spec.analysis.as_mut().unwrap().mirror = true;
        assert!(paths(&mirror).contains(&"spec.analysis.mirror".to_owned()));
        let mut daemon_set = Canary::test();
        daemon_set.spec.target_ref.kind = "DaemonSet".into();
        assert!(paths(&daemon_set).contains(&"spec.targetRef.kind".to_owned()));
    }
}
