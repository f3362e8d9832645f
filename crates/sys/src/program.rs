//! Programs that a server starts for a request: with three files, a directory and an environment, in a
//! process group of its own, and with nothing else of ours. Owns how one is started, killed and reaped;
//! must not know what it is for. Start reading at [`start`].
//!
//! Cost: posix_spawn shares the memory of the caller until the exec (CLONE_VM and CLONE_VFORK), so that
//! a start costs the same in a process of 400 threads and some GiB as in a small one; fork would copy
//! page tables. What takes the time is the exec itself, 300 us and more.
//!
//! A program is known by a descriptor (pidfd), so that waiting for it is waiting for a file: no SIGCHLD,
//! and no race with whoever else reaps children in this process. Its number stays its own until it is
//! reaped, which only [`Program::reap`] does, so that a signal to its group never hits a stranger.

use std::ffi::CStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use rustix::process::{Pid, PidfdFlags, Signal, WaitId, WaitIdOptions};

use crate::process::Ended;

unsafe extern "C" {
    /// glibc 2.29, musl 1.1.24; not in the crate libc.
    fn posix_spawn_file_actions_addfchdir_np(
        actions: *mut libc::posix_spawn_file_actions_t,
        fd: libc::c_int,
    ) -> libc::c_int;
}

/// What to start.
#[derive(Debug)]
pub struct Spec<'a> {
    /// Path of the program; a relative one counts from `directory`.
    pub path: &'a CStr,
    /// Its arguments, the first its name.
    pub arguments: &'a [&'a CStr],
    /// All of its environment, as `NAME=VALUE`.
    pub environment: &'a [&'a CStr],
    /// Its working directory; `None`: ours.
    pub directory: Option<BorrowedFd<'a>>,
    /// Its standard input, output and error. None of them may be among the first three descriptors.
    pub files: [BorrowedFd<'a>; 3],
}

/// A program that was started, and not reaped.
#[derive(Debug)]
pub struct Program {
    pid: Pid,
    pidfd: OwnedFd,
}

/// Starts a program as the leader of a process group of its own, every signal at its default and none
/// blocked, and no descriptor but the three: all others of this process are closed by the exec.
///
/// # Errors
/// What the exec says (ENOENT, EACCES, ENOEXEC, E2BIG, ETXTBSY) and what keeps a process from coming to
/// be (EAGAIN, ENOMEM, EMFILE).
pub fn start(spec: &Spec<'_>) -> io::Result<Program> {
    // Ours all close on exec; some may have come from whoever started this process.
    static INHERITED: OnceLock<Result<(), i32>> = OnceLock::new();
    let closed = INHERITED.get_or_init(|| {
        crate::child::close_on_exec_from(3).map_err(|error| error.raw_os_error().unwrap_or(0))
    });
    (*closed).map_err(io::Error::from_raw_os_error)?;
    let mut actions = Actions::new()?;
    for (number, file) in (0..).zip(spec.files) {
        actions.duplicate(file, number)?;
    }
    if let Some(directory) = spec.directory {
        actions.enter(directory)?;
    }
    let attributes = Attributes::new()?;
    let arguments = pointers(spec.arguments);
    let environment = pointers(spec.environment);
    let mut pid = 0;
    // SAFETY: all pointers are to live values; the two lists are of live C strings and end in null.
    let result = unsafe {
        libc::posix_spawn(
            &mut pid,
            spec.path.as_ptr(),
            &actions.0,
            &attributes.0,
            arguments.as_ptr(),
            environment.as_ptr(),
        )
    };
    check(result)?;
    let pid = Pid::from_raw(pid).expect("a process that was started has a number");
    match rustix::process::pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Program { pid, pidfd }),
        Err(error) => {
            // Nobody could wait for it: it goes as it came.
            let _ = rustix::process::kill_process_group(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            Err(error.into())
        }
    }
}

