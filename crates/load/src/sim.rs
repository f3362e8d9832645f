//! A network and a server in virtual time, behind the same [`Driver`] as the kernel: the real workers
//! run on it, hundreds of loads a second, and what they measure has a known answer. Owns the clock,
//! the script and the chance of a simulation; must not know who measures.
//! Start reading at [`Script`].
//!
//! Nothing here takes time but what the script says: a request sent at t is answered at t + delay,
//! exactly, and processing costs nothing (unless [`Script::client`] says so). Same script, same
//! seed, same plan: the same record, byte for byte.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::io;
use std::ops::Range;

use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;
use record::{LoadPlan, LoadRecord};
use sys::driver::{Completion, Driver, Failure, Leave, Route, Slot, What};
use units::Nanos;

use crate::run::{Control, LoadError, run_on};

/// How the simulated world behaves.
#[derive(Debug, Clone)]
pub struct Script {
    /// Time to establish a connection.
    pub connect: Nanos,
    /// Time from a request to the first byte of its reply; at least 1 ns, or time would stand still.
    pub delay: Nanos,
    /// Bytes of a reply's body.
    pub body_bytes: usize,
    /// What connection attempts meet: each draws one, by weight.
    pub connects: Vec<(Connecting, u32)>,
    /// What requests meet: each draws one, by weight.
    pub acts: Vec<(Act, u32)>,
    /// A time in which the server stands still: what would leave it then leaves it at the end.
    pub stall: Option<Stall>,
    /// Time that the client needs for one completion: delays everything after it.
    pub client: Nanos,
    /// Decides what is drawn.
    pub seed: u64,
}

/// A stretch of time in which nothing leaves the server.
#[derive(Debug, Clone, Copy)]
pub struct Stall {
    /// Start.
    pub at: Nanos,
    /// Length.
    pub length: Nanos,
}

/// How a connection attempt ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connecting {
    /// After [`Script::connect`] it stands.
    Well,
    /// It fails after that time.
    Fails(Failure),
    /// It fails in the call itself.
    FailsAtOnce(Failure),
    /// Nothing ever comes.
    Never,
}

/// What a server does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Replies after the delay, all bytes at once.
    Reply,
    /// Replies after the delay, in pieces of `bytes` (at least 1), `gap` apart.
    #[expect(missing_docs, reason = "said above")]
    Dribble { bytes: usize, gap: Nanos },
    /// Replies, and closes so much later, though the reply does not say so.
    ReplyThenClose(Nanos),
    /// Replies with `Connection: close`, and closes.
    ReplySayingClose,
    /// An interim reply after half the delay, then the reply.
    Interim,
    /// The reply as a chunked body.
    Chunked,
    /// The reply, its end marked by closing.
    UntilClose,
    /// Sends so many bytes of the reply, then RST.
    Reset(usize),
    /// Sends so many bytes of the reply, then FIN.
    Close(usize),
    /// Sends so many bytes of the reply and no more, ever.
    Stop(usize),
    /// A complete reply of that status.
    Status(u16),
    /// A complete reply with one byte of body more than usual, truly declared.
    Longer,
    /// The reply, and a byte more than its length says.
    Surplus,
    /// Not HTTP.
    Garbage,
}

impl Script {
    /// A server that answers every request well after `delay`.
    pub fn new(delay: Nanos) -> Self {
        Self {
            connect: Nanos::ZERO,
            delay,
            body_bytes: 100,
            connects: vec![(Connecting::Well, 1)],
            acts: vec![(Act::Reply, 1)],
            stall: None,
            client: Nanos::ZERO,
            seed: 1,
        }
    }

