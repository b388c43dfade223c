//! From an HTTP request to what it means: a verb on a resource, with parameters.

use std::collections::BTreeMap;
use std::num::{IntErrorKind, ParseIntError};

use bytes::Bytes;
use http::{HeaderMap, Method, header};
use serde_json::Value;

use super::error::{ApiError, Result};
use super::go_numbers::{take_as_go, too_large};
use super::protobuf;
use super::registry::Served;
use super::repeated::{As, odd_members};
use super::selector::Selector;
use super::store::{Id, Key};
use super::twice_over;
use super::unrecognized;

/// Where a path points.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) subresource: String,
    /// Whether the path itself asks for changes, as it did before there was a parameter for it.
    pub(crate) watching: bool,
}

impl Target {
    /// Reads a path; `None` when it names no resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        // Where a namespace should be, nothing is one that is empty.
        let is_part =
            |(at, part): &(usize, &str)| !part.is_empty() || *at > 0 && path_before(path, *at) == "namespaces";
        let mut parts: Vec<&str> = path.split('/').enumerate().filter(is_part).map(|(_, part)| part).collect();
        if parts.last().is_some_and(|last| last.is_empty()) {
            parts.pop();
        }
        let (group, version, rest) = match parts.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (watching, rest) = match rest {
            ["watch", rest @ ..] if !rest.is_empty() => (true, rest),
            rest => (false, rest),
        };
        let (namespace, rest) = match rest {
            // Sub-resources of the namespace itself.
            ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (Some(*namespace), rest),
            rest => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (plural, "", ""),
            [plural, name] => (plural, *name, ""),
            [plural, name, subresource] => (plural, *name, *subresource),
            // What follows is for whoever is behind the proxy.
            [plural, name, "proxy", ..] => (plural, *name, "proxy"),
            _ => return None,
        };
        Some(Self {
            group: group.into(),
            version: version.into(),
            plural: (*plural).into(),
            namespace: namespace.map(str::to_owned),
            name: decode(name),
            subresource: subresource.into(),
            watching,
        })
    }

    /// The verb a method is on this target.
    pub(crate) fn verb(&self, method: &Method, params: &Params) -> Option<&'static str> {
        let collection = self.name.is_empty();
        match *method {
            Method::GET if self.watching => Some("watch"),
            Method::GET if params.flag("watch") && collection => Some("watch"),
            Method::GET => Some(if collection { "list" } else { "get" }),
            Method::POST if collection || !self.subresource.is_empty() => Some("create"),
            Method::PUT if !collection => Some("update"),
            Method::PATCH if !collection => Some("patch"),
            Method::DELETE => Some(if collection { "deletecollection" } else { "delete" }),
            _ => None,
        }
    }
}

/// The part of a path before another.
fn path_before(path: &str, at: usize) -> &str {
    path.split('/').nth(at - 1).unwrap_or_default()
}

fn decode(text: &str) -> String {
    url::form_urlencoded::parse(text.replace('+', "%2B").as_bytes())
        .map(|(key, _)| key.into_owned())
        .next()
        .unwrap_or_default()
}

/// Query parameters; the first of equal names counts.
#[derive(Debug, Default)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    pub(crate) fn parse(query: &str) -> Self {
        let mut params = BTreeMap::new();
        for (key, value) in url::form_urlencoded::parse(query.as_bytes()) {
            params.entry(key.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self(params)
    }

    /// A parameter, or the empty string.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    /// Whether a parameter is there, whatever it says.
    pub(crate) fn given(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a boolean parameter is set: anything that does not say no, even nothing.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// The version a client has seen; `None` when it does not say.
    pub(crate) fn revision(&self) -> Result<Option<u64>> {
        match self.get("resourceVersion") {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                let why = "strconv.ParseUint: parsing";
                ApiError::bad_request(format!(
                    "invalid resource version: resourceVersion: Invalid value: {text:?}: {why} {text:?}: invalid syntax"
                ))
            }),
        }
    }

    /// A number; `None` when it is left out.
    pub(crate) fn number(&self, name: &str) -> Result<Option<i64>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error: ParseIntError| {
                let why = match error.kind() {
                    IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                    _ => "invalid syntax",
                };
                ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
            }),
        }
    }
}

