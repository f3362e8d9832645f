//! Owns whether a series rises: a least-squares line, and how likely its slope is without a trend. Must not know what
//! rises. Start reading at [`Trend::of`].

use crate::student::upper_p;

/// Fewest points for a line: with fewer, chance decides.
pub const TREND_POINTS_MIN: usize = 5;

/// A straight line through points.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Rise per unit of x.
    pub slope: f64,
    /// Probability of at least this slope if the points scatter independently around a level. Autocorrelated points,
    /// such as those of a queue, drift more than that.
    pub p_rising: f64,
}

impl Trend {
    /// The line through `(x, y)`, by ordinary least squares. `None` with fewer than [`TREND_POINTS_MIN`] points, or if
    /// all have the same x.
    pub fn of(points: &[(f64, f64)]) -> Option<Self> {
        if points.len() < TREND_POINTS_MIN {
            return None;
        }
        let n = points.len() as f64;
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
        let (mean_x, mean_y) = (mean(|p| p.0), mean(|p| p.1));
        let sum = |of: &dyn Fn(f64, f64) -> f64| {
            points.iter().map(|(x, y)| of(x - mean_x, y - mean_y)).sum::<f64>()
        };
        let (xx, xy) = (sum(&|x, _| x * x), sum(&|x, y| x * y));
        if xx <= 0.0 {
            return None;
        }
        let slope = xy / xx;
        let residual = sum(&|x, y| (y - slope * x).powi(2));
        let df = n - 2.0;
        let error = (residual / df / xx).sqrt();
        let p_rising = match error {
            error if error > 0.0 => upper_p(slope / error, df),
            _ if slope > 0.0 => 0.0,
            _ => 1.0,
        };
        Some(Self { slope, p_rising })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn indexed(values: &[f64]) -> Vec<(f64, f64)> {
        values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect()
    }

    /// The definition of `scipy.stats.linregress(range(n), y, alternative="greater")`, computed independently of this
    /// code: sums of squares, and the density of Student's t integrated by Simpson's rule.
    #[test]
    fn slope_and_chance_are_those_of_the_definition() {
        let cases: [(&[f64], f64, f64); 3] = [
            (&[1.0, 1.5, 0.9, 2.2, 1.9, 2.5], 0.285714285714286, 0.021366549942702),
            (&[5.0, 4.1, 4.4, 3.9, 4.6, 3.2, 3.8], -0.185714285714286, 0.954222159214232),
            (
                &[10.0, 10.2, 9.9, 10.1, 10.05, 9.95, 10.3, 10.1],
                0.015476190476191,
                0.243350909024201,
            ),
        ];
        for (values, slope, p) in cases {
            let trend = Trend::of(&indexed(values)).unwrap();
            assert!((trend.slope - slope).abs() < 1e-12, "{trend:?}");
            assert!((trend.p_rising - p).abs() < 1e-9, "{trend:?}");
        }
    }

    #[test]
    fn a_line_without_scatter_is_certain_and_a_level_rises_never() {
        let line = Trend::of(&indexed(&[1.0, 2.0, 3.0, 4.0, 5.0])).unwrap();
        assert!((line.slope - 1.0).abs() < 1e-12 && line.p_rising < 1e-9);
        let level = Trend::of(&indexed(&[2.0; 6])).unwrap();
        assert_eq!((level.slope, level.p_rising), (0.0, 1.0));
        assert_eq!(Trend::of(&indexed(&[1.0; 4])), None);
        assert_eq!(Trend::of(&[(1.0, 1.0); 9]), None);
    }
}
