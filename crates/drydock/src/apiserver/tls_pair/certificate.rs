//! Whose certificate it is: the way to the public key in it. Names, times and extensions on the way are passed by.

use super::der::{BITS, Der, NAME, SEQUENCE, numbered};

pub(super) const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
pub(super) const ELLIPTIC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
pub(super) const ED25519: &[u8] = &[0x2b, 0x65, 0x70];

/// An elliptic curve, and how many bytes its numbers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Curve {
    P224,
    P256,
    P384,
    P521,
}

impl Curve {
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        match name {
            [0x2b, 0x81, 0x04, 0x00, 0x21] => Some(Self::P224),
            [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07] => Some(Self::P256),
            [0x2b, 0x81, 0x04, 0x00, 0x22] => Some(Self::P384),
            [0x2b, 0x81, 0x04, 0x00, 0x23] => Some(Self::P521),
            _ => None,
        }
    }

    pub(super) fn bytes(self) -> usize {
        match self {
            Self::P224 => 28,
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }
}

/// A public key.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PublicKey<'a> {
    Rsa { modulus: &'a [u8], exponent: &'a [u8] },
    Elliptic { curve: Curve, point: &'a [u8] },
    Ed25519(&'a [u8]),
    Unknown,
}

/// The public key of a certificate, or why it is none.
pub(super) fn public_key(certificate: &[u8]) -> Result<PublicKey<'_>, &'static str> {
    let mut all = Der(certificate);
    let mut outer = all.inside(SEQUENCE).ok_or("x509: malformed certificate")?;
    let mut signed = outer.inside(SEQUENCE).ok_or("x509: malformed tbs certificate")?;
    let version = if signed.is_next(numbered(0)) {
        signed.inside(numbered(0)).and_then(|mut it| it.integer()).ok_or("x509: malformed version")?
    } else {
        &[0]
    };
    if !matches!(version, [0..=2]) {
        return Err(if version.first().is_some_and(|first| *first >= 0x80) {
            "x509: malformed version"
        } else {
            "x509: invalid version"
        });
    }
    let mut serial = signed;
    signed.integer().ok_or("x509: malformed serial number")?;
    let is_negative = serial.read(super::der::INTEGER).is_some_and(|it| it.first().is_some_and(|first| *first >= 0x80));
    if is_negative {
        return Err("x509: negative serial number");
    }
    let inner = signed.read(SEQUENCE).ok_or("x509: malformed signature algorithm identifier")?;
    if outer.read(SEQUENCE).ok_or("x509: malformed algorithm identifier")? != inner {
        return Err("x509: inner and outer signature algorithm identifiers don't match");
    }
    Der(inner).read(NAME).ok_or("x509: malformed OID")?;
    for why in ["x509: malformed issuer", "x509: malformed validity", "x509: malformed issuer"] {
        signed.read(SEQUENCE).ok_or(why)?;
    }
    let key = key(signed.inside(SEQUENCE).ok_or("x509: malformed spki")?)?;
    if !outer.is_next(BITS) || outer.read(BITS).is_none() {
        return Err("x509: malformed signature");
    }
    if all.is_empty() { Ok(key) } else { Err("x509: trailing data") }
}

fn key(mut info: Der<'_>) -> Result<PublicKey<'_>, &'static str> {
    let mut algorithm = info.inside(SEQUENCE).ok_or("x509: malformed public key algorithm identifier")?;
    let name = algorithm.read(NAME).ok_or("x509: malformed OID")?;
    let key = info.bits().ok_or("x509: malformed subjectPublicKey")?;
    match name {
        RSA => {
            if algorithm.0 != [0x05, 0x00] {
                return Err("x509: RSA key missing NULL parameters");
            }
            let mut numbers = Der(key).inside(SEQUENCE).ok_or("x509: invalid RSA public key")?;
            let modulus = numbers.integer().ok_or("x509: invalid RSA modulus")?;
            let exponent = numbers.integer().ok_or("x509: invalid RSA public exponent")?;
            Ok(PublicKey::Rsa { modulus, exponent })
        }
        ELLIPTIC => {
            let curve = algorithm.read(NAME).ok_or("x509: invalid ECDSA parameters")?;
            let curve = Curve::named(curve).ok_or("x509: unsupported elliptic curve")?;
            Ok(PublicKey::Elliptic { curve, point: key })
        }
        ED25519 if !algorithm.is_empty() => Err("x509: Ed25519 key encoded with illegal parameters"),
        ED25519 if key.len() != 32 => Err("x509: wrong Ed25519 public key size"),
        ED25519 => Ok(PublicKey::Ed25519(key)),
        _ => Ok(PublicKey::Unknown),
    }
}
