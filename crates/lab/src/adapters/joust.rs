//! Our own server, run as a child process like any other: the lab knows only its command line. It checks its settings
//! itself when it starts; this file names only those that the lab sizes or that decide comparability. Must not know
//! the crate `serve`.

use std::ffi::OsString;

use super::sizing::{self, Sizes};
use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, Answer, Answers, Found, NO_FILE_CACHE, NOT_SET, Parity, Rendered, Request, SEEN_ONLY,
    SERVER, Search, counted, on_off, read, version_printed,
};

/// Our own server.
pub(super) static ITEM: Adapter = Adapter {
    name: "joust",
    about: "joust's own server, with any of its concurrency models",
    find,
    settings: SETTINGS,
    hands_on: true,
    configure,
    parity,
    ways: &[
        &[("model", "reactor")],
        &[("model", "prefork")],
        &[("model", "worker")],
        &[("model", "pool")],
    ],
    ..SERVER
};

const COUNT: SettingKind = SettingKind::Number { min: 0, max: u32::MAX as u64 };
const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: u32::MAX as u64 };

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "model",
        SettingKind::Word,
        "reactor",
        "The concurrency model: `joust serve --help` lists them.",
    ),
    SettingSpec::new(
        "KeepAlive",
        SettingKind::Switch,
        "on",
        "More than one request on a connection.",
    ),
    SettingSpec::new(
        "KeepAliveTimeout",
        SettingKind::Word,
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
        "FileCache",
        SettingKind::Word,
        "1",
        "Seconds (or with a unit, as in 500ms) that a file once read is sent from memory without a look at the disk; off or 0: each request opens and reads it.",
    ),
    SettingSpec::new(
        "access-log",
        SettingKind::Choice(&["off", "common", "combined"]),
        "off",
        "Access log, into the server's folder.",
    )
    .also(&["AccessLog"]),
    SettingSpec::new(
        "cgi",
        SettingKind::Switch,
        "off",
        "Whether programs in /cgi-bin/ of the site are run (`--cgi`).",
    ),
];

/// Settings that all models have. They are always given, so that no default decides a comparison.
const COMMON: [&str; 5] =
    ["KeepAlive", "KeepAliveTimeout", "MaxKeepAliveRequests", "ListenBacklog", "FileCache"];

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
    if values.is_on("cgi") {
        command.extend(["--cgi", "/cgi-bin/"].map(Into::into));
    }
    let mut set = |name: &str, value: &str| {
        command.extend(["--set".into(), format!("{name}={value}").into()]);
    };
    COMMON.iter().for_each(|name| set(name, values.text(name)));
    for (name, number) in sized(request, values) {
        set(name, &number.to_string());
    }
    values.handed_on().for_each(|(name, value)| set(name, value));
    Rendered::of(command)
}

/// The sizes of a model's pool that the study does not set; empty for a model that is not named here.
fn sized(request: &Request, values: &Values) -> Sizes {
    let connections = request.connections;
    let given = |name: &str| {
        let mut all = values.handed_on();
        all.find(|(given, _)| given.eq_ignore_ascii_case(name))?.1.parse::<u64>().ok()
    };
    let sizes = match values.text("model") {
        "prefork" => sizing::processes(connections, given),
        "worker" | "event" => sizing::threads(connections, given),
        "pool" => vec![("max-request", u64::from(connections).max(128))],
        _ => Vec::new(),
    };
    let said = |name: &str| values.handed_on().any(|(given, _)| given.eq_ignore_ascii_case(name));
    sizes.into_iter().filter(|(name, _)| !said(name)).collect()
}

/// The command line contains everything that decides comparability.
fn parity(rendered: &Rendered, _printed: &str) -> Parity {
    let words: Vec<_> = rendered.command.iter().map(|word| word.to_string_lossy()).collect();
    let after = |option: &str| {
        let place = words.iter().position(|word| word == option)?;
        words.get(place + 1).map(|word| word.to_string())
    };
    let text = |name: &str| {
        let prefix = format!("{name}=");
        let value = words.iter().find_map(|word| word.strip_prefix(&prefix));
        value.unwrap_or(NOT_SET).to_owned()
    };
    let unlimited = |text: String| if text == "0" { "unlimited".to_owned() } else { text };
    let logged = after("--access-log").is_some_and(|log| log != "off");
    let model = after("--model").unwrap_or_default();
    let settings = words.iter().filter_map(|word| word.split_once('='));
    let of_the_model = settings.filter(|(name, _)| !COMMON.contains(name));
    let shown = of_the_model.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let user = ("user".to_owned(), "whoever runs joust".to_owned());
    Parity {
        answers: Answers {
            access_log: on_off(logged).into(),
            backlog: read(text("ListenBacklog")),
            compression: "off".into(),
            etag: "on".into(),
            file_cache: file_cache(&text("FileCache")),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: read(text("KeepAlive")),
            keep_alive_requests: read(unlimited(text("MaxKeepAliveRequests"))),
            keep_alive_timeout: read(with_unit(text("KeepAliveTimeout"))),
            sendfile: LARGE_FILES.into(),
            tcp_nodelay: "on".into(),
            tcp_nopush: LARGE_FILES.into(),
            tls: "off".into(),
            workers: workers(&model, text).into(),
        },
        shown: shown.chain([user]).collect(),
    }
}

/// The default of `limits.cached_file_bytes_max`: files up to that size are answered from memory.
const LARGE_FILES: &str = "off; above 64 KiB: on";

/// It also caches the head; of a larger file it keeps the descriptor instead of the content.
fn file_cache(time: &str) -> Answer {
    let digits = time.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let is_off = time.eq_ignore_ascii_case("off") || digits.parse() == Ok(0.0);
    match time {
        NOT_SET => read(time.to_owned()),
        _ if is_off => NO_FILE_CACHE.into(),
        _ => {
            let time = with_unit(time.to_owned());
            format!("on (content, {time}); above 64 KiB: on (descriptor, {time})").into()
        }
    }
}

/// As the models declare it; a pool that is not sized here has the model's default size.
fn workers(model: &str, text: impl Fn(&str) -> String) -> String {
    let start = text("StartServers");
    let threads = || match text("ThreadsPerChild").as_str() {
        "not set" => "25".to_owned(),
        number => number.to_owned(),
    };
    match model {
        "reactor" => counted("1", "event loop", "event loops"),
        "prefork" => format!("{start} processes, a connection each"),
        "worker" => format!("{start} processes of {} threads, a connection each", threads()),
        "event" => format!("{start} processes of {} threads and a listener", threads()),
        model => format!("as the model {model} has them"),
    }
}

/// Apache's rule: a bare number is seconds.
fn with_unit(time: String) -> String {
    if time.ends_with(|c: char| c.is_ascii_digit()) { format!("{time} s") } else { time }
}
