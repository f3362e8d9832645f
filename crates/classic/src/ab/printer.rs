//! What ab prints, when, and on which stream. Start reading at [`Ab`].

use record::LoadRecord;

use super::figures::{Fatal, Figures};
use super::flags::Flags;
use super::server::Server;
use super::{files, footnotes, html, plan, text};
use crate::command::{Closing, Finished, OutFile, Printer, Progress, Texts};

/// ab in one run.
pub(super) struct Ab {
    flags: Flags,
    /// Number of requests that progress has reported.
    told: u64,
}

impl Ab {
    pub(super) fn new(flags: Flags) -> Self {
        Self { flags, told: 0 }
    }

    /// Lines of progress up to this number of requests.
    fn completed(&mut self, done: u64) -> String {
        let Some(every) = self.flags.heartbeat() else { return String::new() };
        let mut text = String::new();
        while self.told + every <= done {
            self.told += every;
            text += &format!("Completed {} requests\n", self.told);
        }
        text
    }

    /// ab's final message if it gave up: there is no report.
    fn gave_up(&mut self, figures: &Figures) -> Option<Closing> {
        let (text, number) = figures.fatal?.said();
        let mut said = self.completed(figures.done);
        if figures.fatal == Some(Fatal::NoPort) {
            said += "\nTest aborted after 10 failures\n\n";
        }
        let mut texts = Texts::err(format!("{said}{text} ({number})\n"));
        if figures.done > 0 {
            texts = texts.and_out(format!("Total of {} requests completed\n", figures.done));
        }
        Some(Closing { texts, code: (number % 256) as u8, ..Closing::default() })
    }

    fn files(&self, figures: &Figures, finished: &Finished<'_>) -> Vec<OutFile> {
        // With -w ab writes no files, so neither does this.
        if figures.times.is_empty() || (self.flags.html.is_some() && !finished.record.interrupted) {
            return Vec::new();
        }
        let file = |path: &std::path::PathBuf, text: String, what: &str| OutFile {
            path: path.clone(),
            bytes: text.into_bytes(),
            appends: false,
            complaint: format!("Cannot open {what} output file"),
            code: 1,
        };
        let csv = self.flags.csv.as_ref();
        let gnuplot = self.flags.gnuplot.as_ref();
        let csv = csv.map(|path| file(path, files::csv(&figures.times), "CSV"));
        let gnuplot =
            gnuplot.map(|path| file(path, files::gnuplot(&figures.times, finished), "gnuplot"));
        csv.into_iter().chain(gnuplot).collect()
    }
}

impl Printer for Ab {
    fn opening(&mut self) -> Texts {
        let mut text = text::opening(&self.flags);
        if self.flags.verbosity >= 2 {
            let (method, head) = (&self.flags.method, plan::head(&self.flags));
            text += &format!("INFO: {method} header == \n---\n{head}\n---\n");
        }
        Texts::out(text)
    }

    fn progress(&mut self, so_far: &Progress) -> Texts {
        match self.completed(so_far.done.min(self.flags.requests.into())) {
            text if text.is_empty() => Texts::default(),
            text => Texts::err(text),
        }
    }

    fn closing(&mut self, finished: &Finished<'_>) -> Closing {
        let record = finished.record;
        let figures = Figures::new(&self.flags, record);
        let heard = self.heard(record);
        if let Some(mut closing) = self.gave_up(&figures) {
            closing.texts.0.insert(0, (crate::command::Stream::Out, heard));
            return closing;
        }
        let server = Server::new(&self.flags, record);
        let mut texts = Texts::out(heard);
        if !record.interrupted {
            texts = match self.flags.heartbeat() {
                Some(_) => {
                    let completed = self.completed(figures.done);
                    texts.and_err(format!("{completed}Finished {} requests\n", figures.done))
                }
                None => texts.and_out("..done\n"),
            };
        }
        // After SIGINT ab prints the text report, even with -w.
        let report = match &self.flags.html {
            Some(html) if !record.interrupted => html::report(&self.flags, html, &server, &figures),
            _ => text::report(&self.flags, &server, &figures),
        };
        Closing {
            texts: texts.and_out(report),
            files: self.files(&figures, finished),
            code: u8::from(record.interrupted),
            footnotes: footnotes::footnotes(&figures, record),
            tally: Some(figures.tally()),
        }
    }
}

impl Ab {
    /// What -v prints for the first reply.
    fn heard(&self, record: &LoadRecord) -> String {
        let Some(head) = record.first_head.as_ref().filter(|_| self.flags.verbosity >= 2) else {
            return String::new();
        };
        let status = head.split(' ').nth(1).unwrap_or("500").get(..3).unwrap_or("500");
        let mut text = format!("LOG: header received:\n{head}\n");
        if !status.starts_with('2') {
            text += &format!("WARNING: Response code not 2xx ({status})\n");
        } else if self.flags.verbosity >= 3 {
            text += &format!("LOG: Response code = {status}\n");
        }
        text
    }
}
