//! Owns mean and standard deviation of plain slices. Must not know what the values are. Start
//! reading at [`mean`].

/// Mean; NaN for an empty slice.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Standard deviation of the sample (over n - 1), for two values or more. For equal values it is
/// exactly zero, whatever the rounding of their mean: a t statistic divides by it.
pub(crate) fn sd(values: &[f64]) -> f64 {
    if values.iter().all(|value| *value == values[0]) {
        return 0.0;
    }
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}
