//! Owns the order of visits: randomised complete blocks, each contender once a block, so that what
//! drifts with time falls on all alike. Must not know what a visit is. Start reading at [`Schedule`].

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// The orders of a run's blocks, one after the other; the same seed gives the same orders.
#[derive(Debug, Clone)]
pub struct Schedule {
    random: Pcg64,
    contenders: usize,
}

impl Schedule {
    /// For contenders 0 to `contenders` - 1.
    pub fn new(seed: u64, contenders: usize) -> Self {
        Self { random: Pcg64::seed_from_u64(seed), contenders }
    }

    /// The order of the next block: all contenders, uniformly permuted. A contender that has been
    /// dropped is left out by the caller, after the shuffle: who fails must not change the order of
    /// the others.
    pub fn next_block(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.contenders).collect();
        order.shuffle(&mut self.random);
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_visits_every_contender_once() {
        let mut schedule = Schedule::new(7, 9);
        for _ in 0..100 {
            let mut order = schedule.next_block();
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4, 5, 6, 7, 8]);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let orders = |seed| {
            let mut schedule = Schedule::new(seed, 9);
            [(); 8].map(|()| schedule.next_block())
        };
        assert_eq!(orders(1), orders(1));
        assert_ne!(orders(1), orders(2));
    }

    /// Chi-square with 16 degrees of freedom for a 5 x 5 table with fixed margins; 39.25 is its
    /// 0.999 quantile (R: `qchisq(0.999, 16)`).
    #[test]
    fn every_contender_comes_in_every_place_equally_often() {
        const BLOCKS: usize = 5_000;
        let mut counts = [[0usize; 5]; 5];
        let mut schedule = Schedule::new(20_240_601, 5);
        for _ in 0..BLOCKS {
            for (position, contender) in schedule.next_block().into_iter().enumerate() {
                counts[contender][position] += 1;
            }
        }
        let expected = BLOCKS as f64 / 5.0;
        let cell = |&n: &usize| (n as f64 - expected).powi(2) / expected;
        let chi_square: f64 = counts.iter().flatten().map(cell).sum();
        assert!(chi_square < 39.25, "chi-square {chi_square}: {counts:?}");
    }
}
