//! Owns a real server from its start to its end: folder, port, processes, readiness, and the certainty that nothing
//! of it is left. Must not know how servers differ from each other (that is `adapters`), nor what loads them.
//! Start reading at [`Running::start`] and [`Running::stop`].
//!
//! A server that runs elsewhere is neither started nor ended. It is asked and loaded like any other, but has no
//! processes ([`Running::tree`] is `None`).
//!
//! Whatever was started is ended in every case: [`Running`] ends it when it is dropped, also after a panic, and the
//! guardian of [`sys::child`] ends it if this process is killed.

mod error;
mod processes;

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use record::{ContenderFacts, LoadPlan, Settings};
use sys::child::{self, Signal};
use sys::clock;
use tempfile::TempDir;
use units::Nanos;

use crate::adapters::{Account, Adapter, Found, Reached, Rendered, Request};
pub use crate::left::EndedRemains;
use crate::netns::Net;
use crate::parity;
use crate::probe::{self, Address};
pub use crate::scratch::{Scratch, scratch, site, sleeper, slept};
use crate::tree::{Listener, Tree};
pub use error::ServerError;
use processes::Processes;
pub use processes::running;
pub(crate) use processes::{hold, let_go};

/// How often a start is retried on another port, if another program took the free one.
const PORTS_TRIED_MAX: u32 = 5;
/// Time between two looks at readiness.
const LOOK: Duration = Duration::from_millis(1);
/// Shortest look at readiness, also at the end of the timeout.
const READY_LOOK_MIN: Nanos = Nanos::from_millis(10);
/// Longest look if it cannot be seen who listens: it may be another program, while the server has ended.
const UNSEEN_LOOK_MAX: Nanos = Nanos::from_secs(5);
/// Longest time that a starting server may answer with a status other than 200. It may answer 503 (not ready yet) for
/// longer, and any status on the path that says when it is ready.
const WRONG_STATUS_MAX: Nanos = Nanos::from_secs(1);
/// Lines and bytes of a log that are shown.
const LOG_TAIL_LINES: usize = 12;
const LOG_TAIL_BYTES: u64 = 8 << 10;
/// The page that every site has.
const PAGE: &str = "/index.html";
/// The version shown for a server whose replies do not name one.
const UNNAMED: &str = "(its replies do not name it)";
/// Where standard output and error of a server go.
const OUTPUT: &str = "output.log";
/// Where an access log goes, if the settings ask for one. All adapters use the first name, except Tomcat, which keeps
/// it with its other logs.
const ACCESS_LOGS: [&str; 2] = ["access.log", "logs/access.log"];

/// A start: which server, and with what.
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
    /// The target of the readiness check ("/index.html").
    pub target: &'a str,
    /// How long it may take for its first answer.
    pub timeout: Nanos,
    /// If set, the start is given up.
    pub interrupt: &'a AtomicBool,
}

/// The `interrupt` of a start that nobody interrupts.
pub static UNINTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The conditions of a start, apart from the server itself.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// The network between server and load.
    pub net: Net,
    /// Bytes that pad its environment: see [`crate::prepare::padding`].
    pub padding: u32,
    /// The port that it gets if it is free; `None`: any.
    pub port: Option<u16>,
}

impl Conditions {
    /// That network, without padding and on any port.
    pub fn over(net: Net) -> Self {
        Self { net, padding: 0, port: None }
    }
}

/// A server that answers. It is ended, and its folder removed, on drop.
#[derive(Debug)]
pub struct Running {
    adapter: &'static Adapter,
    version: String,
    rendered: Rendered,
    address: Address,
    ready_after: Nanos,
    /// Looks at its readiness that it answered; each is one line of its access log.
    looks_answered: u64,
    // None if it runs elsewhere: nothing of it was started here.
    processes: Option<Processes>,
    // After the processes in drop order: network and folder are removed once the processes have ended.
    net: Net,
    dir: TempDir,
}

/// How a server ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// From the request to end until its last process is gone.
    pub took: Nanos,
    /// Whether it, or a process that it left behind, had to be killed.
    pub forced: bool,
    /// The signal that asked it to end.
    pub signal: Signal,
    /// Lines of its access log, once it is complete, without those of our readiness looks; `None` if it keeps no log.
    pub logged: Option<u64>,
}

impl Running {
    /// As [`Running::start_under`], over loopback and without padding.
    ///
    /// # Errors
    /// See there.
    pub fn start(start: &Start) -> Result<Self, ServerError> {
        Self::start_under(start, &Conditions::over(Net::loopback("asked for")))
    }

