//! What every thread and process of a server shares: the listening socket, the site, the
//! configuration and the logs. Owns the order in which they come to be; must not know how a
//! model waits. Start reading at [`Service::bind`].

pub(crate) mod closing;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use sys::identity::Identity;
use sys::listener::Inherited;
use sys::{append, clock, listener, signals};
use units::Nanos;
use wire::tls::TicketKeys;

use crate::ServeError;
use crate::board::Board;
use crate::config::Config;
use crate::fault::{self, Faults};
use crate::gateway::{self, Gateways, Responders};
use crate::log::{AccessLogs, Episode, ErrorLog, Level, Over, Reopen, Told};
use crate::rights;
use crate::site::Site;
use crate::supervisor::generation::Handover;
use crate::tls::Tls;
use closing::Closing;

/// A server that is ready to accept. Shared by reference; processes that a model forks inherit it.
#[derive(Debug)]
pub struct Service {
    /// Bound and listening; blocking, close-on-exec.
    pub listener: TcpListener,
    /// Further queues of the same port (SO_REUSEPORT), for a model that gives each of its loops one;
    /// the kernel spreads connections over all of them.
    pub more_listeners: Vec<TcpListener>,
    /// Where it listens, as the access log says it.
    pub(crate) local: SocketAddr,
    /// What is served.
    pub site: Site,
    /// How.
    pub config: Config,
    /// Where it is noted.
    pub log: AccessLogs,
    /// Where the server says what happens to it.
    pub errors: Arc<ErrorLog>,
    /// The files of both.
    pub(crate) reopen: Reopen,
    /// What answers requests that no file does.
    pub(crate) gateways: Gateways,
    /// Whole seconds since 1970, for `Date` and the log. A value, so that tests can hold it still.
    pub wall_s: fn() -> u64,
    /// What is wrong with it on purpose, from the instant on at which it was bound; most often nothing.
    pub faults: Option<Faults>,
    /// Whether another process has the listening socket too and goes on with it.
    pub(crate) handover: Handover,
    /// What it lacks at present.
    lacks: Lacks,
    /// Workers of the generation before this one; 0: it is the first, or of another model.
    pub(crate) workers_before: usize,
    /// What everybody does, and has done.
    pub board: Board,
    /// How it speaks TLS; `None`: not at all.
    pub tls: Option<Tls>,
    /// Whose rights a generation takes on; `None`: it keeps its own.
    pub(crate) identity: Option<Identity>,
    /// The first queue of the port is somebody else's, who goes on with it when the server has ended.
    pub(crate) is_lent: bool,
    closing: Closing,
}

/// Failures of which one line is enough until they are over.
#[derive(Debug)]
struct Lacks {
    /// Descriptors or memory for another connection.
    accepts: Episode,
    /// What a process or a thread takes.
    starts: Episode,
}

impl Lacks {
    fn new() -> io::Result<Self> {
        Ok(Self { accepts: Episode::new()?, starts: Episode::new()? })
    }
}

/// What a server is given by whoever starts it, beside its configuration.
#[derive(Debug, Default)]
pub struct Given {
    /// What `stderr` means as the file of the error log; without it that is `off`.
    pub stderr: Option<File>,
    /// Queues of a port that listen already, the first of them in place of `listen`; those that the
    /// model has no loop for are closed. [`Service::run`] gives them what the configuration says.
    pub listeners: Vec<TcpListener>,
    /// The first of them is somebody else's, who goes on with it when the server has ended: it is never
    /// shut.
    pub is_lent: bool,
    /// How often the logs were to be opened again, counted by someone else.
    pub reopen: Option<Reopen>,
    /// Keys of TLS tickets that clients have already.
    pub tickets: Option<TicketKeys>,
    /// Workers of the generation before this one, which a model of processes begins with after a reload.
    pub workers_before: usize,
}

/// What bounds the descriptors and the memory of a process.
const FILES_AND_MEMORY: &str = "`ulimit -n` bounds the files of a process, sysctl fs.file-max those of \
                                the machine, the cgroup its memory";

/// What bounds its processes and threads.
const PROCESSES: &str = "`ulimit -u` bounds the processes and threads of a user, the cgroup's pids.max and \
                         sysctl kernel.threads-max those of a service and of the machine";

impl Service {
    /// Opens the site and the logs, then listens: a server whose port answers can serve.
    ///
    /// # Errors
    /// What is wrong with the CPUs, the machine under this model, the directory, the log files or the
    /// address.
    pub fn bind(config: Config) -> Result<Self, ServeError> {
        Self::bind_given(config, Given::default())
    }

