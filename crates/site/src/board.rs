//! The status board: what every thread and process of a server does and has done, in shared memory.
//! Owns its layout and which thread has which slot. Start reading at [`Board::claim_slot`].
//!
//! A slot is one cache line with one writer, so a request costs plain stores to a line that no other thread writes: no
//! lock and no locked instruction. A thread without a slot gets one at its first write, so a new model appears on the
//! board without code of its own. The counts of a slot continue when another thread takes it. So a sum over all slots
//! never falls, and no counts are lost when a child is killed.
//!
//! Cost of a request: two stores, or about six if a path for the status is set (`examples/exchange_rate.rs`).

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::process::Pid;
use sys::clock;
use sys::process::SharedCells;
use units::Nanos;

/// Slots of a board: more than the threads of any model. Slots that were never used take no memory.
const SLOTS_MAX: u32 = 1 << 18;

/// Cells of 8 bytes in a cache line.
const LINE: usize = 8;

type Line = [AtomicU64; LINE];

/// Lines before the first slot: the board's own, the counts for the whole server, the queue.
const HEAD: usize = 0;
const COUNTS: usize = 1;
const QUEUE: usize = 2;
const SLOTS: usize = 3;

/// Cells of the head. Slots from this number on were never used.
const HIGH: usize = 0;
/// Below this number there is most likely no free slot.
const HINT: usize = 1;
/// The first reserved slot, and the one after the last.
const BLOCK_START: usize = 2;
const BLOCK_END: usize = 3;
const STARTED_NS: usize = 4;
const STARTED_S: usize = 5;

/// Cells of a slot. Process in the high half and thread in the low one; 0: the slot is free.
const OWNER: usize = 0;
const STATE: usize = 1;
/// When the state began, monotonic.
const SINCE: usize = 2;
const REQUESTS: usize = 3;
const BYTES: usize = 4;
const ACCEPTED: usize = 5;
/// Of the connections accepted here, how many have ended, in any thread.
const ENDED: usize = 6;
/// `REQUESTS` when the present owner took the slot.
const REQUESTS_BEFORE: usize = 7;

/// What a serving thread does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum State {
    /// The slot has no owner.
    Free = 0,
    /// It is not ready yet.
    Starting = 1,
    /// It has nothing to do.
    Waiting = 2,
    /// It reads a request.
    Reading = 3,
    /// It sends an answer.
    Writing = 4,
    /// It waits for the next request of a connection.
    KeepAlive = 5,
    /// It waits for a program that answers.
    Gateway = 6,
    /// It has answered, and reads until the client has closed too.
    Closing = 7,
    /// It takes no more connections, and ends.
    Finishing = 8,
}

impl State {
    /// All states; the index of each is its number.
    pub const ALL: [Self; 9] = [
        Self::Free,
        Self::Starting,
        Self::Waiting,
        Self::Reading,
        Self::Writing,
        Self::KeepAlive,
        Self::Gateway,
        Self::Closing,
        Self::Finishing,
    ];

    fn of(cell: u64) -> Self {
        Self::ALL.get(cell as usize).copied().unwrap_or(Self::Free)
    }

    /// Whether it could take a connection now or soon. Apache calls this idle.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Starting | Self::Waiting)
    }
}

/// What is counted for the whole server, by any thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A connection was closed without an answer because there was no room for it.
    Refused = 0,
    /// A kept-alive connection was closed to make room.
    KeepAliveClosed = 1,
    /// A child process was started.
    ProcessesSpawned = 2,
    /// A child process has ended.
    ProcessesReaped = 3,
    /// A serving thread was started. The board counts those that claim a slot.
    ThreadsSpawned = 4,
    /// A serving thread has ended.
    ThreadsReaped = 5,
    /// A thread found no free slot. What it does is counted but not shown.
    WithoutSlot = 6,
}

const COUNTERS: usize = 7;

/// The board of a server. Its processes inherit it, and a clone is the same board.
#[derive(Debug, Clone)]
pub struct Board {
    cells: Arc<SharedCells<AtomicU64>>,
    /// Distinguishes it from other boards of the process.
    number: u32,
    /// The status may be requested, so each request is noted.
    is_watched: bool,
}

