//! From a decision to requests: the status first, then the effects in order.
//!
//! The status is stored by compare-and-swap before any effect runs, so a leader that was asleep, or a round that
//! decided on an old world, ends here. Each effect becomes changes by the adapters and is sent one by one; the first
//! refusal ends the round. Answers go into the cache at once. Whether and when to try again is decided elsewhere.

use seaway_adapters::change::{Action, Change, ObjectRef};
use seaway_adapters::effects::{EffectContext, changes, needs};
use seaway_adapters::kinds::{CANARY, CONFIG_MAP, DEPLOYMENT, HPA, SECRET, SERVICE};
use seaway_adapters::refusal::Refusal;
use seaway_adapters::routers::Router;
use seaway_adapters::targets::Conventions;
use seaway_adapters::world::{Fetched, World};
use seaway_api::canary::CanaryStatus;
use seaway_api::{Canary, FINALIZER};
use seaway_core::effect::Effect;
use serde_json::{Map, Value, json};

use crate::cache::View;
use crate::key::CanaryKey;
use crate::requests::{ApiError, Requests, Retry};
use crate::zoo;

/// Why a round ended early.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum Trouble {
    /// The adapters would not turn an effect into changes.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The API server did not do what was asked; with Flagger's words for what that was.
    #[error("{context}{error}")]
    Api {
        /// Flagger's words, ending in `: `.
        context: String,
        /// What the server said.
        error: ApiError,
    },
}

/// Sends what one round decided.
pub(crate) struct Hand<'a> {
    /// Way to the API server.
    pub(crate) requests: &'a Requests,
    /// The round's view of the world; takes up the answers.
    pub(crate) view: &'a View,
    /// Which canary.
    pub(crate) object: ObjectRef,
    /// Primary copies of configs as they were last written, until they are stored for the next promotion. Saves reading
    /// back what was just sent.
    pub(crate) copied: Fetched,
    /// How many writes were sent and done.
    pub(crate) writes: u32,
    /// Earlier rounds were refused too: the watch may have missed something, so ask the server.
    pub(crate) doubtful: bool,
}

impl<'a> Hand<'a> {
    /// A hand for the canary `view` belongs to.
    pub(crate) fn new(requests: &'a Requests, view: &'a View, canary: &Value, doubtful: bool) -> Self {
        let CanaryKey { namespace, name } = CanaryKey::of(canary);
        let object = ObjectRef { kind: CANARY, namespace, name };
        Self { requests, view, object, copied: Fetched::new(), writes: 0, doubtful }
    }

    /// Stores `new` in place of `old`, if the Canary is still the one that was looked at. Fields of the status that
    /// are not known here stay as they are; those that Flagger always writes are there after the first write.
    pub(crate) async fn store(&mut self, old: &CanaryStatus, new: &CanaryStatus) -> Result<(), Trouble> {
        let Some(canary) = self.view.canary() else { return Ok(()) };
        let body = json!({ "metadata": guard(&canary), "status": status_patch(&canary, old, new) });
        match self.requests.patch_status(&self.object, &body).await {
            Ok(answer) => {
                self.writes += 1;
                self.view.written(&self.object, answer);
                Ok(())
            }
            Err(error) => {
                let ObjectRef { namespace, name, .. } = &self.object;
                let context = format!("updating canary {name}.{namespace} status failed: ");
                self.look_again(&self.object.clone(), &error).await;
                Err(Trouble::Api { context, error })
            }
        }
    }

    /// Makes one effect true.
    pub(crate) async fn make(
        &mut self,
        effect: &Effect,
        canary: &Canary,
        router: &dyn Router,
        conventions: &Conventions,
    ) -> Result<(), Trouble> {
        if let Effect::Finalizer(wanted) = effect {
            return self.finalizer(*wanted).await;
        }
        let view = self.view;
        let with =
            |fetched: &Fetched| changes(effect, &EffectContext { canary, world: view, router, conventions, fetched });
        let none = Fetched::new();
        let needed = needs(effect, &EffectContext { canary, world: view, router, conventions, fetched: &none });
        let mut fetched = none;
        for object in needed {
            if let Some(copy) = self.copied.remove(&object).filter(|copy| self.is_current(&object, copy)) {
                fetched.insert(object, copy);
                continue;
            }
            let answer = self.requests.get(&object).await;
            let ObjectRef { kind, namespace, name } = &object;
            let context = || format!("{} {name}.{namespace} get query error: ", kind.kind.to_lowercase());
            let value = answer.map_err(|error| Trouble::Api { context: context(), error })?;
            fetched.extend(value.map(|value| (object, value)));
        }
        for change in with(&fetched)? {
            self.send(&change).await?;
        }
        Ok(())
    }

