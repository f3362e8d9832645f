//! `[[gateway]]`: requests that a CGI program or a FastCGI application answers. Owns its keys, their defaults
//! and what may be combined. Start reading at [`GatewayConfig`].

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use super::host::HostConfig;
use super::table::{Table, shown_as};
use super::{Content, SiteConfig, text};

/// The table.
pub(super) static TABLE: Table = Table {
    name: "gateway",
    is_list: true,
    take: |config, value| {
        let all = Vec::<Written>::deserialize(value)?.into_iter().enumerate();
        // Named by its position too: a gateway has no name.
        let read = |(index, written)| {
            let refused = |why| format!("gateway {}: {why}", index + 1);
            GatewayConfig::try_from(written).map_err(refused).map_err(toml::de::Error::custom)
        };
        config.gateways = all.map(read).collect::<Result<_, _>>()?;
        Ok(())
    },
    show: |config| {
        let all: Vec<_> = config.gateways.iter().map(Written::from).collect();
        (!all.is_empty()).then(|| shown_as("gateway", &all))
    },
    example: || {
        let usual = GatewayConfig::usual(Mapping::Path("/cgi-bin/".to_owned()));
        shown_as("gateway", &[Written::from(&usual)])
    },
};

/// Requests that a program answers instead of a file. What a field says of a "program" also holds for a FastCGI
/// application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Which requests.
    pub mapping: Mapping,
    /// Names of the hosts that it serves, one of each; empty: all hosts.
    pub hosts: Vec<String>,
    /// What answers.
    pub kind: GatewayKind,
    /// Where the programs lie; `None`: in the site.
    pub root: Option<PathBuf>,
    /// One program for all requests of a path.
    pub script: Option<PathBuf>,
    /// What runs the script, such as `/usr/bin/php-cgi`; `None`: the script is run itself.
    pub interpreter: Option<PathBuf>,
    /// Where a FastCGI application listens: `unix:/PATH`, `tcp:HOST:PORT`. Requests go to the sockets in turn, past
    /// those that do not answer.
    pub sockets: Vec<String>,
    /// A FastCGI application that the server starts, and stops when it ends; `sockets` is empty then.
    pub spawn: Option<Spawn>,
    /// Idle connections to it that each process keeps. 0 (nginx's default) unless set: each of them occupies a process
    /// of an application that serves one connection per process (php-fpm). The processes of a large server could occupy
    /// all of them.
    pub connections_kept_max: u32,
    /// Environment variables that each program gets.
    pub env: BTreeMap<String, String>,
    /// Whether a program gets the field Authorization.
    pub pass_authorization: bool,
    /// How long a program may send nothing: before its first byte (504), or between two bytes (the answer is cut off).
    pub timeout: Nanos,
    /// Requests in progress at once, in each process; more are refused (503).
    pub programs_max: u32,
    /// Bytes of a request's body (413).
    pub body_bytes_max: Bytes,
    /// A longer body is stored in a file.
    pub body_memory_bytes_max: Bytes,
    /// Directory of that unnamed file, and of the directory with the socket of a spawned application.
    pub body_directory: PathBuf,
    /// Bytes of an answer's head (502).
    pub head_bytes_max: Bytes,
    /// Bytes of an answer, after which it is cut off; 0: any number.
    pub output_bytes_max: Bytes,
    /// What to assume when a client closes its sending side while it waits.
    pub half_closed: HalfClosed,
}

/// Which requests a gateway answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mapping {
    /// Those whose path begins with this prefix, which begins and ends with a slash.
    Path(String),
    /// Those with a path segment that ends with this, such as `.php`.
    Extension(String),
}

impl fmt::Display for Mapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Path(text) | Self::Extension(text)) = self;
        f.write_str(text)
    }
}

/// An application that the server starts: each process has the listening socket as its standard input
/// (FCGI_LISTENSOCK_FILENO).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spawn {
    /// The program, by its path, and its arguments.
    pub command: Vec<String>,
    /// How many processes.
    #[serde(default = "one")]
    pub count: u32,
}

fn one() -> u32 {
    1
}

/// Processes of an application at most.
const SPAWNED_MAX: u32 = 1024;

