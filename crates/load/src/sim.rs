//! A network and a server in virtual time, with the same [`Driver`] interface as the kernel. The real workers run on
//! it, hundreds of loads a second, and the right results are known. Owns the clock and the random numbers of a
//! simulation; [`Script`] says what the world does. Start reading at [`run`], then [`SimDriver`].
//!
//! Nothing here takes time except what the script says: a request sent at t is answered at exactly t + delay, and
//! processing costs nothing (unless [`Script::client`] says so). The same script, seed and plan give the same record,
//! byte for byte.

mod requests;
mod script;

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;
use std::sync::atomic;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{LoadPlan, LoadRecord, Spread};
use sys::driver::{Completion, Driver, Failure, Leave, Route, Slot, What};
use units::Nanos;

use crate::run::{Control, LoadError, run_on};
use requests::{Came, Head, Requests};
pub use script::{Act, Connecting, Script, Slots, Stall, body};
use script::{HINTS, Payloads, Wanted};

/// One in this many pieces that the client discards is delivered anyway, as a real driver may do.
const DELIVERED_ONE_OF: u32 = 8;

/// Carries out a plan against a script.
///
/// # Errors
/// As [`crate::run`]; the simulated driver itself does not fail.
pub fn run(
    plan: &LoadPlan,
    control: &Control<'_>,
    script: &Script,
) -> Result<LoadRecord, LoadError> {
    run_on(plan, control, |thread, n_slots| Ok(SimDriver::new(script, thread, n_slots)))
}

/// A [`Driver`] in virtual time: one thread's own network and server. Memory is bounded by what is under way; once
/// that bound is reached, nothing is allocated for a request.
pub struct SimDriver {
    script: Script,
    payloads: Payloads,
    now: Nanos,
    random: Pcg64Mcg,
    conns: Vec<Conn>,
    /// Under way.
    coming: BinaryHeap<Coming>,
    n_made: u64,
    /// What had arrived at the last wake-up and was not taken, in reverse order. All completions of one slot are
    /// adjacent, as the trait requires.
    batch: Vec<Coming>,
    n_batches: u64,
    /// When each of the server's slots is free, if it has slots.
    slots: Vec<Nanos>,
    received: Bytes,
    /// When the last completion came.
    arrived: Nanos,
}

/// Where bytes lie: number of the payload, and part of it.
type Bytes = (usize, Range<usize>);

/// A connection, as network and server see it.
#[derive(Default, Clone)]
struct Conn {
    is_used: bool,
    generation: u32,
    requests: Requests,
    /// What the server will do when the body has arrived.
    acting: Option<(Act, Head)>,
    /// When the last reply will have left; the next one follows it.
    leaves_until: Nanos,
    /// How the server has ended the connection, or will end it: it acts on no further request.
    end: Option<End>,
    /// Requests that were acted on.
    n_acts: u64,
    /// Whether it ends the connection with the next request.
    closes_on_next: bool,
    /// Bytes that the client discards.
    discard: u64,
    /// The last batch that it was in, and its place there.
    batch: u64,
    rank: u64,
}

/// How a server ended a connection.
#[derive(Clone, Copy)]
struct End {
    at: Nanos,
    /// Whether anything that the client sends later is answered by RST.
    resets: bool,
}

/// Something under way to the client.
struct Coming {
    at: Nanos,
    /// Order of creation, which decides if instants are equal. In a batch: the position.
    order: u64,
    slot: Slot,
    generation: u32,
    what: What,
    /// Of `What::Received`.
    bytes: Bytes,
}

impl SimDriver {
    /// The world of thread `thread`, with `n_slots` slots.
    ///
    /// # Panics
    /// If the script has no act, no way to connect, or a delay of zero.
    pub fn new(script: &Script, thread: usize, n_slots: u32) -> Self {
        assert!(script.delay > Nanos::ZERO, "with a delay of zero, time would stand still");
        assert!(script.segment_bytes > 0, "a piece has at least one byte");
        let thread = thread as u64;
        Self {
            payloads: Payloads::new(),
            now: Nanos::ZERO,
            random: Pcg64Mcg::seed_from_u64(script.seed.wrapping_add(thread << 32)),
            conns: vec![Conn::default(); n_slots as usize],
            coming: BinaryHeap::with_capacity(4 * n_slots as usize),
            n_made: 0,
            batch: Vec::with_capacity(n_slots as usize),
            n_batches: 0,
            slots: vec![Nanos::ZERO; script.slots.map_or(0, |slots| slots.n)],
            received: NO_BYTES,
            arrived: Nanos::ZERO,
            script: script.clone(),
        }
    }

    /// Something reaches the client at `at`.
    fn make(&mut self, slot: Slot, at: Nanos, what: What, bytes: Bytes) {
        let generation = self.conns[slot.0 as usize].generation;
        self.coming.push(Coming { at, order: self.n_made, slot, generation, what, bytes });
        self.n_made += 1;
    }

