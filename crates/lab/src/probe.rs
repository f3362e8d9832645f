//! Owns one request made alone, to see whether a server answers and with what: the same request
//! that a load would make, on a connection of its own. Must not know which server it is.

use std::net::SocketAddr;

use load::{FetchError, Fetched, LoadOptions};
use units::Nanos;

/// Asks for `target`; each phase of the request may take `timeout`.
///
/// # Errors
/// There was no complete reply. A status of any kind is no error.
///
/// # Panics
/// Where `target` is no request target: the study was checked for that.
pub(crate) fn get(addr: SocketAddr, target: &str, timeout: Nanos) -> Result<Fetched, FetchError> {
    let options = LoadOptions {
        keep_alive: false,
        requests: Some(1),
        connections: 1,
        timeout,
        ..LoadOptions::new(format!("http://{addr}{target}"))
    };
    load::fetch(&options.plan().expect("an address and a checked target make a URL"))
}
