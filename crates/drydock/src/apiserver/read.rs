//! Reading: one object, or a page of a collection.

use std::sync::Arc;

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::error::{ApiError, Result};
use super::options::check_list;
use super::request::Call;
use super::selector::Selector;
use super::server::{Answer, Server};
use super::store::{Key, State};

/// Where a page ended, and the revision all pages show.
#[derive(Serialize, Deserialize)]
struct Token {
    revision: u64,
    namespace: String,
    name: String,
}

impl Server {
    /// `get`.
    pub(crate) fn get(&self, call: &Call) -> Result<Answer> {
        let state = self.store.lock();
        // Events are read from where they are stored, the others from a cache, which is not prepared for nonsense.
        let stored = call.served.resource.behaviour.owns_nothing;
        at_most(call.params.revision().map_err(|error| if stored { error } else { error.unread() })?, &state)?;
        let found = match call.as_of {
            None => call.live(&state)?,
            Some(revision) => {
                let resource = &call.served.resource;
                let found = state.at(&resource.id, &call.key(), revision).cloned();
                let found = found.ok_or_else(|| ApiError::not_found(resource, &call.name))?;
                call.served.current(&found)
            }
        };
        Ok(Answer::Object(200, found))
    }

    /// `list`.
    pub(crate) fn list(&self, call: &Call) -> Result<Answer> {
        let (page, metadata) = Self::page(&self.store.lock(), call)?;
        Ok(Answer::List(page, metadata))
    }

    /// A page of a collection, and the metadata of the list.
    pub(crate) fn page(state: &State, call: &Call) -> Result<(Vec<Arc<Value>>, Value)> {
        Selector::read(call.params.get("labelSelector"), call.params.get("fieldSelector"))?;
        let limit = call.params.number("limit")?.filter(|limit| *limit > 0);
        // Nobody waits for a list, but how long they would must be said well.
        call.params.number("timeoutSeconds")?;
        check_list(&call.params)?;
        let selector = call.selector()?;
        let asked = call.params.revision()?;
        // One object has no pages.
        let single = selector.names_one() && call.namespace.is_some();
        let token = call.params.get("continue");
        let wanted = call.params.get("resourceVersionMatch");
        // "Any version" is answered from a cache, which knows no pages. Events have none.
        let stored = call.served.resource.behaviour.owns_nothing;
        let limit =
            limit.filter(|_| !single).filter(|_| stored || asked != Some(0) || !token.is_empty() || wanted == "Exact");
        let (revision, after) = if !token.is_empty() {
            let token = parse_token(token)?;
            if asked.is_some_and(|asked| asked > 0) {
                return Err(ApiError::bad_request("specifying resource version is not allowed when using continue"));
            }
            (token.revision, Some(Key { namespace: token.namespace, name: token.name }))
        } else if wanted == "Exact" || wanted.is_empty() && limit.is_some() && asked.is_some_and(|asked| asked > 0) {
            (asked.unwrap_or_default(), None)
        } else {
            at_most(asked, state)?;
            (call.as_of.unwrap_or(state.revision()), None)
        };
        at_most(Some(revision), state)?;
        if revision < state.compacted() {
            return Err(ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new list \
                 without the continue parameter.",
            ));
        }
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        let mut objects = state
            .list_at(&call.served.resource.id, call.namespace.as_deref(), revision)
            .filter(|(key, _)| after.as_ref().is_none_or(|after| *key > after))
            .map(|(key, object)| (key, call.served.current(object)))
            .filter(|(_, object)| selector.matches(object));
        let (mut page, mut last) = (Vec::new(), None);
        for (key, object) in objects.by_ref().take(limit) {
            page.push(object);
            last = Some(key.clone());
        }
        let page_is_full = page.len() == limit;
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        let remaining = objects.count();
        // Whether what follows matches a selector shows only when it is read.
        let more = last.as_ref().is_some_and(|last| {
            let all = state.list_at(&call.served.resource.id, call.namespace.as_deref(), revision);
            page_is_full && all.into_iter().any(|(key, _)| key > last)
        });
        if let (Some(last), true) = (last, more) {
            metadata["continue"] = token_text(&Token { revision, namespace: last.namespace, name: last.name }).into();
            // With a selector the server does not know how many of the rest would match.
            if selector.is_empty() {
                metadata["remainingItemCount"] = remaining.into();
            }
        }
        Ok((page, metadata))
    }
}

impl Call {
    /// The current state of the object the request names.
    pub(crate) fn live(&self, state: &State) -> Result<Arc<Value>> {
        let resource = &self.served.resource;
        let found = state.get(&resource.id, &self.key()).map(|object| self.served.current(object));
        found.ok_or_else(|| ApiError::not_found(resource, &self.name))
    }
}

/// Refuses a resource version that was never handed out.
pub(crate) fn at_most(asked: Option<u64>, state: &State) -> Result<()> {
    match asked {
        Some(asked) if asked > state.revision() => Err(ApiError::too_large_revision(asked, state.revision())),
        _ => Ok(()),
    }
}

fn token_text(token: &Token) -> String {
    URL_SAFE_NO_PAD.encode(json!(token).to_string())
}

fn parse_token(text: &str) -> Result<Token> {
    let refuse =
        |why: String| ApiError::bad_request(format!("invalid continue token: continue key is not valid: {why}"));
    // Go does not mind what is left over in the last character.
    let lenient = GeneralPurpose::new(&URL_SAFE, NO_PAD.with_decode_allow_trailing_bits(true));
    let bytes = lenient.decode(text).map_err(|error| refuse(format!("illegal base64 data: {error}")))?;
    serde_json::from_slice(&bytes).map_err(|_| {
        // Go takes every byte for a character.
        let first = char::from(bytes.first().copied().unwrap_or_default());
        let shown = if first.is_control() { format!("\\u{:04x}", u32::from(first)) } else { first.to_string() };
        refuse(format!("invalid character '{shown}' looking for beginning of value"))
    })
}
