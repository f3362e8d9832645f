//! Slow, obvious readers of HTTP/1 to hold the real ones against, and random messages to hold them
//! with. Must not share code with the crate. Start reading at [`read_replies`] and [`read_requests`].
#![allow(dead_code, reason = "each test file uses its part")]

use proptest::prelude::*;

/// A reply as the oracle reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OracleReply {
    pub(crate) status: u16,
    pub(crate) keep_alive: bool,
    pub(crate) body: Vec<u8>,
}

/// A request as the oracle reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OracleRequest {
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) host: Option<String>,
    pub(crate) keep_alive: bool,
    pub(crate) body: Vec<u8>,
}

/// One character a byte, so that the tools of strings serve.
fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

fn bytes_of(text: &str) -> Vec<u8> {
    text.chars().map(|c| c as u8).collect()
}

struct Head<'a> {
    start_line: &'a str,
    fields: Vec<(String, String)>,
    rest: &'a str,
}

impl Head<'_> {
    fn values(&self, name: &str) -> Vec<&str> {
        self.fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    }

    fn keeps_alive(&self, version: &str) -> bool {
        let all = self.values("connection").join(",").to_ascii_lowercase();
        let says = |wanted| all.split(',').any(|token| token.trim_matches([' ', '\t']) == wanted);
        !says("close") && (version == "HTTP/1.1" || says("keep-alive"))
    }

    /// `Some(None)`: chunked; `Some(Some(n))`: length; `Err`: refused; `Ok(None)` : neither.
    fn framing(&self, version: &str) -> Result<Option<Option<u64>>, ()> {
        let codings = self.values("transfer-encoding");
        let lengths = self.values("content-length").join(",");
        let has_length = !self.values("content-length").is_empty();
        match (codings.as_slice(), has_length) {
            ([], false) => Ok(None),
            ([], true) => {
                let mut numbers = Vec::new();
                for text in lengths.split(',').map(|text| text.trim_matches([' ', '\t'])) {
                    if text.is_empty() || text.contains(|c: char| !c.is_ascii_digit()) {
                        return Err(());
                    }
                    numbers.push(text.parse::<u64>().map_err(|_| ())?);
                }
                numbers.dedup();
                if numbers.len() == 1 { Ok(Some(Some(numbers[0]))) } else { Err(()) }
            }
            ([one], false) if version == "HTTP/1.1" && one.eq_ignore_ascii_case("chunked") => {
                Ok(Some(None))
            }
            _ => Err(()),
        }
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c))
}

fn is_value(text: &str) -> bool {
    text.chars().all(|c| c == '\t' || (c >= ' ' && c != '\x7f'))
}

fn read_head(text: &str) -> Option<Head<'_>> {
    let end = text.find("\r\n\r\n")?;
    let mut lines = text[..end].split("\r\n");
    let start_line = lines.next()?;
    if text[..end].replace("\r\n", "").contains(['\r', '\n']) {
        return None;
    }
    let mut fields = Vec::new();
    for line in lines {
        let (name, value) = line.split_once(':')?;
        if !is_token(name) || !is_value(value) {
            return None;
        }
        fields.push((name.to_ascii_lowercase(), value.trim_matches([' ', '\t']).to_owned()));
    }
    let is_small = fields.len() <= 100;
    is_small.then_some(Head { start_line, fields, rest: &text[end + 4..] })
}

