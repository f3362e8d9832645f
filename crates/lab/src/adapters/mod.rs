//! Owns what the lab knows of each real server: where it is found, which settings it has, the complete configuration
//! it runs with, and which of its settings decide comparability. Must not know processes, ports or schedules: an
//! adapter turns text into text, and `server` runs it.
//! Start reading at [`Adapter`]; one more server is one more file and one line in [`ALL`].

mod apache;
mod caddy;
mod command;
mod h2o;
mod joust;
mod lighttpd;
mod mini_httpd;
mod nginx;
mod sizing;
mod tomcat;
mod url;
mod values;
mod version;
mod words;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use record::{Plan, Settings};
use sys::child::Signal;

use crate::nearest::suggestion;
use doctor::parity::{Answer, Answers};
pub use values::{SettingKind, SettingSpec, Values};
use version::is_before;
pub(crate) use version::version_printed;
pub(crate) use words::words;

/// Every server that the lab can run, in the order of `joust servers`.
pub static ALL: &[&Adapter] = &[
    &joust::ITEM,
    &apache::ITEM,
    &nginx::ITEM,
    &lighttpd::ITEM,
    &h2o::ITEM,
    &caddy::ITEM,
    &tomcat::ITEM,
    &mini_httpd::ITEM,
    &command::ITEM,
    &url::ITEM,
];

/// Where to look for servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Our own binary: the caller's `current_exe`.
    pub joust: PathBuf,
    /// Folders to search, in order.
    pub dirs: Vec<PathBuf>,
}

impl Search {
    /// The usual folders of programs. PATH is not used: servers lie in sbin, which is not in an ordinary user's PATH,
    /// and users with different PATHs should run the same server.
    pub fn new(joust: impl Into<PathBuf>) -> Self {
        let dirs = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        Self { joust: joust.into(), dirs: dirs.map(PathBuf::from).into() }
    }

    /// The first executable file of that name.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.dirs.iter().map(|dir| dir.join(name)).find(|path| is_program(path))
    }
}

/// Whether this is a file that can be started.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// A server that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its program; empty if the contender's settings name it.
    pub binary: PathBuf,
    /// Its version as it prints it ("nginx/1.22.1"); empty if only its replies can tell.
    pub version: String,
}

/// Why a server cannot be run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// The server and what is wrong ("nginx is not installed").
    pub reason: String,
    /// The command that helps.
    pub remedy: String,
}

/// The oldest version that its adapter can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimum {
    /// Its number ("1.19.5").
    pub version: &'static str,
    /// What older versions lack.
    pub lack: &'static str,
}

/// The account that servers drop to when they are started as root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub user: String,
    /// Name of the user's group.
    pub group: String,
    /// Number of the user.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
}

/// One start of one server: everything that a configuration depends on.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The program.
    pub found: &'a Found,
    /// Its own folder, absolute; the server writes only here.
    pub dir: &'a Path,
    /// Where it listens.
    pub addr: SocketAddr,
    /// What it serves, absolute.
    pub docroot: &'a Path,
    /// CPUs its processes may run on; empty: all.
    pub cpus: &'a [u32],
    /// Connections that the load holds at once; defaults are sized so that each can be served.
    pub connections: u32,
    /// The account that it drops to; `None` if it is not started as root.
    pub account: Option<&'a Account>,
    /// Settings that differ from the defaults.
    pub settings: &'a Settings,
}

/// A server ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Files to write, by path relative to the server's folder, with their content.
    pub files: Vec<(String, String)>,
    /// Folders to make in the server's folder, owned by the account it drops to.
    pub dirs: Vec<String>,
    /// Program and arguments; empty if the server runs elsewhere, and nothing is started.
    pub command: Vec<OsString>,
    /// Environment variables in addition to PATH.
    pub env: Vec<(String, String)>,
    /// Program and arguments that check the configuration and print it, or parts of it, as the server understood it;
    /// empty if the server has no such check.
    pub check: Vec<OsString>,
    /// Its working directory; `None`: the server's folder.
    pub cwd: Option<PathBuf>,
    /// Where it is reached.
    pub reached: Reached,
    /// The target of the readiness check, if it is not the study's target.
    pub ready: Option<String>,
    /// The signal that asks it for an orderly end.
    pub stop: Signal,
}

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// At the address of the request.
    AsAsked,
    /// At this port of 127.0.0.1, which its settings fix.
    Port(u16),
    /// Elsewhere: it already runs.
    At {
        /// Name or address, and port ("10.0.0.7:80"), for the Host field of requests.
        authority: String,
        /// The target of requests, if it is not the study's target.
        target: Option<String>,
    },
}

impl Rendered {
    /// Only a command: most servers need nothing else.
    pub(super) fn of(command: Vec<OsString>) -> Self {
        Self {
            files: Vec::new(),
            dirs: Vec::new(),
            command,
            env: Vec::new(),
            check: Vec::new(),
            cwd: None,
            reached: Reached::AsAsked,
            ready: None,
            stop: Signal::SIGTERM,
        }
    }

