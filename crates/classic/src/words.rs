//! Owns the view of a text as words with their positions, and the reading of quantities from them. Wrapping, indenting,
//! quoting, numbering or marking up a report only changes the space between its words, so space is ignored. Start
//! reading at [`words`] and [`Cursor`].

use std::ops::Range;

use units::{Bytes, Nanos};

use crate::numbers::{self, Comma, Reading, bytes, count, figure, with_unit};

/// A word of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub(crate) text: &'t str,
    /// Bytes of the text.
    pub(crate) place: Range<usize>,
    /// Whether it is the first of its line, except for quotation marks.
    pub(crate) starts_line: bool,
    /// Whether a bar precedes it: of a table, or of a pipe.
    pub(crate) after_bar: bool,
    /// Whether an empty line precedes it.
    pub(crate) after_blank: bool,
}

/// Most lines without a number between numbered ones: they were wrapped.
const UNNUMBERED_LINES_MAX: usize = 3;
/// Consecutive numbers that make them line numbers.
const NUMBERED_LINES_MIN: usize = 3;
/// Distance around an ambiguous number within which others determine the role of its comma.
const COMMA_WORDS: usize = 100;

/// The words of a clean text. Words are separated by white space, bars of tables, and the braces of JSON, whose names
/// and values are words even without a space between them. At the start of a line, quotation marks, list marks and line
/// numbers are left out.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let mut found: Vec<Word> = Vec::new();
    let mut numbers = line_numbers(text).into_iter().peekable();
    let (mut at, mut starts_line, mut after_bar, mut newlines) = (0, true, false, 0);
    while at < text.len() {
        let rest = &text[at..];
        let gap = gap(rest) + if starts_line { quotation(&rest[gap(rest)..]) } else { 0 };
        if gap > 0 {
            starts_line |= rest[..gap].contains(['\n', '\r']);
            after_bar |= rest[..gap].contains('|');
            newlines += rest[..gap].matches('\n').count();
            at += gap;
            continue;
        }
        while numbers.next_if(|number| number.end <= at).is_some() {}
        if let Some(number) = numbers.next_if(|number| number.start == at) {
            at = number.end;
            continue;
        }
        let length = word_len(rest);
        let word = bare_of_marks(&rest[..length]);
        let is_mark = starts_line && matches!(word, "-" | "*" | "+" | "•" | "·" | "‣" | "◦" | "▪");
        if !word.is_empty() && !is_mark {
            let start = at + rest[..length].find(word).unwrap_or(0);
            let place = start..start + word.len();
            let after_blank = newlines > 1;
            found.push(Word { text: word, place, starts_line, after_bar, after_blank });
            (starts_line, after_bar, newlines) = (false, false, 0);
        }
        at += length;
    }
    found
}

/// Bytes at the start of a text that do not belong to a word.
fn gap(text: &str) -> usize {
    let between = |c: char| c.is_whitespace() || "{}|│┃║".contains(c);
    text.find(|c: char| !between(c)).unwrap_or(text.len())
}

/// Bytes of quotation and comment marks at the start of a line.
fn quotation(line: &str) -> usize {
    let quoted = line.bytes().take_while(|byte| *byte == b'>').count();
    if quoted > 0 {
        return quoted;
    }
    let hashes = line.bytes().take_while(|byte| *byte == b'#').count();
    let mark = if line.starts_with("//") { 2 } else { hashes };
    let alone = line[mark..].chars().next().is_none_or(char::is_whitespace);
    if alone { mark } else { 0 }
}

/// A word without the marks for bold or code.
fn bare_of_marks(word: &str) -> &str {
    if word == "**" || word == "*" {
        return word;
    }
    let word = word.trim_matches(['`', '*']);
    let bold = word.strip_prefix("__").and_then(|word| word.strip_suffix("__"));
    bold.unwrap_or(word)
}

/// Line numbers that were printed before the lines: each is one more than the last.
fn line_numbers(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut row: Vec<(u64, Range<usize>)> = Vec::new();
    let (mut at, mut unnumbered) = (0, 0);
    let mut keep = |row: &mut Vec<(u64, Range<usize>)>| {
        let places = row.drain(..).map(|(_, place)| place);
        let places: Vec<_> = places.collect();
        if places.len() >= NUMBERED_LINES_MIN {
            found.extend(places);
        }
    };
    for line in text.split_inclusive('\n') {
        if let Some((number, place)) = line_number(line) {
            if row.last().is_some_and(|(last, _)| Some(number) != last.checked_add(1)) {
                keep(&mut row);
            }
            row.push((number, at + place.start..at + place.end));
            unnumbered = 0;
        } else {
            unnumbered += 1;
            if unnumbered > UNNUMBERED_LINES_MAX {
                keep(&mut row);
            }
        }
        at += line.len();
    }
    keep(&mut row);
    found
}

