//! A slow, simple reader of the replies of one connection, as a reference for the real one: it has all bytes at once
//! and goes through them line by line, in the words of RFC 9112. Must not share code with the crate, nor its structure:
//! no state is kept between bytes, and nothing is tokenised twice. Start reading at [`read_stream`].
//!
//! It reports more than the replies: for a rejected stream, the byte at which a reader must reject it when it arrives
//! byte by byte, and the permitted reasons.

use joust_wire::{
    BodyFault, Eof, FIELDS_MAX, Framing, FramingFault, HeadFault, ReplyError, ReplyHead,
    ReplyLimits, ReplyTotals, RequestKind, Version,
};

use crate::replies::{ObservedReply, see_body};

/// The meaning of a connection's bytes, after which the peer closed.
#[derive(Debug)]
pub(crate) struct Reading {
    /// All events before the end or the rejection.
    pub(crate) seen: Vec<ObservedReply>,
    pub(crate) ending: Result<Eof, Refusal>,
}

/// Why a stream is rejected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Position of the first byte that cannot be accepted; the length if the end cannot.
    pub(crate) at: usize,
    /// The permitted reasons: one, except for a head with several faults.
    pub(crate) reasons: Vec<ReplyError>,
}

fn refuse<T>(at: usize, reason: impl Into<ReplyError>) -> Result<T, Refusal> {
    Err(Refusal { at, reasons: vec![reason.into()] })
}

