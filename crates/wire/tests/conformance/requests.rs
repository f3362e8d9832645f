//! The server's side. Start reading at [`VALID`] and [`INVALID`]; each case names its rule, a section
//! of RFC 9112 unless it says otherwise.

use crate::messages::{changed, changes, pieces, requests, sizes};
use crate::oracle::{OracleRequest, read_requests};
use joust_wire::{
    BodyDecoder, BodyLimits, FIELDS_MAX, Framing, FramingFault, HeadFault, Piece, RequestError,
    RequestLimits, RequestParser, Version,
};
use proptest::prelude::*;

/// Reads one head that arrives in pieces of `size`.
fn read(
    bytes: &[u8],
    size: usize,
    limits: RequestLimits,
) -> Result<Option<Facts<'_>>, RequestError> {
    let mut parser = RequestParser::new(limits);
    for end in (size..bytes.len()).step_by(size).chain([bytes.len()]) {
        if let Some(request) = parser.parse(&bytes[..end])? {
            assert!(request.head_len <= end, "never more used than fed");
            return Ok(Some(Facts {
                method: request.method,
                path_and_query: request.path_and_query,
                host: request.host,
                version: request.version,
                framing: request.framing,
                keep_alive: request.keep_alive,
                expects_continue: request.expects_continue,
                rest: &bytes[request.head_len..],
            }));
        }
    }
    Ok(None)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Facts<'a> {
    method: &'a str,
    path_and_query: &'a str,
    host: Option<&'a str>,
    version: Version,
    framing: Framing,
    keep_alive: bool,
    expects_continue: bool,
    rest: &'a [u8],
}

const GET: Facts<'static> = Facts {
    method: "GET",
    path_and_query: "/",
    host: Some("a"),
    version: Version::Http11,
    framing: Framing::None,
    keep_alive: true,
    expects_continue: false,
    rest: b"",
};
const POST: Facts<'static> = Facts { method: "POST", ..GET };
const OLD: Facts<'static> =
    Facts { host: None, version: Version::Http10, keep_alive: false, ..GET };