fn line_number(line: &str) -> Option<(u64, Range<usize>)> {
    let start = line.find(|c: char| !c.is_whitespace() && !">|│".contains(c))?;
    let digits = line[start..].bytes().take_while(u8::is_ascii_digit).count();
    let number = line.get(start..start + digits)?.parse().ok()?;
    let mark = line[start + digits..].starts_with([':', '.', ')', ']']);
    let end = start + digits + usize::from(mark);
    let alone = line[end..].chars().next().is_none_or(|c| c.is_whitespace() || "|│".contains(c));
    alone.then_some((number, start..end))
}

/// Bytes up to the end of the first word of a text; at least one character.
fn word_len(text: &str) -> usize {
    for (at, c) in text.char_indices().skip(1) {
        let before = &text[..at];
        let ends_name = before.len() > 2 && before.starts_with('"') && before.ends_with("\":");
        let starts_name = before.ends_with(',') && c == '"';
        if ends_name || starts_name || gap(&text[at..at + c.len_utf8()]) > 0 {
            return at;
        }
    }
    text.len()
}

/// Whether a number may have decimals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Decimals {
    None,
    Allowed,
}

/// A position between words, from which quantities are read. Every reading either takes the words that it needs and
/// moves on, or returns `None`.
#[derive(Debug, Clone)]
pub(crate) struct Cursor<'t, 'w> {
    words: &'w [Word<'t>],
    at: usize,
    /// Indices of the words that matched `#` in the label.
    hashes: Vec<usize>,
    /// The unit of the last digit of the last number, in the unit in which it was printed.
    step: f64,
}

