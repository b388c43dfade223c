//! TLS of outgoing connections: rustls with ring and the machine's own roots.
//!
//! Roots are read when the first https connection needs them. Accepting any certificate is possible per request and never
//! the default; the handshake's signatures are checked even then.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_rustls::TlsConnector;
use url::Host;

use super::{HttpError, Stream};

/// Configurations, made once.
#[derive(Clone, Default)]
pub(super) struct Tls {
    strict: Arc<OnceLock<Arc<ClientConfig>>>,
    insecure: Arc<OnceLock<Arc<ClientConfig>>>,
}

impl Tls {
    /// Uses these roots and no others.
    #[cfg(test)]
    pub(super) fn trusting(roots: RootCertStore) -> Self {
        let tls = Self::default();
        tls.strict.get_or_init(|| Arc::new(strict(roots).unwrap()));
        tls
    }

    /// Starts TLS on a connection.
    pub(super) async fn secure(&self, stream: Stream, host: &Host<&str>, insecure: bool) -> Result<Stream, HttpError> {
        let name = match host {
            Host::Domain(name) => ServerName::try_from((*name).to_owned()).map_err(|_| HttpError::Url)?,
            Host::Ipv4(address) => ServerName::from(std::net::IpAddr::V4(*address)),
            Host::Ipv6(address) => ServerName::from(std::net::IpAddr::V6(*address)),
        };
        let config = self.config(insecure).map_err(|error| HttpError::Tls(error.to_string()))?;
        let secured = TlsConnector::from(config).connect(name, stream).await.map_err(|error| {
            let reason = error.get_ref().and_then(|source| source.downcast_ref::<rustls::Error>());
            HttpError::Tls(reason.map_or_else(|| error.kind().to_string(), reason_text))
        })?;
        Ok(Box::new(secured))
    }

    fn config(&self, insecure: bool) -> Result<Arc<ClientConfig>, rustls::Error> {
        let cell = if insecure { &self.insecure } else { &self.strict };
        if let Some(config) = cell.get() {
            return Ok(config.clone());
        }
        let config = if insecure { accept_any()? } else { strict(system_roots())? };
        Ok(cell.get_or_init(|| Arc::new(config)).clone())
    }
}

/// The reason without what the other side's certificate says of itself.
fn reason_text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            rustls::CertificateError::UnknownIssuer => "certificate signed by unknown authority".into(),
            rustls::CertificateError::Expired | rustls::CertificateError::ExpiredContext { .. } => {
                "certificate has expired".into()
            }
            rustls::CertificateError::NotValidForName | rustls::CertificateError::NotValidForNameContext { .. } => {
                "certificate is for another name".into()
            }
            _ => "certificate is not valid".into(),
        },
        rustls::Error::AlertReceived(alert) => format!("alert {alert:?}"),
        _ => "handshake failed".into(),
    }
}

fn system_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be read costs the hosts it stands for, not all the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn strict(roots: RootCertStore) -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn accept_any() -> Result<ClientConfig, rustls::Error> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let verifier = Arc::new(AcceptAny(provider()));
    Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
}

/// Believes every certificate.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
