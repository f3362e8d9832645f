//! Apache httpd with any of its three MPMs, which Debian ships as modules. Directives and defaults follow its
//! documentation (httpd.apache.org/docs/2.4/mod/{core,mpm_common,event,worker,prefork}.html), except where a
//! setting's description says otherwise. Only the modules that a static file needs are loaded, so that the comparison
//! is of the MPM.

use std::fmt::Write as _;

use super::sizing;
use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, AdapterError, Answers, Found, Minimum, NO_FILE_CACHE, Parity, Rendered, Request,
    SEEN_ONLY, SERVER, Search, on_off, read, shown, version_printed,
};

/// Apache httpd.
pub(super) static ITEM: Adapter = Adapter {
    name: "apache",
    about: "Apache httpd, with its MPM prefork, worker or event",
    package: "apache2",
    minimum: Some(Minimum { version: "2.4", lack: "MPMs as modules, and MaxRequestWorkers" }),
    find,
    settings: SETTINGS,
    agree,
    configure,
    parity,
    ways: &[&[("mpm", "prefork")], &[("mpm", "worker")], &[("mpm", "event")]],
    ..SERVER
};

/// Where Debian's apache2 has its modules.
const MODULES: &str = "/usr/lib/apache2/modules";

const COUNT: SettingKind = SettingKind::Number { min: 0, max: i32::MAX as u64 };
const POSITIVE: SettingKind = SettingKind::Number { min: 1, max: i32::MAX as u64 };
const SIZED: &str = "(sized to the connections)";

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "mpm",
        SettingKind::Choice(&["prefork", "worker", "event"]),
        "event",
        "The multi-processing module: who holds a connection.",
    ),
    SettingSpec::new("StartServers", POSITIVE, SIZED, "Children started at once."),
    SettingSpec::new("MinSpareServers", POSITIVE, "5", "prefork: least idle children."),
    SettingSpec::new("MaxSpareServers", POSITIVE, SIZED, "prefork: most idle children."),
    SettingSpec::new("MinSpareThreads", POSITIVE, "75", "worker, event: minimum of idle threads."),
    SettingSpec::new("MaxSpareThreads", POSITIVE, SIZED, "worker, event: maximum of idle threads."),
    SettingSpec::new(
        "ThreadsPerChild",
        SettingKind::Number { min: 1, max: 20_000 },
        "25",
        "worker, event: threads of a child.",
    ),
    SettingSpec::new(
        "ThreadLimit",
        SettingKind::Number { min: 1, max: 20_000 },
        "(ThreadsPerChild, at least 64)",
        "worker, event: bound of ThreadsPerChild.",
    ),
    SettingSpec::new(
        "AsyncRequestWorkerFactor",
        SettingKind::Word,
        "2",
        "event: connections beyond threads that a child takes on.",
    ),
    SettingSpec::new(
        "MaxRequestWorkers",
        POSITIVE,
        SIZED,
        "Requests worked on at once: children (prefork) or threads.",
    )
    .also(&["MaxClients"]),
    SettingSpec::new(
        "ServerLimit",
        SettingKind::Number { min: 1, max: 200_000 },
        "(what MaxRequestWorkers needs)",
        "Most children.",
    ),
    SettingSpec::new(
        "MaxConnectionsPerChild",
        COUNT,
        "0",
        "Connections after which a child is replaced; 0: never.",
    )
    .also(&["MaxRequestsPerChild"]),
    SettingSpec::new(
        "ListenBacklog",
        POSITIVE,
        "511",
        "Connections the kernel holds until they are accepted.",
    ),
    SettingSpec::new(
        "KeepAlive",
        SettingKind::Switch,
        "on",
        "More than one request on a connection.",
    ),
    SettingSpec::new("KeepAliveTimeout", COUNT, "5", "Seconds an idle connection is kept."),
    SettingSpec::new(
        "MaxKeepAliveRequests",
        COUNT,
        "0",
        "Requests on a connection; 0: no limit. Apache's own 100 would make reconnects part of the load.",
    ),
    SettingSpec::new("TimeOut", POSITIVE, "60", "Seconds to wait for a client."),
    SettingSpec::new(
        "EnableSendfile",
        SettingKind::Switch,
        "off",
        "Whether files are sent by sendfile(2).",
    ),
    SettingSpec::new(
        "EnableMMAP",
        SettingKind::Switch,
        "on",
        "Whether files are mapped into memory.",
    ),
    SettingSpec::new(
        "FileETag",
        SettingKind::Choice(&["MTime Size", "None"]),
        "MTime Size",
        "What an ETag is made of.",
    ),
    SettingSpec::new(
        "CustomLog",
        SettingKind::Choice(&["off", "common", "combined"]),
        "off",
        "Access log, into the server's folder.",
    ),
    SettingSpec::new(
        "cgi",
        SettingKind::Switch,
        "off",
        "Whether programs in /cgi-bin/ of the site are run: by mod_cgi under prefork, else by \
         mod_cgid, which forks from a process of its own (`ScriptAlias`).",
    ),
];

