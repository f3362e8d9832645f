//! A web server whose concurrency model is a setting: the models, the service that they serve, its
//! configuration, and the supervisor that changes it without losing a connection. What is served, and how
//! a connection is answered, is crate `site`.
//! Start reading at [`service::Service`], then one model; for reloads at [`supervisor`].

mod bind;
pub mod config;
mod handover;
pub mod models;
mod rights;
pub mod service;
pub mod settings;
pub mod supervisor;
#[cfg(test)]
mod testing;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use bind::Given;
pub use config::{CommandLine, Config, ConfigError};
pub use service::Service;
pub use site::SiteError;
pub use site::config::{GatewayConfig, GatewayKind, Mapping};
pub use site::fault::Fault;

/// Serves as `config` says, until SIGTERM (drains) or SIGINT (stops at once).
///
/// # Errors
/// Whatever keeps the server from starting, or ends it.
pub fn run(config: Config) -> Result<(), ServeError> {
    Service::bind(config)?.run()
}

/// Why the server did not start, or ended. Each text says what failed, on what, and the way out.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "the text of each variant says what its fields are")]
pub enum ServeError {
    #[error(
        "cannot listen on {address}: the port is in use. `ss -ltnp 'sport = :{port}'` names the process; choose another port (--listen, or in the configuration), or port 0 for a free one",
        port = address.port()
    )]
    AddressInUse { address: SocketAddr },
    #[error(
        "cannot listen on {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; choose \
         a higher one with --listen, or lower sysctl net.ipv4.ip_unprivileged_port_start"
    )]
    PortNeedsPrivilege { address: SocketAddr },
    #[error(
        "cannot listen on {address}: this machine does not have that address; `ip addr` lists its addresses"
    )]
    AddressNotHere { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(transparent)]
    Site(#[from] SiteError),
    #[error("{table}: {error}")]
    Within { table: String, error: Box<Self> },
    #[error(
        "cannot write the PID file {path}: {source}; its directory must exist. Name another \
         file as `pid_file`, or `off`", path = path.display()
    )]
    PidFile { path: PathBuf, source: io::Error },
    #[error("{why}")]
    Ended { why: String },
    #[error("{reason}")]
    Rights { reason: String },
    #[error("CPU {cpu} is not available to this process; available: {}", listed(allowed))]
    NoSuchCpu { cpu: u32, allowed: Vec<u32> },
    #[error("the model {model} cannot run here: {why}")]
    NoModelHere { model: &'static str, why: String },
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
}

fn listed(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
