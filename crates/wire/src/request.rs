//! Owns the server's side of a connection up to the body: the bytes of a request's head go in, a checked view of it
//! comes out, or the refusal with its status. Start reading at [`RequestParser::parse`].
//!
//! Strict where RFC 9112 leaves a choice: any tolerance can make a server and the proxy before it disagree about where
//! a request ends.
//!
//! Cost: a head that is complete in the buffer is read once, in place. Clients send the same head repeatedly, so the
//! last one is kept: a repetition costs one comparison of bytes ([`RequestParser::repeats`]). Nothing is allocated once
//! a connection has sent its longest head.

use std::mem::MaybeUninit;
use std::net::Ipv6Addr;

use httparse::Header;

use crate::framing::{Framing, FramingFault, FramingFields, parse_digits};
use crate::head::{
    EndScanner, FIELDS_MAX, Fields, HeadBounds, HeadFault, LineEnd, Version, diagnose,
    fields_start, lines_are_strict,
};
use crate::target::divide_absolute;
use crate::tokens::{self, is_token, is_token_byte};

/// Limits of a request's head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Bytes of the head, start line and empty line included; more is 431.
    pub head_bytes_max: usize,
    /// Bytes of the target; more is 414.
    pub target_bytes_max: usize,
    /// Fields, at most [`FIELDS_MAX`]; more is 431.
    pub fields_max: usize,
}

impl RequestLimits {
    /// 32 KiB of head; 8190 bytes of target, like Apache's LimitRequestLine (RFC 9112, 3 asks for 8000); 100 fields,
    /// like Apache's LimitRequestFields.
    pub const DEFAULT: Self =
        Self { head_bytes_max: 32 * 1024, target_bytes_max: 8190, fields_max: 100 };
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Why a request is refused. Answer with [`RequestError::status`] and close, because the start of the next request is
/// unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// See [`HeadFault`].
    #[error(transparent)]
    Head(#[from] HeadFault),
    /// See [`FramingFault`].
    #[error(transparent)]
    Framing(#[from] FramingFault),
    /// RFC 9110, 9.1.
    #[error("the method is not a token")]
    Method,
    /// RFC 9112, 3: longer than any known method.
    #[error("the method is longer than the limit")]
    MethodTooLong,
    /// A server that is not a proxy has no tunnels (RFC 9110, 9.3.6).
    #[error("CONNECT is not implemented")]
    Connect,
    /// Not origin-form, http(s) absolute-form, or `*` with OPTIONS (RFC 9112, 3.2); or it has a fragment, a control
    /// character or a byte outside ASCII.
    #[error("the request target is malformed")]
    Target,
    /// See [`RequestLimits::target_bytes_max`].
    #[error("the request target is longer than the limit")]
    TargetTooLong,
    /// Well-formed, but not of major version 1.
    #[error("the major version of HTTP is not 1")]
    Version,
    /// RFC 9112, 3.2.
    #[error("an HTTP/1.1 request without Host")]
    HostMissing,
    /// RFC 9112, 3.2.
    #[error("more than one Host")]
    HostRepeated,
    /// RFC 9112, 3.2; or both Host and the target's authority are empty: then the URL has no host, which http does not
    /// allow (RFC 9110, 4.2.1).
    #[error("Host is not a name or address with an optional port")]
    Host,
    /// RFC 9110, 10.1.1.
    #[error("an expectation other than 100-continue")]
    Expectation,
}

impl RequestError {
    /// The status of the refusal.
    pub const fn status(self) -> u16 {
        match self {
            Self::TargetTooLong | Self::Head(HeadFault::StartLineTooLong) => 414,
            Self::Head(HeadFault::TooLong | HeadFault::TooManyFields) => 431,
            Self::Expectation => 417,
            Self::Connect | Self::MethodTooLong => 501,
            Self::Framing(FramingFault::CodingUnknown) => 501,
            Self::Version => 505,
            _ => 400,
        }
    }
}

/// The head of a request, as a view of the caller's buffer.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Length of the head in the buffer; its body follows.
    pub head_len: usize,
    /// A token; case-sensitive. Never CONNECT.
    pub method: &'a str,
    /// The target as sent: visible ASCII without `#`.
    pub target: &'a str,
    /// Path and query of the target: begins with `/` or `?`, is empty (absolute-form without path:
    /// the root), or is `*`. [`crate::target::SafePath::new`] takes it apart.
    pub path_and_query: &'a str,
    /// The target's authority, which has precedence over the Host field (RFC 9112, 3.2.2), else Host. Name or address
    /// and port are well-formed. Empty or `None` in HTTP/1.0 only.
    pub host: Option<&'a str>,
    /// The client's version; a later minor version counts as 1.1 (RFC 9110, 2.5).
    pub version: Version,
    /// All fields.
    pub fields: Fields<'a>,
    /// How its body ends; never `UntilClose`.
    pub framing: Framing,
    /// Whether the client allows another request on the connection.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body. Only in HTTP/1.1, and
    /// only if there is a body (RFC 9110, 10.1.1).
    pub expects_continue: bool,
}

/// Longest head that is kept. Browsers send 400 to 1500 bytes; longer heads usually contain a cookie that changes.
const KEPT_BYTES_MAX: usize = 2048;

/// Room for the method, two spaces, the version and CRLF in addition to the target.
const BESIDE_TARGET: usize = 64;

/// Finds and reads one head after another on a connection.
#[derive(Debug, Clone)]
pub struct RequestParser {
    limits: RequestLimits,
    scanner: EndScanner,
    /// The last head that was read, as received; empty if there is none, or it was too long.
    last: Vec<u8>,
}

impl RequestParser {
    /// A parser for a fresh connection. A `fields_max` above [`FIELDS_MAX`] means [`FIELDS_MAX`].
    pub fn new(limits: RequestLimits) -> Self {
        Self { limits, scanner: EndScanner::default(), last: Vec::new() }
    }

