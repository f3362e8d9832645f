//! What every thread and process of a server shares: its site, the listening sockets and the settings of its model.
//! `bind` makes one. Start reading at [`Service::run`].

pub(crate) mod closing;

use std::fmt::Debug;
use std::io;
use std::net::TcpListener;
use std::ops::Deref;
use std::sync::Arc;

use site::gateway::{self, SpawnedApplications};
use site::log::Level;
use site::{Shortage, Site};
use sys::identity::Identity;
use sys::listener::{self, Inherited};
use sys::{clock, signals};
use units::Nanos;

use crate::ServeError;
use crate::handover::Handover;
use closing::Closing;

/// A server that is ready to accept. Shared by reference; processes that a model forks inherit it. It dereferences to
/// its site, so that models reach log, faults and status board through it.
#[derive(Debug)]
pub struct Service {
    /// What is served.
    pub site: Site,
    /// Bound and listening; blocking, close-on-exec.
    pub listener: Arc<TcpListener>,
    /// Further queues of the same port (SO_REUSEPORT), for a model that gives each of its loops one;
    /// the kernel spreads connections over all of them.
    pub more_listeners: Vec<Arc<TcpListener>>,
    /// Connections that may wait to be accepted.
    pub listen_backlog: u32,
    /// After SIGTERM, how long requests in progress may take before they are cut.
    pub shutdown_grace: Nanos,
    /// CPUs the server may run on; empty: all that it was given.
    pub cpus: Vec<u32>,
    /// The model that serves it.
    pub(crate) model: Arc<dyn PreparedModel>,
    /// What connections inherit from their listener.
    pub(crate) inherited: Inherited,
    /// Whether another process has the listening socket too and goes on with it.
    pub(crate) handover: Handover,
    /// A shortage of what a process or a thread needs to start.
    pub(crate) starts: Shortage,
    /// Workers of the previous generation; 0: there is none, or it had another model.
    pub(crate) workers_before: usize,
    /// The user and group that a generation takes on; `None`: it keeps its own.
    pub(crate) identity: Option<Identity>,
    /// The first queue of the port was passed to us (socket activation) and stays open after the server.
    pub(crate) is_lent: bool,
    pub(crate) closing: Closing,
}

impl Deref for Service {
    type Target = Site;

    fn deref(&self) -> &Site {
        &self.site
    }
}

/// A model with its settings: what `models::Model::prepare` returns.
pub trait PreparedModel: Debug + Send + Sync {
    /// Serves until SIGTERM (drains) or SIGINT (stops at once). When it returns, no child, no
    /// thread and no open port is left.
    ///
    /// # Errors
    /// What the kernel refused.
    fn run(&self, service: &Service) -> Result<(), ServeError>;

    /// Whether this machine can run it. The server asks before it opens the port.
    ///
    /// # Errors
    /// What is missing, and the way out.
    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    /// How many queues (SO_REUSEPORT) the port needs on these CPUs. An empty list stands for all
    /// CPUs.
    ///
    /// # Errors
    /// The kernel does not tell which CPUs the process may use.
    fn port_queues(&self, cpus: &[u32]) -> Result<usize, ServeError> {
        let _ = cpus;
        Ok(1)
    }
}

/// The queues of a port, for the site.
#[derive(Debug)]
pub(crate) struct Queues {
    pub(crate) listeners: Vec<Arc<TcpListener>>,
    pub(crate) handover: Handover,
}

impl Queues {
    /// Whether another process goes on with that queue. It takes as many queues as it has loops.
    fn goes_on(&self, listener: &TcpListener) -> bool {
        let mut handed_over = self.listeners.iter().take(self.handover.queues());
        handed_over.any(|queue| std::ptr::eq(&**queue, listener))
    }
}

impl site::Port for Queues {
    fn is_handed_over(&self) -> bool {
        self.handover.has_begun()
    }

    fn waiting(&self) -> u32 {
        let ours = self.listeners.iter().filter(|queue| !self.goes_on(queue));
        ours.map(|queue| listener::waiting(queue)).sum()
    }
}

impl Service {
    /// Whether another process goes on with the listening socket. Then a drain leaves the port open, and the waiting
    /// connections to that process.
    pub fn is_handed_over(&self) -> bool {
        self.handover.has_begun()
    }

    /// Connections that wait to be accepted, and that a drain still has to serve; 0 if another server goes on with the
    /// port.
    pub fn waiting(&self) -> u32 {
        self.site.server.port.waiting()
    }

