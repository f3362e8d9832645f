//! Owns what is done around every visit of a run, in this order: make a network, bring the machine to the same state,
//! calibrate, start the server, read counters while it is loaded, check whether the machine was disturbed. Start
//! reading at [`Keeper`].

use std::collections::BTreeSet;
use std::io;
use std::net::Ipv4Addr;
use std::path::Path;

use doctor::disturbance;
use record::{CpuLayout, NetworkKind, Prepared, Surroundings};
use units::Nanos;

use crate::calibration::Calibration;
use crate::netns::Net;
use crate::others::BeforeLoad;
use crate::prepare::{Drawn, draw, prepare};
use crate::sampler::{Sampler, Watched};
use crate::server::{Conditions, Running};
use crate::tree::{self, Tree};

/// How long to wait for sockets in TIME_WAIT at a fixed port. They last 60 s, longer than a visit; over loopback the
/// kernel reuses their ports after 1 s. So the wait is short, and the record contains the number that is left.
const TIME_WAIT_MAX: Nanos = Nanos::from_secs(1);

/// Keeps the conditions of a run's visits alike.
#[derive(Debug)]
pub struct Keeper {
    seed: u64,
    place: Place,
    layout: CpuLayout,
    calibration: Calibration,
    /// Time that each calibration took so far.
    calibrations: Vec<Nanos>,
}

/// The network of all visits of a run: figures over two networks cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Place {
    /// A fresh one for each visit.
    #[default]
    Fresh,
    /// Loopback, for this reason.
    Loopback(String),
    /// This machine's own, where others reach it at that address.
    Machines(Ipv4Addr),
}

impl Place {
    /// Its kind.
    pub fn kind(&self) -> NetworkKind {
        match self {
            Self::Fresh => NetworkKind::Veth,
            Self::Loopback(_) => NetworkKind::Loopback,
            Self::Machines(_) => NetworkKind::Machines,
        }
    }
}

/// The surroundings of a visit, ready for its server to start.
#[derive(Debug)]
pub struct Ready {
    /// The conditions for the start of the server.
    pub conditions: Conditions,
    prepared: Prepared,
    calibration: Nanos,
}

/// A load that is watched.
#[derive(Debug)]
pub struct Watching {
    ready: Ready,
    before: BeforeLoad,
    sampler: Sampler,
}

impl Keeper {
    /// For the visits of a run; runs the calibration once.
    ///
    /// # Errors
    /// No thread left.
    pub fn new(seed: u64, layout: &CpuLayout, place: Place) -> io::Result<Self> {
        let calibration = Calibration::calibrate(&layout.server)?;
        Ok(Self { seed, place, layout: layout.clone(), calibration, calibrations: Vec::new() })
    }

    /// A network to start a server in.
    ///
    /// # Errors
    /// Namespaces could be made when the run began, but not now.
    pub fn net(&self) -> io::Result<Net> {
        let net = match &self.place {
            Place::Fresh => Net::fresh(),
            Place::Loopback(reason) => return Ok(Net::loopback(reason)),
            Place::Machines(address) => return Ok(Net::of_machines(*address)),
        };
        match &net.facts().reason {
            Some(reason) => Err(io::Error::other(format!(
                "{reason}, and visits over loopback cannot be compared with those before"
            ))),
            None => Ok(net),
        }
    }

    /// To call before a visit's server is started: makes a fresh network if permitted, brings the machine to the same
    /// state, and calibrates. `number` identifies the visit in the run; `fixed` is the port of a server that has the
    /// same one in every visit.
    ///
    /// # Errors
    /// The site cannot be read; no namespace or thread left.
    pub fn before(&mut self, docroot: &Path, number: u64, fixed: Option<u16>) -> io::Result<Ready> {
        let net = self.net()?;
        let Drawn { padding, port } = draw(self.seed, number);
        let prepared = Prepared { padding, port, ..prepare(&net, docroot, fixed, TIME_WAIT_MAX)? };
        let calibration = self.calibration.time(&self.layout.server)?;
        let conditions = Conditions { net, padding, port: Some(port) };
        Ok(Ready { conditions, prepared, calibration })
    }

    /// To call when the server answers and the load, planned to take `length`, is about to begin.
    ///
    /// # Errors
    /// No thread left.
    pub fn watch(&self, ready: Ready, running: &Running, length: Nanos) -> io::Result<Watching> {
        let before = BeforeLoad::now(&ours(running));
        let watched =
            Watched { net: running.net(), tree: running.tree(), length, cpus: &self.layout.client };
        let sampler = Sampler::start(&watched)?;
        Ok(Watching { ready, before, sampler })
    }

    /// To call when the load is over and the server still runs.
    pub fn after(&mut self, watching: Watching, running: &Running) -> Surroundings {
        let Watching { ready, before, sampler } = watching;
        let (series, processes) = sampler.finish();
        let calm = before.since(&ours(running), &series, Some(ready.calibration));
        let found = disturbance::judge(&calm, disturbance::usual(&self.calibrations));
        self.calibrations.push(ready.calibration);
        Surroundings {
            network: ready.conditions.net.facts().clone(),
            prepared: ready.prepared,
            series,
            processes,
            calm,
            disturbance: found,
        }
    }
}

/// Why visits cannot be made in network namespaces on this machine; `None` if they can.
pub fn no_namespaces() -> Option<String> {
    Net::fresh().facts().reason.clone()
}

/// Processes whose CPU time is not foreign.
fn ours(running: &Running) -> BTreeSet<u32> {
    // A server that runs already may run on this machine.
    let elsewhere = || tree::listening(running.addr());
    let server = running.tree().map_or_else(elsewhere, Tree::pids);
    server.into_iter().chain(running.pid()).chain([std::process::id()]).collect()
}