thread_local! {
    /// The board and the slot of this thread; 0: no board.
    static HERE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    /// The slot of a thread that did not claim one. Freed when the thread ends.
    static KEPT: RefCell<Option<BoardSlot>> = const { RefCell::new(None) };
}

/// The number of the last board; the first is 1.
static BOARDS: AtomicU32 = AtomicU32::new(0);

impl Board {
    /// A board with free slots only. If not `is_watched`, single requests are not noted.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(is_watched: bool) -> io::Result<Self> {
        let cells = SharedCells::new(LINE * (SLOTS + SLOTS_MAX as usize + 1))?;
        let number = BOARDS.fetch_add(1, Relaxed) + 1;
        let board = Self { cells: Arc::new(cells), number, is_watched };
        board.line(HEAD)[STARTED_NS].store(clock::monotonic().0, Relaxed);
        board.line(HEAD)[STARTED_S].store(clock::wall_secs_coarse(), Relaxed);
        Ok(board)
    }

    /// Gives this thread a slot until the returned value is dropped. Its state is waiting.
    pub fn claim_slot(&self) -> BoardSlot {
        // KEPT may hold this thread's slot, which is freed, or a copy of the forking process's slot, which stays taken.
        let _ = KEPT.try_with(|kept| kept.take());
        self.take(self.free_slot())
    }

    /// Reserves `count` slots for [`Board::claim_reserved`] and returns the number of the first. Call it once per
    /// board.
    pub fn reserve(&self, count: usize) -> u32 {
        let head = self.line(HEAD);
        let start = head[HIGH].load(Relaxed) as u32;
        let end = start + u32::try_from(count).unwrap_or(SLOTS_MAX).min(SLOTS_MAX - start);
        assert!(head[BLOCK_END].load(Relaxed) == 0, "slots are reserved once");
        head[BLOCK_START].store(u64::from(start), Relaxed);
        head[BLOCK_END].store(u64::from(end), Relaxed);
        head[HIGH].store(u64::from(end), Relaxed);
        start
    }

    /// Gives this thread a reserved slot.
    pub fn claim_reserved(&self, slot: u32) -> BoardSlot {
        let _ = KEPT.try_with(|kept| kept.take());
        self.slot(slot)[OWNER].store(owner(), Relaxed);
        self.take(slot)
    }

    /// Frees the slots of a process that has ended, in whatever way, and counts its connections as ended.
    pub fn reaped(&self, pid: Pid) {
        for slot in 0..self.high() {
            let line = self.slot(slot);
            let owner = line[OWNER].load(Relaxed);
            if (owner >> 32) as u32 != pid.as_raw_nonzero().get().unsigned_abs() {
                continue;
            }
            line[ENDED].store(line[ACCEPTED].load(Relaxed), Relaxed);
            if owner >> 32 != owner & u64::from(u32::MAX) {
                self.count(Counter::ThreadsReaped);
            }
            line[STATE].store(State::Free as u64, Relaxed);
            line[OWNER].store(0, Relaxed);
            self.line(HEAD)[HINT].fetch_min(u64::from(slot), Relaxed);
        }
    }

    /// Adds one to a counter.
    pub fn count(&self, counter: Counter) {
        self.line(COUNTS)[counter as usize].fetch_add(1, Relaxed);
    }

    /// Notes how many connections or requests wait in a queue of the server.
    #[inline]
    pub fn queue(&self, len: usize) {
        if self.is_watched {
            self.line(QUEUE)[0].store(len as u64, Relaxed);
        }
    }

    /// Whether single requests are noted.
    #[inline]
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Notes what this thread does from `now` on.
    #[inline]
    pub fn set(&self, state: State, now: Nanos) {
        set(self.here(), state, now);
    }

    /// Notes that this thread is about to wait for events.
    #[inline]
    pub fn wait(&self, now: impl FnOnce() -> Nanos) {
        if self.is_watched {
            self.set(State::Waiting, now());
        }
    }

    /// Sets the state of a slot, from another thread or process.
    pub fn set_at(&self, slot: u32, state: State) {
        set(self.slot(slot), state, clock::monotonic());
    }

    /// The state of a slot.
    pub fn state_at(&self, slot: u32) -> State {
        State::of(self.slot(slot)[STATE].load(Relaxed))
    }

    /// Notes that this thread has accepted a connection. Pass the result to [`Board::ended`].
    pub(crate) fn accepted(&self) -> u32 {
        let line = self.here();
        add(&line[ACCEPTED], 1);
        HERE.get().1
    }

    /// Notes that a connection accepted on that slot has ended, perhaps in another thread.
    pub(crate) fn ended(&self, accepted_at: u32) {
        self.slot(accepted_at)[ENDED].fetch_add(1, Relaxed);
    }

    /// Notes that this thread has answered a request.
    #[inline]
    pub(crate) fn answered(&self) {
        add(&self.here()[REQUESTS], 1);
    }

    /// Notes that this thread has sent this many bytes.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.here()[BYTES], bytes as u64);
    }

    /// Reads the whole board. Others write at the same time, so counts may be a moment apart.
    pub fn read(&self) -> BoardReading {
        let head = self.line(HEAD);
        let counts = std::array::from_fn(|at| self.line(COUNTS)[at].load(Relaxed));
        let slots = 0..self.high();
        let standing = self.slot(SLOTS_MAX)[OWNER].load(Relaxed) != 0;
        let slots = slots.chain(standing.then_some(SLOTS_MAX));
        BoardReading {
            slots: slots.map(|slot| SlotReading::of(slot, self.slot(slot))).collect(),
            counts,
            queue: self.line(QUEUE)[0].load(Relaxed),
            started: Nanos(head[STARTED_NS].load(Relaxed)),
            started_s: head[STARTED_S].load(Relaxed),
        }
    }

    fn high(&self) -> u32 {
        self.line(HEAD)[HIGH].load(Relaxed) as u32
    }

    #[inline]
    fn line(&self, number: usize) -> &Line {
        &self.cells.as_chunks().0[number]
    }

    #[inline]
    fn slot(&self, number: u32) -> &Line {
        self.line(SLOTS + number as usize)
    }

    #[inline]
    fn here(&self) -> &Line {
        let (board, slot) = HERE.get();
        if board == self.number { self.slot(slot) } else { self.claim_late() }
    }

    /// Gives a slot to a thread that did not claim one, until it ends.
    #[cold]
    fn claim_late(&self) -> &Line {
        let slot = self.claim_slot();
        let line = self.slot(slot.number);
        let here = HERE.get();
        // If the thread is about to end, the slot is freed at once.
        let _ = KEPT.try_with(|kept| kept.replace(Some(slot)));
        HERE.set(here);
        line
    }

    fn take(&self, number: u32) -> BoardSlot {
        let (line, owner) = (self.slot(number), owner());
        line[REQUESTS_BEFORE].store(line[REQUESTS].load(Relaxed), Relaxed);
        set(line, State::Waiting, clock::monotonic());
        if is_thread(owner) {
            self.count(Counter::ThreadsSpawned);
        }
        HERE.set((self.number, number));
        BoardSlot { board: self.clone(), number, owner, stays: PhantomData }
    }

    /// Claims a free slot, or, if all are taken, the slot that all further threads share.
    fn free_slot(&self) -> u32 {
        let (head, me) = (self.line(HEAD), owner());
        let block = head[BLOCK_START].load(Relaxed)..head[BLOCK_END].load(Relaxed);
        let hint = head[HINT].load(Relaxed).min(u64::from(SLOTS_MAX));
        let found = (hint..u64::from(SLOTS_MAX)).chain(0..hint).find(|number| {
            let owner = &self.slot(*number as u32)[OWNER];
            !block.contains(number)
                && owner.load(Relaxed) == 0
                && owner.compare_exchange(0, me, Relaxed, Relaxed).is_ok()
        });
        let Some(number) = found else {
            self.count(Counter::WithoutSlot);
            self.slot(SLOTS_MAX)[OWNER].store(me, Relaxed);
            return SLOTS_MAX;
        };
        head[HINT].store(number + 1, Relaxed);
        head[HIGH].fetch_max(number + 1, Relaxed);
        number as u32
    }

    fn is_reserved(&self, slot: u32) -> bool {
        let head = self.line(HEAD);
        let block = head[BLOCK_START].load(Relaxed)..head[BLOCK_END].load(Relaxed);
        block.contains(&u64::from(slot))
    }
}

