//! Owns the removal of framing from a body, one implementation for both roles. Start reading at
//! [`BodyDecoder::decode`].
//!
//! Body bytes are never copied or inspected: they are returned as parts of the input slice. Only chunk framing is read
//! byte by byte, about nine bytes per chunk.

use crate::framing::Framing;
use crate::tokens::is_token_byte;

/// Limits for the bytes around the chunks of one body: they cost the reader and carry no data. hyper limits the same
/// two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyLimits {
    /// Bytes of all chunk extensions.
    pub extension_bytes_max: u32,
    /// Bytes of all trailer fields.
    pub trailer_bytes_max: u32,
}

impl BodyLimits {
    /// 16 KiB each.
    pub const DEFAULT: Self = Self { extension_bytes_max: 16 * 1024, trailer_bytes_max: 16 * 1024 };
}

impl Default for BodyLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is wrong with the chunks of a body (RFC 9112, 7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// Not 1 to 16 hexadecimal digits; more would not fit 64 bits.
    #[error("a chunk size is not 1 to 16 hexadecimal digits")]
    ChunkSize,
    /// Not a name with or without a value, or white space that no extension follows.
    #[error("a chunk extension is malformed")]
    Extension,
    /// See [`BodyLimits::extension_bytes_max`].
    #[error("chunk extensions are longer than the limit")]
    ExtensionsTooLong,
    /// A line of the framing does not end in CRLF.
    #[error("a line of the chunk framing does not end in CRLF")]
    LineEnd,
    /// The chunk is longer than its size says, or the size is wrong.
    #[error("chunk data is not followed by CRLF")]
    DataEnd,
    /// Not a field line.
    #[error("a trailer field is malformed")]
    Trailer,
    /// See [`BodyLimits::trailer_bytes_max`].
    #[error("trailer fields are longer than the limit")]
    TrailersTooLong,
}

/// A part of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// All bytes were used, and the body continues.
    NeedMore,
    /// Body bytes, at least one.
    Data(&'a [u8]),
    /// The body is complete; unused bytes belong to the next message.
    Done,
}

/// Reads one body; see [`BodyDecoder::decode`].
#[derive(Debug, Clone)]
pub struct BodyDecoder {
    state: ChunkState,
    limits: BodyLimits,
    /// Body bytes still to come in `Exact` and `ChunkData`; the size read so far in `ChunkSize`.
    left: u64,
    /// Number of digits of the current chunk size.
    digits: u8,
    extension_bytes: u32,
    trailer_bytes: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkState {
    Exact,
    UntilClose,
    ChunkSize,
    /// White space where an extension may begin: after the size, or after another one.
    BeforeExtension,
    /// After its semicolon.
    ExtensionStart,
    ExtensionName,
    /// White space after the name.
    AfterName,
    /// After the equals sign.
    ValueStart,
    TokenValue,
    QuotedValue,
    /// After a backslash in a quoted value.
    QuotedPair,
    /// After the closing quote.
    AfterQuoted,
    SizeLf,
    ChunkData,
    DataCr,
    DataLf,
    TrailerStart,
    TrailerName,
    TrailerValue,
    TrailerLf,
    LastLf,
    Done,
}

impl BodyDecoder {
    /// A decoder for a body with that framing.
    pub fn new(framing: Framing, limits: BodyLimits) -> Self {
        let (state, left) = match framing {
            Framing::None => (ChunkState::Exact, 0),
            Framing::Length(length) => (ChunkState::Exact, length),
            Framing::Chunked => (ChunkState::ChunkSize, 0),
            Framing::UntilClose => (ChunkState::UntilClose, 0),
        };
        Self { state, limits, left, digits: 0, extension_bytes: 0, trailer_bytes: 0 }
    }

