//! Gateways, which answer requests instead of files: a CGI program started for the request, or a FastCGI application
//! that runs already. Owns which requests those are, and everything between the end of such a request and the bytes of
//! its answer; `exchange::gateway_relay` sends that to the client. Start reading at `Gateways::route`, then `Call`.
//!
//! The request's body is complete before anything is started (see `spool`). So its length is known however it was
//! framed, and a program that answers before it has read everything cannot block us. Nothing here waits: a program's
//! output and an application's socket are read as far as they have arrived, and the model of the server waits for them
//! as for a client.

mod cgi;
mod environment;
mod fastcgi;
mod keeper;
mod script;
mod spawned;
mod spool;

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::fs::Access;
use sys::mark::Marks;
use units::Nanos;
use wire::Version;
use wire::cgi::CgiHead;
use wire::target::SafePath;

use crate::SiteError;
use crate::config::{
    ErrorPage, GatewayConfig, GatewayKind, HalfClosed, HostConfig, Mapping, SiteConfig,
};
use crate::log::ErrorLog;
use cgi::{Bounds, Running};
use environment::{About, Environment};
use fastcgi::{Address, Application, Conversation};
use script::{Finder, Script};
use spool::Spool;

pub use keeper::wind_up;
pub use spawned::SpawnedApplications;

/// Redirects within the server in a row (RFC 3875, 6.2.2), each of which starts a program.
pub(crate) const REDIRECTS_MAX: u32 = 10;

/// Bytes of an answer that are read before they are sent: the size of a pipe.
const BATCH_BYTES: usize = 64 * 1024;

/// All gateways of a server.
#[derive(Debug)]
pub struct Gateways {
    all: Vec<Gateway>,
    /// Marks of programs and applications, and of all processes that they start.
    pub marks: Arc<Marks>,
}

/// Which gateway answers a request, and for which host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Route {
    /// Number of the gateway.
    gateway: usize,
    /// Number of the host.
    host: usize,
}

/// One `[[gateway]]`, ready for use.
#[derive(Debug)]
pub(crate) struct Gateway {
    config: GatewayConfig,
    /// By the number of the host; `None`: it does not answer there.
    finders: Box<[Option<Finder>]>,
    /// The application that is asked over sockets; `None`: programs are started.
    application: Option<Application>,
    /// Requests in progress, in this process.
    running: AtomicU32,
}

impl Gateways {
    /// Opens what the configuration names.
    ///
    /// # Errors
    /// A directory of programs that is missing, not a directory, or forbidden; an error page that is a program.
    pub(crate) fn open(config: &SiteConfig) -> Result<Self, SiteError> {
        let (hosts, _) = config.all_hosts();
        check_error_pages(config, &hosts)?;
        let open = |gateway: &GatewayConfig| {
            let finders = Finder::of_hosts(gateway, &hosts)?;
            let application = application(gateway)?;
            let running = AtomicU32::new(0);
            Ok(Gateway { config: gateway.clone(), finders, application, running })
        };
        let all = config.gateways.iter().map(open).collect::<Result<_, _>>()?;
        let marks = Marks::new().map_err(|source| SiteError::System {
            doing: "cannot make marks for programs",
            source,
        })?;
        Ok(Self { all, marks: Arc::new(marks) })
    }

    /// Every problem with what the configuration names that can be found before a request arrives.
    pub(crate) fn check(config: &SiteConfig) -> Vec<SiteError> {
        let refused = |reason| SiteError::Gateway { reason };
        let opened = Self::open(config).err();
        opened.into_iter().chain(config.gateways.iter().flat_map(missing).map(refused)).collect()
    }

    /// TCP ports of applications.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.all
            .iter()
            .filter_map(|gateway| gateway.application.as_ref())
            .flat_map(Application::ports)
    }

    /// The first gateway that answers this path and query of that host. The normalised path decides, since it is the
    /// one that would be opened.
    pub(crate) fn route(&self, target: &[u8], host: usize) -> Option<Route> {
        if self.all.is_empty() {
            return None;
        }
        let path = SafePath::new(std::str::from_utf8(target).ok()?).ok()?;
        let is_of_host = |gateway: &Gateway| gateway.finders.get(host).is_some_and(Option::is_some);
        let takes_it = |one: &Gateway| is_of_host(one) && takes(&one.config.mapping, &path);
        let gateway = self.all.iter().position(takes_it)?;
        Some(Route { gateway, host })
    }
}

