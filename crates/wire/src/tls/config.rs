//! Owns what all TLS connections of a load have in common. Start reading at [`TlsClientConfig::new`].

use std::sync::Arc;

use rustls::client::{ClientConfig, Resumption as Store, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::{RootCertStore, SupportedProtocolVersion, version};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use super::fault::{PemFile, TlsConfigError, holds};
use super::sessions::{KeepOnly, SessionTotals, Sessions};
use super::trust::Trust;

/// TLS 1.3 tickets that are kept for each server, unless [`TlsClientConfig::with_own_sessions`] sets another number.
pub const SESSIONS_MAX_DEFAULT: usize = 256;

/// Versions of TLS that are offered.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// 1.2 and 1.3.
    #[default]
    Both,
    /// 1.2 only.
    Only12,
    /// 1.3 only.
    Only13,
}

impl Versions {
    pub(super) fn offered(self) -> Vec<&'static SupportedProtocolVersion> {
        match self {
            Self::Both => vec![&version::TLS13, &version::TLS12],
            Self::Only12 => vec![&version::TLS12],
            Self::Only13 => vec![&version::TLS13],
        }
    }
}

/// Whether a connection offers to resume a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resumption {
    /// Offers a stored session, if there is one; the server may still decline.
    Offer,
    /// A full handshake, like that of a client that is new to the server. Its tickets are kept for connections that
    /// offer.
    Fresh,
}

/// The requested options. Files are given by their contents (PEM); their readers know the names.
#[derive(Default, Clone)]
pub struct TlsOptions {
    /// The only certificates that are trusted: authorities, or the server's own. `None`: the authorities of this
    /// machine (or of `SSL_CERT_FILE` and `SSL_CERT_DIR`).
    pub ca_pem: Option<Vec<u8>>,
    /// Any certificate is accepted, for any name, at any time. `ca_pem` is then ignored.
    pub insecure: bool,
    /// The client's certificate with its intermediate certificates.
    pub client_cert_pem: Option<Vec<u8>>,
    /// Its key: PKCS#8, PKCS#1 or SEC1, not encrypted. Both or neither are given.
    pub client_key_pem: Option<Vec<u8>>,
    /// Protocols that ALPN offers ("http/1.1"), the preferred first; empty: no ALPN.
    pub alpn: Vec<String>,
    /// Versions that are offered.
    pub tls_versions: Versions,
}

impl std::fmt::Debug for TlsOptions {
    /// Leaves out the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions")
            .field("ca_pem", &self.ca_pem.is_some())
            .field("insecure", &self.insecure)
            .field("client_cert_pem", &self.client_cert_pem.is_some())
            .field("client_key_pem", &self.client_key_pem.is_some())
            .field("alpn", &self.alpn)
            .field("tls_versions", &self.tls_versions)
            .finish()
    }
}

/// What all connections of a load have in common. Cheap to clone; clones share their sessions.
#[derive(Debug, Clone)]
pub struct TlsClientConfig {
    sessions: Arc<Sessions>,
    offer: Arc<ClientConfig>,
    fresh: Arc<ClientConfig>,
}

impl TlsClientConfig {
    /// Reads certificates and keys, once per load: milliseconds with the authorities of the machine.
    ///
    /// # Errors
    /// [`TlsConfigError`]: something cannot be used; the text says what, and the remedy.
    pub fn new(options: &TlsOptions) -> Result<Self, TlsConfigError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let trust = Arc::new(trust(options, &provider)?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&options.tls_versions.offered())
            .expect("aws-lc-rs has suites for TLS 1.2 and for TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(trust);
        let mut config = match client_identity(options)? {
            None => builder.with_no_client_auth(),
            Some((chain, key)) => {
                let refused = |error| {
                    TlsConfigError::of_identity(PemFile::ClientCert, PemFile::ClientKey, error)
                };
                builder.with_client_auth_cert(chain, key).map_err(refused)?
            }
        };
        config.alpn_protocols = alpn(&options.alpn)?;
        Ok(Self::around(&config, SESSIONS_MAX_DEFAULT))
    }

    /// The same, but with its own empty session store: for one thread, so that threads do not wait for each other and
    /// resumption does not depend on how they interleave. `tickets_max`, at least 1, limits the TLS 1.3 tickets for
    /// each server; connections that are opened at the same time need one each. A ticket takes 1 to 5 KB, including the
    /// server's certificates.
    #[must_use]
    pub fn with_own_sessions(&self, tickets_max: usize) -> Self {
        Self::around(&self.fresh, tickets_max.max(1))
    }

