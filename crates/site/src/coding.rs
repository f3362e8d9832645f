//! Content codings: which of them a client accepts, and how content is encoded. Owns the reading of Accept-Encoding and
//! the codecs. Start reading at `ContentPreferences::read`.

use std::io::{self, Write as _};

use serde::{Deserialize, Serialize};
use wire::tokens;

/// A content coding (RFC 9110, 8.4.1; RFC 7932, RFC 8878).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Coding {
    /// Brotli.
    #[serde(rename = "br")]
    Brotli,
    /// Zstandard.
    #[serde(rename = "zstd")]
    Zstd,
    /// Deflate in the format of gzip.
    #[serde(rename = "gzip")]
    Gzip,
}

/// Base-2 logarithm of brotli's window: 4 MiB, the default of the brotli program.
const BROTLI_WINDOW: u32 = 22;

/// Base-2 logarithm of the largest zstandard window that every client must accept (RFC 9659): 8 MiB.
const ZSTD_WINDOW_LOG_MAX: u32 = 23;

impl Coding {
    /// In order of preference, for a client that has none.
    pub(crate) const ALL: [Self; 3] = [Self::Brotli, Self::Zstd, Self::Gzip];

    /// Its name in a header field.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The suffix that its program adds to the name of a file.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => ".br",
            Self::Zstd => ".zst",
            Self::Gzip => ".gz",
        }
    }

    /// `content` in this coding.
    ///
    /// # Errors
    /// A lack of memory.
    pub(crate) fn encode(self, content: &[u8], levels: &Compression) -> io::Result<Vec<u8>> {
        match self {
            Self::Brotli => {
                let (buffer, level) = (4096, levels.brotli_level.into());
                let out = Vec::new();
                let mut to = brotli::CompressorWriter::new(out, buffer, level, BROTLI_WINDOW);
                to.write_all(content)?;
                Ok(to.into_inner())
            }
            Self::Zstd => {
                let mut to = zstd::bulk::Compressor::new(levels.zstd_level.into())?;
                to.window_log(ZSTD_WINDOW_LOG_MAX.min(window_log(content.len())))?;
                to.compress(content)
            }
            Self::Gzip => {
                let level = flate2::Compression::new(levels.gzip_level.into());
                let mut to = flate2::write::GzEncoder::new(Vec::new(), level);
                to.write_all(content)?;
                to.finish()
            }
        }
    }

    /// The level in `levels` for this coding; the encoded bytes depend on it.
    pub(crate) fn level(self, levels: &Compression) -> u8 {
        match self {
            Self::Brotli => levels.brotli_level,
            Self::Zstd => levels.zstd_level,
            Self::Gzip => levels.gzip_level,
        }
    }

    fn of(token: &[u8]) -> Option<Self> {
        // RFC 9110, 8.4.1.3.
        if token.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Self::Gzip);
        }
        Self::ALL.into_iter().find(|coding| token.eq_ignore_ascii_case(coding.name().as_bytes()))
    }
}

/// `[compression]`: which files are sent in a coding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Compression {
    /// Codings in which a file is sent if such a file lies beside the plain one (`a.css.br` beside `a.css`) and is not
    /// older.
    pub precompressed: Vec<Coding>,
    /// Codings in which a file is encoded when it is requested; the result is kept.
    pub codings: Vec<Coding>,
    /// Media types worth encoding; `text/*` means all text.
    pub types: Vec<String>,
    /// Smaller files are sent unencoded. A packet holds 1,460 bytes.
    pub bytes_min: u64,
    /// Larger files are sent unencoded: an event loop serves nobody else while it encodes.
    pub bytes_max: u64,
    /// 1 to 9, as gzip's.
    pub gzip_level: u8,
    /// 0 to 11, as brotli's.
    pub brotli_level: u8,
    /// 1 to 19, as zstd's.
    pub zstd_level: u8,
}

