//! What the live screen keeps of a run of several contenders: the plan, and what was told of it. Bounded by the plan
//! and by [`MESSAGES_MAX`]. Must not know how it is drawn. Start reading at [`RunLive::new`].

use std::collections::VecDeque;

use record::{Finding, Metric, PairSoFar, Plan, Progress, UserSkip, Visit, VisitState};
use units::{Nanos, Share};

use crate::figures::{counted, listed};
use crate::finding_groups::weight;
use crate::sparkline::{Beat, Beats};
use crate::standing::median;
use crate::wording::{name_of, plain};

/// Most messages that are kept; older ones are dropped, and their number is shown.
const MESSAGES_MAX: usize = 200;

/// Which visit of the design is made.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct VisitPlace {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the contender.
    pub contender: usize,
    /// Block, from 0.
    pub block: u32,
    /// Number of earlier attempts at this visit that were not used.
    pub attempt: u32,
}

/// What a run is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Doing {
    /// It has not started anything yet.
    Preparing,
    /// It starts a contender for the first time.
    Discovering(usize),
    Visiting(VisitPlace),
    /// A visit has ended, the next one has not begun.
    Between(VisitPlace),
}

/// What became of a wish.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum Skip {
    #[default]
    No,
    Asked,
    /// Since this block, from 0.
    Since(u32),
}

/// A contender so far.
#[derive(Debug, Clone)]
pub(super) struct Contestant {
    pub(super) name: String,
    pub(super) measured: u64,
    pub(super) failed: u64,
    pub(super) skip: Skip,
    /// Of each cell, a beat for each block: logarithms of the primary metric.
    beats: Vec<Vec<Beat>>,
}

/// A run as it is seen while it goes on.
#[derive(Debug, Clone)]
pub struct RunLive {
    pub(super) plan: Plan,
    pub(super) contestants: Vec<Contestant>,
    pub(super) cells: Vec<String>,
    pub(super) doing: Doing,
    pub(super) progress: Progress,
    /// Visits of the block that is going on.
    pub(super) made_of_block: usize,
    pub(super) pairs: Vec<PairSoFar>,
    pub(super) findings: Vec<String>,
    others: Option<OtherLoad>,
    messages: VecDeque<String>,
    n_dropped: u64,
    pub(super) stops_after_block: bool,
}

/// What else used the machine during a visit.
#[derive(Debug, Clone, PartialEq)]
struct OtherLoad {
    /// Share of a core.
    foreign: Option<Share>,
    most: Option<String>,
    steal: Option<Share>,
    /// Share of the time in which some thread waited for a CPU.
    pressure: Option<Share>,
    /// The largest share of a core in any visit so far.
    worst: Share,
    n_disturbed: u64,
}

impl RunLive {
    /// A run that has not begun.
    pub fn new(plan: &Plan) -> Self {
        let contestant = |index| Contestant {
            name: name_of(&plan.contenders, index),
            measured: 0,
            failed: 0,
            skip: Skip::No,
            beats: vec![Vec::new(); plan.cells.len()],
        };
        Self {
            contestants: (0..plan.contenders.len()).map(contestant).collect(),
            cells: plan.cells.iter().map(|cell| plain(&cell.name)).collect(),
            plan: plan.clone(),
            doing: Doing::Preparing,
            progress: Progress::default(),
            made_of_block: 0,
            pairs: Vec::new(),
            findings: Vec::new(),
            others: None,
            messages: VecDeque::new(),
            n_dropped: 0,
            stops_after_block: false,
        }
    }

    /// A contender is started for the first time.
    pub fn discovery_begins(&mut self, contender: usize) {
        self.doing = Doing::Discovering(contender);
    }

    /// A visit begins.
    pub fn visit_begins(&mut self, place: VisitPlace, progress: Progress) {
        if self.place().is_none_or(|before| before.block != place.block) {
            self.made_of_block = 0;
        }
        (self.doing, self.progress) = (Doing::Visiting(place), progress);
        // Every wish was heard before this visit; what was not granted was refused, with a message.
        for one in self.contestants.iter_mut().filter(|one| one.skip == Skip::Asked) {
            one.skip = Skip::No;
        }
    }

    /// A visit has ended.
    pub fn visit_ends(&mut self, visit: &Visit, progress: Progress) {
        let &Visit { cell, contender, block, attempt, .. } = visit;
        let place = VisitPlace { cell, contender, block, attempt };
        (self.doing, self.progress) = (Doing::Between(place), progress);
        self.note_others(visit);
        let metric = self.metric();
        let Some(one) = self.contestants.get_mut(contender) else { return };
        let beat = match (&visit.state, visit.value(metric)) {
            (VisitState::Disturbed, _) => return,
            (VisitState::Measured, Some(value)) if value > 0.0 && value.is_finite() => {
                Beat::Value(value.ln())
            }
            (VisitState::Measured, _) => Beat::Missing,
            (VisitState::Failed { .. }, _) => Beat::Failed,
        };
        match beat {
            Beat::Failed => one.failed += 1,
            _ => one.measured += 1,
        }
        self.made_of_block += 1;
        let Some(beats) = one.beats.get_mut(cell) else { return };
        let at = block as usize;
        beats.resize(beats.len().max(at + 1), Beat::Missing);
        beats[at] = beat;
    }

