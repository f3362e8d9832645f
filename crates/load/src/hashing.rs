//! Which replies have their bodies hashed, and the results. Owns the choice, the counts and what a hash may cost.
//! Start reading at [`HashTurns`].
//!
//! The first reply of a thread is hashed, and then one after each random number of replies, drawn from the plan's
//! seed: a fixed step could always meet the same one of a server's processes. A reply that is not hashed costs one
//! comparison.

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{Bodies, BodiesVerified, ExpectedBody, LoadPlan, WrongBody};
use units::Nanos;

/// Sets this stream of random numbers apart from others of the same seed.
const STREAM: u64 = 0x626f_6469_6573;

/// Share of the generator's CPU time that hashing may cost under [`Bodies::Sample`]. The documentation promises 1 %;
/// the figures below come from one machine.
const COST_MAX: f64 = 0.005;
/// Under [`Bodies::Sample`] at most one reply in this many is hashed, however short its body is.
const STRIDE_MIN: u64 = 100;
/// CPU time of a request whose body is not hashed, and of each byte of that body
/// (`docs/load.md`, "Checks").
const REQUEST_NS: f64 = 5_000.0;
const REQUEST_NS_A_BYTE: f64 = 0.05;
/// What hashing adds: copying the body out of the kernel, and SHA-256.
const LOOK_NS: f64 = 150.0;
const LOOK_NS_A_BYTE: f64 = 0.8;
/// The same on a CPU that has no instructions for SHA-256.
const LOOK_NS_A_BYTE_SLOW: f64 = 5.0;

/// Which replies of one thread are hashed.
pub(crate) struct HashTurns {
    bodies: Bodies,
    random: Pcg64Mcg,
    /// Number of the next reply that is hashed; `u64::MAX` for none.
    next: u64,
    /// One in this many is hashed. It follows from the longest body so far, because the length of the next one is
    /// unknown.
    stride: u64,
}

impl HashTurns {
    /// For this thread of the load.
    pub(crate) fn new(plan: &LoadPlan, thread: u32) -> Self {
        let bodies = plan.verify.bodies;
        let seed = plan.seed ^ STREAM.wrapping_add(u64::from(thread) << 32);
        let next = if bodies.are_hashed() { 0 } else { u64::MAX };
        Self { bodies, random: Pcg64Mcg::seed_from_u64(seed), next, stride: 1 }
    }

    /// Whether the `nth` reply of the thread is hashed, if its body is known.
    #[inline]
    pub(crate) fn is_due(&self, nth: u64) -> bool {
        nth >= self.next
    }

    /// The `nth` reply is hashed; its body has that length. Draws the next one.
    pub(crate) fn take(&mut self, nth: u64, length: u64) {
        let stride = match self.bodies {
            Bodies::Hash(share) => (1.0 / share).round().max(1.0) as u64,
            _ => self.stride.max(stride_of(length, look_ns_a_byte())),
        };
        self.stride = stride;
        // From 1 to 2k - 1, so that it is k on average.
        let gap = self.random.random_range(1..2 * stride.min(u64::MAX / 4));
        self.next = nth.saturating_add(gap);
    }
}

/// One in how many bodies of that length may be hashed.
fn stride_of(length: u64, look_ns_a_byte: f64) -> u64 {
    let length = length as f64;
    let look = LOOK_NS + look_ns_a_byte * length;
    let request = REQUEST_NS + REQUEST_NS_A_BYTE * length;
    ((look / (COST_MAX * request)).ceil() as u64).max(STRIDE_MIN)
}

fn look_ns_a_byte() -> f64 {
    #[cfg(target_arch = "x86_64")]
    let is_fast = std::arch::is_x86_feature_detected!("sha");
    #[cfg(target_arch = "aarch64")]
    let is_fast = std::arch::is_aarch64_feature_detected!("sha2");
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let is_fast = false;
    if is_fast { LOOK_NS_A_BYTE } else { LOOK_NS_A_BYTE_SLOW }
}

/// Bodies that were hashed and compared on one thread.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HashCounts {
    verified: u64,
    /// Of these, the ones that differ.
    differ: u64,
    first: Option<Different>,
}

/// The first body of a thread that was not the expected one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Different {
    pub(crate) at: Nanos,
    /// Index of its request.
    pub(crate) request: u32,
    /// Its number among the replies of the thread.
    pub(crate) nth: u64,
    pub(crate) sha256: [u8; 32],
}

