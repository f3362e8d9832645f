//! Listings for a terminal: rows of words, and a thing with its facts and its terms. Owns their layout.
//! Must not know what is listed. Start reading at [`rows_text`].

use crate::Options;
use crate::terminal::{Lean, Page, Paint, wrapped};
use crate::wording::plain;

/// Rows of words below titles, the first column unbroken, and a remark; ends in a newline.
pub fn rows_text(titles: &[&str], rows: &[Vec<String>], remark: &str, options: &Options) -> String {
    let mut page = Page::new(options);
    let lean = |at: usize| if at == 0 { Lean::Whole } else { Lean::Left };
    let columns: Vec<(&str, Lean)> =
        titles.iter().enumerate().map(|(at, title)| (*title, lean(at))).collect();
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|text| plain(text)).collect()).collect();
    page.table(&columns, &rows);
    page.line("", Paint::Plain);
    page.paragraph(remark, Paint::Faint);
    page.finish()
}

/// A thing in detail.
#[derive(Debug, Default)]
pub struct Listed {
    /// Its name and what it is, in a sentence.
    pub title: String,
    /// Label and text.
    pub facts: Vec<(&'static str, String)>,
    /// What may be set or said of it, and what that means.
    pub terms: Vec<(String, String)>,
}

/// A thing with its facts and terms; ends in a newline.
pub fn listed_text(listed: &Listed, options: &Options) -> String {
    let mut page = Page::new(options);
    for line in wrapped(&plain(&listed.title), options.width) {
        page.line(&line, Paint::Heading);
    }
    page.labelled(listed.facts.iter().map(|(label, text)| (*label, plain(text), Paint::Plain)));
    for (term, meaning) in &listed.terms {
        page.paragraph(&plain(term), Paint::Plain);
        page.detail(&plain(meaning));
    }
    page.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_wrap_between_words_within_the_terminal() {
        let long = "word ".repeat(30);
        let row = vec!["a-name".to_owned(), long.clone(), "/usr/sbin/a".to_owned()];
        let listed = Listed {
            title: format!("a-name: {long}"),
            facts: vec![("here", long.clone()), ("program", "/usr/sbin/a".to_owned())],
            terms: vec![("term = 1".to_owned(), long)],
        };
        for width in [80, 120] {
            let options = Options { width, ..Options::default() };
            let rows = rows_text(
                &["name", "version", "program"],
                std::slice::from_ref(&row),
                "more",
                &options,
            );
            for text in [rows, listed_text(&listed, &options)] {
                assert!(text.contains("a-name") && text.contains("/usr/sbin/a"), "{text}");
                for line in text.lines() {
                    assert!(line.chars().count() <= width, "{width}: {line}");
                    let words = line.split_whitespace();
                    assert!(!words.clone().any(|word| "word".starts_with(word) && word != "word"));
                }
            }
        }
        let text = listed_text(&listed, &Options { width: 80, ..Options::default() });
        assert!(text.contains("\n  term = 1\n    word"), "{text}");
    }
}
