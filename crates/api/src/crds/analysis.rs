//! Schema of `spec.analysis`.

use super::schema::{Schema, choice, duration, flag, list, map, number, object, text, text_map};
use super::service::string_match;
use crate::canary::HookType;

pub(super) fn schema() -> Schema {
    object("How a new version is judged.")
        .field("interval", duration("Time between two checks (at least 10s)."))
        .field("iterations", number("Number of checks, for A/B and blue/green."))
        .field("threshold", number("Failed checks until rollback."))
        .field("maxWeight", number("Canary weight at which the promotion starts (default 100)."))
        .field("stepWeight", number("Weight added per step."))
        .field("stepWeights", list("Weights of the steps, absolute and rising.", number("")))
        .field(
            "stepWeightPromotion",
            number("Weight given back to the primary per step while promoting; all at once if absent."),
        )
        .field("mirror", flag("Mirror traffic to the canary before it gets any."))
        .field("mirrorWeight", number("Percentage of requests that is mirrored (default all)."))
        .field(
            "primaryReadyThreshold",
            number("Percentage of the primary's pods that must be available (default 100)."),
        )
        .field("canaryReadyThreshold", number("Percentage of the canary's pods that must be available (default 100)."))
        .field("match", list("Who sees the canary in an A/B test; any of these.", ab_match()))
        .field("metrics", list("Metric checks; all must pass.", metric()))
        .field("alerts", list("Alerts.", alert()))
        .field("webhooks", list("Webhooks.", webhook()))
        .field("sessionAffinity", session_affinity())
        .one_of(&[
            &["interval", "threshold", "iterations"],
            &["interval", "threshold", "stepWeight"],
            &["interval", "threshold", "stepWeights"],
        ])
}

fn ab_match() -> Schema {
    let header = object("")
        .field("exact", text("Equal."))
        .field("prefix", text("Begins with."))
        .field("suffix", text("Ends with."))
        .field("regex", text("Matches as a whole (RE2)."))
        .one_of(&[&["exact"], &["prefix"], &["suffix"], &["regex"]]);
    object("")
        .field("headers", map("Request headers.", header))
        .field("queryParams", map("Query parameters.", string_match("")))
        .field("sourceLabels", text_map("Labels of the calling workload."))
}

fn metric() -> Schema {
    let range = object("Bounds, both inclusive.")
        .field("min", number("Smallest good value."))
        .field("max", number("Largest good value."));
    object("")
        .field("name", text("Name; request-success-rate and request-duration are builtin."))
        .field("interval", duration("Window of the query (default 1m)."))
        .field("threshold", number("Bound in the old form; use thresholdRange."))
        .field("thresholdRange", range)
        .field("query", text("A Prometheus query, a Go text/template."))
        .field("templateRef", namespaced("The MetricTemplate with the query."))
        .field("templateVariables", text_map("Values for the template."))
        .required(&["name"])
}

fn alert() -> Schema {
    object("")
        .field("name", text("Name."))
        .field("severity", choice("Least severity that is sent (default info).", &["", "info", "warn", "error"]))
        .field("providerRef", namespaced("The AlertProvider."))
        .required(&["providerRef", "name"])
}

fn webhook() -> Schema {
    let types: Vec<_> = std::iter::once("").chain(HookType::ALL.iter().map(|hook| hook.as_str())).collect();
    object("")
        .field("name", text("Name, shown in Events."))
        .field("type", choice("When it is called (default rollout).", &types))
        .field("url", text("Where the POST goes."))
        .field("muteAlert", flag("Do not alert while this gate is closed."))
        .field("timeout", duration("Time limit (default 10s)."))
        .field("retries", number("Attempts after the first (default 0)."))
        .field("disableTLS", flag("Accept any TLS certificate."))
        .field("metadata", text_map("Sent along unchanged."))
        .required(&["name", "url"])
}

fn namespaced(description: &str) -> Schema {
    object(description)
        .field("name", text("Name."))
        .field("namespace", text("Namespace; the Canary's own if absent."))
        .required(&["name"])
}

fn session_affinity() -> Schema {
    object("Keep a user on the variant that was seen first.")
        .field("cookieName", text("Cookie of users who saw the canary."))
        .field("primaryCookieName", text("Cookie of users who saw the primary; they are not pinned if absent."))
        .field("domain", text("Domain attribute."))
        .field("httpOnly", flag("HttpOnly attribute."))
        .field("maxAge", number("Max-Age attribute in seconds.").default(86_400))
        .field("partitioned", flag("Partitioned attribute."))
        .field("path", text("Path attribute."))
        .field("sameSite", choice("SameSite attribute.", &["Strict", "Lax", "None"]))
        .field("secure", flag("Secure attribute."))
        .required(&["cookieName"])
        .rule(
            "!has(self.primaryCookieName) || self.primaryCookieName != self.cookieName",
            "cookieName and primaryCookieName must differ",
        )
}
