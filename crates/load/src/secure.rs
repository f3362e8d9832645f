//! TLS of one thread: whom to trust, which handshakes offer to resume, and their results. Owns the choice and the
//! counts. Start reading at [`Secure::client`].

use std::path::{Path, PathBuf};

use record::{LoadPlan, TlsPlan, TlsUse, TlsVersions};
use wire::tls::{
    Handshake, Resumption, TlsClient, TlsClientConfig, TlsConfigError, TlsError, TlsOptions,
    Versions,
};

/// Why no connection could be made with TLS at all.
#[derive(Debug, thiserror::Error)]
pub enum TlsSetupError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; it must hold PEM", path.display())]
    File {
        /// As planned.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// What is in the files cannot be used.
    #[error(transparent)]
    Config(#[from] TlsConfigError),
}

/// What all threads share; `None` if TLS is not used. Users may meet TLS anywhere.
///
/// # Errors
/// [`TlsSetupError`].
pub(crate) fn config(
    plan: &LoadPlan,
    has_users: bool,
) -> Result<Option<TlsClientConfig>, TlsSetupError> {
    if !has_users && plan.origins.iter().all(|origin| origin.tls_name.is_none()) {
        return Ok(None);
    }
    let TlsPlan { ca, insecure, client, versions, .. } = &plan.tls;
    let read = |path: &Path| {
        std::fs::read(path).map_err(|source| TlsSetupError::File { path: path.to_owned(), source })
    };
    let options = TlsOptions {
        ca_pem: ca.as_deref().map(read).transpose()?,
        insecure: *insecure,
        client_cert_pem: client.as_ref().map(|(cert, _)| read(cert)).transpose()?,
        client_key_pem: client.as_ref().map(|(_, key)| read(key)).transpose()?,
        alpn: vec!["http/1.1".to_owned()],
        tls_versions: match versions {
            TlsVersions::Both => Versions::Both,
            TlsVersions::Only12 => Versions::Only12,
            TlsVersions::Only13 => Versions::Only13,
        },
    };
    Ok(Some(TlsClientConfig::new(&options)?))
}

/// Whether TLS can begin as planned: its files are there and make sense. Nothing is sent.
///
/// # Errors
/// What is wrong with them.
pub fn check_tls(plan: &LoadPlan) -> Result<(), TlsSetupError> {
    config(plan, plan.follow > 0).map(drop)
}

/// TLS of one thread.
pub(crate) struct Secure {
    config: TlsClientConfig,
    /// Share of handshakes that offer to resume, and the fraction left over from earlier ones. So the share is kept
    /// exactly and evenly, without randomness.
    resume: f64,
    owed: f64,
    counts: TlsUse,
}

impl Secure {
    /// For a thread with `n_slots` connections and its own sessions. It is made on its own thread, before the load
    /// begins.
    pub(crate) fn new(config: &TlsClientConfig, resume: f64, n_slots: u32) -> Self {
        // A new connection takes a ticket and brings two, so that there are enough for all connections that are
        // opened at once.
        let config = config.with_own_sessions(2 * n_slots.clamp(1, 10_000) as usize);
        config.warm_up();
        Self { config, resume, owed: 0.0, counts: TlsUse::default() }
    }

    /// The client's side of a new connection.
    ///
    /// # Errors
    /// No certificate can be valid for that name.
    pub(crate) fn client(&mut self, name: &str) -> Result<Box<TlsClient>, TlsError> {
        self.owed += self.resume;
        let resumption = if self.owed >= 1.0 {
            self.owed -= 1.0;
            Resumption::Offer
        } else {
            Resumption::Fresh
        };
        TlsClient::new(&self.config, name, resumption).map(Box::new)
    }

    /// A handshake is done; says which it was.
    pub(crate) fn handshaken(&mut self, client: &TlsClient) -> Handshake {
        let handshake = client.handshake().unwrap_or(Handshake::Full);
        let counts = &mut self.counts;
        match handshake {
            Handshake::Full => counts.full += 1,
            Handshake::Resumed => counts.resumed += 1,
        }
        if counts.version.is_empty() {
            client.version().unwrap_or_default().clone_into(&mut counts.version);
            client.cipher_suite().unwrap_or_default().clone_into(&mut counts.cipher_suite);
            client.group().unwrap_or_default().clone_into(&mut counts.group);
            counts.certificate_bits = client.certificate_bits();
            counts.alpn = String::from_utf8_lossy(client.alpn().unwrap_or_default()).into_owned();
        }
        handshake
    }

    /// A connection failed in TLS; the first reason is kept.
    pub(crate) fn failed(&mut self, error: &TlsError) {
        self.counts.failure.get_or_insert_with(|| error.to_string());
    }

    /// The counts of all handshakes.
    pub(crate) fn counts(self) -> TlsUse {
        self.counts
    }
}

/// Adds what another thread counted.
pub(crate) fn merge(sum: &mut TlsUse, more: &TlsUse) {
    sum.full += more.full;
    sum.resumed += more.resumed;
    if sum.version.is_empty() {
        sum.version.clone_from(&more.version);
        sum.cipher_suite.clone_from(&more.cipher_suite);
        sum.group.clone_from(&more.group);
        sum.certificate_bits = more.certificate_bits;
        sum.alpn.clone_from(&more.alpn);
    }
    if sum.failure.is_none() {
        sum.failure.clone_from(&more.failure);
    }
}
