//! The life of a server from its start to its end, across changes of its configuration. The process that was started
//! supervises: it keeps the listening socket and its own pid. Each reading of the configuration is served by a
//! generation, a process that it forks. Owns which generation serves when. Start reading at [`supervise`].
//!
//! A reload (SIGHUP) loses no connection, because the socket is never closed:
//! 1 the configuration is read and everything it names is opened; if something is wrong, that is logged, and all goes
//!   on as before;
//! 2 the next generation is forked, and waits;
//! 3 the serving generation is told that the port goes on without it, and drains: it answers what it has, and each
//!   kept-alive connection once more, with `Connection: close`;
//! 4 when it accepts no more, the next one begins. Connections that arrive in between wait in the socket's queue. So
//!   two generations never accept at once. Whether the socket blocks is the same for all processes that have it, but
//!   only one model at a time decides it.
//!
//! The supervisor forks and serves nothing itself. That costs less than starting another program would, and it keeps
//! the rights to open ports and keys that a generation gives up. While nothing changes the supervisor sleeps, and no
//! request passes through it. A generation dies with its supervisor (PR_SET_PDEATHSIG), and a supervisor ends the way
//! its serving generation ended.
//!
//! A generation that is killed, or fails after it has served, is followed by another of the same configuration (see
//! `restarts`): connections that it had accepted are lost, those that wait in the queue are served. One that cannot
//! begin to serve is not followed, since the next one could not either. Nor is one that was draining, since its port is
//! closed.

mod generation;
mod notify;
mod redirect;
mod restarts;

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use site::Site;
use site::log::{ErrorLog, Level, Reopen};
use sys::clock;
use sys::identity::Identity;
use sys::process::{self, Ended, Pid, Signal};
use sys::signals::{Mail, Stop, SupervisorEvent};
use units::Nanos;
use wire::tls::TicketKeys;

use crate::ServeError;
use crate::bind::Given;
use crate::config::Config;
use crate::rights;
use crate::service::Service;
use generation::Generation;
pub use notify::Notify;
use redirect::{Prepared, Redirect};
use restarts::{RESTARTS_MAX, Restarts, WITHIN};

/// How long a generation may take to stop accepting, once it was told to. If a process of its model is busy for longer,
/// nobody waits for it: both generations then accept for a while.
const HANDOVER_MAX: Nanos = Nanos::from_secs(2);

/// How often to look whether it has stopped.
const HANDOVER_TICK: Nanos = Nanos::from_millis(2);

/// A generation that fails within this time after a reload is followed by one with the configuration before.
const PROBATION: Nanos = Nanos::from_secs(10);

/// A generation that fails by itself within this time could not begin, and the next could not either.
const BEGINNING: Nanos = Nanos::from_secs(1);

/// How long to wait before a generation that could not be started is tried again.
const RETRY: Nanos = Nanos::from_secs(1);

/// What a server is started with.
pub struct Start<'a> {
    /// The configuration to serve first.
    pub config: Config,
    /// Reads it again, for a reload; or says what is wrong with it.
    pub read: &'a dyn Fn() -> Result<Config, String>,
    /// The file that `stderr` names for the error log.
    pub stderr: Option<File>,
    /// A listening socket that was passed to the process; `listen` then has no effect.
    pub passed: Option<TcpListener>,
    /// The service manager.
    pub notify: Notify,
    /// Called once, when the port is open.
    pub opened: &'a mut dyn FnMut(&Service),
}

