//! The access logs, one for each host, several of which may share a file: whole lines, buffered per process, appended
//! to a file by all processes. Owns which lines go where; see also `sink`. Start reading at `AccessLogs::append`; for
//! the server's own messages at [`ErrorLog`].
//!
//! Cost when off: nothing. When on: an index finds the log, a line is copied under a mutex, and one write carries about
//! 64 KiB of lines, or those of the last second.

mod episode;
mod errors;
mod file;
mod format;
pub(crate) mod line;
mod sink;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::tz::TimeZone;
use sys::{append, clock};
use units::Nanos;

use crate::SiteError;
pub use episode::{Episode, Occurrence, Over};
pub use errors::{ErrorLog, ErrorLogConfig, ErrorLogTo, Level};
pub use file::Reopen;
pub use format::LogFormat;
use sink::Sinks;

/// Where and how requests are logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessLogConfig {
    /// The file, appended to; `None`: no log, at no cost.
    pub file: Option<PathBuf>,
    /// What a line holds.
    pub format: LogFormat,
}

/// The access logs of a process.
#[derive(Debug)]
pub struct AccessLogs {
    /// By the number of the host; `None`: it has none.
    of_hosts: Box<[Option<AccessLog>]>,
    on: Option<On>,
}

/// What there is if any host has a log.
#[derive(Debug)]
struct On {
    zone: TimeZone,
    sinks: Arc<Sinks>,
}

/// The access log of a host.
#[derive(Debug)]
pub struct AccessLog {
    format: LogFormat,
    /// Where its lines go.
    sink: usize,
}

impl AccessLogs {
    /// Opens each file for appending, once, and makes those that are missing. `errors` hears of files that cannot be
    /// opened again later. `of_hosts` is in the order of the hosts' numbers.
    ///
    /// # Errors
    /// A file that cannot be written, with the number of its host.
    pub fn open<'c>(
        of_hosts: impl Iterator<Item = &'c AccessLogConfig>,
        reopen: &Reopen,
        errors: &Arc<ErrorLog>,
    ) -> Result<Self, (usize, SiteError)> {
        let mut sinks = Sinks::new(errors);
        let mut open = |(host, log): (usize, &AccessLogConfig)| {
            let Some(path) = &log.file else { return Ok(None) };
            let sink = sinks.add(path, reopen).map_err(|source| (host, refused(path, source)))?;
            Ok(Some(AccessLog { format: log.format.clone(), sink }))
        };
        let of_hosts: Box<[_]> = of_hosts.enumerate().map(&mut open).collect::<Result<_, _>>()?;
        let on = of_hosts.iter().any(Option::is_some);
        let on = on.then(|| On { zone: TimeZone::system(), sinks: Arc::new(sinks) });
        Ok(Self { of_hosts, on })
    }

    /// Whether [`AccessLogs::open`] would succeed for that log, without making its file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub(crate) fn check(config: &AccessLogConfig) -> Result<(), SiteError> {
        let Some(path) = &config.file else { return Ok(()) };
        append::check(path).map_err(|source| refused(path, source))
    }

    /// The log of the host of that number; `None`: it has none.
    #[inline]
    pub fn of(&self, host: usize) -> Option<&AccessLog> {
        self.of_hosts.get(host)?.as_ref()
    }

    /// The zone of the times in them; `None`: no host has a log.
    pub(crate) fn zone(&self) -> Option<&TimeZone> {
        self.on.as_ref().map(|on| &on.zone)
    }

    /// Adds a line, its newline included, to a log of these. It is in the file after
    /// [`AccessLogs::flush`], and at the latest after a second.
    pub fn append(&self, log: &AccessLog, line: &[u8]) {
        if let Some(on) = &self.on {
            on.sinks.append(log.sink, line);
        }
    }

    /// Writes all lines, and opens the files again if that was requested. To be called before a process forks, waits
    /// for long, or ends.
    pub fn flush(&self) {
        if let Some(on) = &self.on {
            on.sinks.flush();
        }
    }

    /// Notes in the error log how many lines could not be written, unless it was told before.
    pub fn say_lost(&self) {
        if let Some(on) = &self.on {
            on.sinks.say_all_lost();
        }
    }

    /// Lines that could not be written (a full disk) since the logs were opened, by this process and by children forked
    /// from it: for each file with such lines.
    pub fn lost(&self) -> impl Iterator<Item = (&Path, u32)> {
        self.on.iter().flat_map(|on| on.sinks.lost())
    }
}

impl Drop for AccessLogs {
    fn drop(&mut self) {
        if let Some(on) = &self.on {
            on.sinks.end();
        }
    }
}

impl AccessLog {
    /// What a line holds.
    pub(crate) fn format(&self) -> &LogFormat {
        &self.format
    }

    /// The time, if a line says how long something took.
    pub(crate) fn time(&self) -> Option<Nanos> {
        self.format.is_timed().then(clock::monotonic)
    }
}

fn refused(path: &Path, source: std::io::Error) -> SiteError {
    SiteError::AccessLog { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(path: &Path) -> Result<AccessLogs, SiteError> {
        let config = AccessLogConfig { file: Some(path.to_owned()), ..AccessLogConfig::default() };
        let (reopen, errors) = (Reopen::new().unwrap(), Arc::new(ErrorLog::off()));
        AccessLogs::open([&config].into_iter(), &reopen, &errors).map_err(|(_, error)| error)
    }

    fn logs_to(path: &Path) -> AccessLogs {
        opened(path).unwrap()
    }

    fn append(logs: &AccessLogs, line: &[u8]) {
        logs.append(logs.of(0).unwrap(), line);
    }

    #[test]
    fn lines_of_several_writers_never_interleave() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let log = logs_to(path);
                    let line = format!("{}\n", writer.to_string().repeat(997));
                    (0..500).for_each(|_| append(&log, line.as_bytes()));
                });
            }
        });
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 2000);
        let whole = |line: &str| line.len() == 997 && line.bytes().all(|b| b == line.as_bytes()[0]);
        assert!(text.lines().all(whole));
    }

    #[test]
    fn a_line_reaches_the_file_by_itself() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let log = logs_to(&path);
        append(&log, b"one\n");
        // Bounded by the test runner alone: no speed is promised on a loaded machine.
        while std::fs::read(&path).unwrap() != b"one\n" {
            std::thread::yield_now();
        }
    }

    #[test]
    fn flushed_lines_are_in_the_file_and_lost_ones_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let log = logs_to(&path);
        append(&log, b"one\n");
        append(&log, b"two\n");
        log.flush();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(log.lost().count(), 0);
        let full = logs_to(Path::new("/dev/full"));
        append(&full, b"one\n");
        append(&full, b"two\n");
        full.flush();
        assert_eq!(full.lost().collect::<Vec<_>>(), [(Path::new("/dev/full"), 2)]);
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_refused_with_the_way_out() {
        let error = opened(Path::new("/nonexistent/log")).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/log") && error.contains("--access-log"), "{error}");
    }
}