    /// As [`Service::waiting`], for one of its queues.
    pub fn waiting_at(&self, listener: &TcpListener) -> u32 {
        if self.goes_on(listener) { 0 } else { listener::waiting(listener) }
    }

    /// Whether another process goes on with that queue. It takes as many queues as it has loops.
    fn goes_on(&self, listener: &TcpListener) -> bool {
        let mut handed_over = self.listeners().take(self.handover.queues());
        handed_over.any(|queue| std::ptr::eq(queue, listener))
    }

    /// Every queue of the port.
    pub fn listeners(&self) -> impl Iterator<Item = &TcpListener> {
        std::iter::once(&self.listener).chain(&self.more_listeners).map(|listener| &**listener)
    }

    /// In a drain: from now on accept does not wait, in any process that shares the listener. If another server goes on
    /// with the port, its accept stays as it is.
    pub fn accept_without_waiting(&self) {
        if !self.is_handed_over() {
            // The call cannot fail on a socket. If it did, the listener's timeout would end the wait.
            let _ = listener::set_mode(&self.listener, listener::Mode::NonBlocking);
        }
    }

    /// Accepts no more: later connections are refused, unless another server goes on with the port. To be called when
    /// no thread of the process that leads the model accepts any more.
    pub fn stop_listening(&self) {
        if self.is_handed_over() {
            self.handover.accepts_no_more();
        } else {
            self.stop_listening_at(&self.listener);
        }
    }

    /// As [`Service::stop_listening`], for one of its queues: later connections go to the others.
    pub fn stop_listening_at(&self, listener: &TcpListener) {
        if !self.stays(listener) {
            self.handover.closes_port();
            // This fails only if it has stopped before, which is what is wanted.
            let _ = listener::stop_listening(listener);
        }
    }

    /// Serves with its model until a signal ends it.
    ///
    /// # Errors
    /// What the model could not get from the kernel.
    pub fn run(&self) -> Result<(), ServeError> {
        self.run_beside(self.start_applications()?)
    }

    /// Starts the applications that end with the server; `None`: there are none.
    ///
    /// # Errors
    /// As [`SpawnedApplications::start`].
    pub(crate) fn start_applications(&self) -> Result<Option<SpawnedApplications>, ServeError> {
        Ok(SpawnedApplications::start(&self.gateways, &self.errors, &self.cpus)?)
    }

    /// As [`Service::run`], with applications that end with it, for whatever reason it ends.
    pub(crate) fn run_beside(
        &self,
        applications: Option<SpawnedApplications>,
    ) -> Result<(), ServeError> {
        if !self.cpus.is_empty() {
            sys::affinity::pin(&self.cpus).map_err(|source| ServeError::System {
                doing: "cannot run on the CPUs that it was given",
                source,
            })?;
        }
        if self.faults.is_some() {
            // All threads and processes that are started from here on inherit it.
            clock::sharpen_timers().map_err(|source| ServeError::System {
                doing: "cannot set precise timers, which planted faults need",
                source,
            })?;
        }
        signals::let_files_end().map_err(|source| ServeError::System {
            doing: "cannot ignore the signal of files that are too large",
            source,
        })?;
        listener::adopt(&self.listener, self.listen_backlog, self.inherited).map_err(|source| {
            ServeError::System { doing: "cannot prepare the listening socket", source }
        })?;
        let (model, address) = (self.server.model, self.address());
        self.note_start();
        let result = self.model.run(self);
        gateway::wind_up();
        drop(applications);
        // Ends what programs have left running, after the applications had their time.
        let _ = self.gateways.marks.kill_all();
        self.log.flush();
        self.log.say_lost();
        match &result {
            Ok(()) => {
                self.errors.note(Level::Notice, format_args!("{model} on {address} has ended"));
            }
            Err(error) => self.errors.note(Level::Emerg, format_args!("{error}")),
        }
        result
    }

    fn note_start(&self) {
        let (model, address) = (self.server.model, self.address());
        match self.config.to_https.as_ref().map(|to| to.port) {
            None => self.errors.note(Level::Notice, format_args!("{model} serves on {address}")),
            Some(port) => self.errors.note(
                Level::Notice,
                format_args!("redirects plain requests at {address} to TLS on port {port}"),
            ),
        }
    }

    /// Logs that a process or a thread could not be started.
    pub(crate) fn note_no_start(&self, what: &str, error: &io::Error) {
        let bounds = match listener::is_exhaustion(error) {
            true => Shortage::FILES_AND_MEMORY,
            false => Shortage::PROCESSES,
        };
        self.starts.note(&self.errors, format_args!("start {what}"), error, bounds);
    }
}
