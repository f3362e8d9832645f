//! Owns the calibration workload, a fixed piece of work that is timed on the server's CPUs just before each
//! visit, and the rule which visits count as disturbed. Start reading at [`judge`].

use std::hint::black_box;
use std::io;

use record::{Calm, Disturbance};
use sys::{affinity, clock};
use units::{Nanos, Share};

/// How long the work takes, on a machine that does nothing else.
const WORK: Nanos = Nanos::from_millis(20);
/// Work is timed first on a piece of at least this length.
const PIECE_MIN: Nanos = Nanos::from_millis(2);
/// The quickest of these many pieces shows the undisturbed machine.
const PIECES: usize = 10;

/// The machine was slower if the calibration took this much longer than is usual in the run: more than
/// twice the difference that studies usually look for.
const SLOWER_MAX: Share = Share(0.05);
/// Canaries before one can be said to be unusual.
const TIMES_MIN: usize = 3;
/// Part of our CPUs' time that the hypervisor may give to others.
const STEAL_MAX: Share = Share(0.01);
/// Part of one core that others may use.
const FOREIGN_MAX: Share = Share(0.02);
/// The kernel counts others' time in ticks of 10 ms, rounded for each process: up to this it means nothing.
const FOREIGN_ROUNDING: Nanos = Nanos::from_millis(30);
/// Periods in which a quota may stop us: none, since one stop lasts up to 100 ms.
const THROTTLED_MAX: u64 = 0;
/// A clock that is slewed by at most 500 ppm (adjtimex(2)) gains less than this on a visit of 100 s; a
/// clock that is set jumps.
const STEP_MAX_NS: u64 = 50_000_000;
/// Two clocks cannot be read at once: a difference up to this is no sleep.
const SLEPT_MAX: Nanos = Nanos::from_millis(100);

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

/// What the calibration usually takes: the median of the run so far. `None` with fewer than three.
pub fn usual(calibrations: &[Nanos]) -> Option<Nanos> {
    let mut sorted = calibrations.to_vec();
    sorted.sort_unstable();
    (sorted.len() >= TIMES_MIN).then(|| sorted[sorted.len() / 2])
}

/// Whether a visit was disturbed, and by what; the strongest reason where there are several. `usual`
/// is what the calibration usually takes in this run. What was not measured is no reason.
pub fn judge(calm: &Calm, usual: Option<Nanos>) -> Option<Disturbance> {
    if calm.suspended > SLEPT_MAX {
        return Some(Disturbance::Suspended { slept: calm.suspended });
    }
    if calm.clock_step_ns.unsigned_abs() > STEP_MAX_NS.max(calm.wall.0 / 2000) {
        return Some(Disturbance::ClockStep { step_ns: calm.clock_step_ns });
    }
    if let Some((periods, stopped)) = calm.throttled
        && periods > THROTTLED_MAX
    {
        return Some(Disturbance::Throttled { periods, stopped });
    }
    if let Some(share) = calm.steal
        && share > STEAL_MAX
    {
        return Some(Disturbance::Steal { share });
    }
    if let Some(foreign) = &calm.foreign {
        let over = foreign.cpu.saturating_sub(FOREIGN_ROUNDING);
        if over.0 as f64 > calm.wall.0 as f64 * FOREIGN_MAX.0 {
            let share_of_a_core = Share(foreign.cpu.0 as f64 / calm.wall.0.max(1) as f64);
            let most = foreign.most.as_ref().map(|(name, _)| name.clone());
            return Some(Disturbance::ForeignCpu { share_of_a_core, most });
        }
    }
    let (took, usual) = (calm.calibration?, usual?);
    let is_slow = took.0 as f64 > usual.0 as f64 * (1.0 + SLOWER_MAX.0);
    is_slow.then_some(Disturbance::SlowCalibration { took, usual })
}

#[cfg(test)]
mod tests {
    use record::Foreign;

    use super::*;

    fn calm() -> Calm {
        Calm {
            calibration: Some(Nanos::from_millis(20)),
            steal: Some(Share(0.0)),
            foreign: Some(Foreign::default()),
            throttled: Some((0, Nanos::ZERO)),
            wall: Nanos::from_secs(10),
            ..Calm::default()
        }
    }

    const USUAL: Option<Nanos> = Some(Nanos::from_millis(20));

    #[test]
    fn a_calm_visit_is_not_disturbed_nor_is_one_of_which_nothing_is_known() {
        assert_eq!(judge(&calm(), USUAL), None);
        assert_eq!(judge(&Calm::default(), None), None);
        let nearly = Calm {
            calibration: Some(Nanos::from_micros(20_900)),
            steal: Some(Share(0.01)),
            foreign: Some(Foreign { cpu: Nanos::from_millis(200), most: None }),
            clock_step_ns: -49_000_000,
            suspended: Nanos::from_millis(99),
            ..calm()
        };
        assert_eq!(judge(&nearly, USUAL), None);
    }

    #[test]
    fn each_disturbance_is_seen_and_named() {
        let foreign = Foreign {
            cpu: Nanos::from_millis(300),
            most: Some(("cc1".to_owned(), Nanos::from_millis(290))),
        };
        let cases = [
            (Calm { suspended: Nanos::from_secs(3), ..calm() }, "the machine slept for 3s"),
            (Calm { clock_step_ns: -2_000_000_000, ..calm() }, "the clock was set back by 2s"),
            (Calm { clock_step_ns: 60_000_000, ..calm() }, "the clock was set forward by 60ms"),
            (
                Calm { throttled: Some((2, Nanos::from_millis(70))), ..calm() },
                "a quota of CPU time stopped us in 2 periods, for 70ms in all",
            ),
            (
                Calm { steal: Some(Share(0.03)), ..calm() },
                "the hypervisor gave 3% of our CPUs' time to others",
            ),
            (
                Calm { foreign: Some(foreign), ..calm() },
                "other processes used 3% of a core, most of it `cc1`",
            ),
            (
                Calm { calibration: Some(Nanos::from_millis(22)), ..calm() },
                "the machine was slow: the calibration workload took 22ms, in this run usually 20ms",
            ),
        ];
        for (calm, words) in cases {
            let said = judge(&calm, USUAL).unwrap().to_string().replace(" %", "%");
            assert_eq!(said.replace(" ms", "ms").replace(" s", "s"), words.replace(" s", "s"));
        }
    }

    #[test]
    fn a_short_visit_is_not_disturbed_by_the_kernels_rounding() {
        let cpu = Nanos::from_millis(40);
        let short = Calm {
            foreign: Some(Foreign { cpu, most: None }),
            wall: Nanos::from_millis(700),
            ..calm()
        };
        assert_eq!(judge(&short, USUAL), None);
        let wall = Nanos::from_millis(400);
        assert!(judge(&Calm { wall, ..short }, USUAL).is_some());
    }

    #[test]
    fn one_calibration_alone_is_never_unusual() {
        let calibrations = [30, 20, 21].map(Nanos::from_millis);
        assert_eq!(usual(&calibrations[..2]), None);
        assert_eq!(usual(&calibrations), Some(Nanos::from_millis(21)));
        let slow = Calm { calibration: Some(Nanos::from_secs(1)), ..calm() };
        assert_eq!(judge(&slow, usual(&calibrations[..2])), None);
    }

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
