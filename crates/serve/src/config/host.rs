//! Virtual hosts. Owns what each has of its own and what it takes over from the top of the file; must
//! not know how a request finds its host (see `site`). Start reading at [`HostConfig`].

use super::{AccessLogConfig, Config, Content, Look};

/// All that is decided by host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostConfig {
    /// What is served.
    pub content: Content,
    /// Names tried in a directory, in order.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed.
    pub listing: bool,
    /// How files are shown.
    pub look: Look,
    /// Where requests are noted; `None`: in the log of the server.
    pub access_log: Option<AccessLogConfig>,
}

impl Config {
    /// The host that stands at the top of the file.
    pub(crate) fn first_host(&self) -> HostConfig {
        HostConfig {
            content: self.content.clone(),
            index: self.index.clone(),
            listing: self.listing,
            look: self.look.clone(),
            access_log: None,
        }
    }
}