impl Default for Compression {
    fn default() -> Self {
        const TYPES: [&str; 10] = [
            "text/*",
            "application/javascript",
            "application/json",
            "application/ld+json",
            "application/manifest+json",
            "application/wasm",
            "application/xml",
            "application/xhtml+xml",
            "application/rss+xml",
            "image/svg+xml",
        ];
        Self {
            precompressed: Coding::ALL.to_vec(),
            codings: Coding::ALL.to_vec(),
            types: TYPES.map(str::to_owned).to_vec(),
            bytes_min: 1024,
            bytes_max: 1024 * 1024,
            gzip_level: 6,
            brotli_level: 5,
            zstd_level: 6,
        }
    }
}

impl Compression {
    /// Refuses levels and sizes that cannot work.
    ///
    /// # Errors
    /// A level that a codec does not have, with the levels that it has; sizes that no file can have.
    pub(crate) fn check(&self) -> Result<(), String> {
        let levels = [
            ("gzip_level", self.gzip_level, 1, 9),
            ("brotli_level", self.brotli_level, 0, 11),
            ("zstd_level", self.zstd_level, 1, 19),
        ];
        if let Some((name, level, min, max)) =
            levels.into_iter().find(|(_, level, min, max)| level < min || level > max)
        {
            return Err(format!("`{name}` must be within {min} to {max}, got {level}"));
        }
        if self.bytes_min > self.bytes_max {
            return Err(format!(
                "`bytes_min` ({}) must not exceed `bytes_max` ({}): lower the first or raise the second",
                self.bytes_min, self.bytes_max
            ));
        }
        Ok(())
    }

    /// Whether a file of that media type and size is encoded when it is requested.
    pub(crate) fn is_worth(&self, content_type: &str, size: u64) -> bool {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let is_listed = self.types.iter().any(|listed| match listed.strip_suffix('*') {
            Some(start) => essence.starts_with(start),
            None => essence.eq_ignore_ascii_case(listed),
        });
        is_listed && (self.bytes_min..=self.bytes_max).contains(&size)
    }
}

/// Base-2 logarithm of a window that holds `len` bytes; zstandard has none below 1 KiB.
fn window_log(len: usize) -> u32 {
    len.next_power_of_two().ilog2().max(10)
}

/// What a client accepts: a rank for each coding and for no coding. A higher rank is preferred, and 0 is refused.
/// Clients with the same preferences get the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContentPreferences {
    codings: [u8; 3],
    identity: u8,
    /// The client requests a range, so encoding a file first is not worth it.
    pub(crate) is_ranged: bool,
    /// The client prefers a listing as JSON.
    pub(crate) json: bool,
}

impl Default for ContentPreferences {
    fn default() -> Self {
        Self { codings: [0; 3], identity: 1, is_ranged: false, json: false }
    }
}

impl ContentPreferences {
    /// Reads the values of Accept-Encoding (RFC 9110, 12.5.3). Without any, no coding is used. The RFC would allow each
    /// of them, but a client without that field mostly knows none.
    pub(crate) fn read<'a>(values: impl Iterator<Item = &'a [u8]>) -> Self {
        // In thousandths.
        let (mut codings, mut identity, mut star) = ([None; 3], None, None);
        for element in values.flat_map(tokens::list) {
            let Some((token, quality)) = weighted(element) else { continue };
            let of = match Coding::of(token) {
                Some(coding) => &mut codings[coding as usize],
                None if token.eq_ignore_ascii_case(b"identity") => &mut identity,
                None if token == b"*" => &mut star,
                None => continue,
            };
            *of = Some(quality);
        }
        let codings = codings.map(|quality: Option<u16>| quality.or(star).unwrap_or(0));
        // Identity is allowed unless it is refused by name or by a star. If neither names it, it has the lowest weight.
        let identity = identity.or(star).unwrap_or(1);
        let mut levels = [codings[0], codings[1], codings[2], identity];
        levels.sort_unstable();
        let rank = |quality: u16| {
            let distinct = levels.iter().enumerate().filter(|(at, level)| {
                **level > 0 && **level <= quality && (*at == 0 || levels[at - 1] != **level)
            });
            u8::try_from(distinct.count()).unwrap_or(u8::MAX)
        };
        Self { codings: codings.map(rank), identity: rank(identity), ..Self::default() }
    }

    /// The rank of a coding, or of no coding (`None`); 0: it is refused.
    pub(crate) fn rank(self, coding: Option<Coding>) -> u8 {
        coding.map_or(self.identity, |coding| self.codings[coding as usize])
    }

    /// The same without the preference for listings.
    pub(crate) fn of_files(self) -> Self {
        Self { json: false, ..self }
    }

    /// Bytes that differ whenever the preferences differ.
    pub(crate) fn key(self) -> [u8; 5] {
        let [br, zstd, gzip] = self.codings;
        [br, zstd, gzip, self.identity, u8::from(self.is_ranged) | (u8::from(self.json) << 1)]
    }
}

