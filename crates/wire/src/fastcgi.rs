//! Owns FastCGI (the 1.0 specification) from a server to an application: records written, records read. Start reading
//! at [`Reader::read`] and [`write_begin`].
//!
//! A connection carries one request at a time, as every application expects (FCGI_MPXS_CONNS is 0 in all common ones),
//! so the request number is always 1.

/// Bytes before the content of a record.
const HEADER_LEN: usize = 8;

/// Most bytes of content that we put into one record: the largest multiple of 8 that fits, so that only the last record
/// is padded.
const CONTENT_MAX: usize = 65_528;

/// FCGI_VERSION_1.
const VERSION: u8 = 1;

/// The number of our only request.
const REQUEST: u16 = 1;

/// Types of records (8. Types and constants).
const BEGIN_REQUEST: u8 = 1;
const END_REQUEST: u8 = 3;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;

/// Bytes of FCGI_EndRequestBody.
const END_LEN: usize = 8;

/// FCGI_RESPONDER.
const RESPONDER: u8 = 1;

/// FCGI_KEEP_CONN.
const KEEP_CONN: u8 = 1;

/// A stream from a server to an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The variables, as [`write_pair`] makes them.
    Params,
    /// The body of the request.
    Stdin,
}

impl Stream {
    fn kind(self) -> u8 {
        match self {
            Self::Params => 4,
            Self::Stdin => 5,
        }
    }
}

/// Begins a request. `keeps`: the application must not close the connection after it.
pub fn write_begin(out: &mut Vec<u8>, keeps: bool) {
    let body = [0, RESPONDER, if keeps { KEEP_CONN } else { 0 }, 0, 0, 0, 0, 0];
    write_record(out, BEGIN_REQUEST, &body);
}

/// Appends a variable to the content of [`Stream::Params`] (3.4).
pub fn write_pair(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    for part in [name, value] {
        match u8::try_from(part.len()) {
            Ok(len) if len < 128 => out.push(len),
            _ => {
                // A variable comes from a request's head or from a configuration, so it is short.
                let len = u32::try_from(part.len()).expect("a variable is shorter than 2 GiB");
                out.extend_from_slice(&(len | 1 << 31).to_be_bytes());
            }
        }
    }
    out.extend_from_slice(name);
    out.extend_from_slice(value);
}

/// Appends content of a stream, in as many records as it needs. Empty content makes no record, because an empty record
/// ends the stream.
pub fn write_stream(out: &mut Vec<u8>, stream: Stream, content: &[u8]) {
    for part in content.chunks(CONTENT_MAX) {
        write_record(out, stream.kind(), part);
    }
}

/// Ends a stream.
pub fn write_end(out: &mut Vec<u8>, stream: Stream) {
    write_record(out, stream.kind(), &[]);
}

fn write_record(out: &mut Vec<u8>, kind: u8, content: &[u8]) {
    let len = u16::try_from(content.len()).expect("a record holds 64 KiB at most");
    let padding = len.wrapping_neg().to_be_bytes()[1] & 7;
    let [id_high, id_low] = REQUEST.to_be_bytes();
    let [len_high, len_low] = len.to_be_bytes();
    out.extend_from_slice(&[VERSION, kind, id_high, id_low, len_high, len_low, padding, 0]);
    out.extend_from_slice(content);
    out.extend_from_slice(&[0; 7][..usize::from(padding)]);
}

/// How an application ended a request (FCGI_EndRequestBody).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The exit status that a CGI program would have.
    pub app_status: u32,
    /// The protocol status.
    pub outcome: Outcome,
}

/// The protocol status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The application processed it.
    Complete,
    /// The application takes one request per connection, and took this for another one.
    CannotMultiplex,
    /// The application is overloaded.
    Overloaded,
    /// The application is not a responder.
    UnknownRole,
    /// A number that the specification does not define.
    Unknown(u8),
}

/// Why an application's bytes cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FastCgiFault {
    /// Probably not FastCGI.
    #[error("its answer is not FastCGI: the version of a record is {0}, but must be 1")]
    Version(u8),
    /// For a request that was not made.
    #[error("it answers request {0}, but the only request is 1")]
    Request(u16),
    /// Not 8 bytes.
    #[error("its end of the request has {0} bytes, but must have 8")]
    EndLength(u16),
    /// Data after the end of the request.
    #[error("it sends data after the end of the request")]
    AfterEnd,
}

