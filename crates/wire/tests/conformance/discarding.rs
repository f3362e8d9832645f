//! Body bytes that a driver lets the kernel discard: the parser must count them as if it had read them. Start reading
//! at [`trace_with_losses`].

use crate::messages::pieces;
use crate::replies::{ObservedReply, Trace, feed_all, parser, see_body};
use joust_wire::{Eof, Event, ReplyLimits, ReplyParser, ReplyTotals, RequestKind};

/// Like `trace`, but before each byte this share of the discardable bytes is withheld from the parser. The withheld
/// bytes go into the trace as body bytes, which they must be.
pub(crate) fn trace_with_losses(
    parser: &mut ReplyParser,
    bytes: &[u8],
    sizes: &[usize],
    share: f64,
) -> Trace {
    let mut seen = Vec::new();
    for mut piece in pieces(bytes, sizes) {
        while !piece.is_empty() {
            let certain = parser.discardable().min(piece.len() as u64);
            let (lost, rest) = piece.split_at((certain as f64 * share) as usize);
            if !lost.is_empty() {
                parser.discarded(lost.len() as u64);
                see_body(&mut seen, lost);
            }
            // Byte by byte, so that the next loss can begin at any position.
            let (next, rest) = rest.split_at(rest.len().min(1));
            if let Err(error) = feed_all(parser, next, &mut seen) {
                return (seen, Err(error));
            }
            piece = rest;
        }
    }
    let eof = parser.eof();
    if let Ok(Eof::Done(totals)) = eof {
        seen.push(ObservedReply::Done(totals));
    }
    (seen, eof)
}

/// The number of discardable bytes after those bytes of a reply to a request of that kind.
fn discardable_after(kind: RequestKind, bytes: &str) -> u64 {
    let mut parser = parser(kind, 1);
    feed_all(&mut parser, bytes.as_bytes(), &mut Vec::new()).expect("the reply is valid so far");
    parser.discardable()
}

#[test]
fn only_what_is_left_of_a_body_or_chunk_may_be_discarded() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let cases = [
        ("", "", 0),
        (&length[..20], "", 0),
        (length, "", 5),
        (length, "ab", 3),
        (length, "abcde", 0),
        (chunked, "", 0),
        (chunked, "5", 0),
        (chunked, "5\r", 0),
        (chunked, "5\r\n", 5),
        (chunked, "5\r\nabcd", 1),
        (chunked, "5\r\nabcde", 0),
        (chunked, "5\r\nabcde\r\n", 0),
        (chunked, "0\r\n", 0),
        (chunked, "0\r\nA: b\r\n\r\n", 0),
        ("HTTP/1.1 200 OK\r\n\r\n", "ab", u64::MAX),
        ("HTTP/1.1 204 \r\n\r\n", "", 0),
    ];
    for (head, body, expected) in cases {
        let reply = [head, body].concat();
        assert_eq!(discardable_after(RequestKind::Other, &reply), expected, "{reply:?}");
    }
    assert_eq!(discardable_after(RequestKind::Head, length), 0, "a reply to HEAD has no body");
}

#[test]
fn a_body_that_was_discarded_whole_is_done_without_bytes() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n";
    let mut parser = parser(RequestKind::Other, 1);
    feed_all(&mut parser, head, &mut Vec::new()).unwrap();
    parser.discarded(1_000_000);
    assert!(matches!(parser.feed(b"").unwrap().event, Event::NeedMore));
    assert_eq!(parser.totals().body_bytes, 1_000_000);
    parser.discarded(2_000_000);
    let wire_bytes = head.len() as u64 + 3_000_000;
    match parser.feed(b"").unwrap().event {
        Event::Done(totals) => {
            assert_eq!(totals, ReplyTotals { wire_bytes, body_bytes: 3_000_000 });
        }
        event => panic!("{event:?}"),
    }
}

#[test]
#[should_panic(expected = "only bytes that are certain to be body are discarded")]
fn framing_is_never_discarded() {
    let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
    parser.expect(RequestKind::Other);
    parser.discarded(1);
}