    /// Prepares for another connection. The last head stays: it has the same meaning there.
    pub fn reset(&mut self) {
        self.scanner = EndScanner::default();
    }

    /// Whether `buf` begins with exactly the bytes of the head that [`RequestParser::parse`] read last. Then `parse`
    /// would return the same result, at the same offsets, and need not be called: it depends only on the bytes of the
    /// head, and no head is a prefix of another, since it ends with its first empty line. False if a part of the
    /// current head was seen before.
    #[inline]
    pub fn repeats(&self, buf: &[u8]) -> bool {
        !self.last.is_empty() && self.scanner.seen() == 0 && buf.starts_with(&self.last)
    }

    /// Reads the head at the start of `buf`. `None`: it is incomplete; call again with the same bytes and more after
    /// them. The buffer never needs more than `head_bytes_max` + 2 bytes. After `Some`, the next call is about the next
    /// request: `buf` must then begin after the body.
    ///
    /// # Errors
    /// The request must be refused; the parser is unusable on this connection.
    pub fn parse<'a>(&mut self, buf: &'a [u8]) -> Result<Option<Request<'a>>, RequestError> {
        let Some(skipped) = skip_empty_line(buf)? else { return Ok(None) };
        let mut parsed = self.parse_after_empty_line(&buf[skipped..]);
        if let Ok(Some(request)) = &mut parsed {
            request.head_len += skipped;
            self.last.clear();
            if request.head_len <= KEPT_BYTES_MAX {
                self.last.extend_from_slice(&buf[..request.head_len]);
            }
        }
        parsed
    }

    #[inline]
    fn parse_after_empty_line<'a>(
        &mut self,
        bytes: &'a [u8],
    ) -> Result<Option<Request<'a>>, RequestError> {
        if self.scanner.seen() == 0
            && let Some(request) = self.read_head(bytes)?
        {
            return Ok(Some(request));
        }
        let Some(head_len) = self.find_head_end(bytes)? else { return Ok(None) };
        self.scanner = EndScanner::default();
        let head = &bytes[..head_len];
        let request = match self.read_head(head)? {
            None => self.read_later_version(head)?,
            request => request,
        };
        match request {
            Some(request) => Ok(Some(request)),
            None => Err(diagnose(head, self.limits.fields_max, check_request_line)),
        }
    }

    /// Whether a part of a head was seen: the connection is not idle.
    pub fn in_head(&self) -> bool {
        self.scanner.seen() > 0
    }

    fn bounds(&self) -> HeadBounds {
        HeadBounds {
            start_line_max: self.limits.target_bytes_max.saturating_add(BESIDE_TARGET),
            head_max: self.limits.head_bytes_max,
            fields_max: self.limits.fields_max.min(FIELDS_MAX),
            line_end: LineEnd::Strict,
        }
    }

    /// Length of the head at the start of `bytes`, if it ends within them.
    fn find_head_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, RequestError> {
        if bytes.first().is_some_and(|&byte| !is_token_byte(byte)) {
            return Err(RequestError::Method);
        }
        let seen = self.scanner.seen();
        // The first line is checked as it arrives and at its end, before any fault after it. So the parser does not
        // wait for the rest of an invalid request (HTTP/0.9; lines that end in CR alone).
        let is_in_first_line = self.scanner.is_in_first_line();
        if is_in_first_line && has_bare_cr(bytes, seen, self.bounds().start_line_max) {
            return Err(HeadFault::BareCr.into());
        }
        let bounds = self.bounds();
        let end = self.scanner.scan(&bytes[seen..], bounds);
        if end == Err(HeadFault::StartLineTooLong) {
            return Err(what_is_too_long(&bytes[..bounds.start_line_max]));
        }
        if is_in_first_line && !self.scanner.is_in_first_line() {
            let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
            check_request_line(line.strip_suffix(b"\r").unwrap_or(line))?;
        }
        Ok(end?.map(|end| seen + end))
    }

    /// Reads a head of a later minor version, which counts as the highest known one (RFC 9110, 2.5). httparse does not
    /// accept it. No such version exists yet, so a slow path is enough.
    fn read_later_version<'a>(&self, head: &'a [u8]) -> Result<Option<Request<'a>>, RequestError> {
        let Some(end) = head.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let mut words = head[..end].split(|&byte| byte == b' ');
        let [method, target, version] = [(); 3].map(|()| words.next().unwrap_or_default());
        let is_later = matches!(version, [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9']);
        let (Ok(method), Ok(target)) = (std::str::from_utf8(method), std::str::from_utf8(target))
        else {
            return Ok(None);
        };
        let mut headers = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let headers = &mut headers[..self.limits.fields_max.min(FIELDS_MAX)];
        let fields_start = end + 2;
        let parsed = httparse::parse_headers(&head[fields_start..], headers);
        let Ok(httparse::Status::Complete((_, headers))) = parsed else { return Ok(None) };
        if !is_later || !lines_are_strict(head, headers) {
            return Ok(None);
        }
        let line = RequestLine { method, target, version: Version::Http11 };
        line.check(self.limits.target_bytes_max)?;
        line.with_fields(head.len(), headers, Fields::new(&head[fields_start..])).map(Some)
    }

    /// `None`: the head does not end in `bytes`, or its lines are invalid.
    fn read_head<'a>(&self, bytes: &'a [u8]) -> Result<Option<Request<'a>>, RequestError> {
        let mut headers = [const { MaybeUninit::uninit() }; FIELDS_MAX];
        let headers = &mut headers[..self.limits.fields_max.min(FIELDS_MAX)];
        let mut parsed = httparse::Request::new(&mut []);
        let Ok(httparse::Status::Complete(head_len)) =
            parsed.parse_with_uninit_headers(bytes, headers)
        else {
            return Ok(None);
        };
        let (Some(method), Some(target), Some(minor)) =
            (parsed.method, parsed.path, parsed.version)
        else {
            return Ok(None);
        };
        let head = &bytes[..head_len];
        let fields_start = fields_start(head, parsed.headers);
        let bounds = self.bounds();
        let fits = fields_start <= bounds.start_line_max && head_len <= bounds.head_max;
        if !(fits && lines_are_strict(head, parsed.headers)) {
            return Ok(None);
        }
        let line = RequestLine { method, target, version: Version::from_minor(minor) };
        line.check(self.limits.target_bytes_max)?;
        let fields = Fields::new(&head[fields_start..]);
        line.with_fields(head_len, parsed.headers, fields).map(Some)
    }
}