/// The content of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// All bytes were used, and more are to come.
    NeedMore,
    /// A part of the answer, at least one byte.
    Stdout(&'a [u8]),
    /// For the error log, at least one byte.
    Stderr(&'a [u8]),
    /// The request has ended. Nothing may follow.
    End(Ended),
}

/// Reads an application's records for one request.
#[derive(Debug, Clone, Default)]
pub struct Reader {
    header: [u8; HEADER_LEN],
    /// Bytes of `header` received; all 8 within a record.
    header_len: usize,
    /// Remaining bytes of the record's content, and of its padding.
    content_left: usize,
    padding_left: usize,
    end: [u8; END_LEN],
    ended: bool,
}

impl Reader {
    /// Takes the next bytes; the first part of the result is the number of bytes used. Call it again with the rest
    /// until [`Piece::NeedMore`] or [`Piece::End`].
    ///
    /// # Errors
    /// The connection is unusable.
    pub fn read<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), FastCgiFault> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            if self.header_len == HEADER_LEN && self.content_left == 0 && self.padding_left == 0 {
                self.header_len = 0;
                if self.header[1] == END_REQUEST && self.is_ours() {
                    self.ended = true;
                    return Ok((used, Piece::End(ended(self.end))));
                }
            }
            if rest.is_empty() {
                return Ok((used, Piece::NeedMore));
            }
            if self.ended {
                return Err(FastCgiFault::AfterEnd);
            }
            if self.header_len < HEADER_LEN {
                used += self.take_header(rest)?;
            } else if self.content_left > 0 {
                let count = self.content_left.min(rest.len());
                used += count;
                if let Some(piece) = self.take_content(&rest[..count]) {
                    return Ok((used, piece));
                }
            } else {
                let count = self.padding_left.min(rest.len());
                self.padding_left -= count;
                used += count;
            }
        }
    }

    fn take_header(&mut self, bytes: &[u8]) -> Result<usize, FastCgiFault> {
        let count = bytes.len().min(HEADER_LEN - self.header_len);
        self.header[self.header_len..][..count].copy_from_slice(&bytes[..count]);
        self.header_len += count;
        if self.header[0] != VERSION {
            return Err(FastCgiFault::Version(self.header[0]));
        }
        if self.header_len == HEADER_LEN {
            let [_, kind, id_high, id_low, len_high, len_low, padding, _] = self.header;
            let id = u16::from_be_bytes([id_high, id_low]);
            let len = u16::from_be_bytes([len_high, len_low]);
            // 0 marks records of the connection (management records), which we never request.
            if id != REQUEST && id != 0 {
                return Err(FastCgiFault::Request(id));
            }
            if kind == END_REQUEST && id == REQUEST && usize::from(len) != END_LEN {
                return Err(FastCgiFault::EndLength(len));
            }
            (self.content_left, self.padding_left) = (len.into(), padding.into());
        }
        Ok(count)
    }

    /// Whether the record belongs to our request, and not to the connection.
    fn is_ours(&self) -> bool {
        self.header[2..4] == REQUEST.to_be_bytes()
    }

    fn take_content<'a>(&mut self, content: &'a [u8]) -> Option<Piece<'a>> {
        let at = END_LEN.saturating_sub(self.content_left);
        self.content_left -= content.len();
        match self.header[1] {
            _ if !self.is_ours() => None,
            STDOUT => Some(Piece::Stdout(content)),
            STDERR => Some(Piece::Stderr(content)),
            END_REQUEST => {
                self.end[at..at + content.len()].copy_from_slice(content);
                None
            }
            // Unknown record types are skipped.
            _ => None,
        }
    }
}

