//! A timer that stands in the ring, so that waits far from their end need none of their own. Owns when it
//! rings. Start reading at [`Alarm`].
//!
//! A wait that ends at an instant starts a timer before it sleeps and takes it back when it wakes. A thread
//! that keeps up with a server sleeps for every other reply, while what would end its wait, the end of an
//! interval or a reply that is overdue, is some tenth of a second away. Of the CPU time of replies of
//! 100 KB those timers were 2.5 % (figures: ARCHITECTURE.md).

use io_uring::types::{TimeoutFlags, Timespec};
use io_uring::{opcode, squeue};
use units::Nanos;

use super::conn::{self, Operation};
use crate::driver::Slot;

/// Waits shorter than this have their own timer: they are paced, and end when they are due.
const FROM: Nanos = Nanos::from_millis(5);

/// The timer.
#[derive(Default)]
pub(super) struct Alarm {
    /// When it rings, by the monotonic clock, if it stands.
    at: Option<Nanos>,
    /// What the kernel is told; it has read it once the entry was handed over.
    spec: Box<Timespec>,
}

/// How a wait is to end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By the timer, which may ring before that.
    Alarm,
    /// By the timer, once it was set.
    NewAlarm,
    /// By its own timer.
    OwnTimer,
}

impl Alarm {
    /// How a wait is to end that may last so long, until that instant of the monotonic clock.
    pub(super) fn end_of(&self, timeout: Nanos, until: Nanos) -> End {
        match self.at {
            _ if timeout < FROM => End::OwnTimer,
            None => End::NewAlarm,
            Some(at) if at <= until => End::Alarm,
            Some(_) => End::OwnTimer,
        }
    }

    /// The entry that sets it. Its memory is the alarm's, until it is set again.
    pub(super) fn set(&mut self, at: Nanos) -> squeue::Entry {
        self.at = Some(at);
        *self.spec = Timespec::new().sec(at.0 / 1_000_000_000).nsec((at.0 % 1_000_000_000) as u32);
        let entry = opcode::Timeout::new(&raw const *self.spec).flags(TimeoutFlags::ABS).build();
        entry.user_data(token())
    }

    /// It rang, or was taken back.
    pub(super) fn rang(&mut self) {
        self.at = None;
    }
}

/// By which its completion is known.
pub(super) fn token() -> u64 {
    conn::token(Operation::Alarm, 0, Slot(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: Nanos = Nanos::from_secs(1);

    #[test]
    fn it_ends_waits_that_are_long_and_end_no_earlier_than_it_rings() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.end_of(Nanos::from_millis(1), S), End::OwnTimer);
        assert_eq!(alarm.end_of(S, S), End::NewAlarm);
        alarm.set(S);
        assert_eq!(alarm.end_of(S, S), End::Alarm);
        assert_eq!(alarm.end_of(S, S + S), End::Alarm);
        assert_eq!(alarm.end_of(Nanos::from_millis(900), Nanos::from_millis(900)), End::OwnTimer);
        assert_eq!(alarm.end_of(Nanos::from_millis(1), S), End::OwnTimer);
        alarm.rang();
        assert_eq!(alarm.end_of(S, S + S), End::NewAlarm);
    }
}
