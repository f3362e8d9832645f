//! mini-httpd: a process for each connection, forked when it arrives; every reply closes its connection. Options
//! follow its manual page (mini_httpd(8)). It has no setting for the backlog: it gives listen(2) 1024. It sends files
//! by sendfile(2) from a corked socket without TCP_NODELAY.

use std::fmt::Write as _;

use super::values::{SettingKind, SettingSpec, Values};
use super::{
    Adapter, Answers, Found, NO_FILE_CACHE, NOT_SET, Parity, Rendered, Request, SEEN_ONLY, SERVER,
    Search, on_off, shown, version_printed,
};

/// mini-httpd.
pub(super) static ITEM: Adapter = Adapter {
    name: "mini-httpd",
    about: "mini-httpd: a process for each connection, without keep-alive",
    package: "mini-httpd",
    find,
    settings: SETTINGS,
    configure,
    parity,
    ..SERVER
};

static SETTINGS: &[SettingSpec] = &[
    SettingSpec::new(
        "max_age",
        SettingKind::Number { min: 0, max: i32::MAX as u64 },
        "(none)",
        "Seconds in the fields Expires and Cache-Control.",
    ),
    SettingSpec::new("charset", SettingKind::Word, "utf-8", "Character set of text."),
    SettingSpec::new(
        "logfile",
        SettingKind::Choice(&["off", "combined"]),
        "off",
        "Access log, into the server's folder.",
    ),
    SettingSpec::new(
        "cgi",
        SettingKind::Switch,
        "off",
        "Whether programs in /cgi-bin/ of the site are run (`cgipat`).",
    ),
];

fn find(search: &Search) -> Option<Found> {
    let binary = search.program("mini_httpd")?;
    let version = version_printed(&binary, "-V", "mini_httpd/")?;
    let number = version.split(' ').next().unwrap_or(&version);
    Some(Found { version: format!("mini_httpd/{number}"), binary })
}

fn configure(request: &Request, values: &Values) -> Rendered {
    let file = request.dir.join("mini_httpd.conf");
    let program = request.found.binary.clone().into_os_string();
    Rendered {
        files: vec![("mini_httpd.conf".to_owned(), text(request, values))],
        ..Rendered::of(vec![program, "-D".into(), "-C".into(), file.into()])
    }
}

fn text(request: &Request, values: &Values) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let _ = writeln!(text, "{name}={value}");
    };
    line("host", &request.addr.ip().to_string());
    line("port", &request.addr.port().to_string());
    line("dir", &request.docroot.display().to_string());
    if let Some(account) = request.account {
        line("user", &account.user);
    }
    line("charset", values.text("charset"));
    if let Some(seconds) = values.given("max_age") {
        line("max_age", seconds);
    }
    if values.text("logfile") != "off" {
        line("logfile", &request.dir.join("access.log").display().to_string());
    }
    if values.is_on("cgi") {
        line("cgipat", "cgi-bin/*");
    }
    text.push_str("nochroot\n");
    text
}

/// It does not print its configuration; probes of the running server show what it does.
fn parity(rendered: &Rendered, _printed: &str) -> Parity {
    let value = |name: &str| {
        let mut lines = rendered.files[0].1.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    Parity {
        answers: Answers {
            access_log: on_off(value("logfile").is_some()).into(),
            backlog: "1024".into(),
            compression: "off".into(),
            etag: "off".into(),
            file_cache: NO_FILE_CACHE.into(),
            header_bytes: SEEN_ONLY,
            http_version: "1.1".into(),
            keep_alive: "off".into(),
            keep_alive_requests: "1".into(),
            keep_alive_timeout: super::NOT_KEPT.into(),
            sendfile: "on".into(),
            tcp_nodelay: "off".into(),
            tcp_nopush: "on".into(),
            tls: "off".into(),
            workers: "a process for each connection, forked when it comes".into(),
        },
        shown: shown([("user", value("user").unwrap_or(NOT_SET).to_owned())]),
    }
}
