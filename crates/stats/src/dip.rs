//! Owns Hartigan's dip test: how far values are from any unimodal distribution. Must not know what the values are.
//! Start reading at [`dip`].
//!
//! The dip is the greatest distance between the empirical distribution and the nearest unimodal one (Hartigan and
//! Hartigan 1985). Unimodal means: convex up to the mode and concave after it. So the greatest convex minorant G of the
//! lower corners of the staircase and the least concave majorant L of its upper corners are fitted around an interval
//! that must hold the mode. Where L and G are furthest apart the interval shrinks, until the distances outside it are
//! the larger ones.
//! Written from the paper, and compared with linear programming in scripts/fixtures-stats.py.
//!
//! Cost: O(n) per round after sorting, few rounds; n = 20: 1 us.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// Simulated samples behind a p value: 1999 distinguish 1 % from 0.5 % or 2 %.
const SIMULATED: usize = 1999;

/// The dip, from 1/(2n) to 1/4; `None` with fewer than two distinct values. No value may be NaN.
pub fn dip(values: &[f64]) -> Option<f64> {
    let corners = Corners::of(values);
    (corners.at.len() > 1).then(|| corners.dip() / (2.0 * values.len() as f64))
}

/// Probability of a dip of at least `dip` in `n` values of a uniform distribution, the unimodal one with the largest
/// dips. Simulated with the seed; at least 1/2000.
pub fn dip_p(dip: f64, n: usize, seed: u64) -> f64 {
    let mut rng = Pcg64::seed_from_u64(seed);
    let mut values = vec![0.0; n];
    let as_large = |_: &usize| {
        values.iter_mut().for_each(|value| *value = rng.random::<f64>());
        self::dip(&values).is_some_and(|simulated| simulated >= dip)
    };
    (1 + (0..SIMULATED).filter(as_large).count()) as f64 / (SIMULATED + 1) as f64
}

/// The staircase of the empirical distribution, in counts: for each distinct value, how many values are below it and
/// how many are at most equal to it.
struct Corners {
    at: Vec<f64>,
    lower: Vec<f64>,
    upper: Vec<f64>,
}

/// A convex or concave function over a range of corners.
struct Hull {
    /// Indices of the corners that it touches, rising.
    touches: Vec<usize>,
    /// Its value at every corner of the range.
    values: Vec<f64>,
}

impl Corners {
    fn of(values: &[f64]) -> Self {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let mut corners = Self { at: Vec::new(), lower: Vec::new(), upper: Vec::new() };
        let mut below = 0;
        for group in sorted.chunk_by(|a, b| a == b) {
            corners.at.push(group[0]);
            corners.lower.push(below as f64);
            below += group.len();
            corners.upper.push(below as f64);
        }
        corners
    }

    /// Twice the dip, in counts.
    fn dip(&self) -> f64 {
        let (mut low, mut high) = (0, self.at.len() - 1);
        // No continuous function comes closer than half a step to a staircase with steps of one.
        let mut dip = 1.0f64;
        loop {
            let minorant = self.minorant(low, high);
            let majorant = self.majorant(low, high);
            let (apart, (new_low, new_high)) = self.widest(low, &minorant, &majorant);
            if apart < dip {
                return dip;
            }
            let left = (low..=new_low).map(|i| self.upper[i] - minorant.values[i - low]);
            let right = (new_high..=high).map(|i| majorant.values[i - low] - self.lower[i]);
            dip = left.chain(right).fold(dip, f64::max);
            if (new_low, new_high) == (low, high) {
                return dip;
            }
            (low, high) = (new_low, new_high);
        }
    }

    /// Where the hulls are furthest apart: the distance, and the resulting interval of the mode.
    fn widest(&self, low: usize, minorant: &Hull, majorant: &Hull) -> (f64, (usize, usize)) {
        let below = minorant.touches.iter().map(|&i| {
            let next = majorant.touches.iter().find(|&&j| j >= i);
            let next = *next.expect("both hulls end at the same corner");
            (majorant.values[i - low] - self.lower[i], (i, next))
        });
        let above = majorant.touches.iter().map(|&i| {
            let previous = minorant.touches.iter().rev().find(|&&j| j <= i);
            let previous = *previous.expect("both hulls begin at the same corner");
            (self.upper[i] - minorant.values[i - low], (previous, i))
        });
        let widest = below.chain(above).max_by(|a, b| a.0.total_cmp(&b.0));
        widest.expect("a hull touches its ends")
    }

    /// Greatest convex function below the lower corners of a range.
    fn minorant(&self, low: usize, high: usize) -> Hull {
        hull(low, &self.at[low..=high], &self.lower[low..=high])
    }

    /// Least concave function above the upper corners: the minorant of the negatives, negated.
    fn majorant(&self, low: usize, high: usize) -> Hull {
        let negative: Vec<f64> = self.upper[low..=high].iter().map(|count| -count).collect();
        let mut hull = hull(low, &self.at[low..=high], &negative);
        hull.values.iter_mut().for_each(|value| *value = -*value);
        hull
    }
}

/// Lower convex hull of points with rising x; indices count from `first`.
fn hull(first: usize, x: &[f64], y: &[f64]) -> Hull {
    let slope = |a: usize, b: usize| (y[b] - y[a]) / (x[b] - x[a]);
    let mut touches: Vec<usize> = Vec::new();
    for i in 0..x.len() {
        while let [.., a, b] = touches[..]
            && slope(a, b) >= slope(b, i)
        {
            touches.pop();
        }
        touches.push(i);
    }
    let mut values = vec![y[0]];
    for pair in touches.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        values.extend((a + 1..=b).map(|i| y[a] + slope(a, b) * (x[i] - x[a])));
    }
    touches.iter_mut().for_each(|i| *i += first);
    Hull { touches, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_far_clusters_have_nearly_the_largest_dip_and_a_small_p() {
        let values: Vec<f64> =
            (0..20).map(|n| f64::from(n % 2) * 100.0 + f64::from(n) / 20.0).collect();
        let dip = dip(&values).unwrap();
        assert!((0.2..=0.25).contains(&dip), "{dip}");
        assert_eq!(dip_p(dip, values.len(), 1), 1.0 / 2000.0);
    }

    #[test]
    fn evenly_spaced_values_have_the_least_dip() {
        let values: Vec<f64> = (0..10).map(f64::from).collect();
        assert!((dip(&values).unwrap() - 0.05).abs() < 1e-12);
        assert_eq!(dip_p(0.05, 10, 1), 1.0);
    }

    #[test]
    fn equal_values_have_no_dip() {
        assert_eq!(dip(&[]), None);
        assert_eq!(dip(&[3.0; 5]), None);
    }
}
