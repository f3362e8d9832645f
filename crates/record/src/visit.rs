//! One visit: a fresh start of one server, loaded once.

use std::borrow::Cow;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

use crate::client::ToolRun;
use crate::load::LoadRecord;
use crate::machine::{Disturbance, Surroundings};
use crate::memory::{MemoryAccount, MemoryMethod};
use crate::search::SearchRecord;

/// One visit and all it measured.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    /// Index of the cell.
    #[serde(default)]
    pub cell: usize,
    /// Index of the contender.
    pub contender: usize,
    /// Block, from 0.
    pub block: u32,
    /// Place in the order of its cell in the block, from 0.
    pub position: u32,
    /// How often this visit was made before and discarded, because the machine was disturbed.
    #[serde(default)]
    pub attempt: u32,
    /// Start, since the start of the run.
    pub started: Nanos,
    /// Whether it can be used.
    pub state: VisitState,
    /// From starting the server to its first correct answer.
    pub ready_after: Nanos,
    /// The further warm-up; `None` if the plan has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settled>,
    /// The load; `None` if it never began.
    pub load: Option<LoadRecord>,
    /// What another tool reported, if one took the generator's place; there is no load then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolRun>,
    /// The result of the visit's search for the highest rate; there is no load then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchRecord>,
    /// Requests of the load in the server's own access log; `None` if it keeps none.
    #[serde(default)]
    pub logged: Option<u64>,
    /// Where measuring starts inside the load: the planned warm-up and the further cut (MSER-5).
    pub cut: Nanos,
    /// Goodput after the cut, requests/s.
    pub rate_per_s: Option<f64>,
    /// The server's process tree over the load after the planned warm-up.
    pub server: Option<ServerUse>,
    /// The conditions of the visit: network, state before, counters meanwhile; `None` in older files, and if the load
    /// never began.
    #[serde(default)]
    pub surroundings: Option<Box<Surroundings>>,
    /// Kept by [`Visit::service_after_cut`].
    #[serde(skip)]
    pub merged: MergedService,
}

/// Service times that were merged once, because every figure and pair asks for them. It belongs to what it was merged
/// from: a copy of a visit, which is often changed, begins without one, and it makes no visit differ from another.
#[derive(Debug, Default)]
pub struct MergedService(OnceLock<(MergedFrom, stats::Histogram)>);

/// The cut, number of intervals and number of service times.
type MergedFrom = (Nanos, usize, u64);

impl Clone for MergedService {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for MergedService {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// Whether a visit can be used.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum VisitState {
    /// Measured to its end.
    #[default]
    Measured,
    /// Measured to its end on a machine that was busy with something else; it is kept but not used, and was repeated.
    Disturbed,
    /// Not measured: why, and the last lines of the server's log.
    Failed {
        /// What failed, on what.
        reason: String,
        /// Last lines of the server's log.
        log_tail: String,
    },
}

/// How a server was warmed up until its rate no longer changed ([`crate::VisitPlan::settle`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settled {
    /// How long that load was.
    pub took: Nanos,
    /// Whether the rate was steady at the end.
    pub steady: bool,
}

/// What a server's whole process tree used while it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ServerUse {
    /// CPU time, user and system, those of ended children included.
    pub cpu: Nanos,
    /// Time that passed.
    pub wall: Nanos,
    /// Requests that ended in that time, by the generator's count.
    pub requests: u64,
    /// Peak of the tree's memory, of several readings.
    pub memory: Bytes,
    /// How it was measured; older files have PSS.
    #[serde(default)]
    pub memory_account: MemoryAccount,
    /// Processes at the end.
    pub processes: u32,
    /// Threads at the end.
    pub threads: u32,
    /// Processes born in that time.
    pub born: u32,
    /// CPUs the tree may run on.
    pub cpus: u32,
}

