//! The complete configuration of a site: code below this layer has no optional values and checks nothing again. Owns
//! its defaults, what may be combined, and the tables of a file that are read as a whole. Start reading at
//! [`SiteConfig`]; crate `serve` makes one from the command line and the file.

mod gateway;
mod host;
mod presentation;
mod rule;
mod status;
pub mod table;
pub mod text;
mod tls;

use std::collections::BTreeMap;
use std::path::PathBuf;

use units::{Bytes, Nanos};

pub use crate::coding::Compression;
use crate::fault::{self, Fault};
pub use crate::log::{AccessLogConfig, ErrorLogConfig, ErrorLogTo, LogFormat};
use table::Table;

pub use gateway::{GatewayConfig, GatewayKind, HalfClosed, Mapping, Spawn};
pub use host::{ErrorPage, HostConfig, HostTable, OwnPage};
pub use presentation::Presentation;
pub use rule::{AuthConfig, RuleConfig};
pub use status::{StatusAllow, StatusConfig, path as status_path};
pub use tls::{CertificateFiles, MinVersion, TlsConfig};

/// The tables of a file that are read as a whole, in the order in which they are shown.
pub static TABLES: &[&Table] = &[
    &presentation::TYPES,
    &presentation::COMPRESSION,
    &host::ERRORS,
    &rule::TABLE,
    &host::HOSTS,
    &gateway::TABLE,
    &tls::TABLE,
];

/// Everything that decides what is answered.
#[derive(Debug, Clone)]
pub struct SiteConfig {
    /// What is served.
    pub content: Content,
    /// Whether a connection carries several requests.
    pub keep_alive: KeepAlive,
    /// Bounds on what a client may send, and for how long.
    pub limits: Limits,
    /// Where requests are logged.
    pub access_log: AccessLogConfig,
    /// Where the server logs its own messages, and from which level on.
    pub error_log: ErrorLogConfig,
    /// Names tried in a directory, in order; `index.html`, `index.htm` unless set.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed (403 otherwise).
    pub listing: bool,
    /// How files are shown.
    pub presentation: Presentation,
    /// Error pages by status.
    pub errors: BTreeMap<String, ErrorPage>,
    /// Rules for requests that match a pattern, in order.
    pub rules: Vec<RuleConfig>,
    /// Hosts by name.
    pub hosts: Vec<HostTable>,
    /// Index of the host for requests that name none of them; `None`: the top of the file serves those.
    pub default_host: Option<usize>,
    /// Whether such a request is refused (421) if it names a host at all.
    pub refuse_unknown_hosts: bool,
    /// Planted faults; none unless set.
    pub faults: Vec<Fault>,
    /// What answers requests instead of files, in order of precedence; none unless set.
    pub gateways: Vec<GatewayConfig>,
    /// Where the status page is, and who may see it.
    pub status: StatusConfig,
    /// How it speaks TLS; `None`: not at all.
    pub tls: Option<TlsConfig>,
    /// Redirects requests to the port of TLS. Not a key of its own: see `TlsConfig::redirect_from`.
    pub to_https: Option<ToHttps>,
}

/// Which plain requests are redirected to TLS, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToHttps {
    /// The port that speaks TLS.
    pub port: u16,
    /// Prefixes of paths whose files are still served here without TLS.
    pub except: Vec<String>,
}

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The files beneath a directory.
    Directory(PathBuf),
    /// A page of this size for every path, from memory.
    Fixed(Bytes),
}

/// Whether and how long a connection is kept for another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// `KeepAlive`.
    pub enabled: bool,
    /// `KeepAliveTimeout`: until the first byte of the next request.
    pub timeout: Nanos,
    /// `MaxKeepAliveRequests`: answers after which the connection stays open; 0: any number.
    pub requests_max: u32,
}

/// Bounds on what a client may send, and for how long. Each has its own answer when it is exceeded: 431, 414, 413, 408,
/// or the whole file instead of many ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request head, including the request line (431). Apache allows 8190 a line, nginx 4 times 8 KiB.
    pub head_bytes_max: u32,
    /// Bytes of a request line (414). As Apache's LimitRequestLine.
    pub target_bytes_max: u32,
    /// Field lines of a head (431). As Apache's LimitRequestFields.
    pub fields_max: u32,
    /// Time from accepting a connection to the end of its TLS handshake; then it is closed. As in h2o.
    pub handshake_timeout: Nanos,
    /// Time from the first byte of a head to its last, whatever arrives between (408): this stops slowloris attacks. As
    /// Apache's RequestReadTimeout header=20.
    pub head_timeout: Nanos,
    /// Bytes of a request body (413). A request for a static file discards its body.
    pub body_bytes_max: u64,
    /// Time for a body, plus a second for every `body_rate_min` bytes (408). As
    /// Apache's RequestReadTimeout body=20,MinRate=500.
    pub body_timeout: Nanos,
    /// Bytes a second; see `body_timeout`.
    pub body_rate_min: u32,
    /// How long a client may read nothing of a response before it is cut off; the setting `TimeOut`.
    pub write_timeout: Nanos,
    /// Ranges of one request; with more, the whole file is sent. Each costs some 100 bytes of framing
    /// (CVE-2011-3192).
    pub ranges_max: u32,
    /// How long a file is sent from memory, or from its open descriptor, before its path is looked up again;
    /// zero: it is opened and read for each request. The setting `FileCache`.
    pub file_cache: Nanos,
    /// Files kept in memory, in every process.
    pub cache_entries_max: u32,
    /// Bytes of all of them.
    pub cache_bytes_max: u64,
    /// A larger file is sent from the page cache by sendfile.
    pub cached_file_bytes_max: u32,
    /// How many of those larger files each process keeps open.
    pub open_files_max: u32,
    /// Lines of a directory listing; further entries are counted, not shown.
    pub listing_entries_max: u32,
}

