//! Owns which certificate a server presents to a client. Start reading at [`Identities::chosen`].

use std::collections::HashMap;
use std::sync::Arc;

use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs;
use rustls::sign::CertifiedKey;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use super::config::{certificates, private_key};
use super::fault::{PemFile, TlsConfigError};

/// A certificate chain and its key, as PEM.
#[derive(Clone)]
pub struct PemIdentity {
    /// The server's own certificate first, then the intermediate ones.
    pub chain: Vec<u8>,
    /// PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for PemIdentity {
    /// Leaves out the key.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemIdentity").field("chain", &self.chain.len()).finish_non_exhaustive()
    }
}

/// The certificates of a server, by their names.
#[derive(Debug)]
pub struct Identities {
    /// For a client that names no server, or an unknown one.
    first: Arc<CertifiedKey>,
    /// Names in lower case; several certificates with one name differ in the kind of their key.
    exact: HashMap<String, Vec<Arc<CertifiedKey>>>,
    /// By the part after `*.`, where `*` is one label (RFC 9525, 6.3).
    wildcard: HashMap<String, Vec<Arc<CertifiedKey>>>,
}

impl Identities {
    /// Reads them; the first is presented if no name matches.
    ///
    /// # Errors
    /// The index of the unusable one, from 0, and the reason.
    pub fn new(given: &[PemIdentity]) -> Result<Self, (usize, TlsConfigError)> {
        let mut all = None;
        for (at, pem) in given.iter().enumerate() {
            let (key, names) = read(pem).map_err(|error| (at, error))?;
            all.get_or_insert_with(|| Self::around(&key)).add(&key, names);
        }
        let nothing = TlsConfigError::nothing_in(PemFile::ServerCert, b"");
        all.ok_or((0, nothing))
    }

    fn around(first: &Arc<CertifiedKey>) -> Self {
        Self { first: Arc::clone(first), exact: HashMap::new(), wildcard: HashMap::new() }
    }

    fn add(&mut self, key: &Arc<CertifiedKey>, names: Vec<String>) {
        for name in names {
            let keys = match name.strip_prefix("*.") {
                Some(parent) => self.wildcard.entry(parent.to_owned()),
                None => self.exact.entry(name),
            };
            keys.or_default().push(Arc::clone(key));
        }
    }

    /// The certificate for the requested name, with a key whose signature the client accepts: exact
    /// names before wildcards, earlier certificates before later ones.
    pub(super) fn chosen(
        &self,
        name: Option<&str>,
        schemes: &[SignatureScheme],
    ) -> Arc<CertifiedKey> {
        let fits = |keys: &&Arc<CertifiedKey>| keys.key.choose_scheme(schemes).is_some();
        let find = |name: &str| {
            let parent = name.split_once('.').map(|(_, parent)| parent);
            let exact = self.exact.get(name).into_iter();
            let wildcard = parent.and_then(|parent| self.wildcard.get(parent)).into_iter();
            exact.chain(wildcard).flatten().find(fits)
        };
        // rustls has converted the name to lower case.
        Arc::clone(name.and_then(find).unwrap_or(&self.first))
    }
}

/// A key with its chain, and the names of its certificate.
fn read(pem: &PemIdentity) -> Result<(Arc<CertifiedKey>, Vec<String>), TlsConfigError> {
    let chain = certificates(&pem.chain, PemFile::ServerCert)?;
    let key = private_key(&pem.key, PemFile::ServerKey)?;
    let names = names(&chain[0])?;
    let provider = aws_lc_rs::default_provider();
    let key = CertifiedKey::from_der(chain, key, &provider).map_err(|error| {
        TlsConfigError::of_identity(PemFile::ServerCert, PemFile::ServerKey, error)
    })?;
    Ok((Arc::new(key), names))
}

fn names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, TlsConfigError> {
    let read = EndEntityCert::try_from(certificate).map_err(|error| TlsConfigError::Unusable {
        file: PemFile::ServerCert,
        why: format!("no X.509 that can be read ({error})"),
    })?;
    Ok(read.valid_dns_names().map(str::to_ascii_lowercase).collect())
}
