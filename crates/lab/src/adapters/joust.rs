//! Our own server, as a child process like any other: what the lab knows of it is its command line.
//! Its settings are checked by itself when it starts; only those that the lab sizes or that decide
//! comparability are named here. Must not know the crate `serve`.

use std::collections::BTreeMap;
use std::ffi::OsString;

use super::sizing::{self, Sizes};
use super::values::{Kind, SettingSpec, Values};
use super::{Adapter, Found, Rendered, Request, Search, version_printed};

/// Our own server.
pub(super) static ITEM: Adapter = Adapter {
    name: "joust",
    about: "joust's own server, with any of its concurrency models",
    package: "",
    find,
    settings: SETTINGS,
    hands_on: true,
    agree: |_| Ok(()),
    configure,
    parity,
};

const COUNT: Kind = Kind::Number { min: 0, max: u32::MAX as u64 };
const POSITIVE: Kind = Kind::Number { min: 1, max: u32::MAX as u64 };

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "model",
        Kind::Word,
        "reactor",
        "The concurrency model: `joust serve --help` lists them.",
    ),
    SettingSpec::new("KeepAlive", Kind::Switch, "on", "More than one request on a connection."),
    SettingSpec::new(
        "KeepAliveTimeout",
        Kind::Word,
        "5",
        "Seconds (or with a unit, as in 500ms) an idle connection is kept.",
    ),
    SettingSpec::new(
        "MaxKeepAliveRequests",
        COUNT,
        "0",
        "Requests on a connection; 0: no limit. Apache's 100 would make reconnects part of the load.",
    ),
    SettingSpec::new(
        "ListenBacklog",
        POSITIVE,
        "511",
        "Connections the kernel holds until they are accepted.",
    ),
    SettingSpec::new(
        "access-log",
        Kind::Choice(&["off", "common", "combined"]),
        "off",
        "Access log, into the server's folder.",
    )
    .also(&["AccessLog"]),
];

/// Settings that all models have and that are always said, so that a default never decides.
const COMMON: [&str; 4] =
    ["KeepAlive", "KeepAliveTimeout", "MaxKeepAliveRequests", "ListenBacklog"];

fn find(search: &Search) -> Option<Found> {
    let binary = search.joust.clone();
    let version = version_printed(&binary, "--version", "joust ")?;
    Some(Found { version: format!("joust/{version}"), binary })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let mut command: Vec<OsString> = vec![
        request.found.binary.clone().into(),
        "serve".into(),
        request.docroot.into(),
        "--listen".into(),
        request.addr.to_string().into(),
        "--model".into(),
        values.text("model").into(),
    ];
    match values.text("access-log") {
        "off" => command.extend(["--access-log", "off"].map(Into::into)),
        format => {
            let log = request.dir.join("access.log").into_os_string();
            command.extend(["--access-log".into(), log, "--log-format".into(), format.into()]);
        }
    }
    let mut set = |name: &str, value: &str| {
        command.extend(["--set".into(), format!("{name}={value}").into()]);
    };
    COMMON.iter().for_each(|name| set(name, values.text(name)));
    for (name, number) in sized(request, values) {
        set(name, &number.to_string());
    }
    values.handed_on().for_each(|(name, value)| set(name, value));
    Rendered { files: Vec::new(), dirs: Vec::new(), command, check: Vec::new() }
}

/// The sizes of a model's pool that the study does not set. A model that is not named here has none.
fn sized(request: &Request, values: &Values) -> Sizes {
    let connections = request.connections;
    let given = |name: &str| {
        let mut all = values.handed_on();
        all.find(|(given, _)| given.eq_ignore_ascii_case(name))?.1.parse::<u64>().ok()
    };
    let sizes = match values.text("model") {
        "prefork" => sizing::processes(connections, given),
        "worker" => sizing::threads(connections, given),
        "pool" => vec![("max-request", u64::from(connections).max(128))],
        _ => Vec::new(),
    };
    let said = |name: &str| values.handed_on().any(|(given, _)| given.eq_ignore_ascii_case(name));
    sizes.into_iter().filter(|(name, _)| !said(name)).collect()
}

/// All that decides comparability is said on the command line.
fn parity(rendered: &Rendered, _printed: &str) -> BTreeMap<String, String> {
    let words: Vec<_> = rendered.command.iter().map(|word| word.to_string_lossy()).collect();
    let after = |option: &str| {
        let place = words.iter().position(|word| word == option)?;
        words.get(place + 1).map(|word| word.to_string())
    };
    let text = |name: &str| {
        let prefix = format!("{name}=");
        let value = words.iter().find_map(|word| word.strip_prefix(&prefix));
        value.unwrap_or("not set").to_owned()
    };
    let unlimited = |text: String| if text == "0" { "unlimited".to_owned() } else { text };
    let logged = after("--access-log").is_some_and(|log| log != "off");
    let mut parity: BTreeMap<String, String> = [
        ("access_log", if logged { "on" } else { "off" }.to_owned()),
        ("backlog", text("ListenBacklog")),
        ("compression", "off".to_owned()),
        ("concurrency", after("--model").unwrap_or_default()),
        ("keep_alive", text("KeepAlive")),
        ("keep_alive_requests", unlimited(text("MaxKeepAliveRequests"))),
        ("keep_alive_timeout", with_unit(text("KeepAliveTimeout"))),
        ("user", "whoever runs joust".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    for word in words.iter().filter_map(|word| word.split_once('=')) {
        if !COMMON.contains(&word.0) {
            parity.insert(word.0.to_owned(), word.1.to_owned());
        }
    }
    parity
}

/// Apache's rule: a bare number is seconds.
fn with_unit(time: String) -> String {
    if time.ends_with(|c: char| c.is_ascii_digit()) { format!("{time} s") } else { time }
}
