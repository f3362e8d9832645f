//! What several models share: accepting, parked connections, event loops, child processes. Start
//! reading at [`socket_io`], which carries out what an `Exchange` wants of its socket.

pub(crate) mod acceptor;
pub(crate) mod answer_threads;
pub(crate) mod child;
pub(crate) mod event_loop;
pub(crate) mod handoff;
pub(crate) mod loop_group;
pub(crate) mod parent;
pub(crate) mod parked;
pub(crate) mod run_queue;
pub(crate) mod scoreboard;
pub(crate) mod socket_io;
pub(crate) mod spare;
pub(crate) mod timers;

use std::io;
use std::thread::Builder;

use sys::listener::{self, Mode};
use sys::signals::Signals;

use crate::ServeError;
use crate::service::Service;

/// Stack of a serving thread. The deepest path, a listing, needs under 64 KiB. Memory is only
/// reserved.
const THREAD_STACK_BYTES: usize = 256 * 1024;

/// Says what the server was doing when the kernel refused.
pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::System { doing, source }
}

/// A builder for a thread that serves.
pub(crate) fn serving_thread() -> Builder {
    Builder::new().stack_size(THREAD_STACK_BYTES)
}

/// Takes signals as a file. Call it before any thread starts: threads inherit the signal mask.
pub(crate) fn take_signals() -> Result<Signals, ServeError> {
    Signals::new().map_err(system("cannot take signals as a file"))
}

/// Sets whether accept blocks, for every queue of the port.
pub(crate) fn set_mode(service: &Service, mode: Mode) -> Result<(), ServeError> {
    let mut listeners = service.listeners();
    listeners
        .try_for_each(|listener| listener::set_mode(listener, mode))
        .map_err(system("cannot set whether accept blocks"))
}

/// Prepares a process that accepts connections and takes signals itself.
pub(crate) fn begin(service: &Service, mode: Mode) -> Result<Signals, ServeError> {
    let signals = take_signals()?;
    set_mode(service, mode)?;
    Ok(signals)
}