impl<'t, 'w> Cursor<'t, 'w> {
    /// The position after a label at `at`. In a label `#` matches any word that begins with a digit, and a word that
    /// ends with `..:` may have any number of points there, or none.
    pub(crate) fn behind(words: &'w [Word<'t>], at: usize, label: &str) -> Option<Self> {
        let mut cursor = Self { words, at, hashes: Vec::new(), step: 0.0 };
        for wanted in label.split(' ') {
            let index = cursor.at;
            let word = cursor.word()?;
            if wanted == "-" && word != wanted {
                // At the start of a line it was taken for a list mark.
                cursor.at = index;
                continue;
            }
            let fits = match wanted.strip_suffix("..:") {
                Some(name) => {
                    word.strip_suffix(':').is_some_and(|word| word.trim_end_matches('.') == name)
                }
                None if wanted == "#" => {
                    cursor.hashes.push(index);
                    word.trim_start_matches('(').starts_with(|c: char| c.is_ascii_digit())
                }
                None => word == wanted,
            };
            fits.then_some(())?;
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

    /// The next word, without moving.
    pub(crate) fn peek(&self) -> Option<&'t str> {
        Some(self.words.get(self.at)?.text)
    }

    /// Whether an empty line precedes the next word.
    pub(crate) fn after_blank(&self) -> bool {
        self.words.get(self.at).is_some_and(|word| word.after_blank)
    }

    /// The next word, if it is on the same line as the one before.
    fn peek_on_line(&self) -> Option<&'t str> {
        self.words.get(self.at).filter(|word| !word.starts_line).map(|word| word.text)
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
            let word = ahead.word()?;
            (word == wanted || word.trim_end_matches([',', ';', '.']) == wanted).then_some(())?;
        }
        self.at = ahead.at;
        Some(())
    }

    /// An integer.
    pub(crate) fn count(&mut self) -> Option<u64> {
        let first = self.word_of(|word| count(word).is_some())?;
        let (grouped, words) = self.with_groups(first, Decimals::None);
        self.at += words;
        self.step = 1.0;
        count(&grouped)
    }

    /// A number.
    pub(crate) fn number(&mut self) -> Option<f64> {
        let reading = figure(self.peek()?)?;
        self.settle(reading, self.at).inspect(|_| self.at += 1)
    }

    /// A number directly followed by a unit.
    pub(crate) fn number_before(&mut self, unit: &str) -> Option<f64> {
        let (reading, _) = with_unit(self.peek()?).filter(|(_, printed)| *printed == unit)?;
        self.settle(reading, self.at).inspect(|_| self.at += 1)
    }

    /// A number that is a separate word before its unit, so that spaces may separate groups of its digits.
    pub(crate) fn figure(&mut self) -> Option<f64> {
        let first = self.peek()?;
        figure(first)?;
        let behind = Self { at: self.at + 1, ..self.clone() };
        let (grouped, words) = behind.with_groups(first, Decimals::Allowed);
        let reading = figure(&grouped)?;
        self.settle(reading, self.at).inspect(|_| self.at += 1 + words)
    }

    /// A duration with its unit, such as "1.5ms".
    pub(crate) fn span(&mut self) -> Option<Nanos> {
        let span = self.span_of(self.at)?;
        self.at += 1;
        Some(span)
    }

    /// A name and a duration, such as "avg=1.5ms".
    pub(crate) fn named_span(&mut self) -> Option<(&'t str, Nanos)> {
        let (name, time) = self.peek()?.split_once('=')?;
        let span = numbers::span(time, self.comma(self.at))?;
        self.step = span.step;
        self.at += 1;
        Some((name, Nanos::from_secs_f64(span.value)))
    }

    /// A size with its unit, such as "1.5MB"; the unit may be the next word.
    pub(crate) fn size(&mut self) -> Option<Bytes> {
        let word = self.peek()?;
        let comma = self.comma(self.at);
        let mut words = 1;
        let mut size = numbers::size(word, comma);
        if size.is_none() {
            let unit = self.words.get(self.at + 1)?.text;
            size = numbers::size(&format!("{word}{}", unit.trim_end_matches([',', ';'])), comma);
            words = 2;
        }
        let size = size?;
        self.at += words;
        self.step = size.step;
        Some(bytes(size.value))
    }

    /// A row of a table of percentiles, if its percentage is above the last one: `50%  12`, with the time read by
    /// `span`.
    pub(crate) fn percentile(
        &mut self,
        last: Option<f64>,
        time: impl Fn(&mut Self) -> Option<Nanos>,
    ) -> Option<(f64, Nanos)> {
        let mut ahead = self.clone();
        let percent = ahead.percent().filter(|percent| last.is_none_or(|last| *percent > last))?;
        let time = time(&mut ahead)?;
        *self = ahead;
        Some((percent, time))
    }

    /// A percentage, such as "50%" or "99.9%:".
    pub(crate) fn percent(&mut self) -> Option<f64> {
        let word = self.peek()?.trim_end_matches([',', ':']).strip_suffix('%')?;
        let reading = figure(word.trim_end_matches('%'))?;
        let percent = self.settle(reading, self.at).filter(|percent| *percent <= 100.0)?;
        self.at += 1;
        Some(percent)
    }

    /// The word that matched the n-th `#` of the label.
    pub(crate) fn hash(&self, n: usize) -> Option<&'t str> {
        Some(self.words.get(*self.hashes.get(n)?)?.text)
    }

    /// The n-th `#` of the label as an integer.
    pub(crate) fn hash_count(&self, n: usize) -> Option<u64> {
        count(self.hash(n)?)
    }

    /// The n-th `#` of the label as a number.
    pub(crate) fn hash_number(&mut self, n: usize) -> Option<f64> {
        let reading = figure(self.hash(n)?)?;
        self.settle(reading, *self.hashes.get(n)?)
    }

    /// The n-th `#` of the label as a time with its unit.
    pub(crate) fn hash_span(&mut self, n: usize) -> Option<Nanos> {
        self.span_of(*self.hashes.get(n)?)
    }

    /// The n-th `#` of the label as a size with its unit.
    pub(crate) fn hash_size(&mut self, n: usize) -> Option<Bytes> {
        let index = *self.hashes.get(n)?;
        let size = numbers::size(self.hash(n)?, self.comma(index))?;
        self.step = size.step;
        Some(bytes(size.value))
    }

    /// The unit of the last digit of the last number.
    pub(crate) fn step(&self) -> f64 {
        self.step
    }

    /// Restores a step that was read before others.
    pub(crate) fn set_step(&mut self, step: f64) {
        self.step = step;
    }

    fn word_of(&mut self, fits: impl Fn(&str) -> bool) -> Option<&'t str> {
        let word = self.peek().filter(|word| fits(word))?;
        self.at += 1;
        Some(word)
    }

    fn span_of(&mut self, index: usize) -> Option<Nanos> {
        let span = numbers::span(self.words.get(index)?.text, self.comma(index))?;
        self.step = span.step;
        Some(Nanos::from_secs_f64(span.value))
    }

    fn settle(&mut self, reading: Reading, index: usize) -> Option<f64> {
        let figure = match reading {
            Reading::Sure(figure) => figure,
            Reading::Either { .. } => reading.settle(self.comma(index))?,
        };
        self.step = figure.step;
        Some(figure.value)
    }

    /// A number of one to three digits with the following groups of three on its line, and the number of groups.
    fn with_groups(&self, first: &str, decimals: Decimals) -> (String, usize) {
        let alone = (String::from(first), 0);
        let begins = (1..=3).contains(&first.len())
            && first.bytes().all(|byte| byte.is_ascii_digit())
            && !first.starts_with('0');
        if !begins {
            return alone;
        }
        let (mut grouped, mut ahead) = (String::from(first), self.clone());
        while let Some(word) = ahead.peek_on_line() {
            let group = numbers::bare(word);
            let (digits, rest) = group.split_at(group.find(['.', ',']).unwrap_or(group.len()));
            let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let ends = !rest.is_empty();
            let fits = !ends || (decimals == Decimals::Allowed && all_digits(&rest[1..]));
            if digits.len() != 3 || !all_digits(digits) || !fits {
                break;
            }
            grouped.push_str(digits);
            ahead.at += 1;
            if ends {
                // A space groups the digits, so this is a decimal mark.
                grouped.push_str(&rest.replace(',', "."));
                break;
            }
        }
        (grouped, ahead.at - self.at)
    }

    /// The role of the commas in the numbers around a word.
    fn comma(&self, index: usize) -> Comma {
        let asked =
            self.words.get(index).is_some_and(|word| numbers::bare(word.text).contains(','));
        if !asked {
            return Comma::Unknown;
        }
        let start = index.saturating_sub(COMMA_WORDS);
        let around = &self.words[start..(index + COMMA_WORDS).min(self.words.len())];
        let (mut decimals, mut groups) = (false, false);
        for word in around.iter().filter(|word| word.text.contains(',')) {
            let value = word.text.rsplit('=').next().unwrap_or(word.text);
            match numbers::comma(value) {
                Comma::BeforeDecimals => decimals = true,
                Comma::BetweenGroups => groups = true,
                Comma::Unknown => {}
            }
        }
        match (decimals, groups) {
            (true, false) => Comma::BeforeDecimals,
            (false, true) => Comma::BetweenGroups,
            _ => Comma::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clean::Clean;

    fn texts(text: &str) -> Vec<String> {
        words(Clean::new(text).text()).into_iter().map(|word| word.text.to_owned()).collect()
    }

    #[test]
    fn what_lies_between_words_is_not_looked_at() {
        for text in [
            "Failed requests: 7",
            "> Failed\n> requests:\t7",
            "\u{1b}[1;31mFailed\u{1b}[0m requests: 7",
            ">Failed requests:\n>> 7",
            "| Failed requests: | 7 |",
            "- Failed requests:\u{a0}\u{a0}7",
            "```\nFailed requests: `7`\n```",
            "12: Failed\n13: requests:\n14: 7",
            "&gt; **Failed requests:** 7",
        ] {
            assert_eq!(texts(text), ["Failed", "requests:", "7"], "{text:?}");
        }
        let html = "<tr ><th colspan=2 bgcolor=white>Failed requests:</th><td>7</td></tr>&nbsp;";
        assert_eq!(texts(html), ["Failed", "requests:", "7"]);
        assert_eq!(texts("<=11 <5 a<b"), ["<=11", "<5", "a<b"]);
        assert_eq!(texts("** SIEGE 4.0.7"), ["**", "SIEGE", "4.0.7"]);
    }

    #[test]
    fn json_is_words_with_or_without_spaces() {
        let words = ["\"hits\":", "20,", "\"rate\":", "1.5"];
        assert_eq!(texts("{\"hits\":20,\"rate\":1.5}"), words);
        assert_eq!(texts("{\t\"hits\": 20,\n \"rate\":\t 1.5 }"), words);
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "  ä  **wort** | `x`";
        for word in words(text) {
            assert_eq!(&text[word.place.clone()], word.text);
        }
    }

    /// Reads after a word.
    fn behind<T>(text: &str, read: impl Fn(&mut Cursor<'_, '_>) -> Option<T>) -> Option<T> {
        let words = words(text);
        read(&mut Cursor::behind(&words, 0, "x")?)
    }

    #[test]
    fn groups_of_digits_may_stand_apart() {
        assert_eq!(behind("x 7 307 256 bytes", |at| at.count()), Some(7_307_256));
        assert_eq!(behind("x 0 100 200", |at| at.count()), Some(0));
        assert_eq!(behind("x 12\n345", |at| at.count()), Some(12));
        assert_eq!(behind("x 27 813,70 [#/sec]", |at| at.figure()), Some(27813.7));
        assert_eq!(behind("x 2 100 3", |at| at.number()), Some(2.0));
        assert_eq!(behind("x 100 999.87/s", |at| at.count()), Some(100));
        assert_eq!(behind("x 100 999.87", |at| at.count()), Some(100));
    }

    #[test]
    fn the_numbers_around_tell_what_a_comma_is() {
        assert_eq!(behind("x 1,234 y 12,5", |at| at.number()), Some(1.234));
        assert_eq!(behind("x 1,234 y 1,000,000", |at| at.number()), Some(1234.0));
        assert_eq!(behind("x 1,234 y 12.5", |at| at.number()), None);
        assert_eq!(behind("x 1,234 y 1,000.5 12,5", |at| at.number()), None);
    }
}
