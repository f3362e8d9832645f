//! Owns how the length of a body is decided, for both roles with the differences of RFC 9112, 6.3, and whether the
//! connection is kept alive. Start reading at [`Framing`].

use httparse::Header;

use crate::head::Version;
use crate::tokens;

/// How the end of a body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// After this many bytes.
    Length(u64),
    /// By the last chunk.
    Chunked,
    /// When the peer closes. Replies only.
    UntilClose,
}

/// Fields that contradict each other about the length of a body, or have unsupported values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FramingFault {
    /// RFC 9110, 8.6.
    #[error("Content-Length is not a number of digits that fits 64 bits")]
    Length,
    /// RFC 9112, 6.3, 5.
    #[error("Content-Length is given twice with different values")]
    LengthsDiffer,
    /// A recipient may accept equal ones as one (RFC 9110, 8.6). In a request we reject them, because a proxy before us
    /// may have used another rule.
    #[error("Content-Length of a request is given more than once")]
    LengthRepeated,
    /// RFC 9112, 6.1: used for request smuggling and response splitting.
    #[error("both Content-Length and Transfer-Encoding are given")]
    LengthAndCoding,
    /// RFC 9112, 6.1: "the framing is faulty".
    #[error("Transfer-Encoding in an HTTP/1.0 message")]
    CodingInHttp10,
    /// RFC 9112, 6.3, 4 and 7: the end of the body is unknown.
    #[error("Transfer-Encoding does not end in `chunked`, or has it twice or with a parameter")]
    Coding,
    /// RFC 9112, 6.1. The end of the body is known, but not its content.
    #[error("a transfer coding before `chunked` is not implemented")]
    CodingUnknown,
    /// It has no meaning, but CGI and similar interfaces read `_` as `-`: a proxy before us may have determined the
    /// body's end from it.
    #[error("a field name is Content-Length or Transfer-Encoding with `_` instead of `-`")]
    ObscuredName,
}

/// What the fields of a head say about framing and about the connection.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FramingFields {
    /// Content-Length.
    pub(crate) length: Option<u64>,
    /// Transfer-Encoding: chunked.
    pub(crate) chunked: bool,
    /// Content-Length has several equal values.
    pub(crate) length_repeated: bool,
    /// A field has the name of a framing field with `_` in place of `-`.
    pub(crate) obscured_name: bool,
    /// Transfer-Encoding names a coding before `chunked`.
    unknown_coding: bool,
    close: bool,
    keep_alive: bool,
}

impl FramingFields {
    /// Reads and checks the fields. Names are compared by length first: on the hot path most fields cost one comparison
    /// of integers.
    pub(crate) fn read(version: Version, fields: &[Header<'_>]) -> Result<Self, FramingFault> {
        let mut read = Self::default();
        for field in fields {
            match field.name.len() {
                10 if field.name.eq_ignore_ascii_case("connection") => read.connection(field.value),
                14 if field.name.eq_ignore_ascii_case("content-length") => {
                    read.content_length(field.value)?;
                }
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                    read.transfer_encoding(version, field.value)?;
                }
                14 | 17 => read.obscured_name |= is_obscured(field.name),
                _ => {}
            }
        }
        match read {
            Self { unknown_coding: true, chunked: false, .. } => Err(FramingFault::Coding),
            Self { chunked: true, length: Some(_), .. } => Err(FramingFault::LengthAndCoding),
            Self { unknown_coding: true, .. } => Err(FramingFault::CodingUnknown),
            read => Ok(read),
        }
    }

    /// What the fields say about the connection, if there is no body for them to describe (RFC 9112, 6.3, 1 and 2).
    /// Only a coding in HTTP/1.0 still matters: "close the connection after processing the message" (6.1). Cold: called
    /// if [`read`](Self::read) finds a fault.
    pub(crate) fn read_connection(version: Version, fields: &[Header<'_>]) -> Self {
        let mut read = Self::default();
        for field in fields {
            if field.name.eq_ignore_ascii_case("connection") {
                read.connection(field.value);
            }
            if field.name.eq_ignore_ascii_case("transfer-encoding") {
                read.close |= version == Version::Http10;
            }
        }
        read
    }

    fn connection(&mut self, value: &[u8]) {
        for token in tokens::list(value) {
            self.close |= token.eq_ignore_ascii_case(b"close");
            self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    /// Several equal values, in one field or in many, count as one (RFC 9112, 6.3, 5); anything but digits is rejected,
    /// including a sign and an empty element.
    fn content_length(&mut self, value: &[u8]) -> Result<(), FramingFault> {
        for element in value.split(|&byte| byte == b',').map(tokens::trim) {
            let length = parse_digits(element).ok_or(FramingFault::Length)?;
            if self.length.is_some_and(|earlier| earlier != length) {
                return Err(FramingFault::LengthsDiffer);
            }
            self.length_repeated |= self.length.is_some();
            self.length = Some(length);
        }
        Ok(())
    }

    fn transfer_encoding(&mut self, version: Version, value: &[u8]) -> Result<(), FramingFault> {
        if version == Version::Http10 {
            return Err(FramingFault::CodingInHttp10);
        }
        // The usual case: one comparison.
        if !self.chunked && value.eq_ignore_ascii_case(b"chunked") {
            self.chunked = true;
            return Ok(());
        }
        for coding in value.split(|&byte| byte == b',').map(tokens::trim) {
            let name = coding.split(|&byte| byte == b';').next().map(tokens::trim);
            let name = name.filter(|name| tokens::is_token(name)).ok_or(FramingFault::Coding)?;
            let is_chunked = name.eq_ignore_ascii_case(b"chunked");
            if self.chunked || (is_chunked && name.len() != coding.len()) {
                return Err(FramingFault::Coding);
            }
            self.chunked = is_chunked;
            self.unknown_coding |= !is_chunked;
        }
        Ok(())
    }

    /// Whether the sender allows another request on the connection (RFC 9112, 9.3).
    pub(crate) fn keeps_alive(&self, version: Version) -> bool {
        !self.close && (version == Version::Http11 || self.keep_alive)
    }
}

/// Whether the name would be that of a framing field if `_` were `-`.
fn is_obscured(name: &str) -> bool {
    let bytes = || name.bytes().map(|byte| if byte == b'_' { b'-' } else { byte });
    let is = |known: &str| bytes().map(|byte| byte.to_ascii_lowercase()).eq(known.bytes());
    is("content-length") || is("transfer-encoding")
}

/// A number that consists only of digits; `None` otherwise, or if it does not fit.
pub(crate) fn parse_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_digits_that_fit_are_a_length() {
        let cases: [(&[u8], Option<u64>); 9] = [
            (b"0", Some(0)),
            (b"0042", Some(42)),
            (b"18446744073709551615", Some(u64::MAX)),
            (b"18446744073709551616", None),
            (b"", None),
            (b"+3", None),
            (b"-3", None),
            (b"0x10", None),
            (b"1 2", None),
        ];
        for (text, number) in cases {
            assert_eq!(parse_digits(text), number, "{}", text.escape_ascii());
        }
    }
}