    fn note_others(&mut self, visit: &Visit) {
        let before = self.others.take();
        let (worst, n_disturbed) =
            before.as_ref().map_or((Share(0.0), 0), |one| (one.worst, one.n_disturbed));
        let Some(around) = &visit.surroundings else {
            self.others = before;
            return;
        };
        let (calm, series) = (&around.calm, &around.series);
        let share = |part: Nanos, whole: Nanos| {
            (whole > Nanos::ZERO).then(|| Share(part.as_secs_f64() / whole.as_secs_f64()))
        };
        let foreign = calm.foreign.as_ref().and_then(|foreign| share(foreign.cpu, calm.wall));
        let most = calm.foreign.as_ref().and_then(|foreign| foreign.most.as_ref());
        let waited =
            series.change("pressure.cpu.some_us").map(|us| Nanos::from_micros(us.max(0) as u64));
        self.others = Some(OtherLoad {
            foreign,
            most: most.map(|(name, _)| plain(name)),
            steal: calm.steal,
            // The counter is read a moment after the clock, so that the share can come out a little above 1.
            pressure: waited
                .and_then(|waited| share(waited, series.length()))
                .map(|share| Share(share.0.min(1.0))),
            worst: Share(worst.0.max(foreign.map_or(0.0, |share| share.0))),
            n_disturbed: n_disturbed + u64::from(around.disturbance.is_some()),
        });
    }

    /// Takes what is known of the pairs.
    pub fn set_pairs(&mut self, pairs: &[PairSoFar]) {
        self.pairs = pairs.to_vec();
    }

    /// Takes what the doctor finds so far.
    pub fn set_findings(&mut self, findings: &[Finding]) {
        let groups = Finding::grouped(findings);
        self.findings = groups.iter().map(|group| self.finding(group)).collect();
    }

    fn finding(&self, group: &[&Finding]) -> String {
        let first = group[0];
        let mut whom: Vec<usize> = group.iter().flat_map(|one| &one.contenders).copied().collect();
        whom.sort_unstable();
        whom.dedup();
        let whom = match whom.len() {
            0 => String::new(),
            n if n == self.contestants.len() => "; all contenders".to_owned(),
            _ => {
                let names: Vec<String> =
                    whom.into_iter().map(|one| name_of(&self.plan.contenders, one)).collect();
                format!("; {}", listed(&names))
            }
        };
        let weight = weight(first.severity, first.certainty);
        format!("{} ({weight}{whom})", plain(&first.check))
    }

    /// Keeps a message.
    pub fn message(&mut self, text: &str) {
        if self.messages.len() == MESSAGES_MAX {
            self.messages.pop_front();
            self.n_dropped += 1;
        }
        self.messages.push_back(plain(text));
    }

    /// The kept messages, oldest first, and before them the number of those that were dropped.
    pub fn messages(&self) -> impl Iterator<Item = String> {
        let dropped = counted(self.n_dropped, "earlier message");
        let dropped = (self.n_dropped > 0).then(|| format!("({dropped} not kept)"));
        dropped.into_iter().chain(self.messages.iter().cloned())
    }

    /// The user wants a contender skipped; false if it is skipped already, or does not exist.
    pub fn ask_to_skip(&mut self, contender: usize) -> bool {
        match self.contestants.get_mut(contender) {
            Some(one) if one.skip == Skip::No => {
                one.skip = Skip::Asked;
                true
            }
            _ => false,
        }
    }

    /// A wish to skip was granted.
    pub fn skipped(&mut self, skip: UserSkip) {
        if let Some(one) = self.contestants.get_mut(skip.contender) {
            one.skip = Skip::Since(skip.block);
        }
    }

    /// Turns the wish to stop after this block on or off; returns whether it stands now.
    pub fn ask_to_stop(&mut self) -> bool {
        self.stops_after_block = !self.stops_after_block;
        self.stops_after_block
    }

    /// Number of contenders.
    pub fn n_contenders(&self) -> usize {
        self.contestants.len()
    }

    pub(super) fn metric(&self) -> Metric {
        self.plan.metrics.first().copied().unwrap_or(Metric::Throughput)
    }

    /// The visit that is made, or was made last.
    pub(super) fn place(&self) -> Option<VisitPlace> {
        match self.doing {
            Doing::Preparing | Doing::Discovering(_) => None,
            Doing::Visiting(place) | Doing::Between(place) => Some(place),
        }
    }

    /// The cell whose figures are shown.
    pub(super) fn cell(&self) -> usize {
        self.place().map_or(0, |place| place.cell)
    }

    /// The figure of a contender in a cell: the median over its visits.
    pub(super) fn figure(&self, contender: usize, cell: usize) -> Option<f64> {
        let beats = self.contestants[contender].beats.get(cell)?;
        let value = |beat: &Beat| if let Beat::Value(ln) = beat { Some(ln.exp()) } else { None };
        median(beats.iter().filter_map(value))
    }

    /// Its visits there, block by block.
    pub(super) fn beats(&self, contender: usize, cell: usize) -> Beats {
        let beats = self.contestants[contender].beats.get(cell).cloned().unwrap_or_default();
        Beats(beats).over_median(self.metric().more_is_better())
    }

    /// Other load on the machine, in a line; before the first visit nothing is known.
    pub(super) fn other_load(&self) -> Option<String> {
        let others = self.others.as_ref()?;
        let most =
            others.most.as_ref().map_or_else(String::new, |name| format!(", most of it {name}"));
        let parts = [
            others.foreign.map(|share| format!("other processes {share} of a core{most}")),
            others.steal.map(|share| format!("steal {share}")),
            others.pressure.map(|share| format!("waiting for a CPU {share} of the time")),
            Some(format!("worst visit so far {}", others.worst)),
            (others.n_disturbed > 0)
                .then(|| format!("{} disturbed", counted(others.n_disturbed, "visit"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        Some(format!("Other load, last visit: {}", parts.join("; ")))
    }
}
