//! Owns the reasons why a server cannot be started, asked or ended, in words with the way out. Start reading at
//! [`ServerError`].

use std::io;
use std::path::PathBuf;

use units::Nanos;

use crate::adapters::AdapterError;

/// Why a server could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot be configured as asked.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A file or folder could not be made ready for it.
    #[error("{server} cannot be started: {what} {}: {source}", path.display())]
    Files {
        /// Name of the adapter.
        server: &'static str,
        /// What was tried ("writing").
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The server's account cannot reach a folder.
    #[error(
        "{server} cannot be started: it runs as `{user}`, which cannot enter {}; use a folder below \
         /tmp, or: chmod o+x {}", path.display(), path.display()
    )]
    Closed {
        /// Name of the adapter.
        server: &'static str,
        /// The account.
        user: String,
        /// The folder.
        path: PathBuf,
    },
    /// The system refused to start it.
    #[error("{server} cannot be started: {}: {source}", program.display())]
    Spawn {
        /// Name of the adapter.
        server: &'static str,
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The host name of a server elsewhere cannot be resolved.
    #[error("{server}: cannot resolve {authority}: {source}; check the name")]
    NoSuchHost {
        /// Name of the adapter.
        server: &'static str,
        /// Host and port.
        authority: String,
        /// Why not.
        source: io::Error,
    },
    /// Its settings fix a port that another program holds.
    #[error(
        "{server} cannot be started: port {port} of 127.0.0.1 is taken; `ss -ltnp 'sport = :{port}'` \
         shows the owner. End it, or use another port"
    )]
    PortTaken {
        /// Name of the adapter.
        server: &'static str,
        /// The port.
        port: u16,
    },
    /// It ended before it answered.
    #[error("{server} ended before it answered ({how}); the end of its log:\n{log_tail}")]
    Died {
        /// Name of the adapter.
        server: &'static str,
        /// Its exit status.
        how: String,
        /// Last lines of its log.
        log_tail: String,
    },
    /// The process that was started ended without an error, but others of the server still run: they can be neither
    /// watched nor ended.
    #[error(
        "{server} went to the background: the process that was started ended ({how}) before it answered, and \
         {left} of its processes ran on. Keep it in the foreground, as with nginx -g 'daemon off;', lighttpd \
         -D, apache2 -DFOREGROUND, or a flag such as --foreground"
    )]
    WentToBackground {
        /// Name of the adapter.
        server: &'static str,
        /// Exit status of the process that was started.
        how: String,
        /// Number of processes that still run.
        left: usize,
    },
    /// The caller interrupted the start.
    #[error("{server}: interrupted while it was started")]
    Interrupted {
        /// Name of the adapter.
        server: &'static str,
    },
    /// It did not answer in time.
    #[error(
        "{server} did not answer with status 200 within {waited}: {last}; the end of its log:\n{log_tail}"
    )]
    NotReady {
        /// Name of the adapter.
        server: &'static str,
        /// How long it had.
        waited: Nanos,
        /// The result of the last look.
        last: String,
        /// Last lines of its log.
        log_tail: String,
    },
    /// Something of it is still there.
    #[error("{server} was ended, but {what} remains: end it by hand")]
    Left {
        /// Name of the adapter.
        server: &'static str,
        /// Processes or the port.
        what: String,
    },
}

impl ServerError {
    /// Last lines of the server's log, if it had one.
    pub fn log_tail(&self) -> &str {
        match self {
            Self::Died { log_tail, .. } | Self::NotReady { log_tail, .. } => log_tail,
            _ => "",
        }
    }
}
