//! Which request of the plan is next. Start reading at [`Picker`].
//!
//! In order costs a comparison if all weights are 1, and otherwise a binary search over their sums. At random costs
//! two draws (the alias method of Walker, in Vose's form, with whole numbers: the shares are exact). Nothing is
//! allocated after the start.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{LoadPlan, Pick, RequestPlan};

/// Sets this stream of random numbers apart from others of the same seed.
const STREAM: u64 = u64::from_be_bytes(*b"requests");

/// Which thread picks, among the threads of all agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadIndex {
    /// 0 to `of` - 1.
    pub(crate) index: u64,
    /// Number of threads, at least 1.
    pub(crate) of: u64,
}

/// Says which request is next.
#[derive(Debug)]
pub(crate) struct Picker {
    law: Law,
}

#[derive(Debug)]
enum Law {
    /// There is one.
    Only,
    /// Places `turn`, `turn + stride`, ... of an endless list in which each request occurs `weight` times in a row.
    InOrder {
        /// Place in the list, below its length.
        place: u64,
        stride: u64,
        /// Sum of the weights.
        length: u64,
        /// Sum of the weights up to and with each request; empty if all weights are 1.
        ends: Vec<u64>,
    },
    AtRandom {
        random: Pcg64Mcg,
        slots: Vec<Slot>,
        /// Sum of the weights.
        total: u64,
    },
}

/// A slot of the alias table: its own request for draws below `keep`, else the other.
#[derive(Debug, Clone, Copy)]
struct Slot {
    keep: u64,
    other: u32,
}

impl Picker {
    /// For one thread.
    ///
    /// # Panics
    /// If the plan has no request or a weight of 0, which a checked plan never has.
    pub(crate) fn new(plan: &LoadPlan, turn: ThreadIndex) -> Self {
        assert!(turn.index < turn.of, "turn {} of {}", turn.index, turn.of);
        let requests = &plan.requests;
        assert!(!requests.is_empty(), "a plan has at least one request");
        assert!(requests.iter().all(|request| request.weight > 0), "a weight is at least 1");
        let length: u64 = requests.iter().map(|request| u64::from(request.weight)).sum();
        let law = match plan.pick {
            _ if requests.len() == 1 => Law::Only,
            Pick::InOrder => Law::InOrder {
                place: turn.index % length,
                stride: turn.of % length,
                length,
                ends: if length == requests.len() as u64 { Vec::new() } else { ends(requests) },
            },
            Pick::AtRandom => Law::AtRandom {
                random: Pcg64Mcg::seed_from_u64(
                    plan.seed ^ STREAM.wrapping_add(turn.index.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                ),
                slots: alias_table(requests, length),
                total: length,
            },
        };
        Self { law }
    }

    /// Index of the next request.
    pub(crate) fn next(&mut self) -> u32 {
        match &mut self.law {
            Law::Only => 0,
            Law::InOrder { place, stride, length, ends } => {
                let here = *place;
                *place = (here + *stride) % *length;
                if ends.is_empty() {
                    here as u32
                } else {
                    ends.partition_point(|&end| end <= here) as u32
                }
            }
            Law::AtRandom { random, slots, total } => {
                let index = random.random_range(0..slots.len());
                let slot = slots[index];
                if random.random_range(0..*total) < slot.keep { index as u32 } else { slot.other }
            }
        }
    }
}

fn ends(requests: &[RequestPlan]) -> Vec<u64> {
    let sum = |sum: &mut u64, request: &RequestPlan| {
        *sum += u64::from(request.weight);
        Some(*sum)
    };
    requests.iter().scan(0, sum).collect()
}

/// Vose's construction, scaled so that every number is whole: a slot holds `total`, and request `i`
/// has `n * weight` to be laid into slots.
fn alias_table(requests: &[RequestPlan], total: u64) -> Vec<Slot> {
    let n = requests.len() as u128;
    let mut left: Vec<u128> =
        requests.iter().map(|request| n * u128::from(request.weight)).collect();
    let full = u128::from(total);
    let mut slots: Vec<Slot> =
        (0..requests.len() as u32).map(|index| Slot { keep: total, other: index }).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..requests.len()).partition(|&index| left[index] < full);
    while let (Some(poor), Some(&rich)) = (small.pop(), large.last()) {
        slots[poor] = Slot { keep: left[poor] as u64, other: rich as u32 };
        left[rich] -= full - left[poor];
        if left[rich] < full {
            large.pop();
            small.push(rich);
        }
    }
    slots
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use statrs::distribution::{ChiSquared, ContinuousCDF as _};

