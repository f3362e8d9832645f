//! A CGI program at work on a request. Owns its start and its end. Start reading at [`Running::start`].
//!
//! Its standard input is the request's body as a file (`/dev/null` if there is none), its output a pipe of ours, its
//! error the keeper's. Nothing that the client sent becomes an argument: argv is the program's own name alone (RFC
//! 3875, 4.4 is refused: php CVE-2012-1823, CVE-2024-4577).

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, OnceLock};

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use sys::clock;
use sys::mark::Mark;
use sys::program::{self, Program, Spec};
use units::Nanos;

use super::environment::Environment;
use super::keeper::Keeper;
use super::script::Script;
use super::spool::Spool;
use super::{Awaited, Failure, GatewayOutput};
use crate::log::ErrorLog;

/// A program whose output is being read.
#[derive(Debug)]
pub(super) struct Running {
    /// `None` once it was let go.
    program: Option<Program>,
    output: OwnedFd,
    id: u64,
    keeper: Arc<Keeper>,
    /// How long it may go on after its answer is whole.
    grace: Nanos,
}

/// Limits of a program and of all that it starts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// How long it may go on after its answer is whole.
    pub(super) grace: Nanos,
    /// The mark of all these processes.
    pub(super) mark: Mark,
}

impl Running {
    /// Starts the program of a script.
    ///
    /// # Errors
    /// 403 if it may not be run, 404 if it has just disappeared, 503 if the machine has no room for it, 500 otherwise.
    pub(super) fn start(
        script: &Script,
        environment: &Environment,
        spool: &mut Spool,
        errors: &Arc<ErrorLog>,
        bounds: Bounds,
    ) -> Result<Self, Failure> {
        Self::begin(script, environment, spool, errors, bounds)
            .map_err(|error| refusal(&error, script))
    }

    fn begin(
        script: &Script,
        environment: &Environment,
        spool: &mut Spool,
        errors: &Arc<ErrorLog>,
        bounds: Bounds,
    ) -> io::Result<Self> {
        let keeper = Keeper::of_this_process(errors)?;
        let input = spool.as_input()?;
        let (output, programs_output) = pipe_with(PipeFlags::CLOEXEC)?;
        let (error, programs_error) = pipe_with(PipeFlags::CLOEXEC)?;
        // Our ends only: the program's own files block, as programs expect.
        for ours in [&output, &error] {
            rustix::fs::fcntl_setfl(ours, OFlags::NONBLOCK)?;
        }
        let arguments: Vec<&CStr> = script.arguments().collect();
        let environment: Vec<&CStr> = environment.strings().collect();
        let input = match &input {
            Some(file) => file.as_fd(),
            None => nothing()?.as_fd(),
        };
        let program = program::start(&Spec {
            path: script.program(),
            arguments: &arguments,
            environment: &environment,
            directory: script.directory(),
            files: [input, programs_output.as_fd(), programs_error.as_fd()],
            // In some models threads end while their programs still run.
            dies_with_caller: false,
            mark: Some(bounds.mark),
        })?;
        let name = format!("{} ({})", script.name(), program.pid());
        let (program, grace) = (Some(program), bounds.grace);
        let running = Self { program, output, id: super::next_id(), keeper, grace };
        running.keeper.take_errors(error, name);
        Ok(running)
    }

    /// Appends the output that has arrived to `buffer`, until that holds `bytes_max` bytes.
    ///
    /// # Errors
    /// EIO and the like.
    pub(super) fn read(
        &mut self,
        buffer: &mut Vec<u8>,
        bytes_max: usize,
    ) -> io::Result<GatewayOutput> {
        while buffer.len() < bytes_max {
            buffer.reserve(bytes_max - buffer.len());
            match rustix::io::read(&self.output, rustix::buffer::spare_capacity(buffer)) {
                Ok(0) => return Ok(GatewayOutput::End),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(GatewayOutput::Some { waits: true }),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(GatewayOutput::Some { waits: false })
    }

    /// Its output.
    pub(super) fn awaited(&self) -> Awaited<'_> {
        Awaited { file: self.output.as_fd(), reads: true, writes: false, id: self.id }
    }

    /// Its answer is complete: it may end in its own time, within the grace.
    pub(super) fn finish(mut self) {
        if let Some(program) = self.program.take() {
            self.keeper.see_off(program, clock::monotonic().saturating_add(self.grace));
        }
    }
}

impl Drop for Running {
    /// Nobody wants its answer any more: it ends now, and its descendants with it.
    fn drop(&mut self) {
        if let Some(program) = self.program.take() {
            self.keeper.end(program);
        }
    }
}

/// The input of a program whose request has no body; open once in a process.
fn nothing() -> io::Result<&'static File> {
    static NOTHING: OnceLock<File> = OnceLock::new();
    match NOTHING.get() {
        Some(file) => Ok(file),
        None => {
            let file = File::open("/dev/null")?;
            Ok(NOTHING.get_or_init(|| file))
        }
    }
}

fn refusal(error: &io::Error, script: &Script) -> Failure {
    let (status, hint) = match Errno::from_io_error(error) {
        Some(Errno::ACCESS | Errno::PERM) => {
            (403, "the server's user may not run it, or its file system is mounted noexec")
        }
        Some(Errno::NOENT) => {
            (500, "the program, or the interpreter in its first line (`#!`), does not exist")
        }
        Some(Errno::NOEXEC) => {
            (500, "it is not a program: a script must begin with `#!` and a path")
        }
        Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE | Errno::NFILE) => {
            (503, "no process, memory or descriptor is left (`ulimit -a`, the cgroup's pids.max)")
        }
        Some(Errno::TOOBIG) => (431, "the request's fields make its environment too long"),
        _ => (500, "see the error"),
    };
    Failure::new(status, format!("{} cannot be started: {error}: {hint}", script.name()))
}