    /// As [`SimDriver::make`], from the server: not while it stalls.
    fn leave(&mut self, slot: Slot, at: Nanos, what: What, bytes: Bytes) {
        let held = match self.script.stall {
            Some(stall) if (stall.at..stall.at + stall.length).contains(&at) => {
                stall.at + stall.length
            }
            _ => at,
        };
        self.make(slot, held, what, bytes);
    }

    /// The server ends the connection at `at`.
    fn end(&mut self, slot: Slot, at: Nanos, what: What, resets: bool) {
        self.conns[slot.0 as usize].end = Some(End { at, resets });
        self.leave(slot, at, what, NO_BYTES);
    }

    /// The head of a request reached the server.
    fn take_head(&mut self, slot: Slot, head: Head) {
        if let Some(heard) = &self.script.heard {
            heard.fetch_add(1, atomic::Ordering::Relaxed);
        }
        let conn = &self.conns[slot.0 as usize];
        if let Some(end) = conn.end {
            if end.resets && self.now >= end.at {
                self.make(slot, self.now + self.script.connect, RESET, NO_BYTES);
            }
            return;
        }
        if conn.closes_on_next {
            let at = (self.now + self.script.delay).max(conn.leaves_until);
            return self.end(slot, at, What::Closed, true);
        }
        let index = draw(&mut self.random, &self.script.acts);
        let act = self.script.acts[index].0;
        if !head.has_body || act == Act::FinalAtOnce {
            return self.act(slot, act, head);
        }
        self.conns[slot.0 as usize].acting = Some((act, head));
        if head.expects_continue && act != Act::NoContinue {
            let (number, n_bytes) = match act {
                Act::HintsNoContinue => (Payloads::HINTS, HINTS.len()),
                _ => (Payloads::CONTINUE, script::CONTINUE.len()),
            };
            let at = self.now + Nanos(self.script.delay.0 / 2);
            self.leave(slot, at, What::Received, (number, 0..n_bytes));
        }
    }

    /// When the server finishes a request that arrives now, in the slot that is free first.
    fn served_at(&mut self) -> Nanos {
        let Some(slots) = self.script.slots else { return self.now + self.script.delay };
        let delay = match slots.spread {
            Spread::Constant => self.script.delay,
            Spread::Exponential => {
                let chance: f64 = self.random.random();
                Nanos((self.script.delay.0 as f64 * -(1.0 - chance).ln()) as u64).max(Nanos(1))
            }
        };
        let first = self.slots.iter_mut().min().expect("a server has a slot");
        *first = self.now.max(*first) + delay;
        *first
    }

    /// The server acts on a request.
    fn act(&mut self, slot: Slot, act: Act, head: Head) {
        let body_bytes = head.body_bytes.unwrap_or(self.script.body_bytes);
        let number = self.payloads.number(Wanted { act, body_bytes, is_head: head.is_head });
        let n_bytes = self.payloads.bytes(number).len();
        let leaves_until = self.conns[slot.0 as usize].leaves_until;
        let mut at = self.served_at().max(leaves_until);
        let mut from = 0;
        if act == Act::Interim {
            from = HINTS.len();
            let at = (self.now + Nanos(self.script.delay.0 / 2)).max(leaves_until);
            self.leave(slot, at, What::Received, (number, 0..from));
        }
        while from < n_bytes {
            let (length, gap) = match act {
                Act::Dribble { bytes, gap } => (bytes.max(1), gap),
                Act::Pause { bytes, gap } if from == 0 => (bytes.max(1), gap),
                _ => (self.script.segment_bytes, Nanos::ZERO),
            };
            let to = n_bytes.min(from.saturating_add(length));
            self.leave(slot, at, What::Received, (number, from..to));
            from = to;
            if from < n_bytes {
                at += gap;
            }
        }
        self.conns[slot.0 as usize].leaves_until = at;
        match act {
            Act::ReplyThenClose(later) => self.end(slot, at + later, What::Closed, true),
            Act::HalfClose(later) => self.end(slot, at + later, What::Closed, false),
            Act::ReplySayingClose | Act::UntilClose | Act::Close(_) => {
                self.end(slot, at, What::Closed, true);
            }
            Act::Reset(_) => self.end(slot, at, RESET, false),
            Act::CloseOnNext => self.conns[slot.0 as usize].closes_on_next = true,
            Act::Stop(_) => self.conns[slot.0 as usize].end = Some(End { at, resets: false }),
            _ => {
                let conn = &mut self.conns[slot.0 as usize];
                conn.n_acts += 1;
                if self.script.replies_per_connection == Some(conn.n_acts) {
                    self.end(slot, at, What::Closed, true);
                }
            }
        }
    }

    /// Makes a batch of everything that has arrived.
    fn gather(&mut self) {
        self.n_batches += 1;
        let mut n_gathered = 0;
        while let Some(coming) = self.coming.peek()
            && coming.at <= self.now
        {
            let mut coming = self.coming.pop().expect("just looked at");
            let conn = &mut self.conns[coming.slot.0 as usize];
            if conn.batch != self.n_batches {
                (conn.batch, conn.rank) = (self.n_batches, n_gathered);
            }
            coming.order = n_gathered;
            n_gathered += 1;
            self.batch.push(coming);
        }
        let conns = &self.conns;
        let place = |coming: &Coming| (conns[coming.slot.0 as usize].rank, coming.order);
        self.batch.sort_unstable_by_key(|coming| std::cmp::Reverse(place(coming)));
    }