/// There is one writer, so this is a plain addition. Readers see the old or the new value.
#[inline]
fn add(cell: &AtomicU64, count: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(count), Relaxed);
}

#[inline]
fn set(line: &Line, state: State, now: Nanos) {
    line[STATE].store(state as u64, Relaxed);
    line[SINCE].store(now.0, Relaxed);
}

fn owner() -> u64 {
    let [process, thread] = [rustix::process::getpid(), rustix::thread::gettid()]
        .map(|id| u64::from(id.as_raw_nonzero().get().unsigned_abs()));
    process << 32 | thread
}

/// Whether it is not the first thread of its process.
fn is_thread(owner: u64) -> bool {
    owner >> 32 != owner & u64::from(u32::MAX)
}

/// A slot of the board while a thread owns it.
#[derive(Debug)]
pub struct BoardSlot {
    board: Board,
    number: u32,
    owner: u64,
    /// Not `Send`: the slot belongs to one thread.
    stays: PhantomData<*const ()>,
}

impl BoardSlot {
    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for BoardSlot {
    fn drop(&mut self) {
        if HERE.get() == (self.board.number, self.number) {
            HERE.set((0, 0));
        }
        // In a forked child this is a copy of the parent's.
        let line = self.board.slot(self.number);
        let is_its = self.owner == owner() && line[OWNER].load(Relaxed) == self.owner;
        if !is_its || self.number == SLOTS_MAX {
            return;
        }
        if self.board.is_reserved(self.number) {
            // Whoever reserved it frees it, when the process has ended.
            return set(line, State::Finishing, clock::monotonic());
        }
        if is_thread(self.owner) {
            self.board.count(Counter::ThreadsReaped);
        }
        line[STATE].store(State::Free as u64, Relaxed);
        line[OWNER].store(0, Relaxed);
        self.board.line(HEAD)[HINT].fetch_min(u64::from(self.number), Relaxed);
    }
}

/// The contents of a board.
#[derive(Debug, Clone)]
pub struct BoardReading {
    /// Every slot that was ever used, in order.
    pub slots: Vec<SlotReading>,
    counts: [u64; COUNTERS],
    /// Connections or requests that wait in a queue of the server.
    pub queue: u64,
    /// When the server started, monotonic.
    pub started: Nanos,
    /// The same in seconds since 1970.
    pub started_s: u64,
}

/// The contents of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReading {
    /// From 0 on.
    pub number: u32,
    /// Process of the owner; 0: the slot has no owner, or its owner has not started yet.
    pub process: u32,
    /// Thread of the owner.
    pub thread: u32,
    /// What the owner does.
    pub state: State,
    /// When that state began, monotonic.
    pub since: Nanos,
    /// Requests that the present owner has answered.
    pub requests: u64,
    /// Requests that all owners have answered.
    pub requests_ever: u64,
    /// Bytes that all owners have sent.
    pub bytes_ever: u64,
    /// Connections that all owners have accepted.
    pub accepted_ever: u64,
    /// How many of those connections are open.
    pub connections: u64,
}