    /// Takes the next bytes; the first part of the result is the number of bytes used, framing and data. Call it again
    /// with the rest until [`Piece::NeedMore`] or [`Piece::Done`]. A complete body without bytes returns `Done` for an
    /// empty slice. After the end every call returns `Done`.
    ///
    /// # Errors
    /// The framing is wrong; the decoder is then unusable.
    pub fn decode<'a>(&mut self, bytes: &'a [u8]) -> Result<(usize, Piece<'a>), BodyFault> {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            match (self.state, rest) {
                (ChunkState::Done, _) => return Ok((used, Piece::Done)),
                (ChunkState::Exact, _) if self.left == 0 => self.state = ChunkState::Done,
                (_, []) => return Ok((used, Piece::NeedMore)),
                (ChunkState::UntilClose, _) => return Ok((bytes.len(), Piece::Data(rest))),
                (ChunkState::Exact | ChunkState::ChunkData, _) => {
                    let count = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                    self.take(count as u64);
                    return Ok((used + count, Piece::Data(&rest[..count])));
                }
                (state, [byte, ..]) => {
                    used += 1;
                    self.state = self.framing_byte(state, *byte)?;
                }
            }
        }
    }

    /// Whether the body is complete if the peer closes now.
    pub fn is_complete_at_eof(&self) -> bool {
        match self.state {
            ChunkState::UntilClose | ChunkState::Done => true,
            ChunkState::Exact => self.left == 0,
            _ => false,
        }
    }

    /// Number of bytes from here on that are certain to be body bytes: the rest of a body with a length, or of the
    /// current chunk. For a body that ends with the connection it is `u64::MAX`; if the next byte is framing, it is 0.
    pub fn discardable(&self) -> u64 {
        match self.state {
            ChunkState::Exact | ChunkState::ChunkData => self.left,
            ChunkState::UntilClose => u64::MAX,
            _ => 0,
        }
    }

    /// Tells the decoder that `n_bytes` of the [`discardable`](Self::discardable) bytes were discarded.
    ///
    /// # Panics
    /// There were fewer.
    pub fn discarded(&mut self, n_bytes: u64) {
        assert!(
            n_bytes <= self.discardable(),
            "only bytes that are certain to be body are discarded"
        );
        if self.state != ChunkState::UntilClose {
            self.take(n_bytes);
        }
    }

    /// Skips data bytes in a state that counts them.
    fn take(&mut self, n_bytes: u64) {
        self.left -= n_bytes;
        if self.left == 0 && self.state == ChunkState::ChunkData {
            self.state = ChunkState::DataCr;
        }
    }

    /// The state after a byte of chunk framing.
    fn framing_byte(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, BodyFault> {
        match state {
            ChunkState::ChunkSize | ChunkState::SizeLf => self.size_line_byte(state, byte),
            ChunkState::BeforeExtension
            | ChunkState::ExtensionStart
            | ChunkState::ExtensionName
            | ChunkState::AfterName
            | ChunkState::ValueStart
            | ChunkState::TokenValue
            | ChunkState::QuotedValue
            | ChunkState::QuotedPair
            | ChunkState::AfterQuoted => self.extension_byte(state, byte),
            ChunkState::DataCr if byte == b'\r' => Ok(ChunkState::DataLf),
            ChunkState::DataLf if byte == b'\n' => Ok(ChunkState::ChunkSize),
            ChunkState::DataCr | ChunkState::DataLf => Err(BodyFault::DataEnd),
            _ => self.trailer_byte(state, byte),
        }
    }

    /// `chunk-size [ chunk-ext ] CRLF` (RFC 9112, 7.1).
    fn size_line_byte(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, BodyFault> {
        match (state, byte) {
            (ChunkState::SizeLf, b'\n') => {
                self.digits = 0;
                Ok(if self.left == 0 { ChunkState::TrailerStart } else { ChunkState::ChunkData })
            }
            (ChunkState::SizeLf, _) | (_, b'\n') => Err(BodyFault::LineEnd),
            (_, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.size_digit(byte),
            _ if self.digits == 0 => Err(BodyFault::ChunkSize),
            (_, b'\r') => Ok(ChunkState::SizeLf),
            (_, b' ' | b'\t' | b';') => self.extension_byte(ChunkState::BeforeExtension, byte),
            _ => Err(BodyFault::ChunkSize),
        }
    }

    fn size_digit(&mut self, byte: u8) -> Result<ChunkState, BodyFault> {
        /// Number of digits of a 64-bit size.
        const DIGITS_MAX: u8 = 16;
        if self.digits == DIGITS_MAX {
            return Err(BodyFault::ChunkSize);
        }
        let digit = char::from(byte).to_digit(16).expect("the caller matched a hexadecimal digit");
        self.digits += 1;
        self.left = self.left << 4 | u64::from(digit);
        Ok(ChunkState::ChunkSize)
    }

    /// `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )` (RFC 9112, 7.1.1). Extensions are ignored, but
    /// quotes are parsed: a reader that respects them must not find another end of the line.
    fn extension_byte(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, BodyFault> {
        let next = match (state, byte) {
            (
                ChunkState::ExtensionName | ChunkState::TokenValue | ChunkState::AfterQuoted,
                b'\r',
            ) => {
                return Ok(ChunkState::SizeLf);
            }
            (_, b'\n') => return Err(BodyFault::LineEnd),
            (ChunkState::QuotedValue, b'"') => ChunkState::AfterQuoted,
            (ChunkState::QuotedValue, b'\\') => ChunkState::QuotedPair,
            (ChunkState::QuotedValue | ChunkState::QuotedPair, b'\t' | b' '..=b'~' | 0x80..) => {
                ChunkState::QuotedValue
            }
            (
                ChunkState::BeforeExtension
                | ChunkState::ExtensionName
                | ChunkState::AfterName
                | ChunkState::TokenValue
                | ChunkState::AfterQuoted,
                b';',
            ) => ChunkState::ExtensionStart,
            (ChunkState::ExtensionName | ChunkState::AfterName, b'=') => ChunkState::ValueStart,
            (
                ChunkState::BeforeExtension | ChunkState::TokenValue | ChunkState::AfterQuoted,
                b' ' | b'\t',
            ) => ChunkState::BeforeExtension,
            (ChunkState::ExtensionName | ChunkState::AfterName, b' ' | b'\t') => {
                ChunkState::AfterName
            }
            (ChunkState::ExtensionStart | ChunkState::ValueStart, b' ' | b'\t') => state,
            (ChunkState::ValueStart, b'"') => ChunkState::QuotedValue,
            (ChunkState::ExtensionStart | ChunkState::ExtensionName, _) if is_token_byte(byte) => {
                ChunkState::ExtensionName
            }
            (ChunkState::ValueStart | ChunkState::TokenValue, _) if is_token_byte(byte) => {
                ChunkState::TokenValue
            }
            _ => return Err(BodyFault::Extension),
        };
        if self.extension_bytes == self.limits.extension_bytes_max {
            return Err(BodyFault::ExtensionsTooLong);
        }
        self.extension_bytes += 1;
        Ok(next)
    }

    /// `*( field-line CRLF ) CRLF` after the last chunk. Trailer fields are checked and dropped, never merged into the
    /// head (RFC 9110, 6.5.1).
    fn trailer_byte(&mut self, state: ChunkState, byte: u8) -> Result<ChunkState, BodyFault> {
        let next = match (state, byte) {
            (ChunkState::TrailerStart, b'\r') => return Ok(ChunkState::LastLf),
            (ChunkState::LastLf, b'\n') => return Ok(ChunkState::Done),
            (ChunkState::TrailerLf, b'\n') => ChunkState::TrailerStart,
            (ChunkState::LastLf | ChunkState::TrailerLf, _) | (_, b'\n') => {
                return Err(BodyFault::LineEnd);
            }
            (ChunkState::TrailerName, b':') => ChunkState::TrailerValue,
            (ChunkState::TrailerStart | ChunkState::TrailerName, _) if is_token_byte(byte) => {
                ChunkState::TrailerName
            }
            (ChunkState::TrailerValue, b'\r') => ChunkState::TrailerLf,
            (ChunkState::TrailerValue, b'\t' | b' '..=b'~' | 0x80..) => ChunkState::TrailerValue,
            _ => return Err(BodyFault::Trailer),
        };
        if self.trailer_bytes == self.limits.trailer_bytes_max {
            return Err(BodyFault::TrailersTooLong);
        }
        self.trailer_bytes += 1;
        Ok(next)
    }
}
