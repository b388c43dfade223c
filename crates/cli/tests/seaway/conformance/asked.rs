//! What the operator may ask for, by what its chart grants it.

use super::script::Step;

/// Where the chart says it. Every branch of it counts.
const RULES: &str = include_str!("../../../../../charts/seaway/templates/_rules.tpl");

/// A verb, upon a resource (with its sub-resource) of a group.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    verb: String,
    resource: String,
    group: String,
}

/// Whether the operator could send a request: the chart grants it, and clients of the operator ask for such an answer.
pub fn by_operator(step: &Step) -> bool {
    let accept = step.header("accept");
    let is_readable = accept.is_empty() || ["application/json", "*/*"].iter().any(|form| accept.contains(form));
    is_readable && Asked::of(step).is_some_and(|asked| granted().contains(&asked))
}

impl Asked {
    /// What a request asks for; `None` where its path names no resource.
    fn of(step: &Step) -> Option<Self> {
        let path = step.path.split('?').next()?;
        let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
        let (group, rest) = match parts.as_slice() {
            ["api", _, rest @ ..] => ("", rest),
            ["apis", group, _, rest @ ..] => (*group, rest),
            _ => return None,
        };
        let rest = match rest {
            ["namespaces", _, inside @ ..] if !inside.is_empty() => inside,
            rest => rest,
        };
        let (resource, named) = match rest {
            [plural] => ((*plural).to_owned(), false),
            [plural, _] => ((*plural).to_owned(), true),
            [plural, _, sub] => (format!("{plural}/{sub}"), true),
            _ => return None,
        };
        let verb = match (step.method, named) {
            ("GET", _) if step.is_watch() => "watch",
            ("GET", true) => "get",
            ("GET", false) => "list",
            ("POST", _) => "create",
            ("PUT", _) => "update",
            ("PATCH", _) => "patch",
            ("DELETE", true) => "delete",
            ("DELETE", false) => "deletecollection",
            _ => return None,
        };
        Some(Self { verb: verb.to_owned(), resource, group: group.to_owned() })
    }
}

/// Everything that a rule of the chart grants.
fn granted() -> Vec<Asked> {
    let mut granted = Vec::new();
    let (mut groups, mut resources) = (Vec::new(), Vec::new());
    for line in RULES.lines() {
        let list = |field: &str| -> Option<Vec<String>> {
            let (_, list) = line.trim_start_matches("- ").trim().split_once(field)?;
            let words = list.trim().strip_prefix('[')?.strip_suffix(']')?.split(',');
            Some(words.map(|word| word.trim().trim_matches('"').to_owned()).collect())
        };
        groups = list("apiGroups:").unwrap_or(groups);
        resources = list("resources:").unwrap_or(resources);
        for verb in list("verbs:").unwrap_or_default() {
            for (group, resource) in groups.iter().flat_map(|group| resources.iter().map(move |name| (group, name))) {
                granted.push(Asked { verb: verb.clone(), resource: resource.clone(), group: group.clone() });
            }
        }
    }
    granted
}

#[test]
fn requests_of_the_operator_are_known_by_what_the_chart_grants() {
    let step = |method, path: &str, accept: &str| Step {
        id: 0,
        method,
        path: path.to_owned(),
        headers: vec![("accept", accept.to_owned())],
        body: super::script::Body::Text(String::new()),
    };
    let json = "application/json";
    for (method, path) in [
        ("GET", "/apis/flagger.app/v1beta1/canaries?watch=1&timeoutSeconds=2"),
        ("GET", "/apis/apps/v1/namespaces/<<ns>>/deployments"),
        ("PATCH", "/apis/flagger.app/v1beta1/namespaces/<<ns>>/canaries/a/status"),
        ("PATCH", "/apis/gateway.networking.k8s.io/v1/namespaces/<<ns>>/httproutes/a?fieldManager=x"),
        ("POST", "/api/v1/namespaces/<<ns>>/events"),
        ("DELETE", "/api/v1/namespaces/<<ns>>/secrets/a"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/<<ns>>/leases/a"),
    ] {
        assert!(by_operator(&step(method, path, json)), "{method} {path}");
        assert!(by_operator(&step(method, path, "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")));
        assert!(!by_operator(&step(method, path, "application/xml")), "{method} {path}");
    }
    for (method, path) in [
        ("PATCH", "/api/v1/namespaces/<<ns>>/pods/a"),
        ("PUT", "/apis/apps/v1/namespaces/<<ns>>/deployments/a"),
        ("DELETE", "/apis/apps/v1/namespaces/<<ns>>/deployments"),
        ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
        ("POST", "/apis/rbac.authorization.k8s.io/v1/namespaces/<<ns>>/roles"),
        ("PATCH", "/apis/events.k8s.io/v1/namespaces/<<ns>>/events/a"),
        ("GET", "/version"),
    ] {
        assert!(!by_operator(&step(method, path, json)), "{method} {path}");
    }
}
