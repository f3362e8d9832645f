//! Every key of a configuration file that is not a setting of a model: its name, what it is for, how it is read and how
//! it is shown, in one place. Start reading at [`KEYS`].

use std::path::PathBuf;
use std::str::FromStr;

use site::config::text::{FIXED_BYTES_MAX, check_file_names, check_media, exact, log_file, quoted};
use site::config::{Content, ErrorLogTo, LogFormat, StatusAllow, status_path};
use units::{Bytes, Nanos};

use super::Config;

/// A key.
pub(super) struct Key {
    /// The table that it belongs to; empty: none.
    pub(super) section: &'static str,
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// Reads what was typed, or says what it should have been.
    pub(super) set: fn(&mut Config, &TypedValue) -> Result<(), String>,
    /// The value as TOML; `None`: it does not apply.
    pub(super) show: fn(&Config) -> Option<String>,
}

/// What was typed for a key: scalars as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypedValue {
    One(String),
    Many(Vec<String>),
}

/// The table of bounds.
pub(super) const LIMITS: &str = "limits";
const ACCESS_LOG: &str = "access_log";
const ERROR_LOG: &str = "error_log";
const STATUS: &str = "status";

const fn top(
    name: &'static str,
    about: &'static str,
    set: fn(&mut Config, &TypedValue) -> Result<(), String>,
    show: fn(&Config) -> Option<String>,
) -> Key {
    Key { section: "", name, about, set, show }
}

/// A bound: a field of `Limits` that is a number.
macro_rules! number {
    ($name:ident, $min:expr, $max:expr, $about:expr) => {
        Key {
            section: LIMITS,
            name: stringify!($name),
            about: $about,
            set: |config, given| {
                let number = bytes_within(given, $min, $max)?;
                config.site.limits.$name =
                    number.try_into().map_err(|_| format!("it must be at most {}", u32::MAX))?;
                Ok(())
            },
            show: |config| Some(config.site.limits.$name.to_string()),
        }
    };
}

/// A bound: a field of `Limits` that is a time.
macro_rules! time {
    ($name:ident, $about:expr) => {
        Key {
            section: LIMITS,
            name: stringify!($name),
            about: $about,
            set: |config, given| {
                config.site.limits.$name = time_given(given)?;
                Ok(())
            },
            show: |config| Some(quoted(&exact(config.site.limits.$name))),
        }
    };
}