    /// Starts a server on a free port of the network and waits until it answers `target` with 200.
    ///
    /// # Errors
    /// Bad settings, a file that cannot be written, a program that does not start, ends early or does not answer in
    /// time. Nothing is left behind in any of these cases.
    pub fn start_under(start: &Start, conditions: &Conditions) -> Result<Self, ServerError> {
        let server = start.adapter.name;
        let account = root_account();
        let account = account.as_ref();
        let scratch = absolute(start, start.scratch)?;
        let docroot = absolute(start, start.docroot)?;
        if let Some(account) = account {
            for dir in [&scratch, &docroot] {
                check_open(start, account, dir)?;
            }
        }
        let ground = CheckedStart { account, scratch: &scratch, docroot: &docroot, conditions };
        let net = &conditions.net;
        let mut tried = 1;
        loop {
            let wanted = conditions.port.filter(|_| tried == 1);
            let free = net.at_server(|| free_port(net, wanted)).and_then(|port| port);
            let free = free.map_err(files(server, "looking for a port for", &scratch))?;
            match Self::start_at(start, &ground, free) {
                Err(error) if tried < PORTS_TRIED_MAX && port_was_taken(&error) => tried += 1,
                result => return result,
            }
        }
    }

    fn start_at(
        start: &Start,
        ground: &CheckedStart,
        free: SocketAddr,
    ) -> Result<Self, ServerError> {
        let server = start.adapter.name;
        let CheckedStart { account, scratch, docroot, conditions } = *ground;
        let net = &conditions.net;
        let dir = tempfile::Builder::new()
            .prefix(&format!("{server}-"))
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir_in(scratch)
            .map_err(files(server, "making a folder in", scratch))?;
        let rendered = start.adapter.render(&Request {
            found: start.found,
            dir: dir.path(),
            addr: free,
            docroot,
            cpus: start.cpus,
            connections: start.connections,
            account,
            settings: start.settings,
        })?;
        let address = address(server, &rendered.reached, free)?;
        lay_out(server, dir.path(), &rendered, account)?;
        let begun = clock::monotonic();
        let processes = match rendered.command.as_slice() {
            [] => None,
            _ => Some(Processes::spawn(server, dir.path(), &rendered, start.cpus, conditions)?),
        };
        let mut running = Self {
            adapter: start.adapter,
            version: start.found.version.clone(),
            rendered,
            address,
            ready_after: Nanos::ZERO,
            looks_answered: 0,
            processes,
            net: net.clone(),
            dir,
        };
        let ready = || running.wait_until_ready(start, begun);
        net.at_client(ready).map_err(files(server, "entering the network of", scratch))??;
        running.ready_after = clock::monotonic() - begun;
        Ok(running)
    }

    fn wait_until_ready(&mut self, start: &Start, begun: Nanos) -> Result<(), ServerError> {
        let server = self.adapter.name;
        let asked_for = self.rendered.ready.clone();
        let target = asked_for.unwrap_or_else(|| self.target(start.target).to_owned());
        let (mut wrong_since, mut before) = (None, None);
        loop {
            if start.interrupt.load(Ordering::Relaxed) {
                return Err(ServerError::Interrupted { server });
            }
            if let Some(error) = self.ended_early() {
                return Err(error);
            }
            let now = clock::monotonic();
            let left = (begun + start.timeout).saturating_sub(now);
            let last = match self.listener() {
                // No request is made: nobody listens yet, or another program took the port between our look and the
                // server's bind. In that case the server soon ends, and the start is retried. A request to the other
                // program might hang until no time is left.
                Some(Listener::Nobody) => format!("nobody listens on {}", self.addr()),
                Some(Listener::Another) => {
                    format!("another program listens on {}", self.addr())
                }
                seen @ (Some(Listener::Ours) | None) => {
                    let unseen = seen.is_none() && self.processes.is_some();
                    let patience = if unseen { left.min(UNSEEN_LOOK_MAX) } else { left };
                    match self.is_ready(&target, patience.max(READY_LOOK_MIN), start.interrupt) {
                        Readiness::Ready => return Ok(()),
                        Readiness::Wrong(said) => {
                            wrong_since.get_or_insert(now);
                            said
                        }
                        Readiness::NotYet(said) => said,
                    }
                }
            };
            let wrong_for = wrong_since.map_or(Nanos::ZERO, |since| now.saturating_sub(since));
            if left == Nanos::ZERO || wrong_for > WRONG_STATUS_MAX {
                let (waited, log_tail) = (now.saturating_sub(begun), self.log_tail());
                // A last look is so short that its result is no reason.
                let last = before.filter(|_| left == Nanos::ZERO).unwrap_or(last);
                return Err(ServerError::NotReady { server, waited, last, log_tail });
            }
            before = Some(last);
            std::thread::sleep(LOOK);
        }
    }

