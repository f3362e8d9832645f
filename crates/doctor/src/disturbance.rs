//! Owns the rule which visits count as disturbed: what else happened on the machine meanwhile. Start reading at
//! [`judge`].

use record::{Calm, Disturbance};
use units::{Nanos, Share};

/// The machine was slower if the calibration took this much longer than is usual in the run: more than
/// twice the difference that studies usually look for.
const SLOWER_MAX: Share = Share(0.05);
/// Calibrations before one can be said to be unusual.
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
}
