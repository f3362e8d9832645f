//! Random messages: valid ones, changes that may make them invalid, and ways to divide their bytes.
//! Must not know how they are read. Start reading at [`replies`] and [`requests`].

use proptest::prelude::*;

use crate::oracle::bytes_of;

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
