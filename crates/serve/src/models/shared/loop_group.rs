//! How the event loops of one process end together: one loop takes the signals and tells the
//! others. Start reading at [`LoopGroup::stop`].

use std::io;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use sys::signals::{Signals, Stop};
use sys::wake::Wake;

/// The loops of one process.
#[derive(Debug)]
pub(crate) struct LoopGroup {
    asked: AtomicU8,
    /// Loops that still accept.
    accept: AtomicUsize,
    wake: Wake,
}

const DRAIN: u8 = 1;
const AT_ONCE: u8 = 2;

impl LoopGroup {
    /// For `loops` loops.
    pub(crate) fn new(loops: usize) -> io::Result<Self> {
        let (asked, accept) = (AtomicU8::new(0), AtomicUsize::new(loops));
        Ok(Self { asked, accept, wake: Wake::new()? })
    }

    /// Each loop watches this edge-triggered. Nobody reads it, so one ring wakes all.
    pub(crate) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// Notes that a loop accepts no more. Returns whether it was the last.
    pub(crate) fn stops_accepting(&self) -> bool {
        self.accept.fetch_sub(1, Relaxed) == 1
    }

    /// Ends every loop in this way. Of two calls, stopping at once wins over draining.
    pub(crate) fn stop(&self, stop: Stop) {
        let asked = match stop {
            Stop::Drain => DRAIN,
            Stop::AtOnce => AT_ONCE,
        };
        self.asked.fetch_max(asked, Relaxed);
        self.wake.ring();
    }

    /// How the loops are to end, if they are.
    pub(crate) fn stop_asked(&self) -> Option<Stop> {
        match self.asked.load(Relaxed) {
            AT_ONCE => Some(Stop::AtOnce),
            DRAIN => Some(Stop::Drain),
            _ => None,
        }
    }
}

/// What tells a loop to end; at least one of the two is given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopSources<'a> {
    /// The signals of the process, which one loop takes.
    pub(crate) signals: Option<&'a Signals>,
    /// The group, through which that loop tells the others.
    pub(crate) group: Option<&'a LoopGroup>,
}
