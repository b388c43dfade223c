//! Metric checks: from a check of the plan to a number.
//!
//! Two steps, so that the first is pure. [`Inquiry::of`] finds the template, renders the query and says which Secret is
//! needed; [`Inquiry::ask`] sends it. Missing data is an answer of its own. Whether a number is good is judged in `core`.

pub mod prometheus;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use seaway_api::Canary;
use seaway_api::field;
use seaway_api::metric_template::{METRIC_PROVIDERS, MetricProvider, MetricTemplate};
use seaway_core::plan::{Check, Plan, Source};
use seaway_core::question::Answer;
use seaway_core::template;
use serde_json::Value;

use self::prometheus::Prometheus;
use crate::change::ObjectRef;
use crate::http::Http;
use crate::kinds::{METRIC_TEMPLATE, SECRET};
use crate::object::reference;
use crate::world::World;

/// Why there is no number.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueryError {
    /// The query worked and found nothing that counts.
    #[error("{0}")]
    NoData(&'static str),
    /// The query could not be asked or answered.
    #[error("{0}")]
    Failed(String),
}

/// The query found nothing, or not a number.
pub(crate) const NO_VALUES: QueryError = QueryError::NoData("no values found");
/// The query found several series; which of them counts is not for us to guess.
pub(crate) const SEVERAL_VALUES: QueryError = QueryError::NoData("query returned multiple values");

/// A question ready to be sent.
#[derive(Clone, Debug)]
pub struct Inquiry {
    /// Name of the check.
    metric: String,
    /// The rendered query.
    query: String,
    origin: Origin,
    provider: MetricProvider,
    /// The address was given by whoever runs the operator.
    trusted: bool,
    secret: Option<ObjectRef>,
}

/// Where the query came from; decides the words of an error.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Origin {
    Builtin,
    Inline,
    Template { name: String, namespace: String },
}

impl Inquiry {
    /// Prepares one check. The error is the whole answer: a question that cannot be asked.
    pub fn of(check: &Check, plan: &Plan, canary: &Canary, world: &dyn World) -> Result<Self, Answer> {
        let vars = plan.vars(check);
        let render = |text: &str| -> Result<String, String> {
            let template = template::parse(text).map_err(|error| error.to_string())?;
            template.render(&vars).map_err(|error| error.to_string())
        };
        let (query, origin, provider, secret) = match &check.source {
            Source::Builtin(builtin) => {
                let query = render(builtin.query)
                    .map_err(|error| Answer::Broken(format!("Prometheus query failed: {error}")))?;
                (query, Origin::Builtin, default_provider(plan), None)
            }
            Source::Inline(text) => {
                let failed = |error| Answer::Broken(format!("Prometheus query failed for {}: {error}", check.name));
                (render(text).map_err(failed)?, Origin::Inline, default_provider(plan), None)
            }
            Source::Template { name, namespace } => {
                let error = |error: String| Answer::Broken(format!("Metric template {name}.{namespace} {error}"));
                let found = find(name, namespace, world).map_err(|text| error(format!("error: {text}")))?;
                let query = render(&found.spec.query).map_err(|text| error(format!("query render error: {text}")))?;
                let provider = found.spec.provider;
                let secret = provider.secret_ref.as_ref().map(|secret| reference(SECRET, namespace, &secret.name));
                (query, Origin::Template { name: name.clone(), namespace: namespace.clone() }, provider, secret)
            }
        };
        let trusted = !matches!(origin, Origin::Template { .. }) && canary.spec.metrics_server.is_empty();
        Ok(Self { metric: check.name.clone(), query, origin, provider, trusted, secret })
    }

    /// One inquiry per provider that the plan's checks ask, to find out whether it is there.
    pub fn probes(plan: &Plan, canary: &Canary, world: &dyn World) -> Result<Vec<Self>, Answer> {
        let mut probes: Vec<Self> = Vec::new();
        for check in &plan.metrics {
            let probe = Self::of(check, plan, canary, world)?;
            let known = probes.iter().any(|known| known.provider == probe.provider && known.secret == probe.secret);
            if !known {
                probes.push(probe);
            }
        }
        Ok(probes)
    }

