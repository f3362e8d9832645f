//! The server's certificates: read at the start, and again when their files have changed. Owns the files; see
//! also `wire::tls`. Start reading at [`Tls::accept`].
//!
//! Files are looked at once a second at most, and only when somebody connects: a stat of each, which is little beside a
//! handshake. Every process does so for itself, so that all models behave alike. A new certificate whose key is not
//! there yet does no harm: the old one is used until both match.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use wire::tls::{
    Identities, PemIdentity, TicketKeys, TlsServer, TlsServerConfig, TlsServerOptions, Versions,
};

use crate::SiteError;
use crate::config::{CertificateFiles, MinVersion, TlsConfig};

/// What all TLS connections of a server share.
#[derive(Debug)]
pub struct Tls {
    config: TlsServerConfig,
    files: Vec<CertificateFiles>,
    /// The second in which the files were last looked at.
    looked_s: AtomicU64,
    /// The stamps of the files when they were last read.
    seen: Mutex<Vec<FileStamp>>,
}

/// What identifies the version of a file that was read; `None`: it is not there.
type FileStamp = Option<[i64; 5]>;

impl Tls {
    /// Reads the certificates. Forked processes share the keys of `tickets`.
    ///
    /// # Errors
    /// Which file cannot be read or used, and why.
    pub fn open(
        config: &TlsConfig,
        tickets: &TicketKeys,
        now_s: fn() -> u64,
    ) -> Result<Self, SiteError> {
        let seen = stamps(&config.certificate);
        let identities = if config.self_signed {
            let pem = wire::tls::self_signed(&["localhost"]).map_err(SiteError::Tls)?;
            Identities::new(&[pem]).map_err(|(_, error)| SiteError::Tls(error.to_string()))
        } else {
            read(&config.certificate).map_err(within)
        }?;
        let options = TlsServerOptions {
            versions: match config.min_version {
                MinVersion::Tls12 => Versions::Both,
                MinVersion::Tls13 => Versions::Only13,
            },
            alpn: ["http/1.1", "http/1.0"].map(str::to_owned).to_vec(),
            tickets: config.session_tickets.then(|| tickets.clone()),
            sessions_max: config.session_cache as usize,
        };
        let shared = TlsServerConfig::new(&options, identities)
            .map_err(|error| SiteError::Tls(error.to_string()))?;
        Ok(Self {
            config: shared,
            files: config.certificate.clone(),
            looked_s: AtomicU64::new(now_s()),
            seen: Mutex::new(seen),
        })
    }

    /// Every problem with the certificates.
    pub(crate) fn check(config: &TlsConfig) -> Vec<SiteError> {
        let each = config.certificate.iter().map(|files| read(std::slice::from_ref(files)).err());
        let each: Vec<_> = each.flatten().collect();
        if !each.is_empty() {
            return each.into_iter().map(within).collect();
        }
        Self::open(config, &TicketKeys::new(|| 0), || 0).err().into_iter().collect()
    }

    /// The TLS of a connection that was accepted in this second; `failed` hears why changed files are not used.
    pub fn accept(&self, now_s: u64, failed: impl FnOnce(&str)) -> TlsServer {
        if self.looked_s.swap(now_s, Relaxed) != now_s
            && let Err(reason) = self.read_again()
        {
            failed(&reason);
        }
        TlsServer::new(&self.config)
    }

    /// Reads the files if one of them has changed since, once for each change.
    fn read_again(&self) -> Result<(), String> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamps(&self.files);
        if *seen == now {
            return Ok(());
        }
        *seen = now;
        let identities = read(&self.files).map_err(|reason| {
            format!("{reason}; the server goes on with the certificates that it has")
        })?;
        self.config.replace(identities);
        Ok(())
    }
}

fn within(reason: String) -> SiteError {
    SiteError::Tls(format!("[[tls.certificate]]: {reason}"))
}

fn stamps(files: &[CertificateFiles]) -> Vec<FileStamp> {
    let of = |path: &Path| {
        let facts = fs::metadata(path).ok()?;
        let [dev, ino, size] = [facts.dev(), facts.ino(), facts.size()].map(u64::cast_signed);
        Some([dev, ino, size, facts.mtime(), facts.mtime_nsec()])
    };
    files.iter().flat_map(|files| [of(&files.chain), of(&files.key)]).collect()
}

/// The certificates of these files, or why they cannot be used.
fn read(files: &[CertificateFiles]) -> Result<Identities, String> {
    let pem = |files: &CertificateFiles| {
        Ok(PemIdentity { chain: content(&files.chain)?, key: content(&files.key)? })
    };
    let given = files.iter().map(pem).collect::<Result<Vec<_>, String>>()?;
    Identities::new(&given).map_err(|(at, error)| {
        let CertificateFiles { chain, key } = &files[at];
        format!(
            "cannot use the certificate {} with the key {}: {error}",
            chain.display(),
            key.display()
        )
    })
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => ": check the path",
            io::ErrorKind::PermissionDenied => ": check its permissions with `namei -l`",
            _ => "",
        };
        format!("cannot read {}: {error}{hint}", path.display())
    })
}
