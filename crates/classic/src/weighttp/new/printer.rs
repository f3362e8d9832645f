//! What weighttp 0.5 prints, when, and on which stream. Start reading at [`Weighttp`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::super::workers::{Shared, complaint, part};
use super::super::{footnotes, text as old};
use super::figures::Figures;
use super::flags::{BANNER, Flags};
use super::text;
use crate::command::{Closing, Finished, OutFile, Printer, Progress, Texts};

/// weighttp in one run.
pub(super) struct Weighttp {
    flags: Flags,
    shared: Arc<Shared>,
    /// Requests of thread 1 that progress has reported.
    told: u64,
}

impl Weighttp {
    pub(super) fn new(flags: Flags, shared: Arc<Shared>) -> Self {
        Self { flags, shared, told: 0 }
    }

    /// Errors, and lines of progress up to this number of requests of thread 1.
    fn so_far(&mut self, done: u64) -> Texts {
        let todo = part(self.flags.requests, self.flags.threads, 0);
        let mut progress = old::progress(self.told, done, todo);
        // If a tenth is not a whole number, the rest is reported too.
        let every = (todo / 10).max(1);
        if done == todo && self.told < todo && !todo.is_multiple_of(every) {
            progress += "progress: 100% done\n";
        }
        self.told = done;
        let errors = self.shared.take_errors();
        let texts = if errors.is_empty() { Texts::default() } else { Texts::err(errors) };
        if progress.is_empty() || self.flags.quiet { texts } else { texts.and_out(progress) }
    }

    /// Requests that thread 1 has finished; in a pipeline its share of all.
    fn done(&self, done: u64) -> u64 {
        match self.flags.pipeline {
            1 => self.shared.done_by_first.load(Ordering::Relaxed),
            _ => done.min(self.flags.requests) / u64::from(self.flags.threads),
        }
    }
}

impl Printer for Weighttp {
    fn opening(&mut self) -> Texts {
        let Flags { requests, clients, threads, quiet, .. } = self.flags;
        if quiet {
            return Texts::default();
        }
        let spawning = old::spawning(requests, clients, threads);
        Texts::out(format!("{BANNER}{spawning}starting benchmark...\n"))
    }

    fn progress(&mut self, so_far: &Progress) -> Texts {
        let done = self.done(so_far.done);
        self.so_far(done)
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let record = finished.record;
        let figures = Figures::new(record);
        let done = match self.flags.pipeline {
            1 => self.done(0),
            _ if record.requests.unanswered > 0 => self.told,
            _ => part(self.flags.requests, self.flags.threads, 0),
        };
        let mut texts = self.so_far(done);
        if self.flags.pipeline > 1 {
            let errors = record.raw.iter().filter_map(complaint);
            texts =
                texts.and_err(errors.map(|line| format!("error: {line}\n")).collect::<String>());
        }
        // SIGINT ends the load; the report covers the finished requests, and the exit code is 0.
        let report = text::report(&figures, self.flags.extended);
        let mut texts = match report.is_empty() {
            true => texts.and_err("error: request_count 0\n"),
            false => texts.and_out(report),
        };
        if self.flags.warns {
            texts = texts.and_err(text::warnings(&figures));
        }
        let csv = self.flags.csv.as_ref().map(|path| OutFile {
            path: path.clone(),
            bytes: text::csv(&figures.sorted).into_bytes(),
            appends: false,
            complaint: format!("error: open({})", path.display()),
            // The report has been printed by then: 0.5 exits as if it had written the file.
            code: 0,
        });
        let files = csv.into_iter().collect();
        let footnotes = footnotes::new(self.flags.cut_off, &figures.counts, record);
        let tally = Some(figures.counts.tally(record));
        Closing { texts, files, footnotes, tally, ..Closing::default() }
    }
}
