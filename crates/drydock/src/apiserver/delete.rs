//! Deleting: one object or a collection, at once or in steps.
//!
//! An object with finalizers, or one that needs time to stop, is only marked; it goes when the last finalizer is taken
//! away, or when it is deleted again without grace.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;

use super::error::{ApiError, Result, success};
use super::go_json::kind_of;
use super::meta;
use super::options::{check_delete, delete_query};
use super::registry::Resource;
use super::request::Call;
use super::server::{Answer, Author, Server};
use super::store::{Id, Key, State};
use super::write::is_finished;

/// Finalizer that keeps an owner until its dependents are gone.
pub(crate) const FOREGROUND: &str = "foregroundDeletion";
/// Finalizer that keeps an owner until its dependents have forgotten it.
pub(crate) const ORPHAN: &str = "orphan";

/// Namespaces that every cluster has.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// What becomes of the objects an object owns.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

/// The body of a deletion.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) propagation_policy: Option<Propagation>,
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) preconditions: Preconditions,
    pub(crate) dry_run: Vec<String>,
    /// Whether several are deleted at once. Then nobody asks for the way in which a kind deletes one.
    #[serde(skip)]
    pub(crate) together: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// What a deletion came to.
pub(crate) enum Outcome {
    /// The object is gone; this was its last state.
    Gone(Arc<Value>),
    /// The object is marked and waits.
    Waiting(Arc<Value>),
}

/// What Go says about the first option that is of the wrong type.
fn misfit(options: &Value) -> String {
    type Fits = fn(&Value) -> bool;
    let known: [(&str, Fits, &str); 7] = [
        ("DeleteOptions.gracePeriodSeconds", Value::is_i64, "int64"),
        ("DeleteOptions.preconditions", Value::is_object, "v1.Preconditions"),
        ("Preconditions.preconditions.uid", Value::is_string, "types.UID"),
        ("Preconditions.preconditions.resourceVersion", Value::is_string, "string"),
        ("DeleteOptions.orphanDependents", Value::is_boolean, "bool"),
        ("DeleteOptions.propagationPolicy", Value::is_string, "v1.DeletionPropagation"),
        ("DeleteOptions.dryRun", Value::is_array, "[]string"),
    ];
    let wrong = known.into_iter().find_map(|(field, fits, go)| {
        let (_, path) = field.split_once('.')?;
        let found = options.pointer(&format!("/{}", path.replace('.', "/")))?;
        let kind = kind_of(found);
        (!found.is_null() && !fits(found)).then(|| format!("{kind} into Go struct field {field} of type {go}"))
    });
    format!(
        "json: cannot unmarshal {}",
        wrong.unwrap_or_else(|| "object into Go value of type v1.DeleteOptions".into())
    )
}

impl DeleteOptions {
    /// Options from the body, or from the query where the body says nothing.
    pub(crate) fn of(call: &Call) -> Result<Self> {
        // Options in the body are all there are.
        let from_query = call.body.is_empty();
        let said = if from_query { delete_query(&call.params) } else { call.object()? };
        let kind = meta::text(&said, "/kind");
        if !kind.is_empty() && kind != "DeleteOptions" {
            return Err(ApiError::no_options(meta::text(&said, "/apiVersion"), kind));
        }
        check_delete(&said)?;
        // A list would pass for what it holds.
        if said.get("preconditions").is_some_and(Value::is_array) {
            return Err(ApiError::bad_request(misfit(&said)));
        }
        let mut options: Self =
            serde_json::from_value(said.clone()).map_err(|_| ApiError::bad_request(misfit(&said)))?;
        if let Some(orphan) = options.orphan_dependents {
            // The old way to say it.
            options.propagation_policy = Some(if orphan { Propagation::Orphan } else { Propagation::Background });
        }
        if from_query {
            options.grace_period_seconds = call.params.number("gracePeriodSeconds")?;
        }
        if from_query && call.dry_run() {
            options.dry_run = vec!["All".into()];
        }
        Ok(options)
    }
}

impl Server {
    /// `delete`.
    pub(crate) fn delete(&self, call: &Call) -> Result<Answer> {
        let options = DeleteOptions::of(call)?;
        let mut state = self.store.lock();
        let live = call.live(&state)?;
        let resource = &call.served.resource;
        if &*resource.id == "namespaces" && IMMORTAL.contains(&call.name.as_str()) {
            return Err(ApiError::forbidden(resource, &call.name, "this namespace may not be deleted"));
        }
        options.preconditions.check(resource, &live, options.together)?;
        if !options.dry_run.is_empty() {
            let marked = self.marked(resource, &live, &options);
            let graceful = resource.behaviour.grace.is_some();
            return Ok(match is_finished(&marked) && !marks_first(resource, &live, &options) {
                false => Answer::Waiting(Arc::new(marked)),
                true if !resource.behaviour.shows_deleted => {
                    Answer::Plain(200, success(resource, &call.name, meta::uid(&live)))
                }
                true => Answer::Object(200, if graceful { Arc::new(marked) } else { live }),
            });
        }
        Ok(match self.delete_object(&mut state, call.author(), resource, call.id(), &live, &options) {
            Outcome::Gone(last) if resource.behaviour.shows_deleted => Answer::Object(200, last),
            Outcome::Gone(last) => Answer::Plain(200, success(resource, &call.name, meta::uid(&last))),
            Outcome::Waiting(object) => Answer::Waiting(object),
        })
    }

