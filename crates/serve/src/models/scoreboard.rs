//! What the parent and its children know of each other: a table in shared memory, one line for each
//! child. Owns the layout; must not know what a status leads to.
//! Start reading at [`Status`].

use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use sys::process::SharedCells;

/// What a worker (a process in prefork, a thread in worker) is doing. The order is Apache's: up to
/// `Ready` it counts as idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Status {
    /// There is none.
    Dead = 0,
    /// Forked and not yet ready.
    Starting = 1,
    /// Waits for a connection.
    Ready = 2,
    /// Has a connection, be it in work or kept alive.
    Busy = 3,
    /// Takes no more connections.
    Leaving = 4,
}

/// Cells of a cache line: a child that writes its line does not slow the others'.
const LINE: usize = 16;

/// Cells before the first child's line.
const TICKETS: usize = 0;
const DRAINING: usize = 1;
const START_ERROR: usize = 2;

/// The table. Each cell has one writer; readers may be a moment behind, which the rules allow for.
#[derive(Debug)]
pub(super) struct Scoreboard {
    cells: SharedCells,
    children_max: usize,
    workers_per_child: usize,
}

impl Scoreboard {
    /// All dead.
    pub(super) fn new(children_max: usize, workers_per_child: usize) -> io::Result<Self> {
        let cells = LINE + children_max * workers_per_child.next_multiple_of(LINE);
        Ok(Self { cells: SharedCells::new(cells)?, children_max, workers_per_child })
    }

    /// Lines of the table.
    pub(super) fn children_max(&self) -> usize {
        self.children_max
    }

    /// Sets the status of one worker of a child.
    pub(super) fn set(&self, child: usize, worker: usize, status: Status) {
        self.line(child)[worker].store(status as u32, Relaxed);
    }

    /// Sets that of all of them.
    pub(super) fn set_all(&self, child: usize, status: Status) {
        for worker in 0..self.workers_per_child {
            self.set(child, worker, status);
        }
    }

    /// How many workers of a child are idle, counting those that are starting.
    pub(super) fn idle(&self, child: usize) -> usize {
        let idle = Status::Starting as u32..=Status::Ready as u32;
        self.line(child).iter().filter(|cell| idle.contains(&cell.load(Relaxed))).count()
    }

    /// Whether any worker of a child has got beyond starting.
    pub(super) fn has_started(&self, child: usize) -> bool {
        self.line(child).iter().any(|cell| cell.load(Relaxed) > Status::Starting as u32)
    }

    /// Begins the drain: so many connections wait in the backlog and are still to be served.
    pub(super) fn drain(&self, waiting: u32) {
        self.cells[TICKETS].store(waiting, Relaxed);
        self.cells[DRAINING].store(1, Relaxed);
    }

    /// Whether the drain has begun.
    pub(super) fn is_draining(&self) -> bool {
        self.cells[DRAINING].load(Relaxed) != 0
    }

    /// The right to accept one of the connections that waited when the drain began.
    pub(super) fn take_ticket(&self) -> bool {
        self.cells[TICKETS].fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    /// How many rights are left.
    pub(super) fn tickets(&self) -> u32 {
        self.cells[TICKETS].load(Relaxed)
    }

    /// Leaves the error for which a child could not start to its parent.
    pub(super) fn note_start_error(&self, error: &io::Error) {
        let code = error.raw_os_error().unwrap_or_default();
        self.cells[START_ERROR].store(code.unsigned_abs(), Relaxed);
    }

    /// The error that a child left.
    pub(super) fn start_error(&self) -> io::Error {
        match self.cells[START_ERROR].load(Relaxed) {
            0 => io::Error::other("the child gave no reason"),
            code => io::Error::from_raw_os_error(code as i32),
        }
    }

    fn line(&self, child: usize) -> &[AtomicU32] {
        assert!(child < self.children_max, "a child's number is below the server's limit");
        let start = LINE + child * self.workers_per_child.next_multiple_of(LINE);
        &self.cells[start..start + self.workers_per_child]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starting_and_ready_workers_are_idle_and_no_others() {
        let board = Scoreboard::new(2, 5).unwrap();
        for (worker, status) in
            [Status::Dead, Status::Starting, Status::Ready, Status::Busy, Status::Leaving]
                .into_iter()
                .enumerate()
        {
            board.set(1, worker, status);
        }
        assert_eq!((board.idle(0), board.idle(1)), (0, 2));
        assert!(board.has_started(1) && !board.has_started(0));
    }

    #[test]
    fn children_do_not_share_cache_lines() {
        let board = Scoreboard::new(3, 17).unwrap();
        board.set_all(1, Status::Ready);
        assert_eq!([0, 1, 2].map(|child| board.idle(child)), [0, 17, 0]);
        let starts = [0, 1].map(|child| board.line(child).as_ptr() as usize);
        assert_eq!((starts[0] % 64, starts[1] - starts[0]), (0, 128));
    }

    #[test]
    fn there_are_as_many_tickets_as_connections_waited() {
        let board = Scoreboard::new(1, 1).unwrap();
        assert!(!board.take_ticket() && !board.is_draining());
        board.drain(2);
        assert!(board.is_draining());
        assert_eq!([(); 3].map(|()| board.take_ticket()), [true, true, false]);
        assert_eq!(board.tickets(), 0);
    }
}
