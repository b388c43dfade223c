//! Which hosts are reached without a proxy, written as Go programs read it from `NO_PROXY`.
//!
//! A list with commas between the entries: `*` (every host), a network (`10.0.0.0/8`), an address (`10.1.2.3`, `[::1]`),
//! a name (`example.com`: itself and all below it) or what is below a name (`.example.com`, `*.example.com`); addresses
//! and names may end in a port. Names are compared as they are written, nothing is resolved. An entry that can match
//! nothing is an error here, where Go is silent: it is a mistake whose effect nobody would see.

use std::net::IpAddr;

use url::Host;

use super::guard::Network;

/// The list. An empty one matches nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NoProxy(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Everything,
    Network(Network),
    Address { address: IpAddr, port: Option<u16> },
    Name { name: String, itself: bool, port: Option<u16> },
}

impl NoProxy {
    /// Reads a list; the error is the entry that is none.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        entries.map(|entry| Entry::parse(entry).ok_or_else(|| entry.to_owned())).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a host of a URL is in the list.
    pub(super) fn contains(&self, host: &Host<&str>, port: u16) -> bool {
        self.0.iter().any(|entry| entry.matches(host, port))
    }
}

impl Entry {
    fn parse(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Everything);
        }
        if text.contains('/') {
            return text.parse().ok().map(Self::Network);
        }
        if let Ok(address) = text.parse() {
            return Some(Self::Address { address, port: None });
        }
        let (host, port) = match text.rsplit_once(':') {
            // The last colon of `[::1]` is part of the address.
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (text, ""),
        };
        let port = if port.is_empty() { None } else { Some(port.parse().ok()?) };
        let host = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let (name, itself) = host.strip_prefix('.').map_or((host, true), |name| (name, false));
        match (Host::parse(name).ok()?, itself) {
            (Host::Domain(name), itself) => Some(Self::Name { name, itself, port }),
            (Host::Ipv4(address), true) => Some(Self::Address { address: address.into(), port }),
            (Host::Ipv6(address), true) => Some(Self::Address { address: address.into(), port }),
            _ => None,
        }
    }

    fn matches(&self, host: &Host<&str>, asked: u16) -> bool {
        let address = literal(host).map(|address| address.to_canonical());
        match self {
            Self::Everything => true,
            Self::Network(network) => address.is_some_and(|address| network.contains(address)),
            Self::Address { address: listed, port } => {
                address == Some(listed.to_canonical()) && port.is_none_or(|port| port == asked)
            }
            Self::Name { name, itself, port } => {
                let Host::Domain(host) = host else { return false };
                let below = |rest: &str| if rest.is_empty() { *itself } else { rest.ends_with('.') };
                host.strip_suffix(name.as_str()).is_some_and(below) && port.is_none_or(|port| port == asked)
            }
        }
    }
}

/// The address that stands in a URL in place of a name.
pub(super) fn literal(host: &Host<&str>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some((*address).into()),
        Host::Ipv6(address) => Some((*address).into()),
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    fn contains(list: &str, url: &str) -> bool {
        let url = Url::parse(url).unwrap();
        NoProxy::parse(list).unwrap().contains(&url.host().unwrap(), url.port_or_known_default().unwrap())
    }

    #[test]
    fn what_a_list_contains() {
        let table = [
            ("", "http://example.com", false),
            (" , ,", "http://example.com", false),
            ("*", "http://example.com", true),
            ("a.test, *", "https://[2001:db8::1]:8443", true),
            ("example.com", "http://example.com", true),
            ("example.com", "http://EXAMPLE.com:8080", true),
            ("Example.COM", "http://www.example.com", true),
            ("example.com", "http://notexample.com", false),
            ("ample.com", "http://example.com", false),
            ("example.com", "http://example.com.evil.test", false),
            (".example.com", "http://example.com", false),
            (".example.com", "http://a.b.example.com", true),
            ("*.example.com", "http://example.com", false),
            ("*.example.com", "http://www.example.com", true),
            ("example.com:80", "http://example.com", true),
            ("example.com:80", "http://www.example.com:81", false),
            ("example.com:443", "https://example.com", true),
            (".example.com:443", "http://www.example.com", false),
            ("example.com:", "http://example.com:81", true),
            (".svc,.cluster.local", "http://prometheus.istio-system.svc:9090", true),
            ("svc", "http://prometheus.istio-system:9090", false),
            ("bücher.example", "http://www.xn--bcher-kva.example", true),
            ("192.168.1.1", "http://192.168.1.1:9090", true),
            ("192.168.1.1", "http://192.168.1.10", false),
            ("192.168.1.1:81", "http://192.168.1.1", false),
            ("192.168.1.1:81", "http://192.168.1.1:81", true),
            ("192.168.1.1", "http://[::ffff:192.168.1.1]", true),
            ("10.0.0.0/8", "http://10.255.0.1", true),
            ("10.0.0.0/8", "http://11.0.0.1", false),
            ("10.0.0.0/8", "http://10.example.com", false),
            ("2001:db8::52:0:1", "http://[2001:db8::52:0:1]", true),
            ("[2001:db8::52:0:1]", "http://[2001:db8::52:0:1]:81", true),
            ("[2001:db8::52:0:1]:80", "http://[2001:db8::52:0:1]:81", false),
            ("2001:db8::/32", "http://[2001:db8:a::123]", true),
            ("2001:db8::/32", "http://[2001:db9::]", false),
            ("0.0.0.0/0", "http://example.com", false),
        ];
        for (list, url, expected) in table {
            assert_eq!(contains(list, url), expected, "{list:?} and {url}");
        }
    }

    #[test]
    fn an_entry_that_matches_nothing_is_named() {
        for entry in ["10.0.0.0/33", "http://a.test", "a.test b.test", ":80", "a.test:http", "::1::", ".10.0.0.1", "."]
        {
            assert_eq!(NoProxy::parse(&format!("b.test, {entry} ,c.test")), Err(entry.to_owned()));
        }
    }
}