/// Whether a gateway with that mapping answers a request for `path`.
fn takes(mapping: &Mapping, path: &SafePath<'_>) -> bool {
    match mapping {
        Mapping::Path(prefix) => {
            let path = path.path();
            path.starts_with(prefix.as_bytes())
                || Some(path) == prefix.as_bytes().strip_suffix(b"/").filter(|p| !p.is_empty())
        }
        Mapping::Extension(extension) => {
            let is_it =
                |name: &[u8]| name.len() > extension.len() && name.ends_with(extension.as_bytes());
            path.segments().any(is_it)
        }
    }
}

/// # Errors
/// An error page that is a program: its source would be sent.
fn check_error_pages(config: &SiteConfig, hosts: &[HostConfig]) -> Result<(), SiteError> {
    for host in hosts {
        let is_programs = |path: &SafePath<'_>| {
            let mut its = config.gateways.iter().filter(|gateway| gateway.is_for(host));
            its.any(|gateway| takes(&gateway.mapping, path))
        };
        for (status, page) in &host.errors {
            let ErrorPage::OfSite(page) = page else { continue };
            if SafePath::new(page).is_ok_and(|path| is_programs(&path)) {
                return Err(SiteError::Gateway {
                    reason: format!(
                        "[errors] {status} = \"{page}\" is a program of a gateway, and an error page is sent as a file: name another page"
                    ),
                });
            }
        }
    }
    Ok(())
}

/// Programs that are not there or may not be run, and directories of sockets that are not there.
fn missing(gateway: &GatewayConfig) -> Vec<String> {
    let runs_script = gateway.kind == GatewayKind::Cgi && gateway.interpreter.is_none();
    let spawned = gateway.spawn.as_ref().map(|spawn| Path::new(&spawn.command[0]));
    let programs = [
        gateway.interpreter.as_deref(),
        // A script that does not exist was reported before.
        gateway.script.as_deref().filter(|script| runs_script && script.exists()),
        spawned,
    ];
    let cannot_run = |program: &Path| {
        let error = rustix::fs::access(program, Access::EXEC_OK).err()?;
        Some(format!("{} cannot be run: {error}", program.display()))
    };
    let no_directory = |socket: &String| {
        let directory = Path::new(socket.strip_prefix("unix:")?).parent()?;
        let is_missing = !directory.is_dir();
        is_missing.then(|| {
            let directory = directory.display();
            format!("the directory {directory} of the socket `{socket}` does not exist: is the application installed?")
        })
    };
    let bodies = &gateway.body_directory;
    let no_bodies =
        (!bodies.is_dir()).then(|| format!("`body_directory` {} does not exist", bodies.display()));
    let programs = programs.into_iter().flatten().filter_map(cannot_run);
    programs.chain(gateway.sockets.iter().filter_map(no_directory)).chain(no_bodies).collect()
}

fn application(gateway: &GatewayConfig) -> Result<Option<Application>, SiteError> {
    if gateway.kind == GatewayKind::Cgi {
        return Ok(None);
    }
    if gateway.spawn.is_some() {
        return Ok(Some(Application::spawned(gateway.connections_kept_max)));
    }
    let addresses =
        gateway.sockets.iter().map(|text| Address::parse(text)).collect::<Result<_, _>>();
    let addresses = addresses.map_err(|reason| SiteError::Gateway { reason })?;
    Ok(Some(Application::new(addresses, gateway.connections_kept_max)))
}

impl Gateway {
    /// Whether a client that has closed its sending side is taken to have left.
    pub(crate) fn aborts_on_half_close(&self) -> bool {
        self.config.half_closed == HalfClosed::Abort
    }

    /// Bytes of a request's body at most.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        self.config.body_bytes_max.0
    }
}

/// Why there is no answer, and what the client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: u16,
    /// For the error log; `None` if only the client is to blame.
    pub(crate) why: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: Some(why.into()) }
    }
}