impl std::fmt::Debug for Start<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Serves until SIGTERM (drains) or SIGINT (stops at once); SIGHUP reloads, SIGUSR1 opens the logs
/// again. Needs a process with one thread.
///
/// # Errors
/// Whatever keeps the server from starting, or ended it.
pub fn supervise(start: Start<'_>) -> Result<(), ServeError> {
    // Before anyone is told the address: a signal that comes from then on waits for us.
    let mail = Mail::new().map_err(system("cannot take signals as a file"))?;
    let reopen = Reopen::new().map_err(system("cannot share a count"))?;
    let tickets = TicketKeys::new(clock::wall_secs_coarse);
    let is_passed = start.passed.is_some();
    let given = Given {
        stderr: copy_of(start.stderr.as_ref())?,
        listeners: start.passed.into_iter().collect(),
        is_lent: is_passed,
        reopen: Some(reopen.clone()),
        tickets: Some(tickets.clone()),
        ..Given::default()
    };
    let config = start.config;
    let service = Service::bind_given(config.clone(), given)?;
    let given = Given {
        stderr: copy_of(start.stderr.as_ref())?,
        reopen: Some(reopen.clone()),
        ..Given::default()
    };
    let plain = Redirect::prepare(&config, service.address(), None, given)?;
    let _pid_file = PidFile::write(config.pid_file.as_deref())?;
    (start.opened)(&service);
    let serving = Generation::begin(&service, config, clock::monotonic())
        .map_err(system("cannot start the process that serves"))?;
    let redirect = plain.map(begin_redirect).transpose();
    let redirect = redirect.map_err(system("cannot start the process that redirects"))?;
    serving.go();
    let Service { listener, more_listeners, site, .. } = service;
    let errors = Arc::clone(&site.errors);
    // It holds the port too, which must close when another configuration listens elsewhere.
    drop(site);
    let mut supervisor = Supervisor {
        mail,
        reopen,
        tickets,
        read: start.read,
        stderr: start.stderr,
        notify: start.notify,
        is_passed,
        listener,
        more_listeners,
        errors,
        serving,
        redirect,
        before: Vec::new(),
        restarts: Restarts::default(),
        restarts_of_redirect: Restarts::default(),
        retry: None,
        draining: Vec::new(),
        ending: false,
        over: None,
    };
    supervisor.tell_ready();
    supervisor.watch()
}

struct Supervisor<'a> {
    mail: Mail,
    reopen: Reopen,
    /// With them clients resume their sessions after a reload too. Kept in a process that talks to no client, and
    /// passed on only by fork.
    tickets: TicketKeys,
    read: &'a dyn Fn() -> Result<Config, String>,
    stderr: Option<File>,
    notify: Notify,
    /// The socket was passed to us, so it cannot be exchanged.
    is_passed: bool,
    /// The listener of the serving generation, and further queues of its port.
    listener: Arc<TcpListener>,
    more_listeners: Vec<Arc<TcpListener>>,
    errors: Arc<ErrorLog>,
    serving: Generation,
    /// The process that redirects plain requests to it.
    redirect: Option<Redirect>,
    /// The configurations to go back to if a reload fails, the last first: the one before it and, if that was on
    /// probation too, the one before that, which had proved itself. At most two.
    before: Vec<Config>,
    restarts: Restarts,
    restarts_of_redirect: Restarts,
    /// Set while nobody serves, since the next generation could not be started: when to try again, and how the last one
    /// had ended.
    retry: Option<(Nanos, String)>,
    /// Generations that were followed by another and have not ended.
    draining: Vec<Pid>,
    /// The server was asked to end.
    ending: bool,
    /// How the generation that served last has ended.
    over: Option<Result<(), ServeError>>,
}

