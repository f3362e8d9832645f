//! Owns one request made alone, to see whether a server answers and with what: the same request
//! that a load would make, on a connection of its own. Must not know which server it is.

use std::net::SocketAddr;

use load::{FetchError, Fetched};
use record::{LoadPlan, LoadStop, Origin, Place};
use units::Nanos;

/// Where a server is, and what requests call it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Where.
    pub socket: SocketAddr,
    /// The Host field: an address, or the name by which it was found, with the port.
    pub host: String,
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        Self { socket, host: socket.to_string() }
    }
}

impl Address {
    /// As a load has it.
    pub fn origin(&self) -> Origin {
        Origin { place: Place::Inet(self.socket), host: self.host.clone(), tls_name: None }
    }

    /// A load of `requests` for `target`, one after the other on one connection; each phase of each
    /// may take `timeout`.
    pub(crate) fn plan(&self, target: &str, requests: u64, timeout: Nanos) -> LoadPlan {
        LoadPlan {
            origins: vec![self.origin()],
            connections: 1,
            keep_alive: requests > 1,
            stop: LoadStop { requests: Some(requests), duration: None },
            timeout,
            raw_max: 0,
            ..LoadPlan::get(self.socket, target)
        }
    }
}

/// Asks for `target`; each phase of the request may take `timeout`.
///
/// # Errors
/// There was no complete reply. A status of any kind is no error.
pub(crate) fn get(address: &Address, target: &str, timeout: Nanos) -> Result<Fetched, FetchError> {
    load::fetch(&address.plan(target, 1, timeout))
}
