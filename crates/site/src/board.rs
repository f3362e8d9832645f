//! The status board: what every thread and process of a server does, and what it has done, in shared memory.
//! Owns its layout and who may sit where. Start reading at [`Board::sit`].
//!
//! A seat is one cache line with one writer, so that a request costs its server plain stores to a line
//! that nobody else writes: no lock, no locked instruction. Who serves without having sat down is
//! seated at the first thing there is to write, so a new model is on the board without a line of its
//! own. The counts of a seat go on from one who sits there to the next: a sum over all seats never
//! falls, and a child that is killed takes none of it along.
//!
//! Cost of a request: two stores where nobody can ask for the status, some six where a path for it is
//! set (`examples/exchange_rate.rs`).

use std::cell::{Cell, RefCell};
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use rustix::process::Pid;
use sys::clock;
use sys::process::SharedCells;
use units::Nanos;

/// Seats of a board; more than the threads that any model may have. The memory of those that nobody
/// has ever sat on is not taken.
const SEATS_MAX: u32 = 1 << 18;

/// Cells of 8 bytes in a cache line.
const LINE: usize = 8;

type Line = [AtomicU64; LINE];

/// Lines before the first seat: what the board itself needs, what is counted for all, the queue.
const HEAD: usize = 0;
const COUNTS: usize = 1;
const QUEUE: usize = 2;
const SEATS: usize = 3;

/// Cells of the head. Seats from here on were never sat on.
const HIGH: usize = 0;
/// Below this there is most likely no free seat.
const HINT: usize = 1;
/// The first and the last of the reserved seats, and what follows.
const BLOCK_START: usize = 2;
const BLOCK_END: usize = 3;
const STARTED_NS: usize = 4;
const STARTED_S: usize = 5;

/// Cells of a seat. Process in the high half and thread in the low one; 0: nobody sits there.
const OWNER: usize = 0;
const STATE: usize = 1;
/// Of the state, monotonic.
const SINCE: usize = 2;
const REQUESTS: usize = 3;
const BYTES: usize = 4;
const ACCEPTED: usize = 5;
/// Of the connections that were accepted here, those that have ended, wherever that was.
const ENDED: usize = 6;
/// Of `REQUESTS`, those that were there when who sits here sat down.
const REQUESTS_BEFORE: usize = 7;

/// What a thread that serves is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u64)]
pub enum State {
    /// Nobody sits there.
    Free = 0,
    /// It is not ready yet.
    Starting = 1,
    /// It has nothing to do.
    Waiting = 2,
    /// It takes in a request.
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
    /// All of them; each stands at the place of its number.
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

    /// Whether it could take a connection now or soon; what Apache calls idle.
    pub fn is_idle(self) -> bool {
        matches!(self, Self::Starting | Self::Waiting)
    }
}

/// What is counted for the whole server, by whoever it happens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counter {
    /// A connection was closed, unanswered, because there was no room for it.
    Refused = 0,
    /// A kept-alive connection was closed to make room.
    KeepAliveClosed = 1,
    /// A child process was started.
    ProcessesSpawned = 2,
    /// A child process has ended.
    ProcessesReaped = 3,
    /// A thread that serves was started. The board counts those that sit down.
    ThreadsSpawned = 4,
    /// A thread that serves has ended.
    ThreadsReaped = 5,
    /// Somebody found no free seat: what it does is counted, and not shown.
    Unseated = 6,
}

const COUNTERS: usize = 7;

/// The board of a server. Its processes inherit it; a clone is the same board.
#[derive(Debug, Clone)]
pub struct Board {
    cells: Arc<SharedCells<AtomicU64>>,
    /// Tells it from other boards of the process.
    number: u32,
    /// Somebody may ask for it, so that each request is noted.
    is_watched: bool,
}

thread_local! {
    /// The board and the seat on which this thread sits; 0: no board.
    static HERE: Cell<(u32, u32)> = const { Cell::new((0, 0)) };
    /// The seat of a thread that did not ask for one: given back when the thread ends.
    static KEPT: RefCell<Option<Seat>> = const { RefCell::new(None) };
}

/// Numbers boards, from 1 on.
static BOARDS: AtomicU32 = AtomicU32::new(0);

