//! Deadlines of connections: a timing wheel (Varghese and Lauck 1987). Knows connections by index.
//! Start reading at [`Timers::arm`].
//!
//! Arming, disarming and expiring are O(1). Moving a deadline later, as each request does, costs
//! one comparison: the entry stays, and the owner arms it again when it comes up too early. So no
//! round looks at all connections (lighttpd does, once a second).

use units::Nanos;

/// One slot of the wheel, and so how late a timeout may be noticed. 32 ms is under 1 % of the
/// shortest default (KeepAliveTimeout, 5 s).
const TICK: u64 = 32_000_000;

/// 65 s in one turn. A later deadline waits in the last slot and is armed again from there.
const SLOTS: usize = 2048;

const NONE: u32 = u32::MAX;

/// Deadlines of connections, by index.
pub(crate) struct Timers {
    /// The first entry of each slot's list. Slot `tick % SLOTS` holds what ends in `tick`.
    heads: Box<[u32; SLOTS]>,
    /// A bit for each slot that is not empty.
    occupied: [u64; SLOTS / 64],
    /// By index; grows to the largest that was armed.
    links: Vec<Link>,
    /// The first tick that has not expired.
    tick: u64,
}

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    /// `IDLE` if it is in no list.
    tick: u64,
}

const IDLE: u64 = u64::MAX;
const UNLINKED: Link = Link { prev: NONE, next: NONE, tick: IDLE };

impl Timers {
    /// With nothing armed, from `now` on.
    pub(crate) fn new(now: Nanos) -> Self {
        Self {
            heads: Box::new([NONE; SLOTS]),
            occupied: [0; SLOTS / 64],
            links: Vec::new(),
            tick: now.0 / TICK,
        }
    }

    /// Makes `index` come up by `deadline`, or earlier if it was armed for earlier.
    pub(crate) fn arm(&mut self, index: u32, deadline: Nanos) {
        if self.links.len() <= index as usize {
            self.links.resize(index as usize + 1, UNLINKED);
        }
        let last = self.tick + SLOTS as u64 - 1;
        let tick = deadline.0.div_ceil(TICK).clamp(self.tick, last);
        if self.links[index as usize].tick <= tick {
            return;
        }
        self.disarm(index);
        let slot = tick as usize % SLOTS;
        let next = std::mem::replace(&mut self.heads[slot], index);
        if next != NONE {
            self.links[next as usize].prev = index;
        }
        self.links[index as usize] = Link { prev: NONE, next, tick };
        self.occupied[slot / 64] |= 1 << (slot % 64);
    }

