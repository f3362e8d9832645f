//! FastCGI applications that the server starts itself (`spawn`). Owns their sockets, and a process that starts them,
//! starts again those that end, and ends all of them when the server ends, for whatever reason. Start reading at
//! [`SpawnedApplications::start`], then `Warden::watch`.
//!
//! It is a process of its own: a model may consist of many processes, none of which lives as long as the server,
//! or of one thread that does nothing but serve. It ignores signals: Ctrl-C goes to the whole process group, and the
//! server must answer the open requests first.
//!
//! The sockets are in a directory that only this user may enter: a client that speaks FastCGI to an application can
//! make it run anything (as php-fpm's manual warns).

use std::ffi::{CStr, CString};
use std::fs::{DirBuilder, File};
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags};
use rustix::fs::OFlags;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with,
};
use rustix::pipe::{PipeFlags, pipe_with};
use sys::mark::Marks;
use sys::process::{self, Ended, Pid};
use sys::program::{self, Program, Spec};
use sys::{clock, poll, signals};
use units::Nanos;

use super::fastcgi::Address;
use super::{Gateway, Gateways, environment, keeper};
use crate::SiteError;
use crate::config::Spawn;
use crate::log::{ErrorLog, Level};

/// The backlog of an application's socket, of which the kernel allows net.core.somaxconn.
const BACKLOG: i32 = 1024;

/// The first pause before an application that failed is started again; it doubles with each failure in a row.
const PAUSE_MIN: Nanos = Nanos::from_millis(10);

/// The longest such pause.
const PAUSE_MAX: Nanos = Nanos::from_secs(10);

/// An application that has run for this long and then ends without an error did as planned: php-cgi ends after 500
/// requests.
const LIFE_MIN: Nanos = Nanos::from_millis(100);

/// A failure after a run of this length is not counted as one in a row.
const GOOD_LIFE_MIN: Nanos = Nanos::from_secs(10);

/// How long applications have to end once they were asked to.
const ENDING_MAX: Nanos = Nanos::from_secs(2);

/// All applications of a server. Dropping it ends them, and waits for their end.
#[derive(Debug)]
pub struct SpawnedApplications {
    /// Each of the two processes learns from it when the other ends.
    line: UnixStream,
    warden: Pid,
}

impl SpawnedApplications {
    /// Starts the applications, on these CPUs (empty: on all); `None`: there are none. Needs a process with one thread.
    ///
    /// # Errors
    /// Sockets that cannot be made; EAGAIN and the like of fork. An application that cannot be started is noted in the
    /// error log, and tried again.
    pub fn start(
        gateways: &Gateways,
        errors: &Arc<ErrorLog>,
        cpus: &[u32],
    ) -> Result<Option<Self>, SiteError> {
        let spawned: Vec<(&Gateway, &Spawn)> =
            gateways.all.iter().filter_map(|one| Some((one, one.config.spawn.as_ref()?))).collect();
        let Some((first, _)) = spawned.first() else { return Ok(None) };
        let directory = &first.config.body_directory;
        let refused = |error: io::Error| SiteError::Gateway {
            reason: format!(
                "cannot spawn what `spawn` names: {error} (sockets lie in {}, see `body_directory`)",
                directory.display()
            ),
        };
        let place = private_directory(directory).map_err(refused)?;
        let begun = begin(&spawned, &place, &gateways.marks, errors, cpus).map_err(refused);
        if begun.is_err() {
            let _ = std::fs::remove_dir_all(&place);
        }
        begun.map(Some)
    }
}

impl Drop for SpawnedApplications {
    fn drop(&mut self) {
        // Either fails only if the other process has ended, which is what is wanted.
        let _ = self.line.shutdown(Shutdown::Write);
        let _ = self.line.read(&mut [0]);
        process::reap_this(self.warden);
    }
}

/// Makes a new directory in `within`, for this user alone.
fn private_directory(within: &Path) -> io::Result<PathBuf> {
    let within = std::fs::canonicalize(within)?;
    let mut number = 0;
    loop {
        let path = within.join(format!("joust-{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&path) {
            // Left by a server that was killed together with its warden, or made by an attacker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                number += 1;
            }
            made => return made.map(|()| path),
        }
    }
}