/// What answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GatewayKind {
    /// A program that is started for each request (RFC 3875).
    #[serde(rename = "cgi")]
    Cgi,
    /// A running application that is asked over a socket.
    #[serde(rename = "fastcgi")]
    FastCgi,
}

/// What to assume when a client closes its sending side while it waits for its answer. Either it has left, or it only
/// sends no more: TCP shows which only after bytes are sent to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HalfClosed {
    /// It has left, as nginx assumes: the program is killed.
    #[default]
    #[serde(rename = "abort")]
    Abort,
    /// It sends no more and waits, as Apache assumes.
    #[serde(rename = "wait")]
    Wait,
}

impl GatewayConfig {
    /// CGI programs of the site beneath that path, with or without its last slash; all else by default.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn cgi(path: &str) -> Result<Self, String> {
        Ok(Self::usual(Mapping::Path(prefix(path)?)))
    }

    /// The defaults.
    fn usual(mapping: Mapping) -> Self {
        Self {
            mapping,
            hosts: Vec::new(),
            kind: GatewayKind::Cgi,
            root: None,
            script: None,
            interpreter: None,
            sockets: Vec::new(),
            spawn: None,
            connections_kept_max: 0,
            env: BTreeMap::new(),
            pass_authorization: false,
            timeout: Nanos::from_secs(60),
            programs_max: 256,
            body_bytes_max: Bytes(64 * 1024 * 1024),
            body_memory_bytes_max: Bytes(64 * 1024),
            body_directory: "/tmp".into(),
            head_bytes_max: Bytes(16 * 1024),
            output_bytes_max: Bytes(0),
            half_closed: HalfClosed::Abort,
        }
    }
}

/// A table as it is written.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    path: Option<String>,
    extension: Option<String>,
    host: Option<OneOrMany>,
    kind: Option<GatewayKind>,
    root: Option<PathBuf>,
    script: Option<PathBuf>,
    interpreter: Option<PathBuf>,
    socket: Option<OneOrMany>,
    connections_kept_max: Option<u32>,
    pass_authorization: Option<bool>,
    timeout: Option<String>,
    programs_max: Option<u32>,
    body_bytes_max: Option<Amount>,
    body_memory_bytes_max: Option<Amount>,
    body_directory: Option<PathBuf>,
    head_bytes_max: Option<Amount>,
    output_bytes_max: Option<Amount>,
    half_closed: Option<HalfClosed>,
    spawn: Option<Spawn>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
}

/// One text, or several.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "a text in quotes, or a list of them")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn all(written: Option<Self>) -> Vec<String> {
        match written {
            None => Vec::new(),
            Some(Self::One(one)) => vec![one],
            Some(Self::Many(many)) => many,
        }
    }

    fn of(all: &[String]) -> Option<Self> {
        match all {
            [] => None,
            [one] => Some(Self::One(one.clone())),
            many => Some(Self::Many(many.to_owned())),
        }
    }
}

/// A number of bytes, as a number or with its unit.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of bytes, as in 65536 or \"64KiB\"")]
enum Amount {
    Number(u64),
    Text(String),
}

impl Amount {
    fn bytes(self) -> Result<Bytes, String> {
        match self {
            Self::Number(number) => Ok(Bytes(number)),
            Self::Text(text) => text.parse().map_err(|error: units::ParseError| error.to_string()),
        }
    }
}

