//! Owns what a line of an answer is. Must not know layout or colour.

/// What a line of the headline is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Says something about the contenders that is proved.
    Answer,
    /// Says that nothing is proved about the contenders.
    Open,
    /// Says how far to trust the answer.
    Trust,
    /// Limits what is said.
    Caution,
    /// The run itself is incomplete.
    Alarm,
}

/// One sentence of the headline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}