fn begin(
    spawned: &[(&Gateway, &Spawn)],
    place: &Path,
    marks: &Arc<Marks>,
    errors: &Arc<ErrorLog>,
    cpus: &[u32],
) -> io::Result<SpawnedApplications> {
    let mut slots = Vec::new();
    for (number, (gateway, spawn)) in spawned.iter().enumerate() {
        let address = SocketAddrUnix::new(place.join(number.to_string()))?;
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        bind(&socket, &address)?;
        listen(&socket, BACKLOG)?;
        let command = Arc::new(SpawnCommand::new(gateway, spawn, socket, marks));
        slots.extend((0..spawn.count).map(|_| ProcessSlot::new(&command)));
        if let Some(application) = &gateway.application {
            application.is_at(vec![Address::Unix(address)]);
        }
    }
    let (line, theirs) = UnixStream::pair()?;
    let (place, errors, marks) = (place.to_owned(), Arc::clone(errors), Arc::clone(marks));
    let cpus = cpus.to_owned();
    let warden = process::fork("joust warden", move || {
        if !cpus.is_empty() {
            // If it cannot, the server reports that, and ends.
            let _ = sys::affinity::pin(&cpus);
        }
        // SIGTERM and SIGINT are for the server.
        let watched = signals::hidden_from(|| Warden { slots, errors, line: theirs }.watch());
        keeper::wind_up();
        let _ = marks.kill_all();
        let _ = std::fs::remove_dir_all(&place);
        u8::from(!matches!(watched, Ok(Ok(()))))
    })?;
    Ok(SpawnedApplications { line, warden })
}

/// What one application is started with.
#[derive(Debug)]
struct SpawnCommand {
    /// Its words, the program first; at least one.
    command: Vec<CString>,
    environment: Vec<CString>,
    socket: OwnedFd,
    marks: Arc<Marks>,
}

impl SpawnCommand {
    fn new(gateway: &Gateway, spawn: &Spawn, socket: OwnedFd, marks: &Arc<Marks>) -> Self {
        let word = |text: String| CString::new(text).expect("no setting holds a NUL");
        let env = &gateway.config.env;
        let path = (!env.contains_key("PATH")).then(|| format!("PATH={}", environment::PATH));
        let own = env.iter().map(|(name, value)| format!("{name}={value}"));
        Self {
            command: spawn.command.iter().cloned().map(word).collect(),
            environment: path.into_iter().chain(own).map(word).collect(),
            socket,
            marks: Arc::clone(marks),
        }
    }

    fn name(&self) -> String {
        self.command[0].to_string_lossy().into_owned()
    }

    fn start(&self, errors: &Arc<ErrorLog>) -> io::Result<Program> {
        let keeper = keeper::Keeper::of_this_process(errors)?;
        let nothing = File::options().write(true).open("/dev/null")?;
        let (error, programs_error) = pipe_with(PipeFlags::CLOEXEC)?;
        rustix::fs::fcntl_setfl(&error, OFlags::NONBLOCK)?;
        let arguments: Vec<&CStr> = self.command.iter().map(CString::as_c_str).collect();
        let environment: Vec<&CStr> = self.environment.iter().map(CString::as_c_str).collect();
        let program = program::start(&Spec {
            path: arguments[0],
            arguments: &arguments,
            environment: &environment,
            directory: None,
            files: [self.socket.as_fd(), nothing.as_fd(), programs_error.as_fd()],
            dies_with_caller: true,
            mark: Some(self.marks.next()),
        })?;
        keeper.take_errors(error, format!("{} ({})", self.name(), program.pid()));
        Ok(program)
    }
}

/// One process of an application, or the pause until it is started again.
#[derive(Debug)]
struct ProcessSlot {
    command: Arc<SpawnCommand>,
    state: SlotState,
    /// How long it stays empty after the next failure.
    pause: Nanos,
}

#[derive(Debug)]
enum SlotState {
    /// A process, and when it was started.
    Program(Program, Nanos),
    /// No process runs until this instant.
    EmptyUntil(Nanos),
}

impl ProcessSlot {
    fn new(command: &Arc<SpawnCommand>) -> Self {
        Self {
            command: Arc::clone(command),
            state: SlotState::EmptyUntil(Nanos::ZERO),
            pause: PAUSE_MIN,
        }
    }

    fn program(&self) -> Option<&Program> {
        match &self.state {
            SlotState::Program(program, _) => Some(program),
            SlotState::EmptyUntil(_) => None,
        }
    }

