//! Schema of `AlertProvider`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::metric_template::secret_ref;
use super::schema::{choice, object, text};
use super::{Kind, column, conditions};

pub(super) fn definition() -> CustomResourceDefinition {
    Kind {
        name: "AlertProvider",
        plural: "alertproviders",
        singular: "alertprovider",
        description: "A chat system that is told about rollouts.",
        columns: vec![column("Type", "string", ".spec.type", 0)],
        spec: object("Where alerts go.")
            .field("type", choice("Which system.", &["slack", "msteams", "discord", "rocket", "gchat"]))
            .field("channel", text("Channel to post to."))
            .field("username", text("Name shown as the sender."))
            .field("address", text("Hook URL."))
            .field("proxy", text("HTTP proxy URL."))
            .field("secretRef", secret_ref("Secret that holds the address, in the provider's namespace."))
            .one_of(&[&["type", "address"], &["type", "secretRef"]]),
        status: object("What is known about the provider.").field("conditions", conditions()),
    }
    .definition()
}
