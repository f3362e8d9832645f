//! Owns one TLS connection of a client. Start reading at [`TlsClient::feed`].

use std::sync::Arc;

use rustls::{ClientConnection, HandshakeKind};
use rustls_pki_types::ServerName;

use super::config::{Resumption, TlsClientConfig};
use super::fault::{self, TlsError};
use super::records::{self, Unfed};

/// The kind of handshake, as the server decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// Certificates and a signature.
    Full,
    /// From a stored session.
    Resumed,
}

/// The result of received bytes.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TlsEvent {
    /// These bytes completed the handshake. In TLS 1.3 the server may still reject the client's certificate after that,
    /// by an alert.
    pub handshake_done_now: bool,
    /// The server has announced the end (close_notify), now or before. If TCP ends without it, the data may be cut off:
    /// see [`TlsClient::end`].
    pub peer_closed: bool,
}

/// One connection, from its first flight on. After an error it only has the alert left to send.
pub struct TlsClient {
    conn: ClientConnection,
    opening: Opening,
    peer_closed: bool,
    closed: bool,
}

impl TlsClient {
    /// A connection whose first flight is in [`TlsClient::take_output`]. `server_name` is a host name or an IP address
    /// (IPv6 with or without brackets), as in the URL. The certificate must be for it, and SNI names it unless it is an
    /// address.
    ///
    /// # Errors
    /// [`TlsError::ServerName`]: it is neither.
    pub fn new(
        config: &TlsClientConfig,
        server_name: &str,
        resumption: Resumption,
    ) -> Result<Self, TlsError> {
        let bare = server_name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
        let name = ServerName::try_from(bare.unwrap_or(server_name))
            .map_err(|_| TlsError::ServerName(server_name.to_owned()))?;
        let mut conn = ClientConnection::new(Arc::clone(config.of(resumption)), name.to_owned())
            .map_err(|error| fault::of_connection(error, &[]))?;
        // rustls would take 64 KB and leave the rest; here the caller's own buffers are the limit.
        conn.set_buffer_limit(None);
        Ok(Self { conn, opening: Opening::default(), peer_closed: false, closed: false })
    }

    /// Takes received bytes, split anywhere; appends plaintext to `plain`, including that before an error in the same
    /// bytes. Data after a close_notify is ignored.
    ///
    /// # Errors
    /// The connection has failed permanently; an alert for the server may be in [`TlsClient::take_output`].
    pub fn feed(&mut self, bytes: &[u8], plain: &mut Vec<u8>) -> Result<TlsEvent, TlsError> {
        let was_handshaking = self.conn.is_handshaking();
        if was_handshaking {
            self.opening.keep(bytes);
        }
        let fed = records::feed(&mut self.conn, bytes, plain).map_err(|unfed| match unfed {
            Unfed::Tls(error) => fault::of_connection(error, self.opening.bytes()),
            Unfed::Refused(error) => TlsError::Protocol(error.to_string()),
        })?;
        if let Some(state) = fed {
            self.peer_closed = state.peer_has_closed();
        }
        let handshake_done_now = was_handshaking && !self.conn.is_handshaking();
        Ok(TlsEvent { handshake_done_now, peer_closed: self.peer_closed })
    }

    /// Encrypts all of `plain`; before the handshake is done it is buffered. The buffer is only bounded by what the
    /// caller passes in: take the output after each call.
    ///
    /// # Errors
    /// [`TlsError::Closed`] after [`TlsClient::close`]; or the error that made the connection fail.
    pub fn send(&mut self, plain: &[u8]) -> Result<(), TlsError> {
        if self.closed {
            return Err(TlsError::Closed);
        }
        let written = records::write_all(&mut self.conn, [plain, &[]]);
        written.map_err(|error| match error.downcast::<rustls::Error>() {
            Ok(error) => fault::of_connection(error, self.opening.bytes()),
            Err(error) => TlsError::Protocol(error.to_string()),
        })
    }

