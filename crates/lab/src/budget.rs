//! Owns what visits cost in time, from what is planned and what was seen of them, and so whether more of them
//! fit into a budget. Start reading at [`Costs`].
//!
//! A visit costs more than its load: the network, the calibration workload, the server's start and end. Before a
//! contender's first visit that is what starting it alone took, and all that a visit may take beside its
//! load; then it is what its visits took.

use std::collections::BTreeMap;

use record::Plan;
use units::Nanos;

/// What surrounds a load beside the server's start and end: the calibration workload (20 ms), reading the site,
/// the last look at the machine.
const AROUND: Nanos = Nanos::from_millis(100);
/// A budget holds to this part of it: a visit that would end later is not begun.
const SLACK: u64 = 20;
/// Loads that a search makes at least.
const SEARCH_LOADS_MIN: u32 = 3;

/// What visits cost.
#[derive(Debug)]
pub(crate) struct Costs<'a> {
    plan: &'a Plan,
    /// What starting each contender alone took, and ending it.
    starts: Vec<Nanos>,
    /// By cell and contender.
    seen: BTreeMap<(usize, usize), VisitTimes>,
    /// Longest time between two blocks, in which intervals are looked at.
    between: Nanos,
    /// Visits that were made, and those of them that were made again.
    made: u64,
    made_again: u64,
}

/// Visits of one contender in one cell.
#[derive(Debug, Default, Clone, Copy)]
struct VisitTimes {
    sum: Nanos,
    count: u64,
    last: Nanos,
}

/// The assumed time of a visit before the first of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnknownCost {
    /// At least.
    Least,
    /// At most, by the plan.
    Most,
}

impl<'a> Costs<'a> {
    pub(crate) fn new(plan: &'a Plan) -> Self {
        Self {
            plan,
            starts: vec![Nanos::ZERO; plan.contenders.len()],
            seen: BTreeMap::new(),
            between: Nanos::ZERO,
            made: 0,
            made_again: 0,
        }
    }

    /// A contender was started alone, and ended.
    pub(crate) fn started(&mut self, contender: usize, took: Nanos) {
        self.starts[contender] = took;
    }

    /// A visit was made; `again`: it is made once more.
    pub(crate) fn visited(&mut self, cell: usize, contender: usize, took: Nanos, again: bool) {
        let seen = self.seen.entry((cell, contender)).or_default();
        *seen = VisitTimes { sum: seen.sum + took, count: seen.count + 1, last: took };
        self.made += 1;
        self.made_again += u64::from(again);
        assert!(self.made_again <= self.made, "a visit is made before it is made again");
    }

    /// Whether a visit was made at all.
    pub(crate) fn saw_any(&self) -> bool {
        self.made > 0
    }

    /// From the end of a block to where the next could begin.
    pub(crate) fn paused(&mut self, took: Nanos) {
        self.between = self.between.max(took);
    }

    /// A visit that is made once: the mean of those so far or the last one, whichever took longer, because
    /// a machine that slows down goes on doing so.
    pub(crate) fn visit(&self, cell: usize, contender: usize, unseen: UnknownCost) -> Nanos {
        match self.seen.get(&(cell, contender)) {
            Some(seen) => seen.last.max(Nanos(seen.sum.0 / seen.count)),
            None => {
                let planned = self.load(cell, contender, unseen) + self.starts[contender];
                match unseen {
                    UnknownCost::Least => planned.max(self.usual()),
                    UnknownCost::Most => planned,
                }
            }
        }
    }

    /// The mean over all visits that were made.
    fn usual(&self) -> Nanos {
        let sum: u64 = self.seen.values().map(|seen| seen.sum.0).sum();
        Nanos(sum / self.made.max(1))
    }

    /// Those visits, with as many of them made again as were so far.
    pub(crate) fn visits(&self, places: &[(usize, usize)], unseen: UnknownCost) -> Nanos {
        let once: u64 = places.iter().map(|&(cell, who)| self.visit(cell, who, unseen).0).sum();
        let used = self.made - self.made_again;
        let again = once as f64 * self.made_again as f64 / used.max(1) as f64;
        Nanos(once + again as u64)
    }

    /// A block of those visits, and what comes before it.
    pub(crate) fn block(&self, places: &[(usize, usize)], unseen: UnknownCost) -> Nanos {
        self.between + self.visits(places, unseen)
    }

    /// Whether a visit that would end then would end too late for the budget.
    pub(crate) fn is_too_late(&self, end: Nanos) -> bool {
        end > self.plan.budget.saturating_add(Nanos(self.plan.budget.0 / SLACK))
    }

    /// The load of a visit and what surrounds it.
    fn load(&self, cell: usize, contender: usize, unseen: UnknownCost) -> Nanos {
        let visit = self.plan.visit;
        let tries = |tries: u32| Nanos(visit.load().0.saturating_mul(tries.into()));
        let search = self.plan.search.as_ref().map(|search| search.tries_max);
        let load = match (search, unseen) {
            (None, UnknownCost::Least) => visit.load(),
            (None, UnknownCost::Most) => visit.load().saturating_add(visit.settle),
            (Some(_), UnknownCost::Least) => visit.warm_up.saturating_add(tries(SEARCH_LOADS_MIN)),
            // A load before them shows about where the limit is.
            (Some(most), UnknownCost::Most) => {
                visit.load().saturating_add(visit.settle).saturating_add(tries(most))
            }
        };
        match unseen {
            UnknownCost::Least => load,
            // A request that was begun just before the end has its whole sleep before it.
            UnknownCost::Most => {
                load + AROUND + self.plan.work(cell, contender).sleep.unwrap_or_default()
            }
        }
    }
}
