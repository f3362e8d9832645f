//! Owns the ratio of two independent samples: a robust centre of each side, and Welch's t of them. Must not know what
//! was sampled, nor when. Start reading at [`TwoSample::of_logs`].
//!
//! Pairing is for values of the same block; two runs made on different days share no block. Pairing them by number
//! would compare unrelated blocks (those that came third, say) and widen the interval. Variances are not pooled: a
//! server that changed may vary differently than before. Welch's interval then keeps its coverage, and costs next to
//! nothing if the variances are alike (Welch 1947; Ruxton 2006).

use crate::biweight::{Biweight, p_of};
use crate::decision::{Decision, Standard};
use crate::equivalence::{Tost, within};
use crate::holm::Held;
use crate::missing::{Spread, missing};
use crate::paired::{BLOCKS_FOR_INTERVAL, PairedError};
use crate::student::t_quantile;

/// The log ratio of a over b, each sampled independently.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSample {
    /// Values of a, at least 1.
    pub n_a: usize,
    /// Values of b, at least 1.
    pub n_b: usize,
    /// Centre of ln a minus centre of ln b; each a biweight, as in [`crate::Paired`].
    pub centre_ln: f64,
    /// exp of `centre_ln`.
    pub ratio: f64,
    /// How certain the ratio is; `None` if a side has fewer than [`BLOCKS_FOR_INTERVAL`] values.
    pub interval: Option<TwoSampleInterval>,
}

/// How certain a ratio of two samples is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TwoSampleInterval {
    /// Lower end of the 95 % interval of the ratio, by Welch's t; equal to the upper end if neither side varies.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Standard deviation of ln a over its values, as far as it affects the centre.
    pub sd_ln_a: f64,
    /// The same of ln b.
    pub sd_ln_b: f64,
    /// Standard error of the log ratio.
    pub error_ln: f64,
    /// Welch's degrees of freedom; if neither side varies, those of the side with fewer values that count.
    pub df: f64,
    /// Two-sided p of "the ratio is 1", by Welch's t; not adjusted for multiple pairs.
    pub p: f64,
}

impl TwoSampleInterval {
    /// Standard deviation of ln(a / b) over pairs of one value of each.
    pub(crate) fn sd_ln(&self) -> f64 {
        self.sd_ln_a.hypot(self.sd_ln_b)
    }
}

impl TwoSample {
    /// From the logarithms of both; each finite.
    ///
    /// # Errors
    /// A side is empty, or has a value that is not finite.
    pub fn of_logs(a: &[f64], b: &[f64]) -> Result<Self, PairedError> {
        if a.is_empty() || b.is_empty() {
            return Err(PairedError::Empty);
        }
        for side in [a, b] {
            if let Some(block) = side.iter().position(|log| !log.is_finite()) {
                return Err(PairedError::NotPositive { block, value: side[block] });
            }
        }
        let sides = [a, b].map(Side::of);
        let centre_ln = sides[0].of.centre - sides[1].of.centre;
        let is_enough = a.len().min(b.len()) >= BLOCKS_FOR_INTERVAL;
        Ok(Self {
            n_a: a.len(),
            n_b: b.len(),
            centre_ln,
            ratio: centre_ln.exp(),
            interval: is_enough.then(|| interval(&sides)),
        })
    }

    /// Tests whether the ratio lies between 1 / (1 + margin) and 1 + margin, as [`crate::tost`] does. `None` if there
    /// is no interval.
    pub fn tost(&self, margin: f64) -> Option<Tost> {
        let TwoSampleInterval { error_ln, df, .. } = self.interval?;
        Some(within(self.centre_ln, error_ln, df, margin))
    }

