//! What we answer to conditions, ranges and codings, beside what nginx and Apache answer to the same bytes, about the
//! same files. The table of differences has each difference with its reason; one that no longer exists has to leave the
//! table. Needs Debian's nginx and apache2; without them it says that it was skipped. Start reading at
//! [`what_differs_from_nginx_and_apache_is_known_and_has_a_reason`].

mod support;

use std::fs;
use std::io::Read as _;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, SystemTime};

use support::apache::Apache;
use support::peer::Peer;
use support::{Conn, FIXED, Server, Setup};

/// The modification of every file: the example of RFC 9110, 5.6.7.
const MODIFIED_S: u64 = 784_111_777;
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const LATER: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

/// Request lines without version, and fields, with CRLF; `{etag}` and `{tag}` stand for the tag that the
/// server itself gave /ten.txt, with and without its quotes, `{S}`, `{E}`, `{L}` for the same, an earlier
/// and a later date.
const CASES: &[(&str, &str)] = &[
    // Without anything.
    ("GET /ten.txt", ""),
    ("HEAD /ten.txt", ""),
    ("GET /empty.txt", ""),
    ("GET /text.txt", ""),
    ("GET /nothing", "If-None-Match: *\r\n"),
    // Conditions.
    ("GET /ten.txt", "If-None-Match: {etag}\r\n"),
    ("HEAD /ten.txt", "If-None-Match: {etag}\r\n"),
    ("GET /ten.txt", "If-None-Match: W/{etag}\r\n"),
    ("GET /ten.txt", "If-None-Match: \"x\", {etag}\r\n"),
    ("GET /ten.txt", "If-None-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"),
    ("GET /ten.txt", "If-None-Match: *\r\n"),
    ("GET /ten.txt", "If-None-Match: \"x\"\r\n"),
    ("GET /ten.txt", "If-None-Match: {tag}\r\n"),
    ("GET /ten.txt", "If-None-Match: \"x\"\r\nIf-Modified-Since: {S}\r\n"),
    ("GET /ten.txt", "If-None-Match: {etag}\r\nIf-Modified-Since: {E}\r\n"),
    ("GET /ten.txt", "If-Modified-Since: {S}\r\n"),
    ("GET /ten.txt", "If-Modified-Since: {E}\r\n"),
    ("GET /ten.txt", "If-Modified-Since: {L}\r\n"),
    ("GET /ten.txt", "If-Modified-Since: yesterday\r\n"),
    ("GET /ten.txt", "If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n"),
    ("GET /ten.txt", "If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n"),
    ("GET /ten.txt", "If-Unmodified-Since: {S}\r\n"),
    ("GET /ten.txt", "If-Unmodified-Since: {E}\r\n"),
    ("GET /ten.txt", "If-Unmodified-Since: yesterday\r\n"),
    ("GET /ten.txt", "If-Match: {etag}\r\n"),
    ("GET /ten.txt", "If-Match: W/{etag}\r\n"),
    ("GET /ten.txt", "If-Match: *\r\n"),
    ("GET /ten.txt", "If-Match: \"x\"\r\n"),
    ("GET /ten.txt", "If-Match: \"x\", {etag}\r\n"),
    ("HEAD /ten.txt", "If-Match: \"x\"\r\n"),
    ("GET /ten.txt", "If-Match: {etag}\r\nIf-Unmodified-Since: {E}\r\n"),
    ("GET /ten.txt", "If-Match: {etag}\r\nIf-None-Match: {etag}\r\n"),
    ("GET /ten.txt", "If-Match: \"x\"\r\nIf-None-Match: {etag}\r\n"),
    // Ranges.
    ("GET /ten.txt", "Range: bytes=0-0\r\n"),
    ("GET /ten.txt", "Range: bytes=2-4\r\n"),
    ("GET /ten.txt", "Range: bytes=7-\r\n"),
    ("GET /ten.txt", "Range: bytes=-3\r\n"),
    ("GET /ten.txt", "Range: bytes=0-\r\n"),
    ("GET /ten.txt", "Range: bytes=8-100\r\n"),
    ("GET /ten.txt", "Range: bytes=-100\r\n"),
    ("GET /ten.txt", "Range: bytes=10-\r\n"),
    ("GET /ten.txt", "Range: bytes=-0\r\n"),
    ("GET /ten.txt", "Range: bytes=4-2\r\n"),
    ("GET /ten.txt", "Range: bytes=\r\n"),
    ("GET /ten.txt", "Range: bytes=x-y\r\n"),
    ("GET /ten.txt", "Range: items=0-1\r\n"),
    ("GET /ten.txt", "Range: bytes=8-99999999999999999999999\r\n"),
    ("GET /ten.txt", "Range: bytes=0-1, 4-5\r\n"),
    ("GET /ten.txt", "Range: bytes=8-9, 0-1\r\n"),
    ("GET /ten.txt", "Range: bytes=0-1,20-30\r\n"),
    ("GET /ten.txt", "Range: bytes=20-30,40-\r\n"),
    ("GET /ten.txt", "Range: bytes=0-4,2-6\r\n"),
    ("GET /ten.txt", "Range: bytes=0-,0-,0-\r\n"),
    ("GET /empty.txt", "Range: bytes=0-\r\n"),
    ("HEAD /ten.txt", "Range: bytes=0-1\r\n"),
    ("GET /nothing", "Range: bytes=0-1\r\n"),
    // Both.
    ("GET /ten.txt", "If-Range: {etag}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: W/{etag}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: \"x\"\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: {S}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: {E}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: {L}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Range: \"x\"\r\nRange: bytes=50-\r\n"),
    ("GET /ten.txt", "If-None-Match: {etag}\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Match: \"x\"\r\nRange: bytes=0-1\r\n"),
    ("GET /ten.txt", "If-Modified-Since: {S}\r\nRange: bytes=50-\r\n"),
    // Codings.
    ("GET /text.txt", "Accept-Encoding: gzip\r\n"),
    ("HEAD /text.txt", "Accept-Encoding: gzip\r\n"),
    ("GET /text.txt", "Accept-Encoding: x-gzip\r\n"),
    ("GET /text.txt", "Accept-Encoding: GZIP\r\n"),
    ("GET /text.txt", "Accept-Encoding: gzip;q=0\r\n"),
    ("GET /text.txt", "Accept-Encoding: gzip;q=0.001\r\n"),
    ("GET /text.txt", "Accept-Encoding: identity, gzip;q=0.5\r\n"),
    ("GET /text.txt", "Accept-Encoding: *\r\n"),
    ("GET /text.txt", "Accept-Encoding: identity;q=0\r\n"),
    ("GET /text.txt", "Accept-Encoding: br\r\n"),
    ("GET /text.txt", "Accept-Encoding: gzipx\r\n"),
    ("GET /text.txt", "Accept-Encoding:\r\n"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nIf-Modified-Since: {S}\r\n"),
];

/// Line and fields of a case, the server from which we differ, in which facts, and why.
type Difference = (&'static str, &'static str, &'static str, &'static [&'static str], &'static str);

#[rustfmt::skip]
const DIFFERENCES: &[Difference] = &[
    ("GET /ten.txt", "If-None-Match: \"x\"\r\nIf-None-Match: {etag}\r\n", "nginx", &["status", "tag", "vary", "length", "body"], "lines of a list are one list (RFC 9110, 5.3); it takes one line only"),
    ("GET /ten.txt", "If-None-Match: {etag}\r\nIf-Modified-Since: {E}\r\n", "nginx", &["status", "modified", "length", "body"], "beside If-None-Match a date is ignored (RFC 9110, 13.1.3); it heeds both"),
    ("GET /ten.txt", "If-None-Match: {etag}\r\nIf-Modified-Since: {E}\r\n", "Apache", &["status", "modified", "length", "body"], "beside If-None-Match a date is ignored (RFC 9110, 13.1.3); it heeds both"),
    ("GET /ten.txt", "If-Modified-Since: {L}\r\n", "nginx", &["status", "modified", "length", "body"], "not modified since a later date either (RFC 9110, 13.1.3); it compares for equality (if_modified_since exact)"),
    ("GET /ten.txt", "If-Unmodified-Since: yesterday\r\n", "nginx", &["status", "tag", "vary", "modified", "length", "body"], "a date that is none is ignored (RFC 9110, 13.1.4)"),
    ("GET /ten.txt", "If-Match: {etag}\r\nIf-Unmodified-Since: {E}\r\n", "nginx", &["status", "tag", "vary", "modified", "length", "body"], "beside If-Match a date is ignored (RFC 9110, 13.1.4); it heeds both"),
    ("GET /ten.txt", "If-Match: {etag}\r\nIf-Unmodified-Since: {E}\r\n", "Apache", &["status", "tag", "vary", "modified", "length", "body"], "beside If-Match a date is ignored (RFC 9110, 13.1.4); it heeds both"),
    ("GET /ten.txt", "Range: bytes=10-\r\n", "Apache", &["range"], "a 416 says how long it is (RFC 9110, 15.5.17); its page for errors does not"),
    ("GET /ten.txt", "Range: bytes=20-30,40-\r\n", "Apache", &["range"], "as above"),
    ("GET /ten.txt", "Range: bytes=-0\r\n", "Apache", &["status", "range", "tag", "vary", "modified", "length", "body"], "a suffix of nothing cannot be satisfied (RFC 9110, 14.1.2); it ignores it"),
    ("GET /ten.txt", "Range: bytes=4-2\r\n", "nginx", &["status", "range", "tag", "vary", "modified", "length", "body"], "an invalid range is ignored (RFC 9110, 14.2)"),
    ("GET /ten.txt", "Range: bytes=x-y\r\n", "nginx", &["status", "range", "tag", "vary", "modified", "length", "body"], "an invalid range is ignored (RFC 9110, 14.2)"),
    ("GET /ten.txt", "Range: bytes=8-99999999999999999999999\r\n", "nginx", &["status", "range", "tag", "vary", "modified", "length", "body"], "a last byte beyond the end means the end, however large (RFC 9110, 14.1.2)"),
    ("GET /ten.txt", "Range: bytes=8-99999999999999999999999\r\n", "Apache", &["status", "range", "length", "body"], "as above"),
    ("GET /ten.txt", "Range: bytes=0-1, 4-5\r\n", "Apache", &["status", "length", "body"], "two parts were asked for and are sent; it sends the whole where that is shorter, as it may"),
    ("GET /ten.txt", "Range: bytes=8-9, 0-1\r\n", "Apache", &["status", "length", "body"], "as above"),
    ("GET /ten.txt", "Range: bytes=0-4,2-6\r\n", "nginx", &["range", "length", "body"], "ranges that overlap are sent as one (RFC 9110, 15.3.7.2)"),
    ("GET /ten.txt", "Range: bytes=0-,0-,0-\r\n", "Apache", &["status", "range"], "overlapping ranges of more than the whole get the whole (RFC 9110, 14.2); it joins them"),
    ("HEAD /ten.txt", "Range: bytes=0-1\r\n", "nginx", &["status", "range", "length"], "ranges are of GET alone (RFC 9110, 14.2)"),
    ("HEAD /ten.txt", "Range: bytes=0-1\r\n", "Apache", &["status", "range", "length"], "ranges are of GET alone (RFC 9110, 14.2)"),
    ("GET /text.txt", "Accept-Encoding: x-gzip\r\n", "nginx", &["coding", "length"], "x-gzip is gzip (RFC 9110, 8.4.1.3)"),
    ("GET /text.txt", "Accept-Encoding: x-gzip\r\n", "Apache", &["coding", "length"], "x-gzip is gzip (RFC 9110, 8.4.1.3)"),
    ("GET /text.txt", "Accept-Encoding: identity, gzip;q=0.5\r\n", "nginx", &["coding", "length"], "the client likes no coding more (RFC 9110, 12.5.3); weights but 0 are not heeded by it"),
    ("GET /text.txt", "Accept-Encoding: identity, gzip;q=0.5\r\n", "Apache", &["coding", "length"], "the client likes no coding more (RFC 9110, 12.5.3); weights but 0 are not heeded by it"),
    ("GET /text.txt", "Accept-Encoding: *\r\n", "nginx", &["coding", "length"], "a star is any coding (RFC 9110, 12.5.3)"),
    ("GET /text.txt", "Accept-Encoding: *\r\n", "Apache", &["coding", "length"], "a star is any coding (RFC 9110, 12.5.3)"),
    ("GET /text.txt", "Accept-Encoding: identity;q=0\r\n", "nginx", &["status", "tag", "vary", "modified", "length", "body"], "nothing that there is is acceptable (RFC 9110, 12.5.3)"),
    ("GET /text.txt", "Accept-Encoding: identity;q=0\r\n", "Apache", &["status", "tag", "vary", "modified", "length", "body"], "nothing that there is is acceptable (RFC 9110, 12.5.3)"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n", "nginx", &["status", "range", "coding", "length", "body"], "a part of the plain file is one; it has no ranges of what it puts into a coding"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nRange: bytes=0-9\r\n", "Apache", &["range", "coding", "length", "body"], "a part of the plain file; its part is one of a coding made anew for each request"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nIf-Modified-Since: {S}\r\n", "nginx", &["vary"], "a 304 has the Vary of the 200 (RFC 9110, 15.4.5)"),
    ("GET /text.txt", "Accept-Encoding: gzip\r\nIf-Modified-Since: {S}\r\n", "Apache", &["vary"], "a 304 has the Vary of the 200 (RFC 9110, 15.4.5)"),
];

/// A fact of an answer that is compared: its name and its value.
type Fact = (&'static str, String);

/// Asks one server.
struct Asked {
    addr: SocketAddr,
    /// Of /ten.txt, with its quotes.
    etag: String,
}

impl Asked {
    fn of(addr: SocketAddr) -> Self {
        let mut asked = Self { addr, etag: String::new() };
        let (head, _) = asked.ask("GET /ten.txt", "");
        asked.etag = field(&head, "etag").expect("a file has a tag");
        asked
    }

    /// Head and body of an answer, whose framing is taken off.
    fn ask(&self, line: &str, fields: &str) -> (String, Vec<u8>) {
        let fields = fields
            .replace("{etag}", &self.etag)
            .replace("{tag}", self.etag.trim_matches('"'))
            .replace("{S}", SAME)
            .replace("{E}", EARLIER)
            .replace("{L}", LATER);
        let mut conn = Conn::to(self.addr);
        conn.send(format!("{line} HTTP/1.1\r\nHost: test\r\n{fields}Connection: close\r\n\r\n"));
        let bytes = conn.rest();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head") + 4;
        let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
        let body = match field(&head, "transfer-encoding") {
            Some(_) => dechunked(&bytes[end..]),
            None => bytes[end..].to_vec(),
        };
        (head, body)
    }

    fn facts(&self, line: &str, fields: &str) -> Vec<Fact> {
        let (head, body) = self.ask(line, fields);
        let status = head.split(' ').nth(1).unwrap().to_owned();
        let has = |name| field(&head, name).is_some().to_string();
        let value = |name| field(&head, name).unwrap_or_default();
        let coding = value("content-encoding");
        let mut facts = vec![
            ("status", status.clone()),
            ("range", value("content-range")),
            ("coding", coding.clone()),
        ];
        // Error pages are each server's own.
        if !matches!(status.as_str(), "200" | "206" | "304") {
            return facts;
        }
        facts.push(("tag", has("etag")));
        facts.push(("vary", value("vary").to_ascii_lowercase()));
        if status != "304" {
            facts.push(("modified", value("last-modified")));
        }
        if coding.is_empty() && !value("content-type").starts_with("multipart/") {
            facts.push(("length", value("content-length")));
        }
        facts.push(("body", content(&head, &body)));
        facts
    }
}

fn field(head: &str, name: &str) -> Option<String> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = fields.filter(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, v)| v.trim());
    values.next().map(str::to_owned)
}

fn dechunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = bytes.windows(2).position(|two| two == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        bytes = &bytes[end + 2..];
        if size == 0 {
            break;
        }
        body.extend_from_slice(&bytes[..size]);
        bytes = &bytes[size + 2..];
    }
    body
}

/// A body without its coding; of several parts, each with its place and in order.
fn content(head: &str, body: &[u8]) -> String {
    let media = field(head, "content-type").unwrap_or_default();
    if let Some((_, boundary)) = media.split_once("boundary=") {
        let text = String::from_utf8_lossy(body);
        let between = format!("--{}", boundary.trim_matches('"'));
        let parts = text.split(&between);
        let parts = parts.filter_map(|part| part.split_once("\r\n\r\n"));
        let shown = parts.map(|(head, content)| {
            format!("[{} {:?}]", field(head, "content-range").unwrap_or_default(), content.trim())
        });
        return shown.collect();
    }
    let mut plain = Vec::new();
    match field(head, "content-encoding").filter(|_| !body.is_empty()) {
        Some(_) => {
            // A part of it cannot be decoded.
            if flate2::read::GzDecoder::new(body).read_to_end(&mut plain).is_err() {
                return format!("{} bytes of a coding", body.len());
            }
        }
        None => plain.extend_from_slice(body),
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn make_site(site: &Path) {
    let text = "what is worth a coding\n".repeat(100);
    fs::create_dir_all(site).unwrap();
    for (name, content) in [("ten.txt", "0123456789"), ("empty.txt", ""), ("text.txt", &text)] {
        let path = site.join(name);
        fs::write(&path, content).unwrap();
        let modified = SystemTime::UNIX_EPOCH + Duration::from_secs(MODIFIED_S);
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    }
}

fn nginx(dir: &Path) -> Option<Peer> {
    Peer::start("nginx", dir, &["-e", "/dev/null", "-c"], |addr| {
        let path = dir.display();
        format!(
            "daemon off; master_process off; pid {path}/nginx.pid; error_log {path}/nginx.log;\n\
             events {{ worker_connections 64; }}\n\
             http {{ access_log off; types {{ text/plain txt; }}\n\
             gzip on; gzip_types text/plain; gzip_min_length 100; gzip_vary on;\n\
             server {{ listen {addr}; root {path}/site; }} }}\n"
        )
    })
}

fn apache() -> Option<Apache> {
    let settings = [
        "LoadModule=deflate_module /usr/lib/apache2/modules/mod_deflate.so",
        "<Location=/text.txt>",
        "SetOutputFilter=DEFLATE",
        "</Location>",
    ];
    let apache = Apache::start("event", &settings)?;
    make_site(&apache.dir.path().join("root"));
    Some(apache)
}

#[test]
fn what_differs_from_nginx_and_apache_is_known_and_has_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    // A peer may serve as another account.
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(dir.path(), mode).unwrap();
    make_site(&dir.path().join("site"));
    let content = dir.path().join("site");
    let setup = Setup {
        content: content.to_str().unwrap(),
        config: "[compression]\ncodings = [\"gzip\"]\nbytes_min = 100\n",
        ..FIXED
    };
    let ours = Server::start("reactor", setup);
    let (nginx, apache) = (nginx(dir.path()), apache());
    let peers = [
        ("nginx", nginx.as_ref().map(|peer| peer.addr)),
        ("Apache", apache.as_ref().map(|peer| peer.addr)),
    ];
    let ours = Asked::of(ours.addr);
    let cases = |known: &&Difference| CASES.contains(&(known.0, known.1));
    assert_eq!(DIFFERENCES.iter().filter(cases).count(), DIFFERENCES.len(), "each is of a case");
    let mut wrong = Vec::new();
    for (peer, addr) in peers.into_iter().filter_map(|(peer, addr)| Some((peer, addr?))) {
        let theirs = Asked::of(addr);
        for &(line, fields) in CASES {
            let (ours, theirs) = (ours.facts(line, fields), theirs.facts(line, fields));
            let told = |facts: &[Fact], name: &str| {
                facts.iter().find(|(n, _)| *n == name).map(|(_, value)| value.clone())
            };
            let differing: Vec<&str> =
                ["status", "range", "coding", "tag", "vary", "modified", "length", "body"]
                    .into_iter()
                    .filter(|name| told(&ours, name) != told(&theirs, name))
                    .collect();
            let known = DIFFERENCES
                .iter()
                .find(|known| (known.0, known.1, known.2) == (line, fields, peer));
            if differing != known.map_or(&[][..], |known| known.3) {
                wrong.push(format!(
                    "{peer}, {line} {fields:?}: {differing:?}\n  ours {ours:.200?}\n  its  {theirs:.200?}"
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers differ in another way:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
