//! Owns the order of visits: randomised complete blocks, each contender once in each cell, so that drift
//! affects all contenders equally. Start reading at [`Schedule`].

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64;

/// The orders of a run's blocks, one after the other; the same seed gives the same orders.
#[derive(Debug, Clone)]
pub struct Schedule {
    random: Pcg64,
    /// The contenders of each cell.
    cells: Vec<Vec<usize>>,
}

impl Schedule {
    /// A schedule for those cells, each with its contenders.
    pub fn new(seed: u64, cells: Vec<Vec<usize>>) -> Self {
        let is_set =
            |cell: &Vec<usize>| cell.iter().enumerate().all(|(at, one)| !cell[..at].contains(one));
        assert!(
            cells.iter().all(is_set),
            "a block visits each contender of a cell once: {cells:?}"
        );
        Self { random: Pcg64::seed_from_u64(seed), cells }
    }

    /// The order of the next block: all cells, uniformly permuted, each with its contenders, uniformly permuted.
    /// Contenders are compared within a cell, so those of one cell are visited one after the other: the machine has
    /// the least time to change between them. The caller leaves out dropped contenders and finished cells after the
    /// shuffle, so that a failure does not change the order of the others.
    pub fn next_block(&mut self) -> Vec<(usize, Vec<usize>)> {
        let mut order: Vec<(usize, Vec<usize>)> = self.cells.iter().cloned().enumerate().collect();
        order.shuffle(&mut self.random);
        for (_, contenders) in &mut order {
            contenders.shuffle(&mut self.random);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_visits_every_contender_once() {
        let cells = vec![vec![0, 1, 2, 3], vec![0, 1, 2, 3], vec![1, 3]];
        let mut schedule = Schedule::new(7, cells.clone());
        for _ in 0..100 {
            let mut order = schedule.next_block();
            order.sort_unstable();
            order.iter_mut().for_each(|(_, contenders)| contenders.sort_unstable());
            assert_eq!(order, cells.iter().cloned().enumerate().collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_order_and_another_seed_another() {
        let orders = |seed| {
            let mut schedule = Schedule::new(seed, vec![(0..9).collect(); 3]);
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
        let mut schedule = Schedule::new(20_240_601, vec![(0..5).collect()]);
        for _ in 0..BLOCKS {
            let (_, order) = schedule.next_block().remove(0);
            for (position, contender) in order.into_iter().enumerate() {
                counts[contender][position] += 1;
            }
        }
        let expected = BLOCKS as f64 / 5.0;
        let cell = |&n: &usize| (n as f64 - expected).powi(2) / expected;
        let chi_square: f64 = counts.iter().flatten().map(cell).sum();
        assert!(chi_square < 39.25, "chi-square {chi_square}: {counts:?}");
    }
}
