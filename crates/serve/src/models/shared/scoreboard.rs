//! What a parent and its children share: slots on the status board, whether each child accepts
//! connections, and the state of a drain. Start reading at [`Scoreboard::set`].

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use sys::process::SharedCells;
use sys::signals::{self, Stop};

use site::board::{Board, BoardSlot, State};

/// Shared cells besides the slots. After these there is one for each child, its [`Intake`].
const TICKETS: usize = 0;
const DRAINING: usize = 1;
const START_ERROR: usize = 2;
const INTAKES: usize = 3;

/// Whether a child accepts connections. If it does not, its idle workers do not count, since a new
/// client cannot reach them: Apache's `not_accepting` and `quiescing`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Intake {
    /// It accepts, or will when it has started.
    Open = 0,
    /// It has as many connections as it may have, or all its workers are busy.
    Full = 1,
    /// It will accept no more, and ends with its last connection.
    Ended = 2,
}

/// The slots of all children. A worker (a process in prefork, a thread in worker) writes to its own
/// slot, the parent to those of missing children. Readers may be slightly behind, which the rules
/// allow for.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    board: Board,
    /// The slot of the first child's first worker.
    first: u32,
    cells: SharedCells,
    children_max: usize,
    workers_per_child: usize,
}

impl Scoreboard {
    /// With all slots free.
    pub(crate) fn new(
        board: &Board,
        children_max: usize,
        workers_per_child: usize,
    ) -> io::Result<Self> {
        let first = board.reserve(children_max * workers_per_child);
        let (board, cells) = (board.clone(), SharedCells::new(INTAKES + children_max)?);
        Ok(Self { board, first, cells, children_max, workers_per_child })
    }

    /// The most children.
    pub(crate) fn children_max(&self) -> usize {
        self.children_max
    }

    /// Gives the calling thread the slot of this worker.
    pub(crate) fn claim_slot(&self, child: usize, worker: usize) -> BoardSlot {
        self.board.claim_reserved(self.slot(child, worker))
    }

    /// Sets the state of one worker.
    pub(crate) fn set(&self, child: usize, worker: usize, state: State) {
        self.board.set_at(self.slot(child, worker), state);
    }

    /// Sets the state of all workers of a child.
    pub(crate) fn set_all(&self, child: usize, state: State) {
        for worker in 0..self.workers_per_child {
            self.set(child, worker, state);
        }
    }

    /// Workers of a child that could take a new connection, including those that are starting.
    pub(crate) fn idle(&self, child: usize) -> usize {
        match self.intake(child) == Intake::Open as u32 {
            true => self.states(child).filter(|state| state.is_idle()).count(),
            false => 0,
        }
    }

    /// Sets whether a child accepts connections.
    pub(crate) fn set_intake(&self, child: usize, intake: Intake) {
        self.cells[INTAKES + child].store(intake as u32, Relaxed);
    }

    /// Whether a child accepts no more and ends by itself.
    pub(crate) fn has_intake_ended(&self, child: usize) -> bool {
        self.intake(child) == Intake::Ended as u32
    }

    fn intake(&self, child: usize) -> u32 {
        assert!(child < self.children_max, "a child's number is below the server's limit");
        self.cells[INTAKES + child].load(Relaxed)
    }

    /// Whether any worker of a child has finished starting.
    pub(crate) fn has_started(&self, child: usize) -> bool {
        self.states(child).any(|state| state > State::Starting)
    }

    /// Begins the drain: `waiting` connections are in the backlog and are still to be served.
    pub(crate) fn drain(&self, waiting: u32) {
        self.cells[TICKETS].store(waiting, Relaxed);
        self.cells[DRAINING].store(1, Relaxed);
    }

    /// Whether the drain has begun.
    pub(crate) fn is_draining(&self) -> bool {
        self.cells[DRAINING].load(Relaxed) != 0
    }

    /// Whether and how the calling child is to end. The board may say so before the signal comes.
    pub(crate) fn ending(&self) -> Option<Stop> {
        signals::asked_to_end().or(self.is_draining().then_some(Stop::Drain))
    }

    /// Takes the right to accept one of the connections that waited when the drain began.
    pub(crate) fn take_ticket(&self) -> bool {
        self.cells[TICKETS].fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// How many of these rights are left.
    pub(crate) fn tickets(&self) -> u32 {
        self.cells[TICKETS].load(Relaxed)
    }

    /// Stores why a child could not start, for the parent.
    pub(crate) fn note_start_error(&self, error: &io::Error) {
        let code = error.raw_os_error().unwrap_or_default();
        self.cells[START_ERROR].store(code.unsigned_abs(), Relaxed);
    }

    /// The error that a child stored.
    pub(crate) fn start_error(&self) -> io::Error {
        match self.cells[START_ERROR].load(Relaxed) {
            0 => io::Error::other("the child gave no reason"),
            code => io::Error::from_raw_os_error(code as i32),
        }
    }

    fn states(&self, child: usize) -> impl Iterator<Item = State> {
        (0..self.workers_per_child).map(move |worker| self.board.state_at(self.slot(child, worker)))
    }

    fn slot(&self, child: usize, worker: usize) -> u32 {
        assert!(child < self.children_max, "a child's number is below the server's limit");
        assert!(worker < self.workers_per_child, "a worker's number is below that of its child's");
        self.first + (child * self.workers_per_child + worker) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scoreboard(children_max: usize, workers_per_child: usize) -> Scoreboard {
        Scoreboard::new(&Board::new(false).unwrap(), children_max, workers_per_child).unwrap()
    }

    #[test]
    fn starting_and_waiting_workers_are_idle_and_no_others() {
        let board = scoreboard(2, State::ALL.len());
        for (worker, state) in State::ALL.into_iter().enumerate() {
            board.set(1, worker, state);
        }
        assert_eq!((board.idle(0), board.idle(1)), (0, 2));
        assert!(board.has_started(1) && !board.has_started(0));
    }

    #[test]
    fn idle_workers_of_a_child_that_accepts_nothing_are_not_counted() {
        let board = scoreboard(2, 25);
        (0..2).for_each(|child| board.set_all(child, State::Waiting));
        for (intake, idle, ends) in
            [(Intake::Full, 0, false), (Intake::Open, 25, false), (Intake::Ended, 0, true)]
        {
            board.set_intake(0, intake);
            assert_eq!((board.idle(0), board.has_intake_ended(0)), (idle, ends), "{intake:?}");
            assert_eq!((board.idle(1), board.has_intake_ended(1)), (25, false));
        }
    }

    #[test]
    fn each_child_has_a_line_of_its_own() {
        let board = scoreboard(3, 17);
        board.set_all(1, State::Waiting);
        assert_eq!([0, 1, 2].map(|child| board.idle(child)), [0, 17, 0]);
    }

    #[test]
    fn there_are_as_many_tickets_as_connections_waited() {
        let board = scoreboard(1, 1);
        assert!(!board.take_ticket() && !board.is_draining());
        board.drain(2);
        assert!(board.is_draining());
        assert_eq!([(); 3].map(|()| board.take_ticket()), [true, true, false]);
        assert_eq!(board.tickets(), 0);
    }
}
