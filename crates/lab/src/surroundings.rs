//! Owns what is done around every visit of a run, in this order: a network, the same state, the
//! canary; the server is started; counters are read while it is loaded; was the machine disturbed?
//! Must not know servers or loads. Start reading at [`Keeper`].

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use record::{CpuLayout, Prepared, Surroundings};
use units::Nanos;

use crate::canary::{self, Canary};
use crate::netns::Net;
use crate::others::Before;
use crate::prepare::{draw_padding, prepare};
use crate::sampler::{Sampler, Watched};
use crate::server::{Conditions, Running};
use crate::tree::Tree;

/// How long is waited for sockets in TIME_WAIT to go, where the network is the machine's own. They go
/// after 60 s, which would be longer than a visit; over loopback the kernel uses their ports again by
/// itself. So it is a short wait, and the number that is left is in the record.
const TIME_WAIT_MAX: Nanos = Nanos::from_secs(1);

/// Keeps the surroundings of a run's visits alike.
#[derive(Debug)]
pub struct Keeper {
    seed: u64,
    layout: CpuLayout,
    canary: Option<Canary>,
    /// What each canary took so far.
    canaries: Vec<Nanos>,
    visits: u64,
}

/// A visit's surroundings, ready for its server to be started.
#[derive(Debug)]
pub struct Ready {
    /// What the server is to be started under.
    pub conditions: Conditions,
    prepared: Prepared,
    canary: Option<Nanos>,
}

/// A load that is watched.
#[derive(Debug)]
pub struct Watching {
    ready: Ready,
    before: Before,
    sampler: Sampler,
}

impl Keeper {
    /// For the visits of a run; times the canary's work once.
    ///
    /// # Errors
    /// No thread left.
    pub fn new(seed: u64, layout: &CpuLayout) -> io::Result<Self> {
        let canary = Some(Canary::calibrate(&layout.server)?);
        Ok(Self { seed, layout: layout.clone(), canary, canaries: Vec::new(), visits: 0 })
    }

    /// Before a visit's server is started: a fresh network where permitted, the same state, and the
    /// canary.
    ///
    /// # Errors
    /// The site cannot be read; no thread left.
    pub fn before(&mut self, docroot: &Path) -> io::Result<Ready> {
        let net = Net::fresh();
        let padding = draw_padding(self.seed, self.visits);
        self.visits += 1;
        let prepared = Prepared { padding, ..prepare(&net, docroot, TIME_WAIT_MAX)? };
        let canary = self.canary.map(|canary| canary.sing(&self.layout.server)).transpose()?;
        Ok(Ready { conditions: Conditions { net, padding }, prepared, canary })
    }

    /// When the server answers and the load is about to begin, which is planned to take `length`.
    ///
    /// # Errors
    /// No thread left.
    pub fn watch(&self, ready: Ready, running: &Running, length: Nanos) -> io::Result<Watching> {
        let before = Before::now(&ours(running));
        let watched =
            Watched { net: running.net(), tree: running.tree(), length, cpus: &self.layout.client };
        let sampler = Sampler::start(&watched)?;
        Ok(Watching { ready, before, sampler })
    }

    /// When the load is over and the server still there.
    pub fn after(&mut self, watching: Watching, running: &Running) -> Surroundings {
        let Watching { ready, before, sampler } = watching;
        let (series, processes) = sampler.finish();
        let calm = before.since(&ours(running), &series, ready.canary);
        let disturbance = canary::judge(&calm, canary::usual(&self.canaries));
        self.canaries.extend(ready.canary);
        Surroundings {
            network: ready.conditions.net.facts().clone(),
            prepared: ready.prepared,
            series,
            processes,
            calm,
            disturbance,
        }
    }
}

/// Processes whose CPU time is not foreign.
fn ours(running: &Running) -> BTreeSet<u32> {
    let server = running.tree().map(Tree::pids).unwrap_or_default();
    server.into_iter().chain(running.pid()).chain([std::process::id()]).collect()
}
