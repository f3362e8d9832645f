//! What wrk prints, when, and on which stream. Start reading at [`Wrk`].

use std::sync::Arc;

use super::figures::{Errors, Figures};
use super::flags::{Flags, VERSION};
use super::lua::Scripts;
use super::{footnotes, text};
use crate::command::{Closing, ExitMessage, Finished, Printer, RequestAccount, Texts};

/// wrk in one run.
pub(super) struct Wrk {
    flags: Flags,
    /// Lua's messages about a script that does not load.
    complaints: String,
    /// `None`: there is no script.
    scripts: Option<Arc<Scripts>>,
    figures: Option<Figures>,
}

impl Wrk {
    pub(super) fn new(flags: Flags, complaints: String, scripts: Option<Arc<Scripts>>) -> Self {
        Self { flags, complaints, scripts, figures: None }
    }
}

/// Each request is complete, an error, or left out because a script ended it early.
fn account(figures: &Figures, record: &record::LoadRecord) -> RequestAccount {
    let counts = &record.requests;
    let Errors { connect, read, .. } = figures.errors;
    // The additional read errors of wrk are not requests of their own.
    let errors = connect + read - figures.n_read_besides;
    RequestAccount {
        counted: figures.complete + counts.failed,
        by_outcome: figures.complete + errors,
        left_out: counts.unanswered + figures.n_late,
    }
}

impl Printer for Wrk {
    fn opening(&mut self) -> Texts {
        let version = if self.flags.version { VERSION } else { "" };
        if let Some(scripts) = &self.scripts {
            scripts.flush();
        }
        Texts::err(std::mem::take(&mut self.complaints))
            .and_out(version)
            .and_out(text::opening(&self.flags))
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let mut counts = None;
        if let Some(scripts) = &self.scripts {
            scripts.flush();
            if let Some(ExitMessage { texts, code }) = scripts.failure() {
                return Closing { texts, code, ..Closing::default() };
            }
            counts = scripts.counts();
        }
        let figures = Figures::new(&self.flags, finished.record, counts.as_ref());
        let closing = Closing {
            texts: Texts::out(text::report(&self.flags, &figures)),
            footnotes: footnotes::footnotes(&self.flags, &figures, finished.record),
            tally: Some(account(&figures, finished.record)),
            ..Closing::default()
        };
        self.figures = Some(figures);
        closing
    }

    /// Calls the script's done().
    fn afterwards(&mut self) -> Option<ExitMessage> {
        let (scripts, figures) = (self.scripts.as_ref()?, self.figures.take()?);
        scripts.done(figures);
        scripts.flush();
        scripts.failure()
    }
}
