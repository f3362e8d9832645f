//! Owns the head of a CGI program's answer (RFC 3875, 6): it is checked, and filtered for the client. FastCGI
//! applications answer with the same. Start reading at [`CgiHead::read`].
//!
//! It is strict about what attackers have used through programs: a CR or NUL within a line, a folded line, an invalid
//! name, or two lengths reject the whole answer (Apache CVE-2023-38709, CVE-2024-24795, CVE-2024-42516). Connection
//! fields, `Date` and `Server` belong to the server and are dropped. No field ever decides who handles a request
//! (CVE-2024-38476).

use crate::framing::parse_digits;
use crate::head::is_field_value;
use crate::status::reason_phrase;
use crate::tokens::{is_token, trim};

/// Most fields of a head.
const FIELDS_MAX: usize = 128;

/// Why an answer is rejected; the client gets a 502.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CgiFault {
    /// It ended, or contained only a body.
    #[error("it ended before the empty line that ends the head of its answer")]
    Incomplete,
    /// See `head_bytes_max`.
    #[error("the head of its answer is longer than `head_bytes_max`, or the empty line is missing")]
    TooLong,
    /// More than 128.
    #[error("the head of its answer has more than 128 fields")]
    TooManyFields,
    /// RFC 3875, 5 and 6.3.1.
    #[error(
        "its answer begins with a status line, as of a program that speaks HTTP itself (NPH), \
         which is not supported: it must begin with a field, as in `Status: 200`"
    )]
    StatusLine,
    /// RFC 3875, 6.3.
    #[error("a line of its head is not a field, as in `Name: value`")]
    Field,
    /// To another reader it would be two lines.
    #[error("a value in its head has a control character")]
    Value,
    /// RFC 3875, 6.3.3.
    #[error("its `Status` is not a number from 200 to 599")]
    Status,
    /// RFC 9112, 6.3.
    #[error("its `Content-Length` is not a number, or there are two")]
    ContentLength,
    /// RFC 3875, 6.3.
    #[error("one of `Status`, `Location`, `Content-Type` appears twice in its head")]
    Repeated,
    /// RFC 3875, 6.2.
    #[error("its head has none of `Content-Type`, `Location` and `Status`")]
    NoCgiField,
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgiHead {
    /// Length of the head in bytes; the body follows.
    pub len: usize,
    /// Status code; RFC 3875's default if the program gives none.
    pub status: u16,
    /// The program's reason phrase, or the standard one of the code.
    pub reason: String,
    /// Length of the body, if the program gives it.
    pub content_length: Option<u64>,
    /// Path and query within the server whose content is the answer (6.2.2).
    pub local_redirect: Option<String>,
    /// The fields for the client, whole lines, each with its CRLF.
    pub fields: Vec<u8>,
}

impl CgiHead {
    /// Reads the head at the start of the program's output so far; `ended`: there is no more output. `None`: the head
    /// is incomplete.
    ///
    /// # Errors
    /// See [`CgiFault`].
    pub fn read(
        bytes: &[u8],
        ended: bool,
        head_bytes_max: usize,
    ) -> Result<Option<Self>, CgiFault> {
        if bytes.starts_with(b"HTTP/") {
            return Err(CgiFault::StatusLine);
        }
        let mut seen = CgiFields::default();
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let line = rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end]);
            rest = &rest[end + 1..];
            let len = bytes.len() - rest.len();
            if len > head_bytes_max {
                return Err(CgiFault::TooLong);
            }
            if line.is_empty() {
                return seen.head(len).map(Some);
            }
            seen.field(line)?;
        }
        match bytes.len() > head_bytes_max {
            true => Err(CgiFault::TooLong),
            false if ended => Err(CgiFault::Incomplete),
            false => Ok(None),
        }
    }
}

/// The fields read from a head.
#[derive(Default)]
struct CgiFields<'a> {
    count: usize,
    status: Option<(u16, &'a [u8])>,
    location: Option<&'a [u8]>,
    has_content_type: bool,
    content_length: Option<u64>,
    fields: Vec<u8>,
}