    /// Appends the pending output to `out`: flights of the handshake, records, alerts.
    pub fn take_output(&mut self, out: &mut Vec<u8>) {
        records::take_output(&mut self.conn, out);
    }

    /// Whether [`TlsClient::take_output`] has something.
    pub fn has_output(&self) -> bool {
        self.conn.wants_write()
    }

    /// Queues close_notify, once: nothing can be sent after it, but replies can still be read.
    pub fn close(&mut self) {
        if !std::mem::replace(&mut self.closed, true) {
            self.conn.send_close_notify();
        }
    }

    /// Reports the meaning of an end of TCP at this point.
    ///
    /// # Errors
    /// [`TlsError::EndInHandshake`], or [`TlsError::Truncated`] if close_notify is missing: a reply that ends with the
    /// connection may then be cut off.
    pub fn end(&self) -> Result<(), TlsError> {
        match (self.conn.is_handshaking(), self.peer_closed) {
            (true, _) => Err(TlsError::EndInHandshake),
            (false, false) => Err(TlsError::Truncated),
            (false, true) => Ok(()),
        }
    }

    /// Whether the handshake is not done yet.
    pub fn is_handshaking(&self) -> bool {
        self.conn.is_handshaking()
    }

    /// The kind of handshake, once it is done.
    pub fn handshake(&self) -> Option<Handshake> {
        match self.conn.handshake_kind().filter(|_| !self.conn.is_handshaking())? {
            HandshakeKind::Resumed => Some(Handshake::Resumed),
            HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest => Some(Handshake::Full),
        }
    }

    /// The protocol that ALPN chose; `None` before the handshake is done, or if the server ignores ALPN.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.conn.alpn_protocol()
    }

    /// "TLS 1.2" or "TLS 1.3", once agreed.
    pub fn version(&self) -> Option<&'static str> {
        self.conn.protocol_version().map(records::version_name)
    }

    /// The group of the key exchange by its registered name ("X25519", "secp256r1"), once agreed.
    pub fn group(&self) -> Option<&'static str> {
        self.conn.negotiated_key_exchange_group()?.name().as_str()
    }

    /// Size of the public key in the server's certificate, in bits; `None` before it arrived, and for keys other than
    /// RSA and elliptic curves.
    pub fn certificate_bits(&self) -> Option<u32> {
        let certificate = self.conn.peer_certificates()?.first()?;
        let parsed = webpki::EndEntityCert::try_from(certificate).ok()?;
        super::key_bits::of(&parsed.subject_public_key_info())
    }

    /// The cipher suite by its registered name ("TLS_AES_128_GCM_SHA256"), once agreed.
    pub fn cipher_suite(&self) -> Option<&'static str> {
        let name = self.conn.negotiated_cipher_suite()?.suite().as_str()?;
        // rustls has its own names for the three of TLS 1.3 (RFC 8446, B.4).
        Some(match name {
            "TLS13_AES_128_GCM_SHA256" => "TLS_AES_128_GCM_SHA256",
            "TLS13_AES_256_GCM_SHA384" => "TLS_AES_256_GCM_SHA384",
            "TLS13_CHACHA20_POLY1305_SHA256" => "TLS_CHACHA20_POLY1305_SHA256",
            name => name,
        })
    }
}

/// The first bytes of the server, to name its protocol if it is not TLS.
#[derive(Default)]
struct Opening {
    kept: [u8; Self::LEN],
    len: u8,
}

impl Opening {
    const LEN: usize = 24;

    fn keep(&mut self, bytes: &[u8]) {
        let at = usize::from(self.len);
        let end = Self::LEN.min(at + bytes.len());
        self.kept[at..end].copy_from_slice(&bytes[..end - at]);
        self.len = u8::try_from(end).expect("LEN is below 256");
    }

    fn bytes(&self) -> &[u8] {
        &self.kept[..usize::from(self.len)]
    }
}
