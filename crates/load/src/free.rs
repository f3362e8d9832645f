//! Free places for requests: a connection has as many places as requests may be in flight on it.
//! Start reading at [`FreePlaces`].

use std::collections::VecDeque;

use sys::driver::Slot;
use units::Nanos;

/// Free places, in the order in which they may be used.
pub(crate) struct FreePlaces {
    places: VecDeque<FreePlace>,
}

/// A free place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FreePlace {
    /// Its connection.
    pub(crate) slot: Slot,
    /// The instant from which it may be used: when it became free, or when its pause ends.
    pub(crate) from: Nanos,
}

impl FreePlaces {
    /// `per_slot` places for each of `n_slots` connections, free from `from(slot)` on, which rises with the slot.
    /// Places of one connection are adjacent, so that requests that are pipelined at once leave in one write.
    pub(crate) fn new(n_slots: u32, per_slot: u32, from: impl Fn(Slot) -> Nanos) -> Self {
        let of_slot = |slot| {
            let free = FreePlace { slot, from: from(slot) };
            (0..per_slot).map(move |_| free)
        };
        Self { places: (0..n_slots).flat_map(|index| of_slot(Slot(index))).collect() }
    }

    /// The place that may be used first.
    #[inline]
    pub(crate) fn first(&self) -> Option<FreePlace> {
        self.places.front().copied()
    }

    /// Takes it.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<FreePlace> {
        self.places.pop_front()
    }

    /// A place becomes free. Without pauses, or with equal pauses, each is later than all before it. Only random
    /// pauses are sorted in, from the back.
    #[inline]
    pub(crate) fn put(&mut self, free: FreePlace) {
        let mut at = self.places.len();
        while at > 0 && self.places[at - 1].from > free.from {
            at -= 1;
        }
        if at == self.places.len() {
            self.places.push_back(free);
        } else {
            self.places.insert(at, free);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_come_by_time_and_then_in_the_order_of_putting(from in prop::collection::vec(0u64..20, 1..60)) {
            let mut places = FreePlaces::new(0, 1, |_| Nanos::ZERO);
            for (index, &from) in from.iter().enumerate() {
                places.put(FreePlace { slot: Slot(index as u32), from: Nanos(from) });
            }
            let mut expected: Vec<(u64, usize)> = from.iter().copied().zip(0..).collect();
            expected.sort_unstable();
            let got: Vec<(u64, usize)> = std::iter::from_fn(|| places.take())
                .map(|free| (free.from.0, free.slot.0 as usize))
                .collect();
            prop_assert_eq!(got, expected);
        }
    }

    #[test]
    fn places_of_one_connection_lie_together() {
        let mut places = FreePlaces::new(2, 2, |_| Nanos::ZERO);
        let slots: Vec<u32> =
            std::iter::from_fn(|| places.take()).map(|free| free.slot.0).collect();
        assert_eq!(slots, [0, 0, 1, 1]);
    }
}
