//! Framing that servers and proxies before them are known to read in two ways: the points of public desync suites
//! (Http11Probe, smuggler, HTTP Garden) that an RFC decides, except those that other tables have. What an RFC lets a
//! server accept or refuse is refused.

use super::super::Field::Is;
use super::super::Then::{Closed, Kept};
use super::{Body, CLOSE, Case, PAGE, REFUSED, Reply, TEN, WHOLE, re, row};

const EXPECTATION: &[Reply] = &[re(417, &[CLOSE], PAGE)];
const NOT_ALLOWED: &[Reply] = &[re(405, &[CLOSE], PAGE)];
const NOT_IMPLEMENTED: &[Reply] = &[re(501, &[CLOSE], PAGE)];
const OPTIONS: &[Reply] = &[re(204, &[Is("allow", "GET, HEAD, OPTIONS")], Body::None)];
const TOLD: &[Reply] = &[re(200, &[], Body::Told(Some(10)))];
const TOO_LONG: &[Reply] = &[re(413, &[CLOSE], PAGE)];
const WHOLE_AND_REFUSED: &[Reply] = &[re(200, &[], TEN), re(400, &[CLOSE], PAGE)];
const WHOLE_AND_UNKNOWN: &[Reply] = &[re(200, &[], TEN), re(501, &[], PAGE)];