/// What a gateway has to know of a request, besides the configuration.
#[derive(Debug)]
pub(crate) struct Requested<'a> {
    /// Bytes of the request's head.
    pub(crate) head: &'a [u8],
    pub(crate) version: Version,
    /// The client's connection.
    pub(crate) socket: BorrowedFd<'a>,
    pub(crate) client: SocketAddr,
    /// The connection uses TLS.
    pub(crate) is_secure: bool,
    /// The user, if a rule demanded a password and it was right (Basic).
    pub(crate) user: Option<&'a str>,
    /// It announces a body, which may be empty.
    pub(crate) has_body: bool,
    /// Where the server listens, if the socket does not tell its own end.
    pub(crate) listens_at: SocketAddr,
}

/// The file that a gateway waits for; it never blocks.
#[derive(Debug)]
pub struct Awaited<'a> {
    /// A program's output, or the socket of an application.
    pub file: BorrowedFd<'a>,
    /// Whether to wait until it can be read.
    pub reads: bool,
    /// Whether to wait until it can be written.
    pub writes: bool,
    /// A number that no other file of the process ever has; a file that is used again gets a new one. A loop that has
    /// watched this id need not do so again.
    pub id: u64,
}

/// What was read from the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayOutput {
    /// Perhaps bytes. If it `waits`, there are no more for now.
    Some { waits: bool },
    /// The end, perhaps after last bytes.
    End,
}

/// One request that a gateway answers. `A` is what the caller keeps of an answer whose head it has taken.
#[derive(Debug)]
pub(crate) struct Call<'s, A> {
    gateway: &'s Gateway,
    finder: &'s Finder,
    errors: &'s Arc<ErrorLog>,
    /// Path and query that led here.
    target: Vec<u8>,
    /// The script that is to answer; the status if there is none.
    script: Result<Script, u16>,
    spool: Spool,
    backend: Option<Backend<'s>>,
    /// Its place among `programs_max`, from its start on.
    slot: Option<Slot<'s>>,
    /// `None`: the head of the answer was not taken yet.
    pub(crate) answering: Option<A>,
    /// What was read of it and not passed on yet.
    buffer: Vec<u8>,
    /// Bytes that the gateway has sent.
    taken: u64,
    /// When it last sent something, or its last bytes were passed on.
    since: Nanos,
    /// How many redirects within the server led here.
    redirects: u32,
}

/// What makes an answer.
#[derive(Debug)]
enum Backend<'s> {
    Cgi(Running),
    FastCgi(Conversation<'s>),
}

/// One of the places of `programs_max`; free again when dropped.
#[derive(Debug)]
struct Slot<'s>(&'s AtomicU32);

impl<'s> Slot<'s> {
    fn take(gateway: &'s Gateway) -> Option<Self> {
        let most = gateway.config.programs_max;
        let one_more = |running: u32| (running < most).then_some(running + 1);
        gateway.running.fetch_update(Relaxed, Relaxed, one_more).ok()?;
        Some(Self(&gateway.running))
    }
}

impl Drop for Slot<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl<'s, A> Call<'s, A> {
    /// For a request of `target`, which `route` leads to its gateway.
    pub(crate) fn new(
        gateways: &'s Gateways,
        errors: &'s Arc<ErrorLog>,
        route: Route,
        target: Vec<u8>,
    ) -> Self {
        Self::redirected(gateways, errors, route, target, 0)
    }

    /// The same, after that many redirects within the server.
    pub(crate) fn redirected(
        gateways: &'s Gateways,
        errors: &'s Arc<ErrorLog>,
        route: Route,
        target: Vec<u8>,
        redirects: u32,
    ) -> Self {
        let gateway = &gateways.all[route.gateway];
        let finder = gateway.finders[route.host].as_ref();
        let finder = finder.expect("only gateways of a host are its routes");
        let text = std::str::from_utf8(&target).unwrap_or_default();
        let path = SafePath::new(text).map_err(|_| 400);
        let script = path.and_then(|path| finder.find(&path));
        Self {
            gateway,
            finder,
            errors,
            target,
            script,
            spool: Spool::default(),
            backend: None,
            slot: None,
            answering: None,
            buffer: Vec::new(),
            taken: 0,
            since: Nanos::ZERO,
            redirects,
        }
    }

