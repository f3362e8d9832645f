//! Owns what the heads of requests and replies have in common: the end of a head, what makes its lines invalid, and the
//! view of its fields. Start reading at [`Fields`]; the strictness beyond httparse is in [`lines_are_strict`].
//!
//! Cost: a head within one slice is read once, by httparse with SIMD, and then checked at two bytes per field. Only a
//! head that is split over several reads, or is wrong, is scanned by [`EndScanner`], which reads each byte once however
//! small the pieces are.

use httparse::Header;

use crate::tokens::{is_token, trim};

/// Most fields of a head, whatever its limits say: httparse writes them into an array on the stack.
pub const FIELDS_MAX: usize = 128;

/// Version of a message. Others are rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// From httparse's minor version, which is 0 or 1.
    pub(crate) fn from_minor(minor: u8) -> Self {
        if minor == 0 { Self::Http10 } else { Self::Http11 }
    }

    /// Its text in a start line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
        }
    }
}

/// What is wrong with a head, in either role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HeadFault {
    /// RFC 9112, 2.2 lets a recipient accept it as a line end; attackers can exploit two recipients that differ.
    #[error("a line of the head ends in LF without CR")]
    BareLf,
    /// RFC 9112, 2.2.
    #[error("a CR inside a line of the head")]
    BareCr,
    /// RFC 9112, 5.2.
    #[error("a field line is folded (obs-fold)")]
    ObsFold,
    /// RFC 9112, 5.1.
    #[error("white space between a field name and its colon")]
    SpaceBeforeColon,
    /// RFC 9110, 5.1.
    #[error("a field name is not a token")]
    FieldName,
    /// RFC 9110, 5.5.
    #[error("a control character in a field value")]
    FieldValue,
    /// RFC 9112, 3 and 4.
    #[error("the start line is malformed")]
    StartLine,
    /// RFC 9112, 3.
    #[error("the start line is longer than the limit")]
    StartLineTooLong,
    /// RFC 9110, 5.4.
    #[error("the head is longer than the limit")]
    TooLong,
    /// RFC 9110, 5.4.
    #[error("the head has more fields than the limit")]
    TooManyFields,
}

/// The fields of a head, in order, as a view of its bytes. Names and values were checked before.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'a> {
    /// Field lines, each with its line end, and the empty line.
    lines: &'a [u8],
}

impl<'a> Fields<'a> {
    /// The fields of a whole head that a parser has read before: start line, fields, empty line. An empty line before
    /// it is skipped, as parsers do.
    pub fn of_head(head: &'a [u8]) -> Self {
        let head = head.strip_prefix(b"\r\n").unwrap_or(head);
        let start = head.iter().position(|&byte| byte == b'\n').map_or(head.len(), |at| at + 1);
        Self { lines: &head[start..] }
    }

    /// `lines` begins after the start line and was checked.
    pub(crate) fn new(lines: &'a [u8]) -> Self {
        Self { lines }
    }

    /// Value of the first field of that name (in any case), without white space around it.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        self.all(name).next()
    }

    /// Values of all fields of that name (in any case), in order.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Name and value of every field, in order.
    pub fn iter(&self) -> FieldIter<'a> {
        FieldIter { lines: self.lines }
    }
}

impl<'a> IntoIterator for Fields<'a> {
    type Item = (&'a str, &'a [u8]);
    type IntoIter = FieldIter<'a>;

    fn into_iter(self) -> FieldIter<'a> {
        self.iter()
    }
}

/// Name and value of every field, in order.
#[derive(Debug, Clone)]
pub struct FieldIter<'a> {
    lines: &'a [u8],
}

impl<'a> Iterator for FieldIter<'a> {
    type Item = (&'a str, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        // In a checked head CR and LF are only at the end of a line; in a reply it may be LF alone.
        let end = self.lines.iter().position(|&byte| byte == b'\n')?;
        let line = self.lines[..end].strip_suffix(b"\r").unwrap_or(&self.lines[..end]);
        let colon = line.iter().position(|&byte| byte == b':')?;
        self.lines = &self.lines[end + 1..];
        let name = std::str::from_utf8(&line[..colon]).expect("a field name is a token, so ASCII");
        Some((name, trim(&line[colon + 1..])))
    }
}

