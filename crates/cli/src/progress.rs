//! Progress on stderr: the bar of `joust run` with the current visit and the time left, and the line of
//! `joust load` if [`crate::screen`] chooses one. If stderr is not a terminal, a run prints a line per block.

use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use lab::session::{PlannedVisit, Watch};
use record::{Interval, LoadStop, Plan, Progress, Skipped, Visit};
use units::PerSecond;

/// Shows the progress of a run.
pub struct Screen {
    bar: ProgressBar,
    terminal: bool,
    quiet: bool,
    names: Vec<String>,
    block_said: Option<u32>,
}

impl Screen {
    pub fn new(quiet: bool) -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal && !quiet { ProgressBar::new(1000) } else { ProgressBar::hidden() };
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {prefix}  {msg}");
        bar.set_style(style.expect("the template is constant"));
        Self { bar, terminal, quiet, names: Vec::new(), block_said: None }
    }

    fn say(&self, text: &str) {
        match (self.quiet, self.terminal) {
            (true, _) => {}
            (false, true) => self.bar.println(text),
            (false, false) => crate::terminal::say(text),
        }
    }

    fn show(&mut self, progress: Progress, doing: String) {
        self.bar.set_position(share_done(progress));
        self.bar.set_prefix(format!("{} left", clock(progress.left.into())));
        self.bar.set_message(doing);
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

impl Watch for Screen {
    fn planned(&mut self, plan: &Plan, skipped: &[Skipped]) {
        self.names = plan.contenders.iter().map(|contender| contender.name.clone()).collect();
        planned_lines(plan, skipped).iter().for_each(|line| self.say(line));
    }

    fn discovery_begins(&mut self, contender: usize) {
        self.bar.set_message(format!("starting {} to see what it serves", self.names[contender]));
    }

    fn visit_begins(&mut self, planned: PlannedVisit, progress: Progress) {
        let name = &self.names[planned.contender];
        let doing = format!("block {}: {name}", planned.block + 1);
        if !self.terminal && self.block_said != Some(planned.block) {
            self.block_said = Some(planned.block);
            let left = clock(progress.left.into());
            self.say(&format!("block {}, about {left} left", planned.block + 1));
        }
        self.show(progress, doing);
    }

    fn visit_ends(&mut self, _: &Visit, progress: Progress) {
        let doing = self.bar.message();
        self.show(progress, doing);
    }

    fn message(&mut self, text: &str) {
        self.say(text);
    }
}

/// The question of a run, and who is left out; wrapped at words, since a terminal would break a line inside one.
pub fn planned_lines(plan: &Plan, skipped: &[Skipped]) -> Vec<String> {
    let width = crate::terminal::report_options().width;
    let left_out = |Skipped { name, reason, remedy }: &Skipped| {
        format!("leaving out {name}: {reason}. To get it: {remedy}")
    };
    let all = std::iter::once(plan.question.clone()).chain(skipped.iter().map(left_out));
    all.flat_map(|line| report::wrapped(&line, width)).collect()
}

/// A line on a terminal that says what joust waits for before a run.
pub struct Waiting {
    bar: ProgressBar,
}

impl Waiting {
    pub fn new(quiet: bool) -> Self {
        let shown = std::io::stderr().is_terminal() && !quiet;
        let bar = if shown { ProgressBar::new_spinner() } else { ProgressBar::hidden() };
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    pub fn says(&self, text: String) {
        self.bar.set_message(text);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Elapsed time divided by the total of elapsed and remaining time, in thousandths.
fn share_done(progress: Progress) -> u64 {
    let whole = (progress.elapsed + progress.left).0.max(1);
    progress.elapsed.0.saturating_mul(1000) / whole
}

fn clock(left: Duration) -> String {
    let seconds = left.as_secs_f64().ceil() as u64;
    match seconds {
        0..100 => format!("{seconds} s"),
        _ => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// The progress line of `joust load` on a terminal: it sees intervals, never requests.
pub struct LoadLine {
    bar: ProgressBar,
    stop: LoadStop,
    done: u64,
    failed: u64,
}

impl LoadLine {
    pub fn new(stop: LoadStop) -> Self {
        let bar = ProgressBar::new(1000);
        let style = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}");
        bar.set_style(style.expect("the template is constant"));
        Self { bar, stop, done: 0, failed: 0 }
    }

    pub fn show(&mut self, interval: &Interval) {
        let failed = interval.errors.total();
        self.done += interval.ok + failed;
        self.failed += failed;
        let of = |part: u64, whole: u64| part.saturating_mul(1000) / whole.max(1);
        let by_time = self.stop.duration.map_or(0, |whole| of(interval.end().0, whole.0));
        let by_count = self.stop.requests.map_or(0, |whole| of(self.done, whole));
        self.bar.set_position(by_time.max(by_count));
        let rate = PerSecond(interval.ok as f64 / interval.length.as_secs_f64().max(1e-9));
        let failed = match self.failed {
            0 => String::new(),
            n => format!(", {n} FAILED"),
        };
        self.bar.set_message(format!("{rate}, {} done{failed}", self.done));
    }
}

impl Drop for LoadLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
