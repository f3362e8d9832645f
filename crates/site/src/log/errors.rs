//! The error log: the server's messages about itself, one line each, to a file or to the descriptor that it was given
//! as standard error. Owns levels, the form of a line, and how many there may be. Start reading at [`ErrorLog::note`].
//!
//! A level that is off costs a comparison. A line is one write, so that lines of threads and processes do not mix.
//! Nothing is locked, so a child may be forked at any time. An error for every request neither fills a disk nor stalls
//! the server: the lines of a level are bounded ([`Bound`]) over all processes together, and further ones are counted
//! and reported. If a pipe or a terminal accepts nothing, the line is dropped rather than waited for.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use sys::process::SharedCells;
use sys::{append, clock};

use super::file::{LogFile, Reopen};
use crate::SiteError;

/// The severity of a line, by syslog's names, as in Apache and nginx.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names of syslog(3)")]
pub enum Level {
    Emerg,
    Alert,
    Crit,
    Error,
    Warn,
    Notice,
    Info,
    Debug,
}

impl Level {
    /// The most severe first.
    pub const ALL: [Self; 8] = [
        Self::Emerg,
        Self::Alert,
        Self::Crit,
        Self::Error,
        Self::Warn,
        Self::Notice,
        Self::Info,
        Self::Debug,
    ];

    /// As it is typed and written.
    pub fn name(self) -> &'static str {
        ["emerg", "alert", "crit", "error", "warn", "notice", "info", "debug"][self as usize]
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(typed: &str) -> Result<Self, String> {
        let names = || Self::ALL.iter().map(|level| level.name());
        Self::ALL.into_iter().find(|level| level.name() == typed).ok_or_else(|| {
            format!("it must be one of {}, got `{typed}`", names().collect::<Vec<_>>().join(", "))
        })
    }
}

/// Where the server logs its own messages, and from which level on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ErrorLogConfig {
    /// Where lines go.
    pub to: ErrorLogTo,
    /// Minimum severity that is logged.
    pub level: Level,
}

/// Where the error log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrorLogTo {
    /// The standard error that the server was given.
    Stderr,
    /// Nowhere.
    Off,
    /// This file, appended to.
    File(PathBuf),
}

impl Default for ErrorLogConfig {
    fn default() -> Self {
        Self { to: ErrorLogTo::Stderr, level: Level::Notice }
    }
}

impl ErrorLogTo {
    /// What `--error-log FILE|stderr|off` means.
    pub fn of(typed: &str) -> Self {
        match typed {
            "stderr" => Self::Stderr,
            "off" => Self::Off,
            path => Self::File(path.into()),
        }
    }
}

/// Bytes of a line at most, its newline included: one piece to a pipe, and 10 a second are no flood.
const LINE_BYTES_MAX: usize = 2048;

/// The error log of a server.
#[derive(Debug)]
pub struct ErrorLog {
    /// `None`: off.
    out: Option<Out>,
    level: Level,
}

#[derive(Debug)]
struct Out {
    file: LogFile,
    zone: TimeZone,
    /// Two of each level: the state of its [`Bound`], and lines dropped since the last report. Then one: lines that
    /// could not be written since the last report.
    cells: SharedCells,
}

impl ErrorLog {
    /// Opens what the configuration names. `stderr` is the file that the word `stderr` names there; without it, that
    /// log is off.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open(
        config: &ErrorLogConfig,
        stderr: Option<File>,
        reopen: &Reopen,
    ) -> Result<Self, SiteError> {
        let path = match &config.to {
            ErrorLogTo::File(path) => path.clone(),
            ErrorLogTo::Stderr | ErrorLogTo::Off => "standard error".into(),
        };
        let failed = |source| SiteError::ErrorLog { path: path.clone(), source };
        let file = match (&config.to, stderr) {
            (ErrorLogTo::Off, _) | (ErrorLogTo::Stderr, None) => None,
            (ErrorLogTo::Stderr, Some(stderr)) => Some(LogFile::given(stderr).map_err(failed)?),
            (ErrorLogTo::File(path), _) => Some(LogFile::open(path, reopen).map_err(failed)?),
        };
        let out = match file {
            None => None,
            Some(file) => {
                let cells = SharedCells::new(2 * Level::ALL.len() + 1).map_err(failed)?;
                Some(Out { file, zone: TimeZone::system(), cells })
            }
        };
        Ok(Self { out, level: config.level })
    }

    /// Whether [`ErrorLog::open`] would succeed, without making the file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn check(config: &ErrorLogConfig) -> Result<(), SiteError> {
        let ErrorLogTo::File(path) = &config.to else { return Ok(()) };
        append::check(path).map_err(|source| SiteError::ErrorLog { path: path.clone(), source })
    }

    /// A log that writes nothing.
    pub fn off() -> Self {
        Self { out: None, level: Level::Emerg }
    }

    /// Writes a line: the time, the level, the process, and `what`, as in
    /// `errors.note(Level::Warn, format_args!("..."))`. No newline is needed; those within are escaped.
    pub fn note(&self, level: Level, what: fmt::Arguments<'_>) {
        let Some(out) = self.out.as_ref().filter(|_| level <= self.level) else { return };
        let (bound, dropped) = out.cells_of(level);
        if !Bound::passes(bound, clock::monotonic().0 / 1_000_000) {
            dropped.fetch_add(1, Relaxed);
            return;
        }
        let (name, per_s) = (level.name(), 1000 / Bound::PERIOD_MS);
        out.say(level, dropped, |missed| {
            format!("{missed} lines of level {name} before this one were dropped: more than {per_s} a second")
        });
        out.say(level, out.unwritten(), |missed| {
            format!(
                "{missed} lines before this one could not be written: was the disk full (`df -h`), or did \
                 nobody read the pipe?"
            )
        });
        if !out.write(level, what) {
            out.unwritten().fetch_add(1, Relaxed);
        }
    }

    /// Opens the file again if that was requested; each line does so too.
    pub fn keep_up(&self) {
        if let Some(out) = &self.out {
            out.keep_up();
        }
    }
}

