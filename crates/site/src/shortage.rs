//! A lack of descriptors, memory or processes: one line in the error log when it begins, one a minute while
//! it lasts, and one when it is over. See `log::Episode` for when a line is due.

use std::fmt;
use std::io;

use sys::clock;
use units::Nanos;

use crate::log::{Episode, ErrorLog, Level, Occurrence, Over};

/// One kind of shortage of a server.
#[derive(Debug)]
pub struct Shortage(Episode);

impl Shortage {
    /// What bounds the descriptors and the memory of a process.
    pub const FILES_AND_MEMORY: &'static str = "`ulimit -n` bounds the files of a process, sysctl fs.file-max those of the machine, the cgroup its \
         memory";

    /// What bounds its processes and threads.
    pub const PROCESSES: &'static str = "`ulimit -u` bounds the processes and threads of a user, the cgroup's pids.max and sysctl \
         kernel.threads-max those of a service and of the machine";

    /// There is no shortage.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new() -> io::Result<Self> {
        Episode::new().map(Self)
    }

    /// Something could not be done (`doing`, such as "accept a connection"). `bounds` says what limits it.
    pub fn note(
        &self,
        errors: &ErrorLog,
        doing: fmt::Arguments<'_>,
        error: &io::Error,
        bounds: &str,
    ) {
        match self.0.happens(clock::monotonic()) {
            None => {}
            Some(Occurrence::First) => errors.note(
                Level::Crit,
                format_args!(
                    "cannot {doing}: {error}; {bounds}. While this lasts, one line a minute gives the count"
                ),
            ),
            Some(Occurrence::Again { times, seconds }) => errors.note(
                Level::Crit,
                format_args!("cannot {doing}: {error}; {times} more times in the last {seconds} s"),
            ),
        }
    }

    /// Whether it lasts, as far as is known.
    #[inline]
    pub fn lasts(&self) -> bool {
        self.0.goes_on()
    }

    /// A connection was accepted, which may be the end of it.
    #[cold]
    pub fn note_accepted(&self, errors: &ErrorLog, now: Nanos) {
        if let Some(Over { times, seconds }) = self.0.succeeds(now) {
            let s = if times == 1 { "" } else { "s" };
            errors.note(
                Level::Warn,
                format_args!("accepts connections again, after {times} failure{s} in {seconds} s"),
            );
        }
    }
}
