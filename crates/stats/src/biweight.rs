//! Owns a robust centre of a few values, with its standard error. Must not know what the values are. Start reading at
//! [`Biweight::of`].
//!
//! Tukey's biweight: a value counts less the further it lies from the centre, and not at all beyond [`REACH`] standard
//! deviations. Its t follows Student's law well enough for intervals with 4 values and more (Mosteller and Tukey 1977,
//! Data Analysis and Regression, 10; Kafadar 1982, JASA 77). They take the spread from the median distance, and
//! 0.7 (n - 1) degrees of freedom. Ours takes the spread from a distance further out, because the median distance
//! collapses if a server has two speeds. Its degrees of freedom come from the number of values that count.
//! METHODOLOGY.md compares the estimators in a table, which the example `estimators` makes.
//!
//! Cost: one sort, one selection and some 10 passes over n values; n = 8: 1 us.

use crate::moments::mean;
use crate::quantile::{median, quantile};
use crate::student::{t_quantile, two_sided_p, z_quantile};

/// Distance from the centre, in standard deviations, beyond which a value does not count.
const REACH: f64 = 6.0;
/// The spread is taken from this quantile of the distances from the median, so this share of the values has to agree.
/// With the median distance (0.5), three of four blocks of a server with two speeds are enough; with 0.8, the third
/// wild block of twelve moves the spread.
const AGREEING: f64 = 0.7;
/// Least spread, in logarithms: 0.1 %, the resolution of latency histograms. If most values are equal, as in memory
/// figures, a value that differs by a hair is no outlier.
const SPREAD_MIN: f64 = 1e-3;
/// Distance in standard deviations beyond which a value is outlying: there it has less than a tenth of its weight. At
/// the usual 3.5 (Iglewicz and Hoaglin 1993) 7 of 100 clean sessions of eight blocks had an outlier, and at 5 only 2. A
/// study looks at many pairs.
const OUTLYING: f64 = 5.0;
/// Least distance of an outlying value, in logarithms: a value within 5 % of the others does no harm.
const OUTLYING_MIN: f64 = 0.05;
/// Fewest values of which one can be outlying: with three values, no distance is remarkable.
pub(crate) const OUTLYING_VALUES_MIN: usize = 4;
/// After this many passes the centre has converged to 12 digits, or it oscillates between two clusters.
const PASSES_MAX: usize = 50;

/// A centre with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Biweight {
    /// The centre, on the scale of the values.
    pub(crate) centre: f64,
    /// Standard error of the centre; 0 if the values that count are equal.
    pub(crate) error: f64,
    /// Degrees of freedom of its t, at least 1: the values that count, minus one.
    pub(crate) df: f64,
}

impl Biweight {
    /// Of at least one value, each finite. With one or two values the error means nothing.
    pub(crate) fn of(values: &[f64]) -> Self {
        if values.len() < 3 {
            return Self { centre: mean(values), error: 0.0, df: 1.0 };
        }
        let (mut centre, spread) = middle_and_spread(values);
        let reach = REACH * spread;
        for _ in 0..PASSES_MAX {
            let before = centre;
            centre = weighted_mean(values, centre, reach);
            if (centre - before).abs() <= 1e-13 * reach {
                break;
            }
        }
        // Sums of psi squared and of the slope of psi; the second is how many values the centre rests on.
        let (mut squares, mut kept) = (0.0, 0.0);
        for value in values {
            let share = ((value - centre) / reach).powi(2);
            if share < 1.0 {
                squares += (value - centre).powi(2) * (1.0 - share).powi(4);
                kept += (1.0 - share) * (1.0 - 5.0 * share);
            }
        }
        // Values near the edge of reach have a negative slope: the further out they are, the less they pull.
        let df = (kept - 1.0).max(1.0);
        // A rounding residue of equal values is no error.
        let error = (squares / (kept.max(1.0) * df)).sqrt();
        let error = if error < 1e-15 * centre.abs().max(1.0) { 0.0 } else { error };
        Self { centre, error, df }
    }

    /// Half the width of the interval that holds the truth with probability `chance`.
    pub(crate) fn reach(&self, chance: f64) -> f64 {
        t_quantile(f64::midpoint(1.0, chance), self.df) * self.error
    }

    /// Two-sided p of "the centre is 0".
    pub(crate) fn p(&self) -> f64 {
        p_of(self.centre, self.error, self.df)
    }
}

/// Two-sided p of "the centre is 0". Without spread t would be 0 / 0 or infinite: then p is 1 if the centre is 0, and 0
/// otherwise.
pub(crate) fn p_of(centre: f64, error: f64, df: f64) -> f64 {
    match (centre == 0.0, error == 0.0) {
        (true, _) => 1.0,
        (false, true) => 0.0,
        (false, false) => two_sided_p(centre / error, df),
    }
}

/// Degrees of freedom of `n` blocks of normal noise, for plans: E\[(1 - u^2)(1 - 5 u^2)\] of u = z / 6 is
/// 1 - 6/36 + 15/1296, so each counts for 0.845.
pub(crate) fn df_of(n: f64) -> f64 {
    (0.845 * n - 1.0).max(1.0)
}

/// The indices of the logarithms that lie far from the centre of all: by more than five standard deviations of those
/// that agree, and by more than 5 %. Empty for fewer than four values.
pub fn outlying(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLYING_VALUES_MIN {
        return Vec::new();
    }
    let (centre, least) = (Biweight::of(values).centre, outlying_from(values));
    let is_far = |index: &usize| (values[*index] - centre).abs() > least;
    (0..values.len()).filter(is_far).collect()
}

/// How far each value has to be moved to lie within `far` of the centre of all (winsorising); 0 for most.
pub(crate) fn beyond(values: &[f64], far: f64) -> Vec<f64> {
    let centre = Biweight::of(values).centre;
    let beyond = |value: &f64| {
        let off = value - centre;
        if off.abs() > far { off - off.clamp(-far, far) } else { 0.0 }
    };
    values.iter().map(beyond).collect()
}

/// The distance from the centre of these values beyond which a value is outlying.
pub(crate) fn outlying_from(values: &[f64]) -> f64 {
    (OUTLYING * middle_and_spread(values).1).max(OUTLYING_MIN)
}

/// The median, and the standard deviation of a normal law with a share of [`AGREEING`] equally near its median.
fn middle_and_spread(values: &[f64]) -> (f64, f64) {
    let middle = median(values).expect("there are values");
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    let distance = quantile(&distances, AGREEING).expect("there are values");
    (middle, (distance / z_quantile(f64::midpoint(1.0, AGREEING))).max(SPREAD_MIN))
}

fn weighted_mean(values: &[f64], centre: f64, reach: f64) -> f64 {
    let (mut moved, mut weights) = (0.0, 0.0);
    for value in values {
        let off = value - centre;
        let share = (off / reach).powi(2);
        if share < 1.0 {
            moved += (1.0 - share).powi(2) * off;
            weights += (1.0 - share).powi(2);
        }
    }
    // If distances on both sides are equal, the median lies between two clusters, out of reach of either.
    if weights > 0.0 { centre + moved / weights } else { centre }
}
