//! Owns the Anderson-Darling test: whether values come from a fully specified distribution (case 0 of Stephens). Must
//! not know what the values are. Start reading at [`anderson_darling_exponential`].
//!
//! It gives weight to both tails, where a faulty generator of arrivals shows bursts and gaps. Parameters must be given
//! and not estimated from the values, or p is far too large.

/// The outcome of a test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AndersonDarling {
    /// The statistic A squared. If the values follow the distribution, its mean is 1; it is above 2.492 in 5 % of all
    /// samples and above 3.857 in 1 %.
    pub a2: f64,
    /// The probability of at least this statistic, 0 to 1, by [`anderson_darling_p`].
    pub p: f64,
}

/// Whether `values` are exponential with that rate (the inverse of the mean, in the inverse of their unit). `None` if
/// there are no values, if one is NaN, or if the rate is not above zero.
pub fn anderson_darling_exponential(values: &[f64], rate: f64) -> Option<AndersonDarling> {
    if !(rate > 0.0 && rate.is_finite()) {
        return None;
    }
    // ln F and ln (1 - F), each computed directly, so that neither has the rounding error of the other.
    of_logs(values, |value| {
        let scaled = rate * value.max(0.0);
        ((-(-scaled).exp_m1()).ln(), -scaled)
    })
}

/// Whether `values` are uniform from 0 to 1; `None` if there are no values or one is NaN.
pub fn anderson_darling_uniform(values: &[f64]) -> Option<AndersonDarling> {
    of_logs(values, |value| {
        let within = value.clamp(0.0, 1.0);
        (within.ln(), (-within).ln_1p())
    })
}

/// The test, given the logarithms of the probabilities of a smaller and of a larger value. A value outside the
/// distribution, or rounded to its edge, counts as nearly impossible.
fn of_logs(values: &[f64], logs: impl Fn(f64) -> (f64, f64)) -> Option<AndersonDarling> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let floor = f64::MIN_POSITIVE.ln();
    let terms = sorted.iter().zip(sorted.iter().rev()).enumerate().map(|(i, (low, high))| {
        (2 * i + 1) as f64 * (logs(*low).0.max(floor) + logs(*high).1.max(floor))
    });
    let a2 = -n - terms.sum::<f64>() / n;
    Some(AndersonDarling { a2, p: anderson_darling_p(a2, sorted.len()) })
}

/// The probability of at least the statistic `a2` for `n` values of the distribution, 0 to 1.
///
/// Marsaglia and Marsaglia 2004, Evaluating the Anderson-Darling distribution, J. Stat. Softw. 9(2): the limit for
/// large n, accurate to 0.00002, and a correction for n. The error after it is 0.0006 / n far out in the tail, and a
/// few 0.001 below five values.
pub fn anderson_darling_p(a2: f64, n: usize) -> f64 {
    let n = n as f64;
    if a2 <= 0.0 {
        return 1.0;
    }
    let above = above_limit(a2);
    (above - correction(1.0 - above, n)).clamp(0.0, 1.0)
}

/// Probability of more than `a2` in the limit.
fn above_limit(a2: f64) -> f64 {
    if a2 < 2.0 {
        let below = [2.00012, 0.247105, -0.0649821, 0.0347962, -0.011672, 0.00168691];
        1.0 - (-1.2337141 / a2).exp() / a2.sqrt() * polynomial(&below, a2)
    } else {
        let exponent = [1.0776, -2.30695, 0.43424, -0.082433, 0.008056, -0.0003146];
        -(-polynomial(&exponent, a2).exp()).exp_m1()
    }
}

/// The correction for n values to `below`, the probability of a smaller statistic in the limit.
fn correction(below: f64, n: f64) -> f64 {
    let edge = 0.01265 + 0.1757 / n;
    if below > 0.8 {
        let terms = [-130.2137, 745.2337, -1705.091, 1950.646, -1116.360, 255.7844];
        polynomial(&terms, below) / n
    } else if below < edge {
        let x = below / edge;
        let scale = 0.0037 / (n * n) + 0.00078 / n + 0.00006;
        x.sqrt() * (1.0 - x) * (49.0 * x - 102.0) * scale / n
    } else {
        let terms = [-0.00022633, 6.54034, -14.6538, 14.458, -8.259, 1.91864];
        polynomial(&terms, (below - edge) / (0.8 - edge)) * (0.04213 + 0.01365 / n) / n
    }
}

/// Coefficients in ascending order, from the constant.
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_at_the_published_critical_values() {
        // Stephens 1974, table 1, case 0, any n above 4.
        for (a2, p) in [(1.933, 0.10), (2.492, 0.05), (3.070, 0.025), (3.857, 0.01)] {
            let ours = anderson_darling_p(a2, 1_000_000);
            assert!((ours - p).abs() < 3e-4, "{a2}: {ours}");
        }
    }

    #[test]
    fn p_falls_as_the_statistic_grows() {
        for n in [5, 100, 1_000_000] {
            let at = |step: u32| anderson_darling_p(f64::from(step) / 100.0, n);
            assert!((1..5000).all(|step| at(step) >= at(step + 1) - 2e-4 / n as f64 - 1e-5), "{n}");
            assert_eq!(at(0), 1.0);
            assert!(at(10_000) < 0.001 / n as f64, "{n}: {}", at(10_000));
        }
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(anderson_darling_exponential(&[], 1.0), None);
        assert_eq!(anderson_darling_exponential(&[1.0], 0.0), None);
        assert_eq!(anderson_darling_exponential(&[f64::NAN], 1.0), None);
        assert_eq!(anderson_darling_uniform(&[]), None);
    }

    #[test]
    fn impossible_values_are_refuted_not_infinite() {
        let test = anderson_darling_exponential(&[-1.0; 20], 1.0).unwrap();
        assert!(test.a2.is_finite() && test.p < 1e-4, "{test:?}");
        let test = anderson_darling_uniform(&[2.0; 20]).unwrap();
        assert!(test.a2.is_finite() && test.p < 1e-4, "{test:?}");
    }
}