/// Body and rest of a chunked body, or `None` if it is wrong or not complete.
fn read_chunks(text: &str) -> Option<(String, &str)> {
    let mut body = String::new();
    let mut rest = text;
    loop {
        let (line, after) = rest.split_once("\r\n")?;
        let digits: String = line.chars().take_while(char::is_ascii_hexdigit).collect();
        let extension = &line[digits.len()..];
        let has_semicolon = extension.trim_start_matches([' ', '\t']).starts_with(';');
        if digits.is_empty() || digits.len() > 16 || !is_value(extension) {
            return None;
        }
        if !extension.is_empty() && !has_semicolon {
            return None;
        }
        let size = u64::from_str_radix(&digits, 16).ok()?;
        if size == 0 {
            rest = after;
            break;
        }
        let taken: String = after.chars().take(usize::try_from(size).ok()?).collect();
        if taken.chars().count() as u64 != size {
            return None;
        }
        rest = after[taken.len()..].strip_prefix("\r\n")?;
        body += &taken;
    }
    loop {
        let (line, after) = rest.split_once("\r\n")?;
        rest = after;
        if line.is_empty() {
            return Some((body, rest));
        }
        let (name, value) = line.split_once(':')?;
        if !is_token(name) || !is_value(value) {
            return None;
        }
    }
}

fn take(text: &str, count: u64) -> Option<(String, &str)> {
    let taken: String = text.chars().take(usize::try_from(count).ok()?).collect();
    (taken.chars().count() as u64 == count).then(|| (taken.clone(), &text[taken.len()..]))
}

/// The complete replies in `bytes`, the peer having closed after them, and whether nothing was left
/// over and nothing was cut. All requests were `method`, and there were `requests` of them.
pub(crate) fn read_replies(
    bytes: &[u8],
    method: &str,
    requests: usize,
) -> (Vec<OracleReply>, bool) {
    let text = latin1(bytes);
    let mut rest = text.as_str();
    let mut replies: Vec<OracleReply> = Vec::new();
    while !rest.is_empty() {
        let is_open = replies.last().is_none_or(|reply| reply.keep_alive);
        if replies.len() == requests || !is_open {
            return (replies, false);
        }
        match read_reply(rest, method) {
            Some((reply, after)) => {
                replies.push(reply);
                rest = after;
            }
            None => return (replies, false),
        }
    }
    (replies, true)
}

fn read_reply<'a>(text: &'a str, method: &str) -> Option<(OracleReply, &'a str)> {
    let head = read_head(text)?;
    let (version, after) = head.start_line.split_once(' ')?;
    let (code, reason) = after.split_once(' ').unwrap_or((after, ""));
    let is_code = code.len() == 3 && code.chars().all(|c| c.is_ascii_digit());
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) || !is_code || !is_value(reason) {
        return None;
    }
    let status: u16 = code.parse().ok()?;
    let framing = head.framing(version).ok()?;
    let keep_alive = head.keeps_alive(version);
    let reply =
        |keep_alive, body: String| OracleReply { status, keep_alive, body: bytes_of(&body) };
    match (status, framing) {
        (0..=99 | 101, _) => None,
        (100..=199, _) => read_reply(head.rest, method),
        (204 | 304, _) => Some((reply(keep_alive, String::new()), head.rest)),
        _ if method == "HEAD" => Some((reply(keep_alive, String::new()), head.rest)),
        (_, Some(None)) => {
            let (body, rest) = read_chunks(head.rest)?;
            Some((reply(keep_alive, body), rest))
        }
        (_, Some(Some(length))) => {
            let (body, rest) = take(head.rest, length)?;
            Some((reply(keep_alive, body), rest))
        }
        (_, None) => Some((reply(false, head.rest.to_owned()), "")),
    }
}

/// The complete requests in `bytes`, and whether nothing was left over.
pub(crate) fn read_requests(bytes: &[u8]) -> (Vec<OracleRequest>, bool) {
    let text = latin1(bytes);
    let mut rest = text.as_str();
    let mut requests = Vec::new();
    while let Some((request, after)) = read_request(rest) {
        requests.push(request);
        rest = after;
    }
    (requests, rest.is_empty())
}