impl Out {
    fn cells_of(&self, level: Level) -> (&AtomicU32, &AtomicU32) {
        let at = 2 * level as usize;
        (&self.cells[at], &self.cells[at + 1])
    }

    fn unwritten(&self) -> &AtomicU32 {
        &self.cells[2 * Level::ALL.len()]
    }

    /// Reports how many lines are missing, if any are. If the report cannot be written, the count is kept.
    fn say(&self, level: Level, missing: &AtomicU32, text: impl FnOnce(u32) -> String) {
        if missing.load(Relaxed) == 0 {
            return;
        }
        let missed = missing.swap(0, Relaxed);
        if missed > 0 && !self.write(level, format_args!("{}", text(missed))) {
            missing.fetch_add(missed, Relaxed);
        }
    }

    /// If it cannot be opened again, the supervisor has reported that, and the old file stays in use.
    fn keep_up(&self) {
        let _ = self.file.keep_up();
    }

    /// Returns whether the line was written whole.
    fn write(&self, level: Level, what: fmt::Arguments<'_>) -> bool {
        let now = Timestamp::from_nanosecond(i128::from(clock::wall().0)).unwrap_or_default();
        let time = now.to_zoned(self.zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.6f%:z");
        let mut line = Line(Vec::with_capacity(256));
        let pid = std::process::id();
        // A Line takes every write.
        let _ = fmt::write(&mut line, format_args!("{time} [{}] {pid}: {what}", level.name()));
        line.0.push(b'\n');
        self.keep_up();
        if self.file.in_pieces && !append::takes_now(self.file.file()) {
            return false;
        }
        self.file.append(&line.0).is_ok()
    }
}

/// What may be in a line: printable ASCII. All else, and what could be taken for an escape, is `\xNN` byte by byte. So
/// no client can end a line, forge one, or send commands to a terminal.
struct Line(Vec<u8>);

impl fmt::Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        const ROOM: usize = LINE_BYTES_MAX - "...\n".len();
        for &byte in text.as_bytes() {
            let len = self.0.len();
            match byte {
                _ if len >= ROOM => {}
                b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                    let _ = io::Write::write_fmt(&mut self.0, format_args!("\\x{byte:02x}"));
                }
                _ => self.0.push(byte),
            }
            if len < ROOM && self.0.len() >= ROOM {
                self.0.truncate(ROOM);
                self.0.extend_from_slice(b"...");
            }
        }
        Ok(())
    }
}

/// Bounds the lines of a level: [`Bound::BURST`] at once, and then one per [`Bound::PERIOD_MS`] (the generic cell rate
/// algorithm, ITU-T I.371). The state is one instant in milliseconds, when the next line would be due if lines came
/// evenly; it wraps after 49 days.
struct Bound;

impl Bound {
    const BURST: u32 = 100;
    const PERIOD_MS: u32 = 100;

    /// Whether a line may be written now. Another process may ask at the same time.
    fn passes(due: &AtomicU32, now_ms: u64) -> bool {
        let now = now_ms as u32;
        due.fetch_update(Relaxed, Relaxed, |due| Self::next(due, now)).is_ok()
    }

