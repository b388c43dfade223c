//! What the chart becomes, and what it grants.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use k8s_openapi::api::authorization::v1::ResourceAttributes;
use seaway_drydock::apiserver::Request;
use serde_json::{Value, json};

use super::parts::installed;

/// Where the chart is.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../charts/seaway")
}

/// A verb, upon a resource (with its sub-resource) of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    pub verb: String,
    pub resource: String,
    pub group: String,
}

impl Grant {
    /// What a request needs.
    pub fn for_request(asked: &Request) -> Self {
        let resource = match asked.subresource.as_str() {
            "" => asked.resource.clone(),
            subresource => format!("{}/{subresource}", asked.resource),
        };
        Self { verb: asked.verb.clone(), resource, group: asked.group.clone() }
    }

    /// What a rule grants, each with the rule that grants it alone.
    fn of(rule: &Value) -> Vec<(Self, Value)> {
        let texts = |field: &str| -> Vec<String> { serde_json::from_value(rule[field].clone()).unwrap() };
        let mut grants = Vec::new();
        for group in texts("apiGroups") {
            for resource in texts("resources") {
                for verb in texts("verbs") {
                    let mut alone = rule.clone();
                    (alone["apiGroups"], alone["resources"], alone["verbs"]) =
                        (json!([group]), json!([resource]), json!([verb]));
                    grants.push((Self { verb, resource: resource.clone(), group: group.clone() }, alone));
                }
            }
        }
        grants
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.verb, self.resource)?;
        if self.group.is_empty() { Ok(()) } else { write!(out, ".{}", self.group) }
    }
}

/// A grant, and how far it reaches.
#[derive(Debug)]
pub struct Granted {
    pub grant: Grant,
    /// `None` is everywhere.
    pub namespace: Option<String>,
    /// The one object that it is about, if it is about one.
    pub name: Option<String>,
}

impl Granted {
    /// What somebody who has it may ask for.
    pub fn request(&self) -> ResourceAttributes {
        let Grant { verb, resource, group } = self.grant.clone();
        let (resource, subresource) = match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), Some(subresource.to_owned())),
            None => (resource, None),
        };
        ResourceAttributes {
            verb: Some(verb),
            resource: Some(resource),
            subresource,
            group: Some(group),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
            ..ResourceAttributes::default()
        }
    }
}

/// For whom Helm renders where it asks no cluster. By itself one that is built from its module takes 1.20, which is older than
/// the chart allows.
const KUBERNETES: &str = "1.36";

/// The chart as Helm renders it for the release `seaway` in `seaway-system`.
pub struct Rendered(pub Vec<Value>);

impl Rendered {
    /// With these values set.
    pub fn with(values: &[&str]) -> Self {
        let arguments: Vec<_> = values.iter().flat_map(|value| ["--set", *value]).collect();
        Self::by(&arguments).unwrap_or_else(|said| panic!("{said}"))
    }

    /// With these arguments to Helm; the error is what it says.
    pub fn by(arguments: &[&str]) -> Result<Self, String> {
        let mut command = Command::new(installed("helm"));
        command.args(["template", "seaway"]).arg(folder()).args(["--namespace", "seaway-system"]);
        command.args(["--kube-version", KUBERNETES]).args(arguments);
        let output = command.output().unwrap();
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        let objects: Vec<Value> = serde_saphyr::from_multiple(&String::from_utf8_lossy(&output.stdout)).unwrap();
        Ok(Self(objects.into_iter().filter(|object| !object.is_null()).collect()))
    }

    /// Who the operator is and what it may do, as a manifest.
    pub fn access(&self) -> String {
        let kinds = ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"];
        let wanted = self.0.iter().filter(|object| kinds.iter().any(|kind| object["kind"] == *kind));
        wanted.fold(String::new(), |all, object| format!("{all}---\n{object}\n"))
    }

    /// What its bindings grant. Whoever is bound is the operator, and every role is the chart's own.
    pub fn grants(&self) -> Vec<Granted> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let mut granted = Vec::new();
        for binding in self.0.iter().filter(|object| object.get("roleRef").is_some()) {
            let account = json!({"kind": "ServiceAccount", "namespace": "seaway-system", "name": "seaway"});
            assert_eq!(binding["subjects"], json!([account]), "the operator and nobody else");
            let role = self.role(binding);
            // A role for the whole cluster may be bound in one namespace: the binding says how far it reaches.
            let namespace = text(&binding["metadata"]["namespace"]);
            for (grant, rule) in role["rules"].as_array().unwrap().iter().flat_map(Grant::of) {
                let names: Vec<_> = match rule.get("resourceNames") {
                    Some(names) => names.as_array().unwrap().iter().map(text).collect(),
                    None => vec![None],
                };
                let named = |name| Granted { grant: grant.clone(), namespace: namespace.clone(), name };
                granted.extend(names.into_iter().map(named));
            }
        }
        granted
    }

    /// What a binding binds.
    fn role(&self, binding: &Value) -> &Value {
        let (meant, at) = (&binding["roleRef"], &binding["metadata"]["namespace"]);
        let is_meant = |object: &&Value| {
            let (metadata, is_namespaced) = (&object["metadata"], object["kind"] == "Role");
            object["kind"] == meant["kind"]
                && metadata["name"] == meant["name"]
                && (!is_namespaced || metadata["namespace"] == *at)
        };
        self.0.iter().find(is_meant).unwrap_or_else(|| panic!("a role that is not the chart's is bound: {meant}"))
    }

    /// Takes one grant out of its roles.
    pub fn take_away(&mut self, taken: &str) {
        let mut found = 0;
        for rules in self.0.iter_mut().filter_map(|object| object.get_mut("rules")?.as_array_mut()) {
            let grants = rules.iter().flat_map(Grant::of);
            let (out, left): (Vec<_>, Vec<_>) = grants.partition(|(grant, _)| grant.to_string() == taken);
            found += out.len();
            *rules = left.into_iter().map(|(_, rule)| rule).collect();
        }
        assert_eq!(found, 1, "the chart grants {taken:?} so many times");
    }

    /// A pod of its Deployment.
    pub fn pod(&self) -> Value {
        let deployment = self.0.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let (metadata, template) = (&deployment["metadata"], &deployment["spec"]["template"]);
        let mut pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
        (pod["metadata"]["name"], pod["metadata"]["namespace"]) =
            (metadata["name"].clone(), metadata["namespace"].clone());
        pod
    }

    /// The flags its container gets.
    pub fn flags(&self) -> Vec<String> {
        let deployment = self.0.iter().find(|object| object["kind"] == "Deployment").unwrap();
        let arguments = deployment.pointer("/spec/template/spec/containers/0/args").unwrap();
        serde_json::from_value(arguments.clone()).unwrap()
    }
}
