//! Owns the timers of kernels that make latencies, and the sums of their doublings. Start reading at [`TIMERS`].

use super::figure::Figure;

/// A timer, and what waits for it.
#[derive(Debug)]
pub(super) struct Timer {
    /// Its first value, in seconds.
    pub(super) base: f64,
    /// What waits for it.
    pub(super) cause: &'static str,
    /// Waits that it makes, in seconds: itself, then with each time it runs again.
    rungs: &'static [f64],
}

/// Those of Linux, and of Solaris 10; the longest first, since rungs of a shorter one may lie on a longer one.
/// Source: include/net/tcp.h; for a SYN since Linux 6.5 net.ipv4.tcp_syn_linear_timeouts.
pub(super) const TIMERS: &[Timer] = &[
    Timer { base: 3.375, cause: "a SYN that was sent again, Solaris", rungs: &[3.375, 10.125] },
    Timer {
        base: 1.0,
        cause: "a SYN that was sent again",
        rungs: &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 11.0, 15.0],
    },
    Timer {
        base: 3.0,
        cause: "a SYN that was sent again, before Linux 3.1",
        rungs: &[3.0, 9.0, 21.0],
    },
    Timer { base: 0.2, cause: "a segment that was sent again", rungs: &[0.2, 0.6, 1.4] },
    Timer { base: 0.04, cause: "a delayed acknowledgement", rungs: &[0.04] },
];

/// How far above a timer a wait that it made ends: the timer's own lateness (4 ms at 250 Hz) and the request.
const ABOVE_SHARE: f64 = 0.06;
const ABOVE_SECONDS: f64 = 0.005;
const ABOVE_SECONDS_MAX: f64 = 0.1;

impl Timer {
    /// The rung that a time lies on, surely: for all that it may have been rounded from.
    pub(super) fn rung(&self, time: Figure) -> Option<f64> {
        let is_on = |rung: f64| {
            let above = (rung * ABOVE_SHARE).clamp(ABOVE_SECONDS, ABOVE_SECONDS_MAX);
            time.value >= rung && time.value <= rung + above && time.is_within(ABOVE_SHARE)
        };
        self.rungs.iter().copied().find(|&rung| is_on(rung))
    }
}
