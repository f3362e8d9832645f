//! Keeps what programs leave behind: takes lines of their standard error to the error log, and reaps
//! those that have ended. One thread in each process that has started a program. Owns no request; must
//! not know what a program is for. Start reading at [`Keeper::of_this_process`], then `Keeper::keep`.
//!
//! Cost of a program: two epoll_ctl, and a wake-up or two of the thread, some 10 us beside the 500 us
//! that its start and end take. In return the thread that serves never waits for the end of a program.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use sys::epoll::{Epoll, EventFlags};
use sys::program::Program;
use sys::{clock, process, signals};
use units::Nanos;

use crate::log::{ErrorLog, Level};

/// Bytes of a line of standard error; what is longer is written as several.
const LINE_BYTES_MAX: usize = 1024;

/// Bytes of standard error that are read before others have their turn.
const READ_BYTES: usize = 4096;

/// The keeper of a process.
#[derive(Debug)]
pub(super) struct Keeper {
    /// A forked child has a copy of this value and not of its thread.
    pid: u32,
    epoll: Epoll,
    errors: Arc<ErrorLog>,
    next: AtomicU64,
    kept: Mutex<HashMap<u64, Kept>>,
}

#[derive(Debug)]
enum Kept {
    Errors(Errors),
    /// A program that is to end by then.
    Ending(Program, Nanos),
}

/// Standard error of a program.
#[derive(Debug)]
struct Errors {
    file: OwnedFd,
    /// Who writes it.
    name: String,
    /// The line that has begun.
    line: Vec<u8>,
}

static KEEPER: Mutex<Option<Arc<Keeper>>> = Mutex::new(None);

impl Keeper {
    /// That of this process, which is started with its first program.
    ///
    /// # Errors
    /// EMFILE; EAGAIN where no thread can be started.
    pub(super) fn of_this_process(errors: &Arc<ErrorLog>) -> io::Result<Arc<Self>> {
        let mut keeper = lock(&KEEPER);
        let pid = std::process::id();
        if let Some(kept) = keeper.as_ref().filter(|kept| kept.pid == pid) {
            return Ok(Arc::clone(kept));
        }
        let fresh = Arc::new(Self {
            pid,
            epoll: Epoll::new()?,
            errors: Arc::clone(errors),
            next: AtomicU64::new(0),
            kept: Mutex::default(),
        });
        let of_thread = Arc::clone(&fresh);
        let builder = std::thread::Builder::new().stack_size(64 * 1024);
        // Signals of the server are for who serves.
        signals::hidden_from(|| {
            builder.spawn(move || {
                process::set_name("joust keeper");
                of_thread.keep();
            })
        })??;
        *keeper = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Takes lines from `file`, which does not block, to the error log until it ends.
    ///
    /// # Errors
    /// ENOMEM, ENOSPC (fs.epoll.max_user_watches).
    pub(super) fn take_errors(&self, file: OwnedFd, name: String) -> io::Result<()> {
        self.add(Kept::Errors(Errors { file, name, line: Vec::new() }))
    }

    /// Reaps the program once it has ended; kills it and its group if that has not come by `until`.
    pub(super) fn see_off(&self, program: Program, until: Nanos) {
        if matches!(program.reap(), Ok(None)) {
            // Where it cannot be watched it stays a zombie until this process ends: nothing is lost.
            let _ = self.add(Kept::Ending(program, until));
        }
    }

    fn add(&self, kept: Kept) -> io::Result<()> {
        let token = self.next.fetch_add(1, Relaxed);
        let mut all = lock(&self.kept);
        let file = match &kept {
            Kept::Errors(errors) => errors.file.as_fd(),
            Kept::Ending(program, _) => program.as_fd(),
        };
        self.epoll.add(file, token, EventFlags::IN)?;
        all.insert(token, kept);
        Ok(())
    }

    /// The life of the thread; it ends with the process.
    fn keep(&self) {
        let mut ready = Vec::new();
        loop {
            if self.epoll.wait(&mut ready, self.timeout()).is_err() {
                return;
            }
            let mut kept = lock(&self.kept);
            for event in ready.drain(..) {
                let over = match kept.get_mut(&event.token) {
                    Some(Kept::Errors(errors)) => errors.take(&self.errors),
                    Some(Kept::Ending(program, _)) => !matches!(program.reap(), Ok(None)),
                    None => false,
                };
                if over {
                    kept.remove(&event.token);
                }
            }
            kill_overdue(&mut kept);
        }
    }

    /// Until the first program is overdue.
    fn timeout(&self) -> Option<Nanos> {
        let first = lock(&self.kept).values().filter_map(Kept::until).min()?;
        Some(first.saturating_sub(clock::monotonic()))
    }
}

impl Kept {
    fn until(&self) -> Option<Nanos> {
        match self {
            Self::Ending(_, until) if *until < Nanos::MAX => Some(*until),
            _ => None,
        }
    }
}

fn kill_overdue(kept: &mut HashMap<u64, Kept>) {
    let now = clock::monotonic();
    for one in kept.values_mut() {
        if let Kept::Ending(program, until) = one
            && *until <= now
        {
            program.kill();
            *until = Nanos::MAX;
        }
    }
}

impl Errors {
    /// Takes what has come; returns whether that was the end.
    fn take(&mut self, errors: &ErrorLog) -> bool {
        let mut bytes = [0; READ_BYTES];
        let count = match rustix::io::read(&self.file, &mut bytes) {
            Ok(0) => {
                self.end_line(errors);
                return true;
            }
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return false,
            Err(_) => return true,
        };
        for &byte in &bytes[..count] {
            if byte == b'\n' || self.line.len() == LINE_BYTES_MAX {
                self.end_line(errors);
            }
            if byte != b'\n' {
                self.line.push(byte);
            }
        }
        false
    }

    fn end_line(&mut self, errors: &ErrorLog) {
        if !self.line.is_empty() {
            note(errors, &self.name, &String::from_utf8_lossy(&self.line));
            self.line.clear();
        }
    }
}

/// A line about a gateway.
pub(super) fn note(errors: &ErrorLog, name: &str, text: &str) {
    errors.note(Level::Error, format_args!("{name}: {text}"));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
