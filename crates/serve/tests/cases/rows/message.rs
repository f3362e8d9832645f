//! The message itself: request line, versions, field lines, hosts, and the bounds on all of them.

use super::super::Field::Is;
use super::super::Then::{Closed, Kept};
use super::{Body, CLOSE, Case, PAGE, REFUSED, Reply, TEN, WHOLE, re, row};

const ANOTHER_VERSION: &[Reply] = &[re(505, &[CLOSE], PAGE)];
const TOO_LARGE: &[Reply] = &[re(431, &[CLOSE], PAGE)];

const START: &[u8] = b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n";
const END: &[u8] = b"\r\n\r\n";
const REST: &[u8] = b" HTTP/1.1\r\nHost: a\r\n\r\n";

static TARGET_9000: [u8; 5 + 9000 + REST.len()] = filled(b"GET /", b"a", REST);
static TARGET_4000: [u8; 5 + 4000 + REST.len()] = filled(b"GET /", b"a", REST);
static FIELD_33000: [u8; START.len() + 33_000 + END.len()] = filled(LONG, b"y", END);
static FIELD_8000: [u8; START.len() + 8000 + END.len()] = filled(LONG, b"y", END);
const LONG: &[u8] = b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: ";
/// Host and 100 others, and Host and 99 others.
static FIELDS_101: [u8; START.len() + 100 * 6 + 2] = filled(START, b"X: y\r\n", b"\r\n");
static FIELDS_100: [u8; START.len() + 99 * 6 + 2] = filled(START, b"X: y\r\n", b"\r\n");

/// `before`, `part` again and again as far as there is room, and `after`.
const fn filled<const N: usize>(before: &[u8], part: &[u8], after: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    let mut at = 0;
    while at < N {
        bytes[at] = if at < before.len() {
            before[at]
        } else if at < N - after.len() {
            part[(at - before.len()) % part.len()]
        } else {
            after[at - (N - after.len())]
        };
        at += 1;
    }
    bytes
}