impl TryFrom<Written> for GatewayConfig {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let mapping = match (written.path, written.extension) {
            (Some(path), None) => Mapping::Path(prefix(&path)?),
            (None, Some(extension)) => Mapping::Extension(suffix(extension)?),
            _ => {
                return Err(
                    "set either `path` (as in \"/cgi-bin/\") or `extension` (as in \".php\")"
                        .to_owned(),
                );
            }
        };
        if let Some(OneOrMany::Many(none)) = &written.host
            && none.is_empty()
        {
            return Err(
                "`host` must not be an empty list: remove it to answer for all hosts".to_owned()
            );
        }
        let usual = Self::usual(mapping);
        let amount = |written: Option<Amount>, usual| written.map_or(Ok(usual), Amount::bytes);
        let timeout = match written.timeout {
            None => usual.timeout,
            Some(text) => text.parse().map_err(|error: units::ParseError| error.to_string())?,
        };
        let gateway = Self {
            mapping: usual.mapping,
            hosts: OneOrMany::all(written.host),
            kind: written.kind.unwrap_or(GatewayKind::Cgi),
            root: written.root,
            script: written.script,
            interpreter: written.interpreter,
            sockets: OneOrMany::all(written.socket),
            spawn: written.spawn,
            connections_kept_max: written
                .connections_kept_max
                .unwrap_or(usual.connections_kept_max),
            env: written.env,
            pass_authorization: written.pass_authorization.unwrap_or(usual.pass_authorization),
            timeout,
            programs_max: written.programs_max.unwrap_or(usual.programs_max),
            body_bytes_max: amount(written.body_bytes_max, usual.body_bytes_max)?,
            body_memory_bytes_max: amount(
                written.body_memory_bytes_max,
                usual.body_memory_bytes_max,
            )?,
            body_directory: written.body_directory.unwrap_or(usual.body_directory),
            head_bytes_max: amount(written.head_bytes_max, usual.head_bytes_max)?,
            output_bytes_max: amount(written.output_bytes_max, usual.output_bytes_max)?,
            half_closed: written.half_closed.unwrap_or_default(),
        };
        gateway.check().map(|()| gateway)
    }
}

impl GatewayConfig {
    /// Whether its scripts are files of the site.
    pub(crate) fn looks_in_site(&self) -> bool {
        self.root.is_none() && self.has_files()
    }

    /// Whether it answers requests of that host. A gateway for all hosts whose scripts are files of the site skips
    /// hosts without files.
    pub(crate) fn is_for(&self, host: &HostConfig) -> bool {
        if self.hosts.is_empty() {
            return !self.looks_in_site() || matches!(host.content, Content::Directory(_));
        }
        self.hosts.iter().any(|name| host.has_name(name))
    }

    /// Whether each of its scripts is a file of its own.
    pub(crate) fn has_files(&self) -> bool {
        let is_found = self.kind == GatewayKind::Cgi
            || self.root.is_some()
            || matches!(self.mapping, Mapping::Extension(_));
        is_found && self.script.is_none()
    }

    /// Refuses what cannot be combined, with the reason and the way out.
    fn check(&self) -> Result<(), String> {
        let is_bad = |(name, value): &(&String, &String)| {
            name.is_empty() || name.contains(['=', '\0']) || value.contains('\0')
        };
        if let Some((name, _)) = self.env.iter().find(is_bad) {
            return Err(format!(
                "`env`: `{name}` is not a valid variable name, or its value contains NUL"
            ));
        }
        let by_extension = matches!(self.mapping, Mapping::Extension(_));
        if by_extension && self.script.is_some() {
            return Err(
                "`script` is for a `path` only; with `extension` each script is a file of its own: remove one of them"
                    .to_owned(),
            );
        }
        if self.root.is_some() && self.script.is_some() {
            return Err("`root` and `script` exclude each other: remove one of them".to_owned());
        }
        match self.kind {
            GatewayKind::FastCgi if self.sockets.is_empty() == self.spawn.is_none() => {
                return Err("a FastCGI application needs either a `socket`, as in \
                            \"unix:/run/php/php8.2-fpm.sock\" or \"tcp:127.0.0.1:9000\", or `spawn`, as in `spawn = { command = [\"/usr/bin/php-cgi\"], \
                            count = 4 }`: set one of the two"
                    .to_owned());
            }
            GatewayKind::FastCgi if self.interpreter.is_some() => {
                return Err("`interpreter` is for CGI programs only; with `kind = \"fastcgi\"` the application runs the script: remove it"
                    .to_owned());
            }
            GatewayKind::Cgi if !self.sockets.is_empty() || self.spawn.is_some() => {
                return Err("`socket` and `spawn` are for FastCGI applications only: set `kind = \"fastcgi\"`, or remove them"
                    .to_owned());
            }
            GatewayKind::Cgi | GatewayKind::FastCgi => {}
        }
        self.spawn.as_ref().map_or(Ok(()), Spawn::check)?;
        if self.timeout == Nanos::ZERO || self.programs_max == 0 || self.head_bytes_max.0 == 0 {
            return Err(
                "`timeout`, `programs_max` and `head_bytes_max` must be more than 0".to_owned()
            );
        }
        Ok(())
    }
}

