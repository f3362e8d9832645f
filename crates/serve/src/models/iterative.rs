//! One process, one thread, one connection at a time: what a server is before it is made concurrent,
//! and what all the others are measured against. Owns who waits (everyone, for the one connection);
//! must not know HTTP. Start reading at [`run`].
//!
//! Cost of a request on a kept-alive connection: one receive and one send, both blocking; of a
//! connection: accept and close. There is no cheaper way to serve one client, and no worse one to
//! serve two: a connection is served to its end, so while it is kept alive without a request all
//! others wait, for KeepAliveTimeout at most, and then for the next one's. With `KeepAlive=Off` each
//! waits for one request of those before it. The deadlines of a connection hold as in every model, so
//! that nobody waits for ever for a client that says nothing.

use std::cell::Cell;

use sys::clock;
use sys::listener::{self, Mode};
use sys::signals::{self, Stop};
use units::Nanos;

use super::shared::socket_io::{self, CallLimit, EXHAUSTED_REST};
use super::{Declared, Model, system};
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
    check: |_| Ok(()),
    available: super::everywhere,
    run,
};

fn run(service: &Service) -> Result<(), ServeError> {
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
            // A signal, the listener's timeout, or a connection that was gone before it was accepted; in a
            // drain, one whose handshake had begun may come.
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

/// How far the end of the server is: it begins between any two calls.
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
        let grace = self.service.shutdown_grace;
        self.service.begin_closing();
        let tickets = self.service.tickets();
        // One that waited may have gone since: nobody waits for another in its place.
        self.service.accept_without_waiting();
        let begun = Begun { tickets, end: clock::monotonic().saturating_add(grace) };
        self.begun.set(Some(begun));
        self.close_port_after_the_last();
        begun
    }

    /// The right to accept one of the connections that wait.
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
