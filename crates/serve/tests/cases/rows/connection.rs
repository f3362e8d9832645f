//! What happens to the connection: kept or ended, pipelines, expectations, HTTP/1.0.

use super::super::Field::{Begins, Is, Lacks};
use super::super::Then::{Closed, Kept};
use super::super::LARGE_LEN;
use super::{Body, CLOSE, Case, PAGE, TEN, WHOLE, re, row};

pub(super) static ROWS: &[Case] = &[
    row("the word close has no case", "RFC 9110 7.6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: CLOSE\r\n\r\n", &[re(200, &[CLOSE], TEN)], Closed),
    row("close in a list ends the connection", "RFC 9110 7.6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, close\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("close in a second field ends the connection", "RFC 9110 5.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("a word that holds close does not", "RFC 9110 7.6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: closed\r\n\r\n", WHOLE, Kept),
    row("empty elements of a list are passed over", "RFC 9110 5.6.1.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: ,, close ,\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("an error does not end the connection", "RFC 9112 9.3",
        b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n", &[re(404, &[Lacks("connection")], PAGE)], Kept),
    row("an answer without a body does not end the connection", "RFC 9112 9.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nIf-None-Match: *\r\n\r\n\
HEAD /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(304, &[Lacks("connection")], Body::None), re(200, &[], Body::Told(Some(10)))], Kept),
    row("a client that ends an error's connection is heard", "RFC 9112 9.6",
        b"GET /nothing HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        &[re(404, &[CLOSE], PAGE)], Closed),
    row("HEAD with close ends the connection", "RFC 9112 9.6",
        b"HEAD /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        &[re(200, &[CLOSE], Body::Told(Some(10)))], Closed),
    row("Proxy-Connection means nothing", "RFC 9112 C.2.2",
        b"GET /ten.txt HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("a Keep-Alive field alone keeps nothing in HTTP/1.0", "RFC 9112 C.2.2",
        b"GET /ten.txt HTTP/1.0\r\nKeep-Alive: timeout=100\r\n\r\n", &[re(200, &[CLOSE], TEN)], Closed),
    row("HTTP/1.0 that asks for both is ended", "RFC 9112 9.3",
        b"GET /ten.txt HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("HTTP/1.0 may send a body", "RFC 9112 6.2",
        b"GET /ten.txt HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
        &[re(200, &[Is("connection", "keep-alive")], TEN)], Kept),
    row("HTTP/1.0 HEAD", "RFC 9110 9.3.2",
        b"HEAD /ten.txt HTTP/1.0\r\n\r\n", &[re(200, &[CLOSE], Body::Told(Some(10)))], Closed),
    row("terms of keep-alive count down", "Apache ap_h1_set_keepalive",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
        &[re(200, &[Is("keep-alive", "timeout=5, max=100")], TEN),
          re(200, &[Is("keep-alive", "timeout=5, max=99")], TEN)], Kept),
    // Pipelines.
    row("twenty requests at once have twenty answers", "RFC 9112 9.3.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN),
          re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN),
          re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN),
          re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN),
          re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN), re(200, &[], TEN)], Kept),
    row("large answers of a pipeline keep their order", "RFC 9112 9.3.2",
        b"GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /large.bin HTTP/1.1\r\nHost: a\r\nRange: bytes=5-9\r\n\r\nGET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(200, &[], Body::Large(0, LARGE_LEN)), re(200, &[], TEN), re(206, &[], Body::Large(5, 5)),
          re(200, &[], Body::Large(0, LARGE_LEN))], Kept),
    row("bodies between the requests of a pipeline are passed over", "RFC 9112 9.3.2",
        b"OPTIONS / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\
GET /nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(204, &[], Body::None), re(200, &[], TEN), re(404, &[], PAGE), re(200, &[], TEN)], Kept),
    row("a refused request with a body ends the connection", "CWE-444; RFC 9112 9.6",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(405, &[CLOSE], PAGE)], Closed),
    row("a refused request with chunks ends the connection", "CWE-444; RFC 9112 9.6",
        b"BREW / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(501, &[CLOSE], PAGE)], Closed),
    row("a refused request with an empty body ends the connection", "CWE-444; RFC 9112 9.6",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\
XGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(405, &[CLOSE], PAGE)], Closed),
    row("a refused request without a body ends nothing", "RFC 9112 9.3",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(405, &[Lacks("connection")], PAGE)], Kept),
    row("the last of a pipeline ends the connection", "RFC 9112 9.6",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        &[re(200, &[Lacks("connection")], TEN), re(200, &[CLOSE], TEN)], Closed),
    row("versions may change within a connection", "RFC 9112 2.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\nGET /ten.txt HTTP/1.0\r\n\r\n",
        &[re(200, &[], TEN), re(200, &[CLOSE], TEN)], Closed),
    row("an empty line between two requests is passed over", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(200, &[], TEN), re(200, &[], TEN)], Kept),
    row("many empty lines are no request", "RFC 9112 2.2",
        b"\r\n\r\n\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n", &[re(400, &[CLOSE], PAGE)], Closed),
    // Expectations.
    row("the word of an expectation has no case", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
        WHOLE, Kept),
    row("an expectation without a body is met by the answer", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", WHOLE, Kept),
    row("an expectation of HTTP/1.0 is ignored", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
        &[re(200, &[CLOSE], TEN)], Closed),
    row("two expectations of which one is unknown fail", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, 200-ok\r\n\r\n",
        &[re(417, &[CLOSE], PAGE)], Closed),
    row("the same expectation twice is one", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue, 100-Continue\r\nContent-Length: 3\r\n\r\nabc",
        WHOLE, Kept),
    row("no expectation is none that fails", "RFC 9110 5.6.1.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect:\r\n\r\n", WHOLE, Kept),
    row("an expectation with a parameter is another one", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue;a=b\r\n\r\n",
        &[re(417, &[CLOSE], PAGE)], Closed),
    row("an expectation with a chunked body", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n\
3\r\nabc\r\n0\r\n\r\n", WHOLE, Kept),
    row("who waits for our word to send too much is refused", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n",
        &[re(413, &[CLOSE], PAGE)], Closed),
    // What every answer has.
    row("every answer has a date and says what is served", "RFC 9110 6.6.1, 10.2.4",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(200, &[Begins("date", ""), Is("server", "joust")], TEN)], Kept),
    row("an error says in what it is written", "RFC 9110 8.3",
        b"GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n",
        &[re(404, &[Is("content-type", "text/html; charset=utf-8"), Lacks("last-modified"),
            Lacks("accept-ranges")], PAGE)], Kept),
];
