//! Owns how a run of several cells is taken apart: each cell is shown as a run of its own, under one
//! title. Must not know layout. Start reading at [`cells`].

use record::{RunRecord, Visit, VisitState};

use crate::headline::{Ranking, ranking};
use crate::standing::{Standing, standings};
use crate::wording::plain;

/// A cell with what is said of it.
pub(crate) struct CellView {
    pub(crate) name: String,
    /// The run as it was there.
    pub(crate) run: RunRecord,
    pub(crate) standings: Vec<Standing>,
    pub(crate) ranking: Ranking,
}

/// Every cell of a run that has several; none of one that has one.
pub(crate) fn cells(record: &RunRecord) -> Vec<CellView> {
    let all = &record.plan.cells;
    let view = |index: usize| {
        let run = record.at(index);
        let standings = standings(&run);
        let ranking = ranking(&run, &standings);
        CellView { name: plain(&all[index].name), run, standings, ranking }
    };
    if all.len() < 2 { Vec::new() } else { (0..all.len()).map(view).collect() }
}

impl CellView {
    /// Contenders with their figures, best first; in braces those that were not all told apart.
    pub(crate) fn best_first(&self) -> String {
        let one = |&index: &usize| {
            let standing = &self.standings[index];
            format!("{} {}", standing.name, standing.shown(self.ranking.metric))
        };
        let place = |place: &Vec<usize>| match place.as_slice() {
            [only] => one(only),
            several => format!("{{{}}}", several.iter().map(one).collect::<Vec<_>>().join(", ")),
        };
        let places: Vec<String> = self.ranking.places.iter().map(place).collect();
        if places.is_empty() { "nothing was measured".to_owned() } else { places.join(" > ") }
    }
}

/// What must be known to read [`CellView::best_first`].
pub(crate) fn note(cells: &[CellView]) -> String {
    let mut labels: Vec<String> = cells.iter().map(|cell| cell.ranking.label()).collect();
    labels.dedup();
    let label = if labels.len() == 1 { labels.swap_remove(0) } else { "Best first".to_owned() };
    format!("{label}; contenders in braces were not all told apart")
}

/// How many visits were made again because the machine was disturbed, and by what, most often first.
pub(crate) fn disturbances(record: &RunRecord) -> Vec<(String, usize)> {
    let is_disturbed = |visit: &&Visit| visit.state == VisitState::Disturbed;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for visit in record.visits.iter().filter(is_disturbed) {
        let reason = plain(visit.disturbance.as_deref().unwrap_or_default());
        match counts.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => counts.push((reason, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}
