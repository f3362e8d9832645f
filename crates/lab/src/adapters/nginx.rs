//! nginx: one event loop per worker process. Directives and defaults follow its documentation
//! (nginx.org/en/docs/http/ngx_http_core_module.html, ngx_core_module.html), except where a setting's description
//! says otherwise.

use std::fmt::Write as _;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, Answers, Found, Minimum, NO_FILE_CACHE, Parity, Rendered, Request, SEEN_ONLY, SERVER,
    Search, counted, on_off, read, shown, version_printed,
};

/// nginx.
pub(super) static ITEM: Adapter = Adapter {
    name: "nginx",
    about: "nginx: event loops, one a worker process",
    package: "nginx-light",
    minimum: Some(Minimum {
        version: "1.19.5",
        lack: "the option -e: older ones write to the system's error log",
    }),
    find,
    settings: SETTINGS,
    configure,
    parity,
    ways: &[&[], &[("worker_processes", "4"), ("reuseport", "on")]],
    ..SERVER
};

const COUNT: SettingKind = SettingKind::Number { min: 0, max: u32::MAX as u64 };
const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: u32::MAX as u64 };

/// Directives of the main block, of `events` and of `http`, in this order in the file.
const MAIN: &[&str] = &["worker_processes", "worker_rlimit_nofile"];
const EVENTS: &[&str] = &["worker_connections", "multi_accept", "accept_mutex"];
const HTTP: &[&str] = &[
    "sendfile",
    "tcp_nopush",
    "tcp_nodelay",
    "aio",
    "keepalive_timeout",
    "keepalive_requests",
    "open_file_cache",
    "open_file_cache_valid",
    "etag",
    "gzip",
    "reset_timedout_connection",
];

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "worker_processes",
        SettingKind::Number { min: 1, max: 512 },
        "1",
        "Worker processes.",
    ),
    SettingSpec::new(
        "worker_rlimit_nofile",
        POSITIVE,
        "(four for each connection, at least 4096)",
        "Files a worker may open; the system's limit would be 1024.",
    ),
    SettingSpec::new(
        "worker_connections",
        POSITIVE,
        "(two for each connection, at least 512)",
        "Maximum of open connections of a worker; nginx closes further ones.",
    ),
    SettingSpec::new(
        "multi_accept",
        SettingKind::Switch,
        "off",
        "Whether a wake-up accepts all waiting connections.",
    ),
    SettingSpec::new("accept_mutex", SettingKind::Switch, "off", "Whether workers accept in turn."),
    SettingSpec::new(
        "backlog",
        POSITIVE,
        "511",
        "Connections the kernel holds until they are accepted (`listen ... backlog=`).",
    ),
    SettingSpec::new(
        "reuseport",
        SettingKind::Switch,
        "off",
        "A listening socket for each worker (`listen ... reuseport`).",
    ),
    SettingSpec::new(
        "sendfile",
        SettingKind::Switch,
        "off",
        "Whether files are sent by sendfile(2).",
    ),
    SettingSpec::new(
        "tcp_nopush",
        SettingKind::Switch,
        "off",
        "Head and file in full packets (TCP_CORK), with sendfile.",
    ),
    SettingSpec::new("tcp_nodelay", SettingKind::Switch, "on", "TCP_NODELAY on kept connections."),
    SettingSpec::new(
        "aio",
        SettingKind::Choice(&["off", "on", "threads"]),
        "off",
        "Whether files are read asynchronously.",
    ),
    SettingSpec::new(
        "keepalive_timeout",
        COUNT,
        "75",
        "Seconds an idle connection is kept; 0: no keep-alive.",
    ),
    SettingSpec::new(
        "keepalive_requests",
        POSITIVE,
        "4294967295",
        "Requests on a connection. nginx's own 1000 would make reconnects part of the load.",
    ),
    SettingSpec::new("open_file_cache", COUNT, "0", "Open files that are kept (`max=`); 0: off."),
    SettingSpec::new(
        "open_file_cache_valid",
        POSITIVE,
        "60",
        "Seconds after which an open file that is kept is looked up again.",
    ),
    SettingSpec::new("etag", SettingKind::Switch, "on", "Whether replies have an ETag."),
    SettingSpec::new(
        "gzip",
        SettingKind::Switch,
        "off",
        "Whether replies are compressed for clients that accept it.",
    ),
    SettingSpec::new(
        "reset_timedout_connection",
        SettingKind::Switch,
        "off",
        "Whether connections that time out are reset.",
    ),
    SettingSpec::new(
        "access_log",
        SettingKind::Choice(&["off", "combined"]),
        "off",
        "Access log, into the server's folder. nginx's own is on.",
    ),
];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("nginx")?;
    let version = version_printed(&binary, "-v", "nginx version: ")?;
    Some(Found { binary, version })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let dir = request.dir.display();
    let file = format!("{dir}/nginx.conf");
    let log = format!("{dir}/error.log");
    // -e: without it nginx opens its compiled-in log before it reads the configuration.
    let base = |more: &[&str]| {
        let options = ["-e", &log, "-p", &format!("{dir}/"), "-c", &file].map(str::to_owned);
        let program = request.found.binary.clone().into_os_string();
        let more = more.iter().map(|option| (*option).to_owned());
        std::iter::once(program).chain(options.into_iter().chain(more).map(Into::into)).collect()
    };
    Rendered {
        files: vec![("nginx.conf".to_owned(), text(request, values))],
        dirs: TEMP_PATHS.map(|(_, dir)| dir.to_owned()).into(),
        check: base(&["-T"]),
        ..Rendered::of(base(&[]))
    }
}

