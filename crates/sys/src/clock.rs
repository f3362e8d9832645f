//! Clocks: the only place where time comes from. A read costs about 25 ns (vDSO), the CPU clocks
//! 100 ns and more (a system call).

use std::num::NonZeroU64;

use rustix::time::{ClockId, clock_gettime};
use units::Nanos;

/// Monotonic time since an arbitrary start (CLOCK_MONOTONIC); comparable between processes.
pub fn monotonic() -> Nanos {
    read(ClockId::Monotonic)
}

/// As [`monotonic`], but it continues while the machine is suspended (CLOCK_BOOTTIME): the difference between the two
/// clocks is the time that the machine slept.
pub fn boottime() -> Nanos {
    read(ClockId::Boottime)
}

/// CPU time, user and system, of the calling thread.
pub fn thread_cpu() -> Nanos {
    read(ClockId::ThreadCPUTime)
}

/// Seconds and nanoseconds since 1970 (CLOCK_REALTIME); may step.
pub fn wall() -> Nanos {
    read(ClockId::Realtime)
}

/// Whole seconds since 1970 from the coarse clock: up to a tick (1 to 10 ms) late, and 5 ns to read.
pub fn wall_secs_coarse() -> u64 {
    clock_gettime(ClockId::RealtimeCoarse).tv_sec.unsigned_abs()
}

/// Lets timers of the calling thread fire when they are due. By default the kernel may delay them by 50 us, to combine
/// several wake-ups into one (PR_SET_TIMERSLACK(2const)).
///
/// # Errors
/// None on Linux 2.6.28 and later, but a sandbox may forbid it.
pub fn sharpen_timers() -> std::io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN))?)
}

fn read(id: ClockId) -> Nanos {
    let time = clock_gettime(id);
    Nanos(time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_go_forward() {
        let (before, cpu) = (monotonic(), thread_cpu());
        std::hint::black_box((0..10_000u64).sum::<u64>());
        assert!(monotonic() > before);
        assert!(thread_cpu() >= cpu);
        assert!(boottime() >= before);
        assert!(wall().0 / 1_000_000_000 >= wall_secs_coarse());
    }
}