impl Program {
    /// Its number, which is its group's too.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Kills it and all of its group, which are its descendants but for those that left it on purpose.
    pub fn kill(&self) {
        // Not reaped yet, so that the number is still its own; a group of zombies is no error.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }

    /// Asks it and all of its group to end (SIGTERM).
    pub fn ask_to_end(&self) {
        // As above.
        let _ = rustix::process::kill_process_group(self.pid, Signal::TERM);
    }

    /// Whether it has ended; it stays to be reaped, and its group its own.
    pub fn has_ended(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let id = WaitId::PidFd(self.pidfd.as_fd());
        !matches!(rustix::process::waitid(id, options), Ok(None))
    }

    /// How it ended, without waiting; `None`: it runs. Reaps it, so that it may be asked once.
    ///
    /// # Errors
    /// ECHILD where it was reaped before.
    pub fn reap(&self) -> io::Result<Option<Ended>> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
        let status = rustix::process::waitid(WaitId::PidFd(self.pidfd.as_fd()), options)?;
        Ok(status.map(|status| match status.terminating_signal() {
            Some(signal) => Ended::Killed(signal),
            None => Ended::Exited(status.exit_status().unwrap_or_default() as u8),
        }))
    }
}

impl AsFd for Program {
    /// Readable from the end of the program on.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

/// As the kernel takes lists of strings.
fn pointers(strings: &[&CStr]) -> Vec<*mut libc::c_char> {
    // The type is that of C, which has no const there; nothing is written.
    let all = strings.iter().map(|string| string.as_ptr().cast_mut());
    all.chain([std::ptr::null_mut()]).collect()
}

/// posix_spawn and its kin give the number of the error.
fn check(result: libc::c_int) -> io::Result<()> {
    if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result)) }
}

/// What is done with files before the exec, in order.
struct Actions(libc::posix_spawn_file_actions_t);

impl Actions {
    fn new() -> io::Result<Self> {
        let mut actions = MaybeUninit::uninit();
        // SAFETY: the pointer is to room for one.
        check(unsafe { libc::posix_spawn_file_actions_init(actions.as_mut_ptr()) })?;
        // SAFETY: init succeeded.
        Ok(Self(unsafe { actions.assume_init() }))
    }

    fn duplicate(&mut self, file: BorrowedFd<'_>, number: libc::c_int) -> io::Result<()> {
        let from = file.as_raw_fd();
        // SAFETY: the actions were initialised; the descriptor is open until the spawn, which borrows it.
        check(unsafe { libc::posix_spawn_file_actions_adddup2(&mut self.0, from, number) })
    }

    fn enter(&mut self, directory: BorrowedFd<'_>) -> io::Result<()> {
        let fd = directory.as_raw_fd();
        // SAFETY: as above.
        check(unsafe { posix_spawn_file_actions_addfchdir_np(&mut self.0, fd) })
    }
}

impl Drop for Actions {
    fn drop(&mut self) {
        // SAFETY: they were initialised, and are not used again.
        unsafe { libc::posix_spawn_file_actions_destroy(&mut self.0) };
    }
}

/// A process group of its own, no signal blocked and each at its default: an ignored one (SIGPIPE of
/// ours) would survive the exec.
struct Attributes(libc::posix_spawnattr_t);