/// Reads the replies to those requests.
pub(crate) fn read_stream(bytes: &[u8], requests: &[RequestKind], limits: &ReplyLimits) -> Reading {
    let mut reader = Reader { bytes, at: 0, limits, seen: Vec::new() };
    let ending = reader.read_all(requests);
    Reading { seen: reader.seen, ending }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    limits: &'a ReplyLimits,
    seen: Vec<ObservedReply>,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    fn read_all(&mut self, requests: &[RequestKind]) -> Result<Eof, Refusal> {
        let mut may_go_on = true;
        for &kind in requests {
            match (self.rest(), may_go_on) {
                ([], _) => return Ok(Eof::BeforeReply),
                (_, false) => return refuse(self.at, ReplyError::AfterClose),
                (_, true) => {}
            }
            let start = self.at;
            let head = self.read_heads(kind)?;
            let body_bytes = self.read_body(head.framing)?;
            let wire_bytes = (self.at - start) as u64;
            let totals = ReplyTotals { wire_bytes, body_bytes };
            self.seen.push(ObservedReply::Done(totals));
            if head.framing == Framing::UntilClose {
                return Ok(Eof::Done(totals));
            }
            may_go_on = head.keep_alive;
        }
        match (self.rest(), may_go_on) {
            ([], _) => Ok(Eof::Idle),
            (_, false) => refuse(self.at, ReplyError::AfterClose),
            (_, true) => refuse(self.at, ReplyError::Unasked),
        }
    }

    /// Interim heads, and the final one.
    fn read_heads(&mut self, kind: RequestKind) -> Result<ReplyHead, Refusal> {
        for n_interim in 0.. {
            let end = self.at + self.head_length()?;
            let text = &self.bytes[self.at..end];
            let last_byte = end - 1;
            let head = parse_head(text).map_err(|reasons| Refusal { at: last_byte, reasons })?;
            match head.status {
                0..=99 => return refuse(last_byte, ReplyError::Status),
                101 => return refuse(last_byte, ReplyError::SwitchedProtocols),
                100..=199 if n_interim == self.limits.interim_max => {
                    return refuse(last_byte, ReplyError::TooManyInterim);
                }
                100..=199 => self.seen.push(ObservedReply::Interim(head.status)),
                _ => {
                    let (framing, keep_alive) =
                        head.framing(kind).map_err(|reasons| Refusal { at: last_byte, reasons })?;
                    let Head { status, version, fields } = head;
                    let crlf = text.windows(2).filter(|pair| pair == b"\r\n").count();
                    let bare_lf = crlf < text.iter().filter(|&&byte| byte == b'\n').count();
                    let head = ReplyHead { status, version, keep_alive, framing, bare_lf };
                    self.seen.push(ObservedReply::Head(head, fields));
                    self.at = end;
                    return Ok(head);
                }
            }
            self.at = end;
        }
        unreachable!("the limit of interim replies is reached before u32 overflows")
    }

    /// Length of the head that begins here: up to the first empty line, inside the limits, every line ending in CRLF or
    /// in LF alone (RFC 9112, 2.2).
    fn head_length(&self) -> Result<usize, Refusal> {
        let rest = self.rest();
        if let Some(other) = (0..rest.len().min(5)).find(|&i| rest[i] != b"HTTP/"[i]) {
            return refuse(self.at + other, ReplyError::NotHttp);
        }
        let limit = self.limits.head_bytes_max;
        let within = &rest[..rest.len().min(limit)];
        let mut length = 0;
        for (index, line) in within.split_inclusive(|&byte| byte == b'\n').enumerate() {
            length += line.len();
            match line {
                b"\r\n" | b"\n" => return Ok(length),
                [.., b'\n'] if index > FIELDS_MAX => {
                    return refuse(self.at + length - 1, HeadFault::TooManyFields);
                }
                _ => {}
            }
        }
        if rest.len() < limit {
            return refuse(self.bytes.len(), ReplyError::CutInHead);
        }
        let start_line_ended = within.contains(&b'\n');
        let fault = if start_line_ended { HeadFault::TooLong } else { HeadFault::StartLineTooLong };
        refuse(self.at + limit - 1, fault)
    }

    /// Reads the body; returns its length without framing.
    fn read_body(&mut self, framing: Framing) -> Result<u64, Refusal> {
        match framing {
            Framing::None => Ok(0),
            Framing::Length(length) => self.read_data(length),
            Framing::UntilClose => self.read_data(self.rest().len() as u64),
            Framing::Chunked => self.read_chunks(),
        }
    }

    fn read_data(&mut self, length: u64) -> Result<u64, Refusal> {
        let rest = self.rest();
        let there = rest.len().min(usize::try_from(length).unwrap_or(usize::MAX));
        if there > 0 {
            see_body(&mut self.seen, &rest[..there]);
        }
        self.at += there;
        if (there as u64) < length { self.cut() } else { Ok(length) }
    }

    fn cut<T>(&self) -> Result<T, Refusal> {
        refuse(self.bytes.len(), ReplyError::CutInBody)
    }

    /// RFC 9112, 7.1: `*chunk last-chunk trailer-section CRLF`.
    fn read_chunks(&mut self) -> Result<u64, Refusal> {
        let (mut body_bytes, mut extension_bytes, mut trailer_bytes) = (0, 0, 0);
        loop {
            let size = self.read_size(&mut extension_bytes)?;
            if size == 0 {
                break;
            }
            body_bytes += self.read_data(size)?;
            self.expect(b"\r\n", BodyFault::DataEnd)?;
        }
        while self.rest().first() != Some(&b'\r') {
            self.read_trailer(&mut trailer_bytes)?;
        }
        self.expect(b"\r\n", BodyFault::LineEnd)?;
        Ok(body_bytes)
    }

    fn expect(&mut self, wanted: &[u8], fault: BodyFault) -> Result<(), Refusal> {
        for byte in wanted {
            match self.rest() {
                [] => return self.cut(),
                [first, ..] if first == byte => self.at += 1,
                _ => return refuse(self.at, fault),
            }
        }
        Ok(())
    }

    /// `chunk-size [ chunk-ext ] CRLF`.
    fn read_size(&mut self, extension_bytes: &mut usize) -> Result<u64, Refusal> {
        let digits = length_while(self.rest(), |byte| byte.is_ascii_hexdigit());
        let text = String::from_utf8_lossy(&self.rest()[..digits.min(16)]);
        self.at += text.len();
        if digits > 16 {
            return refuse(self.at, BodyFault::ChunkSize);
        }
        if digits == 0 {
            return self.unexpected(BodyFault::ChunkSize);
        }
        let (length, is_whole) = extensions(self.rest());
        let limit = self.limits.body.extension_bytes_max;
        self.count(length, extension_bytes, limit, BodyFault::ExtensionsTooLong)?;
        match self.rest().first() {
            Some(b'\r') if is_whole => {}
            _ if length > 0 => return self.unexpected(BodyFault::Extension),
            _ => return self.unexpected(BodyFault::ChunkSize),
        }
        self.expect(b"\r\n", BodyFault::LineEnd)?;
        Ok(u64::from_str_radix(&text, 16).expect("1 to 16 hexadecimal digits"))
    }

    /// `field-line CRLF`
    fn read_trailer(&mut self, trailer_bytes: &mut usize) -> Result<(), Refusal> {
        let line = self.rest();
        let name = length_while(line, is_name_byte);
        let has_colon = name > 0 && line.get(name) == Some(&b':');
        let colon = name + usize::from(has_colon);
        let value = if has_colon { length_while(&line[colon..], is_value_byte) } else { 0 };
        let end = if has_colon && line[colon + value..].starts_with(b"\r\n") {
            2
        } else {
            usize::from(has_colon && line[colon + value..].starts_with(b"\r"))
        };
        let limit = self.limits.body.trailer_bytes_max;
        self.count(colon + value + end, trailer_bytes, limit, BodyFault::TrailersTooLong)?;
        match end {
            0 => self.unexpected(BodyFault::Trailer),
            1 => self.unexpected(BodyFault::LineEnd),
            _ => Ok(()),
        }
    }

    /// Skips `length` bytes that are valid but may be too many.
    fn count(
        &mut self,
        length: usize,
        counted: &mut usize,
        limit: u32,
        fault: BodyFault,
    ) -> Result<(), Refusal> {
        let left = limit as usize - *counted;
        if length > left {
            return refuse(self.at + left, fault);
        }
        *counted += length;
        self.at += length;
        Ok(())
    }

    /// The next byte of chunk framing is wrong or missing; a LF counts as a line end without CR.
    fn unexpected<T>(&self, fault: BodyFault) -> Result<T, Refusal> {
        match self.rest() {
            [] => self.cut(),
            [b'\n', ..] => refuse(self.at, BodyFault::LineEnd),
            _ => refuse(self.at, fault),
        }
    }
}