impl Board {
    /// With free seats only. Where it is not `is_watched`, single requests are not noted.
    ///
    /// # Errors
    /// ENOMEM.
    pub fn new(is_watched: bool) -> io::Result<Self> {
        let cells = SharedCells::new(LINE * (SEATS + SEATS_MAX as usize + 1))?;
        let number = BOARDS.fetch_add(1, Relaxed) + 1;
        let board = Self { cells: Arc::new(cells), number, is_watched };
        board.line(HEAD)[STARTED_NS].store(clock::monotonic().0, Relaxed);
        board.line(HEAD)[STARTED_S].store(clock::wall_secs_coarse(), Relaxed);
        Ok(board)
    }

    /// Seats this thread until what is returned is dropped, as one that waits.
    pub fn sit(&self) -> Seat {
        // Of the thread, or of the process that was forked: that one does not lose it.
        let _ = KEPT.try_with(|kept| kept.take());
        self.take(self.free_seat())
    }

    /// Sets so many seats aside, for those who say by number where they sit; where they stand on the
    /// board. Once for a board.
    pub fn reserve(&self, count: usize) -> u32 {
        let head = self.line(HEAD);
        let start = head[HIGH].load(Relaxed) as u32;
        let end = start + u32::try_from(count).unwrap_or(SEATS_MAX).min(SEATS_MAX - start);
        assert!(head[BLOCK_END].load(Relaxed) == 0, "seats are set aside once");
        head[BLOCK_START].store(u64::from(start), Relaxed);
        head[BLOCK_END].store(u64::from(end), Relaxed);
        head[HIGH].store(u64::from(end), Relaxed);
        start
    }

    /// Seats this thread on a seat that was set aside.
    pub fn sit_at(&self, seat: u32) -> Seat {
        let _ = KEPT.try_with(|kept| kept.take());
        self.seat(seat)[OWNER].store(owner(), Relaxed);
        self.take(seat)
    }

    /// A process has ended, in whatever way: its seats are free, its connections gone.
    pub fn reaped(&self, pid: Pid) {
        for seat in 0..self.high() {
            let line = self.seat(seat);
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
            self.line(HEAD)[HINT].fetch_min(u64::from(seat), Relaxed);
        }
    }

    /// Something happened once.
    pub fn count(&self, counter: Counter) {
        self.line(COUNTS)[counter as usize].fetch_add(1, Relaxed);
    }

    /// So many connections or requests wait in a queue of the server's own.
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

    /// This thread does that, from `now` on.
    #[inline]
    pub fn set(&self, state: State, now: Nanos) {
        set(self.here(), state, now);
    }

    /// This thread is about to wait for whatever comes: for a loop, before its wait.
    #[inline]
    pub fn wait(&self, now: impl FnOnce() -> Nanos) {
        if self.is_watched {
            self.set(State::Waiting, now());
        }
    }

    /// The state of one seat, from another thread or process.
    pub fn set_at(&self, seat: u32, state: State) {
        set(self.seat(seat), state, clock::monotonic());
    }

    /// What is done on a seat.
    pub fn state_at(&self, seat: u32) -> State {
        State::of(self.seat(seat)[STATE].load(Relaxed))
    }

    /// This thread has accepted a connection. To be given back to [`Board::ended`].
    pub(crate) fn accepted(&self) -> u32 {
        let line = self.here();
        add(&line[ACCEPTED], 1);
        HERE.get().1
    }

    /// A connection has ended that was accepted on that seat, and perhaps by another thread.
    pub(crate) fn ended(&self, accepted_at: u32) {
        self.seat(accepted_at)[ENDED].fetch_add(1, Relaxed);
    }

    /// This thread has answered a request.
    #[inline]
    pub(crate) fn answered(&self) {
        add(&self.here()[REQUESTS], 1);
    }

    /// This thread has sent so many bytes.
    #[inline]
    pub(crate) fn sent(&self, bytes: usize) {
        add(&self.here()[BYTES], bytes as u64);
    }