/// Names what makes the first line too long; `line` is its beginning.
fn what_is_too_long(line: &[u8]) -> RequestError {
    match line.iter().position(|&byte| byte == b' ') {
        // Not even a method: nothing shows that it is a request.
        None => HeadFault::StartLine.into(),
        Some(method_len) if method_len > BESIDE_TARGET => RequestError::MethodTooLong,
        Some(_) => HeadFault::StartLineTooLong.into(),
    }
}

/// The parts of a request line.
#[derive(Debug, Clone, Copy)]
struct RequestLine<'a> {
    method: &'a str,
    target: &'a str,
    version: Version,
}

impl<'a> RequestLine<'a> {
    fn check(&self, target_bytes_max: usize) -> Result<(), RequestError> {
        if self.target.len() > target_bytes_max {
            return Err(RequestError::TargetTooLong);
        }
        if self.method == "CONNECT" {
            return Err(RequestError::Connect);
        }
        // Visible ASCII that RFC 3986 forbids ({, |, and so on) is accepted, because browsers send it. A fragment is
        // never allowed in a request (RFC 9112, 3.2).
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        if self.target.bytes().all(is_allowed) { Ok(()) } else { Err(RequestError::Target) }
    }

    fn with_fields(
        self,
        head_len: usize,
        headers: &[Header<'a>],
        fields: Fields<'a>,
    ) -> Result<Request<'a>, RequestError> {
        let Self { method, target, version } = self;
        let framing_fields = FramingFields::read(version, headers)?;
        if framing_fields.obscured_name {
            return Err(FramingFault::ObscuredName.into());
        }
        if framing_fields.length_repeated {
            return Err(FramingFault::LengthRepeated.into());
        }
        let framing = match framing_fields.length {
            _ if framing_fields.chunked => Framing::Chunked,
            None | Some(0) => Framing::None,
            Some(length) => Framing::Length(length),
        };
        let (authority, path_and_query) = self.divide_target()?;
        let host = read_host(version, headers)?;
        if version == Version::Http11 && authority.is_none() && host == Some("") {
            return Err(RequestError::Host);
        }
        let expects = read_expectation(version, headers)?;
        Ok(Request {
            head_len,
            method,
            target,
            path_and_query,
            host: authority.or(host),
            version,
            fields,
            framing,
            keep_alive: framing_fields.keeps_alive(version),
            expects_continue: expects && framing != Framing::None,
        })
    }

