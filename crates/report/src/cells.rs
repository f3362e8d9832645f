//! Owns how a run is split: each cell is shown as a run of its own, under one title. Must not know layout. Start
//! reading at [`cells`].

use record::{Disturbance, RunRecord, Visit, VisitState};

use crate::headline::{Ranking, ranking};
use crate::standing::{Standing, standings};
use crate::wording::plain;

/// A cell, with everything that is said of it.
pub(crate) struct CellView {
    /// Empty if the run has no other cell.
    pub(crate) name: String,
    /// The run, reduced to this cell.
    pub(crate) run: RunRecord,
    pub(crate) standings: Vec<Standing>,
    pub(crate) ranking: Ranking,
}

/// Every cell of a run; if there is only one, the run itself.
pub(crate) fn cells(record: &RunRecord) -> Vec<CellView> {
    match record.plan.cells.as_slice() {
        [] | [_] => vec![CellView::new(String::new(), record.clone())],
        all => {
            let view = |(index, cell): (usize, &record::Cell)| {
                let view = CellView::new(plain(&cell.name), record.at(index));
                view.numbered(record.plan.in_cell(index))
            };
            all.iter().enumerate().map(view).collect()
        }
    }
}

impl CellView {
    fn new(name: String, run: RunRecord) -> Self {
        let standings = standings(&run);
        let ranking = ranking(&run, &standings);
        Self { name, run, standings, ranking }
    }

    /// With the number that each contender has in the whole run.
    fn numbered(mut self, numbers: impl Iterator<Item = usize>) -> Self {
        for (standing, number) in self.standings.iter_mut().zip(numbers) {
            standing.number = number;
        }
        self
    }
}

/// How many visits were repeated because the machine was disturbed, and by what, most frequent first.
pub(crate) fn disturbances(record: &RunRecord) -> Vec<(&'static str, usize)> {
    let is_disturbed = |visit: &&Visit| visit.state == VisitState::Disturbed;
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for visit in record.visits.iter().filter(is_disturbed) {
        let reason = visit.disturbance().map_or("it does not say by what", Disturbance::cause);
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
