//! Owns TLS 1.2 and 1.3 of one connection, in both roles: bytes that arrived in, plaintext and bytes to
//! send out. Must not know sockets, threads or files; the clock is read by rustls alone, for validity of
//! certificates and the age of tickets. Start reading at [`TlsClient`], or at [`TlsServer`].
//!
//! rustls with aws-lc-rs does the protocol; what is ours is which handshake is full and which is resumed
//! ([`Resumption`]), what is trusted ([`TlsOptions`]), and errors with a way out ([`TlsError`]).
//!
//! One exception to "no files": without an own authority, [`TlsClientConfig::new`] lets
//! rustls-native-certs read those of the machine, once for a load.
//!
//! A full handshake offers X25519 first, what OpenSSL 3.0 and browsers without post-quantum key exchange
//! do, so figures stand beside those of other load generators; X25519MLKEM768 is offered last.
//! One connection takes 1.1 KB, and 5 to 6 KB on the heap after its handshake (4 KB of them rustls'
//! buffer of ciphertext); a large reply takes up to 50 KB more while it is read, and gives it back. A
//! short reply costs 0.3 us and a request 0.2 us with one allocation each, inside rustls, a record; large
//! replies pass at 4 to 7 GB/s. rustls' unbuffered API, which decrypts in place, was measured beside it
//! and is not faster beyond the noise, so the API that most programs prove is used. A handshake costs both
//! sides together 180 us (full, P-256) or 140 us (resumed, which still exchanges keys in TLS 1.3). All on
//! one CPU of the build machine; `tests/tls_memory.rs` holds the bytes and the allocations.

mod client;
mod config;
mod fault;
mod identity;
mod key_bits;
mod records;
mod self_signed;
mod server;
mod sessions;
mod tickets;
mod trust;

pub use client::{Handshake, TlsClient, TlsEvent};
pub use config::{Resumption, SESSIONS_MAX_DEFAULT, TlsClientConfig, TlsOptions, Versions};
pub use fault::{PemFile, TlsConfigError, TlsError};
pub use identity::{Identities, PemIdentity};
pub use self_signed::self_signed;
pub use server::{TlsServer, TlsServerConfig, TlsServerError, TlsServerOptions};
pub use sessions::{SERVERS_MAX, SessionTotals};
pub use tickets::TicketKeys;