    /// Authority, and path and query (RFC 9112, 3.2).
    fn divide_target(&self) -> Result<(Option<&'a str>, &'a str), RequestError> {
        if self.target.starts_with('/') {
            return Ok((None, self.target));
        }
        if self.target == "*" && self.method == "OPTIONS" {
            return Ok((None, self.target));
        }
        let (scheme, authority, path) = divide_absolute(self.target).ok_or(RequestError::Target)?;
        if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
            return Err(RequestError::Target);
        }
        // RFC 9110, 4.2.1: an http URI with an empty host is invalid; 4.2.4: so is user information.
        if authority.is_empty() || authority.starts_with(':') || !is_host(authority.as_bytes()) {
            return Err(RequestError::Target);
        }
        Ok((Some(authority), path))
    }
}

/// The only Host field (RFC 9112, 3.2).
fn read_host<'a>(
    version: Version,
    headers: &[Header<'a>],
) -> Result<Option<&'a str>, RequestError> {
    let mut hosts = headers.iter().filter(|field| field.name.eq_ignore_ascii_case("host"));
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Err(RequestError::HostRepeated),
        (None, _) if version == Version::Http11 => Err(RequestError::HostMissing),
        (None, _) => Ok(None),
        // A port without a host makes no URL (RFC 9110, 4.2.1).
        (Some(field), None) if is_host(field.value) && !field.value.starts_with(b":") => {
            Ok(Some(std::str::from_utf8(field.value).expect("a host that was checked is ASCII")))
        }
        (Some(_), None) => Err(RequestError::Host),
    }
}

