//! Owns the sessions that a client stores for resumption. Start reading at [`Sessions`].
//!
//! rustls' own cache keeps 8 tickets for a server. A TLS 1.3 ticket is used once (RFC 8446, C.4), so of the connections
//! that a thread opens at one time the ninth would silently make a full handshake: a load needs as many tickets as
//! connections. And a load must be able to say why a handshake was full.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// Servers, by name, whose sessions are kept; those of others are dropped and counted.
pub const SERVERS_MAX: usize = 64;

/// Counts of sessions. `offered` minus the resumed handshakes is what servers declined.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct SessionTotals {
    /// Sessions and tickets received from servers.
    pub received: u64,
    /// Connections that offered one.
    pub offered: u64,
    /// Connections that should offer one although none was stored: their handshake is full.
    pub none_kept: u64,
    /// Tickets that were dropped unused, oldest first, for lack of room.
    pub dropped: u64,
}

/// The sessions of one server.
#[derive(Default)]
struct Kept {
    kx_hint: Option<NamedGroup>,
    tls12: Option<Tls12ClientSessionValue>,
    /// Oldest first, at most `tickets_max`.
    tls13: VecDeque<Tls13ClientSessionValue>,
}

#[derive(Default)]
struct Shelf {
    servers: HashMap<ServerName<'static>, Kept>,
    totals: SessionTotals,
}

impl Shelf {
    /// The entry of that server, if there is room for one.
    fn of(&mut self, name: ServerName<'static>) -> Option<&mut Kept> {
        let room = self.servers.len() < SERVERS_MAX || self.servers.contains_key(&name);
        room.then(|| self.servers.entry(name).or_default())
    }
}

/// The session store: its lock is taken a few times per handshake and never for a request.
pub(super) struct Sessions {
    shelf: Mutex<Shelf>,
    tickets_max: usize,
}

impl Sessions {
    pub(super) fn new(tickets_max: usize) -> Self {
        Self { shelf: Mutex::default(), tickets_max }
    }

    pub(super) fn totals(&self) -> SessionTotals {
        self.shelf().totals
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().expect("no code panics while it holds the shelf")
    }
}

impl std::fmt::Debug for Sessions {
    /// Leaves out the sessions, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("totals", &self.totals()).finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        if let Some(kept) = self.shelf().of(name) {
            kept.kx_hint = Some(group);
        }
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.shelf().servers.get(name)?.kx_hint
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        let mut shelf = self.shelf();
        shelf.totals.received += 1;
        match shelf.of(name) {
            Some(kept) => kept.tls12 = Some(value),
            None => shelf.totals.dropped += 1,
        }
    }

    /// Called last, if there was no TLS 1.3 ticket, so a missing session is counted here.
    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let mut shelf = self.shelf();
        let found = shelf.servers.get(name).and_then(|kept| kept.tls12.clone());
        match &found {
            Some(_) => shelf.totals.offered += 1,
            None => shelf.totals.none_kept += 1,
        }
        found
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        if let Some(kept) = self.shelf().servers.get_mut(name) {
            kept.tls12 = None;
        }
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut shelf = self.shelf();
        shelf.totals.received += 1;
        let fits = shelf.of(name).is_some_and(|kept| {
            kept.tls13.push_back(value);
            kept.tls13.len() <= self.tickets_max || kept.tls13.pop_front().is_none()
        });
        shelf.totals.dropped += u64::from(!fits);
    }

    /// The newest, because the server most likely still accepts it.
    fn take_tls13_ticket(&self, name: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut shelf = self.shelf();
        let ticket = shelf.servers.get_mut(name)?.tls13.pop_back()?;
        shelf.totals.offered += 1;
        Some(ticket)
    }
}

/// Stores what servers send, and offers nothing: its hello is that of a client that is new to the server. (rustls'
/// `Resumption::disabled` would also drop the tickets that others could offer.)
#[derive(Debug)]
pub(super) struct KeepOnly(pub(super) Arc<Sessions>);

impl ClientSessionStore for KeepOnly {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.0.set_kx_hint(name, group);
    }

    /// No hint either: a new client guesses the group, and pays for a wrong guess.
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(name, value);
    }

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.0.remove_tls12_session(name);
    }

    fn insert_tls13_ticket(&self, name: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(name, value);
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        None
    }
}
