//! An agent's estimate of the controller's clock, with a bound of its error. Owns the arithmetic; probes are made
//! elsewhere. Start reading at [`ClockEstimate`].
//!
//! The run clock is the controller's CLOCK_MONOTONIC. One probe bounds the offset between two clocks by half of the
//! time that its messages were on the way (RFC 5905, section 8; Cristian 1989), whatever lies between, a broker
//! included. An older probe bounds it less, since clocks drift. The estimate is the middle of what all recent probes
//! leave, so that one probe with a short way is worth more than many with a long one.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Most that one monotonic clock may gain on another, in nanoseconds a second: the kernel slews each by 500 ppm at most
/// (adjtimex(2), `freq`), and an oscillator is off by up to 100 ppm.
const DRIFT_NS_PER_S: i128 = 1_200_000;
/// Probes in a row that contradict the others and agree with each other, from which a clock has jumped: the machine
/// slept, or another controller answers.
const JUMPED: usize = 4;
/// Probes that are kept: older ones bound nothing any more.
const PROBES_MAX: usize = 64;

/// A question of the agent and the controller's answer. The instants of one clock mean nothing on the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// When the agent sent it, on the agent's clock.
    pub sent: Nanos,
    /// When the controller received it, on the run clock.
    pub received: Nanos,
    /// When the controller answered, on the run clock.
    pub answered: Nanos,
    /// When the answer reached the agent, on the agent's clock.
    pub returned: Nanos,
}

impl Probe {
    /// Bounds of the run clock less the agent's clock, in nanoseconds; `None` for instants that run backwards.
    fn bounds(self) -> Option<(i128, i128)> {
        let wide = |instant: Nanos| i128::from(instant.0);
        // The way there took no less than nothing, and neither did the way back.
        let (from, to) =
            (wide(self.answered) - wide(self.returned), wide(self.received) - wide(self.sent));
        (from <= to && self.sent <= self.returned && self.received <= self.answered)
            .then_some((from, to))
    }
}

/// An instant on another clock, and how far off it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converted {
    /// On the other clock.
    pub at: Nanos,
    /// Largest error, in either direction.
    pub error: Nanos,
}

/// What an agent knows of the run clock.
#[derive(Debug, Clone, Default)]
pub struct ClockEstimate {
    /// In the order in which they returned.
    probes: VecDeque<Probe>,
    /// The last ones that were refused, in a row.
    doubted: VecDeque<Probe>,
    /// Probes whose instants ran backwards, or that no drift reconciles with the others: a clock was set.
    refused: u64,
}

impl ClockEstimate {
    /// Takes one probe; `false` for one that cannot be true.
    pub fn add(&mut self, probe: Probe) -> bool {
        let Some(bounds) = probe.bounds() else {
            self.refused += 1;
            return false;
        };
        let agrees = |others: &VecDeque<Probe>| {
            let known = bounds_at(others, probe.returned);
            known.is_none_or(|known| bounds.0.max(known.0) <= bounds.1.min(known.1))
        };
        if !agrees(&self.probes) {
            self.refused += 1;
            if !agrees(&self.doubted) {
                self.doubted.clear();
            }
            self.doubted.push_back(probe);
            if self.doubted.len() < JUMPED {
                return false;
            }
            self.probes = std::mem::take(&mut self.doubted);
            return true;
        }
        self.doubted.clear();
        if self.probes.len() == PROBES_MAX {
            self.probes.pop_front();
        }
        self.probes.push_back(probe);
        true
    }

    /// The run clock is another one from now on: what is known of the last one says nothing of it.
    pub fn forget(&mut self) {
        self.probes.clear();
        self.doubted.clear();
    }

    /// Probes that were refused so far.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// The run clock at an instant of the agent's clock; `None` before the first probe.
    pub fn to_run(&self, agent: Nanos) -> Option<Converted> {
        let (from, to) = bounds_at(&self.probes, agent)?;
        Some(Converted { at: shifted(agent, middle(from, to)), error: half_width(from, to) })
    }

    /// The agent's clock at an instant of the run clock; `None` before the first probe.
    pub fn to_agent(&self, run: Nanos) -> Option<Converted> {
        // The offset moves by 0.6 us a millisecond at most: taken near the instant it is the one there.
        let last = self.probes.back()?;
        let (from, to) = bounds_at(&self.probes, last.returned)?;
        let near = shifted(run, -middle(from, to));
        let (from, to) = bounds_at(&self.probes, near)?;
        Some(Converted { at: shifted(run, -middle(from, to)), error: half_width(from, to) })
    }
}

/// What all probes leave of the offset at an instant of the agent's clock.
fn bounds_at(probes: &VecDeque<Probe>, agent: Nanos) -> Option<(i128, i128)> {
    let bounds = probes.iter().filter_map(|probe| {
        let (from, to) = probe.bounds()?;
        // The controller's stamps are of an instant between these two; clocks drift meanwhile as well.
        let age = agent.0.abs_diff(probe.sent.0).max(agent.0.abs_diff(probe.returned.0));
        let drift = i128::from(age) * DRIFT_NS_PER_S / 1_000_000_000 + 1;
        Some((from - drift, to + drift))
    });
    bounds.reduce(|(from, to), (also_from, also_to)| (from.max(also_from), to.min(also_to)))
}

fn middle(from: i128, to: i128) -> i128 {
    from + (to - from) / 2
}

