//! Whether a certificate and a key are what they should be, in the words of Go's TLS library.
//!
//! Names, times and extensions in a certificate are not looked at.

mod certificate;
mod der;
mod private_key;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Why a certificate and its key cannot be used.
pub(super) fn unusable(certificate: &[u8], key: &[u8]) -> Option<String> {
    let found = blocks(certificate);
    let Some((_, certificate)) = found.iter().find(|(kind, _)| kind == "CERTIFICATE") else {
        return Some(match kinds(&found).as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [one] if one.ends_with("PRIVATE KEY") => {
                "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may \
                 have been switched"
                    .to_owned()
            }
            others => format!(
                "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the \
                 following types: [{}]",
                others.join(" ")
            ),
        });
    };
    let found = blocks(key);
    if let Some((_, key)) = found.iter().find(|(kind, _)| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY")) {
        return match certificate::public_key(certificate) {
            Ok(public) => private_key::misfit(&public, key),
            Err(why) => Some(why),
        }
        .map(str::to_owned);
    }
    Some(match kinds(&found).as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if *one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            others.join(" ")
        ),
    })
}

fn kinds(blocks: &[(String, Vec<u8>)]) -> Vec<&str> {
    blocks.iter().map(|(kind, _)| kind.as_str()).collect()
}

/// The blocks in a PEM file, in their order, each with its kind.
fn blocks(pem: &[u8]) -> Vec<(String, Vec<u8>)> {
    let text = String::from_utf8_lossy(pem);
    let mut found = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines().map(str::trim_end) {
        let between = |head: &str| line.strip_prefix(head).and_then(|rest| rest.strip_suffix("-----"));
        if let Some(kind) = between("-----BEGIN ") {
            open = Some((kind, String::new()));
        } else if let Some(kind) = between("-----END ") {
            let whole = open.take().filter(|(begun, _)| *begun == kind);
            found.extend(whole.and_then(|(kind, body)| Some((kind.to_owned(), STANDARD.decode(body).ok()?))));
        } else if let Some((_, body)) = &mut open
            && !line.contains(':')
        {
            body.push_str(line.trim());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";
    const KEY: &[u8] = b"-----BEGIN EC PRIVATE KEY-----\nAAEC\n-----END EC PRIVATE KEY-----\n";

    fn pair(algorithm: &'static rcgen::SignatureAlgorithm) -> (String, String) {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let certificate = rcgen::CertificateParams::new(["podinfo".to_owned()]).unwrap().self_signed(&key).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    #[test]
    fn what_is_wrapped_wrongly_is_noticed() {
        for (certificate, key, why) in [
            (&b"x"[..], KEY, "tls: failed to find any PEM data in certificate input"),
            (CERTIFICATE, &b""[..], "tls: failed to find any PEM data in key input"),
            (CERTIFICATE, CERTIFICATE, "tls: found a certificate rather than a key in the PEM for the private key"),
            (CERTIFICATE, KEY, "x509: malformed certificate"),
        ] {
            assert_eq!(unusable(certificate, key).as_deref(), Some(why));
        }
        assert!(unusable(KEY, CERTIFICATE).is_some_and(|why| why.ends_with("PEM inputs may have been switched")));
    }

    #[test]
    fn a_key_must_be_the_one_to_its_certificate() {
        let said = |certificate: &str, key: &str| unusable(certificate.as_bytes(), key.as_bytes());
        let (misfit, other_kind) =
            ("tls: private key does not match public key", "tls: private key type does not match public key type");
        let (edwards, edwards_key) = pair(&PKCS_ED25519);
        for algorithm in [&PKCS_ECDSA_P256_SHA256, &PKCS_ECDSA_P384_SHA384, &PKCS_ED25519] {
            let ((certificate, key), (_, another)) = (pair(algorithm), pair(algorithm));
            assert_eq!(said(&certificate, &key), None, "{algorithm:?}");
            assert_eq!(said(&certificate, &another).as_deref(), Some(misfit), "{algorithm:?}");
            if *algorithm != PKCS_ED25519 {
                assert_eq!(said(&certificate, &edwards_key).as_deref(), Some(other_kind));
                assert_eq!(said(&edwards, &key).as_deref(), Some(other_kind));
            }
        }
        let (certificate, _) = pair(&PKCS_ED25519);
        let why = unusable(certificate.as_bytes(), KEY);
        assert_eq!(why.as_deref(), Some("tls: failed to parse private key"));
    }
}
