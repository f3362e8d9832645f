//! Caddy: a goroutine for each connection, on as many threads as it may use CPUs. Options follow its documentation
//! (caddyserver.com/docs/caddyfile/{options,directives}). It has no setting for the backlog: Go gives listen(2) the
//! system's limit. A kept connection has no request limit.

use std::fmt::Write as _;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, AdapterError, Answers, Found, Minimum, NO_FILE_CACHE, NOT_SET, Parity, Rendered,
    Request, SEEN_ONLY, SERVER, Search, on_off, read, shown,
};

/// Caddy.
pub(super) static ITEM: Adapter = Adapter {
    name: "caddy",
    about: "Caddy: a goroutine for each connection (Go's HTTP server)",
    package: "caddy",
    minimum: Some(Minimum { version: "2.6", lack: "the option `protocols`" }),
    find,
    settings: SETTINGS,
    agree,
    configure,
    parity,
    ways: &[&[], &[("GOMAXPROCS", "1"), ("encode", "gzip")]],
    ..SERVER
};

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "GOMAXPROCS",
        SettingKind::Number { min: 1, max: 4096 },
        "(the CPUs that it may run on)",
        "Threads that run Go code at once.",
    ),
    SettingSpec::new(
        "GOGC",
        SettingKind::Word,
        "100",
        "Growth of the heap, in percent, after which garbage is collected; off: never.",
    ),
    SettingSpec::new(
        "idle",
        SettingKind::Word,
        "5m",
        "How long an idle connection is kept (`timeouts { idle }`).",
    ),
    SettingSpec::new(
        "read_header",
        SettingKind::Word,
        "1m",
        "How long a request's head may take (`timeouts { read_header }`). Caddy's own is no limit.",
    ),
    SettingSpec::new(
        "encode",
        SettingKind::Choice(&["off", "gzip", "zstd"]),
        "off",
        "Whether replies are compressed for clients that accept it.",
    ),
    SettingSpec::new(
        "log",
        SettingKind::Choice(&["off", "json", "console"]),
        "off",
        "Access log, into the server's folder.",
    ),
];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("caddy")?;
    let output = std::process::Command::new(&binary).arg("version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    // Caddy's own builds print "v2.6.2 h1:..."; Debian's print "2.6.2".
    let number = text.split_whitespace().next()?.trim_start_matches('v').to_owned();
    Some(Found { binary, version: format!("Caddy/{number}") })
}

fn agree(values: &Values) -> Result<(), AdapterError> {
    let gogc = values.text("GOGC");
    if gogc == "off" || gogc.parse::<u32>().is_ok() {
        return Ok(());
    }
    let reason = format!("`GOGC` is a number of percent or off, not `{gogc}`");
    Err(AdapterError::Disagree { server: ITEM.name, reason })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let file = request.dir.join("Caddyfile").into_os_string();
    let command = |verb: &str| {
        let program = request.found.binary.clone().into_os_string();
        vec![program, verb.into(), "--config".into(), file.clone()]
    };
    let dir = request.dir.display().to_string();
    // Where Caddy would keep certificates and the last configuration it ran.
    let mut env = vec![
        ("HOME".to_owned(), dir.clone()),
        ("XDG_CONFIG_HOME".to_owned(), dir.clone()),
        ("XDG_DATA_HOME".to_owned(), dir),
        ("GOGC".to_owned(), values.text("GOGC").to_owned()),
    ];
    if let Some(number) = values.given("GOMAXPROCS") {
        env.push(("GOMAXPROCS".to_owned(), number.to_owned()));
    }
    Rendered {
        files: vec![("Caddyfile".to_owned(), text(request, values))],
        env,
        check: [command("adapt"), vec!["--pretty".into()]].concat(),
        ..Rendered::of(command("run"))
    }
}

fn text(request: &Request, values: &Values) -> String {
    let dir = request.dir.display();
    // `http://:PORT` with `bind`: an address in place of the port would refuse other Host fields.
    let mut text = format!(
        "{{\n\tadmin off\n\tauto_https off\n\tgrace_period 1s\n\tlog {{\n\t\toutput file {dir}/error.log\n\
         \t\tlevel WARN\n\t}}\n\tservers {{\n\t\tprotocols h1\n\t\ttimeouts {{\n\t\t\tread_header {}\n\
         \t\t\tidle {}\n\t\t}}\n\t}}\n}}\nhttp://:{} {{\n\tbind {}\n\troot * {}\n",
        values.text("read_header"),
        values.text("idle"),
        request.addr.port(),
        request.addr.ip(),
        request.docroot.display(),
    );
    if values.text("encode") != "off" {
        let _ = writeln!(text, "\tencode {}", values.text("encode"));
    }
    if values.text("log") != "off" {
        let format = values.text("log");
        let _ =
            writeln!(text, "\tlog {{\n\t\toutput file {dir}/access.log\n\t\tformat {format}\n\t}}");
    }
    text.push_str("\tfile_server {\n\t\tindex index.html\n\t}\n}\n");
    text
}

/// `caddy adapt` prints the configuration that Caddy runs as JSON, one key per line, with times in nanoseconds.
fn parity(rendered: &Rendered, printed: &str) -> Parity {
    let from_file = |name: &str| {
        let mut lines = rendered.files[0].1.lines().map(str::trim);
        Some(lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?.to_owned())
    };
    let from_json = |key: &str| {
        let mut lines = printed.lines().map(str::trim);
        let value = lines.find_map(|line| line.strip_prefix(&format!("\"{key}\": "))?.into())?;
        Some(value.trim_end_matches(',').to_owned())
    };
    let idle = from_json("idle_timeout").and_then(|nanos| nanos.parse().ok()).map(units::Nanos);
    let idle = idle.map(|idle| idle.to_string()).or_else(|| {
        let typed = from_file("idle")?;
        Some(typed.parse::<units::Nanos>().map_or(typed, |idle| idle.to_string()))
    });
    let encodes = if printed.is_empty() {
        from_file("encode").is_some()
    } else {
        printed.contains("\"encodings\"")
    };
    // Go sends the head with the first 512 bytes and the rest by sendfile, unless the body is compressed.
    let sendfile = if encodes { "off (compressing)" } else { "off; above 512 B: on" };
    let logs = rendered.files[0].1.contains("access.log");
    let procs = rendered.env.iter().find(|(name, _)| name == "GOMAXPROCS");
    let workers = match procs {
        Some((_, number)) => format!("goroutines on {number} threads"),
        None => "goroutines on a thread for each CPU".to_owned(),
    };
    Parity {
        answers: Answers {
            access_log: on_off(logs).into(),
            backlog: super::somaxconn().into(),
            compression: on_off(encodes).into(),
            etag: "on".into(),
            file_cache: NO_FILE_CACHE.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: "on".into(),
            keep_alive_requests: "unlimited".into(),
            keep_alive_timeout: read(idle.unwrap_or_else(|| NOT_SET.to_owned())),
            sendfile: sendfile.into(),
            tcp_nodelay: "on".into(),
            tcp_nopush: "off".into(),
            tls: "off".into(),
            workers: workers.into(),
        },
        shown: shown([("user", "whoever runs joust".to_owned())]),
    }
}
