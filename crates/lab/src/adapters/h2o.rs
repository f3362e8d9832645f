//! h2o: event loops, one per thread. Directives and defaults follow its documentation
//! (h2o.examp1e.net/configure/{base,http1,file}_directives.html), except where a setting's description says
//! otherwise. It has no setting for the backlog: it gives listen(2) 65535, so the system's limit applies. It sends
//! files of any size by reading them (writev).

use std::fmt::Write as _;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, Answers, Found, Minimum, Parity, Rendered, Request, SEEN_ONLY, SERVER, Search,
    counted, on_off, shown, version_printed,
};

/// h2o.
pub(super) static ITEM: Adapter = Adapter {
    name: "h2o",
    about: "h2o: event loops, one a thread",
    package: "h2o",
    minimum: Some(Minimum { version: "2.0", lack: "`compress` and `file.send-compressed`" }),
    find,
    settings: SETTINGS,
    configure,
    parity,
    ways: &[&[], &[("num-threads", "2"), ("file.etag", "off")]],
    ..SERVER
};

/// An opened file serves all requests of one turn of the loop and is then closed: 151 opens for 9,347 requests on 64
/// connections (2.2.5).
const FILE_CACHE: &str = "on (descriptor, a turn of the loop)";

const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: i32::MAX as u64 };

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "num-threads",
        SettingKind::Number { min: 1, max: 1024 },
        "1",
        "Threads with an event loop each. h2o's own is one for each CPU of the machine.",
    ),
    SettingSpec::new(
        "max-connections",
        POSITIVE,
        "(two for each connection, at least 1024)",
        "Maximum of open connections; further ones wait in the backlog.",
    ),
    SettingSpec::new(
        "http1-request-timeout",
        POSITIVE,
        "10",
        "Seconds to wait for a request, the next on a kept connection included.",
    ),
    SettingSpec::new(
        "tcp-fastopen",
        SettingKind::Number { min: 0, max: 65_535 },
        "0",
        "Length of the queue of TCP Fast Open; 0: off. h2o's own is 4096.",
    ),
    SettingSpec::new(
        "compress",
        SettingKind::Choice(&["off", "on", "gzip"]),
        "off",
        "Whether replies are compressed for clients that accept it.",
    ),
    SettingSpec::new(
        "file.send-compressed",
        SettingKind::Switch,
        "off",
        "Whether FILE.gz is sent instead of FILE to clients that accept it.",
    ),
    SettingSpec::new("file.etag", SettingKind::Switch, "on", "Whether replies have an ETag."),
    SettingSpec::new(
        "access-log",
        SettingKind::Choice(&["off", "combined"]),
        "off",
        "Access log, into the server's folder.",
    ),
];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("h2o")?;
    let version = version_printed(&binary, "-v", "h2o version ")?;
    Some(Found { binary, version: format!("h2o/{version}") })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let file = request.dir.join("h2o.conf");
    let program = request.found.binary.clone().into_os_string();
    let command = vec![program, "-m".into(), "worker".into(), "-c".into(), file.into()];
    Rendered {
        files: vec![("h2o.conf".to_owned(), text(request, values))],
        ..Rendered::of(command)
    }
}

fn text(request: &Request, values: &Values) -> String {
    let dir = request.dir.display();
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name}: {value}");
    };
    if let Some(account) = request.account {
        line("user", &account.user);
    }
    line("error-log", &format!("\"{dir}/error.log\""));
    line("num-threads", values.text("num-threads"));
    let connections = (u64::from(request.connections) * 2).max(1024);
    line("max-connections", &values.number_or("max-connections", connections).to_string());
    line("http1-request-timeout", values.text("http1-request-timeout"));
    // The lab speaks HTTP/1.1; without this a request that offers h2c would get it.
    line("http1-upgrade-to-http2", "OFF");
    line("tcp-fastopen", values.text("tcp-fastopen"));
    for name in ["compress", "file.send-compressed", "file.etag"] {
        let value = values.text(name);
        let value = if value == "gzip" { "[ gzip ]".to_owned() } else { value.to_uppercase() };
        line(name, &value);
    }
    line("file.index", "[ \"index.html\" ]");
    line("file.dirlisting", "OFF");
    if values.text("access-log") != "off" {
        line("access-log", &format!("\"{dir}/access.log\""));
    }
    let _ = write!(
        text,
        "hosts:\n  default:\n    listen:\n      host: {}\n      port: {}\n    paths:\n      \"/\":\n        \
         file.dir: \"{}\"\n",
        request.addr.ip(),
        request.addr.port(),
        request.docroot.display(),
    );
    text
}

/// h2o does not print its configuration; probes of the running server show what it does.
fn parity(rendered: &Rendered, _printed: &str) -> Parity {
    let source = rendered.files[0].1.as_str();
    let text = |name: &str| {
        let mut lines = source.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        value.unwrap_or("not set").to_owned()
    };
    let is_on = |name: &str| on_off(text(name) != "OFF");
    Parity {
        answers: Answers {
            access_log: on_off(text("access-log") != "not set").into(),
            backlog: super::somaxconn().into(),
            compression: is_on("compress").into(),
            etag: is_on("file.etag").into(),
            file_cache: FILE_CACHE.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: "on".into(),
            keep_alive_requests: "unlimited".into(),
            keep_alive_timeout: format!("{} s", text("http1-request-timeout")).into(),
            sendfile: "off".into(),
            tcp_nodelay: "on".into(),
            tcp_nopush: "off".into(),
            tls: on_off(source.contains(" ssl:")).into(),
            workers: counted(&text("num-threads"), "event loop", "event loops").into(),
        },
        shown: shown([("connections_max", text("max-connections")), ("user", text("user"))]),
    }
}
