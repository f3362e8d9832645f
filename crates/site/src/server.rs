//! What a site knows of the server that it is part of: for the log, for the status page, and for the end of a
//! connection. Ordinary requests need only the address.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// The server around a site.
#[derive(Debug)]
pub struct Server {
    /// Where it listens.
    pub address: SocketAddr,
    /// The name of its concurrency model.
    pub model: &'static str,
    /// One sentence on that model.
    pub about_model: &'static str,
    /// The settings of the model.
    pub settings: Vec<ShownSetting>,
    /// Where its connections come from.
    pub port: Arc<dyn Port>,
}

/// A setting of the model, for people to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownSetting {
    /// By its original name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// One sentence on it.
    pub about: &'static str,
}

/// A port that listens.
pub trait Port: fmt::Debug + Send + Sync {
    /// Whether another process accepts from it instead of this server.
    fn is_handed_over(&self) -> bool;

    /// Connections that wait to be accepted by this server.
    fn waiting(&self) -> u32;
}

/// No port: only tests connect.
#[derive(Debug)]
struct NoPort;

impl Port for NoPort {
    fn is_handed_over(&self) -> bool {
        false
    }

    fn waiting(&self) -> u32 {
        0
    }
}

impl Default for Server {
    /// No server yet: it does not listen.
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            model: "none",
            about_model: "",
            settings: Vec::new(),
            port: Arc::new(NoPort),
        }
    }
}
