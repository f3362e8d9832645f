//! What a person sees on stderr while a load runs; stdout stays free for the record. Chooses between a live picture, a
//! progress line on a terminal that cannot draw one, an occasional line in a log, and nothing. `report::live` draws the
//! picture. The picture of a run is here too; `run/watch.rs` chooses it. Start reading at [`Screen::new`].

mod aside;
mod load_scene;
mod picture;
mod run_scene;
mod tty;

use std::io::IsTerminal as _;
use std::sync::atomic::AtomicBool;

use ::report::live::{AgentFigures, View, progress_line};
use record::{Interval, LoadPlan, LoadStop};
use units::Nanos;

use crate::progress::LoadLine;
pub use aside::Aside;
use load_scene::LoadPicture;
pub use run_scene::RunPicture;

/// Shows a load to a person until it is dropped. It sees finished intervals, never single requests.
pub struct Screen {
    shown: Shown,
}

/// The choice on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Wish {
    /// Show nothing.
    pub quiet: bool,
    /// Show a line even if a picture could be drawn.
    pub plain: bool,
}

enum Shown {
    Picture(Box<LoadPicture>),
    Lines(Box<Aside>),
    Nothing,
}

impl Screen {
    /// `interrupt` is the flag that ends the load early and in order; a key sets it as SIGINT does.
    pub fn new(plan: &LoadPlan, wish: Wish, interrupt: &'static AtomicBool) -> Self {
        Self { shown: Shown::choose(plan, wish, interrupt) }
    }

    /// Adds an interval that is over on all threads.
    pub fn show(&mut self, interval: &Interval) {
        match &mut self.shown {
            Shown::Picture(picture) => picture.add(interval),
            Shown::Lines(aside) => aside.add(interval),
            Shown::Nothing => {}
        }
    }
}

impl Screen {
    /// Shows how the agents of a fleet stand; only the picture has room for them.
    pub fn set_agents(&mut self, agents: &[AgentFigures]) {
        if let Shown::Picture(picture) = &self.shown {
            picture.set_agents(agents);
        }
    }
}

impl Shown {
    fn choose(plan: &LoadPlan, wish: Wish, interrupt: &'static AtomicBool) -> Self {
        if wish.quiet {
            return Self::Nothing;
        }
        if !std::io::stderr().is_terminal() {
            return Self::log(plan.stop);
        }
        if wish.plain || !can_draw() {
            return Self::line(plan.stop);
        }
        let view = View {
            colour: console::colors_enabled_stderr(),
            unicode: crate::terminal::speaks_unicode(),
            ..View::default()
        };
        // A terminal that cannot be drawn on can still show a line.
        LoadPicture::begin(plan, view, interrupt)
            .map_or_else(|_| Self::line(plan.stop), |picture| Self::Picture(Box::new(picture)))
    }

    /// A line that is overwritten.
    fn line(stop: LoadStop) -> Self {
        Self::aside(move || {
            let mut line = LoadLine::new(stop);
            move |interval: &Interval| line.show(interval)
        })
    }

    /// Lines below each other.
    fn log(stop: LoadStop) -> Self {
        Self::aside(move || {
            let mut log = Log::new(stop);
            move |interval: &Interval| {
                if let Some(line) = log.add(interval) {
                    crate::terminal::say(&line);
                }
            }
        })
    }

    /// Shows nothing if no thread can be started: the load does not need it.
    fn aside<S: FnMut(&Interval)>(show: impl FnOnce() -> S + Send + 'static) -> Self {
        Aside::begin(show).map_or(Self::Nothing, |aside| Self::Lines(Box::new(aside)))
    }
}

/// Whether stderr is a terminal that can be drawn on.
pub fn can_draw() -> bool {
    std::io::stderr().is_terminal() && tty::can_draw()
}

/// Time between two lines in a log; a shorter load prints none.
const LOG_EVERY: Nanos = Nanos::from_secs(10);

/// The log lines of a load.
struct Log {
    stop: LoadStop,
    /// What happened since the last line.
    since: Option<Interval>,
    /// Requests done since the start.
    done: u64,
    /// When the next line is due.
    due: Nanos,
}

impl Log {
    fn new(stop: LoadStop) -> Self {
        Self { stop, since: None, done: 0, due: LOG_EVERY }
    }

    /// A line, when one is due.
    fn add(&mut self, interval: &Interval) -> Option<String> {
        self.done += interval.ok + interval.errors.total();
        match &mut self.since {
            Some(since) => {
                since.merge(interval);
                since.length = interval.end().saturating_sub(since.start);
            }
            None => self.since = Some(interval.clone()),
        }
        if interval.end() < self.due || self.is_at_end(interval.end()) {
            return None;
        }
        self.due = interval.end() + LOG_EVERY;
        self.since.take().map(|since| progress_line(&since, self.done, self.stop))
    }

    /// Whether the report follows immediately anyway.
    fn is_at_end(&self, elapsed: Nanos) -> bool {
        self.stop.duration.is_some_and(|whole| elapsed >= whole)
            || self.stop.requests.is_some_and(|whole| self.done >= whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(stop: LoadStop, n_intervals: u64) -> Vec<String> {
        let mut log = Log::new(stop);
        let length = Nanos::from_millis(100);
        let interval = |n: u64| {
            let mut interval = Interval::new(Nanos(n * length.0), length);
            interval.ok = 100;
            interval
        };
        (0..n_intervals).filter_map(|n| log.add(&interval(n))).collect()
    }

    #[test]
    fn a_log_has_a_line_every_ten_seconds_but_none_at_the_end() {
        let seconds = |n| LoadStop { requests: None, duration: Some(Nanos::from_secs(n)) };
        assert_eq!(
            lines(seconds(30), 300),
            ["10 s of 30 s: 1000/s, 0 failed", "20 s of 30 s: 1000/s, 0 failed"]
        );
        assert_eq!(lines(seconds(10), 102), Vec::<String>::new());
        let count = LoadStop { requests: Some(10_000), duration: None };
        assert_eq!(lines(count, 100), Vec::<String>::new());
    }
}