impl Spawn {
    fn check(&self) -> Result<(), String> {
        let is_path = self.command.first().is_some_and(|program| program.starts_with('/'));
        if !is_path || self.command.iter().any(|word| word.contains('\0')) {
            return Err(
                "`spawn`: `command` must begin with the absolute path of a program, as in \
                        [\"/usr/bin/php-cgi\"]"
                    .to_owned(),
            );
        }
        match self.count {
            1..=SPAWNED_MAX => Ok(()),
            count => {
                Err(format!("`spawn`: `count` must be within 1 to {SPAWNED_MAX}, got {count}"))
            }
        }
    }
}

/// Refuses gateways that do not fit the rest of the configuration.
pub(super) fn check_all(config: &SiteConfig) -> Result<(), String> {
    let (hosts, _) = config.all_hosts();
    config.gateways.iter().try_for_each(|gateway| check_hosts(gateway, &hosts))
}

fn check_hosts(gateway: &GatewayConfig, hosts: &[HostConfig]) -> Result<(), String> {
    let at = &gateway.mapping;
    let unknown = |name: &&String| !hosts.iter().any(|host| host.has_name(name));
    if let Some(name) = gateway.hosts.iter().find(unknown) {
        let known: Vec<_> = hosts.iter().flat_map(|host| &host.names).map(String::as_str).collect();
        return Err(format!(
            "the gateway at `{at}` names the `host` `{name}`, but no [[host]] has that name (all: {})",
            known.join(", ")
        ));
    }
    let has_files = |host: &&HostConfig| matches!(host.content, Content::Directory(_));
    let mut its = hosts.iter().filter(|host| gateway.is_for(host)).peekable();
    // Each host that is named must have files; of all hosts, at least one.
    let is_missing = its.peek().is_none() || its.any(|host| !has_files(&host));
    match gateway.looks_in_site() && is_missing {
        true => Err(format!(
            "the gateway at `{at}` looks for scripts in the site's directory, but the site is `fixed`: give it a `root`, or serve a directory",
        )),
        false => Ok(()),
    }
}

impl From<&GatewayConfig> for Written {
    fn from(gateway: &GatewayConfig) -> Self {
        let (path, extension) = match gateway.mapping.clone() {
            Mapping::Path(path) => (Some(path), None),
            Mapping::Extension(extension) => (None, Some(extension)),
        };
        let amount = |bytes: Bytes| Some(Amount::Number(bytes.0));
        Self {
            path,
            extension,
            kind: Some(gateway.kind),
            root: gateway.root.clone(),
            script: gateway.script.clone(),
            interpreter: gateway.interpreter.clone(),
            host: OneOrMany::of(&gateway.hosts),
            socket: OneOrMany::of(&gateway.sockets),
            connections_kept_max: Some(gateway.connections_kept_max),
            pass_authorization: Some(gateway.pass_authorization),
            timeout: Some(text::exact(gateway.timeout)),
            programs_max: Some(gateway.programs_max),
            body_bytes_max: amount(gateway.body_bytes_max),
            body_memory_bytes_max: amount(gateway.body_memory_bytes_max),
            body_directory: Some(gateway.body_directory.clone()),
            head_bytes_max: amount(gateway.head_bytes_max),
            output_bytes_max: amount(gateway.output_bytes_max),
            half_closed: Some(gateway.half_closed),
            spawn: gateway.spawn.clone(),
            env: gateway.env.clone(),
        }
    }
}

/// The path with a slash at both ends.
fn prefix(path: &str) -> Result<String, String> {
    if !path.starts_with('/') || path.contains(['?', '#', '%']) || path.contains("//") {
        return Err(format!(
            "`path` must be the beginning of a path, as in \"/cgi-bin/\", got `{path}`"
        ));
    }
    let path = path.strip_suffix('/').unwrap_or(path);
    Ok(format!("{path}/"))
}

fn suffix(extension: String) -> Result<String, String> {
    match extension.strip_prefix('.') {
        Some(name) if !name.is_empty() && !name.contains('/') => Ok(extension),
        _ => Err(format!(
            "`extension` must be the end of a file name, as in \".php\", got `{extension}`"
        )),
    }
}
