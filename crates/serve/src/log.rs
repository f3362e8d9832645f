//! The access log: whole lines, buffered per process, appended to one file by all processes. Owns
//! when lines reach the file; must not know what a request is (see `line` for what is in one).
//! Start reading at [`AccessLog::append`]; for what the server says of itself at [`ErrorLog`].
//!
//! Cost when off: nothing. When on: a line is copied under a mutex, and one write carries some 64 KiB
//! of lines, or those of the last second. A line is never in two writes: with O_APPEND the kernel
//! holds the inode's lock for one write, so lines of several processes do not interleave.

mod errors;
mod file;
mod format;
pub(crate) mod line;

use std::io::{self, Write as _};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use jiff::tz::TimeZone;
use sys::process::SharedCells;
use sys::{append, clock};
use units::Nanos;

use crate::ServeError;
use crate::config::AccessLogConfig;
pub use errors::{ErrorLog, Level};
use file::LogFile;
pub use file::Reopen;
pub use format::LogFormat;

/// Bytes of lines in one write to a regular file.
const WRITE_MAX: usize = 64 * 1024;

/// A line reaches the file within this time, however quiet the server is.
const LINE_AGE_MAX: Duration = Duration::from_millis(900);

/// A process that has no lines to write looks this often whether the file was moved away: until then
/// it keeps the room of a moved one that was deleted.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// The access log of a process.
#[derive(Debug)]
pub struct AccessLog {
    on: Option<On>,
}

#[derive(Debug)]
struct On {
    format: LogFormat,
    zone: TimeZone,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: LogFile,
    write_max: usize,
    /// One cell: lines that could not be written (a full disk), here and in forked children.
    lost: SharedCells,
    buffer: Mutex<Buffer>,
    /// Signalled when the buffer is no longer empty, or the log ends.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Buffer {
    /// Whole lines that were not written yet.
    lines: Vec<u8>,
    /// The last write was cut inside a line.
    cut: bool,
    ended: bool,
    flusher: Option<JoinHandle<()>>,
}

impl AccessLog {
    /// Opens the file for appending; makes it where there is none.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn open(config: &AccessLogConfig, reopen: &Reopen) -> Result<Self, ServeError> {
        let Some(path) = &config.file else { return Ok(Self { on: None }) };
        let failed = |source| ServeError::AccessLog { path: path.clone(), source };
        let file = LogFile::open(path, reopen).map_err(failed)?;
        let shared = Shared {
            write_max: if file.in_pieces { append::PIPE_WRITE_MAX } else { WRITE_MAX },
            file,
            lost: SharedCells::new(1).map_err(failed)?,
            buffer: Mutex::default(),
            changed: Condvar::new(),
        };
        let zone = TimeZone::system();
        Ok(Self { on: Some(On { format: config.format.clone(), zone, shared: Arc::new(shared) }) })
    }

    /// Whether [`AccessLog::open`] would do, without making the file.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn check(config: &AccessLogConfig) -> Result<(), ServeError> {
        let Some(path) = &config.file else { return Ok(()) };
        append::check(path).map_err(|source| ServeError::AccessLog { path: path.clone(), source })
    }

    /// What a line holds; `None`: the log is off.
    pub fn format(&self) -> Option<&LogFormat> {
        self.on.as_ref().map(|on| &on.format)
    }

    /// The time, if a line says how long something took.
    pub(crate) fn time(&self) -> Option<Nanos> {
        let is_timed = self.on.as_ref().is_some_and(|on| on.format.is_timed());
        is_timed.then(clock::monotonic)
    }

    /// The zone of the times in it.
    pub(crate) fn zone(&self) -> Option<&TimeZone> {
        self.on.as_ref().map(|on| &on.zone)
    }

    /// Adds a line, its newline included. It is in the file after [`AccessLog::flush`], and at the
    /// latest after a second.
    pub fn append(&self, line: &[u8]) {
        let Some(on) = &self.on else { return };
        let mut buffer = on.shared.lock();
        if buffer.lines.len() + line.len() > on.shared.write_max {
            on.shared.write(&mut buffer);
        }
        if buffer.lines.is_empty() {
            on.shared.changed.notify_one();
        }
        buffer.lines.extend_from_slice(line);
        if buffer.flusher.is_none() {
            buffer.flusher = on.start_flusher();
        }
    }

    /// Writes all lines, and opens the file again if that was asked for. To be called before a
    /// process forks, waits for long, or ends.
    pub fn flush(&self) {
        if let Some(on) = &self.on {
            on.shared.write(&mut on.shared.lock());
            on.shared.file.keep_up();
        }
    }

    /// Lines that could not be written (a full disk), by this process and by children forked from it
    /// since the log was opened.
    pub fn lines_lost(&self) -> u32 {
        self.on.as_ref().map_or(0, |on| on.shared.lost[0].load(Relaxed))
    }
}

