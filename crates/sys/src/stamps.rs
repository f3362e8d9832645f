//! The kernel's arrival stamps (SO_TIMESTAMPNS), read and converted to the driver's clock. Owns the control message and
//! the offset between the clocks. Sockets ask for stamps by [`crate::socket::enable_stamps`]. Start reading at
//! [`Clocks`].
//!
//! With stamps on, the kernel reads the clock once per packet, for all packets of the machine (some 30 ns each). A
//! stamp is that of the last packet whose bytes a receive took.

use std::cell::Cell;

use units::Nanos;

use crate::clock;

/// Room for the control message of a receive: SCM_TIMESTAMPNS takes 32 bytes, and nothing else is requested.
pub(crate) const CONTROL_BYTES: usize = 64;

/// A control message: length, level, type (cmsghdr, 64 bits), then seconds and nanoseconds.
const HEADER_BYTES: usize = size_of::<libc::cmsghdr>();

/// Control bytes, aligned as the kernel writes them.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(crate) struct Control(pub(crate) [u8; CONTROL_BYTES]);

impl Default for Control {
    fn default() -> Self {
        Self([0; CONTROL_BYTES])
    }
}

/// The stamp in control messages, by CLOCK_REALTIME; `None` if there is none.
pub(crate) fn wall(control: &[u8]) -> Option<Nanos> {
    let int = |at: usize| control.get(at..at + 4)?.try_into().ok().map(i32::from_ne_bytes);
    let long = |at: usize| control.get(at..at + 8)?.try_into().ok().map(u64::from_ne_bytes);
    let (level, kind) = (int(HEADER_BYTES - 8)?, int(HEADER_BYTES - 4)?);
    if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return None;
    }
    Some(Nanos(long(HEADER_BYTES)? * 1_000_000_000 + long(HEADER_BYTES + 8)?))
}

/// How far the wall clock is ahead of the monotonic one. It is read at most once per wake-up of the thread, and again
/// after each, because NTP slews one against the other all the time.
#[derive(Default)]
pub(crate) struct Clocks {
    ahead: Cell<Option<Nanos>>,
}

impl Clocks {
    /// The thread slept: the offset is read again when it is needed.
    pub(crate) fn woke(&self) {
        self.ahead.set(None);
    }

    /// A wall-clock stamp as the time since `origin` on the monotonic clock. It is never before `origin` and never in
    /// the future, even if the wall clock is stepped.
    pub(crate) fn since(&self, origin: Nanos, wall: Nanos) -> Nanos {
        let ahead = self.ahead.get().unwrap_or_else(|| {
            let ahead = read_ahead();
            self.ahead.set(Some(ahead));
            ahead
        });
        let monotonic = wall.saturating_sub(ahead).min(clock::monotonic());
        monotonic.saturating_sub(origin)
    }
}

/// The narrowest of three readings: a preemption between the two clock readings would look like an offset.
fn read_ahead() -> Nanos {
    let reading = || {
        let before = clock::monotonic();
        let wall = clock::wall();
        let width = clock::monotonic() - before;
        (width, wall.saturating_sub(Nanos(before.0 + width.0 / 2)))
    };
    let first = reading();
    if first.0 < Nanos::from_micros(1) {
        return first.1;
    }
    [first, reading(), reading()].into_iter().min().expect("three readings").1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_of_now_is_now() {
        let clocks = Clocks::default();
        let origin = clock::monotonic();
        let (before, wall, after) = (clock::monotonic(), clock::wall(), clock::monotonic());
        let since = clocks.since(origin, wall);
        let slack = Nanos::from_millis(1);
        assert!(since + slack >= before - origin && since <= after - origin + slack, "{since}");
    }

    #[test]
    fn a_stamp_is_neither_before_the_origin_nor_in_the_future() {
        let clocks = Clocks::default();
        let origin = clock::monotonic();
        assert_eq!(clocks.since(origin, Nanos(1)), Nanos::ZERO);
        let later = clock::wall() + Nanos::from_secs(100);
        assert!(clocks.since(origin, later) <= clock::monotonic() - origin);
    }

    #[test]
    fn other_control_messages_are_no_stamp() {
        assert_eq!(wall(&[]), None);
        assert_eq!(wall(&[0; CONTROL_BYTES]), None);
    }
}
