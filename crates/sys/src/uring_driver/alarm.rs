//! A long-lived timer in the ring, so that long waits need no timer of their own. Owns when it rings. Start reading at
//! [`Alarm`].
//!
//! A wait with an end starts a timer before it sleeps and cancels it when it wakes. A thread that keeps up with its
//! server sleeps for every other reply, while the end of its wait (the end of an interval, or an overdue reply) is some
//! tenth of a second away. Those timers were 2.5 % of the CPU time of replies of 100 KB (figures: ARCHITECTURE.md).

use io_uring::types::Timespec;
use io_uring::{opcode, squeue};
use units::Nanos;

use super::conn::{self, Operation};
use crate::driver::Slot;

/// Shorter waits have their own timer: they are for paced requests, and must end exactly when due.
const FROM: Nanos = Nanos::from_millis(5);

/// The timer.
#[derive(Default)]
pub(super) struct Alarm {
    /// When it rings, by the monotonic clock, if it is set.
    at: Option<Nanos>,
    /// The kernel's argument; it has been read once the entry was submitted.
    spec: Box<Timespec>,
}

/// What ends a wait.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The alarm, which may ring earlier.
    Alarm,
    /// The alarm, after it is set.
    NewAlarm,
    /// A timer of its own.
    OwnTimer,
}

impl Alarm {
    /// What ends a wait of at most `timeout`, which is until `until` on the monotonic clock.
    pub(super) fn end_of(&self, timeout: Nanos, until: Nanos) -> End {
        match self.at {
            _ if timeout < FROM => End::OwnTimer,
            None => End::NewAlarm,
            Some(at) if at <= until => End::Alarm,
            Some(_) => End::OwnTimer,
        }
    }

    /// The entry that sets it, in `timeout` from now. It names the alarm's memory, which stays unchanged until it is set
    /// again. It is not set to `at` itself: the ring takes an instant as one of the machine's clock, which is another
    /// than this process's in a time namespace.
    pub(super) fn set(&mut self, at: Nanos, timeout: Nanos) -> squeue::Entry {
        self.at = Some(at);
        let (secs, nanos) = (timeout.0 / 1_000_000_000, timeout.0 % 1_000_000_000);
        *self.spec = Timespec::new().sec(secs).nsec(nanos as u32);
        opcode::Timeout::new(&raw const *self.spec).build().user_data(token())
    }

    /// It rang, or was cancelled.
    pub(super) fn rang(&mut self) {
        self.at = None;
    }
}

/// The token of its completion.
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
        alarm.set(S, S);
        assert_eq!(alarm.end_of(S, S), End::Alarm);
        assert_eq!(alarm.end_of(S, S + S), End::Alarm);
        assert_eq!(alarm.end_of(Nanos::from_millis(900), Nanos::from_millis(900)), End::OwnTimer);
        assert_eq!(alarm.end_of(Nanos::from_millis(1), S), End::OwnTimer);
        alarm.rang();
        assert_eq!(alarm.end_of(S, S + S), End::NewAlarm);
    }
}