    /// Disarms `index`, if it is armed.
    pub(crate) fn disarm(&mut self, index: u32) {
        let Some(&Link { prev, next, tick }) = self.links.get(index as usize) else { return };
        if tick == IDLE {
            return;
        }
        let slot = tick as usize % SLOTS;
        match prev {
            NONE => self.heads[slot] = next,
            prev => self.links[prev as usize].next = next,
        }
        if next != NONE {
            self.links[next as usize].prev = prev;
        }
        if self.heads[slot] == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
        }
        self.links[index as usize] = UNLINKED;
    }

    /// An index that has come up by `now`, disarmed; `None` if there is no more.
    pub(crate) fn expired(&mut self, now: Nanos) -> Option<u32> {
        let end = now.0 / TICK;
        match self.ticks_to_occupied() {
            Some(ahead) if self.tick + ahead <= end => {
                self.tick += ahead;
                let index = self.heads[self.tick as usize % SLOTS];
                self.disarm(index);
                Some(index)
            }
            _ => {
                self.tick = self.tick.max(end);
                None
            }
        }
    }

    /// The earliest instant at which an index may come up.
    pub(crate) fn next(&self) -> Option<Nanos> {
        self.ticks_to_occupied().map(|ahead| Nanos((self.tick + ahead) * TICK))
    }

    /// Ticks to the nearest used slot. Looks at each word of the bitmap at most once, and at the
    /// first twice.
    fn ticks_to_occupied(&self) -> Option<u64> {
        let start = self.tick as usize % SLOTS;
        let (word, bit) = (start / 64, start % 64);
        let words = self.occupied.len();
        // The first word comes twice: its upper bits first, its lower bits last.
        (0..=words).find_map(|step| {
            let at = (word + step) % words;
            let mask = match step {
                0 => !0 << bit,
                step if step == words => !(!0 << bit),
                _ => !0,
            };
            let found = self.occupied[at] & mask;
            let slot = at * 64 + found.trailing_zeros() as usize;
            (found != 0).then(|| ((slot + SLOTS - start) % SLOTS) as u64)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn all_expired(timers: &mut Timers, now: Nanos) -> Vec<u32> {
        let mut indices: Vec<u32> = std::iter::from_fn(|| timers.expired(now)).collect();
        indices.sort_unstable();
        indices
    }

    #[test]
    fn comes_up_at_its_deadline_and_not_before() {
        let mut timers = Timers::new(Nanos::from_secs(7));
        timers.arm(3, Nanos::from_secs(12));
        assert_eq!(timers.expired(Nanos::from_secs(12) - Nanos(1)), None);
        assert!(timers.next().unwrap() - Nanos::from_secs(12) <= Nanos(TICK));
        assert_eq!(timers.expired(timers.next().unwrap()), Some(3));
        assert_eq!(timers.expired(Nanos::from_secs(99)), None);
        assert_eq!(timers.next(), None);
    }

    #[test]
    fn a_later_deadline_leaves_the_entry_and_an_earlier_one_moves_it() {
        let mut timers = Timers::new(Nanos::ZERO);
        timers.arm(0, Nanos::from_secs(5));
        timers.arm(0, Nanos::from_secs(9));
        assert_eq!(all_expired(&mut timers, Nanos::from_millis(5100)), [0]);
        timers.arm(0, Nanos::from_secs(60));
        timers.arm(0, Nanos::from_secs(6));
        assert_eq!(all_expired(&mut timers, Nanos::from_millis(6100)), [0]);
    }

    #[test]
    fn what_is_further_than_one_turn_comes_up_to_be_armed_again() {
        let mut timers = Timers::new(Nanos::ZERO);
        timers.arm(0, Nanos::from_secs(3600));
        let early = timers.next().unwrap();
        assert!(early > Nanos::from_secs(60) && early < Nanos::from_secs(70));
        assert_eq!(timers.expired(early), Some(0));
        timers.arm(0, Nanos::from_secs(3600));
        assert!(timers.next().unwrap() > early);
    }

    proptest! {
        /// Against a map that keeps every deadline: nothing early, nothing lost, nothing twice.
        #[test]
        fn agrees_with_a_sorted_map(
            steps in prop::collection::vec((0u32..40, 0u64..80_000, any::<bool>()), 1..200)
        ) {
            let mut now = Nanos::from_secs(1000);
            let mut timers = Timers::new(now);
            let mut model = BTreeMap::new();
            for (index, ms, arm) in steps {
                if arm {
                    let deadline = now + Nanos::from_millis(ms);
                    timers.disarm(index);
                    timers.arm(index, deadline);
                    let horizon = Nanos((now.0 / TICK + SLOTS as u64 - 1) * TICK);
                    model.insert(index, deadline.min(horizon));
                } else {
                    now += Nanos::from_millis(ms / 20);
                    let up = all_expired(&mut timers, now);
                    for index in &up {
                        let deadline = model.remove(index);
                        prop_assert!(deadline.is_some_and(|deadline| deadline <= now));
                    }
                    let late = now.saturating_sub(Nanos(TICK));
                    prop_assert!(model.values().all(|deadline| *deadline >= late));
                }
            }
        }
    }
}
