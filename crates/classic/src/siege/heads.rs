//! Heads of replies, and decompressed pages. Owns how a field is found. Start reading at [`Head`].

use std::borrow::Cow;
use std::io::Read as _;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

/// Longest page that is parsed, decompressed.
const PAGE_MAX: u64 = 6 * 65_536;

/// The body of a page, decompressed.
pub(super) fn page(body: &[u8], head: &Head<'_>) -> String {
    let mut unpacked = Vec::new();
    let read = match head.last("content-encoding") {
        Some("gzip") => MultiGzDecoder::new(body).take(PAGE_MAX).read_to_end(&mut unpacked),
        Some("deflate") => DeflateDecoder::new(body).take(PAGE_MAX).read_to_end(&mut unpacked),
        _ => return String::from_utf8_lossy(body).into_owned(),
    };
    // If the compressed data breaks off, the part that was read.
    let bytes = if read.is_ok() || !unpacked.is_empty() { &unpacked } else { body };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The head of a reply.
pub(super) struct Head<'a> {
    lines: Vec<Cow<'a, str>>,
}

impl<'a> Head<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let lines = bytes.split(|byte| *byte == b'\n');
        Self { lines: lines.map(|line| text(line.strip_suffix(b"\r").unwrap_or(line))).collect() }
    }

    pub(super) fn protocol(&self) -> &str {
        self.lines.first().and_then(|line| line.get(..8)).unwrap_or("HTTP/1.1")
    }

    /// Values of all fields of that name.
    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &str> {
        self.lines.iter().skip(1).filter_map(move |line| {
            let (other, value) = line.split_once(':')?;
            other.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn last(&self, name: &'static str) -> Option<&str> {
        self.all(name).last()
    }

    pub(super) fn is_chunked(&self) -> bool {
        let last = self.last("transfer-encoding").and_then(|codings| codings.rsplit(',').next());
        last.is_some_and(|coding| coding.trim().eq_ignore_ascii_case("chunked"))
    }
}

/// A line as text. Bytes that are not UTF-8 are percent-encoded as in a URL, so that a redirect's target is requested
/// with the same bytes.
fn text(line: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(line) {
        return text.into();
    }
    let mut text = String::new();
    for chunk in line.utf8_chunks() {
        text += chunk.valid();
        text.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    text.into()
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    #[test]
    fn a_line_that_is_no_utf_8_stays_in_its_place() {
        let head = Head::read(b"HTTP/1.1 302 N\xe3o\r\nX: 1\r\nLocation: /\xe9t\xc3\xa9\r\n\r\n");
        assert_eq!((head.protocol(), head.last("x")), ("HTTP/1.1", Some("1")));
        assert_eq!(head.last("location"), Some("/%E9t\u{e9}"));
        assert!(!head.is_chunked());
        assert!(Head::read(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n").is_chunked());
    }

    #[test]
    fn a_page_is_unpacked_as_far_as_it_goes_and_no_further_than_its_bound() {
        let packed = |text: &[u8]| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::best());
            packer.write_all(text).unwrap();
            packer.finish().unwrap()
        };
        let head = Head::read(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
        let whole = packed(b"<img src=/a>");
        assert_eq!(page(&whole, &head), "<img src=/a>");
        assert_eq!(page(&whole[..whole.len() - 4], &head), "<img src=/a>", "without its checksum");
        assert_eq!(page(b"nope", &head), "nope");
        let bomb = packed(&vec![b' '; 64 << 20]);
        assert_eq!(page(&bomb, &head).len() as u64, PAGE_MAX);
    }
}