    /// The bytes that an act sends, all of them.
    fn bytes(&self, act: Act) -> Vec<u8> {
        let reply = |status: u16, n_bytes: usize, fields: &str| {
            let head = format!("HTTP/1.1 {status} Any\r\nContent-Length: {n_bytes}\r\n");
            [head.as_bytes(), fields.as_bytes(), b"\r\n", &vec![b'x'; n_bytes]].concat()
        };
        let n = self.body_bytes;
        let body = || "x".repeat(n);
        let mut whole = reply(200, n, "");
        match act {
            Act::Reply | Act::Dribble { .. } | Act::ReplyThenClose(_) => whole,
            Act::ReplySayingClose => reply(200, n, "Connection: close\r\n"),
            Act::Interim => [INTERIM, &whole].concat(),
            Act::Chunked => {
                let head = "HTTP/1.1 200 Any\r\nTransfer-Encoding: chunked\r\n\r\n";
                format!("{head}{n:x}\r\n{}\r\n0\r\n\r\n", body()).into_bytes()
            }
            Act::UntilClose => format!("HTTP/1.1 200 Any\r\n\r\n{}", body()).into_bytes(),
            Act::Reset(n_sent) | Act::Close(n_sent) | Act::Stop(n_sent) => {
                whole.truncate(n_sent);
                whole
            }
            Act::Status(status) => reply(status, n, ""),
            Act::Longer => reply(200, n + 1, ""),
            Act::Surplus => [&whole[..], b"x"].concat(),
            Act::Garbage => b"\x16\x03\x01 this is no HTTP at all\r\n\r\n".to_vec(),
        }
    }
}

const INTERIM: &[u8] = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n";

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

/// A [`Driver`] in virtual time: one thread's own network and server. Memory is bounded by what is
/// under way; nothing is allocated for a request once that has been reached.
pub struct SimDriver {
    script: Script,
    /// What each act of the script sends.
    payloads: Vec<Vec<u8>>,
    now: Nanos,
    random: Pcg64Mcg,
    conns: Vec<Conn>,
    coming: BinaryHeap<Coming>,
    n_made: u64,
    /// The last wake-up, and how many events had been made by then: the batch are those of them that
    /// had come.
    woken: Nanos,
    n_made_before: u64,
    received: (usize, Range<usize>),
}

#[derive(Default, Clone)]
struct Conn {
    is_used: bool,
    generation: u32,
    /// The server has ended the connection, or will: it acts on no further request.
    is_ending: bool,
    /// Bytes that the client does not want to see.
    discard: u64,
}

/// Something under way to the client.
struct Coming {
    at: Nanos,
    /// Order of making: what was made first comes first where instants are equal.
    order: u64,
    slot: Slot,
    generation: u32,
    what: What,
    /// Where the bytes of `What::Received` lie: index of the payload, and part of it.
    bytes: (usize, Range<usize>),
}

impl SimDriver {
    /// The world of thread `thread`, with `n_slots` slots.
    ///
    /// # Panics
    /// If the script has no act, no way to connect, or a delay of zero.
    pub fn new(script: &Script, thread: usize, n_slots: u32) -> Self {
        assert!(script.delay > Nanos::ZERO, "with a delay of zero, time would stand still");
        let thread = thread as u64;
        Self {
            payloads: script.acts.iter().map(|(act, _)| script.bytes(*act)).collect(),
            now: Nanos::ZERO,
            random: Pcg64Mcg::seed_from_u64(script.seed.wrapping_add(thread << 32)),
            conns: vec![Conn::default(); n_slots as usize],
            coming: BinaryHeap::with_capacity(4 * n_slots as usize),
            n_made: 0,
            woken: Nanos::ZERO,
            n_made_before: 0,
            received: (0, 0..0),
            script: script.clone(),
        }
    }

    /// Sends something to the client after `after`; the server's stall does not hold it.
    fn make(&mut self, slot: Slot, after: Nanos, what: What, bytes: (usize, Range<usize>)) {
        let generation = self.conns[slot.0 as usize].generation;
        let at = self.now + after;
        self.coming.push(Coming { at, order: self.n_made, slot, generation, what, bytes });
        self.n_made += 1;
    }

