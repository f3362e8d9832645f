//! What a web server serves, and how one connection is answered: the files of hosts, their rules, codings
//! and listings; CGI programs and FastCGI applications; logs, TLS, planted faults; and [`exchange::Exchange`],
//! the state machine of one connection. Nothing here waits, and nothing knows who does: crate `serve` has
//! the concurrency models.
//! Start reading at [`Site`], what all connections of a server share, then `exchange`.
//!
//! A connection in memory, without a socket:
//!
//! ```
//! use joust_site::config::{Content, SiteConfig};
//! use joust_site::exchange::{Exchange, Want};
//! use joust_site::{Opening, Site};
//! use units::{Bytes, Nanos};
//!
//! let config = SiteConfig::new(Content::Fixed(Bytes(5)));
//! let site = Site::open(config, Opening::default()).unwrap();
//! let (peer, now) = (([127, 0, 0, 1], 40000).into(), Nanos::from_secs(1));
//! let mut exchange = Exchange::new(&site, peer, now);
//! let request = b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n";
//! let Want::Read(room) = exchange.want(|| now) else { panic!("it reads a request first") };
//! room[..request.len()].copy_from_slice(request);
//! exchange.received(request.len(), now);
//! let Want::Write { head, .. } = exchange.want(|| now) else { panic!("it answers at once") };
//! assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
//! ```

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
