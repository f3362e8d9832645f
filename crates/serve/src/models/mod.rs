//! The concurrency models: which process or thread waits for a connection. `Exchange` speaks HTTP
//! for all of them, so that two models differ only in how they wait. Start reading at [`Model`],
//! then `shared/event_loop.rs`, the shortest path of a request.
//!
//! To add a model, write one file with an `ITEM`, its line in [`ALL`] and its section in
//! docs/models.md. All suites then run over it.

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

pub use crate::service::PreparedModel;
pub use crate::settings::{
    COMMON, Decimal, SettingError, SettingKind, SettingSpec, Settings, Value,
};
pub(crate) use shared::socket_io::call_max;

use std::fmt::{self, Debug};
use std::sync::Arc;

/// A way to serve many connections at once.
pub struct Model {
    /// The NAME of `--model NAME`.
    pub name: &'static str,
    /// One sentence: how it works and which servers are known for it.
    pub about: &'static str,
    /// Its own settings, by their names in the original server; [`COMMON`] ones come on top.
    pub settings: &'static [SettingSpec],
    /// How it differs from other models apart from its concurrency.
    pub declares: Declared,
    /// Settings under which it holds two connections at once, `NAME=VALUE`, for tests of saturation;
    /// `None`: it never holds more than one.
    pub two_at_once: Option<&'static [&'static str]>,
    /// Reads the settings once. Refuses a combination that cannot work and says what would.
    pub prepare: fn(&Settings) -> Result<Arc<dyn PreparedModel>, String>,
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

/// What differs between two models apart from their concurrency, worded for a report.
#[derive(Debug, Clone, Copy)]
pub struct Declared {
    /// Which waiting acceptor gets the next connection.
    pub accept_order: &'static str,
    /// Who holds a connection between two requests.
    pub keep_alive_holder: &'static str,
    /// Where a connection waits before it is accepted, and how many may.
    pub backlog: &'static str,
    /// What bounds the requests that are in progress at once.
    pub concurrency: &'static str,
    /// What a client sees when that bound is reached.
    pub saturation: &'static str,
}

/// Every model, in the order of lists and help texts. The first is the default.
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

/// The model of the process that redirects plain requests to TLS: one thread and little memory.
pub(crate) fn redirecting() -> &'static Model {
    &reactor::ITEM
}

/// The model with this name, in any case of letters.
pub fn by_name(name: &str) -> Option<&'static Model> {
    ALL.iter().copied().find(|model| model.name.eq_ignore_ascii_case(name))
}

impl Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Model({})", self.name)
    }
}