    /// As [`SimDriver::make`], from the server: not while it stalls.
    fn leave(&mut self, slot: Slot, after: Nanos, what: What, bytes: (usize, Range<usize>)) {
        let at = self.now + after;
        let held = match self.script.stall {
            Some(stall) if (stall.at..stall.at + stall.length).contains(&at) => {
                stall.at + stall.length - at
            }
            _ => Nanos::ZERO,
        };
        self.make(slot, after + held, what, bytes);
    }

    /// The server ends the connection after `after`.
    fn end(&mut self, slot: Slot, after: Nanos, what: What) {
        self.conns[slot.0 as usize].is_ending = true;
        self.leave(slot, after, what, NO_BYTES);
    }

    /// The server acts on a request that has just arrived.
    fn act(&mut self, slot: Slot) {
        let index = draw(&mut self.random, &self.script.acts);
        let (act, delay, n_bytes) =
            (self.script.acts[index].0, self.script.delay, self.payloads[index].len());
        let (step, gap) = match act {
            Act::Dribble { bytes, gap } => (bytes.max(1), gap),
            _ => (n_bytes.max(1), Nanos::ZERO),
        };
        let mut from = 0;
        if act == Act::Interim {
            from = INTERIM.len();
            self.leave(slot, Nanos(delay.0 / 2), What::Received, (index, 0..from));
        }
        let mut at = delay;
        while from < n_bytes {
            let to = n_bytes.min(from + step);
            self.leave(slot, at, What::Received, (index, from..to));
            from = to;
            at += gap;
        }
        match act {
            Act::ReplyThenClose(later) => self.end(slot, delay + later, What::Closed),
            Act::ReplySayingClose | Act::UntilClose | Act::Close(_) => {
                self.end(slot, delay, What::Closed);
            }
            Act::Reset(_) => self.end(slot, delay, What::Failed(Failure::Reset)),
            _ => {}
        }
    }
}

const NO_BYTES: (usize, Range<usize>) = (0, 0..0);

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

    /// Virtual time begins at zero, whatever the clock on the wall says.
    fn begin(&mut self, _origin: Nanos) {}

    fn now(&mut self) -> Nanos {
        self.now
    }

    /// The simulated client uses CPU time only as the script says, and that is in the time itself.
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
        self.make(slot, after, what, NO_BYTES);
    }

    fn send(&mut self, slot: Slot, _bytes: &[u8]) {
        let conn = &self.conns[slot.0 as usize];
        assert!(conn.is_used, "only a connection can send");
        if !conn.is_ending {
            self.act(slot);
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
        let next = self.coming.peek().map_or(Nanos::MAX, |coming| coming.at);
        let until = until.min(next);
        assert!(until != Nanos::MAX, "nothing will ever come to pass");
        self.now = self.now.max(until);
        self.woken = self.now;
        self.n_made_before = self.n_made;
        Ok(())
    }

    fn next(&mut self) -> Option<Completion> {
        loop {
            let coming = self.coming.peek()?;
            if coming.at > self.woken || coming.order >= self.n_made_before {
                return None;
            }
            let Coming { at, order, slot, generation, what, bytes } =
                self.coming.pop().expect("just looked at");
            let conn = &mut self.conns[slot.0 as usize];
            if conn.generation != generation {
                continue;
            }
            self.now += self.script.client;
            let (index, range) = bytes;
            let n_discarded = conn.discard.min(range.len() as u64);
            if what != What::Received || n_discarded == 0 {
                self.received = (index, range);
                return Some(Completion { slot, what });
            }
            conn.discard -= n_discarded;
            let rest = range.start + n_discarded as usize..range.end;
            if !rest.is_empty() {
                self.coming.push(Coming {
                    at,
                    order,
                    slot,
                    generation,
                    what,
                    bytes: (index, rest),
                });
            }
            return Some(Completion { slot, what: What::Discarded(n_discarded) });
        }
    }

    fn received(&self) -> &[u8] {
        let (index, range) = &self.received;
        &self.payloads[*index][range.clone()]
    }
}

impl Ord for Coming {
    /// The heap's greatest is what comes first.
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
