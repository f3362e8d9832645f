//! Network namespaces: a separate network stack, with its own interfaces, ports, TIME_WAIT sockets, counters and
//! `net.*` settings. Ours have no name, so none can be left behind: the kernel removes one when the last process and
//! descriptor that hold it are gone.
//!
//! Each thread is in one namespace, and the threads and processes that it starts begin in the same one. Below
//! `/proc/sys/net` and `/proc/thread-self/net` a thread reads its own namespace; `/proc/net` is that of the process's
//! first thread, whoever reads. Start reading at [`NetNamespace::new`].

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::panic::resume_unwind;

use nix::sched::{CloneFlags, setns, unshare};

/// A network namespace. It exists while this value exists, or a process is in it.
#[derive(Debug)]
pub struct NetNamespace {
    fd: OwnedFd,
}

impl NetNamespace {
    /// A new namespace that contains only a loopback interface, which is down.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; ENOSPC where `user.max_net_namespaces` is reached; no thread
    /// left.
    pub fn new() -> io::Result<Self> {
        // In a thread of its own: a thread can only leave a namespace for one that was opened before.
        let made = std::thread::Builder::new().name("namespace".to_owned()).spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            Self::current()
        })?;
        made.join().unwrap_or_else(|panic| resume_unwind(panic))
    }

    /// The namespace of the calling thread.
    ///
    /// # Errors
    /// Where /proc is not mounted.
    pub fn current() -> io::Result<Self> {
        Ok(Self { fd: File::open("/proc/thread-self/ns/net")?.into() })
    }

    /// Whether the calling thread is in it.
    pub fn is_current(&self) -> bool {
        let same = |here: &Self| {
            let [here, this] = [here, self].map(|namespace| rustix::fs::fstat(&namespace.fd));
            matches!((here, this), (Ok(here), Ok(this))
                if (here.st_dev, here.st_ino) == (this.st_dev, this.st_ino))
        };
        Self::current().is_ok_and(|here| same(&here))
    }

    /// Another handle to the same namespace.
    ///
    /// # Errors
    /// EMFILE.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self { fd: self.fd.try_clone()? })
    }

    /// Moves the calling thread into it permanently: threads that it starts from now on begin there.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<()> {
        Ok(setns(&self.fd, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `work` in it, on a new thread; a panic there is passed on. Sockets, threads and processes that `work`
    /// creates stay in the namespace wherever they are used afterwards.
    ///
    /// # Errors
    /// EPERM without CAP_SYS_ADMIN; no thread left.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                self.enter()?;
                Ok(work())
            })?;
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }
}

impl AsFd for NetNamespace {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// A namespace; `None`, with a note of the skipped test, if this account may not create one.
    pub(crate) fn namespace() -> Option<NetNamespace> {
        match NetNamespace::new() {
            Ok(made) => Some(made),
            Err(error) => {
                skips::note(format_args!("no network namespace can be made here ({error})"));
                None
            }
        }
    }

    #[test]
    fn work_runs_inside_and_its_caller_stays_outside() {
        let Some(made) = namespace() else { return };
        let outside = NetNamespace::current().unwrap();
        assert!(outside.is_current() && !made.is_current());
        let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let (seen, inside) =
            made.run(|| (interfaces(), made.is_current() && !outside.is_current())).unwrap();
        assert!(inside && outside.is_current());
        // Two lines of heading and the loopback interface.
        assert_eq!(seen.lines().count(), 3, "{seen}");
        assert!(seen.contains("lo:"), "{seen}");
    }

    #[test]
    fn ports_and_settings_inside_are_its_own() {
        let Some(made) = namespace() else { return };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let ways = "/proc/sys/net/ipv4/ip_local_port_range";
        let before = std::fs::read_to_string(ways).unwrap();
        made.run(|| {
            crate::link::up("lo").unwrap();
            assert!(TcpListener::bind(addr).is_ok(), "the port is free in there");
            std::fs::write(ways, "10000 10999").unwrap();
        })
        .unwrap();
        assert_eq!(std::fs::read_to_string(ways).unwrap(), before);
        assert!(made.run(|| std::fs::read_to_string(ways).unwrap()).unwrap().contains("10999"));
    }

    #[test]
    fn a_panic_inside_is_one_outside() {
        let Some(made) = namespace() else { return };
        // Without the hook that prints: another test's fork could copy its lock while it is held.
        let planted = || made.run(|| resume_unwind(Box::new("planted")));
        let caught = catch_unwind(AssertUnwindSafe(planted)).unwrap_err();
        assert_eq!(caught.downcast_ref(), Some(&"planted"));
    }
}