    /// The same, with what was given.
    ///
    /// # Errors
    /// As [`Service::bind`].
    pub fn bind_given(config: Config, given: Given) -> Result<Self, ServeError> {
        check_cpus(&config.cpus)?;
        check_model(&config)?;
        let shared = |source| ServeError::System { doing: "cannot share a count", source };
        let reopen = given.reopen.map_or_else(Reopen::new, Ok).map_err(shared)?;
        let handover = Handover::none().map_err(shared)?;
        let identity = rights::identity(&config)?;
        // Opening them says what is wrong.
        let _ = rights::make_logs(&config, identity.as_ref());
        let errors = Arc::new(ErrorLog::open(&config.error_log, given.stderr, &reopen)?);
        let site = Site::open(&config)?;
        let gateways = Gateways::open(&config)?;
        let log = AccessLogs::open(&config, &reopen, &errors)?;
        let now_s = clock::wall_secs_coarse;
        let tickets = given.tickets.unwrap_or_else(|| TicketKeys::new(now_s));
        let tls = config.tls.as_ref().map(|tls| Tls::open(tls, &tickets, now_s));
        let tls = tls.transpose()?;
        let is_lent = given.is_lent && !given.listeners.is_empty();
        let mut listeners = given.listeners.into_iter();
        let listener = listeners.next().map_or_else(|| listen(&config), Ok)?;
        let more_listeners = listen_more(&config, &listener, listeners.collect())?;
        let faults = Faults::plant(&config.faults, clock::monotonic()).map_err(|source| {
            ServeError::System { doing: "cannot share the count of planted faults", source }
        })?;
        let board = Board::new(config.status.path.is_some()).map_err(|source| {
            ServeError::System { doing: "cannot share the status board", source }
        })?;
        Ok(Self {
            local: listener.local_addr().unwrap_or(config.listen),
            listener,
            more_listeners,
            site,
            config,
            log,
            errors,
            reopen,
            gateways,
            wall_s: clock::wall_secs_coarse,
            faults,
            handover,
            lacks: Lacks::new().map_err(shared)?,
            workers_before: given.workers_before,
            board,
            tls,
            identity,
            is_lent,
            closing: Closing::default(),
        })
    }

    /// All that is wrong with a configuration and what it names and can be known without listening.
    /// Nothing is made or changed.
    pub fn check(config: &Config) -> Vec<ServeError> {
        let checks = [
            check_cpus(&config.cpus),
            check_model(config),
            rights::identity(config).map(drop),
            ErrorLog::check(&config.error_log),
            check_pid_file(config.pid_file.as_deref()),
        ];
        let checks = checks.into_iter().filter_map(Result::err);
        let tls = config.tls.iter().flat_map(Tls::check);
        let all = checks.chain(Site::check(config)).chain(tls).chain(Gateways::check(config));
        // A directory of a site may be one of programs too.
        let mut said = BTreeSet::new();
        all.filter(|error| said.insert(error.to_string())).collect()
    }

    /// Where it listens; with port 0 asked for, the port that the kernel chose.
    pub fn address(&self) -> SocketAddr {
        self.local
    }