    /// Everything on the board; taken while others write, so that counts may be a moment apart.
    pub fn read(&self) -> BoardReading {
        let head = self.line(HEAD);
        let counts = std::array::from_fn(|at| self.line(COUNTS)[at].load(Relaxed));
        let seats = 0..self.high();
        let standing = self.seat(SEATS_MAX)[OWNER].load(Relaxed) != 0;
        let seats = seats.chain(standing.then_some(SEATS_MAX));
        BoardReading {
            seats: seats.map(|seat| SeatReading::of(seat, self.seat(seat))).collect(),
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
    fn seat(&self, number: u32) -> &Line {
        self.line(SEATS + number as usize)
    }

    #[inline]
    fn here(&self) -> &Line {
        let (board, seat) = HERE.get();
        if board == self.number { self.seat(seat) } else { self.here_at_last() }
    }

    /// Seats a thread that did not ask for it, until it ends.
    #[cold]
    fn here_at_last(&self) -> &Line {
        let seat = self.sit();
        let line = self.seat(seat.number);
        let here = HERE.get();
        // In a thread that is about to end it is given back at once.
        let _ = KEPT.try_with(|kept| kept.replace(Some(seat)));
        HERE.set(here);
        line
    }

    fn take(&self, number: u32) -> Seat {
        let (line, owner) = (self.seat(number), owner());
        line[REQUESTS_BEFORE].store(line[REQUESTS].load(Relaxed), Relaxed);
        set(line, State::Waiting, clock::monotonic());
        if is_thread(owner) {
            self.count(Counter::ThreadsSpawned);
        }
        HERE.set((self.number, number));
        Seat { board: self.clone(), number, owner, stays: PhantomData }
    }

    /// Claims a free seat; where there is none, that on which all the rest sits.
    fn free_seat(&self) -> u32 {
        let (head, me) = (self.line(HEAD), owner());
        let block = head[BLOCK_START].load(Relaxed)..head[BLOCK_END].load(Relaxed);
        let hint = head[HINT].load(Relaxed).min(u64::from(SEATS_MAX));
        let found = (hint..u64::from(SEATS_MAX)).chain(0..hint).find(|number| {
            let owner = &self.seat(*number as u32)[OWNER];
            !block.contains(number)
                && owner.load(Relaxed) == 0
                && owner.compare_exchange(0, me, Relaxed, Relaxed).is_ok()
        });
        let Some(number) = found else {
            self.count(Counter::Unseated);
            self.seat(SEATS_MAX)[OWNER].store(me, Relaxed);
            return SEATS_MAX;
        };
        head[HINT].store(number + 1, Relaxed);
        head[HIGH].fetch_max(number + 1, Relaxed);
        number as u32
    }

    fn is_reserved(&self, seat: u32) -> bool {
        let head = self.line(HEAD);
        let block = head[BLOCK_START].load(Relaxed)..head[BLOCK_END].load(Relaxed);
        block.contains(&u64::from(seat))
    }
}

/// One writer: a plain addition, of which readers see the old or the new value.
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

/// A thread's place on the board, while it is there.
#[derive(Debug)]
pub struct Seat {
    board: Board,
    number: u32,
    owner: u64,
    /// The seat is that of one thread.
    stays: PhantomData<*const ()>,
}

impl Seat {
    /// Which one.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if HERE.get() == (self.board.number, self.number) {
            HERE.set((0, 0));
        }
        // In a forked child this is a copy of its parent's.
        let line = self.board.seat(self.number);
        let is_its = self.owner == owner() && line[OWNER].load(Relaxed) == self.owner;
        if !is_its || self.number == SEATS_MAX {
            return;
        }
        if self.board.is_reserved(self.number) {
            // Whoever set it aside frees it, when the process has ended.
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

/// What stood on the board.
#[derive(Debug, Clone)]
pub struct BoardReading {
    /// Every seat that was ever sat on, in order.
    pub seats: Vec<SeatReading>,
    counts: [u64; COUNTERS],
    /// Connections or requests that wait in a queue of the server's own.
    pub queue: u64,
    /// When the server started, monotonic.
    pub started: Nanos,
    /// The same in seconds since 1970.
    pub started_s: u64,
}

/// A seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeatReading {
    /// From 0 on.
    pub number: u32,
    /// Process of who sits there; 0: nobody, or one that has not come yet.
    pub process: u32,
    /// Its thread.
    pub thread: u32,
    /// What it does,
    pub state: State,
    /// and since when.
    pub since: Nanos,
    /// Requests that were answered there by who sits there.
    pub requests: u64,
    /// Requests that were ever answered there.
    pub requests_ever: u64,
    /// Bytes that were ever sent there.
    pub bytes_ever: u64,
    /// Connections that were ever accepted there.
    pub accepted_ever: u64,
    /// Of those, how many there are now.
    pub connections: u64,
}

impl SeatReading {
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
    /// How often it happened.
    pub fn count(&self, counter: Counter) -> u64 {
        self.counts[counter as usize]
    }

    /// The sum of something over all seats.
    pub fn sum(&self, of: impl Fn(&SeatReading) -> u64) -> u64 {
        self.seats.iter().map(of).sum()
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
    fn who_sits_down_is_seen_and_who_leaves_is_not_while_the_counts_stay() {
        let board = board();
        for round in 1..=3 {
            let seat = board.sit();
            board.accepted();
            board.answered();
            board.sent(100);
            board.set(State::Writing, Nanos(5));
            let reading = board.read().seats;
            assert_eq!((reading.len(), seat.number()), (1, 0));
            let [process, thread] = [reading[0].process, reading[0].thread];
            assert_eq!((u64::from(process) << 32) + u64::from(thread), owner());
            assert_eq!((reading[0].state, reading[0].since), (State::Writing, Nanos(5)));
            assert_eq!((reading[0].requests, reading[0].requests_ever), (1, round));
            board.ended(seat.number());
            drop(seat);
            let reading = board.read().seats[0];
            assert_eq!((reading.process, reading.state, reading.connections), (0, State::Free, 0));
            assert_eq!((reading.bytes_ever, reading.accepted_ever), (100 * round, round));
        }
    }

    #[test]
    fn a_thread_that_did_not_ask_has_a_seat_until_it_ends() {
        let (board, other) = (board(), board());
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                board.answered();
                // A thread of two servers sits on both, one after the other.
                other.answered();
                board.answered();
            });
            // The end of the scope alone does not wait for what a thread gives back.
            served.join().unwrap();
        });
        let reading = board.read();
        assert_eq!(reading.sum(|seat| seat.requests_ever), 2);
        assert!(reading.seats.iter().all(|seat| seat.state == State::Free));
        let threads = [Counter::ThreadsSpawned, Counter::ThreadsReaped].map(|of| reading.count(of));
        assert_eq!(threads, [2, 2]);
        assert_eq!(other.read().sum(|seat| seat.requests_ever), 1);
    }

    #[test]
    fn threads_that_sit_down_at_once_sit_apart_and_no_count_is_lost() {
        const THREADS: usize = 16;
        let board = board();
        let all_there = std::sync::Barrier::new(THREADS);
        let sit = || {
            let seat = board.sit();
            (0..10_000).for_each(|_| board.answered());
            all_there.wait();
            seat.number()
        };
        let seats: HashSet<u32> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(sit)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(seats.len(), THREADS);
        assert_eq!(board.read().sum(|seat| seat.requests_ever), 10_000 * THREADS as u64);
        // What is free is sat on again before a new seat is.
        assert!(board.sit().number() < THREADS as u32);
    }

    #[test]
    fn a_process_that_was_killed_leaves_no_seat_and_no_connection_behind() {
        let board = board();
        let mine = board.sit();
        let theirs = std::thread::scope(|scope| {
            let sit = || {
                let seat = board.sit();
                board.accepted();
                board.answered();
                // As if it were another process's, and killed: nothing is given back.
                board.seat(seat.number())[OWNER].store(77 << 32 | 78, Relaxed);
                seat.number()
            };
            scope.spawn(sit).join().unwrap()
        });
        assert_eq!(board.read().seats[theirs as usize].connections, 1);
        board.reaped(Pid::from_raw(77).unwrap());
        let reading = board.read().seats[theirs as usize];
        assert_eq!((reading.process, reading.state, reading.connections), (0, State::Free, 0));
        assert_eq!(reading.requests_ever, 1);
        assert_eq!(board.read().seats[mine.number() as usize].state, State::Waiting);
    }

    #[test]
    fn seats_that_are_set_aside_are_nobody_elses() {
        let board = board();
        let before = board.sit();
        let first = board.reserve(3);
        assert_eq!((before.number(), first), (0, 1));
        let after =
            std::thread::scope(|scope| scope.spawn(|| board.sit().number()).join().unwrap());
        assert_eq!(after, 4);
        drop(before);
        let worker = board.sit_at(2);
        board.set(State::KeepAlive, Nanos(1));
        assert_eq!(board.state_at(2), State::KeepAlive);
        drop(worker);
        // Its parent is to see that it served, and frees the seat itself.
        assert_eq!(board.state_at(2), State::Finishing);
    }
}
