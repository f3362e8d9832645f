//! Owns the part of a run whose load comes from other machines: where its servers listen, which CPUs they get, and what
//! is watched while others load them. Must not know how the others are reached. Start reading at [`Elsewhere`].
//!
//! The lab stays with the servers: it starts and ends them, and reads their processes and this machine's counters. The
//! generators bring counters of their own, which their records have.

use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use record::{CpuLayout, LoadPlan, LoadRecord, Surroundings};
use sys::clock::monotonic;
use units::Nanos;

use crate::server::Running;
use crate::surroundings::{Keeper, Ready};
use crate::tree::{Observe, Observed, Observer};
use crate::trial::Window;

/// What is told of a load while it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News<'a> {
    /// It begins at this instant of the monotonic clock of this machine, which may be yet to come.
    Begins(Nanos),
    /// A line for the user.
    Note(&'a str),
}

/// Loads servers from other machines.
pub trait Generators: Send + Sync {
    /// Makes one load; its plan has a duration. `tell` hears when it begins, once that is certain.
    ///
    /// # Errors
    /// Why nothing was loaded, in a sentence. If only a part of the load is missing that is no error: the record says
    /// what is missing.
    fn load(
        &self,
        plan: &LoadPlan,
        interrupt: &AtomicBool,
        tell: &mut dyn FnMut(News<'_>),
    ) -> Result<LoadRecord, String>;
}

/// The load of a run comes from other machines.
pub struct Elsewhere {
    /// Address of this machine that the others reach: servers listen there.
    pub address: Ipv4Addr,
    /// CPUs of the servers, and of the lab itself ([`crate::cpus::without_generator`]).
    pub layout: CpuLayout,
    /// Who they are, for the record: "2 agents: a1, a2".
    pub about: String,
    /// What makes the loads.
    pub generators: Box<dyn Generators>,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Elsewhere")
            .field("address", &self.address)
            .field("about", &self.about)
            .finish_non_exhaustive()
    }
}

/// What was seen here while others loaded a server.
pub(crate) struct Seen {
    /// When the load began, on the monotonic clock.
    pub(crate) began: Nanos,
    /// The server's processes; `None` if it runs elsewhere too.
    pub(crate) observed: Option<Observed>,
    pub(crate) surroundings: Surroundings,
}

/// Watches a server and this machine from the beginning of a load to its planned end, or to its real one if that is
/// earlier. `told` says when it begins, and hangs up when it is over; `None` if it never began.
pub(crate) fn watch(
    told: &Receiver<Nanos>,
    keeper: &mut Keeper,
    (running, ready): (&Running, Ready),
    window: Window,
    cpus: &[u32],
) -> io::Result<Option<Seen>> {
    let Ok(began) = told.recv() else { return Ok(None) };
    // A load that is given up before it began hangs up while we wait for it.
    if is_over(told, began) {
        return Ok(None);
    }
    let whole =
        Observe { from: began + window.from, until: began + window.until, cpus: cpus.to_vec() };
    let observer = running.tree().map(|tree| tree.observe(whole)).transpose();
    let observer = observer.map_err(io::Error::other)?;
    let watching = keeper.watch(ready, running, window.until)?;
    is_over(told, began + window.until);
    let observed = observer.map(Observer::finish).transpose().map_err(io::Error::other)?;
    let surroundings = keeper.after(watching, running);
    Ok(Some(Seen { began, observed, surroundings }))
}

/// Waits until an instant; whether the load was over before.
fn is_over(told: &Receiver<Nanos>, until: Nanos) -> bool {
    loop {
        let left = Duration::from(until.saturating_sub(monotonic()));
        match told.recv_timeout(left) {
            Err(RecvTimeoutError::Timeout) => return false,
            Err(RecvTimeoutError::Disconnected) => return true,
            // It begins once.
            Ok(_) => {}
        }
    }
}
