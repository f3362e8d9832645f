//! The files that access logs are appended to, and the lines that wait for them. Owns when lines reach a
//! file. Start reading at [`Sinks::append`].
//!
//! A line is never in two writes: with O_APPEND the kernel holds the inode's lock for one write, so lines of several
//! processes do not interleave. Each file has a buffer and a lock of its own, so a slow one (a pipe) does not delay the
//! others before their buffers are full. One thread of each process writes what remains in any of them, however many
//! hosts there are.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use sys::append;
use sys::process::SharedCells;

use super::errors::{ErrorLog, Level};
use super::file::{LogFile, Reopen, Unwritten};

/// Bytes of lines in one write to a regular file.
const WRITE_MAX: usize = 64 * 1024;

/// A line reaches the file within this time, however quiet the server is.
const LINE_AGE_MAX: Duration = Duration::from_millis(900);

/// A process that has no lines to write looks this often whether a file was moved away. Until then a moved file that
/// was deleted still occupies its disk space.
const QUIET_MAX: Duration = Duration::from_secs(5);

/// Files, each of them once.
#[derive(Debug)]
pub(super) struct Sinks {
    all: Vec<Sink>,
    /// Hears of files that cannot be opened again.
    errors: Arc<ErrorLog>,
    flusher: Mutex<Flusher>,
    /// Signalled when a buffer is no longer empty, or the logs end.
    changed: Condvar,
}

#[derive(Debug)]
struct Sink {
    path: PathBuf,
    file: LogFile,
    write_max: usize,
    /// Counts of this process and of forked children, see [`LOST`], [`SAID`] and [`FAILING`].
    cells: SharedCells,
    /// Whole lines that were not written yet.
    buffer: Mutex<Vec<u8>>,
}

/// Cell of a sink: lines that could not be written (a full disk).
const LOST: usize = 0;

/// Cell of a sink: how many of those the error log has reported.
const SAID: usize = 1;

/// Cell of a sink: 1 while the last write has failed.
const FAILING: usize = 2;

#[derive(Debug, Default)]
struct Flusher {
    thread: Option<JoinHandle<()>>,
    /// A buffer is not empty.
    has_lines: bool,
    ended: bool,
}

impl Sinks {
    pub(super) fn new(errors: &Arc<ErrorLog>) -> Self {
        let errors = Arc::clone(errors);
        Self { all: Vec::new(), errors, flusher: Mutex::default(), changed: Condvar::new() }
    }

    /// Opens a file, unless it is open already; returns its number.
    ///
    /// # Errors
    /// As [`append::open`].
    pub(super) fn add(&mut self, path: &Path, reopen: &Reopen) -> io::Result<usize> {
        if let Some(number) = self.all.iter().position(|sink| sink.path == path) {
            return Ok(number);
        }
        let file = LogFile::open(path, reopen)?;
        self.all.push(Sink {
            path: path.to_owned(),
            write_max: if file.in_pieces { append::PIPE_WRITE_MAX } else { WRITE_MAX },
            file,
            cells: SharedCells::new(3)?,
            buffer: Mutex::default(),
        });
        Ok(self.all.len() - 1)
    }

    /// Adds a line, its newline included, to the file of that number.
    pub(super) fn append(self: &Arc<Self>, number: usize, line: &[u8]) {
        let sink = &self.all[number];
        let was_empty = {
            let mut buffer = lock(&sink.buffer);
            if buffer.len() + line.len() > sink.write_max {
                self.write(sink, &mut buffer);
            }
            let was_empty = buffer.is_empty();
            buffer.extend_from_slice(line);
            was_empty
        };
        if was_empty {
            self.wake();
        }
    }

    /// Lets the thread write what remains, after a while. The thread is started only once there is a line, so that it
    /// belongs to the serving process and not to the one that forked it. If the process may start no more threads,
    /// lines wait for a full buffer or a flush.
    fn wake(self: &Arc<Self>) {
        let mut flusher = lock(&self.flusher);
        if !std::mem::replace(&mut flusher.has_lines, true) {
            self.changed.notify_one();
        }
        if flusher.thread.is_none() && !flusher.ended {
            let sinks = Arc::clone(self);
            let builder = std::thread::Builder::new().name("access-log".to_owned());
            let start = || builder.spawn(move || sinks.flush_for_ever()).ok();
            flusher.thread = sys::signals::hidden_from(start).ok().flatten();
        }
    }