    /// `deletecollection`. Answers with the objects that were deleted.
    pub(crate) fn delete_collection(&self, call: &Call) -> Result<Answer> {
        let options = DeleteOptions { together: true, ..DeleteOptions::of(call)? };
        let mut state = self.store.lock();
        let resource = &call.served.resource;
        let (chosen, metadata) = Self::page(&state, call)?;
        let dry_run = !options.dry_run.is_empty();
        for object in &chosen {
            options.preconditions.check(resource, object, options.together)?;
            if !dry_run {
                let key = Key { namespace: meta::namespace(object).to_owned(), name: meta::name(object).to_owned() };
                let id = (resource.id.clone(), key);
                self.delete_object(&mut state, call.author(), resource, id, object, &options);
            }
        }
        Ok(Answer::List(chosen, metadata))
    }

    /// An object that is being deleted.
    fn marked(&self, resource: &Resource, live: &Arc<Value>, options: &DeleteOptions) -> Value {
        let now = self.clock.now();
        if let Some(mark) = resource.behaviour.mark.filter(|_| !meta::deleting(live) && !options.together) {
            let mut marked = Value::clone(live);
            mark(&mut marked, &meta::seconds(now));
            if resource.behaviour.contents.is_some() {
                hold(live, &mut marked, options.propagation_policy);
            }
            return marked;
        }
        if resource.behaviour.contents.is_some() && live.pointer("/spec/finalizers").is_some() {
            // Whoever empties it has heard the first time.
            return Value::clone(live);
        }
        // Less than nothing is as little as can be.
        let asked = options.grace_period_seconds.map(|asked| if asked < 0 { 1 } else { asked });
        let grace = match resource.behaviour.grace {
            None => 0,
            Some(default) => match (asked, default(live)) {
                (_, 0) => 0,
                (asked, default) => asked.unwrap_or(default),
            },
        };
        let mut marked = Value::clone(live);
        // Of what is about to stop nothing can be changed but how long that may take.
        if resource.behaviour.grace.is_some()
            && meta::deleting(live)
            && time_left(live) > 0
            && asked.is_none_or(|asked| asked >= time_left(live))
        {
            return marked;
        }
        hold(live, &mut marked, options.propagation_policy.filter(|_| !resource.behaviour.owns_nothing));
        let before = live.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64);
        // Time to stop can be taken away later, never added.
        if !meta::deleting(live) || before.is_some_and(|before| grace < before) {
            let ends = meta::later(now, Duration::from_secs(grace.unsigned_abs()));
            let first = !meta::deleting(live);
            let generation = meta::generation(live);
            let metadata = meta::metadata(&mut marked);
            metadata.insert("deletionTimestamp".into(), meta::seconds(ends).into());
            metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
            if first && generation > 0 {
                metadata.insert("generation".into(), (generation + 1).into());
            }
        }
        marked
    }

    /// Marks an object, and removes it if nothing holds it.
    pub(crate) fn delete_object(
        &self,
        state: &mut State,
        author: Author<'_>,
        resource: &Resource,
        id: Id,
        live: &Arc<Value>,
        options: &DeleteOptions,
    ) -> Outcome {
        let marked = self.marked(resource, live, options);
        if is_finished(&marked) && !marks_first(resource, live, options) {
            // What can be given time is marked first, even if it is given none; once.
            let marked_before = meta::deleting(live) && time_left(live) == 0;
            if resource.behaviour.grace.is_some() && !marked_before {
                self.put(state, author, id.clone(), marked);
            }
            let last = self.remove(state, author, id).unwrap_or_else(|| live.clone());
            return Outcome::Gone(last);
        }
        // What is stored of it may be more than what was read.
        if marked == **live && !state.is_untidy(&id) {
            return Outcome::Waiting(live.clone());
        }
        Outcome::Waiting(self.put(state, author, id, marked))
    }
}

/// Lets the policy of a deletion hold an object, if it has any.
fn hold(live: &Value, marked: &mut Value, policy: Option<Propagation>) {
    let Some(policy) = policy else { return };
    let held = meta::finalizers(live).into_iter().filter(|held| ![FOREGROUND, ORPHAN].contains(held));
    let mut finalizers: Vec<String> = held.map(str::to_owned).collect();
    match policy {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push(FOREGROUND.into()),
        Propagation::Orphan => finalizers.push(ORPHAN.into()),
    }
    meta::set_finalizers(marked, &finalizers);
}

/// Whether a deletion is the first, of a kind that only marks an object then, whatever holds it.
fn marks_first(resource: &Resource, live: &Value, options: &DeleteOptions) -> bool {
    resource.behaviour.mark.is_some() && !meta::deleting(live) && !options.together
}

/// How long an object that is being deleted may still take, in seconds.
fn time_left(object: &Value) -> i64 {
    object.pointer("/metadata/deletionGracePeriodSeconds").and_then(Value::as_i64).unwrap_or(0)
}

impl Preconditions {
    pub(crate) fn check(&self, resource: &Resource, live: &Value, together: bool) -> Result<()> {
        let name = meta::name(live);
        for (asked, field, text, happened) in [
            (&self.uid, "uid", "UID", "deleted and then recreated"),
            (&self.resource_version, "resourceVersion", "ResourceVersion", "modified"),
        ] {
            let found = meta::field(live, field);
            if let Some(asked) = asked.as_deref().filter(|asked| *asked != found) {
                if resource.behaviour.mark.is_some() && !together {
                    return Err(ApiError::precondition_failed(
                        resource,
                        name,
                        &format!("{text} in precondition: {asked}, {text} in object meta: {found}"),
                    ));
                }
                let why = format!(
                    "the {text} in the precondition ({asked}) does not match the {text} in record ({found}). The object \
                     might have been {happened}"
                );
                return Err(ApiError::not_meant(resource, name, &why));
            }
        }
        Ok(())
    }
}
