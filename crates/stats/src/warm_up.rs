//! Owns where the warm-up ends in a series of equal intervals. Must not know what was counted in them. Start reading at
//! [`mser5`].

use crate::moments::mean;

/// Values averaged into one batch before the series is judged.
const BATCH: usize = 5;
/// Fewest batches that are judged: half of fewer is a single batch, whose spread cannot be estimated.
const BATCHES_MIN: usize = 4;

/// How much of a series to leave out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// Values to leave out at the start; never more than half.
    pub cut: usize,
    /// Whether the cut is the largest allowed: the series may never have settled.
    pub at_bound: bool,
}

/// MSER-5 (White 1997; White, Cobb and Spratt 2000): the truncation that minimises the standard error of the mean of
/// the rest, over batches of five values. Values after the last whole batch are ignored. A series of fewer than 20
/// values is too short to judge and is left whole.
pub fn mser5(series: &[f64]) -> WarmUp {
    let batches: Vec<f64> = series.chunks_exact(BATCH).map(mean).collect();
    if batches.len() < BATCHES_MIN {
        return WarmUp { cut: 0, at_bound: false };
    }
    let most = batches.len() / 2;
    // The first of equal minima: it keeps the most values.
    let (mut best, mut least) = (0, f64::INFINITY);
    for skipped in 0..=most {
        let error = squared_error(&batches[skipped..]);
        if error < least {
            (best, least) = (skipped, error);
        }
    }
    WarmUp { cut: best * BATCH, at_bound: best == most }
}

/// Square of the standard error of the mean, as MSER defines it: over n, not n - 1.
fn squared_error(batches: &[f64]) -> f64 {
    let centre = mean(batches);
    let squares: f64 = batches.iter().map(|value| (value - centre).powi(2)).sum();
    squares / (batches.len() as f64).powi(2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_settled_series_is_left_whole() {
        assert_eq!(mser5(&[100.0; 60]), WarmUp { cut: 0, at_bound: false });
    }

    #[test]
    fn a_step_is_cut_where_it_ends() {
        let mut series = vec![50.0; 15];
        series.extend((0..45).map(|n| if n % 2 == 0 { 99.0 } else { 101.0 }));
        assert_eq!(mser5(&series), WarmUp { cut: 15, at_bound: false });
    }

    #[test]
    fn what_never_settles_is_cut_at_the_bound_and_says_so() {
        let rising: Vec<f64> = (0..60).map(f64::from).collect();
        assert_eq!(mser5(&rising), WarmUp { cut: 30, at_bound: true });
    }

    #[test]
    fn a_short_series_is_left_whole() {
        let rising: Vec<f64> = (0..19).map(f64::from).collect();
        assert_eq!(mser5(&rising).cut, 0);
        assert_eq!(mser5(&[]).cut, 0);
    }

    proptest! {
        #[test]
        fn never_more_than_half_is_cut(series in prop::collection::vec(0.0f64..1e6, 0..200)) {
            prop_assert!(mser5(&series).cut * 2 <= series.len());
        }
    }
}
