//! Whether a certificate and a key are what they should be, in the words of Go's TLS library.
//!
//! Only their wrapping is looked at: what is in a certificate, and whether the key is the one to it, is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Why a certificate and its key cannot be used.
pub(super) fn unusable(certificate: &[u8], key: &[u8]) -> Option<String> {
    let found = blocks(certificate);
    if !found.iter().any(|kind| kind == "CERTIFICATE") {
        return Some(match found.as_slice() {
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
    }
    let found = blocks(key);
    if found.iter().any(|kind| kind == "PRIVATE KEY" || kind.ends_with(" PRIVATE KEY")) {
        return None;
    }
    Some(match found.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == "CERTIFICATE" => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        others => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of \
             the following types: [{}]",
            others.join(" ")
        ),
    })
}

/// The kinds of the blocks in a PEM file, in their order.
fn blocks(pem: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(pem);
    let mut found = Vec::new();
    let mut open: Option<(&str, String)> = None;
    for line in text.lines().map(str::trim_end) {
        let between = |head: &str| line.strip_prefix(head).and_then(|rest| rest.strip_suffix("-----"));
        if let Some(kind) = between("-----BEGIN ") {
            open = Some((kind, String::new()));
        } else if let Some(kind) = between("-----END ") {
            let whole = open.take().filter(|(begun, body)| *begun == kind && STANDARD.decode(body).is_ok());
            found.extend(whole.map(|(kind, _)| kind.to_owned()));
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
    use super::*;

    const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----\nAAEC\n-----END CERTIFICATE-----\n";
    const KEY: &[u8] = b"-----BEGIN EC PRIVATE KEY-----\nAAEC\n-----END EC PRIVATE KEY-----\n";

    #[test]
    fn what_is_wrapped_wrongly_is_noticed() {
        assert_eq!(unusable(CERTIFICATE, KEY), None);
        for (certificate, key, why) in [
            (&b"x"[..], KEY, "tls: failed to find any PEM data in certificate input"),
            (CERTIFICATE, &b""[..], "tls: failed to find any PEM data in key input"),
            (CERTIFICATE, CERTIFICATE, "tls: found a certificate rather than a key in the PEM for the private key"),
        ] {
            assert_eq!(unusable(certificate, key).as_deref(), Some(why));
        }
        assert!(unusable(KEY, CERTIFICATE).is_some_and(|why| why.ends_with("PEM inputs may have been switched")));
    }
}