fn read_request(text: &str) -> Option<(OracleRequest, &str)> {
    let text = text.strip_prefix("\r\n").unwrap_or(text);
    let head = read_head(text)?;
    let words: Vec<&str> = head.start_line.split(' ').collect();
    let [method, target, version] = words[..] else { return None };
    let target_is_valid = target.chars().all(|c| ('!'..='~').contains(&c) && c != '#');
    if !is_token(method) || method == "CONNECT" || !target_is_valid {
        return None;
    }
    if !["HTTP/1.0", "HTTP/1.1"].contains(&version) {
        return None;
    }
    let authority = read_authority(method, target)?;
    let hosts = head.values("host");
    if hosts.len() > 1 || hosts.is_empty() && version == "HTTP/1.1" || !hosts.iter().all(is_host) {
        return None;
    }
    let expects_other =
        head.values("expect").iter().any(|value| !value.eq_ignore_ascii_case("100-continue"));
    if expects_other && version == "HTTP/1.1" {
        return None;
    }
    let (body, rest) = match head.framing(version).ok()? {
        None => (String::new(), head.rest),
        Some(None) => read_chunks(head.rest)?,
        Some(Some(length)) => take(head.rest, length)?,
    };
    let request = OracleRequest {
        method: method.to_owned(),
        target: target.to_owned(),
        host: authority.or(hosts.first().map(|&host| host.to_owned())),
        keep_alive: head.keeps_alive(version),
        body: bytes_of(&body),
    };
    Some((request, rest))
}

/// `Some(None)`: a valid target without authority.
fn read_authority(method: &str, target: &str) -> Option<Option<String>> {
    if target.starts_with('/') || target == "*" && method == "OPTIONS" {
        return Some(None);
    }
    let lower = target.to_ascii_lowercase();
    let skip = ["http://", "https://"].iter().find(|scheme| lower.starts_with(**scheme))?.len();
    let authority = target[skip..].split(['/', '?']).next()?;
    let is_valid = !authority.is_empty() && !authority.starts_with(':') && is_host(&authority);
    is_valid.then(|| Some(authority.to_owned()))
}

fn is_host(host: &&str) -> bool {
    let (name, port) = match host.rfind(']') {
        Some(end) => host.split_at(end + 1),
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let port_is_valid = port.is_empty()
        || port.starts_with(':')
            && port.len() <= 6
            && port[1..].chars().all(|c| c.is_ascii_digit());
    let name_is_valid = match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => {
            !address.is_empty()
                && address.chars().all(|c| c.is_ascii_hexdigit() || c == ':' || c == '.')
        }
        None => name.chars().all(|c| c.is_ascii_alphanumeric() || "-._~%!$&'()*+,;=".contains(c)),
    };
    port_is_valid && name_is_valid
}

/// A body in the framing that its fields announce: (field line or none, bytes on the wire).
fn framed_body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let data = || prop::collection::vec(prop::sample::select(b"ab\r\n0:HTTP/1.".to_vec()), 0..40);
    let extension = prop::sample::select(vec!["", ";x", " ;a=\"b c\"", "\t;\t"]);
    let trailers = prop::sample::select(vec!["", "X: y\r\n", "A:\r\nContent-Length: 7\r\n"]);
    let length = data().prop_map(|data| (format!("Content-Length: {}\r\n", data.len()), data));
    let twice = data().prop_map(|data| {
        (format!("Content-Length: {0}\r\ncontent-length:{0}, {0}\r\n", data.len()), data)
    });
    let chunks = prop::collection::vec((data(), extension), 0..4);
    let chunked = (chunks, trailers).prop_map(|(chunks, trailers)| {
        let mut wire = Vec::new();
        for (data, extension) in chunks.iter().filter(|(data, _)| !data.is_empty()) {
            wire.extend_from_slice(format!("{:X}{extension}\r\n", data.len()).as_bytes());
            wire.extend_from_slice(data);
            wire.extend_from_slice(b"\r\n");
        }
        wire.extend_from_slice(format!("00\r\n{trailers}\r\n").as_bytes());
        ("Transfer-Encoding: Chunked\r\n".to_owned(), wire)
    });
    prop_oneof![length, twice, chunked]
}

