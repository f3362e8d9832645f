//! Owns a real server from its start to its end: folder, port, processes, readiness, and the
//! certainty that nothing of it is left. Must not know what one server has that another has not
//! (that is `adapters`) nor what it is loaded with.
//! Start reading at [`Running::start`] and [`Running::stop`].
//!
//! What was started is ended whatever happens: [`Running`] ends it when it is dropped, also by a
//! panic; [`kill_all`] for a program that cannot unwind; and the guardian of [`sys::child`] when this
//! process is gone without a word.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use record::{ContenderFacts, Settings};
use sys::child::{self, Child, Guardian, Signal, Spec, Ward};
use sys::clock;
use tempfile::TempDir;
use units::Nanos;

use crate::adapters::{Account, Adapter, AdapterError, Found, Rendered, Request};
use crate::cgroup::Cgroup;
use crate::probe;
pub use crate::scratch::{Scratch, scratch, site};
use crate::tree::Tree;

/// How often a start is tried again on another port, when someone took the one that was free.
const PORTS_TRIED_MAX: u32 = 5;
/// Time between two looks: at readiness, at the end of a process.
const LOOK: Duration = Duration::from_millis(1);
/// A look at readiness has at least this long, also at the very end of the patience.
const READY_LOOK_MIN: Nanos = Nanos::from_millis(10);
/// Looks between two signals to end.
const SIGNAL_EVERY_LOOKS: u32 = 25;
/// How long an orderly end may take before SIGKILL.
const ORDERLY_END_MAX: Nanos = Nanos::from_secs(5);
/// How long the kernel may take to clear away killed processes.
const KILLED_END_MAX: Nanos = Nanos::from_secs(10);
/// A status other than 200 may pass while a server starts, but not for longer than this.
const WRONG_STATUS_MAX: Nanos = Nanos::from_secs(1);
/// Lines and bytes of a log that are shown.
const LOG_TAIL_LINES: usize = 12;
const LOG_TAIL_BYTES: u64 = 8 << 10;
/// Where standard output and error of a server go.
const OUTPUT: &str = "output.log";

/// A start: which server, on what.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    /// Its adapter.
    pub adapter: &'static Adapter,
    /// Its program.
    pub found: &'a Found,
    /// What differs from the adapter's defaults.
    pub settings: &'a Settings,
    /// What it serves.
    pub docroot: &'a Path,
    /// CPUs its processes may run on; empty: those of the caller.
    pub cpus: &'a [u32],
    /// Connections that the load will hold at once.
    pub connections: u32,
    /// A folder, in which the server's own folder is made: see [`scratch`].
    pub scratch: &'a Path,
    /// What is asked for to see whether it answers ("/index.html").
    pub target: &'a str,
    /// How long it may take to answer.
    pub timeout: Nanos,
}

/// A server that answers. Dropped, it is ended and its folder removed.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    version: String,
    parity: fn(&Rendered, &str) -> BTreeMap<String, String>,
    rendered: Rendered,
    addr: SocketAddr,
    ready_after: Nanos,
    processes: Processes,
    // After the processes, so that it is removed after they have ended.
    dir: TempDir,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// From asking to the last process gone.
    pub took: Nanos,
    /// Whether it had to be killed, or left processes behind that had to be.
    pub forced: bool,
}

/// Why a server could not be run.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot be configured as asked.
    #[error(transparent)]
    Adapter(#[from] AdapterError),
    /// A file or folder could not be made ready for it.
    #[error("{server} cannot be started: {what} {}: {source}", path.display())]
    Files {
        /// Name of the adapter.
        server: &'static str,
        /// What was tried ("writing").
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The server's account cannot reach a folder.
    #[error(
        "{server} cannot be started: it runs as `{user}`, who may not enter {}; use a folder below \
         /tmp, or: chmod o+x {}", path.display(), path.display()
    )]
    Closed {
        /// Name of the adapter.
        server: &'static str,
        /// The account.
        user: String,
        /// The folder.
        path: PathBuf,
    },
    /// The system would not start it.
    #[error("{server} cannot be started: {}: {source}", program.display())]
    Spawn {
        /// Name of the adapter.
        server: &'static str,
        /// The program.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// It ended before it answered.
    #[error("{server} ended before it answered ({how}); the end of its log:\n{log_tail}")]
    Died {
        /// Name of the adapter.
        server: &'static str,
        /// Its exit status.
        how: String,
        /// Last lines of its log.
        log_tail: String,
    },
    /// It did not answer in time.
    #[error(
        "{server} did not answer properly within {waited}: {last}; the end of its log:\n{log_tail}"
    )]
    NotReady {
        /// Name of the adapter.
        server: &'static str,
        /// How long it had.
        waited: Nanos,
        /// What came last.
        last: String,
        /// Last lines of its log.
        log_tail: String,
    },
    /// Something of it is still there.
    #[error("{server} was ended, but {what} is still there: end it by hand")]
    Left {
        /// Name of the adapter.
        server: &'static str,
        /// Processes or the port.
        what: String,
    },
}

