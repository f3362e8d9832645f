//! Owns the calibration workload, a fixed piece of work that is timed on the server's CPUs just before each visit.
//! Must not judge: `doctor::disturbance` does. Start reading at [`Calibration`].

use std::hint::black_box;
use std::io;

use sys::{affinity, clock};
use units::Nanos;

/// How long the work takes, on a machine that does nothing else.
const WORK: Nanos = Nanos::from_millis(20);
/// Work is timed first on a piece of at least this length.
const PIECE_MIN: Nanos = Nanos::from_millis(2);
/// The quickest of these many pieces shows the undisturbed machine.
const PIECES: usize = 10;

/// The fixed piece of work, as long as is right for this machine.
#[derive(Debug, Clone, Copy)]
pub struct Calibration {
    turns: u64,
}

impl Calibration {
    /// Finds how much work takes 20 ms here; finding it takes about twice that long.
    ///
    /// # Errors
    /// No thread left.
    pub fn calibrate(cpus: &[u32]) -> io::Result<Self> {
        pinned(cpus, || {
            let mut turns = 1024;
            while timed(turns) < PIECE_MIN {
                turns *= 2;
            }
            let quickest = (0..PIECES).map(|_| timed(turns)).min().unwrap_or(PIECE_MIN);
            let times = WORK.0 as f64 / quickest.0.max(1) as f64;
            Self { turns: ((turns as f64 * times) as u64).max(1) }
        })
    }

    /// Does the work on the first of these CPUs and returns how long it took.
    ///
    /// # Errors
    /// No thread left.
    pub fn time(&self, cpus: &[u32]) -> io::Result<Nanos> {
        pinned(cpus, || timed(self.turns))
    }
}

/// Runs `work` on a thread of its own, on the first of `cpus` where there is one.
fn pinned<T: Send>(cpus: &[u32], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("calibration".to_owned()).spawn_scoped(
            scope,
            || {
                if let [first, ..] = cpus {
                    // Where that fails the work is done elsewhere, which is no worse than not at all.
                    let _ = affinity::pin(&[*first]);
                }
                work()
            },
        )?;
        thread.join().map_err(|_| io::Error::other("the calibration's thread panicked"))
    })
}

fn timed(turns: u64) -> Nanos {
    let begun = clock::monotonic();
    black_box(work(black_box(turns)));
    clock::monotonic() - begun
}

/// A chain of steps each of which needs the one before (xorshift64*): no memory, so that what it
/// takes is the CPU's speed and the share of it that we have.
fn work(turns: u64) -> u64 {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..turns {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_fixed_and_grows_with_its_turns() {
        assert_eq!(work(1000), work(1000));
        assert_ne!(work(1000), work(1001));
        let calibration = Calibration::calibrate(&[]).unwrap();
        assert!(
            calibration.turns > 1024,
            "a CPU of this century does more in 20 ms: {calibration:?}"
        );
        // Ten times the work takes longer, however busy the machine is: CPU time says so.
        let cpu = |turns| {
            let begun = clock::thread_cpu();
            black_box(work(black_box(turns)));
            clock::thread_cpu() - begun
        };
        assert!(cpu(calibration.turns * 10) > cpu(calibration.turns));
        assert!(calibration.time(&affinity::allowed().unwrap()).unwrap() > Nanos::ZERO);
    }
}
