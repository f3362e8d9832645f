//! One process, one thread, one connection at a time: the simplest server, and the baseline for all
//! others. Start reading at `run`.
//!
//! Cost of a request on a kept-alive connection: one receive and one send, both blocking. Cost of a
//! connection: accept and close. No model serves one client more cheaply, and none serves two
//! worse. A connection is served to its end, so while it is kept alive without a request, all
//! others wait for up to KeepAliveTimeout. With `KeepAlive=Off` each client waits for one request
//! of each earlier one. A silent client blocks the server only until its deadline, as in every
//! model.

use std::cell::Cell;
use std::sync::Arc;

use sys::clock;
use sys::listener::{self, Mode};
use sys::signals::{self, Stop};
use units::Nanos;

use super::shared::socket_io::{self, CallLimit, EXHAUSTED_REST};
use super::shared::system;
use super::{Declared, Model, PreparedModel};
use crate::ServeError;
use crate::service::{Service, closing};

/// The model.
pub(super) static ITEM: Model = Model {
    name: "iterative",
    about: "one process, one thread, one connection at a time, to its end",
    settings: &[],
    declares: Declared {
        accept_order: "in order of arrival, the next when the last has ended",
        keep_alive_holder: "the whole server, blocked in receive",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "one connection, idle or not",
        saturation: "connections wait in the backlog while one is served",
    },
    two_at_once: None,
    prepare: |_| Ok(Arc::new(Iterative)),
};

#[derive(Debug)]
struct Iterative;

impl PreparedModel for Iterative {
    fn run(&self, service: &Service) -> Result<(), ServeError> {
        signals::alone().map_err(system("cannot handle signals"))?;
        let call_limit = CallLimit::of(service);
        let drain = Drain { service, begun: Cell::new(None) };
        let mut spare_exchange = None;
        loop {
            match drain.stop() {
                None => {}
                Some(Stop::Drain) if drain.take_ticket() => {}
                Some(_) => break,
            }
            match listener::accept(&service.listener, Mode::Blocking) {
                Ok((socket, peer)) => {
                    drain.close_port_after_the_last();
                    let exchange = socket_io::exchange_for(&mut spare_exchange, service, peer);
                    socket_io::serve_blocking(socket, exchange, call_limit, &|| drain.stop());
                }
                Err(error) if listener::is_exhaustion(&error) => {
                    service.note_exhaustion(&error);
                    std::thread::sleep(EXHAUSTED_REST.into());
                }
                // A signal, the listener's timeout, or a connection that was gone before it was
                // accepted. In a drain, a connection whose handshake had begun may still come.
                Err(_) => {
                    service.keep_logs_up();
                    if drain.begun.get().is_some() {
                        std::thread::sleep(closing::LOOK.into());
                    }
                }
            }
        }
        service.stop_listening();
        Ok(())
    }
}

/// The state of a drain, which may begin between any two calls.
struct Drain<'s> {
    service: &'s Service,
    begun: Cell<Option<Begun>>,
}

#[derive(Clone, Copy)]
struct Begun {
    /// How many connections may still be accepted (see `Service::tickets`).
    tickets: u32,
    /// When what is left is cut.
    end: Nanos,
}

impl Drain<'_> {
    /// Whether and how the server is to end.
    fn stop(&self) -> Option<Stop> {
        let asked = signals::asked_to_end()?;
        let begun = self.begun.get().unwrap_or_else(|| self.begin());
        if clock::monotonic() >= begun.end { Some(Stop::AtOnce) } else { Some(asked) }
    }

    fn begin(&self) -> Begun {
        self.service.begin_closing();
        let tickets = self.service.tickets();
        // A connection that waited may have gone: accept must not wait for another in its place.
        self.service.accept_without_waiting();
        let begun =
            Begun { tickets, end: clock::monotonic().saturating_add(self.service.shutdown_grace) };
        self.begun.set(Some(begun));
        self.close_port_after_the_last();
        begun
    }

    /// Takes the right to accept one of the waiting connections.
    fn take_ticket(&self) -> bool {
        self.close_port_after_the_last();
        let Some(begun) = self.begun.get() else { return false };
        let left = begun.tickets.checked_sub(1);
        self.begun.set(left.map(|tickets| Begun { tickets, ..begun }).or(Some(begun)));
        left.is_some()
    }

    fn close_port_after_the_last(&self) {
        let Some(begun) = self.begun.get() else { return };
        if begun.tickets == 0 || self.service.is_drained() {
            self.begun.set(Some(Begun { tickets: 0, ..begun }));
            self.service.stop_listening();
        }
    }
}
