//! What a request asks for, found in one pass over its head. Owns which parts of a head matter, and where
//! they stand in it. Start reading at [`RequestSummary::of`].
//!
//! It borrows nothing from the head, so that it can be kept: a head that repeats the last one byte
//! for byte asks for the same, in the same places.

use std::ops::Range;

use wire::{Framing, Request, Version, tokens};

use crate::gateway::Route;

/// What a request asks for.
#[derive(Debug, Clone)]
pub(super) struct RequestSummary {
    /// Bytes of the head.
    pub(super) head_len: usize,
    pub(super) method: Method,
    /// Path and query as the client sent them.
    pub(super) target: HeadSpan,
    pub(super) version: Version,
    pub(super) framing: Framing,
    /// It announces a body, which may be empty.
    pub(super) has_body: bool,
    /// Which gateway answers it, if one does.
    pub(super) gateway: Option<Route>,
    /// The client would use the connection again.
    pub(super) keep_alive: bool,
    /// The client said `Connection: keep-alive`.
    pub(super) keep_alive_token: bool,
    pub(super) expects_continue: bool,
    pub(super) fields: SelectedFields<HeadSpan>,
    /// Whether it has any condition or range.
    pub(super) is_conditional: bool,
}

/// What a server of files does with a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Get,
    Head,
    Options,
    /// A known method that a file does not allow: 405.
    NotAllowed,
    /// 501 (RFC 9110, 9.1).
    Unknown,
}

/// A part of a head, by the bytes from the head's beginning to the part's start and end.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct HeadSpan {
    start: u32,
    end: u32,
}

/// The fields that matter to a server of files. A field that may occur only once and is repeated is malformed. For each
/// of these that means: as if it were not there, or never true. Lists of tags may be repeated, and are then looked up
/// in the head (see `conditions`).
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SelectedFields<T> {
    pub(super) if_match: SingleField<T>,
    pub(super) if_none_match: SingleField<T>,
    pub(super) if_modified_since: SingleField<T>,
    pub(super) if_unmodified_since: SingleField<T>,
    pub(super) if_range: SingleField<T>,
    pub(super) range: SingleField<T>,
}

/// A field that should occur once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum SingleField<T> {
    #[default]
    Absent,
    Is(T),
    Repeated,
}

impl<T: Copy> SingleField<T> {
    /// The value, if there is exactly one.
    pub(super) fn value(self) -> Option<T> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }

    fn add(&mut self, value: T) {
        *self = if matches!(self, Self::Absent) { Self::Is(value) } else { Self::Repeated };
    }

    fn map<U>(self, change: impl FnOnce(T) -> U) -> SingleField<U> {
        match self {
            Self::Absent => SingleField::Absent,
            Self::Is(value) => SingleField::Is(change(value)),
            Self::Repeated => SingleField::Repeated,
        }
    }
}

impl HeadSpan {
    /// Where `part`, which is a part of `head`, lies in it.
    fn of(part: &[u8], head: &[u8]) -> Self {
        // An empty part need not lie in `head`.
        if part.is_empty() {
            return Self::default();
        }
        let start = part.as_ptr().addr() - head.as_ptr().addr();
        let at = |offset| u32::try_from(offset).expect("a head is shorter than 4 GiB");
        Self { start: at(start), end: at(start + part.len()) }
    }

    /// The bytes of `head` at this place.
    pub(super) fn in_head(self, head: &[u8]) -> &[u8] {
        &head[Range::from(self)]
    }
}

impl From<HeadSpan> for Range<usize> {
    fn from(place: HeadSpan) -> Self {
        place.start as usize..place.end as usize
    }
}