    /// Sends one change and takes up the answer.
    pub(crate) async fn send(&mut self, change: &Change) -> Result<(), Trouble> {
        let answer = match self.requests.send(change).await {
            Ok(answer) => answer,
            Err(error) => {
                self.look_again(&change.object, &error).await;
                return Err(Trouble::Api { context: context(change), error });
            }
        };
        self.writes += 1;
        tracing::debug!(
            canary = %format_args!("{}.{}", self.object.name, self.object.namespace),
            kind = change.object.kind.kind,
            name = change.object.name,
            verb = verb(&change.action),
            "wrote"
        );
        match (answer, &change.action) {
            (Some(answer), _) if matches!(change.object.kind, CONFIG_MAP | SECRET) => {
                self.view.written(&change.object, answer.clone());
                self.copied.insert(change.object.clone(), answer);
            }
            (Some(answer), _) => self.view.written(&change.object, answer),
            (None, Action::Delete { uid }) => self.view.removed(&change.object, uid),
            (None, _) => {}
        }
        Ok(())
    }

    /// Whether nobody has changed `object` since `copy` was written.
    fn is_current(&self, object: &ObjectRef, copy: &Value) -> bool {
        let version = |object: &Value| object.pointer("/metadata/resourceVersion").cloned();
        let seen = self.view.get(object.kind, &object.namespace, &object.name);
        seen.is_some_and(|seen| version(&seen) == version(copy))
    }

    /// A write refused for the second time in a row means that the cache is behind and may stay so, e.g. because a watch
    /// event got lost: read the one object that is in the way.
    async fn look_again(&self, object: &ObjectRef, error: &ApiError) {
        if self.doubtful
            && error.retry() == Retry::Soon
            && let Ok(answer) = self.requests.get(object).await
        {
            self.view.refreshed(object, answer);
        }
    }

    /// Puts our finalizer on the Canary or takes it off; others stay.
    pub(crate) async fn finalizer(&mut self, wanted: bool) -> Result<(), Trouble> {
        let Some(canary) = self.view.canary() else { return Ok(()) };
        let present = canary.pointer("/metadata/finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
        if present.iter().any(|finalizer| finalizer == FINALIZER) == wanted {
            return Ok(());
        }
        let mut finalizers: Vec<Value> = present.into_iter().filter(|finalizer| finalizer != FINALIZER).collect();
        if wanted {
            finalizers.push(FINALIZER.into());
        }
        let mut metadata = guard(&canary);
        metadata["finalizers"] = finalizers.into();
        let change = Change {
            object: self.object.clone(),
            action: Action::MergePatch { body: json!({ "metadata": metadata }) },
        };
        self.send(&change).await
    }
}

/// What a write to the Canary was decided on.
fn guard(canary: &Value) -> Value {
    if zoo::WRITES_WITHOUT_A_GUARD {
        return json!({});
    }
    let field = |name: &str| canary.pointer(&format!("/metadata/{name}")).cloned().unwrap_or_default();
    json!({ "uid": field("uid"), "resourceVersion": field("resourceVersion") })
}

/// The JSON merge patch from the stored status, which was understood as `old`, to `new`. A field that is understood as
/// its default but not stored (a weight of 0 before the first write) is new, so that everybody who reads the status finds
/// it; one that is stored and did not change is left as it is written.
fn status_patch(canary: &Value, old: &CanaryStatus, new: &CanaryStatus) -> Value {
    let is_stored = |key: &str| canary.pointer("/status").is_some_and(|status| status.get(key).is_some());
    let mut before = to_fields(old);
    before.retain(|key, _| is_stored(key));
    difference(&Value::Object(before), &Value::Object(to_fields(new)))
}

fn to_fields(status: &CanaryStatus) -> Map<String, Value> {
    // A status is plain data and always has a JSON form.
    match serde_json::to_value(status) {
        Ok(Value::Object(fields)) => fields,
        _ => Map::new(),
    }
}

/// The JSON merge patch that turns `old` into `new`.
fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(before), Value::Object(after)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (key, value) in after {
        match before.get(key) {
            Some(known) if known == value => {}
            Some(known) => drop(patch.insert(key.clone(), difference(known, value))),
            None => drop(patch.insert(key.clone(), value.clone())),
        }
    }
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Value::Object(patch)
}