impl<'a> CgiFields<'a> {
    fn field(&mut self, line: &'a [u8]) -> Result<(), CgiFault> {
        self.count += 1;
        if self.count > FIELDS_MAX {
            return Err(CgiFault::TooManyFields);
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(CgiFault::Field)?;
        let (name, value) = (&line[..colon], trim(&line[colon + 1..]));
        if !is_token(name) {
            return Err(CgiFault::Field);
        }
        if !is_field_value(value) {
            return Err(CgiFault::Value);
        }
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("status") {
            return match self.status.replace(status(value)?) {
                None => Ok(()),
                Some(_) => Err(CgiFault::Repeated),
            };
        }
        if is("content-length") {
            let length = parse_digits(value).ok_or(CgiFault::ContentLength)?;
            return match self.content_length.replace(length) {
                None => Ok(()),
                Some(_) => Err(CgiFault::ContentLength),
            };
        }
        if OF_THE_SERVER.into_iter().any(is) {
            return Ok(());
        }
        let repeats = match () {
            () if is("location") => self.location.replace(value).is_some(),
            () if is("content-type") => std::mem::replace(&mut self.has_content_type, true),
            () => false,
        };
        if repeats {
            return Err(CgiFault::Repeated);
        }
        for part in [name, b": ", value, b"\r\n"] {
            self.fields.extend_from_slice(part);
        }
        Ok(())
    }

    fn head(self, len: usize) -> Result<CgiHead, CgiFault> {
        if self.status.is_none() && self.location.is_none() && !self.has_content_type {
            return Err(CgiFault::NoCgiField);
        }
        let local = self.location.filter(|_| self.status.is_none()).and_then(local_target);
        let default = if self.location.is_some() { 302 } else { 200 };
        let (status, reason) = self.status.unwrap_or((default, b""));
        let reason = std::str::from_utf8(reason).ok().filter(|reason| !reason.is_empty());
        Ok(CgiHead {
            len,
            status,
            reason: reason.unwrap_or_else(|| reason_phrase(status)).to_owned(),
            content_length: self.content_length,
            local_redirect: local.map(str::to_owned),
            fields: self.fields,
        })
    }
}

/// Connection fields, which end here, and two fields that the server sends itself.
const OF_THE_SERVER: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "te",
    "trailer",
    "upgrade",
    "proxy-authenticate",
    "date",
    "server",
];

/// Code and reason phrase of a `Status`.
fn status(value: &[u8]) -> Result<(u16, &[u8]), CgiFault> {
    let digits = value.get(..3).unwrap_or_default();
    let code = parse_digits(digits).filter(|code| (200..600).contains(code));
    let reason = match &value[digits.len()..] {
        [] => &b""[..],
        [b' ', reason @ ..] => trim(reason),
        _ => return Err(CgiFault::Status),
    };
    code.and_then(|code| u16::try_from(code).ok())
        .map(|code| (code, reason))
        .ok_or(CgiFault::Status)
}

