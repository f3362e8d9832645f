//! One io_uring for each core: we submit operations to the kernel in batches, and it reports when
//! they are complete. Start reading at [`Uring`], then `ring_loop`, the loop of one ring.
//!
//! Cost of a request on a kept-alive connection: a share of one io_uring_enter, which submits the
//! answers of one round and returns the requests of the next. One multishot receive serves a
//! connection for life and takes a shared buffer only when bytes arrive. Answers are sent from
//! where they lie, and a complete send has no event. Large files go by sendfile(2) beside the ring:
//! a splice passes through a pipe and a kernel thread, which costs more than the system call that
//! it saves.
//!
//! Rings share the listening socket. A single ring accepts with one multishot operation. Several
//! rings have one accept each, which goes to the end of the kernel's queue when it is submitted
//! again, so they take turns. With multishot accepts the first ring would get all connections.

mod conn;
mod ring_group;
mod ring_loop;

use std::sync::Arc;
use std::thread;

use sys::listener::Mode;
use sys::socket;
use sys::uring_server;

use super::shared::{begin, serving_thread, system};
use super::{Declared, Model, PreparedModel, SettingKind, SettingSpec};
use crate::ServeError;
use crate::service::Service;
use ring_group::{RingGroup, RingRole};
use ring_loop::RingLoop;

const RINGS: &str = "rings";
const CONNECTIONS_MAX: &str = "max-connections";
const BUFFERS: &str = "receive-buffers";

/// The model.
pub(super) static ITEM: Model = Model {
    name: "uring",
    about: "one io_uring per core: accepts, receives and sends go to the kernel in batches",
    settings: &[
        SettingSpec {
            name: RINGS,
            kind: SettingKind::Count { default: 0, min: 0, max: 1024 },
            about: "rings, each with a thread of its own; 0: one for each CPU that it may run on",
        },
        SettingSpec {
            name: CONNECTIONS_MAX,
            kind: SettingKind::Count { default: 16_384, min: 1, max: 1_000_000 },
            about: "connections held at once, in equal shares of all rings",
        },
        SettingSpec {
            name: BUFFERS,
            kind: SettingKind::Count { default: 256, min: 1, max: 32_768 },
            about: "buffers of 4 KiB that the connections of a ring share (up to a power of two)",
        },
    ],
    declares: Declared {
        accept_order: "one ring takes them in order of arrival; several take turns, one each",
        keep_alive_holder: "the ring that accepted it",
        backlog: "the kernel's queue, ListenBacklog connections",
        concurrency: "one request in progress per ring; max-connections and open files bound the rest",
        saturation: "requests wait in the sockets, connections past the bound in the backlog",
    },
    two_at_once: Some(&["max-connections=2"]),
    prepare: |settings| {
        Ok(Arc::new(Uring {
            rings: settings.size(RINGS),
            conns_max: settings.size(CONNECTIONS_MAX),
            buffers: settings.count(BUFFERS) as u16,
        }))
    },
};

#[derive(Debug)]
struct Uring {
    /// 0: one for each CPU.
    rings: usize,
    /// Of all rings.
    conns_max: usize,
    /// Of each ring.
    buffers: u16,
}

impl Uring {
    /// How many rings there are, and how many connections each may hold.
    fn shares(&self, n_cpus: usize) -> (usize, usize) {
        let rings = if self.rings == 0 { n_cpus } else { self.rings };
        let rings = rings.clamp(1, self.conns_max);
        (rings, self.conns_max.div_ceil(rings))
    }
}

impl PreparedModel for Uring {
    /// Asked before the server prints its address, so that a kernel or sandbox without io_uring is detected.
    fn available(&self) -> Result<(), String> {
        uring_server::is_available().map_err(|error| {
            format!("{error}. --model reactors is the nearest model that needs no io_uring")
        })
    }

    fn run(&self, service: &Service) -> Result<(), ServeError> {
        // If the kernel refuses, fewer connections fit, and the error log says so when accept
        // fails.
        let _ = socket::raise_file_limit();
        let signals = begin(service, Mode::NonBlocking)?;
        let cpus = sys::affinity::allowed()
            .map_err(system("cannot read which CPUs the process may use"))?;
        let (n_rings, conns_max) = self.shares(cpus.len());
        let group = RingGroup::new(n_rings)
            .map_err(system("cannot create the eventfds that wake the rings"))?;
        let serve = |role: RingRole<'_>| {
            let starting = group.starting();
            let ring_loop = RingLoop::new(service, &group, role, conns_max, self.buffers)?;
            // Another ring that could not be made reports its own error.
            if starting.made() { ring_loop.serve() } else { Ok(()) }
        };
        let served = thread::scope(|scope| {
            let others = (1..n_rings).try_for_each(|number| {
                let builder = serving_thread().name(format!("joust ring {number}"));
                let member = group.join();
                builder.spawn_scoped(scope, || member.ended(serve(RingRole::Follows))).map(|_| ())
            });
            let served = match others {
                Ok(()) => serve(RingRole::Leads(&signals)),
                Err(error) => {
                    drop(group.starting());
                    Err(error)
                }
            };
            group.stop.ring();
            served
        });
        let failure = group.failure();
        served
            .and_then(|()| failure.map_or(Ok(()), Err))
            .map_err(system("cannot serve with io_uring"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_share_the_connections_and_are_never_more_than_these() {
        let shares = |rings, conns_max| Uring { rings, conns_max, buffers: 256 }.shares(4);
        assert_eq!(shares(0, 16_384), (4, 4096));
        assert_eq!(shares(3, 16_384), (3, 5462));
        assert_eq!(shares(3, 2), (2, 1));
    }
}
