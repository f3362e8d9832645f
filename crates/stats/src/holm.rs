//! Owns the adjustment of p values for many comparisons. Must not know what is compared.
//! Start reading at [`holm`].

/// p values after Holm's step-down (Holm 1979), in the order given: those below 5 % are, with 95 %
/// certainty, all true differences, whatever depends on whatever. Pairs of contenders share a
/// contender and so do depend on each other.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let n = p_values.len();
    let mut rising: Vec<usize> = (0..n).collect();
    rising.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; n];
    let mut floor = 0.0f64;
    for (rank, index) in rising.into_iter().enumerate() {
        floor = floor.max(p_values[index] * (n - rank) as f64).min(1.0);
        adjusted[index] = floor;
    }
    adjusted
}
