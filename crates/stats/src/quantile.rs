//! Owns quantiles of plain slices, what is built from them, and the effective size of an autocorrelated series. Must
//! not know what the values are. Start reading at [`quantile`].

use crate::confidence::ConfidenceInterval;
use crate::moments::mean;
use crate::student::z_quantile;

/// The `q`-quantile (0 to 1) by linear interpolation between order statistics: type 7 of Hyndman and
/// Fan 1996, what R and NumPy do by default. `None` when empty; no value may be NaN.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    quantile_of_sorted(&sorted(values), q)
}

/// [`quantile`] of values in rising order.
pub(crate) fn quantile_of_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * q.clamp(0.0, 1.0);
    let below = position.floor() as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (position - below as f64) * (sorted[above] - sorted[below]))
}

/// Median; `None` when empty.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Median of the distances from the median (MAD), unscaled; `None` when empty. Times 1.4826 it
/// estimates the standard deviation of normal values.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let centre = median(values)?;
    let distances: Vec<f64> = values.iter().map(|value| (value - centre).abs()).collect();
    median(&distances)
}

/// 95 % interval of the `q`-quantile, from two order statistics of the values: ranks n q -+ 1.96 sqrt(n q (1-q)). n is
/// `samples`, at most the number of values: the effective size if they depend on each other. It makes no assumption on
/// their law. `None` if a rank is outside the sample, which is then too small for this quantile.
pub fn quantile_interval(values: &[f64], q: f64, samples: f64) -> Option<ConfidenceInterval> {
    let sorted = sorted(values);
    let n = sorted.len() as f64;
    let reach = z_quantile(0.975) * (q * (1.0 - q) / samples.min(n)).sqrt();
    let (low, high) = ((n * (q - reach)).floor(), (n * (q + reach)).ceil() + 1.0);
    // Ranks count from 1.
    if low < 1.0 || high > n || !reach.is_finite() {
        return None;
    }
    Some(ConfidenceInterval { low: sorted[low as usize - 1], high: sorted[high as usize - 1] })
}

/// Correlation of a series with itself one step later; `None` for fewer than three values or if they do not vary.
pub fn lag1_autocorrelation(series: &[f64]) -> Option<f64> {
    let centre = mean(series);
    let squares: f64 = series.iter().map(|value| (value - centre).powi(2)).sum();
    let products: f64 = series.windows(2).map(|w| (w[0] - centre) * (w[1] - centre)).sum();
    (series.len() > 2 && squares > 0.0).then(|| products / squares)
}

/// How many independent values a series of `n` with this lag-1 autocorrelation is worth: n (1 - r) / (1 + r), as for a
/// first-order autoregression. Limited to 1..n (for n of 1 or more): a negative correlation earns no bonus.
pub fn effective_samples(n: usize, lag1: f64) -> f64 {
    let n = n as f64;
    let lag1 = lag1.clamp(0.0, 1.0);
    (n * (1.0 - lag1) / (1.0 + lag1)).max(n.min(1.0))
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
