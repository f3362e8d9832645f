//! Owns a robust centre with an interval that assumes only symmetry. Must not know what the values are. Start reading
//! at [`hodges_lehmann`].

use crate::confidence::ConfidenceInterval;
use crate::quantile::median;

/// Fewest values that have a 95 % interval: 2 of 2^6 = 64 sign patterns are within 5 %, none of 2^5.
const VALUES_FOR_INTERVAL: usize = 6;
/// Up to this many values the law of the signed ranks is computed exactly; it costs n^3 / 4 additions.
const EXACT_MAX: usize = 200;

/// The median of all pairwise means (each value also paired with itself), and its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HodgesLehmann {
    /// The estimate, on the scale of the values.
    pub centre: f64,
    /// At least 95 %, from Wilcoxon's signed ranks, for any symmetrical law of the values; `None` with fewer than six
    /// values or more than 200.
    pub interval: Option<ConfidenceInterval>,
}

/// The centre of Hodges and Lehmann (1963). `None` when empty; no value may be NaN.
///
/// 29 % of the values may be arbitrary without moving it beyond bounds (for the mean: none). On normal noise it needs 5
/// % more blocks than the mean.
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

/// The rank, from 1, of the lower end among the sorted means: one more than the largest c for which the probability of
/// a rank sum of at most c is at most 2.5 %.
fn rank_of_low_end(n: usize) -> Option<usize> {
    if !(VALUES_FOR_INTERVAL..=EXACT_MAX).contains(&n) {
        return None;
    }
    let most = n * (n + 1) / 2;
    // Probability of each sum of a random subset of 1..=n. Counts would overflow: there are 2^n subsets.
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
