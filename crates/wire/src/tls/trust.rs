//! Owns the decision whether a server's certificate is trusted. Start reading at [`Trust`].

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Who is trusted.
#[derive(Debug)]
pub(super) struct Trust {
    /// Checks the chain up to an authority, the name, and the time; none: every certificate will do.
    pub(super) chain: Option<Arc<WebPkiServerVerifier>>,
    /// Certificates that were given by name: one that a server presents itself is trusted, though it is
    /// an authority's. `openssl req -x509` makes such ones, and curl and browsers take them.
    pub(super) given: Vec<CertificateDer<'static>>,
    /// Signatures of the handshake are checked always: whoever is trusted, the server has the key of
    /// the certificate that it shows.
    pub(super) algorithms: WebPkiSupportedAlgorithms,
}

impl Trust {
    fn is_given(&self, error: &Error, certificate: &CertificateDer<'_>) -> bool {
        // webpki says this after it has found the time valid, and before it looks at names.
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
            // A certificate of the issuer's name is trusted (`localhost`, mostly), and is another one: this
            // one is self-signed, or of someone else. Whether the server has its key is asked later.
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

/// What webpki said, where rustls has no word of its own for it.
pub(super) fn webpki_error(error: &Error) -> Option<&webpki::Error> {
    match error {
        Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            inner.downcast_ref()
        }
        _ => None,
    }
}
