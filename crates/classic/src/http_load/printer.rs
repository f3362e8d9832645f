//! What http_load prints, when, and on which stream. Start reading at [`HttpLoad`].

use units::Nanos;

use super::checksum::Found;
use super::figures::Figures;
use super::footnotes;
use super::plan::Subject;
use super::text::{general, report};
use crate::command::{Closing, Finished, Printer, Progress, Texts};

/// Interval of the progress lines of -verbose.
const PROGRESS: Nanos = Nanos::from_secs(60);

/// A shell's exit code for a program that Ctrl-C ended: http_load does not catch it.
const INTERRUPTED: u8 = 130;

/// http_load in one run.
pub(super) struct HttpLoad {
    subject: Subject,
    checksums: Option<Found>,
    /// Time of the next progress line.
    next: Nanos,
}

impl HttpLoad {
    pub(super) fn new(subject: Subject, checksums: Option<Found>) -> Self {
        Self { subject, checksums, next: PROGRESS }
    }
}

impl Printer for HttpLoad {
    fn opening(&mut self) -> Texts {
        Texts::default()
    }

    fn progress(&mut self, so_far: &Progress) -> Texts {
        if !self.subject.flags.verbose || so_far.elapsed < self.next {
            return Texts::default();
        }
        self.next = self.next.saturating_add(PROGRESS);
        let Progress { started, done, elapsed } = so_far;
        let elapsed = general(f64::from(elapsed.as_secs_f64() as f32));
        let current = started.saturating_sub(*done);
        let counts = format!("{started} fetches started, {done} completed, {current} current");
        Texts::err(format!("--- {elapsed} secs, {counts}\n"))
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let fetched = self.checksums.as_ref().map(Found::take);
        let figures = Figures::new(&self.subject, fetched.as_deref(), finished.record);
        let footnotes = footnotes::footnotes(&self.subject, &figures, finished.record);
        if finished.record.interrupted {
            return Closing { code: INTERRUPTED, footnotes, ..Closing::default() };
        }
        let said: String = figures.complaints.iter().map(|line| format!("{line}\n")).collect();
        let texts = Texts::err(said).and_out(report(&figures, self.subject.flags.checksum));
        let tally = Some(figures.tally());
        Closing { texts, footnotes, tally, ..Closing::default() }
    }
}
