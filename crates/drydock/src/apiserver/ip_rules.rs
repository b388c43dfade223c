//! Addresses and ranges of addresses: what is one, and what is one that nobody should write so.

use std::net::{IpAddr, Ipv6Addr};

use serde_json::json;

use super::error::Cause;

/// An address, also one whose numbers begin with zeroes, which some take for octal.
pub(super) fn sloppy(text: &str) -> Option<IpAddr> {
    let plain = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let quad = || {
        let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        text.split('.').all(digits).then(|| text.split('.').map(plain).collect::<Vec<_>>().join("."))
    };
    text.parse().ok().or_else(|| quad()?.parse().ok())
}

fn is_mapped(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some())
}

/// What is wrong with an address that was not there before.
pub(super) fn address(path: &str, value: &str, known: &[String], causes: &mut Vec<Cause>) {
    if known.iter().any(|known| known == value) {
        return;
    }
    let why = match sloppy(value) {
        None => "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        Some(_) if value.parse::<IpAddr>().is_err() => "must not have leading 0s",
        Some(address) if is_mapped(address) => "must not be an IPv4-mapped IPv6 address",
        Some(_) => return,
    };
    causes.push(Cause::invalid(path, &json!(value), why));
}

/// What is wrong with an address that others should reach.
pub(super) fn special(path: &str, value: &str, causes: &mut Vec<Cause>) {
    let Some(address) = sloppy(value) else { return };
    let (local, multicast) = match address {
        IpAddr::V4(address) => (address.is_link_local(), address.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(address) => {
            let [first, second, ..] = address.octets();
            (address.is_unicast_link_local(), first == 0xff && second & 0x0f == 2)
        }
    };
    for (is, why) in [
        (address.is_unspecified(), format!("may not be unspecified ({value})")),
        (address.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ] {
        causes.extend(is.then(|| Cause::invalid(path, &json!(value), &why)));
    }
}

/// The address and the length of a range; `None` where it is none.
fn parts(value: &str) -> Option<(IpAddr, u32)> {
    let (address, length) = value.split_once('/')?;
    let address = sloppy(address)?;
    let length = Some(length).filter(|length| length.bytes().all(|byte| byte.is_ascii_digit()))?.parse().ok()?;
    (length <= if address.is_ipv4() { 32 } else { 128 }).then_some((address, length))
}

/// The bits of an address, as of IPv6.
fn bits(address: IpAddr) -> (u128, u32) {
    match address {
        IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
        IpAddr::V6(address) => (u128::from(address), 128),
    }
}

/// What is wrong with a range that was not there before.
pub(super) fn range(path: &str, value: &str, known: &[String], causes: &mut Vec<Cause>) {
    if known.iter().any(|known| known == value) {
        return;
    }
    let strict = |(address, length): (&str, &str)| {
        address.parse::<IpAddr>().is_ok() && (length == "0" || !length.starts_with('0'))
    };
    let beyond = |address: IpAddr, length: u32| {
        let (bits, all) = bits(address);
        length < all && bits & (u128::MAX >> (128 - (all - length))) != 0
    };
    let why = match parts(value) {
        None => "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)",
        Some(_) if !value.split_once('/').is_some_and(strict) => "must not have leading 0s in IP or prefix length",
        Some((address, _)) if is_mapped(address) => "must not have an IPv4-mapped IPv6 address",
        Some((address, length)) if beyond(address, length) => "must not have bits set beyond the prefix length",
        Some(_) => return,
    };
    causes.push(Cause::invalid(path, &json!(value), why));
}

/// What is allowed, but should be written in another way.
pub(super) fn warn_address(path: &str, value: &str) -> Option<String> {
    let address: Ipv6Addr = value.parse().ok()?;
    let usual = address.to_string();
    (usual != value)
        .then(|| format!("{path}: IPv6 address {value:?} should be in RFC 5952 canonical format ({usual:?})"))
}

/// The same of a range.
pub(super) fn warn_range(path: &str, value: &str) -> Option<String> {
    let (address, length) = parts(value).filter(|(address, _)| address.is_ipv6())?;
    let usual = format!("{address}/{length}");
    (usual != value)
        .then(|| format!("{path}: IPv6 CIDR value {value:?} should be in RFC 5952 canonical format ({usual:?})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(judge: fn(&str, &str, &[String], &mut Vec<Cause>), value: &str) -> String {
        let mut causes = Vec::new();
        judge("x", value, &[], &mut causes);
        causes.first().map(|cause| cause.message.rsplit(": ").next().unwrap_or_default().to_owned()).unwrap_or_default()
    }

    #[test]
    fn addresses_and_ranges_are_written_without_doubt() {
        for (value, why) in [
            ("10.0.0.1", ""),
            ("fe80::1", ""),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("1.2.3", "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"),
        ] {
            assert_eq!(said(address, value), why, "{value}");
        }
        for (value, why) in [
            ("10.0.0.0/8", ""),
            ("0.0.0.0/0", ""),
            ("2001:db8::/32", ""),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("10.0.0.0/33", "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"),
        ] {
            assert_eq!(said(range, value), why, "{value}");
        }
        assert!(warn_address("x", "FE80::1").is_some() && warn_address("x", "fe80::1").is_none());
    }
}
