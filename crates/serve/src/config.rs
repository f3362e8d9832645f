//! The complete configuration of a server: code below this layer has no optional values and checks nothing again.
//! `command_line` reads what was typed, `keys` has each key of a file. Start reading at [`Config`].

mod command_line;
mod keys;
mod print;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use site::config::{Content, KeepAlive, SiteConfig};
use units::{Bytes, Nanos};

use crate::models::{self, Model, PreparedModel};
use crate::settings::Settings;

pub use command_line::{CommandLine, ConfigError};

/// Everything that decides how a server behaves.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens; 127.0.0.1:8080 unless set. Port 0: any free port.
    pub listen: SocketAddr,
    /// The concurrency model.
    pub model: &'static Model,
    /// The model's settings and the common ones, by their original names.
    pub settings: Settings,
    /// The model with these settings; derived from `settings`.
    pub(crate) prepared: Arc<dyn PreparedModel>,
    /// Connections that may wait to be accepted; derived from `settings`.
    pub listen_backlog: u32,
    /// After SIGTERM, how long requests in progress may take before they are cut; derived from `settings`.
    pub shutdown_grace: Nanos,
    /// What is served. Some of it is derived from `settings`.
    pub site: SiteConfig,
    /// A file that holds the number of the process that SIGHUP and SIGTERM are sent to.
    pub pid_file: Option<PathBuf>,
    /// User to switch to once everything is open, by name or number; `None`: the user that starts the server.
    pub user: Option<String>,
    /// Group to switch to; `None`: the user's own.
    pub group: Option<String>,
    /// Whether serving processes may use only the files and ports that this configuration names, if the kernel supports
    /// it (Landlock).
    pub confine: bool,
    /// CPUs the server may run on; empty: all that are available.
    pub cpus: Vec<u32>,
}

impl Config {
    /// The defaults, for that model and content.
    pub fn new(model: &'static Model, content: Content) -> Self {
        let settings = Settings::defaults(model.settings);
        let prepared = (model.prepare)(&settings).expect("the defaults of a model work together");
        let mut config = Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            model,
            settings,
            prepared,
            listen_backlog: 0,
            shutdown_grace: Nanos::ZERO,
            site: SiteConfig::new(content),
            pid_file: None,
            user: None,
            group: None,
            confine: true,
            cpus: Vec::new(),
        };
        config.derive();
        config
    }

    /// The configuration of the server that redirects plain requests to `port`; `None`: no redirect is set.
    pub(crate) fn redirecting(&self, port: u16) -> Option<Self> {
        let listen = self.site.tls.as_ref()?.redirect_from?;
        // One process, which costs almost nothing while no client connects.
        let mut config = Self::new(models::redirecting(), Content::Fixed(Bytes(0)));
        let of_model = config.site;
        config.site = self.site.redirecting(port)?;
        config.site.keep_alive = of_model.keep_alive;
        config.site.limits.write_timeout = of_model.limits.write_timeout;
        config.listen = listen;
        config.user.clone_from(&self.user);
        config.group.clone_from(&self.group);
        config.confine = self.confine;
        config.cpus.clone_from(&self.cpus);
        Some(config)
    }

    /// Replaces the settings by these, which are of the same model.
    ///
    /// # Errors
    /// A combination that cannot work, with the reason and the way out.
    pub fn apply(&mut self, settings: Settings) -> Result<(), String> {
        self.prepared = (self.model.prepare)(&settings)?;
        self.settings = settings;
        self.derive();
        Ok(())
    }

    /// Copies settings into the fields that are derived from them; to be called after the last change of a setting.
    fn derive(&mut self) {
        let settings = &self.settings;
        let count = |name| u32::try_from(settings.count(name)).unwrap_or(u32::MAX);
        self.listen_backlog = count("ListenBacklog");
        self.shutdown_grace = settings.time("GracefulShutdownTimeout");
        self.site.keep_alive = KeepAlive {
            enabled: settings.switch("KeepAlive"),
            timeout: settings.time("KeepAliveTimeout"),
            requests_max: count("MaxKeepAliveRequests"),
        };
        self.site.limits.write_timeout = settings.time("TimeOut");
        self.site.limits.file_cache = settings.time("FileCache");
    }
}