/// RFC 9112, 7.1.1: `*( BWS ";" BWS chunk-ext-name [ BWS "=" BWS chunk-ext-val ] )`. How many bytes at the start of
/// `text` may be a prefix of that, and whether they are complete extensions.
pub(crate) fn extensions(text: &[u8]) -> (usize, bool) {
    let spaces = |at: usize| at + length_while(&text[at..], |byte| b" \t".contains(&byte));
    let token = |at: usize| at + length_while(&text[at..], is_name_byte);
    let mut at = 0;
    loop {
        let before = spaces(at);
        if text.get(before) != Some(&b';') {
            return (before, before == at);
        }
        at = spaces(before + 1);
        let name_end = token(at);
        if name_end == at {
            return (at, false);
        }
        at = name_end;
        let equals = spaces(at);
        if text.get(equals) != Some(&b'=') {
            continue;
        }
        at = spaces(equals + 1);
        let value_end = if text.get(at) == Some(&b'"') {
            let mut inner = at + 1;
            loop {
                match text[inner..] {
                    [b'"', ..] => break inner + 1,
                    [b'\\', pair, ..] if is_value_byte(pair) => inner += 2,
                    [b'\\', ..] => return (inner + 1, false),
                    [byte, ..] if is_value_byte(byte) => inner += 1,
                    _ => return (inner, false),
                }
            }
        } else {
            token(at)
        };
        if value_end == at {
            return (at, false);
        }
        at = value_end;
    }
}

struct Head {
    status: u16,
    version: Version,
    fields: Vec<(String, Vec<u8>)>,
}

