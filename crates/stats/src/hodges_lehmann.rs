//! Owns a centre that a few wild values do not move, with an interval that assumes symmetry and no
//! more. Must not know what the values are. Start reading at [`hodges_lehmann`].

use crate::confidence::ConfidenceInterval;
use crate::quantile::median;

/// Fewest values that have a 95 % interval: of 2^6 signs two of 64 are within 5 %, of 2^5 none is.
const VALUES_FOR_INTERVAL: usize = 6;
/// Up to this many values the law of the signed ranks is counted exactly; it costs n^3 / 4 additions.
const EXACT_MAX: usize = 200;

/// The median of all means of two (a value with itself included), and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HodgesLehmann {
    /// The estimate, on the scale of the values.
    pub centre: f64,
    /// At least 95 %, from Wilcoxon's signed ranks, whatever the law of the values if it is
    /// symmetrical; `None` with fewer than six values or more than 200.
    pub interval: Option<ConfidenceInterval>,
}

/// The centre of Hodges and Lehmann (1963). `None` when empty; no value may be NaN.
///
/// Of n values, 29 % may be anything at all without moving it beyond bounds (the mean: none), and on
/// normal noise it needs 5 % more blocks than the mean.
pub fn hodges_lehmann(values: &[f64]) -> Option<HodgesLehmann> {
    let n = values.len();
    let mut means: Vec<f64> = (0..n)
        .flat_map(|one| (one..n).map(move |other| (one, other)))
        .map(|(one, other)| f64::midpoint(values[one], values[other]))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let interval = rank_of_low_end(n)
        .map(|rank| ConfidenceInterval { low: means[rank - 1], high: means[means.len() - rank] });
    Some(HodgesLehmann { centre: median(&means)?, interval })
}

/// Which of the sorted means, from 1, is the lower end: one more than the largest c for which the
/// chance of a rank sum of c or less is at most 2.5 %.
fn rank_of_low_end(n: usize) -> Option<usize> {
    if !(VALUES_FOR_INTERVAL..=EXACT_MAX).contains(&n) {
        return None;
    }
    let most = n * (n + 1) / 2;
    // Chance of each sum of a random subset of 1..=n; as chances and not counts, 2^n is no number.
    let mut chance = vec![0.0; most + 1];
    chance[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..=rank * (rank + 1) / 2).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = f64::midpoint(chance[sum], with);
        }
    }
    let mut below = 0.0;
    chance.iter().position(|one| {
        below += one;
        below > 0.025
    })
}