/// The offset of `part` in `whole`, which contains it.
pub(crate) fn offset_in(whole: &[u8], part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

/// Whether every line of the head ends in CRLF. httparse accepts a bare LF as a line end, but rejects any other control
/// character and any line that does not begin with a name. So it is enough to check the two bytes before each name, and
/// the last four.
pub(crate) fn lines_are_strict(head: &[u8], fields: &[Header<'_>]) -> bool {
    let after_crlf = |field: &Header<'_>| head[..offset_in(head, field.name)].ends_with(b"\r\n");
    head.ends_with(b"\r\n\r\n") && fields.iter().all(after_crlf)
}

/// Where the field lines begin; in a head without fields, at the last line ends or after them.
pub(crate) fn fields_start(head: &[u8], fields: &[Header<'_>]) -> usize {
    fields.first().map_or(head.len() - 2, |field| offset_in(head, field.name))
}

/// Limits of a head.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HeadBounds {
    /// Bytes of the start line with its CRLF.
    pub(crate) start_line_max: usize,
    /// Bytes up to and including the empty line.
    pub(crate) head_max: usize,
    /// Number of field lines.
    pub(crate) fields_max: usize,
    /// What ends a line.
    pub(crate) line_end: LineEnd,
}

/// What a role accepts as the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineEnd {
    /// Only CRLF: for a server, which must read the same as a proxy before it.
    Strict,
    /// Also LF alone (RFC 9112, 2.2): for a client, because no other reader comes after it.
    BareLf,
}

/// Finds the end of a head over any number of pieces, and reads each byte once. A fault is found at the same position
/// however the bytes are divided.
#[derive(Debug, Clone, Default)]
pub(crate) struct EndScanner {
    /// Bytes of the head seen in earlier pieces.
    seen: usize,
    /// Where the current line began.
    line_start: usize,
    /// Complete field lines.
    n_fields: usize,
    /// Last byte of the earlier pieces.
    last: u8,
}

impl EndScanner {
    /// Bytes of the head seen so far.
    pub(crate) fn seen(&self) -> usize {
        self.seen
    }

    /// Whether the first line has not ended yet.
    pub(crate) fn is_in_first_line(&self) -> bool {
        self.line_start == 0
    }

    /// Scans the next piece. `Some(n)`: the head ends with the first n bytes of the piece.
    pub(crate) fn scan(
        &mut self,
        piece: &[u8],
        bounds: HeadBounds,
    ) -> Result<Option<usize>, HeadFault> {
        let mut at = 0;
        while let Some(distance) = piece[at..].iter().position(|&byte| byte == b'\n') {
            let lf = at + distance;
            let position = self.seen + lf;
            self.check_length(position, bounds)?;
            let before = if lf == 0 { self.last } else { piece[lf - 1] };
            let has_cr = before == b'\r';
            if !has_cr && bounds.line_end == LineEnd::Strict {
                return Err(HeadFault::BareLf);
            }
            let line_is_empty = position == self.line_start + usize::from(has_cr);
            at = lf + 1;
            if line_is_empty {
                return Ok(Some(at));
            }
            self.n_fields += usize::from(!self.is_in_first_line());
            self.line_start = position + 1;
            // Checked while scanning: otherwise field lines without end would be read until the sender stops.
            if self.n_fields > bounds.fields_max {
                return Err(HeadFault::TooManyFields);
            }
        }
        self.seen += piece.len();
        self.last = piece.last().copied().unwrap_or(self.last);
        self.check_length(self.seen, bounds)?;
        Ok(None)
    }

    /// Whether a line may end at `position` or later.
    fn check_length(&self, position: usize, bounds: HeadBounds) -> Result<(), HeadFault> {
        match position {
            _ if position >= bounds.start_line_max && self.line_start == 0 => {
                Err(HeadFault::StartLineTooLong)
            }
            _ if position >= bounds.head_max => Err(HeadFault::TooLong),
            _ => Ok(()),
        }
    }
}

/// Names what httparse rejected in a head that ends in an empty line and whose lines end in CRLF. `start_line` checks
/// the first line for the role. Cold: runs at most once per connection.
pub(crate) fn diagnose<E: From<HeadFault>>(
    head: &[u8],
    fields_max: usize,
    start_line: impl FnOnce(&[u8]) -> Result<(), E>,
) -> E {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| match line {
        [line @ .., b'\r'] => line,
        line => line,
    });
    let first = lines.next().unwrap_or_default();
    if first.contains(&b'\r') {
        return HeadFault::BareCr.into();
    }
    if let Err(error) = start_line(first) {
        return error;
    }
    for (index, line) in lines.take_while(|line| !line.is_empty()).enumerate() {
        if index == fields_max.min(FIELDS_MAX) {
            return HeadFault::TooManyFields.into();
        }
        if let Err(fault) = check_field_line(line) {
            return fault.into();
        }
    }
    // Reached only if httparse rejects what these rules allow; the head is rejected anyway.
    HeadFault::StartLine.into()
}