fn other_fields() -> impl Strategy<Value = String> {
    let lines = vec![
        "Server: nginx/1.26.3\r\n",
        "Date:Sat, 21 Nov 2026 11:31:47 GMT\r\n",
        "Connection: keep-alive\r\n",
        "X-Empty:\r\n",
        "X-Spaced: \t a b\t \r\n",
        "ETag: \"caf\u{e9}\"\r\n",
        "Accept: */*\r\n",
    ];
    prop::collection::vec(prop::sample::select(lines), 0..5).prop_map(|lines| lines.concat())
}

/// The bytes of valid replies to `GET`, and how many there are; the last may end by closing.
pub(crate) fn replies() -> impl Strategy<Value = (Vec<u8>, usize)> {
    let interim = prop::sample::select(vec![
        "",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 \r\nLink: </a>\r\n\r\n",
    ]);
    let line =
        prop::sample::select(vec!["HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 206"]);
    let framed = (interim, line, other_fields(), framed_body()).prop_map(
        |(interim, line, fields, (framing, body))| {
            let head = format!("{interim}{line}\r\n{fields}{framing}\r\n");
            [bytes_of(&head), body].concat()
        },
    );
    let bodiless = prop::sample::select(vec![
        b"HTTP/1.1 204 No Content\r\n\r\n".to_vec(),
        b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"1\"\r\n\r\n".to_vec(),
    ]);
    let last = prop::sample::select(vec![
        b"".to_vec(),
        b"HTTP/1.0 200 OK\r\n\r\nuntil close\r\n".to_vec(),
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec(),
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok".to_vec(),
    ]);
    let some = prop::collection::vec(prop_oneof![4 => framed, 1 => bodiless], 1..5);
    (some, last).prop_map(|(some, last)| {
        let count = some.len() + usize::from(!last.is_empty());
        ([some.concat(), last].concat(), count)
    })
}

/// The bytes of valid requests.
pub(crate) fn requests() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET /a?b={c|d} HTTP/1.1\r\nhost:\r\n",
        "\r\nPOST http://a.example:80/x HTTP/1.1\r\nHOST: [::1]:8080\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n",
        "HEAD https://a?q HTTP/1.1\r\nHost: b\r\nConnection: te, CLOSE\r\n",
    ]);
    let framed = (line, other_fields(), prop::option::of(framed_body())).prop_map(
        |(line, fields, framed)| {
            let (framing, body) = framed.unwrap_or_default();
            [bytes_of(&format!("{line}{fields}{framing}\r\n")), body].concat()
        },
    );
    let old = prop::sample::select(vec![
        b"GET / HTTP/1.0\r\n\r\n".to_vec(),
        b"GET / HTTP/1.0\r\nExpect: x\r\nConnection: Keep-Alive\r\n\r\n".to_vec(),
    ]);
    prop::collection::vec(prop_oneof![4 => framed, 1 => old], 1..5).prop_map(|all| all.concat())
}

/// Changes to make: place as a share of the length, what, and a byte.
pub(crate) fn changes() -> impl Strategy<Value = Vec<(f64, u8, u8)>> {
    let bytes = b"\r\n :;,\0\x7f\x80\t#\"[]@/*0179aF+-Hhx".to_vec();
    prop::collection::vec((0.0..1.0f64, 0u8..3, prop::sample::select(bytes)), 0..4)
}

/// `bytes` with the changes made: replace, insert, remove.
pub(crate) fn changed(bytes: &[u8], changes: &[(f64, u8, u8)]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for &(place, what, byte) in changes {
        let at = (place * bytes.len() as f64) as usize;
        match what {
            _ if bytes.is_empty() => bytes.push(byte),
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}

/// Sizes of pieces, to be used in turn.
pub(crate) fn sizes() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        Just(vec![1]),
        prop::collection::vec(1usize..4, 1..20),
        prop::collection::vec(1usize..80, 1..20),
    ]
}

/// `bytes` in pieces of those sizes, in turn.
pub(crate) fn pieces<'a>(bytes: &'a [u8], sizes: &[usize]) -> Vec<&'a [u8]> {
    let mut rest = bytes;
    let mut pieces = Vec::new();
    for &size in sizes.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let (piece, after) = rest.split_at(size.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
