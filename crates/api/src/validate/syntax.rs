//! The shapes Kubernetes and HTTP demand of names, labels, hosts, ports and URLs.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

/// Lower case letters, digits and dashes, at most 63: Services, namespaces, port names.
pub(crate) fn is_label(text: &str) -> bool {
    let inner = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-';
    !text.is_empty() && text.len() <= 63 && text.bytes().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Labels joined by dots, at most 253: names of most objects.
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

fn is_label_of_any_length(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// The value of a Kubernetes label: empty, or up to 63 of letters, digits, `-`, `_` and `.` with a letter or digit at both
/// ends.
pub(crate) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

/// The key of a label or annotation: a name part, after an optional `subdomain/`.
pub(crate) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

fn is_name_part(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    text.len() <= 63
        && edge(text.chars().next())
        && edge(text.chars().next_back())
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"-_.".contains(&c))
}

/// The name of a container port: at most 15, with a letter in it.
pub(crate) fn is_container_port_name(text: &str) -> bool {
    text.len() <= 15 && is_label(text) && text.bytes().any(|c| c.is_ascii_lowercase()) && !text.contains("--")
}

/// A port that can be listened on.
pub(crate) fn is_port(port: i64) -> bool {
    (1..=65_535).contains(&port)
}

/// A host name of a route: a subdomain, or `*.` before one; never an address.
pub(crate) fn is_hostname(text: &str) -> bool {
    let name = text.strip_prefix("*.").unwrap_or(text);
    is_subdomain(name) && text.len() <= 253 && text.parse::<IpAddr>().is_err()
}

/// The name of an HTTP header or cookie.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 256
        && text.bytes().all(|c| c.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&c))
}

/// Why a URL is not called; `None` if it is fine. With `any_address` only its form is looked at.
pub(crate) fn url_problem(text: &str, any_address: bool) -> Option<String> {
    if text.trim().is_empty() {
        return Some("there is no URL".into());
    }
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(error) => return Some(format!("not a URL: {error}")),
    };
    if !matches!(url.scheme(), "http" | "https") {
        return Some(format!("the scheme \"{}\" is not allowed", url.scheme()));
    }
    if url.port() == Some(0) {
        return Some("port 0 cannot be called".into());
    }
    let reserved = match url.host() {
        None => return Some("there is no host in it".into()),
        Some(Host::Ipv4(address)) => is_reserved_v4(address),
        Some(Host::Ipv6(address)) => is_reserved_v6(address),
        Some(Host::Domain(name)) => is_reserved_name(name),
    };
    (reserved && !any_address)
        .then(|| "the address belongs to this machine, its network or the cluster's control".into())
}

fn is_reserved_v4(address: Ipv4Addr) -> bool {
    address.is_loopback()
        || address.is_link_local()
        || address.is_unspecified()
        || address.is_multicast()
        || address.is_broadcast()
        || address.octets()[0] == 0
}

fn is_reserved_v6(address: Ipv6Addr) -> bool {
    let mapped = address.to_ipv4_mapped().is_some_and(is_reserved_v4);
    // fe80::/10 is link-local.
    mapped
        || address.is_loopback()
        || address.is_unspecified()
        || address.is_multicast()
        || address.segments()[0] & 0xffc0 == 0xfe80
}

/// The machine itself, the API server's Service and the metadata servers of clouds.
fn is_reserved_name(name: &str) -> bool {
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    let api_server = ["kubernetes", "kubernetes.default", "kubernetes.default.svc"];
    name == "localhost"
        || name.ends_with(".localhost")
        || name == "metadata.google.internal"
        || api_server.contains(&name.as_str())
        || name.starts_with("kubernetes.default.svc.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for good in ["a", "podinfo", "a-1", "1a"] {
            assert!(is_label(good) && is_subdomain(good), "{good}");
        }
        for bad in ["", "-a", "a-", "A", "a_b", "a.b", &"a".repeat(64)] {
            assert!(!is_label(bad), "{bad}");
        }
        assert!(is_subdomain("a.b") && !is_subdomain("a..b") && !is_subdomain(&"a".repeat(254)));
        assert!(is_label_value("") && is_label_value("A_b.c") && !is_label_value("a b") && !is_label_value("-"));
        assert!(
            is_qualified_name("app.kubernetes.io/name") && !is_qualified_name("/name") && !is_qualified_name("a/b/c")
        );
        assert!(is_container_port_name("http-1") && !is_container_port_name("9898") && !is_container_port_name("a--b"));
    }

    #[test]
    fn hosts() {
        for good in ["www.example.com", "*.example.com", "a"] {
            assert!(is_hostname(good), "{good}");
        }
        for bad in ["*", "", "10.0.0.1", "a.*.com", "WWW.example.com", "a b"] {
            assert!(!is_hostname(bad), "{bad}");
        }
    }

    #[test]
    fn urls_that_are_called() {
        for good in [
            "http://flagger-loadtester.test/",
            "https://example.com:8443/x?y=z",
            "http://10.1.2.3/",
            "http://[fd00::1]/",
        ] {
            assert_eq!(url_problem(good, false), None, "{good}");
        }
        assert_eq!(url_problem("http://127.0.0.1:8080/", true), None);
    }

    #[test]
    fn urls_that_are_not() {
        for bad in [
            "",
            "::::",
            "flagger-loadtester.test",
            "http://",
            "http:///",
            "file:///etc/passwd",
            "gopher://x/",
            "http://x:0/",
            "http://x:99999/",
            "http://localhost/",
            "http://127.0.0.1/",
            "http://127.1/",
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://0.0.0.0/",
            "http://169.254.169.254/latest/meta-data",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fe80::1]/",
            "http://224.0.0.1/",
            "https://kubernetes.default.svc/api",
            "https://kubernetes.default.svc.cluster.local./api",
            "https://KUBERNETES.default/api",
            "http://metadata.google.internal/",
        ] {
            assert!(url_problem(bad, false).is_some(), "{bad}");
        }
    }
}
