//! The version of siege that is imitated: its clock and the layout of its report
//! (`--version-style`).

/// The version whose clock and layout a report has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Style {
    /// That of 4.0.7: times in seconds, by a clock of 10 ms.
    #[default]
    Seconds,
    /// That of 4.1.7: times in milliseconds.
    Millis,
}

impl Style {
    /// The style for `--version-style`.
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