    /// Checks once whether it is ready.
    fn is_ready(&mut self, target: &str, patience: Nanos, interrupt: &AtomicBool) -> Readiness {
        let asked = probe::get_until(&self.address, target, patience, interrupt);
        self.looks_answered += u64::from(asked.is_ok());
        let reply = match asked {
            Ok(reply) if reply.status == 200 => return Readiness::Ready,
            Ok(reply) => reply,
            Err(error) => return Readiness::NotYet(error.to_string()),
        };
        let line = reply.head.lines().next().unwrap_or_default();
        let said = probe::redirect(&reply, target)
            .unwrap_or_else(|| format!("it answered {target} with `{line}`"));
        match reply.status == 503 || self.rendered.ready.is_some() {
            true => Readiness::NotYet(said),
            false => Readiness::Wrong(said),
        }
    }

    /// Why it will never answer, if the process that was started has ended.
    fn ended_early(&mut self) -> Option<ServerError> {
        let server = self.adapter.name;
        let processes = self.processes.as_mut()?;
        let status = processes.exit_status()?;
        let (how, left) = (child::describe(status), processes.left().len());
        Some(match left > 0 && status.success() {
            true => ServerError::WentToBackground { server, how, left },
            false => ServerError::Died { server, how, log_tail: self.log_tail() },
        })
    }

    fn listener(&self) -> Option<Listener> {
        let tree = self.tree()?;
        self.net.at_server(|| tree.listener(self.addr())).ok()?
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.address.socket
    }

    /// Its address, and its name in requests.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The network that it is reached over.
    pub fn net(&self) -> &Net {
        &self.net
    }

    /// What to request from it if the study names `target`: the same, except for a server elsewhere whose URL names a
    /// page.
    pub fn target<'a>(&'a self, target: &'a str) -> &'a str {
        match &self.rendered.reached {
            Reached::At { target: Some(own), .. } => own,
            _ => target,
        }
    }

    /// Points a load at it: its address, its name and the target.
    pub fn aim(&self, plan: &mut LoadPlan) {
        let origin = self.address.origin();
        for request in &mut plan.requests {
            request.target = self.target(&request.target).to_owned();
        }
        let target = plan.requests.first().map(|request| request.target.as_str());
        plan.url = format!("http://{}{}", origin.host, target.unwrap_or("/"));
        plan.origins = vec![origin];
    }

    /// The process that was started, the root of its tree; `None` if it runs elsewhere.
    pub fn pid(&self) -> Option<u32> {
        self.processes.as_ref().map(Processes::pid)
    }

    /// Time from its start to its first correct answer; for a server elsewhere, from the first look.
    pub fn ready_after(&self) -> Nanos {
        self.ready_after
    }

    /// Its processes; `None` if it runs elsewhere.
    pub fn tree(&self) -> Option<&Tree> {
        self.processes.as_ref().map(Processes::tree)
    }

    /// What runs under its name: version, command, files, and the settings that decide comparability. Those settings
    /// are read from the configuration that the server itself prints. What can be observed from outside replaces
    /// them: see [`crate::parity`]. This takes tens of milliseconds, at most 1 s for a slow server: call it once per
    /// contender. `body_sha256` and `head` are left empty: see [`crate::oracle::ask`].
    pub fn facts(&self) -> ContenderFacts {
        let printed = self.printed_configuration().unwrap_or_default();
        let words = self.rendered.command.iter().map(|word| word.to_string_lossy());
        let mut facts = ContenderFacts {
            version: self.version.clone(),
            command: words.collect::<Vec<_>>().join(" "),
            files: self.rendered.files.clone(),
            parity: (self.adapter.parity)(&self.rendered, &printed).into_table(),
            ..ContenderFacts::default()
        };
        let seen = self.seen();
        if facts.version.is_empty() {
            facts.version = seen.server.clone().unwrap_or_else(|| UNNAMED.to_owned());
        }
        parity::lay_over(&mut facts.parity, seen);
        facts
    }

    /// What can be observed: its replies in the load's network, its sockets in its own.
    fn seen(&self) -> parity::ObservedSwitches {
        let probe = || parity::probe(&self.address, self.target(PAGE));
        let mut seen = self.net.at_client(probe).unwrap_or_default();
        if self.tree().is_some() {
            let listening = self.net.at_server(|| parity::listening(&self.address));
            seen.listening = listening.ok().flatten();
        }
        if let Some(tree) = self.tree() {
            let watch = || parity::watch(&tree.pids(), &self.address, self.target(PAGE));
            seen.calls = self.net.at_client(watch).ok();
        }
        seen
    }

