//! Owns the client's side of TLS 1.2 and 1.3 for one connection: bytes that arrived in, plaintext and
//! bytes to send out. Must not know sockets, threads or files; the clock is read by rustls alone, for
//! validity of certificates and the age of tickets. Start reading at [`TlsClient`].
//!
//! rustls with aws-lc-rs does the protocol; what is ours is which handshake is full and which is resumed
//! ([`Resumption`]), what is trusted ([`TlsOptions`]), and errors with a way out ([`TlsError`]).
//!
//! One exception to "no files": without an own authority, [`TlsClientConfig::new`] lets
//! rustls-native-certs read those of the machine, once for a load.
//!
//! A full handshake offers X25519 first, what OpenSSL 3.0 and browsers without post-quantum key exchange
//! do, so figures stand beside those of other load generators; X25519MLKEM768 is offered last.

mod client;
mod config;
mod fault;
mod sessions;
mod trust;

pub use client::{Handshake, Resumption, TlsClient, TlsEvent};
pub use config::{SESSIONS_MAX_DEFAULT, TlsClientConfig, TlsOptions, Versions};
pub use fault::{PemFile, TlsConfigError, TlsError};
pub use sessions::{SERVERS_MAX, SessionTotals};
