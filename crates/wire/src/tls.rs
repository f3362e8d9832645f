//! Owns TLS 1.2 and 1.3 for one connection, in both roles: received bytes go in, plaintext and bytes to send come out.
//! Must not know sockets, threads or files. Only rustls reads the clock, for the validity of certificates and the age
//! of tickets. Start reading at [`TlsClient`], or at [`TlsServer`].
//!
//! rustls with aws-lc-rs implements the protocol. Ours is which handshake is full and which is resumed
//! ([`Resumption`]), what is trusted ([`TlsOptions`]), and errors with a remedy ([`TlsError`]).
//!
//! One exception to "no files": without a given authority, [`TlsClientConfig::new`] lets rustls-native-certs read those
//! of the machine, once per load.
//!
//! A full handshake offers X25519 first, like OpenSSL 3.0 and browsers without post-quantum key exchange, so figures
//! are comparable with those of other load generators; X25519MLKEM768 is offered last. One connection takes 1.1 KB, and
//! 5 to 6 KB on the heap after its handshake (4 KB of them rustls' buffer of ciphertext). A large reply takes up to 50
//! KB more while it is read, and frees it. A short reply costs 0.3 us and a request 0.2 us, with one allocation per
//! record inside rustls; large replies pass at 4 to 7 GB/s. rustls' unbuffered API, which decrypts in place, is not
//! measurably faster, so the API that most programs use, and thereby test, is used here. A handshake costs both sides
//! together 180 us (full, P-256) or 140 us (resumed, which still exchanges keys in TLS 1.3). All on one CPU of the
//! build machine; `tests/tls_memory.rs` limits the bytes and the allocations.
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
