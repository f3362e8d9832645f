//! Owns the sentence about a file that was changed after it was written. Must not know layout. Start reading at
//! [`changed`].

use record::{Integrity, RunRecord};

/// Says that a run's file was changed, if its digest shows it; otherwise `None`.
pub fn changed(run: &RunRecord) -> Option<&'static str> {
    match run.integrity {
        Integrity::Changed => Some(
            "this file was changed after it was measured: its digest does not fit. Rates, findings and \
             verdicts are computed from the counts in it, which may have been changed too",
        ),
        Integrity::Intact | Integrity::Unknown => None,
    }
}
