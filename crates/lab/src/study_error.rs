//! Owns the error of a study file: what is wrong, where, and the way out. Start reading at [`StudyError`].

use std::ops::Range;

/// What is wrong with a study file, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct StudyError {
    /// The file, as it was named.
    pub file: String,
    /// Its whole text.
    pub text: String,
    /// The place, in bytes of the text; on character boundaries.
    pub span: Range<usize>,
    /// What is wrong.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
}

impl StudyError {
    /// Line and column of the place, both from 1; the column counts characters.
    pub fn place(&self) -> (usize, usize) {
        let before = &self.text[..self.span.start];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}
