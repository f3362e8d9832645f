//! Owns seeded noise with the distributions of visits, for simulations in tests. Must not know what is tested. Start
//! reading at [`Noise`].

#![allow(dead_code, reason = "each test binary uses a part of it")]

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

/// A law of noise about zero with a standard deviation of about one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Law {
    /// Normal.
    Normal,
    /// Student's t with five degrees of freedom: an occasional visit far off.
    StudentFive,
    /// Exponential, minus its mean: noise that only slows visits down.
    Skewed,
    /// Uniform: the unimodal law that looks most bimodal.
    Uniform,
}

/// Seeded noise.
pub(crate) struct Noise(Pcg64);

impl Noise {
    /// The same seed gives the same noise.
    pub(crate) fn new(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// One value of a law.
    pub(crate) fn of(&mut self, law: Law) -> f64 {
        match law {
            Law::Normal => self.normal(),
            Law::StudentFive => {
                let chi: f64 = (0..5).map(|_| self.normal().powi(2)).sum();
                // t with five degrees has a standard deviation of sqrt(5 / 3).
                self.normal() / (chi / 5.0).sqrt() / (5.0f64 / 3.0).sqrt()
            }
            Law::Skewed => 1.0 + self.uniform().ln(),
            Law::Uniform => (self.uniform() - 0.5) * 12f64.sqrt(),
        }
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        1.0 - self.0.random::<f64>()
    }

    /// Box and Muller's transform.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