impl SiteConfig {
    /// The defaults, for that content.
    pub fn new(content: Content) -> Self {
        Self {
            content,
            keep_alive: KeepAlive::DEFAULT,
            limits: Limits::DEFAULT,
            access_log: AccessLogConfig::default(),
            error_log: ErrorLogConfig::default(),
            index: vec!["index.html".to_owned(), "index.htm".to_owned()],
            listing: false,
            presentation: Presentation::default(),
            errors: BTreeMap::new(),
            rules: Vec::new(),
            hosts: Vec::new(),
            default_host: None,
            refuse_unknown_hosts: false,
            faults: Vec::new(),
            gateways: Vec::new(),
            status: StatusConfig::default(),
            tls: None,
            to_https: None,
        }
    }

    /// The configuration of the server that redirects plain requests to `port`, which speaks TLS; `None`: no redirect
    /// is set.
    pub fn redirecting(&self, port: u16) -> Option<Self> {
        let tls = self.tls.as_ref()?;
        tls.redirect_from?;
        let mut config = Self::new(Content::Fixed(Bytes(0)));
        config.to_https = Some(ToHttps { port, except: tls.redirect_except.clone() });
        self.give_files(&mut config, &tls.redirect_except);
        config.limits = self.limits;
        config.access_log.clone_from(&self.access_log);
        config.error_log.clone_from(&self.error_log);
        Some(config)
    }

    /// How long a client may make a connection wait: for its next request, for the rest of a head or of a body, for
    /// taking an answer, and for the TLS handshake.
    pub fn waits(&self) -> impl Iterator<Item = Nanos> {
        let limits = &self.limits;
        let always = [
            self.keep_alive.timeout,
            limits.head_timeout,
            limits.body_timeout,
            limits.write_timeout,
        ];
        always.into_iter().chain(self.tls.as_ref().map(|_| limits.handshake_timeout))
    }

    /// Refuses settings that cannot be combined.
    ///
    /// # Errors
    /// The reason and the way out.
    pub fn check(&self) -> Result<(), String> {
        let limits = &self.limits;
        if self.listing && matches!(self.content, Content::Fixed(_)) {
            return Err(
                "`listing` needs a directory, and the content is `fixed`: remove it, or serve a directory"
                    .to_owned(),
            );
        }
        fault::check(&self.faults)?;
        gateway::check_all(self)?;
        host::check_all(self)?;
        if limits.target_bytes_max > limits.head_bytes_max {
            return Err(format!(
                "limits.target_bytes_max ({}) must not exceed limits.head_bytes_max ({}): raise the second or lower the first",
                limits.target_bytes_max, limits.head_bytes_max
            ));
        }
        if u64::from(limits.cached_file_bytes_max) > limits.cache_bytes_max
            && limits.cache_bytes_max > 0
        {
            return Err(format!(
                "limits.cached_file_bytes_max ({}) must not exceed limits.cache_bytes_max ({}): raise the second or lower the first",
                limits.cached_file_bytes_max, limits.cache_bytes_max
            ));
        }
        Ok(())
    }
}

impl KeepAlive {
    /// Apache's: five seconds, a hundred requests.
    pub const DEFAULT: Self =
        Self { enabled: true, timeout: Nanos::from_secs(5), requests_max: 100 };
}

impl Limits {
    /// The defaults.
    pub const DEFAULT: Self = Self {
        head_bytes_max: 32 * 1024,
        target_bytes_max: 8190,
        fields_max: 100,
        handshake_timeout: Nanos::from_secs(10),
        head_timeout: Nanos::from_secs(20),
        body_bytes_max: 1024 * 1024,
        body_timeout: Nanos::from_secs(20),
        body_rate_min: 500,
        write_timeout: Nanos::from_secs(60),
        ranges_max: 64,
        file_cache: Nanos::from_secs(1),
        cache_entries_max: 1024,
        cache_bytes_max: 16 * 1024 * 1024,
        cached_file_bytes_max: 64 * 1024,
        open_files_max: 64,
        listing_entries_max: 10_000,
    };
}
