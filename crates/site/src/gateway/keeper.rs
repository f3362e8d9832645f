//! Takes care of what programs leave behind: copies lines of their standard error to the error log, and reaps those
//! that have ended. One thread in each process that has started a program. Owns no request. Start reading at
//! [`Keeper::of_this_process`], then `Watch::keep`.
//!
//! Cost of a short program: a share of one wake-up of the thread, which looks about 20 ms later, when most programs
//! have ended. Only the others are watched, since that costs each two epoll_ctl and two wake-ups. So the serving thread
//! never waits for the end of a program, but an ended program stays a zombie for up to 20 ms. A process that ends lets
//! its keeper finish first ([`wind_up`]). Otherwise the last lines would be lost, and nobody would end the programs.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use sys::epoll::{Epoll, EventFlags};
use sys::mark::{self, Mark};
use sys::program::Program;
use sys::signals::Stop;
use sys::wake::Wake;
use sys::{clock, poll, process, signals};
use units::Nanos;

use crate::log::{ErrorLog, Level};

/// Bytes of a line of standard error; what is longer is written as several.
const LINE_BYTES_MAX: usize = 1024;

/// Bytes of standard error that are read before others have their turn.
const READ_BYTES: usize = 4096;

/// How long the thread waits before it looks at new things.
const LOOK: Nanos = Nanos::from_millis(20);

/// How long programs may still run after their answer when the process that started them ends, as in Apache
/// (APR_KILL_AFTER_TIMEOUT, apr_pools.c).
const ENDING_MAX: Nanos = Nanos::from_secs(3);

/// How long the process then waits for the end of a killed program, which may hang in the kernel.
const KILLED_MAX: Nanos = Nanos::from_secs(1);

/// How often an ending process looks again, in case it missed a signal or a panic of the thread.
const OVER_TICK: Nanos = Nanos::from_millis(20);

/// How often an ending process reads from a standard error that somebody still writes to.
const LAST_READS_MAX: usize = 16;

/// The epoll token of new things.
const FRESH: u64 = u64::MAX;

/// The keeper of a process.
#[derive(Debug)]
pub(super) struct Keeper {
    /// A forked child has a copy of this value and not of its thread.
    pid: u32,
    fresh: Mutex<Fresh>,
    /// Rung for the first new thing.
    wake: Wake,
    /// Rung when the thread has nothing left to do.
    over: Wake,
}

/// New things, at which the thread has not looked.
#[derive(Debug, Default)]
struct Fresh {
    things: Vec<Kept>,
    /// All processes with one of these marks are to end now.
    over: Vec<Mark>,
    /// The thread knows that there are new things, and looks in a while.
    is_known: bool,
    /// The process ends: programs have until then, and the thread ends with the last of them.
    end: Option<Nanos>,
}

#[derive(Debug)]
enum Kept {
    Errors(Errors),
    /// A program that is to end by this instant.
    Ending(Program, Nanos),
}

/// Standard error of a program.
#[derive(Debug)]
struct Errors {
    file: OwnedFd,
    /// Who writes it.
    name: String,
    /// The unfinished line.
    line: Vec<u8>,
}

static KEEPER: Mutex<Option<(Arc<Keeper>, JoinHandle<()>)>> = Mutex::new(None);

/// To be called before this process ends, when no request uses its programs any more. Waits for programs that have not
/// ended, and logs what they have written. If the process is to end at once, they are killed.
pub fn wind_up() {
    let kept = lock(&KEEPER).take_if(|(keeper, _)| keeper.pid == std::process::id());
    let Some((keeper, thread)) = kept else { return };
    keeper.end_by(clock::monotonic().saturating_add(ENDING_MAX));
    let mut is_over = false;
    while !is_over && !thread.is_finished() {
        if signals::asked_to_end() == Some(Stop::AtOnce) {
            keeper.end_by(clock::monotonic());
        }
        let mut over = [PollFd::new(&keeper.over, PollFlags::IN)];
        // A signal ends the wait too. A failure costs only a little time.
        let _ = poll::wait_for(&mut over, Some(OVER_TICK));
        is_over = !over[0].revents().is_empty();
    }
    // A panic in it was reported by its own thread.
    let _ = thread.join();
}

