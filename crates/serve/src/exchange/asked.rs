//! What the fields of a request ask for, found in one pass over them. Owns which fields matter; must
//! not know what is served. Start reading at [`Asked::of`].

use wire::{Request, tokens};

/// The fields that a server of files heeds. A field that may stand only once and is repeated counts
/// as malformed, which for each of these means: as if it were not there, or never true.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Asked<'a> {
    /// The client said `Connection: keep-alive`.
    pub(super) keep_alive_token: bool,
    pub(super) if_match: Once<'a>,
    pub(super) if_none_match: Once<'a>,
    pub(super) if_modified_since: Once<'a>,
    pub(super) if_unmodified_since: Once<'a>,
    pub(super) if_range: Once<'a>,
    pub(super) range: Once<'a>,
    pub(super) referer: Once<'a>,
    pub(super) user_agent: Once<'a>,
    /// Whether any condition or range is there.
    pub(super) is_special: bool,
}

/// A field that should stand once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Once<'a> {
    #[default]
    Absent,
    Is(&'a [u8]),
    Repeated,
}

impl<'a> Once<'a> {
    /// The value, if there is exactly one.
    pub(super) fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Is(value) => Some(value),
            Self::Absent | Self::Repeated => None,
        }
    }

    /// The first value counts for the log, however many there are.
    fn add(&mut self, value: &'a [u8]) {
        *self = if *self == Self::Absent { Self::Is(value) } else { Self::Repeated };
    }
}

impl<'a> Asked<'a> {
    /// Reads the fields. They are told apart by the length of the name first.
    pub(super) fn of(request: &Request<'a>) -> Self {
        let mut asked = Self::default();
        for (name, value) in request.fields {
            let is = |known: &str| name.eq_ignore_ascii_case(known);
            let place = match name.len() {
                5 if is("range") => &mut asked.range,
                7 if is("referer") => &mut asked.referer,
                8 if is("if-match") => &mut asked.if_match,
                8 if is("if-range") => &mut asked.if_range,
                10 if is("user-agent") => &mut asked.user_agent,
                10 if is("connection") => {
                    asked.keep_alive_token |= tokens::has(value, "keep-alive");
                    continue;
                }
                13 if is("if-none-match") => &mut asked.if_none_match,
                17 if is("if-modified-since") => &mut asked.if_modified_since,
                19 if is("if-unmodified-since") => &mut asked.if_unmodified_since,
                _ => continue,
            };
            place.add(value);
            asked.is_special |= !matches!(name.len(), 7 | 10);
        }
        asked
    }
}