fn half_width(from: i128, to: i128) -> Nanos {
    Nanos(((to - from) as u64).div_ceil(2))
}

/// An instant that would lie before the clock's zero becomes its zero.
fn shifted(instant: Nanos, by: i128) -> Nanos {
    Nanos(u64::try_from(i128::from(instant.0) + by).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MICRO: u64 = 1_000;

    /// A probe between an agent whose clock is `offset` behind the run clock.
    fn probe(sent: u64, offset: u64, there: u64, back: u64) -> Probe {
        let received = sent + there + offset;
        Probe {
            sent: Nanos(sent),
            received: Nanos(received),
            answered: Nanos(received + MICRO),
            returned: Nanos(sent + there + MICRO + back),
        }
    }

    #[test]
    fn the_offset_is_known_to_half_of_the_way() {
        let mut clock = ClockEstimate::default();
        assert_eq!(clock.to_run(Nanos(5)), None);
        assert!(clock.add(probe(0, 1_000_000, 40 * MICRO, 40 * MICRO)));
        let now = Nanos(81 * MICRO);
        let run = clock.to_run(now).unwrap();
        // 81 us of drift beside half of the way.
        assert_eq!((run.at, run.error), (Nanos(1_081_000), Nanos(40 * MICRO + 98)));
        assert_eq!(clock.to_agent(run.at).unwrap().at, now);
    }

    #[test]
    fn a_probe_that_contradicts_the_others_is_refused() {
        let mut clock = ClockEstimate::default();
        assert!(clock.add(probe(0, 1_000_000, 10 * MICRO, 10 * MICRO)));
        assert!(!clock.add(probe(1_000_000, 9_000_000, 10 * MICRO, 10 * MICRO)), "a clock was set");
        let backwards = Probe { returned: Nanos(0), ..probe(5, 5, 5, 5) };
        assert!(!clock.add(backwards));
        assert_eq!(clock.refused(), 2);
    }

    #[test]
    fn after_a_jump_the_new_offset_is_believed_once_probes_agree_on_it() {
        let mut clock = ClockEstimate::default();
        (0..10).for_each(|n| {
            clock.add(probe(n * 1_000_000, 1_000_000, 10 * MICRO, 10 * MICRO));
        });
        // The machine slept for 10 s. One that agrees with nothing begins the count anew.
        let after =
            |n: u64, offset| probe(20_000_000 + n * 1_000_000, offset, 10 * MICRO, 10 * MICRO);
        let took: Vec<bool> = (0..6)
            .map(|n| clock.add(after(n, if n == 1 { 77_000_000_000 } else { 10_001_000_000 })))
            .collect();
        assert_eq!(took, [false, false, false, false, false, true]);
        let now = 26_000_000;
        let run = clock.to_run(Nanos(now)).unwrap();
        assert!(run.at.0.abs_diff(now + 10_001_000_000) <= run.error.0, "{run:?}");
    }

    #[test]
    fn the_clock_of_another_controller_is_known_from_its_first_answer() {
        let mut clock = ClockEstimate::default();
        clock.add(probe(0, 90_000_000_000, 10 * MICRO, 10 * MICRO));
        clock.forget();
        assert_eq!(clock.to_run(Nanos(5)), None);
        assert!(clock.add(probe(1_000_000, 7_000, 10 * MICRO, 10 * MICRO)));
        let run = clock.to_run(Nanos(2_000_000)).unwrap();
        assert!(run.at.0.abs_diff(2_007_000) <= run.error.0, "{run:?}");
    }

    #[test]
    fn without_probes_the_error_grows_with_time() {
        let mut clock = ClockEstimate::default();
        clock.add(probe(0, 1_000_000, 10 * MICRO, 10 * MICRO));
        let error = |at: u64| clock.to_run(Nanos(at)).unwrap().error;
        assert_eq!(error(21 * MICRO), Nanos(10 * MICRO + 26));
        assert_eq!(error(21 * MICRO + 1_000_000_000), Nanos(1_210 * MICRO + 26));
    }

    proptest! {
        /// The true instant always lies within the stated error, whatever the ways and the drift.
        #[test]
        fn the_stated_error_holds(
            offset in 0u64..10_000_000_000,
            ppm in -500i64..500,
            ways in prop::collection::vec((1u64..5_000_000, 1u64..5_000_000), 1..40),
        ) {
            let mut clock = ClockEstimate::default();
            // The run clock as a function of the agent's.
            let run = |agent: u64| {
                let drifted = i128::from(agent) * i128::from(ppm) / 1_000_000;
                (i128::from(agent + offset + 10_000_000_000) + drifted) as u64
            };
            let mut now = 0;
            for (there, back) in ways {
                let (sent, received) = (now, run(now + there));
                let returned = now + there + back;
                let one = Probe {
                    sent: Nanos(sent),
                    received: Nanos(received),
                    answered: Nanos(received),
                    returned: Nanos(returned),
                };
                prop_assert!(clock.add(one));
                for ahead in [0, 1_000_000_000] {
                    let known = clock.to_run(Nanos(returned + ahead)).unwrap();
                    let off = known.at.0.abs_diff(run(returned + ahead));
                    prop_assert!(off <= known.error.0, "{off} of {known:?}");
                }
                now = returned + 1_000_000_000;
            }
        }
    }
}
