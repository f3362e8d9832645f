//! Owns the bias-corrected and accelerated bootstrap (BCa) over blocks, of any statistic. Must not
//! know what the statistic is. Start reading at [`bca_bootstrap`].
//!
//! BCa corrects the plain percentiles of resamples for bias and skewness, but with few blocks they are too narrow by
//! about sqrt((n-1)/n) z/t: a nominal 95 % covers about 90 % with eight blocks. So they are taken further out by that
//! factor, as Hesterberg (2015, What Teachers Should Know About the Bootstrap, section 3.3) does for the percentile
//! interval; the correction itself is Efron's (1987).
//!
//! For statistics without a standard error: an explained share, a coefficient of a fitted law. The mean has a standard
//! error, so t and the studentised bootstrap serve there. Over 2000 simulated sessions of eight blocks BCa made the
//! wider of those two 0.5 % wider and did not cover the truth more often.

use crate::bootstrap::BOOTSTRAP_MIN;
use crate::confidence::ConfidenceInterval;
use crate::moments::mean;
use crate::quantile::quantile_of_sorted;
use crate::resample::Draws;
use crate::student::{t_quantile, z_cdf, z_quantile};

/// With eight blocks the ends are the 0.6 % quantiles: rank 28 of this many, accurate to 4 % of the distance from the
/// centre.
const RESAMPLES: usize = 4999;
/// Most resamples without a value; beyond that the remaining ones are a biased selection.
const WITHOUT_VALUE_MAX: usize = RESAMPLES / 20;

/// The 95 % BCa interval of a statistic of `n` blocks. The statistic is computed from the indices of the drawn blocks,
/// each in 0..n and repeated as often as it was drawn.
///
/// `None` with fewer than [`BOOTSTRAP_MIN`] blocks, or if the statistic does not vary. Also `None` if it has no finite
/// value for all blocks, for all but one, or for more than 5 % of the resamples. The same seed gives the same interval.
/// Calls `statistic` 5000 + n times.
pub fn bca_bootstrap(
    n: usize,
    seed: u64,
    mut statistic: impl FnMut(&[usize]) -> Option<f64>,
) -> Option<ConfidenceInterval> {
    let [interval] = bca_intervals(n, seed, |chosen| statistic(chosen).map(|value| [value]));
    interval
}

/// [`bca_bootstrap`] for several statistics that one call computes.
pub(crate) fn bca_intervals<const N: usize>(
    n: usize,
    seed: u64,
    mut statistics: impl FnMut(&[usize]) -> Option<[f64; N]>,
) -> [Option<ConfidenceInterval>; N] {
    if n < BOOTSTRAP_MIN {
        return [None; N];
    }
    let mut finite = |chosen: &[usize]| {
        statistics(chosen).filter(|values| values.iter().all(|value| value.is_finite()))
    };
    let all: Vec<usize> = (0..n).collect();
    let left_out = |out: usize| all.iter().copied().filter(|n| *n != out).collect::<Vec<_>>();
    let jackknife: Option<Vec<[f64; N]>> = (0..n).map(|out| finite(&left_out(out))).collect();
    let (Some(seen), Some(jackknife)) = (finite(&all), jackknife) else { return [None; N] };
    let mut chosen = vec![0; n];
    let mut draws = Draws::new(seed);
    let resampled: Vec<[f64; N]> = (0..RESAMPLES)
        .filter_map(|_| {
            draws.fill(&mut chosen);
            finite(&chosen)
        })
        .collect();
    if resampled.len() + WITHOUT_VALUE_MAX < RESAMPLES {
        return [None; N];
    }
    std::array::from_fn(|which| {
        let of = |all: &[[f64; N]]| all.iter().map(|values| values[which]).collect::<Vec<_>>();
        let mut sorted = of(&resampled);
        sorted.sort_unstable_by(f64::total_cmp);
        ends(seen[which], &of(&jackknife), &sorted)
    })
}

/// The two quantiles of the sorted resamples that BCa picks.
fn ends(seen: f64, jackknife: &[f64], resampled: &[f64]) -> Option<ConfidenceInterval> {
    let below = resampled.partition_point(|value| *value < seen);
    let equal = resampled.partition_point(|value| *value <= seen) - below;
    // Equal values count half: a statistic at its bound is equal in many resamples.
    let share = (below as f64 + equal as f64 / 2.0) / resampled.len() as f64;
    let acceleration = acceleration(jackknife)?;
    if share <= 0.0 || share >= 1.0 {
        return None;
    }
    let bias = z_quantile(share);
    let n = jackknife.len() as f64;
    let reach = t_quantile(0.975, n - 1.0) * (n / (n - 1.0)).sqrt();
    let at = |z: f64| {
        let shifted = bias + z;
        let picked = z_cdf(bias + shifted / (1.0 - acceleration * shifted));
        quantile_of_sorted(resampled, picked)
    };
    Some(ConfidenceInterval { low: at(-reach)?, high: at(reach)? })
}

/// A sixth of the skewness of the jackknife values; `None` if they are all equal.
fn acceleration(jackknife: &[f64]) -> Option<f64> {
    let centre = mean(jackknife);
    let sum = |power| jackknife.iter().map(|value| (centre - value).powi(power)).sum::<f64>();
    let squares = sum(2);
    (squares > 0.0).then(|| sum(3) / (6.0 * squares.powf(1.5)))
}
