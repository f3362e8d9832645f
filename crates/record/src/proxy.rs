//! The proxy of a load, as its plan and its record have it. Start reading at [`Proxy`].

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// A proxy that all requests go through.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    /// Where it listens.
    pub addr: SocketAddr,
    /// As typed, without a password ("proxy.example:3128").
    pub host: String,
    /// Value of Proxy-Authorization. In a record it is not kept.
    pub authorization: Option<String>,
}
