//! Measures the cost of one small reply for the reply parser, in nanoseconds: nginx-like heads of
//! about 240 bytes with a short body, pipelined so that the bytes are in the cache, as after a
//! read.
//! Run with `cargo run --release -p joust-wire --example parse_rate`.

use std::hint::black_box;
use std::io::{self, Write as _};
use std::time::Instant;

use joust_wire::{Event, ReplyLimits, ReplyParser, RequestKind};

/// Replies in one slice.
const PIPELINED: usize = 16;
/// Slices per round. The fastest round is shown; slower ones are noise of the machine.
const SLICES: usize = 20_000;
const ROUNDS: usize = 15;

const NGINX_HEAD: &str = "HTTP/1.1 200 OK\r\nServer: nginx/1.26.3\r\n\
    Date: Sat, 21 Nov 2026 11:31:47 GMT\r\nContent-Type: text/html\r\nLENGTH\r\n\
    Last-Modified: Sat, 21 Nov 2026 10:00:00 GMT\r\nConnection: keep-alive\r\n\
    ETag: \"6920a1b0-d21\"\r\nAccept-Ranges: bytes\r\n\r\n";

fn main() -> io::Result<()> {
    let length = NGINX_HEAD.replace("LENGTH", "Content-Length: 16") + "0123456789abcdef";
    let chunked = NGINX_HEAD.replace("LENGTH", "Transfer-Encoding: chunked")
        + "10\r\n0123456789abcdef\r\n0\r\n\r\n";
    let minimal = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned();
    let mut out = io::stdout().lock();
    for (name, reply) in
        [("nginx, length", length), ("nginx, chunked", chunked), ("minimal", minimal)]
    {
        // With two alternating heads none equals the one before: the parser's worst case.
        let other = reply.replace("200 OK", "201 OK");
        let same = nanos_per_reply(&[&reply, &reply], usize::MAX);
        let other = nanos_per_reply(&[&reply, &other], usize::MAX);
        let divided = nanos_per_reply(&[&reply, &reply], 1000);
        writeln!(
            out,
            "{name:>15}: {} bytes, ns a reply: {same:.1} same heads, {other:.1} differing heads, \
             {divided:.1} same heads in reads of 1000 bytes",
            reply.len(),
        )?;
    }
    Ok(())
}

/// Time per reply, when the two replies alternate and `piece` bytes arrive at a time.
fn nanos_per_reply(replies: &[&str; 2], piece: usize) -> f64 {
    let bytes = replies.concat().repeat(PIPELINED / replies.len()).into_bytes();
    let mut parser = ReplyParser::new(ReplyLimits::DEFAULT);
    let round = |parser: &mut ReplyParser| {
        let start = Instant::now();
        for _ in 0..SLICES {
            let done = read_all(parser, black_box(&bytes), piece);
            assert_eq!(done, PIPELINED, "every reply is complete");
        }
        start.elapsed().as_nanos() as f64 / (SLICES * PIPELINED) as f64
    };
    (0..ROUNDS).map(|_| round(&mut parser)).fold(f64::INFINITY, f64::min)
}

/// Feeds the bytes and counts complete replies.
fn read_all(parser: &mut ReplyParser, bytes: &[u8], piece: usize) -> usize {
    let mut done = 0;
    (0..PIPELINED).for_each(|_| parser.expect(RequestKind::Other));
    for piece in bytes.chunks(piece.min(bytes.len())) {
        let mut rest = piece;
        loop {
            let step = parser.feed(rest).expect("the replies are valid");
            rest = &rest[step.used..];
            match step.event {
                Event::Done(totals) => {
                    black_box(totals);
                    done += 1;
                }
                Event::NeedMore => break,
                _ => {}
            }
        }
    }
    done
}