impl ServerUse {
    /// CPU time per request, in microseconds; `None` without requests, and where the kernel counted none for them: the
    /// time of a few hundred requests can be below what it resolves.
    pub fn cpu_us_per_request(&self) -> Option<f64> {
        (self.requests > 0 && self.cpu > Nanos::ZERO)
            .then(|| self.cpu.as_micros_f64() / self.requests as f64)
    }

    /// Share of the available time of its CPUs that it used, 0 to 1.
    pub fn busy(&self) -> f64 {
        let had = self.wall.0 as f64 * f64::from(self.cpus.max(1));
        if had == 0.0 { 0.0 } else { self.cpu.0 as f64 / had }
    }
}

impl Visit {
    /// Why the figures are not reliable; `None`: no disturbance was seen, or nobody looked.
    pub fn disturbance(&self) -> Option<&Disturbance> {
        self.surroundings.as_ref()?.disturbance.as_ref()
    }

    /// How its memory was measured; `None` if it was not.
    pub fn memory_method(&self) -> Option<MemoryMethod> {
        Some(self.server?.memory_account.method)
    }

    /// A run has fewer blocks than this, including those of repetitions: tables have a column for each, and an edited
    /// file could otherwise ask for more memory than there is.
    pub const BLOCKS_MAX: u32 = 1_000_000;

    /// A quantile of service time in milliseconds: from our own load after its cut, or as another tool reported it.
    pub(crate) fn service_quantile_ms(&self, q: f64) -> Option<f64> {
        match (self.service_after_cut(), &self.tool) {
            (Some(service), _) => Some(service.quantile(q)?.as_millis_f64()),
            (None, tool) => Some(tool.as_ref()?.claimed.percentile(100.0 * q)?.as_millis_f64()),
        }
    }

    /// Whether it was measured without a single good answer.
    pub fn answered_nothing(&self) -> bool {
        self.state == VisitState::Measured && self.rate_per_s.is_some_and(|rate| rate <= 0.0)
    }

    /// Service times of the intervals that begin at or after the cut, merged.
    pub fn service_after_cut(&self) -> Option<Cow<'_, stats::Histogram>> {
        let load = self.load.as_ref()?;
        let after = load.intervals.iter().filter(|interval| interval.start >= self.cut);
        let after: Vec<&stats::Histogram> = after.map(|interval| &interval.service).collect();
        let from = (self.cut, after.len(), after.iter().map(|service| service.count()).sum());
        let sum = || {
            let mut sum = stats::Histogram::sum(&after);
            // A run has thousands.
            sum.pack();
            sum
        };
        let (kept_from, kept) = self.merged.0.get_or_init(|| (from, sum()));
        // The visit may have been changed since then.
        Some(if *kept_from == from { Cow::Borrowed(kept) } else { Cow::Owned(sum()) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Interval, LoadPlan};

    #[test]
    fn service_times_are_those_after_the_cut_also_after_a_change() {
        let interval = |start: u64| {
            let mut interval = Interval::new(Nanos::from_secs(start), Nanos::from_secs(1));
            interval.service.record(Nanos::from_millis(start + 1));
            interval
        };
        let mut load = LoadRecord::empty(LoadPlan::get(([127, 0, 0, 1], 80).into(), "/"));
        load.intervals = (0..3).map(interval).collect();
        let mut visit = Visit { load: Some(load), ..Visit::default() };
        let ends = |visit: &Visit| {
            let service = visit.service_after_cut().unwrap();
            (service.count(), service.min().unwrap().as_millis_f64().round())
        };
        assert_eq!(ends(&visit), (3, 1.0));
        assert_eq!(ends(&visit), (3, 1.0));
        visit.cut = Nanos::from_secs(1);
        assert_eq!(ends(&visit), (2, 2.0));
        let same = visit.clone();
        assert_eq!((ends(&same), &same), ((2, 2.0), &visit));
        visit.load.as_mut().unwrap().intervals.push(interval(3));
        assert_eq!(ends(&visit).0, 3);
    }
}
