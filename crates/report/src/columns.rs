//! Owns how many columns of a terminal a text takes: a Chinese character takes two, a combining accent none. Whatever is
//! aligned, cut or wrapped for a terminal is counted here. Start reading at [`width`].

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Columns that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The text if it fits, otherwise its beginning with a mark that something is missing; never wider than `room`.
pub(crate) fn cut(text: &str, room: usize, is_unicode: bool) -> String {
    if width(text) <= room {
        return text.to_owned();
    }
    let mark = if is_unicode { '\u{2026}' } else { '~' };
    let (mut kept, _) = split(text, room.saturating_sub(1));
    if room > 0 {
        kept.push(mark);
    }
    kept
}

/// The text with spaces behind it, `room` wide unless it is wider by itself.
pub(crate) fn padded(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(width(text))))
}

/// The text with spaces before it, `room` wide unless it is wider by itself.
pub(crate) fn right(text: &str, room: usize) -> String {
    format!("{}{text}", " ".repeat(room.saturating_sub(width(text))))
}

/// The longest beginning that fits into `room` columns, and the rest.
pub(crate) fn split(text: &str, room: usize) -> (String, &str) {
    let mut taken = 0;
    let is_beyond = |&(_, c): &(usize, char)| {
        // A sequence (emoji) can be narrower than the sum of its characters.
        taken += c.width().unwrap_or(0);
        taken > room
    };
    let end = text.char_indices().find(is_beyond).map_or(text.len(), |(at, _)| at);
    (text[..end].to_owned(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_character_takes_two_columns_and_is_never_halved() {
        assert_eq!((width("nginx"), width("\u{670d}\u{52a1}"), width("e\u{301}")), (5, 4, 1));
        assert_eq!(cut("\u{670d}\u{52a1}\u{5668}", 4, true), "\u{670d}\u{2026}");
        assert_eq!(cut("\u{670d}\u{52a1}", 4, true), "\u{670d}\u{52a1}");
        assert_eq!(cut("lighttpd", 5, false), "ligh~");
        assert_eq!(
            (cut("lighttpd", 0, true), cut("lighttpd", 1, true)),
            (String::new(), "\u{2026}".to_owned())
        );
        assert_eq!(padded("\u{670d}", 4), "\u{670d}  ");
        assert_eq!(right("\u{670d}", 4), "  \u{670d}");
        assert_eq!(split("\u{670d}\u{52a1}", 3), ("\u{670d}".to_owned(), "\u{52a1}"));
    }
}
