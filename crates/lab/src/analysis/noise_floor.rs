//! Owns the smallest difference that this machine can show at so many blocks. Must not know what the
//! contenders are, beyond whether two are the same. Start reading at [`noise_floor`].

use record::{Contender, Estimate, Metric, NoiseFloor, NoiseSource};
use stats::Paired;
use units::Share;

use super::{CellVisits, mean};
use crate::verdict::ALPHA;

/// The noise floor of one cell by one metric; `all` are the plan's contenders. `None` with fewer than
/// two in the cell, or fewer than three blocks that all of them have.
///
/// Where two contenders differ in nothing but their names, their ratio is the noise itself (A/A).
/// Else it is what remains of every visit when its contender's mean and its block's mean are taken
/// away: between two visits of a block that is, in the mean over pairs, just the variance of their log
/// ratio. (The same contender's visits of two blocks would hold the machine's drift too, which
/// pairing removes: on a machine that others use, ten times as much.)
pub fn noise_floor(of: &CellVisits<'_>, all: &[Contender], metric: Metric) -> Option<NoiseFloor> {
    let mut pairs = of.contenders.iter().flat_map(|a| of.contenders.iter().map(move |b| (*a, *b)));
    let copies = pairs.find(|(a, b)| a < b && are_copies(&all[*a], &all[*b]));
    let (source, blocks, sd_ln) = match copies {
        Some(pair) => of_copies(of, pair, metric)?,
        None => of_visits(of, metric)?,
    };
    let smallest = stats::smallest_difference(sd_ln, blocks, ALPHA)?;
    Some(NoiseFloor { cell: of.cell, metric, source, blocks, sd_ln, smallest: Share(smallest) })
}

fn are_copies(a: &Contender, b: &Contender) -> bool {
    let renamed = Contender { name: b.name.clone(), ..a.clone() };
    renamed == *b
}

fn of_copies(
    of: &CellVisits<'_>,
    (a, b): (usize, usize),
    metric: Metric,
) -> Option<(NoiseSource, u32, f64)> {
    let rows = of.logs(&[a, b], metric);
    let logs: Vec<f64> = rows[0].iter().zip(&rows[1]).map(|(a, b)| a - b).collect();
    let paired = Paired::of_logs(&logs, of.seed).ok()?;
    let interval = paired.interval?;
    let estimate = Estimate {
        ratio: paired.ratio,
        low: interval.low,
        high: interval.high,
        blocks: paired.n as u32,
        sd_ln: interval.sd_ln,
        p_holm: interval.p,
    };
    Some((NoiseSource::Copies { a, b, estimate }, paired.n as u32, interval.sd_ln))
}

fn of_visits(of: &CellVisits<'_>, metric: Metric) -> Option<(NoiseSource, u32, f64)> {
    let rows = of.logs(&of.reliable(), metric);
    let blocks = rows.first()?.len();
    if rows.len() < 2 || blocks < stats::BLOCKS_FOR_INTERVAL {
        return None;
    }
    let of_contender: Vec<f64> = rows.iter().map(|row| mean(row)).collect();
    let of_block: Vec<f64> = (0..blocks)
        .map(|block| mean(&rows.iter().map(|row| row[block]).collect::<Vec<_>>()))
        .collect();
    let of_all = mean(&of_contender);
    let squares: f64 = rows
        .iter()
        .zip(&of_contender)
        .flat_map(|(row, own)| row.iter().zip(&of_block).map(move |(v, b)| v - own - b + of_all))
        .map(|residual| residual * residual)
        .sum();
    // The means took degrees of freedom with them; and two visits have twice the variance of one.
    let freedom = (rows.len() - 1) * (blocks - 1);
    let sd_ln = (2.0 * squares / freedom as f64).sqrt();
    Some((NoiseSource::Visits, blocks as u32, sd_ln))
}
