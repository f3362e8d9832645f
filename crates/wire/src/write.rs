//! Owns the writing of heads and chunks into buffers. Start reading at [`RequestHead`] (rendered once before a run) and
//! [`ResponseHead`] (written for each reply into a buffer that is reused).
//!
//! A field with CR, LF or another control character is rejected, never repaired: text from a CGI program or a command
//! line cannot add a field or a message (response splitting).

use std::ops::Range;

use crate::framing::parse_digits;
use crate::head::{Version, is_field_value};
use crate::status::reason_phrase;
use crate::tokens::is_token;

/// Why a head is not written. The buffer is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// RFC 9110, 9.1.
    #[error("the method `{0}` is not a token: write it as in GET or PROPFIND")]
    Method(String),
    /// RFC 9112, 3.2.
    #[error(
        "the target `{0}` is empty or has a space, a control character, `#` or a byte outside ASCII: percent-encode it"
    )]
    Target(String),
    /// RFC 9110, 5.1.
    #[error("the field name `{0}` is not a token: write a field as in `Accept: text/html`")]
    FieldName(String),
    /// RFC 9110, 5.5.
    #[error("the value of field `{0}` has a control character (a line break, perhaps): remove it")]
    FieldValue(String),
    /// The writer sets the framing fields itself.
    #[error("the field `{0}` contradicts the body that is sent: leave it out, joust writes it")]
    Framing(String),
}

/// Appends `name: value CRLF`, or returns an error.
fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) -> Result<(), WriteError> {
    if !is_token(name.as_bytes()) {
        return Err(WriteError::FieldName(name.escape_debug().to_string()));
    }
    if !is_field_value(value) {
        return Err(WriteError::FieldValue(name.to_owned()));
    }
    push_checked_field(out, name, value);
    Ok(())
}

fn push_checked_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal digits, without the formatting machinery.
fn push_number(out: &mut Vec<u8>, number: u64) {
    let mut digits = [0u8; 20];
    let mut start = digits.len();
    let mut left = number;
    loop {
        start -= 1;
        digits[start] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[start..]);
}

/// A whole request, to be rendered once and sent many times.
#[derive(Debug, Clone, Copy)]
pub struct RequestHead<'a> {
    /// Version; a connection of HTTP/1.0 is kept alive only if asked for.
    pub version: Version,
    /// Method, a token.
    pub method: &'a str,
    /// Target, exactly as sent in the request line.
    pub target: &'a str,
    /// Value of Host, unless `fields` has one.
    pub host: &'a str,
    /// Further fields, in order. A `Connection` field of the caller replaces ours, unless the connection is to be
    /// closed.
    pub fields: &'a [(String, String)],
    /// Body.
    pub body: &'a [u8],
    /// Whether the connection will be used again; if not, `Connection: close` is sent.
    pub keep_alive: bool,
}

/// The positions, in a rendered request, of the parts that may differ from one sending to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLayout {
    /// The target.
    pub target: Range<usize>,
    /// The value of each of the caller's fields, in order; `None` for one that was left out.
    pub values: Vec<Option<Range<usize>>>,
    /// The digits of Content-Length, if it is ours.
    pub length: Option<Range<usize>>,
    /// Length of the head, empty line included: the body begins here.
    pub head: usize,
}

