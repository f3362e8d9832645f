//! How the event loops of one process end together: one of them takes the signals, and tells the
//! others. Owns that word, and who is the last to accept; must not know what a loop does.
//! Start reading at [`LoopGroup::stop`].

use std::io;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

use sys::signals::{Signals, Stop};
use sys::wake::Wake;

/// The loops of one process, which end together.
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
    /// So many loops, which nobody has asked to end.
    pub(crate) fn new(loops: usize) -> io::Result<Self> {
        let (asked, accept) = (AtomicU8::new(0), AtomicUsize::new(loops));
        Ok(Self { asked, accept, wake: Wake::new()? })
    }

    /// What each loop watches, for edges: it is never read, so that one ring wakes all.
    pub(crate) fn wake(&self) -> &Wake {
        &self.wake
    }

    /// A loop accepts no more; returns whether it was the last.
    pub(crate) fn stops_accepting(&self) -> bool {
        self.accept.fetch_sub(1, Relaxed) == 1
    }

    /// Has every loop end so; the sterner of two counts.
    pub(crate) fn stop(&self, stop: Stop) {
        let asked = match stop {
            Stop::Drain => DRAIN,
            Stop::AtOnce => AT_ONCE,
        };
        self.asked.fetch_max(asked, Relaxed);
        self.wake.ring();
    }

    /// How they are to end, if they are.
    pub(crate) fn stop_asked(&self) -> Option<Stop> {
        match self.asked.load(Relaxed) {
            AT_ONCE => Some(Stop::AtOnce),
            DRAIN => Some(Stop::Drain),
            _ => None,
        }
    }
}

/// From whom a loop hears that it is to end; at least one of the two.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StopSources<'a> {
    /// The signals of the process, which one loop takes.
    pub(crate) signals: Option<&'a Signals>,
    /// The others, which that one tells.
    pub(crate) group: Option<&'a LoopGroup>,
}
