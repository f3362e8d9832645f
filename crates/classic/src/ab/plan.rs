//! Makes a plan from ab's flags: the request byte for byte, its server, and the end of the load. Owns the order of ab's
//! header fields. Start reading at [`plan`].

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;

use record::{
    HttpVersion, LoadPlan, LoadStop, Origin, RequestPlan, ServerAddress, TlsPlan, Verify,
};
use units::Nanos;

use super::flags::Flags;
use super::text;
use crate::command::{ExitMessage, Surroundings, Texts};

/// Longest head: ab's buffer.
const REQUEST_MAX: usize = 8192;

/// Messages of resolvers, and their numbers in ab's messages (APR adds 670000 to the C library's).
const UNRESOLVED: [(&str, u32); 3] = [
    ("Temporary failure in name resolution", 3),
    ("No address associated with hostname", 5),
    ("Name or service not known", 2),
];

/// The plan, and how it differs from ab.
///
/// # Errors
/// What ab prints before its first request.
pub(super) fn plan(
    flags: &Flags,
    world: &dyn Surroundings,
) -> Result<(LoadPlan, Vec<String>), ExitMessage> {
    let head = head(flags);
    if head.len() >= REQUEST_MAX {
        return Err(after_opening(flags, "Request too long\n\n".to_owned(), 1));
    }
    let source = match &flags.bind {
        Some(name) => Some(resolve(flags, world, name, 0)?.ip()),
        None => None,
    };
    let (host, port) = match &flags.proxy {
        Some((host, port)) => (host, *port),
        None => (&flags.url.host, flags.url.port),
    };
    let addr = resolve(flags, world, host, port)?;
    if flags.concurrency == 0 {
        let text = "apr_pollset_poll: Invalid argument (22)\n".to_owned();
        return Err(after_opening(flags, text, 22));
    }
    let url = &flags.url;
    let tls_name = url.is_tls.then(|| {
        // Without the name the address is used, and TLS then sends no name.
        if flags.sends_name { url.host.clone() } else { addr.ip().to_string() }
    });
    let host = url.host_field.clone();
    let plan = LoadPlan {
        url: shown(flags),
        origins: vec![Origin { place: ServerAddress::Inet(addr), host, tls_name }],
        requests: vec![request(flags, head)],
        version: HttpVersion::Http10,
        connections: flags.concurrency,
        keep_alive: flags.keep_alive,
        sources: source.into_iter().collect(),
        // ab does not verify certificates or offer sessions.
        tls: TlsPlan {
            insecure: true,
            client: flags.certificate.clone().map(|file| (file.clone(), file)),
            versions: flags.versions,
            resume: 0.0,
            ..TlsPlan::default()
        },
        stop: LoadStop {
            requests: Some(flags.requests.into()),
            duration: (flags.time_limit != 0).then(|| {
                let secs = u64::try_from(flags.time_limit).unwrap_or(0);
                Nanos::from_secs(secs).max(Nanos(1))
            }),
        },
        timeout: Nanos::from_secs(flags.timeout.into()).max(Nanos::from_millis(1)),
        drain: Nanos::ZERO,
        first_alone: true,
        lost_max: (!flags.goes_on).then_some(1),
        // ab ignores the status: every complete reply counts.
        verify: Verify { status_min: 0, status_max: 999, ..Verify::default() },
        raw_max: flags.requests.saturating_add(flags.concurrency),
        ..LoadPlan::get(addr, &url.path)
    };
    Ok((plan, footnotes(flags)))
}

fn footnotes(flags: &Flags) -> Vec<String> {
    let mut notes = Vec::new();
    if flags.url.is_tls {
        notes.push("ab verifies no certificate, so none was verified here either".to_owned());
    }
    if flags.n_cookies > 1 {
        let n = flags.n_cookies;
        notes.push(format!("of {n} -C ab sends the last one only, whatever its manual says"));
    }
    if flags.verbosity >= 2 {
        let text = "-v shows the head of the first reply here, not of each";
        notes.push(text.to_owned());
    }
    notes
}