/// One request to a resource.
pub(crate) struct Call {
    pub(crate) user: String,
    pub(crate) verb: &'static str,
    pub(crate) served: Served,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) params: Params,
    pub(crate) content_type: String,
    pub(crate) body: Bytes,
    /// The revision to read at instead of the latest; only the fault layer asks for it.
    pub(crate) as_of: Option<u64>,
}

impl Call {
    /// The object's place among those of its resource.
    pub(crate) fn key(&self) -> Key {
        Key { namespace: self.namespace.clone().unwrap_or_default(), name: self.name.clone() }
    }

    /// The object's place in the store.
    pub(crate) fn id(&self) -> Id {
        (self.served.resource.id.clone(), self.key())
    }

    /// The object's place in an etcd, as a server that has one calls it. Where nothing is written it leaves the root out.
    pub(crate) fn storage_key(&self) -> String {
        let root = if self.dry_run() { "" } else { "/registry" };
        let namespace = self.namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
        format!("{root}/{}/{namespace}{}", self.served.resource.storage_place(), self.name)
    }

    /// Whether nothing is to be written.
    pub(crate) fn dry_run(&self) -> bool {
        !self.params.get("dryRun").is_empty()
    }

    /// Who the written fields belong to: what the client says, or the first word of who it is.
    pub(crate) fn manager(&self) -> &str {
        match self.params.get("fieldManager") {
            "" => self.user.split('/').next().unwrap_or("unknown"),
            manager => manager,
        }
    }

    /// The selectors of a collection request. A name in the path is a selector too.
    pub(crate) fn selector(&self) -> Result<Selector> {
        let lens = self.served.lens();
        let shown = |path: &&str| lens.map_or_else(|| (*path).to_owned(), |lens| lens.shown_path(path));
        // Nobody gave the source a newer name.
        let known = self.served.resource.behaviour.selectable.iter();
        let known = known.filter(|path| lens.is_none() || **path != "source");
        let mut selectable: Vec<String> = known.map(shown).collect();
        selectable.extend(self.served.version().selectable.iter().cloned());
        let thought_of = self.served.resource.custom || !selectable.is_empty();
        let selectable = thought_of.then_some(selectable.as_slice());
        let fields = self.params.get("fieldSelector");
        let mut selector = Selector::parse(self.params.get("labelSelector"), fields, selectable)?;
        if !self.name.is_empty() {
            selector.name(&self.name);
        }
        Ok(match lens {
            Some(lens) => selector.renamed(|path| lens.stored_path(path)),
            None => selector,
        })
    }

    /// A stored object in the version the request speaks.
    pub(crate) fn versioned(&self, object: &Value) -> Value {
        let mut object = object.clone();
        if let Value::Object(members) = &mut object {
            members.insert("apiVersion".into(), self.served.api_version().into());
        }
        if let Some(lens) = self.served.lens() {
            lens.show(&mut object);
        }
        object
    }

