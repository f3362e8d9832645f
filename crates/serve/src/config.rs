//! The configuration of a server, complete: below this nothing is optional or checked again. Owns
//! defaults and what may be combined; must not know how it was typed (see `typed`).
//! Start reading at [`Config`].

mod gateway;
mod host;
mod keys;
mod look;
mod print;
mod rule;
mod status;
mod tables;
mod tls;
mod typed;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use units::{Bytes, Nanos};

use crate::fault::Fault;
use crate::log::Level;
pub use crate::log::LogFormat;
use crate::models::{Model, Settings};

pub use gateway::{GatewayConfig, GatewayKind, HalfClosed, Mapping, Spawn};
pub use host::{ErrorPage, HostConfig, HostTable, OwnPage};
pub use look::{Compression, Look};
pub use rule::{AuthConfig, RuleConfig};
pub use status::{StatusAllow, StatusConfig};
pub use tls::{CertificateFiles, MinVersion, TlsConfig};
pub use typed::{ConfigError, Typed};

/// Everything that decides how a server behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; 127.0.0.1:8080 unless set. Port 0: one that is free.
    pub listen: SocketAddr,
    /// What it serves.
    pub content: Content,
    /// Who waits for a connection, and where.
    pub model: &'static Model,
    /// The model's settings and the common ones, by their original names.
    pub settings: Settings,
    /// Whether a connection carries several requests; derived from `settings`.
    pub keep_alive: KeepAlive,
    /// Bounds on what a client may send, and for how long.
    pub limits: Limits,
    /// Where requests are noted.
    pub access_log: AccessLogConfig,
    /// Where the server says what happens to it, and how much.
    pub error_log: ErrorLogConfig,
    /// Names tried in a directory, in order; `index.html`, `index.htm` unless set.
    pub index: Vec<String>,
    /// Whether a directory without an index is listed (403 otherwise).
    pub listing: bool,
    /// A file that holds the number of the process that SIGHUP and SIGTERM are sent to.
    pub pid_file: Option<PathBuf>,
    /// How files are shown.
    pub look: Look,
    /// The pages that stand for errors, by status.
    pub errors: BTreeMap<String, ErrorPage>,
    /// What is done with requests that fit a pattern, in order.
    pub rules: Vec<RuleConfig>,
    /// Hosts by name.
    pub hosts: Vec<HostTable>,
    /// Which of them is that of requests that name none; `None`: what stands at the top of the file.
    pub default_host: Option<usize>,
    /// Whether such a request is refused instead, if it names a host at all (421).
    pub refuse_unknown_hosts: bool,
    /// Whose rights the processes that serve have once everything is open, by name or number; `None`: those
    /// that it is started with.
    pub user: Option<String>,
    /// In which group; `None`: the user's own.
    pub group: Option<String>,
    /// Whether they keep only the files and ports that this configuration names, where the kernel can do
    /// that (Landlock).
    pub confine: bool,
    /// CPUs the server may run on; empty: all that it was given.
    pub cpus: Vec<u32>,
    /// What is wrong on purpose; nothing unless set.
    pub faults: Vec<Fault>,
    /// What answers requests that no file does, in order of precedence; nothing unless set.
    pub gateways: Vec<GatewayConfig>,
    /// Where the server tells about itself, and whom.
    pub status: StatusConfig,
    /// How it speaks TLS; `None`: not at all.
    pub tls: Option<TlsConfig>,
    /// Requests are sent on to where TLS is spoken. Never typed: see `TlsConfig::redirect_from`.
    pub(crate) to_https: Option<ToHttps>,
}

/// Which requests are sent on to TLS, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ToHttps {
    /// The port where TLS is spoken.
    pub(crate) port: u16,
    /// What is served here all the same, in plain: files whose path begins so.
    pub(crate) except: Vec<String>,
}

/// What is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The files beneath a directory.
    Directory(PathBuf),
    /// As many bytes for every path, from memory.
    Fixed(Bytes),
}

/// Whether and how long a connection is kept for another request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// `KeepAlive`.
    pub enabled: bool,
    /// `KeepAliveTimeout`: until the first byte of the next request.
    pub timeout: Nanos,
    /// `MaxKeepAliveRequests`: answers after which a connection goes on; 0: any number.
    pub requests_max: u32,
}