fn verb(action: &Action) -> &'static str {
    match action {
        Action::Create { .. } => "create",
        Action::JsonPatch { .. } | Action::MergePatch { .. } => "patch",
        Action::Delete { .. } => "delete",
    }
}

/// What failed, in Flagger's words.
fn context(change: &Change) -> String {
    let ObjectRef { kind, namespace, name } = &change.object;
    let did = match change.action {
        Action::Create { .. } => "create",
        Action::Delete { .. } => "delete",
        _ => "update",
    };
    match *kind {
        SERVICE => format!("reconcileService failed: service {name}.{namespace} {did} error: "),
        DEPLOYMENT if did == "create" => {
            format!("createPrimaryDeployment failed: creating deployment {name}.{namespace} failed: ")
        }
        DEPLOYMENT if name.ends_with("-primary") => {
            format!("updating deployment {name}.{namespace} template spec failed: ")
        }
        DEPLOYMENT => format!("deployment {name}.{namespace} patch query error: "),
        CONFIG_MAP | SECRET => format!("{} {name}.{namespace} {did} failed: ", kind.kind.to_lowercase()),
        HPA => format!("{did} of {} v2 {name}.{namespace} failed: ", kind.kind),
        _ => format!("{} {name}.{namespace} {did} error: ", kind.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_patch_names_only_what_changed_and_removes_what_went() {
        let old = json!({ "phase": "Progressing", "canaryWeight": 10, "trackedConfigs": { "configmap/a": "1", "secret/b": "2" },
            "sessionAffinityCookie": "a=b", "conditions": [{ "type": "Promoted" }] });
        let new = json!({ "phase": "Progressing", "canaryWeight": 20, "trackedConfigs": { "configmap/a": "1" },
            "conditions": [{ "type": "Promoted" }, { "type": "Accepted" }] });
        assert_eq!(
            difference(&old, &new),
            json!({ "canaryWeight": 20, "trackedConfigs": { "secret/b": null }, "sessionAffinityCookie": null,
                "conditions": [{ "type": "Promoted" }, { "type": "Accepted" }] })
        );
        assert_eq!(difference(&old, &old), json!({}));
    }

    #[test]
    fn the_first_status_write_names_what_flagger_always_names() {
        let (old, mut new) = (CanaryStatus::default(), CanaryStatus::default());
        new.last_applied_spec = "s1:0123".into();
        let always = json!({ "phase": "", "failedChecks": 0, "canaryWeight": 0, "iterations": 0 });
        let mut first = always.clone();
        first["lastAppliedSpec"] = json!("s1:0123");
        assert_eq!(status_patch(&json!({ "spec": {} }), &old, &new), first);
        assert_eq!(status_patch(&json!({ "status": null }), &old, &new), first);
        assert_eq!(status_patch(&json!({ "status": always }), &old, &new), json!({ "lastAppliedSpec": "s1:0123" }));
    }

    #[test]
    fn what_cannot_be_understood_is_not_overwritten() {
        let canary = json!({ "status": { "phase": "Sailing", "canaryWeight": "50", "captain": "Nemo" } });
        let (old, mut new) = (CanaryStatus::default(), CanaryStatus::default());
        new.last_applied_spec = "s1:0123".into();
        let patch = status_patch(&canary, &old, &new);
        assert_eq!(patch, json!({ "failedChecks": 0, "iterations": 0, "lastAppliedSpec": "s1:0123" }));
    }
}