/// With a scheme, which is optional in ab.
fn shown(flags: &Flags) -> String {
    let url = &flags.url;
    let scheme = if url.is_tls { "https" } else { "http" };
    format!("{scheme}://{}{}", url.host_field, url.path)
}

fn resolve(
    flags: &Flags,
    world: &dyn Surroundings,
    host: &str,
    port: u16,
) -> Result<SocketAddr, ExitMessage> {
    let found = world.resolve(host, port).and_then(|addresses| {
        let first = addresses.first().copied();
        first.ok_or_else(|| io::Error::other("Name or service not known"))
    });
    found.map_err(|error| {
        let text = error.to_string();
        let known = UNRESOLVED.iter().find(|(reason, _)| text.contains(reason));
        let (reason, number) = known.copied().unwrap_or(UNRESOLVED[2]);
        let number = 670_000 + number;
        let text = format!("apr_sockaddr_info_get() for {host}: {reason} ({number})\n");
        after_opening(flags, text, (number % 256) as u8)
    })
}

/// An error that ends ab after it has announced the run.
fn after_opening(flags: &Flags, text: String, code: u8) -> ExitMessage {
    ExitMessage { texts: Texts::out(text::opening(flags)).and_err(text), code }
}

/// The request line, then fields in ab's order and case.
pub(super) fn head(flags: &Flags) -> String {
    let url = &flags.url;
    let target = if flags.proxy.is_some() { &url.whole } else { &url.path };
    let mut head = format!("{} {target} HTTP/1.0\r\n", flags.method);
    if flags.keep_alive {
        head.push_str("Connection: Keep-Alive\r\n");
    }
    for (name, value) in fields(flags) {
        // A line of -H may contain anything, and is sent as typed.
        let line = if name.is_empty() { value } else { format!("{name}: {value}") };
        write!(head, "{line}\r\n").expect("a string takes all that is written");
    }
    head + "\r\n"
}

/// Fields after Connection; a line of -H has no name here.
fn fields(flags: &Flags) -> Vec<(&'static str, String)> {
    let mut fields = Vec::new();
    if let Some(cookie) = &flags.cookie {
        fields.push(("Cookie", cookie.clone()));
    }
    fields.extend(flags.auth.iter().map(|line| ("", line.clone())));
    if let Some(body) = &flags.body {
        fields.push(("Content-length", body.len().to_string()));
        fields.push(("Content-type", flags.content_type.clone()));
    }
    fields.extend(flags.headers.iter().map(|line| ("", line.clone())));
    let own = [
        ("Host", flags.url.host_field.as_str()),
        ("User-Agent", "ApacheBench/2.3"),
        ("Accept", "*/*"),
    ];
    for (name, value) in own {
        if !flags.headers.iter().any(|line| is_field(line, name)) {
            fields.push((name, value.to_owned()));
        }
    }
    fields
}

/// Whether a line of -H begins with that name and a colon, case-insensitively.
fn is_field(line: &str, name: &str) -> bool {
    let begin = line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name));
    begin && line[name.len()..].starts_with(':')
}

fn request(flags: &Flags, head: String) -> RequestPlan {
    let mut headers = Vec::new();
    for (name, value) in fields(flags) {
        let described = match value.split_once(':').filter(|_| name.is_empty()) {
            Some((name, value)) => (name.trim().to_owned(), value.trim().to_owned()),
            None => (name.to_owned(), value),
        };
        // joust writes these itself.
        if !["", "Host", "Content-length"].contains(&described.0.as_str()) {
            headers.push(described);
        }
    }
    let body = flags.body.clone().unwrap_or_default();
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&body);
    RequestPlan {
        method: flags.method.clone(),
        headers,
        body,
        verbatim: Some(bytes),
        ..RequestPlan::get(&flags.url.path)
    }
}