    /// The state after a line; `None`: it comes too early.
    fn next(due: u32, now: u32) -> Option<u32> {
        const AHEAD_MAX: u32 = Bound::BURST * Bound::PERIOD_MS;
        let ahead = due.wrapping_sub(now);
        // If it seems to be more, `due` lies in the past.
        let ahead = if ahead > AHEAD_MAX { 0 } else { ahead };
        (ahead + Self::PERIOD_MS <= AHEAD_MAX).then(|| now.wrapping_add(ahead + Self::PERIOD_MS))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn log_to(path: &Path, level: Level, reopen: &Reopen) -> ErrorLog {
        let config = ErrorLogConfig { to: ErrorLogTo::File(path.to_owned()), level };
        ErrorLog::open(&config, None, reopen).unwrap()
    }

    #[test]
    fn a_line_tells_time_level_process_and_what() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let log = log_to(&path, Level::Warn, &Reopen::new().unwrap());
        log.note(Level::Warn, format_args!("the {} is full", "disk"));
        log.note(Level::Notice, format_args!("not of interest"));
        let text = std::fs::read_to_string(&path).unwrap();
        let (time, rest) = text.split_once(' ').unwrap();
        assert!(time.parse::<Timestamp>().is_ok(), "{time} is RFC 3339");
        assert_eq!(rest, format!("[warn] {}: the disk is full\n", std::process::id()));
    }

    #[test]
    fn what_could_forge_a_line_or_speak_to_a_terminal_is_escaped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let log = log_to(&path, Level::Error, &Reopen::new().unwrap());
        log.note(Level::Error, format_args!("a\nb\x1b[2J \"c\\ \u{9b}d\u{7f} é"));
        let text = std::fs::read_to_string(&path).unwrap();
        let escaped = r"a\x0ab\x1b[2J \x22c\x5c \xc2\x9bd\x7f \xc3\xa9";
        assert!(text.ends_with(&format!(": {escaped}\n")) && text.lines().count() == 1, "{text}");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_and_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let log = log_to(&path, Level::Error, &Reopen::new().unwrap());
        log.note(Level::Error, format_args!("{}", "\n".repeat(9000)));
        let text = std::fs::read(&path).unwrap();
        assert_eq!(text.len(), LINE_BYTES_MAX);
        assert!(text.ends_with(b"...\n"));
    }

    #[test]
    fn a_flood_is_bounded_and_what_was_dropped_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("error.log");
        let log = log_to(&path, Level::Info, &Reopen::new().unwrap());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..5000).for_each(|n| log.note(Level::Error, format_args!("{n}"))));
            }
        });
        // A flood of one level does not use up the bound of another.
        log.note(Level::Notice, format_args!("told all the same"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("told all the same\n"), "{text}");
        // A later line reports all that are missing: wait for the next one that passes.
        let said = || {
            let text = std::fs::read_to_string(&path).unwrap();
            let count = |line: &str| line.split(' ').nth(3)?.parse::<usize>().ok();
            let counts = text.lines().filter(|line| line.contains("were dropped")).map(count);
            let dropped = counts.map(Option::unwrap).sum::<usize>();
            let errors = text.lines().filter(|line| line.contains("[error]"));
            (dropped, errors.filter(|line| !line.contains("dropped")).count())
        };
        let mut asked = 20_000;
        let before = said().0;
        while said().0 == before {
            log.note(Level::Error, format_args!("more"));
            asked += 1;
            std::thread::yield_now();
        }
        let (dropped, written) = said();
        assert_eq!(dropped + written, asked);
    }

    #[test]
    fn lines_are_due_evenly_after_a_burst_and_the_wrap_of_the_clock_changes_nothing() {
        for start in [0, 5_000_000, u32::MAX - 500] {
            let (mut due, mut passed) = (start, 0);
            // 100 lines a second of the clock's, for ten seconds.
            for round in 0..1000_u32 {
                if let Some(next) = Bound::next(due, start.wrapping_add(10 * round)) {
                    due = next;
                    passed += 1;
                }
            }
            let even = 10_000 / Bound::PERIOD_MS;
            assert!((passed - i64::from(Bound::BURST + even)).abs() <= 1, "{passed}");
        }
    }

    #[test]
    fn a_pipe_that_nobody_reads_stalls_nobody() {
        let (_reader, writer) = std::io::pipe().unwrap();
        let config = ErrorLogConfig { to: ErrorLogTo::Stderr, level: Level::Debug };
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        let log = ErrorLog::open(&config, Some(file), &Reopen::new().unwrap()).unwrap();
        let long = "x".repeat(LINE_BYTES_MAX);
        // More than a pipe holds (64 KiB), all of it within what is allowed at once.
        (0..Bound::BURST).for_each(|_| log.note(Level::Error, format_args!("{long}")));
    }

    #[test]
    fn a_moved_file_is_opened_again_when_that_is_asked_for() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("error.log"), dir.path().join("error.log.1"));
        let reopen = Reopen::new().unwrap();
        let log = log_to(&path, Level::Error, &reopen);
        log.note(Level::Error, format_args!("one"));
        std::fs::rename(&path, &moved).unwrap();
        log.note(Level::Error, format_args!("two"));
        reopen.reopen_used(|_| true, None);
        log.note(Level::Error, format_args!("three"));
        assert_eq!(std::fs::read_to_string(&moved).unwrap().lines().count(), 2);
        assert!(std::fs::read_to_string(&path).unwrap().ends_with(": three\n"));
    }
}