fn ended(body: [u8; END_LEN]) -> Ended {
    let [a, b, c, d, status, ..] = body;
    let outcome = match status {
        0 => Outcome::Complete,
        1 => Outcome::CannotMultiplex,
        2 => Outcome::Overloaded,
        3 => Outcome::UnknownRole,
        other => Outcome::Unknown(other),
    };
    Ended { app_status: u32::from_be_bytes([a, b, c, d]), outcome }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Output, errors, and the end.
    type Said = (Vec<u8>, Vec<u8>, Option<Ended>);

    /// Everything that `bytes`, read in pieces of `size`, contain.
    fn read(bytes: &[u8], size: usize) -> Result<Said, FastCgiFault> {
        let mut reader = Reader::default();
        let (mut out, mut err, mut end) = (Vec::new(), Vec::new(), None);
        for piece in bytes.chunks(size.max(1)) {
            let mut rest = piece;
            loop {
                let (used, piece) = reader.read(rest)?;
                rest = &rest[used..];
                match piece {
                    Piece::NeedMore => break,
                    Piece::Stdout(bytes) => out.extend_from_slice(bytes),
                    Piece::Stderr(bytes) => err.extend_from_slice(bytes),
                    Piece::End(ended) => end = Some(ended),
                }
            }
        }
        Ok((out, err, end))
    }

    #[test]
    fn records_are_those_of_the_specification() {
        let mut out = Vec::new();
        write_begin(&mut out, true);
        assert_eq!(out, [1, 1, 0, 1, 0, 8, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]);
        let mut pairs = Vec::new();
        write_pair(&mut pairs, b"A", b"bc");
        write_pair(&mut pairs, b"", &[b'x'; 128]);
        assert_eq!(pairs[..5], *b"\x01\x02Abc");
        assert_eq!(pairs[5..10], [0, 0x80, 0, 0, 128]);
        out.clear();
        write_stream(&mut out, Stream::Stdin, b"hello");
        write_end(&mut out, Stream::Stdin);
        let expected = b"\x01\x05\0\x01\0\x05\x03\0hello\0\0\0\x01\x05\0\x01\0\0\0\0";
        assert_eq!(out, expected);
        out.clear();
        write_stream(&mut out, Stream::Params, &[7; 70_000]);
        assert_eq!((out[4], out[5], out[6]), (0xff, 0xf8, 0));
        assert_eq!(out.len() % 8, 0);
        out.clear();
        write_stream(&mut out, Stream::Stdin, b"");
        assert!(out.is_empty(), "an empty record would end the stream");
    }

    #[test]
    fn what_is_no_answer_is_named() {
        assert_eq!(read(b"HTTP/1.1 400", 100), Err(FastCgiFault::Version(b'H')));
        assert_eq!(read(&[1, STDOUT, 0, 2, 0, 1, 0, 0, 9], 100), Err(FastCgiFault::Request(2)));
        assert_eq!(read(&[1, END_REQUEST, 0, 1, 0, 4, 0, 0], 100), Err(FastCgiFault::EndLength(4)));
        let mut twice = Vec::new();
        write_record(&mut twice, END_REQUEST, &[0; 8]);
        twice.extend_from_within(..);
        assert_eq!(read(&twice, 100), Err(FastCgiFault::AfterEnd));
        let overloaded = [1, END_REQUEST, 0, 1, 0, 8, 0, 0, 0, 0, 1, 2, 2, 0, 0, 0];
        let ended = read(&overloaded, 3).unwrap().2.unwrap();
        assert_eq!((ended.app_status, ended.outcome), (258, Outcome::Overloaded));
    }

    proptest! {
        #[test]
        fn streams_come_back_whole_in_any_pieces(
            parts in prop::collection::vec((any::<bool>(), prop::collection::vec(any::<u8>(), 1..300)), 0..12),
            size in 1usize..500,
        ) {
            let (mut bytes, mut out, mut err) = (Vec::new(), Vec::new(), Vec::new());
            for (is_out, part) in &parts {
                write_record(&mut bytes, if *is_out { STDOUT } else { STDERR }, part);
                if *is_out { &mut out } else { &mut err }.extend_from_slice(part);
                // Records of the connection and of an unknown type are skipped.
                bytes.extend_from_slice(&[1, 10, 0, 0, 0, 2, 1, 0, 1, 2, 3, 1, 77, 0, 1, 0, 1, 0, 0, 4]);
            }
            write_record(&mut bytes, STDOUT, &[]);
            write_record(&mut bytes, END_REQUEST, &[0, 0, 0, 5, 0, 0, 0, 0]);
            let end = Some(Ended { app_status: 5, outcome: Outcome::Complete });
            prop_assert_eq!(read(&bytes, size), Ok((out, err, end)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(prop_oneof![0u8..8, any::<u8>()], 0..200), size in 1usize..50) {
            let _ = read(&bytes, size);
        }

        #[test]
        fn a_true_beginning_and_then_anything_does_not_either(kind in 0u8..12, rest in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut bytes = vec![1, kind, 0, 1];
            bytes.extend_from_slice(&rest);
            let _ = read(&bytes, 7);
        }
    }
}