const PREFORK_ONLY: &[&str] = &["MinSpareServers", "MaxSpareServers"];
const THREADED_ONLY: &[&str] =
    &["MinSpareThreads", "MaxSpareThreads", "ThreadsPerChild", "ThreadLimit"];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("apache2")?;
    let version = version_printed(&binary, "-v", "Server version: ")?;
    Some(Found { binary, version })
}

fn agree(values: &Values) -> Result<(), AdapterError> {
    let mpm = values.text("mpm");
    let foreign = |name: &&str| match mpm {
        "prefork" => THREADED_ONLY.contains(name) || *name == "AsyncRequestWorkerFactor",
        "worker" => PREFORK_ONLY.contains(name) || *name == "AsyncRequestWorkerFactor",
        _ => PREFORK_ONLY.contains(name),
    };
    let refused = |reason| Err(AdapterError::Disagree { server: ITEM.name, reason });
    if let Some(name) = values.names_given().find(foreign) {
        return refused(format!(
            "the MPM {mpm} has no `{name}`: leave it out, or set `mpm` to one that has it"
        ));
    }
    if values.text("AsyncRequestWorkerFactor").parse::<f64>().is_err() {
        return refused("`AsyncRequestWorkerFactor` is a number, as in 2 or 1.5".to_owned());
    }
    let threads = values.number_or("ThreadsPerChild", 25);
    let workers = values.number_or("MaxRequestWorkers", threads);
    if mpm != "prefork" && (workers < threads || !workers.is_multiple_of(threads)) {
        return refused(format!(
            "`MaxRequestWorkers` {workers} is not a multiple of `ThreadsPerChild` {threads}: Apache \
             would round it down"
        ));
    }
    Ok(())
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let dir = request.dir.display().to_string();
    let file = format!("{dir}/apache2.conf");
    let command = |options: &[&str]| {
        let program = request.found.binary.clone().into_os_string();
        std::iter::once(program).chain(options.iter().map(Into::into)).collect()
    };
    // mod_info prints the whole configuration as Apache understood it; it is loaded for the check only.
    let info = format!("LoadModule info_module {MODULES}/mod_info.so");
    let dump = ["-t", "-D", "DUMP_CONFIG", "-D", "DUMP_MODULES"];
    let check = [&["-d", &dir, "-f", &file, "-C", &info], &dump[..]].concat();
    Rendered {
        files: vec![
            ("apache2.conf".to_owned(), text(request, values)),
            (
                "mime.types".to_owned(),
                "text/html html htm\ntext/plain txt\ntext/css css\n".to_owned(),
            ),
        ],
        dirs: vec!["run".to_owned()],
        check: command(&check),
        ..Rendered::of(command(&["-d", &dir, "-f", &file, "-D", "FOREGROUND"]))
    }
}