impl SelectedFields<HeadSpan> {
    /// The values themselves.
    pub(super) fn in_head(self, head: &[u8]) -> SelectedFields<&[u8]> {
        let value = |field: SingleField<HeadSpan>| field.map(|place| place.in_head(head));
        SelectedFields {
            if_match: value(self.if_match),
            if_none_match: value(self.if_none_match),
            if_modified_since: value(self.if_modified_since),
            if_unmodified_since: value(self.if_unmodified_since),
            if_range: value(self.if_range),
            range: value(self.range),
        }
    }
}

impl Method {
    /// Methods are case-sensitive (RFC 9110, 9.1).
    fn of(name: &str) -> Self {
        match name {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "OPTIONS" => Self::Options,
            "POST" | "PUT" | "DELETE" | "PATCH" | "TRACE" => Self::NotAllowed,
            _ => Self::Unknown,
        }
    }
}

impl RequestSummary {
    /// Before any request was read.
    pub(super) fn nothing() -> Self {
        Self {
            head_len: 0,
            method: Method::Unknown,
            target: HeadSpan::default(),
            version: Version::Http11,
            framing: Framing::None,
            has_body: false,
            gateway: None,
            keep_alive: false,
            keep_alive_token: false,
            expects_continue: false,
            fields: SelectedFields::default(),
            is_conditional: false,
        }
    }

    /// What `request`, which was read from the beginning of `bytes`, asks for. The length of a field's name is compared
    /// first.
    pub(super) fn of(request: &Request<'_>, bytes: &[u8]) -> Self {
        let head = &bytes[..request.head_len];
        let mut summary = Self {
            head_len: request.head_len,
            method: Method::of(request.method),
            target: HeadSpan::of(request.path_and_query.as_bytes(), head),
            version: request.version,
            framing: request.framing,
            has_body: request.framing != Framing::None,
            keep_alive: request.keep_alive,
            expects_continue: request.expects_continue,
            ..Self::nothing()
        };
        let fields = &mut summary.fields;
        for (name, value) in request.fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let once = match name.len() {
                5 if is("range") => &mut fields.range,
                8 if is("if-match") => &mut fields.if_match,
                8 if is("if-range") => &mut fields.if_range,
                10 if is("connection") => {
                    summary.keep_alive_token |= tokens::has(value, "keep-alive");
                    continue;
                }
                14 if is("content-length") => {
                    summary.has_body = true;
                    continue;
                }
                13 if is("if-none-match") => &mut fields.if_none_match,
                17 if is("if-modified-since") => &mut fields.if_modified_since,
                19 if is("if-unmodified-since") => &mut fields.if_unmodified_since,
                _ => continue,
            };
            once.add(HeadSpan::of(value, head));
            summary.is_conditional = true;
        }
        summary
    }
}

#[cfg(test)]
mod tests {
    use wire::{RequestLimits, RequestParser};

    use super::*;

    #[test]
    fn places_are_those_of_the_values_and_hold_in_a_copy_of_the_head() {
        let bytes = b"\r\nGET http://h/a?b HTTP/1.1\r\nHost: a\r\nRange:  bytes=0-1 \r\n\
            If-Range: x\r\nIf-Range: y\r\nIf-Match:\r\nConnection: x, Keep-Alive\r\n\r\nGET /next";
        let mut parser = RequestParser::new(RequestLimits::DEFAULT);
        let summary = RequestSummary::of(&parser.parse(bytes).unwrap().unwrap(), bytes);
        let head = bytes[..summary.head_len].to_vec();
        assert!(head.ends_with(b"\r\n\r\n"));
        assert_eq!((summary.method, summary.target.in_head(&head)), (Method::Get, &b"/a?b"[..]));
        let fields = summary.fields.in_head(&head);
        assert_eq!(fields.range, SingleField::Is(&b"bytes=0-1"[..]));
        assert_eq!(fields.if_range, SingleField::Repeated);
        assert_eq!(fields.if_match, SingleField::Is(&b""[..]));
        assert_eq!(fields.if_none_match, SingleField::Absent);
        assert!(summary.is_conditional && summary.keep_alive_token && summary.keep_alive);
    }
}
