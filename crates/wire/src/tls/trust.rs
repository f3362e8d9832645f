//! Owns the decision whether a server's certificate is trusted. Start reading at [`Trust`].

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// What is trusted.
#[derive(Debug)]
pub(super) struct Trust {
    /// Checks the chain up to an authority, the name, and the time; `None`: every certificate is accepted.
    pub(super) chain: Option<Arc<WebPkiServerVerifier>>,
    /// Explicitly given certificates: one that the server presents itself is trusted, even if it is an authority's.
    /// `openssl req -x509` makes such certificates, and curl and browsers accept them.
    pub(super) given: Vec<CertificateDer<'static>>,
    /// Signatures of the handshake are always checked: whatever is trusted, the server has the key of the certificate
    /// that it presents.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    fn is_given(&self, error: &Error, certificate: &CertificateDer<'_>) -> bool {
        // webpki reports this after it has accepted the validity time, and before it checks names.
        webpki_error(error) == Some(&webpki::Error::CaUsedAsEndEntity)
            && self.given.iter().any(|given| given == certificate)
    }
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            Err(error) if self.is_given(&error, end_entity) => {
                let parsed = ParsedCertificate::try_from(end_entity)?;
                rustls::client::verify_server_name(&parsed, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            // A trusted certificate has the issuer's name (mostly `localhost`), but is a different one: the presented
            // one is self-signed, or of someone else. Whether the server has its key is checked later.
            Err(Error::InvalidCertificate(CertificateError::BadSignature)) => {
                Err(Error::InvalidCertificate(CertificateError::UnknownIssuer))
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// webpki's error, if rustls has no equivalent for it.
pub(super) fn webpki_error(error: &Error) -> Option<&webpki::Error> {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            inner.downcast_ref()
        }
        _ => None,
    }
}
