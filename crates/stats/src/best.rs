//! Owns how sure it is who is best. Must not know of what. Start reading at [`best_shares`].

use crate::biweight::excess;
use crate::moments::mean;
use crate::quantile::median;
use crate::resample::Draws;

const RESAMPLES: usize = 4999;

/// Which end of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// For each contender the share of resamples of the blocks in which its mean is the best, 0 to 1;
/// equal ones share. `rows` are contenders, columns are blocks that all of them have, in logarithms;
/// no value may be NaN. `None` without contenders or blocks. An outlying value counts as one that is just
/// about to be outlying (winsorised): drawn three times, a wild one would be the answer.
///
/// A share is no p value and replaces no verdict: with few blocks draws vary too little, so 0.97 of
/// eight blocks is less sure than it looks. It ranks those that cannot be told apart.
///
/// # Panics
/// Where rows differ in length.
pub fn best_shares(rows: &[Vec<f64>], better: Better, seed: u64) -> Option<Vec<f64>> {
    let blocks = rows.first()?.len();
    assert!(rows.iter().all(|row| row.len() == blocks), "every contender has every block");
    if blocks == 0 {
        return None;
    }
    let rows = winsorised(rows);
    // Larger is better from here on; about the mean of all, so that sums stay exact enough to tie.
    let centre = mean(&rows.iter().map(|row| mean(row)).collect::<Vec<_>>());
    let sign = if better == Better::Higher { 1.0 } else { -1.0 };
    let mut draws = Draws::new(seed);
    let mut chosen = vec![0; blocks];
    let mut shares = vec![0.0; rows.len()];
    for _ in 0..RESAMPLES {
        draws.fill(&mut chosen);
        let sums: Vec<f64> = rows
            .iter()
            .map(|row| chosen.iter().map(|block| sign * (row[*block] - centre)).sum())
            .collect();
        let most = sums.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let best: Vec<usize> = (0..rows.len()).filter(|n| sums[*n] >= most).collect();
        best.iter().for_each(|n| shares[*n] += 1.0 / (best.len() * RESAMPLES) as f64);
    }
    Some(shares)
}

/// Outlying values moved in; outlying is what lies far from its contender's other values when the median
/// of its block is taken from all of them: a slow block is slow for everybody.
fn winsorised(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let of_block = |block: usize| {
        let column: Vec<f64> = rows.iter().map(|row| row[block]).collect();
        median(&column).expect("there are contenders")
    };
    let of_blocks: Vec<f64> = (0..rows[0].len()).map(of_block).collect();
    let moved = |row: &Vec<f64>| {
        let own: Vec<f64> =
            row.iter().zip(&of_blocks).map(|(value, block)| value - block).collect();
        row.iter().zip(excess(&own)).map(|(value, beyond)| value - beyond).collect()
    };
    rows.iter().map(moved).collect()
}
