//! Splits the text that a script returns into requests, and reports the first invalid one. Owns a parser that is as
//! lenient as wrk's. Start reading at [`split`].

use std::fmt;
use std::ops::Range;

/// What is wrong, and where: line and column from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    what: &'static str,
    line: usize,
    column: usize,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}:{}", self.what, self.line, self.column)
    }
}

/// Methods that wrk knows (http_parser 2).
const METHODS: [&str; 33] = [
    "DELETE",
    "GET",
    "HEAD",
    "POST",
    "PUT",
    "CONNECT",
    "OPTIONS",
    "TRACE",
    "COPY",
    "LOCK",
    "MKCOL",
    "MOVE",
    "PROPFIND",
    "PROPPATCH",
    "SEARCH",
    "UNLOCK",
    "BIND",
    "REBIND",
    "UNBIND",
    "ACL",
    "REPORT",
    "MKACTIVITY",
    "CHECKOUT",
    "MERGE",
    "M-SEARCH",
    "NOTIFY",
    "SUBSCRIBE",
    "UNSUBSCRIBE",
    "PATCH",
    "PURGE",
    "MKCALENDAR",
    "LINK",
    "UNLINK",
];

const INCOMPLETE: &str = "incomplete request";

/// The range of each request; they follow each other up to the end.
///
/// # Errors
/// wrk's message.
pub(super) fn split(bytes: &[u8]) -> Result<Vec<Range<usize>>, Wrong> {
    let mut reader = Reader { bytes, at: 0 };
    let mut found = Vec::new();
    loop {
        let start = reader.at;
        match reader.request() {
            Ok(()) => found.push(start..reader.at),
            Err(what) => return Err(reader.wrong(what)),
        }
        if reader.at == bytes.len() {
            return Ok(found);
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, what: &'static str) -> Wrong {
        let before = &self.bytes[..self.at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
        Wrong { what, line, column }
    }

    fn next(&self) -> Result<u8, &'static str> {
        self.bytes.get(self.at).copied().ok_or(INCOMPLETE)
    }

    /// Reads up to that byte and skips it; all bytes before it must be allowed.
    fn until(
        &mut self,
        end: u8,
        may: impl Fn(u8) -> bool,
        wrong: &'static str,
    ) -> Result<Range<usize>, &'static str> {
        let start = self.at;
        while self.next()? != end {
            if !may(self.next()?) {
                return Err(wrong);
            }
            self.at += 1;
        }
        self.at += 1;
        Ok(start..self.at - 1)
    }

    /// Reads up to the end of a line, without the CR before it.
    fn line(&mut self) -> Result<Range<usize>, &'static str> {
        let line = self.until(b'\n', |_| true, INCOMPLETE)?;
        let has_cr = self.bytes[line.clone()].ends_with(b"\r");
        Ok(line.start..line.end - usize::from(has_cr))
    }

    fn request(&mut self) -> Result<(), &'static str> {
        // Empty lines before a request are skipped.
        while matches!(self.next()?, b'\r' | b'\n') {
            self.at += 1;
        }
        let start = self.at;
        self.method()?;
        if !matches!(self.next()?, b'/' | b'*' | b'a'..=b'z' | b'A'..=b'Z') {
            return Err("invalid URL");
        }
        let is_connect = self.bytes[start..].starts_with(b"CONNECT ");
        if self.next()?.is_ascii_alphabetic() && !is_connect {
            // A scheme, as in a request to a proxy.
            while self.next()?.is_ascii_alphabetic() {
                self.at += 1;
            }
            for expected in *b"://" {
                if self.next()? != expected {
                    return Err("invalid URL");
                }
                self.at += 1;
            }
        }
        self.until(b' ', |byte| byte > b' ' && byte != 0x7f, "invalid URL")?;
        let version = self.line()?;
        if !is_version(&self.bytes[version.clone()]) {
            self.at = version.start;
            return Err("invalid HTTP version");
        }
        let (mut length, mut is_chunked) = (0, false);
        loop {
            if matches!(self.next()?, b'\r' | b'\n') {
                self.line()?;
                break;
            }
            let name = self.until(b':', is_token, "invalid character in header")?;
            let value = self.line()?;
            let (name, value) = (&self.bytes[name], self.bytes[value].trim_ascii());
            if name.eq_ignore_ascii_case(b"content-length") {
                let digits = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                length = digits.ok_or("invalid character in content-length header")?;
            }
            is_chunked |= name.eq_ignore_ascii_case(b"transfer-encoding")
                && value.to_ascii_lowercase().ends_with(b"chunked");
        }
        if is_chunked { self.chunks() } else { self.skip(length) }
    }

    fn method(&mut self) -> Result<(), &'static str> {
        let start = self.at;
        loop {
            let typed = &self.bytes[start..self.at];
            let begins = |method: &&str| method.as_bytes().starts_with(typed);
            let byte = self.next()?;
            if byte == b' ' && METHODS.iter().any(|method| method.as_bytes() == typed) {
                self.at += 1;
                return Ok(());
            }
            let goes_on = METHODS.iter().filter(|method| begins(method));
            if !goes_on.clone().any(|method| method.as_bytes().get(typed.len()) == Some(&byte)) {
                return Err("invalid HTTP method");
            }
            self.at += 1;
        }
    }

    fn skip(&mut self, n_bytes: usize) -> Result<(), &'static str> {
        let end = self.at.saturating_add(n_bytes);
        self.at = end.min(self.bytes.len());
        if end > self.bytes.len() { Err(INCOMPLETE) } else { Ok(()) }
    }

    fn chunks(&mut self) -> Result<(), &'static str> {
        loop {
            let line = self.line()?;
            let digits = self.bytes[line].split(|byte| *byte == b';').next().unwrap_or_default();
            let digits = std::str::from_utf8(digits.trim_ascii()).unwrap_or("");
            let size = usize::from_str_radix(digits, 16);
            let size = size.map_err(|_| "invalid character in chunk size header")?;
            if size == 0 {
                // Trailers, then an empty line.
                while !self.line()?.is_empty() {}
                return Ok(());
            }
            self.skip(size)?;
            self.line()?;
        }
    }
}

