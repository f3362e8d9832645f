//! The concurrency models: who waits for a connection, and where. Owns the registry and what a model
//! says about itself; must not know HTTP, which `Exchange` does for all of them, so that what
//! differs between two models is the model.
//! Start reading at [`Model`], then `looped`, the shortest way of a request through the server.
//!
//! Adding a model: one file with an `ITEM`, and its line in [`ALL`]. The conformance suite then runs
//! over it by itself.

mod event;
mod fork;
mod iterative;
mod poller;
mod pool;
mod prefork;
mod reactor;
mod reactor_pool;
mod reactors;
mod shared;
mod thread;
mod uring;
mod worker;

pub use crate::settings::{
    COMMON, Decimal, SettingError, SettingKind, SettingSpec, Settings, Value,
};
pub(crate) use shared::socket_io::call_max;

use std::fmt::{self, Debug};
use std::sync::Arc;

use crate::ServeError;
use crate::service::Service;

/// A way to serve many connections at once.
pub struct Model {
    /// What one types: `--model NAME`.
    pub name: &'static str,
    /// One sentence: which servers made it known, and how it works.
    pub about: &'static str,
    /// Its own settings, by the names that the original server gave them; [`COMMON`] ones come on top.
    pub settings: &'static [SettingSpec],
    /// Where it differs from the other models beside the concurrency itself.
    pub declares: Declared,
    /// Settings under which it holds two connections at once, `NAME=VALUE`, for tests of saturation;
    /// `None`: it never holds more than one.
    pub two_at_once: Option<&'static [&'static str]>,
    /// Reads the model's settings, once. Refuses a combination that cannot work, with the reason and the
    /// way out.
    pub prepare: fn(&Settings) -> Result<Arc<dyn PreparedModel>, String>,
}

/// A model with its settings: what [`Model::prepare`] made of them.
pub trait PreparedModel: Debug + Send + Sync {
    /// Serves until SIGTERM (drains) or SIGINT (stops at once); then no child, thread or port is left.
    ///
    /// # Errors
    /// What the kernel refused.
    fn run(&self, service: &Service) -> Result<(), ServeError>;

    /// Whether this machine can run it; asked before the port is open.
    ///
    /// # Errors
    /// What is missing, and the way out.
    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    /// How many queues (SO_REUSEPORT) the port has, for a server that may run on `cpus`; empty: on all.
    ///
    /// # Errors
    /// The kernel does not tell on which CPUs it may run.
    fn port_queues(&self, cpus: &[u32]) -> Result<usize, ServeError> {
        let _ = cpus;
        Ok(1)
    }
}

impl Model {
    /// Whether this machine can run it with its default settings.
    ///
    /// # Errors
    /// What is missing, and the way out.
    pub fn available(&self) -> Result<(), String> {
        (self.prepare)(&Settings::defaults(self.settings))?.available()
    }
}

/// The differences between two models that remain when all else is equal, in words for a report.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Which waiting acceptor gets the next connection.
    pub accept_order: &'static str,
    /// Who holds a connection between two requests.
    pub keep_alive_holder: &'static str,
    /// Where a connection waits before it is accepted, and how many may.
    pub backlog: &'static str,
    /// What bounds the requests in work at once.
    pub concurrency: &'static str,
    /// What a client sees once that bound is reached.
    pub saturation: &'static str,
}

/// Every model. The order is that of lists and help texts; the first is the default.
pub static ALL: &[&Model] = &[
    &reactors::ITEM,
    &reactor::ITEM,
    &reactor_pool::ITEM,
    &prefork::ITEM,
    &worker::ITEM,
    &pool::ITEM,
    &iterative::ITEM,
    &fork::ITEM,
    &thread::ITEM,
    &event::ITEM,
    &poller::ITEM,
    &uring::ITEM,
];

/// The model of the process that sends plain requests on to TLS: one thread, and little memory.
pub(crate) fn redirecting() -> &'static Model {
    &reactor::ITEM
}

/// The model that is called `name`.
pub fn by_name(name: &str) -> Option<&'static Model> {
    ALL.iter().copied().find(|model| model.name.eq_ignore_ascii_case(name))
}

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({})", self.name)
    }
}