    /// The text that a parity table is read from: the output of the check, or else the first file.
    fn source<'a>(&'a self, printed: &'a str) -> &'a str {
        if printed.is_empty() { self.files[0].1.as_str() } else { printed }
    }
}

/// A server that the lab can run.
#[derive(Debug)]
pub struct Adapter {
    /// Name in study files ("nginx").
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// The Debian package that contains it; empty for our own.
    pub package: &'static str,
    /// The oldest version that works; `None` if any does.
    pub minimum: Option<Minimum>,
    /// Looks for it.
    pub find: fn(&Search) -> Option<Found>,
    /// Its settings, each by its original name.
    pub settings: &'static [SettingSpec],
    /// Whether settings that are not listed are passed on to the server, which refuses those it does not know.
    pub hands_on: bool,
    /// What the lab can do with it.
    pub role: Role,
    /// Each way to run it that differs in its processes, as names and values of settings. Tests start all of them and
    /// check that each leaves nothing behind.
    pub ways: &'static [Way],
    /// Refuses settings that conflict with each other; each setting alone is already valid.
    pub agree: fn(&Values) -> Result<(), AdapterError>,
    /// Makes the configuration.
    pub configure: fn(&Request, &Values) -> Rendered,
    /// Reads what decides comparability from the output of the check. If that is empty (no check, or it was not run),
    /// reads it from the rendered files.
    pub parity: fn(&Rendered, &str) -> Parity,
    /// Something that its settings name and this machine lacks; [`Adapter::find`] looks for the server itself.
    pub missing: fn(&Values, &Search) -> Option<Missing>,
    /// What the user should know before any load.
    pub note: fn(&Values) -> Option<String>,
}

/// Settings with which a server is run.
pub type Way = &'static [(&'static str, &'static str)];

/// What the lab can do with a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It is configured and started, at any address.
    Server,
    /// It is started by a command line at 127.0.0.1, and configures itself.
    AnyProgram,
    /// It already runs: it is neither started nor ended.
    RunsAlready,
}

/// The fields that most servers share. An adapter names only those that differ.
pub(super) const SERVER: Adapter = Adapter {
    name: "",
    about: "",
    package: "",
    minimum: None,
    find: |_| None,
    settings: &[],
    hands_on: false,
    role: Role::Server,
    ways: &[&[]],
    agree: |_| Ok(()),
    configure: |_, _| Rendered::of(Vec::new()),
    parity: |_, _| Parity { answers: Answers::unknown("no adapter says"), shown: Vec::new() },
    missing: |_, _| None,
    note: |_| None,
};

/// What an adapter reports about the configuration of its server.
#[derive(Debug)]
pub struct Parity {
    /// An answer to every switch that contenders are compared in.
    pub answers: Answers,
    /// Values that are shown beside the answers but not compared: name and value.
    pub shown: Vec<(String, String)>,
}

impl Parity {
    /// The table as a record stores it.
    pub fn into_table(self) -> BTreeMap<String, String> {
        let mut table = self.answers.into_table();
        table.extend(self.shown);
        table
    }
}

impl Adapter {
    /// Checks settings as far as possible without starting the server.
    ///
    /// # Errors
    /// Unknown names, with the nearest; values of the wrong kind; settings that exclude each other.
    pub fn check(&self, settings: &Settings) -> Result<Values, AdapterError> {
        let values = Values::read(self, settings)?;
        (self.agree)(&values)?;
        Ok(values)
    }

    /// Whether it listens at the address it is given, so that it can run in a network namespace of its own. Otherwise
    /// it is reached at 127.0.0.1, or where it already runs.
    pub fn is_movable(&self) -> bool {
        self.role == Role::Server
    }

    /// Whether its settings name a server that runs already, on this machine's loopback.
    pub(crate) fn is_on_loopback(&self, settings: &Settings) -> bool {
        let values = self.check(settings);
        self.role == Role::RunsAlready && values.is_ok_and(|values| (self.note)(&values).is_none())
    }

    /// Whether it has a setting of that name, or passes unknown settings on.
    pub fn knows(&self, setting: &str) -> bool {
        self.hands_on || self.settings.iter().any(|spec| spec.name == setting)
    }

    /// Whether a study can name the signal that ends it.
    pub fn takes_stop(&self) -> bool {
        self.settings.iter().any(|spec| spec.name == command::STOP)
    }