/// Whether the client waits for 100 Continue. In HTTP/1.0 the field is ignored (RFC 9110, 10.1.1).
fn read_expectation(version: Version, headers: &[Header<'_>]) -> Result<bool, RequestError> {
    let expectations = headers.iter().filter(|field| field.name.eq_ignore_ascii_case("expect"));
    if version == Version::Http10 {
        return Ok(false);
    }
    let mut expectations = expectations.flat_map(|field| tokens::list(field.value));
    expectations.try_fold(false, |_, expectation| {
        let known = expectation.eq_ignore_ascii_case(b"100-continue");
        if known { Ok(true) } else { Err(RequestError::Expectation) }
    })
}

/// `uri-host [ ":" port ]` (RFC 9110, 7.2; RFC 3986, 3.2.2), which may be empty. No user information and no slash. No
/// comma either: a name could contain one, but here it comes from two merged Host fields.
fn is_host(value: &[u8]) -> bool {
    let (host, port) = match value {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|&byte| byte == b']') else { return false };
            let address = std::str::from_utf8(&rest[..end]).unwrap_or_default();
            if address.parse::<Ipv6Addr>().is_err() {
                return false;
            }
            (&b""[..], &rest[end + 1..])
        }
        _ => value.split_at(value.iter().position(|&byte| byte == b':').unwrap_or(value.len())),
    };
    let port_is_valid = match port {
        [] | [b':'] => true,
        [b':', digits @ ..] => parse_digits(digits).is_some_and(|port| port <= u16::MAX.into()),
        _ => false,
    };
    is_reg_name(host) && port_is_valid
}

/// reg-name: unreserved, percent-encoded, sub-delims.
fn is_reg_name(name: &[u8]) -> bool {
    let of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+;=".contains(byte);
    let mut parts = name.split(|&byte| byte == b'%');
    let first = parts.next().unwrap_or_default();
    let is_escape =
        |part: &[u8]| part.get(..2).is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit));
    first.iter().all(of_name) && parts.all(|part| is_escape(part) && part.iter().all(of_name))
}

/// Bytes to skip before a head: one empty line at most (RFC 9112, 2.2). `None`: more bytes are needed to decide.
fn skip_empty_line(buf: &[u8]) -> Result<Option<usize>, RequestError> {
    match buf {
        [] | [b'\r'] => Ok(None),
        [b'\r', b'\n', rest @ ..] => match rest {
            [b'\r' | b'\n', ..] => Err(HeadFault::StartLine.into()),
            _ => Ok(Some(2)),
        },
        [b'\r', ..] => Err(HeadFault::BareCr.into()),
        [b'\n', ..] => Err(HeadFault::BareLf.into()),
        _ => Ok(Some(0)),
    }
}

