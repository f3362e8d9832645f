//! Owns the cleaning of a pasted text: removing what a terminal, a web page, a word processor or a mail program added
//! to a report. Entities are decoded, tags and escape sequences become the white space that they display as,
//! typographic quotes and dashes become ASCII. Every range of the clean text can be mapped to the original. Must not
//! know what a report is. Start reading at [`Clean`].

use std::ops::Range;

/// Longest HTML tag that is recognised; anything longer is text.
const TAG_BYTES_MAX: usize = 400;
/// Longest entity of HTML, from `&` to `;`.
const ENTITY_BYTES_MAX: usize = 10;
/// Longest title that an escape sequence sets.
const TITLE_BYTES_MAX: usize = 200;

/// Tags that format words and do not separate them.
const INLINE_TAGS: &[&str] = &[
    "a", "b", "code", "del", "em", "font", "i", "ins", "kbd", "mark", "s", "samp", "small", "span",
    "strong", "tt", "u",
];
/// Tags after which a new line begins.
const LINE_TAGS: &[&str] = &[
    "blockquote",
    "br",
    "dd",
    "div",
    "dt",
    "h1",
    "h2",
    "h3",
    "h4",
    "li",
    "ol",
    "p",
    "pre",
    "table",
    "tr",
    "ul",
];
/// Entities by name.
const ENTITIES: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos", '\''),
    ("ast", '*'),
    ("bull", '•'),
    ("colon", ':'),
    ("comma", ','),
    ("emsp", ' '),
    ("ensp", ' '),
    ("equals", '='),
    ("gt", '>'),
    ("hyphen", '-'),
    ("laquo", '«'),
    ("lbrack", '['),
    ("ldquo", '“'),
    ("lowbar", '_'),
    ("lpar", '('),
    ("lsqb", '['),
    ("lsquo", '‘'),
    ("lt", '<'),
    ("mdash", '—'),
    ("micro", 'µ'),
    ("middot", '·'),
    ("minus", '−'),
    ("nbsp", ' '),
    ("ndash", '–'),
    ("num", '#'),
    ("percnt", '%'),
    ("period", '.'),
    ("plus", '+'),
    ("quot", '"'),
    ("raquo", '»'),
    ("rbrack", ']'),
    ("rdquo", '”'),
    ("rpar", ')'),
    ("rsqb", ']'),
    ("rsquo", '’'),
    ("shy", '\u{ad}'),
    ("sol", '/'),
    ("thinsp", '\u{2009}'),
    ("verbar", '|'),
];

/// A cleaned text.
#[derive(Debug)]
pub(crate) struct Clean {
    text: String,
    pieces: Vec<Piece>,
}

/// A piece of the clean text and where it comes from, by ascending place.
#[derive(Debug)]
struct Piece {
    clean: usize,
    raw: Range<usize>,
    /// Whether it is unchanged, byte for byte.
    same: bool,
}

/// The replacement for a part of the text.
enum Instead {
    Text(&'static str),
    Char(char),
}

impl Clean {
    /// Cleans a text.
    pub(crate) fn new(raw: &str) -> Self {
        let mut clean = Self { text: String::with_capacity(raw.len()), pieces: Vec::new() };
        let mut at = 0;
        while let Some(first) = raw[at..].chars().next() {
            match instead(&raw[at..], clean.text.chars().next_back()) {
                Some((length, instead)) => {
                    clean.push(at..at + length, instead);
                    at += length;
                }
                None => {
                    clean.keep(at..at + first.len_utf8(), first);
                    at += first.len_utf8();
                }
            }
        }
        clean
    }

    /// The clean text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The original range of a non-empty range of the clean text.
    pub(crate) fn origin(&self, place: Range<usize>) -> Range<usize> {
        let first = self.pieces.partition_point(|piece| piece.clean <= place.start);
        let last = self.pieces.partition_point(|piece| piece.clean < place.end);
        let piece = |behind: usize| self.pieces.get(behind.saturating_sub(1));
        let start = piece(first).map_or(0, |piece| {
            piece.raw.start + if piece.same { place.start - piece.clean } else { 0 }
        });
        let end = piece(last).map_or(start, |piece| {
            if piece.same { piece.raw.start + (place.end - piece.clean) } else { piece.raw.end }
        });
        start..end.max(start)
    }

