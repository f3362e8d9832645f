//! The results of a run besides its verdicts.

use serde::{Deserialize, Serialize};

use crate::attribution::Attribution;
use crate::noise_floor::{NoiseFloor, NoiseSource};
use crate::outlier::OutlyingVisit;
use crate::ranking::Ranking;
use crate::scalability::Scalability;
use crate::shift::{Explanation, Shift};

/// Rankings, tails, growth, noise and outlying visits of a run. All of it is computed from visits and verdicts, and can
/// be recomputed from them.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
pub struct Analysis {
    /// Which contenders are best, cell by cell, metric by metric; empty if fewer than two can be ranked.
    pub rankings: Vec<Ranking>,
    /// Quantiles of service time of the pairs that have enough blocks, cell by cell.
    pub shifts: Vec<Shift>,
    /// Why the means of these pairs differ.
    pub explanations: Vec<Explanation>,
    /// How much of a difference each cause explains; empty for older run files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attributions: Vec<Attribution>,
    /// How throughput grows, if cells differ only in connections.
    pub scalability: Vec<Scalability>,
    /// The smallest detectable difference, cell by cell, metric by metric.
    pub noise_floors: Vec<NoiseFloor>,
    /// Visits far from the others, cell by cell, metric by metric; empty for older run files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outliers: Vec<OutlyingVisit>,
}

impl Analysis {
    /// The results of one cell, as if it were the only one. Growth spans several cells and is left out. `anew` gives a
    /// contender's index among those of the cell.
    pub(crate) fn at(&self, cell: usize, anew: impl Fn(usize) -> Option<usize>) -> Self {
        let ranking = |one: &Ranking| {
            let mut ranking = Ranking { cell: 0, ..one.clone() };
            for place in &mut ranking.places {
                place.contender = anew(place.contender)?;
            }
            ranking.unranked = ranking.unranked.into_iter().filter_map(&anew).collect();
            Some(ranking)
        };
        let shift =
            |one: &Shift| Some(Shift { cell: 0, a: anew(one.a)?, b: anew(one.b)?, ..one.clone() });
        let explanation = |one: &Explanation| {
            Some(Explanation { cell: 0, a: anew(one.a)?, b: anew(one.b)?, ..one.clone() })
        };
        let attribution = |one: &Attribution| {
            Some(Attribution { cell: 0, a: anew(one.a)?, b: anew(one.b)?, ..one.clone() })
        };
        let floor = |one: &NoiseFloor| {
            let source = match one.source {
                NoiseSource::Visits => NoiseSource::Visits,
                NoiseSource::Copies { a, b, estimate } => {
                    NoiseSource::Copies { a: anew(a)?, b: anew(b)?, estimate }
                }
            };
            Some(NoiseFloor { cell: 0, source, ..one.clone() })
        };
        let outlier = |one: &OutlyingVisit| {
            Some(OutlyingVisit { cell: 0, contender: anew(one.contender)?, ..one.clone() })
        };
        let Self { rankings, shifts, explanations, attributions, .. } = self;
        let Self { noise_floors, outliers, scalability: _, .. } = self;
        Self {
            rankings: rankings.iter().filter(|one| one.cell == cell).filter_map(ranking).collect(),
            shifts: shifts.iter().filter(|one| one.cell == cell).filter_map(shift).collect(),
            explanations: explanations
                .iter()
                .filter(|one| one.cell == cell)
                .filter_map(explanation)
                .collect(),
            attributions: attributions
                .iter()
                .filter(|one| one.cell == cell)
                .filter_map(attribution)
                .collect(),
            scalability: Vec::new(),
            noise_floors: noise_floors
                .iter()
                .filter(|one| one.cell == cell)
                .filter_map(floor)
                .collect(),
            outliers: outliers.iter().filter(|one| one.cell == cell).filter_map(outlier).collect(),
        }
    }

    /// Every cell and contender that the results mention.
    pub(crate) fn indices(&self) -> (Vec<usize>, Vec<usize>) {
        let (mut cells, mut contenders) = (Vec::new(), Vec::new());
        for one in &self.rankings {
            cells.push(one.cell);
            contenders.extend(one.places.iter().map(|place| place.contender));
            contenders.extend(&one.unranked);
        }
        for one in &self.shifts {
            cells.push(one.cell);
            contenders.extend([one.a, one.b]);
        }
        for one in &self.explanations {
            cells.push(one.cell);
            contenders.extend([one.a, one.b]);
        }
        for one in &self.attributions {
            cells.push(one.cell);
            contenders.extend([one.a, one.b]);
        }
        for one in &self.scalability {
            cells.extend(&one.cells);
            contenders.push(one.contender);
        }
        for one in &self.noise_floors {
            cells.push(one.cell);
            if let NoiseSource::Copies { a, b, .. } = one.source {
                contenders.extend([a, b]);
            }
        }
        for one in &self.outliers {
            cells.push(one.cell);
            contenders.push(one.contender);
        }
        (cells, contenders)
    }
}
