//! Owns the web server: one sans-I/O state machine for a connection ([`exchange::Exchange`]), the
//! site it serves, its configuration and logs, and the concurrency models that drive it. Must not
//! know that a load generator exists, nor print or read argv.
//! Start reading at [`service::Service`], then `exchange`, then one model; for reloads at [`supervisor`].

pub mod board;
pub mod config;
pub mod exchange;
pub mod fault;
mod gateway;
pub mod log;
pub mod models;
mod nearest;
mod rights;
pub mod service;
pub mod site;
mod status;
pub mod supervisor;
#[cfg(test)]
mod testing;
pub mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

pub use config::{Config, ConfigError, Typed};
pub use fault::Fault;
pub use service::Service;

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
        "cannot listen on {address}: the port is in use. `ss -ltnp 'sport = :{port}'` names who \
         has it; choose another (--listen, or where it is set), or port 0 for a free one",
        port = address.port()
    )]
    AddressInUse { address: SocketAddr },
    #[error(
        "cannot listen on {address}: ports below 1024 need root or CAP_NET_BIND_SERVICE; choose \
         a higher one with --listen, or lower sysctl net.ipv4.ip_unprivileged_port_start"
    )]
    PortNeedsPrivilege { address: SocketAddr },
    #[error("cannot listen on {address}: this machine has no such address; `ip addr` lists them")]
    AddressNotHere { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("there is no directory {path}: check the path, or serve --fixed BYTES without one", path = path.display())]
    NoDirectory { path: PathBuf },
    #[error("{path} is not a directory: joust serves all that lies beneath one", path = path.display())]
    NotADirectory { path: PathBuf },
    #[error("may not read the directory {path}: check its permissions with `namei -l {path}`", path = path.display())]
    DirectoryForbidden { path: PathBuf },
    #[error(
        "the kernel refuses openat2, which keeps requests inside the directory: Linux 5.6 or newer \
         is needed (`uname -r`), or a sandbox that allows it; --fixed BYTES does without"
    )]
    NoOpenBeneath,
    #[error("a pattern of the configuration cannot be used: {reason}")]
    Pattern { reason: String },
    #[error(
        "cannot use the password file {path}: {reason}; `htpasswd -B -c FILE NAME` makes one",
        path = path.display()
    )]
    Passwords { path: PathBuf, reason: String },
    #[error(
        "cannot use {path} as an error page: {reason}; it is read at the start and at a reload, and then \
         lies in memory", path = path.display()
    )]
    ErrorPage { path: PathBuf, reason: String },
    #[error("cannot open the directory {path}: {source}", path = path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(
        "cannot write the access log {path}: {source}; its folder must be there. Name another file \
         (--access-log, or `file` in the access_log of the server or the host), or `off`",
        path = path.display()
    )]
    AccessLog { path: PathBuf, source: io::Error },
    #[error(
        "cannot write the error log {path}: {source}; its folder must be there. Name another with \
         --error-log FILE, or `stderr`, or `off`", path = path.display()
    )]
    ErrorLog { path: PathBuf, source: io::Error },
    #[error("{table}: {error}")]
    Within { table: String, error: Box<Self> },
    #[error(
        "cannot write the file of the process number {path}: {source}; its folder must be there. Name another \
         file as `pid_file`, or `off`", path = path.display()
    )]
    PidFile { path: PathBuf, source: io::Error },
    #[error("{why}")]
    Ended { why: String },
    #[error("{reason}")]
    Rights { reason: String },
    #[error("[[gateway]]: {reason}")]
    Gateway { reason: String },
    #[error("there is no CPU {cpu} that this process may run on; it has {}", listed(allowed))]
    NoSuchCpu { cpu: u32, allowed: Vec<u32> },
    #[error("the model {model} cannot run here: {why}")]
    NoModelHere { model: &'static str, why: String },
    #[error("{0}")]
    Tls(String),
    #[error("{doing}: {source}")]
    System { doing: &'static str, source: io::Error },
}

fn listed(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
