//! Keeps what programs leave behind: takes lines of their standard error to the error log, and reaps
//! those that have ended. One thread in each process that has started a program. Owns no request; must
//! not know what a program is for. Start reading at [`Keeper::of_this_process`], then `Watch::keep`.
//!
//! Cost of a program that is quick: a share of a wake-up of the thread, which looks some 20 ms later, when
//! most have ended. Only what has not by then is watched, which would cost each two epoll_ctl and two
//! wake-ups. In return the thread that serves never waits for the end of a program; and what has ended
//! stays a zombie for as long as that.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;
use sys::epoll::{Epoll, EventFlags};
use sys::program::Program;
use sys::wake::Wake;
use sys::{clock, process, signals};
use units::Nanos;

use crate::log::{ErrorLog, Level};

/// Bytes of a line of standard error; what is longer is written as several.
const LINE_BYTES_MAX: usize = 1024;

/// Bytes of standard error that are read before others have their turn.
const READ_BYTES: usize = 4096;

/// How long the thread leaves what it is given before it looks.
const LOOK: Nanos = Nanos::from_millis(20);

/// What the thread watches for new things by.
const FRESH: u64 = u64::MAX;

/// The keeper of a process.
#[derive(Debug)]
pub(super) struct Keeper {
    /// A forked child has a copy of this value and not of its thread.
    pid: u32,
    fresh: Mutex<Fresh>,
    /// Rung with the first fresh thing.
    wake: Wake,
}

/// What the thread has not looked at.
#[derive(Debug, Default)]
struct Fresh {
    things: Vec<Kept>,
    /// The thread knows that there are some, and looks in a while.
    is_known: bool,
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
        let fresh = Arc::new(Self { pid, fresh: Mutex::default(), wake: Wake::new()? });
        let watch = Watch {
            keeper: Arc::clone(&fresh),
            errors: Arc::clone(errors),
            epoll: Epoll::new()?,
            watched: HashMap::new(),
            next: 0,
            look: Nanos::MAX,
        };
        watch.epoll.add(&fresh.wake, FRESH, EventFlags::IN)?;
        let builder = std::thread::Builder::new().stack_size(64 * 1024);
        // Signals of the server are for who serves.
        signals::hidden_from(|| {
            builder.spawn(move || {
                process::set_name("joust keeper");
                watch.keep();
            })
        })??;
        *keeper = Some(Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Takes lines from `file`, which does not block, to the error log until it ends.
    pub(super) fn take_errors(&self, file: OwnedFd, name: String) {
        self.add(Kept::Errors(Errors { file, name, line: Vec::new() }));
    }

    /// Reaps the program once it has ended; kills it and its group if that has not come by `until`.
    pub(super) fn see_off(&self, program: Program, until: Nanos) {
        if matches!(program.reap(), Ok(None)) {
            self.add(Kept::Ending(program, until));
        }
    }

    fn add(&self, kept: Kept) {
        let mut fresh = lock(&self.fresh);
        fresh.things.push(kept);
        if !std::mem::replace(&mut fresh.is_known, true) {
            drop(fresh);
            self.wake.ring();
        }
    }
}

/// What the thread of a keeper has.
struct Watch {
    keeper: Arc<Keeper>,
    errors: Arc<ErrorLog>,
    epoll: Epoll,
    /// What was not over at the first look.
    watched: HashMap<u64, Kept>,
    next: u64,
    /// When fresh things are looked at.
    look: Nanos,
}

impl Watch {
    /// The life of the thread; it ends with the process.
    fn keep(mut self) {
        let mut ready = Vec::new();
        while self.epoll.wait(&mut ready, self.timeout()).is_ok() {
            for event in ready.drain(..) {
                if event.token == FRESH {
                    self.keeper.wake.hush();
                    self.look = clock::monotonic().saturating_add(LOOK);
                } else if let Some(kept) = self.watched.get_mut(&event.token)
                    && kept.is_over(&self.errors)
                {
                    self.watched.remove(&event.token);
                }
            }
            if self.look <= clock::monotonic() {
                self.look = Nanos::MAX;
                self.look_at_fresh();
            }
            kill_overdue(&mut self.watched);
        }
    }

    fn look_at_fresh(&mut self) {
        let mut fresh = lock(&self.keeper.fresh);
        fresh.is_known = false;
        let things = std::mem::take(&mut fresh.things);
        drop(fresh);
        for mut kept in things {
            if kept.is_over(&self.errors) {
                continue;
            }
            let file = match &kept {
                Kept::Errors(errors) => errors.file.as_fd(),
                Kept::Ending(program, _) => program.as_fd(),
            };
            self.next += 1;
            match self.epoll.add(file, self.next, EventFlags::IN) {
                Ok(()) => _ = self.watched.insert(self.next, kept),
                // ENOMEM, ENOSPC (fs.epoll.max_user_watches): it is looked at again instead.
                Err(_) => self.keeper.add(kept),
            }
        }
    }

    /// Until there is something to be looked at, or the first program is overdue.
    fn timeout(&self) -> Option<Nanos> {
        let overdue = self.watched.values().filter_map(Kept::until).min();
        let next = overdue.unwrap_or(Nanos::MAX).min(self.look);
        (next != Nanos::MAX).then(|| next.saturating_sub(clock::monotonic()))
    }
}

impl Kept {
    /// Whether nothing more is to be done about it, after doing what there was.
    fn is_over(&mut self, errors: &ErrorLog) -> bool {
        match self {
            Self::Errors(kept) => kept.take(errors),
            Self::Ending(program, _) => !matches!(program.reap(), Ok(None)),
        }
    }

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
