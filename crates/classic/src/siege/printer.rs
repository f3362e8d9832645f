//! What siege prints, when, and on which stream. Start reading at [`Siege`].

use std::sync::Arc;

use super::figures::Figures;
use super::users::Battle;
use super::{footnotes, log, text};
use crate::command::{self, Closing, Finished, Progress, Texts};

/// siege in one run.
pub(super) struct Siege {
    battle: Arc<Battle>,
    /// The output caused by its arguments.
    said: Texts,
    log_is_new: bool,
}

impl Siege {
    pub(super) fn new(battle: Arc<Battle>, said: Texts, log_is_new: bool) -> Self {
        Self { battle, said, log_is_new }
    }

    /// What the users have printed since the last call.
    fn new_lines(&self) -> Texts {
        Texts(std::mem::take(&mut self.battle.state().said))
    }
}

impl command::Printer for Siege {
    fn opening(&mut self) -> Texts {
        let settings = &self.battle.settings;
        let mut texts = std::mem::take(&mut self.said);
        if !settings.get && !settings.quiet {
            texts = texts.and_err(text::banner(settings));
        }
        texts.0.extend(self.new_lines().0);
        texts
    }

    fn progress(&mut self, _: &Progress) -> Texts {
        self.new_lines()
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let mut texts = self.new_lines();
        let settings = &self.battle.settings;
        let tally = self.battle.state().tally.clone();
        let took = units::Nanos::from_secs_f64(finished.record.seconds);
        let figures = Figures::new(settings.style, &tally, took);
        let gave_up =
            settings.failures > 0 && tally.failed >= u64::from(settings.failures.unsigned_abs());
        if !settings.quiet {
            let out_of_time = settings.duration().is_some_and(|seconds| {
                took >= units::Nanos::from_secs(seconds.into()).saturating_sub(SLACK)
            });
            let mut report = String::new();
            if finished.record.interrupted || out_of_time {
                report += "\nLifting the server siege...";
            }
            if gave_up {
                report += text::GAVE_UP;
            }
            texts = texts.and_err(report + &text::report(settings, &figures));
        }
        if settings.json {
            texts = texts.and_err("\n").and_out(text::json(settings, &figures));
        }
        let seconds = finished.began.saturating_add(took);
        let now = (finished.local_time)(seconds);
        let files = log::files(settings, self.log_is_new, &figures, now, gave_up);
        if settings.logging && settings.show_log {
            texts = texts.and_out(format!(
                "LOG FILE: {}\nYou can disable this log file notification by editing\n\
                 {} and changing 'show-logfile' to false.\n",
                settings.log_file, settings.home_rc
            ));
        }
        let footnotes = footnotes::after(settings, &tally, finished.record);
        let tally = Some(tally.account(finished.record.requests.unanswered));
        Closing { texts, files, code: 0, footnotes, tally }
    }
}

/// How much earlier than planned a load may end.
const SLACK: units::Nanos = units::Nanos(1_000_000);
