//! How a command ends: its exit code, and an error that names what failed, on what, why, and the remedy.

use std::error::Error;
use std::fmt::{self, Debug, Display, Formatter};

use miette::{Diagnostic, LabeledSpan, Report, SourceCode};

/// Exit codes; the help text lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// Success.
    Well = 0,
    /// The request failed.
    Failed = 1,
    /// The command line, or a study, is wrong.
    Usage = 2,
    /// The run was interrupted, or every verdict is withheld.
    Incomplete = 3,
    /// Measured, but the load generator was the bottleneck, or did not reach the target rate.
    Unbelievable = 4,
    /// Measured, and a goal was missed or a regression was found.
    GoalBroken = 99,
}

/// Something that ends the command.
#[derive(Debug)]
pub struct Trouble {
    /// The exit code.
    pub ended: Ended,
    /// The message for stderr.
    pub report: Report,
}

impl Trouble {
    /// The command line is wrong.
    pub fn usage(report: Report) -> Self {
        Self { ended: Ended::Usage, report }
    }

    /// The request failed.
    pub fn failed(report: Report) -> Self {
        Self { ended: Ended::Failed, report }
    }

    /// Writes the message to stderr, and returns the exit code.
    pub fn show(self) -> Ended {
        // miette renders a report for people with Debug.
        crate::terminal::say(&format!("{:?}", Report::new(Clean::of(self.report))));
        self.ended
    }
}

/// A report without control characters: those in a file's name could move the cursor of a terminal or
/// colour what follows.
struct Clean {
    report: Report,
    text: String,
    because: Option<Box<Cause>>,
}

/// A cause of the error, cleaned in the same way.
#[derive(Debug)]
struct Cause {
    text: String,
    because: Option<Box<Cause>>,
}

impl Clean {
    fn of(report: Report) -> Self {
        let text = clean(&report.to_string());
        let because = causes(report.source());
        Self { report, text, because }
    }
}

fn clean(text: &str) -> String {
    let shown = |c: char| if c.is_control() && c != '\n' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}

fn causes(of: Option<&(dyn Error + 'static)>) -> Option<Box<Cause>> {
    let of = of?;
    Some(Box::new(Cause { text: clean(&of.to_string()), because: causes(of.source()) }))
}

impl Display for Clean {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Debug for Clean {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.report, f)
    }
}

impl Error for Clean {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.because.as_deref().map(|cause| cause as _)
    }
}

impl Diagnostic for Clean {
    fn help<'a>(&'a self) -> Option<Box<dyn Display + 'a>> {
        Some(Box::new(clean(&self.report.help()?.to_string())))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.report.source_code()
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.report.labels()
    }
}

impl Display for Cause {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Cause {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.because.as_deref().map(|cause| cause as _)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_a_message_holds_a_control_character() {
        let report = miette::miette!(help = "read a\u{1b}[31mb", "cannot read a\u{7}\u{1b}[2J")
            .wrap_err("while a\rb was merged");
        let clean = Clean::of(report);
        let because = clean.source().unwrap();
        let said = format!("{clean}{because}{}", clean.help().unwrap());
        assert!(said.contains("while a\u{fffd}b") && said.contains("[2J"), "{said:?}");
        assert!(!said.chars().any(char::is_control), "{said:?}");
    }
}
