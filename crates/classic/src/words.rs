//! Owns the view of a text as words with their places, and the reading of quantities from them. What wraps,
//! indents, quotes, colours or marks up a report changes the space between its words only, so it is the
//! space that is not looked at. Start reading at [`words`] and [`Cursor`].

use std::ops::Range;

use units::{Bytes, Nanos};

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// In bytes of the text.
    pub(crate) place: Range<usize>,
    /// Whether it is the first of its line, marks of quotation aside.
    pub(crate) starts_line: bool,
}

/// Longest tag of HTML that is taken for one; what is longer is words.
const TAG_BYTES_MAX: usize = 400;

/// The words of a text. Between words lie white space, escape sequences of terminals, tags and
/// spaces of HTML, and the braces of JSON, whose names and values are words even where no space is
/// between them. Marks of quotation at the start of a line are left out.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found: Vec<Word> = Vec::new();
    let (mut at, mut starts_line) = (0, true);
    while at < text.len() {
        let rest = &text[at..];
        let gap = gap(rest);
        if gap > 0 {
            starts_line |= rest[..gap].contains('\n');
            at += gap;
            continue;
        }
        let word = &rest[..word_len(rest)];
        let is_mark = starts_line && matches!(word, ">" | ">>" | ">>>" | "|" | "#" | "//");
        if !is_mark {
            found.push(Word { text: word, place: at..at + word.len(), starts_line });
            starts_line = false;
        }
        at += word.len();
    }
    found
}

/// Bytes at the start of a text that are no part of a word.
fn gap(text: &str) -> usize {
    let first = text.chars().next().unwrap_or(' ');
    match first {
        first if first.is_whitespace() || first == '{' || first == '}' => first.len_utf8(),
        '\u{1b}' => escape(text),
        '<' => tag(text),
        '&' if text.starts_with("&nbsp;") => "&nbsp;".len(),
        _ => 0,
    }
}

/// Length of an escape sequence that sets colours (ECMA-48, CSI to its final byte).
fn escape(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\u{1b}[") else { return 1 };
    let parameters = rest.bytes().take_while(|byte| (0x20..0x40).contains(byte)).count();
    let ends = rest.as_bytes().get(parameters).is_some_and(|byte| (0x40..0x7f).contains(byte));
    2 + parameters + usize::from(ends)
}

fn tag(text: &str) -> usize {
    let named = text[1..].starts_with(|c: char| c == '/' || c.is_ascii_alphabetic());
    let end = text.bytes().take(TAG_BYTES_MAX).position(|byte| byte == b'>');
    end.filter(|_| named).map_or(0, |end| end + 1)
}

/// Bytes to the end of the word that a text starts with; at least one character.
fn word_len(text: &str) -> usize {
    for (at, c) in text.char_indices().skip(1) {
        let before = &text[..at];
        let ends_name = before.len() > 2 && before.starts_with('"') && before.ends_with("\":");
        let starts_name = before.ends_with(',') && c == '"';
        if ends_name
            || starts_name
            || (matches!(c, '\u{1b}' | '<' | '&') || c.is_whitespace() || c == '{' || c == '}')
                && gap(&text[at..]) > 0
        {
            return at;
        }
    }
    text.len()
}

/// A place between words, from which quantities are read. Every reading either takes what it wants
/// and moves on, or is `None`.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'t, 'w> {
    words: &'w [Word<'t>],
    at: usize,
    /// The words of the label that `#` stood for.
    numbers: Vec<&'t str>,
}

impl<'t, 'w> Cursor<'t, 'w> {
    /// Behind a label, where it stands at `at`.
    pub(crate) fn behind(words: &'w [Word<'t>], at: usize, label: &str) -> Option<Self> {
        let mut cursor = Self { words, at, numbers: Vec::new() };
        for wanted in label.split(' ') {
            let word = cursor.word()?;
            if wanted == "#" {
                word.trim_start_matches('(')
                    .starts_with(|c: char| c.is_ascii_digit())
                    .then_some(())?;
                cursor.numbers.push(word);
            } else if word != wanted {
                return None;
            }
        }
        Some(cursor)
    }

    /// Index of the next word.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next word.
    pub(crate) fn word(&mut self) -> Option<&'t str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word.text)
    }

    /// The next word, which stays the next one.
    pub(crate) fn peek(&self) -> Option<&'t str> {
        Some(self.words.get(self.at)?.text)
    }

    /// The words up to the end of the line, joined by single spaces.
    pub(crate) fn line(&mut self) -> String {
        let rest = &self.words[self.at.min(self.words.len())..];
        let line: Vec<&str> =
            rest.iter().take_while(|word| !word.starts_line).map(|word| word.text).collect();
        self.at += line.len();
        line.join(" ")
    }

    /// Takes these words, if they come next.
    pub(crate) fn says(&mut self, text: &str) -> Option<()> {
        let mut ahead = self.clone();
        for wanted in text.split(' ') {
            (ahead.word()?.trim_end_matches([',', ';']) == wanted).then_some(())?;
        }
        self.at = ahead.at;
        Some(())
    }

    /// A number without fraction.
    pub(crate) fn count(&mut self) -> Option<u64> {
        let count = count(self.peek()?)?;
        self.at += 1;
        Some(count)
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Option<f64> {
        let number = number(self.peek()?)?;
        self.at += 1;
        Some(number)
    }

    /// A time with its unit, as "1.5ms".
    pub(crate) fn span(&mut self) -> Option<Nanos> {
        let span = span(self.peek()?)?;
        self.at += 1;
        Some(span)
    }

    /// A size with its unit, as "1.5MB", in powers of 1024.
    pub(crate) fn size(&mut self) -> Option<Bytes> {
        let size = size(self.peek()?)?;
        self.at += 1;
        Some(size)
    }

    /// A percentage, as "50%" or "99.9%:".
    pub(crate) fn percent(&mut self) -> Option<f64> {
        let word = self.peek()?.trim_end_matches([',', ':']).strip_suffix('%')?;
        let percent = number(word.trim_end_matches('%')).filter(|percent| *percent <= 100.0)?;
        self.at += 1;
        Some(percent)
    }

    /// What the n-th `#` of the label stood for.
    pub(crate) fn hash(&self, n: usize) -> Option<&'t str> {
        self.numbers.get(n).copied()
    }

    /// The n-th `#` of the label as a number without fraction.
    pub(crate) fn hash_count(&self, n: usize) -> Option<u64> {
        count(self.hash(n)?)
    }

    /// The n-th `#` of the label as a number.
    pub(crate) fn hash_number(&self, n: usize) -> Option<f64> {
        number(self.hash(n)?)
    }
}