    /// The server's own objection to settings that were passed on to it; `None` if it accepts them, or if none were
    /// passed on.
    pub fn refusal(&self, found: &Found, settings: &Settings) -> Option<String> {
        if !self.hands_on {
            return None;
        }
        let rendered = self.render(&nowhere(found, settings)).ok()?;
        let (program, arguments) = rendered.command.split_first()?;
        let mut check = std::process::Command::new(program);
        // The text becomes part of our message: no colours, and no wrapping for a terminal.
        check.args(arguments).arg("--check-config").env("NO_COLOR", "1");
        let output = check.output().ok().filter(|output| !output.status.success())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_frame = |c: char| c.is_whitespace() || matches!(c, '×' | '│');
        Some(said.split(is_frame).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// The port at which it is reached in every visit, if its settings fix one.
    pub fn fixed_port(&self, found: &Found, settings: &Settings) -> Option<u16> {
        match self.render(&nowhere(found, settings)).ok()?.reached {
            Reached::AsAsked => None,
            Reached::Port(port) => Some(port),
            Reached::At { authority, .. } => authority.rsplit_once(':')?.1.parse().ok(),
        }
    }

    /// The complete configuration and the command for one start.
    ///
    /// # Errors
    /// Those of [`Adapter::check`].
    pub fn render(&self, request: &Request) -> Result<Rendered, AdapterError> {
        let values = self.check(request.settings)?;
        Ok((self.configure)(request, &values))
    }

    /// Finds the server on this machine.
    ///
    /// # Errors
    /// It is not installed, or too old.
    pub fn installed(&self, search: &Search) -> Result<Found, Missing> {
        let found = (self.find)(search).ok_or_else(|| Missing {
            reason: format!("{} is not installed", self.name),
            remedy: self.remedy(),
        })?;
        match self.minimum {
            Some(minimum) if is_before(&found.version, minimum.version) => Err(Missing {
                reason: format!(
                    "{} is too old: {} at {}, and it takes {} or later, for {}",
                    self.name,
                    found.version,
                    found.binary.display(),
                    minimum.version,
                    minimum.lack,
                ),
                remedy: self.remedy(),
            }),
            _ => Ok(found),
        }
    }

    /// As [`Adapter::installed`], and also finds the program that the settings of a contender name.
    ///
    /// # Errors
    /// As there, and if that program is missing.
    pub fn installed_with(&self, search: &Search, settings: &Settings) -> Result<Found, Missing> {
        let found = self.installed(search)?;
        let values = self.check(settings).ok();
        match values.and_then(|values| (self.missing)(&values, search)) {
            Some(missing) => Err(missing),
            None => Ok(found),
        }
    }

    /// The command that installs it.
    pub fn remedy(&self) -> String {
        match self.package {
            "" => "build joust: cargo build --release".to_owned(),
            package => format!("apt-get install {package}"),
        }
    }
}

/// A request that is never started, for what depends on settings alone.
fn nowhere<'a>(found: &'a Found, settings: &'a Settings) -> Request<'a> {
    Request {
        found,
        dir: Path::new("/"),
        addr: SocketAddr::from(([127, 0, 0, 1], 0)),
        docroot: Path::new("/"),
        cpus: &[],
        connections: 1,
        account: None,
        settings,
    }
}

/// The adapter of that name.
///
/// # Errors
/// There is no adapter of that name; the text names the nearest.
pub fn named(name: &str) -> Result<&'static Adapter, AdapterError> {
    ALL.iter().copied().find(|adapter| adapter.name == name).ok_or_else(|| {
        let names: Vec<&str> = ALL.iter().map(|adapter| adapter.name).collect();
        AdapterError::UnknownServer { name: name.to_owned(), suggestion: suggestion(name, &names) }
    })
}

/// Notes for the user about the contenders of a study before any load, such as that one is not on this machine.
/// Resolves no name.
pub fn notes(plan: &Plan) -> Vec<String> {
    let of_one = |contender: &record::Contender| {
        let adapter = named(&contender.server).ok()?;
        let values = adapter.check(&contender.settings).ok()?;
        Some(format!("{}: {}", contender.name, (adapter.note)(&values)?))
    };
    plan.contenders.iter().filter_map(of_one).collect()
}

/// Stands for a value that a configuration should contain but does not.
const NOT_SET: &str = "not set";

/// An answer that was read from a configuration.
fn read(value: String) -> Answer {
    match value.as_str() {
        NOT_SET => Answer::Unknown("its configuration does not say"),
        _ => Answer::Is(value),
    }
}

/// Values that are shown beside the switches.
fn shown<const N: usize>(pairs: [(&str, String); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value)).into()
}

/// For what only a running server shows: `lab::parity` probes it and replaces this answer.
const SEEN_ONLY: Answer = Answer::Unknown("it did not answer");

/// `file_cache` of a server that looks up and opens the file for each request.
const NO_FILE_CACHE: &str = "off";

/// `keep_alive_timeout` of a server that keeps no connection.
const NOT_KEPT: &str = "not kept";

/// The backlog of a server that asks for more than the system allows.
fn somaxconn() -> String {
    let most = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap_or_default();
    most.trim().to_owned()
}

fn on_off(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}

/// "1 process", "4 processes".
fn counted(number: &str, one: &str, many: &str) -> String {
    let noun = if number == "1" { one } else { many };
    format!("{number} {noun}")
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