fn is_version(text: &[u8]) -> bool {
    let [major, b'.', minor] = text.strip_prefix(b"HTTP/").unwrap_or_default() else {
        return false;
    };
    major.is_ascii_digit() && minor.is_ascii_digit()
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~ ".contains(&byte)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GET: &str = "GET /a?b HTTP/1.1\r\nHost: h\r\n\r\n";
    const POST: &str = "POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
    const CHUNKED: &str =
        "PUT / HTTP/1.0\nTransfer-Encoding: chunked\n\n3;x=y\r\nabc\r\n0\r\nT: 1\r\n\r\n";

    fn lengths(text: &str) -> Result<Vec<usize>, String> {
        let found = split(text.as_bytes()).map_err(|wrong| wrong.to_string())?;
        Ok(found.into_iter().map(|place| place.len()).collect())
    }

    #[test]
    fn requests_one_behind_the_other_are_told_apart() {
        let all = [GET, POST, CHUNKED, GET].concat();
        assert_eq!(lengths(&all), Ok(vec![GET.len(), POST.len(), CHUNKED.len(), GET.len()]));
    }

    /// Messages and positions are those of Debian's wrk.
    #[test]
    fn what_is_no_request_is_told_as_wrk_tells_it() {
        let cases = [
            ("", "incomplete request at 1:1"),
            ("12", "invalid HTTP method at 1:1"),
            ("hello world\r\n\r\n", "invalid HTTP method at 1:1"),
            ("nil / HTTP/1.1\r\n\r\n", "invalid HTTP method at 1:1"),
            ("GET nil HTTP/1.1\r\n\r\n", "invalid URL at 1:8"),
            ("GET / HTTP/1.1\r\nA: b\r\n", "incomplete request at 3:1"),
            (
                "POST / HTTP/1.1\r\nContent-Length: 3\r\nHost: h\r\n\r\nabcx",
                "invalid HTTP method at 5:4",
            ),
        ];
        for (text, told) in cases {
            assert_eq!(lengths(text), Err(told.to_owned()), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn whatever_a_script_gives_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(found) = split(&bytes) {
                prop_assert_eq!(found.last().map(|place| place.end), Some(bytes.len()));
            }
        }
    }
}