fn bare(word: &str) -> &str {
    word.trim_start_matches(['(', '[', '"']).trim_end_matches([',', ';', ')', ']', '"'])
}

/// A count; what stands around it in print is left away.
pub(crate) fn count(word: &str) -> Option<u64> {
    let word = bare(word);
    word.starts_with(|c: char| c.is_ascii_digit()).then(|| word.parse().ok())?
}

/// A number that is finite and not negative; what stands around it in print is left away. NaN, which
/// some tools print of nothing, is none.
pub(crate) fn number(word: &str) -> Option<f64> {
    let word = bare(word);
    let digit = word.starts_with(|c: char| c.is_ascii_digit());
    digit.then(|| word.parse().ok())?.filter(|number: &f64| number.is_finite())
}

/// A time with its unit.
pub(crate) fn span(word: &str) -> Option<Nanos> {
    let (number, unit) = split(bare(word))?;
    let secs = match unit {
        "us" => number * 1e-6,
        "ms" => number * 1e-3,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return None,
    };
    Some(Nanos::from_secs_f64(secs))
}

/// A size with its unit, in powers of 1024.
pub(crate) fn size(word: &str) -> Option<Bytes> {
    let (number, unit) = split(bare(word).trim_end_matches("/s"))?;
    let scale: f64 = match unit {
        "B" => 1.0,
        "KB" => 1024.0,
        "MB" => 1_048_576.0,
        "GB" => 1_073_741_824.0,
        "TB" => 1_099_511_627_776.0,
        _ => return None,
    };
    Some(bytes(number * scale))
}

/// Bytes from a number that was printed rounded.
pub(crate) fn bytes(number: f64) -> Bytes {
    Bytes(number.round() as u64)
}

/// Milliseconds as they were printed.
pub(crate) fn millis(number: f64) -> Nanos {
    Nanos::from_secs_f64(number / 1e3)
}

fn split(word: &str) -> Option<(f64, &str)> {
    let end = word.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    Some((number(&word[..end])?, &word[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        words(text).into_iter().map(|word| word.text).collect()
    }

    #[test]
    fn what_lies_between_words_is_not_looked_at() {
        for text in [
            "Failed requests: 7",
            "> Failed\n> requests:\t7",
            "\u{1b}[1;31mFailed\u{1b}[0m requests: 7",
        ] {
            assert_eq!(texts(text), ["Failed", "requests:", "7"], "{text:?}");
        }
        let html = "<tr ><th colspan=2 bgcolor=white>Failed requests:</th><td>7</td></tr>&nbsp;";
        assert_eq!(texts(html), ["Failed", "requests:", "7"]);
        assert_eq!(texts("<=11 <5 a<b"), ["<=11", "<5", "a<b"]);
    }

    #[test]
    fn json_is_words_with_or_without_spaces() {
        let words = ["\"hits\":", "20,", "\"rate\":", "1.5"];
        assert_eq!(texts("{\"hits\":20,\"rate\":1.5}"), words);
        assert_eq!(texts("{\t\"hits\": 20,\n \"rate\":\t 1.5 }"), words);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "  ä\u{1b}[0m <b>wort</b>";
        for word in words(text) {
            assert_eq!(&text[word.place.clone()], word.text);
        }
    }

    #[test]
    fn quantities_of_each_tool_are_read() {
        assert_eq!(
            (count("(283),"), count("28.3"), count("-1"), count("")),
            (Some(283), None, None, None)
        );
        assert_eq!((number("1.36e+08"), number("-nan"), number("NaN")), (Some(1.36e8), None, None));
        assert_eq!(
            (span("1.06ms"), span("17us,"), span("2.00m")),
            (Some(Nanos(1_060_000)), Some(Nanos(17_000)), Some(Nanos::from_secs(120)))
        );
        assert_eq!(
            (size("1.50KB"), size("269.46MB/s"), size("7")),
            (Some(Bytes(1536)), Some(Bytes(282_549_289)), None)
        );
    }
}
