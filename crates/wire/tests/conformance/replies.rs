//! The client's side. Start reading at [`VALID`] and [`INVALID`]; each case names its rule, a section
//! of RFC 9112 unless it says otherwise.

use joust_wire::{
    BodyFault, BodyLimits, Eof, Event, FIELDS_MAX, FramingFault, HeadFault, ReplyError, ReplyHead,
    ReplyLimits, ReplyParser, ReplyTotals, RequestKind,
};

/// An event with its bytes, neighbouring body events joined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ObservedReply {
    Interim(u16),
    Head(ReplyHead, Vec<(String, Vec<u8>)>),
    Body(Vec<u8>),
    Done(ReplyTotals),
}

/// A complete reply.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Reply {
    status: u16,
    keep_alive: bool,
    body: Vec<u8>,
}

pub(crate) type Trace = (Vec<ObservedReply>, Result<Eof, ReplyError>);

/// Feeds the pieces, then the end of the stream.
pub(crate) fn trace<'a>(
    parser: &mut ReplyParser,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Trace {
    let mut seen = Vec::new();
    for piece in pieces {
        if let Err(error) = feed_all(parser, piece, &mut seen) {
            assert_eq!(parser.feed(b"x").unwrap_err(), error, "an error lasts");
            assert_eq!(parser.eof(), Err(error), "an error lasts");
            return (seen, Err(error));
        }
    }
    let eof = parser.eof();
    if let Ok(Eof::Done(totals)) = eof {
        seen.push(ObservedReply::Done(totals));
    }
    (seen, eof)
}

/// Feeds the piece, and checks every step against the contract of [`ReplyParser::feed`].
pub(crate) fn feed_all(
    parser: &mut ReplyParser,
    piece: &[u8],
    seen: &mut Vec<ObservedReply>,
) -> Result<(), ReplyError> {
    let mut rest = piece;
    loop {
        let before = parser.totals().wire_bytes;
        let step = parser.feed(rest)?;
        assert!(step.used <= rest.len(), "never more used than fed");
        let used = &rest[..step.used];
        let (mut needs_more, mut totals) = (false, None);
        match step.event {
            Event::NeedMore => {
                assert_eq!(used.len(), rest.len(), "more is asked for only when all was used");
                needs_more = true;
            }
            Event::Interim { status } => seen.push(ObservedReply::Interim(status)),
            Event::Head { head, fields } => {
                let fields = fields.iter().map(|(name, value)| (name.to_owned(), value.to_vec()));
                seen.push(ObservedReply::Head(head, fields.collect()));
            }
            Event::Body(data) => {
                assert!(!data.is_empty(), "a body event has bytes");
                let (fed, given) = (used.as_ptr_range(), data.as_ptr_range());
                assert!(fed.start <= given.start, "a body event is a part of what was fed");
                assert_eq!(given.end, fed.end, "a body event ends what was used");
                see_body(seen, data);
            }
            Event::Done(of_reply) => {
                seen.push(ObservedReply::Done(of_reply));
                totals = Some(of_reply);
            }
        }
        let after = totals.unwrap_or_else(|| parser.totals()).wire_bytes;
        assert_eq!(after, before + used.len() as u64, "the totals count what was used");
        rest = &rest[used.len()..];
        if needs_more {
            return Ok(());
        }
    }
}

/// Adds body bytes to what was seen.
pub(crate) fn see_body(seen: &mut Vec<ObservedReply>, data: &[u8]) {
    match seen.last_mut() {
        Some(ObservedReply::Body(body)) => body.extend_from_slice(data),
        _ => seen.push(ObservedReply::Body(data.to_vec())),
    }
}

pub(crate) fn parser(kind: RequestKind, requests: usize) -> ReplyParser {
    let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
    (0..requests).for_each(|_| parser.expect(kind));
    parser
}