/// A head from its start line to its empty line, or everything that is wrong with it.
fn parse_head(text: &[u8]) -> Result<Head, Vec<ReplyError>> {
    let text: String = text.iter().map(|&byte| char::from(byte)).collect();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    lines.pop();
    let mut lines = lines.into_iter().map(|line| {
        let line = line.strip_suffix('\n').expect("ends so");
        line.strip_suffix('\r').unwrap_or(line)
    });
    let mut wrong: Vec<ReplyError> = Vec::new();
    let start = lines.next().expect("a first line");
    if start.contains('\r') {
        wrong.push(HeadFault::BareCr.into());
    }
    let (version, after) = start.split_once(' ').unwrap_or((start, ""));
    let version = match version {
        "HTTP/1.0" => Version::Http10,
        "HTTP/1.1" => Version::Http11,
        _ => {
            wrong.push(ReplyError::Version);
            Version::Http11
        }
    };
    let (code, reason) = after.split_once(' ').unwrap_or((after, ""));
    if code.len() != 3 || !code.chars().all(|c| c.is_ascii_digit()) {
        wrong.push(ReplyError::Status);
    }
    if !is_value(reason) {
        wrong.push(HeadFault::StartLine.into());
    }
    let mut fields = Vec::new();
    for line in lines {
        match parse_field(line) {
            Ok(field) => fields.push(field),
            Err(faults) => wrong.extend(faults.into_iter().map(ReplyError::Head)),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    Ok(Head { status: code.parse().expect("three digits"), version, fields })
}

/// `field-name ":" OWS field-value OWS`, or everything that is wrong with it.
fn parse_field(line: &str) -> Result<(String, Vec<u8>), Vec<HeadFault>> {
    let mut wrong = Vec::new();
    let (name, value) = line.split_once(':').unwrap_or_else(|| {
        wrong.push(HeadFault::FieldName);
        (line, "")
    });
    if line.starts_with([' ', '\t']) {
        wrong.push(HeadFault::ObsFold);
    } else if name.ends_with([' ', '\t']) {
        wrong.push(HeadFault::SpaceBeforeColon);
    } else if name.is_empty() || !name.bytes().all(is_name_byte) {
        wrong.push(HeadFault::FieldName);
    }
    if line.contains('\r') {
        wrong.push(HeadFault::BareCr);
    } else if !is_value(value) {
        wrong.push(HeadFault::FieldValue);
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let value = value.trim_matches([' ', '\t']);
    Ok((name.to_owned(), value.chars().map(|c| c as u8).collect()))
}

impl Head {
    /// The lines of that name, joined as RFC 9110, 5.2 allows.
    fn joined(&self, name: &str) -> Option<String> {
        let of_name = self.fields.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name));
        let values: Vec<String> = of_name
            .map(|(_, value)| value.iter().map(|&byte| char::from(byte)).collect())
            .collect();
        (!values.is_empty()).then(|| values.join(","))
    }

    /// RFC 9112, 6.3 in the order of its rules, and 9.3: how the body ends, and whether the connection is kept alive.
    fn framing(&self, kind: RequestKind) -> Result<(Framing, bool), Vec<ReplyError>> {
        let coding = self.joined("transfer-encoding");
        let lengths = self.joined("content-length");
        let goes_on = self.keeps_alive();
        // 6.1: "MUST treat the message as if the framing is faulty [...] and close the connection".
        let is_old_and_coded = self.version == Version::Http10 && coding.is_some();
        if kind == RequestKind::Connect && self.status / 100 == 2 {
            return Ok((Framing::None, false));
        }
        if kind == RequestKind::Head || [204, 304].contains(&self.status) {
            return Ok((Framing::None, goes_on && !is_old_and_coded));
        }
        let is_chunked = coding.as_ref().is_some_and(|text| text.eq_ignore_ascii_case("chunked"));
        let length = lengths.as_deref().map(single_length).transpose();
        let mut wrong = length.clone().err().unwrap_or_default();
        wrong.extend(is_old_and_coded.then_some(FramingFault::CodingInHttp10));
        let is_coded = coding.as_ref().is_some_and(|text| is_coded_and_chunked(text));
        wrong.extend(is_coded.then_some(FramingFault::CodingUnknown));
        let is_other = coding.is_some() && !is_chunked && !is_coded;
        wrong.extend(is_other.then_some(FramingFault::Coding));
        wrong.extend(
            (coding.is_some() && lengths.is_some()).then_some(FramingFault::LengthAndCoding),
        );
        match length {
            Ok(length) if wrong.is_empty() => Ok(match length {
                _ if is_chunked => (Framing::Chunked, goes_on),
                Some(length) => (Framing::Length(length), goes_on),
                None => (Framing::UntilClose, false),
            }),
            _ => Err(wrong.into_iter().map(ReplyError::Framing).collect()),
        }
    }

    fn keeps_alive(&self) -> bool {
        let options = self.joined("connection").unwrap_or_default().to_ascii_lowercase();
        let has = |wanted| options.split(',').any(|word| word.trim_matches([' ', '\t']) == wanted);
        !has("close") && (self.version == Version::Http11 || has("keep-alive"))
    }
}

/// RFC 9112, 6.1: `chunked` at the end and only there, after other codings.
fn is_coded_and_chunked(codings: &str) -> bool {
    let lower = codings.to_ascii_lowercase();
    let codings: Vec<&str> = lower.split(',').map(|text| text.trim_matches([' ', '\t'])).collect();
    let Some((&"chunked", others)) = codings.split_last() else { return false };
    let names = others.iter().map(|text| text.split(';').next().unwrap_or_default());
    let mut names = names.map(|name| name.trim_matches([' ', '\t']));
    let is_name = |name: &str| !name.is_empty() && name.bytes().all(is_name_byte);
    !others.is_empty() && names.all(|name| is_name(name) && name != "chunked")
}

/// RFC 9112, 6.3, 5: one number, or a list of the same one.
fn single_length(lengths: &str) -> Result<u64, Vec<FramingFault>> {
    let texts: Vec<&str> = lengths.split(',').map(|text| text.trim_matches([' ', '\t'])).collect();
    let is_digits = |text: &&str| text.chars().all(|c| c.is_ascii_digit());
    let numbers: Vec<u64> =
        texts.iter().copied().filter(is_digits).filter_map(|text| text.parse().ok()).collect();
    let mut wrong = Vec::new();
    if numbers.len() < texts.len() {
        wrong.push(FramingFault::Length);
    }
    if numbers.iter().any(|number| *number != numbers[0]) {
        wrong.push(FramingFault::LengthsDiffer);
    }
    if wrong.is_empty() { Ok(numbers[0]) } else { Err(wrong) }
}

fn length_while(bytes: &[u8], is_right: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| is_right(byte)).count()
}

/// RFC 9110, 5.6.2: `tchar`.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(&byte)
}

/// RFC 9110, 5.5: HTAB, SP, VCHAR, obs-text.
fn is_value_byte(byte: u8) -> bool {
    byte == b'\t' || byte >= b' ' && byte != 0x7f
}

fn is_value(text: &str) -> bool {
    text.chars().all(|c| is_value_byte(c as u8))
}