    /// The gateway that answers it.
    pub(crate) fn gateway(&self) -> &'s Gateway {
        self.gateway
    }

    /// How many redirects within the server led here.
    pub(crate) fn redirects(&self) -> u32 {
        self.redirects
    }

    /// Takes bytes of the request's body.
    ///
    /// # Errors
    /// 500 or 507 if they cannot be kept.
    pub(crate) fn collect(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        // If nothing answers, the body is discarded.
        if self.script.is_err() {
            return Ok(());
        }
        let config = &self.gateway.config;
        let kept = self.spool.push(bytes, config.body_memory_bytes_max.0, &config.body_directory);
        kept.map_err(|error| {
            let directory = config.body_directory.display();
            let why = format!(
                "cannot store the body of a request in {directory}: {error}; `df -h` shows the free space, `body_directory` sets another directory"
            );
            let is_full = error.kind() == io::ErrorKind::StorageFull;
            Failure::new(if is_full { 507 } else { 500 }, why)
        })
    }

    /// Whether a program or an application works on it.
    pub(crate) fn has_started(&self) -> bool {
        self.backend.is_some()
    }

    /// Starts a program, or passes the request to an application.
    ///
    /// # Errors
    /// The status if that is not possible.
    pub(crate) fn start(
        &mut self,
        requested: &Requested<'_>,
        marks: &Marks,
        now: Nanos,
    ) -> Result<(), Failure> {
        let script = self.script.as_ref().map_err(|&status| Failure { status, why: None })?;
        let slot = Slot::take(self.gateway).ok_or_else(|| {
            let most = self.gateway.config.programs_max;
            Failure::new(
                503,
                format!("{most} requests are in progress, the maximum of `programs_max`"),
            )
        })?;
        let is_redirected = self.redirects > 0;
        let server = rustix::net::getsockname(requested.socket).ok();
        let server = server.and_then(|any| SocketAddr::try_from(any).ok());
        let environment = Environment::of(&About {
            gateway: self.gateway,
            document_root: self.finder.document_root(),
            script,
            requested,
            target: &self.target,
            is_redirected,
            content_length: (requested.has_body && !is_redirected).then(|| self.spool.len()),
            server: server.unwrap_or(requested.listens_at),
        });
        self.backend = Some(match &self.gateway.application {
            None => {
                let mark = marks.next();
                let bounds = Bounds { grace: self.gateway.config.timeout, mark };
                let spool = &mut self.spool;
                Backend::Cgi(Running::start(script, &environment, spool, self.errors, bounds)?)
            }
            Some(application) => {
                let name = script.name();
                Backend::FastCgi(Conversation::begin(application, &environment, name)?)
            }
        });
        self.slot = Some(slot);
        self.since = now;
        Ok(())
    }

    /// Bytes that the gateway gave.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Reads the gateway's output, as much as one turn allows.
    ///
    /// # Errors
    /// 502 if its file is broken, or it sends more than it may.
    pub(crate) fn take(&mut self, now: Nanos) -> Result<GatewayOutput, Failure> {
        let Some(backend) = &mut self.backend else { return Ok(GatewayOutput::End) };
        let before = self.buffer.len();
        let got = match backend {
            Backend::Cgi(running) => {
                running.read(&mut self.buffer, BATCH_BYTES).map_err(|error| {
                    Failure::new(502, format!("its output cannot be read: {error}"))
                })?
            }
            Backend::FastCgi(conversation) => {
                let note = |name: &str, text: &str| keeper::note(self.errors, name, text);
                conversation.read(&mut self.buffer, BATCH_BYTES, &self.spool, &note)?
            }
        };
        let count = self.buffer.len() - before;
        if count > 0 {
            self.since = now;
        }
        self.taken += count as u64;
        match self.gateway.config.output_bytes_max.0 {
            most if most > 0 && self.taken > most => {
                Err(Failure::new(502, "its output exceeds `output_bytes_max`"))
            }
            _ => Ok(got),
        }
    }

    /// Its file, and what to wait for.
    pub(crate) fn awaited(&self) -> Option<Awaited<'_>> {
        match self.backend.as_ref()? {
            Backend::Cgi(running) => Some(running.awaited()),
            Backend::FastCgi(conversation) => conversation.awaited(),
        }
    }

    /// Until when it may send nothing.
    pub(crate) fn deadline(&self) -> Nanos {
        self.since.saturating_add(self.gateway.config.timeout)
    }

    /// Its output was sent: from now on it has its full timeout again.
    pub(crate) fn was_sent(&mut self, now: Nanos) {
        self.since = now;
    }

    /// The head of its answer, if that is complete; `ended`: no more will come.
    ///
    /// # Errors
    /// 502 if it is invalid.
    pub(crate) fn read_head(&mut self, ended: bool) -> Result<Option<CgiHead>, Failure> {
        let most = usize::try_from(self.gateway.config.head_bytes_max.0).unwrap_or(usize::MAX);
        CgiHead::read(&self.buffer, ended, most)
            .map_err(|fault| Failure::new(502, fault.to_string()))
    }

    /// Bytes of the body that were read together with that head.
    pub(crate) fn body_len(&self, head: &CgiHead) -> u64 {
        (self.buffer.len() - head.len) as u64
    }

    /// The head was passed on.
    pub(crate) fn begin_body(&mut self, head: &CgiHead, answering: A) {
        self.buffer.drain(..head.len);
        self.answering = Some(answering);
    }

    /// What the caller keeps of the answer, and bytes of the body to be passed on.
    pub(crate) fn body(&mut self) -> (Option<&mut A>, &[u8]) {
        (self.answering.as_mut(), &self.buffer)
    }

    /// Those bytes were passed on.
    pub(crate) fn used_body(&mut self) {
        self.buffer.clear();
    }

    /// The answer is complete: a program may still run for a while.
    pub(crate) fn finish(&mut self) {
        match self.backend.take() {
            Some(Backend::Cgi(running)) => running.finish(),
            Some(Backend::FastCgi(_)) | None => {}
        }
        self.slot = None;
    }

    /// Writes a line about it to the error log.
    pub(crate) fn note(&self, what: &str) {
        let name = match &self.script {
            Ok(script) => script.name(),
            Err(_) => String::from_utf8_lossy(&self.target).into_owned(),
        };
        keeper::note(self.errors, &name, what);
    }
}