    /// The body as an object.
    pub(crate) fn object(&self) -> Result<Value> {
        let kind = match self.subresource.as_str() {
            _ if self.verb.starts_with("delete") => "",
            "binding" => "Binding",
            "eviction" => "Eviction",
            _ => &self.served.resource.kind,
        };
        let accepted = ["application/json", "application/yaml", protobuf::MEDIA_TYPE];
        match media_type(&self.content_type) {
            "" => unrecognized::read(&self.body, kind, false),
            protobuf::MEDIA_TYPE if !self.served.resource.custom => protobuf::decode(&self.body)
                .map_err(|why| ApiError::bad_request(format!("couldn't decode the request body: {why}"))),
            known if accepted.contains(&known) && known != protobuf::MEDIA_TYPE => {
                let mut object = unrecognized::read(&self.body, kind, known == "application/yaml")?;
                let schema = self.served.version().schema();
                if known == "application/json"
                    && !self.served.resource.custom
                    && !odd_members(&self.body, As::Known(schema)).is_empty()
                    && let Some(over) = twice_over::read(&self.body, schema)
                {
                    object = over;
                    take_as_go(&mut object);
                }
                if let Some(why) =
                    too_large(&self.body, "Go value").filter(|_| self.served.resource.custom && !kind.is_empty())
                {
                    return Err(ApiError::cannot_be(&self.served.version().name, kind, kind, &why));
                }
                if self.served.resource.custom && !kind.is_empty() && self.subresource != "scale" {
                    let version = self.served.version().name.as_str();
                    let lenient = (self.params.get("fieldValidation") == "Ignore").then_some(version);
                    unrecognized::check_kind(&object, &self.body, kind, lenient)?;
                }
                Ok(object)
            }
            _ => Err(ApiError::unsupported_media_type(&accepted)),
        }
    }
}

/// JSON, or YAML where it is not JSON.
pub(crate) fn parse_body(body: &Bytes) -> Result<Value> {
    match yaml(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(ApiError::bad_request("the request body is not an object")),
        Err(()) => Err(ApiError::bad_request("yaml: did not find expected node content")),
    }
}

/// Anything in YAML, of which JSON is a part. What is wrong with it is not said: the words would not be Go's.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, ()> {
    if let Ok(mut value) = serde_json::from_slice(body) {
        take_as_go(&mut value);
        return Ok(value);
    }
    let text = std::str::from_utf8(body).map_err(drop)?;
    if text.trim().is_empty() {
        return Ok(Value::Null);
    }
    let options = serde_saphyr::options! { duplicate_keys: serde_saphyr::DuplicateKeyPolicy::LastWins };
    let mut value = serde_saphyr::from_str_with_options::<Value>(text, options).map_err(drop)?;
    take_as_go(&mut value);
    Ok(value)
}

/// A content type without its parameters.
pub(crate) fn media_type(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

/// A header as text, or the empty string.
pub(crate) fn header_text(headers: &HeaderMap, name: header::HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> (String, String, Option<String>, String, String) {
        let target = Target::parse(path).unwrap();
        (target.group, target.plural, target.namespace, target.name, target.subresource)
    }

    fn expect(
        group: &str,
        plural: &str,
        namespace: &str,
        name: &str,
        sub: &str,
    ) -> (String, String, Option<String>, String, String) {
        let namespace = (!namespace.is_empty()).then(|| namespace.to_owned());
        (group.into(), plural.into(), namespace, name.into(), sub.into())
    }

    #[test]
    fn paths_name_resources() {
        assert_eq!(target("/api/v1/pods"), expect("", "pods", "", "", ""));
        assert_eq!(target("/api/v1/namespaces"), expect("", "namespaces", "", "", ""));
        assert_eq!(target("/api/v1/namespaces/test"), expect("", "namespaces", "", "test", ""));
        assert_eq!(target("/api/v1/namespaces/test/status"), expect("", "namespaces", "", "test", "status"));
        assert_eq!(target("/api/v1/namespaces/test/pods/a/binding"), expect("", "pods", "test", "a", "binding"));
        assert_eq!(target("/apis/apps/v1/namespaces/test/deployments"), expect("apps", "deployments", "test", "", ""));
        assert_eq!(target("/api/v1/nodes/a%3Ab"), expect("", "nodes", "", "a:b", ""));
        let nowhere = Target::parse("/api/v1/namespaces//pods/a").unwrap();
        assert_eq!((nowhere.plural.as_str(), nowhere.namespace.as_deref()), ("pods", Some("")));
        assert_eq!(target("/api/v1/namespaces/"), expect("", "namespaces", "", "", ""));
        assert_eq!(target("/api/v1/namespaces/test//pods"), expect("", "pods", "test", "", ""));
        assert_eq!(Target::parse("/apis/apps/v1"), None);
        assert_eq!(Target::parse("/version"), None);
    }
}
