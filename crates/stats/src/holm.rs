//! Owns the adjustment of p values for many comparisons. Must not know what is compared.
//! Start reading at [`holm`].

/// A p value after Holm's step-down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    /// Adjusted; at most 1.
    pub p: f64,
    /// Tests that its level is shared with: those whose p is not smaller, itself included. The level of this test is
    /// the family's divided by this number.
    pub tests: usize,
}

impl From<f64> for Held {
    /// The p of a single test.
    fn from(p: f64) -> Self {
        Self { p, tests: 1 }
    }
}

/// p values after Holm's step-down (Holm 1979), in the order given. With 95 % certainty all those below 5 % are true
/// differences, whatever the dependence between tests. Pairs of contenders do depend on each other, because they share
/// a contender.
pub fn held(p_values: &[f64]) -> Vec<Held> {
    let n = p_values.len();
    let mut rising: Vec<usize> = (0..n).collect();
    rising.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![Held { p: 1.0, tests: n }; n];
    let mut floor = 0.0f64;
    for (rank, index) in rising.into_iter().enumerate() {
        floor = floor.max(p_values[index] * (n - rank) as f64).min(1.0);
        adjusted[index] = Held { p: floor, tests: n - rank };
    }
    adjusted
}

/// Only the adjusted p values of [`held`].
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    held(p_values).into_iter().map(|held| held.p).collect()
}
