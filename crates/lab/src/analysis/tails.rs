//! Owns the comparison of whole distributions of service time, pair by pair, and how much of a difference comes from
//! stalls. Start reading at [`tails`].

use std::borrow::Cow;

use record::{CauseShare, Explanation, Modes, Shift, ShiftPoint, StallMode};
use stats::{Contribution, Histogram, Profile, SideModes};
use units::Share;

use super::{CellVisits, band};

const NS_PER_MS: f64 = 1e6;

/// What the tails of a cell's contenders say.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Tails {
    /// Pairs whose quantiles can be compared.
    pub shifts: Vec<Shift>,
    /// Pairs whose means can be explained.
    pub explanations: Vec<Explanation>,
}

/// Compares the service times, after the cut, of the pairs of one cell, over the blocks that all its contenders have.
/// Leaves out contenders that failed in more than one block of ten, and pairs without enough blocks or requests.
pub fn tails(of: &CellVisits<'_>) -> Tails {
    let contenders = of.reliable();
    let rows =
        of.complete_rows(&contenders, |visit| visit.service_after_cut().map(Cow::into_owned));
    let blocks = rows.first().map_or(0, |row| row.len()) as u32;
    let profiles: Vec<Option<Profile>> =
        rows.iter().map(|row| Profile::of(&row.iter().collect::<Vec<_>>(), of.seed)).collect();
    let mut tails = Tails::default();
    let place = |contender| contenders.iter().position(|one| *one == contender);
    for &(a, b) in &of.pairs {
        let (Some(one), Some(other)) = (place(a), place(b)) else { continue };
        if let (Some(of_a), Some(of_b)) = (&profiles[one], &profiles[other]) {
            let points = stats::shift(of_a, of_b).into_iter().map(point).collect();
            tails.shifts.push(Shift { cell: of.cell, a, b, blocks, points });
        }
        let both: Vec<(&Histogram, &Histogram)> = rows[one].iter().zip(&rows[other]).collect();
        if let Some(explained) = stats::explain(&both, of.seed) {
            tails.explanations.push(Explanation {
                cell: of.cell,
                a,
                b,
                blocks,
                stall_share: explained.stall_share(),
                of_a: modes(explained.a),
                of_b: modes(explained.b),
                service: part(explained.service),
                stalls: part(explained.stalls),
            });
        }
    }
    tails
}

fn point(point: stats::ShiftPoint) -> ShiftPoint {
    let difference = band(point.difference_ns);
    ShiftPoint {
        q: point.q,
        a_ms: point.a_ns / NS_PER_MS,
        b_ms: point.b_ns / NS_PER_MS,
        difference_ms: record::Band {
            low: difference.low / NS_PER_MS,
            high: difference.high / NS_PER_MS,
        },
        ratio: band(point.ratio),
    }
}

fn modes(side: SideModes) -> Modes {
    let stall = |mode: &stats::StallMode| StallMode {
        from: mode.from,
        share: Share(mode.share),
        mean_ms: mode.mean_ns / NS_PER_MS,
    };
    Modes {
        mean_ms: side.mean_ns / NS_PER_MS,
        main_ms: side.main_ns / NS_PER_MS,
        stalls: side.stalls.iter().map(stall).collect(),
    }
}

fn part(of: Contribution) -> CauseShare {
    CauseShare {
        difference_ms: of.difference_ns / NS_PER_MS,
        ln: of.ln,
        interval: of.ln_interval.map(band),
    }
}