    /// The output of the server's own check of its configuration; `None` if it has none or the check fails.
    pub fn printed_configuration(&self) -> Option<String> {
        let (program, arguments) = self.rendered.check.split_first()?;
        let mut check = Command::new(program);
        check.args(arguments).envs(self.rendered.env.iter().map(|(name, value)| (name, value)));
        check.current_dir(self.dir.path());
        // In the server's network: some checks bind what the configuration says.
        let output = self.net.at_server(|| check.output()).and_then(|output| output);
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// How it ended, if it did so by itself. For a server elsewhere, only its answers tell.
    pub fn died(&mut self) -> Option<String> {
        self.processes.as_mut()?.exit_status().map(child::describe)
    }

    /// The last lines of its error log and of what it printed.
    pub fn log_tail(&self) -> String {
        match self.processes {
            Some(_) => log_tail(self.dir.path()),
            None => "(it runs elsewhere: its log is there)".to_owned(),
        }
    }

    /// Ends it in order, and by force if that fails. Returns when none of its processes is left, its port is free and
    /// its folder is gone. A server elsewhere is left alone.
    ///
    /// # Errors
    /// Something is left in spite of this; the error names it.
    pub fn stop(mut self) -> Result<Stopped, ServerError> {
        let addr = self.addr();
        let Some(processes) = &mut self.processes else {
            let signal = self.rendered.stop;
            return Ok(Stopped { took: Nanos::ZERO, forced: false, signal, logged: None });
        };
        let begun = clock::monotonic();
        let forced = processes.end();
        let took = clock::monotonic() - begun;
        let left = processes.left();
        let logs = ACCESS_LOGS.iter().map(|name| fs::read(self.dir.path().join(name)));
        let lines = logs.filter_map(Result::ok).next();
        let lines = lines.map(|log| log.iter().filter(|byte| **byte == b'\n').count() as u64);
        let logged = lines.map(|lines| lines.saturating_sub(self.looks_answered));
        let bind = || TcpListener::bind(addr).is_err();
        let port_taken = self.net.at_server(bind).unwrap_or(true);
        let what = match (left.is_empty(), port_taken) {
            (true, false) => {
                return Ok(Stopped { took, forced, signal: self.rendered.stop, logged });
            }
            (true, true) => format!("port {}", addr.port()),
            (false, _) => format!("processes {left:?}"),
        };
        Err(ServerError::Left { server: self.adapter.name, what })
    }
}

/// Result of one look at a starting server.
enum Readiness {
    /// It answers as it should.
    Ready,
    /// It answers with something that is not acceptable, in these words.
    Wrong(String),
    /// It does not answer, or says that it is not ready.
    NotYet(String),
}

/// What a start needs from this machine, all of it checked.
struct CheckedStart<'a> {
    account: Option<&'a Account>,
    scratch: &'a Path,
    docroot: &'a Path,
    conditions: &'a Conditions,
}

/// Where a server will be reached, given a free port.
fn address(
    server: &'static str,
    reached: &Reached,
    free: SocketAddr,
) -> Result<Address, ServerError> {
    match reached {
        Reached::AsAsked => Ok(free.into()),
        Reached::Port(port) => {
            let addr = SocketAddr::from((Ipv4Addr::LOCALHOST, *port));
            match TcpListener::bind(addr) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                    Err(ServerError::PortTaken { server, port: *port })
                }
                // The program itself reports any other problem with the port, in its own words.
                _ => Ok(addr.into()),
            }
        }
        Reached::At { authority, .. } => {
            let lost = |source| {
                let authority = authority.clone();
                ServerError::NoSuchHost { server, authority, source }
            };
            let mut found = authority.to_socket_addrs().map_err(lost)?;
            let none = || lost(io::Error::other("it has no address"));
            let socket = found.next().ok_or_else(none)?;
            Ok(Address { socket, host: authority.clone() })
        }
    }
}

/// The account that servers drop to if we are root: www-data, as Debian's servers do, else nobody. `None` if we are
/// not root.
fn root_account() -> Option<Account> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let groups = fs::read_to_string("/etc/group").ok()?;
    ["www-data", "nobody"].into_iter().find_map(|name| account(name, &users, &groups))
}

/// A user of passwd(5), with the name of its group from group(5).
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

/// Checks that the account can enter every folder on the path; root itself would not notice.
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
        // The server's folder too: lighttpd opens its error log after it has dropped to the account.
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