impl Supervisor<'_> {
    /// Handles signals until no generation is left, and returns how the last has ended.
    fn watch(&mut self) -> Result<(), ServeError> {
        let broken = "cannot wait for signals";
        loop {
            // One signal may stand for the ends of several processes.
            while let Some((pid, ended)) = process::reap().map_err(system(broken))? {
                self.draining.retain(|draining| *draining != pid);
                if pid == self.serving.pid && !self.serving.has_ended {
                    self.over = self.served(ended);
                } else if self.redirect.as_ref().is_some_and(|redirect| redirect.pid() == pid) {
                    self.redirect_lost(ended);
                }
            }
            if let Some((_, why)) = self.retry.take_if(|(at, _)| *at <= clock::monotonic()) {
                self.over = self.serve_again(why);
            }
            if self.over.is_some() {
                self.end_redirect(Signal::TERM);
            }
            if self.draining.is_empty()
                && let Some(result) = self.over.take()
            {
                return result;
            }
            let retry_in = self.retry.as_ref().map(|(at, _)| at.saturating_sub(clock::monotonic()));
            let most = retry_in.unwrap_or(Nanos::from_secs(60));
            match self.mail.next(most).map_err(system(broken))? {
                Some(SupervisorEvent::End(stop)) => self.end(stop),
                Some(SupervisorEvent::Reload) if !self.ending && self.over.is_none() => {
                    self.reload()
                }
                Some(SupervisorEvent::Reopen) => self.reopen(),
                Some(SupervisorEvent::Reload | SupervisorEvent::ChildEnded) => {}
                // Now and then: a key that nobody may use any more must not stay here.
                None => self.tickets.keep_up(),
            }
        }
    }

    fn end(&mut self, stop: Stop) {
        self.ending = true;
        self.notify.tell("STOPPING=1\nSTATUS=ends");
        let (signal, what) = match stop {
            Stop::Drain => (Signal::TERM, "SIGTERM: answers the open requests, and ends"),
            Stop::AtOnce => (Signal::INT, "SIGINT: ends at once"),
        };
        self.errors.note(Level::Notice, format_args!("{what}"));
        if let Some((_, why)) = self.retry.take() {
            self.over = Some(Err(ServeError::Ended { why }));
        } else if self.over.is_none() {
            process::signal(self.serving.pid, signal);
        }
        self.end_redirect(signal);
        self.signal_draining(signal);
    }

    fn end_redirect(&mut self, signal: Signal) {
        if let Some(redirect) = self.redirect.take() {
            process::signal(redirect.pid(), signal);
            self.draining.push(redirect.pid());
        }
    }

    /// The end of the redirecting process is no reason for the others to end.
    fn redirect_lost(&mut self, ended: Ended) {
        let Some(lost) = self.redirect.take() else { return };
        let mut why = lost.generation.reason(ended);
        let is_failure = lost.generation.is_failure(ended, clock::monotonic());
        if is_failure
            && !self.ending
            && !lost.generation.was_ending()
            && self.restarts_of_redirect.take(clock::monotonic()).is_some()
        {
            match self.redirect_again(lost) {
                Ok(next) => {
                    self.redirect = Some(next);
                    let what = "the process that redirects plain requests to TLS was restarted";
                    return self.errors.note(Level::Alert, format_args!("{what}: {why}"));
                }
                Err(error) => why = format!("{why}; another cannot be started: {error}"),
            }
        }
        self.errors.note(
            Level::Alert,
            format_args!(
                "plain requests are not redirected to TLS until SIGHUP: that process ended: {why}"
            ),
        );
    }

    /// Starts another process in place of the lost one, at its port.
    fn redirect_again(&self, lost: Redirect) -> Result<Redirect, ServeError> {
        let Redirect { listener, generation } = lost;
        let given = Given {
            stderr: copy_of(self.stderr.as_ref())?,
            listeners: vec![listener.try_clone().map_err(system("cannot duplicate a descriptor"))?],
            reopen: Some(self.reopen.clone()),
            ..Given::default()
        };
        let service = Service::bind_given(generation.config.clone(), given)?;
        let prepared = Prepared { service, config: generation.config };
        begin_redirect(prepared).map_err(system("cannot start a process"))
    }

    fn signal_draining(&self, signal: Signal) {
        for &pid in &self.draining {
            process::signal(pid, signal);
        }
    }

    /// Reopens the logs. Every process sees that before its next line, and those that wait within some seconds.
    fn reopen(&self) {
        // With our rights: serving processes may have lost the right to open files.
        let used = rights::logs(&self.serving.config);
        let owner = self.serving.identity.as_ref().map(Identity::uid);
        let failed = self.reopen.reopen_used(|path| used.contains(path), owner);
        self.errors.note(Level::Notice, format_args!("SIGUSR1: reopens the logs"));
        for (path, error) in failed {
            let path = path.display();
            self.errors.note(
                Level::Error,
                format_args!("cannot reopen the log {path}: {error}; lines go to the old file"),
            );
        }
    }

    fn reload(&mut self) {
        let now_us = clock::monotonic().0 / 1000;
        self.notify.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reloads"));
        let reloaded = (self.read)().and_then(|config| {
            let (before, is_proven) = (self.serving.config.clone(), !self.is_on_probation());
            self.follow(config)?;
            self.before.truncate(if is_proven { 0 } else { 1 });
            self.before.push(before);
            Ok(())
        });
        match reloaded {
            Ok(()) => self
                .errors
                .note(Level::Notice, format_args!("SIGHUP: serves with the new configuration")),
            Err(why) => self.errors.note(
                Level::Error,
                format_args!("SIGHUP: keeps the old configuration, the new one is refused: {why}"),
            ),
        }
        self.tell_ready();
    }

    /// Replaces the serving generation by one that serves `config`.
    fn follow(&mut self, config: Config) -> Result<(), String> {
        let goes_on = self.is_passed || config.listen == self.serving.config.listen;
        let says = |error: io::Error| format!("cannot duplicate a descriptor: {error}");
        let queues = std::iter::once(&self.listener).chain(&self.more_listeners);
        let listeners = match goes_on {
            true => {
                queues.map(|queue| queue.try_clone()).collect::<Result<_, _>>().map_err(says)?
            }
            false => Vec::new(),
        };
        let stderr = self.stderr.as_ref().map(File::try_clone).transpose().map_err(says)?;
        let tickets = Some(self.tickets.clone());
        let reopen = Some(self.reopen.clone());
        let beside = copy_of(self.stderr.as_ref()).map_err(|error| error.to_string())?;
        let beside = Given { stderr: beside, reopen: reopen.clone(), ..Given::default() };
        let workers_before = self.serving.workers_for(&config);
        let is_lent = self.is_passed;
        let given = Given { stderr, listeners, is_lent, reopen, tickets, workers_before };
        let service =
            Service::bind_given(config.clone(), given).map_err(|error| error.to_string())?;
        let plain = Redirect::prepare(&config, service.address(), self.redirect.as_ref(), beside)
            .map_err(|error| error.to_string())?;
        let next = Generation::begin(&service, config, clock::monotonic())
            .map_err(|error| format!("cannot start another process: {error}"))?;
        let last = std::mem::replace(&mut self.serving, next);
        self.retry = None;
        if !last.has_ended {
            self.draining.push(last.pid);
            if goes_on {
                hand_over(&last, 1 + service.more_listeners.len());
            } else {
                // No other generation has its port: it also answers the connections that wait there, and closes it.
                process::signal(last.pid, Signal::TERM);
            }
        }
        self.serving.go();
        Service {
            listener: self.listener,
            more_listeners: self.more_listeners,
            site: Site { errors: self.errors, .. },
            ..
        } = service;
        self.follow_redirect(plain);
        Ok(())
    }

    /// Replaces the redirecting process by one with the present configuration.
    fn follow_redirect(&mut self, plain: Option<Prepared>) {
        let last = self.redirect.take();
        let next = match plain.map(prepared_redirect).transpose() {
            Ok(next) => next,
            Err(error) => {
                let what = "cannot start the process that redirects plain requests to TLS";
                self.errors.note(Level::Alert, format_args!("{what}: {error}"));
                None
            }
        };
        if let Some(last) = last {
            let listens = |next: &Redirect| next.generation.config.listen;
            let goes_on = next.as_ref().map(listens) == Some(last.generation.config.listen);
            self.draining.push(last.pid());
            match goes_on {
                true => hand_over(&last.generation, 1),
                false => _ = process::signal(last.pid(), Signal::TERM),
            }
        }
        if let Some(next) = &next {
            next.generation.go();
        }
        self.redirect = next;
    }

    /// The generation that serves has ended. `None`: another has taken its place.
    fn served(&mut self, ended: Ended) -> Option<Result<(), ServeError>> {
        self.serving.has_ended = true;
        self.serving.end_programs();
        if ended == Ended::Exited(0) {
            return Some(Ok(()));
        }
        let why = self.serving.reason(ended);
        let is_ending = self.ending || self.serving.was_ending();
        let may_serve_again = self.serving.is_failure(ended, clock::monotonic()) && !is_ending;
        while self.is_on_probation()
            && !is_ending
            && let Some(before) = self.before.pop()
        {
            self.errors.note(
                Level::Alert,
                format_args!("the server failed after the reload and went back to the previous configuration: {why}"),
            );
            match self.follow(before) {
                Ok(()) => return None,
                Err(error) => self.errors.note(Level::Emerg, format_args!("{error}")),
            }
        }
        self.before.clear();
        if may_serve_again {
            return self.serve_again(why);
        }
        self.errors.note(Level::Emerg, format_args!("{why}; the server ends"));
        self.give_up(why)
    }

    /// Starts another generation of the same configuration, or will try to. Otherwise returns how the server ends.
    fn serve_again(&mut self, why: String) -> Option<Result<(), ServeError>> {
        let now = clock::monotonic();
        let Some(number) = self.restarts.take(now) else {
            let why = format!(
                "{why}; it was restarted {RESTARTS_MAX} times within {WITHIN}, which is the maximum"
            );
            self.errors.note(Level::Emerg, format_args!("{why}; the server ends"));
            return self.give_up(why);
        };
        self.notify.tell("STATUS=starts the process that serves again");
        match self.follow(self.serving.config.clone()) {
            Ok(()) => {
                let what = format_args!(
                    "{why}; another one was started (restart {number} of at most {RESTARTS_MAX} within {WITHIN})"
                );
                self.errors.note(Level::Alert, what);
                self.tell_ready();
            }
            Err(error) => {
                let what = format_args!("{why}; another one cannot be started yet: {error}");
                self.errors.note(Level::Alert, what);
                self.retry = Some((now.saturating_add(RETRY), why));
            }
        }
        None
    }

    /// Nobody accepts connections any more: the service manager must know now.
    fn give_up(&mut self, why: String) -> Option<Result<(), ServeError>> {
        self.signal_draining(Signal::INT);
        Some(Err(ServeError::Ended { why }))
    }

    /// Whether the serving generation may still turn out to be unable to serve.
    fn is_on_probation(&self) -> bool {
        clock::monotonic().saturating_sub(self.serving.born) < PROBATION
    }

    fn tell_ready(&self) {
        let (config, address) = (&self.serving.config, self.listener.local_addr());
        let address = address.unwrap_or(config.listen);
        let model = config.model.name;
        self.notify.tell(&format!("READY=1\nSTATUS={model} serves on {address}"));
    }
}