/// In the order in which they are shown.
pub(super) static KEYS: &[Key] = &[
    top(
        "listen",
        "address and port to listen on; port 0: any free port",
        |config, given| {
            config.listen = parsed(given, "an address with its port, as in 127.0.0.1:8080")?;
            Ok(())
        },
        |config| Some(quoted(&config.listen.to_string())),
    ),
    top(
        "directory",
        "directory whose files are served",
        |config, given| {
            config.site.content = match one(given, "the path of a directory")? {
                "" => {
                    return Err(
                        "it is empty: use `.` for the directory in which the server is started"
                            .to_owned(),
                    );
                }
                path => Content::Directory(PathBuf::from(path)),
            };
            Ok(())
        },
        |config| match &config.site.content {
            Content::Directory(path) if config.site.default_host.is_none() => {
                Some(quoted(&path.to_string_lossy()))
            }
            _ => None,
        },
    ),
    top(
        "fixed",
        "serve a page of this many bytes for every path, from memory",
        |config, given| {
            config.site.content = Content::Fixed(Bytes(bytes_within(given, 0, FIXED_BYTES_MAX)?));
            Ok(())
        },
        |config| match &config.site.content {
            Content::Fixed(bytes) if config.site.default_host.is_none() => {
                Some(bytes.0.to_string())
            }
            _ => None,
        },
    ),
    top(
        "index",
        "names of index files, tried in this order",
        |config, given| {
            config.site.index = index_names(given)?;
            Ok(())
        },
        |config| of_directory(config, list(config.site.index.iter().map(|name| quoted(name)))),
    ),
    top(
        "listing",
        "list directories that have no index file (403 otherwise)",
        |config, given| {
            config.site.listing = parsed(given, "true or false")?;
            Ok(())
        },
        |config| of_directory(config, config.site.listing.to_string()),
    ),
    top(
        "pid_file",
        "file that holds the process ID while the server runs; off: none",
        |config, given| {
            config.pid_file = log_file(one(given, "a file, or off")?);
            Ok(())
        },
        |config| {
            let file = config.pid_file.as_ref();
            Some(quoted(&file.map_or("off".into(), |path| path.to_string_lossy())))
        },
    ),
    top(
        "user",
        "user to switch to once port and logs are open (needs root); empty: no switch",
        |config, given| {
            config.user = word(one(given, "the name of a user")?);
            Ok(())
        },
        |config| Some(quoted(config.user.as_deref().unwrap_or_default())),
    ),
    top(
        "group",
        "group to switch to; empty: the user's own group",
        |config, given| {
            config.group = word(one(given, "the name of a group")?);
            Ok(())
        },
        |config| Some(quoted(config.group.as_deref().unwrap_or_default())),
    ),
    top(
        "confine",
        "on: serving processes may use only the files and ports named here (Landlock); off: no limit",
        |config, given| {
            config.confine = match one(given, "on or off")? {
                "on" => true,
                "off" => false,
                other => return Err(format!("it must be on or off, got `{other}`")),
            };
            Ok(())
        },
        |config| Some(quoted(if config.confine { "on" } else { "off" })),
    ),
    top(
        "refuse_unknown_hosts",
        "refuse requests for unknown hosts (421) instead of serving the default host",
        |config, given| {
            config.site.refuse_unknown_hosts = parsed(given, "true or false")?;
            Ok(())
        },
        |config| Some(config.site.refuse_unknown_hosts.to_string()),
    ),
    top(
        "hide",
        "names to hide, as in *~; names that begin with a dot are always hidden",
        |config, given| {
            config.site.presentation.hide = index_names(given)?;
            Ok(())
        },
        |config| {
            of_directory(
                config,
                list(config.site.presentation.hide.iter().map(|name| quoted(name))),
            )
        },
    ),
    top(
        "show",
        "names that begin with a dot and are served all the same, as in .well-known",
        |config, given| {
            config.site.presentation.show = index_names(given)?;
            Ok(())
        },
        |config| {
            of_directory(
                config,
                list(config.site.presentation.show.iter().map(|name| quoted(name))),
            )
        },
    ),
    top(
        "charset",
        "charset of text/*; empty: none is sent",
        |config, given| {
            config.site.presentation.charset = media(given)?;
            Ok(())
        },
        |config| of_directory(config, quoted(&config.site.presentation.charset)),
    ),
    top(
        "default_type",
        "media type of files with an unknown extension",
        |config, given| {
            config.site.presentation.default_type = media(given)?;
            Ok(())
        },
        |config| of_directory(config, quoted(&config.site.presentation.default_type)),
    ),
    top(
        "cpus",
        "CPUs to run on, as in [0, 1]; empty: all that are available",
        |config, given| {
            let cpu =
                |text: &String| text.trim().parse().map_err(|_| "a list as in [0, 1]".to_owned());
            config.cpus = many(given).iter().map(cpu).collect::<Result<_, _>>()?;
            Ok(())
        },
        |config| Some(list(config.cpus.iter().map(u32::to_string))),
    ),
    top(
        "fault",
        "planted faults, to prove that a measurement shows them; empty: none",
        |config, given| {
            config.site.faults =
                many(given).iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
            Ok(())
        },
        |config| Some(list(config.site.faults.iter().map(|fault| quoted(&fault.to_string())))),
    ),
    Key {
        section: ACCESS_LOG,
        name: "file",
        about: "access log: one line for each request; off: no log",
        set: |config, given| {
            config.site.access_log.file = log_file(one(given, "a file, or off")?);
            Ok(())
        },
        show: |config| {
            let file = config.site.access_log.file.as_ref();
            Some(quoted(&file.map_or("off".into(), |path| path.to_string_lossy())))
        },
    },
    Key {
        section: ACCESS_LOG,
        name: "format",
        about: "format of a line: common, combined, json, or directives as in Apache's LogFormat",
        set: |config, given| {
            config.site.access_log.format = LogFormat::read(one(given, "a name or a format")?)?;
            Ok(())
        },
        show: |config| Some(quoted(config.site.access_log.format.typed())),
    },
    Key {
        section: ERROR_LOG,
        name: "file",
        about: "error log: a file, stderr, or off",
        set: |config, given| {
            config.site.error_log.to = ErrorLogTo::of(one(given, "a file, stderr or off")?);
            Ok(())
        },
        show: |config| {
            Some(quoted(&match &config.site.error_log.to {
                ErrorLogTo::Stderr => "stderr".into(),
                ErrorLogTo::Off => "off".into(),
                ErrorLogTo::File(path) => path.to_string_lossy(),
            }))
        },
    },
    Key {
        section: ERROR_LOG,
        name: "level",
        about: "minimum severity that is logged: emerg, alert, crit, error, warn, notice, info, debug",
        set: |config, given| {
            config.site.error_log.level = one(given, "the name of a level")?.parse()?;
            Ok(())
        },
        show: |config| Some(quoted(config.site.error_log.level.name())),
    },
    Key {
        section: STATUS,
        name: "path",
        about: "path of the status page; off: none",
        set: |config, given| {
            config.site.status.path = status_path(one(given, "a path, or off")?)?;
            Ok(())
        },
        show: |config| Some(quoted(config.site.status.path.as_deref().unwrap_or("off"))),
    },
    Key {
        section: STATUS,
        name: "allow",
        about: "clients that may see it: loopback, any, or addresses as in [\"10.0.0.0/8\"]",
        set: |config, given| {
            config.site.status.allow = StatusAllow::of(many(given))?;
            Ok(())
        },
        show: |config| {
            let words = config.site.status.allow.words();
            Some(list(words.iter().map(|word| quoted(word))))
        },
    },
    number!(head_bytes_max, 256, 1 << 20, "maximum size of a request head in bytes (431)"),
    number!(target_bytes_max, 64, 1 << 20, "maximum size of a request target in bytes (414)"),
    number!(fields_max, 1, wire::FIELDS_MAX as u64, "maximum number of header fields (431)"),
    time!(handshake_timeout, "time from accepting a connection to the end of its TLS handshake"),
    time!(head_timeout, "time from the first byte of a head to its last (408)"),
    number!(
        body_bytes_max,
        0,
        u64::MAX,
        "maximum size of a request body in bytes; the body is discarded (413)"
    ),
    time!(
        body_timeout,
        "time for a request body (408), plus a second for every body_rate_min bytes"
    ),
    number!(
        body_rate_min,
        1,
        u64::from(u32::MAX),
        "minimum rate of a request body in bytes per second; see body_timeout"
    ),
    number!(
        ranges_max,
        0,
        1024,
        "maximum number of ranges in a request; with more, the whole file is sent"
    ),
    number!(
        cache_entries_max,
        0,
        1 << 20,
        "maximum number of files kept in memory, in each process"
    ),
    number!(cache_bytes_max, 0, u64::MAX, "maximum size of all files kept in memory, in bytes"),
    number!(
        cached_file_bytes_max,
        0,
        1 << 24,
        "maximum size of one file that is kept in memory, in bytes"
    ),
    number!(
        open_files_max,
        0,
        1 << 16,
        "maximum number of larger files kept open, in each process"
    ),
    number!(
        listing_entries_max,
        1,
        1 << 20,
        "maximum number of lines in a directory listing; the rest is counted"
    ),
];

