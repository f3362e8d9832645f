//! Owns what the lab knows of each real server: where it is found, which settings it has, the
//! complete configuration it is run with, and which of its settings decide comparability. Must not
//! know processes, ports or schedules: an adapter is text in, text out, and `server` runs it.
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
        self.dirs.iter().map(|dir| dir.join(name)).find(|path| is_program(path))
    }
}

/// Whether that is a file that can be started.
fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// A server that is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its program; empty where the settings of a contender say which.
    pub binary: PathBuf,
    /// Its own word for its version ("nginx/1.22.1"); empty where only its answers can tell.
    pub version: String,
}

/// Why a server cannot be run on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Which, and what is wrong ("nginx is not installed").
    pub reason: String,
    /// The command that helps.
    pub remedy: String,
}

/// The oldest version that can be run as its adapter runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Minimum {
    /// Its number ("1.19.5").
    pub version: &'static str,
    /// What older ones lack.
    pub lack: &'static str,
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
    /// Program and arguments; empty where the server runs elsewhere, and nothing is started.
    pub command: Vec<OsString>,
    /// Variables of its environment beside PATH.
    pub env: Vec<(String, String)>,
    /// Program and arguments that check the configuration and print it, or parts of it, as the
    /// server itself understood it; empty where it has none.
    pub check: Vec<OsString>,
    /// Where it is started; `None`: in the server's folder.
    pub cwd: Option<PathBuf>,
    /// Where it is reached.
    pub reached: Reached,
    /// What is asked for to see whether it answers, where that is not what the study asks for.
    pub ready: Option<String>,
    /// The signal that asks it to end in order.
    pub stop: Signal,
}

/// Where a server is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reached {
    /// Where the request says that it shall listen.
    AsAsked,
    /// At this port of 127.0.0.1: its settings fix it.
    Port(u16),
    /// Elsewhere: it runs already.
    At {
        /// Name or address, and port ("10.0.0.7:80"): what the Host field of requests says.
        authority: String,
        /// What it is asked for, where that is not what the study asks for.
        target: Option<String>,
    },
}

impl Rendered {
    /// A command, and of all else what most servers need: nothing.
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

    /// What to read a parity table from: what the check printed, else the first file.
    fn source<'a>(&'a self, printed: &'a str) -> &'a str {
        if printed.is_empty() { self.files[0].1.as_str() } else { printed }
    }
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
    /// The oldest version that will do; `None` where any will.
    pub minimum: Option<Minimum>,
    /// Looks for it.
    pub find: fn(&Search) -> Option<Found>,
    /// Its settings, each by its original name.
    pub settings: &'static [SettingSpec],
    /// Whether settings that are not listed are handed on, for the server itself to refuse.
    pub hands_on: bool,
    /// What the lab can do with it.
    pub role: Role,
    /// Each way to run it that differs in its processes, as names and values of settings. Tests start them
    /// all, and look for what is left of each.
    pub ways: &'static [Way],
    /// Refuses settings that do not go together; each for itself is right already.
    pub agree: fn(&Values) -> Result<(), AdapterError>,
    /// Makes the configuration.
    pub configure: fn(&Request, &Values) -> Rendered,
    /// Reads what decides comparability from the configuration: from what the check printed, and where
    /// that is empty (no check, or it was not run) from the files as rendered.
    pub parity: fn(&Rendered, &str) -> Parity,
    /// What is missing here that its settings name; [`Adapter::find`] looks for the server itself.
    pub missing: fn(&Values, &Search) -> Option<Missing>,
    /// What a user should know before any load.
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
    /// It runs already: it is neither started nor ended.
    RunsAlready,
}

/// What most servers have in common. An adapter names what it has beside that.
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

/// What an adapter says of how its server is configured.
#[derive(Debug)]
pub struct Parity {
    /// An answer to every switch that contenders are compared in.
    pub answers: Answers,
    /// What is shown beside them and not compared: name and value.
    pub shown: Vec<(String, String)>,
}

impl Parity {
    /// As a record has it.
    pub fn into_table(self) -> BTreeMap<String, String> {
        let mut table = self.answers.into_table();
        table.extend(self.shown);
        table
    }
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

    /// Whether it listens at the address that it is told, so that it can be put in a network of its
    /// own; else it is reached at 127.0.0.1, or where it runs.
    pub fn is_movable(&self) -> bool {
        self.role == Role::Server
    }

    /// Whether it has a setting of that name, or hands on what it does not know.
    pub fn knows(&self, setting: &str) -> bool {
        self.hands_on || self.settings.iter().any(|spec| spec.name == setting)
    }

    /// Whether a study can name the signal that ends it.
    pub fn takes_stop(&self) -> bool {
        self.settings.iter().any(|spec| spec.name == command::STOP)
    }

    /// What the server itself says against settings that were handed on to it; `None` where it takes
    /// them, or hands on none.
    pub fn refusal(&self, found: &Found, settings: &Settings) -> Option<String> {
        if !self.hands_on {
            return None;
        }
        let rendered = self.render(&nowhere(found, settings)).ok()?;
        let (program, arguments) = rendered.command.split_first()?;
        let mut check = std::process::Command::new(program);
        // The text goes into a message of ours: without colours, and not wrapped for a terminal.
        check.args(arguments).arg("--check-config").env("NO_COLOR", "1");
        let output = check.output().ok().filter(|output| !output.status.success())?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_frame = |c: char| c.is_whitespace() || matches!(c, '×' | '│');
        Some(said.split(is_frame).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" "))
    }

    /// The port at which it is reached in every visit, where its settings fix one.
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

    /// The server of this machine.
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

    /// As [`Adapter::installed`], and the program that the settings of a contender name.
    ///
    /// # Errors
    /// As there; that program is not there.
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

/// A start that is never made: for what depends on settings alone.
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

/// What a user should know of the contenders of a study before any load: that one of them is
/// not on this machine. No name is resolved.
pub fn notes(plan: &Plan) -> Vec<String> {
    let of_one = |contender: &record::Contender| {
        let adapter = named(&contender.server).ok()?;
        let values = adapter.check(&contender.settings).ok()?;
        Some(format!("{}: {}", contender.name, (adapter.note)(&values)?))
    };
    plan.contenders.iter().filter_map(of_one).collect()
}

/// What a configuration was read for and does not have.
const NOT_SET: &str = "not set";

/// What was read from a configuration.
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

/// What only a running server tells: `lab::parity` asks it, and its answer stands above this one.
const SEEN_ONLY: Answer = Answer::Unknown("it did not answer");

/// `file_cache` of a server that looks a file up and opens it for each request.
const NO_FILE_CACHE: &str = "off";

/// `keep_alive_timeout` of a server that keeps no connection.
const NOT_KEPT: &str = "not kept";

/// The backlog of a server that asks for more than the system gives.
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