/// A process that redirects once it is told to.
fn prepared_redirect(Prepared { service, config }: Prepared) -> io::Result<Redirect> {
    let generation = Generation::begin(&service, config, clock::monotonic())?;
    Ok(Redirect { listener: service.listener, generation })
}

/// A process that redirects from now on.
fn begin_redirect(prepared: Prepared) -> io::Result<Redirect> {
    let redirect = prepared_redirect(prepared)?;
    redirect.generation.go();
    Ok(redirect)
}

/// Makes the generation drain and leave the first `queues` queues of the port. Waits until it accepts no more or has
/// ended.
fn hand_over(last: &Generation, queues: usize) {
    let until = clock::monotonic().saturating_add(HANDOVER_MAX);
    while !last.is_past() && !process::has_ended(last.pid) && clock::monotonic() < until {
        // Again each time: a signal that comes just before a call blocks may not end it.
        last.hand_over(queues);
        std::thread::sleep(HANDOVER_TICK.into());
    }
}

/// A file that holds the number of this process while it lives.
struct PidFile(Option<PathBuf>);

impl PidFile {
    fn write(path: Option<&Path>) -> Result<Self, ServeError> {
        let Some(path) = path else { return Ok(Self(None)) };
        std::fs::write(path, format!("{}\n", std::process::id()))
            .map_err(|source| ServeError::PidFile { path: path.to_owned(), source })?;
        Ok(Self(Some(path.to_owned())))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // This fails only if somebody has removed it already, which is what is wanted.
            let _ = std::fs::remove_file(path);
        }
    }
}

fn copy_of(file: Option<&File>) -> Result<Option<File>, ServeError> {
    file.map(File::try_clone).transpose().map_err(system("cannot duplicate a descriptor"))
}

fn system(doing: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::System { doing, source }
}