/// A name; `None` if it is empty.
fn word(typed: &str) -> Option<String> {
    (!typed.is_empty()).then(|| typed.to_owned())
}

fn list(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

fn of_directory(config: &Config, value: String) -> Option<String> {
    matches!(config.site.content, Content::Directory(_)).then_some(value)
}

fn one<'a>(given: &'a TypedValue, wanted: &str) -> Result<&'a str, String> {
    match given {
        TypedValue::One(text) => Ok(text),
        TypedValue::Many(_) => Err(format!("it must be {wanted}, got a list")),
    }
}

fn many(given: &TypedValue) -> &[String] {
    match given {
        TypedValue::One(text) => std::slice::from_ref(text),
        TypedValue::Many(texts) => texts,
    }
}

fn parsed<T: FromStr>(given: &TypedValue, wanted: &str) -> Result<T, String> {
    let text = one(given, wanted)?;
    text.parse().map_err(|_| format!("it must be {wanted}, got `{text}`"))
}

fn time_given(given: &TypedValue) -> Result<Nanos, String> {
    let time: Nanos =
        one(given, "a duration")?.parse().map_err(|error: units::ParseError| error.to_string())?;
    if time == Nanos::ZERO { Err("it must be longer than 0".to_owned()) } else { Ok(time) }
}

/// A number, or a number of bytes with a unit.
fn bytes_within(given: &TypedValue, min: u64, max: u64) -> Result<u64, String> {
    let text = one(given, "a number")?;
    let number = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => text.parse::<Bytes>().map_err(|error| error.to_string())?.0,
    };
    match number {
        n if n < min || n > max => Err(format!("it must be within {min} to {max}, got `{text}`")),
        n => Ok(n),
    }
}

/// A media type or a charset.
fn media(given: &TypedValue) -> Result<String, String> {
    let text = one(given, "a media type or charset")?;
    check_media(text)?;
    Ok(text.to_owned())
}

fn index_names(given: &TypedValue) -> Result<Vec<String>, String> {
    let names = many(given).to_vec();
    check_file_names(&names).map(|()| names)
}