impl ServerError {
    /// Last lines of the server's log, where it had one.
    pub fn log_tail(&self) -> &str {
        match self {
            Self::Died { log_tail, .. } | Self::NotReady { log_tail, .. } => log_tail,
            _ => "",
        }
    }
}

impl Running {
    /// Starts a server on a free port of 127.0.0.1 and waits until it answers `target` with 200.
    ///
    /// # Errors
    /// Bad settings; files; the program; it ended early or did not answer in time. Nothing is left
    /// behind in any of these cases.
    pub fn start(start: &Start) -> Result<Self, ServerError> {
        let account = root_account();
        let account = account.as_ref();
        let scratch = absolute(start, start.scratch)?;
        let docroot = absolute(start, start.docroot)?;
        if let Some(account) = account {
            for dir in [&scratch, &docroot] {
                check_open(start, account, dir)?;
            }
        }
        let mut tried = 1;
        loop {
            match Self::start_once(start, account, &scratch, &docroot) {
                Err(error) if tried < PORTS_TRIED_MAX && port_was_taken(&error) => tried += 1,
                result => return result,
            }
        }
    }

    fn start_once(
        start: &Start,
        account: Option<&Account>,
        scratch: &Path,
        docroot: &Path,
    ) -> Result<Self, ServerError> {
        let server = start.adapter.name;
        let dir = tempfile::Builder::new()
            .prefix(&format!("{server}-"))
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(scratch)
            .map_err(files(server, "making a folder in", scratch))?;
        let addr = free_port().map_err(files(server, "looking for a port for", dir.path()))?;
        let rendered = start.adapter.render(&Request {
            found: start.found,
            dir: dir.path(),
            addr,
            docroot,
            cpus: start.cpus,
            connections: start.connections,
            account,
            settings: start.settings,
        })?;
        lay_out(server, dir.path(), &rendered, account)?;
        let begun = clock::monotonic();
        let processes = Processes::spawn(server, dir.path(), &rendered, start.cpus)?;
        let mut running = Self {
            name: server,
            version: start.found.version.clone(),
            parity: start.adapter.parity,
            rendered,
            addr,
            ready_after: Nanos::ZERO,
            processes,
            dir,
        };
        running.wait_until_ready(start.target, begun, start.timeout)?;
        running.ready_after = clock::monotonic() - begun;
        Ok(running)
    }

