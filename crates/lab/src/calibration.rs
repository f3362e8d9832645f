//! Owns the calibration workload, a fixed piece of work that is timed on the server's CPUs just before each visit.
//! Must not judge: `doctor::disturbance` does. Start reading at [`Calibration`].

use std::hint::black_box;
use std::io;

use sys::{affinity, clock};
use units::Nanos;

/// How long the work takes on an idle machine.
const WORK: Nanos = Nanos::from_millis(20);
/// Pieces of at least this length are timed to size the work.
const PIECE_MIN: Nanos = Nanos::from_millis(2);
/// The quickest of this many pieces represents the undisturbed machine.
const PIECES: usize = 10;

/// The fixed piece of work, sized for this machine.
#[derive(Debug, Clone, Copy)]
pub struct Calibration {
    turns: u64,
}

impl Calibration {
    /// Finds how much work takes 20 ms here, which takes about twice as long.
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

/// Runs `work` on a thread of its own, on the first of `cpus` if there is one.
fn pinned<T: Send>(cpus: &[u32], work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("calibration".to_owned()).spawn_scoped(
            scope,
            || {
                if let [first, ..] = cpus {
                    // If pinning fails, the work runs on another CPU, which is no worse than no calibration.
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

/// A chain of steps, each of which needs the previous one (xorshift64*). It uses no memory, so its time depends only
/// on the CPU's speed and our share of the CPU.
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
        // Ten times the work takes longer; CPU time shows that however busy the machine is.
        let cpu = |turns| {
            let begun = clock::thread_cpu();
            black_box(work(black_box(turns)));
            clock::thread_cpu() - begun
        };
        assert!(cpu(calibration.turns * 10) > cpu(calibration.turns));
        assert!(calibration.time(&affinity::allowed().unwrap()).unwrap() > Nanos::ZERO);
    }
}