fn text(request: &Request, values: &Values) -> String {
    let dir = request.dir.display();
    let mpm = values.text("mpm");
    let mut text = format!(
        "ServerRoot {dir}\nDefaultRuntimeDir {dir}/run\nPidFile {dir}/apache2.pid\n\
         ServerName localhost\nListen {}\n\
         LoadModule mpm_{mpm}_module {MODULES}/mod_mpm_{mpm}.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         LoadModule dir_module {MODULES}/mod_dir.so\n\
         LoadModule mime_module {MODULES}/mod_mime.so\n\
         TypesConfig {dir}/mime.types\n",
        request.addr,
    );
    if let Some(account) = request.account {
        let _ = writeln!(text, "User {}\nGroup {}", account.user, account.group);
    }
    let _ = writeln!(text, "ErrorLog {dir}/error.log\nLogLevel warn");
    let given = |name: &str| values.given(name).and_then(|number| number.parse().ok());
    let sizes = match mpm {
        "prefork" => sizing::processes(request.connections, given),
        _ => sizing::threads(request.connections, given),
    };
    for (name, number) in sizes {
        let _ = writeln!(text, "{name} {number}");
    }
    if mpm == "event" {
        let factor = values.text("AsyncRequestWorkerFactor");
        let _ = writeln!(text, "AsyncRequestWorkerFactor {factor}");
    }
    for name in ["MaxConnectionsPerChild", "ListenBacklog", "KeepAlive", "KeepAliveTimeout"]
        .into_iter()
        .chain(["MaxKeepAliveRequests", "TimeOut", "EnableSendfile", "EnableMMAP", "FileETag"])
    {
        let _ = writeln!(text, "{name} {}", values.text(name));
    }
    if values.text("CustomLog") != "off" {
        let format = match values.text("CustomLog") {
            "common" => r#"%h %l %u %t \"%r\" %>s %b"#,
            _ => r#"%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\""#,
        };
        let _ = writeln!(text, "CustomLog {dir}/access.log \"{format}\"");
    }
    let root = request.docroot.display();
    if values.is_on("cgi") {
        let module = if mpm == "prefork" { "cgi" } else { "cgid" };
        let _ = write!(
            text,
            "LoadModule alias_module {MODULES}/mod_alias.so\n\
             LoadModule {module}_module {MODULES}/mod_{module}.so\n\
             ScriptAlias /cgi-bin/ {root}/cgi-bin/\n"
        );
        if module == "cgid" {
            let _ = writeln!(text, "ScriptSock {dir}/run/cgid.sock");
        }
    }
    // AllowOverride None: otherwise Apache looks for .htaccess files on each request.
    let _ = write!(
        text,
        "DocumentRoot {root}\nDirectoryIndex index.html\n<Directory />\n    AllowOverride None\n    \
         Options FollowSymLinks\n</Directory>\n"
    );
    text
}

/// mod_info prints the directives in the form of the file, but without LoadModule; the list of modules stands in for
/// it.
fn parity(rendered: &Rendered, printed: &str) -> Parity {
    let source = rendered.source(printed);
    let value = |name: &str| {
        let mut lines = source.lines().map(str::trim);
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))
    };
    let text = |name: &str| value(name).unwrap_or("not set").to_owned();
    let mpm = ["prefork", "worker", "event"]
        .into_iter()
        .find(|mpm| source.contains(&format!("mpm_{mpm}_module")))
        .unwrap_or("unknown");
    let start = text("StartServers");
    let workers = match mpm {
        "prefork" => format!("{start} processes, a connection each"),
        "worker" => {
            format!("{start} processes of {} threads, a connection each", text("ThreadsPerChild"))
        }
        _ => format!("{start} processes of {} threads and a listener", text("ThreadsPerChild")),
    };
    let spares = match mpm {
        "prefork" => {
            format!("{} to {} processes", text("MinSpareServers"), text("MaxSpareServers"))
        }
        _ => format!("{} to {} threads", text("MinSpareThreads"), text("MaxSpareThreads")),
    };
    let sendfile = text("EnableSendfile").to_ascii_lowercase();
    // If the file goes by sendfile, head and file are corked; otherwise one writev sends both.
    let unlimited = |text: String| if text == "0" { "unlimited".to_owned() } else { text };
    Parity {
        answers: Answers {
            access_log: on_off(value("CustomLog").is_some()).into(),
            backlog: read(text("ListenBacklog")),
            compression: on_off(source.contains("deflate_module")).into(),
            etag: on_off(text("FileETag") != "None").into(),
            file_cache: NO_FILE_CACHE.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: read(text("KeepAlive").to_ascii_lowercase()),
            keep_alive_requests: unlimited(text("MaxKeepAliveRequests")).into(),
            keep_alive_timeout: format!("{} s", text("KeepAliveTimeout")).into(),
            sendfile: read(sendfile.clone()),
            tcp_nodelay: "on".into(),
            tcp_nopush: read(sendfile),
            tls: on_off(source.contains("ssl_module")).into(),
            workers: workers.into(),
        },
        shown: shown([
            ("connections_per_child", unlimited(text("MaxConnectionsPerChild"))),
            ("mpm", mpm.to_owned()),
            ("spares", spares),
            ("user", format!("{} {}", text("User"), text("Group"))),
            ("workers_max", text("MaxRequestWorkers")),
        ]),
    }
}
