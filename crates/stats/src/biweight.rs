//! Owns the centre of a few values that wild ones do not move, with its standard error. Must not know
//! what the values are. Start reading at [`Biweight::of`].
//!
//! Tukey's biweight: a value counts less the further it lies from the centre, and not at all beyond
//! [`REACH`] standard deviations. t of it follows Student's law well enough for intervals at 4 values and
//! more (Mosteller and Tukey 1977, Data Analysis and Regression, 10; Kafadar 1982, JASA 77). Theirs takes
//! the spread from the median distance and 0.7 (n - 1) degrees of freedom; ours takes a distance further out,
//! because the median one collapses where a server has two speeds, and counts what was kept.
//! Why this of all estimators: METHODOLOGY.md has the table, the example `estimators` makes it.
//!
//! Cost: one sort, one selection and some 10 passes over n values; n = 8: 1 us.

use crate::moments::mean;
use crate::quantile::{median, quantile};
use crate::student::{t_quantile, two_sided_p, z_quantile};

/// Distance from the centre, in standard deviations, from where a value does not count.
const REACH: f64 = 6.0;
/// The share of distances from the median that gives the spread: so many values have to agree. The median
/// distance (half) believes three of four blocks of a server with two speeds; 0.8 is moved by the third
/// wild block of twelve.
const AGREEING: f64 = 0.7;
/// Least spread, in logarithms: 0.1 %, the resolution of latency histograms. Where most values are equal,
/// as those of memory are, one a hair beside them is no outlier.
const SPREAD_MIN: f64 = 1e-3;
/// Distance in standard deviations from where a value is outlying: there it has less than a tenth of its
/// weight. At the usual 3.5 (Iglewicz and Hoaglin 1993) 7 of 100 clean sessions of eight blocks had one, at 5
/// two, and a study looks over many pairs.
const OUTLYING: f64 = 5.0;
/// Least distance of an outlying value, in logarithms: what lies 5 % beside the others does no harm.
const OUTLYING_MIN: f64 = 0.05;
/// Fewest values of which one can be outlying: of three, any is as far off as it likes.
pub(crate) const OUTLYING_VALUES_MIN: usize = 4;
/// Passes after which the centre stands to 12 digits, or moves between two clusters for good.
const PASSES_MAX: usize = 50;

/// A centre with its error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Biweight {
    /// On the scale of the values.
    pub(crate) centre: f64,
    /// Standard error of the centre; 0 where the values that count are equal.
    pub(crate) error: f64,
    /// Degrees of freedom of its t, at least 1: the values that count, less one.
    pub(crate) df: f64,
}

impl Biweight {
    /// Of finite values, at least one. With one, or two, the error says nothing.
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
        // Sums of psi squared and of the slope of psi, which is how many values the centre rests on.
        let (mut squares, mut kept) = (0.0, 0.0);
        for value in values {
            let share = ((value - centre) / reach).powi(2);
            if share < 1.0 {
                squares += (value - centre).powi(2) * (1.0 - share).powi(4);
                kept += (1.0 - share) * (1.0 - 5.0 * share);
            }
        }
        // Values at the edge of reach have a negative slope: they pull the less the further they are.
        let df = (kept - 1.0).max(1.0);
        // What rounding leaves of equal values is no error.
        let error = (squares / (kept.max(1.0) * df)).sqrt();
        let error = if error < 1e-15 * centre.abs().max(1.0) { 0.0 } else { error };
        Self { centre, error, df }
    }

    /// How far to either side of the centre an interval ends that holds the truth with `chance`.
    pub(crate) fn reach(&self, chance: f64) -> f64 {
        t_quantile(f64::midpoint(1.0, chance), self.df) * self.error
    }

    /// Two-sided p of "the centre is 0".
    pub(crate) fn p(&self) -> f64 {
        p_of(self.centre, self.error, self.df)
    }
}

/// Two-sided p of "the centre is 0". Without any spread 0 / 0 would be NaN: equal is equal, and what
/// differs always differs surely.
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

/// Which of the logarithms, by index, lie far from the centre of all: more than five standard deviations of
/// those that agree, and more than 5 %. None of fewer than four.
pub fn outlying(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLYING_VALUES_MIN {
        return Vec::new();
    }
    let (centre, least) = (Biweight::of(values).centre, outlying_from(values));
    let is_far = |index: &usize| (values[*index] - centre).abs() > least;
    (0..values.len()).filter(is_far).collect()
}

/// By how much each value has to be moved to lie no further than `far` from the centre of all
/// (winsorising); 0 for most.
pub(crate) fn beyond(values: &[f64], far: f64) -> Vec<f64> {
    let centre = Biweight::of(values).centre;
    let beyond = |value: &f64| {
        let off = value - centre;
        if off.abs() > far { off - off.clamp(-far, far) } else { 0.0 }
    };
    values.iter().map(beyond).collect()
}

/// The distance from the centre of these values from where one is outlying.
pub(crate) fn outlying_from(values: &[f64]) -> f64 {
    (OUTLYING * middle_and_spread(values).1).max(OUTLYING_MIN)
}

/// The median, and the standard deviation of normal values of which [`AGREEING`] lie as near to it.
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
    // Equal distances on both sides put the median between two clusters, beyond the reach of either.
    if weights > 0.0 { centre + moved / weights } else { centre }
}