    /// Takes note of an end, and starts what is due.
    fn look(&mut self, errors: &Arc<ErrorLog>, now: Nanos) {
        if let SlotState::Program(program, born) = &self.state {
            if !program.has_ended() {
                return;
            }
            // Processes that it left running would go on using its socket.
            let _ = program.kill_with_descendants();
            let lived = now.saturating_sub(*born);
            match program.reap() {
                Ok(Some(Ended::Exited(0))) if lived >= LIFE_MIN => {
                    (self.state, self.pause) = (SlotState::EmptyUntil(now), PAUSE_MIN);
                }
                ended => {
                    if lived >= GOOD_LIFE_MIN {
                        self.pause = PAUSE_MIN;
                    }
                    self.leave_empty(&said(ended), errors, now);
                }
            }
        }
        if matches!(self.state, SlotState::EmptyUntil(until) if until <= now) {
            match self.command.start(errors) {
                Ok(program) => self.state = SlotState::Program(program, now),
                Err(error) => self.leave_empty(&format!("cannot be started: {error}"), errors, now),
            }
        }
    }

    fn leave_empty(&mut self, why: &str, errors: &ErrorLog, now: Nanos) {
        let (name, pause) = (self.command.name(), self.pause);
        errors.note(Level::Error, format_args!("{name}: {why}; it is started again in {pause}"));
        self.state = SlotState::EmptyUntil(now.saturating_add(pause));
        self.pause = Nanos(pause.0 * 2).min(PAUSE_MAX);
    }
}

fn said(ended: io::Result<Option<Ended>>) -> String {
    match ended {
        Ok(Some(Ended::Exited(status))) => format!("ended with status {status}"),
        Ok(Some(Ended::Killed(signal))) => format!("was killed by signal {signal}"),
        Ok(None) | Err(_) => "ended".to_owned(),
    }
}

/// The process that looks after the applications.
struct Warden {
    slots: Vec<ProcessSlot>,
    errors: Arc<ErrorLog>,
    /// To the server.
    line: UnixStream,
}

impl Warden {
    /// Runs until the server says that it ends, or has ended.
    fn watch(mut self) -> io::Result<()> {
        let parent = process::outlive_parent()?;
        loop {
            let now = clock::monotonic();
            self.slots.iter_mut().for_each(|slot| slot.look(&self.errors, now));
            let due = |slot: &ProcessSlot| match slot.state {
                SlotState::EmptyUntil(until) => Some(until.saturating_sub(now)),
                SlotState::Program(..) => None,
            };
            let timeout = self.slots.iter().filter_map(due).min();
            if wait(&[self.line.as_fd(), parent.as_fd()], &self.slots, timeout)? {
                self.end()?;
                return Ok(());
            }
            self.errors.keep_up();
        }
    }

    /// Ends all of them. Those that do not end in time are killed, with all that they have started.
    fn end(mut self) -> io::Result<()> {
        let programs: Vec<Program> = self
            .slots
            .drain(..)
            .filter_map(|slot| match slot.state {
                SlotState::Program(program, _) => Some(program),
                SlotState::EmptyUntil(_) => None,
            })
            .collect();
        programs.iter().for_each(Program::ask_to_end);
        let until = clock::monotonic().saturating_add(ENDING_MAX);
        for program in &programs {
            let left = until.saturating_sub(clock::monotonic());
            wait(&[program.as_fd()], &[], Some(left))?;
        }
        // A group may hold more processes than the program. Reaping frees its number, so all of it is killed first.
        for program in &programs {
            let _ = program.kill_with_descendants();
        }
        for program in &programs {
            wait(&[program.as_fd()], &[], None)?;
            program.reap()?;
        }
        Ok(())
    }
}

/// Waits for one of the files, or the end of a program; says whether it was a file.
fn wait(
    files: &[BorrowedFd<'_>],
    slots: &[ProcessSlot],
    timeout: Option<Nanos>,
) -> io::Result<bool> {
    let ends = slots.iter().filter_map(ProcessSlot::program).map(Program::as_fd);
    let all = files.iter().copied().chain(ends);
    let mut watched: Vec<_> =
        all.map(|file| PollFd::from_borrowed_fd(file, PollFlags::IN)).collect();
    poll::wait_for(&mut watched, timeout)?;
    Ok(watched[..files.len()].iter().any(|file| !file.revents().is_empty()))
}
