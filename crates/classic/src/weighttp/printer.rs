//! What weighttp 0.4 prints, when, and on which stream. Start reading at [`Weighttp`].

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::flags::{BANNER, Flags};
use super::workers::{Shared, part};
use super::{footnotes, text};
use crate::command::{Closing, Finished, Printer, Progress, Texts};

/// A shell's exit code for a program that Ctrl-C ended: weighttp does not catch it.
const INTERRUPTED: u8 = 130;

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

    /// Errors, and lines of progress, since the last call.
    fn so_far(&mut self) -> Texts {
        let done = self.shared.done_by_first.load(Ordering::Relaxed);
        let todo = part(self.flags.requests, self.flags.threads, 0);
        let progress = text::progress(self.told, done, todo);
        self.told = done;
        let errors = self.shared.take_errors();
        let texts = if errors.is_empty() { Texts::default() } else { Texts::err(errors) };
        if progress.is_empty() { texts } else { texts.and_out(progress) }
    }
}

impl Printer for Weighttp {
    fn opening(&mut self) -> Texts {
        let Flags { requests, clients, threads, .. } = self.flags;
        Texts::out(BANNER.to_owned() + &text::opening(requests, clients, threads))
    }

    fn progress(&mut self, _: &Progress) -> Texts {
        self.so_far()
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let texts = self.so_far();
        let counts = self.shared.counts();
        if finished.record.interrupted {
            let done = counts.done;
            let note = format!(
                "weighttp prints no report when it is interrupted: {done} requests were done"
            );
            return Closing {
                texts,
                code: INTERRUPTED,
                footnotes: vec![note],
                ..Closing::default()
            };
        }
        let micros = (finished.record.seconds * 1e6).round() as u64;
        let report = text::report(self.flags.requests, &counts, micros);
        let footnotes = footnotes::old(&self.flags, &counts, finished.record);
        let tally = Some(counts.tally(finished.record));
        Closing { texts: texts.and_out(report), footnotes, tally, ..Closing::default() }
    }
}