/// Complete replies of a trace.
fn complete((seen, _): &Trace) -> Vec<Reply> {
    let mut replies = Vec::new();
    let mut current: Option<Reply> = None;
    for event in seen {
        match event {
            ObservedReply::Interim(_) => {}
            ObservedReply::Head(head, _) => {
                let (status, keep_alive) = (head.status, head.keep_alive);
                current = Some(Reply { status, keep_alive, body: Vec::new() });
            }
            ObservedReply::Body(body) => current.as_mut().expect("after a head").body.extend(body),
            ObservedReply::Done(totals) => {
                let reply = current.take().expect("after a head");
                assert_eq!(totals.body_bytes, reply.body.len() as u64, "body bytes are counted");
                replies.push(reply);
            }
        }
    }
    replies
}

/// One reply, then the peer closes.
fn one(kind: RequestKind, bytes: &[u8]) -> Result<Reply, ReplyError> {
    let trace = trace(&mut parser(kind, 1), [bytes]);
    trace.1?;
    Ok(complete(&trace).pop().expect("a reply that ends well is complete"))
}

/// Rule, request, reply; status, whether the connection is kept alive, body.
const VALID: [(&str, RequestKind, &str, u16, bool, &str); 17] = [
    (
        "6.3, 6",
        RequestKind::Other,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        200,
        true,
        "ok",
    ),
    (
        "6.3, 6, empty",
        RequestKind::Other,
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        200,
        true,
        "",
    ),
    (
        "6.3, 5, equal",
        RequestKind::Other,
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nok",
        200,
        true,
        "ok",
    ),
    ("6.3, 8", RequestKind::Other, "HTTP/1.1 200 OK\r\n\r\nok", 200, false, "ok"),
    ("6.3, 8, empty", RequestKind::Other, "HTTP/1.1 200 OK\r\n\r\n", 200, false, ""),
    ("6.3, 1", RequestKind::Head, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", 200, true, ""),
    (
        "6.3, 1, chunked",
        RequestKind::Head,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        200,
        true,
        "",
    ),
    ("6.3, 1, 204", RequestKind::Other, "HTTP/1.1 204 No Content\r\n\r\n", 204, true, ""),
    (
        "6.3, 1, 304",
        RequestKind::Other,
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
        304,
        true,
        "",
    ),
    (
        "6.3, 2",
        RequestKind::Connect,
        "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
        200,
        false,
        "",
    ),
    (
        "6.3, 2, refused",
        RequestKind::Connect,
        "HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno",
        403,
        true,
        "no",
    ),
    (
        "7.1",
        RequestKind::Other,
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
        200,
        true,
        "ok0123456789",
    ),
    (
        "6.3, 1, interim",
        RequestKind::Other,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nA: b\r\n\r\nHTTP/1.1 204 \r\n\r\n",
        204,
        true,
        "",
    ),
    (
        "9.3, close",
        RequestKind::Other,
        "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 0\r\n\r\n",
        200,
        false,
        "",
    ),
    (
        "9.3, 1.0",
        RequestKind::Other,
        "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        200,
        false,
        "",
    ),
    (
        "9.3, 1.0 kept",
        RequestKind::Other,
        "HTTP/1.0 200 OK\r\nConnection: x,\tKEEP-ALIVE\r\nContent-Length: 0\r\n\r\n",
        200,
        true,
        "",
    ),
    (
        "4, no reason",
        RequestKind::Other,
        "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        200,
        true,
        "",
    ),
];

#[test]
fn a_reply_ends_where_rfc_9112_6_3_says() {
    for (rule, kind, bytes, status, keep_alive, body) in VALID {
        let expected = Reply { status, keep_alive, body: body.into() };
        assert_eq!(one(kind, bytes.as_bytes()), Ok(expected), "{rule}");
    }
}

/// Line ends in a head decide nothing, but are reported (RFC 9112, 2.2).
#[test]
fn a_head_whose_lines_end_in_lf_alone_is_read_as_the_same_with_crlf_and_says_so() {
    let strict = "HTTP/1.1 103 \r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nServer: x\r\nEmpty:\r\n\
                  Content-Length: 6\r\n\r\na\r\n\nb\r";
    let all = "HTTP/1.1 103 \nLink: </a>\n\nHTTP/1.1 200 OK\nServer: x\nEmpty:\n\
               Content-Length: 6\n\na\r\n\nb\r";
    let one = "HTTP/1.1 103 \nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nServer: x\r\nEmpty:\n\
               Content-Length: 6\r\n\r\na\r\n\nb\r";
    let end = "HTTP/1.1 103 \r\nLink: </a>\r\n\nHTTP/1.1 200 OK\r\nServer: x\r\nEmpty:\r\n\
               Content-Length: 6\r\n\na\r\n\nb\r";
    // The length of a head differs, but not its meaning.
    let read = |bytes: &str, size: usize| {
        let mut parser = parser(RequestKind::Other, 2);
        let bytes = bytes.repeat(2);
        let (mut seen, eof) = trace(&mut parser, bytes.as_bytes().chunks(size));
        let mut said = Vec::new();
        for event in &mut seen {
            match event {
                ObservedReply::Head(head, _) => said.push(std::mem::take(&mut head.bare_lf)),
                ObservedReply::Done(totals) => totals.wire_bytes = 0,
                ObservedReply::Interim(_) | ObservedReply::Body(_) => {}
            }
        }
        (seen, eof, said)
    };
    let (expected, eof, said) = read(strict, 1000);
    assert_eq!((eof, said), (Ok(Eof::Idle), vec![false, false]));
    assert!(expected.contains(&ObservedReply::Body(b"a\r\n\nb\r".to_vec())), "{expected:?}");
    for bytes in [all, one, end] {
        for size in [1, 2, 7, 1000] {
            let read = read(bytes, size);
            assert_eq!(read, (expected.clone(), Ok(Eof::Idle), vec![true, true]), "{bytes:?}");
        }
    }
}

/// RFC 9112, 6.3, 1 and 2 come before the rules about the framing fields. By 6.1 the coding in a reply to HEAD is the
/// one that a GET would have had, which we need not support.
#[test]
fn a_reply_that_can_have_no_body_is_not_refused_for_what_it_says_of_one() {
    let of_a_body = [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 2",
        "Content-Length: 2\r\nContent-Length: 3",
        "Content-Length: x",
    ];
    for fields in of_a_body {
        for (kind, line, status, keep_alive) in [
            (RequestKind::Head, "HTTP/1.1 200 OK", 200, true),
            (RequestKind::Other, "HTTP/1.1 204 No Content", 204, true),
            (RequestKind::Other, "HTTP/1.1 304 Not Modified", 304, true),
            (RequestKind::Connect, "HTTP/1.1 200 OK", 200, false),
            (RequestKind::Head, "HTTP/1.1 200 OK\r\nConnection: close", 200, false),
        ] {
            let bytes = format!("HTTP/1.1 100 \r\n{fields}\r\n\r\n{line}\r\n{fields}\r\n\r\n");
            let expected = Reply { status, keep_alive, body: Vec::new() };
            assert_eq!(one(kind, bytes.as_bytes()), Ok(expected), "{bytes:?}");
        }
    }
}

/// RFC 9112, 6.1: "close the connection after processing the message".
#[test]
fn a_coding_in_http_1_0_ends_the_connection_even_without_a_body() {
    let head = "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n";
    let plain = one(RequestKind::Head, format!("{head}\r\n").as_bytes()).unwrap();
    let coded = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    let coded = one(RequestKind::Head, coded.as_bytes()).unwrap();
    assert_eq!((plain.keep_alive, coded.keep_alive), (true, false));
}

/// A reply around the text under test.
#[derive(Debug, Clone, Copy)]
enum Shape {
    Whole(&'static str),
    Line(&'static str),
    Field(&'static str),
    Length(&'static str),
    Chunks(&'static str),
}

impl Shape {
    fn bytes(self) -> String {
        let line = "HTTP/1.1 200 OK\r\n";
        match self {
            Self::Whole(text) => text.to_owned(),
            Self::Line(text) => format!("{text}\r\n\r\n"),
            Self::Field(text) => format!("{line}A: b\r\n{text}\r\n\r\n"),
            Self::Length(text) => format!("{line}Content-Length: {text}\r\n\r\n123"),
            Self::Chunks(text) => format!("{line}Transfer-Encoding: chunked\r\n\r\n{text}"),
        }
    }
}

/// Rule, reply, error.
const INVALID: &[(&str, Shape, ReplyError)] = &[
    ("2.2, client", Shape::Line("\r\nHTTP/1.1 200 OK"), ReplyError::NotHttp),
    ("2.2, bare CR in a value", Shape::Field("C: d\re"), ReplyError::Head(HeadFault::BareCr)),
    (
        "2.2, bare CR in the status line",
        Shape::Line("HTTP/1.1 200 O\rK"),
        ReplyError::Head(HeadFault::BareCr),
    ),
    ("2.3", Shape::Line("HTTP/1.2 200 OK"), ReplyError::Version),
    ("2.3", Shape::Line("HTTP/2.0 200 OK"), ReplyError::Version),
    ("2.3, case", Shape::Line("http/1.1 200 OK"), ReplyError::NotHttp),
    ("another protocol", Shape::Line("SSH-2.0-OpenSSH_9.9"), ReplyError::NotHttp),
    ("4", Shape::Line("HTTP/1.1 20 OK"), ReplyError::Status),
    ("4", Shape::Line("HTTP/1.1 2000 OK"), ReplyError::Status),
    ("4, one space", Shape::Line("HTTP/1.1  200 OK"), ReplyError::Status),
    ("RFC 9110, 15", Shape::Line("HTTP/1.1 099 Low"), ReplyError::Status),
    ("5.1", Shape::Field("C : d"), ReplyError::Head(HeadFault::SpaceBeforeColon)),
    ("5.2", Shape::Field(" folded"), ReplyError::Head(HeadFault::ObsFold)),
    (
        "5.2, first line",
        Shape::Line("HTTP/1.1 200 OK\r\n\tA: b"),
        ReplyError::Head(HeadFault::ObsFold),
    ),
    ("5, name", Shape::Field("C(: d"), ReplyError::Head(HeadFault::FieldName)),
    ("5, no name", Shape::Field(": d"), ReplyError::Head(HeadFault::FieldName)),
    ("5, no colon", Shape::Field("C"), ReplyError::Head(HeadFault::FieldName)),
    ("RFC 9110, 5.5", Shape::Field("C: d\0e"), ReplyError::Head(HeadFault::FieldValue)),
    ("RFC 9110, 5.5", Shape::Field("C: d\x7fe"), ReplyError::Head(HeadFault::FieldValue)),
    ("RFC 9110, 8.6, sign", Shape::Length("+3"), ReplyError::Framing(FramingFault::Length)),
    ("RFC 9110, 8.6, sign", Shape::Length("-3"), ReplyError::Framing(FramingFault::Length)),
    ("RFC 9110, 8.6, empty", Shape::Length(""), ReplyError::Framing(FramingFault::Length)),
    ("RFC 9110, 8.6, hexadecimal", Shape::Length("0x3"), ReplyError::Framing(FramingFault::Length)),
    (
        "RFC 9110, 8.6, overflow",
        Shape::Length("18446744073709551616"),
        ReplyError::Framing(FramingFault::Length),
    ),
    ("6.3, 5", Shape::Length("3, 4"), ReplyError::Framing(FramingFault::LengthsDiffer)),
    (
        "6.3, 5",
        Shape::Length("3\r\nContent-Length: 4"),
        ReplyError::Framing(FramingFault::LengthsDiffer),
    ),
    ("6.3, 5, empty element", Shape::Length("3,"), ReplyError::Framing(FramingFault::Length)),
    (
        "6.1",
        Shape::Length("3\r\nTransfer-Encoding: chunked"),
        ReplyError::Framing(FramingFault::LengthAndCoding),
    ),
    (
        "6.1, other order",
        Shape::Field("Transfer-Encoding: chunked\r\nContent-Length: 3"),
        ReplyError::Framing(FramingFault::LengthAndCoding),
    ),
    (
        "6.1, 1.0",
        Shape::Line("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked"),
        ReplyError::Framing(FramingFault::CodingInHttp10),
    ),
    (
        "6.1",
        Shape::Field("Transfer-Encoding: gzip, chunked"),
        ReplyError::Framing(FramingFault::CodingUnknown),
    ),
    ("6.1", Shape::Field("Transfer-Encoding: identity"), ReplyError::Framing(FramingFault::Coding)),
    (
        "6.1, twice",
        Shape::Field("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
        ReplyError::Framing(FramingFault::Coding),
    ),
    (
        "6.1, vertical tab",
        Shape::Field("Transfer-Encoding: \u{b}chunked"),
        ReplyError::Head(HeadFault::FieldValue),
    ),
    ("7.1, no size", Shape::Chunks("\r\n"), ReplyError::Body(BodyFault::ChunkSize)),
    ("7.1, sign", Shape::Chunks("+2\r\nok\r\n"), ReplyError::Body(BodyFault::ChunkSize)),
    ("7.1, prefix", Shape::Chunks("0x2\r\nok\r\n"), ReplyError::Body(BodyFault::ChunkSize)),
    (
        "7.1, overflow",
        Shape::Chunks("10000000000000000\r\n"),
        ReplyError::Body(BodyFault::ChunkSize),
    ),
    ("7.1, space", Shape::Chunks("2 \r\nok\r\n"), ReplyError::Body(BodyFault::Extension)),
    ("7.1, bare LF", Shape::Chunks("2\nok\r\n0\r\n\r\n"), ReplyError::Body(BodyFault::LineEnd)),
    ("7.1, bare CR", Shape::Chunks("2\rok\r\n0\r\n\r\n"), ReplyError::Body(BodyFault::LineEnd)),
    (
        "7.1, bare LF in an extension",
        Shape::Chunks("2;a\nok\r\n0\r\n\r\n"),
        ReplyError::Body(BodyFault::LineEnd),
    ),
    (
        "7.1, control in an extension",
        Shape::Chunks("2;\0\r\nok\r\n0\r\n\r\n"),
        ReplyError::Body(BodyFault::Extension),
    ),
    (
        "7.1, size too small",
        Shape::Chunks("1\r\nok\r\n0\r\n\r\n"),
        ReplyError::Body(BodyFault::DataEnd),
    ),
    (
        "7.1, LF after data",
        Shape::Chunks("2\r\nok\n0\r\n\r\n"),
        ReplyError::Body(BodyFault::DataEnd),
    ),
    (
        "7.1.2, space before colon",
        Shape::Chunks("0\r\nA : b\r\n\r\n"),
        ReplyError::Body(BodyFault::Trailer),
    ),
    (
        "7.1.2, folded",
        Shape::Chunks("0\r\nA: b\r\n c\r\n\r\n"),
        ReplyError::Body(BodyFault::Trailer),
    ),
    ("7.1.2, bare LF", Shape::Chunks("0\r\nA: b\n\r\n"), ReplyError::Body(BodyFault::LineEnd)),
    ("7.1.2, bare LF at the end", Shape::Chunks("0\r\n\n"), ReplyError::Body(BodyFault::LineEnd)),
    ("8, head cut", Shape::Whole("HTTP/1.1 200 OK\r\nA"), ReplyError::CutInHead),
    ("8, between interim and final", Shape::Line("HTTP/1.1 100 Continue"), ReplyError::CutInHead),
    ("8, length", Shape::Length("4"), ReplyError::CutInBody),
    ("8, chunks", Shape::Chunks("2\r\nok\r\n"), ReplyError::CutInBody),
    ("8, chunk size", Shape::Chunks("2"), ReplyError::CutInBody),
    ("8, last line", Shape::Chunks("0\r\n"), ReplyError::CutInBody),
    (
        "9.2, unasked",
        Shape::Whole("HTTP/1.1 204 \r\n\r\nHTTP/1.1 204 \r\n\r\n"),
        ReplyError::Unasked,
    ),
    (
        "9.6, after close",
        Shape::Whole("HTTP/1.0 204 \r\n\r\nHTTP/1.1 204 \r\n\r\n"),
        ReplyError::AfterClose,
    ),
    (
        "RFC 9110, 15.2.2",
        Shape::Line("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x"),
        ReplyError::SwitchedProtocols,
    ),
];

#[test]
fn what_rfc_9112_calls_invalid_is_refused() {
    for &(rule, shape, error) in INVALID {
        let bytes = shape.bytes();
        for size in [bytes.len(), 1, 7] {
            let mut parser = parser(RequestKind::Other, 1);
            let (_, ending) = trace(&mut parser, bytes.as_bytes().chunks(size));
            assert_eq!(ending, Err(error), "{rule}, in pieces of {size}: {bytes:?}");
        }
    }
}

#[test]
fn limits_hold_to_the_byte() {
    let body = BodyLimits { extension_bytes_max: 6, trailer_bytes_max: 7 };
    let limits = ReplyLimits { head_bytes_max: 60, interim_max: 2, body };
    let with_head = |len: usize| format!("HTTP/1.1 204 \r\nA: {}\r\n\r\n", "b".repeat(len - 22));
    let chunked =
        |text: &str| format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{text}");
    let interim = |count| "HTTP/1.1 100 \r\n\r\n".repeat(count) + "HTTP/1.1 204 \r\n\r\n";
    let cases = [
        (with_head(60), None),
        (with_head(61), Some(ReplyError::Head(HeadFault::TooLong))),
        (chunked("1;a\r\nx\r\n1;abc\r\nx\r\n0\r\n\r\n"), None),
        (
            chunked("1;a\r\nx\r\n1;abcd\r\nx\r\n0\r\n\r\n"),
            Some(ReplyError::Body(BodyFault::ExtensionsTooLong)),
        ),
        (chunked("0\r\nA: bc\r\n\r\n"), None),
        (chunked("0\r\nA: bcd\r\n\r\n"), Some(ReplyError::Body(BodyFault::TrailersTooLong))),
        (interim(2), None),
        (interim(3), Some(ReplyError::TooManyInterim)),
    ];
    for (bytes, error) in cases {
        for size in [bytes.len(), 1] {
            let mut parser = ReplyParser::new(limits);
            parser.expect(RequestKind::Other);
            let (_, ending) = trace(&mut parser, bytes.as_bytes().chunks(size));
            assert_eq!(ending.err(), error, "{bytes:?} in pieces of {size}");
        }
    }
    let many = |count| "HTTP/1.1 204 \r\n".to_owned() + &"A: b\r\n".repeat(count) + "\r\n";
    assert!(one(RequestKind::Other, many(FIELDS_MAX).as_bytes()).is_ok());
    let error = one(RequestKind::Other, many(FIELDS_MAX + 1).as_bytes());
    assert_eq!(error, Err(ReplyError::Head(HeadFault::TooManyFields)));
}

#[test]
fn the_end_of_the_stream_is_told_apart() {
    let reply = b"HTTP/1.1 204 \r\n\r\n";
    assert_eq!(trace(&mut parser(RequestKind::Other, 0), []).1, Ok(Eof::Idle));
    assert_eq!(trace(&mut parser(RequestKind::Other, 1), []).1, Ok(Eof::BeforeReply));
    assert_eq!(trace(&mut parser(RequestKind::Other, 1), [&reply[..]]).1, Ok(Eof::Idle));
    assert_eq!(trace(&mut parser(RequestKind::Other, 2), [&reply[..]]).1, Ok(Eof::BeforeReply));
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nall of it";
    let totals = ReplyTotals { wire_bytes: until_close.len() as u64, body_bytes: 9 };
    let (_, ending) = trace(&mut parser(RequestKind::Other, 1), [&until_close[..]]);
    assert_eq!(ending, Ok(Eof::Done(totals)));
}

#[test]
fn a_parser_is_fresh_after_a_reset() {
    let mut parser = parser(RequestKind::Other, 3);
    assert!(trace(&mut parser, [&b"HTTP/1.1 2"[..]]).1.is_err());
    parser.reset();
    assert_eq!(parser.eof(), Ok(Eof::Idle));
    parser.expect(RequestKind::Head);
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(trace(&mut parser, [&reply[..]]).1, Ok(Eof::Idle));
}

#[test]
fn a_head_that_a_reset_cut_off_is_forgotten() {
    let mut parser = parser(RequestKind::Other, 2);
    let (first, second) = (b"HTTP/1.1 204 \r\n\r\n", b"HTTP/1.1 304 \r\n\r\n");
    feed_all(&mut parser, first, &mut Vec::new()).unwrap();
    feed_all(&mut parser, &second[..10], &mut Vec::new()).unwrap();
    parser.reset();
    parser.expect(RequestKind::Other);
    let replies = complete(&trace(&mut parser, [&second[..]]));
    assert_eq!(replies.iter().map(|reply| reply.status).collect::<Vec<_>>(), [304]);
}

#[test]
fn every_chunk_has_a_size_of_its_own() {
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let many = chunked.to_owned() + &"01\r\nx\r\n".repeat(40) + "0\r\n\r\n";
    assert_eq!(one(RequestKind::Other, many.as_bytes()).unwrap().body, "x".repeat(40).as_bytes());
    let missing = chunked.to_owned() + "1\r\nx\r\n\r\n";
    let error = one(RequestKind::Other, missing.as_bytes());
    assert_eq!(error, Err(ReplyError::Body(BodyFault::ChunkSize)));
}

/// The last head is kept: a longer, a shorter and a slightly different one must not be taken for it, and the kind of
/// the request must still count.
#[test]
fn a_head_that_differs_from_the_last_is_read_anew() {
    let head =
        |status: u16, more: &str| format!("HTTP/1.1 {status} X\r\nContent-Length: 2\r\n{more}\r\n");
    let order = [
        (RequestKind::Other, head(200, "")),
        (RequestKind::Other, head(200, "")),
        (RequestKind::Head, head(200, "")),
        (RequestKind::Other, head(200, "A: b\r\n")),
        (RequestKind::Other, head(200, "")),
        (RequestKind::Other, head(404, "")),
        (RequestKind::Other, head(404, "Connection: close\r\n")),
    ];
    let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
    let mut bytes = Vec::new();
    for (kind, head) in &order {
        parser.expect(*kind);
        bytes.extend_from_slice(head.as_bytes());
        bytes.extend_from_slice(if *kind == RequestKind::Head { b"" } else { b"ok" });
    }
    let replies = complete(&trace(&mut parser, [&bytes[..]]));
    let facts: Vec<_> = replies.iter().map(|r| (r.status, r.keep_alive, r.body.len())).collect();
    let expected = [
        (200, true, 2),
        (200, true, 2),
        (200, true, 0),
        (200, true, 2),
        (200, true, 2),
        (404, true, 2),
        (404, false, 2),
    ];
    assert_eq!(facts, expected);
}
