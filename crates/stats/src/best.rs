//! Owns the probability that a contender is the best, given its blocks and those of the others. Start reading at
//! [`best_chances`].

use crate::biweight::{OUTLYING_VALUES_MIN, beyond, outlying_from};
use crate::moments::mean;
use crate::quantile::median;
use crate::resample::Draws;

const DRAWS: usize = 4999;

/// Which end of a metric is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
}

/// For each contender the probability that its true mean is the best, 0 to 1, given these blocks; equal contenders
/// share it. `rows` are contenders, columns are blocks that all of them have, in logarithms; no value may be NaN.
/// `None` without contenders or blocks. With one block all contenders have the same probability.
///
/// Means are drawn from their joint t distribution with n - 1 degrees of freedom: the posterior for normal noise
/// without prior knowledge. For two contenders it equals the one-sided p of their paired t. What a block does to all
/// contenders cancels out. Resampling the blocks would be too confident with few blocks: three blocks agree in sign in
/// one session of four of equal contenders, and the share would then be 1. Outlying values are moved to the limit of
/// "outlying" (winsorised), because a single wild value would decide the answer.
///
/// This does not replace a verdict: it ranks contenders that cannot be told apart, and is not adjusted for their
/// number.
///
/// # Panics
/// If rows differ in length.
pub fn best_chances(rows: &[Vec<f64>], better: Better, seed: u64) -> Option<Vec<f64>> {
    let blocks = rows.first()?.len();
    assert!(rows.iter().all(|row| row.len() == blocks), "every contender has every block");
    match blocks {
        0 => return None,
        1 => return Some(vec![1.0 / rows.len() as f64; rows.len()]),
        _ => {}
    }
    let sign = if better == Better::Higher { 1.0 } else { -1.0 };
    let rows = winsorised(rows);
    let means: Vec<f64> = rows.iter().map(|row| sign * mean(row)).collect();
    let residuals: Vec<Vec<f64>> = rows
        .iter()
        .zip(&means)
        .map(|(row, mean)| row.iter().map(|value| sign * value - mean).collect())
        .collect();
    let mut draws = Draws::new(seed);
    let mut weights = vec![0.0; blocks];
    let mut chances = vec![0.0; rows.len()];
    for _ in 0..DRAWS {
        draws.fill_t_weights(&mut weights);
        let drawn: Vec<f64> = residuals
            .iter()
            .zip(&means)
            .map(|(row, mean)| mean + row.iter().zip(&weights).map(|(r, w)| r * w).sum::<f64>())
            .collect();
        let most = drawn.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let best: Vec<usize> = (0..rows.len()).filter(|n| drawn[*n] >= most).collect();
        best.iter().for_each(|n| chances[*n] += 1.0 / (best.len() * DRAWS) as f64);
    }
    Some(chances)
}

/// Moves outlying values in. A value is outlying if it is far from its contender's other values, after the median of
/// each block is subtracted: a slow block is slow for everybody. "Far" is measured by the noisiest contender, because
/// the few values of one contender may be close by chance. In a pair the block's median is the middle of the two, so a
/// wild value of one moves the other too.
fn winsorised(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let blocks = rows[0].len();
    if blocks < OUTLYING_VALUES_MIN {
        return rows.to_vec();
    }
    let of_block = |block: usize| {
        let column: Vec<f64> = rows.iter().map(|row| row[block]).collect();
        median(&column).expect("there are contenders")
    };
    let of_blocks: Vec<f64> = (0..blocks).map(of_block).collect();
    let beside_block = |row: &Vec<f64>| -> Vec<f64> {
        row.iter().zip(&of_blocks).map(|(value, block)| value - block).collect()
    };
    let own: Vec<Vec<f64>> = rows.iter().map(beside_block).collect();
    let far = own.iter().map(|row| outlying_from(row)).fold(0.0, f64::max);
    let moved = |(row, own): (&Vec<f64>, &Vec<f64>)| {
        row.iter().zip(beyond(own, far)).map(|(value, beyond)| value - beyond).collect()
    };
    rows.iter().zip(&own).map(moved).collect()
}
