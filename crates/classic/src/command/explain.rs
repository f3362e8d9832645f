//! The equivalent command line of `joust load`. Owns how a plan is typed. Start reading at [`explain`].
//!
//! If a plan has the bytes of its request, they are used and not their description: everything that a tool sends
//! appears on the command line.

use record::{HttpVersion, LoadPlan, Pacing, RATE_LAWS, RequestPlan, ServerAddress, TlsVersions};
use units::Nanos;

/// Longest timeout that `joust load` takes (`load::TIMEOUT_MAX`): some tools wait longer.
const TIMEOUT_MAX: Nanos = Nanos::from_secs(1200);

/// The file name for a body that cannot be typed.
const BODY_FILE: &str = "body.bin";

/// The equivalent line of `joust load`, for a shell. What cannot be typed follows it, in lines that begin with `#`,
/// which a shell ignores. Order and case of header fields are those of `joust load`. If there are several requests it
/// contains the first: lists are given with `--from`.
pub fn explain(plan: &LoadPlan) -> String {
    let mut notes = Vec::new();
    let request = Wire::of(plan);
    let mut words = vec!["joust".to_owned(), "load".to_owned(), url(plan, &request, &mut notes)];
    let mut add = |flag: &str, value: String| words.extend(words_of(flag, value));
    add("-c", plan.connections.to_string());
    if let Some(requests) = plan.stop.requests {
        add("-n", requests.to_string());
    }
    if let Some(duration) = plan.stop.duration {
        add("-d", typed(duration));
    }
    if plan.threads > 1 {
        add("-t", plan.threads.to_string());
    }
    for (flag, value) in pace(plan) {
        add(flag, value);
    }
    if request.is_http10 {
        add("--http1.0", String::new());
    }
    if !plan.keep_alive {
        add("--no-keepalive", String::new());
    }
    if plan.pipeline > 1 {
        add("--pipeline", plan.pipeline.to_string());
    }
    if plan.cookies {
        add("--cookies", String::new());
    }
    add("--timeout", typed(plan.timeout.min(TIMEOUT_MAX)));
    for source in &plan.sources {
        add("--source", source.to_string());
    }
    if let ServerAddress::Unix(path) = &plan.origin().place {
        add("--unix", path.display().to_string());
    }
    if request.proxied(plan).is_some() {
        add("--proxy", format!("http://{}", plan.origin().place));
    }
    if plan.origin().tls_name.is_some() {
        for (flag, value) in tls(plan) {
            add(flag, value);
        }
    }
    for (flag, value) in request.typed(plan, &mut notes) {
        add(flag, value);
    }
    if plan.n_requests > 1 {
        notes.push(format!(
            "this is the first of {} requests: --from FILE sends them all",
            plan.n_requests
        ));
    }
    let line = words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    notes.iter().fold(line, |text, note| text + "\n# " + note)
}

/// A flag and its value, joined if the value begins with a dash and would be read as a flag.
fn words_of(flag: &str, value: String) -> Vec<String> {
    let long = match flag {
        "-H" => "--header",
        "-X" => "--method",
        other => other,
    };
    if value.starts_with('-') {
        return vec![format!("{long}={value}")];
    }
    let value = Some(value).filter(|value| !value.is_empty());
    [flag.to_owned()].into_iter().chain(value).collect()
}

/// The flags of an arrival law.
fn pace(plan: &LoadPlan) -> Vec<(&'static str, String)> {
    let mut typed_flags = Vec::new();
    let mut add = |flag, value| typed_flags.push((flag, value));
    if let Some((law, rate)) = plan.pacing.rate_law() {
        add("--rate", rate.0.to_string());
        if law.name != RATE_LAWS[0].name {
            add("--arrivals", law.name.to_owned());
        }
    }
    match &plan.pacing {
        // Instants cannot be typed: their mean rate is the closest law.
        Pacing::Replay { instants } => {
            if let (Some(first), Some(last)) = (instants.first(), instants.last())
                && first < last
            {
                let rate = (instants.len() - 1) as f64 / (last.0 - first.0) as f64 * 1e9;
                add("--rate", format!("{rate:.3}"));
                add("--arrivals", "jitter".to_owned());
            }
        }
        Pacing::Think { pause, .. } => add("--think", typed(*pause)),
        _ => {}
    }
    typed_flags
}

