//! Owns the draws of a bootstrap: block indices with replacement, seeded. Must not know what is
//! computed from them. Start reading at [`Draws`].

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

    /// As many draws of `chosen.len()` things as there are things.
    pub(crate) fn fill(&mut self, chosen: &mut [usize]) {
        let n = chosen.len();
        chosen.iter_mut().for_each(|index| *index = self.one_of(n));
    }
}
