//! Which version of siege is imitated: its clock and the layout of its report (`--version-style`).

/// Whose clock and layout a report has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// 4.0.7's: times in seconds, by a clock of 10 ms.
    #[default]
    Seconds,
    /// 4.1.7's: times in milliseconds.
    Millis,
}

impl Style {
    /// Of `--version-style`.
    pub(super) fn named(version: Option<&str>) -> Self {
        if version == Some("4.1.7") { Self::Millis } else { Self::Seconds }
    }

    pub(super) fn version(self) -> &'static str {
        match self {
            Self::Seconds => "4.0.7",
            Self::Millis => "4.1.7",
        }
    }
}
