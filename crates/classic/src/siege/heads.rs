//! Heads of replies, and pages as they are when they are unpacked. Owns how a field is found; must not
//! know what one means to siege. Start reading at [`Head`].

use std::io::Read as _;

use flate2::read::{DeflateDecoder, MultiGzDecoder};

/// Longest page that is taken apart, unpacked.
const PAGE_MAX: u64 = 6 * 65_536;

/// The body of a page, unpacked.
pub(super) fn page(body: &[u8], head: &Head<'_>) -> String {
    let mut unpacked = Vec::new();
    let read = match head.last("content-encoding") {
        Some("gzip") => MultiGzDecoder::new(body).take(PAGE_MAX).read_to_end(&mut unpacked),
        Some("deflate") => DeflateDecoder::new(body).take(PAGE_MAX).read_to_end(&mut unpacked),
        _ => return String::from_utf8_lossy(body).into_owned(),
    };
    let bytes = if read.is_ok() { &unpacked } else { body };
    String::from_utf8_lossy(bytes).into_owned()
}

/// The head of a reply.
pub(super) struct Head<'a> {
    lines: Vec<&'a str>,
}

impl<'a> Head<'a> {
    /// What is not UTF-8 is left out.
    pub(super) fn read(bytes: &'a [u8]) -> Self {
        let lines = bytes.split(|byte| *byte == b'\n');
        let text = |line: &'a [u8]| Some(std::str::from_utf8(line).ok()?.trim_end_matches('\r'));
        Self { lines: lines.filter_map(text).collect() }
    }

    pub(super) fn protocol(&self) -> &'a str {
        self.lines.first().and_then(|line| line.get(..8)).unwrap_or("HTTP/1.1")
    }

    /// Values of all fields of that name.
    pub(super) fn all(&self, name: &'static str) -> impl Iterator<Item = &'a str> {
        self.lines.iter().skip(1).filter_map(move |line| {
            let (other, value) = line.split_once(':')?;
            other.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(super) fn last(&self, name: &'static str) -> Option<&'a str> {
        self.all(name).last()
    }
}