impl Attributes {
    fn new() -> io::Result<Self> {
        let mut attributes = MaybeUninit::uninit();
        // SAFETY: the pointer is to room for one.
        check(unsafe { libc::posix_spawnattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: init succeeded.
        let mut attributes = Self(unsafe { attributes.assume_init() });
        let flags = libc::POSIX_SPAWN_SETPGROUP
            | libc::POSIX_SPAWN_SETSIGMASK
            | libc::POSIX_SPAWN_SETSIGDEF;
        let [none, all] = [signal_set(libc::sigemptyset), signal_set(libc::sigfillset)];
        // SAFETY: the attributes were initialised.
        check(unsafe { libc::posix_spawnattr_setflags(&mut attributes.0, flags as _) })?;
        // SAFETY: the attributes were initialised. 0: a group of its own number.
        check(unsafe { libc::posix_spawnattr_setpgroup(&mut attributes.0, 0) })?;
        // SAFETY: the attributes and the set were initialised.
        check(unsafe { libc::posix_spawnattr_setsigmask(&mut attributes.0, &none) })?;
        // SAFETY: the attributes and the set were initialised.
        check(unsafe { libc::posix_spawnattr_setsigdefault(&mut attributes.0, &all) })?;
        Ok(attributes)
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: they were initialised, and are not used again.
        unsafe { libc::posix_spawnattr_destroy(&mut self.0) };
    }
}

fn signal_set(fill: unsafe extern "C" fn(*mut libc::sigset_t) -> libc::c_int) -> libc::sigset_t {
    let mut set = MaybeUninit::uninit();
    // SAFETY: the pointer is to room for one, which either function fills; neither fails on it.
    unsafe { fill(set.as_mut_ptr()) };
    // SAFETY: it was filled.
    unsafe { set.assume_init() }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;

    fn run(script: &CStr, environment: &[&CStr], directory: Option<BorrowedFd<'_>>) -> String {
        let null = File::open("/dev/null").unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        let spec = Spec {
            path: c"/bin/sh",
            arguments: &[c"sh", c"-c", script],
            environment,
            directory,
            files: [null.as_fd(), write.as_fd(), write.as_fd()],
        };
        let program = start(&spec).unwrap();
        drop(write);
        let mut text = String::new();
        read.read_to_string(&mut text).unwrap();
        poll(&mut [PollFd::new(&program, PollFlags::IN)], None).unwrap();
        assert!(matches!(program.reap(), Ok(Some(Ended::Exited(0)))), "{text}");
        text
    }

    #[test]
    fn a_program_has_its_own_group_the_environment_given_and_three_files() {
        let _open = File::open("/dev/null").unwrap();
        let directory = File::open("/usr").unwrap();
        let script = c"echo $GREETING $PWD; ls /proc/self/fd | wc -l; ps -o pgid= -p $$ 2>/dev/null | grep -qw $$; exec cat /proc/self/environ";
        let text =
            run(script, &[c"GREETING=hello", c"PATH=/bin:/usr/bin"], Some(directory.as_fd()));
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("hello /usr"));
        // Its three, and that of the directory that ls reads.
        assert_eq!(lines.next(), Some("4"));
        let environ = lines.next().unwrap_or_default();
        assert!(environ.contains("GREETING=hello") && !environ.contains("HOME="), "{environ}");
    }

    #[test]
    fn signals_are_at_their_default_although_ours_are_not() {
        let _signals = crate::signals::Signals::new().unwrap();
        let text =
            run(c"grep -E '^Sig(Blk|Ign)' /proc/self/status", &[c"PATH=/bin:/usr/bin"], None);
        // 32 and 33, which the C library uses for itself, are as whoever started this process had them.
        for line in text.lines() {
            let set = line.split_whitespace().next_back().unwrap_or_default();
            assert_eq!(u64::from_str_radix(set, 16).unwrap() & !0x1_8000_0000, 0, "{text}");
        }
        assert_eq!(text.lines().count(), 2);
    }

    #[test]
    fn a_program_that_is_not_there_is_an_error_of_the_start() {
        let null = File::open("/dev/null").unwrap();
        let files = [null.as_fd(); 3];
        let spec = |path| Spec { path, arguments: &[], environment: &[], directory: None, files };
        let kind = |path| start(&spec(path)).unwrap_err().raw_os_error();
        assert_eq!(kind(c"/nonexistent"), Some(libc::ENOENT));
        assert_eq!(kind(c"/etc/passwd"), Some(libc::EACCES));
    }

    #[test]
    fn a_kill_reaches_the_grandchildren() {
        let null = File::open("/dev/null").unwrap();
        let (mut read, write) = std::io::pipe().unwrap();
        let program = start(&Spec {
            path: c"/bin/sh",
            arguments: &[c"sh", c"-c", c"sleep 1000 & sleep 1000"],
            environment: &[c"PATH=/bin:/usr/bin"],
            directory: None,
            files: [null.as_fd(), write.as_fd(), null.as_fd()],
        })
        .unwrap();
        drop(write);
        assert!(program.reap().unwrap().is_none());
        program.kill();
        // The end of the pipe comes once nobody has it: the grandchildren are gone.
        assert_eq!(read.read(&mut [0]).unwrap(), 0);
        poll(&mut [PollFd::new(&program, PollFlags::IN)], None).unwrap();
        assert_eq!(program.reap().unwrap(), Some(Ended::Killed(libc::SIGKILL)));
    }
}
