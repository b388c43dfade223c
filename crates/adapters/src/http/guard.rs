//! Which addresses a URL from an object in the cluster may lead to.
//!
//! A tenant who may write a Canary must not be able to make the operator ask the node's metadata service, its own
//! loopback ports or whatever listens on a link-local address. Names are resolved first and every address is judged, so
//! a name that changes its answer gains nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// What may be reached: the rules below, then exceptions.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    /// Networks that may be reached although the rules deny them, e.g. `127.0.0.0/8`.
    pub allow: Vec<Network>,
    /// Addresses that may not be reached whatever else is said: the API server's and the operator's own.
    pub deny: Vec<SocketAddr>,
}

impl Guard {
    /// A guard that also lets loopback addresses pass.
    pub fn with_loopback() -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"].into_iter().filter_map(|network| network.parse().ok()).collect();
        Self { allow: loopback, deny: Vec::new() }
    }

    /// Whether a connection to this address may be opened.
    pub fn allows(&self, address: SocketAddr) -> bool {
        let ip = plain(address.ip());
        if self.deny.iter().any(|denied| plain(denied.ip()) == ip && denied.port() == address.port()) {
            return false;
        }
        self.allow.iter().any(|network| network.contains(ip)) || !(is_never_a_server(ip) || ip.is_loopback())
    }
}

/// Cloud metadata services outside the link-local range: Alibaba, Oracle, and AWS over IPv6.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

/// Addresses behind which no hook and no metric provider ever is.
pub(super) fn is_never_a_server(address: IpAddr) -> bool {
    let address = plain(address);
    METADATA.contains(&address)
        || address.is_unspecified()
        || address.is_multicast()
        || match address {
            // All of 0.0.0.0/8 reaches the machine itself on some systems.
            IpAddr::V4(v4) => v4.is_link_local() || v4.is_broadcast() || v4.octets()[0] == 0,
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
}

/// The IPv4 address inside an IPv6 one (mapped, compatible, NAT64, 6to4): the same machine by another name.
fn plain(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    if let Some(v4) = v6.to_ipv4_mapped() {
        return v4.into();
    }
    let join = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match v6.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => join(high, low),
        [0, 0, 0, 0, 0, 0, high, low] if high != 0 => join(high, low),
        _ => address,
    }
}

/// A range of addresses, `10.0.0.0/8` or a single address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    base: IpAddr,
    bits: u32,
}

impl Network {
    /// Whether an address is in the range.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - self.bits).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - self.bits).unwrap_or(0);
                base.to_bits() & mask == address.to_bits() & mask
            }
            _ => false,
        }
    }
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a network; write an address or a range such as 10.0.0.0/8")]
pub struct ParseNetworkError(String);

impl FromStr for Network {
    type Err = ParseNetworkError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
            let base: IpAddr = address.parse().ok()?;
            let width = if base.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(width), |bits| bits.parse().ok()).filter(|bits| *bits <= width)?;
            Some(Self { base, bits })
        };
        parse().ok_or_else(|| ParseNetworkError(text.to_owned()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(guard: &Guard, address: &str) -> bool {
        guard.allows(SocketAddr::new(address.parse().unwrap(), 80))
    }

    #[test]
    fn nobody_reaches_the_node_through_us() {
        let guard = Guard::default();
        let denied = [
            "127.0.0.1",
            "127.8.8.8",
            "::1",
            "0.0.0.0",
            "0.1.2.3",
            "::",
            "169.254.169.254",
            "fe80::1",
            "224.0.0.1",
            "ff02::1",
            "255.255.255.255",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::127.0.0.1",
            "64:ff9b::a9fe:a9fe",
            "2002:7f00:1::",
            "100.100.100.200",
            "192.0.0.192",
            "fd00:ec2::254",
        ];
        for address in denied {
            assert!(!allows(&guard, address), "{address}");
        }
        for address in ["10.0.0.1", "192.168.1.1", "100.64.0.1", "8.8.8.8", "fd00::1", "2001:db8::1", "64:ff9b::a00:1"]
        {
            assert!(allows(&guard, address), "{address}");
        }
    }

    #[test]
    fn exceptions_and_their_limits() {
        let mut guard = Guard::with_loopback();
        guard.deny.push("127.0.0.1:6443".parse().unwrap());
        assert!(allows(&guard, "127.0.0.1") && allows(&guard, "::1"));
        assert!(!guard.allows("127.0.0.1:6443".parse().unwrap()));
        assert!(!guard.allows("[::ffff:127.0.0.1]:6443".parse().unwrap()));
        assert!(!allows(&guard, "169.254.169.254"));
        guard.allow.push("169.254.0.0/16".parse().unwrap());
        assert!(allows(&guard, "169.254.169.254"));
    }

    #[test]
    fn networks() {
        let network: Network = "10.0.0.0/8".parse().unwrap();
        assert!(network.contains("10.255.0.1".parse().unwrap()) && !network.contains("11.0.0.1".parse().unwrap()));
        assert!("0.0.0.0/0".parse::<Network>().unwrap().contains("8.8.8.8".parse().unwrap()));
        assert!("::1".parse::<Network>().unwrap().contains("::1".parse().unwrap()));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "x", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
