//! Owns seeded shuffles for permutation tests, which compare an order with random orders. Start reading at
//! [`Shuffles`].

use crate::resample::Draws;

/// Seeded uniform permutations (Fisher and Yates). The same seed gives the same permutations.
pub struct Shuffles(Draws);

impl Shuffles {
    /// A generator with that seed.
    pub fn new(seed: u64) -> Self {
        Self(Draws::new(seed))
    }

    /// Shuffles the items; each order is equally likely.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.0.one_of(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Chi-square with 23 degrees of freedom; 49.73 is its 0.999 quantile (R: `qchisq(0.999, 23)`).
    #[test]
    fn every_order_is_equally_likely_and_the_seed_decides() {
        const ROUNDS: usize = 24_000;
        let mut counts: BTreeMap<[u8; 4], usize> = BTreeMap::new();
        let mut shuffles = Shuffles::new(5);
        for _ in 0..ROUNDS {
            let mut items = [0, 1, 2, 3];
            shuffles.shuffle(&mut items);
            *counts.entry(items).or_default() += 1;
        }
        let expected = ROUNDS as f64 / 24.0;
        let distance: f64 =
            counts.values().map(|&count| (count as f64 - expected).powi(2) / expected).sum();
        assert!(counts.len() == 24 && distance < 49.73, "{distance} {counts:?}");
        let order = |seed| {
            let mut items: Vec<u8> = (0..50).collect();
            Shuffles::new(seed).shuffle(&mut items);
            items
        };
        assert_eq!(order(1), order(1));
        assert_ne!(order(1), order(2));
        Shuffles::new(1).shuffle::<u8>(&mut []);
    }
}