/// The URL: the authority as given to the tool, and the request's target.
fn url(plan: &LoadPlan, request: &Wire, notes: &mut Vec<String>) -> String {
    let scheme = if plan.origin().tls_name.is_some() { "https" } else { "http" };
    let authority = request.authority(plan);
    let target = if request.target.starts_with('/') {
        &*request.target
    } else {
        if request.proxied(plan).is_none() {
            let place = &plan.origin().place;
            notes.push(format!(
                "the request goes to a proxy at {place}, over a connection that --proxy does not make"
            ));
        }
        let behind = request.target.split_once("://").map_or("", |(_, behind)| behind);
        &behind[behind.find(['/', '?']).unwrap_or(behind.len())..]
    };
    let mut encoded = String::with_capacity(target.len());
    for byte in target.bytes() {
        // An open brace may begin a placeholder.
        if byte.is_ascii_graphic() && byte != b'#' && byte != b'{' {
            encoded.push(byte.into());
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    if encoded != target {
        notes.push("the target is percent-encoded here; the tool sends it unchanged".to_owned());
    }
    format!("{scheme}://{authority}{encoded}")
}

/// The text between the scheme and the path, without credentials, which a header field carries.
fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    authority.rsplit_once('@').map_or(authority, |(_, authority)| authority)
}

/// A request as sent over the wire.
struct Wire {
    method: String,
    target: String,
    is_http10: bool,
    /// Lines of the head after the first.
    lines: Vec<String>,
    body: Vec<u8>,
}

impl Wire {
    fn of(plan: &LoadPlan) -> Self {
        let request = &plan.requests[0];
        match &request.verbatim {
            Some(bytes) => Self::read(bytes),
            None => Self::described(request, plan.version == HttpVersion::Http10),
        }
    }

    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]);
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let (method, rest) = first.split_once(' ').unwrap_or((first, ""));
        let (target, version) = rest.rsplit_once(' ').unwrap_or((rest, ""));
        Self {
            method: method.to_owned(),
            target: target.to_owned(),
            is_http10: version == "HTTP/1.0",
            lines: lines.map(str::to_owned).collect(),
            body: bytes.get(end + 4..).unwrap_or_default().to_vec(),
        }
    }

    fn described(request: &RequestPlan, is_http10: bool) -> Self {
        let line = |(name, value): &(String, String)| format!("{name}: {value}");
        Self {
            method: request.method.clone(),
            target: request.target.clone(),
            is_http10,
            lines: request.headers.iter().map(line).collect(),
            body: request.body.clone(),
        }
    }

    /// The whole URL of a request to a proxy; `None` without a proxy, or if it is reached over TLS or a unix socket,
    /// which `joust load` does not support.
    fn proxied(&self, plan: &LoadPlan) -> Option<&str> {
        let origin = plan.origin();
        let is_reached =
            matches!(origin.place, ServerAddress::Inet(_)) && origin.tls_name.is_none();
        Some(&*self.target).filter(|target| is_reached && target.starts_with("http://"))
    }

    /// Host and port as given to the tool, or as the tool sends them to a proxy.
    fn authority<'a>(&'a self, plan: &'a LoadPlan) -> &'a str {
        authority(self.proxied(plan).unwrap_or(&plan.url))
    }

    /// Method, fields and body, without what `joust load` writes by itself.
    fn typed(&self, plan: &LoadPlan, notes: &mut Vec<String>) -> Vec<(&'static str, String)> {
        let mut typed = Vec::new();
        if self.method != "GET" || !self.body.is_empty() {
            typed.push(("-X", self.method.clone()));
        }
        for line in self.lines.iter().filter(|line| !line.is_empty()) {
            match self.field(plan, line) {
                Ok(Some(field)) => typed.push(("-H", field)),
                Ok(None) => {}
                Err(why) => notes.push(format!("`{}` is left out: {why}", line.escape_debug())),
            }
        }
        if !self.body.is_empty() {
            typed.push(("--body", self.typed_body(notes)));
        }
        typed
    }

    /// A line of the head as a flag value; `None` if `joust load` writes it by itself.
    fn field(&self, plan: &LoadPlan, line: &str) -> Result<Option<String>, &'static str> {
        let Some((name, value)) = line.split_once(':') else {
            return Err("it is not a header field");
        };
        let (name, value) = (name.trim(), value.trim());
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty()
            || !name.chars().all(is_token)
            || value.contains(|c: char| c.is_control())
        {
            return Err("joust load refuses such a field");
        }
        if begins_placeholder(value) {
            return Err("joust load would fill in the placeholder");
        }
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("host") {
            let scheme_port = if plan.origin().tls_name.is_some() { ":443" } else { ":80" };
            let authority = self.authority(plan);
            let own = authority.strip_suffix(scheme_port).unwrap_or(authority);
            return Ok((value != own).then(|| format!("{name}: {value}")));
        }
        if is("transfer-encoding") {
            return Err("joust load sets the framing fields itself");
        }
        if is("content-length") {
            let is_own = !self.body.is_empty() || self.says_length();
            return match value.parse() == Ok(self.body.len()) {
                true => Ok((!is_own).then(|| format!("{name}: {value}"))),
                false => Err("its value is not the length of the body"),
            };
        }
        if is("connection") {
            let is_own =
                !plan.keep_alive || self.is_http10 && value.eq_ignore_ascii_case("keep-alive");
            return Ok((!is_own).then(|| format!("{name}: {value}")));
        }
        Ok(Some(format!("{name}: {value}")))
    }

    /// Methods for which `joust load` sends a length of 0.
    fn says_length(&self) -> bool {
        ["POST", "PUT", "PATCH"].contains(&self.method.as_str())
    }

    fn typed_body(&self, notes: &mut Vec<String>) -> String {
        let text = str::from_utf8(&self.body).ok();
        let is_plain = |text: &&str| {
            !text.starts_with('@') && !text.contains('\0') && !begins_placeholder(text)
        };
        text.filter(is_plain).map_or_else(
            || {
                let n = self.body.len();
                notes.push(format!("{BODY_FILE} must hold the {n} bytes of the body"));
                format!("@{BODY_FILE}")
            },
            str::to_owned,
        )
    }
}