    /// The Secret whose data must be handed in, if the provider needs one.
    pub fn secret(&self) -> Option<&ObjectRef> {
        self.secret.as_ref()
    }

    /// The query as it will be sent.
    pub fn query(&self) -> &str {
        &self.query
    }

    /// Asks. `secret` is the whole Secret named by [`Self::secret`].
    pub async fn ask(&self, http: &Http, secret: Option<&Value>) -> Answer {
        let prometheus = match self.connect(secret) {
            Ok(prometheus) => prometheus,
            Err(answer) => return answer,
        };
        let query = prometheus::collapse(&self.query);
        match prometheus.query(http, &query).await {
            Ok(value) => Answer::Value { value, query },
            Err(QueryError::NoData(reason)) => Answer::NoData { reason: reason.into(), query },
            Err(QueryError::Failed(error)) => Answer::Broken(match &self.origin {
                Origin::Builtin => format!("Prometheus query failed: {error}"),
                Origin::Inline => format!("Prometheus query failed for {}: {error}", self.metric),
                Origin::Template { .. } => format!("Metric query failed for {}: {error}", self.metric),
            }),
        }
    }

    /// Is the provider there? The error of a provider that is not, in Flagger's words.
    pub async fn probe(&self, http: &Http, secret: Option<&Value>) -> Answer {
        let error = match self.connect(secret) {
            Ok(prometheus) => match prometheus.is_online(http).await {
                Ok(()) => return Answer::Yes,
                Err(error) => error.to_string(),
            },
            Err(Answer::Broken(text)) => return Answer::No(text),
            Err(answer) => return answer,
        };
        Answer::No(match &self.origin {
            Origin::Builtin | Origin::Inline => format!("prometheus not avaiable: {error}"),
            Origin::Template { name, namespace } => {
                format!("{} in metric template {name}.{namespace} not avaiable: {error}", self.provider.type_)
            }
        })
    }

    fn connect(&self, secret: Option<&Value>) -> Result<Prometheus, Answer> {
        let broken = |text: String| match &self.origin {
            Origin::Template { name, namespace } => Answer::Broken(format!(
                "Metric template {name}.{namespace} provider {} error: {text}",
                self.provider.type_
            )),
            _ => Answer::Broken(format!("Error building Prometheus client for {} {text}", self.provider.address)),
        };
        let credentials = match (&self.secret, secret, &self.origin) {
            (Some(wanted), None, Origin::Template { name, namespace }) => {
                let secret = &wanted.name;
                return Err(Answer::Broken(format!(
                    "Metric template {name}.{namespace} secret {secret} error: secrets {secret:?} not found"
                )));
            }
            (Some(_), Some(secret), _) => Some(decode(secret)),
            _ => None,
        };
        // As in Flagger an unknown type is taken for Prometheus; a type that Flagger knows and we do not is refused.
        let type_ = self.provider.type_.as_str();
        if type_ != "prometheus" && METRIC_PROVIDERS.contains(&type_) {
            return Err(broken("this provider is not supported yet; use prometheus".into()));
        }
        Prometheus::new(&self.provider, credentials.as_ref(), self.trusted).map_err(broken)
    }
}

fn default_provider(plan: &Plan) -> MetricProvider {
    MetricProvider { type_: "prometheus".into(), address: plan.metrics_server.clone(), ..MetricProvider::default() }
}

fn find(name: &str, namespace: &str, world: &dyn World) -> Result<MetricTemplate, String> {
    let object = world.get(METRIC_TEMPLATE, namespace, name);
    let object = object.ok_or_else(|| format!("metrictemplate.flagger.app {name:?} not found"))?;
    field::parse((*object).clone()).map_err(|error| error.sentence())
}

/// What a Secret holds, decoded. Never shown: no `Debug`.
pub(crate) struct Credentials(BTreeMap<String, String>);

impl Credentials {
    /// One entry.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }
}

fn decode(secret: &Value) -> Credentials {
    let entries = secret.get("data").and_then(Value::as_object).into_iter().flatten();
    let decoded = entries.filter_map(|(key, value)| {
        let bytes = STANDARD.decode(value.as_str()?).ok()?;
        Some((key.clone(), String::from_utf8(bytes).ok()?))
    });
    Credentials(decoded.collect())
}

#[cfg(test)]
mod tests;
