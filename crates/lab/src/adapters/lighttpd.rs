//! lighttpd: one event loop, or one per worker process. Options and defaults follow its documentation
//! (redmine.lighttpd.net/projects/lighttpd/wiki/Docs_ConfigurationOptions), except where a setting's description says
//! otherwise.

use std::fmt::Write as _;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, Answer, Answers, Found, Minimum, Parity, Rendered, Request, SEEN_ONLY, SERVER, Search,
    counted, on_off, read, shown, version_printed,
};

/// lighttpd.
pub(super) static ITEM: Adapter = Adapter {
    name: "lighttpd",
    about: "lighttpd: one event loop, or one a worker process",
    package: "lighttpd",
    minimum: Some(Minimum {
        version: "1.4.46",
        lack: "the network backend by the name `sendfile`",
    }),
    find,
    settings: SETTINGS,
    configure,
    parity,
    ways: &[&[], &[("server.max-worker", "4")]],
    ..SERVER
};

const COUNT: SettingKind = SettingKind::Number { min: 0, max: 65_535 };
const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: 65_535 };

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "server.max-worker",
        COUNT,
        "0",
        "Worker processes beside a watching one; 0: a single process.",
    ),
    SettingSpec::new(
        "server.event-handler",
        SettingKind::Choice(&["linux-sysepoll", "poll"]),
        "linux-sysepoll",
        "How the loop waits.",
    ),
    SettingSpec::new(
        "server.network-backend",
        SettingKind::Choice(&["sendfile", "writev", "write"]),
        "sendfile",
        "How files are sent.",
    ),
    SettingSpec::new(
        "server.max-connections",
        POSITIVE,
        "(two for each connection, at least 1024)",
        "Connections held; lighttpd's own is a tenth of max-fds, about 409.",
    ),
    SettingSpec::new(
        "server.max-fds",
        POSITIVE,
        "(two for each connection held, at least 4096)",
        "Files it may open.",
    ),
    SettingSpec::new(
        "server.listen-backlog",
        POSITIVE,
        "511",
        "Connections the kernel holds until they are accepted. lighttpd's own 1024 or more would favour it.",
    ),
    SettingSpec::new(
        "server.max-keep-alive-requests",
        COUNT,
        "65535",
        "Requests on a connection; 0: no keep-alive. 65535 is the most it can hold; its own 1000 would make reconnects part of the load.",
    ),
    SettingSpec::new(
        "server.max-keep-alive-idle",
        COUNT,
        "5",
        "Seconds an idle connection is kept.",
    ),
    SettingSpec::new("server.max-read-idle", POSITIVE, "60", "Seconds to wait for a request."),
    SettingSpec::new(
        "server.max-write-idle",
        POSITIVE,
        "360",
        "Seconds to wait for a client to take a reply.",
    ),
    SettingSpec::new(
        "server.stat-cache-engine",
        SettingKind::Choice(&["simple", "inotify", "disable"]),
        "simple",
        "How long the result of stat(2) is used: a second, until a change, or not at all.",
    ),
    SettingSpec::new(
        "static-file.etags",
        SettingKind::Choice(&["enable", "disable"]),
        "enable",
        "Whether replies have an ETag.",
    ),
    SettingSpec::new(
        "accesslog",
        SettingKind::Choice(&["off", "combined"]),
        "off",
        "Access log, into the server's folder.",
    )
    .also(&["accesslog.filename"]),
    SettingSpec::new(
        "cgi",
        SettingKind::Switch,
        "off",
        "Whether programs in /cgi-bin/ of the site are run (mod_cgi, `cgi.assign`).",
    ),
];

/// Settings that are not options of that name.
const NOT_OPTIONS: &[&str] = &["accesslog", "cgi"];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("lighttpd")?;
    let version = version_printed(&binary, "-v", "lighttpd/")?;
    let number = version.split([' ', '-']).next().unwrap_or(&version);
    Some(Found { binary, version: format!("lighttpd/{number}") })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let file = format!("{}/lighttpd.conf", request.dir.display());
    let base = |options: &[&str]| {
        let program = request.found.binary.clone().into_os_string();
        std::iter::once(program).chain(options.iter().map(Into::into)).collect()
    };
    Rendered {
        files: vec![("lighttpd.conf".to_owned(), text(request, values))],
        dirs: vec!["uploads".to_owned()],
        check: base(&["-p", "-f", &file]),
        ..Rendered::of(base(&["-D", "-f", &file]))
    }
}