/// Whether `joust load` would read a part of the text as a placeholder.
fn begins_placeholder(text: &str) -> bool {
    ["{seq}", "{rand}", "{rand:", "{csv:"].iter().any(|begin| text.contains(begin))
}

fn tls(plan: &LoadPlan) -> Vec<(&'static str, String)> {
    let mut typed = Vec::new();
    if plan.tls.insecure {
        typed.push(("--insecure", String::new()));
    }
    if let Some((cert, key)) = &plan.tls.client {
        typed.push(("--cert", cert.display().to_string()));
        typed.push(("--key", key.display().to_string()));
    }
    match plan.tls.versions {
        TlsVersions::Both => {}
        TlsVersions::Only12 => typed.push(("--tls-version", "1.2".to_owned())),
        TlsVersions::Only13 => typed.push(("--tls-version", "1.3".to_owned())),
    }
    if plan.tls.resume < 1.0 {
        typed.push(("--tls-resume", format!("{}%", plan.tls.resume * 100.0)));
    }
    typed
}

/// A duration as `joust` reads it: whole seconds, else milliseconds, microseconds or nanoseconds.
fn typed(span: Nanos) -> String {
    for (unit, nanos) in [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)] {
        if span.0.is_multiple_of(nanos) {
            return format!("{}{unit}", span.0 / nanos);
        }
    }
    format!("{}ns", span.0)
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._~/:=,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use record::LoadStop;

    use super::*;

    #[test]
    fn what_differs_from_the_defaults_is_typed_and_quoted() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/a?b=1&c");
        plan.stop = LoadStop { requests: Some(7), duration: None };
        (plan.version, plan.keep_alive) = (HttpVersion::Http10, false);
        plan.requests[0].headers = vec![("A".to_owned(), "it's".to_owned())];
        plan.requests[0].body = b"x y".to_vec();
        let expected = "joust load 'http://127.0.0.1:80/a?b=1&c' -c 10 -n 7 --http1.0 \
            --no-keepalive --timeout 10s -X GET -H 'A: it'\\''s' --body 'x y'";
        assert_eq!(explain(&plan), expected);
    }

    #[test]
    fn the_request_is_what_goes_over_the_wire_and_not_what_the_plan_says_of_it() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 81).into(), "/");
        plan.timeout = Nanos::from_secs(3600);
        let bytes = b"POST /x HTTP/1.1\r\nHost: other\r\nAccept: */*\r\nConnection: keep-alive\r\n\
            Content-Type: a/b\r\nContent-Length: 3\r\nno field\r\nX: {seq}\r\n\r\na=1";
        plan.requests[0].verbatim = Some(bytes.to_vec());
        let text = explain(&plan);
        let (line, notes) = text.split_once('\n').unwrap();
        let expected = "joust load http://127.0.0.1:81/x -c 10 -d 10s --timeout 1200s -X POST \
            -H 'Host: other' -H 'Accept: */*' -H 'Connection: keep-alive' -H 'Content-Type: a/b' \
            --body a=1";
        assert_eq!(line, expected);
        let expected = "# `no field` is left out: it is not a header field\n\
            # `X: {seq}` is left out: joust load would fill in the placeholder";
        assert_eq!(notes, expected);
    }

    #[test]
    fn what_cannot_be_typed_is_said_behind_the_line() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 99).into(), "/");
        plan.url = "http://h/x".to_owned();
        let bytes = b"PUT http://h/x HTTP/1.0\r\nHost: h\r\n\r\n@\xff";
        plan.requests[0].verbatim = Some(bytes.to_vec());
        let text = explain(&plan);
        assert!(text.starts_with("joust load http://h/x "), "{text}");
        assert!(text.contains(" -X PUT --body @body.bin\n# "), "{text}");
        assert!(text.contains(" --proxy http://127.0.0.1:99 "), "{text}");
        assert!(text.ends_with("# body.bin must hold the 2 bytes of the body"), "{text}");
    }

    /// joust load speaks TLS through a proxy, but not to it.
    #[test]
    fn a_proxy_that_is_reached_over_tls_is_said_behind_the_line() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 99).into(), "/");
        plan.url = "https://h/x".to_owned();
        plan.origins[0].tls_name = Some("h".to_owned());
        let bytes = b"GET https://h/x HTTP/1.0\r\nHost: h\r\n\r\n";
        plan.requests[0].verbatim = Some(bytes.to_vec());
        let text = explain(&plan);
        let (line, notes) = text.split_once('\n').unwrap();
        assert!(notes.starts_with("# the request goes to a proxy at 127.0.0.1:99"), "{text}");
        assert!(!line.contains(" --proxy"), "{text}");
    }

    #[test]
    fn arrivals_that_jitter_are_typed() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        plan.pacing = Pacing::Jitter { rate: units::PerSecond(12.5) };
        assert!(explain(&plan).contains(" --rate 12.5 --arrivals jitter "), "{}", explain(&plan));
    }

    #[test]
    fn tls_is_typed_only_where_there_is_some() {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 443).into(), "/");
        plan.tls.insecure = true;
        plan.timeout = Nanos::from_millis(1500);
        assert!(explain(&plan).ends_with("--timeout 1500ms"), "{}", explain(&plan));
        plan.origins[0].tls_name = Some("localhost".to_owned());
        plan.tls.versions = TlsVersions::Only13;
        assert!(explain(&plan).ends_with("1500ms --insecure --tls-version 1.3"));
    }
}