impl RequestHead<'_> {
    /// The bytes of the request, body included.
    ///
    /// # Errors
    /// A part of the head cannot be sent without changing its meaning.
    pub fn render(&self) -> Result<Vec<u8>, WriteError> {
        self.render_with_layout().map(|(bytes, _)| bytes)
    }

    /// As [`RequestHead::render`], with the positions of its parts.
    ///
    /// # Errors
    /// As there.
    pub fn render_with_layout(&self) -> Result<(Vec<u8>, RequestLayout), WriteError> {
        if !is_token(self.method.as_bytes()) {
            return Err(WriteError::Method(self.method.escape_debug().to_string()));
        }
        let is_allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
        if self.target.is_empty() || !self.target.bytes().all(is_allowed) {
            return Err(WriteError::Target(self.target.escape_debug().to_string()));
        }
        let mut out = Vec::with_capacity(256 + self.body.len());
        for part in [self.method, " ", self.target, " ", self.version.as_str(), "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
        let target = self.method.len() + 1..self.method.len() + 1 + self.target.len();
        if !self.has_field("host") {
            push_field(&mut out, "Host", self.host.as_bytes())?;
        }
        let mut values = Vec::with_capacity(self.fields.len());
        for (name, value) in self.fields {
            if self.replaces(name) {
                values.push(None);
                continue;
            }
            self.check_framing(name, value)?;
            push_field(&mut out, name, value.as_bytes())?;
            let end = out.len() - "\r\n".len();
            values.push(Some(end - value.len()..end));
        }
        if let Some(connection) = self.connection() {
            push_checked_field(&mut out, "Connection", connection.as_bytes());
        }
        let length = (self.says_length() && !self.has_field("content-length")).then(|| {
            out.extend_from_slice(b"Content-Length: ");
            let start = out.len();
            push_number(&mut out, self.body.len() as u64);
            let digits = start..out.len();
            out.extend_from_slice(b"\r\n");
            digits
        });
        out.extend_from_slice(b"\r\n");
        let head = out.len();
        out.extend_from_slice(self.body);
        Ok((out, RequestLayout { target, values, length, head }))
    }

    fn has_field(&self, name: &str) -> bool {
        self.fields.iter().any(|(n, _)| n.eq_ignore_ascii_case(name))
    }

    /// Whether our own field replaces the caller's field of that name.
    fn replaces(&self, name: &str) -> bool {
        !self.keep_alive && name.eq_ignore_ascii_case("connection")
    }

    /// If the framing did not match the body's length, the next request would become part of the body.
    fn check_framing(&self, name: &str, value: &str) -> Result<(), WriteError> {
        let is_length = name.eq_ignore_ascii_case("content-length");
        let length_is_wrong =
            is_length && parse_digits(value.as_bytes()) != Some(self.body.len() as u64);
        if length_is_wrong || name.eq_ignore_ascii_case("transfer-encoding") {
            return Err(WriteError::Framing(name.to_owned()));
        }
        Ok(())
    }

    /// The value of Connection, if needed (RFC 9112, 9.3 and appendix C.2.2).
    fn connection(&self) -> Option<&'static str> {
        match (self.keep_alive, self.version) {
            (false, _) => Some("close"),
            (true, _) if self.has_field("connection") => None,
            (true, Version::Http10) => Some("keep-alive"),
            (true, Version::Http11) => None,
        }
    }

    /// Methods that expect content send its length even if it is 0 (RFC 9110, 8.6).
    fn says_length(&self) -> bool {
        !self.body.is_empty() || matches!(self.method, "POST" | "PUT" | "PATCH")
    }
}

