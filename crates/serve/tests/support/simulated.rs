//! A connection in simulated time, for tests of planted faults. Owns the client's side of it. Start reading
//! at [`Client`].

use std::net::SocketAddr;

use joust_serve::Config;
use joust_serve::models;
use joust_serve::service::Service;
use site::config::Content;
use site::exchange::{Exchange, Want};
use site::fault::{Fault, Faults};
use units::{Bytes, Nanos};

pub(crate) const START: Nanos = Nanos::from_secs(1000);
pub(crate) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
pub(crate) const BODY_BYTES: usize = 3361;

pub(crate) fn ms(count: u64) -> Nanos {
    Nanos::from_millis(count)
}

/// A server that starts at [`START`].
pub(crate) fn service(faults: &[&str]) -> Service {
    service_of(faults, |_| {})
}

pub(crate) fn service_of(faults: &[&str], change: impl FnOnce(&mut Config)) -> Service {
    let mut config = Config::new(models::ALL[0], Content::Fixed(Bytes(BODY_BYTES as u64)));
    config.listen.set_port(0);
    config.site.keep_alive.requests_max = 0;
    change(&mut config);
    let faults: Vec<Fault> = faults.iter().map(|typed| typed.parse().unwrap()).collect();
    let mut service = Service::bind(config).unwrap();
    service.site.faults = Faults::plant(&faults, START).unwrap();
    service
}

/// One client in simulated time, which passes only while the server holds an answer.
pub(crate) struct Client<'s> {
    pub(crate) exchange: Exchange<'s>,
    pub(crate) now: Nanos,
}

impl<'s> Client<'s> {
    pub(crate) fn new(service: &'s Service, now: Nanos) -> Self {
        let peer = SocketAddr::from(([127, 0, 0, 1], 40000));
        Self { exchange: Exchange::new(service, peer, now), now }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let Want::Read(room) = self.exchange.want(|| self.now) else { panic!("it reads") };
        room[..bytes.len()].copy_from_slice(bytes);
        self.exchange.received(bytes.len(), self.now);
    }

    /// What leaves until the exchange reads or closes, and when each piece does.
    pub(crate) fn pieces(&mut self) -> Vec<(Nanos, Vec<u8>)> {
        let mut pieces = Vec::new();
        loop {
            let bytes = match self.exchange.want(|| self.now) {
                Want::Load { .. } => unreachable!("there is no TLS here"),
                Want::Read(_) | Want::Gateway | Want::Close(_) => return pieces,
                Want::Hold(until) => {
                    assert!(until > self.now, "a hold that is over");
                    self.now = until;
                    continue;
                }
                Want::Write { head, body } => [head, body].concat(),
                Want::File { .. } => panic!("a fixed page is in memory"),
            };
            self.exchange.wrote(bytes.len(), self.now);
            pieces.push((self.now, bytes));
        }
    }

    /// How long after `at` the answer to a request that is complete then leaves.
    pub(crate) fn held_at(&mut self, at: Nanos) -> Nanos {
        self.now = at;
        self.send(REQUEST);
        let pieces = self.pieces();
        assert_eq!(pieces.len(), 1);
        pieces[0].0 - at
    }
}