    use super::*;

    fn plan(weights: &[u32], pick: Pick) -> LoadPlan {
        let mut plan = LoadPlan::get("127.0.0.1:81".parse().unwrap(), "/");
        let request = |&weight: &u32| RequestPlan { weight, ..RequestPlan::get("/") };
        plan.requests = weights.iter().map(request).collect();
        plan.pick = pick;
        plan
    }

    fn take(picker: &mut Picker, n: usize) -> Vec<u32> {
        (0..n).map(|_| picker.next()).collect()
    }

    #[test]
    fn in_order_each_stands_as_often_in_a_row_as_its_weight_says() {
        let alone = ThreadIndex { index: 0, of: 1 };
        let mut picker = Picker::new(&plan(&[1, 3, 2], Pick::InOrder), alone);
        assert_eq!(take(&mut picker, 8), [0, 1, 1, 1, 2, 2, 0, 1]);
        let mut picker = Picker::new(&plan(&[1, 1, 1], Pick::InOrder), alone);
        assert_eq!(take(&mut picker, 7), [0, 1, 2, 0, 1, 2, 0]);
        let mut picker = Picker::new(&plan(&[u32::MAX], Pick::InOrder), alone);
        assert_eq!(take(&mut picker, 2), [0, 0]);
        let most = plan(&[u32::MAX, u32::MAX], Pick::InOrder);
        let mut picker =
            Picker::new(&most, ThreadIndex { index: u64::from(u32::MAX) - 1, of: 1 << 32 });
        assert_eq!(take(&mut picker, 3), [0, 0, 1]);
    }

    proptest! {
        #[test]
        fn threads_in_turn_go_through_the_list_as_one_would(
            weights in prop::collection::vec(1u32..5, 1..6),
            of in 1u64..9,
        ) {
            let plan = plan(&weights, Pick::InOrder);
            let mut threads: Vec<Picker> =
                (0..of).map(|index| Picker::new(&plan, ThreadIndex { index, of })).collect();
            let mut one = Picker::new(&plan, ThreadIndex { index: 0, of: 1 });
            for position in 0..60 {
                let next = threads[(position % of) as usize].next();
                prop_assert_eq!(next, one.next(), "position {}", position);
            }
        }

        /// What the slots hold of each request is its weight, exactly.
        #[test]
        fn the_alias_table_gives_every_request_its_share(
            weights in prop::collection::vec(prop_oneof![1u32..10, 1u32..=u32::MAX], 1..40),
        ) {
            let plan = plan(&weights, Pick::AtRandom);
            let total: u64 = weights.iter().map(|&weight| u64::from(weight)).sum();
            let mut held = vec![0u128; weights.len()];
            for (index, slot) in alias_table(&plan.requests, total).into_iter().enumerate() {
                held[index] += u128::from(slot.keep);
                held[slot.other as usize] += u128::from(total - slot.keep);
            }
            for (held, weight) in held.into_iter().zip(&weights) {
                prop_assert_eq!(held, u128::from(*weight) * weights.len() as u128);
            }
        }
    }

    #[test]
    fn at_random_counts_agree_with_the_weights_by_chi_square() {
        let weights = [1, 2, 3, 10, 84, 500];
        let n = 600_000;
        let plan = plan(&weights, Pick::AtRandom);
        for index in 0..3 {
            let mut picker = Picker::new(&plan, ThreadIndex { index, of: 3 });
            let mut counts = [0.0; 6];
            (0..n).for_each(|_| counts[picker.next() as usize] += 1.0);
            let total = f64::from(weights.iter().sum::<u32>());
            let expected = weights.map(|weight| f64::from(n) * f64::from(weight) / total);
            let terms = counts.iter().zip(expected).map(|(got, e)| (got - e) * (got - e) / e);
            let p = ChiSquared::new(5.0).unwrap().sf(terms.sum());
            assert!(p > 0.001, "thread {index}: p = {p}, {counts:?}");
        }
    }

    #[test]
    fn the_choice_hangs_on_the_seed_and_on_the_thread() {
        let mut plan = plan(&[1, 1, 1, 1], Pick::AtRandom);
        let of =
            |plan: &LoadPlan, index| take(&mut Picker::new(plan, ThreadIndex { index, of: 2 }), 50);
        let first = of(&plan, 0);
        assert_eq!(first, of(&plan, 0));
        assert_ne!(first, of(&plan, 1));
        plan.seed += 1;
        assert_ne!(first, of(&plan, 0));
    }
}
