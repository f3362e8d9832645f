//! A line of the access log, as Apache's mod_log_config writes it. Owns what each part of a format stands
//! for, and its escaping. Start reading at [`begin`].
//!
//! What depends on the request is rendered when it is answered, because its bytes are gone when the response has been
//! sent. A value that is known only then leaves a placeholder, which [`fill`] fills.

use std::io::Write as _;
use std::net::SocketAddr;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sys::clock;
use units::Nanos;
use wire::target::{SafePath, divide_absolute};

use super::format::{Late, LogFormat, Step, Style, Unit, Value};

/// What a request and its answer contribute to their line. Absent values are `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogEntry<'a> {
    pub(crate) client: SocketAddr,
    /// Where the server listens.
    pub(crate) local: SocketAddr,
    /// `%t`, in brackets; and the same in seconds since 1970.
    pub(crate) time: &'a [u8],
    pub(crate) second: u64,
    pub(crate) zone: &'a TimeZone,
    /// What arrived of the request's head.
    pub(crate) head: &'a [u8],
    /// The user who was authenticated.
    pub(crate) user: Option<&'a [u8]>,
    /// The answer, from its first byte on.
    pub(crate) answer: &'a [u8],
    pub(crate) status: u16,
    /// Requests of the connection before this one.
    pub(crate) requests_before: u32,
    /// Bytes of the request, body included.
    pub(crate) bytes_in: u64,
}

/// A part of a line that is not known yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placeholder {
    /// Where in the text it goes.
    pub(crate) at: usize,
    pub(crate) late: Late,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) body_bytes: u64,
    pub(crate) bytes: u64,
    /// From the last byte of the request to now.
    pub(crate) elapsed: Nanos,
    pub(crate) is_whole: bool,
    /// The connection stays open.
    pub(crate) keeps: bool,
}

/// Adds what is known of a line to `out`, and its placeholders, by their places in `out`, to `placeholders`.
pub(crate) fn begin(
    format: &LogFormat,
    told: &LogEntry<'_>,
    out: &mut Vec<u8>,
    placeholders: &mut Vec<Placeholder>,
) {
    let style = format.style();
    for step in format.steps() {
        match step {
            Step::Literal(bytes) => out.extend_from_slice(bytes),
            Step::Value(_, statuses) if !statuses.have(told.status) => value(out, style, None),
            Step::Value(Value::Late(late), _) => {
                placeholders.push(Placeholder { at: out.len(), late: *late })
            }
            Step::Value(what, _) => write_value(what, style, told, out),
        }
    }
}

/// Adds what a placeholder stands for.
pub(crate) fn fill(late: Late, sent: &Sent, out: &mut Vec<u8>) {
    match late {
        Late::BodyBytesOrHyphen if sent.body_bytes == 0 => out.push(b'-'),
        Late::BodyBytesOrHyphen | Late::BodyBytes => number(out, sent.body_bytes),
        Late::BytesOut => number(out, sent.bytes),
        Late::Elapsed(unit) => number(out, in_unit(sent.elapsed, unit)),
        Late::ConnStatus => out.push(match (sent.is_whole, sent.keeps) {
            (false, _) => b'X',
            (true, true) => b'+',
            (true, false) => b'-',
        }),
    }
}