    /// The decision by the rules of [`crate::decide`], for a p that was adjusted for the others of its family. Missing
    /// blocks are missing on both sides.
    pub fn decide(&self, held: impl Into<Held>, standard: Standard) -> Decision {
        let held: Held = held.into();
        let n = self.n_a.min(self.n_b);
        let (Some(interval), Some(tost)) = (self.interval, self.tost(standard.margin)) else {
            return Decision::Undecided { more: Some((BLOCKS_FOR_INTERVAL - n) as u32) };
        };
        if tost.equivalent {
            Decision::NoDifference
        } else if held.p < standard.alpha && (interval.low > 1.0 || interval.high < 1.0) {
            Decision::Ratio
        } else {
            let seen = Spread { n, centre_ln: self.centre_ln, sd_ln: interval.sd_ln() };
            Decision::Undecided { more: missing(seen, held, standard.margin, standard.alpha) }
        }
    }
}

fn interval([a, b]: &[Side; 2]) -> TwoSampleInterval {
    let centre = a.of.centre - b.of.centre;
    let error = a.of.error.hypot(b.of.error);
    let df = degrees_of_freedom(&a.of, &b.of);
    let reach = t_quantile(0.975, df) * error;
    TwoSampleInterval {
        low: (centre - reach).exp(),
        high: (centre + reach).exp(),
        sd_ln_a: a.of.error * a.n.sqrt(),
        sd_ln_b: b.of.error * b.n.sqrt(),
        error_ln: error,
        df,
        p: p_of(centre, error, df),
    }
}

/// One sample.
struct Side {
    n: f64,
    of: Biweight,
}

impl Side {
    fn of(values: &[f64]) -> Self {
        Self { n: values.len() as f64, of: Biweight::of(values) }
    }
}

/// By Welch and Satterthwaite; between the smaller degrees of freedom of a side and the sum of both.
fn degrees_of_freedom(a: &Biweight, b: &Biweight) -> f64 {
    let least = a.df.min(b.df);
    let (of_a, of_b) = (a.error.powi(2), b.error.powi(2));
    let df = (of_a + of_b).powi(2) / (of_a * of_a / a.df + of_b * of_b / b.df);
    if df.is_finite() { df.max(least) } else { least }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STANDARD: Standard = Standard { margin: 0.02, alpha: 0.02 };

    #[test]
    fn too_few_values_have_a_ratio_but_no_interval() {
        let seen = TwoSample::of_logs(&[0.1, 0.1], &[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((seen.n_a, seen.n_b, seen.interval), (2, 3, None));
        assert_eq!(seen.decide(1.0, STANDARD), Decision::Undecided { more: Some(1) });
        assert_eq!(TwoSample::of_logs(&[], &[1.0]), Err(PairedError::Empty));
        let infinite = TwoSample::of_logs(&[1.0], &[0.0, f64::INFINITY]);
        assert!(matches!(infinite, Err(PairedError::NotPositive { block: 1, .. })));
    }

    #[test]
    fn values_without_spread_give_a_point_and_a_sure_answer() {
        let same = TwoSample::of_logs(&[0.3; 8], &[0.3; 9]).unwrap();
        assert_eq!(same.interval.unwrap().p, 1.0);
        assert_eq!(same.decide(1.0, STANDARD), Decision::NoDifference);
        let other = TwoSample::of_logs(&[0.4; 8], &[0.3; 9]).unwrap();
        let interval = other.interval.unwrap();
        assert_eq!(interval.p, 0.0);
        assert!((interval.low - interval.high).abs() < 1e-12);
        assert_eq!(other.decide(0.0, STANDARD), Decision::Ratio);
    }

    #[test]
    fn a_side_without_spread_does_not_spoil_the_other() {
        let seen = TwoSample::of_logs(&[0.0; 9], &[0.01, -0.01, 0.02, -0.02, 0.0]).unwrap();
        let interval = seen.interval.unwrap();
        assert!(
            (2.0..4.0).contains(&interval.df),
            "only one side says how sure it is: {interval:?}"
        );
        assert!(interval.low < 1.0 && interval.high > 1.0);
    }
}