/// Bounds on what a client may send, and for how long. Every one that is exceeded has an answer of
/// its own: 431, 414, 413, 408, or the whole file instead of many ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A request head, request line included (431). Apache allows 8190 a line, nginx 4 times 8 KiB.
    pub head_bytes_max: u32,
    /// A request line (414). As Apache's LimitRequestLine.
    pub target_bytes_max: u32,
    /// Field lines of a head (431). As Apache's LimitRequestFields.
    pub fields_max: u32,
    /// From accepting a connection to the end of its TLS handshake (it is closed). As h2o's.
    pub handshake_timeout: Nanos,
    /// From the first byte of a head to its last, whatever arrives between (408): the answer to
    /// slowloris. As Apache's RequestReadTimeout header=20.
    pub head_timeout: Nanos,
    /// A request body, which a static file has no use for and drops (413).
    pub body_bytes_max: u64,
    /// A body may take this long, and a second more for every `body_rate_min` bytes (408). As
    /// Apache's RequestReadTimeout body=20,MinRate=500.
    pub body_timeout: Nanos,
    /// Bytes a second; see `body_timeout`.
    pub body_rate_min: u32,
    /// A client may take none of a response for this long (it is cut); the setting `TimeOut`.
    pub write_timeout: Nanos,
    /// Ranges of one request; more, and it is answered whole. Each costs some 100 bytes of framing
    /// (CVE-2011-3192).
    pub ranges_max: u32,
    /// How long a file is sent from memory, or from its open descriptor, before its path is looked up again;
    /// zero: it is opened and read for each request. The setting `FileCache`.
    pub file_cache: Nanos,
    /// Files kept in memory, in every process.
    pub cache_entries_max: u32,
    /// Bytes of all of them.
    pub cache_bytes_max: u64,
    /// A file that is larger is sent from the page cache by sendfile.
    pub cached_file_bytes_max: u32,
    /// Of those, so many are kept open, in every process.
    pub open_files_max: u32,
    /// Lines of a directory listing; what is beyond is counted, not shown.
    pub listing_entries_max: u32,
}

/// Where and how requests are noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessLogConfig {
    /// The file, appended to; `None`: no log, at no cost.
    pub file: Option<PathBuf>,
    /// What a line holds.
    pub format: LogFormat,
}

/// Where the server says what happens to it, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLogConfig {
    /// Where lines go.
    pub to: ErrorLogTo,
    /// The least grave that is written.
    pub level: Level,
}

/// Where the error log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLogTo {
    /// The standard error that the server was given.
    Stderr,
    /// Nowhere.
    Off,
    /// This file, appended to.
    File(PathBuf),
}

impl Default for ErrorLogConfig {
    fn default() -> Self {
        Self { to: ErrorLogTo::Stderr, level: Level::Notice }
    }
}

impl Config {
    /// Everything by default, for that model and content.
    pub fn new(model: &'static Model, content: Content) -> Self {
        let mut config = Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            content,
            model,
            settings: Settings::defaults(model),
            keep_alive: KeepAlive { enabled: true, timeout: Nanos::ZERO, requests_max: 0 },
            limits: Limits::DEFAULT,
            access_log: AccessLogConfig::default(),
            error_log: ErrorLogConfig::default(),
            index: vec!["index.html".to_owned(), "index.htm".to_owned()],
            listing: false,
            pid_file: None,
            look: Look::default(),
            errors: BTreeMap::new(),
            rules: Vec::new(),
            hosts: Vec::new(),
            default_host: None,
            refuse_unknown_hosts: false,
            user: None,
            group: None,
            confine: true,
            cpus: Vec::new(),
            faults: Vec::new(),
            gateways: Vec::new(),
            status: StatusConfig::default(),
            tls: None,
            to_https: None,
        };
        config.derive();
        config
    }

    /// Of the server that sends plain requests on to `port`; `None`: there is none.
    pub(crate) fn redirecting(&self, port: u16) -> Option<Self> {
        let tls = self.tls.as_ref()?;
        let listen = tls.redirect_from?;
        // One process, which costs next to nothing while nobody comes.
        let mut config = Self::new(crate::models::redirecting(), Content::Fixed(Bytes(0)));
        config.listen = listen;
        config.to_https = Some(ToHttps { port, except: tls.redirect_except.clone() });
        self.give_files(&mut config, &tls.redirect_except);
        config.limits = Limits { write_timeout: config.limits.write_timeout, ..self.limits };
        config.access_log.clone_from(&self.access_log);
        config.error_log.clone_from(&self.error_log);
        config.user.clone_from(&self.user);
        config.group.clone_from(&self.group);
        config.confine = self.confine;
        config.cpus.clone_from(&self.cpus);
        Some(config)
    }

    /// Connections that may wait to be accepted.
    pub fn listen_backlog(&self) -> u32 {
        u32::try_from(self.settings.count("ListenBacklog")).unwrap_or(u32::MAX)
    }

    /// How long a client may let a connection wait: for its next request, within a head, within a
    /// body, with an answer, and with TLS within the handshake.
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

    /// Puts these settings, of the same model, in the place of those before.
    ///
    /// # Errors
    /// A combination that cannot work, with the reason and the way out.
    pub fn apply(&mut self, settings: Settings) -> Result<(), String> {
        (self.model.check)(&settings)?;
        self.settings = settings;
        self.derive();
        Ok(())
    }

    /// Takes from the settings what has a typed place; to be called after the last of them.
    pub(crate) fn derive(&mut self) {
        let requests_max = self.settings.count("MaxKeepAliveRequests");
        self.keep_alive = KeepAlive {
            enabled: self.settings.switch("KeepAlive"),
            timeout: self.settings.time("KeepAliveTimeout"),
            requests_max: u32::try_from(requests_max).unwrap_or(u32::MAX),
        };
        self.limits.write_timeout = self.settings.time("TimeOut");
        self.limits.file_cache = self.settings.time("FileCache");
    }
}

impl Limits {
    /// What holds unless it is set.
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