impl Keeper {
    /// The keeper of this process, which is started with its first program.
    ///
    /// # Errors
    /// EMFILE; EAGAIN if no thread can be started.
    pub(super) fn of_this_process(errors: &Arc<ErrorLog>) -> io::Result<Arc<Self>> {
        let mut keeper = lock(&KEEPER);
        let pid = std::process::id();
        if let Some((kept, _)) = keeper.as_ref().filter(|(kept, _)| kept.pid == pid) {
            return Ok(Arc::clone(kept));
        }
        let (wake, over) = (Wake::new()?, Wake::new()?);
        let fresh = Arc::new(Self { pid, fresh: Mutex::default(), wake, over });
        let watch = Watch {
            keeper: Arc::clone(&fresh),
            errors: Arc::clone(errors),
            epoll: Epoll::new()?,
            watched: HashMap::new(),
            next: 0,
            presentation: Nanos::MAX,
            over: Vec::new(),
            end: None,
        };
        watch.epoll.add(&fresh.wake, FRESH, EventFlags::IN)?;
        let builder = std::thread::Builder::new().stack_size(64 * 1024);
        // Signals are for the threads that serve.
        let thread = signals::hidden_from(|| {
            builder.spawn(move || {
                process::set_name("joust keeper");
                watch.keep();
            })
        })??;
        *keeper = Some((Arc::clone(&fresh), thread));
        Ok(fresh)
    }

    /// Takes lines from `file`, which does not block, to the error log until it ends.
    pub(super) fn take_errors(&self, file: OwnedFd, name: String) {
        self.add(Kept::Errors(Errors { file, name, line: Vec::new() }));
    }

    /// The process ends: programs have until `end`.
    fn end_by(&self, end: Nanos) {
        let mut fresh = lock(&self.fresh);
        fresh.end = Some(fresh.end.map_or(end, |before| before.min(end)));
        drop(fresh);
        self.wake.ring();
    }

    /// Reaps the program once it has ended; kills it and all that it has started if it has not ended by `until`.
    pub(super) fn see_off(&self, program: Program, until: Nanos) {
        if matches!(program.reap(), Ok(None)) {
            self.add(Kept::Ending(program, until));
        }
    }

    /// Kills the program and its group at once, and all else that it has started soon; reaps it.
    pub(super) fn end(&self, program: Program) {
        program.kill();
        let over = program.mark();
        let mut fresh = lock(&self.fresh);
        fresh.over.extend(over);
        fresh.things.push(Kept::Ending(program, Nanos::MAX));
        self.tell(fresh);
    }

    fn add(&self, kept: Kept) {
        let mut fresh = lock(&self.fresh);
        fresh.things.push(kept);
        self.tell(fresh);
    }

    fn tell(&self, mut fresh: MutexGuard<'_, Fresh>) {
        if !std::mem::replace(&mut fresh.is_known, true) {
            drop(fresh);
            self.wake.ring();
        }
    }
}

/// The state of a keeper's thread.
struct Watch {
    keeper: Arc<Keeper>,
    errors: Arc<ErrorLog>,
    epoll: Epoll,
    /// What had not ended when it was first looked at.
    watched: HashMap<u64, Kept>,
    next: u64,
    /// When new things are looked at.
    presentation: Nanos,
    /// See [`Fresh::over`]: one search ends the descendants of many programs.
    over: Vec<Mark>,
    /// See [`Fresh::end`].
    end: Option<Nanos>,
}

impl Watch {
    /// The life of the thread; it ends shortly before the process does.
    fn keep(mut self) {
        let mut ready = Vec::new();
        while !self.is_done() && self.epoll.wait(&mut ready, self.timeout()).is_ok() {
            for event in ready.drain(..) {
                if event.token == FRESH {
                    self.keeper.wake.hush();
                    self.end = lock(&self.keeper.fresh).end;
                    let patience = if self.end.is_some() { Nanos::ZERO } else { LOOK };
                    self.presentation = clock::monotonic().saturating_add(patience);
                } else if let Some(kept) = self.watched.get_mut(&event.token)
                    && kept.is_over(&self.errors)
                {
                    self.watched.remove(&event.token);
                }
            }
            if self.presentation <= clock::monotonic() {
                self.presentation = Nanos::MAX;
                self.look_at_fresh();
            }
            self.kill_overdue();
            self.end_descendants();
        }
        // What an ended program wrote before is there; others may hold the file open for ever.
        for kept in self.watched.values_mut() {
            if let Kept::Errors(left) = kept {
                for _ in 0..LAST_READS_MAX {
                    if left.take(&self.errors) != Came::Some {
                        break;
                    }
                }
                left.end_line(&self.errors);
            }
        }
        self.keeper.over.ring();
    }

