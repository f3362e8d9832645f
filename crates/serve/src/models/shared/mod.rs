//! What several models share: who accepts, where connections wait, how loops and processes end.
//! Start reading at [`socket_io`], which carries out what an `Exchange` wants of its socket.

pub(crate) mod acceptor;
pub(crate) mod answer_threads;
pub(crate) mod child;
pub(crate) mod handoff;
pub(crate) mod loop_group;
pub(crate) mod looped;
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

/// Stack of a thread that serves: the deepest path needs under 64 KiB (a listing), and it is only
/// reserved, not used.
const THREAD_STACK_BYTES: usize = 256 * 1024;

/// Names what the server was doing when the kernel refused.
pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> ServeError {
    move |source| ServeError::System { doing, source }
}

/// A thread that serves, to be named and spawned.
pub(crate) fn serving_thread() -> Builder {
    Builder::new().stack_size(THREAD_STACK_BYTES)
}

/// Has signals come as a file. To be called before threads are started, which inherit the mask.
pub(crate) fn take_signals() -> Result<Signals, ServeError> {
    Signals::new().map_err(system("cannot take signals as a file"))
}

/// Whether accepting waits, at every queue of the port.
pub(crate) fn set_mode(service: &Service, mode: Mode) -> Result<(), ServeError> {
    let mut listeners = service.listeners();
    listeners
        .try_for_each(|listener| listener::set_mode(listener, mode))
        .map_err(system("cannot say whether the listener blocks"))
}

/// The start of a process that accepts and takes signals itself.
pub(crate) fn begin(service: &Service, mode: Mode) -> Result<Signals, ServeError> {
    let signals = take_signals()?;
    set_mode(service, mode)?;
    Ok(signals)
}