    /// Its first page.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}/", self.address())
    }

    /// Whether another process goes on with the listening socket: a drain leaves the port open, and
    /// what waits there, to that one.
    pub fn is_handed_over(&self) -> bool {
        self.handover.has_begun()
    }

    /// Connections that wait to be accepted, and that a drain still has to serve. None where the port
    /// goes on without this server.
    pub fn waiting(&self) -> u32 {
        self.listeners().map(|listener| self.waiting_at(listener)).sum()
    }

    /// As [`Service::waiting`], of one of its queues.
    pub fn waiting_at(&self, listener: &TcpListener) -> u32 {
        if self.goes_on(listener) { 0 } else { listener::waiting(listener) }
    }

    /// Whether another process goes on with that queue: with as many as it has loops.
    fn goes_on(&self, listener: &TcpListener) -> bool {
        let mut handed_over = self.listeners().take(self.handover.queues());
        handed_over.any(|queue| std::ptr::eq(queue, listener))
    }

    /// Every queue of the port.
    pub fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        std::iter::once(&self.listener).chain(&self.more_listeners)
    }

    /// In a drain: has accept wait for nobody, in no process that shares the listener; where the port
    /// goes on in another server, its own accept is left as it is.
    pub fn accept_without_waiting(&self) {
        if !self.is_handed_over() {
            // The call cannot fail on a socket; were it to, the listener's timeout ends the wait.
            let _ = listener::set_mode(&self.listener, listener::Mode::NonBlocking);
        }
    }

    /// Accepts no more: later connections are refused, unless the port goes on without this server. To
    /// be called when no thread of the process that leads the model accepts any more.
    pub fn stop_listening(&self) {
        if self.is_handed_over() {
            self.handover.accepts_no_more();
        } else {
            self.stop_listening_at(&self.listener);
        }
    }

    /// As [`Service::stop_listening`], of one of its queues: what follows goes to the others.
    pub fn stop_listening_at(&self, listener: &TcpListener) {
        if !self.stays(listener) {
            self.handover.closes_port();
            // It can only have stopped before, which is what is wanted.
            let _ = listener::stop_listening(listener);
        }
    }

    /// Writes what is left of the logs, and opens them again if that was asked for. To be called now
    /// and then by a process that may have nothing to log for long.
    pub fn keep_logs_up(&self) {
        self.log.flush();
        self.errors.keep_up();
    }

    /// Serves with the model of the configuration until a signal ends it.
    ///
    /// # Errors
    /// What the model could not get from the kernel.
    pub fn run(&self) -> Result<(), ServeError> {
        self.run_beside(Responders::start(self)?)
    }

    /// The same, beside applications that end with it, whatever ends it.
    pub(crate) fn run_beside(&self, responders: Option<Responders>) -> Result<(), ServeError> {
        if !self.config.cpus.is_empty() {
            sys::affinity::pin(&self.config.cpus).map_err(|source| ServeError::System {
                doing: "cannot run on the CPUs that it was given",
                source,
            })?;
        }
        if self.faults.is_some() {
            // All threads and processes that are started from here on inherit it.
            clock::sharpen_timers().map_err(|source| ServeError::System {
                doing: "cannot have timers end when they are due, which planted faults need",
                source,
            })?;
        }
        signals::let_files_end().map_err(|source| ServeError::System {
            doing: "cannot ignore the signal of files that are too large",
            source,
        })?;
        let Self { config, errors, .. } = self;
        let conns = inherited(config);
        listener::adopt(&self.listener, config.listen_backlog(), conns).map_err(|source| {
            ServeError::System { doing: "cannot prepare the listening socket", source }
        })?;
        let (model, address) = (config.model.name, self.address());
        self.note_start();
        let result = (config.model.run)(self);
        gateway::wind_up();
        drop(responders);
        // What programs have left running, once the applications had their time.
        let _ = self.gateways.marks.kill_all();
        self.log.flush();
        self.log.say_lost();
        match &result {
            Ok(()) => errors.note(Level::Notice, format_args!("{model} on {address} has ended")),
            Err(error) => errors.note(Level::Emerg, format_args!("{error}")),
        }
        result
    }

    fn note_start(&self) {
        let (model, address) = (self.config.model.name, self.address());
        match self.config.to_https.as_ref().map(|to| to.port) {
            None => self.errors.note(Level::Notice, format_args!("{model} serves on {address}")),
            Some(port) => self.errors.note(
                Level::Notice,
                format_args!("plain requests at {address} are sent on to TLS on port {port}"),
            ),
        }
    }

    /// Says that a process or a thread could not be started.
    pub(crate) fn note_no_start(&self, what: &str, error: &io::Error) {
        let bounds = match listener::is_exhaustion(error) {
            true => FILES_AND_MEMORY,
            false => PROCESSES,
        };
        self.note_lack(&self.lacks.starts, format_args!("start {what}"), error, bounds);
    }

    /// Says that a connection could not be accepted for lack of descriptors or memory: the first time,
    /// and then how often.
    pub fn note_exhaustion(&self, error: &io::Error) {
        self.note_lack(
            &self.lacks.accepts,
            format_args!("accept a connection"),
            error,
            FILES_AND_MEMORY,
        );
    }

    fn note_lack(
        &self,
        lack: &Episode,
        doing: fmt::Arguments<'_>,
        error: &io::Error,
        bounds: &str,
    ) {
        match lack.happens(clock::monotonic()) {
            None => {}
            Some(Told::First) => self.errors.note(
                Level::Crit,
                format_args!(
                    "cannot {doing}: {error}; {bounds}. While this lasts, one line a minute says how often"
                ),
            ),
            Some(Told::Again { times, seconds }) => self.errors.note(
                Level::Crit,
                format_args!("cannot {doing}: {error}; {times} more times in the last {seconds} s"),
            ),
        }
    }

    /// A connection was accepted: that may be the end of a lack.
    #[inline]
    pub(crate) fn note_accepted(&self, now: Nanos) {
        if self.lacks.accepts.goes_on() {
            self.note_lack_over(now);
        }
    }

    #[cold]
    fn note_lack_over(&self, now: Nanos) {
        if let Some(Over { times, seconds }) = self.lacks.accepts.succeeds(now) {
            let s = if times == 1 { "" } else { "s" };
            self.errors.note(
                Level::Warn,
                format_args!("accepts connections again, after {times} failure{s} in {seconds} s"),
            );
        }
    }
}

