//! Owns the sentence about a file that is not as it was written. Must not know layout. Start reading at
//! [`changed`].

use record::{Integrity, RunRecord};

/// That a run's file was changed, where its digest says so; `None` where it does not.
pub fn changed(run: &RunRecord) -> Option<&'static str> {
    match run.integrity {
        Integrity::Changed => Some(
            "this file was changed after it was measured: its digest does not fit. Rates, findings and \
             verdicts are computed from the counts in it, which may have been changed too",
        ),
        Integrity::Intact | Integrity::Unknown => None,
    }
}