/// A port that is free now: the wanted one, if it is free. Another program may take it before the server binds it;
/// then the start is retried.
fn free_port(net: &Net, wanted: Option<u16>) -> io::Result<SocketAddr> {
    let bind = |port| TcpListener::bind((net.server_address(), port))?.local_addr();
    wanted.map_or_else(|| bind(0), |port| bind(port).or_else(|_| bind(0)))
}

fn port_was_taken(error: &ServerError) -> bool {
    // The text of strerror(EADDRINUSE), which most servers print (Go with a small letter), and that of our own
    // server, which is broken into lines for a terminal.
    let text = error.log_tail().to_ascii_lowercase().replace(|c: char| !c.is_alphanumeric(), " ");
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    words.contains("address already in use") || words.contains("the port is in use")
}

fn log_tail(dir: &Path) -> String {
    let logs = ["error.log", OUTPUT].map(|name| tail(&dir.join(name)).unwrap_or_default());
    let lines: Vec<&str> =
        logs.iter().flat_map(|log| log.lines()).filter(|line| !is_frame(line)).collect();
    match lines.as_slice() {
        [] => "(it wrote nothing)".to_owned(),
        lines => lines[lines.len().saturating_sub(LOG_TAIL_LINES)..].join("\n"),
    }
}

/// A line of a JVM's stack trace says where it failed; a dozen of them would hide what failed.
fn is_frame(line: &str) -> bool {
    line.starts_with("\tat ") || line.starts_with("\t... ")
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use units::Bytes;

    use super::*;
    use crate::adapters::{self, Search};

    #[test]
    fn an_account_is_found_with_the_name_of_its_group() {
        let users = "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65534:n:/:/bin/false\n";
        let groups = "root:x:0:\nnogroup:x:65534:\n";
        let found = account("nobody", users, groups).unwrap();
        assert_eq!((found.group.as_str(), found.uid, found.gid), ("nogroup", 65534, 65534));
        assert_eq!(account("www-data", users, groups), None);
    }

    #[test]
    fn who_listens_is_nobody_the_server_or_another_program() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = listener.local_addr().unwrap();
        let ours = Tree::new(std::process::id(), None);
        let other = Command::new("/bin/sleep").arg("600").spawn();
        let mut other = other.unwrap();
        let theirs = Tree::new(other.id(), None);
        let seen = [ours.listener(addr), theirs.listener(addr)];
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(seen, [Some(Listener::Ours), Some(Listener::Another)]);
        drop(listener);
        // A child that another test of this process starts holds it open between its fork and its exec.
        let until = Instant::now() + Duration::from_secs(10);
        while ours.listener(addr) != Some(Listener::Nobody) {
            assert!(Instant::now() < until, "still {:?}", ours.listener(addr));
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Another program may take the port between our look and a server's bind, and leave requests unanswered. Every
    /// server must then end and say so: the start is retried on another port, long before the timeout of the first
    /// try.
    #[test]
    fn a_port_that_was_taken_in_between_is_known_as_such_from_every_server() {
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let addr = taken.local_addr().unwrap();
        let test = std::env::current_exe().unwrap();
        let search = Search::new(test.ancestors().nth(2).unwrap().join("joust"));
        let scratch = scratch().unwrap();
        let docroot = site(scratch.path(), &[Bytes(100)]).unwrap();
        let account = root_account();
        let settings = Settings::new();
        let try_it = |adapter: &'static Adapter| {
            // Those that are not installed are counted by the tests of the adapters.
            let found = adapter.installed(&search).ok()?;
            let start = Start {
                adapter,
                found: &found,
                settings: &settings,
                docroot: &docroot,
                cpus: &[],
                connections: 4,
                scratch: scratch.path(),
                target: "/index.html",
                // Longer than any hanging test is allowed to run.
                timeout: Nanos::from_secs(3600),
                interrupt: &UNINTERRUPTED,
            };
            let conditions = Conditions::over(Net::loopback("for a test"));
            let ground = CheckedStart {
                account: account.as_ref(),
                scratch: scratch.path(),
                docroot: &docroot,
                conditions: &conditions,
            };
            Some((adapter.name, Running::start_at(&start, &ground, addr).unwrap_err()))
        };
        let startable = adapters::ALL.iter().filter(|adapter| adapter.check(&settings).is_ok());
        let errors: Vec<_> = std::thread::scope(|scope| {
            let tried: Vec<_> =
                startable.map(|adapter| scope.spawn(move || try_it(adapter))).collect();
            tried.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert!(errors.iter().any(|(name, _)| *name == "joust"), "our own server is always there");
        for (name, error) in errors {
            assert!(matches!(error, ServerError::Died { .. }), "{name}: {error}");
            assert!(port_was_taken(&error), "{name}: {error}");
        }
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
