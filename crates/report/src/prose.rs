//! Owns pages of prose for a terminal: points with details, and commands that are never broken, so that they can be
//! copied. Such a page fits a narrow terminal too. Must not know what is said. Start reading at [`prose_text`].

use crate::Options;
use crate::terminal::{Page, Paint};
use crate::wording::plain;

/// A part of such a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prose {
    /// A heading, with an empty line above it.
    Heading(String),
    /// A point; it is as prominent as it is important.
    Point(ProseTone, String),
    /// What belongs to the point above it.
    Detail(String),
    /// A command that belongs to the point above it, as it is typed.
    Command(String),
}

/// How much a point matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProseTone {
    /// As any other text.
    Plain,
    /// All is well.
    Good,
    /// The reader should act, or take care.
    Caution,
    /// Something is not known.
    Faint,
}

/// The parts from top to bottom; ends in a newline.
pub fn prose_text(parts: &[Prose], options: &Options) -> String {
    let mut page = Page::narrow(options);
    for part in parts {
        match part {
            Prose::Heading(text) => page.heading(&plain(text), ""),
            Prose::Point(tone, text) => page.paragraph(&plain(text), paint(*tone)),
            Prose::Detail(text) => page.detail(&plain(text)),
            Prose::Command(text) => page.line(&format!("      {}", plain(text)), Paint::Plain),
        }
    }
    page.finish()
}

fn paint(tone: ProseTone) -> Paint {
    match tone {
        ProseTone::Plain => Paint::Plain,
        ProseTone::Good => Paint::Good,
        ProseTone::Caution => Paint::Caution,
        ProseTone::Faint => Paint::Faint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_fits_a_narrow_terminal_and_a_command_stays_whole() {
        let command = "for f in /sys/devices/system/cpu/cpu*/x; do echo performance > \"$f\"; done";
        let parts = [
            Prose::Heading("This machine".to_owned()),
            Prose::Point(ProseTone::Caution, "word ".repeat(20)),
            Prose::Detail("word ".repeat(20)),
            Prose::Command(command.to_owned()),
        ];
        let options = Options { width: 40, ..Options::default() };
        let text = prose_text(&parts, &options);
        for line in text.lines().filter(|line| !line.contains(command)) {
            assert!(line.chars().count() <= 40, "{line}");
        }
        assert!(text.contains(&format!("\n      {command}\n")), "{text}");
    }
}
