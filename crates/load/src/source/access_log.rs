//! Access logs of Apache and nginx, common and combined. Start reading at [`FORMAT`]. Source: Apache's mod_log_config
//! ("%h %l %u %t \"%r\" %>s %b") and nginx's ngx_http_log_module. A virtual host before the entry and anything after
//! it are skipped.
//!
//! A log contains no bodies and only two header fields. Methods and targets are requested again at the times of the
//! log, which are whole seconds.

use super::harvest::{Fault, Harvest, instant};
use super::{Base, Format, ListedRequest, Listing, SourceError, escaped, first_line, lines};

/// Access logs.
pub(super) static FORMAT: Format = Format {
    name: "access_log",
    about: "an access log of Apache or nginx, common or combined, asked again at its times",
    looks_like: |text| parts(first_line(text)).is_some(),
    read,
};

fn read(text: &str, base: &Base<'_>) -> Result<Listing, SourceError> {
    let mut harvest = Harvest::new(base);
    let (mut n_passed, mut n_bodies, mut first_passed) = (0u64, 0u64, 0);
    for (number, line) in lines(text) {
        let refuse = |fault| SourceError::new(base, Some(number), fault);
        let (time, request) = parts(line).ok_or_else(|| {
            refuse(Fault::Format(
                "this is no line of an access log: it has [10/Oct/2000:13:55:36 -0700] and then \
                 \"GET / HTTP/1.1\""
                    .to_owned(),
            ))
        })?;
        let Some((method, target)) = method_and_target(&request) else {
            n_passed += 1;
            first_passed = if n_passed == 1 { number } else { first_passed };
            continue;
        };
        let at = jiff::fmt::strtime::parse("%d/%b/%Y:%H:%M:%S %z", time)
            .and_then(|parsed| parsed.to_timestamp());
        let at = at.ok().and_then(instant).ok_or_else(|| {
            refuse(Fault::Format(format!("`{time}` is no time: it is 10/Oct/2000:13:55:36 -0700")))
        })?;
        n_bodies += u64::from(matches!(method, "POST" | "PUT" | "PATCH"));
        let method = method.to_owned();
        harvest
            .push(ListedRequest { method, at: Some(at), ..ListedRequest::get(target) })
            .map_err(refuse)?;
    }
    if n_passed > 0 {
        harvest.note(format!(
            "lines of the log that hold no request to this server and are passed over: {n_passed}; \
             the first is line {first_passed}"
        ));
    }
    if n_bodies > 0 {
        harvest.note(format!(
            "requests of POST, PUT or PATCH that go without a body, since a log keeps none: \
             {n_bodies}"
        ));
    }
    harvest.finish()
}

/// The time and the request line, its escapes resolved, of a line of a log.
fn parts(line: &str) -> Option<(&str, Vec<u8>)> {
    let (_, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let is_time = time.len() == "10/Oct/2000:13:55:36 -0700".len() && time.contains('/');
    let request = unquoted(rest.as_bytes())?;
    is_time.then_some((time, request))
}

/// The text before the closing quote. Apache writes `\"`, `\\` and `\n`, both write `\x16`.
fn unquoted(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        (_, rest) = match *rest {
            [b'"', ..] => return Some(out),
            [b'\\', b'x', high, low, ..] if hex(high).is_some() && hex(low).is_some() => {
                (out.push(hex(high)? << 4 | hex(low)?), &rest[4..])
            }
            [b'\\', b'n', ..] => (out.push(b'\n'), &rest[2..]),
            [b'\\', b'r', ..] => (out.push(b'\r'), &rest[2..]),
            [b'\\', b't', ..] => (out.push(b'\t'), &rest[2..]),
            [b'\\', byte, ..] => (out.push(byte), &rest[2..]),
            [byte, ..] => (out.push(byte), &rest[1..]),
            [] => return None,
        };
    }
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// From `GET /a HTTP/1.1`; `None` if the client sent something else (`-`, a TLS hello, CONNECT, a URL).
fn method_and_target(request: &[u8]) -> Option<(&str, String)> {
    let space = request.iter().position(|&byte| byte == b' ')?;
    let method = str::from_utf8(&request[..space]).ok()?;
    let rest = &request[space + 1..];
    // HTTP/0.9 has no version; a target with a space ends before the last one.
    let version = rest.windows(6).rposition(|window| window == b" HTTP/");
    let target = escaped(&rest[..version.unwrap_or(rest.len())]);
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_uppercase());
    // Scanners for open proxies ask for URLs of third parties: a replay must not load those.
    (is_method && target.starts_with('/')).then_some((method, target))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{listed, refuses, shown};

    /// The lines of Apache's manual, of nginx's, and what the internet sends to both.
    #[test]
    fn common_and_combined_logs_are_asked_again_at_their_times() {
        let text = concat!(
            "127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] \"GET /apache_pb.gif HTTP/1.0\" 200 2326\n",
            "127.0.0.1 - frank [10/Oct/2000:13:55:38 -0700] \"GET /a?q=\\\"x\\\" HTTP/1.0\" 200 2326 ",
            "\"http://www.example.com/start.html\" \"Mozilla/4.08 [en] (Win98; I ;Nav)\"\n",
            "www.example.com:80 ::1 - - [10/Oct/2000:20:55:37 +0000] \"POST /form HTTP/1.1\" 200 1\n",
            "10.0.0.1 - - [10/Oct/2000:20:55:39 +0000] \"\\x16\\x03\\x01\" 400 150 \"-\" \"-\"\n",
            "10.0.0.1 - - [10/Oct/2000:20:55:39 +0000] \"-\" 408 0\n",
            "10.0.0.1 - - [10/Oct/2000:20:55:39 +0000] \"GET http://bank/ HTTP/1.1\" 400 0\n",
            "10.0.0.1 - - [10/Oct/2000:20:55:40 +0000] \"GET /\\xc3\\xa4 b HTTP/1.1\" 200 1\n",
        );
        let listing = listed(text, "access_log");
        let expected = [
            "GET http://base:81/apache_pb.gif",
            "POST http://base:81/form",
            "GET http://base:81/a?q=%22x%22",
            "GET http://base:81/%C3%A4%20b",
        ];
        assert_eq!(shown(&listing), expected);
        let at: Vec<u64> = listing.asked.iter().map(|a| a.at.unwrap().0 / 1_000_000_000).collect();
        assert_eq!(at, [0, 1, 2, 4]);
        assert_eq!(listing.notes.len(), 2);
        assert!(listing.notes[0].ends_with(": 3; the first is line 4"), "{:?}", listing.notes);
        assert!(listing.notes[1].ends_with(": 1"), "{:?}", listing.notes);
    }

    #[test]
    fn what_was_recorded_has_no_placeholders() {
        let text = "h - - [10/Oct/2000:13:55:36 -0700] \"GET /{seq} HTTP/1.0\" 200 1";
        assert!(!listed(text, "access_log").asked[0].templated);
    }

    #[test]
    fn what_is_no_log_is_refused_with_its_line() {
        let good = "h - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 1";
        let cases = [
            (format!("{good}\nGET /"), "file:2: this is no line"),
            (good.replace("Oct", "Okt"), "is no time"),
            (good.replace("0\" 2", "0 2"), "file:1: this is no line"),
            (good.replace("GET / HTTP/1.0", "-"), "no request"),
        ];
        for (text, part) in cases {
            refuses("access_log", &[(&text, part)]);
        }
    }
}