    /// Whether the process ends and no program is left.
    fn is_done(&self) -> bool {
        let Some(end) = self.end else { return false };
        let is_program = |kept: &Kept| matches!(kept, Kept::Ending(..));
        let is_over = clock::monotonic() >= end.saturating_add(KILLED_MAX);
        is_over || (self.presentation == Nanos::MAX && !self.watched.values().any(is_program))
    }

    fn look_at_fresh(&mut self) {
        let mut fresh = lock(&self.keeper.fresh);
        fresh.is_known = false;
        let things = std::mem::take(&mut fresh.things);
        self.over.append(&mut fresh.over);
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

    /// Kills programs that should have ended: each at its own time, and all by the end of the process.
    fn kill_overdue(&mut self) {
        let (now, end) = (clock::monotonic(), self.end.unwrap_or(Nanos::MAX));
        for one in self.watched.values_mut() {
            if let Kept::Ending(program, until) = one
                && *until < Nanos::MAX
                && end.min(*until) <= now
            {
                program.kill();
                self.over.extend(program.mark());
                *until = Nanos::MAX;
            }
        }
    }

    /// Kills what ended programs have started.
    fn end_descendants(&mut self) {
        if self.over.is_empty() {
            return;
        }
        let ended = mark::kill_marked(|mark| self.over.contains(&mark));
        self.over.clear();
        if let Err(error) = ended {
            let what = "cannot look for what programs have left running";
            self.errors.note(Level::Warn, format_args!("{what}: {error} (is /proc mounted?)"));
        }
    }

    /// Until there is something to be looked at, or the first program is overdue.
    fn timeout(&self) -> Option<Nanos> {
        let end = self.end.unwrap_or(Nanos::MAX);
        let overdue = self.watched.values().filter_map(Kept::until).map(|until| until.min(end));
        let next = overdue.min().unwrap_or(end.saturating_add(KILLED_MAX)).min(self.presentation);
        (next != Nanos::MAX).then(|| next.saturating_sub(clock::monotonic()))
    }
}

impl Kept {
    /// Does what there is to do about it; returns whether nothing is left.
    fn is_over(&mut self, errors: &ErrorLog) -> bool {
        match self {
            Self::Errors(kept) => kept.take(errors) == Came::End,
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

/// What a read of standard error gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Came {
    /// Something, and there may be more.
    Some,
    /// Nothing for now.
    Nothing,
    /// Its end.
    End,
}

impl Errors {
    /// Reads what has arrived.
    fn take(&mut self, errors: &ErrorLog) -> Came {
        let mut bytes = [0; READ_BYTES];
        let count = match rustix::io::read(&self.file, &mut bytes) {
            Ok(0) => {
                self.end_line(errors);
                return Came::End;
            }
            Ok(count) => count,
            Err(Errno::INTR) => return Came::Some,
            Err(Errno::AGAIN) => return Came::Nothing,
            Err(_) => return Came::End,
        };
        for &byte in &bytes[..count] {
            if byte == b'\n' || self.line.len() == LINE_BYTES_MAX {
                self.end_line(errors);
            }
            if byte != b'\n' {
                self.line.push(byte);
            }
        }
        Came::Some
    }

    fn end_line(&mut self, errors: &ErrorLog) {
        if !self.line.is_empty() {
            note(errors, &self.name, &String::from_utf8_lossy(&self.line));
            self.line.clear();
        }
    }
}

/// Logs a line about a gateway.
pub(super) fn note(errors: &ErrorLog, name: &str, text: &str) {
    errors.note(Level::Error, format_args!("{name}: {text}"));
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
