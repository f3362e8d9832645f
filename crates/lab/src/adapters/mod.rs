//! Owns what the lab knows of each real server: where it is found, which settings it has, the
//! complete configuration it is run with, and which of its settings decide comparability. Must not
//! know processes, ports or schedules: an adapter is text in, text out, and `server` runs it.
//! Start reading at [`Adapter`]; one more server is one more file and one line in [`ALL`].

mod apache;
mod joust;
mod lighttpd;
mod nginx;
mod sizing;
mod values;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use record::Settings;

use crate::nearest::suggestion;
pub use values::{Kind, SettingSpec, Values};

/// Every server that the lab can run, in the order of `joust run --servers`.
pub static ALL: &[&Adapter] = &[&joust::ITEM, &apache::ITEM, &nginx::ITEM, &lighttpd::ITEM];

/// Where servers are looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Our own binary: the caller's `current_exe`.
    pub joust: PathBuf,
    /// Folders that are searched, in order.
    pub dirs: Vec<PathBuf>,
}

impl Search {
    /// The usual folders of programs. PATH is not asked: servers lie in sbin, which is not on the
    /// PATH of an ordinary user, and two people with two PATHs should run the same server.
    pub fn new(joust: impl Into<PathBuf>) -> Self {
        let dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        Self { joust: joust.into(), dirs: dirs.map(PathBuf::from).into() }
    }

    /// The first executable file of that name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        use std::os::unix::fs::PermissionsExt as _;
        self.dirs.iter().map(|dir| dir.join(name)).find(|path| {
            path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
        })
    }
}

/// A server that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its program.
    pub binary: PathBuf,
    /// Its own word for its version ("nginx/1.22.1").
    pub version: String,
}

/// The account that servers drop to when they are started as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub user: String,
    /// Name of its group.
    pub group: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
}

/// One start of one server: all that a configuration depends on.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The program.
    pub found: &'a Found,
    /// Its own folder, absolute: everything it writes lies in here.
    pub dir: &'a Path,
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it serves, absolute.
    pub docroot: &'a Path,
    /// CPUs its processes may run on; empty: all.
    pub cpus: &'a [u32],
    /// Connections that the load will hold at once; defaults are sized so that each can be served.
    pub connections: u32,
    /// Whom it drops to; `None` where it is not started as root.
    pub account: Option<&'a Account>,
    /// What differs from the defaults.
    pub settings: &'a Settings,
}

/// A server ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Files to write, by path relative to the server's folder, with their content.
    pub files: Vec<(String, String)>,
    /// Folders to make in the server's folder, owned by the account it drops to.
    pub dirs: Vec<String>,
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Program and arguments that check the configuration and print it, or parts of it, as the
    /// server itself understood it; empty where it has none.
    pub check: Vec<OsString>,
}

/// A server that the lab can run.
#[derive(Debug)]
pub struct Adapter {
    /// Name in study files ("nginx").
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Debian's package that brings it; empty for our own.
    pub package: &'static str,
    /// Looks for it.
    pub find: fn(&Search) -> Option<Found>,
    /// Its settings, each by its original name.
    pub settings: &'static [SettingSpec],
    /// Whether settings that are not listed are handed on, for the server itself to refuse.
    pub hands_on: bool,
    /// Refuses settings that do not go together; each for itself is right already.
    pub agree: fn(&Values) -> Result<(), AdapterError>,
    /// Makes the configuration.
    pub configure: fn(&Request, &Values) -> Rendered,
    /// Reads the settings that decide comparability from the configuration: first the files as
    /// rendered, then what the check printed (empty where it was not run).
    pub parity: fn(&Rendered, &str) -> BTreeMap<String, String>,
}

impl Adapter {
    /// Checks settings as far as that can be done without starting the server.
    ///
    /// # Errors
    /// Unknown names, with the nearest; values of the wrong kind; settings that exclude each other.
    pub fn check(&self, settings: &Settings) -> Result<Values, AdapterError> {
        let values = Values::read(self, settings)?;
        (self.agree)(&values)?;
        Ok(values)
    }

    /// Whether it has a setting of that name, or hands on what it does not know.
    pub fn knows(&self, setting: &str) -> bool {
        self.hands_on || self.settings.iter().any(|spec| spec.name == setting)
    }

    /// The complete configuration and the command for one start.
    ///
    /// # Errors
    /// Those of [`Adapter::check`].
    pub fn render(&self, request: &Request) -> Result<Rendered, AdapterError> {
        let values = self.check(request.settings)?;
        Ok((self.configure)(request, &values))
    }

    /// The command that installs it.
    pub fn remedy(&self) -> String {
        match self.package {
            "" => "build joust: cargo build --release".to_owned(),
            package => format!("apt-get install {package}"),
        }
    }
}

/// The adapter of that name.
///
/// # Errors
/// Where there is none; the text names the nearest.
pub fn named(name: &str) -> Result<&'static Adapter, AdapterError> {
    ALL.iter().copied().find(|adapter| adapter.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|adapter| adapter.name).collect();
        AdapterError::UnknownServer { name: name.to_owned(), suggestion: suggestion(name, &names) }
    })
}

/// Why a server cannot be configured as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AdapterError {
    /// No adapter has this name.
    #[error("no server is called `{name}`: {suggestion}")]
    UnknownServer {
        /// As given.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// The server has no such setting.
    #[error("{server} has no setting `{name}`: {suggestion}")]
    UnknownSetting {
        /// Name of the adapter.
        server: &'static str,
        /// As given.
        name: String,
        /// What may have been meant.
        suggestion: String,
    },
    /// The value is not of the setting's kind.
    #[error("{server}: `{name}` cannot be `{value}`: it takes {wanted}")]
    BadValue {
        /// Name of the adapter.
        server: &'static str,
        /// Name of the setting.
        name: String,
        /// As given.
        value: String,
        /// What would be right.
        wanted: String,
    },
    /// Settings that exclude each other.
    #[error("{server}: {reason}")]
    Disagree {
        /// Name of the adapter.
        server: &'static str,
        /// Which, why, and the way out.
        reason: String,
    },
}

/// The version that a server prints of itself: what follows `marker` up to the end of the line.
pub(crate) fn version_printed(binary: &Path, flag: &str, marker: &str) -> Option<String> {
    let output = std::process::Command::new(binary).arg(flag).output().ok()?;
    // nginx prints its version to stderr, the others to stdout.
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let line = text.lines().find(|line| line.contains(marker))?;
    Some(line.split_once(marker)?.1.trim().to_owned())
}