    fn wait_until_ready(
        &mut self,
        target: &str,
        begun: Nanos,
        timeout: Nanos,
    ) -> Result<(), ServerError> {
        let mut wrong_since = None;
        loop {
            if let Some(how) = self.died() {
                return Err(ServerError::Died {
                    server: self.name,
                    how,
                    log_tail: self.log_tail(),
                });
            }
            let now = clock::monotonic();
            let left = (begun + timeout).saturating_sub(now);
            let asked = probe::get(self.addr, target, left.max(READY_LOOK_MIN));
            let last = match asked {
                // A port that another program took between our look and the server's bind answers
                // too; the server itself will soon end then, and the start is tried again.
                Ok(_) if self.tree().listens_on(self.addr) == Some(false) => {
                    format!("another program answers on {}", self.addr)
                }
                Ok(reply) if reply.status == 200 => return Ok(()),
                Ok(reply) => {
                    wrong_since.get_or_insert(now);
                    let line = reply.head.lines().next().unwrap_or_default().to_owned();
                    format!("it answered {target} with `{line}`")
                }
                Err(error) => error.to_string(),
            };
            let wrong_for = wrong_since.map_or(Nanos::ZERO, |since| now.saturating_sub(since));
            if left == Nanos::ZERO || wrong_for > WRONG_STATUS_MAX {
                let (waited, log_tail) = (now.saturating_sub(begun), self.log_tail());
                return Err(ServerError::NotReady { server: self.name, waited, last, log_tail });
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// The process that was started: the first of its tree.
    pub fn pid(&self) -> u32 {
        self.processes.child.pid()
    }

    /// From starting it to its first correct answer.
    pub fn ready_after(&self) -> Nanos {
        self.ready_after
    }

    /// Its processes.
    pub fn tree(&self) -> &Tree {
        &self.processes.tree
    }

    /// What is run under its name: version, command, files, and the settings that decide
    /// comparability, read back from what the server itself prints of its configuration (10 to 30 ms:
    /// ask once a contender). `body_sha256` and `head` are left empty: see [`crate::oracle::ask`].
    pub fn facts(&self) -> ContenderFacts {
        let printed = self.printed_configuration().unwrap_or_default();
        let words = self.rendered.command.iter().map(|word| word.to_string_lossy());
        ContenderFacts {
            version: self.version.clone(),
            command: words.collect::<Vec<_>>().join(" "),
            files: self.rendered.files.clone(),
            parity: (self.parity)(&self.rendered, &printed),
            ..ContenderFacts::default()
        }
    }

    /// What the server's own check of its configuration prints; `None` where it has none or fails.
    pub fn printed_configuration(&self) -> Option<String> {
        let (program, arguments) = self.rendered.check.split_first()?;
        let output = Command::new(program).args(arguments).current_dir(self.dir.path()).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// How it ended, if it did by itself.
    pub fn died(&mut self) -> Option<String> {
        let status = self.processes.child.try_wait().ok()??;
        Some(child::describe(status))
    }

    /// The last lines of its error log and of what it printed.
    pub fn log_tail(&self) -> String {
        log_tail(self.dir.path())
    }

    /// Ends it in order, and by force what does not go; returns when no process of it is left, its
    /// port is free and its folder is gone.
    ///
    /// # Errors
    /// Something is left all the same; the error names it.
    pub fn stop(mut self) -> Result<Stopped, ServerError> {
        let begun = clock::monotonic();
        let forced = self.processes.end();
        let took = clock::monotonic() - begun;
        let left = self.processes.left();
        let port_taken = TcpListener::bind(self.addr).is_err();
        let what = match (left.is_empty(), port_taken) {
            (true, false) => return Ok(Stopped { took, forced }),
            (true, true) => format!("port {}", self.addr.port()),
            (false, _) => format!("processes {left:?}"),
        };
        Err(ServerError::Left { server: self.name, what })
    }
}

/// The processes of a server. Dropped, they are ended.
#[derive(Debug)]
struct Processes {
    child: Child,
    tree: Tree,
    ended: bool,
    // Dismissed last, when there is nothing left to guard.
    _guardian: Option<Guardian>,
}

impl Processes {
    fn spawn(
        server: &'static str,
        dir: &Path,
        rendered: &Rendered,
        cpus: &[u32],
    ) -> Result<Self, ServerError> {
        static ADOPT: Once = Once::new();
        // Where it fails orphans go to init, which reaps them as well.
        ADOPT.call_once(|| drop(child::adopt_orphans()));
        let log = dir.join(OUTPUT);
        let output = File::create(&log).map_err(files(server, "writing", &log))?;
        let errors = output.try_clone().map_err(files(server, "writing", &log))?;
        let cgroup = Cgroup::create();
        let spec = Spec {
            argv: rendered.command.clone(),
            dir: dir.to_owned(),
            env: Vec::new(),
            stdout: output,
            stderr: errors,
            cpus: cpus.to_owned(),
            cgroups: cgroup.iter().filter_map(|cgroup| cgroup.procs().ok()).collect(),
        };
        let spawned = child::spawn(spec);
        let child = match spawned {
            Ok(child) => child,
            Err(source) => {
                if let Some(cgroup) = cgroup {
                    cgroup.remove();
                }
                let program = PathBuf::from(rendered.command.first().cloned().unwrap_or_default());
                return Err(ServerError::Spawn { server, program, source });
            }
        };
        let tree = Tree::new(child.pid(), cgroup);
        let cgroup = tree.cgroup().and_then(Cgroup::killable_dir).map(Path::to_owned);
        // Without a guardian the server still ends with us in every way but SIGKILL.
        let guardian = child::guard(&Ward { group: child.pid(), cgroup }).ok();
        hold(tree.clone());
        Ok(Self { child, tree, ended: false, _guardian: guardian })
    }

    /// Ends all processes; true when force was needed.
    fn end(&mut self) -> bool {
        if self.ended {
            return false;
        }
        self.ended = true;
        // A loop that looks at a flag before it sleeps misses a signal that comes in between, and
        // sleeps for a second (lighttpd): so the signal is repeated, which asks for nothing more.
        let mut looks = 0_u32;
        let orderly = until(ORDERLY_END_MAX, || {
            if looks.is_multiple_of(SIGNAL_EVERY_LOOKS) {
                // A failure to signal shows as a process that stays.
                let _ = child::send(self.child.pid(), Signal::SIGTERM);
            }
            looks += 1;
            self.is_gone()
        });
        if !orderly {
            until(KILLED_END_MAX, || {
                self.tree.kill();
                self.is_gone()
            });
        }
        let_go(self.child.pid());
        self.tree.forget();
        !orderly
    }

    /// Whether the first process has been reaped and no other is left; reaps orphans on the way.
    fn is_gone(&mut self) -> bool {
        let reaped = !matches!(self.child.try_wait(), Ok(None));
        reaped && self.left().is_empty()
    }

    fn left(&self) -> Vec<u32> {
        let group = self.child.pid();
        child::reap_group(group);
        let left = self.tree.pids();
        left.into_iter().filter(|&pid| !child::reap(pid)).collect()
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end();
    }
}

/// Servers, and tools that load them, that run now, by the number of their first process.
static LIVE: Mutex<BTreeMap<u32, Tree>> = Mutex::new(BTreeMap::new());

fn live() -> MutexGuard<'static, BTreeMap<u32, Tree>> {
    // A panic elsewhere leaves the map whole: it is only inserted into and removed from.
    LIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a process among those that [`kill_all`] ends, until it is let go.
pub(crate) fn hold(tree: Tree) {
    live().insert(tree.root(), tree);
}

/// A process that was held has ended.
pub(crate) fn let_go(pid: u32) {
    live().remove(&pid);
}

/// First processes of the servers, and of the tools that load them, that this process runs now.
pub fn running() -> Vec<u32> {
    live().keys().copied().collect()
}

/// Ends every server, and every tool that loads one, at once and by force. For a program that cannot unwind; otherwise dropping
/// [`Running`] does more.
pub fn kill_all() {
    for tree in live().values() {
        tree.kill();
    }
}

/// Whom servers drop to when we are root: www-data, as Debian's servers do, else nobody. `None`
/// where we are not root.
fn root_account() -> Option<Account> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let groups = fs::read_to_string("/etc/group").ok()?;
    ["www-data", "nobody"].into_iter().find_map(|name| account(name, &users, &groups))
}

/// A user of passwd(5) with the name of its group from group(5).
fn account(name: &str, users: &str, groups: &str) -> Option<Account> {
    let fields = |line: &str| line.split(':').map(str::to_owned).collect::<Vec<_>>();
    let user = users.lines().map(fields).find(|user| user[0] == name)?;
    let (uid, gid) = (user.get(2)?.parse().ok()?, user.get(3)?.parse().ok()?);
    let of_gid = |group: &Vec<String>| group.get(2).is_some_and(|number| *number == user[3]);
    let group = groups.lines().map(fields).find(of_gid)?.swap_remove(0);
    Some(Account { user: name.to_owned(), group, uid, gid })
}

fn absolute(start: &Start, path: &Path) -> Result<PathBuf, ServerError> {
    path.canonicalize().map_err(files(start.adapter.name, "finding", path))
}

/// Every folder on the way must let the account in; root itself would not notice.
fn check_open(start: &Start, account: &Account, dir: &Path) -> Result<(), ServerError> {
    use std::os::unix::fs::MetadataExt as _;
    for path in dir.ancestors() {
        let found = path.metadata().map_err(files(start.adapter.name, "finding", path))?;
        let needed = match (found.uid() == account.uid, found.gid() == account.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        if found.mode() & needed == 0 {
            let (server, user) = (start.adapter.name, account.user.clone());
            return Err(ServerError::Closed { server, user, path: path.to_owned() });
        }
    }
    Ok(())
}

fn lay_out(
    server: &'static str,
    dir: &Path,
    rendered: &Rendered,
    account: Option<&Account>,
) -> Result<(), ServerError> {
    let dirs: Vec<PathBuf> = rendered.dirs.iter().map(|name| dir.join(name)).collect();
    for path in &dirs {
        fs::create_dir_all(path).map_err(files(server, "making", path))?;
    }
    if let Some(account) = account {
        // The folder itself too: lighttpd opens its error log when it has dropped to the account.
        for path in dirs.iter().map(PathBuf::as_path).chain([dir]) {
            let owner = chown(path, Some(account.uid), Some(account.gid));
            owner.map_err(files(server, "giving away", path))?;
        }
    }
    for (name, content) in &rendered.files {
        let path = dir.join(name);
        fs::write(&path, content).map_err(files(server, "writing", &path))?;
    }
    Ok(())
}

fn files(
    server: &'static str,
    what: &'static str,
    path: &Path,
) -> impl FnOnce(io::Error) -> ServerError + use<> {
    let path = path.to_owned();
    move |source| ServerError::Files { server, what, path, source }
}

/// A port that is free now. Between here and the server's own bind another program may take it;
/// then the start is tried again.
fn free_port() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn port_was_taken(error: &ServerError) -> bool {
    // The words of strerror(EADDRINUSE), which all servers print.
    error.log_tail().contains("Address already in use")
}

fn log_tail(dir: &Path) -> String {
    let logs = ["error.log", OUTPUT].map(|name| tail(&dir.join(name)).unwrap_or_default());
    let lines: Vec<&str> = logs.iter().flat_map(|log| log.lines()).collect();
    match lines.as_slice() {
        [] => "(it wrote nothing)".to_owned(),
        lines => lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n"),
    }
}

fn tail(path: &Path) -> io::Result<String> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let mut file = File::open(path)?;
    let skipped = file.metadata()?.len().saturating_sub(LOG_TAIL_BYTES);
    file.seek(SeekFrom::Start(skipped))?;
    let mut bytes = Vec::new();
    file.take(LOG_TAIL_BYTES).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Looks once a millisecond until `done`, or for `longest`; true when it was.
fn until(longest: Nanos, mut done: impl FnMut() -> bool) -> bool {
    let begun = clock::monotonic();
    while !done() {
        if clock::monotonic() - begun > longest {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_with_the_name_of_its_group() {
        let users = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:n:/:/bin/false\n";
        let groups = "root:x:0:\nnogroup:x:65534:\n";
        let found = account("nobody", users, groups).unwrap();
        assert_eq!((found.group.as_str(), found.uid, found.gid), ("nogroup", 65534, 65534));
        assert_eq!(account("www-data", users, groups), None);
    }

    #[test]
    fn an_answer_of_another_program_on_the_port_is_not_taken_for_the_servers() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        assert_eq!(Tree::new(std::process::id(), None).listens_on(addr), Some(true));
        let other = Command::new("/bin/sleep").arg("600").spawn();
        let mut other = other.unwrap();
        assert_eq!(Tree::new(other.id(), None).listens_on(addr), Some(false));
        other.kill().unwrap();
        other.wait().unwrap();
    }

    #[test]
    fn the_tail_of_a_log_is_short_and_is_its_end() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(log_tail(dir.path()), "(it wrote nothing)");
        let lines: Vec<String> = (0..5000).map(|n| format!("line {n}")).collect();
        fs::write(dir.path().join("error.log"), lines.join("\n")).unwrap();
        let tail = log_tail(dir.path());
        assert!(tail.ends_with("line 4999") && tail.lines().count() == LOG_TAIL_LINES, "{tail}");
    }
}