/// A reply's head, written at the end of the caller's buffer. It is incomplete until [`ResponseHead::end`].
#[derive(Debug)]
pub struct ResponseHead<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> ResponseHead<'a> {
    /// Writes the status line. The version is ours, whatever the request's was (RFC 9110, 2.5).
    ///
    /// # Panics
    /// If the status is not 100 to 999.
    pub fn new(out: &'a mut Vec<u8>, status: u16) -> Self {
        Self::with_reason(out, status, reason_phrase(status))
    }

    /// As [`ResponseHead::new`], with the caller's reason phrase (from a CGI program, say). One with a control
    /// character is replaced by the usual one.
    ///
    /// # Panics
    /// If the status is not 100 to 999.
    pub fn with_reason(out: &'a mut Vec<u8>, status: u16, reason: &str) -> Self {
        assert!((100..1000).contains(&status), "a status has three digits, but this is {status}");
        let reason = if is_field_value(reason.as_bytes()) { reason } else { reason_phrase(status) };
        out.extend_from_slice(b"HTTP/1.1 ");
        push_number(out, status.into());
        out.push(b' ');
        out.extend_from_slice(reason.as_bytes());
        out.extend_from_slice(b"\r\n");
        Self { out }
    }

    /// Writes a field.
    ///
    /// # Errors
    /// The name is not a token or the value has a control character. Then nothing is written.
    pub fn field(&mut self, name: &str, value: impl AsRef<[u8]>) -> Result<&mut Self, WriteError> {
        push_field(self.out, name, value.as_ref())?;
        Ok(self)
    }

    /// Writes Content-Length.
    pub fn content_length(&mut self, length: u64) -> &mut Self {
        self.out.extend_from_slice(b"Content-Length: ");
        push_number(self.out, length);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Writes `Transfer-Encoding: chunked`; not for a client of HTTP/1.0 (RFC 9112, 6.1).
    pub fn chunked(&mut self) -> &mut Self {
        push_checked_field(self.out, "Transfer-Encoding", b"chunked");
        self
    }

    /// Writes whether the connection is kept: `close`, or `keep-alive` to an HTTP/1.0 client, which would not know
    /// otherwise; nothing to an HTTP/1.1 client (RFC 9112, 9.3).
    pub fn connection(&mut self, client: Version, keep_alive: bool) -> &mut Self {
        match (keep_alive, client) {
            (false, _) => push_checked_field(self.out, "Connection", b"close"),
            (true, Version::Http10) => push_checked_field(self.out, "Connection", b"keep-alive"),
            (true, Version::Http11) => {}
        }
        self
    }

    /// Writes the empty line.
    pub fn end(&mut self) {
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Ends a chunked body: the last chunk, no trailers.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Writes the line before a chunk of `length` bytes; CRLF goes after them.
///
/// # Panics
/// If `length` is 0: that would end the body.
pub fn write_chunk_head(out: &mut Vec<u8>, length: u64) {
    assert!(length > 0, "an empty chunk ends the body");
    let digits = (u64::BITS - length.leading_zeros()).div_ceil(4);
    for place in (0..digits).rev() {
        out.push(b"0123456789abcdef"[(length >> (4 * place) & 0xf) as usize]);
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    const GET: RequestHead<'_> = RequestHead {
        version: Version::Http11,
        method: "GET",
        target: "/a?b",
        host: "h:80",
        fields: &[],
        body: b"",
        keep_alive: true,
    };

    fn rendered(head: RequestHead<'_>) -> String {
        String::from_utf8(head.render().unwrap()).unwrap()
    }

    fn fields(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn a_request_says_host_length_and_connection_where_the_rfc_asks_for_it() {
        assert_eq!(rendered(GET), "GET /a?b HTTP/1.1\r\nHost: h:80\r\n\r\n");
        let closing = rendered(RequestHead { keep_alive: false, ..GET });
        assert_eq!(closing, "GET /a?b HTTP/1.1\r\nHost: h:80\r\nConnection: close\r\n\r\n");
        let old = rendered(RequestHead { version: Version::Http10, ..GET });
        assert_eq!(old, "GET /a?b HTTP/1.0\r\nHost: h:80\r\nConnection: keep-alive\r\n\r\n");
        let post = rendered(RequestHead { method: "POST", body: b"xy", ..GET });
        assert_eq!(post, "POST /a?b HTTP/1.1\r\nHost: h:80\r\nContent-Length: 2\r\n\r\nxy");
        let empty = rendered(RequestHead { method: "PUT", ..GET });
        assert!(empty.ends_with("Content-Length: 0\r\n\r\n"), "{empty}");
    }

    #[test]
    fn fields_of_the_caller_go_before_ours() {
        let list = fields(&[("host", "other"), ("connection", "TE"), ("content-length", "2")]);
        let head = RequestHead { fields: &list, body: b"xy", ..GET };
        let expected =
            "GET /a?b HTTP/1.1\r\nhost: other\r\nconnection: TE\r\ncontent-length: 2\r\n\r\nxy";
        assert_eq!(rendered(head), expected);
        let closing = rendered(RequestHead { keep_alive: false, ..head });
        assert!(!closing.contains("TE") && closing.contains("Connection: close"), "{closing}");
    }

    #[test]
    fn the_layout_names_the_bytes_of_each_part() {
        let list = fields(&[("A", "one"), ("Connection", "TE"), ("Host", "other"), ("B", "")]);
        let closing = RequestHead {
            method: "POST",
            fields: &list,
            body: b"0123456789",
            keep_alive: false,
            ..GET
        };
        let (bytes, layout) = closing.render_with_layout().unwrap();
        let part = |range: Range<usize>| str::from_utf8(&bytes[range]).unwrap();
        assert_eq!(part(layout.target), "/a?b");
        let values: Vec<_> = layout.values.into_iter().map(|range| range.map(part)).collect();
        assert_eq!(values, [Some("one"), None, Some("other"), Some("")]);
        assert_eq!(layout.length.map(part), Some("10"));
        assert_eq!(part(layout.head - 4..bytes.len()), "\r\n\r\n0123456789");
        assert_eq!(GET.render_with_layout().unwrap().1.length, None);
    }

    #[test]
    fn a_request_that_would_say_something_else_is_refused() {
        let refused = |head: RequestHead<'_>| head.render().unwrap_err();
        assert!(matches!(refused(RequestHead { method: "G T", ..GET }), WriteError::Method(_)));
        for target in ["", "/a b", "/a\r\nX: y", "/\u{e9}", "/a#b"] {
            assert!(matches!(refused(RequestHead { target, ..GET }), WriteError::Target(_)));
        }
        let with = |name, value| {
            let list = fields(&[(name, value)]);
            RequestHead { fields: &list, ..GET }.render().unwrap_err()
        };
        assert!(matches!(with("A b", "c"), WriteError::FieldName(_)));
        assert!(matches!(with("", "c"), WriteError::FieldName(_)));
        assert!(matches!(with("A", "b\r\nC: d"), WriteError::FieldValue(_)));
        assert!(matches!(with("Content-Length", "1"), WriteError::Framing(_)));
        assert!(matches!(with("Transfer-Encoding", "chunked"), WriteError::Framing(_)));
        let host = RequestHead { host: "a\r\nX: y", ..GET };
        assert!(matches!(refused(host), WriteError::FieldValue(_)));
    }

    #[test]
    fn a_reply_is_written_after_what_the_buffer_holds() {
        let mut out = b"earlier".to_vec();
        let mut head = ResponseHead::new(&mut out, 206);
        head.field("ETag", "\"1\"").unwrap().content_length(u64::MAX);
        head.connection(Version::Http11, true).connection(Version::Http10, true).end();
        let expected = "earlierHTTP/1.1 206 Partial Content\r\nETag: \"1\"\r\n\
            Content-Length: 18446744073709551615\r\nConnection: keep-alive\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    /// Apache CVE-2023-38709 and CVE-2024-42516: a program's field split the reply.
    #[test]
    fn a_field_that_would_split_the_reply_leaves_the_buffer_as_it_was() {
        let mut out = Vec::new();
        let mut head = ResponseHead::with_reason(&mut out, 200, "fine\r\nX: y");
        let refused =
            [("A", "b\nC: d"), ("A", "b\rC"), ("A", "\0"), ("A:", "b"), ("", "b"), ("A\r\nB", "c")];
        for (name, value) in refused {
            assert!(head.field(name, value).is_err(), "{name:?}: {value:?}");
        }
        head.chunked().connection(Version::Http11, false).end();
        let expected = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }

    #[test]
    fn chunk_sizes_are_hexadecimal_without_leading_zeros() {
        for length in [1, 9, 10, 15, 16, 255, 256, 4096, 0xabc_def0, u64::MAX] {
            let mut out = Vec::new();
            write_chunk_head(&mut out, length);
            assert_eq!(out, format!("{length:x}\r\n").into_bytes());
        }
    }
}