/// The kernel refuses a set without any CPU that is there, and silently leaves out of another one
/// those that are not: the server would run on fewer than it says.
fn check_cpus(cpus: &[u32]) -> Result<(), ServeError> {
    let allowed = sys::affinity::allowed().map_err(|source| ServeError::System {
        doing: "cannot ask which CPUs there are",
        source,
    })?;
    match cpus.iter().find(|cpu| !allowed.contains(cpu)) {
        Some(&cpu) => Err(ServeError::NoSuchCpu { cpu, allowed }),
        None => Ok(()),
    }
}

/// Whether this machine can run the model as it is set.
fn check_model(config: &Config) -> Result<(), ServeError> {
    (config.model.available)(&config.settings)
        .map_err(|why| ServeError::NoModelHere { model: config.model.name, why })
}

/// Whether the file could be written when the server starts.
fn check_pid_file(path: Option<&Path>) -> Result<(), ServeError> {
    let Some(path) = path else { return Ok(()) };
    append::check(path).map_err(|source| ServeError::PidFile { path: path.to_owned(), source })
}

/// What its connections are to have.
fn inherited(config: &Config) -> Inherited {
    Inherited {
        call_max: crate::models::call_max(config),
        nodelay: fault::has_nodelay(&config.faults),
    }
}

fn listen(config: &Config) -> Result<TcpListener, ServeError> {
    let address = config.listen;
    sys::listener::bind(address, config.listen_backlog(), inherited(config)).map_err(|source| {
        match source.kind() {
            io::ErrorKind::AddrInUse => ServeError::AddressInUse { address },
            io::ErrorKind::PermissionDenied => ServeError::PortNeedsPrivilege { address },
            io::ErrorKind::AddrNotAvailable => ServeError::AddressNotHere { address },
            _ => ServeError::Listen { address, source },
        }
    })
}

/// The queues that the model's loops have beside the first.
fn listen_more(
    config: &Config,
    first: &TcpListener,
    mut queues: Vec<TcpListener>,
) -> Result<Vec<TcpListener>, ServeError> {
    let wanted = crate::models::queues(config)? - 1;
    queues.truncate(wanted);
    if wanted == 0 || queues.len() < wanted {
        let more = wanted - queues.len();
        let opened = listener::bind_more(first, config.listen_backlog(), inherited(config), more);
        queues.extend(opened.map_err(|source| ServeError::System {
            doing: "cannot open a queue of the port for each loop (accept = reuseport)",
            source,
        })?);
    }
    Ok(queues)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_port_in_use_is_named_with_the_command_that_finds_its_owner() {
        let first = Service::bind(testing::config()).unwrap();
        let mut config = testing::config();
        config.listen = first.address();
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(error.contains("in use") && error.contains("ss -ltnp"), "{error}");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused_before_the_port_is_open() {
        let here = sys::affinity::allowed().unwrap()[0];
        let mut config = testing::config();
        config.cpus = vec![here, 100_000];
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(error.contains("no CPU 100000") && error.contains(&here.to_string()), "{error}");
    }

    #[test]
    fn a_directory_that_is_missing_or_none_is_told_apart() {
        let mut config = testing::config();
        config.content = crate::config::Content::Directory("/nonexistent/site".into());
        let error = Service::bind(config.clone()).unwrap_err().to_string();
        assert!(error.contains("there is no directory /nonexistent/site"), "{error}");
        config.content = crate::config::Content::Directory("/etc/passwd".into());
        let error = Service::bind(config).unwrap_err().to_string();
        assert!(error.contains("/etc/passwd is not a directory"), "{error}");
    }
}