pub(super) static ROWS: &[Case] = &[
    // The request line.
    row("a lower-case protocol name is refused", "RFC 9112 2.3",
        b"GET /ten.txt http/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a version of one number is refused", "RFC 9112 2.3",
        b"GET /ten.txt HTTP/1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a version of two digits is refused", "RFC 9112 2.3",
        b"GET /ten.txt HTTP/1.10\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a version with a sign is refused", "RFC 9112 2.3",
        b"GET /ten.txt HTTP/+1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("another major version is not supported", "RFC 9110 15.6.6",
        b"GET /ten.txt HTTP/2.0\r\nHost: a\r\n\r\n", ANOTHER_VERSION, Closed),
    row("version 0.9 is not supported", "RFC 9110 15.6.6",
        b"GET /ten.txt HTTP/0.9\r\nHost: a\r\n\r\n", ANOTHER_VERSION, Closed),
    row("version 3 is not supported", "RFC 9110 15.6.6",
        b"GET /ten.txt HTTP/3.0\r\nHost: a\r\n\r\n", ANOTHER_VERSION, Closed),
    row("a later minor version, which there is not, is not supported", "RFC 9110 15.6.6",
        b"GET /ten.txt HTTP/1.2\r\nHost: a\r\n\r\n", ANOTHER_VERSION, Closed),
    row("another protocol is refused", "RFC 9112 3",
        b"GET /ten.txt ICY/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("two spaces before the target are refused", "RFC 9112 3",
        b"GET  /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("two spaces before the version are refused", "RFC 9112 3",
        b"GET /ten.txt  HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a tab between method and target is refused", "RFC 9112 3",
        b"GET\t/ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a space behind the version is refused", "RFC 9112 3",
        b"GET /ten.txt HTTP/1.1 \r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a space before the method is refused", "RFC 9112 2.2",
        b" GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("more than a version behind the target is refused", "RFC 9112 3",
        b"GET /ten.txt HTTP/1.1 x\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a method with a character that is no token's is refused", "RFC 9110 9.1",
        b"G(T /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a method with a colon is refused", "RFC 9110 5.6.2",
        b"GET: /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a request line that ends in LF alone is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a CR within the request line is refused", "RFC 9112 2.2",
        b"GET /ten\r.txt HTTP/1.1\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("a field where the request line should be is refused", "RFC 9112 3",
        b"Host: a\r\n\r\n", REFUSED, Closed),
    row("a reply is no request", "RFC 9112 2.1",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", REFUSED, Closed),
    // Field lines.
    row("names of fields have no case", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nhOsT: a\r\ncOnNeCtIoN: ClOsE\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("a value needs no space before it", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost:a\r\n\r\n", WHOLE, Kept),
    row("blanks and tabs around a value are not part of it", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: \t a \t\r\nRange:\tbytes=0-9 \r\n\r\n",
        &[re(206, &[Is("content-range", "bytes 0-9/10")], TEN)], Kept),
    row("an empty value is a value", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX-Nothing:\r\n\r\n", WHOLE, Kept),
    row("bytes beyond ASCII in a value are opaque", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX-Name: J\xf6rg \xe2\x82\xac\r\n\r\n", WHOLE, Kept),
    row("a tab within a value is allowed", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX-Tab: a\tb\r\n\r\n", WHOLE, Kept),
    row("a field without a name is refused", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", REFUSED, Closed),
    row("a field line without a colon is refused", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nnonsense\r\n\r\n", REFUSED, Closed),
    row("a space within a name is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX Y: z\r\n\r\n", REFUSED, Closed),
    row("a tab before the colon is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX\t: z\r\n\r\n", REFUSED, Closed),
    row("a name with a character that is no token's is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX[]: z\r\n\r\n", REFUSED, Closed),
    row("a name with a byte beyond ASCII is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX\xf6: z\r\n\r\n", REFUSED, Closed),
    row("a NUL in a value is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", REFUSED, Closed),
    row("a CR in a value is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", REFUSED, Closed),
    row("an LF that ends a field is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", REFUSED, Closed),
    row("a control character in a value is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: a\x08b\r\n\r\n", REFUSED, Closed),
    row("DEL in a value is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n", REFUSED, Closed),
    row("a first field that begins with a blank is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\n Host: a\r\n\r\n", REFUSED, Closed),
    row("a field folded with a tab is refused", "RFC 9112 5.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: 1\r\n\t2\r\n\r\n", REFUSED, Closed),
    row("a folded Transfer-Encoding is refused", "RFC 9112 5.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("an empty line of LF alone ends no head", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("fields that the server does not know change nothing", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1.2.3.4\r\nUpgrade-Insecure-Requests: 1\r\n\
DNT: 1\r\nCookie: a=b; c=d\r\n\r\n", WHOLE, Kept),
    row("an offer to upgrade is not taken", "RFC 9110 7.8",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", WHOLE, Kept),
    row("a web socket is not opened", "RFC 6455 4.2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n", WHOLE, Kept),
    // Hosts.
    row("an empty host is a host", "RFC 9112 3.2",
        b"GET /ten.txt HTTP/1.1\r\nHost:\r\n\r\n", WHOLE, Kept),
    row("a host may have a port", "RFC 9110 7.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a.example:8080\r\n\r\n", WHOLE, Kept),
    row("HTTP/1.0 needs no host", "RFC 9112 3.2",
        b"GET /ten.txt HTTP/1.0\r\n\r\n", &[re(200, &[CLOSE], TEN)], Closed),
    row("two hosts are refused though they are the same", "RFC 9112 3.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", REFUSED, Closed),
    row("two hosts are refused in HTTP/1.0 too", "RFC 9112 3.2",
        b"GET /ten.txt HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", REFUSED, Closed),
    row("a host with a blank is refused", "RFC 9110 7.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a b\r\n\r\n", REFUSED, Closed),
    row("a host with a user is refused", "RFC 9110 7.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: user@a\r\n\r\n", REFUSED, Closed),
    row("a port that is no number is refused", "RFC 9110 7.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a:http\r\n\r\n", REFUSED, Closed),
    row("two hosts in one field are refused", "RFC 9110 7.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a, b\r\n\r\n", REFUSED, Closed),
    row("a host with a slash is refused", "CVE-2014-2324",
        b"GET /ten.txt HTTP/1.1\r\nHost: ../../etc\r\n\r\n", REFUSED, Closed),
    row("a bracket that is not closed is refused", "RFC 3986 3.2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: [::1\r\n\r\n", REFUSED, Closed),
    // Bounds.
    row("a target that is too long has its own status", "RFC 9110 15.5.15",
        &TARGET_9000, &[re(414, &[CLOSE], PAGE)], Closed),
    row("a field that is too long has its own status", "RFC 6585 5",
        &FIELD_33000, TOO_LARGE, Closed),
    row("too many fields have their own status", "RFC 6585 5",
        &FIELDS_101, TOO_LARGE, Closed),
    row("as many fields as are allowed are read", "RFC 6585 5",
        &FIELDS_100, WHOLE, Kept),
    row("a field of 8 KB is read", "RFC 9110 5.4",
        &FIELD_8000, WHOLE, Kept),
    row("a target of 4 KB is looked up", "RFC 9110 4.1",
        &TARGET_4000, &[re(414, &[], PAGE)], Kept),
    // Methods.
    row("a known method that no file has says what it has", "RFC 9110 15.5.6",
        b"PUT /new.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
        &[re(405, &[Is("allow", "GET, HEAD, OPTIONS")], PAGE)], Kept),
    row("PATCH is known and not had", "RFC 9110 15.5.6",
        b"PATCH /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        &[re(405, &[Is("allow", "GET, HEAD, OPTIONS")], PAGE)], Kept),
    row("a method of DAV is not implemented", "RFC 9110 15.6.2",
        b"PROPFIND / HTTP/1.1\r\nHost: a\r\n\r\n", &[re(501, &[], PAGE)], Kept),
    row("a method with a longer name is another method", "RFC 9110 9.1",
        b"GETX /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(501, &[], PAGE)], Kept),
    row("a method that is a beginning of another is another", "RFC 9110 9.1",
        b"GE /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(501, &[], PAGE)], Kept),
    row("OPTIONS may have a body", "RFC 9110 9.3.7",
        b"OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
        &[re(204, &[Is("allow", "GET, HEAD, OPTIONS")], Body::None)], Kept),
];