/// Rule, request, meaning.
const VALID: &[(&str, &str, Facts<'static>)] = &[
    ("3", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", GET),
    ("2.2", "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", GET),
    ("9.3.2", "GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /", Facts { rest: b"GET /", ..GET }),
    (
        "3.2.1",
        "GET /b%20c?d=/{e}|f HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { path_and_query: "/b%20c?d=/{e}|f", ..GET },
    ),
    (
        "3.2.1, RFC 3986, 3.3",
        "GET //b HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { path_and_query: "//b", ..GET },
    ),
    (
        "3.2.2",
        "GET HTTP://b:80/c?d HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { path_and_query: "/c?d", host: Some("b:80"), ..GET },
    ),
    (
        "3.2.2, no path",
        "GET https://b HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { path_and_query: "", host: Some("b"), ..GET },
    ),
    (
        "3.2.2, query only",
        "GET http://b?c HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { path_and_query: "?c", host: Some("b"), ..GET },
    ),
    (
        "3.2.4",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
        Facts { method: "OPTIONS", path_and_query: "*", ..GET },
    ),
    ("RFC 9110, 2.5", "GET / HTTP/1.7\r\nHost: a\r\n\r\n", GET),
    ("3.2, empty Host", "GET / HTTP/1.0\r\nHost:\r\n\r\n", Facts { host: Some(""), ..OLD }),
    (
        "3.2.2, empty Host",
        "GET http://b HTTP/1.1\r\nHost:\r\n\r\n",
        Facts { path_and_query: "", host: Some("b"), ..GET },
    ),
    (
        "3.2, address",
        "GET / HTTP/1.1\r\nhOST:\t[2001:db8::1]:8080 \r\n\r\n",
        Facts { host: Some("[2001:db8::1]:8080"), ..GET },
    ),
    ("3.2, 1.0", "GET / HTTP/1.0\r\n\r\n", OLD),
    (
        "9.3, 1.0 kept",
        "GET / HTTP/1.0\r\nConnection: x, keep-alive\r\n\r\n",
        Facts { keep_alive: true, ..OLD },
    ),
    (
        "9.3, close",
        "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\nConnection: Close\r\n\r\n",
        Facts { keep_alive: false, ..GET },
    ),
    (
        "6.2",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok",
        Facts { framing: Framing::Length(2), rest: b"ok", ..POST },
    ),
    (
        "6.1",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: CHUNKED\r\n\r\n",
        Facts { framing: Framing::Chunked, ..POST },
    ),
    (
        "RFC 9110, 10.1.1",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\n",
        Facts { framing: Framing::Length(2), expects_continue: true, ..POST },
    ),
    ("RFC 9110, 10.1.1, no body", "GET / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", GET),
    ("RFC 9110, 10.1.1, 1.0", "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n", OLD),
];

#[test]
fn requests_mean_what_rfc_9112_says() {
    for &(rule, bytes, facts) in VALID {
        let bytes = bytes.as_bytes();
        assert_eq!(read(bytes, bytes.len(), RequestLimits::DEFAULT), Ok(Some(facts)), "{rule}");
        for size in [1, 7] {
            let divided = read(bytes, size, RequestLimits::DEFAULT).unwrap().expect(rule);
            assert_eq!(divided, facts, "{rule}, in pieces of {size}");
        }
    }
}

/// A request around the text under test.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Whole(&'static str),
    Line(&'static str),
    Field(&'static str),
    Host(&'static str),
}

impl Shape {
    fn bytes(self) -> String {
        match self {
            Self::Whole(text) => text.to_owned(),
            Self::Line(text) => format!("{text}\r\nHost: a\r\n\r\n"),
            Self::Field(text) => format!("GET / HTTP/1.1\r\nHost: a\r\n{text}\r\n\r\n"),
            Self::Host(text) => format!("GET / HTTP/1.1\r\n{text}\r\n\r\n"),
        }
    }
}

/// Rule, request, status and error.
const INVALID: &[(&str, Shape, u16, RequestError)] = &[
    (
        "2.2, two empty lines",
        Shape::Line("\r\n\r\nGET / HTTP/1.1"),
        400,
        RequestError::Head(HeadFault::StartLine),
    ),
    ("2.2, LF before", Shape::Line("\nGET / HTTP/1.1"), 400, RequestError::Head(HeadFault::BareLf)),
    ("2.2, CR before", Shape::Line("\rGET / HTTP/1.1"), 400, RequestError::Head(HeadFault::BareCr)),
    (
        "2.2, bare LF in the request line",
        Shape::Whole("GET / HTTP/1.1\nHost: a\r\n\r\n"),
        400,
        RequestError::Head(HeadFault::BareLf),
    ),
    ("2.2, bare LF", Shape::Field("B: c\nD: e"), 400, RequestError::Head(HeadFault::BareLf)),
    (
        "2.2, bare LF at the end",
        Shape::Whole("GET / HTTP/1.1\r\nHost: a\r\n\n"),
        400,
        RequestError::Head(HeadFault::BareLf),
    ),
    ("2.2, bare CR", Shape::Field("B: c\rd"), 400, RequestError::Head(HeadFault::BareCr)),
    (
        "2.2, space before the first field",
        Shape::Line("GET / HTTP/1.1\r\n B: c"),
        400,
        RequestError::Head(HeadFault::ObsFold),
    ),
    ("2.3", Shape::Line("GET / HTTP/2.0"), 505, RequestError::Version),
    ("2.3", Shape::Line("GET / HTTP/0.9"), 505, RequestError::Version),
    ("RFC 9113, 3.4", Shape::Whole("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505, RequestError::Version),
    ("2.3, form", Shape::Line("GET / http/1.1"), 400, RequestError::Head(HeadFault::StartLine)),
    ("2.3, form", Shape::Line("GET / HTTP/1.10"), 400, RequestError::Head(HeadFault::StartLine)),
    ("3, HTTP/0.9", Shape::Line("GET /"), 400, RequestError::Head(HeadFault::StartLine)),
    (
        "3, two spaces",
        Shape::Line("GET  / HTTP/1.1"),
        400,
        RequestError::Head(HeadFault::StartLine),
    ),
    (
        "3, space at the end",
        Shape::Line("GET / HTTP/1.1 "),
        400,
        RequestError::Head(HeadFault::StartLine),
    ),
    (
        "3, space in the target",
        Shape::Line("GET /a b HTTP/1.1"),
        400,
        RequestError::Head(HeadFault::StartLine),
    ),
    ("3, tab", Shape::Line("GET\t/ HTTP/1.1"), 400, RequestError::Head(HeadFault::StartLine)),
    ("3.1", Shape::Line("G(T / HTTP/1.1"), 400, RequestError::Method),
    ("3.1, TLS", Shape::Whole("\x16\x03\x01\x02"), 400, RequestError::Method),
    ("3.2, no slash", Shape::Line("GET a HTTP/1.1"), 400, RequestError::Target),
    ("3.2, fragment", Shape::Line("GET /a#b HTTP/1.1"), 400, RequestError::Target),
    ("3.2, control", Shape::Line("GET /\x7f HTTP/1.1"), 400, RequestError::Target),
    ("3.2, beyond ASCII", Shape::Line("GET /\u{e9} HTTP/1.1"), 400, RequestError::Target),
    ("3.2.2, scheme", Shape::Line("GET ftp://a/ HTTP/1.1"), 400, RequestError::Target),
    ("3.2.2, no authority", Shape::Line("GET http:/// HTTP/1.1"), 400, RequestError::Target),
    ("3.2.2, user", Shape::Line("GET http://u@a/ HTTP/1.1"), 400, RequestError::Target),
    ("3.2.4, GET", Shape::Line("GET * HTTP/1.1"), 400, RequestError::Target),
    ("3.2.3", Shape::Line("CONNECT a:443 HTTP/1.1"), 501, RequestError::Connect),
    ("3.2, no Host", Shape::Whole("GET / HTTP/1.1\r\n\r\n"), 400, RequestError::HostMissing),
    ("3.2, two", Shape::Host("Host: a\r\nHost: a"), 400, RequestError::HostRepeated),
    (
        "3.2, two in 1.0",
        Shape::Whole("GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n"),
        400,
        RequestError::HostRepeated,
    ),
    ("3.2, slash", Shape::Host("Host: ../../etc"), 400, RequestError::Host),
    ("3.2, user", Shape::Host("Host: u@a"), 400, RequestError::Host),
    ("3.2, port", Shape::Host("Host: a:8o"), 400, RequestError::Host),
    ("3.2, port twice", Shape::Host("Host: a:1:2"), 400, RequestError::Host),
    ("3.2, list", Shape::Host("Host: a b"), 400, RequestError::Host),
    ("3.2, bracket", Shape::Host("Host: [::1"), 400, RequestError::Host),
    ("RFC 9110, 4.2.1, port alone", Shape::Host("Host: :80"), 400, RequestError::Host),
    ("RFC 9110, 4.2.1, colon alone", Shape::Host("Host: :"), 400, RequestError::Host),
    (
        "RFC 9110, 4.2.1, port alone in 1.0",
        Shape::Whole("GET / HTTP/1.0\r\nHost: :80\r\n\r\n"),
        400,
        RequestError::Host,
    ),
    ("5.1", Shape::Field("B : c"), 400, RequestError::Head(HeadFault::SpaceBeforeColon)),
    (
        "5.1",
        Shape::Field("Content-Length\t: 3"),
        400,
        RequestError::Head(HeadFault::SpaceBeforeColon),
    ),
    ("5.2", Shape::Field("B: c\r\n d"), 400, RequestError::Head(HeadFault::ObsFold)),
    ("5, name", Shape::Field("B\0: c"), 400, RequestError::Head(HeadFault::FieldName)),
    ("5, no colon", Shape::Field("Bc"), 400, RequestError::Head(HeadFault::FieldName)),
    ("RFC 9110, 5.5, NUL", Shape::Field("B: c\0"), 400, RequestError::Head(HeadFault::FieldValue)),
    (
        "RFC 9110, 5.5, control",
        Shape::Field("B: \x1b[2J"),
        400,
        RequestError::Head(HeadFault::FieldValue),
    ),
    (
        "6.1, both",
        Shape::Field("Content-Length: 3\r\nTransfer-Encoding: chunked"),
        400,
        RequestError::Framing(FramingFault::LengthAndCoding),
    ),
    (
        "6.1, 1.0",
        Shape::Whole("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"),
        400,
        RequestError::Framing(FramingFault::CodingInHttp10),
    ),
    (
        "6.1, other",
        Shape::Field("Transfer-Encoding: gzip"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "6.1, unknown before chunked",
        Shape::Field("Transfer-Encoding: gzip, chunked"),
        501,
        RequestError::Framing(FramingFault::CodingUnknown),
    ),
    (
        "6.1, unknown with parameters before chunked, in two fields",
        Shape::Field("Transfer-Encoding: a ;b=c\r\nTransfer-Encoding: d, Chunked"),
        501,
        RequestError::Framing(FramingFault::CodingUnknown),
    ),
    (
        "6.3, 3, both, though the coding is unknown",
        Shape::Field("Transfer-Encoding: gzip, chunked\r\nContent-Length: 3"),
        400,
        RequestError::Framing(FramingFault::LengthAndCoding),
    ),
    (
        "6.1, no token",
        Shape::Field("Transfer-Encoding: g[ip, chunked"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "7, parameter",
        Shape::Field("Transfer-Encoding: chunked ;q=1"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "CWE-444, underscore",
        Shape::Field("Transfer_Encoding: chunked"),
        400,
        RequestError::Framing(FramingFault::ObscuredName),
    ),
    (
        "CWE-444, underscore in any case",
        Shape::Field("content_LENGTH: 3"),
        400,
        RequestError::Framing(FramingFault::ObscuredName),
    ),
    (
        "6.1, list",
        Shape::Field("Transfer-Encoding: chunked, identity"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "6.1, twice",
        Shape::Field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "6.1, empty",
        Shape::Field("Transfer-Encoding:"),
        400,
        RequestError::Framing(FramingFault::Coding),
    ),
    (
        "RFC 9110, 8.6",
        Shape::Field("Content-Length: +3"),
        400,
        RequestError::Framing(FramingFault::Length),
    ),
    (
        "RFC 9110, 8.6",
        Shape::Field("Content-Length: -1"),
        400,
        RequestError::Framing(FramingFault::Length),
    ),
    (
        "RFC 9110, 8.6",
        Shape::Field("Content-Length:"),
        400,
        RequestError::Framing(FramingFault::Length),
    ),
    (
        "RFC 9110, 8.6",
        Shape::Field("Content-Length: 3 3"),
        400,
        RequestError::Framing(FramingFault::Length),
    ),
    (
        "RFC 9110, 8.6",
        Shape::Field("Content-Length: 99999999999999999999"),
        400,
        RequestError::Framing(FramingFault::Length),
    ),
    (
        "6.3, 5",
        Shape::Field("Content-Length: 3\r\nContent-Length: 4"),
        400,
        RequestError::Framing(FramingFault::LengthsDiffer),
    ),
    (
        "6.3, 5, equal",
        Shape::Field("Content-Length: 2\r\nContent-Length: 2"),
        400,
        RequestError::Framing(FramingFault::LengthRepeated),
    ),
    (
        "6.3, 5, equal in one",
        Shape::Field("Content-Length: 2, 2"),
        400,
        RequestError::Framing(FramingFault::LengthRepeated),
    ),
    ("RFC 9110, 10.1.1", Shape::Field("Expect: 200-ok"), 417, RequestError::Expectation),
];

#[test]
fn what_rfc_9112_calls_invalid_is_refused_with_its_status() {
    for &(rule, shape, status, error) in INVALID {
        assert_eq!(error.status(), status, "{rule}");
        let bytes = shape.bytes();
        for size in [bytes.len(), 1, 7] {
            let read = read(bytes.as_bytes(), size, RequestLimits::DEFAULT);
            assert_eq!(read, Err(error), "{rule}, in pieces of {size}: {bytes:?}");
        }
    }
}

#[test]
fn limits_hold_to_the_byte() {
    let limits = RequestLimits { head_bytes_max: 200, target_bytes_max: 20, fields_max: 3 };
    let target = |len: usize| format!("GET /{} HTTP/1.0\r\n\r\n", "a".repeat(len - 1));
    let total = |len: usize| format!("GET / HTTP/1.0\r\nA: {}\r\n\r\n", "b".repeat(len - 23));
    let fields = |count: usize| format!("GET / HTTP/1.0\r\n{}\r\n", "A: b\r\n".repeat(count));
    let method = |len: usize| format!("{} / HTTP/1.0\r\n\r\n", "A".repeat(len));
    let cases = [
        (target(20), None),
        (target(21), Some((414, RequestError::TargetTooLong))),
        (target(90), Some((414, RequestError::Head(HeadFault::StartLineTooLong)))),
        (total(200), None),
        (total(201), Some((431, RequestError::Head(HeadFault::TooLong)))),
        (total(1000), Some((431, RequestError::Head(HeadFault::TooLong)))),
        (fields(3), None),
        (fields(4), Some((431, RequestError::Head(HeadFault::TooManyFields)))),
        (method(71), None),
        (method(72), Some((501, RequestError::MethodTooLong))),
        ("A".repeat(100), Some((400, RequestError::Head(HeadFault::StartLine)))),
    ];
    for (bytes, refusal) in cases {
        for size in [bytes.len(), 1, 7] {
            let error = read(bytes.as_bytes(), size, limits).err();
            assert_eq!(error.map(|error| (error.status(), error)), refusal, "{bytes:?} by {size}");
        }
    }
    // An excess is rejected as soon as it is seen, even if the end never comes.
    let many = fields(4);
    let error = read(&many.as_bytes()[..many.len() - 2], 1, limits).unwrap_err();
    assert_eq!(error, RequestError::Head(HeadFault::TooManyFields));
    let long = total(300);
    assert_eq!(read(&long.as_bytes()[..200], 1, limits).unwrap_err().status(), 431);
    let endless = "GET /".to_owned() + &"a".repeat(80);
    let error = read(endless.as_bytes(), 1, limits).unwrap_err();
    assert_eq!(error.status(), 414);
    let no_limits = RequestLimits {
        head_bytes_max: usize::MAX,
        target_bytes_max: usize::MAX,
        fields_max: usize::MAX,
    };
    assert!(read(fields(FIELDS_MAX).as_bytes(), 1000, no_limits).is_ok());
    let error = read(fields(FIELDS_MAX + 1).as_bytes(), 1000, no_limits).unwrap_err();
    assert_eq!(error, RequestError::Head(HeadFault::TooManyFields));
}

#[test]
fn a_connection_is_idle_until_a_byte_of_a_head_came() {
    let mut parser = RequestParser::new(RequestLimits::DEFAULT);
    assert!(parser.parse(b"").unwrap().is_none());
    assert!(!parser.in_head());
    assert!(parser.parse(b"GET / HT").unwrap().is_none());
    assert!(parser.in_head());
    let whole = b"GET / HTTP/1.0\r\nA: 1\r\nB:2\r\n\r\n";
    let request = parser.parse(whole).unwrap().unwrap();
    assert_eq!(request.fields.get("b"), Some(&b"2"[..]));
    assert_eq!(request.fields.iter().count(), 2);
    assert!(!parser.in_head());
}

/// All complete requests of a connection whose bytes arrive in pieces, and the error or the rest.
fn read_connection<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<OracleRequest>, Result<usize, String>) {
    let mut connection = Connection::default();
    for piece in pieces {
        connection.buf.extend_from_slice(piece);
        if let Err(error) = connection.advance() {
            return (connection.requests, Err(error));
        }
    }
    let left = connection.buf.len() + usize::from(connection.body.is_some());
    (connection.requests, Ok(left))
}

/// A minimal connection of a server.
struct Connection {
    parser: RequestParser,
    buf: Vec<u8>,
    body: Option<(BodyDecoder, OracleRequest)>,
    requests: Vec<OracleRequest>,
}

impl Default for Connection {
    fn default() -> Self {
        let parser = RequestParser::new(RequestLimits::DEFAULT);
        Self { parser, buf: Vec::new(), body: None, requests: Vec::new() }
    }
}

impl Connection {
    fn advance(&mut self) -> Result<(), String> {
        loop {
            let Some((mut decoder, mut request)) = self.body.take() else {
                let parsed = self.parser.parse(&self.buf).map_err(|error| format!("{error:?}"))?;
                let Some(head) = parsed else { return Ok(()) };
                let request = OracleRequest {
                    method: head.method.to_owned(),
                    target: head.target.to_owned(),
                    host: head.host.map(str::to_owned),
                    keep_alive: head.keep_alive,
                    body: Vec::new(),
                };
                let decoder = BodyDecoder::new(head.framing, BodyLimits::DEFAULT);
                self.body = Some((decoder, request));
                let head_len = head.head_len;
                self.buf.drain(..head_len);
                continue;
            };
            let (used, piece) = decoder.decode(&self.buf).map_err(|error| format!("{error:?}"))?;
            let needs_more = piece == Piece::NeedMore;
            let is_done = piece == Piece::Done;
            if let Piece::Data(data) = piece {
                request.body.extend_from_slice(data);
            }
            self.buf.drain(..used);
            if is_done {
                self.requests.push(request);
                continue;
            }
            self.body = Some((decoder, request));
            if needs_more {
                return Ok(());
            }
        }
    }
}

proptest! {
    #[test]
    fn valid_requests_are_read_as_the_oracle_reads_them(bytes in requests()) {
        let (expected, is_clean) = read_requests(&bytes);
        prop_assert!(is_clean, "{}", bytes.escape_ascii());
        prop_assert_eq!(read_connection([&bytes[..]]), (expected, Ok(0)));
    }

    #[test]
    fn changed_requests_are_read_or_refused_as_the_oracle_does(
        bytes in requests(),
        changes in changes(),
    ) {
        let bytes = changed(&bytes, &changes);
        let (expected, is_clean) = read_requests(&bytes);
        let (read, ending) = read_connection([&bytes[..]]);
        prop_assert_eq!(read, expected, "{}", bytes.escape_ascii());
        prop_assert_eq!(ending == Ok(0), is_clean, "{:?} {}", ending, bytes.escape_ascii());
    }

    #[test]
    fn pieces_make_no_difference(bytes in requests(), changes in changes(), sizes in sizes()) {
        let bytes = changed(&bytes, &changes);
        let whole = read_connection([&bytes[..]]);
        let divided = read_connection(pieces(&bytes, &sizes));
        prop_assert_eq!(whole, divided, "{}", bytes.escape_ascii());
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        start in prop::sample::select(vec!["", "GET / HTTP/1.1\r\nHost: a\r\n", "\r\n"]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
        sizes in sizes(),
    ) {
        let bytes = [start.as_bytes(), &bytes].concat();
        prop_assert_eq!(read_connection([&bytes[..]]), read_connection(pieces(&bytes, &sizes)));
    }
}