fn write_value(what: &Value, style: Style, told: &LogEntry<'_>, out: &mut Vec<u8>) {
    let line = || RequestLine::of(told.head);
    match what {
        Value::Client => write(out, format_args!("{}", told.client.ip().to_canonical())),
        Value::ClientPort => number(out, told.client.port().into()),
        Value::Local => write(out, format_args!("{}", told.local.ip().to_canonical())),
        Value::LocalPort => number(out, told.local.port().into()),
        Value::Absent => value(out, style, None),
        Value::User => value(out, style, told.user),
        Value::Time => out.extend_from_slice(told.time),
        Value::TimeAs(format) => time_as(out, format, told),
        Value::TimeIn(unit) => number(out, in_unit(clock::wall(), *unit)),
        Value::TimeFraction(Unit::Micros) => {
            write(out, format_args!("{:06}", clock::wall().0 / 1000 % 1_000_000));
        }
        Value::TimeFraction(_) => {
            write(out, format_args!("{:03}", clock::wall().0 / 1_000_000 % 1000));
        }
        Value::RequestLine => {
            value(out, style, Some(first_line(told.head)).filter(|l| !l.is_empty()))
        }
        Value::Method => value(out, style, line().map(|line| line.method)),
        Value::Path => path(out, style, line().map(|line| line.target)),
        Value::Query => query(out, style, line().map(|line| line.target)),
        Value::Protocol => value(out, style, line().and_then(|line| line.protocol)),
        Value::Host => host(out, style, told),
        Value::Status => number(out, told.status.into()),
        Value::Process => number(out, std::process::id().into()),
        Value::Thread => number(out, sys::process::thread_number().into()),
        Value::RequestsBefore => number(out, told.requests_before.into()),
        Value::BytesIn => number(out, told.bytes_in),
        Value::Referer => field(out, style, told.head, "referer"),
        Value::UserAgent => field(out, style, told.head, "user-agent"),
        Value::FieldIn(name) => field(out, style, told.head, name),
        Value::FieldOut(name) => field(out, style, told.answer, name),
        Value::Late(_) => unreachable!("what is known late leaves a placeholder"),
    }
}

/// The request line without its end. An empty line that a client may send first is skipped.
fn first_line(head: &[u8]) -> &[u8] {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let end = head.iter().position(|byte| matches!(byte, b'\r' | b'\n')).unwrap_or(head.len());
    &head[..end]
}

struct RequestLine<'a> {
    method: &'a [u8],
    /// Of an absolute target.
    authority: Option<&'a [u8]>,
    /// Path and query.
    target: &'a [u8],
    protocol: Option<&'a [u8]>,
}

impl<'a> RequestLine<'a> {
    /// `None`: there is not even a target.
    fn of(head: &'a [u8]) -> Option<Self> {
        let mut words = first_line(head).split(|byte| *byte == b' ');
        let (method, whole) = (words.next()?, words.next()?);
        let text = std::str::from_utf8(whole).ok();
        let absolute = text.and_then(divide_absolute);
        let authority = absolute.map(|(_, authority, _)| authority.as_bytes());
        let target = absolute.map_or(whole, |(_, _, path)| path.as_bytes());
        Some(Self { method, authority, target, protocol: words.next() })
    }
}

/// The path that was requested, decoded, as Apache's `%U`.
fn path(out: &mut Vec<u8>, style: Style, target: Option<&[u8]>) {
    let text = target.and_then(|target| std::str::from_utf8(target).ok());
    match text.and_then(|text| SafePath::new(text).ok()) {
        Some(path) => value(out, style, Some(path.path())),
        None => {
            let raw = target.and_then(|target| target.split(|byte| *byte == b'?').next());
            value(out, style, raw);
        }
    }
}

/// With its question mark; nothing if there is none.
fn query(out: &mut Vec<u8>, style: Style, target: Option<&[u8]>) {
    let at = target.and_then(|target| target.iter().position(|byte| *byte == b'?'));
    if let (Some(target), Some(at)) = (target, at) {
        value(out, style, Some(&target[at..]));
    }
}

/// The host that was requested, without its port; if none was named, where the server listens. The authority of a
/// target takes precedence over a field (RFC 9112, 3.2.2).
fn host(out: &mut Vec<u8>, style: Style, told: &LogEntry<'_>) {
    let authority = RequestLine::of(told.head).and_then(|line| line.authority);
    let Some(host) = authority.or_else(|| fields(told.head, "host").next()) else {
        return write(out, format_args!("{}", told.local.ip().to_canonical()));
    };
    // The last colon is a port's unless it stands within the brackets of an IPv6 address.
    let colon = host.iter().rposition(|byte| *byte == b':');
    let end = colon.filter(|at| !host[*at..].contains(&b']')).unwrap_or(host.len());
    value(out, style, Some(&host[..end]));
}