    fn keep(&mut self, raw: Range<usize>, c: char) {
        match self.pieces.last_mut() {
            Some(piece) if piece.same && piece.raw.end == raw.start => piece.raw.end = raw.end,
            _ => self.pieces.push(Piece { clean: self.text.len(), raw, same: true }),
        }
        self.text.push(c);
    }

    fn push(&mut self, raw: Range<usize>, instead: Instead) {
        let clean = self.text.len();
        match instead {
            Instead::Text(text) => self.text.push_str(text),
            Instead::Char(c) => self.text.push(c),
        }
        if self.text.len() > clean {
            self.pieces.push(Piece { clean, raw, same: false });
        }
    }
}

/// The replacement for the beginning of a text, and how many bytes it replaces.
fn instead(rest: &str, before: Option<char>) -> Option<(usize, Instead)> {
    let first = rest.chars().next()?;
    let replaced = match first {
        '\u{1b}' => return Some(escape(rest)),
        '<' => return tag(rest),
        '*' => return emphasis(rest, before),
        '&' => {
            let (length, c) = entity(rest)?;
            let decoded = character(c, before, &rest[length..]).unwrap_or(Instead::Char(c));
            return Some((length, decoded));
        }
        c => character(c, before, &rest[first.len_utf8()..])?,
    };
    Some((first.len_utf8(), replaced))
}

/// The plainer form of a character, if it has one.
fn character(c: char, before: Option<char>, behind: &str) -> Option<Instead> {
    Some(match c {
        '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{ad}' => Instead::Text(""),
        // The narrow spaces that group digits.
        '\u{2009}' | '\u{202f}' if groups(before, behind) => Instead::Text(""),
        '“' | '”' | '„' | '‟' | '″' | '«' | '»' => Instead::Text("\""),
        '‘' | '’' | '‚' | '‛' | '′' => Instead::Text("'"),
        '‐' | '‑' | '−' => Instead::Text("-"),
        // A word processor makes it from one hyphen inside words, and from two elsewhere.
        '–' if before.is_some_and(|c| c.is_alphanumeric() || c == '/') => Instead::Text("-"),
        '–' | '—' => Instead::Text("--"),
        '…' => Instead::Text("..."),
        'μ' => Instead::Text("µ"),
        '：' => Instead::Text(": "),
        '！'..='～' => Instead::Char(char::from_u32(u32::from(c) - 0xfee0)?),
        '\t' | '\n' | '\r' => return None,
        c if c.is_control() => Instead::Text(" "),
        _ => return None,
    })
}

/// Whether a space is between groups of digits: after one and before exactly three.
fn groups(before: Option<char>, behind: &str) -> bool {
    let digits = behind.bytes().take_while(u8::is_ascii_digit).count();
    before.is_some_and(|c| c.is_ascii_digit()) && digits == 3
}

/// Escape sequences (ECMA-48): those that set colours do not separate words, others do.
fn escape(rest: &str) -> (usize, Instead) {
    let bytes = rest.as_bytes();
    match bytes.get(1) {
        Some(b'[') => {
            let parameters =
                bytes[2..].iter().take_while(|byte| (0x20..0x40).contains(*byte)).count();
            let end = bytes.get(2 + parameters).copied().filter(|byte| (0x40..0x7f).contains(byte));
            let gap = if end == Some(b'm') { "" } else { " " };
            (2 + parameters + usize::from(end.is_some()), Instead::Text(gap))
        }
        Some(b']') => {
            let title = bytes.iter().take(TITLE_BYTES_MAX).position(|byte| *byte == 7);
            (title.map_or(2, |end| end + 1), Instead::Text(" "))
        }
        _ => (1, Instead::Text(" ")),
    }
}

fn tag(rest: &str) -> Option<(usize, Instead)> {
    let inside = rest[1..].strip_prefix('/').unwrap_or(&rest[1..]);
    let is_tag = rest[1..].starts_with(|c: char| c == '/' || c.is_ascii_alphabetic());
    let end = rest.bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'>').filter(|_| is_tag)?;
    let name: String = inside.chars().take_while(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    let gap = match name.as_str() {
        name if INLINE_TAGS.contains(&name) => "",
        name if LINE_TAGS.contains(&name) => "\n",
        _ => " ",
    };
    Some((end + 1, Instead::Text(gap)))
}

/// The stars of Markdown around words; stars that stand alone belong to siege.
fn emphasis(rest: &str, before: Option<char>) -> Option<(usize, Instead)> {
    let stars = rest.bytes().take_while(|byte| *byte == b'*').count();
    let is_word = |c: Option<char>| c.is_some_and(|c| !c.is_whitespace() && c != '>');
    let marks = stars > 1 && (is_word(before) || is_word(rest[stars..].chars().next()));
    marks.then_some((stars, Instead::Text("")))
}

/// The character that an entity stands for.
fn entity(rest: &str) -> Option<(usize, char)> {
    let end = rest.bytes().take(ENTITY_BYTES_MAX).position(|byte| byte == b';')?;
    let name = &rest[1..end];
    let c = match name.strip_prefix('#') {
        Some(number) => {
            let hex = number.strip_prefix(['x', 'X']);
            let digits = hex.map_or((number, 10), |hex| (hex, 16));
            char::from_u32(u32::from_str_radix(digits.0, digits.1).ok()?)?
        }
        None => ENTITIES.iter().find(|(known, _)| *known == name)?.1,
    };
    // A non-breaking space counts as a space.
    Some((end + 1, if c == '\u{a0}' { ' ' } else { c }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cleaned(raw: &str) -> String {
        Clean::new(raw).text().to_owned()
    }

    #[test]
    fn entities_are_what_they_stand_for() {
        assert_eq!(
            cleaned("&#43;&#x2B;/- &lt;5 a&nbsp;b &amp;gt; &nope; &#43"),
            "++/- <5 a b &gt; &nope; &#43"
        );
    }

    #[test]
    fn tags_and_colours_are_the_space_that_they_are() {
        assert_eq!(cleaned("<th colspan=2>a</th><td>1</td><br/>b"), " a  1 \nb");
        assert_eq!(cleaned("<span class=x>12</span>.5 <b>c</b>"), "12.5 c");
        assert_eq!(cleaned("avg=\u{1b}[36m1.2ms\u{1b}[0m\u{1b}[Kmed"), "avg=1.2ms med");
        assert_eq!(cleaned("a<b and 3 < 5"), "a<b and 3 < 5");
    }

    #[test]
    fn typography_becomes_ascii() {
        assert_eq!(
            cleaned("“hits”: 5 – ‘x’ Non‑2xx Keep–Alive"),
            "\"hits\": 5 -- 'x' Non-2xx Keep-Alive"
        );
        assert_eq!(cleaned("requests：１２％"), "requests: 12%");
        assert_eq!(cleaned("7\u{202f}307\u{202f}256 a\u{202f}b"), "7307256 a\u{202f}b");
        assert_eq!(cleaned("**Failed requests**: 0 ** SIEGE"), "Failed requests: 0 ** SIEGE");
    }

    #[test]
    fn every_place_is_found_in_the_original() {
        let raw = "ä &gt; <b>Fai</b>led\u{1b}[0m “x” end";
        let clean = Clean::new(raw);
        let place = |word: &str| {
            let start = clean.text().find(word).unwrap();
            &raw[clean.origin(start..start + word.len())]
        };
        assert_eq!((place("ä"), place(">"), place("Failed")), ("ä", "&gt;", "Fai</b>led"));
        assert_eq!((place("\"x\""), place("end")), ("“x”", "end"));
    }
}