impl HashCounts {
    /// A body was compared; `different` if it is not the expected one.
    pub(crate) fn add(&mut self, different: Option<Different>) {
        self.verified += 1;
        self.differ += u64::from(different.is_some());
        self.first = self.first.or(different);
    }

    /// As the record has it.
    pub(crate) fn for_record(&self, plan: &LoadPlan) -> BodiesVerified {
        let first = self.first.map(|first| {
            let request = plan.requests.get(first.request as usize);
            let expected = request.and_then(|request| request.expected.as_ref());
            WrongBody {
                at: first.at,
                request: request.map_or_else(String::new, |request| plan.name_of(request)),
                replies_before: first.nth,
                expected: expected
                    .map_or_else(String::new, |ExpectedBody { sha256, .. }| sha256.clone()),
                got: record::hex(&first.sha256),
            }
        });
        BodiesVerified { verified: self.verified, differ: self.differ, first }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(bodies: Bodies, seed: u64) -> HashTurns {
        let mut plan = LoadPlan::get(([127, 0, 0, 1], 80).into(), "/");
        (plan.verify.bodies, plan.seed) = (bodies, seed);
        HashTurns::new(&plan, 0)
    }

    /// The numbers that are hashed of this many replies.
    fn hashed(bodies: Bodies, seed: u64, of: u64, length: u64) -> Vec<u64> {
        let mut turns = turns(bodies, seed);
        let take = |&nth: &u64| {
            let is_due = turns.is_due(nth);
            if is_due {
                turns.take(nth, length);
            }
            is_due
        };
        (0..of).filter(take).collect()
    }

    #[test]
    fn a_share_of_replies_is_hashed_and_which_is_up_to_the_seed() {
        assert_eq!(hashed(Bodies::Hash(1.0), 1, 100, 1).len(), 100);
        for bodies in [Bodies::None, Bodies::Length, Bodies::Hash(0.0)] {
            assert!(hashed(bodies, 1, 100, 1).is_empty());
        }
        for seed in 0..20 {
            let one = hashed(Bodies::Hash(0.25), seed, 100_000, 1);
            // Gaps of 1 to 7 have a variance of 4: 25,000 with a standard deviation of 79.
            assert!((24_600..25_400).contains(&one.len()), "seed {seed}: {}", one.len());
            assert_eq!(one[0], 0, "the first is always hashed");
            assert_eq!(one, hashed(Bodies::Hash(0.25), seed, 100_000, 1));
            assert_ne!(one, hashed(Bodies::Hash(0.25), seed + 1, 100_000, 1));
            // Every process of a server that takes turns is met.
            for part in 0..8 {
                let of_it = one.iter().filter(|nth| **nth % 8 == part).count();
                assert!((2_700..3_600).contains(&of_it), "seed {seed}, {part}: {of_it}");
            }
        }
    }

    #[test]
    fn a_few_long_bodies_among_many_short_ones_keep_the_cost_low() {
        let mut turns = turns(Bodies::Sample, 1);
        let length = |nth: u64| if nth.is_multiple_of(33) { 3_000_000 } else { 100 };
        let (mut looked, mut asked) = (0.0, 0.0);
        for nth in 0..300_000 {
            let length = length(nth);
            asked += REQUEST_NS + REQUEST_NS_A_BYTE * length as f64;
            if turns.is_due(nth) {
                turns.take(nth, length);
                looked += LOOK_NS + look_ns_a_byte() * length as f64;
            }
        }
        assert!(looked > 0.0 && looked <= COST_MAX * asked, "{looked} of {asked}");
    }

    #[test]
    fn the_longer_bodies_are_the_fewer_are_hashed() {
        let stride = |length| stride_of(length, LOOK_NS_A_BYTE);
        assert_eq!([0, 100, 1000].map(stride), [100; 3]);
        let strides = [4096, 102_400, 3_000_000, u64::MAX].map(stride);
        assert!(strides.is_sorted() && strides[3] < 5_000, "{strides:?}");
        for length in [100u64, 4096, 102_400, 3_000_000] {
            let cost = (LOOK_NS + LOOK_NS_A_BYTE * length as f64) / stride(length) as f64;
            let request = REQUEST_NS + REQUEST_NS_A_BYTE * length as f64;
            assert!(cost <= COST_MAX * request, "{length}");
            assert!(stride_of(length, LOOK_NS_A_BYTE_SLOW) >= stride(length));
        }
        let lengths = [100, 102_400].map(|length| hashed(Bodies::Sample, 1, 100_000, length).len());
        assert!(lengths[0] > 800 && (30..120).contains(&lengths[1]), "{lengths:?}");
    }
}