/// A number for a file that is awaited; see [`Awaited::id`].
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::config_with;

    #[test]
    fn a_page_for_an_error_is_no_program() {
        let gateway = "[[gateway]]\npath = \"/cgi-bin/\"\nscript = \"/bin/true\"\n\
            [[gateway]]\nextension = \".php\"\ninterpreter = \"/bin/true\"\n";
        for (page, is_refused) in [
            ("/404.php", true),
            ("/cgi-bin/404", true),
            ("/x/../cgi-bin/404", true),
            ("/404.html", false),
            ("/.php", false),
        ] {
            let config = config_with("/", &format!("[errors]\n404 = \"{page}\"\n{gateway}"));
            let refused = check_error_pages(&config, &config.all_hosts().0).is_err();
            assert_eq!(refused, is_refused, "{page}");
        }
    }

    #[test]
    fn a_check_names_each_program_and_directory_that_is_missing() {
        let text = "[[gateway]]\npath = \"/a/\"\nscript = \"/usr/nonexistent\"\n\
            [[gateway]]\npath = \"/b/\"\nkind = \"fastcgi\"\nsocket = \"unix:/nonexistent/sock\"\n\
            [[gateway]]\npath = \"/c/\"\nkind = \"fastcgi\"\nspawn = { command = [\"/etc/passwd\"] }\n\
            [[gateway]]\npath = \"/d/\"\nscript = \"/bin/true\"\n";
        let config = config_with("/", text);
        let said: Vec<_> = Gateways::check(&config).iter().map(ToString::to_string).collect();
        let expected = ["the script /usr/nonexistent:", "directory /nonexistent of", "/etc/passwd"];
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for (said, expected) in said.iter().zip(expected) {
            assert!(said.contains(expected), "{said}");
        }
    }
}