fn text(request: &Request, values: &Values) -> String {
    let dir = request.dir.display();
    let logged = values.text("accesslog") != "off";
    let mut text = String::new();
    let mut line = |option: &str, value: &str| {
        let _ = writeln!(text, "{option} = {value}");
    };
    let quoted = |value: &str| format!("\"{value}\"");
    line("server.bind", &quoted(&request.addr.ip().to_string()));
    line("server.port", &request.addr.port().to_string());
    line("server.document-root", &quoted(&request.docroot.display().to_string()));
    line("index-file.names", "( \"index.html\" )");
    line(
        "mimetype.assign",
        r#"( ".html" => "text/html", ".txt" => "text/plain", ".css" => "text/css" )"#,
    );
    line("server.errorlog", &quoted(&format!("{dir}/error.log")));
    line("server.pid-file", &quoted(&format!("{dir}/lighttpd.pid")));
    line("server.upload-dirs", &format!("( \"{dir}/uploads\" )"));
    if let Some(account) = request.account {
        line("server.username", &quoted(&account.user));
        line("server.groupname", &quoted(&account.group));
    }
    let modules = [("mod_accesslog", logged), ("mod_cgi", values.is_on("cgi"))];
    let modules = modules.into_iter().filter(|(_, wanted)| *wanted);
    let modules: Vec<String> = modules.map(|(module, _)| quoted(module)).collect();
    if !modules.is_empty() {
        line("server.modules", &format!("( {} )", modules.join(", ")));
    }
    if logged {
        line("accesslog.filename", &quoted(&format!("{dir}/access.log")));
    }
    let connections = (u64::from(request.connections) * 2).max(1024);
    let connections = values.number_or("server.max-connections", connections);
    for spec in SETTINGS.iter().filter(|spec| !NOT_OPTIONS.contains(&spec.name)) {
        let value = match (spec.name, spec.kind) {
            ("server.max-connections", _) => connections.to_string(),
            ("server.max-fds", _) => {
                values.number_or(spec.name, (connections * 2).clamp(4096, 65_535)).to_string()
            }
            (_, SettingKind::Number { .. }) => values.text(spec.name).to_owned(),
            _ => quoted(values.text(spec.name)),
        };
        line(spec.name, &value);
    }
    if values.is_on("cgi") {
        text.push_str("$HTTP[\"url\"] =~ \"^/cgi-bin/\" { cgi.assign = ( \"\" => \"\" ) }\n");
    }
    text
}

/// `lighttpd -p` prints what it read as nested `key = value` lines, with strings in quotes.
fn parity(rendered: &Rendered, printed: &str) -> Parity {
    let source = rendered.source(printed);
    let text = |name: &str| {
        let mut lines = source.lines().map(str::trim);
        let value = lines.find_map(|line| {
            let value = line.strip_prefix(name)?.trim_start().strip_prefix('=')?;
            Some(value.trim().trim_end_matches(',').trim_matches('"').to_owned())
        });
        value.unwrap_or_else(|| "not set".to_owned())
    };
    let requests = text("server.max-keep-alive-requests");
    let workers = match text("server.max-worker").as_str() {
        "0" => "1".to_owned(),
        number => number.to_owned(),
    };
    let backend = text("server.network-backend");
    let modules = text("server.modules");
    let sendfile = match backend.as_str() {
        "sendfile" => LARGE_FILES.to_owned(),
        other => format!("off ({other})"),
    };
    Parity {
        answers: Answers {
            access_log: on_off(text("accesslog.filename") != "not set").into(),
            backlog: read(text("server.listen-backlog")),
            compression: on_off(
                modules.contains("mod_deflate") || modules.contains("mod_compress"),
            )
            .into(),
            etag: on_off(text("static-file.etags") == "enable").into(),
            file_cache: file_cache(&text("server.stat-cache-engine")),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: on_off(requests != "0").into(),
            keep_alive_requests: requests.into(),
            keep_alive_timeout: format!("{} s", text("server.max-keep-alive-idle")).into(),
            sendfile: sendfile.into(),
            tcp_nodelay: "on".into(),
            tcp_nopush: LARGE_FILES.into(),
            tls: on_off(text("ssl.engine") == "enable").into(),
            workers: counted(&workers, "event loop", "event loops").into(),
        },
        shown: shown([
            ("connections_max", text("server.max-connections")),
            ("user", format!("{} {}", text("server.username"), text("server.groupname"))),
        ]),
    }
}

/// Files up to that size are read into memory first and leave with the head (seen with 1.4.69).
const LARGE_FILES: &str = "off; above 32 KiB: on";

/// It keeps the file open together with its stat(2) result (seen with 1.4.69: one pread and one writev per request;
/// with `disable`, a stat before them).
fn file_cache(engine: &str) -> Answer {
    match engine {
        "simple" => "on (descriptor, 1 s)".into(),
        // It checks again after 16 s, even if inotify reported no change.
        "inotify" => "on (descriptor, 16 s)".into(),
        "disable" => "on (descriptor, looked up for each request)".into(),
        _ => Answer::Unknown("a stat cache that we do not know"),
    }
}