    /// Writes all lines, and opens files again if that was requested.
    pub(super) fn flush(&self) {
        self.all.iter().for_each(|sink| self.write(sink, &mut lock(&sink.buffer)));
    }

    fn write(&self, sink: &Sink, lines: &mut Vec<u8>) {
        self.keep_up(sink);
        if lines.is_empty() {
            return;
        }
        match sink.file.append(lines) {
            Ok(()) => self.note_written(sink),
            Err(unwritten) => self.note_unwritten(sink, &unwritten),
        }
        lines.clear();
    }

    /// The first failure is reported at once, the others when a write succeeds again, however many processes there are
    /// and however long that takes.
    fn note_unwritten(&self, sink: &Sink, Unwritten { lines, error }: &Unwritten) {
        sink.cells[LOST].fetch_add(*lines, Relaxed);
        if sink.cells[FAILING].swap(1, Relaxed) == 0 {
            let path = sink.path.display();
            self.errors.note(
                Level::Error,
                format_args!(
                    "cannot write to the access log {path}: {error}; its lines are dropped and counted \
                     until it can be written to again (`df -h` shows what is left)"
                ),
            );
        }
    }

    fn note_written(&self, sink: &Sink) {
        let failing = &sink.cells[FAILING];
        if failing.load(Relaxed) != 0 && failing.swap(0, Relaxed) != 0 {
            self.say_lost(sink);
        }
    }

    fn say_lost(&self, sink: &Sink) {
        let lost = sink.cells[LOST].load(Relaxed);
        // Another process may report at the same time, with a larger or smaller count.
        let missing = lost.saturating_sub(sink.cells[SAID].fetch_max(lost, Relaxed));
        if missing > 0 {
            let path = sink.path.display();
            self.errors.note(
                Level::Warn,
                format_args!(
                    "{missing} lines of the access log {path} could not be written: was its disk full? \
                     (`df -h`)"
                ),
            );
        }
    }

    /// Reports how many lines of each file were lost, unless that was reported before.
    pub(super) fn say_all_lost(&self) {
        self.all.iter().for_each(|sink| self.say_lost(sink));
    }

    /// Opens a file again if that was requested, and reports a failure.
    fn keep_up(&self, sink: &Sink) {
        if let Err(error) = sink.file.keep_up() {
            let path = sink.path.display();
            self.errors.note(
                Level::Error,
                format_args!(
                    "cannot open the access log {path} again: {error}; lines go to the old file. \
                     SIGHUP opens it with the rights of the first process"
                ),
            );
        }
    }

    /// Writes all lines, and ends the thread that did.
    pub(super) fn end(&self) {
        let thread = {
            let mut flusher = lock(&self.flusher);
            flusher.ended = true;
            self.changed.notify_one();
            flusher.thread.take()
        };
        if let Some(thread) = thread {
            // It only ends by returning; a panic in it was reported by its own thread.
            let _ = thread.join();
        }
        self.flush();
    }

    /// Files of which lines could not be written, and how many.
    pub(super) fn lost(&self) -> impl Iterator<Item = (&Path, u32)> {
        let lost =
            self.all.iter().map(|sink| (sink.path.as_path(), sink.cells[LOST].load(Relaxed)));
        lost.filter(|(_, lost)| *lost > 0)
    }

    fn flush_for_ever(&self) {
        let mut flusher = lock(&self.flusher);
        while !flusher.ended {
            if !flusher.has_lines {
                let waited = self.changed.wait_timeout(flusher, QUIET_MAX);
                flusher = waited.unwrap_or_else(PoisonError::into_inner).0;
                self.all.iter().for_each(|sink| self.keep_up(sink));
                continue;
            }
            // Lets lines gather; woken early only by the end.
            let gathered = self.changed.wait_timeout_while(flusher, LINE_AGE_MAX, |f| !f.ended);
            flusher = gathered.unwrap_or_else(PoisonError::into_inner).0;
            // Cleared before they are written: a line that arrives in between is either written or noticed.
            flusher.has_lines = false;
            drop(flusher);
            self.flush();
            flusher = lock(&self.flusher);
        }
    }
}

/// Every state of what is locked here is a valid one, so a panic elsewhere does not spoil it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
