//! Owns the time that visits cost, as planned and as observed, and so whether more of them fit into a budget. Start
//! reading at [`Costs`].
//!
//! A visit costs more than its load: the network, the calibration workload, the server's start and end. Before a
//! contender's first visit, the cost is the planned load, all that may surround it, and the time that starting the
//! contender alone took. After that, it is the time that its visits took.

use std::collections::BTreeMap;

use record::Plan;
use units::Nanos;

/// The time around a load, without the server's start and end: the calibration workload (20 ms), reading the site,
/// the last look at the machine.
const AROUND: Nanos = Nanos::from_millis(100);
/// A budget may be exceeded by this part of it: no visit begins that would end later.
const SLACK: u64 = 20;
/// The fewest loads of a search.
const SEARCH_LOADS_MIN: u32 = 3;

/// What visits cost.
#[derive(Debug)]
pub(crate) struct Costs<'a> {
    plan: &'a Plan,
    /// The time to start and end each contender alone.
    starts: Vec<Nanos>,
    /// By cell and contender.
    seen: BTreeMap<(usize, usize), VisitTimes>,
    /// Longest time between two blocks, in which intervals are looked at.
    between: Nanos,
    /// Visits made, and how many of them were repeats.
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
    /// The shortest.
    Least,
    /// The longest, by the plan.
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

    /// Takes the time in which a contender was started alone and ended.
    pub(crate) fn started(&mut self, contender: usize, took: Nanos) {
        self.starts[contender] = took;
    }

    /// Takes the time of a visit; `again`: the visit will be repeated.
    pub(crate) fn visited(&mut self, cell: usize, contender: usize, took: Nanos, again: bool) {
        let seen = self.seen.entry((cell, contender)).or_default();
        *seen = VisitTimes { sum: seen.sum + took, count: seen.count + 1, last: took };
        self.made += 1;
        self.made_again += u64::from(again);
        assert!(self.made_again <= self.made, "a visit is made before it is made again");
    }

    /// Visits made so far.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Takes the time from the end of a block to where the next could begin.
    pub(crate) fn paused(&mut self, took: Nanos) {
        self.between = self.between.max(took);
    }

    /// The cost of a visit that is made once: the mean of the visits so far or the last one, whichever is longer,
    /// because a machine that slows down usually keeps slowing down.
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

    /// The cost of those visits, with repeats as frequent as so far.
    pub(crate) fn visits(&self, places: &[(usize, usize)], unseen: UnknownCost) -> Nanos {
        let once: u64 = places.iter().map(|&(cell, who)| self.visit(cell, who, unseen).0).sum();
        let used = self.made - self.made_again;
        let again = once as f64 * self.made_again as f64 / used.max(1) as f64;
        Nanos(once + again as u64)
    }

    /// The cost of a block of those visits, and of the pause before it.
    pub(crate) fn block(&self, places: &[(usize, usize)], unseen: UnknownCost) -> Nanos {
        self.between + self.visits(places, unseen)
    }

    /// Whether a visit that ends at `end` would exceed the budget.
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
            // A closed loop before the search shows roughly where the limit is.
            (Some(most), UnknownCost::Most) => {
                visit.load().saturating_add(visit.settle).saturating_add(tries(most))
            }
        };
        match unseen {
            UnknownCost::Least => load,
            // A request that begins just before the end still has its whole sleep ahead.
            UnknownCost::Most => {
                load + AROUND + self.plan.work(cell, contender).sleep.unwrap_or_default()
            }
        }
    }
}