impl SlotReading {
    fn of(number: u32, line: &Line) -> Self {
        let [owner, state, since, requests_ever, bytes_ever, accepted_ever, ended, before] =
            std::array::from_fn(|at| line[at].load(Relaxed));
        Self {
            number,
            process: (owner >> 32) as u32,
            thread: owner as u32,
            state: State::of(state),
            since: Nanos(since),
            requests: requests_ever.saturating_sub(before),
            requests_ever,
            bytes_ever,
            accepted_ever,
            connections: accepted_ever.saturating_sub(ended),
        }
    }
}

impl BoardReading {
    /// The value of a counter.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// The sum of `of` over all slots.
    pub fn sum(&self, of: impl Fn(&SlotReading) -> u64) -> u64 {
        self.slots.iter().map(of).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn board() -> Board {
        Board::new(true).unwrap()
    }

    #[test]
    fn a_thread_is_shown_while_it_has_a_slot_and_its_counts_stay() {
        let board = board();
        for round in 1..=3 {
            let slot = board.claim_slot();
            board.accepted();
            board.answered();
            board.sent(100);
            board.set(State::Writing, Nanos(5));
            let reading = board.read().slots;
            assert_eq!((reading.len(), slot.number()), (1, 0));
            let [process, thread] = [reading[0].process, reading[0].thread];
            assert_eq!((u64::from(process) << 32) + u64::from(thread), owner());
            assert_eq!((reading[0].state, reading[0].since), (State::Writing, Nanos(5)));
            assert_eq!((reading[0].requests, reading[0].requests_ever), (1, round));
            board.ended(slot.number());
            drop(slot);
            let reading = board.read().slots[0];
            assert_eq!((reading.process, reading.state, reading.connections), (0, State::Free, 0));
            assert_eq!((reading.bytes_ever, reading.accepted_ever), (100 * round, round));
        }
    }

    #[test]
    fn a_thread_that_did_not_ask_has_a_slot_until_it_ends() {
        let (board, other) = (board(), board());
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                board.answered();
                // A thread of two servers takes a slot of each, one after the other.
                other.answered();
                board.answered();
            });
            // The end of the scope alone does not wait until the thread has freed its slot.
            served.join().unwrap();
        });
        let reading = board.read();
        assert_eq!(reading.sum(|slot| slot.requests_ever), 2);
        assert!(reading.slots.iter().all(|slot| slot.state == State::Free));
        let threads = [Counter::ThreadsSpawned, Counter::ThreadsReaped].map(|of| reading.count(of));
        assert_eq!(threads, [2, 2]);
        assert_eq!(other.read().sum(|slot| slot.requests_ever), 1);
    }

    #[test]
    fn threads_that_claim_at_once_get_different_slots_and_no_count_is_lost() {
        const THREADS: usize = 16;
        let board = board();
        let all_there = std::sync::Barrier::new(THREADS);
        let claim = || {
            let slot = board.claim_slot();
            (0..10_000).for_each(|_| board.answered());
            all_there.wait();
            slot.number()
        };
        let slots: HashSet<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(claim)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(slots.len(), THREADS);
        assert_eq!(board.read().sum(|slot| slot.requests_ever), 10_000 * THREADS as u64);
        // A free slot is reused before a new one is taken.
        assert!(board.claim_slot().number() < THREADS as u32);
    }

    #[test]
    fn a_process_that_was_killed_leaves_no_slot_and_no_connection_behind() {
        let board = board();
        let mine = board.claim_slot();
        let theirs = std::thread::scope(|scope| {
            let claim = || {
                let slot = board.claim_slot();
                board.accepted();
                board.answered();
                // As if it belonged to another process that was killed: nothing is freed.
                board.slot(slot.number())[OWNER].store(77 << 32 | 78, Relaxed);
                slot.number()
            };
            scope.spawn(claim).join().unwrap()
        });
        assert_eq!(board.read().slots[theirs as usize].connections, 1);
        board.reaped(Pid::from_raw(77).unwrap());
        let reading = board.read().slots[theirs as usize];
        assert_eq!((reading.process, reading.state, reading.connections), (0, State::Free, 0));
        assert_eq!(reading.requests_ever, 1);
        assert_eq!(board.read().slots[mine.number() as usize].state, State::Waiting);
    }

    #[test]
    fn reserved_slots_are_not_given_to_others() {
        let board = board();
        let before = board.claim_slot();
        let first = board.reserve(3);
        assert_eq!((before.number(), first), (0, 1));
        let after =
            std::thread::scope(|scope| scope.spawn(|| board.claim_slot().number()).join().unwrap());
        assert_eq!(after, 4);
        drop(before);
        let worker = board.claim_reserved(2);
        board.set(State::KeepAlive, Nanos(1));
        assert_eq!(board.state_at(2), State::KeepAlive);
        drop(worker);
        // The parent must see that it served, and frees the slot itself.
        assert_eq!(board.state_at(2), State::Finishing);
    }
}