/// Whether there is a CR inside the first line: a line of that length continues after it. The line begins with `bytes`,
/// of which `seen` were checked before.
fn has_bare_cr(bytes: &[u8], seen: usize, line_max: usize) -> bool {
    let unseen = &bytes[seen.saturating_sub(1)..bytes.len().min(line_max)];
    let line = unseen.split(|&byte| byte == b'\n').next().unwrap_or_default();
    line.iter().position(|&byte| byte == b'\r').is_some_and(|cr| cr + 1 < line.len())
}

/// Names what is wrong with a request line: `method SP request-target SP HTTP-version`.
fn check_request_line(line: &[u8]) -> Result<(), RequestError> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let &[method, target, version] = words.as_slice() else {
        return Err(HeadFault::StartLine.into());
    };
    if !is_token(method) {
        return Err(RequestError::Method);
    }
    if target.is_empty() || !target.iter().all(u8::is_ascii_graphic) {
        return Err(RequestError::Target);
    }
    match version {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0'..=b'9'] => Ok(()),
        [b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            Err(RequestError::Version)
        }
        _ => Err(HeadFault::StartLine.into()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Similar heads, one after another.
    const HEADS: [&[u8]; 7] = [
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: b\r\n\r\n",
        b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1\r\n\r\n",
        b"POST /x?y HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        b"GET http://h/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    ];

    fn parsed(parser: &mut RequestParser, bytes: &[u8]) -> String {
        format!("{:?}", parser.parse(bytes))
    }

    #[test]
    fn a_repetition_is_told_from_what_only_looks_like_one() {
        let mut parser = RequestParser::new(RequestLimits::DEFAULT);
        assert!(!parser.repeats(HEADS[0]) && !parser.repeats(b""), "nothing was read yet");
        parser.parse(HEADS[0]).unwrap().unwrap();
        assert!(parser.repeats(HEADS[0]));
        assert!(parser.repeats(&[HEADS[0], b"GET /next"].concat()), "more may follow");
        assert!(!parser.repeats(&HEADS[0][..HEADS[0].len() - 1]), "a part is no repetition");
        for other in &HEADS[1..] {
            assert!(!parser.repeats(other), "{}", other.escape_ascii());
        }
        assert!(parser.parse(&HEADS[1][..9]).unwrap().is_none());
        assert!(!parser.repeats(HEADS[0]), "in a head that was begun, all is read");
        parser.reset();
        assert!(parser.repeats(HEADS[0]));
    }

    #[test]
    fn a_head_that_is_too_long_to_keep_never_repeats_nor_does_the_one_before() {
        let mut parser = RequestParser::new(RequestLimits::DEFAULT);
        let long = |fill: usize| {
            format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(fill)).into_bytes()
        };
        let around = long(0).len();
        for (fill, keeps) in [(KEPT_BYTES_MAX - around, true), (KEPT_BYTES_MAX - around + 1, false)]
        {
            parser.parse(HEADS[0]).unwrap().unwrap();
            let head = long(fill);
            parser.parse(&head).unwrap().unwrap();
            assert_eq!(parser.repeats(&head), keeps);
            assert!(!parser.repeats(HEADS[0]));
        }
    }

    proptest! {
        /// Whatever follows a head, and whatever came before: if it repeats, a fresh parser reads the same from it as
        /// from the one before.
        #[test]
        fn a_repetition_is_read_as_the_head_before_it(
            order in prop::collection::vec((0..HEADS.len(), 0..HEADS.len()), 1..20)
        ) {
            let mut parser = RequestParser::new(RequestLimits::DEFAULT);
            let mut before = String::new();
            for (head, next) in order {
                let bytes = [HEADS[head], HEADS[next]].concat();
                let mut fresh = RequestParser::new(RequestLimits::DEFAULT);
                // The debug text of a request contains its fields; bytes after the head do not count.
                let meaning = parsed(&mut fresh, HEADS[head]);
                if parser.repeats(&bytes) {
                    prop_assert_eq!(&meaning, &before);
                } else {
                    parser.parse(&bytes).unwrap().unwrap();
                }
                before = meaning;
            }
        }
    }
}