/// A token and its weight in thousandths (RFC 9110, 12.4.2); `None` if it is malformed.
fn weighted(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let token = parts.next()?;
    let mut quality = 1000;
    for part in parts {
        if let Some(value) = part.strip_prefix(b"q=").or_else(|| part.strip_prefix(b"Q=")) {
            quality = thousandths(value)?;
        }
    }
    Some((token, quality))
}

fn thousandths(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole @ (b'0' | b'1')] => (whole, &b""[..]),
        [whole @ (b'0' | b'1'), b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let digit = |at: usize| match fraction.get(at) {
        None => Some(0),
        Some(byte @ b'0'..=b'9') => Some(u16::from(byte - b'0')),
        Some(_) => None,
    };
    let sum = u16::from(whole - b'0') * 1000 + digit(0)? * 100 + digit(1)? * 10 + digit(2)?;
    (sum <= 1000).then_some(sum)
}

/// Whether the values of Accept prefer JSON to HTML (RFC 9110, 12.5.1).
pub(crate) fn likes_json<'a>(values: impl Iterator<Item = &'a [u8]>) -> bool {
    let (mut json, mut html, mut star) = (0, None, 0);
    for element in values.flat_map(tokens::list) {
        match weighted(element) {
            Some((b"application/json", quality)) => json = quality,
            Some((b"text/html", quality)) => html = Some(quality),
            Some((b"*/*" | b"text/*", quality)) => star = quality,
            _ => {}
        }
    }
    json > html.unwrap_or(0) && (html.is_some() || json >= star)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(value: &str) -> [u8; 4] {
        let wants = ContentPreferences::read([value.as_bytes()].into_iter());
        let [br, zstd, gzip] = Coding::ALL.map(|coding| wants.rank(Some(coding)));
        [br, zstd, gzip, wants.rank(None)]
    }

    /// The examples of RFC 9110, 12.5.3, and what it says of `*` and `identity`.
    #[test]
    fn what_a_client_takes_is_read_as_the_rfc_says() {
        let cases = [
            ("", [0, 0, 0, 1]),
            ("compress, gzip", [0, 0, 2, 1]),
            ("*", [1, 1, 1, 1]),
            ("compress;q=0.5, gzip;q=1.0", [0, 0, 2, 1]),
            ("gzip;q=1.0, identity; q=0.5, *;q=0", [0, 0, 2, 1]),
            ("gzip, deflate, br, zstd", [2, 2, 2, 1]),
            ("gzip;q=0.8, br;q=0.9, zstd;q=0.001", [3, 1, 2, 1]),
            ("identity;q=0", [0, 0, 0, 0]),
            ("*;q=0", [0, 0, 0, 0]),
            ("br;q=0, *;q=0.3", [0, 1, 1, 1]),
            ("identity, gzip;q=0.5", [0, 0, 1, 2]),
            ("X-GZIP", [0, 0, 2, 1]),
            ("gzip;q=2", [0, 0, 0, 1]),
            ("gzip;q=0.1234", [0, 0, 0, 1]),
            ("gzip;q=1.001", [0, 0, 0, 1]),
            ("gzip ; q=0.000", [0, 0, 0, 1]),
        ];
        for (value, expected) in cases {
            assert_eq!(ranks(value), expected, "{value}");
        }
    }

    #[test]
    fn a_listing_is_json_for_whoever_likes_that_more() {
        let likes = |value: &str| likes_json([value.as_bytes()].into_iter());
        assert!(likes("application/json"));
        assert!(likes("application/json, */*;q=0.5"));
        assert!(!likes("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"));
        assert!(!likes("text/html, application/json;q=0.9"));
        assert!(!likes("*/*"));
        assert!(!likes(""));
    }
}