impl Drop for AccessLog {
    fn drop(&mut self) {
        let Some(on) = &self.on else { return };
        let flusher = {
            let mut buffer = on.shared.lock();
            buffer.ended = true;
            on.shared.write(&mut buffer);
            on.shared.changed.notify_one();
            buffer.flusher.take()
        };
        if let Some(flusher) = flusher {
            // It only ends by returning; a panic in it was reported by its own thread.
            let _ = flusher.join();
        }
    }
}

impl On {
    /// Starts the thread that writes what is left lying. Only once a line is there, so that it
    /// belongs to the process that serves and not to the one that forked it. Without it (the process
    /// may start no more threads) lines wait for a full buffer or a flush.
    fn start_flusher(&self) -> Option<JoinHandle<()>> {
        let shared = Arc::clone(&self.shared);
        let builder = std::thread::Builder::new().name("access-log".to_owned());
        sys::signals::hidden_from(|| builder.spawn(move || shared.flush_for_ever()).ok()).ok()?
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Buffer> {
        // Every state of the buffer is a valid one, so a panic elsewhere does not spoil it.
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush_for_ever(&self) {
        let mut buffer = self.lock();
        while !buffer.ended {
            if buffer.lines.is_empty() {
                let waited = self.changed.wait_timeout(buffer, QUIET_MAX);
                buffer = waited.unwrap_or_else(PoisonError::into_inner).0;
                self.file.keep_up();
                continue;
            }
            // Lets lines gather; woken early only by the end.
            let gathered = self.changed.wait_timeout_while(buffer, LINE_AGE_MAX, |b| !b.ended);
            buffer = gathered.unwrap_or_else(PoisonError::into_inner).0;
            self.write(&mut buffer);
        }
    }

    fn write(&self, buffer: &mut Buffer) {
        if buffer.lines.is_empty() {
            return;
        }
        if std::mem::take(&mut buffer.cut) {
            buffer.lines.insert(0, b'\n');
        }
        let mut file = self.file.current();
        let mut rest = &buffer.lines[..];
        while !rest.is_empty() {
            match file.write(rest) {
                Ok(n) => rest = &rest[n..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        let lost = rest.iter().filter(|&&byte| byte == b'\n').count() as u32;
        buffer.cut = lost > 0 && rest.len() < buffer.lines.len();
        self.lost[0].fetch_add(lost, Relaxed);
        buffer.lines.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_to(path: &std::path::Path) -> AccessLog {
        let config = AccessLogConfig { file: Some(path.to_owned()), format: LogFormat::default() };
        AccessLog::open(&config, &Reopen::new().unwrap()).unwrap()
    }

    #[test]
    fn lines_of_several_writers_never_interleave() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    let log = log_to(path);
                    let line = format!("{}\n", writer.to_string().repeat(997));
                    (0..500).for_each(|_| log.append(line.as_bytes()));
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
        let log = log_to(&path);
        log.append(b"one\n");
        // Bounded by the test runner alone: no speed is promised on a loaded machine.
        while std::fs::read(&path).unwrap() != b"one\n" {
            std::thread::yield_now();
        }
    }

    #[test]
    fn flushed_lines_are_in_the_file_and_lost_ones_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("access.log");
        let log = log_to(&path);
        log.append(b"one\n");
        log.append(b"two\n");
        log.flush();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(log.lines_lost(), 0);
        let full = log_to(std::path::Path::new("/dev/full"));
        full.append(b"one\n");
        full.append(b"two\n");
        full.flush();
        assert_eq!(full.lines_lost(), 2);
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_refused_with_the_way_out() {
        let config =
            AccessLogConfig { file: Some("/nonexistent/log".into()), ..Default::default() };
        let error = AccessLog::open(&config, &Reopen::new().unwrap()).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/log") && error.contains("--access-log"), "{error}");
    }
}
