//! Owns seeded draws: block indices with replacement for a bootstrap, and weights for a t distribution. Start reading
//! at [`Draws`].

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg32;

/// Seeded draws of `n` things with replacement. The same seed gives the same draws.
pub(crate) struct Draws {
    rng: Pcg32,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self { rng: Pcg32::seed_from_u64(seed) }
    }

    /// One of `n` things, from 0; `n` above 0.
    pub(crate) fn one_of(&mut self, n: usize) -> usize {
        self.rng.random_range(0..n as u32) as usize
    }

    /// Fills in weights of n residuals, at least two. Their weighted sum is a draw from the t distribution of the mean,
    /// with n - 1 degrees of freedom, around 0.
    pub(crate) fn fill_t_weights(&mut self, weights: &mut [f64]) {
        let chi_squared: f64 = (1..weights.len()).map(|_| self.normal().powi(2)).sum();
        // The standard error is sqrt(squares / (n (n - 1))); t divides by sqrt(chi squared / (n - 1)).
        let scale = 1.0 / (weights.len() as f64 * chi_squared).sqrt();
        weights.iter_mut().for_each(|weight| *weight = self.normal() * scale);
    }

    /// A standard normal value, by Box and Muller's transform.
    fn normal(&mut self) -> f64 {
        let mut uniform = || 1.0 - self.rng.random::<f64>();
        let radius = (-2.0 * uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * uniform()).cos()
    }

    /// Draws as many indices as `chosen` has, each below that number.
    pub(crate) fn fill(&mut self, chosen: &mut [usize]) {
        let n = chosen.len();
        chosen.iter_mut().for_each(|index| *index = self.one_of(n));
    }
}