pub(super) static ROWS: &[Case] = &[
    // Names of fields that a proxy before us could read as framing.
    row("a coding under a name with an underscore is refused", "CWE-444",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a coding under a name with an underscore is refused beside a length", "CWE-444",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\
Content-Length: 5\r\n\r\n",
        REFUSED, Closed),
    row("an underscore is refused in any case", "CWE-444",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nCONTENT_length: 3\r\n\r\n", REFUSED, Closed),
    row("a second length under a name with an underscore is refused", "CWE-444",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent_Length: 99\r\n\r\n",
        REFUSED, Closed),
    row("a blank in the name of a coding is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a tab in the name of a length is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent\tLength: 3\r\n\r\n", REFUSED, Closed),
    row("a blank before the name of a coding is refused", "RFC 9112 5.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n Transfer-Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a tab before the name of a length is refused", "RFC 9112 5.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\tContent-Length: 3\r\n\r\n", REFUSED, Closed),
    row("a tab behind the name of a coding is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", REFUSED, Closed),
    row("blank and tab behind the name of a length are refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length \t: 3\r\n\r\n", REFUSED, Closed),
    row("a second length with a blank behind its name is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length : 5\r\n\r\n",
        REFUSED, Closed),
    row("a vertical tab behind the name of a coding is refused", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\x0b: chunked\r\n\r\n", REFUSED, Closed),
    row("a NUL behind the name of a length is refused", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length\0: 3\r\n\r\n", REFUSED, Closed),
    row("a byte beyond ASCII behind the name of a coding is refused", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\xa0: chunked\r\n\r\n", REFUSED, Closed),
    row("a CR in the name of a coding is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-\rEncoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a line end before the colon of a coding is refused", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\r\n: chunked\r\n\r\n", REFUSED, Closed),
    row("a CR before the name of a coding is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: y\r\n\rTransfer-Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a coding behind an LF in a value is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a coding behind a CR in a value is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: y\rTransfer-Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a coding behind a NUL in a value is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX: y\0\r\nTransfer-Encoding: chunked\r\n\r\n", REFUSED, Closed),
    row("a name in brackets is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nBad[Name: value\r\n\r\n", REFUSED, Closed),
    row("a name in quotes is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\n\"Content-Length\": 3\r\n\r\n", REFUSED, Closed),
    row("a name with an at sign is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent@Length: 3\r\n\r\n", REFUSED, Closed),
    row("a name with DEL is refused", "RFC 9110 5.6.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length\x7f: 3\r\n\r\n", REFUSED, Closed),
    row("another name with an underscore is another field", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX_Real_IP: 1.2.3.4\r\n\r\n", WHOLE, Kept),
    row("a name that a length ends is another field", "RFC 9110 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nX-Content-Length: 3\r\n\
X-Transfer-Encoding: chunked\r\n\r\n",
        WHOLE, Kept),
    row("Content-Encoding is no framing", "RFC 9110 8.4",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Encoding: chunked\r\n\r\n", WHOLE, Kept),
    row("TE is no framing", "RFC 9110 10.1.4",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTE: chunked\r\nConnection: TE\r\n\r\n", WHOLE, Kept),
    row("a list of hop-by-hop fields takes no framing away", "RFC 9110 7.6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: Content-Length, Host\r\n\
Content-Length: 3\r\n\r\nabc",
        WHOLE, Kept),
    row("a list of hop-by-hop fields takes no coding away", "RFC 9110 7.6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: Transfer-Encoding\r\n\
Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        WHOLE, Kept),
    // Values of Content-Length.
    row("a length of letters is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: abc\r\n\r\nabc", REFUSED, Closed),
    row("a length of a plus is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", REFUSED, Closed),
    row("a length of a negative zero is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: -0\r\n\r\nabc", REFUSED, Closed),
    row("a length of octal digits with their mark is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0o5\r\n\r\nabc", REFUSED, Closed),
    row("a length of an exponent is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3e0\r\n\r\nabc", REFUSED, Closed),
    row("a length of a letter behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3x\r\n\r\nabc", REFUSED, Closed),
    row("a length of a semicolon behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3;\r\n\r\nabc", REFUSED, Closed),
    row("a length of a comma behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3,\r\n\r\nabc", REFUSED, Closed),
    row("a length of a comma before the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: ,3\r\n\r\nabc", REFUSED, Closed),
    row("a length of an empty element between two is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3,,3\r\n\r\nabc", REFUSED, Closed),
    row("a length of a vertical tab before the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: \x0b3\r\n\r\nabc", REFUSED, Closed),
    row("a length of a NUL behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\0\r\n\r\nabc", REFUSED, Closed),
    row("a length of a form feed behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\x0c\r\n\r\nabc", REFUSED, Closed),
    row("a length of a byte beyond ASCII behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\xa0\r\n\r\nabc", REFUSED, Closed),
    row("a length of an LF behind the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\n\r\n\r\nabc", REFUSED, Closed),
    row("a length of a CR before the digits is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: \r3\r\n\r\nabc", REFUSED, Closed),
    row("a length of the same value three times is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3, 3\r\n\r\nabc", REFUSED, Closed),
    row("a length of two values with a blank between is refused", "RFC 9110 8.6; RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3 3\r\n\r\nabc", REFUSED, Closed),
    row("the same length in three fields is refused", "RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\
Content-Length: 3\r\n\r\nabc",
        REFUSED, Closed),
    row("blanks behind a length are not part of it", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 3 \t \r\n\r\nabc", WHOLE, Kept),
    row("blanks before a length are not part of it", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length:  \t3\r\n\r\nabc", WHOLE, Kept),
    row("zeros are a length of nothing", "RFC 9110 8.6",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 00\r\n\r\n", WHOLE, Kept),
    row("a length with a zero before it is decimal", "RFC 9110 8.6",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 020\r\n\r\n01234567890123456789", WHOLE, Kept),
    row("a length beyond 63 bits is too long", "RFC 9110 15.5.14",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 9223372036854775808\r\n\r\n", TOO_LONG, Closed),
    row("the longest length is too long", "RFC 9110 15.5.14",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551615\r\n\r\n",
        TOO_LONG, Closed),
    row("a length one beyond the longest is refused", "RFC 9110 8.6",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551616\r\n\r\n", REFUSED, Closed),
    row("a length of twenty nines is refused", "RFC 9110 8.6",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
        REFUSED, Closed),
    // Values of Transfer-Encoding.
    row("a coding of a comma before it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: ,chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a comma and a blank before it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a comma behind it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of an empty element within is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip,, chunked\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of another one behind it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, cow\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of identity behind it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a second one with a blank between is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked chunked\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a parameter is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;ext=val\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a parameter behind a blank is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked ; a\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of apostrophes around it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: 'chunked'\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a beginning of it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunk\r\n\r\n3\r\nabc\r\n0\r\n\
\r\n",
        REFUSED, Closed),
    row("a coding of a byte beyond ASCII behind it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\xff\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a no-break space before it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \xa0chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a slash behind it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked/1\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a colon before it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: :chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of braces around it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: {chunked}\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of gzip alone is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of trailers is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: trailers\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of a letter before it is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of two others is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, deflate\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of itself between others is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked, deflate\r\n\r\n\
3\r\nabc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding of itself twice behind another is refused", "RFC 9112 6.1, 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked, chunked\r\n\r\n\
3\r\nabc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a vertical tab before it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a form feed before it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0cchunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a NUL behind it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\0\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a vertical tab behind it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x0b\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a CR behind it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with DEL behind it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\x7f\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a backspace before it is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x08chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a name before chunked is not implemented", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: cow, chunked\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("two names before chunked is not implemented", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: deflate, gzip, chunked\r\n\r\n\
3\r\nabc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("a name with a parameter before chunked is not implemented", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip;q=1, chunked\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("a name before chunked without a blank is not implemented", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip,CHUNKED\r\n\r\n3\r\n\
abc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("a longer name before chunked is not implemented", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked-foo, chunked\r\n\r\n\
3\r\nabc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("a name before chunked in a field of its own is not implemented", "RFC 9112 6.1; RFC 9110 5.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\
Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
    row("identity behind chunked in a field of its own is refused", "RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
Transfer-Encoding: identity\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("an empty coding before chunked in a field of its own is refused", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\
Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a coding behind a tab is one", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        WHOLE, Kept),
    row("a coding behind nothing is one", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:chunked\r\n\r\n3\r\nabc\r\n0\r\n\
\r\n",
        WHOLE, Kept),
    row("blanks behind a coding are not part of it", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \t\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        WHOLE, Kept),
    row("names and values of a coding have no case", "RFC 9110 5.1; RFC 9112 7",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTrAnSFer-EnCODinG: cHuNkeD\r\n\r\n3\r\nabc\r\n\
0\r\n\r\n",
        WHOLE, Kept),
    row("a chunked request may have bytes behind it that are no request", "RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nX\r\n\r\n",
        WHOLE_AND_REFUSED, Closed),
    // Length and coding together, of which either may be malformed.
    row("a small length beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\
Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a large length beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
Content-Length: 30\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding that is unknown beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding that is no other beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("chunked twice beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("identity beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("an empty coding beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\nContent-Length: 5\r\n\r\n\
0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a comma before it beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: , chunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a comma behind it beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a parameter beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;ext=val\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding with a blank behind it beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked \r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding in another case beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a coding behind a tab beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a folded coding beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\
Content-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("two fields of codings beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\n\
Host: a\r\n\r\n",
        REFUSED, Closed),
    row("a signed length beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\
Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a length that is no number beside the other is refused", "RFC 9112 6.1, 6.3, 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5x\r\n\
Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("both in HTTP/1.0 are refused", "RFC 9112 6.1",
        b"POST /ten.txt HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\
Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello",
        REFUSED, Closed),
    row("a coding in HTTP/1.0 that would be kept is refused", "RFC 9112 6.1",
        b"GET /ten.txt HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n\
0\r\n\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a request within the chunks of a refused one is not answered", "RFC 9112 11.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\
Content-Length: 4\r\n\r\n26\r\nGET /ten.txt HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a request behind the shorter of two lengths is not answered", "RFC 9112 6.3",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\n\
PINGGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a folded coding of OPTIONS is refused", "RFC 9112 5.2",
        b"OPTIONS / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\
Content-Length: 5\r\n\r\nhelloGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    // Chunks.
    row("a size with an underscore within is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1_0\r\n\
0123456789abcdef\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a plus and a zero is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+0\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        REFUSED, Closed),
    row("a size with a negative zero is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n-0\r\n\r\n", REFUSED, Closed),
    row("a size with an h behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3h\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a letter that is no digit is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nG\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a comma behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3,\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a point within is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3.0\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a NUL before it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\x003\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a NUL behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\0\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a tab before it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\t3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a tab behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\t\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a blank behind the last is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0 \r\n\r\n", REFUSED, Closed),
    row("a size with 0X before it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0X3\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with quotes around it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\"3\"\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a CR alone behind it is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\rabc\r\n0\r\n\
\r\n",
        REFUSED, Closed),
    row("a size with two CRs behind it is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a size with an LF alone behind the last is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\n\r\n", REFUSED, Closed),
    row("a size with a semicolon and an LF behind it is refused", "CWE-444",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;\nabc\r\n0\r\n\
\r\n",
        REFUSED, Closed),
    row("a size with a NUL in its extension is refused", "RFC 9112 7.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;\0ext\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a bracket in its extension is refused", "RFC 9112 7.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;bad[=x\r\n\
abc\r\n0\r\n\r\n",
        REFUSED, Closed),
    row("a size with a semicolon behind the last is refused", "RFC 9112 7.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0;\r\n\r\n", REFUSED, Closed),
    row("data with two bytes more than its size says is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("data with a byte less than its size says is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabc\r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("data with a CR alone behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r0\r\n\
\r\n",
        REFUSED, Closed),
    row("data with two LFs behind it is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n\
abc\n\n0\r\n\r\n",
        REFUSED, Closed),
    row("data with a blank before its line end is refused", "RFC 9112 7.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc \r\n\
0\r\n\r\n",
        REFUSED, Closed),
    row("a trailer that ends in an empty line of LF alone is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nX: y\r\n\n",
        REFUSED, Closed),
    row("a trailer with a blank before its colon is refused", "RFC 9112 5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nX : y\r\n\r\n",
        REFUSED, Closed),
    row("a trailer with a blank before its name is refused", "RFC 9112 5.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\n X: y\r\n\r\n",
        REFUSED, Closed),
    row("a trailer without a name is refused", "RFC 9112 5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\n: y\r\n\r\n",
        REFUSED, Closed),
    row("a trailer with a NUL is refused", "RFC 9110 5.5",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nX: \0\r\n\r\n",
        REFUSED, Closed),
    row("a trailer with a CR in its value is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nX: a\rb\r\n\r\n",
        REFUSED, Closed),
    row("an end of LF alone behind the last chunk is refused", "RFC 9112 2.2",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\n\n",
        REFUSED, Closed),
    row("a length in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nContent-Length: 50\r\n\r\n",
        WHOLE, Kept),
    row("a coding in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nTransfer-Encoding: chunked\r\n\r\n",
        WHOLE, Kept),
    row("a host in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nHost: evil.example\r\n\r\n",
        WHOLE, Kept),
    row("credentials in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nAuthorization: Bearer x\r\n\r\n",
        WHOLE, Kept),
    row("a type in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nContent-Type: text/evil\r\n\r\n",
        WHOLE, Kept),
    row("a length with an underscore in a trailer means nothing", "RFC 9110 6.5.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n\
0\r\nContent_Length: 50\r\n\r\n",
        WHOLE, Kept),
    // Bodies that a method does not use.
    row("the body of GET that begins a request is none", "RFC 9110 9.3.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n",
        WHOLE, Kept),
    row("a byte behind a length of nothing begins the next request", "RFC 9112 6.3",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\
XGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        WHOLE_AND_UNKNOWN, Kept),
    row("a byte behind a refused length of nothing is not read", "CWE-444",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n\
XGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        NOT_ALLOWED, Closed),
    row("a refused body that begins a request is none", "CWE-444",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 32\r\n\r\n\
GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        NOT_ALLOWED, Closed),
    row("a refused request with a malformed chunk is malformed", "RFC 9112 7.1",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\
\r\n",
        REFUSED, Closed),
    row("the body of HEAD is passed over", "RFC 9110 9.3.2",
        b"HEAD /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", TOLD, Kept),
    row("the body of OPTIONS of the server is passed over", "RFC 9110 9.3.7",
        b"OPTIONS * HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", OPTIONS, Kept),
    row("the body of TRACE ends the connection", "RFC 9110 9.3.8",
        b"TRACE / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /ten.txt HTTP/1.1\r\n\
Host: a\r\n\r\n",
        NOT_ALLOWED, Closed),
    row("an expectation of a refused request with its body there ends the connection", "RFC 9110 10.1.1",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n\
helloGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        NOT_ALLOWED, Closed),
    row("a second type of a refused body changes nothing", "RFC 9110 5.3",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\
Content-Type: text/html\r\n\r\nhello",
        NOT_ALLOWED, Closed),
    row("a range of a refused request is ignored", "RFC 9110 14.2",
        b"POST /ten.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nRange: bytes=0-1\r\n\r\nhello",
        NOT_ALLOWED, Closed),
    row("an expectation behind another word is unknown", "RFC 9110 10.1.1",
        b"GET /ten.txt HTTP/1.1\r\nHost: a\r\nExpect: y 100-continue\r\nContent-Length: 5\r\n\
\r\nhelloGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        EXPECTATION, Closed),
    row("CONNECT with a body is no tunnel", "RFC 9110 9.3.6",
        b"CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\n\
helloGET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n",
        NOT_IMPLEMENTED, Closed),
];