    /// Pays a cost now that the first handshake of this thread would otherwise add to the server's time: aws-lc gathers
    /// randomness for each thread on first use, 30 to 150 ms.
    pub fn warm_up(&self) {
        let provider = self.fresh.crypto_provider();
        // Without randomness the handshake fails with its own message.
        let _ = provider.secure_random.fill(&mut [0; 32]);
        for group in &provider.kx_groups {
            let _ = group.start();
        }
    }

    /// Counts of sessions, over all connections of this store.
    pub fn session_totals(&self) -> SessionTotals {
        self.sessions.totals()
    }

    /// Two configurations that share everything except what they offer. rustls resumes a session only with the same
    /// verifier and client certificate objects, compared by address, with which it was made.
    fn around(config: &ClientConfig, tickets_max: usize) -> Self {
        let sessions = Arc::new(Sessions::new(tickets_max));
        let mut offer = config.clone();
        offer.resumption = Store::store(Arc::clone(&sessions) as _);
        let mut fresh = config.clone();
        fresh.resumption = Store::store(Arc::new(KeepOnly(Arc::clone(&sessions))));
        Self { sessions, offer: Arc::new(offer), fresh: Arc::new(fresh) }
    }

    pub(super) fn of(&self, resumption: Resumption) -> &Arc<ClientConfig> {
        match resumption {
            Resumption::Offer => &self.offer,
            Resumption::Fresh => &self.fresh,
        }
    }
}

fn trust(options: &TlsOptions, provider: &Arc<CryptoProvider>) -> Result<Trust, TlsConfigError> {
    let algorithms = provider.signature_verification_algorithms;
    if options.insecure {
        return Ok(Trust { chain: None, given: vec![], algorithms });
    }
    let (roots, given) = match &options.ca_pem {
        Some(pem) => given_roots(pem)?,
        None => (machine_roots()?, vec![]),
    };
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .expect("there are roots, and no revocation lists");
    Ok(Trust { chain: Some(chain), given, algorithms })
}

fn given_roots(
    pem: &[u8],
) -> Result<(RootCertStore, Vec<CertificateDer<'static>>), TlsConfigError> {
    let given = certificates(pem, PemFile::Authority)?;
    let mut roots = RootCertStore::empty();
    for certificate in &given {
        // Strict, unlike for the machine's authorities: each of these was named on purpose.
        roots
            .add(certificate.clone())
            .map_err(|error| TlsConfigError::unusable(PemFile::Authority, error))?;
    }
    Ok((roots, given))
}

fn machine_roots() -> Result<RootCertStore, TlsConfigError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Unreadable old authorities are common, and no reason to fail.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or("none found".to_owned(), ToString::to_string);
        return Err(TlsConfigError::NoMachineAuthorities { why });
    }
    Ok(roots)
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn client_identity(options: &TlsOptions) -> Result<Option<Identity>, TlsConfigError> {
    match (&options.client_cert_pem, &options.client_key_pem) {
        (None, None) => Ok(None),
        (Some(_), None) => Err(TlsConfigError::CertificateWithoutKey),
        (None, Some(_)) => Err(TlsConfigError::KeyWithoutCertificate),
        (Some(chain), Some(key)) => Ok(Some((
            certificates(chain, PemFile::ClientCert)?,
            private_key(key, PemFile::ClientKey)?,
        ))),
    }
}

/// The certificates of a file, at least one.
pub(super) fn certificates(
    pem: &[u8],
    file: PemFile,
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match read {
        Ok(found) if found.is_empty() => Err(TlsConfigError::nothing_in(file, pem)),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsConfigError::unreadable(file, &error)),
    }
}

/// The first key of a file.
pub(super) fn private_key(
    pem: &[u8],
    file: PemFile,
) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    PrivateKeyDer::from_pem_slice(pem).map_err(|error| match error {
        pem::Error::NoItemsFound => TlsConfigError::nothing_in(file, pem),
        // OpenSSL's format before PKCS#8 (RFC 1421): header fields in place of base64.
        _ if holds(pem, b"Proc-Type: 4,ENCRYPTED") => TlsConfigError::nothing_in(file, pem),
        error => TlsConfigError::unreadable(file, &error),
    })
}

/// Protocol names, checked.
pub(super) fn alpn(names: &[String]) -> Result<Vec<Vec<u8>>, TlsConfigError> {
    let bytes = |name: &String| match name.len() {
        1..=255 => Ok(name.as_bytes().to_vec()),
        _ => Err(TlsConfigError::Alpn(name.clone())),
    };
    names.iter().map(bytes).collect()
}