/// A path and query of this server (6.3.2). Two slashes at the start would name another server to a client, and a
/// fragment is meant for a client too.
fn local_target(location: &[u8]) -> Option<&str> {
    let is_local = location.starts_with(b"/") && !location.starts_with(b"//");
    let is_plain = location.iter().all(|&byte| byte.is_ascii_graphic() && byte != b'#');
    (is_local && is_plain).then(|| std::str::from_utf8(location).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<CgiHead, CgiFault> {
        CgiHead::read(text.as_bytes(), true, 1000).map(|head| head.expect("it has ended"))
    }

    #[test]
    fn a_document_and_both_redirects_are_those_of_rfc_3875() {
        let document = read("Content-Type: text/plain\nX-A:  b \n\nbody\n\n").unwrap();
        assert_eq!((document.status, document.len), (200, 35));
        assert_eq!(document.fields, b"Content-Type: text/plain\r\nX-A: b\r\n");
        assert_eq!(document.reason, "OK");
        let local = read("Location: /a/b?c=d\r\n\r\n").unwrap();
        assert_eq!(local.local_redirect.as_deref(), Some("/a/b?c=d"));
        let client = read("Location: http://other/\n\n").unwrap();
        assert_eq!((client.status, client.local_redirect), (302, None));
        let with_document = read("Status: 301 Moved\nLocation: /a\nContent-Type: a/b\n\n").unwrap();
        assert_eq!((with_document.status, with_document.local_redirect), (301, None));
        for elsewhere in ["//other/", "/a#b", "/a b"] {
            let head = read(&format!("Location: {elsewhere}\n\n")).unwrap();
            assert_eq!((head.status, head.local_redirect), (302, None), "{elsewhere}");
        }
        let reason = read("Status: 404 Nothing here\n\n").unwrap();
        assert_eq!((reason.status, &reason.reason[..]), (404, "Nothing here"));
    }

    #[test]
    fn what_is_the_servers_is_dropped_and_the_length_is_told() {
        let head = read(
            "Content-Type: a/b\nConnection: close\nTransfer-Encoding: chunked\nDate: never\n\
             Server: x\nContent-Length: 12\n\n",
        );
        let head = head.unwrap();
        assert_eq!(head.fields, b"Content-Type: a/b\r\n");
        assert_eq!(head.content_length, Some(12));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("", CgiFault::Incomplete),
            ("Content-Type: a/b\n", CgiFault::Incomplete),
            ("HTTP/1.0 200 OK\nContent-Type: a/b\n\n", CgiFault::StatusLine),
            ("\nbody", CgiFault::NoCgiField),
            ("X-A: b\n\n", CgiFault::NoCgiField),
            ("no field\n\n", CgiFault::Field),
            ("Content-Type: a\n b\n\n", CgiFault::Field),
            ("X A: b\n\n", CgiFault::Field),
            ("A : b\n\n", CgiFault::Field),
            (": b\n\n", CgiFault::Field),
            ("Content-Type: a\rSet-Cookie: b\n\n", CgiFault::Value),
            ("Content-Type: a\0\n\n", CgiFault::Value),
            ("Status: 99\n\n", CgiFault::Status),
            ("Status: 101 Switching\n\n", CgiFault::Status),
            ("Status: 2000\n\n", CgiFault::Status),
            ("Status:\n\n", CgiFault::Status),
            ("Status: 200\nStatus: 201\n\n", CgiFault::Repeated),
            ("Content-Type: a/b\nContent-Type: c/d\n\n", CgiFault::Repeated),
            ("Content-Length: -1\n\n", CgiFault::ContentLength),
            ("Content-Length: 1\nContent-Length: 1\n\n", CgiFault::ContentLength),
        ];
        for (text, fault) in cases {
            assert_eq!(read(text), Err(fault), "{text:?}");
        }
        let long = format!("X-A: {}\n\n", "b".repeat(1000));
        assert_eq!(read(&long), Err(CgiFault::TooLong));
        let endless = "b".repeat(1001);
        assert_eq!(CgiHead::read(endless.as_bytes(), false, 1000), Err(CgiFault::TooLong));
        let many = "A: b\n".repeat(129) + "\n";
        assert_eq!(read(&many), Err(CgiFault::TooManyFields));
    }

    proptest! {
        /// Whatever a program writes: no panic, and only whole field lines are passed on.
        #[test]
        fn no_bytes_split_the_answer(bytes in "((Status|Location|X-A|[a-z]{0,3}):? ?[ -~\\x00\\r]{0,8}\r?\n){0,6}\n?[ -~\n]{0,9}") {
            for end in 0..=bytes.len() {
                let _ = CgiHead::read(&bytes.as_bytes()[..end.min(bytes.len())], false, 50);
            }
            if let Ok(Some(head)) = CgiHead::read(bytes.as_bytes(), true, 1000) {
                let fields = String::from_utf8(head.fields).unwrap();
                for line in fields.split_terminator("\r\n") {
                    prop_assert!(line.contains(": ") && !line.contains(['\r', '\n', '\0']));
                }
                prop_assert!(head.len <= bytes.len());
            }
        }
    }
}
