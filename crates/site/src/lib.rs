//! What a web server serves, and how one connection is answered: the files of hosts, their rules, codings
//! and listings; CGI programs and FastCGI applications; logs, TLS, planted faults; and [`exchange::Exchange`],
//! the state machine of one connection. Nothing here waits, and nothing knows who does: crate `serve` has
//! the concurrency models.
//! Start reading at [`Site`], what all connections of a server share, then `exchange`.

pub mod board;
pub mod coding;
pub mod config;
mod error;
pub mod exchange;
pub mod fault;
pub mod gateway;
pub mod hosts;
pub mod log;
mod names;
mod nearest;
mod pattern;
mod server;
mod shortage;
mod site;
mod status;
#[cfg(test)]
mod testing;
pub mod tls;

pub use error::SiteError;
pub use nearest::nearest;
pub use server::{Port, Server, ShownSetting};
pub use shortage::Shortage;
pub use site::{Opening, Site};
