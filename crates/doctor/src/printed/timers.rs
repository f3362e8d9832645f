//! Owns the timers of kernels that make latencies, and the sums of their doublings. Start reading at [`TIMERS`].

use super::figure::Figure;
use crate::timers;

/// A timer, and what waits for it.
#[derive(Debug)]
pub(super) struct Timer {
    /// What waits for it.
    pub(super) cause: &'static str,
    /// Waits that it makes: itself, then with each time it runs again.
    rungs_ms: &'static [u64],
}

/// Those of Linux, and of Solaris 10; the longest first, since rungs of a shorter one may lie on a longer one.
pub(super) const TIMERS: &[Timer] = &[
    Timer { cause: "a SYN that was sent again, Solaris", rungs_ms: &timers::SYN_AFTER_MS_SOLARIS },
    Timer { cause: "a SYN that was sent again", rungs_ms: &timers::SYN_AFTER_MS },
    Timer {
        cause: "a SYN that was sent again, before Linux 3.1",
        rungs_ms: &timers::SYN_AFTER_MS_BEFORE_3_1,
    },
    Timer { cause: "a segment that was sent again", rungs_ms: &timers::SEGMENT_AFTER_MS },
    Timer { cause: "a delayed acknowledgement", rungs_ms: &[timers::DELAYED_ACK_MS] },
];

/// How far above a timer a wait that it made ends: the timer's own lateness (4 ms at 250 Hz) and the request.
const ABOVE_SHARE: f64 = 0.06;
const ABOVE_SECONDS: f64 = 0.005;
const ABOVE_SECONDS_MAX: f64 = 0.1;

impl Timer {
    /// Its first value, in seconds.
    pub(super) fn base(&self) -> f64 {
        self.rungs_ms[0] as f64 / 1000.0
    }

    /// The rung that a time lies on, surely: for all that it may have been rounded from.
    pub(super) fn rung(&self, time: Figure) -> Option<f64> {
        let is_on = |rung: f64| {
            let above = (rung * ABOVE_SHARE).clamp(ABOVE_SECONDS, ABOVE_SECONDS_MAX);
            time.value >= rung && time.value <= rung + above && time.is_within(ABOVE_SHARE)
        };
        self.rungs_ms.iter().map(|&ms| ms as f64 / 1000.0).find(|&rung| is_on(rung))
    }
}
