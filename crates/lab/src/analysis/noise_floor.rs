//! Owns the smallest difference that this machine can show with a number of blocks. Start reading at [`noise_floor`].

use record::{Contender, Estimate, Metric, NoiseFloor, NoiseSource};
use stats::Paired;
use units::Share;

use super::CellVisits;
use crate::verdict::ALPHA;

/// The noise floor of one cell by one metric; `all` are the plan's contenders. `None` with fewer than two contenders
/// in the cell, or fewer than three blocks that all of them have.
///
/// If two contenders differ only in their names, their ratio is the noise itself (A/A). Otherwise the noise is how
/// much the ratio of two visits of a block varies over blocks, squared and averaged over all pairs of contenders. It
/// uses the estimate of a verdict, so that one wild visit does not count as noise of the machine. (Visits of one
/// contender in two blocks would also contain the machine's drift, which pairing removes: ten times as much on a
/// machine that others use.)
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
    let paired = Paired::of_logs(&logs).ok()?;
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
    let pairs = (0..rows.len()).flat_map(|a| (a + 1..rows.len()).map(move |b| (a, b)));
    let variance = |(a, b): (usize, usize)| {
        let logs: Vec<f64> = rows[a].iter().zip(&rows[b]).map(|(a, b)| a - b).collect();
        Some(Paired::of_logs(&logs).ok()?.interval?.sd_ln.powi(2))
    };
    let variances: Vec<f64> = pairs.filter_map(variance).collect();
    let sd_ln = (variances.iter().sum::<f64>() / variances.len() as f64).sqrt();
    Some((NoiseSource::Visits, blocks as u32, sd_ln))
}