    /// How the client sees bytes: all, a part, or none.
    fn deliver(&mut self, coming: Coming) -> Completion {
        let slot = coming.slot;
        let (number, range) = coming.bytes.clone();
        let conn = &mut self.conns[slot.0 as usize];
        let unwanted = conn.discard.min(range.len() as u64);
        if unwanted == 0 || self.random.random_range(0..DELIVERED_ONE_OF) == 0 {
            conn.discard -= unwanted;
            self.received = (number, range);
            return Completion { slot, what: What::Received };
        }
        conn.discard -= unwanted;
        let rest = range.start + unwanted as usize..range.end;
        if !rest.is_empty() {
            self.batch.push(Coming { bytes: (number, rest), ..coming });
        }
        Completion { slot, what: What::Discarded(unwanted) }
    }
}

const NO_BYTES: Bytes = (0, 0..0);
const RESET: What = What::Failed(Failure::Reset);

/// Index of one of `choices`, by weight.
fn draw<T>(random: &mut Pcg64Mcg, choices: &[(T, u32)]) -> usize {
    let total: u32 = choices.iter().map(|(_, weight)| weight).sum();
    let mut left = random.random_range(0..total);
    let is_it = |(_, weight): &(T, u32)| {
        let is_it = left < *weight;
        left = left.saturating_sub(*weight);
        is_it
    };
    choices.iter().position(is_it).expect("what is left is less than the sum of weights")
}

impl Driver for SimDriver {
    fn name(&self) -> &'static str {
        "sim"
    }

    /// Virtual time begins at zero.
    fn begin(&mut self, _origin: Nanos) {}

    fn now(&mut self) -> Nanos {
        self.now
    }

    /// The simulated client uses CPU time only as the script says, and that is already in the virtual time.
    fn cpu(&mut self) -> Nanos {
        Nanos::ZERO
    }

    fn connect(&mut self, slot: Slot, _route: &Route) {
        let conn = &mut self.conns[slot.0 as usize];
        assert!(!conn.is_used, "a slot is closed before it connects again");
        conn.is_used = true;
        let index = draw(&mut self.random, &self.script.connects);
        let (what, after) = match self.script.connects[index].0 {
            Connecting::Well => (What::Connected, self.script.connect),
            Connecting::Fails(failure) => (What::Failed(failure), self.script.connect),
            Connecting::FailsAtOnce(failure) => (What::Failed(failure), Nanos::ZERO),
            Connecting::Never => return,
        };
        self.make(slot, self.now + after, what, NO_BYTES);
    }

    fn send(&mut self, slot: Slot, bytes: &[u8]) {
        let index = slot.0 as usize;
        assert!(self.conns[index].is_used, "only a connection can send");
        let mut bytes = bytes;
        while let Some((came, used)) = self.conns[index].requests.next(bytes) {
            bytes = &bytes[used..];
            match came {
                Came::Head(head) => self.take_head(slot, head),
                Came::Body => {
                    if let Some((act, head)) = self.conns[index].acting.take() {
                        self.act(slot, act, head);
                    }
                }
            }
        }
    }

    fn discard(&mut self, slot: Slot, n_bytes: u64) {
        self.conns[slot.0 as usize].discard = n_bytes;
    }

    fn close(&mut self, slot: Slot, _how: Leave) {
        let conn = &mut self.conns[slot.0 as usize];
        let generation = conn.generation + 1;
        *conn = Conn { generation, ..Conn::default() };
    }

    fn wait(&mut self, until: Nanos) -> io::Result<()> {
        if !self.batch.is_empty() {
            return Ok(());
        }
        let next = self.coming.peek().map_or(Nanos::MAX, |coming| coming.at);
        let until = until.min(next);
        assert!(until != Nanos::MAX, "nothing will ever come to pass");
        self.now = self.now.max(until);
        self.gather();
        Ok(())
    }

    /// Polling repeatedly costs nothing here but would never end, so time passes at once.
    fn poll(&mut self, until: Nanos) -> io::Result<()> {
        self.wait(until)
    }

    fn next(&mut self) -> Option<Completion> {
        loop {
            let coming = self.batch.pop()?;
            if self.conns[coming.slot.0 as usize].generation != coming.generation {
                continue;
            }
            self.now += self.script.client;
            self.arrived = coming.at;
            if coming.what == What::Received {
                return Some(self.deliver(coming));
            }
            return Some(Completion { slot: coming.slot, what: coming.what });
        }
    }

    fn received(&self) -> &[u8] {
        let (number, range) = &self.received;
        &self.payloads.bytes(*number)[range.clone()]
    }

    fn arrived(&self) -> Option<Nanos> {
        self.script.stamps.then_some(self.arrived)
    }
}

impl Ord for Coming {
    /// The heap's greatest element is the one that arrives first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}

impl PartialOrd for Coming {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Coming {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Coming {}
