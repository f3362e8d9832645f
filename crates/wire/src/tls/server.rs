//! Owns one TLS connection of a server, and what all of them have in common. Start reading at
//! [`TlsServer::feed`].

use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::aws_lc_rs;
use rustls::server::{
    ClientHello, NoServerSessionStorage, ResolvesServerCert, ServerConfig, ServerSessionMemoryCache,
};
use rustls::sign::CertifiedKey;
use rustls::{AlertDescription, Error, HandshakeKind, ServerConnection};

use super::client::{Handshake, TlsEvent};
use super::config::{Versions, alpn};
use super::fault::TlsConfigError;
use super::identity::Identities;
use super::records::{self, Unfed};
use super::tickets::TicketKeys;

/// The TLS settings of a server, besides its certificates.
#[derive(Debug, Clone)]
pub struct TlsServerOptions {
    /// Versions that are accepted.
    pub versions: Versions,
    /// Protocols that ALPN may choose, the preferred first. A client that offers none of them is rejected (RFC 7301,
    /// 3.2); one without ALPN is not.
    pub alpn: Vec<String>,
    /// The keys of tickets, with which no server has to remember sessions; `None`: clients get no tickets.
    pub tickets: Option<TicketKeys>,
    /// Number of sessions that are kept in memory, for clients without tickets; 0: none.
    pub sessions_max: usize,
}

/// What all connections of a server have in common. Cheap to clone; clones share everything.
#[derive(Debug, Clone)]
pub struct TlsServerConfig {
    config: Arc<ServerConfig>,
    shelf: Arc<Shelf>,
}

/// The certificates that are presented now.
#[derive(Debug)]
struct Shelf(RwLock<Arc<Identities>>);

impl ResolvesServerCert for Shelf {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // The content is replaced as a whole, so a panic cannot leave it half-changed.
        let identities = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        Some(identities.chosen(hello.server_name(), hello.signature_schemes()))
    }
}

impl TlsServerConfig {
    /// A configuration with these certificates.
    ///
    /// # Errors
    /// An invalid protocol name.
    pub fn new(options: &TlsServerOptions, identities: Identities) -> Result<Self, TlsConfigError> {
        let shelf = Arc::new(Shelf(RwLock::new(Arc::new(identities))));
        let mut config =
            ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
                .with_protocol_versions(&options.versions.offered())
                .expect("aws-lc-rs has suites for TLS 1.2 and for TLS 1.3")
                .with_no_client_auth()
                .with_cert_resolver(Arc::clone(&shelf) as _);
        config.alpn_protocols = alpn(&options.alpn)?;
        config.session_storage = match options.sessions_max {
            0 => Arc::new(NoServerSessionStorage {}),
            max => ServerSessionMemoryCache::new(max),
        };
        if let Some(TicketKeys(tickets)) = &options.tickets {
            config.ticketer = Arc::clone(tickets) as _;
        }
        Ok(Self { config: Arc::new(config), shelf })
    }

    /// Presents these certificates from the next handshake on. Sessions and tickets stay valid.
    pub fn replace(&self, identities: Identities) {
        *self.shelf.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(identities);
    }
}

/// Why a connection of a server failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TlsServerError {
    /// The client gave up and sent the reason.
    #[error("the client refuses: {0}")]
    Alert(String),
    /// The two sides have nothing in common.
    #[error("client and server share no version or cipher: {0}")]
    Incompatible(String),
    /// The client violates the protocol, or does not speak it.
    #[error("not valid TLS: {0}")]
    Protocol(String),
}

impl TlsServerError {
    fn of(error: Error) -> Self {
        use AlertDescription as A;
        match error {
            Error::AlertReceived(
                alert @ (A::UnknownCA | A::BadCertificate | A::CertificateUnknown),
            ) => Self::Alert(format!(
                "{alert:?}, it does not trust the certificate (self-signed, or one between it and the \
                 authority is missing in its file?)"
            )),
            Error::AlertReceived(alert) => Self::Alert(format!("{alert:?}")),
            Error::PeerIncompatible(why) => Self::Incompatible(format!("{why:?}")),
            Error::NoApplicationProtocol => {
                Self::Incompatible("none of the client's ALPN protocols is spoken here".to_owned())
            }
            other => Self::Protocol(other.to_string()),
        }
    }
}

/// One connection, from the client's first bytes on. After an error it only has the alert left to send.
pub struct TlsServer {
    conn: ServerConnection,
    closed: bool,
}

impl TlsServer {
    /// A connection that waits for the client's hello.
    pub fn new(config: &TlsServerConfig) -> Self {
        let mut conn = ServerConnection::new(Arc::clone(&config.config))
            .expect("a configuration without QUIC and with a sound record size makes a connection");
        // rustls would take 64 KB and leave the rest; here the caller's own buffers are the limit.
        conn.set_buffer_limit(None);
        Self { conn, closed: false }
    }

    /// Takes received bytes, split anywhere; appends plaintext to `plain`. Data after a close_notify is ignored.
    ///
    /// # Errors
    /// The connection has failed permanently; an alert for the client may be in [`TlsServer::take_output`].
    pub fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<TlsEvent, TlsServerError> {
        let was_handshaking = self.conn.is_handshaking();
        let fed = records::feed(&mut self.conn, bytes, plain).map_err(|unfed| match unfed {
            Unfed::Tls(error) => TlsServerError::of(error),
            Unfed::Refused(error) => TlsServerError::Protocol(error.to_string()),
        })?;
        Ok(TlsEvent {
            handshake_done_now: was_handshaking && !self.conn.is_handshaking(),
            peer_closed: fed.is_some_and(|state| state.peer_has_closed()),
        })
    }

    /// Encrypts all of `first` and then `second`; call it after the handshake. The buffer is only bounded by what the
    /// caller passes in: take the output after each call.
    ///
    /// # Errors
    /// The error that made the connection fail.
    pub fn send(&mut self, first: &[u8], second: &[u8]) -> Result<(), TlsServerError> {
        assert!(!self.closed, "nothing is sent after close_notify");
        let written = records::write_all(&mut self.conn, [first, second]);
        written.map_err(|error| match error.downcast::<Error>() {
            Ok(error) => TlsServerError::of(error),
            Err(error) => TlsServerError::Protocol(error.to_string()),
        })
    }

    /// Appends the pending output to `out`: flights of the handshake, records, alerts.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        records::take_output(&mut self.conn, out);
    }

    /// Queues close_notify, once: nothing can be sent after it.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.conn.send_close_notify();
        }
    }

    /// The kind of handshake, once it is done.
    pub fn handshake(&self) -> Option<Handshake> {
        match self.conn.handshake_kind().filter(|_| !self.conn.is_handshaking())? {
            HandshakeKind::Resumed => Some(Handshake::Resumed),
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => Some(Handshake::Full),
        }
    }

    /// "TLS 1.2" or "TLS 1.3", once agreed.
    pub fn version(&self) -> Option<&'static str> {
        self.conn.protocol_version().map(records::version_name)
    }
}

impl std::fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsServer").field("version", &self.version()).finish_non_exhaustive()
    }
}
