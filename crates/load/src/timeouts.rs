//! Deadlines of connections, in constant time and constant memory. Owns a few queues. All spans of a queue are equal,
//! so that the order of arming is the order of expiry. Start reading at [`Timeouts`].
//!
//! Cost: arming and disarming write two neighbours in a linked list that lies in one array (about 3 ns if it is in
//! the cache). Nothing is allocated after the start. A heap would cost a logarithm per request, a timer wheel a tick.

use sys::driver::Slot;
use units::Nanos;

/// One queue for each span; every slot is in at most one of them.
pub(crate) struct Timeouts {
    spans: Vec<Nanos>,
    /// `links[slot]` for each slot, then one sentinel for each span: its `next` is the head of the
    /// queue and its `prev` the tail.
    links: Vec<Link>,
    n_slots: u32,
}

#[derive(Clone, Copy)]
struct Link {
    prev: u32,
    next: u32,
    deadline: Nanos,
    /// Index of the span that it was armed with.
    span: u16,
}

/// `next` of a slot that is in no queue.
const NOWHERE: u32 = u32::MAX;

impl Timeouts {
    /// For `n_slots` slots, none armed; only `spans` can be armed, by index.
    pub(crate) fn new(n_slots: u32, spans: Vec<Nanos>) -> Self {
        let sentinels = n_slots..n_slots + spans.len() as u32;
        let slots = (0..n_slots).map(|_| Link::at(NOWHERE));
        Self { spans, links: slots.chain(sentinels.map(Link::at)).collect(), n_slots }
    }

    /// Sets the slot's only deadline to `now` + the span of that index.
    #[inline]
    pub(crate) fn arm(&mut self, slot: Slot, span: usize, now: Nanos) {
        self.disarm(slot);
        let (index, tail) = (slot.0, self.n_slots + span as u32);
        let prev = self.links[tail as usize].prev;
        let deadline = now.saturating_add(self.spans[span]);
        self.links[index as usize] = Link { prev, next: tail, deadline, span: span as u16 };
        self.links[prev as usize].next = index;
        self.links[tail as usize].prev = index;
    }

    /// Removes the slot's deadline.
    #[inline]
    pub(crate) fn disarm(&mut self, slot: Slot) {
        let Link { prev, next, .. } = self.links[slot.0 as usize];
        if next == NOWHERE {
            return;
        }
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
        self.links[slot.0 as usize] = Link::at(NOWHERE);
    }

    /// Whether the slot is armed with a span of that index or a later one.
    #[inline]
    pub(crate) fn is_resting(&self, slot: Slot, from_span: usize) -> bool {
        let Link { next, span, .. } = self.links[slot.0 as usize];
        next != NOWHERE && usize::from(span) >= from_span
    }

    /// The earliest deadline; [`Nanos::MAX`] if none is armed.
    #[inline]
    pub(crate) fn earliest(&self) -> Nanos {
        self.heads().map(|head| self.links[head as usize].deadline).min().unwrap_or(Nanos::MAX)
    }

    /// Disarms and returns a slot whose deadline is reached, and the span that it was armed with.
    pub(crate) fn expired(&mut self, now: Nanos) -> Option<(Slot, usize)> {
        let head = self.heads().find(|&head| self.links[head as usize].deadline <= now)?;
        let span = self.links[head as usize].span;
        self.disarm(Slot(head));
        Some((Slot(head), usize::from(span)))
    }

    fn heads(&self) -> impl Iterator<Item = u32> {
        let sentinels = &self.links[self.n_slots as usize..];
        sentinels.iter().map(|sentinel| sentinel.next).filter(|&next| next < self.n_slots)
    }
}

impl Link {
    fn at(index: u32) -> Self {
        Self { prev: index, next: index, deadline: Nanos::MAX, span: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Debug, Clone)]
    enum Step {
        Arm(u32, usize),
        Disarm(u32),
        Pass(u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0u32..8, 0usize..3).prop_map(|(slot, span)| Step::Arm(slot, span)),
            (0u32..8).prop_map(Step::Disarm),
            (0u64..40).prop_map(Step::Pass),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// The oracle is a map from slot to deadline, searched whole.
        #[test]
        fn each_slot_expires_at_its_deadline_and_once(steps in steps()) {
            let spans = [10, 25, 100].map(Nanos);
            let mut timeouts = Timeouts::new(8, spans.to_vec());
            let mut oracle = BTreeMap::new();
            let mut now = Nanos::ZERO;
            for step in steps {
                match step {
                    Step::Arm(slot, span) => {
                        timeouts.arm(Slot(slot), span, now);
                        oracle.insert(slot, now + spans[span]);
                    }
                    Step::Disarm(slot) => {
                        timeouts.disarm(Slot(slot));
                        oracle.remove(&slot);
                    }
                    Step::Pass(nanos) => now += Nanos(nanos),
                }
                let earliest = oracle.values().min().copied().unwrap_or(Nanos::MAX);
                prop_assert_eq!(timeouts.earliest(), earliest);
                let mut expired: Vec<u32> =
                    std::iter::from_fn(|| timeouts.expired(now)).map(|(slot, _)| slot.0).collect();
                expired.sort_unstable();
                let due: Vec<u32> =
                    oracle.iter().filter(|(_, at)| **at <= now).map(|(slot, _)| *slot).collect();
                oracle.retain(|_, at| *at > now);
                prop_assert_eq!(expired, due);
            }
        }
    }
}