/// The rules of a field line, without its CRLF.
fn check_field_line(line: &[u8]) -> Result<(), HeadFault> {
    let name = line.split(|&byte| byte == b':').next().unwrap_or_default();
    let value = line.get(name.len() + 1..);
    match (line, name, value) {
        ([b' ' | b'\t', ..], ..) => Err(HeadFault::ObsFold),
        _ if line.contains(&b'\r') => Err(HeadFault::BareCr),
        (_, [.., b' ' | b'\t'], Some(_)) => Err(HeadFault::SpaceBeforeColon),
        (_, _, None) => Err(HeadFault::FieldName),
        _ if !is_token(name) => Err(HeadFault::FieldName),
        (.., Some(value)) if !is_field_value(value) => Err(HeadFault::FieldValue),
        _ => Ok(()),
    }
}

/// Whether every byte is allowed in a field value: no control character but HTAB (RFC 9110, 5.5).
pub(crate) fn is_field_value(value: &[u8]) -> bool {
    !value.iter().any(|&byte| byte.is_ascii_control() && byte != b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: HeadBounds =
        HeadBounds { start_line_max: 20, head_max: 40, fields_max: 3, line_end: LineEnd::Strict };

    /// The scanner's result for `bytes` in pieces of `size`, with the end counted from the start.
    fn scan_in_pieces(
        bytes: &[u8],
        size: usize,
        line_end: LineEnd,
    ) -> Result<Option<usize>, HeadFault> {
        let mut scanner = EndScanner::default();
        for (index, piece) in bytes.chunks(size).enumerate() {
            if let Some(end) = scanner.scan(piece, HeadBounds { line_end, ..BOUNDS })? {
                return Ok(Some(index * size + end));
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_or_the_fault_is_the_same_for_every_size_of_piece() {
        type Found = Result<Option<usize>, HeadFault>;
        let cases: [(&[u8], Found); 10] = [
            (b"GET / HTTP/1.1\r\n\r\nrest", Ok(Some(18))),
            (b"GET / HTTP/1.1\r\nA: b\r\n\r\n", Ok(Some(24))),
            (b"GET / HTTP/1.1\r\nA: b\r\n", Ok(None)),
            (b"GET / HTTP/1.1\nA: b\r\n\r\n", Err(HeadFault::BareLf)),
            (b"GET / HTTP/1.1\r\nA: b\r\n\n", Err(HeadFault::BareLf)),
            (b"\n", Err(HeadFault::BareLf)),
            (b"GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\n\r\n", Ok(Some(30))),
            (b"GET / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\nD:\r\n", Err(HeadFault::TooManyFields)),
            (b"GET /a-long-target-it-is HTTP/1.1\r\n", Err(HeadFault::StartLineTooLong)),
            (b"GET / HTTP/1.1\r\nA: 0123456789012345678901234567890\r\n", Err(HeadFault::TooLong)),
        ];
        for (bytes, expected) in cases {
            for size in 1..=bytes.len() {
                let found = scan_in_pieces(bytes, size, LineEnd::Strict);
                assert_eq!(found, expected, "{}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn where_lf_alone_ends_a_line_the_end_is_the_first_empty_line_of_either_kind() {
        let cases: [(&[u8], Option<usize>); 6] = [
            (b"HTTP/1.1 200 OK\n\nrest", Some(17)),
            (b"HTTP/1.1 200 OK\nA: b\n\n\n", Some(22)),
            (b"HTTP/1.1 200 OK\r\nA: b\n\r\n", Some(24)),
            (b"HTTP/1.1 200 OK\nA: b\r\n\n", Some(23)),
            (b"HTTP/1.1 200 OK\nA: b\n", None),
            (b"HTTP/1.1 200 OK\r\n\r\n", Some(19)),
        ];
        for (bytes, expected) in cases {
            for size in 1..=bytes.len() {
                let found = scan_in_pieces(bytes, size, LineEnd::BareLf);
                assert_eq!(found, Ok(expected), "{}", bytes.escape_ascii());
            }
        }
    }

    #[test]
    fn fields_are_found_in_order_and_in_any_case() {
        let fields = Fields::new(b"A: 1\r\nb:2 \na:\t3\r\nEmpty:\n\r\n");
        let all: Vec<_> = fields.iter().collect();
        assert_eq!(all, [("A", &b"1"[..]), ("b", b"2"), ("a", b"3"), ("Empty", b"")]);
        assert_eq!(fields.get("B"), Some(&b"2"[..]));
        assert_eq!(fields.all("a").collect::<Vec<_>>(), [b"1", b"3"]);
        assert_eq!(fields.get("c"), None);
    }
}
