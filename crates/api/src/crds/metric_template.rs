//! Schema of `MetricTemplate`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::schema::{Schema, choice, flag, list, map, object, text};
use super::{Kind, column, conditions};
use crate::metric_template::METRIC_PROVIDERS;

pub(super) fn definition() -> CustomResourceDefinition {
    Kind {
        name: "MetricTemplate",
        plural: "metrictemplates",
        singular: "metrictemplate",
        description: "A query with holes, and the provider that answers it.",
        columns: vec![column("Provider", "string", ".spec.provider.type", 0)],
        spec: object("The query and its provider.")
            .field("provider", provider())
            .field("query", text("The query, a Go text/template."))
            .required(&["provider", "query"]),
        status: object("What is known about the template.").field("conditions", conditions()),
    }
    .definition()
}

fn provider() -> Schema {
    let headers = list("", text(""));
    object("The system that answers the query.")
        .field("type", choice("Which system.", &METRIC_PROVIDERS))
        .field("address", text("Endpoint URL."))
        .field("headers", map("Extra HTTP headers, each with its values.", headers))
        .field("secretRef", secret_ref("Secret with credentials, in the template's namespace."))
        .field("region", text("Cloud region."))
        .field("insecureSkipVerify", flag("Accept any TLS certificate of the provider."))
        .required(&["type"])
}

/// A Secret in the object's own namespace.
pub(super) fn secret_ref(description: &str) -> Schema {
    object(description).field("name", text("Name of the Secret.")).required(&["name"])
}
