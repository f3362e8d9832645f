//! Events to report, in one chain per slot: completions come from the kernel in any order, and the caller gets all
//! events of one slot before those of another. Owns the order. Start reading at [`Chains`]. No call allocates.

use std::collections::VecDeque;

use crate::driver::{Failure, Slot};
use crate::uring::buffers::Filled;
use units::Nanos;

/// An event on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Since that instant, if it is known.
    Connected(Option<Nanos>),
    Received(Filled),
    /// Something may be there on a polled connection.
    Readable,
    Closed,
    Failed(Failure),
}

/// Most links of a slot, without those that hold a buffer: the ends of a connect, of a receive and of a send, and a
/// failure before all of them. `Readable` takes the place of the end of a receive.
const LINKS_PER_SLOT: usize = 4;

/// The index that means "no link".
const NONE: u32 = u32::MAX;

/// The chains of all slots, over one pool of links.
pub(super) struct Chains {
    links: Vec<Link>,
    /// The first free link.
    free: u32,
    chains: Vec<SlotEvents>,
    /// Slots with a chain, oldest first; also some whose chain was cleared.
    turns: VecDeque<Slot>,
    n_events: usize,
}

#[derive(Clone, Copy)]
struct Link {
    event: Event,
    next: u32,
}

#[derive(Clone, Copy)]
struct SlotEvents {
    first: u32,
    last: u32,
    /// Whether the slot is in `turns`.
    has_turn: bool,
}

impl Chains {
    /// Chains for this many slots and buffers.
    pub(super) fn new(n_slots: u32, n_buffers: u32) -> Self {
        let n_links = n_slots as usize * LINKS_PER_SLOT + n_buffers as usize;
        let next = |at: usize| if at + 1 == n_links { NONE } else { at as u32 + 1 };
        let chain = SlotEvents { first: NONE, last: NONE, has_turn: false };
        Self {
            links: (0..n_links).map(|at| Link { event: Event::Closed, next: next(at) }).collect(),
            free: 0,
            chains: vec![chain; n_slots as usize],
            turns: VecDeque::with_capacity(n_slots as usize),
            n_events: 0,
        }
    }

    /// Whether there is nothing to report.
    pub(super) fn is_empty(&self) -> bool {
        self.n_events == 0
    }

    /// Whether there is nothing to report for this slot.
    pub(super) fn is_empty_of(&self, slot: Slot) -> bool {
        self.chains[slot.0 as usize].first == NONE
    }

    /// Appends to a slot's chain.
    #[inline]
    pub(super) fn append(&mut self, slot: Slot, event: Event) {
        let at = self.free;
        assert!(at != NONE, "a slot has at most {LINKS_PER_SLOT} links, and a buffer one");
        self.free = self.links[at as usize].next;
        self.links[at as usize] = Link { event, next: NONE };
        let chain = &mut self.chains[slot.0 as usize];
        if chain.first == NONE {
            chain.first = at;
        } else {
            self.links[chain.last as usize].next = at;
        }
        chain.last = at;
        self.n_events += 1;
        if !chain.has_turn {
            chain.has_turn = true;
            self.turns.push_back(slot);
        }
    }

    /// The next event; a slot keeps its turn until it has no more events.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(Slot, Event)> {
        while let Some(&slot) = self.turns.front() {
            if let Some(event) = self.pop(slot) {
                return Some((slot, event));
            }
            self.chains[slot.0 as usize].has_turn = false;
            self.turns.pop_front();
        }
        None
    }

    /// Drops a slot's chain and returns the buffers that were in it.
    pub(super) fn clear(&mut self, slot: Slot) -> impl Iterator<Item = Filled> {
        std::iter::from_fn(move || self.pop(slot)).filter_map(|event| match event {
            Event::Received(filled) => Some(filled),
            _ => None,
        })
    }

    /// Removes a `Readable` if it is the next event of the slot; returns whether it was.
    pub(super) fn take_back_readable(&mut self, slot: Slot) -> bool {
        let first = self.chains[slot.0 as usize].first;
        first != NONE
            && self.links[first as usize].event == Event::Readable
            && self.pop(slot).is_some()
    }

    #[inline]
    fn pop(&mut self, slot: Slot) -> Option<Event> {
        let chain = &mut self.chains[slot.0 as usize];
        let at = chain.first;
        if at == NONE {
            return None;
        }
        let Link { event, next } = self.links[at as usize];
        chain.first = next;
        self.links[at as usize].next = self.free;
        self.free = at;
        self.n_events -= 1;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_a_slot_comes_before_another_slot() {
        let mut chains = Chains::new(3, 1);
        let filled = Filled { id: 0, from: 0, n_bytes: 1 };
        chains.append(Slot(2), Event::Received(filled));
        chains.append(Slot(0), Event::Connected(None));
        chains.append(Slot(2), Event::Closed);
        let order: Vec<_> = std::iter::from_fn(|| chains.next()).collect();
        let expected = [
            (Slot(2), Event::Received(filled)),
            (Slot(2), Event::Closed),
            (Slot(0), Event::Connected(None)),
        ];
        assert_eq!(order, expected);
        assert!(chains.is_empty());
    }

    #[test]
    fn a_cleared_chain_gives_its_buffers_back_and_is_not_told() {
        let mut chains = Chains::new(2, 2);
        let filled = |id| Filled { id, from: 0, n_bytes: 1 };
        chains.append(Slot(0), Event::Received(filled(0)));
        chains.append(Slot(0), Event::Received(filled(1)));
        chains.append(Slot(1), Event::Closed);
        assert_eq!(chains.clear(Slot(0)).collect::<Vec<_>>(), [filled(0), filled(1)]);
        assert_eq!(chains.next(), Some((Slot(1), Event::Closed)));
        assert_eq!(chains.next(), None);
        for _ in 0..100 {
            chains.append(Slot(0), Event::Connected(None));
            assert_eq!(chains.next(), Some((Slot(0), Event::Connected(None))));
        }
    }
}