/// The values of all fields of that name, as one.
fn field(out: &mut Vec<u8>, style: Style, head: &[u8], name: &str) {
    let mut values = fields(head, name).peekable();
    if values.peek().is_none() {
        return value(out, style, None);
    }
    let mut separator: &[u8] = b"";
    for one in values {
        out.extend_from_slice(separator);
        one.iter().for_each(|&byte| escaped(out, style, byte));
        separator = b", ";
    }
}

/// The values of the fields of that name, of a request's head or a response's.
fn fields<'a>(head: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    let lines = head.split(|byte| *byte == b'\n').skip(1).map(<[u8]>::trim_ascii_end);
    // Skips the request line. If an empty line came before it, the request line remains, but it has no such name.
    lines.take_while(|line| !line.is_empty()).filter_map(move |line| {
        let (before, after) = line.split_at_checked(name.len())?;
        let value = after.strip_prefix(b":")?;
        before.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

fn time_as(out: &mut Vec<u8>, format: &str, told: &LogEntry<'_>) {
    let second = told.second.cast_signed();
    let at = Timestamp::from_second(second).unwrap_or(Timestamp::UNIX_EPOCH);
    // The format was checked when it was read.
    if let Ok(text) = jiff::fmt::strtime::format(format, &at.to_zoned(told.zone.clone())) {
        out.extend_from_slice(text.as_bytes());
    }
}

fn in_unit(time: Nanos, unit: Unit) -> u64 {
    time.0
        / match unit {
            Unit::Seconds => 1_000_000_000,
            Unit::Millis => 1_000_000,
            Unit::Micros => 1000,
        }
}

fn value(out: &mut Vec<u8>, style: Style, value: Option<&[u8]>) {
    match (value, style) {
        (None, Style::Apache) => out.push(b'-'),
        (None, Style::Json) => {}
        (Some(bytes), _) => bytes.iter().for_each(|&byte| escaped(out, style, byte)),
    }
}

/// Escapes what could end the value or the line, or send commands to a terminal (CVE-2003-0020): as Apache's
/// ap_escape_logitem does, or as RFC 8259 says.
fn escaped(out: &mut Vec<u8>, style: Style, byte: u8) {
    let letter = match (byte, style) {
        (b'"' | b'\\', _) => byte,
        (b' '..=b'~', _) => return out.push(byte),
        (0x08, _) => b'b',
        (b'\n', _) => b'n',
        (b'\r', _) => b'r',
        (b'\t', _) => b't',
        (0x0b, Style::Apache) => b'v',
        (_, Style::Apache) => return write(out, format_args!("\\x{byte:02x}")),
        (_, Style::Json) => return write(out, format_args!("\\u{byte:04x}")),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// Writes the digits of a number, in a third of the time that formatting takes.
fn number(out: &mut Vec<u8>, mut number: u64) {
    let (mut digits, mut at) = ([0; 20], 20);
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn write(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a Vec takes every write");
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] =
        b"GET /a%20b/../c?x=1 HTTP/1.1\r\nHost: Example:8080\r\nUser-Agent: curl/8\r\n\
                          X-A: 1\r\nx-a:  2 \r\n\r\nX-A: of a body";

    fn line_of(typed: &str, head: &[u8], status: u16, body_bytes: u64) -> String {
        let format = LogFormat::read(typed).unwrap();
        let (mut text, mut placeholders) = (Vec::new(), Vec::new());
        let told = LogEntry {
            client: ([127, 0, 0, 1], 5000).into(),
            local: ([10, 0, 0, 1], 80).into(),
            time: b"[10/Oct/2000:13:55:36 -0700]",
            second: 971_211_336,
            zone: &TimeZone::fixed(jiff::tz::offset(-7)),
            head,
            user: None,
            answer: b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\nContent-Type: no",
            status,
            requests_before: 2,
            bytes_in: 123,
        };
        begin(&format, &told, &mut text, &mut placeholders);
        let elapsed = Nanos(2_345_678_901);
        let sent =
            Sent { body_bytes, bytes: body_bytes + 100, elapsed, is_whole: true, keeps: true };
        let (mut out, mut from) = (Vec::new(), 0);
        for placeholder in placeholders {
            out.extend_from_slice(&text[from..placeholder.at]);
            fill(placeholder.late, &sent, &mut out);
            from = placeholder.at;
        }
        out.extend_from_slice(&text[from..]);
        String::from_utf8(out).expect("a line is ASCII")
    }

    #[test]
    fn a_line_is_the_one_of_apaches_manual() {
        // httpd.apache.org/docs/2.4/logs.html, with %u as it is without authentication.
        let expected = "127.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \
                        \"GET /apache_pb.gif HTTP/1.0\" 200 2326";
        let head = b"GET /apache_pb.gif HTTP/1.0\r\n\r\n";
        assert_eq!(line_of("common", head, 200, 2326), expected);
        let both = " \"http://x/\" \"curl/8\"";
        let head =
            b"GET /apache_pb.gif HTTP/1.0\r\nReferer: http://x/\r\nUser-agent: curl/8\r\n\r\n";
        assert_eq!(line_of("combined", head, 200, 2326), format!("{expected}{both}"));
    }

    #[test]
    fn every_directive_says_its_own() {
        let cases = [
            ("%a %{c}a %A %p %{remote}p %{local}p", "127.0.0.1 127.0.0.1 10.0.0.1 80 5000 80"),
            ("%m %U %q %H", "GET /c ?x=1 HTTP/1.1"),
            ("%v %V", "Example Example"),
            ("%{X-A}i %{User-agent}i %{Referer}i %{None}i", "1, 2 curl/8 - -"),
            ("%{Content-Type}o %{none}o", "text/html -"),
            ("%B %O %I %k %X", "10 110 123 2 +"),
            ("%D %T %{ms}T %{us}T", "2345678 2 2345 2345678"),
            ("%{%Y-%m-%d %H:%M:%S}t", "2000-10-10 13:55:36"),
            ("%{begin:%s}t", "971211336"),
            ("%404{User-agent}i %!404{User-agent}i %200,404m", "- curl/8 GET"),
            ("100%% \\t\\\"\\q", "100% \t\"\\q"),
            ("%s %>s %<s", "200 200 200"),
        ];
        for (format, expected) in cases {
            assert_eq!(line_of(format, HEAD, 200, 10), expected, "{format}");
        }
        assert_eq!(line_of("%P", HEAD, 200, 10), std::process::id().to_string());
        assert_eq!(line_of("%b", HEAD, 304, 0), "-");
        for (format, digits) in [("%{msec_frac}t", 3), ("%{usec_frac}t", 6), ("%{msec}t", 13)] {
            assert_eq!(line_of(format, HEAD, 200, 10).len(), digits, "{format}");
        }
    }

    #[test]
    fn what_could_forge_a_line_is_escaped_as_apache_does() {
        let cases: [(&[u8], &str); 5] = [
            (b"a\"b", "a\\\"b"),
            (b"a\\b", "a\\\\b"),
            (b"\t\x08\x0b", "\\t\\b\\v"),
            (b"\x1b[2J\x00\x7f", "\\x1b[2J\\x00\\x7f"),
            ("é\u{9b}".as_bytes(), "\\xc3\\xa9\\xc2\\x9b"),
        ];
        for (request, shown) in cases {
            let line = line_of("common", request, 400, 0);
            assert!(line.ends_with(&format!("\"{shown}\" 400 -")), "{line}");
        }
        assert!(line_of("common", b"", 408, 0).ends_with("\"-\" 408 -"));
    }

    #[test]
    fn a_line_of_json_is_one_object_whatever_a_client_sends() {
        let head = b"GET /\"%00 HTTP/1.1\r\nReferer: \x01\\\"\xff\r\nUser-Agent: a\tb\r\n\r\n";
        let expected = concat!(
            r#"{"time":"2000-10-10T13:55:36-07:00","client":"127.0.0.1","user":"","host":"10.0.0.1","#,
            r#""method":"GET","path":"/\"%00","query":"","protocol":"HTTP/1.1","status":400,"#,
            r#""body_bytes":0,"duration_us":2345678,"referer":"\u0001\\\"\u00ff","user_agent":"a\tb"}"#
        );
        assert_eq!(line_of("json", head, 400, 0), expected);
    }
}
