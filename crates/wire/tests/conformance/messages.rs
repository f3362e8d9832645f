//! Random messages: valid ones, changes that may make them invalid, and ways to divide their bytes. Start
//! reading at [`streams`] and [`requests`].

use joust_wire::{BodyLimits, ReplyLimits, RequestKind};
use proptest::prelude::*;

use crate::oracle::bytes_of;

/// A body in the framing that its fields announce: (field line or none, bytes on the wire).
fn framed_body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let data = || prop::collection::vec(prop::sample::select(b"ab\r\n0:HTTP/1.".to_vec()), 0..40);
    let extension = prop::sample::select(vec!["", ";x", " ;a=\"b c\"", "\t;\tx"]);
    let trailers = prop::sample::select(vec!["", "X: y\r\n", "A:\r\nContent-Length: 7\r\n"]);
    let length = data().prop_map(|data| (format!("Content-Length: {}\r\n", data.len()), data));
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
    prop_oneof![length, chunked]
}

/// The same for a reply, whose length may be repeated (RFC 9110, 8.6).
fn framed_reply_body() -> impl Strategy<Value = (String, Vec<u8>)> {
    let data = prop::collection::vec(prop::sample::select(b"ab\r\n0".to_vec()), 0..40);
    let again = data.prop_map(|data| {
        (format!("Content-Length: {0}\r\ncontent-length:{0}, {0}\r\n", data.len()), data)
    });
    prop_oneof![2 => framed_body(), 1 => again]
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

/// Requests, and the bytes of the valid replies to them; the last may end by closing.
pub(crate) fn valid_streams() -> impl Strategy<Value = (Vec<RequestKind>, Vec<u8>)> {
    let last = prop::sample::select(vec![
        &b""[..],
        b"HTTP/1.0 200 OK\r\n\r\nuntil close\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
    ]);
    (prop::collection::vec(valid_reply(), 1..5), last).prop_map(|(some, last)| {
        let (mut kinds, mut bytes): (Vec<_>, Vec<_>) = some.into_iter().unzip();
        if !last.is_empty() {
            kinds.push(RequestKind::Other);
            bytes.push(last.to_vec());
        }
        (kinds, bytes.concat())
    })
}

/// A request, and the bytes of a valid reply that keeps the connection alive.
fn valid_reply() -> impl Strategy<Value = (RequestKind, Vec<u8>)> {
    let interim = prop::sample::select(vec![
        "",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "HTTP/1.1 103 \r\nLink: </a>\r\n\r\n",
    ]);
    let line =
        prop::sample::select(vec!["HTTP/1.1 200 OK", "HTTP/1.1 404 Not Found", "HTTP/1.1 206"]);
    let is_head = prop::bool::weighted(0.2);
    let framed = (interim, line, other_fields(), framed_reply_body(), is_head).prop_map(
        |(interim, line, fields, (framing, body), is_head)| {
            let head = bytes_of(&format!("{interim}{line}\r\n{fields}{framing}\r\n"));
            match is_head {
                true => (RequestKind::Head, head),
                false => (RequestKind::Other, [head, body].concat()),
            }
        },
    );
    let bodiless = prop::sample::select(vec![
        (RequestKind::Other, b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()),
        (
            RequestKind::Other,
            b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\nETag: \"1\"\r\n\r\n".to_vec(),
        ),
        (
            RequestKind::Head,
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_vec(),
        ),
        (RequestKind::Connect, b"HTTP/1.1 405 No\r\nContent-Length: 2\r\n\r\nno".to_vec()),
    ]);
    prop_oneof![4 => framed, 1 => bodiless]
}

/// A request, and bytes that consist of parts of replies, which need not fit together.
fn strange_reply() -> impl Strategy<Value = (RequestKind, Vec<u8>)> {
    let kind = prop_oneof![
        4 => Just(RequestKind::Other),
        1 => Just(RequestKind::Head),
        1 => Just(RequestKind::Connect),
    ];
    let line = prop::sample::select(vec![
        "HTTP/1.1 200 OK",
        "HTTP/1.1 200",
        "HTTP/1.1 200 ",
        "HTTP/1.0 200 OK",
        "HTTP/1.1 204 ",
        "HTTP/1.0 304 x",
        "HTTP/1.1 100 ",
        "HTTP/1.0 103 ",
        "HTTP/1.1 101 x",
        "HTTP/1.1 199 x",
        "HTTP/1.1 999 caf\u{e9}",
        "HTTP/1.1 099 x",
        "HTTP/1.1 200  a\tb",
        "HTTP/1.1 20 x",
        "HTTP/2 200 x",
        "HTTP/1.1 200 \u{7f}",
    ]);
    let fields = vec![
        "Content-Length: 3",
        "content-length:3,3",
        "Content-Length: 4",
        "Content-Length: x",
        "Content-Length:",
        "Transfer-Encoding: chunked",
        "TRANSFER-ENCODING:\tChunked ",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding:",
        "Connection: close",
        "Connection: Keep-Alive",
        "Connection: ,x,CLOSE",
        "Connections: close",
        "A: b",
        " folded",
        "A : b",
        ": b",
        "A",
        "A:\u{1}",
    ];
    let fields = prop::collection::vec(prop::sample::select(fields), 0..4);
    let body = prop::sample::select(vec![
        "",
        "abc",
        "3\r\nabc\r\n0\r\n\r\n",
        "0\r\nA: b\r\n\r\n",
        "3;x=y\r\nabc\r\n",
        "abcd",
        "3 ;\r\nabc\r\n00\r\n\r\n",
        "FFFFFFFFFFFFFFFF\r\nabc",
        "00000000000000003\r\n",
        "0\r\nA\r\n",
        "3 \r\nabc",
        "3\r\nabcd\r\n",
    ]);
    (kind, line, fields, body).prop_map(|(kind, line, fields, body)| {
        let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
        (kind, bytes_of(&format!("{line}\r\n{fields}\r\n{body}")))
    })
}

/// Requests, and bytes that are more or less the replies to them.
pub(crate) fn streams() -> impl Strategy<Value = (Vec<RequestKind>, Vec<u8>)> {
    let reply = prop_oneof![3 => valid_reply(), 1 => strange_reply()];
    // A server gives the same answer to the same request, which the parser exploits.
    let repeated = (reply, 1usize..3).prop_map(|(reply, times)| vec![reply; times]);
    let replies = prop::collection::vec(repeated, 0..4);
    let more = prop_oneof![3 => Just(0), 1 => 0usize..2];
    (replies, more, changes()).prop_map(|(replies, more, changes)| {
        let (mut kinds, bytes): (Vec<_>, Vec<_>) = replies.into_iter().flatten().unzip();
        kinds.extend((0..more).map(|_| RequestKind::Other));
        (kinds, changed(&bytes.concat(), &changes))
    })
}

/// Usual limits, or limits that a stream of a few hundred bytes reaches.
pub(crate) fn reply_limits() -> impl Strategy<Value = ReplyLimits> {
    let narrow = (16usize..200, 0u32..3, 0u32..8, 0u32..16).prop_map(
        |(head_bytes_max, interim_max, extension_bytes_max, trailer_bytes_max)| {
            let body = BodyLimits { extension_bytes_max, trailer_bytes_max };
            ReplyLimits { head_bytes_max, interim_max, body }
        },
    );
    prop_oneof![2 => Just(ReplyLimits::DEFAULT), 1 => narrow]
}

/// The bytes of valid requests.
pub(crate) fn requests() -> impl Strategy<Value = Vec<u8>> {
    let line = prop::sample::select(vec![
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET /a?b={c|d} HTTP/1.1\r\nhost:\tb\r\n",
        "\r\nPOST http://a.example:80/x HTTP/1.1\r\nHOST: [::1]:8080\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\n",
        "GET /later HTTP/1.4\r\nHost: a%41:80\r\n",
        "GET http://a HTTP/1.1\r\nHost:\r\n",
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

/// Changes to make: position as a share of the length, kind, and a byte.
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

/// Sizes of pieces, used in turn.
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
