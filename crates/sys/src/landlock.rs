//! Landlock (landlock(7)): a process permanently gives up all files and ports that it does not name, for itself and
//! everything it starts. Owns the three system calls and what each version of them can do. Start reading at
//! [`Ruleset::new`].
//!
//! Open files stay usable. A rule refers to an inode, which is looked up when the ruleset is made: files beneath a
//! named directory may be created later, and a directory that is moved keeps its rule.

use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;

/// What may be done with a file, or with everything beneath a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading files.
    Read,
    /// Reading files and listing directories.
    ReadAndList,
    /// Listing directories, but not reading files.
    List,
    /// Creating files without a name (O_TMPFILE).
    Temporary,
}

/// The access that a process keeps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// Paths that do not exist are left out: then nothing can be done with them.
    pub files: Vec<(PathBuf, Access)>,
    /// TCP ports that the process may connect to.
    pub ports: Vec<u16>,
}

/// Rules that the kernel has accepted, but that do not apply to any process yet.
#[derive(Debug)]
pub struct Ruleset {
    fd: OwnedFd,
    abi: u32,
}

/// `struct landlock_ruleset_attr`, as of version 6. Earlier kernels accept it if the fields unknown to them are 0.
#[repr(C)]
struct RulesetAttr {
    handled_access_fs: u64,
    handled_access_net: u64,
    scoped: u64,
}

/// `struct landlock_path_beneath_attr`.
#[repr(C, packed)]
struct PathBeneathAttr {
    allowed_access: u64,
    parent_fd: i32,
}

/// `struct landlock_net_port_attr`.
#[repr(C)]
struct NetPortAttr {
    allowed_access: u64,
    port: u64,
}

// From <linux/landlock.h>.
const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;
const RULE_NET_PORT: u32 = 2;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
const MAKE_REG: u64 = 1 << 8;
/// EXECUTE, the three above, and all rights that create and remove names: version 1.
const FS_FIRST: u64 = (1 << 13) - 1;
const REFER: u64 = 1 << 13;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;
const NET_BIND_TCP: u64 = 1 << 0;
const NET_CONNECT_TCP: u64 = 1 << 1;
const SCOPE_ABSTRACT_UNIX_SOCKET: u64 = 1 << 0;
const SCOPE_SIGNAL: u64 = 1 << 1;

impl Access {
    fn bits(self) -> u64 {
        match self {
            Self::Read => READ_FILE,
            Self::ReadAndList => READ_FILE | READ_DIR,
            Self::List => READ_DIR,
            Self::Temporary => READ_FILE | WRITE_FILE | MAKE_REG,
        }
    }
}

/// The Landlock version of this kernel.
///
/// # Errors
/// Why it has none: ENOSYS (older than 5.13, or built without), EOPNOTSUPP (not in the boot parameter `lsm=`), EPERM (a
/// sandbox forbids the call).
pub fn abi() -> io::Result<u32> {
    let nothing = std::ptr::null::<RulesetAttr>();
    // SAFETY: with this flag the kernel reads no memory, and returns a number.
    let version = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, nothing, 0, CREATE_RULESET_VERSION)
    };
    // A small number, or -1.
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

