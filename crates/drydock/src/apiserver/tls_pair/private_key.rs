//! Whether a private key is the one to a public key.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair,
};

use super::certificate::{Curve, ED25519, ELLIPTIC, PublicKey, RSA};
use super::der::{BYTES, Der, NAME, SEQUENCE, numbered};

/// A private key, in the forms that there are.
#[derive(Debug)]
enum PrivateKey<'a> {
    Rsa { modulus: &'a [u8], exponent: &'a [u8] },
    Elliptic { curve: Curve, secret: Vec<u8>, point: Option<&'a [u8]> },
    Ed25519(&'a [u8]),
}

/// Why a private key is not the one to a public key.
pub(super) fn misfit(public: &PublicKey<'_>, key: &[u8]) -> Option<&'static str> {
    let Some(private) = rsa(key).or_else(|| wrapped(key)).or_else(|| elliptic(key, None)) else {
        return Some("tls: failed to parse private key");
    };
    let fits = match (public, &private) {
        (PublicKey::Unknown, _) => return Some("tls: unknown public key algorithm"),
        (PublicKey::Rsa { modulus, exponent }, PrivateKey::Rsa { modulus: other, exponent: others }) => {
            modulus == other && exponent == others
        }
        (PublicKey::Elliptic { curve, point }, PrivateKey::Elliptic { curve: other, secret, point: known }) => {
            curve == other && is_of(*curve, secret, point, *known)
        }
        (PublicKey::Ed25519(point), PrivateKey::Ed25519(seed)) => {
            Ed25519KeyPair::from_seed_and_public_key(seed, point).is_ok()
        }
        _ => return Some("tls: private key type does not match public key type"),
    };
    (!fits).then_some("tls: private key does not match public key")
}

/// Whether a point of a curve belongs to a secret. Of curves that hardly anybody has, a key is believed what it says.
fn is_of(curve: Curve, secret: &[u8], point: &[u8], known: Option<&[u8]>) -> bool {
    let fits = |algorithm: &'static EcdsaSigningAlgorithm| {
        EcdsaKeyPair::from_private_key_and_public_key(algorithm, secret, point, &SystemRandom::new()).is_ok()
    };
    match curve {
        Curve::P256 => fits(&ECDSA_P256_SHA256_ASN1_SIGNING),
        Curve::P384 => fits(&ECDSA_P384_SHA384_ASN1_SIGNING),
        Curve::P224 | Curve::P521 => known.is_none_or(|known| known == point),
    }
}

/// The form of keys of RSA alone: a version, and eight numbers of which two are public.
fn rsa(key: &[u8]) -> Option<PrivateKey<'_>> {
    let mut all = Der(key);
    let mut numbers = all.inside(SEQUENCE).filter(|_| all.is_empty())?;
    if !matches!(numbers.integer()?, [0 | 1]) {
        return None;
    }
    let (modulus, exponent) = (numbers.integer()?, numbers.integer()?);
    (0..6).try_for_each(|_| numbers.integer().map(drop))?;
    Some(PrivateKey::Rsa { modulus, exponent })
}

/// The form of keys of elliptic curves alone. What wraps it may say which curve it is.
fn elliptic<'a>(key: &'a [u8], curve: Option<&[u8]>) -> Option<PrivateKey<'a>> {
    let mut parts = Der(key).inside(SEQUENCE)?;
    if parts.integer()? != [1] {
        return None;
    }
    let secret = parts.read(BYTES)?;
    let own = parts.inside(numbered(0)).and_then(|mut it| it.read(NAME));
    let point = parts.inside(numbered(1)).and_then(|mut it| it.bits());
    let curve = Curve::named(curve.or(own)?)?;
    // Some write zeros before it, and some leave its own out.
    let start = secret.iter().position(|byte| *byte != 0).unwrap_or(secret.len());
    let digits = secret.get(start..)?;
    let mut whole = vec![0; curve.bytes().checked_sub(digits.len())?];
    whole.extend(digits);
    Some(PrivateKey::Elliptic { curve, secret: whole, point })
}

/// The form that says of which kind a key is.
fn wrapped(key: &[u8]) -> Option<PrivateKey<'_>> {
    let mut parts = Der(key).inside(SEQUENCE)?;
    parts.integer()?;
    let mut algorithm = parts.inside(SEQUENCE)?;
    let name = algorithm.read(NAME)?;
    let inner = parts.read(BYTES)?;
    match name {
        RSA => rsa(inner),
        ELLIPTIC => elliptic(inner, algorithm.read(NAME)),
        ED25519 if algorithm.is_empty() => {
            Der(inner).read(BYTES).filter(|seed| seed.len() == 32).map(PrivateKey::Ed25519)
        }
        _ => None,
    }
}