const TEMP_PATHS: [(&str, &str); 5] = [
    ("client_body_temp_path", "client_body"),
    ("proxy_temp_path", "proxy"),
    ("fastcgi_temp_path", "fastcgi"),
    ("uwsgi_temp_path", "uwsgi"),
    ("scgi_temp_path", "scgi"),
];

fn text(request: &Request, values: &Values) -> String {
    let dir = request.dir.display();
    let mut text = String::from("daemon off;\n");
    if let Some(account) = request.account {
        let _ = writeln!(text, "user {} {};", account.user, account.group);
    }
    directives(&mut text, "", MAIN, request, values);
    let _ = writeln!(text, "pid {dir}/nginx.pid;\nerror_log {dir}/error.log warn;\n\nevents {{");
    directives(&mut text, "    ", EVENTS, request, values);
    text.push_str("}\n\nhttp {\n");
    text.push_str("    types { text/html html htm; text/plain txt; text/css css; }\n");
    text.push_str("    default_type application/octet-stream;\n");
    let _ = match values.text("access_log") {
        "off" => writeln!(text, "    access_log off;"),
        format => writeln!(text, "    access_log {dir}/access.log {format};"),
    };
    for (directive, folder) in TEMP_PATHS {
        let _ = writeln!(text, "    {directive} {dir}/{folder};");
    }
    directives(&mut text, "    ", HTTP, request, values);
    let reuseport = if values.is_on("reuseport") { " reuseport" } else { "" };
    let _ = write!(
        text,
        "\n    server {{\n        listen {} backlog={}{reuseport};\n        root {};\n        \
         index index.html;\n    }}\n}}\n",
        request.addr,
        values.text("backlog"),
        request.docroot.display(),
    );
    text
}

fn directives(text: &mut String, indent: &str, names: &[&str], request: &Request, values: &Values) {
    let connections = u64::from(request.connections);
    for name in names {
        let value = match *name {
            "worker_rlimit_nofile" => {
                values.number_or(name, (connections * 4).max(4096)).to_string()
            }
            "worker_connections" => values.number_or(name, (connections * 2).max(512)).to_string(),
            "open_file_cache" if values.text(name) == "0" => "off".to_owned(),
            "open_file_cache" => format!("max={}", values.text(name)),
            _ => values.text(name).to_owned(),
        };
        let _ = writeln!(text, "{indent}{name} {value};");
    }
}

/// `nginx -T` prints the files that it read, so both sources have the same grammar.
fn parity(rendered: &Rendered, printed: &str) -> Parity {
    let source = rendered.source(printed);
    let value = |name: &str| {
        let mut lines = source.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.strip_suffix(';'))
    };
    let text = |name: &str| value(name).unwrap_or("not set").to_owned();
    let listen = text("listen");
    let backlog = listen.split(' ').find_map(|word| word.strip_prefix("backlog="));
    let kept = value("keepalive_timeout").is_some_and(|seconds| seconds != "0");
    let file_cache = match text("open_file_cache").as_str() {
        "off" => NO_FILE_CACHE.to_owned(),
        _ => format!("on (descriptor, {} s)", text("open_file_cache_valid").trim_end_matches('s')),
    };
    let requests = match text("keepalive_requests").as_str() {
        "4294967295" => "unlimited".to_owned(),
        number => number.to_owned(),
    };
    Parity {
        answers: Answers {
            access_log: on_off(text("access_log") != "off").into(),
            backlog: backlog.unwrap_or("511").into(),
            compression: read(text("gzip")),
            etag: read(text("etag")),
            file_cache: file_cache.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: on_off(kept).into(),
            keep_alive_requests: requests.into(),
            keep_alive_timeout: format!("{} s", text("keepalive_timeout")).into(),
            sendfile: read(text("sendfile")),
            tcp_nodelay: read(text("tcp_nodelay")),
            tcp_nopush: on_off(text("sendfile") == "on" && text("tcp_nopush") == "on").into(),
            tls: on_off(listen.split(' ').any(|word| word == "ssl")).into(),
            workers: counted(&text("worker_processes"), "event loop", "event loops").into(),
        },
        shown: shown([
            ("connections_max", text("worker_connections")),
            ("reuseport", on_off(listen.contains("reuseport"))),
            ("user", text("user")),
        ]),
    }
}