impl Ruleset {
    /// Looks up the files of the rules, with the current rights. Everything that this kernel can forbid and no rule
    /// allows will be forbidden: files since version 1, ports since 4, signals to outside processes and their abstract
    /// sockets since 6.
    ///
    /// # Errors
    /// As [`abi`]; any problem with a path, except that it does not exist.
    pub fn new(rules: &Rules) -> io::Result<Self> {
        let abi = abi()?;
        let since = |version: u32, bits: u64| if abi >= version { bits } else { 0 };
        let handled = RulesetAttr {
            handled_access_fs: FS_FIRST
                | since(2, REFER)
                | since(3, TRUNCATE)
                | since(5, IOCTL_DEV),
            handled_access_net: since(4, NET_BIND_TCP | NET_CONNECT_TCP),
            scoped: since(6, SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL),
        };
        // SAFETY: the kernel reads as many bytes as it is told of a struct that lives through the call.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_landlock_create_ruleset,
                &raw const handled,
                size_of::<RulesetAttr>(),
                0,
            )
        };
        let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
        let fd = fd.ok_or_else(io::Error::last_os_error)?;
        // SAFETY: the kernel has just given this descriptor (close-on-exec), and nobody else has it.
        let ruleset = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, abi };
        for (path, access) in &rules.files {
            ruleset.allow(path, *access).map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        if handled.handled_access_net != 0 {
            rules.ports.iter().try_for_each(|&port| ruleset.allow_port(port))?;
        }
        Ok(ruleset)
    }

    /// The version of Landlock that enforces it.
    pub fn abi(&self) -> u32 {
        self.abi
    }

    fn allow(&self, path: &Path, access: Access) -> io::Result<()> {
        let file = match fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let kind = FileType::from_raw_mode(fs::fstat(&file)?.st_mode);
        // Rights that only apply to directories would be rejected (EINVAL) for anything else.
        let bits = match kind {
            FileType::Directory => access.bits(),
            _ => access.bits() & (READ_FILE | WRITE_FILE),
        };
        let rule = PathBeneathAttr { allowed_access: bits, parent_fd: file.as_raw_fd() };
        match bits {
            0 => Ok(()),
            _ => self.add(RULE_PATH_BENEATH, (&raw const rule).cast()),
        }
    }

    fn allow_port(&self, port: u16) -> io::Result<()> {
        let rule = NetPortAttr { allowed_access: NET_CONNECT_TCP, port: port.into() };
        self.add(RULE_NET_PORT, (&raw const rule).cast())
    }

    /// `rule` points to the struct of that kind.
    fn add(&self, kind: u32, rule: *const libc::c_void) -> io::Result<()> {
        // SAFETY: the callers pass a struct of the kind, which lives through the call and is only read.
        let result = unsafe {
            libc::syscall(libc::SYS_landlock_add_rule, self.fd.as_raw_fd(), kind, rule, 0)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// From now on this thread, and everything it starts, keeps only what the rules allow, and gains no right by
    /// executing anything (PR_SET_NO_NEW_PRIVS). Call it before the process has another thread.
    ///
    /// # Errors
    /// E2BIG: there are 16 layers of rules already.
    pub fn enforce(self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        // SAFETY: the call takes a descriptor and no memory.
        let result =
            unsafe { libc::syscall(libc::SYS_landlock_restrict_self, self.fd.as_raw_fd(), 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::net::{TcpListener, TcpStream};
    use std::os::unix::fs::OpenOptionsExt as _;

    use super::*;
    use crate::process::{self, Signal, tests::alone};

    fn has_landlock() -> bool {
        let abi = abi();
        if let Err(error) = &abi {
            skips::note(format_args!("this kernel has no Landlock: {error}"));
        }
        abi.is_ok()
    }

    #[test]
    fn what_is_named_can_be_used_as_named_and_nothing_else() {
        if !has_landlock() {
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["site", "logs", "temporary"] {
            std::fs::create_dir(at(name)).unwrap();
            std::fs::write(at(name).join("file"), name).unwrap();
        }
        let open = File::open("/etc/passwd").unwrap();
        alone(|| {
            let files = vec![
                (at("site"), Access::ReadAndList),
                (at("temporary"), Access::Temporary),
                (at("not there"), Access::Read),
                ("/proc".into(), Access::List),
                ("/dev/null".into(), Access::ReadAndList),
            ];
            let ruleset = Ruleset::new(&Rules { files, ports: Vec::new() }).unwrap();
            ruleset.enforce().unwrap();
            let write = |path| File::options().append(true).open(path);
            let denied = |result: io::Result<File>| {
                assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
            };
            assert_eq!(std::fs::read_to_string(at("site").join("file")).unwrap(), "site");
            assert_eq!(std::fs::read_dir(at("site")).unwrap().count(), 1);
            denied(write(at("site").join("file")));
            denied(write(at("logs").join("file")));
            denied(File::open(at("logs").join("file")));
            denied(File::create(at("logs").join("new")));
            let nameless =
                File::options().write(true).custom_flags(libc::O_TMPFILE).open(at("temporary"));
            nameless.unwrap();
            denied(File::open("/etc/passwd"));
            assert!(std::fs::read_dir("/etc").is_err());
            assert_eq!(process::threads().unwrap(), 1);
            denied(File::open("/proc/self/environ"));
            File::open("/dev/null").unwrap();
            assert!(std::process::Command::new("/bin/true").spawn().is_err());
            assert!(
                open.metadata().is_ok() && io::read_to_string(open.try_clone().unwrap()).is_ok()
            );
        });
    }

    #[test]
    fn ports_that_are_not_named_are_shut_and_children_may_still_be_signalled() {
        if !has_landlock() || abi().unwrap() < 6 {
            return;
        }
        let [named, other] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let [named, other] = [&named, &other].map(|listener| listener.local_addr().unwrap());
        alone(|| {
            let rules =
                Rules { files: vec![("/proc".into(), Access::List)], ports: vec![named.port()] };
            Ruleset::new(&rules).unwrap().enforce().unwrap();
            TcpStream::connect(named).unwrap();
            let refused = |kind| assert_eq!(kind, io::ErrorKind::PermissionDenied);
            refused(TcpStream::connect(other).unwrap_err().kind());
            refused(TcpListener::bind("127.0.0.1:0").unwrap_err().kind());
            let child = process::fork("child", || {
                loop {
                    std::thread::park();
                }
            });
            // Not a signal for which another test may have installed a handler.
            assert!(process::signal(child.unwrap(), Signal::KILL));
            assert!(matches!(process::reap_waiting().unwrap().1, process::Ended::Killed(9)));
            let outside = rustix::process::getppid().unwrap();
            assert!(!process::signal(outside, Signal::URG), "a process outside");
        });
    }
}
